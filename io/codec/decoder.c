/*
 * decoder - the content of a compressed file or pipe (see decoder.h)
 *
 * The formats differ in struct decoder_ops. Both consist of units, which are decoded one after the
 * other: frames of Zstandard, members of gzip. Before a unit begins, enough bytes are read for its
 * header to be seen as a whole.
 */
#include "io/codec/decoder.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_estimateDStreamSize() */
#include <zstd.h>
#include <zstd_errors.h>

#include "src/base/diagnostics.h"
#include "src/record/load_upto16.h"

struct decoder {
	const struct decoder_ops *ops;
	const char *name;
	ZSTD_DStream *zstd;
	z_stream gzip;
	uint64_t max_window_nbytes;
	uint64_t window_nbytes; /* the largest that has begun */
	bool in_unit;           /* a unit has begun and not ended */
	bool has_begun;         /* a unit with content has begun */
	bool has_content;
	bool in_padding; /* zeros have followed a member */
	bool at_end;     /* the file is read to its end */
	uint64_t offset; /* in the file, of stored[0] */
	size_t begin, end, capacity;
	unsigned char stored[]; /* `begin` to `end` are not decoded yet */
};

struct decoder_ops {
	const char *unit;
	size_t header_nbytes; /* of a unit */
	int (*open)(struct decoder *decoder);
	void (*close)(struct decoder *decoder);
	/* Begin a unit, whose first bytes are stored; or consume padding. */
	int (*begin_unit)(struct decoder *decoder);
	/*
	 * Decode stored bytes to at most `capacity` bytes; updates in_unit. Returns 0 or a negative
	 * errno (reported).
	 */
	int (*decode)(struct decoder *decoder, unsigned char *buffer, size_t capacity,
		      size_t *ret_nbytes);
};

static size_t count_stored(const struct decoder *decoder)
{
	return decoder->end - decoder->begin;
}

static uint64_t position(const struct decoder *decoder)
{
	return decoder->offset + decoder->begin;
}

static int fail_memory(const char *name)
{
	return fail(-ENOMEM, "%s: decompression: %m", name);
}

/* Without any content so far, the data may be not compressed at all. */
static const char *damage_hint(const struct decoder *decoder)
{
	return decoder->has_content ? "" : "; use --format=raw to read it as records";
}

static int fail_damaged(const struct decoder *decoder, const char *reason)
{
	return fail(-EBADMSG, "%s: compressed data is damaged before byte %" PRIu64 ": %s%s",
		    decoder->name, position(decoder), reason, damage_hint(decoder));
}

static int fail_followed(const struct decoder *decoder)
{
	return fail(-EBADMSG, "%s: compressed data is followed by other data at byte %" PRIu64,
		    decoder->name, position(decoder));
}

/* --- Zstandard --- */

static int open_zstd(struct decoder *decoder)
{
	decoder->zstd = ZSTD_createDStream();
	if (!decoder->zstd)
		return -ENOMEM;
	/* Smaller limits are checked when a frame begins. */
	ZSTD_DCtx_setMaxWindowSize(decoder->zstd, ZSTD_MAX_WINDOW_NBYTES);
	return 0;
}

static void close_zstd(struct decoder *decoder)
{
	ZSTD_freeDStream(decoder->zstd);
}

uint64_t zstd_window_nbytes(const void *header, size_t nbytes)
{
	ZSTD_frameHeader frame_header;

	if (ZSTD_getFrameHeader(&frame_header, header, nbytes) != 0 ||
	    frame_header.frameType != ZSTD_frame)
		return 0;
	return frame_header.windowSize;
}

/* Return the N of --long=N. */
static int ceil_log2(uint64_t nbytes)
{
	int log = 0;

	while (nbytes > UINT64_C(1) << log)
		log++;
	return log;
}

/* The first byte of skippable frames is 0x50 to 0x5f, that of frames with content is not. */
static int begin_zstd_frame(struct decoder *decoder)
{
	const unsigned char *header = decoder->stored + decoder->begin;
	const uint64_t window_nbytes = zstd_window_nbytes(header, count_stored(decoder));
	const int window_log = ceil_log2(window_nbytes);
	uint64_t nbytes;

	if (decoder->has_begun && count_stored(decoder) >= ZSTD_FRAME_PREFIX_NBYTES &&
	    zstd_frame_detect(header, count_stored(decoder), &nbytes) == ZSTD_FRAME_NONE)
		return fail_followed(decoder);
	decoder->in_unit = true;
	decoder->has_begun |= (*header & 0xf0) != 0x50;
	if (window_nbytes > decoder->max_window_nbytes && window_nbytes <= ZSTD_MAX_WINDOW_NBYTES)
		return fail(-E2BIG,
			    "%s: no memory for a zstd window of more than %" PRIu64
			    " MiB; use zstd -dc --long=%d, or -S of at least %" PRIu64 "M",
			    decoder->name, decoder->max_window_nbytes >> 20, window_log,
			    ((UINT64_C(1) << window_log) >> 20) * DECODER_UNPLANNED_WINDOW_DIVISOR);
	if (window_nbytes > decoder->window_nbytes)
		decoder->window_nbytes = window_nbytes;
	return 0;
}

