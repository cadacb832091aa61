/*
 * line_part_files.c - the output of a sort of lines as part files (see line_sort_internal.h)
 *
 * Part file K of P, from 0, begins at line n * K / P of n lines. So the number of lines must be
 * known before the first one is written. The files are written one after the other.
 */
#include "src/lines/line_sort.h"
#include "src/lines/line_sort_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/input/part_manifest.h"
#include "io/output/part_files.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"

struct line_part {
	uint64_t end_line; /* of all lines */
	uint64_t offset;   /* where its next line is written */
	uint64_t nbytes;   /* of the complete file */
	struct digest digest;
};

struct line_part_files {
	struct part_files *files;
	struct output **outputs; /* n, and the manifest */
	struct line_part *parts; /* n */
	uint32_t n, current;
	uint64_t n_written; /* lines */
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
				    sort->params->output);
	return 0;
}

int line_part_files_open(struct line_sort *sort)
{
	const struct line_sort_params *params = sort->params;
	const uint32_t n = params->n_part_files;
	const char *extension = params->zstd_level ? ".zst" : "";
	struct line_part_files *parts = calloc(1, sizeof *parts);
	struct orphan_owner owner = { 0 };
	int r;

	if (!parts)
		return fail(-ENOMEM, "no memory for %u part files", n);
	sort->parts = parts;
	parts->n = n;
	parts->outputs = calloc(n + 1, sizeof(struct output *));
	parts->parts = calloc(n, sizeof *parts->parts);
	if (!parts->outputs || !parts->parts)
		return fail(-ENOMEM, "no memory for %u part files", n);
	if (sort->checkpoint)
		checkpoint_get_orphan_owner(sort->checkpoint->checkpoint, &owner);
	r = part_files_open(sort->calls, params->output, n, extension, &owner, &parts->files);
	if (r == 0)
		r = check_old_files(sort);
	for (uint32_t i = 0; i <= n && r == 0; i++)
		r = output_open_part(part_files_directory(parts->files),
				     part_files_path(parts->files, i), false, &parts->outputs[i]);
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
	if (sort->params->zstd_level)
		return output_compress(sort->output, sort->params->zstd_level, sort->n_compressors);
	if (sort->maps_output)
		output_set_n_writers(sort->output, sort->n_threads);
	return 0;
}

int line_part_files_begin(struct line_sort *sort, uint64_t n_lines)
{
	struct line_part_files *parts = sort->parts;

	for (uint32_t i = 0; i < parts->n; i++)
		parts->parts[i].end_line = equal_share_begin(n_lines, i + 1, parts->n);
	return begin_part(sort);
}

/* The current part has all its lines: complete it, and begin the next one if there is any. */
static int end_part(struct line_sort *sort)
{
	struct line_part_files *parts = sort->parts;
	struct output *output = parts->outputs[parts->current];
	struct file_writer_stats *written = &sort->summary.written, io;
	struct stat status;
	int r = output_finalize(output, &status);

	if (r == 0)
		r = output_complete(output, OUTPUT_UNSYNCED);
	if (r < 0)
		return r;
	io = output_get_io_stats(output);
	written->cached_nbytes += io.cached_nbytes;
	written->direct_nbytes += io.direct_nbytes;
	written->mmap_nbytes += io.mmap_nbytes;
	parts->parts[parts->current].nbytes = (uint64_t)status.st_size;
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
					  .is_zstd = sort->params->zstd_level > 0,
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

int line_part_files_commit(struct line_sort *sort)
{
	struct line_part_files *parts = sort->parts;
	int r = 0;

	while (parts->current < parts->n && r == 0) /* without lines */
		r = end_part(sort);
	if (r == 0)
		r = write_manifest(sort);
	if (r == 0)
		r = output_complete(parts->outputs[parts->n], OUTPUT_UNSYNCED);
	if (r == 0)
		r = part_files_commit(parts->files, parts->outputs, false);
	return r;
}

void line_part_files_close(struct line_sort *sort)
{
	struct line_part_files *parts = sort->parts;

	if (!parts)
		return;
	for (uint32_t i = 0; parts->outputs && i <= parts->n; i++)
		output_abort(parts->outputs[i]);
	part_files_close(parts->files, false);
	free(parts->outputs);
	free(parts->parts);
	free(parts);
	sort->parts = NULL;
}
