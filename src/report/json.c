/*
 * json - JSON as it is written, member by member (see json.h)
 */
#include "src/report/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/legible.h"

/* A new line, behind a comma if it is not the first. */
static void begin_line(struct json *json)
{
	if (json->depth == 0)
		return;
	fputs(json->has_member ? ",\n" : "\n", json->stream);
	fprintf(json->stream, "%*s", 2 * (int)json->depth, "");
}

static void begin_member(struct json *json, const char *name)
{
	assert(json->depth == 0 || (json->open[json->depth - 1] == '{') == (name != NULL));
	begin_line(json);
	if (name)
		fprintf(json->stream, "\"%s\": ", name);
	json->has_member = true;
}

void json_open(struct json *json, const char *name, char kind)
{
	assert(json->depth < JSON_MOST_DEPTH);
	begin_member(json, name);
	fputc(kind, json->stream);
	json->open[json->depth++] = kind;
	json->has_member = false;
}

void json_close(struct json *json)
{
	const char kind = json->open[--json->depth];

	if (json->has_member)
		fprintf(json->stream, "\n%*s", 2 * (int)json->depth, "");
	fputc(kind == '{' ? '}' : ']', json->stream);
	if (json->depth == 0)
		fputc('\n', json->stream);
	json->has_member = true;
}

void json_text(struct json *json, const char *name, const char *text)
{
	const size_t nbytes = text ? LEGIBLE_NBYTES(strlen(text)) : 0;
	char *line = malloc(nbytes);

	if (!text || !line) {
		json_none(json, name);
		free(line);
		return;
	}
	begin_member(json, name);
	fputc('"', json->stream);
	for (const char *c = legible(text, line, nbytes); *c; c++) {
		if (*c == '"' || *c == '\\')
			fputc('\\', json->stream);
		fputc(*c, json->stream);
	}
	fputc('"', json->stream);
	free(line);
}

void json_u64(struct json *json, const char *name, uint64_t number)
{
	begin_member(json, name);
	fprintf(json->stream, "%" PRIu64, number);
}

void json_bool(struct json *json, const char *name, bool is_true)
{
	begin_member(json, name);
	fputs(is_true ? "true" : "false", json->stream);
}

void json_none(struct json *json, const char *name)
{
	begin_member(json, name);
	fputs("null", json->stream);
}

void json_number(struct json *json, const char *name, double number, int digits)
{
	if (!isfinite(number)) {
		json_none(json, name);
		return;
	}
	begin_member(json, name);
	fprintf(json->stream, "%.*f", digits, number);
}
