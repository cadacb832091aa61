/*
 * json_writer - build an object of JSON by libjansson, and write it (see json_writer.h)
 */
#include "src/report/json_writer.h"

#include <errno.h>

#include "src/base/diagnostics.h"

void json_put(struct json_builder *builder, json_t *object, const char *name, json_t *value)
{
	if (json_object_set_new(object, name, value) < 0)
		builder->out_of_memory = true;
}

void json_append(struct json_builder *builder, json_t *array, json_t *value)
{
	if (json_array_append_new(array, value) < 0)
		builder->out_of_memory = true;
}

json_t *json_number(uint64_t number)
{
	return json_integer((json_int_t)number);
}

int json_write(const struct json_builder *builder, json_t *object, unsigned n_digits, FILE *stream)
{
	int r = 0;

	if (builder->out_of_memory)
		r = fail(-ENOMEM, "no memory for a report in JSON");
	else if (json_dumpf(object, stream, JSON_INDENT(2) | JSON_REAL_PRECISION(n_digits)) == 0)
		fputc('\n', stream);
	json_decref(object);
	return r;
}
