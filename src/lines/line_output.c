/*
 * line_output.c - the output of a sort of lines (see line_sort_internal.h)
 */
#include "src/lines/line_sort_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/array.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/comm/comm.h"
#include "src/record/record_hash.h"

enum { MAX_WRITERS = 12 }; /* more are no faster */

static int write_to_output(void *context, uint64_t offset, const void *bytes, size_t nbytes)
{
	struct line_sort *sort = context;
	struct span span;
	int r;

	if (sort->is_measuring)
		return 0;
	span = stats_begin(STAGE_WRITE, 0);
	r = file_set_write(&sort->set, sort->parts ? line_part_files_current(sort) : 0,
			   sort->offset + offset, bytes, nbytes);
	stats_end(sort->job.stats, span, r == 0 ? nbytes : 0);
	return r;
}

static int write_header(struct line_sort *sort)
{
	const struct line_input *input = sort->input;

	return input->n_header == 0 ?
		       0 :
		       output_write_at(sort->output, 0, input->header, input->n_header);
}

/* Return the size of the output; OUTPUT_SIZE_UNKNOWN: it depends on the lines. */
static uint64_t expected_nbytes(const struct line_sort *sort)
{
	const struct sort_spec *spec = sort->spec;

	return sort->keys->unique || spec->limit != UINT64_MAX || spec->n_shards ||
			       spec->zstd_level ?
		       OUTPUT_SIZE_UNKNOWN :
		       sort->input->total_nbytes;
}

int line_output_check_space(struct line_sort *sort)
{
	const uint64_t nbytes = expected_nbytes(sort);

	if (nbytes == OUTPUT_SIZE_UNKNOWN || sort->set.is_joined)
		return 0; /* rank 0 does it */
	if (sort->parts)
		return output_check_space(sort->output, nbytes);
	sort->has_output_size = true;
	return output_set_expected_size(sort->output, nbytes);
}

/* Return how many threads write to parts of the output at once; 0: it is written in order. */
static uint32_t n_writers(const struct line_sort *sort)
{
	if (output_is_ordered(sort->output) || !sort->maps_output)
		return 0;
	return sort->n_threads < MAX_WRITERS ? sort->n_threads : MAX_WRITERS;
}

bool line_output_needs_single_run(const struct line_sort *sort)
{
	const struct sort_spec *spec = sort->spec;

	if (!spec->comm)
		return sort->keys->unique && spec->n_part_files;
	return sort->keys->unique || line_output_needs_n_lines(sort);
}

bool line_output_needs_n_lines(const struct line_sort *sort)
{
	const struct sort_spec *spec = sort->spec;

	/* With --count they are groups, which are counted later. */
	return spec->comm && !spec->count && (spec->limit != UINT64_MAX || spec->n_part_files);
}

int line_output_begin(struct line_sort *sort, const struct line_extent *extent, uint64_t n_lines)
{
	const struct sort_spec *spec = sort->spec;
	int r = 0;

	if (sort->ranks)
		return line_ranks_place_partition(sort, extent);
	if (sort->parts)
		return line_part_files_begin(sort, u64_min(n_lines, sort->n_lines_left), 0);
	if (spec->n_shards) {
		sort->n_lines_skipped = equal_share_begin(n_lines, spec->shard - 1, spec->n_shards);
		sort->n_lines_left = equal_share_begin(n_lines, spec->shard, spec->n_shards);
	}
	if (sort->spec->zstd_level)
		r = output_compress(sort->output, sort->spec->zstd_level, sort->n_compressors);
	else if (!sort->has_output_size && !sort->spec->count && !sort->spec->n_shards)
		r = output_set_expected_size(sort->output, sort->input->n_header + extent->nbytes);
	if (r < 0)
		return r;
	if (sort->maps_output)
		output_set_n_writers(sort->output, sort->n_threads);
	sort->offset = sort->input->n_header;
	return write_header(sort);
}

