/*
 * json_writer - build an object of JSON by libjansson, and write it
 *
 * A failed allocation is a NULL on its way into an object. The builder remembers it, and
 * json_write() reports it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A zeroed struct is ready. */
struct json_builder {
	bool out_of_memory;
};

/* Add a member or an element; the object or array owns the value. */
void json_put(struct json_builder *builder, json_t *object, const char *name, json_t *value);
void json_append(struct json_builder *builder, json_t *array, json_t *value);

json_t *json_number(uint64_t number);

/*
 * Write the object, indented, and free it. Reals have at most n_digits significant digits; with 15
 * or fewer, 0.1 stays 0.1. Returns 0, or -ENOMEM after a message; the owner of the stream checks
 * whether it could be written.
 */
int json_write(const struct json_builder *builder, json_t *object, unsigned n_digits, FILE *stream);
