/*
 * api_records.c - sorts of records: the engine of src/sort/ behind include/gsort.h
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "src/lib/lib_internal.h"
#include "src/options/command_files.h"
#include "src/report/explain.h"

/* --- Completing the options --- */

static int finalize_records(struct gsort *sort)
{
	struct sort_spec *spec = &sort->options.spec;
	int r = 0;

	if (sort->accepts_puts && spec->n_shards)
		r = fail(-EINVAL, "--shard requires files as inputs, not gsort_put()");
	if (r == 0)
		r = options_finalize(&sort->options, api_default_temp_dir);
	/* Without input files, nothing resolves the names of keys. */
	if (r == 0 && sort->accepts_puts && spec->n_inputs == 1 &&
	    spec->record_spec == RECORD_SPEC_REQUESTS)
		r = record_options_refuse_keys(&sort->options.record);
	if (r < 0)
		return r;
	spec->omit_header = sort->returns_output;
	spec->comm = sort->comm;
	options_default_resources(spec); /* of --ranks, each on a host like this one */
	if (!sort->comm)
		return api_distributed_check_planned(sort, spec);
	/* Ranks of one host would disturb each other's measurements. */
	spec->measure_peak_rates = false;
	return 0;
}

/* --- The operation --- */

/* Report the default type: warn a caller of the library, or notify the reader of a terminal. */
static void report_default_type(const struct gsort *sort, const struct input *input)
{
	const char *path = sort->options.spec.n_inputs ? sort->options.spec.inputs[0] : "";
	const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
	const char *operation = sort->operation == API_CHECK    ? "checking" :
				sort->options.spec.merge_inputs ? "merging" :
								  "sorting";

	if (sort->operation == API_EXPLAIN || !api_is_reporting_rank(sort) ||
	    !command_files_are_untyped(&sort->options, input))
		return;
	if (!sort->process)
		warn("%s: no type given, %s as u64", name, operation);
	else if (isatty(STDERR_FILENO))
		notice("%s: no type given, %s as u64", name, operation);
}

static int on_inputs_opened(void *context, const struct sort_spec *spec,
			    const struct layout *layout, struct input *input)
{
	const struct gsort *sort = context;
	const int r = command_files_check_inputs(&sort->options, sort->process != NULL, input);

	if (r == 0)
		report_default_type(sort, input);
	return r < 0 || !sort->options.debug ? r : debug_report_keys(spec, layout, input);
}

static void on_device_opened(void *context, const char *name)
{
	const struct gsort *sort = context;

	if (sort->options.debug)
		debug_line("device: %s", name);
}

static void on_output_committed(void *context)
{
	const struct gsort *sort = context;

	if (reports_are_requested(&sort->options) && api_is_reporting_rank(sort))
		process_set_output_committed(sort->process);
}

/* Print a notice before reading a terminal: the user may have forgotten the name of the file. */
static void notice_terminal_input(const struct gsort *sort)
{
	const struct sort_spec *spec = &sort->options.spec;
	const bool is_refused = sort->operation == API_SORT && !spec->output_path &&
				isatty(STDOUT_FILENO);

	if (!sort->process || sort->operation == API_EXPLAIN || is_refused || !isatty(STDIN_FILENO))
		return;
	for (size_t i = 0; i < spec->n_inputs; i++)
		if (!strcmp(spec->inputs[i], "-"))
			notice("reading from the terminal; press Ctrl-D to end the input, "
			       "Ctrl-C to cancel");
}

static int run_records(struct gsort *sort)
{
	const struct sort_observer observer = { .context = sort,
						.on_opened = on_inputs_opened,
						.on_device = on_device_opened,
						.on_committed = on_output_committed };
	const struct assumptions assumptions = { .nbytes = sort->assumed_nbytes,
						 .rank_rates = sort->options.rank_rates };
	int r;

	notice_terminal_input(sort);
	switch (sort->operation) {
	case API_CHECK:
		r = sort_check(&sort->options.spec, sort->check_label, &observer, sort->stats,
			       &sort->summary, &sort->disorder);
		if (r == 0 && sort->disorder && sort->reports_disorder)
			notice("%s: record %" PRIu64 ": disorder", sort->options.spec.inputs[0],
			       sort->disorder);
		return r;
	case API_EXPLAIN:
		r = sort_explain(&sort->options.spec, &assumptions, &observer, sort->stats,
				 &sort->explanation);
		sort->summary = sort->explanation.summary;
		return r;
	case API_SORT:
		break;
	}
	return sort_run(&sort->options.spec, &observer, sort->stats, &sort->summary);
}

const struct api_engine api_record_engine = {
	.option_table = &options_table,
	.option_kind = "",
	.finalize = finalize_records,
	.run = run_records,
};
