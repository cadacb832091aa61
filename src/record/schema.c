/*
 * schema.c - the named fields of a record, and the keys that they make
 *
 * A key is requested by a name with an optional order, or by offset and type. Names of fields are
 * arbitrary: there may be a field "x:r", or "8:u8", or both "x" and "x:r". So everything that a
 * text can mean is looked for, and a text that can mean two things is refused.
 */
#include "src/record/schema.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"

int schema_add_field(struct schema *schema, struct field field)
{
	struct field *grown = reallocarray(schema->fields, schema->n + 1, sizeof *grown);

	if (!grown)
		return fail(-ENOMEM, "no memory for %zu fields", schema->n + 1);
	schema->fields = grown;
	field.name = strdup(field.name);
	field.type_text = field.type_text ? strdup(field.type_text) : NULL;
	grown[schema->n++] = field;
	return field.name ? 0 : fail(-ENOMEM, "no memory for %zu fields", schema->n);
}

void schema_truncate(struct schema *schema, size_t n)
{
	while (schema->n > n) {
		free(schema->fields[--schema->n].name);
		free(schema->fields[schema->n].type_text);
	}
}

void schema_free(struct schema *schema)
{
	schema_truncate(schema, 0);
	free(schema->fields);
	*schema = (struct schema){ 0 };
}

/* --- Fields --- */

static const struct field *find_field(const struct schema *schema, const char *name)
{
	for (size_t i = 0; i < schema->n; i++)
		if (*name && strcmp(schema->fields[i].name, name) == 0)
			return &schema->fields[i];
	return NULL;
}

/* Parse one "NAME:TYPE"; cuts `name` in two. */
static int parse_field(const char *option, char *name, const char *text, struct schema *schema)
{
	struct field field = { .name = name, .n = 1 };
	char suggestion[KEY_TYPE_NBYTES], *type = strchr(name, ':');
	int r;

	if (!type || type == name)
		return fail(-EINVAL,
			    "%s: '%s': write NAME:TYPE,NAME:TYPE, such as id:u64,name:S6; x:V4 is "
			    "4 bytes",
			    option, text);
	*type++ = '\0';
	if (key_parse_type(type, &field.key) < 0 && key_suggest_type(type, suggestion))
		return fail(-EINVAL, "%s: field %s: unknown type '%s': did you mean %s?", option,
			    name, type, suggestion);
	if (!field.key.nbytes)
		return fail(-EINVAL, "%s: field %s: unknown type '%s': " KEY_TYPES_HINT, option,
			    name, type);
	if (find_field(schema, name))
		return fail(-EINVAL, "%s: there are two fields %s", option, name);
	field.key.offset = schema->record_nbytes;
	r = schema_add_field(schema, field);
	if (r == 0)
		schema->record_nbytes += field.key.nbytes;
	return r;
}

int schema_parse(const char *option, const char *text, struct schema *ret_schema)
{
	const char *position = text;
	int r;

	*ret_schema = (struct schema){ 0 };
	do {
		const size_t n = strcspn(position, ",");
		char *field_text = strndup(position, n);

		r = field_text ? parse_field(option, field_text, position, ret_schema) :
				 fail(-ENOMEM, "%s: no memory for it", option);
		free(field_text);
		position += n;
	} while (r == 0 && *position++ == ',');
	return r;
}

/* --- Keys by name --- */

/* The suffixes of a name. */
static const struct key_order {
	const char *suffix;
	bool descending, has_order, numeric;
} orders[] = {
	{ .suffix = "" },
	{ .suffix = ":r", .descending = true },
	{ .suffix = ":n", .has_order = true, .numeric = true },
	{ .suffix = ":t", .has_order = true },
	{ .suffix = ":n:r", .has_order = true, .numeric = true, .descending = true },
	{ .suffix = ":t:r", .has_order = true, .descending = true },
	{ .suffix = ":numpy", .has_order = true, .numeric = true },
	{ .suffix = ":total", .has_order = true },
	{ .suffix = ":numpy:r", .has_order = true, .numeric = true, .descending = true },
	{ .suffix = ":total:r", .has_order = true, .descending = true },
};

enum { N_ORDERS = sizeof orders / sizeof orders[0] };

/* The keys found so far, with room for all. */
struct key_list {
	struct key *keys;
	uint32_t n;
};

/* What requests are resolved against, and the name of the input for messages. */
struct resolve_context {
	const struct schema *schema;
	const char *name;
};

