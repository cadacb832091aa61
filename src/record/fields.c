/*
 * fields - the named parts of a record (see fields.h)
 */
#include "src/record/fields.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/messages.h"

int fields_add(struct fields *fields, struct field field)
{
	struct field *more = reallocarray(fields->fields, fields->n + 1, sizeof *more);

	if (!more)
		return fail(-ENOMEM, "no memory for %zu fields", fields->n + 1);
	fields->fields = more;
	field.name = strdup(field.name);
	field.spelling = field.spelling ? strdup(field.spelling) : NULL;
	more[fields->n++] = field;
	return field.name ? 0 : fail(-ENOMEM, "no memory for %zu fields", fields->n);
}

void fields_free(struct fields *fields)
{
	for (size_t i = 0; i < fields->n; i++) {
		free(fields->fields[i].name);
		free(fields->fields[i].spelling);
	}
	free(fields->fields);
	*fields = (struct fields){ 0 };
}

/* --- names and types --- */

static const struct field *find(const struct fields *fields, const char *name)
{
	for (size_t i = 0; i < fields->n; i++)
		if (*name && strcmp(fields->fields[i].name, name) == 0)
			return &fields->fields[i];
	return NULL;
}

/* One "NAME:TYPE", of n bytes. */
static int parse_one(const char *option, const char *text, size_t n, struct fields *fields)
{
	char name[256], meant[KEY_TYPE_NBYTES];
	const char *type;
	struct field field = { .name = name, .n = 1 };
	int r;

	snprintf(name, sizeof name, "%.*s", (int)n, text);
	type = strchr(name, ':');
	if (n >= sizeof name || !type || type == name)
		return fail(-EINVAL,
			    "%s: '%s': write NAME:TYPE,NAME:TYPE, such as id:u64,name:S6; x:V4 is "
			    "4 bytes",
			    option, text);
	name[type++ - name] = '\0';
	if (key_parse_type(type, &field.key) < 0 && key_suggest_type(type, meant))
		return fail(-EINVAL, "%s: field %s: unknown type '%s': did you mean %s?", option,
			    name, type, meant);
	if (!field.key.nbytes)
		return fail(-EINVAL, "%s: field %s: unknown type '%s'", option, name, type);
	if (find(fields, name))
		return fail(-EINVAL, "%s: there are two fields %s", option, name);
	field.key.offset = fields->record_nbytes;
	r = fields_add(fields, field);
	if (r == 0)
		fields->record_nbytes += field.key.nbytes;
	return r;
}

int fields_parse(const char *option, const char *text, struct fields *ret_fields)
{
	const char *at = text;
	int r;

	*ret_fields = (struct fields){ 0 };
	do {
		const size_t n = strcspn(at, ",");

		r = parse_one(option, at, n, ret_fields);
		at += n;
	} while (r == 0 && *at++ == ',');
	return r;
}

/* --- choosing --- */

/* Does the text end so? Then it does no longer. */
static bool cut(char *text, const char *end)
{
	const size_t n = strlen(text), n_end = strlen(end);

	if (n <= n_end || strcmp(text + n - n_end, end) != 0)
		return false;
	text[n - n_end] = '\0';
	return true;
}

int field_choice_parse(const char *text, struct field_choice *ret_choice)
{
	struct field_choice choice = { .name = strdup(text) };

	if (!choice.name)
		return fail(-ENOMEM, "no memory for a key");
	choice.descending = cut(choice.name, ":r");
	choice.numeric = cut(choice.name, ":n");
	choice.has_order = choice.numeric || cut(choice.name, ":t");
	*ret_choice = choice;
	return 0;
}

/* What is to be sorted by, with room for all of it. */
struct chosen {
	struct key *keys;
	uint32_t n;
};

static void add_keys(struct chosen *chosen, const struct field *field, uint32_t first, uint32_t n,
		     const struct field_choice *choice)
{
	for (uint32_t i = first; i < first + n; i++) {
		struct key key = field->key;

		key.offset += (uint64_t)i * key.nbytes;
		key.descending = choice->descending;
		if (choice->has_order)
			key.numeric = choice->numeric;
		chosen->keys[chosen->n++] = key;
	}
}

