/*
 * api_lines.c - sorts of lines (see api_lines.h)
 */
#include "src/lib/api_lines.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "src/lib/lib_internal.h"
#include "src/lines/line_explain.h"
#include "src/lines/line_options.h"

/* An option that was set. */
struct setting {
	int option;
	const char *value; /* NULL: none */
};

struct api_lines {
	struct setting *settings; /* n_settings */
	size_t n_settings;
	struct line_options checked;  /* the settings so far; finds what they exclude */
	struct line_options complete; /* of the operation */
	struct line_plan plan;
};

int api_lines_enable(struct gsort *sort, const char *value)
{
	struct api_lines *lines;
	int r = api_check_not_started(sort, LINES_OPTION);

	if (r == 0 && value && *value)
		r = fail(-EINVAL, LINES_OPTION " takes no value: '%s'", value);
	if (r < 0 || sort->lines)
		return r;
	if (sort->comm)
		return fail(-EINVAL, LINES_OPTION ": several ranks cannot sort lines");
	for (unsigned i = 0; i < options_table.n_specs; i++)
		if (option_is_present(&sort->arguments, i))
			return fail(-EINVAL, LINES_OPTION ": set it before %s",
				    options_table.specs[i].name);
	lines = calloc(1, sizeof *lines);
	if (!lines)
		return fail(-ENOMEM, "no memory for the options of lines");
	line_options_init(&lines->checked);
	line_options_init(&lines->complete);
	sort->lines = lines;
	return 0;
}

void api_lines_free(struct api_lines *lines)
{
	if (!lines)
		return;
	line_options_free(&lines->checked);
	line_options_free(&lines->complete);
	free(lines->settings);
	free(lines);
}

/* --- Options --- */

static const struct option *find_row(int option)
{
	const struct option *row = line_option_names;

	while (row->name && row->val != option)
		row++;
	return row->name ? row : NULL;
}

static bool is_for_programs(int option)
{
	static const int options[] = { OPTION_CHECK,     OPTION_EXPLAIN,  OPTION_HELP,
				       OPTION_VERSION,   OPTION_PROGRESS, OPTION_DEBUG,
				       OPTION_COMPLETION };

	for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
		if (options[i] == option)
			return true;
	return line_option_is_of_ranks(option);
}

/* Return the name of an option's value; NULL: it has none. */
static const char *argument_name(const struct option *row)
{
	if (row->has_arg == no_argument)
		return NULL;
	switch (row->val) {
	case 'S':
	case OPTION_TEMP_LIMIT:
	case OPTION_DEVICE_MEMORY:
		return "SIZE";
	case 'o':
	case OPTION_FILES0_FROM:
	case OPTION_STATS_JSON:
	case OPTION_TRACE:
	case OPTION_REPORT:
		return "FILE";
	case 'T':
	case OPTION_CHECKPOINT:
		return "DIR";
	default:
		return "VALUE";
	}
}

int gsort_get_line_option(unsigned i, struct gsort_option *ret_option, size_t size)
{
	struct gsort_option option;
	const struct option *row;
	unsigned n = 0;

	if (!ret_option)
		return -EINVAL;
	/* Those of gsort-mpi are the last ones. */
	while (line_option_names[n].name && !line_option_is_of_ranks(line_option_names[n].val))
		n++;
	if (i >= n)
		return -ENOENT;
	row = &line_option_names[i];
	option = (struct gsort_option){
		.name = row->name,
		.argument = argument_name(row),
		.default_value = row->has_arg == optional_argument ? "" : NULL,
		.letter = row->val <= UCHAR_MAX ? row->val : 0,
		.repeatable = row->val == 'k' || row->val == 'T',
		.cli_only = is_for_programs(row->val),
	};
	copy_struct_prefix(ret_option, size, &option, sizeof option);
	return 0;
}

bool api_lines_have_option(const char *name)
{
	const int option = line_option_find(name);

	return option != 0 && !line_option_is_of_ranks(option);
}

static int refuse_unknown(const char *name)
{
	const char *names[64], *nearest;
	unsigned n = 0;

	for (const struct option *row = line_option_names; row->name && n < 64; row++)
		if (!is_for_programs(row->val))
			names[n++] = row->name;
	nearest = suggest_word(name, strlen(name), names, n);
	return nearest ? fail(-EINVAL, "unknown option '%s' of lines; did you mean %s?", name,
			      nearest) :
			 fail(-EINVAL, "unknown option '%s' of lines", name);
}

static int check_value(const struct option *row, const char *value)
{
	if (row->has_arg == required_argument && !value)
		return fail(-EINVAL, "--%s requires a value", row->name);
	if (row->has_arg == no_argument && value && *value)
		return fail(-EINVAL, "--%s takes no value: '%s'", row->name, value);
	return 0;
}

