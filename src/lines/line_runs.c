/*
 * line_runs.c - spilled runs of lines (see line_sort_internal.h)
 */
#include <errno.h>
#include <inttypes.h>

#include "src/base/diagnostics.h"
#include "src/lines/line_sort_internal.h"
#include "src/sort/setup.h"

static int write_to_run(void *context, uint64_t offset, const void *bytes, size_t nbytes)
{
	/* A run of bytes has no keys in its index. */
	static const encoded_key_t no_keys[LINE_MAX_BUFFER_NBYTES / LINE_MIN_BLOCK_NBYTES];
	const struct line_run_writer *writer = context;
	const struct span span = stats_begin(STAGE_SPILL, 0);
	const int r =
		run_file_write(writer->file, writer->nbytes + offset, bytes, NULL, nbytes, no_keys);

	if (writer->sampled)
		line_ranks_take_samples(writer->sampled, writer->nbytes + offset, bytes, nbytes);
	stats_end(writer->stats, span, r == 0 ? nbytes : 0);
	return r;
}

uint64_t line_runs_stored_nbytes(uint64_t nbytes)
{
	/* Each write of blocks ends with a page that is partly used: 2.5 % were seen. */
	return nbytes + nbytes / 16 + SPILL_ALIGN_NBYTES;
}

uint64_t line_runs_rank_nbytes(const struct line_sort *sort, uint64_t nbytes)
{
	return nbytes * (1u + line_output_needs_single_run(sort) + (sort->spec->zstd_level > 0));
}

int line_runs_open_spill(struct line_sort *sort)
{
	const uint64_t nbytes = sort->job.plan.input_nbytes;
	/* Options that drop lines make it depend on them. */
	const bool is_known = nbytes != UINT64_MAX && !sort->keys->unique &&
			      sort->spec->limit == UINT64_MAX;
	int r;

	if (sort->job.spill)
		return 0;
	sort->job.plan.temp_nbytes = is_known ? line_runs_stored_nbytes(nbytes) : 0;
	r = setup_open_spill(&sort->job, sort->spec,
			     sort->checkpoint ? sort->checkpoint->checkpoint : NULL);
	if (r == 0)
		job_set_volume_source(&sort->job);
	return r;
}

int line_run_open(struct line_sort *sort, struct line_run_writer *ret_writer)
{
	int r = line_runs_open_spill(sort);

	*ret_writer = (struct line_run_writer){ .stats = sort->job.stats };
	if (r == 0)
		r = run_file_open(sort->job.spill, sort->job.compression, 1,
				  (uint32_t)sort->job.plan.block_nbytes, &ret_writer->file);
	return r;
}

int line_runs_check_longest(const struct line_sort *sort)
{
	if (sort->longest_nbytes <= sort->memory_nbytes / MERGE_SHARE)
		return 0;
	return line_sort_fail_long_line(sort,
					sort->spec->n_inputs == 1 ? sort->spec->inputs[0] : NULL,
					"a line", sort->longest_nbytes - 1, 0);
}

static struct digest digest_difference(struct digest a, struct digest b)
{
	return (struct digest){ a.n_records - b.n_records, a.sum - b.sum };
}

int line_run_finish(struct line_sort *sort, const struct line_run_writer *writer, size_t first,
		    size_t n)
{
	const struct record_totals *now = &sort->totals, *then = &sort->origin.totals;
	/* What was read and dropped since the last run was finished. */
	struct run_origin origin = { .totals.read = digest_difference(now->read, then->read),
				     .totals.dropped =
					     digest_difference(now->dropped, then->dropped),
				     .nbytes = sort->text_nbytes - sort->origin.nbytes,
				     .max_record_nbytes = sort->longest_nbytes };
	struct run *run;
	int r;

	run_file_finish(writer->file);
	r = run_open_spilled(writer->file, SPILLED_ITEMS, &run);
	if (r < 0)
		return r;
	run_origin_add(&sort->origin, &origin);
	for (size_t i = first; i < first + n; i++)
		run_origin_add(&origin, &sort->runs.runs[i]->origin);
	run->origin = origin;
	run->level = n > 0;
	if (n > 0 && line_output_needs_n_lines(sort))
		run->origin.totals.written.n_records = writer->n_lines;
	if (sort->checkpoint) {
		const struct checkpoint_hooks *hooks =
			checkpoint_get_hooks(sort->checkpoint->checkpoint);

		r = hooks->on_run_spilled(hooks->context, &sort->runs, first, n, run);
	}
	if (n > 0)
		run_list_replace(&sort->runs, first, n, run);
	else if (r == 0)
		r = run_list_add(&sort->runs, run);
	else
		run_close(run);
	return r;
}

int line_run_write_block(struct line_sort *sort, struct line_run_writer *writer,
			 uint64_t *ret_nbytes)
{
	const struct line_sink sink = { .write = write_to_run,
					.context = writer,
					.is_run = true,
					.align_nbytes = spill_bypasses_cache(sort->job.spill) ?
								SPILL_ALIGN_NBYTES :
								0,
					.max_nbytes = LINE_MAX_BUFFER_NBYTES };
	const uint64_t n_lines = line_sort_n_lines(sort);
	const int r = line_sort_write_block(sort, &sink, ret_nbytes, NULL);

	if (r < 0)
		return r;
	writer->nbytes += *ret_nbytes;
	writer->n_lines += n_lines;
	return 0;
}
