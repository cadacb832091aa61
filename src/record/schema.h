/*
 * schema.h - the named fields of a record, and the keys that they make
 *
 * Some inputs describe the fields of their records (io/header/npy.h), or the user does (--fields).
 * A field has a name, a position and a type. It holds one key, or several of the same type one
 * after the other, such as the characters of a text or the columns of a row.
 *
 *	id:u64,time:i64be,name:S6	{ id, 0, u64 } { time, 8, i64be } { name, 16, b6 }
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/record/key_type.h"

struct field {
	char *name;                /* "": unnamed, cannot be a key; "a.b": member b of a */
	uint32_t base_name_offset; /* offset of "b" */
	struct key key;            /* the first one, at its offset in the record */
	uint32_t n;                /* at least 1 */
	bool is_opaque;            /* of a type that cannot be sorted by: it is carried along */
	bool is_padding;           /* unused bytes between fields */
	char *type_text;           /* the type as the input spells it; or NULL */
};

struct schema {
	struct field *fields; /* n, by position */
	size_t n;
	uint64_t record_nbytes;
	/* A single field, whose keys are named by their column numbers. */
	bool has_columns;
	uint32_t n_per_column;
	/*
	 * From a header of header_nbytes in a file. Then keys that contradict it are mistakes, and
	 * numbers are in numpy's order (:n) by default.
	 */
	bool from_file;
	uint64_t header_nbytes;
};

/* A key as the user asks for it: by field, NAME[:n|:t][:r], or by offset and type. */
struct key_request {
	char *text;
	struct key key; /* parsed as offset and type; nbytes 0: it is not that */
};

/* Return the text of the first key that is requested by name; NULL: all are by offset. */
static inline const char *key_requests_find_name(const struct key_request *requests, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!requests[i].key.nbytes)
			return requests[i].text;
	return NULL;
}

/* What the user has said about records. */
enum record_spec_kind {
	RECORD_SPEC_KEYS,     /* record size, and keys by offset and type */
	RECORD_SPEC_SIZE,     /* record size only; the key is the whole record */
	RECORD_SPEC_TYPE,     /* one key, which is the record */
	RECORD_SPEC_FIELDS,   /* the fields, with names */
	RECORD_SPEC_REQUESTS, /* keys that can only be found when the fields are known */
	RECORD_SPEC_NONE,
};

/*
 * Append a field; its strings are copied, type_text may be NULL. The offset is in its key.
 * record_nbytes is not changed. Returns 0 or -ENOMEM (reported).
 */
int schema_add_field(struct schema *schema, struct field field);

/*
 * Parse "NAME:TYPE,NAME:TYPE", fields without gaps. Returns 0 or a negative errno (reported; the
 * message begins with `option`). Free the fields in any case.
 */
int schema_parse(const char *option, const char *text, struct schema *ret_schema);

/* Keep the first n fields. */
void schema_truncate(struct schema *schema, size_t n);

void schema_free(struct schema *schema);

/*
 * Find the requested keys, in that order; without requests, all keys that there are. `name` of the
 * input is for messages. Keys by offset are not checked to lie in the record. Returns 0 and an
 * array for free(); -EINVAL (reported, with the names of the fields); or -ENOMEM (reported).
 */
int schema_resolve_keys(const struct schema *schema, const struct key_request *requests, uint32_t n,
			const char *name, struct key **ret_keys, uint32_t *ret_n_keys);

/* Get all keys, if they are of this type, which may have an order. */
int schema_resolve_typed(const struct schema *schema, const struct key *type, const char *name,
			 struct key **ret_keys, uint32_t *ret_n_keys);

/*
 * Check a key by offset against the field at that offset. It gets the default order of the file's
 * numbers, unless it has one. Returns 0 or -EINVAL (reported).
 */
int schema_check_key(const struct schema *schema, const char *name, struct key *key);