/* As many as a message has room for. */
static void list_names(const struct fields *fields, char text[static 256])
{
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < fields->n && n < 200; i++)
		if (*fields->fields[i].name)
			n += (size_t)snprintf(text + n, 256 - n, "%s%.40s", n ? ", " : "",
					      fields->fields[i].name);
	if (n == 0)
		snprintf(text, 256, "none");
}

static int fail_unknown(const struct fields *fields, const char *wanted, const char *name)
{
	char names[256];

	if (fields->are_columns)
		return fail(-EINVAL, "%s: there is no column %s: they are 0 to %" PRIu32, name,
			    wanted, fields->fields[0].n - 1);
	list_names(fields, names);
	return fail(-EINVAL, "%s: there is no field %s; those that have a name: %s", name, wanted,
		    names);
}

/* Is `name` within the structure `outer`: outer.name? */
static bool is_within(const char *name, const char *outer)
{
	const size_t n = strlen(outer);

	return strncmp(name, outer, n) == 0 && name[n] == '.';
}

/* A field, a structure with all of its fields, or the number of a column. */
static int choose(const struct fields *fields, const struct field_choice *choice, const char *name,
		  struct chosen *chosen)
{
	const struct field *field = find(fields, choice->name);
	const uint32_t n_before = chosen->n;
	char *end;

	if (fields->are_columns) {
		const unsigned long column = strtoul(choice->name, &end, 10);

		if (choice->name[0] >= '0' && choice->name[0] <= '9' && !*end &&
		    column < fields->fields[0].n)
			add_keys(chosen, fields->fields, (uint32_t)column, 1, choice);
	} else if (field) {
		add_keys(chosen, field, 0, field->n, choice);
	} else {
		for (size_t i = 0; i < fields->n; i++)
			if (is_within(fields->fields[i].name, choice->name))
				add_keys(chosen, &fields->fields[i], 0, fields->fields[i].n,
					 choice);
	}
	if (chosen->n == n_before)
		return fail_unknown(fields, choice->name, name);
	if (choice->has_order && !key_has_orders(&chosen->keys[n_before]))
		return fail(-EINVAL, "%s: the type of %s has no orders :n and :t", name,
			    choice->name);
	return 0;
}

/* All of them that have a name; of a record without names all that there is. */
static void choose_all(const struct fields *fields, struct chosen *chosen)
{
	const bool has_names = fields->n > 1 || (fields->n == 1 && *fields->fields[0].name);
	const struct field_choice any = { 0 };

	for (size_t i = 0; i < fields->n; i++)
		if (!has_names || *fields->fields[i].name)
			add_keys(chosen, &fields->fields[i], 0, fields->fields[i].n, &any);
}

int fields_choose(const struct fields *fields, const struct field_choice *choices, uint32_t n,
		  const char *name, struct key **ret_keys, uint32_t *ret_n_keys)
{
	struct chosen chosen = { 0 };
	size_t n_all = 0;
	int r = 0;

	for (size_t i = 0; i < fields->n; i++)
		n_all += fields->fields[i].n;
	chosen.keys = calloc((n_all + 1) * (n ? n : 1), sizeof *chosen.keys);
	if (!chosen.keys)
		return fail(-ENOMEM, "%s: no memory for its keys", name);
	if (n == 0)
		choose_all(fields, &chosen);
	for (uint32_t i = 0; i < n && r == 0; i++)
		if (choices[i].name)
			r = choose(fields, &choices[i], name, &chosen);
		else
			chosen.keys[chosen.n++] = choices[i].key;
	if (r == 0 && chosen.n == 0)
		r = fail(-EINVAL, "%s: has no field that could be sorted by", name);
	if (r < 0) {
		free(chosen.keys);
		return r;
	}
	*ret_keys = chosen.keys;
	*ret_n_keys = chosen.n;
	return 0;
}
