/*
 * part_manifest.c - the JSON file that lists part files (see part_manifest.h)
 *
 * Numbers of records and bytes fit into the signed 64-bit integers of JSON libraries, because no
 * file is larger; checksums are digits. Redundant values must agree. What a reader might interpret
 * otherwise than the writer meant is refused: parts out of order, names that leave the directory.
 */
#include "io/input/part_manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/record/layout.h"

#define MANIFEST_MARK "gsort_part_manifest"
enum {
	VERSION = 1,
	MAX_MANIFEST_NBYTES = 4 << 20,
	MAX_ORDER_NBYTES = 64 << 10,
	MAX_MANIFEST_VALUES = 40000, /* parsed; each takes up to 250 bytes */
};

static const char *const content_names[] = {
	[PART_CONTENT_RECORDS] = "records",
	[PART_CONTENT_NPY] = "npy",
	[PART_CONTENT_LINES] = "lines",
};
enum { N_CONTENTS = sizeof content_names / sizeof content_names[0] };

/* One digit more than allowed is kept, which makes the key differ from that of any record. */
enum { MAX_KEY_DIGITS = 2 * PART_MANIFEST_MAX_KEY_NBYTES + 1 };

/* --- detection --- */

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

/* Return whether a manifest can list the name: a plain file name in UTF-8. */
static bool is_valid_name(const char *name)
{
	json_t *string = json_string(name);
	const bool is_text = string != NULL; /* valid UTF-8 */

	json_decref(string);
	return is_text && *name && strlen(name) <= NAME_MAX && !strchr(name, '/') &&
	       strcmp(name, ".") && strcmp(name, "..");
}

/* Parse a key in the syntax of the command line: "8:i64le:r". */
static bool parse_key(const char *text, struct key *ret_key)
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
	return true;
}

/*
 * Return whether the digits are all of a key: long keys are truncated, so that different keys may
 * look equal.
 */
static bool is_complete_key(const struct part_manifest *manifest, const char *digits)
{
	size_t nbytes = 0;

	for (uint32_t i = 0; i < manifest->n_keys; i++)
		nbytes += manifest->keys[i].nbytes;
	return digits && nbytes > 0 && strlen(digits) == 2 * nbytes;
}