static int decode_zstd(struct decoder *decoder, unsigned char *buffer, size_t capacity,
		       size_t *ret_nbytes)
{
	ZSTD_inBuffer in = { decoder->stored, decoder->end, decoder->begin };
	ZSTD_outBuffer out = { buffer, capacity, 0 };
	const size_t result = ZSTD_decompressStream(decoder->zstd, &out, &in);

	/* After an error, zstd does not say where in the input it is. */
	decoder->begin = ZSTD_isError(result) ? decoder->end : in.pos;
	if (ZSTD_isError(result))
		return ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation ?
			       fail_memory(decoder->name) :
			       fail_damaged(decoder, ZSTD_getErrorName(result));
	decoder->in_unit = result != 0;
	*ret_nbytes = out.pos;
	return 0;
}

static const struct decoder_ops zstd_ops = {
	.unit = "frame",
	.header_nbytes = ZSTD_FRAME_HEADER_NBYTES,
	.open = open_zstd,
	.close = close_zstd,
	.begin_unit = begin_zstd_frame,
	.decode = decode_zstd,
};

/* --- gzip --- */

enum { GZIP_MAGIC_NBYTES = 2, GZIP_ONLY = 16 };

static int open_gzip(struct decoder *decoder)
{
	return inflateInit2(&decoder->gzip, MAX_WBITS + GZIP_ONLY) == Z_OK ? 0 : -ENOMEM;
}

static void close_gzip(struct decoder *decoder)
{
	if (decoder->gzip.state)
		inflateEnd(&decoder->gzip);
}

static int begin_gzip_member(struct decoder *decoder)
{
	const unsigned char *const stored = decoder->stored;

	while (decoder->has_begun && count_stored(decoder) && stored[decoder->begin] == 0) {
		decoder->in_padding = true;
		decoder->begin++;
	}
	if (count_stored(decoder) == 0)
		return 0;
	if (decoder->has_begun &&
	    (decoder->in_padding || count_stored(decoder) < GZIP_MAGIC_NBYTES ||
	     memcmp(stored + decoder->begin, "\x1f\x8b", GZIP_MAGIC_NBYTES)))
		return fail_followed(decoder);
	decoder->in_unit = true;
	decoder->has_begun = true;
	decoder->window_nbytes = GZIP_WINDOW_NBYTES;
	return 0;
}

static int decode_gzip(struct decoder *decoder, unsigned char *buffer, size_t capacity,
		       size_t *ret_nbytes)
{
	z_stream *const gzip = &decoder->gzip;
	const uInt n = capacity < UINT_MAX ? (uInt)capacity : UINT_MAX;
	int result;

	gzip->next_in = decoder->stored + decoder->begin;
	gzip->avail_in = (uInt)count_stored(decoder);
	gzip->next_out = buffer;
	gzip->avail_out = n;
	result = inflate(gzip, Z_NO_FLUSH);
	decoder->begin = decoder->end - gzip->avail_in;
	*ret_nbytes = n - gzip->avail_out;
	if (result == Z_STREAM_END) {
		decoder->in_unit = false;
		result = inflateReset(gzip);
	}
	if (result == Z_MEM_ERROR)
		return fail_memory(decoder->name);
	if (result == Z_OK || result == Z_BUF_ERROR) /* the latter: it needs more input */
		return 0;
	return fail_damaged(decoder, gzip->msg ? gzip->msg : "invalid data");
}

static const struct decoder_ops gzip_ops = {
	.unit = "member",
	.header_nbytes = GZIP_MAGIC_NBYTES,
	.open = open_gzip,
	.close = close_gzip,
	.begin_unit = begin_gzip_member,
	.decode = decode_gzip,
};

/* --- both --- */

int decoder_open(enum decoder_format format, const char *name, const void *head, size_t head_nbytes,
		 uint64_t max_window_nbytes, struct decoder **ret_decoder)
{
	const size_t capacity = ZSTD_DStreamInSize();
	struct decoder *decoder = calloc(1, sizeof *decoder + capacity);

	assert(format != DECODER_NONE);
	assert(head_nbytes <= DECODER_MAX_HEAD_NBYTES && head_nbytes <= capacity);
	if (!decoder)
		return fail_memory(name);
	decoder->ops = format == DECODER_GZIP ? &gzip_ops : &zstd_ops;
	decoder->name = name;
	decoder->capacity = capacity;
	decoder->end = head_nbytes;
	memcpy(decoder->stored, head, head_nbytes);
	if (decoder->ops->open(decoder) < 0) {
		decoder_close(decoder);
		return fail_memory(name);
	}
	decoder_set_max_window(decoder, max_window_nbytes);
	*ret_decoder = decoder;
	return 0;
}

