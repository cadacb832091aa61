/*
 * record_options - the options that say what a record is: -t, -R, -k and -r
 *
 * gsort and its tools have the same ones: each keeps a struct record_options among its options,
 * takes it with the functions below (option_table.h), and settles it when all of them are known.
 *
 *	-t TYPE				one key, which is the record
 *	-R BYTES			one key, the record as bytes
 *	-R BYTES -k OFFSET:TYPE[:r]...	keys within the record, the first the most significant
 *	nothing				-t u64
 *
 * A key of its own direction (:r) is descending; -r makes all of them descending, and changes
 * nothing for those that are: as in GNU sort, where -r holds for the keys that have no r.
 */
#pragma once

#include "src/option_table.h"
#include "src/record.h"

struct record_options {
	/* Complete after record_options_settle(). */
	uint64_t record_nbytes; /* 0: not given */
	struct key *keys;       /* n_keys, at least 1, the most significant first */
	uint32_t n_keys;

	/* As they were given. */
	struct key type; /* nbytes 0: not given */
	bool reverse;    /* a flag */
};

/* take() functions; the row's member is the struct record_options. */
int record_options_take_type(const struct option_spec *spec, const char *argument, void *target);
int record_options_take_size(const struct option_spec *spec, const char *argument, void *target);
int record_options_take_key(const struct option_spec *spec, const char *argument, void *target);

/*
 * Complete the keys, in the end at least one, and check that they lie within the record. Returns 0,
 * or a negative errno after a message that names the option.
 */
int record_options_settle(struct record_options *record);

/* The keys in few words: the type when the record is one key, else "8:i32be:r,0:b4". */
enum { RECORD_OPTIONS_TEXT_NBYTES = 64 };
void record_options_format(const struct record_options *record,
			   char text[static RECORD_OPTIONS_TEXT_NBYTES]);

/* A zeroed struct is fine. */
void record_options_free(struct record_options *record);