enum cache_policy line_output_cache_policy(const struct line_sort *sort)
{
	return expected_nbytes(sort) == OUTPUT_SIZE_UNKNOWN ?
		       CACHE_USE :
		       cache_policy_choose(&sort->job, sort->job.plan.input_nbytes);
}

void line_output_start_prefault(struct line_sort *sort)
{
	const uint32_t n = n_writers(sort);
	unsigned n_threads;

	/* If the size is not known, the output may be much smaller than the input. */
	if (!sort->has_output_size || n == 0)
		return;
	n_threads =
		output_n_prefault_threads(sort->output, sort->input->total_nbytes, sort->n_threads);
	if (n_threads == 0)
		return;
	output_set_n_writers(sort->output, n);
	output_start_prefault(&sort->output, 1, n, n_threads);
}

uint64_t line_sort_n_lines(const struct line_sort *sort)
{
	return sort->text ? device_text_result(sort->text)->lines.n :
			    line_block_n_lines(sort->block);
}

int line_sort_select(struct line_sort *sort, uint64_t first, uint64_t n)
{
	if (sort->text)
		return device_text_select(sort->text, first, n);
	line_block_select(sort->block, first, n);
	return 0;
}

int line_sort_measure_block(struct line_sort *sort, uint64_t *ret_nbytes)
{
	if (!sort->text)
		return line_block_measure(sort->block, ret_nbytes);
	*ret_nbytes = device_text_result(sort->text)->lines.output_nbytes;
	return 0;
}

int line_sort_write_block(struct line_sort *sort, const struct line_sink *sink,
			  uint64_t *ret_nbytes, struct digest *ret_digest)
{
	int r = line_sort_measure_block(sort, ret_nbytes);

	if (ret_digest)
		*ret_digest = (struct digest){ .n_records = line_sort_n_lines(sort) };
	if (r == 0 && !sort->is_measuring)
		r = sort->text ?
			    device_text_write(sort->text, sink, ret_digest) :
			    line_block_write(sort->block, sort->buffer_nbytes, sink, ret_digest);
	return r;
}

/* --- Counted lines --- */

/* Write the line that is pending, unless the limit is reached. */
static int write_pending(struct line_sort *sort)
{
	struct pending_line *pending = &sort->pending;
	char text[LINE_COUNT_NBYTES];
	size_t n;
	int r;

	if (pending->count == 0 || sort->n_lines_left == 0)
		return 0;
	n = line_count_format(pending->count, text);
	r = write_to_output(sort, 0, text, n);
	if (r == 0)
		r = write_to_output(sort, n, pending->bytes, pending->nbytes);
	sort->offset += n + pending->nbytes;
	sort->totals.written.n_records++;
	sort->totals.written.sum += hash_bytes(pending->bytes, pending->nbytes - 1);
	sort->n_lines_left--;
	pending->count = 0;
	return r;
}

static int set_pending(struct pending_line *pending, struct line_view line)
{
	const size_t nbytes = line.nbytes + 1;

	if (!array_reserve(&pending->bytes, &pending->capacity, nbytes, 1))
		return fail(-ENOMEM, "no memory for a line of %zu bytes", line.nbytes);
	memcpy(pending->bytes, line.bytes, nbytes);
	pending->nbytes = nbytes;
	return 0;
}

static bool is_pending(struct line_sort *sort, struct line_view line)
{
	const struct pending_line *pending = &sort->pending;

	return pending->count > 0 &&
	       line_sort_compare(sort, (struct line_view){ pending->bytes, pending->nbytes - 1 },
				 line) == 0;
}

/*
 * The next block may begin with lines that equal the last one of this block. So the last line is
 * held back, and the line that was held back before is written before this block.
 */
static int hold_last_back(struct line_sort *sort)
{
	struct line_view line = line_block_first(sort->block);
	int r = 0;

	if (line.bytes && is_pending(sort, line))
		sort->pending.count += line_block_drop_first(sort->block);
	digest_add(&sort->totals.dropped, line_block_dropped_digest(sort->block));
	line = line_block_last(sort->block);
	if (line.bytes) {
		r = write_pending(sort);
		if (r == 0)
			r = set_pending(&sort->pending, line);
		/* The digests of dropped lines were taken before: it is going to be written. */
		sort->pending.count = line_block_drop_last(sort->block);
	}
	line_block_truncate(sort->block, sort->n_lines_left);
	return r;
}

