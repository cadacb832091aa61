/*
 * gen - test data: record i as a pure function of (i, n, seed, distribution)
 *
 * What follows a distribution is the record's key: its keys as one string of bytes, in the order of
 * their weight (normalised_key.h). Bytes of the record that belong to no key are random.
 *
 * Only integer arithmetic is used, so the bytes are the same on every machine. They are the same in
 * every version of gsort, too: checksums of generated files stand in tests and in benchmark
 * reports.
 */
#pragma once

#include "src/record/layout.h"
#include "tools/gen/data_set.h"

enum gen_dist {
	GEN_RANDOM,   /* uniform over all bit patterns of the type */
	GEN_SORTED,   /* ascending over the whole range of the type, with steps of random size */
	GEN_REVERSED, /* the same from the end */
	GEN_EQUAL,    /* one value */
	GEN_TWO_KEYS, /* two values, at random */
	GEN_ZIPF,     /* Zipf's law: the value of rank k about 1/k as often as that of rank 1 */
	GEN_HUNDRED_KEYS,  /* a hundred values, at random */
	GEN_NEARLY_SORTED, /* sorted, but for one record in a hundred, which is random */
	GEN_SAWTOOTH,      /* a hundred ascending stretches, each over the whole range */
	GEN_ORGAN_PIPE,    /* organ pipes: ascending to the middle, then descending */
	GEN_CLUSTERED,     /* random within narrow clusters that lie far apart */
	GEN_NAN, /* NaNs, infinities, zeros; for other types the ends and the middle; of the
			 first key */
};

/* Set by gen_init() only. */
struct gen {
	struct data_set set;
	struct layout layout;
	struct layout leading_key; /* of the first key alone, or of its first 16 bytes */
	bool is_encoded_key;       /* a record is a key, and it is made of it as a code */
	bool is_wide;              /* the key reaches down to the lower half of a fraction */
	uint32_t prefix_nbytes;
	enum gen_dist dist;
	uint64_t stream;     /* the seed, mixed */
	uint64_t run_length; /* records of one ascending stretch */
	uint128_t step;      /* of the 128-bit range, from one record of a stretch to the next */
};

/* "random" and so on. 0, or -EINVAL without a message. */
int gen_parse_dist(const char *name, enum gen_dist *ret_dist);

/* The i-th name of a distribution, as option_spec.h wants words; NULL: there are no more. */
const char *gen_dist_name(unsigned i, char *text);

/* Write the names of all distributions, separated by blanks, and return `text`. */
enum { GEN_DIST_NAMES_NBYTES = 128 };
const char *gen_list_dists(char text[static GEN_DIST_NAMES_NBYTES]);

/* The layout's arrays are pointed to. */
void gen_init(const struct layout *layout, enum gen_dist dist, uint64_t n_records, uint64_t seed,
	      struct gen *ret_gen);

/*
 * The first prefix_nbytes of the key become the same in all records; the bytes behind them follow
 * the distribution. The layout must have record_keys. To be called after gen_init().
 */
void gen_set_prefix(struct gen *gen, uint32_t prefix_nbytes);

/* Write the records [first, first + n) of the data set. Thread-safe. */
void gen_fill(const struct gen *gen, uint64_t first, uint64_t n, void *records);
