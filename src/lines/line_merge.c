/*
 * line_merge.c - merge spilled runs of lines (see line_sort.h)
 */
#include "src/lines/line_sort_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/array.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/comm/comm.h"
#include "src/sort/distributed_sort.h"

enum {
	READ_BLOCKS = 4, /* blocks read by one task */
	MAX_READ_TASKS_PER_RUN = 64,
};

/* Blocks that a task reads. */
struct read_task {
	struct run *run;
	struct stats *stats;
	uint64_t first, n;
	unsigned char *to;
	size_t nbytes;
};

/* A run that is merged, and the part of it that is in memory. */
struct merged_run {
	struct run *run;
	uint64_t next_block;
	unsigned char *region, *begin, *end; /* [begin, end) of the region is not written */
};

/* A merge of some runs. */
struct line_merge {
	struct line_sort *sort;
	struct merged_run *runs; /* n_runs */
	size_t n_runs, share_nbytes;
	unsigned char **cuts;      /* n_runs: the end of each run's part of the window */
	struct line_range *ranges; /* scratch: n_runs */
	struct read_task *tasks;
	/* The line that was written last. */
	unsigned char *last;
	size_t last_nbytes, last_capacity;
	bool has_last;
	uint64_t window_nbytes; /* of all lines of the window */
};

static int read_blocks(void *context, uint32_t task)
{
	const struct read_task *read = (const struct read_task *)context + task;
	const struct span span = stats_begin(STAGE_FETCH, task);
	struct digest ignored = { 0 };
	const int r = run_read(read->run, read->first, read->n, read->to, &ignored);

	stats_end(read->stats, span, r == 0 ? read->nbytes : 0);
	return r;
}

static size_t block_nbytes(const struct run *run, uint64_t i)
{
	return (size_t)(run_block_start(run, i + 1) - run_block_start(run, i));
}

/* Plan to read the next blocks of a run after what is left of it. Returns the number of tasks. */
static size_t plan_reads(const struct line_merge *merge, struct merged_run *run,
			 struct read_task *tasks)
{
	const uint64_t n_blocks = run->run->n_blocks;
	const size_t share = merge->share_nbytes, n_left = (size_t)(run->end - run->begin);
	/* So many that the tasks can fill the share. */
	const uint64_t max_blocks =
		u64_max(READ_BLOCKS, divide_up(share, (uint64_t)MAX_READ_TASKS_PER_RUN *
							      merge->sort->job.plan.block_nbytes));
	size_t n_tasks = 0;

	/* Otherwise a whole line is in memory, and little would be read. */
	if (run->next_block == n_blocks ||
	    (n_left > share / 2 && n_left >= merge->sort->longest_nbytes))
		return 0;
	memmove(run->region, run->begin, n_left);
	run->begin = run->region;
	run->end = run->region + n_left;
	while (run->next_block < n_blocks && n_tasks < MAX_READ_TASKS_PER_RUN) {
		struct read_task *task = &tasks[n_tasks];

		*task = (struct read_task){ .run = run->run,
					    .stats = merge->sort->job.stats,
					    .first = run->next_block,
					    .to = run->end };
		while (run->next_block < n_blocks && task->n < max_blocks &&
		       run->end + block_nbytes(run->run, run->next_block) <= run->region + share) {
			run->end += block_nbytes(run->run, run->next_block++);
			task->n++;
		}
		if (task->n == 0)
			break;
		task->nbytes = (size_t)(run->end - task->to);
		n_tasks++;
	}
	return n_tasks;
}

static int fill_runs(struct line_merge *merge)
{
	/* A checkpoint frees runs when what was made of them is durable. */
	const bool keeps_runs = merge->sort->checkpoint || merge->sort->is_measuring;
	size_t n_tasks = 0;
	int r;

	for (size_t i = 0; i < merge->n_runs; i++)
		n_tasks += plan_reads(merge, &merge->runs[i], merge->tasks + n_tasks);
	if (n_tasks == 0)
		return 0;
	r = thread_pool_run(merge->sort->threads, read_blocks, merge->tasks, (uint32_t)n_tasks);
	for (size_t i = 0; i < merge->n_runs && r == 0 && !keeps_runs; i++)
		run_discard_before(merge->runs[i].run, merge->runs[i].next_block);
	return r;
}

