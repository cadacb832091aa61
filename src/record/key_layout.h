/*
 * key_layout.h - keys as encoded keys and as fields of a normalised key, for layout.c
 */
#pragma once

#include "src/record/key_encoding.h"
#include "src/record/key_type.h"
#include "src/record/normalised_key.h"

/*
 * Return whether the keys can be encoded: they cover each byte of a record of at most 16 bytes
 * exactly once.
 */
bool key_encoding_covers(const struct key *keys, uint32_t n_keys, uint64_t record_nbytes);

/* Make the encoding of keys for which that is so. */
struct key_encoding key_encoding_make(const struct key *keys, uint32_t n_keys,
				      uint64_t record_nbytes);

/*
 * Make the fields of the keys, each at its offset in the record, or with `packed` one after the
 * other, after first_offset bytes. refined: floats in numeric order become KEY_FORM_REFINED.
 * Returns 0 or -ENOMEM (reported).
 */
int key_fields_make(const struct key *keys, uint32_t n_keys, bool packed, uint64_t first_offset,
		    bool refined, struct key_fields *ret_fields);

/* Return the size of a key in the normalised key. */
uint32_t key_normalised_nbytes(const struct key *key);

/*
 * Return the encoding of a field of at most 16 bytes as if it were a record; any form but
 * KEY_FORM_NANS. Of two fields that differ in the normalised key the lower one is encoded lower.
 */
struct key_encoding key_field_encoding(const struct key_field *field);
