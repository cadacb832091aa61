/*
 * line_output.c - the output of a sort of lines (see line_sort_internal.h)
 *
 * Part file K of P, from 0, begins at line n * K / P of n lines. So the number of lines must be
 * known before the first one is written. The files are written one after the other.
 *
 * The lines of a rank, its partition, follow those of the rank before it. With part files they are
 * in several files, of which other ranks write the beginning of the first and the end of the last:
 *
 *	part files   |     0     |     1     |     2     |     3     |
 *	partitions   0000000000000001111111111111111111111111222222222
 *
 * Each stripe of a file is written by one rank (file_set.h).
 *
 * Rank 0 creates the files, completes them when all ranks have written, and commits them. If they
 * are compressed, it makes the frames of the header and of empty files.
 */
#include "src/lines/line_sort.h"
#include "src/lines/line_sort_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/input/part_manifest.h"
#include "io/output/part_files.h"
#include "src/base/array.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/comm/comm.h"
#include "src/record/record_hash.h"
#include "src/sort/distributed_sort.h"

enum { MAX_WRITERS = 12 }; /* more are no faster */

struct line_part {
	uint64_t end_line;   /* of all lines */
	uint64_t offset;     /* where its next line is written */
	uint64_t begin, end; /* several ranks: where the lines of this one are */
	struct digest digest;
};

struct line_part_files {
	uint32_t current, first;  /* files of this process */
	uint64_t n_before;        /* lines of lower ranks */
	uint64_t n_written;       /* lines, with these */
	struct line_part parts[]; /* of each file */
};

/* What ranks tell each other; the header is that of rank 0. */
struct rank_share {
	struct line_extent extent;
	uint64_t header_nbytes;
};

/* --- The sorted lines --- */

uint64_t line_sort_n_lines(const struct line_sort *sort)
{
	return sort->text ? device_text_result(sort->text)->lines.n :
			    line_block_n_lines(sort->block);
}

/* As line_block_select(). Returns 0 or a negative errno after a message. */
static int select_lines(struct line_sort *sort, uint64_t first, uint64_t n)
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

/* --- Part files --- */

/* Refuse to replace a directory that holds an input. */
static int check_old_files(const struct line_sort *sort)
{
	struct file_id old_file;

	for (size_t i = 0; part_files_old_file_id(sort->set.part_files, i, &old_file); i++)
		if (line_input_has_file(sort->input, old_file))
			return fail(-EINVAL,
				    "-o '%s' has an input as a part file; use another name for "
				    "the output",
				    sort->spec->output_path);
	return 0;
}

/* Open sort.parts, the part files of the set; to be freed, also after an error. */
static int open_parts(struct line_sort *sort)
{
	const uint32_t n = sort->set.n;
	int r;

	sort->parts = calloc(1, sizeof *sort->parts + n * sizeof *sort->parts->parts);
	if (!sort->parts)
		return fail(-ENOMEM, "no memory for %u part files", n);
	r = check_old_files(sort);
	for (uint32_t i = 0; i < n && r == 0 && sort->set.is_joined; i++)
		r = file_set_join_part(&sort->set, i);
	return r;
}

/* Begin to write the current part. */
static int begin_part(struct line_sort *sort)
{
	struct line_part_files *parts = sort->parts;

	sort->output = sort->set.outputs[parts->current];
	if (sort->spec->zstd_level && !sort->ranks)
		return output_compress(sort->output, sort->spec->zstd_level, sort->n_compressors);
	if (sort->maps_output)
		output_set_n_writers(sort->output, sort->n_threads);
	return 0;
}

int line_part_files_begin(struct line_sort *sort, uint64_t n_lines, uint64_t n_before)
{
	struct line_part_files *parts = sort->parts;

	for (uint32_t i = 0; i < sort->set.n; i++)
		parts->parts[i].end_line = equal_share_begin(n_lines, i + 1, sort->set.n);
	while (parts->first + 1 < sort->set.n && parts->parts[parts->first].end_line <= n_before &&
	       n_before > 0)
		parts->first++;
	parts->current = parts->first;
	parts->n_before = parts->n_written = n_before;
	return begin_part(sort);
}

struct line_extent line_part_files_extent(const struct line_sort *sort)
{
	const struct line_part_files *parts = sort->parts;
	struct line_extent extent = { 0 };

	for (uint32_t i = 0; i < sort->set.n; i++) {
		const uint64_t nbytes = parts->parts[i].offset;

		if (nbytes == 0)
			continue;
		if (extent.nbytes == 0) {
			extent.first = i;
			extent.first_nbytes = nbytes;
		}
		extent.last = i;
		extent.last_nbytes = nbytes;
		extent.nbytes += nbytes;
	}
	return extent;
}

