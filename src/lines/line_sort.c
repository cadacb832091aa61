/*
 * line_sort.c - sort lines of text that need not fit in memory (see line_sort.h)
 */
#include "src/lines/line_sort.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/file/mapping.h"
#include "io/output/output.h"
#include "io/spill/run_file.h"
#include "src/base/diagnostics.h"
#include "src/base/thread_pool.h"
#include "src/lines/line_block.h"
#include "src/lines/line_input.h"
#include "src/lines/line_scan.h"

enum {
	MIN_MEMORY_NBYTES = 4 << 20, /* a smaller limit is raised to this */
	MIN_BUFFER_NBYTES = 64 << 10,
	MAX_BUFFER_NBYTES = 1 << 20,
	BUFFERS_SHARE = 8, /* buffers of threads take at most an eighth of the memory, */
	FREE_BUFFERS_NBYTES = 12 << 20, /* or so much in addition to it */
	/* Mappings of the output; they are used if that is a small part of the memory. */
	MAX_MAPPINGS_NBYTES = MMAP_WRITER_MAX_SEGMENTS * MMAP_SEGMENT_NBYTES,
	MAPPINGS_SHARE = 8,
	MIN_BLOCK_NBYTES = 16 << 10,
	MAX_BLOCK_NBYTES = 256 << 10,
	BLOCKS_PER_MEMORY = 1024, /* the memory holds so many blocks of runs */
	SAMPLE_NBYTES = 256 << 10,
	READ_BLOCKS = 4, /* blocks read by one task */
	MAX_READ_TASKS_PER_RUN = 64,
};

/* A run, and the part of it that is in memory. */
struct line_run {
	struct run_file *file;
	uint64_t nbytes;
	uint64_t next_block, n_blocks;
	/* Of a merge: [begin, end) of the region is in memory and not written. */
	unsigned char *region, *begin, *end;
};

/* Blocks that a task reads. */
struct read_task {
	struct run_file *file;
	uint64_t first, n;
	unsigned char *to;
};

struct line_sort {
	const struct line_sort_params *params;
	const struct syscalls *calls;
	struct thread_pool *threads;
	struct line_input *input;
	struct line_block *block;
	struct output *output;
	size_t buffer_nbytes, block_nbytes, memory_nbytes;
	uint32_t n_threads;
	bool maps_output; /* threads may write to the output through mappings */

	struct spill *spill;
	struct compression *compression;
	struct line_run *runs; /* n_runs, in the order of the input */
	size_t n_runs;
	size_t longest_nbytes; /* of all lines, with the delimiter */

	struct line_key_buffer scratch[2];
	uint64_t n_lines_left; /* of the limit */
	uint64_t offset;       /* in the output */
	struct digest read, written, dropped;
};

/* --- Output --- */

static int write_to_output(void *context, uint64_t offset, const void *bytes, size_t nbytes)
{
	struct line_sort *sort = context;

	return output_write_at(sort->output, sort->offset + offset, bytes, nbytes);
}

static int write_header(struct line_sort *sort)
{
	size_t nbytes;
	const unsigned char *header = line_input_header(sort->input, &nbytes);

	return nbytes == 0 ? 0 : output_write_at(sort->output, 0, header, nbytes);
}

/* Open the output for at most nbytes of lines. */
static int open_output(struct line_sort *sort, uint64_t nbytes)
{
	size_t header_nbytes;
	int r = 0;

	line_input_header(sort->input, &header_nbytes);
	if (sort->params->zstd_level)
		r = output_compress(sort->output, sort->params->zstd_level, sort->n_threads);
	else
		r = output_set_expected_size(sort->output, header_nbytes + nbytes);
	if (r < 0)
		return r;
	if (sort->maps_output)
		output_set_n_writers(sort->output, sort->n_threads);
	sort->offset = header_nbytes;
	return write_header(sort);
}

static void add_digest(struct digest *sum, struct digest digest)
{
	sum->n_records += digest.n_records;
	sum->sum += digest.sum;
}

