/*
 * key_resolve - the keys that are asked for, of the fields that there are (see schema.h)
 *
 * A key is asked for by a name, with an order behind it, or by its place and type. The names of a
 * file are its own: x:r may be one, or 8:u8, and both x and x:r. So everything that a text can mean
 * is looked for, and what can mean two things is refused.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/record/schema.h"

/* What can stand behind a name. */
static const struct order {
	const char *end;
	bool descending, has_order, numeric;
} orders[] = {
	{ .end = "" },
	{ .end = ":r", .descending = true },
	{ .end = ":n", .has_order = true, .numeric = true },
	{ .end = ":t", .has_order = true },
	{ .end = ":n:r", .has_order = true, .numeric = true, .descending = true },
	{ .end = ":t:r", .has_order = true, .descending = true },
	{ .end = ":numpy", .has_order = true, .numeric = true },
	{ .end = ":total", .has_order = true },
	{ .end = ":numpy:r", .has_order = true, .numeric = true, .descending = true },
	{ .end = ":total:r", .has_order = true, .descending = true },
};

enum { N_ORDERS = sizeof orders / sizeof orders[0] };

/* What is to be sorted by, with room for all of it. */
struct chosen {
	struct key *keys;
	uint32_t n;
};

/* What is chosen from, and the input's name, for messages. */
struct choosing {
	const struct fields *fields;
	const char *name;
};

static uint32_t n_columns(const struct fields *fields)
{
	return fields->fields[0].n / fields->n_of_column;
}

static bool has_names(const struct fields *fields)
{
	return fields->n > 1 || (fields->n == 1 && *fields->fields[0].name);
}

static bool is_same_type(const struct key *a, const struct key *b)
{
	return a->kind == b->kind && a->nbytes == b->nbytes &&
	       (a->big_endian == b->big_endian || a->nbytes == 1);
}

/* --- messages --- */

static int refuse(const struct choosing *choosing, const char *what)
{
	const struct fields *fields = choosing->fields;

	return fail_hint(-EINVAL, fields->of_file ? HINT_BEHIND_HEADER : HINT_NONE,
			 fields->header_nbytes, "%s: %s", choosing->name, what);
}

enum { NAMES_NBYTES = 1024 };

/* As many as have room, each whole; and how many there are beside them. */
static void list_names(const struct fields *fields, char text[static NAMES_NBYTES])
{
	const size_t room = NAMES_NBYTES - 32; /* for the number */
	size_t n = 0, n_others = 0;

	snprintf(text, NAMES_NBYTES, "none");
	for (size_t i = 0; i < fields->n; i++) {
		const char *name = fields->fields[i].name;

		if (n_others > 0 || n + strlen(name) + 2 > room)
			n_others += *name != '\0';
		else if (*name)
			n += (size_t)snprintf(text + n, NAMES_NBYTES - n, "%s%s", n ? ", " : "",
					      name);
	}
	if (n_others)
		snprintf(text + n, NAMES_NBYTES - n, "%s%zu %s", n ? ", and " : "", n_others,
			 n ? "more" : "long ones");
}

/* Does the text end so, with something in front of it? */
static bool ends(const char *text, const char *end)
{
	const size_t n = strlen(text), n_end = strlen(end);

	return n > n_end && strcmp(text + n - n_end, end) == 0;
}

static int fail_unknown(const struct choosing *choosing, const char *text)
{
	const struct fields *fields = choosing->fields;
	char names[NAMES_NBYTES];

	if (ends(text, ":r:n") || ends(text, ":r:t") || ends(text, ":r:numpy") ||
	    ends(text, ":r:total")) {
		const char *order = strrchr(text, ':');

		return fail(-EINVAL, "%s: there is no field %s; an order stands before r: %.*s%s:r",
			    choosing->name, text, (int)(order - text) - 2, text, order);
	}
	if (fields->are_columns)
		return fail(-EINVAL, "%s: there is no column %s: they are 0 to %" PRIu32,
			    choosing->name, text, n_columns(fields) - 1);
	if (!has_names(fields))
		return fail_hint(-EINVAL, HINT_NO_KEY, 0,
				 "%s: there is no field %s: its records are one value each",
				 choosing->name, text);
	list_names(fields, names);
	return fail(-EINVAL, "%s: there is no field %s to sort by; those that have a name: %s",
		    choosing->name, text, names);
}

static int fail_ambiguous(const struct choosing *choosing, const char *text,
			  const struct field *field)
{
	char type[KEY_TYPE_NBYTES];

	key_format_type(&field->key, type);
	return fail(-EINVAL,
		    "%s: %s can mean more than one key here: give the one that is meant by its "
		    "place and type, such as %" PRIu64 ":%s for the field %s",
		    choosing->name, text, field->key.offset, type, field->name);
}