/* Ranks: place the lines of the first file, which were measured, at an offset. Begin again. */
static int place_parts(struct line_sort *sort, uint64_t offset)
{
	struct line_part_files *parts = sort->parts;
	const struct line_extent extent = line_part_files_extent(sort);

	for (uint32_t i = 0; i < sort->set.n; i++) {
		struct line_part *part = &parts->parts[i];

		part->begin = extent.nbytes > 0 && i == extent.first ? offset : 0;
		part->end = part->begin + part->offset;
		part->offset = part->begin;
		part->digest = (struct digest){ 0 };
	}
	parts->current = parts->first;
	parts->n_written = parts->n_before;
	return begin_part(sort);
}

/*
 * The current part has all lines of this process. Finish it, to free the memory of its compressors,
 * and begin the next one if there is any.
 */
static int end_part(struct line_sort *sort)
{
	struct line_part_files *parts = sort->parts;
	struct stat status;
	const int r = sort->ranks ? file_set_end_frames(&sort->set, parts->current, true) :
				    output_finalize(sort->set.outputs[parts->current], &status);

	if (r < 0)
		return r;
	parts->current++;
	return parts->current < sort->set.n ? begin_part(sort) : 0;
}

/* As line_sort_write_block(). */
static int write_parts(struct line_sort *sort, const struct line_sink *sink, uint64_t *ret_nbytes,
		       struct digest *ret_digest)
{
	struct line_part_files *parts = sort->parts;
	struct line_sink part_sink = *sink;
	const uint64_t n_lines = line_sort_n_lines(sort);
	uint64_t begin = 0;
	int r = 0;

	*ret_nbytes = 0;
	*ret_digest = (struct digest){ 0 };
	while (begin < n_lines && r == 0) {
		struct line_part *part = &parts->parts[parts->current];
		const uint64_t n_left = part->end_line - parts->n_written;
		const uint64_t n = n_left < n_lines - begin ? n_left : n_lines - begin;
		struct digest digest = { 0 };
		uint64_t nbytes = 0;

		sort->offset = part_sink.begin = part->offset;
		r = select_lines(sort, begin, n);
		if (r == 0 && n > 0)
			r = line_sort_write_block(sort, &part_sink, &nbytes, &digest);
		part->offset += nbytes;
		digest_add(&part->digest, digest);
		digest_add(ret_digest, digest);
		*ret_nbytes += nbytes;
		parts->n_written += n;
		begin += n;
		if (r == 0 && n == n_left)
			r = end_part(sort);
	}
	return r;
}

/*
 * Ranks, collective: check what this rank has written, add up the lines of all ranks, and note what
 * others have written to the files. ret_nbytes: of each file.
 */
static int finish_parts(struct line_sort *sort, uint64_t *ret_nbytes)
{
	struct line_part_files *parts = sort->parts;
	struct file_sum {
		uint64_t n_lines, sum, nbytes;
	} * sums;
	int r;

	for (uint32_t i = 0; i < sort->set.n; i++)
		if (parts->parts[i].offset != parts->parts[i].end)
			return fail(-EIO,
				    "internal error: the lines of this rank in part file %" PRIu32
				    " end at %" PRIu64 ", not at %" PRIu64,
				    i, parts->parts[i].offset, parts->parts[i].end);
	sums = calloc(sort->set.n, sizeof *sums);
	if (!sums)
		return fail(-ENOMEM, "no memory for %u part files", sort->set.n);
	for (uint32_t i = 0; i < sort->set.n; i++) {
		const struct line_part *part = &parts->parts[i];

		sums[i] = (struct file_sum){ part->digest.n_records, part->digest.sum,
					     part->end - part->begin };
	}
	r = comm_allreduce_sum(sort->spec->comm, &sums->n_lines, 3 * (size_t)sort->set.n);
	for (uint32_t i = 0; i < sort->set.n && r == 0; i++) {
		struct line_part *part = &parts->parts[i];
		part->digest = (struct digest){ sums[i].n_lines, sums[i].sum };
		ret_nbytes[i] = sums[i].nbytes;
		file_set_record_remote_writes(&sort->set, i, part->end - part->begin,
					      sums[i].nbytes);
	}
	free(sums);
	return r;
}

