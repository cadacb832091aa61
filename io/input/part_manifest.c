/*
 * part_manifest - the files that a sorted output was divided into (see part_manifest.h)
 *
 * Numbers of records and bytes fit into the integers of JSON libraries, which have 63 bits, as no
 * file has more bytes; checksums, of 64, are digits. What is said twice (the records of all parts)
 * must agree, and what a reader would do otherwise than the writer meant is refused: a part that is
 * not where it stands, a name that leads out of the directory.
 */
#include "io/input/part_manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/record/layout.h"

#define MARK "gsort_part_manifest"
enum { VERSION = 1 };

/* No list has more bytes. */
static const uint64_t most_nbytes = UINT64_C(64) << 20;

static const char *const contents[] = {
	[PARTS_RECORDS] = "records",
	[PARTS_NPY] = "npy",
};
enum { N_CONTENTS = sizeof contents / sizeof contents[0] };

/* --- what it looks like --- */

static size_t skip_space(const char *text, size_t at, size_t n)
{
	while (at < n && strchr(" \t\r\n", text[at]) && text[at])
		at++;
	return at;
}

bool parts_list_begins(const void *head, size_t n)
{
	static const char mark[] = "\"" MARK "\"";
	const char *text = head;
	size_t at = skip_space(text, 0, n);

	if (at == n || text[at] != '{')
		return false;
	at = skip_space(text, at + 1, n);
	if (n - at < sizeof mark - 1 || memcmp(text + at, mark, sizeof mark - 1) != 0)
		return false;
	at = skip_space(text, at + sizeof mark - 1, n);
	return at < n && text[at] == ':';
}

bool parts_list_can_name(const char *name)
{
	json_t *string = json_string(name);
	const bool is_text = string != NULL; /* of UTF-8 */

	json_decref(string);
	return is_text && *name && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
}

/* --- keys, as they are said on a command line: "8:i64le:r" --- */

static json_t *format_key(const struct key *key)
{
	char type[KEY_TYPE_NBYTES];

	key_format_type(key, type);
	return json_sprintf("%" PRIu64 ":%s%s", key->offset, type, key->descending ? ":r" : "");
}

static bool parse_key(const char *text, uint64_t record_nbytes, struct key *ret_key)
{
	char type[KEY_TYPE_NBYTES];
	char *end;
	const uint64_t offset = strtoull(text, &end, 10);
	size_t n = strlen(end);
	const bool descending = n > 2 && strcmp(end + n - 2, ":r") == 0;

	if (*text < '0' || *text > '9' || *end++ != ':')
		return false;
	n = strlen(end) - (descending ? 2 : 0);
	if (n >= sizeof type)
		return false;
	memcpy(type, end, n);
	type[n] = '\0';
	if (key_parse_type(type, ret_key) < 0)
		return false;
	ret_key->offset = offset;
	ret_key->descending = descending;
	return ret_key->nbytes <= record_nbytes && offset <= record_nbytes - ret_key->nbytes;
}

/* --- reading --- */

int parts_list_read(const struct file *file, const char *path, char **ret_text, size_t *ret_nbytes)
{
	uint64_t nbytes;
	char *text;
	int r = file_size(file, &nbytes);

	if (r == 0 && nbytes > most_nbytes)
		r = -EFBIG;
	if (r < 0)
		return fail(r, "%s: %m", path);
	text = malloc(nbytes + 1);
	if (!text)
		return fail(-ENOMEM, "%s: no memory for a part manifest", path);
	r = file_read_at(file, 0, text, nbytes);
	if (r < 0) {
		free(text);
		return fail(r, "%s: read: %m", path);
	}
	*ret_text = text;
	*ret_nbytes = nbytes;
	return 0;
}

/* Of long keys only the beginning is there, which others may have. */
static bool is_whole(const struct parts_list *list, const char *digits)
{
	size_t nbytes = 0;

	for (uint32_t i = 0; i < list->n_keys; i++)
		nbytes += list->keys[i].nbytes;
	return digits && nbytes > 0 && strlen(digits) == 2 * nbytes;
}

