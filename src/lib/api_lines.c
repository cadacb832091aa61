/*
 * api_lines.c - sorts of lines (see lib_internal.h, api_cli.h)
 */
#include "src/lib/api_cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "src/comm/comm.h"
#include "src/lib/lib_internal.h"
#include "src/lines/line_options.h"

struct api_lines {
	struct line_keys requested;    /* the options point to them */
	struct line_keys keys;         /* to sort by */
	struct line_disorder disorder; /* found by a check */
};

void api_lines_write_to_stdout(struct gsort *sort)
{
	sort->writes_to_stdout = true;
}

void api_lines_free(struct api_lines *lines)
{
	if (!lines)
		return;
	line_keys_free(&lines->requested);
	line_keys_free(&lines->keys);
	free(lines->disorder.line);
	free(lines);
}

/* --- The operation --- */

static int finalize_lines(struct gsort *sort)
{
	struct line_keys *keys = &sort->lines->keys;

	line_keys_free(keys);
	if (sort->comm && comm_size(sort->comm) > 1)
		sort->options.spec.comm = sort->comm;
	return line_options_finalize(&sort->options, api_default_temp_dir, keys);
}

void api_lines_write_disorder(const struct gsort *sort, FILE *stream)
{
	const struct line_disorder *disorder = &sort->lines->disorder;

	if (!disorder->line || !sort->reports_disorder)
		return;
	fprintf(stream, GSORT_PROGRAM ": %s:%" PRIu64 ": disorder: ", sort->options.spec.inputs[0],
		disorder->number);
	fwrite(disorder->line, 1, disorder->nbytes, stream);
	fputc(sort->lines->keys.delimiter, stream);
}

static int run_lines(struct gsort *sort)
{
	struct api_lines *lines = sort->lines;
	const struct line_sort_params params =
		line_options_params(&sort->options, &lines->keys, sort->stats);
	int r;

	switch (sort->operation) {
	case API_CHECK:
		r = line_sort_check(&params, &sort->summary, &lines->disorder);
		sort->disorder = lines->disorder.number;
		return r;
	case API_EXPLAIN:
		return line_sort_explain(&params, &sort->explanation);
	case API_SORT:
		break;
	}
	r = line_sort_run(&params, &sort->summary);
	if (r == 0 && reports_are_requested(&sort->options) && api_is_reporting_rank(sort))
		process_set_output_committed(sort->process);
	return r;
}

static const struct api_engine line_engine = {
	.option_table = &line_option_table,
	.option_kind = " of lines",
	.follows_gnu_sort = true,
	.finalize = finalize_lines,
	.run = run_lines,
};

int api_lines_enable(struct gsort *sort, const char *value)
{
	struct api_lines *lines;
	int r = api_check_not_started(sort, LINES_OPTION);

	if (r == 0 && value && *value)
		r = fail(-EINVAL, LINES_OPTION " takes no value: '%s'", value);
	if (r < 0 || sort->lines)
		return r;
	for (unsigned i = 0; i < sort->engine->option_table->n_specs; i++)
		if (option_is_present(&sort->arguments, i))
			return fail(-EINVAL, LINES_OPTION ": set it before %s",
				    sort->engine->option_table->specs[i].name);
	lines = calloc(1, sizeof *lines);
	if (!lines)
		return fail(-ENOMEM, "no memory for the options of lines");
	line_options_init(&sort->options, &lines->requested);
	sort->engine = &line_engine;
	sort->lines = lines;
	return 0;
}