/* Drop equal lines of the sorted block and what is beyond the limit. */
static int reduce_block(struct line_sort *sort, struct line_view last)
{
	int r = sort->params->keys->unique ? line_block_drop_equal(sort->block, last) : 0;

	add_digest(&sort->dropped, line_block_dropped_digest(sort->block));
	line_block_truncate(sort->block, sort->n_lines_left);
	return r;
}

/* --- Runs --- */

/* Where the next lines of a run go. */
struct run_writer {
	struct run_file *file;
	uint64_t nbytes; /* written before this block */
};

static int write_to_run(void *context, uint64_t offset, const void *bytes, size_t nbytes)
{
	/* A run of bytes has no keys in its index. */
	static const encoded_key_t no_keys[MAX_BUFFER_NBYTES / MIN_BLOCK_NBYTES + 1];
	const struct run_writer *writer = context;

	return run_file_write(writer->file, writer->nbytes + offset, bytes, nbytes, no_keys);
}

static int open_spill(struct line_sort *sort)
{
	const struct line_sort_params *params = sort->params;
	int r;

	if (sort->spill)
		return 0;
	r = spill_open(sort->calls, params->temp_directories, params->n_temp_directories,
		       params->temp_limit_nbytes, 0, &sort->spill);
	if (r == 0)
		r = compression_open(&params->compression, false, &sort->compression);
	return r;
}

static int open_run(struct line_sort *sort, struct run_writer *ret_writer)
{
	int r = open_spill(sort);

	*ret_writer = (struct run_writer){ 0 };
	if (r == 0)
		r = run_file_open(sort->spill, sort->compression, 1, (uint32_t)sort->block_nbytes,
				  &ret_writer->file);
	return r;
}

/* Finish a run, which the sort then owns. */
static int finish_run(const struct run_writer *writer, struct line_run *ret_run)
{
	const int r = run_file_finish(writer->file);

	*ret_run = (struct line_run){ .file = writer->file,
				      .nbytes = writer->nbytes,
				      .n_blocks = run_file_n_blocks(writer->file) };
	return r;
}

/* Write the sorted block. *ret_nbytes and *ret_digest: of its lines. */
static int write_block(struct line_sort *sort, const struct line_sink *sink, uint64_t *ret_nbytes,
		       struct digest *ret_digest)
{
	const int r = line_block_measure(sort->block, ret_nbytes);

	return r < 0 ? r : line_block_write(sort->block, sort->buffer_nbytes, sink, ret_digest);
}

/* Write the sorted block to a run. */
static int write_block_to_run(struct line_sort *sort, struct run_writer *writer)
{
	const struct line_sink sink = { .write = write_to_run, .context = writer };
	struct digest digest;
	uint64_t nbytes;
	const int r = write_block(sort, &sink, &nbytes, &digest);

	writer->nbytes += nbytes;
	return r;
}

/* Write the sorted block to the output. */
static int write_block_to_output(struct line_sort *sort)
{
	const struct line_sink sink = { .write = write_to_output, .context = sort };
	struct digest digest;
	uint64_t nbytes;
	const int r = write_block(sort, &sink, &nbytes, &digest);

	if (r < 0)
		return r;
	add_digest(&sort->written, digest);
	sort->offset += nbytes;
	sort->n_lines_left -= line_block_n_lines(sort->block);
	return 0;
}

/* Store the sorted block as a new run. */
static int spill_block(struct line_sort *sort)
{
	struct line_run *grown = reallocarray(sort->runs, sort->n_runs + 1, sizeof *grown);
	struct run_writer writer;
	int r;

	if (!grown)
		return fail(-ENOMEM, "no memory for %zu runs", sort->n_runs + 1);
	sort->runs = grown;
	r = open_run(sort, &writer);
	if (r < 0)
		return r;
	r = write_block_to_run(sort, &writer);
	if (r == 0)
		r = finish_run(&writer, &grown[sort->n_runs]);
	if (r < 0) {
		run_file_close(writer.file);
		return r;
	}
	sort->n_runs++;
	return 0;
}

/* --- Chunks --- */

static int fail_long_line(const struct line_sort *sort, size_t nbytes)
{
	uint64_t number;
	const char *path = line_input_position(sort->input, &number);

	return fail(-E2BIG,
		    "%s: line %llu has more than %zu bytes, too many for the memory; use a larger "
		    "-S",
		    path, (unsigned long long)number, nbytes);
}

