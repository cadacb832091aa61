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
	uint64_t nbytes;     /* size of the complete file */
	struct digest digest;
};

struct line_part_files {
	struct part_files *files;
	struct output **outputs;    /* n, and the manifest */
	struct line_part *parts;    /* n */
	uint32_t n, current, first; /* of this process */
	uint64_t n_before;          /* lines of lower ranks */
	uint64_t n_written;         /* lines, with these */
};

/* Refuse to replace a directory that holds an input. */
static int check_old_files(const struct line_sort *sort)
{
	struct file_id old_file;

	for (size_t i = 0; part_files_old_file_id(sort->parts->files, i, &old_file); i++)
		if (line_input_has_file(sort->input, old_file))
			return fail(-EINVAL,
				    "-o '%s' has an input as a part file; use another name for "
				    "the output",
				    sort->spec->output_path);
	return 0;
}

static const char *part_extension(const struct line_sort *sort)
{
	return sort->spec->zstd_level ? ".zst" : "";
}

static int create_files(struct line_sort *sort)
{
	struct line_part_files *parts = sort->parts;
	struct orphan_owner owner = { 0 };
	int r;

	if (sort->checkpoint)
		checkpoint_get_orphan_owner(sort->checkpoint->checkpoint, &owner);
	r = part_files_open(sort->calls, sort->spec->output_path, parts->n, part_extension(sort),
			    &owner, &parts->files);
	if (r == 0)
		r = check_old_files(sort);
	return r < 0 ? r : part_files_open_outputs(parts->files, sort->ranks, parts->outputs);
}

/* Collective: rank 0 creates the files, and the others open them. */
static int share_files(struct line_sort *sort)
{
	struct line_part_files *parts = sort->parts;
	struct comm *comm = sort->spec->comm;
	const bool is_first = comm_rank(comm) == 0;
	int r = collective_files_open(comm, parts->outputs, parts->n, &sort->collective);

	if (r == 0 && is_first)
		r = create_files(sort);
	if (r == 0)
		r = collective_files_share(&sort->collective, sort->calls, sort->spec->output_path,
					   part_extension(sort), &parts->files);
	for (uint32_t i = 0; i < parts->n && r == 0 && !is_first; i++)
		r = collective_files_join_part(&sort->collective, parts->files, i);
	return r;
}

int line_part_files_open(struct line_sort *sort)
{
	const uint32_t n = sort->spec->n_part_files;
	struct line_part_files *parts = calloc(1, sizeof *parts);
	int r;

	if (!parts)
		return fail(-ENOMEM, "no memory for %u part files", n);
	sort->parts = parts;
	parts->n = n;
	parts->outputs = calloc(n + 1, sizeof(struct output *));
	parts->parts = calloc(n, sizeof *parts->parts);
	if (!parts->outputs || !parts->parts)
		return fail(-ENOMEM, "no memory for %u part files", n);
	r = sort->ranks ? share_files(sort) : create_files(sort);
	sort->output = parts->outputs[0];
	return r;
}

int line_part_files_check_space(struct line_sort *sort, uint64_t nbytes)
{
	return output_check_space(sort->output, nbytes);
}

/* Begin to write the current part. */
static int begin_part(struct line_sort *sort)
{
	struct line_part_files *parts = sort->parts;

	sort->output = parts->outputs[parts->current];
	if (sort->spec->zstd_level && !sort->ranks)
		return output_compress(sort->output, sort->spec->zstd_level, sort->n_compressors);
	if (sort->maps_output)
		output_set_n_writers(sort->output, sort->n_threads);
	return 0;
}

