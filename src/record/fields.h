/*
 * fields - the named parts of a record, and the keys that they make
 *
 * Some records are known by more than their size: a file says of its items what is in them
 * (io/input/npy.h), or the user does (--fields). A field has a name, a place, and the type of what
 * is there: one key, or several of the same type, one after the other, as the characters of a text
 * or the columns of a row.
 *
 *	id:u64,time:i64be,name:S6	{ id, 0, u64 } { time, 8, i64be } { name, 16, b6 }
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/record/key_type.h"

struct field {
	char *name;     /* "": it has none, and cannot be a key */
	struct key key; /* of the first of them, at its place in the record */
	uint32_t n;     /* at least 1 */
	char *spelling; /* of the type, where the input has it; NULL */
};

struct fields {
	struct field *fields; /* n, in the order of their places */
	size_t n;
	uint64_t record_nbytes;
	bool are_columns; /* a single field, whose n keys are known by their numbers */
};

/* How a key is asked for: by the name of its field, or its place and type. */
struct field_choice {
	char *name;     /* NULL: */
	struct key key; /* by these */
	bool descending;
	bool has_order, numeric; /* :n or :t was given */
};

/*
 * Append a field, whose strings are copied; spelling may be NULL. Its key's offset is in it.
 * record_nbytes is left alone. Returns 0, or -ENOMEM after a message.
 */
int fields_add(struct fields *fields, struct field field);

/*
 * "NAME:TYPE,NAME:TYPE": one behind the other, without gaps. Returns 0, or a negative errno after a
 * message that begins with `option`. The fields are to be freed in any case.
 */
int fields_parse(const char *option, const char *text, struct fields *ret_fields);

/* A zeroed struct is fine. */
void fields_free(struct fields *fields);

/* "NAME[:n|:t][:r]" into *ret_choice, whose name is allocated. -ENOMEM after a message. */
int field_choice_parse(const char *text, struct field_choice *ret_choice);

/*
 * The keys that are asked for, in that order; if none are, all that there are. `name`, of the
 * input, is for messages. Of a key by its place it is not checked whether it is in the record.
 * Returns 0 and an array to free(); -EINVAL, after a message with the names that there are; or
 * -ENOMEM after one.
 */
int fields_choose(const struct fields *fields, const struct field_choice *choices, uint32_t n,
		  const char *name, struct key **ret_keys, uint32_t *ret_n_keys);