/* Return the end of the last whole line of a text; the text's beginning if there is none. */
static unsigned char *last_line_end(const struct line_sort *sort, unsigned char *begin,
				    const unsigned char *end)
{
	unsigned char *found =
		end > begin ? memrchr(begin, sort->params->keys->delimiter, (size_t)(end - begin)) :
			      NULL;

	return found ? found + 1 : begin;
}

/*
 * Read text to the block's memory, in which the first *n bytes are. Returns 0 and the end of the
 * last whole line. *ret_at_end: nothing is left to read.
 */
static int read_chunk(struct line_sort *sort, size_t *n, unsigned char **ret_end, bool *ret_at_end)
{
	unsigned char *text = line_block_text(sort->block);
	const size_t max_nbytes = sort->memory_nbytes / 4 * 3;
	const size_t max_line_nbytes = sort->memory_nbytes / 4;
	size_t target = *n + SAMPLE_NBYTES < max_nbytes ? *n + SAMPLE_NBYTES : max_nbytes;
	size_t n_read = 0;

	*ret_at_end = false;
	for (;;) {
		int r = 0;

		if (target > *n) {
			r = line_input_read(sort->input, text + *n, target - *n, &n_read);
			if (r < 0)
				return r;
			*ret_at_end = n_read < target - *n;
			*n += n_read;
		}
		*ret_end = last_line_end(sort, text, text + *n);
		if (*ret_at_end)
			return 0;
		if (*ret_end == text) { /* a long line: read on */
			if (*n > max_line_nbytes)
				return fail_long_line(sort, max_line_nbytes);
			target += target / 2;
			continue;
		}
		n_read = line_block_text_nbytes(sort->block, (struct line_range){ text, *ret_end });
		if (n_read > max_nbytes)
			n_read = max_nbytes;
		if (n_read <= target)
			return 0;
		target = n_read;
	}
}

/* Sort chunk after chunk. A single one is left in the block; others become runs. */
static int sort_chunks(struct line_sort *sort)
{
	unsigned char *text = line_block_text(sort->block), *end;
	bool is_at_end = false;
	size_t n = 0;

	while (!is_at_end || n > 0) {
		uint64_t n_sorted;
		int r = is_at_end ? 0 : read_chunk(sort, &n, &end, &is_at_end);

		if (is_at_end)
			end = text + n;
		if (r == 0)
			r = line_block_sort(sort->block, &(struct line_range){ text, end }, 1,
					    text + n, &n_sorted);
		if (r < 0 || (n == 0 && sort->n_runs > 0))
			return r;
		add_digest(&sort->read, line_block_digest(sort->block));
		if (line_block_longest(sort->block) > sort->longest_nbytes)
			sort->longest_nbytes = line_block_longest(sort->block);
		r = reduce_block(sort, (struct line_view){ 0 });
		if (r < 0 || (is_at_end && n_sorted == n && sort->n_runs == 0))
			return r;
		r = spill_block(sort);
		if (r < 0)
			return r;
		n -= n_sorted;
		memmove(text, text + n_sorted, n);
	}
	return 0;
}

/* --- Merging --- */

/* A merge of some runs. */
struct line_merge {
	struct line_sort *sort;
	struct line_run *runs; /* n_runs */
	size_t n_runs, share_nbytes;
	unsigned char **cuts;      /* n_runs: the end of each run's part of the window */
	struct line_range *ranges; /* scratch: n_runs */
	struct read_task *tasks;
	/* The line that was written last, for -u. */
	unsigned char *last;
	size_t last_nbytes, last_capacity;
	bool has_last;
};

static int read_blocks(void *context, uint32_t task)
{
	const struct read_task *read = (const struct read_task *)context + task;

	return run_file_read(read->file, read->first, read->n, read->to);
}

/* Plan to read the next blocks of a run after what is left of it. Returns the number of tasks. */
static size_t plan_reads(const struct line_merge *merge, struct line_run *run,
			 struct read_task *tasks)
{
	const struct run_block *blocks = run_file_blocks(run->file);
	const size_t share = merge->share_nbytes, n_left = (size_t)(run->end - run->begin);
	size_t n_tasks = 0;

