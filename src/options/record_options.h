/*
 * record_options - the options that say what a record is: -t, -R, -k and -r
 *
 * gsort and its tools have the same ones: each keeps a struct record_options among its options, has
 * the rows below in its table (option_spec.h), and settles it when all of them are known.
 *
 *	-t TYPE				one key, which is the record
 *	-R BYTES			one key, the record as bytes
 *	-R BYTES -k OFFSET:TYPE[:r]...	keys within the record, the first the most significant
 *	--fields=NAME:TYPE,...		keys of those names, of which the record consists
 *	-R BYTES, --fields -k NAME...	some of them
 *	-k NAME..., -k OFFSET:TYPE...	keys that the input knows: io/header/npy.h
 *	nothing				-t u64, or what the input says that it is
 *
 * A key of its own direction (:r) is descending; -r makes all of them descending, and changes
 * nothing for those that are: as in GNU sort, where -r holds for the keys that have no r.
 */
#pragma once

#include "src/options/option_spec.h"
#include "src/record/schema.h"
#include "src/record/layout.h"

struct record_options {
	/* Complete after record_options_finalize(). */
	uint64_t record_nbytes; /* 0: not given */
	struct key *keys; /* n_keys, the most significant first; none: see RECORD_SPEC_REQUESTS */
	uint32_t n_keys;
	enum record_spec_kind spec_kind;

	/* As they were given. */
	struct key type;                  /* nbytes 0: not given */
	struct key_request *key_requests; /* n_key_requests */
	uint32_t n_key_requests;
	struct schema schema; /* of --fields */
	bool reverse;         /* a flag */
};

/* Rows, but for their section and their member, which is the struct record_options. */
#define RECORD_OPTIONS_ROW_TYPE                                                                    \
	.name = "type", .letter = 't', .argument = "TYPE[:n|:t]",                                  \
	.help = "sort records that are one key of TYPE (see below); default u64",                  \
	.get_word = record_options_type_name, .parse = record_options_parse_type
#define RECORD_OPTIONS_ROW_SIZE                                                                    \
	.name = "record-size", .letter = 'R', .argument = "BYTES",                                 \
	.help = "sort records of BYTES bytes; without -k, the record is the key",                  \
	.parse = record_options_parse_size
#define RECORD_OPTIONS_ROW_KEY                                                                     \
	.name = "key", .letter = 'k', .argument = "OFFSET:TYPE[:n|:t][:r]",                        \
	.help = "add a key at byte OFFSET, from 0; :r: descending; the first key is primary",      \
	.repeats = true, .parse = record_options_parse_key

#define RECORD_OPTIONS_ROW_FIELDS                                                                  \
	.name = "fields", .argument = "NAME:TYPE,...",                                             \
	.help = "name the fields of a record for -k; without -k all fields are keys",              \
	.parse = record_options_parse_fields, .same_value = record_options_same_fields

/* What the help says of TYPE, below the options. */
#define RECORD_OPTIONS_TYPES                                                                       \
	"TYPE is u8, u16, u24 ... u128, i8 ... i128, f16, f32, f64, bf16 or bool, each\n"          \
	"with le (the default) or be after it, or bN: N bytes in memcmp order.\n"                  \
	"c64 and c128 are complex numbers, t64 is a numpy time. Floats are in IEEE total\n"        \
	"order (:t, :total), or in numpy's with :n or :numpy: zeros equal, all NaN last.\n"        \
	"Names of C and numpy (uint64_t, double, float32, <f4) are accepted as well.\n"

/* The i-th TYPE of one width, for completion; NULL: there are no more. */
const char *record_options_type_name(unsigned i, char text[static OPTION_WORD_NBYTES]);

int record_options_parse_type(const struct option_spec *spec, const char *argument, void *target);
int record_options_parse_size(const struct option_spec *spec, const char *argument, void *target);
int record_options_parse_key(const struct option_spec *spec, const char *argument, void *target);
int record_options_parse_fields(const struct option_spec *spec, const char *argument, void *target);
int record_options_same_fields(const char *first, const char *second);

/*
 * Complete the keys, in the end at least one, and check that they lie within the record. Returns 0,
 * or a negative errno after a message that names the option.
 */
int record_options_finalize(struct record_options *record);

/* Of RECORD_SPEC_REQUESTS where no input could know more. Returns -EINVAL, after a message. */
int record_options_refuse_keys(const struct record_options *record);

/* A zeroed struct is fine. */
void record_options_free(struct record_options *record);
