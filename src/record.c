/*
 * record - key types and layouts (see record.h)
 */
#include "src/record.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	enum key_kind kind;
	uint32_t nbytes;
} key_types[] = {
	{ "u8", KEY_UNSIGNED, 1 },  { "u16", KEY_UNSIGNED, 2 },   { "u32", KEY_UNSIGNED, 4 },
	{ "u64", KEY_UNSIGNED, 8 }, { "u128", KEY_UNSIGNED, 16 }, { "i8", KEY_SIGNED, 1 },
	{ "i16", KEY_SIGNED, 2 },   { "i32", KEY_SIGNED, 4 },     { "i64", KEY_SIGNED, 8 },
	{ "i128", KEY_SIGNED, 16 }, { "f32", KEY_FLOAT, 4 },      { "f64", KEY_FLOAT, 8 },
};

/* "b10": any number of bytes, compared as memcmp does. */
static int parse_bytes(const char *text, struct key *ret_key)
{
	char *end;
	unsigned long n;

	if (text[0] != 'b' || !isdigit((unsigned char)text[1]))
		return -EINVAL;
	errno = 0;
	n = strtoul(text + 1, &end, 10);
	if (errno || *end || n == 0 || n > UINT32_MAX)
		return -EINVAL;
	*ret_key = (struct key){ .nbytes = (uint32_t)n, .kind = KEY_BYTES, .big_endian = true };
	return 0;
}

int key_parse_type(const char *text, struct key *ret_key)
{
	for (size_t i = 0; i < sizeof key_types / sizeof key_types[0]; i++) {
		const size_t n = strlen(key_types[i].name);
		const char *order = text + n;

		if (strncmp(text, key_types[i].name, n) != 0)
			continue;
		if (*order && strcmp(order, "le") != 0 && strcmp(order, "be") != 0)
			continue;
		*ret_key = (struct key){ .nbytes = key_types[i].nbytes,
					 .kind = key_types[i].kind,
					 .big_endian = strcmp(order, "be") == 0 };
		return 0;
	}
	return parse_bytes(text, ret_key);
}

void key_format_type(const struct key *key, char text[static 16])
{
	static const char letters[] = {
		[KEY_UNSIGNED] = 'u', [KEY_SIGNED] = 'i', [KEY_FLOAT] = 'f', [KEY_BYTES] = 'b'
	};

	if (key->kind == KEY_BYTES)
		snprintf(text, 16, "b%u", (unsigned)key->nbytes);
	else
		snprintf(text, 16, "%c%u%s", letters[key->kind], (unsigned)key->nbytes * 8,
			 key->big_endian ? "be" : "le");
}

static struct mask128 mask_split(uint128_t mask)
{
	return (struct mask128){ .lo = (uint64_t)mask, .hi = (uint64_t)(mask >> 64) };
}

static struct code_map make_code_map(const struct key *key)
{
	const uint128_t sign = (uint128_t)1 << (key->nbytes * 8 - 1);
	const uint128_t all = sign | (sign - 1);
	uint128_t flip = 0;

	if (key->kind == KEY_SIGNED || key->kind == KEY_FLOAT)
		flip ^= sign;
	if (key->descending)
		flip ^= all;
	return (struct code_map){
		.record_nbytes = (uint8_t)key->nbytes,
		.element_nbytes = key->nbytes <= 4 ? 4 :
				  key->nbytes <= 8 ? 8 :
						     16,
		.swap = key->big_endian && key->nbytes > 1,
		.is_float = key->kind == KEY_FLOAT,
		.flip = mask_split(flip),
	};
}

int layout_make_plain(const struct key *key, struct layout *ret_layout)
{
	struct code_map map;

	if (key->offset != 0 || key->nbytes < 1 || key->nbytes > 16)
		return -ENOTSUP;
	map = make_code_map(key);
	*ret_layout = (struct layout){
		.key = *key,
		.record_nbytes = key->nbytes,
		.element_nbytes = map.element_nbytes,
		.stores_elements = map.element_nbytes == key->nbytes,
		.map = map,
	};
	return 0;
}

code_t layout_encode(const struct layout *layout, const void *record)
{
	const struct code_map *map = &layout->map;

	switch (map->element_nbytes) {
	case 4:
		return code_encode_4(code_load_4(record, map), map);
	case 8:
		return code_encode_8(code_load_8(record, map), map);
	default:
		return code_encode_16(code_load_16(record, map), map);
	}
}

void layout_decode(const struct layout *layout, code_t code, void *record)
{
	const struct code_map *map = &layout->map;

	switch (map->element_nbytes) {
	case 4:
		code_store_4(record, code_decode_4((uint32_t)code, map), map);
		break;
	case 8:
		code_store_8(record, code_decode_8((uint64_t)code, map), map);
		break;
	default:
		code_store_16(record, code_decode_16(code, map), map);
	}
}

code_t element_get(const void *elements, uint32_t element_nbytes, uint64_t i)
{
	const char *at = (const char *)elements + i * element_nbytes;
	uint32_t e4;
	uint64_t e8;
	uint128_t e16;

	switch (element_nbytes) {
	case 4:
		memcpy(&e4, at, 4);
		return e4;
	case 8:
		memcpy(&e8, at, 8);
		return e8;
	default:
		memcpy(&e16, at, 16);
		return e16;
	}
}