/* Omit lines before and after the shard. */
static int select_shard(struct line_sort *sort)
{
	const uint64_t n_lines = line_sort_n_lines(sort);
	const uint64_t end = n_lines < sort->n_lines_left ? n_lines : sort->n_lines_left;
	const uint64_t begin = sort->n_lines_skipped < end ? sort->n_lines_skipped : end;

	sort->n_lines_skipped -= begin;
	sort->n_lines_left -= begin;
	return line_sort_select(sort, begin, end - begin);
}

int line_output_finish(struct line_sort *sort)
{
	const int r = write_pending(sort);

	return r < 0 || !sort->ranks || sort->is_measuring ? r : line_ranks_finish(sort);
}

int line_output_write_block(struct line_sort *sort, uint64_t *ret_nbytes)
{
	uint64_t base; /* not used: 0 except for outputs that are appended to */
	const struct line_sink sink = { .write = write_to_output,
					.context = sort,
					.max_nbytes = SIZE_MAX,
					.begin = sort->offset,
					.align_nbytes =
						output_direct_alignment(sort->output, &base),
					.n_writers = n_writers(sort) };
	struct digest digest;
	int r = sort->spec->count ? hold_last_back(sort) : 0;

	if (r == 0 && sort->spec->n_shards)
		r = select_shard(sort);
	if (r == 0)
		r = sort->parts ? line_part_files_write_block(sort, &sink, ret_nbytes, &digest) :
				  line_sort_write_block(sort, &sink, ret_nbytes, &digest);
	if (r < 0)
		return r;
	digest_add(&sort->totals.written, digest);
	sort->offset += *ret_nbytes;
	sort->n_lines_left -= digest.n_records;
	return 0;
}

/* Return whether the output replaces an input. Then it is the only copy of the lines. */
static bool output_is_input(const struct line_sort *sort)
{
	struct file_id target;

	return output_target_file_id(sort->output, &target) &&
	       line_input_has_file(sort->input, target);
}

int line_output_open(struct line_sort *sort)
{
	const struct sort_spec *spec = sort->spec;
	int r = file_set_open(spec, sort->job.io, spec->zstd_level ? ".zst" : "",
			      OUTPUT_SIZE_UNKNOWN,
			      sort->checkpoint ? sort->checkpoint->checkpoint : NULL, &sort->set);

	if (r == 0 && spec->n_part_files)
		r = line_part_files_open(sort);
	if (r < 0)
		return r;
	sort->output = sort->set.outputs[0];
	sort->set.replaces_input = !sort->parts && output_is_input(sort);
	return sort->set.replaces_input ? output_refuse_input(sort->output) : 0;
}

/* Of several ranks, rank 0 commits the files when all have closed them. */
static int commit(struct line_sort *sort)
{
	const bool records_done = sort->checkpoint && !sort->ranks;
	int r = sort->checkpoint ? checkpoint_close_sync_thread(sort->checkpoint->checkpoint) : 0;

	if (r < 0)
		return r;
	file_set_add_io_stats(&sort->set, &sort->summary.written);
	if (sort->ranks)
		r = file_set_close_joined(&sort->set);
	if (r < 0)
		return r;
	if (!sort->set.is_joined)
		r = sort->parts ? line_part_files_complete(sort) :
				  file_set_complete(&sort->set, NULL);
	if (r == 0 && !sort->set.is_joined)
		r = file_set_commit(&sort->set, records_done ? sort->checkpoint->checkpoint : NULL);
	return sort->ranks ? line_ranks_end(sort, r) : r;
}

int line_output_close(struct line_sort *sort, int r)
{
	if (r == 0)
		r = commit(sort);
	file_set_abort(&sort->set);
	free(sort->parts);
	sort->parts = NULL;
	sort->output = NULL;
	return r;
}
