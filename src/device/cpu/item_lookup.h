/*
 * item_lookup - slices of items, one after the other, numbered through
 *
 *	slices     | a a a a a |   b b | c c c c |
 *	numbers      0 1 2 3 4   5 6   7 8 9 10
 *	buckets      0       0       2       2		the slice of every fourth number, say
 *
 * The slice of a number is found by looking where its bucket begins and going on from there. There
 * are about as many buckets as slices, so that going through all numbers takes a constant number
 * of steps for each, on average, however long the slices are: a bucket with many slices in it is
 * one of many buckets.
 */
#pragma once

#include "src/device/backend.h"

/* A slice that is not empty. */
struct sequence_part {
	const unsigned char *items;
	uint64_t start, end; /* numbers */
};

struct sequence {
	const struct sequence_part *parts;
	const uint32_t *buckets;
	uint32_t n_parts;
	unsigned bucket_shift; /* number >> bucket_shift is its bucket */
	uint64_t item_nbytes;
	uint64_t n;
};

/* Parts and buckets that sequence_make() needs for k slices. */
static inline uint32_t sequence_n_parts(uint32_t k)
{
	return k;
}

static inline uint64_t sequence_n_buckets(uint32_t k)
{
	return 2 * (uint64_t)k + 1;
}

/* The arrays are the sequence's from now on. */
void sequence_make(const struct slice *slices, uint32_t k, uint64_t item_nbytes,
		   struct sequence_part *parts, uint32_t *buckets, struct sequence *ret_sequence);

/* The item of a number below n. */
static inline const unsigned char *sequence_item(const struct sequence *sequence, uint64_t number)
{
	const struct sequence_part *part = sequence->parts;

	if (sequence->n_parts > 1) {
		part += sequence->buckets[number >> sequence->bucket_shift];
		while (number >= part->end)
			part++;
	}
	return part->items + (number - part->start) * sequence->item_nbytes;
}
