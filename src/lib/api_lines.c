/*
 * api_lines.c - sorts of lines (see api_lines.h)
 */
#include "src/lib/api_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "src/comm/comm.h"
#include "src/lib/lib_internal.h"
#include "src/lines/line_explain.h"
#include "src/lines/line_options.h"

/* An option that was set. */
struct setting {
	const struct option_spec *spec;
	const char *value; /* NULL: none */
};

struct api_lines {
	struct setting *settings; /* n_settings */
	size_t n_settings;
	struct line_options checked;  /* the settings so far; rejects conflicts */
	struct line_options complete; /* with the options that the operation implies */
	struct line_plan plan;
	struct line_disorder disorder; /* found by a check */
	bool writes_to_stdout;
};

int api_lines_enable(struct gsort *sort, const char *value)
{
	struct api_lines *lines;
	int r = api_check_not_started(sort, LINES_OPTION);

	if (r == 0 && value && *value)
		r = fail(-EINVAL, LINES_OPTION " takes no value: '%s'", value);
	if (r < 0 || sort->lines)
		return r;
	for (unsigned i = 0; i < options_table.n_specs; i++)
		if (option_is_present(&sort->arguments, i))
			return fail(-EINVAL, LINES_OPTION ": set it before %s",
				    options_table.specs[i].name);
	lines = calloc(1, sizeof *lines);
	if (!lines)
		return fail(-ENOMEM, "no memory for the options of lines");
	line_options_init(&lines->checked);
	line_options_init(&lines->complete);
	lines->checked.accepts_ranks = sort->comm;
	sort->lines = lines;
	return 0;
}

void api_lines_write_to_stdout(struct gsort *sort)
{
	sort->lines->writes_to_stdout = true;
	sort->options.output_label = "standard output";
	sort->options.spec.output_endpoint =
		(struct endpoint){ .kind = ENDPOINT_DESCRIPTOR, .fd = STDOUT_FILENO };
}

void api_lines_free(struct api_lines *lines)
{
	if (!lines)
		return;
	line_options_free(&lines->checked);
	line_options_free(&lines->complete);
	free(lines->settings);
	free(lines->disorder.line);
	free(lines);
}

/* --- Options --- */

static bool is_of_ranks(const struct option_spec *spec)
{
	return spec->mpi_support == OPTION_MPI_ONLY;
}

int api_lines_get_option(unsigned i, struct gsort_option *ret_option, size_t size)
{
	const bool exists = i < line_option_table.n_specs;

	return api_describe_option(exists ? &line_option_table.specs[i] : NULL, ret_option, size);
}

const char *api_lines_get_word(unsigned i, unsigned n, char *text)
{
	return option_word(&line_option_table.specs[i], n, text);
}

int gsort_get_line_option(unsigned i, struct gsort_option *ret_option, size_t size)
{
	const bool exists = i < line_option_table.n_specs &&
			    !is_of_ranks(&line_option_table.specs[i]);

	return api_describe_option(exists ? &line_option_table.specs[i] : NULL, ret_option, size);
}

bool api_lines_have_option(const char *name)
{
	const struct option_spec *spec = option_find(&line_option_table, name);

	return spec && !is_of_ranks(spec);
}

static int refuse_unknown(const char *name)
{
	const char *names[OPTION_MAX_ROWS], *nearest;
	unsigned n = 0;

	for (unsigned i = 0; i < line_option_table.n_specs; i++)
		if (!line_option_table.specs[i].cli_only)
			names[n++] = line_option_table.specs[i].name;
	nearest = suggest_word(name, strlen(name), names, n);
	return nearest ? fail(-EINVAL, "unknown option '%s' of lines; did you mean %s?", name,
			      nearest) :
			 fail(-EINVAL, "unknown option '%s' of lines", name);
}