static int fail_opaque(const struct choosing *choosing, const struct field *field)
{
	return fail_hint(-EINVAL, HINT_OTHER_KEYS, 0,
			 "%s: field %s is of type %.100s, which gsort does not sort by",
			 choosing->name, field->name, field->spelling);
}

/* --- names --- */

/* Is the field of that name, or within the structure of that name? */
static bool is_named(const struct field *field, const char *name, size_t n)
{
	if (n == 0 || strncmp(field->name, name, n) != 0)
		return false;
	return field->name[n] == '\0' || (field->name[n] == '.' && n < field->own_name_at);
}

/* "12", of n bytes: the number of a column? */
static bool is_column(const struct fields *fields, const char *name, size_t n, uint32_t *ret_column)
{
	char *end;
	const unsigned long column = strtoul(name, &end, 10);

	if (*name < '0' || *name > '9' || (size_t)(end - name) != n || column >= n_columns(fields))
		return false;
	*ret_column = (uint32_t)column;
	return true;
}

/* The first field that such a name is one of; *ret_is_one: of fields of the same name, the only. */
static const struct field *find(const struct fields *fields, const char *name, size_t n,
				bool *ret_is_one)
{
	const struct field *found = NULL;
	uint32_t column;
	unsigned n_found = 0;

	if (fields->are_columns) {
		*ret_is_one = true;
		return is_column(fields, name, n, &column) ? fields->fields : NULL;
	}
	for (size_t i = 0; i < fields->n; i++) {
		const struct field *field = &fields->fields[i];

		if (!is_named(field, name, n))
			continue;
		n_found += field->name[n] == '\0';
		if (!found)
			found = field;
	}
	*ret_is_one = n_found < 2;
	return found;
}

/* What the text can mean: the first field of it, the order, and in how many ways. */
static unsigned understand(const struct choosing *choosing, const char *text,
			   const struct field **ret_field, const struct order **ret_order)
{
	unsigned n_ways = 0;

	for (unsigned i = 0; i < N_ORDERS; i++) {
		const struct field *field;
		bool is_one;

		if (!ends(text, orders[i].end))
			continue;
		field = find(choosing->fields, text, strlen(text) - strlen(orders[i].end), &is_one);
		if (!field)
			continue;
		n_ways += is_one ? 1 : 2;
		*ret_field = field;
		*ret_order = &orders[i];
	}
	return n_ways;
}

/* --- choosing --- */

static int add_keys(const struct choosing *choosing, struct chosen *chosen,
		    const struct field *field, uint32_t first, uint32_t n,
		    const struct order *order)
{
	if (field->is_opaque)
		return fail_opaque(choosing, field);
	for (uint32_t i = first; i < first + n; i++) {
		struct key key = field->key;

		key.offset += (uint64_t)i * key.nbytes;
		key.descending = order->descending;
		key.has_order = order->has_order;
		if (order->has_order)
			key.numeric = order->numeric;
		chosen->keys[chosen->n++] = key;
	}
	return 0;
}

/* A field, a structure with all of its fields, or the number of a column. */
static int add_named(const struct choosing *choosing, const char *text, const struct order *order,
		     struct chosen *chosen)
{
	const struct fields *fields = choosing->fields;
	const size_t n = strlen(text) - strlen(order->end);
	const uint32_t n_before = chosen->n;
	uint32_t column;
	int r = 0;

	if (fields->are_columns && is_column(fields, text, n, &column))
		r = add_keys(choosing, chosen, fields->fields, column * fields->n_of_column,
			     fields->n_of_column, order);
	for (size_t i = 0; i < fields->n && r == 0 && !fields->are_columns; i++)
		if (is_named(&fields->fields[i], text, n))
			r = add_keys(choosing, chosen, &fields->fields[i], 0, fields->fields[i].n,
				     order);
	if (r == 0 && order->has_order && !key_has_orders(&chosen->keys[n_before]))
		r = fail(-EINVAL, "%s: the type of %.*s has no orders :n and :t", choosing->name,
			 (int)n, text);
	return r;
}

/* Does a key at its place agree with what the field says that is there? Bytes may be anything. */
static bool agrees(const struct field *field, const struct key *key)
{
	const uint64_t begin = field->key.offset, nbytes = field->key.nbytes;

	if (key->offset >= begin + field->n * nbytes || begin >= key->offset + key->nbytes ||
	    field->key.kind == KEY_BYTES)
		return true;
	return is_same_type(key, &field->key) && key->offset >= begin &&
	       (key->offset - begin) % nbytes == 0;
}