unsigned char *line_sort_find_cut(struct line_sort *sort, unsigned char *begin, unsigned char *end,
				  struct line_view bound, bool after_equals)
{
	unsigned char *lo = begin, *hi = end; /* beginnings of lines, or the end */

	while (lo < hi) {
		unsigned char *middle = line_sort_last_end(sort, lo, lo + (hi - lo) / 2);
		const struct line_view line = line_sort_view(sort, middle);
		const int order = line_sort_compare(sort, line, bound);

		if (order < 0 || (order == 0 && after_equals))
			lo = middle + line.nbytes + 1;
		else
			hi = middle;
	}
	return lo;
}

/* Cut all runs after the bound, a line of run `bound_run`. */
static void cut_runs(struct line_merge *merge, struct line_view bound, size_t bound_run)
{
	/* Of equal lines, those of earlier runs come first. */
	for (size_t i = 0; i < merge->n_runs; i++)
		merge->cuts[i] = i == bound_run ?
					 (unsigned char *)bound.bytes + bound.nbytes + 1 :
					 line_sort_find_cut(merge->sort, merge->runs[i].begin,
							    merge->cuts[i], bound, i < bound_run);
}

/* Find the window: the first of the last lines in memory of runs that go on. */
static int find_window(struct line_merge *merge)
{
	struct line_sort *sort = merge->sort;
	struct line_view bound = { 0 };
	size_t bound_run = 0;

	for (size_t i = 0; i < merge->n_runs; i++) {
		const struct merged_run *run = &merge->runs[i];
		struct line_view last;

		merge->cuts[i] = line_sort_last_end(sort, run->begin, run->end);
		if (run->next_block == run->run->n_blocks)
			continue;
		if (merge->cuts[i] == run->begin)
			return fail(-E2BIG, "internal error: a line does not fit in a window");
		last = line_sort_view(sort,
				      line_sort_last_end(sort, run->begin, merge->cuts[i] - 1));
		if (!bound.bytes || line_sort_compare(sort, last, bound) < 0) {
			bound = last;
			bound_run = i;
		}
	}
	if (bound.bytes)
		cut_runs(merge, bound, bound_run);
	return 0;
}

/* Leave only what comes before a line, the only one of its run; leave the line if it is first. */
static void cut_before_line(struct line_merge *merge, size_t run)
{
	struct merged_run *runs = merge->runs;
	bool is_first = true;

	cut_runs(merge, line_sort_view(merge->sort, runs[run].begin), run);
	for (size_t i = 0; i < merge->n_runs; i++)
		is_first &= i == run || merge->cuts[i] == runs[i].begin;
	if (!is_first)
		merge->cuts[run] = runs[run].begin;
}

/* Halve the longest part of the window, and cut the others where that one ends. */
static void halve_window(struct line_merge *merge)
{
	unsigned char *begin, *end, *middle;
	size_t longest = 0;

	for (size_t i = 1; i < merge->n_runs; i++)
		if (merge->cuts[i] - merge->runs[i].begin >
		    merge->cuts[longest] - merge->runs[longest].begin)
			longest = i;
	begin = merge->runs[longest].begin;
	end = merge->cuts[longest];
	middle = line_sort_last_end(merge->sort, begin, begin + (end - begin) / 2);
	if (middle > begin)
		middle = line_sort_last_end(merge->sort, begin, middle - 1);
	if (middle + line_sort_view(merge->sort, middle).nbytes + 1 == end)
		cut_before_line(merge, longest);
	else
		cut_runs(merge, line_sort_view(merge->sort, middle), longest);
}

/* Sort the lines of the window, or of a smaller one if memory is too small. */
static int sort_window(struct line_merge *merge)
{
	struct line_sort *sort = merge->sort;
	const unsigned char *text_end = merge->runs[0].region + merge->n_runs * merge->share_nbytes;

	for (;;) {
		uint64_t nbytes = 0, n_sorted;
		struct span span;
		size_t n = 0;
		int r;

		for (size_t i = 0; i < merge->n_runs; i++) {
			const struct line_range range = { merge->runs[i].begin, merge->cuts[i] };

			if (range.begin == range.end)
				continue;
			merge->ranges[n++] = range;
			nbytes += (uint64_t)(range.end - range.begin);
		}
		span = stats_begin(STAGE_MERGE, sort->summary.n_windows);
		r = line_block_sort(sort->block, merge->ranges, n, text_end, &n_sorted, NULL);
		merge->window_nbytes = nbytes;
		if (r < 0 || n_sorted == nbytes) {
			stats_end(sort->job.stats, span, nbytes);
			return r;
		}
		halve_window(merge);
	}
}

