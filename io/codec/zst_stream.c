/*
 * zst_stream - the content of a .zst file or pipe (see zst_stream.h)
 */
#include "io/codec/zst_stream.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_estimateDStreamSize() */
#include <zstd.h>
#include <zstd_errors.h>

#include "src/base/diagnostics.h"

struct zst_stream {
	const char *name;
	ZSTD_DStream *decoder;
	uint64_t max_window_nbytes;
	uint64_t window_nbytes; /* of the frame that was begun last; 0: not known */
	bool in_frame;          /* the frame that was begun is not complete */
	bool has_begun;         /* a frame with content was begun */
	bool has_content;
	bool at_end;     /* of the file */
	uint64_t offset; /* in the file, of the first byte in `stored` */
	ZSTD_inBuffer in;
	size_t capacity; /* of stored */
	unsigned char stored[];
};

int zst_stream_open(const char *name, const void *head, size_t head_nbytes,
		    uint64_t max_window_nbytes, struct zst_stream **ret_stream)
{
	const size_t capacity = ZSTD_DStreamInSize();
	struct zst_stream *stream = calloc(1, sizeof *stream + capacity);

	if (stream)
		stream->decoder = ZSTD_createDStream();
	if (!stream || !stream->decoder) {
		zst_stream_close(stream);
		return fail(-ENOMEM, "%s: decompression: %m", name);
	}
	ZSTD_DCtx_setMaxWindowSize(stream->decoder, max_window_nbytes);
	stream->max_window_nbytes = max_window_nbytes;
	stream->name = name;
	assert(head_nbytes <= ZST_STREAM_MAX_HEAD_NBYTES && head_nbytes <= capacity);
	stream->capacity = capacity;
	memcpy(stream->stored, head, head_nbytes);
	stream->in = (ZSTD_inBuffer){ .src = stream->stored, .size = head_nbytes };
	*ret_stream = stream;
	return 0;
}

uint64_t zst_window_nbytes(const void *header, size_t nbytes)
{
	ZSTD_frameHeader frame_header;

	if (ZSTD_getFrameHeader(&frame_header, header, nbytes) != 0 ||
	    frame_header.frameType != ZSTD_frame)
		return 0;
	return frame_header.windowSize;
}

size_t zst_stream_memory_nbytes(uint64_t window_nbytes)
{
	return sizeof(struct zst_stream) + ZSTD_DStreamInSize() +
	       ZSTD_estimateDStreamSize(window_nbytes);
}

void zst_stream_close(struct zst_stream *stream)
{
	if (!stream)
		return;
	ZSTD_freeDStream(stream->decoder);
	free(stream);
}

/* More stored bytes, all before being used up. */
static int refill(struct zst_stream *stream, const struct file *file, int cancel_fd)
{
	size_t nbytes;
	const int r = file_read_next(file, stream->stored, stream->capacity, cancel_fd, &nbytes);

	if (r == -ECANCELED)
		return r;
	if (r < 0)
		return fail(r, "%s: read: %m", stream->name);
	stream->offset += stream->in.size;
	stream->in = (ZSTD_inBuffer){ .src = stream->stored, .size = nbytes };
	stream->at_end = nbytes < stream->capacity;
	return 0;
}

/* As zstd --long says it. */
static int ceil_log2(uint64_t nbytes)
{
	int log = 0;

	while (nbytes > UINT64_C(1) << log)
		log++;
	return log;
}

static int fail_window(const struct zst_stream *stream)
{
	const uint64_t max_nbytes = stream->max_window_nbytes;
	/* The frame's header may have come in pieces. */
	const uint64_t window_nbytes = stream->window_nbytes > max_nbytes ? stream->window_nbytes :
									    max_nbytes + 1;
	const int window_log = ceil_log2(window_nbytes);

	return fail(
		-E2BIG,
		"%s: a frame is compressed with a window of more than %" PRIu64
		" MiB (zstd --long), for which the memory is too little; it can be decompressed "
		"before, by zstd -dc --long=%d; it needs -S of at least %" PRIu64 "M",
		stream->name, max_nbytes >> 20, window_log,
		((UINT64_C(1) << window_log) >> 20) * ZST_UNPROBED_WINDOW_DIVISOR);
}

/* What has no content yet may be no compressed data at all. */
static const char *damage_advice(const struct zst_stream *stream)
{
	return stream->has_content ? "" : "; --format=raw takes its bytes for records";
}

static int fail_decoding(const struct zst_stream *stream, size_t code)
{
	const uint64_t offset = stream->offset + stream->in.pos;

	if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation)
		return fail(-ENOMEM, "%s: decompression: %m", stream->name);
	if (ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge &&
	    stream->max_window_nbytes < ZST_MAX_WINDOW_NBYTES)
		return fail_window(stream);
	return fail(-EBADMSG, "%s: compressed data before byte %" PRIu64 " is damaged: %s%s",
		    stream->name, offset, ZSTD_getErrorName(code), damage_advice(stream));
}

static int fail_cut_off(const struct zst_stream *stream)
{
	return fail(-EBADMSG,
		    "%s: compressed data is cut off: it ends at byte %" PRIu64 ", within a frame%s",
		    stream->name, stream->offset + stream->in.size, damage_advice(stream));
}

/* At a frame's first byte: only skippable ones begin with 0x50 to 0x5f. */
static void record_frame_start(struct zst_stream *stream)
{
	const unsigned char *first = (const unsigned char *)stream->in.src + stream->in.pos;

	if (stream->in_frame || stream->in.pos == stream->in.size)
		return;
	stream->has_begun |= (*first & 0xf0) != 0x50;
	stream->window_nbytes = zst_window_nbytes(first, stream->in.size - stream->in.pos);
}

int zst_stream_read(struct zst_stream *stream, const struct file *file, int cancel_fd, void *buffer,
		    size_t nbytes, size_t *ret_nbytes)
{
	ZSTD_outBuffer out = { .dst = buffer, .size = nbytes };

	while (out.pos < out.size) {
		const size_t old_pos = out.pos;
		size_t result;
		int r = 0;

		if (stream->in.pos == stream->in.size && !stream->at_end)
			r = refill(stream, file, cancel_fd);
		if (r < 0)
			return r;
		if (stream->in.pos == stream->in.size && !stream->in_frame)
			break;
		record_frame_start(stream);
		result = ZSTD_decompressStream(stream->decoder, &out, &stream->in);
		if (ZSTD_isError(result))
			return fail_decoding(stream, result);
		stream->in_frame = result != 0;
		stream->has_content |= out.pos > old_pos;
		if (stream->in_frame && stream->at_end && out.pos == old_pos &&
		    stream->in.pos == stream->in.size)
			return fail_cut_off(stream);
	}
	if (out.pos < out.size && !stream->has_begun)
		return fail(
			-EBADMSG,
			"%s: begins like compressed data, and has no content; --format=raw takes "
			"its bytes for records",
			stream->name);
	*ret_nbytes = out.pos;
	return 0;
}
