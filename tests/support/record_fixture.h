/*
 * record_fixture.h - layouts, records and items for tests, in guarded buffers
 */
#pragma once

#include "src/record/layout.h"
#include "tests/support/guarded.h"
#include "tests/support/random_keys.h"

#include "tests/support/unit_test.h"

/* Make the layout of records with keys "OFFSET:TYPE[:r]" and the other members of `request`. */
static inline struct layout make_layout_of_keys(struct layout_params request,
						const char *const *texts)
{
	struct key keys[8];
	struct layout layout;

	request.keys = keys;
	for (; texts[request.n_keys]; request.n_keys++) {
		struct key *key = &keys[request.n_keys];
		const char *text = texts[request.n_keys];
		unsigned offset;
		char type[16];

		assert_int_equal(sscanf(text, "%u:%15s", &offset, type), 2);
		if (strlen(type) > 2 && strcmp(type + strlen(type) - 2, ":r") == 0)
			type[strlen(type) - 2] = '\0';
		assert_int_equal(key_parse_type(type, key), 0);
		key->offset = offset;
		key->descending = strcmp(text + strlen(text) - 2, ":r") == 0;
	}
	assert_int_equal(layout_make(&request, &layout), 0);
	return layout;
}

#define KEYS(...)                                                                                  \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

/* Make a layout of records with random keys. */
static inline struct layout make_random_layout(uint64_t record_nbytes, uint64_t seed)
{
	struct key keys[MAX_RANDOM_KEYS];
	struct layout layout;
	const struct layout_params request = { .record_nbytes = record_nbytes,
					       .keys = keys,
					       .n_keys = random_keys(record_nbytes, seed, keys),
					       .force_records = true,
					       .needs_equality = true };

	assert_int_equal(layout_make(&request, &layout), 0);
	return layout;
}

/* Make nbytes of random records in a guarded buffer. */
static inline unsigned char *make_random_bytes(uint64_t nbytes, uint64_t seed)
{
	unsigned char *bytes = guarded_alloc(nbytes);

	for (uint64_t i = 0; i < nbytes; i++)
		bytes[i] = (unsigned char)random_number(seed, i);
	return bytes;
}
