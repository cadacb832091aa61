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

/* --- names and types --- */

static const struct field *find_field(const struct schema *schema, const char *name)
{
	for (size_t i = 0; i < schema->n; i++)
		if (*name && strcmp(schema->fields[i].name, name) == 0)
			return &schema->fields[i];
	return NULL;
}

/* One "NAME:TYPE", which is cut in two. */
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