bool parts_list_divides_key(const struct parts_list *list)
{
	const char *before = NULL;

	for (size_t i = 0; i < list->n_parts && list->at_keys; i++) {
		const struct listed_part *part = &list->parts[i];

		if (part->n_records == 0)
			continue;
		if (before && part->first_key && is_whole(list, before) &&
		    strcmp(before, part->first_key) == 0)
			return true;
		before = part->last_key;
	}
	return false;
}

static int fail_list(const char *path, const char *what)
{
	return fail(-EINVAL, "%s: invalid part manifest: %s", path, what);
}

static bool get_number(const json_t *object, const char *name, uint64_t *ret_number)
{
	const json_t *value = json_object_get(object, name);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	*ret_number = (uint64_t)json_integer_value(value);
	return true;
}

static bool get_checksum(const json_t *object, uint64_t *ret_checksum)
{
	const char *text = json_string_value(json_object_get(object, "checksum"));

	if (!text || strlen(text) != 16 || text[strspn(text, "0123456789abcdef")])
		return false;
	*ret_checksum = strtoull(text, NULL, 16);
	return true;
}

/* A copy, or NULL; false: no memory. */
static bool get_text(const json_t *object, const char *name, char **ret_text)
{
	const char *text = json_string_value(json_object_get(object, name));

	*ret_text = text ? strdup(text) : NULL;
	return !text || *ret_text;
}

static int parse_part(const json_t *object, size_t number, const char *path,
		      struct listed_part *part)
{
	uint64_t said;

	if (!get_text(object, "name", &part->name) ||
	    !get_text(object, "first_key", &part->first_key) ||
	    !get_text(object, "last_key", &part->last_key))
		return fail(-ENOMEM, "%s: no memory for a part manifest", path);
	if (!get_number(object, "number", &said) || said != number)
		return fail_list(path, "part numbers are not consecutive");
	if (!part->name || !parts_list_can_name(part->name))
		return fail_list(path, "the name of a part file is not a plain file name");
	if (!get_number(object, "records", &part->n_records) ||
	    !get_number(object, "bytes", &part->nbytes) || !get_checksum(object, &part->checksum))
		return fail_list(path, "a part file has no records, bytes or checksum");
	return 0;
}

static int parse_parts(const json_t *array, const char *path, struct parts_list *list)
{
	const size_t n = json_array_size(array);
	uint64_t sum = 0;

	if (n == 0)
		return fail_list(path, "it has no part files");
	list->parts = calloc(n, sizeof *list->parts);
	if (!list->parts)
		return fail(-ENOMEM, "%s: no memory for %zu part files", path, n);
	for (size_t i = 0; i < n; i++) {
		const int r = parse_part(json_array_get(array, i), i, path, &list->parts[i]);

		list->n_parts = i + 1;
		if (r < 0)
			return r;
		if (__builtin_add_overflow(sum, list->parts[i].n_records, &sum))
			return fail_list(path, "the number of records is too large");
	}
	return sum == list->n_records ?
		       0 :
		       fail_list(path, "the records of the part files do not add up");
}

static int parse_keys(const json_t *array, const char *path, struct parts_list *list)
{
	const size_t n = json_array_size(array);

	if (n > LAYOUT_MOST_RECORD_NBYTES)
		return fail_list(path, "it has more keys than a record has bytes");
	list->keys = calloc(n + 1, sizeof *list->keys);
	if (!list->keys)
		return fail(-ENOMEM, "%s: no memory for its keys", path);
	for (size_t i = 0; i < n; i++) {
		const char *text = json_string_value(json_array_get(array, i));

		if (!text || !parse_key(text, list->record_nbytes, &list->keys[i]))
			return fail_list(path, "a key does not fit its records");
		list->n_keys++;
	}
	return 0;
}

static bool get_content(const json_t *object, enum parts_content *ret_content)
{
	const char *text = json_string_value(json_object_get(object, "content"));

	for (unsigned i = 0; text && i < N_CONTENTS; i++) {
		if (strcmp(text, contents[i]))
			continue;
		*ret_content = i;
		return true;
	}
	return false;
}

