/*
 * zst_frame - how what is compressed by Zstandard begins (see zst_frame.h)
 */
#include "io/codec/zst_frame.h"

#include <string.h>
#include <zstd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they are");

static uint32_t load32(const unsigned char *from)
{
	uint32_t value;

	memcpy(&value, from, sizeof value);
	return value;
}

enum zst_frame_kind zst_frame_detect(const unsigned char *bytes, size_t n, uint64_t *ret_nbytes)
{
	if (n >= 4 && load32(bytes) == ZSTD_MAGICNUMBER)
		return ZST_FRAME_CONTENT;
	if (n < ZST_FRAME_PREFIX_NBYTES ||
	    (load32(bytes) & ~UINT32_C(15)) != ZSTD_MAGIC_SKIPPABLE_START)
		return ZST_FRAME_NONE;
	*ret_nbytes = ZST_FRAME_PREFIX_NBYTES + (uint64_t)load32(bytes + 4);
	return ZST_FRAME_SKIPPABLE;
}

size_t zst_frame_preview(const void *stored, size_t n, void *content, size_t capacity)
{
	ZSTD_DStream *decoder = ZSTD_createDStream();
	ZSTD_outBuffer out = { .dst = content, .size = capacity };
	ZSTD_inBuffer in = { .src = stored, .size = n };
	size_t result = 1;

	while (decoder && out.pos < capacity && in.pos < n && !ZSTD_isError(result))
		result = ZSTD_decompressStream(decoder, &out, &in);
	ZSTD_freeDStream(decoder);
	return out.pos;
}
