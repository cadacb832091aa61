/*
 * api_lines.c - sorts of lines (see api_lines.h)
 */
#include "src/lib/api_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static bool is_of_ranks(const struct option_spec *spec)
{
	return spec->mpi_support == OPTION_MPI_ONLY;
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
static void set_common(struct options *options, const struct option_spec *spec, const char *value)
{
	static const char *const names[] = { "stats",       "stats-json", "trace", "report",
					     "files0-from", "checkpoint", "output" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(spec->name, names[i]) == 0) {
			const struct option_spec *common = option_find(&options_table, names[i]);

			common->parse(common, value, options);
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
	const struct option_spec *spec = option_find(&line_option_table, name);
	int r = api_check_not_started(sort, name);

	if (r < 0)
		return r;
	if (!spec)
		return refuse_unknown(name);
	if (spec->cli_only)
		return fail(-ENOTSUP, "%s: only for programs", name);
	r = api_check_value(spec, value);
	if (r == 0)
		r = line_options_set(&lines->checked, spec, value);
	if (r == 0)
		r = record_setting(lines, (struct setting){ spec, value });
	if (r == 0)
		set_common(&sort->options, spec, value);
	return r;
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
	for (size_t i = 0; i < lines->n_settings && r == 0; i++)
		r = line_options_set(complete, lines->settings[i].spec, lines->settings[i].value);
	complete->files0_from = NULL; /* its names are inputs */
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
