/*
 * record_options - the options that say what a record is (see record_options.h)
 */
#include "src/options/record_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/base/size.h"

/* Of TYPE:n; what is longer is none. */
enum { MOST_TYPE_NBYTES = 64 };

static struct record_options *member_of(const struct option_spec *spec, void *target)
{
	return (struct record_options *)((char *)target + spec->offset);
}

/* --- taking them --- */

/* What else can be written. argument: what the type is a part of, or it itself. */
static int refuse_type(const char *option, const char *argument, const char *type)
{
	const bool is_part = strcmp(argument, type) != 0;
	const char *begin = is_part ? "'" : "", *of = is_part ? argument : "",
		   *end = is_part ? "': " : "";
	char meant[KEY_TYPE_NBYTES];

	if (key_suggest_type(type, meant))
		return fail(-EINVAL, "%s: %s%s%sunknown type '%s': did you mean %s?", option, begin,
			    of, end, type, meant);
	return fail(
		-EINVAL,
		"%s: %s%s%sunknown type '%s': use u8, u16, u24 ... u128, i8 ... i128, f16, f32, "
		"f64, bf16, c64, c128, t64, bool, each with le or be after it if need be, or bN "
		"for N bytes",
		option, begin, of, end, type);
}

static bool is_descending(const char *type)
{
	const size_t n = strlen(type);

	return n > 2 && strcmp(type + n - 2, ":r") == 0;
}

/* What stands behind a type that there is. */
static int refuse_order(const char *option, const char *argument, const char *type, size_t n)
{
	if (type == argument && is_descending(type))
		return fail(-EINVAL,
			    "%s: '%s': :r is for keys: -r, --reverse sorts all of it in descending "
			    "order",
			    option, argument);
	return fail(
		-EINVAL,
		"%s: '%s': %s cannot follow %.*s: use :n or :numpy, or :t or :total, for floats, "
		"complex numbers and times, and then :r for a descending key",
		option, argument, type + n, (int)n, type);
}

/* A TYPE by itself or in a key, of n bytes; `argument` is for the message. */
static int parse_type(const struct option_spec *spec, const char *argument, const char *text,
		      size_t n, struct key *ret_key)
{
	char spelling[OPTION_SPELLING_NBYTES], type[MOST_TYPE_NBYTES] = "";
	size_t n_name;
	struct key key;

	option_spell(spec, spelling);
	snprintf(type, sizeof type, "%.*s", (int)n, text);
	if (key_parse_type(type, &key) < 0) {
		n_name = strcspn(type, ":");
		type[n_name] = '\0';
		if (key_parse_type(type, &key) < 0)
			return refuse_type(spelling, argument, type);
		return refuse_order(spelling, argument, text, n_name);
	}
	if (key.nbytes > LAYOUT_MOST_RECORD_NBYTES)
		return fail(-EINVAL, "%s: '%s' is too wide: a record has at most %d bytes",
			    spelling, argument, LAYOUT_MOST_RECORD_NBYTES);
	*ret_key = key;
	return 0;
}

const char *record_options_type(unsigned i, char text[static OPTION_WORD_NBYTES])
{
	struct key key;
	size_t n;

	if (!key_type_at(i, &key))
		return NULL;
	key_format_type(&key, text);
	n = strlen(text);
	if (n > 2 && strcmp(text + n - 2, "le") == 0)
		text[n - 2] = '\0'; /* which goes without saying */
	return text;
}

int record_options_take_type(const struct option_spec *spec, const char *argument, void *target)
{
	return parse_type(spec, argument, argument, strlen(argument),
			  &member_of(spec, target)->type);
}

int record_options_take_size(const struct option_spec *spec, const char *argument, void *target)
{
	char spelling[OPTION_SPELLING_NBYTES];
	uint64_t nbytes;
	int r = size_parse_option(option_spell(spec, spelling), argument, SIZE_OF_DATA, &nbytes);

	if (r < 0)
		return r;
	if (nbytes < 1 || nbytes > LAYOUT_MOST_RECORD_NBYTES)
		return fail(-EINVAL, "%s: '%s': a record has 1 to %d bytes", spelling, argument,
			    LAYOUT_MOST_RECORD_NBYTES);
	member_of(spec, target)->record_nbytes = nbytes;
	return 0;
}

