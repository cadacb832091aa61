/*
 * gensort - the records of the sort benchmark
 *
 * The benchmark (sortbenchmark.org) defines its input by a program, Chris Nyberg's gensort; this
 * makes the same bytes as its version 1.5. A record has 100 bytes, the first 10 are the key, and
 * keys are compared as memcmp does. Record i depends on i only, so a large input can be made in
 * parts, on several machines.
 */
#pragma once

#include "tools/gen/data_set.h"

enum { GENSORT_RECORD_NBYTES = 100 };

enum gensort_kind {
	GENSORT_ASCII,  /* gensort -a: lines of printable characters that end with CR LF */
	GENSORT_BINARY, /* gensort: random bytes */
	GENSORT_SKEWED, /* gensort -s: binary, but many keys share a beginning of up to 48 bits */
};

/* Set by gensort_init() only. */
struct gensort {
	struct data_set set;
	enum gensort_kind kind;
	uint64_t first_number;
};

/*
 * The records numbered [first_number, first_number + n_records) of the benchmark, of which there
 * are 2^64: numbers beyond are not made.
 */
void gensort_init(enum gensort_kind kind, uint64_t first_number, uint64_t n_records,
		  struct gensort *ret_gensort);