/* Complete the files, and write the manifest. */
static int complete_parts(struct line_sort *sort)
{
	struct line_part_files *parts = sort->parts;
	const uint32_t n = sort->set.n;
	struct part_manifest manifest = { .content = PART_CONTENT_LINES,
					  .is_zstd = sort->spec->zstd_level > 0,
					  .unique = sort->keys->unique,
					  .order = line_keys_format(sort->keys),
					  .parts = calloc(n, sizeof *manifest.parts),
					  .n_parts = n };
	int r = 0;

	if (!manifest.order || !manifest.parts) {
		manifest.n_parts = 0;
		r = fail(-ENOMEM, "no memory for a part manifest");
	}
	while (parts->current < n && r == 0 && !sort->ranks) /* without lines */
		r = end_part(sort);
	for (size_t i = 0; i < manifest.n_parts; i++) {
		const struct digest digest = parts->parts[i].digest;

		manifest.parts[i].n_records = digest.n_records;
		manifest.parts[i].checksum = digest.sum;
		manifest.n_records += digest.n_records;
	}
	if (r == 0)
		r = file_set_complete(&sort->set, &manifest);
	part_manifest_free(&manifest);
	return r;
}

/* --- Several ranks --- */

/* Return the bytes of a rank in the first or the last file that it shares with others. */
static uint64_t shared_nbytes(const struct rank_share *share, uint32_t file)
{
	const struct line_extent *extent = &share->extent;

	if (extent->nbytes == 0)
		return 0;
	if (file == extent->first)
		return extent->first_nbytes;
	return file == extent->last ? extent->last_nbytes : 0;
}

/* Return where the lines of a rank begin in the first of its files, or in another one. */
static uint64_t begin_offset(const struct rank_share *shares, unsigned rank, uint32_t file)
{
	uint64_t offset = shares[0].header_nbytes;

	for (unsigned i = 0; i < rank; i++)
		offset += shared_nbytes(&shares[i], file);
	return offset;
}

/* Return where the lines of a rank begin; if there are none, where the next ones do. */
static struct file_position locate_rank(const void *context, unsigned rank)
{
	const struct line_sort *sort = context;
	const struct rank_share *shares = sort->rank_shares;

	for (; rank < comm_size(sort->spec->comm); rank++) {
		const uint64_t first = shares[rank].extent.first;

		if (shares[rank].extent.nbytes > 0)
			return (struct file_position){ first, begin_offset(shares, rank,
									   (uint32_t)first) };
	}
	return (struct file_position){ UINT64_MAX, 0 };
}

/* Return where the lines of all ranks end in the single file. */
static uint64_t output_end(const struct line_sort *sort)
{
	return begin_offset(sort->rank_shares, comm_size(sort->spec->comm), 0);
}

static int begin_file(struct line_sort *sort)
{
	const struct line_input *input = sort->input;
	const bool is_first = comm_rank(sort->spec->comm) == 0;
	int r = 0;

	if (!sort->spec->zstd_level && !is_first)
		return output_check_limit(sort->output, output_end(sort));
	if (!sort->spec->zstd_level && !sort->has_output_size)
		r = output_set_expected_size(sort->output, output_end(sort));
	if (r < 0 || !is_first || input->n_header == 0)
		return r;
	return file_set_write(&sort->set, 0, 0, input->header, input->n_header);
}

/* Collective: find the place of the partition in the output. Rank 0 writes the header. */
static int place_partition(struct line_sort *sort, const struct line_extent *extent)
{
	struct comm *comm = sort->spec->comm;
	const unsigned rank = comm_rank(comm);
	const struct rank_share own = { .extent = *extent, .header_nbytes = sort->input->n_header };
	struct rank_share *shares = calloc(comm_size(comm), sizeof *shares);
	int r;

	sort->rank_shares = shares;
	if (!shares)
		return fail(-ENOMEM, "no memory for %u ranks", comm_size(comm));
	r = comm_allgather(comm, &own, sizeof own, shares);
	if (r == 0)
		r = file_set_agree_stripe(&sort->set);
	if (r == 0 && sort->spec->zstd_level)
		r = file_set_compress(&sort->set, sort->n_compressors, sort->job.spill);
	if (r == 0)
		r = file_set_place_ranks(&sort->set, shares[0].header_nbytes, locate_rank, sort);
	if (r < 0)
		return r;
	sort->offset = begin_offset(shares, rank, (uint32_t)shares[rank].extent.first);
	return sort->parts ? place_parts(sort, sort->offset) : begin_file(sort);
}