/* Check that the block does not begin before the end of the last window. */
static int check_border(struct line_merge *merge)
{
	const struct line_view first = line_block_first(merge->sort->block);

	if (!merge->has_last || !first.bytes ||
	    line_sort_compare(merge->sort, (struct line_view){ merge->last, merge->last_nbytes },
			      first) <= 0)
		return 0;
	return fail(-EIO, "internal error: lines are out of order");
}

/* Remember the last line of the block. */
static int keep_last(struct line_merge *merge)
{
	const struct line_view last = line_block_last(merge->sort->block);

	if (!last.bytes)
		return 0;
	if (!array_reserve(&merge->last, &merge->last_capacity, last.nbytes + 1, 1))
		return fail(-ENOMEM, "no memory for a line of %zu bytes", last.nbytes);
	memcpy(merge->last, last.bytes, last.nbytes);
	merge->last_nbytes = last.nbytes;
	merge->has_last = true;
	return 0;
}

/*
 * Return how many more lines the limit permits in the run, or in the output. With --count the limit
 * is one of groups of equal lines, which are found when the output is written.
 */
static uint64_t n_permitted_lines(const struct line_sort *sort,
				  const struct line_run_writer *writer)
{
	return writer && !sort->spec->count ? sort->n_lines_left - writer->n_lines :
					      sort->n_lines_left;
}

/* Merge the next window to the run, or to the output if there is none. */
static int merge_window(struct line_merge *merge, struct line_run_writer *writer)
{
	struct line_sort *sort = merge->sort;
	const struct span span = stats_begin(STAGE_CUT, sort->summary.n_windows);
	uint64_t nbytes;
	int r = find_window(merge);

	stats_end(sort->job.stats, span, 0);
	if (r == 0)
		r = sort_window(merge);
	if (r == 0)
		r = line_sort_reduce_block(
			sort,
			merge->has_last ? (struct line_view){ merge->last, merge->last_nbytes } :
					  (struct line_view){ 0 },
			!writer);
	if (r == 0 && writer && !sort->spec->count)
		line_block_truncate(sort->block, n_permitted_lines(sort, writer));
	if (r == 0)
		r = check_border(merge);
	if (r == 0 && sort->ranks && !writer)
		r = line_ranks_check_block(sort);
	if (r == 0)
		r = keep_last(merge);
	if (r == 0)
		r = writer ? line_run_write_block(sort, writer, &nbytes) :
			     line_output_write_block(sort, &nbytes);
	if (sort->is_measuring)
		nbytes = 0; /* nothing was written */
	if (r == 0)
		stats_skip(sort->job.stats,
			   writer || sort->is_measuring ? STAGE_SPILL : STAGE_WRITE,
			   nbytes < merge->window_nbytes ? merge->window_nbytes - nbytes : 0);
	sort->summary.n_windows++;
	for (size_t i = 0; i < merge->n_runs; i++)
		merge->runs[i].begin = merge->cuts[i];
	return r;
}

static bool has_lines(const struct line_merge *merge)
{
	for (size_t i = 0; i < merge->n_runs; i++)
		if (merge->runs[i].begin < merge->runs[i].end)
			return true;
	return false;
}

/*
 * Return the memory that a run needs in a merge: for a line that continues in it, and for the next
 * blocks.
 */
static size_t min_share_nbytes(const struct line_sort *sort)
{
	return sort->longest_nbytes + 4 * sort->job.plan.block_nbytes;
}

size_t line_merge_max_runs(const struct line_sort *sort)
{
	/* At least half of the memory stays for elements and keys. */
	uint64_t n = sort->memory_nbytes / 2 / min_share_nbytes(sort);

	if (sort->spec->batch_size && n > sort->spec->batch_size)
		n = sort->spec->batch_size;
	return n < 2 ? 2 : (size_t)n;
}

