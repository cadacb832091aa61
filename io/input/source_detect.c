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
static struct format_rules rules_for(const struct source_table *table, const struct source *source,
				     bool is_content)
{
	struct format_rules rules = table->rules;

	if (!source->list)
		return rules;
	rules.takes_lists = false;
	if (is_content || !source->list->is_zstd)
		rules.choice = source->list->content == PARTS_NPY ? FORMAT_AUTO : FORMAT_RAW;
	return rules;
}

static int judge(const struct source_table *table, struct source *source,
		 const struct format_view *view)
{
	const struct format_rules rules = rules_for(table, source, view->is_content);
	const struct format *format;
	const int r = format_recognise(view, &rules, &format);

	if (r == -ENODATA) /* it became shorter, which whoever reads it will find */
		return 0;
	if (r < 0)
		return fail(r, "%s: read: %m", source->name);
	if (!format)
		return 0;
	if (format_is_zstandard(format) && !view->is_content)
		return 1;
	if (format_is_list(format, &rules) && source->path && !source->is_stream &&
	    !view->is_content) {
		source->is_list = true;
		return 0;
	}
	source->header_nbytes = format_header_nbytes(format, view, &rules);
	if (source->header_nbytes)
		return 0;
	return format_refuse(format, view, &rules, source->name, source->path);
}

int source_look_at_file(const struct source_table *table, struct source *source)
{
	unsigned char head[FORMAT_HEAD_NBYTES];
	const struct format_view view = {
		.head = head,
		.n_head = source->nbytes < sizeof head ? (size_t)source->nbytes : sizeof head,
		.nbytes = source->nbytes,
		.context = source,
		.read_at = read_at,
	};
	int r;

	if (rules_for(table, source, false).choice == FORMAT_RAW || view.n_head == 0)
		return 0;
	r = file_read_at(&source->file, source->base, head, view.n_head);
	if (r == -ENODATA) /* as above */
		return 0;
	return r < 0 ? fail(r, "%s: read: %m", source->name) : judge(table, source, &view);
}

int source_look_at_content(const struct source_table *table, struct source *source)
{
	const uint64_t nbytes = source->zst_end - source->base;
	const size_t n = nbytes < ZST_FRAME_ENOUGH_NBYTES ? (size_t)nbytes :
							    ZST_FRAME_ENOUGH_NBYTES;
	unsigned char head[FORMAT_HEAD_NBYTES], *stored = malloc(n);
	struct format_view view = { .head = head,
				    .nbytes = FORMAT_SIZE_UNKNOWN,
				    .is_content = true };
	int r;

	if (!stored)
		return fail(-ENOMEM, "%s: decompression: %m", source->name);
	r = file_read_at(&source->file, source->base, stored, n);
	if (r == 0)
		view.n_head = zst_frame_begin_content(stored, n, head, sizeof head);
	free(stored);
	if (r < 0 && r != -ENODATA)
		return fail(r, "%s: read: %m", source->name);
	return judge(table, source, &view);
}

int source_look_at_head(const struct source_table *table, struct source *source,
			const struct source_head *head, bool is_content)
{
	const struct format_view view = { .head = head->bytes,
					  .n_head = head->end,
					  .nbytes = FORMAT_SIZE_UNKNOWN,
					  .is_content = is_content };

	return judge(table, source, &view);
}
