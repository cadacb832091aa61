/*
 * line_check.c - check the order of lines (see line_sort.h)
 */
#include "src/lines/line_sort.h"
#include "src/lines/line_sort_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"

static int report_disorder(uint64_t number, struct line_view line,
			   struct line_disorder *ret_disorder)
{
	*ret_disorder = (struct line_disorder){ .number = number,
						.line = malloc(line.nbytes + 1),
						.nbytes = line.nbytes };
	if (!ret_disorder->line)
		return fail(-ENOMEM, "no memory for a line");
	if (line.nbytes)
		memcpy(ret_disorder->line, line.bytes, line.nbytes);
	return 0;
}

/*
 * Compare the lines of a chunk. *number: of the first one. *ret_last: the last line that was
 * compared.
 */
static int check_chunk(struct line_sort *sort, const unsigned char *end, uint64_t *number,
		       unsigned char **ret_last, struct line_disorder *ret_disorder)
{
	unsigned char *line = line_block_text(sort->block);
	struct line_view last = line_sort_view(sort, line);

	*ret_last = line;
	while (last.bytes + last.nbytes + 1 < end) {
		const struct line_view next = line_sort_view(sort, last.bytes + last.nbytes + 1);
		const int order = line_sort_compare(sort, last, next);

		(*number)++;
		*ret_last = (unsigned char *)next.bytes;
		if (order > 0 || (order == 0 && sort->keys->unique))
			return report_disorder(*number, next, ret_disorder);
		last = next;
	}
	return 0;
}

/* No room is left for a line after the last one that was checked, which ends at `end`. */
static int fail_memory(struct line_sort *sort, size_t n, const unsigned char *end)
{
	const unsigned char *text = line_block_text(sort->block);
	const size_t nbytes = (size_t)(end - text);
	char line[LINE_LABEL_NBYTES];
	const char *path;

	if (nbytes <= sort->memory_nbytes / MERGE_SHARE)
		return line_sort_fail_unfinished_line(sort, n - nbytes);
	path = line_input_locate(sort->input, text, n, line);
	return line_sort_fail_long_line(sort, path, line, nbytes - 1, 0);
}

static int check_order(struct line_sort *sort, struct line_disorder *ret_disorder)
{
	unsigned char *text = line_block_text(sort->block), *end, *last = text;
	uint64_t number = sort->params->n_header_lines + 1;
	bool is_at_end = false;
	size_t n = 0;

	for (;;) {
		const size_t n_checked = n; /* at the beginning */
		size_t n_new;
		struct span span;
		int r = cancellation_check(sort->spec->cancellation);

		if (r == 0)
			r = line_sort_read_chunk(sort, n + LINE_SAMPLE_NBYTES, &n, &end,
						 &is_at_end);
		if (r < 0 || n == 0)
			return r;
		if (n == n_checked && !is_at_end)
			return fail_memory(sort, n, end);
		span = stats_begin(STAGE_VERIFY, 0);
		r = check_chunk(sort, end, &number, &last, ret_disorder);
		n_new = ret_disorder->number ?
				(size_t)(last - text) + line_sort_view(sort, last).nbytes + 1 :
				n;
		n_new -= n_checked;
		stats_end(sort->job.stats, span, n_new);
		sort->text_nbytes += n_new;
		sort->totals.read.n_records = number - sort->params->n_header_lines;
		if (r < 0 || ret_disorder->number || is_at_end)
			return r;
		/* The next chunk begins with the last line of this one. */
		n -= (size_t)(last - text);
		memmove(text, last, n);
	}
}

int line_sort_check(const struct line_sort_params *params, struct sort_summary *ret_summary,
		    struct line_disorder *ret_disorder)
{
	const struct sort_spec *spec = &params->spec;
	struct line_sort sort = { .params = params, .spec = spec };
	int r = (spec->comm ? line_ranks_open : line_sort_open)(params, NULL, &sort);

	*ret_disorder = (struct line_disorder){ 0 };
	if (r == 0) {
		const uint64_t nbytes = sort.job.plan.input_nbytes;

		stats_begin_phase(params->stats, PHASE_VERIFY, nbytes == UINT64_MAX ? 0 : nbytes);
		cancellation_set_wakeup(spec->cancellation, line_sort_stop_waiting, &sort);
		r = check_order(&sort, ret_disorder);
		if (r == 0 && !ret_disorder->number)
			stats_complete_phase(params->stats);
		if (r == -ECANCELED) /* an input does not report it */
			r = cancellation_check(spec->cancellation);
		cancellation_clear_wakeup(spec->cancellation);
	}
	if (r == 0)
		r = line_sort_check_scratch(&sort);
	if (r == 0 && sort.ranks)
		r = line_ranks_agree_disorder(&sort, ret_disorder);
	if (r < 0 && spec->comm)
		line_ranks_abandon(&sort, r);
	if (r == 0) {
		*ret_summary = (struct sort_summary){ .input_nbytes = sort.text_nbytes,
						      .n_records_in = sort.totals.read.n_records -
								      sort.input->share.n_more_read,
						      .type = "lines" };
		stats_finish(params->stats);
	}
	line_sort_close(&sort);
	return r;
}
