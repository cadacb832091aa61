/*
 * key_encoding_plan - how keys that are all of a record become a code
 */
#pragma once

#include "src/record/layout.h"

/* Do the keys have each byte of a record of record_nbytes <= 16 once? */
bool key_encoding_covers(const struct key *keys, uint32_t n_keys, uint64_t record_nbytes);

/* For keys that do. */
struct key_encoding key_encoding_make(const struct key *keys, uint32_t n_keys,
				      uint64_t record_nbytes);
