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

#define MANIFEST_MARK "gsort_part_manifest"
enum { VERSION = 1 };

/* No list has more bytes. */
static const uint64_t max_manifest_nbytes = UINT64_C(64) << 20;

static const char *const content_names[] = {
	[PART_CONTENT_RECORDS] = "records",
	[PART_CONTENT_NPY] = "npy",
};
enum { N_CONTENTS = sizeof content_names / sizeof content_names[0] };

/* --- what it looks like --- */

static size_t skip_space(const char *text, size_t offset, size_t n)
{
	while (offset < n && strchr(" \t\r\n", text[offset]) && text[offset])
		offset++;
	return offset;
}

bool part_manifest_detect(const void *head, size_t n)
{
	static const char mark[] = "\"" MANIFEST_MARK "\"";
	const char *text = head;
	size_t offset = skip_space(text, 0, n);

	if (offset == n || text[offset] != '{')
		return false;
	offset = skip_space(text, offset + 1, n);
	if (n - offset < sizeof mark - 1 || memcmp(text + offset, mark, sizeof mark - 1) != 0)
		return false;
	offset = skip_space(text, offset + sizeof mark - 1, n);
	return offset < n && text[offset] == ':';
}

bool part_manifest_is_valid_name(const char *name)
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

int part_manifest_read(const struct file *file, const char *path, char **ret_text,
		       size_t *ret_nbytes)
{
	uint64_t nbytes;
	char *text;
	int r = file_size(file, &nbytes);

	if (r == 0 && nbytes > max_manifest_nbytes)
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
static bool is_complete_key(const struct part_manifest *manifest, const char *digits)
{
	size_t nbytes = 0;

	for (uint32_t i = 0; i < manifest->n_keys; i++)
		nbytes += manifest->keys[i].nbytes;
	return digits && nbytes > 0 && strlen(digits) == 2 * nbytes;
}

bool part_manifest_splits_key(const struct part_manifest *manifest)
{
	const char *previous_key = NULL;

	for (size_t i = 0; i < manifest->n_parts && manifest->split_by_keys; i++) {
		const struct manifest_part *part = &manifest->parts[i];

		if (part->n_records == 0)
			continue;
		if (previous_key && part->first_key && is_complete_key(manifest, previous_key) &&
		    strcmp(previous_key, part->first_key) == 0)
			return true;
		previous_key = part->last_key;
	}
	return false;
}

static int fail_bad_manifest(const char *path, const char *reason)
{
	return fail(-EINVAL, "%s: invalid part manifest: %s", path, reason);
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
static bool copy_text(const json_t *object, const char *name, char **ret_text)
{
	const char *text = json_string_value(json_object_get(object, name));

	*ret_text = text ? strdup(text) : NULL;
	return !text || *ret_text;
}

static int parse_part(const json_t *object, size_t number, const char *path,
		      struct manifest_part *part)
{
	uint64_t value;

	if (!copy_text(object, "name", &part->name) ||
	    !copy_text(object, "first_key", &part->first_key) ||
	    !copy_text(object, "last_key", &part->last_key))
		return fail(-ENOMEM, "%s: no memory for a part manifest", path);
	if (!get_number(object, "number", &value) || value != number)
		return fail_bad_manifest(path, "part numbers are not consecutive");
	if (!part->name || !part_manifest_is_valid_name(part->name))
		return fail_bad_manifest(path, "the name of a part file is not a plain file name");
	if (!get_number(object, "records", &part->n_records) ||
	    !get_number(object, "bytes", &part->nbytes) || !get_checksum(object, &part->checksum))
		return fail_bad_manifest(path, "a part file has no records, bytes or checksum");
	return 0;
}

static int parse_parts(const json_t *array, const char *path, struct part_manifest *manifest)
{
	const size_t n = json_array_size(array);
	uint64_t sum = 0;

	if (n == 0)
		return fail_bad_manifest(path, "it has no part files");
	manifest->parts = calloc(n, sizeof *manifest->parts);
	if (!manifest->parts)
		return fail(-ENOMEM, "%s: no memory for %zu part files", path, n);
	for (size_t i = 0; i < n; i++) {
		const int r = parse_part(json_array_get(array, i), i, path, &manifest->parts[i]);

		manifest->n_parts = i + 1;
		if (r < 0)
			return r;
		if (__builtin_add_overflow(sum, manifest->parts[i].n_records, &sum))
			return fail_bad_manifest(path, "the number of records is too large");
	}
	return sum == manifest->n_records ?
		       0 :
		       fail_bad_manifest(path, "the records of the part files do not add up");
}

static int parse_keys(const json_t *array, const char *path, struct part_manifest *manifest)
{
	const size_t n = json_array_size(array);

	if (n > LAYOUT_MAX_RECORD_NBYTES)
		return fail_bad_manifest(path, "it has more keys than a record has bytes");
	manifest->keys = calloc(n + 1, sizeof *manifest->keys);
	if (!manifest->keys)
		return fail(-ENOMEM, "%s: no memory for its keys", path);
	for (size_t i = 0; i < n; i++) {
		const char *text = json_string_value(json_array_get(array, i));

		if (!text || !parse_key(text, manifest->record_nbytes, &manifest->keys[i]))
			return fail_bad_manifest(path, "a key does not fit its records");
		manifest->n_keys++;
	}
	return 0;
}

static bool get_content(const json_t *object, enum part_file_content *ret_content)
{
	const char *text = json_string_value(json_object_get(object, "content"));

	for (unsigned i = 0; text && i < N_CONTENTS; i++) {
		if (strcmp(text, content_names[i]))
			continue;
		*ret_content = i;
		return true;
	}
	return false;
}

static int parse_manifest(const json_t *object, const char *path, struct part_manifest *manifest)
{
	uint64_t version;
	int r;

	if (!get_number(object, MANIFEST_MARK, &version))
		return fail_bad_manifest(path, "it has no version");
	if (version != VERSION)
		return fail(-EINVAL, "%s: part manifest has version %" PRIu64 ", not %d", path,
			    version, VERSION);
	if (!get_content(object, &manifest->content) ||
	    !get_number(object, "record_bytes", &manifest->record_nbytes) ||
	    manifest->record_nbytes < 1 || manifest->record_nbytes > LAYOUT_MAX_RECORD_NBYTES ||
	    !get_number(object, "header_bytes", &manifest->header_nbytes) ||
	    !get_number(object, "records", &manifest->n_records))
		return fail_bad_manifest(path, "it does not describe its records");
	manifest->is_zstd = json_is_true(json_object_get(object, "zstd"));
	manifest->unique = json_is_true(json_object_get(object, "unique"));
	manifest->split_by_keys = json_is_true(json_object_get(object, "split_by_keys"));
	r = parse_keys(json_object_get(object, "keys"), path, manifest);
	if (r == 0)
		r = parse_parts(json_object_get(object, "part_files"), path, manifest);
	return r == 0 && part_manifest_splits_key(manifest) ?
		       fail_bad_manifest(path,
					 "it says that no key is in two part files, but one is") :
		       r;
}

int part_manifest_parse(const char *text, size_t nbytes, const char *path,
			struct part_manifest *ret_manifest)
{
	json_error_t error;
	json_t *object;
	int r;

	*ret_manifest = (struct part_manifest){ 0 };
	object = json_loadb(text, nbytes, JSON_REJECT_DUPLICATES, &error);
	if (!object)
		return fail(-EINVAL, "%s: part manifest: line %d is not JSON: %s", path, error.line,
			    error.text);
	r = parse_manifest(object, path, ret_manifest);
	json_decref(object);
	return r;
}

/* --- writing --- */

static json_t *format_checksum(uint64_t checksum)
{
	return json_sprintf("%016" PRIx64, checksum);
}

static json_t *format_part(const struct manifest_part *part, size_t number)
{
	return json_pack("{sI ss sI sI ss* ss* so}", "number", (json_int_t)number, "name",
			 part->name, "records", (json_int_t)part->n_records, "bytes",
			 (json_int_t)part->nbytes, "first_key", part->first_key, "last_key",
			 part->last_key, "checksum", format_checksum(part->checksum));
}

static json_t *format_manifest(const struct part_manifest *manifest)
{
	json_t *keys = json_array(), *parts = json_array();

	for (uint32_t i = 0; i < manifest->n_keys; i++)
		json_array_append_new(keys, format_key(&manifest->keys[i]));
	for (size_t i = 0; i < manifest->n_parts; i++)
		json_array_append_new(parts, format_part(&manifest->parts[i], i));
	if (json_array_size(keys) != manifest->n_keys ||
	    json_array_size(parts) != manifest->n_parts) {
		json_decref(keys);
		json_decref(parts);
		return NULL;
	}
	return json_pack("{si ss sb sI sI so sb sb sI so}", MANIFEST_MARK, VERSION, "content",
			 content_names[manifest->content], "zstd", manifest->is_zstd,
			 "record_bytes", (json_int_t)manifest->record_nbytes, "header_bytes",
			 (json_int_t)manifest->header_nbytes, "keys", keys, "unique",
			 manifest->unique, "split_by_keys", manifest->split_by_keys, "records",
			 (json_int_t)manifest->n_records, "part_files", parts);
}

int part_manifest_format(const struct part_manifest *manifest, char **ret_text)
{
	json_t *object = format_manifest(manifest);
	char *text = object ? json_dumps(object, JSON_INDENT(1) | JSON_PRESERVE_ORDER) : NULL;

	json_decref(object);
	if (!text)
		return fail(-ENOMEM, "no memory for %zu part files", manifest->n_parts);
	*ret_text = text;
	return 0;
}

static void free_part(struct manifest_part *part)
{
	free(part->name);
	free(part->first_key);
	free(part->last_key);
}

void part_manifest_free(struct part_manifest *manifest)
{
	for (size_t i = 0; i < manifest->n_parts; i++)
		free_part(&manifest->parts[i]);
	free(manifest->parts);
	free(manifest->keys);
	*manifest = (struct part_manifest){ 0 };
}