static uint32_t schema_n_columns(const struct schema *schema)
{
	return schema->fields[0].n / schema->n_per_column;
}

static bool has_names(const struct schema *schema)
{
	return schema->n > 1 || (schema->n == 1 && *schema->fields[0].name);
}

static bool is_same_type(const struct key *a, const struct key *b)
{
	return a->kind == b->kind && a->nbytes == b->nbytes &&
	       (a->big_endian == b->big_endian || a->nbytes == 1);
}

/* --- Messages --- */

static int fail_mismatch(const struct resolve_context *context, const char *problem)
{
	const struct schema *schema = context->schema;

	if (schema->from_file)
		return fail(-EINVAL,
			    "%s: %s; omit -t, -R and -k, or use --skip-bytes=%" PRIu64
			    " with -t, or -R and -k, for plain records",
			    context->name, problem, schema->header_nbytes);
	return fail(-EINVAL, "%s: %s", context->name, problem);
}

enum { NAMES_NBYTES = 1024 };

/* List as many names as there is room for, and how many more there are. */
static void list_names(const struct schema *schema, char text[static NAMES_NBYTES])
{
	const size_t capacity = NAMES_NBYTES - 32; /* room for the number */
	size_t n = 0, n_omitted = 0;

	snprintf(text, NAMES_NBYTES, "none");
	for (size_t i = 0; i < schema->n; i++) {
		const char *name = schema->fields[i].name;

		if (n_omitted > 0 || n + strlen(name) + 2 > capacity)
			n_omitted += *name != '\0';
		else if (*name)
			n += (size_t)snprintf(text + n, NAMES_NBYTES - n, "%s%s", n ? ", " : "",
					      name);
	}
	if (n_omitted)
		snprintf(text + n, NAMES_NBYTES - n, "%s%zu %s", n ? ", and " : "", n_omitted,
			 n ? "more" : "long ones");
}

/* Return whether the text ends with the suffix and has other characters before it. */
static bool ends_with(const char *text, const char *suffix)
{
	const size_t n = strlen(text), n_suffix = strlen(suffix);

	return n > n_suffix && strcmp(text + n - n_suffix, suffix) == 0;
}

static int fail_unknown(const struct resolve_context *context, const char *text)
{
	const struct schema *schema = context->schema;
	char names[NAMES_NBYTES];

	if (ends_with(text, ":r:n") || ends_with(text, ":r:t") || ends_with(text, ":r:numpy") ||
	    ends_with(text, ":r:total")) {
		const char *order = strrchr(text, ':');

		return fail(-EINVAL, "%s: no field %s; the order precedes r: %.*s%s:r",
			    context->name, text, (int)(order - text) - 2, text, order);
	}
	if (schema->has_columns)
		return fail(-EINVAL, "%s: no column %s; columns are numbered from 0 to %" PRIu32,
			    context->name, text, schema_n_columns(schema) - 1);
	if (!has_names(schema))
		return fail(-EINVAL, "%s: no field %s: records are single values; omit -k",
			    context->name, text);
	if (strchr(text, ','))
		return fail(-EINVAL, "%s: no field %s; repeat -k for each key", context->name,
			    text);
	list_names(schema, names);
	return fail(-EINVAL, "%s: no field %s to sort by; named fields: %s", context->name, text,
		    names);
}

static int fail_ambiguous(const struct resolve_context *context, const char *text,
			  const struct field *field)
{
	return fail(-EINVAL,
		    "%s: %s is ambiguous; give the offset and type of the key, such as %" PRIu64
		    ":%s for field %s",
		    context->name, text, field->key.offset, key_format_type(&field->key).text,
		    field->name);
}

/* --- Names --- */

/* Return whether the field has that name, or is a member of the structure with that name. */
static bool is_named(const struct field *field, const char *name, size_t n)
{
	if (n == 0 || strncmp(field->name, name, n) != 0)
		return false;
	return field->name[n] == '\0' || (field->name[n] == '.' && n < field->base_name_offset);
}

/* Return whether the name, of n bytes, is the number of a column. */
static bool is_column(const struct schema *schema, const char *name, size_t n, uint32_t *ret_column)
{
	char *end;
	const unsigned long column = strtoul(name, &end, 10);

	if (*name < '0' || *name > '9' || (size_t)(end - name) != n ||
	    column >= schema_n_columns(schema))
		return false;
	*ret_column = (uint32_t)column;
	return true;
}

/*
 * Find the first field that the name refers to. *ret_is_unique: no other field has the same name.
 */
