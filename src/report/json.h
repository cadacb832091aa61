/*
 * json - JSON as it is written, member by member
 *
 *	struct json json = { .stream = stream };
 *
 *	json_open(&json, NULL, '{');
 *	json_u64(&json, "record_bytes", 8);
 *	json_open(&json, "stages", '[');	of an array, members have no names
 *	json_text(&json, NULL, "read");
 *	json_close(&json);
 *	json_close(&json);
 *
 * Each member is a line, indented by how deep it is. Names are plain words. Whoever owns the stream
 * finds out whether it could be written.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_MOST_DEPTH = 8 };

struct json {
	FILE *stream;
	unsigned depth;
	char open[JSON_MOST_DEPTH]; /* '{' or '[', from the outside in */
	bool has_member;            /* in the innermost of them */
};

/* kind: '{' or '['. The outermost has no name, and the last json_close() ends the line. */
void json_open(struct json *json, const char *name, char kind);
void json_close(struct json *json);

/*
 * Any bytes: what is no text is written as an escape that a shell knows (src/base/legible.h). NULL:
 * null.
 */
void json_text(struct json *json, const char *name, const char *text);

void json_u64(struct json *json, const char *name, uint64_t number);
void json_bool(struct json *json, const char *name, bool is_true);
void json_none(struct json *json, const char *name);

/* With so many digits behind the point; null if it is no number. */
void json_number(struct json *json, const char *name, double number, int digits);