	/* Otherwise a whole line is in memory, and little would be read. */
	if (run->next_block == run->n_blocks ||
	    (n_left > share / 2 && n_left >= merge->sort->longest_nbytes))
		return 0;
	memmove(run->region, run->begin, n_left);
	run->begin = run->region;
	run->end = run->region + n_left;
	while (run->next_block < run->n_blocks && n_tasks < MAX_READ_TASKS_PER_RUN) {
		struct read_task *task = &tasks[n_tasks];

		*task = (struct read_task){ .file = run->file,
					    .first = run->next_block,
					    .to = run->end };
		while (run->next_block < run->n_blocks && task->n < READ_BLOCKS &&
		       run->end + blocks[run->next_block].n_items <= run->region + share) {
			run->end += blocks[run->next_block++].n_items;
			task->n++;
		}
		if (task->n == 0)
			break;
		n_tasks++;
	}
	return n_tasks;
}

static int fill_runs(struct line_merge *merge)
{
	size_t n_tasks = 0;
	int r;

	for (size_t i = 0; i < merge->n_runs; i++)
		n_tasks += plan_reads(merge, &merge->runs[i], merge->tasks + n_tasks);
	if (n_tasks == 0)
		return 0;
	r = thread_pool_run(merge->sort->threads, read_blocks, merge->tasks, (uint32_t)n_tasks);
	for (size_t i = 0; i < n_tasks && r == 0; i++)
		run_file_discard(merge->tasks[i].file, merge->tasks[i].first, merge->tasks[i].n);
	return r;
}

static int compare_lines(struct line_sort *sort, struct line_view a, struct line_view b)
{
	return line_keys_compare(sort->params->keys, a, b, sort->scratch);
}

static struct line_view view_line(const struct line_sort *sort, const unsigned char *line)
{
	return (struct line_view){ line,
				   (size_t)(line_end(line, sort->params->keys->delimiter) - line) };
}

/* Return the beginning of the line that holds the byte, in a text that begins with a line. */
static unsigned char *line_begin(const struct line_sort *sort, unsigned char *begin,
				 const unsigned char *byte)
{
	return last_line_end(sort, begin, byte);
}

/*
 * Return the end of the lines of [begin, end) that do not come after the bound, a line of run
 * `bound_run`.
 */
static unsigned char *find_cut(struct line_sort *sort, size_t run, unsigned char *begin,
			       unsigned char *end, struct line_view bound, size_t bound_run)
{
	unsigned char *lo = begin, *hi = end; /* beginnings of lines, or the end */

	while (lo < hi) {
		unsigned char *middle = line_begin(sort, lo, lo + (hi - lo) / 2);
		const struct line_view line = view_line(sort, middle);
		const int order = compare_lines(sort, line, bound);

		/* Of equal lines, those of earlier runs come first. */
		if (order < 0 || (order == 0 && run <= bound_run))
			lo = middle + line.nbytes + 1;
		else
			hi = middle;
	}
	return lo;
}

/* Cut all runs after the bound, a line of run `bound_run`. */
static void cut_runs(struct line_merge *merge, struct line_view bound, size_t bound_run)
{
	for (size_t i = 0; i < merge->n_runs; i++)
		merge->cuts[i] = i == bound_run ? (unsigned char *)bound.bytes + bound.nbytes + 1 :
						  find_cut(merge->sort, i, merge->runs[i].begin,
							   merge->cuts[i], bound, bound_run);
}

/* Find the window: the first of the last lines in memory of runs that go on. */
static int find_window(struct line_merge *merge)
{
	struct line_sort *sort = merge->sort;
	struct line_view bound = { 0 };
	size_t bound_run = 0;

	for (size_t i = 0; i < merge->n_runs; i++) {
		const struct line_run *run = &merge->runs[i];
		struct line_view last;

		merge->cuts[i] = last_line_end(sort, run->begin, run->end);
		if (run->next_block == run->n_blocks)
			continue;
		if (merge->cuts[i] == run->begin)
			return fail(-E2BIG, "internal error: a line does not fit in a window");
		last = view_line(sort, line_begin(sort, run->begin, merge->cuts[i] - 1));
		if (!bound.bytes || compare_lines(sort, last, bound) < 0) {
			bound = last;
			bound_run = i;
		}
	}
	if (bound.bytes)
		cut_runs(merge, bound, bound_run);
	return 0;
}