void part_manifest_format_keys(const struct key *keys, uint32_t n_keys, const void *record,
			       char text[static PART_MANIFEST_KEYS_TEXT_NBYTES])
{
	static const char digits[] = "0123456789abcdef";
	size_t n = 0;

	for (uint32_t i = 0; i < n_keys; i++)
		for (uint32_t j = 0; j < keys[i].nbytes && n < 2 * PART_MANIFEST_MAX_KEY_NBYTES;
		     j++) {
			const unsigned char byte =
				((const unsigned char *)record)[keys[i].offset + j];

			text[n++] = digits[byte >> 4];
			text[n++] = digits[byte & 15];
		}
	text[n] = '\0';
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

/* --- reading --- */

int part_manifest_fail_memory(const char *path)
{
	return fail(-ENOMEM, "%s: no memory for a part manifest", path);
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

/* Copy a text member, or set NULL if there is none. Returns false without memory. */
static bool copy_text(const json_t *object, const char *name, size_t max_length, char **ret_text)
{
	const char *text = json_string_value(json_object_get(object, name));

	*ret_text = text ? strndup(text, max_length) : NULL;
	return !text || *ret_text;
}

/* Copy the texts of a part. A text that is too long is truncated, and still fails its check. */
static int copy_texts(const json_t *object, const char *path, struct manifest_part *part)
{
	return copy_text(object, "name", NAME_MAX + 1, &part->name) &&
			       copy_text(object, "first_key", MAX_KEY_DIGITS, &part->first_key) &&
			       copy_text(object, "last_key", MAX_KEY_DIGITS, &part->last_key) ?
		       0 :
		       part_manifest_fail_memory(path);
}

static int add_part(struct part_manifest *manifest, const json_t *object, const char *path)
{
	struct manifest_part *part;
	uint64_t number;
	int r;

	if (!manifest->parts)
		manifest->parts = calloc(PART_MANIFEST_MAX_PARTS, sizeof *manifest->parts);
	if (!manifest->parts)
		return part_manifest_fail_memory(path);
	if (manifest->n_parts == PART_MANIFEST_MAX_PARTS)
		return fail_bad_manifest(path, "it has more than 1000 part files");
	part = &manifest->parts[manifest->n_parts++];
	r = copy_texts(object, path, part);
	if (r < 0)
		return r;
	if (!get_number(object, "number", &number) || number != manifest->n_parts - 1)
		return fail_bad_manifest(path, "part numbers are not consecutive");
	if (!part->name || !is_valid_name(part->name))
		return fail_bad_manifest(path, "the name of a part file is not a plain file name");
	if (!get_number(object, "records", &part->n_records) ||
	    !get_number(object, "bytes", &part->nbytes) || !get_checksum(object, &part->checksum))
		return fail_bad_manifest(path, "a part file has no records, bytes or checksum");
	return 0;
}

/* check_manifest() checks whether the key fits the records. */
static int add_key(struct part_manifest *manifest, const json_t *value, const char *path)
{
	const char *text = json_string_value(value);
	const uint32_t n = manifest->n_keys;
	struct key *keys = manifest->keys;

	if (n == LAYOUT_MAX_RECORD_NBYTES)
		return fail_bad_manifest(path, "it has more keys than a record has bytes");
	if ((n & (n - 1)) == 0)
		keys = reallocarray(keys, n ? 2 * (size_t)n : 1, sizeof *keys);
	if (!keys)
		return fail(-ENOMEM, "%s: no memory for its keys", path);
	manifest->keys = keys;
	if (!text || !parse_key(text, &manifest->keys[n]))
		return fail_bad_manifest(path, "it has an invalid key");
	manifest->n_keys++;
	return 0;
}

typedef int add_entry_fn(struct part_manifest *manifest, const json_t *entry, const char *path);

static int parse_array(const json_t *object, const char *name, add_entry_fn *add_entry,
		       const char *path, struct part_manifest *manifest)
{
	const json_t *array = json_object_get(object, name);
	int r = 0;

	if (array && !json_is_array(array))
		return fail_bad_manifest(path, "its keys or part files are no array");
	for (size_t i = 0; i < json_array_size(array) && r == 0; i++)
		r = add_entry(manifest, json_array_get(array, i), path);
	return r;
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

/* Get what records of fixed size have. */
static bool get_format(const json_t *object, struct part_manifest *manifest)
{
	return manifest->content == PART_CONTENT_LINES ||
	       (get_number(object, "record_bytes", &manifest->record_nbytes) &&
		manifest->record_nbytes >= 1 &&
		manifest->record_nbytes <= LAYOUT_MAX_RECORD_NBYTES &&
		get_number(object, "header_bytes", &manifest->header_nbytes));
}

static int get_scalars(const json_t *object, const char *path, struct part_manifest *manifest)
{
	uint64_t version;

	if (!get_number(object, MANIFEST_MARK, &version))
		return fail_bad_manifest(path, "it has no version");
	if (version != VERSION)
		return fail(-EINVAL, "%s: part manifest has version %" PRIu64 ", not %d", path,
			    version, VERSION);
	if (!get_content(object, &manifest->content) ||
	    !get_number(object, "records", &manifest->n_records) || !get_format(object, manifest))
		return fail_bad_manifest(path, "it does not describe its records");
	if (manifest->content == PART_CONTENT_LINES &&
	    !copy_text(object, "order", MAX_ORDER_NBYTES + 1, &manifest->order))
		return part_manifest_fail_memory(path);
	if (manifest->order && strlen(manifest->order) > MAX_ORDER_NBYTES)
		return fail_bad_manifest(path, "its order is too long");
	manifest->is_zstd = json_is_true(json_object_get(object, "zstd"));
	manifest->unique = json_is_true(json_object_get(object, "unique"));
	manifest->split_by_keys = json_is_true(json_object_get(object, "split_by_keys"));
	return 0;
}

/* Check that redundant values agree. */
static int check_manifest(const struct part_manifest *manifest, const char *path)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < manifest->n_keys; i++) {
		const struct key *key = &manifest->keys[i];

		if (key->nbytes > manifest->record_nbytes ||
		    key->offset > manifest->record_nbytes - key->nbytes)
			return fail_bad_manifest(path, "a key does not fit its records");
	}
	if (manifest->n_parts == 0)
		return fail_bad_manifest(path, "it has no part files");
	for (size_t i = 0; i < manifest->n_parts; i++)
		if (__builtin_add_overflow(sum, manifest->parts[i].n_records, &sum))
			return fail_bad_manifest(path, "the number of records is too large");
	if (sum != manifest->n_records)
		return fail_bad_manifest(path, "the records of the part files do not add up");
	return part_manifest_splits_key(manifest) ?
		       fail_bad_manifest(path,
					 "it says that no key is in two part files, but one is") :
		       0;
}

/* Count the values of JSON text, of which each begins a container or follows a separator. */
static size_t count_values(const char *text, size_t nbytes)
{
	bool is_string = false;
	size_t n = 0;

	for (size_t i = 0; i < nbytes; i++)
		if (text[i] == '\\')
			i++;
		else if (text[i] == '"')
			is_string = !is_string;
		else
			n += !is_string && memchr("[{,:", text[i], 4) != NULL;
	return n;
}

/* Parse JSON; the caller releases it. Returns NULL on failure (reported in *ret_r). */
static json_t *load_json(const char *text, size_t nbytes, const char *path, int *ret_r)
{
	json_error_t error;
	json_t *object;

	if (count_values(text, nbytes) > MAX_MANIFEST_VALUES) {
		*ret_r = fail_bad_manifest(path, "it has more than 40000 values");
		return NULL;
	}
	object = json_loadb(text, nbytes, JSON_REJECT_DUPLICATES, &error);
	if (object)
		return object;
	if (json_error_code(&error) == json_error_out_of_memory)
		*ret_r = part_manifest_fail_memory(path);
	else if (json_error_code(&error) == json_error_duplicate_key)
		*ret_r = fail_bad_manifest(path, "a member occurs twice");
	else
		*ret_r = fail(-EINVAL, "%s: invalid part manifest: not JSON at byte %d", path,
			      error.position);
	return NULL;
}

int part_manifest_parse(const char *text, size_t nbytes, const char *path,
			struct part_manifest *ret_manifest)
{
	int r = 0;
	json_t *object = load_json(text, nbytes, path, &r);

	*ret_manifest = (struct part_manifest){ 0 };
	if (!object)
		return r;
	r = parse_array(object, "keys", add_key, path, ret_manifest);
	if (r == 0)
		r = parse_array(object, "part_files", add_part, path, ret_manifest);
	if (r == 0)
		r = get_scalars(object, path, ret_manifest);
	if (r == 0)
		r = check_manifest(ret_manifest, path);
	json_decref(object);
	return r;
}

static int read_text(const struct file *file, const char *path, char *text, uint64_t nbytes,
		     struct part_manifest *ret_manifest)
{
	const int r = file_read_at(file, 0, text, nbytes);

	if (r < 0)
		return fail(r, "%s: read: %m", path);
	if (!part_manifest_detect(text, nbytes))
		return fail(-EINVAL, "%s: is not a part manifest", path);
	return part_manifest_parse(text, nbytes, path, ret_manifest);
}

int part_manifest_read(const struct file *file, const char *path,
		       struct part_manifest *ret_manifest)
{
	uint64_t nbytes;
	char *text;
	int r = file_size(file, &nbytes);

	*ret_manifest = (struct part_manifest){ 0 };
	if (r < 0)
		return fail(r, "%s: %m", path);
	if (nbytes > MAX_MANIFEST_NBYTES)
		return fail(-EFBIG, "%s: has %" PRIu64 " bytes, and a part manifest at most %d",
			    path, nbytes, MAX_MANIFEST_NBYTES);
	text = malloc(nbytes + 1);
	if (!text)
		return part_manifest_fail_memory(path);
	r = read_text(file, path, text, nbytes, ret_manifest);
	free(text);
	return r;
}

/* --- writing --- */

static json_t *format_part(const struct manifest_part *part, size_t number)
{
	return json_pack("{sI ss sI sI ss* ss* so}", "number", (json_int_t)number, "name",
			 part->name, "records", (json_int_t)part->n_records, "bytes",
			 (json_int_t)part->nbytes, "first_key", part->first_key, "last_key",
			 part->last_key, "checksum", json_sprintf("%016" PRIx64, part->checksum));
}

static json_t *format_manifest(const struct part_manifest *manifest)
{
	json_t *keys = json_array(), *parts = json_array();

	for (uint32_t i = 0; i < manifest->n_keys; i++)
		json_array_append_new(keys, json_string(key_format(&manifest->keys[i]).text));
	for (size_t i = 0; i < manifest->n_parts; i++)
		json_array_append_new(parts, format_part(&manifest->parts[i], i));
	if (json_array_size(keys) != manifest->n_keys ||
	    json_array_size(parts) != manifest->n_parts) {
		json_decref(keys);
		json_decref(parts);
		return NULL;
	}
	if (manifest->content == PART_CONTENT_LINES) {
		json_decref(keys);
		return json_pack("{si ss sb ss* sb sI so}", MANIFEST_MARK, VERSION, "content",
				 content_names[manifest->content], "zstd", manifest->is_zstd,
				 "order", manifest->order, "unique", manifest->unique, "records",
				 (json_int_t)manifest->n_records, "part_files", parts);
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

void part_manifest_free(struct part_manifest *manifest)
{
	for (size_t i = 0; i < manifest->n_parts; i++) {
		free(manifest->parts[i].name);
		free(manifest->parts[i].first_key);
		free(manifest->parts[i].last_key);
	}
	free(manifest->parts);
	free(manifest->keys);
	free(manifest->order);
	*manifest = (struct part_manifest){ 0 };
}
