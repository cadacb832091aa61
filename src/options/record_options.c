/*
 * record_options.c - options that describe records (see record_options.h)
 */
#include "src/options/record_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/base/size.h"
#include "src/record/key_layout.h"

/* Longest TYPE with its order; longer texts are no type. */
enum { MAX_TYPE_TEXT_NBYTES = 64 };

/* --- Parsing --- */

/* Report an unknown type with a suggestion. argument: the key that contains it, or the type. */
static int refuse_type(const char *option, const char *argument, const char *type)
{
	const bool is_in_key = strcmp(argument, type) != 0;
	const char *prefix = is_in_key ? "'" : "", *context = is_in_key ? argument : "",
		   *separator = is_in_key ? "': " : "";
	char suggestion[KEY_TYPE_NBYTES];

	if (key_suggest_type(type, suggestion))
		return fail(-EINVAL, "%s: %s%s%sunknown type '%s'; did you mean %s?", option,
			    prefix, context, separator, type, suggestion);
	return fail(-EINVAL, "%s: %s%s%sunknown type '%s'; " KEY_TYPES_HINT, option, prefix,
		    context, separator, type);
}

static bool is_descending(const char *type)
{
	const size_t n = strlen(type);

	return n > 2 && strcmp(type + n - 2, ":r") == 0;
}

/* Report what follows the n characters of a valid type. */
static int refuse_type_suffix(const char *option, const char *argument, const char *type, size_t n)
{
	if (type == argument && is_descending(type))
		return fail(-EINVAL, "%s: '%s': :r is only for keys; use -r, --reverse", option,
			    argument);
	return fail(
		-EINVAL,
		"%s: '%s': %s cannot follow %.*s; use :numpy or :total (floats, complex numbers, "
		"times), then :r",
		option, argument, type + n, (int)n, type);
}

/* Parse a TYPE of n characters. argument: the text in messages. */
static int parse_type(const struct option_spec *spec, const char *argument, const char *text,
		      size_t n, struct key *ret_key)
{
	const struct option_name option = option_format_name(spec);
	char type[MAX_TYPE_TEXT_NBYTES] = "";
	size_t n_name;
	struct key key;

	snprintf(type, sizeof type, "%.*s", (int)n, text);
	if (key_parse_type(type, &key) < 0) {
		n_name = strcspn(type, ":");
		type[n_name] = '\0';
		if (key_parse_type(type, &key) < 0)
			return refuse_type(option.text, argument, type);
		return refuse_type_suffix(option.text, argument, text, n_name);
	}
	if (key.nbytes > LAYOUT_MAX_RECORD_NBYTES)
		return fail(-EINVAL, "%s: '%s' is too wide; a record has at most %d bytes",
			    option.text, argument, LAYOUT_MAX_RECORD_NBYTES);
	*ret_key = key;
	return 0;
}

const char *record_options_type_name(unsigned i, char text[static OPTION_WORD_NBYTES])
{
	struct key key;
	size_t n;

	if (!key_type_by_index(i, &key))
		return NULL;
	strcpy(text, key_format_type(&key).text);
	n = strlen(text);
	if (n > 2 && strcmp(text + n - 2, "le") == 0)
		text[n - 2] = '\0'; /* the default */
	return text;
}

int record_options_parse_type(const struct option_spec *spec, const char *argument, void *target)
{
	struct record_options *record = option_member(spec, target);

	return parse_type(spec, argument, argument, strlen(argument), &record->type);
}

int record_options_parse_size(const struct option_spec *spec, const char *argument, void *target)
{
	struct record_options *record = option_member(spec, target);
	uint64_t nbytes;
	int r = size_parse_option(option_format_name(spec).text, argument, SIZE_OF_DATA, &nbytes);

	if (r < 0)
		return r;
	if (nbytes < 1 || nbytes > LAYOUT_MAX_RECORD_NBYTES)
		return fail(-EINVAL, "%s: '%s': record size must be 1 to %d bytes",
			    option_format_name(spec).text, argument, LAYOUT_MAX_RECORD_NBYTES);
	record->record_nbytes = nbytes;
	return 0;
}

/* Parse the digits before the colon. Return false if there are none or too many. */
static bool parse_offset(const char *text, uint64_t *ret_offset, const char **ret_type)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret_offset = strtoull(text, &end, 10);
	*ret_type = end + 1;
	return !errno && *end == ':';
}