/* Return the longest part of the window. */
static size_t longest_part(const struct line_merge *merge)
{
	size_t longest = 0;

	for (size_t i = 1; i < merge->n_runs; i++)
		if (merge->cuts[i] - merge->runs[i].begin >
		    merge->cuts[longest] - merge->runs[longest].begin)
			longest = i;
	return longest;
}

/* Leave only the first line of the window. Returns an error if it has no other. */
static int cut_to_first_line(struct line_merge *merge)
{
	struct line_view first = { 0 };
	size_t first_run = 0, n_parts = 0;

	for (size_t i = 0; i < merge->n_runs; i++) {
		struct line_view line;

		if (merge->runs[i].begin == merge->cuts[i])
			continue;
		n_parts++;
		line = view_line(merge->sort, merge->runs[i].begin);
		if (!first.bytes || compare_lines(merge->sort, line, first) < 0) {
			first = line;
			first_run = i;
		}
	}
	if (n_parts == 1)
		return fail(-E2BIG,
			    "a line of %zu bytes does not fit in memory with its key; use a larger "
			    "-S",
			    first.nbytes);
	cut_runs(merge, first, first_run);
	return 0;
}

/* Halve the longest part of the window, and cut the others where that one ends. */
static int halve_window(struct line_merge *merge)
{
	const size_t longest = longest_part(merge);
	unsigned char *begin = merge->runs[longest].begin, *end = merge->cuts[longest];
	unsigned char *middle = line_begin(merge->sort, begin, begin + (end - begin) / 2);

	if (middle > begin)
		middle = line_begin(merge->sort, begin, middle - 1);
	else if (middle + view_line(merge->sort, middle).nbytes + 1 == end)
		return cut_to_first_line(merge);
	cut_runs(merge, view_line(merge->sort, middle), longest);
	return 0;
}

/* Sort the lines of the window, or of a smaller one if memory is too small. */
static int sort_window(struct line_merge *merge)
{
	struct line_sort *sort = merge->sort;
	const unsigned char *text_end = merge->runs[0].region + merge->n_runs * merge->share_nbytes;

	for (;;) {
		uint64_t nbytes = 0, n_sorted;
		size_t n = 0;
		int r;

		for (size_t i = 0; i < merge->n_runs; i++) {
			const struct line_range range = { merge->runs[i].begin, merge->cuts[i] };

			if (range.begin == range.end)
				continue;
			merge->ranges[n++] = range;
			nbytes += (uint64_t)(range.end - range.begin);
		}
		r = line_block_sort(sort->block, merge->ranges, n, text_end, &n_sorted);
		if (r < 0 || n_sorted == nbytes)
			return r;
		r = halve_window(merge);
		if (r < 0)
			return r;
	}
}

/* Remember the last line of the block. */
static int keep_last(struct line_merge *merge)
{
	const struct line_view last = line_block_last(merge->sort->block);

	if (!last.bytes || !merge->sort->params->keys->unique)
		return 0;
	if (last.nbytes + 1 > merge->last_capacity) {
		unsigned char *grown = realloc(merge->last, 2 * last.nbytes + 64);

		if (!grown)
			return fail(-ENOMEM, "no memory for a line of %zu bytes", last.nbytes);
		merge->last = grown;
		merge->last_capacity = 2 * last.nbytes + 64;
	}
	memcpy(merge->last, last.bytes, last.nbytes);
	merge->last_nbytes = last.nbytes;
	merge->has_last = true;
	return 0;
}

