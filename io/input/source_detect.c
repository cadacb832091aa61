/*
 * source_detect - is a source records, compressed, or something else? (see source_detect.h)
 */
#include "io/input/source_detect.h"

#include <errno.h>
#include <stdlib.h>

#include "io/codec/zst_frame.h"
#include "io/input/part_manifest.h"
#include "src/base/diagnostics.h"

static int read_at(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
	const struct source *source = context;

	return file_read_at(&source->file, source->base + offset, buffer, nbytes);
}

/*
 * What a part begins with may look like anything, as it may be any number. Its list knows better.
 */
static struct format_rules effective_rules(const struct source_table *table,
					   const struct source *source, bool is_decompressed)
{
	struct format_rules rules = table->rules;

	if (!source->manifest)
		return rules;
	rules.accepts_manifests = false;
	if (is_decompressed || !source->manifest->is_zstd)
		rules.mode = source->manifest->content == PART_CONTENT_NPY ? FORMAT_AUTO :
									     FORMAT_RAW;
	return rules;
}

static int classify_view(const struct source_table *table, struct source *source,
			 const struct format_view *view)
{
	const struct format_rules rules = effective_rules(table, source, view->is_decompressed);
	const struct format *format;
	const int r = format_detect(view, &rules, &format);

	if (r == -ENODATA) /* it became shorter, which whoever reads it will find */
		return 0;
	if (r < 0)
		return fail(r, "%s: read: %m", source->name);
	if (!format)
		return 0;
	if (format_is_zstandard(format) && !view->is_decompressed)
		return 1;
	if (format_is_manifest(format, &rules) && source->path && !source->is_stream &&
	    !view->is_decompressed) {
		source->is_manifest = true;
		return 0;
	}
	source->header_nbytes = format_header_nbytes(format, view, &rules);
	if (source->header_nbytes)
		return 0;
	return format_refuse(format, view, &rules, source->name, source->path);
}

int source_detect_file(const struct source_table *table, struct source *source)
{
	unsigned char head[FORMAT_HEAD_NBYTES];
	const struct format_view view = {
		.head = head,
		.head_nbytes = source->nbytes < sizeof head ? (size_t)source->nbytes : sizeof head,
		.nbytes = source->nbytes,
		.context = source,
		.read_at = read_at,
	};
	int r;

	if (effective_rules(table, source, false).mode == FORMAT_RAW || view.head_nbytes == 0)
		return 0;
	r = file_read_at(&source->file, source->base, head, view.head_nbytes);
	if (r == -ENODATA) /* as above */
		return 0;
	return r < 0 ? fail(r, "%s: read: %m", source->name) : classify_view(table, source, &view);
}

int source_detect_content(const struct source_table *table, struct source *source)
{
	const uint64_t nbytes = source->zst_end - source->base;
	const size_t n = nbytes < ZST_FRAME_PREVIEW_NBYTES ? (size_t)nbytes :
							     ZST_FRAME_PREVIEW_NBYTES;
	unsigned char head[FORMAT_HEAD_NBYTES], *stored = malloc(n);
	struct format_view view = { .head = head,
				    .nbytes = FORMAT_SIZE_UNKNOWN,
				    .is_decompressed = true };
	int r;

	if (!stored)
		return fail(-ENOMEM, "%s: decompression: %m", source->name);
	r = file_read_at(&source->file, source->base, stored, n);
	if (r == 0)
		view.head_nbytes = zst_frame_preview(stored, n, head, sizeof head);
	free(stored);
	if (r < 0 && r != -ENODATA)
		return fail(r, "%s: read: %m", source->name);
	return classify_view(table, source, &view);
}

int source_detect_head(const struct source_table *table, struct source *source,
		       const struct source_head *head, bool is_decompressed)
{
	const struct format_view view = { .head = head->bytes,
					  .head_nbytes = head->end,
					  .nbytes = FORMAT_SIZE_UNKNOWN,
					  .is_decompressed = is_decompressed };

	return classify_view(table, source, &view);
}