static const struct field *find_named_field(const struct schema *schema, const char *name, size_t n,
					    bool *ret_is_unique)
{
	const struct field *first_match = NULL;
	uint32_t column;
	unsigned n_exact = 0;

	if (schema->has_columns) {
		*ret_is_unique = true;
		return is_column(schema, name, n, &column) ? schema->fields : NULL;
	}
	for (size_t i = 0; i < schema->n; i++) {
		const struct field *field = &schema->fields[i];

		if (!is_named(field, name, n))
			continue;
		n_exact += field->name[n] == '\0';
		if (!first_match)
			first_match = field;
	}
	*ret_is_unique = n_exact < 2;
	return first_match;
}

/* Find all meanings of a text. Returns how many, with the first field and the order of one. */
static unsigned interpret_key_text(const struct resolve_context *context, const char *text,
				   const struct field **ret_field,
				   const struct key_order **ret_order)
{
	unsigned n_meanings = 0;

	for (unsigned i = 0; i < N_ORDERS; i++) {
		const struct field *field;
		bool is_unique;

		if (!ends_with(text, orders[i].suffix))
			continue;
		field = find_named_field(context->schema, text,
					 strlen(text) - strlen(orders[i].suffix), &is_unique);
		if (!field)
			continue;
		n_meanings += is_unique ? 1 : 2;
		*ret_field = field;
		*ret_order = &orders[i];
	}
	return n_meanings;
}

/* --- Choosing --- */

static int add_keys(const struct resolve_context *context, struct key_list *keys,
		    const struct field *field, uint32_t first, uint32_t n,
		    const struct key_order *order)
{
	if (field->is_opaque)
		return fail(-EINVAL,
			    "%s: field %s has type %.100s, not supported as a key; name other "
			    "fields by -k",
			    context->name, field->name, field->type_text);
	for (uint32_t i = first; i < first + n; i++) {
		struct key key = field->key;

		key.offset += (uint64_t)i * key.nbytes;
		key.descending = order->descending;
		key.has_explicit_order = order->has_order;
		if (order->has_order)
			key.numeric = order->numeric;
		keys->keys[keys->n++] = key;
	}
	return 0;
}

/* Add a field, all fields of a structure, or a column. */
static int add_named(const struct resolve_context *context, const char *text,
		     const struct key_order *order, struct key_list *keys)
{
	const struct schema *schema = context->schema;
	const size_t n = strlen(text) - strlen(order->suffix);
	const uint32_t n_before = keys->n;
	uint32_t column;
	int r = 0;

	if (schema->has_columns && is_column(schema, text, n, &column))
		r = add_keys(context, keys, schema->fields, column * schema->n_per_column,
			     schema->n_per_column, order);
	for (size_t i = 0; i < schema->n && r == 0 && !schema->has_columns; i++)
		if (is_named(&schema->fields[i], text, n))
			r = add_keys(context, keys, &schema->fields[i], 0, schema->fields[i].n,
				     order);
	if (r == 0 && order->has_order && !key_has_orders(&keys->keys[n_before]))
		r = fail(-EINVAL, "%s: the type of %.*s has no orders :n and :t", context->name,
			 (int)n, text);
	return r;
}

/* Return whether a key by offset agrees with the field there. Byte strings always do. */
static bool key_matches_field(const struct field *field, const struct key *key)
{
	const uint64_t begin = field->key.offset, nbytes = field->key.nbytes;

	if (key->offset >= begin + field->n * nbytes || begin >= key->offset + key->nbytes ||
	    field->key.kind == KEY_BYTES)
		return true;
	return is_same_type(key, &field->key) && key->offset >= begin &&
	       (key->offset - begin) % nbytes == 0;
}

int schema_check_key(const struct schema *schema, const char *name, struct key *key)
{
	const struct resolve_context context = { schema, name };
	char problem[256];

	if (!schema->from_file)
		return 0;
	if (!key->has_explicit_order)
		key->numeric = key_has_orders(key);
	for (size_t i = 0; i < schema->n; i++) {
		const struct field *field = &schema->fields[i];
		const struct key_type_text key_type = key_format_type(key),
					   field_type = key_format_type(&field->key);

		if (key_matches_field(field, key))
			continue;
		if (strcmp(key_type.text, field_type.text) == 0)
			snprintf(problem, sizeof problem,
				 "has %.100s of type %s from byte %" PRIu64
				 " on, but none begins at byte %" PRIu64,
				 *field->name ? field->name : "items", field_type.text,
				 field->key.offset, key->offset);
		else
			snprintf(problem, sizeof problem,
				 "has %.100s of type %s at byte %" PRIu64 ", and not %s",
				 *field->name ? field->name : "items", field_type.text,
				 field->key.offset, key_type.text);
		return fail_mismatch(&context, problem);
	}
	return 0;
}