/* Merge the next window to the run, or to the output if there is none. */
static int merge_window(struct line_merge *merge, struct run_writer *writer)
{
	struct line_sort *sort = merge->sort;
	int r = find_window(merge);

	if (r == 0)
		r = sort_window(merge);
	if (r == 0)
		r = reduce_block(sort, merge->has_last ? (struct line_view){ merge->last,
									     merge->last_nbytes } :
							 (struct line_view){ 0 });
	if (r == 0)
		r = keep_last(merge);
	if (r == 0)
		r = writer ? write_block_to_run(sort, writer) : write_block_to_output(sort);
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

/* The memory of a run in a merge: a line that goes on in it, and some blocks to follow. */
static size_t min_share_nbytes(const struct line_sort *sort)
{
	return sort->longest_nbytes + 4 * sort->block_nbytes;
}

/* Return how many runs can be merged at once. */
static size_t max_runs(const struct line_sort *sort)
{
	/* At least half of the memory stays for elements and keys. */
	uint64_t n = sort->memory_nbytes / 2 / min_share_nbytes(sort);

	if (sort->params->max_runs && n > sort->params->max_runs)
		n = sort->params->max_runs;
	return n < 2 ? 2 : (size_t)n;
}

/* Merge n runs to another run, or to the output if there is none. */
static int merge_runs(struct line_sort *sort, struct line_run *runs, size_t n,
		      struct run_writer *writer)
{
	struct line_merge merge = { .sort = sort, .runs = runs, .n_runs = n };
	unsigned char *text = line_block_text(sort->block);
	int r;

	/* As in max_runs(): the lines of a window can have larger keys than those before. */
	merge.share_nbytes = sort->memory_nbytes / 2 / n;
	if (merge.share_nbytes < min_share_nbytes(sort))
		merge.share_nbytes = min_share_nbytes(sort);
	merge.cuts = calloc(n, sizeof(unsigned char *));
	merge.ranges = calloc(n, sizeof *merge.ranges);
	merge.tasks = calloc(n * MAX_READ_TASKS_PER_RUN, sizeof *merge.tasks);
	r = merge.cuts && merge.ranges && merge.tasks ?
		    0 :
		    fail(-ENOMEM, "no memory to merge %zu runs", n);
	for (size_t i = 0; i < n; i++)
		runs[i].region = runs[i].begin = runs[i].end = text + i * merge.share_nbytes;
	while (r == 0 && sort->n_lines_left > 0) {
		r = fill_runs(&merge);
		if (r < 0 || !has_lines(&merge))
			break;
		r = merge_window(&merge, writer);
	}
	free(merge.cuts);
	free(merge.ranges);
	free(merge.tasks);
	free(merge.last);
	return r;
}

/* Merge groups of adjacent runs, until n of them are left at most. */
static int merge_pass(struct line_sort *sort, size_t n)
{
	size_t n_merged = 0;
	int r = 0;

	for (size_t begin = 0; begin < sort->n_runs && r == 0; begin += n) {
		const size_t rest = sort->n_runs - begin;
		const size_t n_group = rest < n ? rest : n;
		struct run_writer writer;
		struct line_run merged = { 0 };

		r = open_run(sort, &writer);
		if (r < 0)
			break;
		r = merge_runs(sort, sort->runs + begin, n_group, &writer);
		if (r == 0)
			r = finish_run(&writer, &merged);
		if (r < 0) {
			run_file_close(writer.file);
			break;
		}
		for (size_t i = 0; i < n_group; i++) {
			run_file_close(sort->runs[begin + i].file);
			sort->runs[begin + i].file = NULL;
		}
		sort->runs[n_merged++] = merged;
	}
	if (r == 0)
		sort->n_runs = n_merged;
	return r;
}

static int merge_all(struct line_sort *sort)
{
	uint64_t nbytes = 0;
	int r = 0;

	while (sort->n_runs > max_runs(sort) && r == 0)
		r = merge_pass(sort, max_runs(sort));
	for (size_t i = 0; i < sort->n_runs; i++)
		nbytes += sort->runs[i].nbytes;
	if (r == 0)
		r = open_output(sort, nbytes);
	return r < 0 ? r : merge_runs(sort, sort->runs, sort->n_runs, NULL);
}

/* --- A whole sort --- */

/* Has everything that was read been written, or dropped on purpose? */
static int check_digests(const struct line_sort *sort)
{
	if (sort->params->limit != UINT64_MAX ||
	    (sort->read.n_records == sort->written.n_records + sort->dropped.n_records &&
	     sort->read.sum == sort->written.sum + sort->dropped.sum))
		return 0;
	return fail(-EIO, "internal error: the output does not hold the lines of the input");
}

static int sort_to_output(struct line_sort *sort)
{
	uint64_t nbytes = 0;
	int r = sort_chunks(sort);

	if (r == 0 && sort->n_runs > 0) {
		r = merge_all(sort);
	} else if (r == 0) {
		r = line_block_measure(sort->block, &nbytes);
		if (r == 0)
			r = open_output(sort, nbytes);
		if (r == 0)
			r = write_block_to_output(sort);
	}
	if (r == 0 && (sort->scratch[0].has_failed || sort->scratch[1].has_failed))
		r = fail(-ENOMEM, "no memory for the key of a line");
	return r < 0 ? r : check_digests(sort);
}

/* Does the output replace an input? Then it is the only copy of the lines. */
static bool output_is_input(const struct line_sort *sort)
{
	struct file_id target;

	if (!output_target_file_id(sort->output, &target))
		return false;
	for (size_t i = 0; i < sort->params->n_inputs; i++) {
		const char *path = sort->params->inputs[i];
		struct stat status;

		if ((strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &status) : stat(path, &status)) ==
			    0 &&
		    file_id_equal(file_id_from_stat(&status), target))
			return true;
	}
	return false;
}