/*
 * Return whether the key begins with OFFSET:TYPE. A number with only an order after it ("2:n:r")
 * is the name of a column.
 */
static bool has_key_offset(const char *argument)
{
	const size_t n = strspn(argument, "0123456789");
	const char *suffix = argument + n;

	if (n == 0 || *suffix != ':')
		return false;
	if (strncmp(suffix, ":numpy", 6) == 0 || strncmp(suffix, ":total", 6) == 0)
		suffix += 6;
	else if (strncmp(suffix, ":n", 2) == 0 || strncmp(suffix, ":t", 2) == 0)
		suffix += 2;
	return *suffix && strcmp(suffix, ":r") != 0;
}

/* "8:f64:r" */
static int parse_offset_key(const struct option_spec *spec, const char *argument,
			    struct key *ret_key)
{
	const char *type;
	struct key key = { 0 };
	uint64_t offset;
	size_t n;
	bool descending;
	int r;

	if (strchr(argument, ','))
		return fail(-EINVAL, "%s: '%s' is more than one key; repeat -k for each key",
			    option_format_name(spec).text, argument);
	if (!parse_offset(argument, &offset, &type))
		return fail(
			-EINVAL,
			"%s: '%s' is not a key; use OFFSET:TYPE[:r], such as 8:i32 or 0:b4:r, or "
			"the name of a field",
			option_format_name(spec).text, argument);
	n = strlen(type);
	if (strcmp(type, "r:n") == 0 || strcmp(type, "r:t") == 0 || strcmp(type, "r:numpy") == 0 ||
	    strcmp(type, "r:total") == 0)
		return fail(-EINVAL, "%s: '%s': :r must be last; use %.*s%s:r",
			    option_format_name(spec).text, argument, (int)(type - argument - 1),
			    argument, type + 1);
	descending = is_descending(type);
	r = parse_type(spec, argument, type, descending ? n - 2 : n, &key);
	if (r < 0)
		return r;
	key.offset = offset;
	key.descending = descending;
	*ret_key = key;
	return 0;
}

int record_options_parse_key(const struct option_spec *spec, const char *argument, void *target)
{
	struct record_options *record = option_member(spec, target);
	struct key_request request = { 0 }, *requests;
	int r = 0;

	if (!*argument)
		return fail(-EINVAL, "%s: '' is not a key", option_format_name(spec).text);
	if (has_key_offset(argument))
		r = parse_offset_key(spec, argument, &request.key);
	if (r < 0)
		return r;
	requests = reallocarray(record->key_requests, record->n_key_requests + 1, sizeof *requests);
	if (!requests)
		return fail(-ENOMEM, "no memory for %" PRIu32 " keys", record->n_key_requests + 1);
	record->key_requests = requests;
	request.text = strdup(argument);
	if (!request.text)
		return fail(-ENOMEM, "no memory for a key");
	requests[record->n_key_requests++] = request;
	return 0;
}

int record_options_parse_fields(const struct option_spec *spec, const char *argument, void *target)
{
	struct record_options *record = option_member(spec, target);

	schema_free(&record->schema);
	return schema_parse(option_format_name(spec).text, argument, &record->schema);
}

/* --- Finalizing --- */

/* Make the record one key. */
static int finalize_single_key(struct record_options *record, struct sort_spec *spec)
{
	struct key key = record->type;

	if (!key.nbytes && record->record_nbytes)
		key = (struct key){ .nbytes = (uint32_t)record->record_nbytes,
				    .kind = KEY_BYTES,
				    .big_endian = true };
	spec->record_spec = record->type.nbytes ? RECORD_SPEC_TYPE :
			    key.nbytes          ? RECORD_SPEC_SIZE :
						  RECORD_SPEC_NONE;
	if (spec->record_spec == RECORD_SPEC_NONE)
		key_parse_type("u64", &key);
	if (record->record_nbytes && record->record_nbytes != key.nbytes) {
		return fail(-EINVAL,
			    "-R, --record-size=%" PRIu64 " and -t, --type=%s cannot be used "
			    "together: records of that type have %" PRIu32 " bytes",
			    record->record_nbytes, key_format_type(&key).text, key.nbytes);
	}
	spec->record_nbytes = key.nbytes;
	record->keys = malloc(sizeof key);
	if (!record->keys)
		return fail(-ENOMEM, "no memory for a key");
	record->keys[record->n_keys++] = key;
	return 0;
}