/* Check that the single file has all bytes of this rank. *ret_nbytes: of all ranks. */
static int finish_file(struct line_sort *sort, uint64_t *ret_nbytes)
{
	const uint64_t end = begin_offset(sort->rank_shares, comm_rank(sort->spec->comm) + 1, 0);

	if (sort->offset != end)
		return fail(-EIO,
			    "internal error: the partition of this rank ends at %" PRIu64
			    ", not at %" PRIu64,
			    sort->offset, end);
	*ret_nbytes = output_end(sort);
	file_set_record_remote_writes(&sort->set, 0, end, *ret_nbytes);
	return 0;
}

int line_output_finish_ranks(struct line_sort *sort)
{
	struct file_set *files = &sort->set;
	uint64_t *nbytes = calloc(files->n, sizeof *nbytes);
	int r = nbytes ? file_set_exchange(files) :
			 fail(-ENOMEM, "no memory for the sizes of %u files", files->n);

	if (r == 0)
		r = sort->parts ? finish_parts(sort, nbytes) : finish_file(sort, nbytes);
	if (r == 0 && sort->spec->zstd_level)
		r = file_set_write_frames(files, nbytes);
	free(nbytes);
	return r;
}

/* --- Opening --- */

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
	const struct line_input *input = sort->input;
	int r = 0;

	if (sort->ranks)
		return place_partition(sort, extent);
	if (sort->parts)
		return line_part_files_begin(sort, u64_min(n_lines, sort->n_lines_left), 0);
	if (spec->n_shards) {
		sort->n_lines_skipped = equal_share_begin(n_lines, spec->shard - 1, spec->n_shards);
		sort->n_lines_left = equal_share_begin(n_lines, spec->shard, spec->n_shards);
	}
	if (spec->zstd_level)
		r = output_compress(sort->output, spec->zstd_level, sort->n_compressors);
	else if (!sort->has_output_size && !spec->count && !spec->n_shards)
		r = output_set_expected_size(sort->output, input->n_header + extent->nbytes);
	if (r < 0)
		return r;
	if (sort->maps_output)
		output_set_n_writers(sort->output, sort->n_threads);
	sort->offset = input->n_header;
	return input->n_header == 0 ?
		       0 :
		       output_write_at(sort->output, 0, input->header, input->n_header);
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

int line_output_open(struct line_sort *sort)
{
	const struct sort_spec *spec = sort->spec;
	struct file_id target;
	int r = file_set_open(spec, sort->job.io, spec->zstd_level ? ".zst" : "",
			      OUTPUT_SIZE_UNKNOWN,
			      sort->checkpoint ? sort->checkpoint->checkpoint : NULL, &sort->set);

	if (r == 0 && spec->n_part_files)
		r = open_parts(sort);
	if (r < 0)
		return r;
	sort->output = sort->set.outputs[0];
	/* Then the output is the only copy of the lines. */
	sort->set.replaces_input = !sort->parts && output_target_file_id(sort->output, &target) &&
				   line_input_has_file(sort->input, target);
	return sort->set.replaces_input ? output_refuse_input(sort->output) : 0;
}

/* --- Counted lines --- */

static int write_to_output(void *context, uint64_t offset, const void *bytes, size_t nbytes)
{
	struct line_sort *sort = context;
	struct span span;
	int r;

	if (sort->is_measuring)
		return 0;
	span = stats_begin(STAGE_WRITE, 0);
	r = file_set_write(&sort->set, sort->parts ? sort->parts->current : 0,
			   sort->offset + offset, bytes, nbytes);
	stats_end(sort->job.stats, span, r == 0 ? nbytes : 0);
	return r;
}

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

/* --- Writing --- */

/* Omit lines before and after the shard. */
static int select_shard(struct line_sort *sort)
{
	const uint64_t n_lines = line_sort_n_lines(sort);
	const uint64_t end = n_lines < sort->n_lines_left ? n_lines : sort->n_lines_left;
	const uint64_t begin = sort->n_lines_skipped < end ? sort->n_lines_skipped : end;

	sort->n_lines_skipped -= begin;
	sort->n_lines_left -= begin;
	return select_lines(sort, begin, end - begin);
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
		r = sort->parts ? write_parts(sort, &sink, ret_nbytes, &digest) :
				  line_sort_write_block(sort, &sink, ret_nbytes, &digest);
	if (r < 0)
		return r;
	digest_add(&sort->totals.written, digest);
	sort->offset += *ret_nbytes;
	sort->n_lines_left -= digest.n_records;
	return 0;
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
		r = sort->parts ? complete_parts(sort) : file_set_complete(&sort->set, NULL);
	if (r == 0 && !sort->set.is_joined)
		r = file_set_commit(&sort->set, records_done ? sort->checkpoint->checkpoint : NULL);
	return sort->ranks ? distributed_broadcast_status(sort->spec->comm, r) : r;
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