/* Set an option that the library implements for lines as for records. */
static void set_common(struct options *options, int option, const char *value)
{
	switch (option) {
	case OPTION_STATS:
		options->stats = true;
		break;
	case OPTION_STATS_JSON:
		options->stats_json_path = value;
		break;
	case OPTION_TRACE:
		options->trace_path = value;
		break;
	case OPTION_REPORT:
		options->report_path = value;
		break;
	case OPTION_FILES0_FROM:
		options->files0_path = value;
		break;
	case OPTION_CHECKPOINT:
		options->spec.checkpoint_path = value;
		break;
	case 'o':
		options->spec.output_path = value;
		break;
	default:
		break;
	}
}

static int record_setting(struct api_lines *lines, struct setting setting)
{
	struct setting *grown = reallocarray(lines->settings, lines->n_settings + 1, sizeof *grown);

	if (!grown)
		return fail(-ENOMEM, "no memory for the options of lines");
	lines->settings = grown;
	grown[lines->n_settings++] = setting;
	return 0;
}

int api_lines_set(struct gsort *sort, const char *name, const char *value)
{
	struct api_lines *lines = sort->lines;
	const int option = line_option_find(name);
	const struct option *row = find_row(option);
	int r = api_check_not_started(sort, name);

	if (r < 0)
		return r;
	if (strcmp(name, "c") == 0 || strcmp(name, "C") == 0 || (row && is_for_programs(option)))
		return fail(-ENOTSUP, "%s: only for programs", name);
	if (!row)
		return refuse_unknown(name);
	r = check_value(row, value);
	if (r == 0)
		r = line_options_set(&lines->checked, option, value);
	if (r == 0)
		r = record_setting(lines, (struct setting){ option, value });
	if (r == 0)
		set_common(&sort->options, option, value);
	return r;
}

const char *api_lines_get_set(const struct gsort *sort, const char *name)
{
	const int option = line_option_find(name);

	for (size_t i = 0; i < sort->lines->n_settings; i++) {
		const struct setting *setting = &sort->lines->settings[i];

		if (setting->option == option)
			return setting->value ? setting->value : "";
	}
	return NULL;
}

/* --- The operation --- */

int api_lines_finalize(struct gsort *sort)
{
	struct api_lines *lines = sort->lines;
	struct line_options *complete = &lines->complete;
	struct sort_spec *spec = &sort->options.spec;
	int r = 0;

	line_options_free(complete);
	line_options_init(complete);
	for (size_t i = 0; i < lines->n_settings && r == 0; i++)
		if (lines->settings[i].option != OPTION_FILES0_FROM) /* its names are inputs */
			r = line_options_set(complete, lines->settings[i].option,
					     lines->settings[i].value);
	for (size_t i = 0; i < spec->n_inputs && r == 0; i++)
		r = line_options_add_input(complete, spec->inputs[i]);
	if (sort->operation == API_CHECK)
		complete->check = 'c';
	if (r == 0)
		r = line_options_finish(complete, api_default_temp_dir);
	if (spec->output_endpoint.kind != ENDPOINT_PATH)
		spec->output_path = sort->options.output_label;
	spec->io = process_syscalls(sort->process);
	complete->params.input_endpoints = spec->input_endpoints;
	complete->params.output = spec->output_path;
	complete->params.output_endpoint = spec->output_endpoint;
	complete->params.cancellation = &sort->cancellation;
	return r;
}

static int check_order(struct gsort *sort, const struct line_sort_params *params)
{
	struct line_disorder disorder;
	const int r = line_sort_check(sort->options.spec.io, params, &sort->summary, &disorder);

	sort->disorder = disorder.number;
	free(disorder.line);
	return r;
}

int api_lines_run(struct gsort *sort)
{
	struct api_lines *lines = sort->lines;
	struct line_sort_params *params = &lines->complete.params;
	const struct syscalls *calls = sort->options.spec.io;
	int r;

	params->stats = sort->stats;
	switch (sort->operation) {
	case API_CHECK:
		return check_order(sort, params);
	case API_EXPLAIN:
		return line_plan_make(calls, params, &lines->plan);
	case API_SORT:
		break;
	}
	r = line_sort_run(calls, params, &sort->summary);
	if (r == 0 && reports_are_requested(&sort->options))
		process_set_output_committed(sort->process);
	return r;
}

int api_lines_write_plan(const struct gsort *sort, bool is_json, FILE *stream)
{
	if (is_json)
		return line_plan_write_json(&sort->lines->plan, stream);
	line_plan_print(&sort->lines->plan, stream);
	return 0;
}