/* The digits in front of the colon. False if there are none, or too many. */
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

static int append(struct record_options *record, struct field_choice choice)
{
	struct field_choice *choices =
		reallocarray(record->choices, record->n_choices + 1, sizeof *choices);

	if (!choices)
		return fail(-ENOMEM, "no memory for %" PRIu32 " keys", record->n_choices + 1);
	record->choices = choices;
	choices[record->n_choices++] = choice;
	return 0;
}

/* A place has digits and a colon; a column is a number, with nothing but an order behind it. */
static bool is_place(const char *argument)
{
	const size_t n = strspn(argument, "0123456789");
	const char *rest = argument + n;

	if (n == 0 || *rest != ':')
		return false;
	if (strncmp(rest, ":numpy", 6) == 0 || strncmp(rest, ":total", 6) == 0)
		rest += 6;
	else if (strncmp(rest, ":n", 2) == 0 || strncmp(rest, ":t", 2) == 0)
		rest += 2;
	return *rest && strcmp(rest, ":r") != 0;
}

/* "8:f64:r" */
static int parse_place(const struct option_spec *spec, const char *argument, struct key *ret_key)
{
	char spelling[OPTION_SPELLING_NBYTES];
	const char *type;
	struct key key = { 0 };
	uint64_t offset;
	size_t n;
	bool descending;
	int r;

	if (!parse_offset(argument, &offset, &type))
		return fail(-EINVAL,
			    "%s: '%s' is no key: write OFFSET:TYPE or OFFSET:TYPE:r, such as "
			    "8:i32 or 0:b4:r, or the name of a field",
			    option_spell(spec, spelling), argument);
	n = strlen(type);
	if (strcmp(type, "r:n") == 0 || strcmp(type, "r:t") == 0 || strcmp(type, "r:numpy") == 0 ||
	    strcmp(type, "r:total") == 0)
		return fail(-EINVAL, "%s: '%s': the order of numbers stands before :r, %.*s%s:r",
			    option_spell(spec, spelling), argument, (int)(type - argument - 1),
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

int record_options_take_key(const struct option_spec *spec, const char *argument, void *target)
{
	struct field_choice choice = { 0 };
	char spelling[OPTION_SPELLING_NBYTES];
	int r = 0;

	if (!*argument)
		return fail(-EINVAL, "%s: '' is no key", option_spell(spec, spelling));
	if (is_place(argument))
		r = parse_place(spec, argument, &choice.key);
	if (r < 0)
		return r;
	choice.text = strdup(argument);
	r = choice.text ? append(member_of(spec, target), choice) :
			  fail(-ENOMEM, "no memory for a key");
	if (r < 0)
		free(choice.text);
	return r;
}

int record_options_take_fields(const struct option_spec *spec, const char *argument, void *target)
{
	struct record_options *record = member_of(spec, target);
	char spelling[OPTION_SPELLING_NBYTES];

	fields_free(&record->fields);
	return fields_parse(option_spell(spec, spelling), argument, &record->fields);
}

/* In another spelling: no. */
int record_options_means_same_fields(const char *first, const char *second)
{
	return strcmp(first, second) == 0;
}

/* --- settling --- */

/* The record is one key. */
static int settle_one(struct record_options *record)
{
	struct key key = record->type;
	char type[KEY_TYPE_NBYTES];

	if (!key.nbytes && record->record_nbytes)
		key = (struct key){ .nbytes = (uint32_t)record->record_nbytes,
				    .kind = KEY_BYTES,
				    .big_endian = true };
	record->said = record->type.nbytes ? RECORDS_TYPE :
		       key.nbytes          ? RECORDS_SIZE :
					     RECORDS_NOTHING;
	if (record->said == RECORDS_NOTHING)
		key_parse_type("u64", &key);
	if (record->record_nbytes && record->record_nbytes != key.nbytes) {
		key_format_type(&key, type);
		return fail(-EINVAL,
			    "-R, --record-size=%" PRIu64 " and -t, --type=%s cannot be used "
			    "together: records of that type have %" PRIu32 " bytes",
			    record->record_nbytes, type, key.nbytes);
	}
	record->record_nbytes = key.nbytes;
	record->keys = malloc(sizeof key);
	if (!record->keys)
		return fail(-ENOMEM, "no memory for a key");
	record->keys[record->n_keys++] = key;
	return 0;
}

static int check_key(const struct record_options *record, const struct key *key)
{
	char type[KEY_TYPE_NBYTES];

	if (key->nbytes <= record->record_nbytes &&
	    key->offset <= record->record_nbytes - key->nbytes)
		return 0;
	key_format_type(key, type);
	return fail(-EINVAL,
		    "-k, --key=%" PRIu64 ":%s reaches past the record of %" PRIu64
		    " bytes (-R, --record-size)",
		    key->offset, type, record->record_nbytes);
}

static int check_keys(const struct record_options *record)
{
	uint64_t nbytes = 0;

	for (uint32_t i = 0; i < record->n_keys; i++) {
		const int r = check_key(record, &record->keys[i]);

		if (r < 0)
			return r;
		nbytes += key_sorted_nbytes(&record->keys[i]);
	}
	if (nbytes > LAYOUT_MOST_RECORD_NBYTES)
		return fail(-EINVAL, "-k, --key: keys of %" PRIu64 " bytes in all, but at most %d",
			    nbytes, LAYOUT_MOST_RECORD_NBYTES);
	return 0;
}

/* The first key that is asked for by its name; NULL: none. */
static const char *find_name(const struct record_options *record)
{
	for (uint32_t i = 0; i < record->n_choices; i++)
		if (!record->choices[i].key.nbytes)
			return record->choices[i].text;
	return NULL;
}

int record_options_refuse_choices(const struct record_options *record)
{
	const char *name = find_name(record);

	if (name)
		return fail(-EINVAL,
			    "-k, --key=%s: it is no OFFSET:TYPE, and no name: name what a record "
			    "consists of by --fields",
			    name);
	return fail(-EINVAL, "-k, --key needs -R, --record-size: how many bytes has a record?");
}

/* Keys, fields, or both. */
static int settle_keys(struct record_options *record)
{
	int r;

	if (record->type.nbytes)
		return fail(-EINVAL,
			    "-t, --type and %s cannot be used together: TYPE is the whole "
			    "record; give its size with -R, --record-size",
			    record->fields.n ? "--fields" : "-k, --key");
	if (!record->fields.n && (find_name(record) || !record->record_nbytes)) {
		record->said =
			RECORDS_CHOICES; /* nothing else can be said before the input is known */
		return 0;
	}
	record->said = record->fields.n ? RECORDS_FIELDS : RECORDS_KEYS;
	if (!record->record_nbytes)
		record->record_nbytes = record->fields.record_nbytes;
	if (record->fields.record_nbytes > record->record_nbytes ||
	    record->record_nbytes > LAYOUT_MOST_RECORD_NBYTES)
		return fail(-EINVAL,
			    "--fields: fields of %" PRIu64 " bytes, and records of %" PRIu64
			    " (-R, --record-size), which can be %d",
			    record->fields.record_nbytes, record->record_nbytes,
			    LAYOUT_MOST_RECORD_NBYTES);
	r = fields_choose(&record->fields, record->choices, record->n_choices, "--fields",
			  &record->keys, &record->n_keys);
	return r < 0 ? r : check_keys(record);
}

int record_options_settle(struct record_options *record)
{
	const int r = record->n_choices || record->fields.n ? settle_keys(record) :
							      settle_one(record);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < record->n_keys; i++)
		record->keys[i].descending |= record->reverse;
	return 0;
}

void record_options_free(struct record_options *record)
{
	for (uint32_t i = 0; i < record->n_choices; i++)
		free(record->choices[i].text);
	free(record->choices);
	free(record->keys);
	fields_free(&record->fields);
	*record = (struct record_options){ 0 };
}