/* Merge the n runs from `first` on to another run, or to the output if there is none. */
static int merge_line_runs(struct line_sort *sort, size_t first, size_t n,
			   struct line_run_writer *writer)
{
	struct line_merge merge = { .sort = sort, .n_runs = n };
	unsigned char *text = line_block_text(sort->block);
	int r;

	if (n == 0)
		return 0;
	/* As in line_merge_max_runs(). The lines of a window can have larger keys than others. */
	merge.share_nbytes = sort->memory_nbytes / 2 / n;
	if (merge.share_nbytes < min_share_nbytes(sort))
		merge.share_nbytes = min_share_nbytes(sort);
	merge.runs = calloc(n, sizeof *merge.runs);
	merge.cuts = calloc(n, sizeof(unsigned char *));
	merge.ranges = calloc(n, sizeof *merge.ranges);
	merge.tasks = calloc(n * MAX_READ_TASKS_PER_RUN, sizeof *merge.tasks);
	r = merge.runs && merge.cuts && merge.ranges && merge.tasks ?
		    0 :
		    fail(-ENOMEM, "no memory to merge %zu runs", n);
	for (size_t i = 0; i < n && r == 0; i++, text += merge.share_nbytes)
		merge.runs[i] = (struct merged_run){ sort->runs.runs[first + i], .region = text,
						     .begin = text, .end = text };
	while (r == 0 && n_permitted_lines(sort, writer) > 0) {
		r = cancellation_check(sort->spec->cancellation);
		if (r == 0)
			r = fill_runs(&merge);
		if (r < 0 || !has_lines(&merge))
			break;
		r = merge_window(&merge, writer);
	}
	free(merge.runs);
	free(merge.cuts);
	free(merge.ranges);
	free(merge.tasks);
	free(merge.last);
	return r;
}

unsigned line_merge_count_passes(uint64_t n_runs, uint64_t n)
{
	unsigned n_passes = 0;

	for (; n_runs > n; n_passes++)
		n_runs = (n_runs + n - 1) / n;
	return n_passes;
}

/*
 * Return how many bytes these passes merge. All passes but the last one merge all runs; the last
 * one merges no more than necessary.
 */
static uint64_t count_pass_nbytes(uint64_t n_runs, uint64_t n, uint64_t nbytes)
{
	uint64_t sum = 0;

	for (; n_runs > n * n; n_runs = divide_up(n_runs, n))
		sum += nbytes;
	if (n_runs > n)
		sum += nbytes / n_runs * (n_runs - n + divide_up(n_runs - n, n - 1));
	return sum;
}

/* Return whether the runs are few enough for the final merge. */
static bool is_final(const struct line_sort *sort)
{
	/* The lines of a segment of a run were not counted. */
	if (line_output_needs_n_lines(sort) && sort->runs.n == 1)
		return sort->runs.runs[0]->level > 0;
	if (line_output_needs_single_run(sort))
		return sort->runs.n <= 1;
	return sort->runs.n <= line_merge_max_runs(sort);
}

/* Merge groups of at most n adjacent runs, until the final merge can have the rest. */
static int merge_pass(struct line_sort *sort, size_t n)
{
	const size_t n_left = line_output_needs_single_run(sort) ? 1 : n;
	int r = 0;

	for (size_t i = 0; i < sort->runs.n && r == 0 && !is_final(sort); i++) {
		const size_t n_excess = sort->runs.n > n_left ? sort->runs.n - n_left : 0;
		const size_t n_group = u64_min(u64_min(sort->runs.n - i, n), n_excess + 1);
		struct line_run_writer writer;

		r = line_run_open(sort, &writer);
		if (r < 0)
			break;
		r = merge_line_runs(sort, i, n_group, &writer);
		if (r == 0)
			r = line_run_finish(sort, &writer, i, n_group);
		else
			run_file_close(writer.file);
	}
	return r;
}

/* --- The output of several ranks --- */

