/*
 * gen.h - test data: record i as a pure function of (i, n, seed, distribution)
 *
 * The distribution determines the keys, as one string of bytes in the order of significance
 * (normalised_key.h). Bytes outside of keys are random.
 *
 * Only integer arithmetic is used, so the bytes are the same on every machine. They are also the
 * same in every version of gsort: tests and benchmark reports contain checksums of generated files.
 */
#pragma once

#include "src/record/layout.h"
struct syscalls;

/*
 * A set of records, each a function of its index, so that any thread can make any range. First
 * member of the struct of each kind of data set.
 */
struct data_set {
	uint64_t record_nbytes;
	uint64_t n_records;
	/* Write the records [first, first + n). Thread-safe. */
	void (*fill)(const struct data_set *data_set, uint64_t first, uint64_t n, void *records);
};

/*
 * Write all records to `path` (NULL: standard output) with n_threads. A file is replaced when all
 * records are written. Returns 0 or a negative errno (reported).
 */
int gen_write_file(const struct data_set *data_set, const struct syscalls *calls, const char *path,
		   unsigned n_threads);

enum gen_dist {
	GEN_RANDOM,        /* uniform over all bit patterns of the type */
	GEN_SORTED,        /* ascending over the whole range, with random steps */
	GEN_REVERSED,      /* GEN_SORTED backwards */
	GEN_EQUAL,         /* one value */
	GEN_TWO_KEYS,      /* two values, at random */
	GEN_ZIPF,          /* the value of rank k is about 1/k as frequent as that of rank 1 */
	GEN_HUNDRED_KEYS,  /* a hundred values, at random */
	GEN_NEARLY_SORTED, /* sorted, except a random record in a hundred */
	GEN_SAWTOOTH,      /* a hundred ascending runs over the whole range */
	GEN_ORGAN_PIPE,    /* ascending to the middle, then descending */
	GEN_CLUSTERED,     /* random within narrow clusters */
	GEN_NAN, /* NaN, infinities and zeros in the first key; in other types extreme values */
};

/* Set by gen_init(), but for the prefix. */
struct gen {
	struct data_set set;
	struct layout layout;
	struct layout leading_key; /* layout of the first key's most significant part */
	bool is_encoded_key;       /* the record is one key */
	bool is_wide;              /* keys of more than 8 bytes use both halves of fractions */
	/*
	 * The first bytes of the key are equal in all records; the bytes after them follow the
	 * distribution. Only with a layout that has record_keys.
	 */
	uint32_t prefix_nbytes;
	enum gen_dist dist;
	uint64_t stream;     /* the seed, mixed */
	uint64_t run_length; /* records of an ascending run */
	uint128_t step;      /* between records of a run */
};

/* Describe a data set. The arrays of the layout must outlive it. */
void gen_init(const struct layout *layout, enum gen_dist dist, uint64_t n_records, uint64_t seed,
	      struct gen *ret_gen);

/* The function `fill` of a struct gen. */
void gen_fill(const struct data_set *data_set, uint64_t first, uint64_t n, void *records);

/*
 * --- the records of the sort benchmark (gensort.c) ---
 *
 * The benchmark (sortbenchmark.org) defines its input by a program, Chris Nyberg's gensort; this
 * makes the same bytes as its version 1.5. A record has 100 bytes; the first 10 are the key, in
 * memcmp order. Record i depends only on i, so several machines can make parts of a large input.
 */

enum { GENSORT_RECORD_NBYTES = 100 };

enum gensort_kind {
	GENSORT_ASCII,  /* gensort -a: lines of printable characters that end with CR LF */
	GENSORT_BINARY, /* gensort: random bytes */
	GENSORT_SKEWED, /* gensort -s: binary, but many keys share a prefix of up to 48 bits */
};

/* Private; set by gensort_init(). */
struct gensort {
	struct data_set set;
	enum gensort_kind kind;
	uint64_t first_number;
};

/* Describe the records [first_number, first_number + n_records), which must not pass 2^64. */
void gensort_init(enum gensort_kind kind, uint64_t first_number, uint64_t n_records,
		  struct gensort *ret_gensort);
