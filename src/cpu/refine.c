/*
 * refine - put elements that tie in the order of the rest of their keys (see refine.h)
 *
 * A group is a range of elements that tie in their keys up to some byte. Nobody needs these bytes
 * of the elements any more, so the next twelve take their place, the group is sorted as the whole
 * was, and what ties again are groups that are looked at further on:
 *
 *	key      aaaaaaaaaaaa bbbbbbbbbbbb 1	elements   a..a 0  a..a 1  a..a 2
 *	         aaaaaaaaaaaa cccccccccccc 2	           c..c 1  b..b 0  b..b 2	next bytes
 *	         aaaaaaaaaaaa bbbbbbbbbbbb 0	           b..b 0  b..b 2  c..c 1	sorted
 *	                                 	           "1"  0  "0"  2		next bytes
 *	                                 	           "0"  2  "1"  0  c..c 1
 *
 * Keys that have a lot in common would make many rounds of this, each with accesses to all records.
 * So a round begins with finding out how many bytes the group has in common, which is cheap: the
 * first of them is compared with the others, each only as far as all before agreed, and in a group
 * without a long common prefix that is over at once. A group of equal keys takes one sweep.
 *
 * Small groups are sorted by insertion, comparing the keys where they are.
 *
 * Groups that wait are disjoint and none is small, so there is room for few of them.
 */
#include "src/cpu/refine.h"

#include "src/cpu/key_rest.h"
#include "src/cpu/sort.h"

enum {
	PREFIX_NBYTES = 16 - RECORD_NUMBER_NBYTES,
	NUMBER_BITS = 8 * RECORD_NUMBER_NBYTES,
	SMALL_N = 16, /* the largest group that is sorted by insertion */
	AHEAD_N = 16, /* elements whose items are asked for before their turn */
};

struct group {
	uint32_t start, n;
	uint32_t n_equal; /* bytes of the key that are the same in all of it */
};

struct refining {
	const struct refine_op *op;
	struct group *waiting;
	uint64_t n_waiting;
	void *sort_scratch;
};

static uint64_t max_waiting(uint64_t n)
{
	return n / (SMALL_N + 1) + 1;
}

size_t refine_scratch_nbytes(uint64_t n)
{
	return (max_waiting(n) * sizeof(struct group) + 15) / 16 * 16 +
	       cpu_sort_scratch_nbytes(n, sizeof(uint128_t));
}

static const unsigned char *item_of(const struct refining *refining, uint128_t element)
{
	return sequence_item(refining->op->items, (uint32_t)element);
}

/* Ask for what is looked at next of an item. */
static void fetch(const struct refining *refining, uint128_t element, uint32_t n_equal)
{
	const struct key_fields *const keys = refining->op->keys;
	const uint32_t skipped = key_rest_is_bytes(keys) ? n_equal : 0;

	__builtin_prefetch(item_of(refining, element) + keys->fields[0].offset + skipped);
}

static uint128_t prefix_of(uint128_t element)
{
	return element >> NUMBER_BITS;
}

/* Sort a small group by insertion: stable, and its elements are in the order of their numbers. */
static void sort_small(const struct refining *refining, const struct group *group)
{
	uint128_t *const elements = refining->op->elements + group->start;

	for (uint32_t i = 1; i < group->n; i++) {
		const uint128_t element = elements[i];
		const unsigned char *const item = item_of(refining, element);
		uint32_t at = i;

		for (; at > 0 && key_rest_compare(refining->op->keys, group->n_equal,
						  item_of(refining, elements[at - 1]), item) > 0;
		     at--)
			elements[at] = elements[at - 1];
		elements[at] = element;
	}
}

/* How many bytes of their keys all elements of a group have in common, in whole words. */
static uint32_t count_equal(const struct refining *refining, const struct group *group)
{
	const struct key_fields *const keys = refining->op->keys;
	const uint128_t *const elements = refining->op->elements + group->start;
	const unsigned char *const first = item_of(refining, elements[0]);
	uint32_t end = keys->key_nbytes;

	for (uint32_t i = 1; i < group->n && end > group->n_equal; i++) {
		const unsigned char *const item = item_of(refining, elements[i]);
		uint32_t at = group->n_equal;

		if (i + AHEAD_N < group->n)
			fetch(refining, elements[i + AHEAD_N], group->n_equal);
		while (at < end && key_rest_word(keys, first, at) == key_rest_word(keys, item, at))
			at += 8;
		end = at < end ? at : end;
	}
	return end;
}

/* Give a group the next bytes of its keys, and sort it by these. */
static void sort_group(const struct refining *refining, const struct group *group)
{
	uint128_t *const elements = refining->op->elements + group->start;

	for (uint32_t i = 0; i < group->n; i++) {
		const unsigned char *const item = item_of(refining, elements[i]);
		const uint64_t word = key_rest_word(refining->op->keys, item, group->n_equal);
		const uint64_t next = key_rest_word(refining->op->keys, item, group->n_equal + 8);

		if (i + AHEAD_N < group->n)
			fetch(refining, elements[i + AHEAD_N], group->n_equal);
		elements[i] = (uint128_t)word << 64 | next >> NUMBER_BITS << NUMBER_BITS |
			      (uint32_t)elements[i];
	}
	cpu_sort(&(struct sort_op){ .elements = elements,
				    .n = group->n,
				    .scratch = refining->sort_scratch,
				    .element_nbytes = sizeof *elements });
}

/* Does an element tie with the one before it? */
static bool ties(const uint128_t *elements, uint64_t i)
{
	return prefix_of(elements[i - 1]) == prefix_of(elements[i]);
}

/* Find what ties among sorted elements, sort small groups and let the others wait. */
static void find_groups(struct refining *refining, struct group within)
{
	const uint128_t *const elements = refining->op->elements;
	const uint64_t end = (uint64_t)within.start + within.n;
	uint64_t start = within.start;

	if (within.n_equal >= refining->op->keys->key_nbytes)
		return;
	for (uint64_t i = start + 1; i <= end; i++) {
		struct group group;

		if (i + AHEAD_N < end && ties(elements, i + AHEAD_N)) {
			fetch(refining, elements[i + AHEAD_N - 1], within.n_equal);
			fetch(refining, elements[i + AHEAD_N], within.n_equal);
		}
		if (i < end && ties(elements, i))
			continue;
		group = (struct group){ (uint32_t)start, (uint32_t)(i - start), within.n_equal };
		start = i;
		if (group.n > SMALL_N)
			refining->waiting[refining->n_waiting++] = group;
		else if (group.n > 1)
			sort_small(refining, &group);
	}
}

void cpu_refine(const struct refine_op *op)
{
	struct refining refining = { .op = op, .waiting = op->scratch };

	refining.sort_scratch = (char *)op->scratch + refine_scratch_nbytes(op->n) -
				cpu_sort_scratch_nbytes(op->n, sizeof(uint128_t));
	find_groups(&refining, (struct group){ 0, (uint32_t)op->n, PREFIX_NBYTES });
	while (refining.n_waiting > 0) {
		struct group group = refining.waiting[--refining.n_waiting];

		group.n_equal = count_equal(&refining, &group);
		if (group.n_equal >= op->keys->key_nbytes)
			continue;
		sort_group(&refining, &group);
		group.n_equal += PREFIX_NBYTES;
		find_groups(&refining, group);
	}
}