int line_part_files_begin(struct line_sort *sort, uint64_t n_lines, uint64_t n_before)
{
	struct line_part_files *parts = sort->parts;

	for (uint32_t i = 0; i < parts->n; i++)
		parts->parts[i].end_line = equal_share_begin(n_lines, i + 1, parts->n);
	while (parts->first + 1 < parts->n && parts->parts[parts->first].end_line <= n_before &&
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

	for (uint32_t i = 0; i < parts->n; i++) {
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

	for (uint32_t i = 0; i < parts->n; i++) {
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

static int complete_part(struct line_sort *sort, uint32_t i)
{
	struct output *output = sort->parts->outputs[i];
	struct stat status;
	int r = output_finalize(output, &status);

	if (r == 0)
		r = output_complete(output, OUTPUT_UNSYNCED);
	if (r < 0)
		return r;
	output_add_io_stats(output, &sort->summary.written);
	sort->parts->parts[i].nbytes = (uint64_t)status.st_size;
	return 0;
}

/*
 * The current part has all lines of this process. Complete it, unless there are several ranks, and
 * begin the next one if there is any.
 */
static int end_part(struct line_sort *sort)
{
	struct line_part_files *parts = sort->parts;
	const int r = sort->ranks ? 0 : complete_part(sort, parts->current);

	if (r < 0)
		return r;
	parts->current++;
	return parts->current < parts->n ? begin_part(sort) : 0;
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

static int write_manifest(struct line_sort *sort)
{
	struct line_part_files *parts = sort->parts;
	struct part_manifest manifest = { .content = PART_CONTENT_LINES,
					  .is_zstd = sort->spec->zstd_level > 0,
					  .unique = sort->keys->unique,
					  .order = line_keys_format(sort->keys),
					  .parts = calloc(parts->n, sizeof *manifest.parts) };
	int r = manifest.order && manifest.parts ? 0 :
						   fail(-ENOMEM, "no memory for a part manifest");
	char *text;

	for (uint32_t i = 0; i < parts->n && r == 0; i++) {
		const struct line_part *part = &parts->parts[i];

		manifest.parts[i] =
			(struct manifest_part){ .name = strdup(part_files_name(parts->files, i)),
						.nbytes = part->nbytes,
						.n_records = part->digest.n_records,
						.checksum = part->digest.sum };
		manifest.n_records += part->digest.n_records;
		manifest.n_parts = i + 1;
		if (!manifest.parts[i].name)
			r = fail(-ENOMEM, "no memory for a part manifest");
	}
	if (r == 0)
		r = part_manifest_format(&manifest, &text);
	part_manifest_free(&manifest);
	if (r < 0)
		return r;
	r = output_write_at(parts->outputs[parts->n], 0, text, strlen(text));
	free(text);
	return r;
}

/* Add up the lines of all ranks, and note what others have written to the files. */
static int add_ranks(struct line_sort *sort, uint64_t *ret_nbytes)
{
	const struct collective_files *files = &sort->collective;
	struct line_part_files *parts = sort->parts;
	struct file_sum {
		uint64_t n_lines, sum, nbytes;
	} *sums = calloc(parts->n, sizeof *sums);
	int r;

	if (!sums)
		return fail(-ENOMEM, "no memory for %u part files", parts->n);
	for (uint32_t i = 0; i < parts->n; i++) {
		const struct line_part *part = &parts->parts[i];

		sums[i] = (struct file_sum){ part->digest.n_records, part->digest.sum,
					     part->end - part->begin };
	}
	r = comm_allreduce_sum(sort->spec->comm, &sums->n_lines, 3 * (size_t)parts->n);
	for (uint32_t i = 0; i < parts->n && r == 0; i++) {
		struct line_part *part = &parts->parts[i];
		const uint64_t own_nbytes =
			part->end - part->begin + files->files[i].foreign_nbytes;

		part->digest = (struct digest){ sums[i].n_lines, sums[i].sum };
		ret_nbytes[i] = sums[i].nbytes;
		if (comm_rank(sort->spec->comm) == 0 && sums[i].nbytes > own_nbytes &&
		    !files->is_compressed)
			output_record_remote_writes(parts->outputs[i], sums[i].nbytes - own_nbytes,
						    sums[i].nbytes);
	}
	free(sums);
	return r;
}

int line_part_files_finish(struct line_sort *sort, uint64_t *ret_nbytes)
{
	const struct line_part_files *parts = sort->parts;

	for (uint32_t i = 0; i < parts->n; i++)
		if (parts->parts[i].offset != parts->parts[i].end)
			return fail(-EIO,
				    "internal error: the lines of this rank in part file %" PRIu32
				    " end at %" PRIu64 ", not at %" PRIu64,
				    i, parts->parts[i].offset, parts->parts[i].end);
	return add_ranks(sort, ret_nbytes);
}

/* Close the files of another rank than rank 0. */
static int close_joined_files(struct line_sort *sort)
{
	struct line_part_files *parts = sort->parts;
	int r = 0;

	for (uint32_t i = 0; i < parts->n && r == 0; i++) {
		struct output *output = parts->outputs[i];

		output_add_io_stats(output, &sort->summary.written);
		parts->outputs[i] = NULL;
		r = output_close_shared(output);
	}
	return r;
}

static int commit_files(struct line_sort *sort)
{
	struct line_part_files *parts = sort->parts;
	int r = 0;

	for (uint32_t i = 0; i < parts->n && r == 0 && sort->ranks; i++)
		r = complete_part(sort, i);
	while (parts->current < parts->n && r == 0 && !sort->ranks) /* without lines */
		r = end_part(sort);
	if (r == 0)
		r = write_manifest(sort);
	if (r == 0)
		r = output_complete(parts->outputs[parts->n], OUTPUT_UNSYNCED);
	if (r == 0)
		r = part_files_commit(parts->files, parts->outputs, false);
	return r;
}

int line_part_files_commit(struct line_sort *sort)
{
	struct comm *comm = sort->spec->comm;
	int r = 0;

	if (!sort->ranks)
		return commit_files(sort);
	if (comm_rank(comm) > 0)
		r = close_joined_files(sort);
	if (r == 0)
		r = comm_barrier(comm);
	if (r == 0 && comm_rank(comm) == 0)
		r = commit_files(sort);
	return line_ranks_end(sort, r);
}

void line_part_files_close(struct line_sort *sort)
{
	struct line_part_files *parts = sort->parts;

	if (!parts)
		return;
	for (uint32_t i = 0; parts->outputs && i <= parts->n; i++)
		output_abort(parts->outputs[i]);
	part_files_close(parts->files, sort->ranks && comm_rank(sort->spec->comm) > 0);
	free(parts->outputs);
	free(parts->parts);
	free(parts);
	sort->parts = NULL;
}
