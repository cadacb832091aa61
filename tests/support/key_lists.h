/*
 * key_lists.h - layouts from lists of keys in text: "0:u32 4:i32be:r"
 */
#pragma once

#include <stdio.h>
#include <string.h>

#include "src/record/layout.h"

enum { MAX_LISTED_KEYS = 16 };

/* Return whether the text is a list of keys and not a type such as "f64:n". */
static inline bool is_key_list(const char *text)
{
	return *text >= '0' && *text <= '9';
}

/* Return the number of keys, or 0 if it is no list. *ret_record_nbytes: end of the last key. */
static inline uint32_t key_list_parse(const char *text, bool reversed, struct key *keys,
				      uint64_t *ret_record_nbytes)
{
	uint64_t record_nbytes = 0;
	uint32_t n = 0;
	char type[16], direction[3];
	unsigned offset;
	int length;

	while (n < MAX_LISTED_KEYS && sscanf(text, " %u:%15[^: ]%n", &offset, type, &length) == 2) {
		struct key *key = &keys[n++];

		text += length;
		if (key_parse_type(type, key) < 0)
			return 0;
		key->offset = offset;
		key->descending = reversed;
		if (sscanf(text, "%2[:r]%n", direction, &length) == 1) {
			key->descending = !reversed;
			text += length;
		}
		if (offset + key->nbytes > record_nbytes)
			record_nbytes = offset + key->nbytes;
	}
	*ret_record_nbytes = record_nbytes;
	return *text ? 0 : n;
}

/* Make the layout of records that end with the last key. */
static inline int key_list_layout(const char *text, bool reversed, struct layout *ret_layout)
{
	struct key keys[MAX_LISTED_KEYS];
	struct layout_params request = { .keys = keys };

	request.n_keys = key_list_parse(text, reversed, keys, &request.record_nbytes);
	return request.n_keys ? layout_make(&request, ret_layout) : -1;
}

/* Keys that contain each byte of the record once, so that the encoding only moves bytes. */
static const char *const covering_lists[] = {
	"0:u32 4:u32",      /* one rotation */
	"4:u32 0:u32",      /* as it is */
	"0:u32be 4:u32be",  /* turned around */
	"4:i32be:r 0:f32",  /* two moves, and a sign to fold */
	"2:u16 0:u16",      /* words of 4 bytes */
	"1:i16be 0:u8:r",   /* 3 bytes */
	"0:f16 2:bf16be:r", /* floats of one width */
	"1:b4 0:bool 5:u8",
	"3:u32 0:u24",
	"8:u64 0:i64:r", /* words change places */
	"0:f64:r 8:f64be",
	"8:f32 0:f64", /* 12 bytes; floats of two widths */
	"4:f64 0:u32", /* across the words */
	"2:f64be:r 0:f16 10:f32 14:i16",
	"5:i72be 14:u16 0:u40:r",
	"15:u8 3:u8 7:u8 0:u8 12:u8 9:u8 1:u8 14:u8 6:u8 2:u8 13:u8 4:u8 10:u8 5:u8 11:u8 8:i8",
};

enum { N_COVERING_LISTS = sizeof covering_lists / sizeof covering_lists[0] };
