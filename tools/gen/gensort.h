/*
 * gensort.h - the records of the sort benchmark
 *
 * The benchmark (sortbenchmark.org) defines its input by a program, Chris Nyberg's gensort; this
 * makes the same bytes as its version 1.5. A record has 100 bytes; the first 10 are the key, in
 * memcmp order. Record i depends only on i, so several machines can make parts of a large input.
 */
#pragma once

#include "tools/gen/gen.h"

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