/* Set an option that the library implements for lines as for records. */
static int set_common(struct options *options, const struct option_spec *spec, const char *value)
{
	static const char *const names[] = { "stats",       "stats-json", "trace",  "report",
					     "files0-from", "checkpoint", "output", "timeout" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(spec->name, names[i]) == 0) {
			const struct option_spec *common = option_find(&options_table, names[i]);

			return common->parse(common, value, options);
		}
	return 0;
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

int api_lines_set(struct gsort *sort, const char *name, const char *value, bool from_cli)
{
	struct api_lines *lines = sort->lines;
	const struct option_spec *spec = option_find(&line_option_table, name);
	int r = api_check_not_started(sort, name);

	if (r < 0)
		return r;
	if (!spec)
		return refuse_unknown(name);
	if (spec->cli_only && !from_cli)
		return fail(-ENOTSUP, "%s: only for programs", name);
	r = api_check_value(spec, value);
	if (r == 0)
		r = line_options_set(&lines->checked, spec, value);
	if (r >= 0)
		r = record_setting(lines,
				   (struct setting){ spec, value ? value : spec->default_value });
	return r < 0 ? r : set_common(&sort->options, spec, value);
}

const char *api_lines_get_set(const struct gsort *sort, const char *name)
{
	const struct option_spec *spec = option_find(&line_option_table, name);

	for (size_t i = 0; i < sort->lines->n_settings; i++) {
		const struct setting *setting = &sort->lines->settings[i];

		if (setting->spec == spec)
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
	complete->accepts_ranks = sort->comm;
	if (sort->comm && comm_size(sort->comm) > 1)
		complete->params.spec.comm = sort->comm;
	for (size_t i = 0; i < lines->n_settings && r >= 0; i++)
		r = line_options_set(complete, lines->settings[i].spec, lines->settings[i].value);
	r = r < 0 ? r : 0;
	for (size_t i = 0; i < spec->n_inputs && r == 0; i++)
		r = line_options_add_input(complete, spec->inputs[i]);
	sort->reports_disorder = complete->check == 'c';
	if (r == 0 && sort->operation == API_CHECK && !complete->check)
		r = line_options_set(complete, option_find(&line_option_table, "check"), NULL);
	if (r == 0)
		r = line_options_finish(complete, api_default_temp_dir);
	if (lines->writes_to_stdout)
		spec->output_endpoint = (struct endpoint){ .kind = ENDPOINT_PATH };
	if (spec->output_endpoint.kind != ENDPOINT_PATH)
		spec->output_path = sort->options.output_label;
	spec->n_part_files = complete->params.spec.n_part_files;
	spec->io = complete->params.spec.io = process_syscalls(sort->process);
	complete->params.spec.input_endpoints = spec->input_endpoints;
	complete->params.spec.output_path = spec->output_path;
	complete->params.spec.output_endpoint = spec->output_endpoint;
	complete->params.spec.cancellation = &sort->cancellation;
	return r;
}

static int check_order(struct gsort *sort, const struct line_sort_params *params)
{
	struct line_disorder *disorder = &sort->lines->disorder;
	const int r = line_sort_check(params, &sort->summary, disorder);

	sort->disorder = disorder->number;
	return r;
}

void api_lines_write_disorder(const struct gsort *sort, FILE *stream)
{
	const struct line_disorder *disorder = &sort->lines->disorder;

	if (!disorder->line || !sort->reports_disorder)
		return;
	fprintf(stream, GSORT_PROGRAM ": %s:%" PRIu64 ": disorder: ", sort->options.spec.inputs[0],
		disorder->number);
	fwrite(disorder->line, 1, disorder->nbytes, stream);
	fputc(sort->lines->complete.keys.delimiter, stream);
}

int api_lines_operation(const struct gsort *sort)
{
	const struct line_options *options = &sort->lines->checked;

	return options->check ? API_CHECK : options->explain ? API_EXPLAIN : API_SORT;
}

int api_lines_run(struct gsort *sort)
{
	struct api_lines *lines = sort->lines;
	struct line_sort_params *params = &lines->complete.params;
	int r;

	params->stats = sort->stats;
	switch (sort->operation) {
	case API_CHECK:
		return check_order(sort, params);
	case API_EXPLAIN:
		return line_plan_make(params, &lines->plan);
	case API_SORT:
		break;
	}
	r = line_sort_run(params, &sort->summary);
	if (r == 0 && reports_are_requested(&sort->options) && api_is_reporting_rank(sort))
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