/* Merge the runs without writing. Returns what the output would be. */
static int measure_output(struct line_sort *sort, uint64_t *ret_n_lines, uint64_t *ret_nbytes)
{
	const struct record_totals totals = sort->totals;
	const uint64_t n_lines_left = sort->n_lines_left, offset = sort->offset;
	int r;

	sort->is_measuring = true;
	r = merge_line_runs(sort, 0, sort->runs.n, NULL);
	if (r == 0)
		r = line_output_finish(sort);
	*ret_n_lines = sort->totals.written.n_records - totals.written.n_records;
	*ret_nbytes = sort->offset - offset;
	sort->is_measuring = false;
	sort->totals = totals;
	sort->n_lines_left = n_lines_left;
	sort->offset = offset;
	sort->pending.count = 0;
	return r;
}

/*
 * Find what this rank writes. A limit, part files and counts make it differ from its runs; then a
 * merge measures it.
 */
static int measure_partition(struct line_sort *sort, struct line_extent *ret_extent)
{
	const struct sort_spec *spec = sort->spec;
	const unsigned rank = comm_rank(spec->comm), n_ranks = comm_size(spec->comm);
	uint64_t nbytes = runs_n_items(sort->runs.runs, sort->runs.n), n_lines = 0, n_before = 0,
		 n_all = 0, *begin = NULL;
	bool is_cut = false;
	int r = 0;

	if (spec->count)
		r = measure_output(sort, &n_lines, &nbytes);
	else if (sort->runs.n > 0)
		n_lines = sort->runs.runs[0]->origin.totals.written.n_records;
	if (r == 0 && (spec->limit != UINT64_MAX || spec->n_part_files))
		r = distributed_number_items(spec->comm, n_lines, &begin);
	if (r == 0 && begin) {
		n_before = u64_min(begin[rank], spec->limit);
		n_all = u64_min(begin[n_ranks], spec->limit);
	}
	if (r == 0 && spec->limit != UINT64_MAX) {
		sort->n_lines_left = u64_min(n_lines, spec->limit - n_before);
		is_cut = sort->n_lines_left < n_lines;
	}
	if (r == 0 && spec->n_part_files)
		r = line_part_files_begin(sort, n_all, n_before);
	if (r == 0 && (is_cut || spec->n_part_files))
		r = measure_output(sort, &n_lines, &nbytes);
	free(begin);
	*ret_extent = spec->n_part_files ? line_part_files_extent(sort) :
					   (struct line_extent){ .nbytes = nbytes,
								 .first_nbytes = nbytes,
								 .last_nbytes = nbytes };
	return r;
}

int line_merge_all(struct line_sort *sort)
{
	const bool needs_single_run = line_output_needs_single_run(sort);
	const size_t max_runs = line_merge_max_runs(sort);
	const unsigned n_passes =
		line_merge_count_passes(sort->runs.n, max_runs) + needs_single_run;
	struct line_extent extent = { .nbytes = runs_n_items(sort->runs.runs, sort->runs.n) };
	uint64_t n_lines = sort->totals.read.n_records;
	int r = 0;

	stats_set_phase_total(sort->job.stats, PHASE_FINAL_MERGE, extent.nbytes);
	if (n_passes > 0)
		stats_begin_phase(sort->job.stats, PHASE_MERGE_PASSES,
				  needs_single_run ?
					  n_passes * extent.nbytes :
					  count_pass_nbytes(sort->runs.n, max_runs, extent.nbytes));
	while (!is_final(sort) && r == 0)
		r = merge_pass(sort, max_runs);
	if (r == 0 && needs_single_run && sort->runs.n > 0) {
		const struct record_totals *totals = &sort->runs.runs[0]->origin.totals;

		/* More than there are if a limit has cut the run. */
		n_lines = totals->read.n_records - totals->dropped.n_records;
	}
	extent.nbytes = runs_n_items(sort->runs.runs, sort->runs.n);
	if (r == 0 && sort->ranks)
		r = measure_partition(sort, &extent);
	stats_complete_phase(sort->job.stats);
	stats_begin_phase(sort->job.stats, PHASE_FINAL_MERGE, extent.nbytes);
	sort->summary.n_passes = n_passes + 1;
	sort->summary.n_windows = 0;
	if (r == 0)
		r = line_output_begin(sort, &extent, n_lines);
	if (r == 0)
		r = merge_line_runs(sort, 0, sort->runs.n, NULL);
	return r;
}
