/*
 * record_options.h - options that describe records and the bytes of a file that are records
 *
 * gsort and its tools share these rows. Each program has a struct record_options among its options
 * and finalizes it after parsing.
 *
 *	-t TYPE				one key, which is the record
 *	-R BYTES			one key of bytes, which is the record
 *	-R BYTES -k OFFSET:TYPE[:r]...	keys within the record, the most significant first
 *	--fields=NAME:TYPE,...		keys with names; they are the record
 *	-R BYTES, --fields -k NAME...	some of these keys
 *	-k NAME..., -k OFFSET:TYPE...	keys of an input with fields or columns (io/header/npy.h)
 *	(none)				-t u64, or what the input describes
 *
 * :r makes one key descending. -r makes all keys descending; it does not reverse keys with :r, as
 * in GNU sort.
 */
#pragma once

#include "src/options/option_spec.h"
#include "src/plan/sort_spec.h"
#include "src/record/schema.h"

/* The options as given, and what a struct sort_spec points to. Zero-initialised. */
struct record_options {
	struct key type;                  /* -t; nbytes 0: not given */
	uint64_t record_nbytes;           /* -R; 0: not given */
	struct key_request *key_requests; /* -k, n_key_requests */
	uint32_t n_key_requests;
	struct schema schema;               /* --fields */
	bool reverse;                       /* -r */
	enum key_nan_position nan_position; /* --nan */
	struct key *keys;                   /* n_keys; made by record_options_finalize() */
	uint32_t n_keys;
};

/*
 * Rows without section and member; the member is the struct record_options. That of FIELDS owns
 * memory, so its row has only the offset.
 */
#define RECORD_OPTIONS_ROW_TYPE                                                                    \
	.name = "type", .letter = 't', .argument = "TYPE[:n|:t]",                                  \
	.help = "each record is one key of TYPE (see below); default u64",                         \
	.get_word = record_options_type_name, .parse = record_options_parse_type
#define RECORD_OPTIONS_ROW_SIZE                                                                    \
	.name = "record-size", .letter = 'R', .argument = "BYTES",                                 \
	.help = "each record has BYTES bytes; without -k, all of it is the key",                   \
	.parse = record_options_parse_size
#define RECORD_OPTIONS_ROW_KEY                                                                     \
	.name = "key", .letter = 'k', .argument = "OFFSET:TYPE[:n|:t][:r]",                        \
	.help = "add a key at byte OFFSET, from 0; :r: descending; the first key is primary",      \
	.repeats = true, .parse = record_options_parse_key
#define RECORD_OPTIONS_ROW_FIELDS                                                                  \
	.name = "fields", .argument = "NAME:TYPE,...",                                             \
	.help = "name the fields of a record for -k; without -k all fields are keys",              \
	.parse = record_options_parse_fields

/* The member is record_options.nan_position. */
#define RECORD_OPTIONS_ROW_NAN                                                                     \
	.name = "nan", .argument = "first|last",                                                   \
	.help = "put NaN and NaT of numpy keys first or last; default: last, with -r first",       \
	.parse = option_parse_choice, .choices = record_options_nan_positions

/* Rows without section, help and member: a uint64_t, an enum partial, an enum format_mode. */
#define FRAMING_OPTIONS_ROW_SKIP_BYTES                                                             \
	.name = "skip-bytes", .argument = "N", .parse = option_parse_nbytes,                       \
	.max = FRAMING_OPTIONS_MAX_SKIP_NBYTES
#define FRAMING_OPTIONS_ROW_PARTIAL                                                                \
	.name = "partial", .argument = "error|keep|drop", .parse = option_parse_choice,            \
	.choices = framing_options_partials
#define FRAMING_OPTIONS_ROW_FORMAT                                                                 \
	.name = "format", .argument = "auto|npy|raw", .parse = option_parse_choice,                \
	.choices = framing_options_formats,                                                        \
	.help = "read .npy, zstd and gzip files, and refuse other known formats (auto, default); " \
		"read only .npy (npy); read any bytes as records (raw)"

/* The header is kept in memory for the output. */
enum { FRAMING_OPTIONS_MAX_SKIP_NBYTES = 16 << 20 };

extern const struct option_choice framing_options_partials[], framing_options_formats[],
	record_options_nan_positions[];

/* The description of TYPE in --help, below the options. */
#define RECORD_OPTIONS_TYPES                                                                       \
	"TYPE is u8, u16, u24 ... u128, i8 ... i128, f16, f32, f64, bf16 or bool, each\n"          \
	"with le (the default) or be after it, or bN: N bytes in memcmp order.\n"                  \
	"c64 and c128 are complex numbers, t64 is a numpy time. Floats are in IEEE total\n"        \
	"order (:t, :total), or in numpy's with :n or :numpy: zeros equal, all NaN last.\n"        \
	"Names of C and numpy (uint64_t, double, float32, <f4) are accepted as well.\n"

/* Return the name of type number i, for completion; NULL after the last one. */
const char *record_options_type_name(unsigned i, char text[static OPTION_WORD_NBYTES]);

int record_options_parse_type(const struct option_spec *spec, const char *argument, void *target);
int record_options_parse_size(const struct option_spec *spec, const char *argument, void *target);
int record_options_parse_key(const struct option_spec *spec, const char *argument, void *target);
int record_options_parse_fields(const struct option_spec *spec, const char *argument, void *target);

/*
 * Make the keys, check that they lie within the record, and set the record members of *spec, which
 * point into `record`. Returns 0 or a negative errno (reported).
 */
int record_options_finalize(struct record_options *record, struct sort_spec *spec);

/* Report that no input can resolve the keys (RECORD_SPEC_REQUESTS). Returns -EINVAL. */
int record_options_refuse_keys(const struct record_options *record);

/* Free what the options own. A zeroed struct is fine. */
void record_options_free(struct record_options *record);
