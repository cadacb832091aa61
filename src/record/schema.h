/*
 * schema - the named parts of a record, and the keys that they make
 *
 * Some records are known by more than their size: a file says of its items what is in them
 * (io/header/npy.h), or the user does (--fields). A field has a name, a place, and the type of what
 * is there: one key, or several of the same type, one after the other, as the characters of a text
 * or the columns of a row.
 *
 *	id:u64,time:i64be,name:S6	{ id, 0, u64 } { time, 8, i64be } { name, 16, b6 }
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/record/key_type.h"

struct field {
	char *name;                /* "": it has none, and cannot be a key; a.b: b, within a */
	uint32_t base_name_offset; /* where b begins */
	struct key key;            /* of the first of them, at its place in the record */
	uint32_t n;                /* at least 1 */
	bool is_opaque;            /* of no type that can be sorted by: it is carried along */
	bool is_padding;           /* nothing in particular, between the others */
	char *type_text;           /* of the type, where the input has it; NULL */
};

struct schema {
	struct field *fields; /* n, in the order of their places */
	size_t n;
	uint64_t record_nbytes;
	/* A single field, of which each n_per_column keys are known by their number. */
	bool has_columns;
	uint32_t n_per_column;
	/*
	 * A file says it of itself, in a header of so many bytes: what contradicts that is a
	 * mistake, and numbers are in numpy's order (:n) unless something else is said.
	 */
	bool from_file;
	uint64_t header_nbytes;
};

/* How a key is asked for: by the name of its field, NAME[:n|:t][:r], or by its place and type. */
struct key_request {
	char *text;
	struct key key; /* what the text is, if it is a place and type; nbytes 0: it is none */
};

/* What has been said of records, by who wants them sorted. */
enum record_spec_kind {
	RECORD_SPEC_KEYS,     /* how many bytes they have, and keys by place and type */
	RECORD_SPEC_SIZE,     /* how many bytes; the key is all of them */
	RECORD_SPEC_TYPE,     /* one key, which is the record */
	RECORD_SPEC_FIELDS,   /* what they consist of, by names */
	RECORD_SPEC_REQUESTS, /* keys that only who knows what is in a record can find */
	RECORD_SPEC_NONE,
};

/*
 * Append a field, whose strings are copied; spelling may be NULL. Its key's offset is in it.
 * record_nbytes is left alone. Returns 0, or -ENOMEM after a message.
 */
int schema_add_field(struct schema *schema, struct field field);

/*
 * "NAME:TYPE,NAME:TYPE": one behind the other, without gaps. Returns 0, or a negative errno after a
 * message that begins with `option`. The fields are to be freed in any case.
 */
int schema_parse(const char *option, const char *text, struct schema *ret_schema);

/* Leave the first n of them. */
void schema_truncate(struct schema *schema, size_t n);

/* A zeroed struct is fine. */
void schema_free(struct schema *schema);

/*
 * The keys that are asked for, in that order; if none are, all that there are. `name`, of the
 * input, is for messages. Of a key by its place it is not checked whether it is in the record.
 * Returns 0 and an array to free(); -EINVAL, after a message with the names that there are; or
 * -ENOMEM after one.
 */
int schema_resolve_keys(const struct schema *schema, const struct key_request *requests, uint32_t n,
			const char *name, struct key **ret_keys, uint32_t *ret_n_keys);

/* The same, of all of them, if they are of this type, which may say in which order. */
int schema_resolve_typed(const struct schema *schema, const struct key *type, const char *name,
			 struct key **ret_keys, uint32_t *ret_n_keys);

/*
 * A key by its place: does it agree with what a file says that is there? Then it has the order of
 * the file's numbers, unless it has one. Returns 0, or -EINVAL after a message.
 */
int schema_check_key(const struct schema *schema, const char *name, struct key *key);
