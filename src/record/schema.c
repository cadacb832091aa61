/*
 * schema - the named parts of a record (see schema.h)
 */
#include "src/record/schema.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"

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

void fields_cut(struct fields *fields, size_t n)
{
	while (fields->n > n) {
		free(fields->fields[--fields->n].name);
		free(fields->fields[fields->n].spelling);
	}
}

void fields_free(struct fields *fields)
{
	fields_cut(fields, 0);
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

/* One "NAME:TYPE", which is cut in two. */
static int parse_one(const char *option, char *name, const char *text, struct fields *fields)
{
	struct field field = { .name = name, .n = 1 };
	char meant[KEY_TYPE_NBYTES], *type = strchr(name, ':');
	int r;

	if (!type || type == name)
		return fail(-EINVAL,
			    "%s: '%s': write NAME:TYPE,NAME:TYPE, such as id:u64,name:S6; x:V4 is "
			    "4 bytes",
			    option, text);
	*type++ = '\0';
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
		char *one = strndup(at, n);

		r = one ? parse_one(option, one, at, ret_fields) :
			  fail(-ENOMEM, "%s: no memory for it", option);
		free(one);
		at += n;
	} while (r == 0 && *at++ == ',');
	return r;
}