void decoder_close(struct decoder *decoder)
{
	if (!decoder)
		return;
	decoder->ops->close(decoder);
	free(decoder);
}

void decoder_set_max_window(struct decoder *decoder, uint64_t nbytes)
{
	decoder->max_window_nbytes = nbytes;
}

uint64_t decoder_window_nbytes(const struct decoder *decoder)
{
	return decoder->window_nbytes;
}

size_t decoder_memory_nbytes(uint64_t window_nbytes)
{
	return sizeof(struct decoder) + ZSTD_DStreamInSize() +
	       ZSTD_estimateDStreamSize(window_nbytes);
}

/* Read more stored bytes until there are at least nbytes, or the file ends. */
static int refill(struct decoder *decoder, const struct file *file, int cancel_fd, size_t nbytes)
{
	const size_t n_stored = count_stored(decoder);
	size_t n;
	int r;

	if (n_stored >= nbytes || decoder->at_end)
		return 0;
	memmove(decoder->stored, decoder->stored + decoder->begin, n_stored);
	decoder->offset += decoder->begin;
	decoder->begin = 0;
	decoder->end = n_stored;
	r = file_read_next(file, decoder->stored + n_stored, decoder->capacity - n_stored,
			   cancel_fd, &n);
	if (r < 0)
		return r == -ECANCELED ? r : fail(r, "%s: read: %m", decoder->name);
	decoder->end += n;
	decoder->at_end = decoder->end < decoder->capacity;
	return 0;
}

/* Decode some content. *ret_is_end: there is no more. */
static int decode_some(struct decoder *decoder, const struct file *file, int cancel_fd,
		       unsigned char *buffer, size_t capacity, size_t *ret_nbytes, bool *ret_is_end)
{
	int r = refill(decoder, file, cancel_fd,
		       decoder->in_unit ? 1 : decoder->ops->header_nbytes);

	*ret_nbytes = 0;
	*ret_is_end = r == 0 && !decoder->in_unit && count_stored(decoder) == 0;
	if (r < 0 || *ret_is_end)
		return r;
	if (!decoder->in_unit)
		r = decoder->ops->begin_unit(decoder);
	if (r < 0 || !decoder->in_unit)
		return r;
	r = decoder->ops->decode(decoder, buffer, capacity, ret_nbytes);
	if (r == 0 && decoder->in_unit && decoder->at_end && *ret_nbytes == 0 &&
	    count_stored(decoder) == 0)
		r = fail(-EBADMSG,
			 "%s: compressed data is truncated: it ends at byte %" PRIu64
			 ", within a %s%s",
			 decoder->name, position(decoder), decoder->ops->unit,
			 damage_hint(decoder));
	decoder->has_content |= *ret_nbytes > 0;
	return r;
}

int decoder_read(struct decoder *decoder, const struct file *file, int cancel_fd, void *buffer,
		 size_t nbytes, size_t *ret_nbytes)
{
	unsigned char *const to = buffer;
	size_t n_read = 0, n;
	bool is_end = false;

	while (n_read < nbytes && !is_end) {
		const int r = decode_some(decoder, file, cancel_fd, to + n_read, nbytes - n_read,
					  &n, &is_end);

		if (r < 0)
			return r;
		n_read += n;
	}
	if (is_end && !decoder->has_begun)
		return fail(-EBADMSG, "%s: begins like compressed data, but has no content%s",
			    decoder->name, damage_hint(decoder));
	*ret_nbytes = n_read;
	return 0;
}

/* --- how Zstandard data begins --- */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they are");

enum zstd_frame_kind zstd_frame_detect(const unsigned char *bytes, size_t n, uint64_t *ret_nbytes)
{
	if (n >= 4 && load_4(bytes) == ZSTD_MAGICNUMBER)
		return ZSTD_FRAME_CONTENT;
	if (n < ZSTD_FRAME_PREFIX_NBYTES ||
	    (load_4(bytes) & ~UINT32_C(15)) != ZSTD_MAGIC_SKIPPABLE_START)
		return ZSTD_FRAME_NONE;
	*ret_nbytes = ZSTD_FRAME_PREFIX_NBYTES + (uint64_t)load_4(bytes + 4);
	return ZSTD_FRAME_SKIPPABLE;
}

size_t zstd_preview(const void *stored, size_t n, void *content, size_t capacity)
{
	ZSTD_DStream *zstd = ZSTD_createDStream();
	ZSTD_outBuffer out = { .dst = content, .size = capacity };
	ZSTD_inBuffer in = { .src = stored, .size = n };
	size_t result = 1;

	while (zstd && out.pos < capacity && in.pos < n && !ZSTD_isError(result))
		result = ZSTD_decompressStream(zstd, &out, &in);
	ZSTD_freeDStream(zstd);
	return out.pos;
}
