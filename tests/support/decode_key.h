/*
 * decode_key.h - the inverse of layout_encode(), one record at a time
 */
#pragma once

#include "src/record/layout.h"
#include "src/record/load_upto16.h"

static inline void layout_decode(const struct layout *decoded, encoded_key_t encoded, void *record)
{
	const struct key_encoding *encoding = &decoded->encoding;
	uint128_t raw;

	switch (encoding->element_nbytes) {
	case 4:
		raw = decode_raw_key_4((uint32_t)encoded, encoding);
		break;
	case 8:
		raw = decode_raw_key_8((uint64_t)encoded, encoding);
		break;
	default:
		raw = decode_raw_key_16(encoded, encoding);
	}
	store_upto_16(record, raw, encoding->record_nbytes);
}
