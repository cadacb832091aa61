/*
 * line_part_files.c - the output of a sort of lines as part files (see line_sort_internal.h)
 *
 * Part file K of P, from 0, begins at line n * K / P of n lines. So the number of lines must be
 * known before the first one is written. The files are written one after the other.
 *
 * Several ranks write to the same files. Rank 0 completes them when all ranks have written
 * (line_rank_output.c).
 */
#include "src/lines/line_sort_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/input/part_manifest.h"
#include "io/output/part_files.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/comm/comm.h"

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

int line_part_files_open(struct line_sort *sort)
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

uint32_t line_part_files_current(const struct line_sort *sort)
{
	return sort->parts->current;
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

int line_part_files_place(struct line_sort *sort, uint64_t offset)
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

int line_part_files_write_block(struct line_sort *sort, const struct line_sink *sink,
				uint64_t *ret_nbytes, struct digest *ret_digest)
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
		r = line_sort_select(sort, begin, n);
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

/* Add up the lines of all ranks, and note what others have written to the files. */
static int add_ranks(struct line_sort *sort, uint64_t *ret_nbytes)
{
	struct line_part_files *parts = sort->parts;
	struct file_sum {
		uint64_t n_lines, sum, nbytes;
	} *sums = calloc(sort->set.n, sizeof *sums);
	int r;

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

int line_part_files_finish(struct line_sort *sort, uint64_t *ret_nbytes)
{
	const struct line_part_files *parts = sort->parts;

	for (uint32_t i = 0; i < sort->set.n; i++)
		if (parts->parts[i].offset != parts->parts[i].end)
			return fail(-EIO,
				    "internal error: the lines of this rank in part file %" PRIu32
				    " end at %" PRIu64 ", not at %" PRIu64,
				    i, parts->parts[i].offset, parts->parts[i].end);
	return add_ranks(sort, ret_nbytes);
}

int line_part_files_complete(struct line_sort *sort)
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