static int resolve_key(const struct resolve_context *context, const struct key_request *request,
		       struct key_list *keys)
{
	const struct field *field = NULL;
	const struct key_order *order = NULL;
	const unsigned n_meanings = interpret_key_text(context, request->text, &field, &order);

	if (n_meanings + (request->key.nbytes > 0) > 1)
		return fail_ambiguous(context, request->text, field);
	if (n_meanings == 1)
		return add_named(context, request->text, order, keys);
	if (!request->key.nbytes)
		return fail_unknown(context, request->text);
	keys->keys[keys->n] = request->key;
	return schema_check_key(context->schema, context->name, &keys->keys[keys->n++]);
}

/* Add all fields but padding. A record without fields is a single key. */
static int add_all_keys(const struct resolve_context *context, const struct key_order *order,
			struct key_list *keys)
{
	const struct schema *schema = context->schema;
	int r = 0;

	for (size_t i = 0; i < schema->n && r == 0; i++)
		if (!has_names(schema) || !schema->fields[i].is_padding)
			r = add_keys(context, keys, &schema->fields[i], 0, schema->fields[i].n,
				     order);
	return r;
}

/* Allocate room for n keys, or for all that there are. */
static int resolve_begin(const struct resolve_context *context, uint32_t n,
			 struct key_list *ret_keys)
{
	size_t n_all = 1;

	for (size_t i = 0; i < context->schema->n; i++)
		n_all += context->schema->fields[i].n;
	*ret_keys = (struct key_list){ calloc(n_all * (n ? n : 1), sizeof(struct key)), 0 };
	return ret_keys->keys ? 0 : fail(-ENOMEM, "%s: no memory for its keys", context->name);
}

static int resolve_end(const struct resolve_context *context, struct key_list *keys, int r,
		       struct key **ret_keys, uint32_t *ret_n_keys)
{
	if (r == 0 && keys->n == 0)
		r = fail(-EINVAL, "%s: has no field that could be sorted by", context->name);
	if (r < 0) {
		free(keys->keys);
		return r;
	}
	*ret_keys = keys->keys;
	*ret_n_keys = keys->n;
	return 0;
}

int schema_resolve_keys(const struct schema *schema, const struct key_request *requests, uint32_t n,
			const char *name, struct key **ret_keys, uint32_t *ret_n_keys)
{
	const struct resolve_context context = { schema, name };
	struct key_list keys;
	int r = resolve_begin(&context, n, &keys);

	if (r < 0)
		return r;
	if (n == 0)
		r = add_all_keys(&context, &orders[0], &keys);
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = resolve_key(&context, &requests[i], &keys);
	return resolve_end(&context, &keys, r, ret_keys, ret_n_keys);
}

int schema_resolve_typed(const struct schema *schema, const struct key *type, const char *name,
			 struct key **ret_keys, uint32_t *ret_n_keys)
{
	const struct resolve_context context = { schema, name };
	const struct field *field = &schema->fields[0];
	const struct key_order order = { .suffix = "",
					 .has_order = type->has_explicit_order,
					 .numeric = type->numeric };
	const struct key_type_text key_type = key_format_type(type);
	char names[NAMES_NBYTES], problem[NAMES_NBYTES + 256];
	const bool is_single_type = schema->n == 1 && (schema->has_columns || field->n == 1);
	struct key_list keys;
	int r;

	if (is_single_type && is_same_type(type, &field->key)) {
		r = resolve_begin(&context, 0, &keys);
		if (r == 0)
			r = resolve_end(&context, &keys, add_all_keys(&context, &order, &keys),
					ret_keys, ret_n_keys);
		return r;
	}
	list_names(schema, names);
	if (is_single_type)
		snprintf(problem, sizeof problem, "is of type %s, and not %s",
			 key_format_type(&field->key).text, key_type.text);
	else if (has_names(schema))
		snprintf(problem, sizeof problem, "has records of fields, and not of %s: %s",
			 key_type.text, names);
	else
		snprintf(problem, sizeof problem, "is of type %s, and not %s",
			 field->type_text ? field->type_text : "text", key_type.text);
	return fail_mismatch(&context, problem);
}