int fields_place(const struct fields *fields, const char *name, struct key *key)
{
	const struct choosing choosing = { fields, name };
	char given[KEY_TYPE_NBYTES], found[KEY_TYPE_NBYTES], what[256];

	if (!fields->of_file)
		return 0;
	if (!key->has_order)
		key->numeric = key_has_orders(key);
	for (size_t i = 0; i < fields->n; i++) {
		const struct field *field = &fields->fields[i];

		if (agrees(field, key))
			continue;
		key_format_type(key, given);
		key_format_type(&field->key, found);
		if (strcmp(given, found) == 0)
			snprintf(what, sizeof what,
				 "has %.100s of type %s from byte %" PRIu64
				 " on, none of which begins at byte %" PRIu64,
				 *field->name ? field->name : "items", found, field->key.offset,
				 key->offset);
		else
			snprintf(what, sizeof what,
				 "has %.100s of type %s at byte %" PRIu64 ", and not %s",
				 *field->name ? field->name : "items", found, field->key.offset,
				 given);
		return refuse(&choosing, what);
	}
	return 0;
}

static int choose(const struct choosing *choosing, const struct field_choice *choice,
		  struct chosen *chosen)
{
	const struct field *field = NULL;
	const struct order *order = NULL;
	const unsigned n_ways = understand(choosing, choice->text, &field, &order);

	if (n_ways + (choice->key.nbytes > 0) > 1)
		return fail_ambiguous(choosing, choice->text, field);
	if (n_ways == 1)
		return add_named(choosing, choice->text, order, chosen);
	if (!choice->key.nbytes)
		return fail_unknown(choosing, choice->text);
	chosen->keys[chosen->n] = choice->key;
	return fields_place(choosing->fields, choosing->name, &chosen->keys[chosen->n++]);
}

/* All of them but what is between them; of a record without names all that there is. */
static int choose_all(const struct choosing *choosing, const struct order *order,
		      struct chosen *chosen)
{
	const struct fields *fields = choosing->fields;
	int r = 0;

	for (size_t i = 0; i < fields->n && r == 0; i++)
		if (!has_names(fields) || !fields->fields[i].is_padding)
			r = add_keys(choosing, chosen, &fields->fields[i], 0, fields->fields[i].n,
				     order);
	return r;
}

/* Room for n choices, or for all that there is. */
static int begin(const struct choosing *choosing, uint32_t n, struct chosen *ret_chosen)
{
	size_t n_all = 1;

	for (size_t i = 0; i < choosing->fields->n; i++)
		n_all += choosing->fields->fields[i].n;
	*ret_chosen = (struct chosen){ calloc(n_all * (n ? n : 1), sizeof(struct key)), 0 };
	return ret_chosen->keys ? 0 : fail(-ENOMEM, "%s: no memory for its keys", choosing->name);
}

static int end(const struct choosing *choosing, struct chosen *chosen, int r, struct key **ret_keys,
	       uint32_t *ret_n_keys)
{
	if (r == 0 && chosen->n == 0)
		r = fail(-EINVAL, "%s: has no field that could be sorted by", choosing->name);
	if (r < 0) {
		free(chosen->keys);
		return r;
	}
	*ret_keys = chosen->keys;
	*ret_n_keys = chosen->n;
	return 0;
}

int fields_choose(const struct fields *fields, const struct field_choice *choices, uint32_t n,
		  const char *name, struct key **ret_keys, uint32_t *ret_n_keys)
{
	const struct choosing choosing = { fields, name };
	struct chosen chosen;
	int r = begin(&choosing, n, &chosen);

	if (r < 0)
		return r;
	if (n == 0)
		r = choose_all(&choosing, &orders[0], &chosen);
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = choose(&choosing, &choices[i], &chosen);
	return end(&choosing, &chosen, r, ret_keys, ret_n_keys);
}

int fields_choose_typed(const struct fields *fields, const struct key *type, const char *name,
			struct key **ret_keys, uint32_t *ret_n_keys)
{
	const struct choosing choosing = { fields, name };
	const struct field *field = &fields->fields[0];
	const struct order order = { .end = "",
				     .has_order = type->has_order,
				     .numeric = type->numeric };
	char given[KEY_TYPE_NBYTES], found[KEY_TYPE_NBYTES], names[NAMES_NBYTES],
		what[NAMES_NBYTES + 256];
	const bool is_one_type = fields->n == 1 && (fields->are_columns || field->n == 1);
	struct chosen chosen;
	int r;

	if (is_one_type && is_same_type(type, &field->key)) {
		r = begin(&choosing, 0, &chosen);
		if (r == 0)
			r = end(&choosing, &chosen, choose_all(&choosing, &order, &chosen),
				ret_keys, ret_n_keys);
		return r;
	}
	key_format_type(type, given);
	key_format_type(&field->key, found);
	list_names(fields, names);
	if (is_one_type)
		snprintf(what, sizeof what, "is of type %s, and not %s", found, given);
	else if (has_names(fields))
		snprintf(what, sizeof what, "has records of fields, and not of %s: %s", given,
			 names);
	else
		snprintf(what, sizeof what, "is of type %s, and not %s",
			 field->spelling ? field->spelling : "text", given);
	return refuse(&choosing, what);
}