static int write_output(struct line_sort *sort)
{
	int r = output_open(sort->calls, sort->params->output, OUTPUT_SIZE_UNKNOWN, &sort->output);

	if (r < 0)
		return r;
	r = sort_to_output(sort);
	if (r == 0)
		return output_commit(sort->output,
				     output_is_input(sort) ? OUTPUT_SYNC_DATA : OUTPUT_UNSYNCED);
	output_abort(sort->output);
	return r;
}

static size_t clamp(size_t n, size_t min, size_t max)
{
	return n < min ? min : n > max ? max : n;
}

/* Divide the memory between the block and the buffers of the threads; use fewer if it is small. */
static void plan_memory(struct line_sort *sort)
{
	const struct line_sort_params *params = sort->params;
	const size_t memory = params->memory_nbytes > MIN_MEMORY_NBYTES ?
				      (size_t)params->memory_nbytes :
				      MIN_MEMORY_NBYTES;
	size_t thread_nbytes;

	sort->block_nbytes = clamp(memory / BLOCKS_PER_MEMORY, MIN_BLOCK_NBYTES, MAX_BLOCK_NBYTES);
	sort->buffer_nbytes = clamp(memory / BUFFERS_SHARE / 2 / params->n_threads,
				    MIN_BUFFER_NBYTES, MAX_BUFFER_NBYTES);
	thread_nbytes = sort->buffer_nbytes +
			run_file_thread_nbytes(&params->compression, false, sort->block_nbytes);
	sort->n_threads =
		(uint32_t)clamp((memory / BUFFERS_SHARE + FREE_BUFFERS_NBYTES) / thread_nbytes, 1,
				params->n_threads);
	sort->memory_nbytes = memory - memory / BUFFERS_SHARE;
	if (sort->n_threads * thread_nbytes < memory / BUFFERS_SHARE)
		sort->memory_nbytes = memory - sort->n_threads * thread_nbytes;
	sort->maps_output = sort->n_threads > 1 && memory > MAPPINGS_SHARE * MAX_MAPPINGS_NBYTES;
	if (sort->maps_output)
		sort->memory_nbytes -= MAX_MAPPINGS_NBYTES;
}

/* The memory that is enough for inputs of known size. */
static size_t enough_memory(const struct line_sort *sort)
{
	const uint64_t total_nbytes = line_input_total_nbytes(sort->input);
	/* A line of one byte needs an element; its key has some more. */
	const uint64_t per_byte = line_keys_are_plain(sort->params->keys) ? 40 : 100;

	if (total_nbytes >= sort->memory_nbytes / per_byte)
		return sort->memory_nbytes;
	return clamp((size_t)(total_nbytes * per_byte), MIN_MEMORY_NBYTES, sort->memory_nbytes);
}