static int parse_object(const json_t *object, const char *path, struct parts_list *list)
{
	uint64_t version;
	int r;

	if (!get_number(object, MARK, &version))
		return fail_list(path, "it has no version");
	if (version != VERSION)
		return fail(-EINVAL, "%s: part manifest has version %" PRIu64 ", not %d", path,
			    version, VERSION);
	if (!get_content(object, &list->content) ||
	    !get_number(object, "record_bytes", &list->record_nbytes) || list->record_nbytes < 1 ||
	    list->record_nbytes > LAYOUT_MOST_RECORD_NBYTES ||
	    !get_number(object, "header_bytes", &list->header_nbytes) ||
	    !get_number(object, "records", &list->n_records))
		return fail_list(path, "it does not describe its records");
	list->is_zstd = json_is_true(json_object_get(object, "zstd"));
	list->unique = json_is_true(json_object_get(object, "unique"));
	list->at_keys = json_is_true(json_object_get(object, "split_by_keys"));
	r = parse_keys(json_object_get(object, "keys"), path, list);
	if (r == 0)
		r = parse_parts(json_object_get(object, "part_files"), path, list);
	return r == 0 && parts_list_divides_key(list) ?
		       fail_list(path, "it says that no key is in two part files, but one is") :
		       r;
}

int parts_list_parse(const char *text, size_t nbytes, const char *path, struct parts_list *ret_list)
{
	json_error_t error;
	json_t *object;
	int r;

	*ret_list = (struct parts_list){ 0 };
	object = json_loadb(text, nbytes, JSON_REJECT_DUPLICATES, &error);
	if (!object)
		return fail(-EINVAL, "%s: part manifest: line %d is not JSON: %s", path, error.line,
			    error.text);
	r = parse_object(object, path, ret_list);
	json_decref(object);
	return r;
}

/* --- writing --- */

static json_t *format_checksum(uint64_t checksum)
{
	return json_sprintf("%016" PRIx64, checksum);
}

static json_t *format_part(const struct listed_part *part, size_t number)
{
	return json_pack("{sI ss sI sI ss* ss* so}", "number", (json_int_t)number, "name",
			 part->name, "records", (json_int_t)part->n_records, "bytes",
			 (json_int_t)part->nbytes, "first_key", part->first_key, "last_key",
			 part->last_key, "checksum", format_checksum(part->checksum));
}

static json_t *format_list(const struct parts_list *list)
{
	json_t *keys = json_array(), *parts = json_array();

	for (uint32_t i = 0; i < list->n_keys; i++)
		json_array_append_new(keys, format_key(&list->keys[i]));
	for (size_t i = 0; i < list->n_parts; i++)
		json_array_append_new(parts, format_part(&list->parts[i], i));
	if (json_array_size(keys) != list->n_keys || json_array_size(parts) != list->n_parts) {
		json_decref(keys);
		json_decref(parts);
		return NULL;
	}
	return json_pack("{si ss sb sI sI so sb sb sI so}", MARK, VERSION, "content",
			 contents[list->content], "zstd", list->is_zstd, "record_bytes",
			 (json_int_t)list->record_nbytes, "header_bytes",
			 (json_int_t)list->header_nbytes, "keys", keys, "unique", list->unique,
			 "split_by_keys", list->at_keys, "records", (json_int_t)list->n_records,
			 "part_files", parts);
}

int parts_list_format(const struct parts_list *list, char **ret_text)
{
	json_t *object = format_list(list);
	char *text = object ? json_dumps(object, JSON_INDENT(1) | JSON_PRESERVE_ORDER) : NULL;

	json_decref(object);
	if (!text)
		return fail(-ENOMEM, "no memory for %zu part files", list->n_parts);
	*ret_text = text;
	return 0;
}

static void free_part(struct listed_part *part)
{
	free(part->name);
	free(part->first_key);
	free(part->last_key);
}

void parts_list_free(struct parts_list *list)
{
	for (size_t i = 0; i < list->n_parts; i++)
		free_part(&list->parts[i]);
	free(list->parts);
	free(list->keys);
	*list = (struct parts_list){ 0 };
}
