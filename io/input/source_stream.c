/*
 * source_stream - reading a source in order, compressed or not (see source.h)
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/input/source_internal.h"
#include "src/base/rendezvous.h"
#include "src/base/diagnostics.h"

uint64_t source_window_nbytes(const void *header, size_t nbytes)
{
	const uint64_t window_nbytes =
		nbytes < ZST_HEADER_NBYTES ? 0 : zst_window_nbytes(header, nbytes);

	return window_nbytes > ZST_MAX_WINDOW_NBYTES     ? 0 :
	       window_nbytes > ZST_DEFAULT_WINDOW_NBYTES ? window_nbytes :
							   ZST_DEFAULT_WINDOW_NBYTES;
}

/* As source_read_next(), behind the head. */
static int read_next(struct source *source, int cancel_fd, void *buffer, size_t nbytes,
		     size_t *ret_nbytes)
{
	int r;

	if (source->zst_stream)
		return zst_stream_read(source->zst_stream, &source->file, cancel_fd, buffer, nbytes,
				       ret_nbytes);
	if (source->has_ended) {
		*ret_nbytes = 0;
		return 0;
	}
	if (source->endpoint.kind == ENDPOINT_RENDEZVOUS)
		return rendezvous_receive(source->endpoint.rendezvous, buffer, nbytes, ret_nbytes);
	r = file_read_next(&source->file, buffer, nbytes, cancel_fd, ret_nbytes);
	if (r < 0)
		return r != -ECANCELED ? fail(r, "%s: read: %m", source->name) : r;
	source->has_ended = source->is_stream && *ret_nbytes < nbytes;
	return 0;
}

/* The first bytes of a stream, or of its content. */
static int read_head(struct source *source, int cancel_fd)
{
	struct source_head *head = source->head;

	head->begin = 0;
	return read_next(source, cancel_fd, head->bytes, sizeof head->bytes, &head->end);
}

/* It is compressed: the head becomes that of the content. */
static int start_decompression(const struct source_table *table, struct source *source,
			       int cancel_fd)
{
	const struct source_head *head = source->head;
	const uint64_t window_nbytes = source_window_nbytes(head->bytes, head->end);
	int r;

	/* One that is looked at before the plan is planned with, as large as it is. */
	if (window_nbytes && table->max_window_nbytes == ZST_MAX_WINDOW_NBYTES)
		source->window_nbytes = window_nbytes;
	r = zst_stream_open(source->name, head->bytes, head->end,
			    source->window_nbytes > table->max_window_nbytes ?
				    source->window_nbytes :
				    table->max_window_nbytes,
			    &source->zst_stream);
	if (r == 0)
		r = read_head(source, cancel_fd);
	return r < 0 ? r : source_detect_head(table, source, source->head, true);
}

int source_start(const struct source_table *table, struct source *source, int cancel_fd)
{
	int r;

	source->is_started = true;
	if ((!source->is_stream && !source->zst_end) || table->rules.mode == FORMAT_RAW ||
	    source->endpoint.kind == ENDPOINT_RENDEZVOUS)
		return 0; /* it was looked at, and is plain, or need not be */
	source->head = malloc(sizeof *source->head);
	if (!source->head)
		return fail(-ENOMEM, "%s: read: %m", source->name);
	r = read_head(source, cancel_fd);
	if (r < 0)
		return r;
	r = source->zst_end ? 1 : source_detect_head(table, source, source->head, false);
	return r > 0 ? start_decompression(table, source, cancel_fd) : r;
}

bool source_may_be_compressed(const struct source *source)
{
	return source->is_stream && source->endpoint.kind != ENDPOINT_RENDEZVOUS &&
	       (!source->is_started || source->zst_stream);
}

/* What was read when it was started. */
static size_t consume_head(struct source *source, void *buffer, size_t nbytes)
{
	struct source_head *head = source->head;
	size_t n;

	if (!head)
		return 0;
	n = head->end - head->begin < nbytes ? head->end - head->begin : nbytes;
	memcpy(buffer, head->bytes + head->begin, n);
	head->begin += n;
	if (head->begin == head->end) {
		free(head);
		source->head = NULL;
	}
	return n;
}

int source_read_next(struct source *source, int cancel_fd, void *buffer, size_t nbytes,
		     size_t *ret_nbytes)
{
	const size_t n = consume_head(source, buffer, nbytes);
	const int r =
		read_next(source, cancel_fd, (unsigned char *)buffer + n, nbytes - n, ret_nbytes);

	if (r == 0)
		*ret_nbytes += n;
	return r;
}
