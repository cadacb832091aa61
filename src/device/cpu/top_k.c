/*
 * top_k - select the elements that can be among the first (see top_k.h)
 *
 * If only the first few elements are needed, one pass moves those above a bound aside. The bound is
 * an element of a sample, at a slightly higher rank than the limit requires, so that nearly always
 * enough elements are below it. If there are too few, all are sorted: a misleading sample costs
 * time.
 *
 * The bound is compared without the numbers of the elements. So elements that tie with it are below
 * it, and breaking ties (tie_break.h) never needs the dropped elements.
 */
#include "src/device/cpu/top_k.h"

#include <stdlib.h>

enum {
	SAMPLE_N = 256,
	MARGIN_N =
		8, /* added to the rank in the sample: covers random variation for small limits, */
	MARGIN_DIVISOR = 4,    /* and for large ones */
	MAX_LIMIT_DIVISOR = 4, /* above n / MAX_LIMIT_DIVISOR all are sorted */
};

static int compare_keys(const void *a, const void *b)
{
	const uint128_t x = *(const uint128_t *)a, y = *(const uint128_t *)b;

	return (x > y) - (x < y);
}

/* Return the rank of the bound in the sample. */
static uint64_t choose_rank(const struct top_k_op *op)
{
	const uint64_t expected = (uint64_t)((uint128_t)op->limit * SAMPLE_N / op->n);

	return expected + expected / MARGIN_DIVISOR + MARGIN_N;
}

static uint128_t choose_bound(const struct top_k_op *op)
{
	uint128_t keys[SAMPLE_N];

	for (uint64_t i = 0; i < SAMPLE_N; i++)
		keys[i] = element_key(op->format, op->elements, i * (op->n / SAMPLE_N));
	qsort(keys, SAMPLE_N, sizeof keys[0], compare_keys);
	return keys[choose_rank(op)];
}

/* Callers pass the format as a constant. */
__attribute__((always_inline)) static inline uint64_t
move_below(const struct top_k_op *op, struct element_format format, uint128_t bound)
{
	char *const elements = op->elements;
	uint64_t n_below = 0;

	for (uint64_t i = 0; i < op->n; i++) {
		char *const from = elements + i * format.element_nbytes;
		char *const to = elements + n_below * format.element_nbytes;
		char element[16];

		if (element_key(&format, elements, i) > bound)
			continue;
		__builtin_memcpy(element, from, format.element_nbytes);
		__builtin_memmove(from, to, format.element_nbytes);
		__builtin_memcpy(to, element, format.element_nbytes);
		n_below++;
	}
	return n_below;
}

uint64_t cpu_top_k(const struct top_k_op *op)
{
	struct element_format format = *op->format;
	uint128_t bound;
	uint64_t n_below;

	if (op->n < SAMPLE_N || op->limit > op->n / MAX_LIMIT_DIVISOR)
		return op->n;
	bound = choose_bound(op);
	if (format.element_nbytes == 8) {
		format.element_nbytes = 8;
		n_below = move_below(op, format, bound);
	} else {
		format.element_nbytes = 16;
		n_below = move_below(op, format, bound);
	}
	return n_below < op->limit ? op->n : n_below;
}