static int check_keys(const struct record_options *record, uint64_t record_nbytes)
{
	uint64_t nbytes = 0;

	for (uint32_t i = 0; i < record->n_keys; i++) {
		const struct key *key = &record->keys[i];

		if (key->nbytes > record_nbytes || key->offset > record_nbytes - key->nbytes)
			return fail(-EINVAL,
				    "-k, --key=%" PRIu64 ":%s reaches past the record of %" PRIu64
				    " bytes (-R, --record-size)",
				    key->offset, key_format_type(key).text, record_nbytes);
		nbytes += key_normalised_nbytes(key);
	}
	if (nbytes > LAYOUT_MAX_RECORD_NBYTES)
		return fail(-EINVAL, "-k, --key: keys have %" PRIu64 " bytes, but at most %d",
			    nbytes, LAYOUT_MAX_RECORD_NBYTES);
	return 0;
}

int record_options_refuse_keys(const struct record_options *record)
{
	const char *name = key_requests_find_name(record->key_requests, record->n_key_requests);

	if (name && strchr(name, ','))
		return fail(-EINVAL, "-k, --key=%s: more than one key; repeat -k for each key",
			    name);
	if (name)
		return fail(
			-EINVAL,
			"-k, --key=%s: neither OFFSET:TYPE nor the name of a field; name fields "
			"with --fields",
			name);
	return fail(-EINVAL, "-k, --key requires -R, --record-size");
}

/* Make keys of -k, of --fields, or of both. */
static int finalize_keys(struct record_options *record, struct sort_spec *spec)
{
	int r;

	if (record->type.nbytes)
		return fail(-EINVAL,
			    "-t, --type and %s cannot be used together; give the record size with "
			    "-R, --record-size",
			    record->schema.n ? "--fields" : "-k, --key");
	spec->record_nbytes = record->record_nbytes;
	if (!record->schema.n &&
	    (!record->record_nbytes ||
	     key_requests_find_name(record->key_requests, record->n_key_requests))) {
		spec->record_spec = RECORD_SPEC_REQUESTS; /* resolved when the input is known */
		return 0;
	}
	spec->record_spec = record->schema.n ? RECORD_SPEC_FIELDS : RECORD_SPEC_KEYS;
	if (!spec->record_nbytes)
		spec->record_nbytes = record->schema.record_nbytes;
	if (record->schema.record_nbytes > spec->record_nbytes ||
	    spec->record_nbytes > LAYOUT_MAX_RECORD_NBYTES)
		return fail(-EINVAL,
			    "--fields: fields have %" PRIu64 " bytes, records %" PRIu64
			    " (-R, --record-size; at most %d)",
			    record->schema.record_nbytes, spec->record_nbytes,
			    LAYOUT_MAX_RECORD_NBYTES);
	r = schema_resolve_keys(&record->schema, record->key_requests, record->n_key_requests,
				"--fields", &record->keys, &record->n_keys);
	return r < 0 ? r : check_keys(record, spec->record_nbytes);
}

int record_options_finalize(struct record_options *record, struct sort_spec *spec)
{
	const int r = record->n_key_requests || record->schema.n ?
			      finalize_keys(record, spec) :
			      finalize_single_key(record, spec);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < record->n_keys; i++) {
		record->keys[i].descending |= record->reverse;
		if (record->keys[i].numeric)
			record->keys[i].nan_position = (uint8_t)record->nan_position;
	}
	spec->keys = record->keys;
	spec->n_keys = record->n_keys;
	spec->key_requests = record->key_requests;
	spec->n_key_requests = record->n_key_requests;
	spec->reverse = record->reverse;
	spec->nan_position = record->nan_position;
	return 0;
}

void record_options_free(struct record_options *record)
{
	for (uint32_t i = 0; i < record->n_key_requests; i++)
		free(record->key_requests[i].text);
	free(record->key_requests);
	free(record->keys);
	schema_free(&record->schema);
	*record = (struct record_options){ 0 };
}

const struct option_choice record_options_nan_positions[] = { { "first", KEY_NAN_FIRST },
							      { "last", KEY_NAN_LAST },
							      { 0 } };

/* --- Framing --- */

const struct option_choice framing_options_partials[] = {
	{ "error", PARTIAL_ERROR }, { "keep", PARTIAL_KEEP }, { "drop", PARTIAL_DROP }, { 0 }
};

const struct option_choice framing_options_formats[] = {
	{ "auto", FORMAT_AUTO }, { "npy", FORMAT_NPY }, { "raw", FORMAT_RAW }, { 0 }
};
