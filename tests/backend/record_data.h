/*
 * record_data - records of a described layout, with ties of a chosen kind
 */
#pragma once

#include "src/record/layout.h"

/* The parts of an item other than the record, and which of equal items is kept. */
enum record_projection {
	RECORDS_COUNT = 1,
	RECORDS_KEYS_ONLY = 2,
	RECORDS_INDEX = 4,
	RECORDS_KEEP_LAST = 8,
};

struct record_layout {
	uint64_t record_nbytes;
	const char *keys[6];  /* OFFSET:TYPE[:r]; NULL behind the last */
	unsigned projections; /* of enum record_projection */
};

enum record_dist {
	RECORDS_RANDOM,
	RECORDS_BITS,         /* every byte is 0 or 1: short keys tie often */
	RECORDS_EXTREME,      /* every byte is 0x00, 0x7f, 0x80 or 0xff: zeros and NaN */
	RECORDS_EQUAL,        /* in all bytes */
	RECORDS_NEARLY_EQUAL, /* equal but for one byte, anywhere */
	RECORDS_TWO,          /* one of two that are equal but for their last byte */
	RECORDS_SORTED,
	RECORDS_REVERSED, /* the first 8 bytes of the record count down */
	N_RECORD_DISTS,
};

struct record_data {
	char description[160];
	struct layout layout;
	uint64_t n;
	unsigned char *records;
};

/* Ends the program when something fails. */
void record_data_make(const struct record_layout *described, enum record_dist dist, uint64_t n,
		      struct record_data *ret_data);
/* A layout of record_nbytes with one to five keys, all of it depending on the seed. */
void record_data_make_random(uint64_t record_nbytes, uint64_t seed, uint64_t n,
			     struct record_data *ret_data);
void record_data_free(struct record_data *data);