static int open_sort(const struct syscalls *calls, const struct line_sort_params *params,
		     struct line_sort *ret_sort)
{
	struct line_sort *sort = ret_sort;
	struct line_input_params input = { .calls = calls,
					   .paths = params->inputs,
					   .n_paths = params->n_inputs,
					   .delimiter = params->keys->delimiter,
					   .n_header_lines = params->n_header_lines,
					   .memory_nbytes = params->memory_nbytes };
	int r;

	*sort = (struct line_sort){ .params = params,
				    .calls = calls,
				    .n_lines_left = params->limit };
	plan_memory(sort);
	if (thread_pool_open(sort->n_threads, &sort->threads) < 0)
		return fail(-ENOMEM, "no memory for a sort of lines");
	input.threads = sort->threads;
	r = line_input_open(&input, &sort->input);
	if (r < 0)
		return r;
	sort->memory_nbytes = enough_memory(sort);
	return line_block_open(&(struct line_block_params){ .keys = params->keys,
							    .threads = sort->threads,
							    .n_threads = sort->n_threads,
							    .memory_nbytes = sort->memory_nbytes },
			       &sort->block);
}

static void close_sort(struct line_sort *sort)
{
	for (size_t i = 0; i < sort->n_runs; i++)
		run_file_close(sort->runs[i].file);
	free(sort->runs);
	compression_close(sort->compression);
	spill_close(sort->spill);
	line_block_close(sort->block);
	line_input_close(sort->input);
	thread_pool_close(sort->threads);
	line_key_buffer_free(&sort->scratch[0]);
	line_key_buffer_free(&sort->scratch[1]);
}

int line_sort_run(const struct syscalls *calls, const struct line_sort_params *params)
{
	struct line_sort sort;
	int r = open_sort(calls, params, &sort);

	if (r == 0)
		r = write_output(&sort);
	close_sort(&sort);
	return r;
}

/* --- Checking the order --- */

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

/* Compare the lines of a chunk. *number: of the first one. Returns the last line. */
static int check_chunk(struct line_sort *sort, const unsigned char *end, uint64_t *number,
		       unsigned char **ret_last, struct line_disorder *ret_disorder)
{
	unsigned char *line = line_block_text(sort->block);
	struct line_view last = view_line(sort, line);

	while (last.bytes + last.nbytes + 1 < end) {
		const struct line_view next = view_line(sort, last.bytes + last.nbytes + 1);
		const int order = compare_lines(sort, last, next);

		(*number)++;
		if (order > 0 || (order == 0 && sort->params->keys->unique))
			return report_disorder(*number, next, ret_disorder);
		last = next;
	}
	*ret_last = (unsigned char *)last.bytes;
	return 0;
}

static int check_order(struct line_sort *sort, struct line_disorder *ret_disorder)
{
	unsigned char *text = line_block_text(sort->block), *end, *last = text;
	uint64_t number = sort->params->n_header_lines + 1;
	bool is_at_end = false;
	size_t n = 0;
	int r = 0;

	while (!is_at_end && r == 0) {
		r = read_chunk(sort, &n, &end, &is_at_end);
		if (r < 0 || n == 0)
			return r;
		r = check_chunk(sort, end, &number, &last, ret_disorder);
		if (r < 0 || ret_disorder->number)
			return r;
		/* The next chunk begins with the last line of this one. */
		n -= (size_t)(last - text);
		memmove(text, last, n);
	}
	return r;
}

int line_sort_check(const struct syscalls *calls, const struct line_sort_params *params,
		    struct line_disorder *ret_disorder)
{
	struct line_sort sort;
	int r = open_sort(calls, params, &sort);

	*ret_disorder = (struct line_disorder){ 0 };
	if (r == 0)
		r = check_order(&sort, ret_disorder);
	if (r == 0 && (sort.scratch[0].has_failed || sort.scratch[1].has_failed))
		r = fail(-ENOMEM, "no memory for the key of a line");
	close_sort(&sort);
	return r;
}
