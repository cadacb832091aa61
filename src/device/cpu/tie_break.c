/*
 * tie_break - put elements that tie in the order of the rest of their keys (see tie_break.h)
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
 *
 * All this is done with wide elements (element_format.h). Wide ones are changed where they are. Of
 * narrow ones a group is copied to be sorted, and only the numbers come back; they are only
 * used where few are expected to tie, so the room for that is limited.
 */
#include "src/device/cpu/tie_break.h"

#include "src/device/cpu/sort.h"
#include "src/record/key_tail.h"

enum {
	SMALL_N = 16, /* the largest group that is sorted by insertion */
	AHEAD_N = 16, /* elements whose items are asked for before their turn */
};

/* Of groups, whatever that of the elements is: twelve bytes of the key, four of the number. */
static const struct element_form wide = { .element_nbytes = 16, .number_bits = 32 };
enum { WIDE_KEY_NBYTES = 12 };

struct group {
	uint32_t start, n;
	uint32_t n_equal; /* bytes of the key that are the same in all of it */
};

struct refining {
	const struct refine_op *op;
	struct group *waiting;
	uint64_t n_waiting;
};

static uint64_t max_waiting(uint64_t n)
{
	return n / (SMALL_N + 1) + 1;
}

size_t refine_scratch_nbytes(uint64_t n)
{
	return max_waiting(n) * sizeof(struct group);
}

static uint32_t number_at(const struct refining *refining, uint64_t i)
{
	return element_number(refining->op->form, refining->op->elements, i);
}

static const unsigned char *item_at(const struct refining *refining, uint64_t i)
{
	return sequence_item(refining->op->items, number_at(refining, i));
}

/* Ask for what is looked at next of the item of the i-th element. */
static void fetch(const struct refining *refining, uint64_t i, uint32_t n_equal)
{
	const struct key_fields *const keys = refining->op->keys;
	const uint32_t skipped = key_rest_is_bytes(keys) ? n_equal : 0;

	__builtin_prefetch(item_at(refining, i) + keys->fields[0].offset + skipped);
}

/* The same, while all elements of a group are gone through. */
static void fetch_ahead(const struct refining *refining, const struct group *group, uint64_t i)
{
	if (i + AHEAD_N < (uint64_t)group->start + group->n)
		fetch(refining, i + AHEAD_N, group->n_equal);
}

/* Sort a small group by insertion: stable, and its elements are in the order of their numbers. */
static void sort_small(const struct refining *refining, const struct group *group)
{
	const unsigned char *items[SMALL_N];
	uint32_t numbers[SMALL_N];

	for (uint32_t i = 0; i < group->n; i++) {
		const uint32_t number = number_at(refining, group->start + i);
		const unsigned char *const item = sequence_item(refining->op->items, number);
		uint32_t at = i;

		for (; at > 0 && key_rest_compare(refining->op->keys, group->n_equal, items[at - 1],
						  item) > 0;
		     at--) {
			items[at] = items[at - 1];
			numbers[at] = numbers[at - 1];
		}
		items[at] = item;
		numbers[at] = number;
	}
	for (uint32_t i = 0; i < group->n; i++)
		element_set_number(refining->op->form, refining->op->elements, group->start + i,
				   numbers[i]);
}

/* How many bytes of their keys all elements of a group have in common, in whole words. */
static uint32_t count_equal(const struct refining *refining, const struct group *group)
{
	const struct key_fields *const keys = refining->op->keys;
	const unsigned char *const first = item_at(refining, group->start);
	uint32_t end = keys->key_nbytes;

	for (uint64_t i = group->start + 1;
	     i < (uint64_t)group->start + group->n && end > group->n_equal; i++) {
		const unsigned char *const item = item_at(refining, i);
		uint32_t at = group->n_equal;

		fetch_ahead(refining, group, i);
		while (at < end && key_rest_word(keys, first, at) == key_rest_word(keys, item, at))
			at += 8;
		end = at < end ? at : end;
	}
	return end;
}

/* Wide elements of a group, made of the next bytes of their keys, sorted. */
static void sort_group(const struct refining *refining, const struct group *group, uint128_t *room)
{
	const struct refine_op *op = refining->op;

	for (uint64_t i = 0; i < group->n; i++) {
		const uint32_t number = number_at(refining, group->start + i);
		const unsigned char *const item = sequence_item(op->items, number);
		const uint64_t word = key_rest_word(op->keys, item, group->n_equal);
		const uint64_t next = key_rest_word(op->keys, item, group->n_equal + 8);

		fetch_ahead(refining, group, group->start + i);
		element_put(&wide, room, i, (uint128_t)word << 64 | next, number);
	}
	cpu_sort(&(struct sort_elements_op){ .elements = room,
					     .n = group->n,
					     .scratch = op->sort_scratch,
					     .element_nbytes = wide.element_nbytes });
}

/* Does an element tie with the one before it? */
static bool ties(const struct element_form *form, const void *elements, uint64_t i)
{
	return element_key(form, elements, i - 1) == element_key(form, elements, i);
}

/*
 * Find what ties among the sorted elements of a group, sort small groups and let the others wait.
 * elements: of the group's start.
 */
static void find_groups(struct refining *refining, const struct group *within,
			const struct element_form *form, const void *elements)
{
	uint64_t start = 0;

	for (uint64_t i = 1; i <= within->n; i++) {
		struct group group;

		if (i + AHEAD_N < within->n && ties(form, elements, i + AHEAD_N)) {
			fetch(refining, within->start + i + AHEAD_N - 1, within->n_equal);
			fetch(refining, within->start + i + AHEAD_N, within->n_equal);
		}
		if (i < within->n && ties(form, elements, i))
			continue;
		group = (struct group){ within->start + (uint32_t)start, (uint32_t)(i - start),
					within->n_equal };
		start = i;
		if (group.n > SMALL_N)
			refining->waiting[refining->n_waiting++] = group;
		else if (group.n > 1)
			sort_small(refining, &group);
	}
}

/* Sort a group by the next bytes in which it differs, if there are any. */
static void refine_group(struct refining *refining, struct group group)
{
	const struct refine_op *op = refining->op;
	const bool is_wide = op->form->element_nbytes == wide.element_nbytes;
	uint128_t *const room = is_wide ? (uint128_t *)op->elements + group.start : op->room;

	group.n_equal = count_equal(refining, &group);
	if (group.n_equal >= op->keys->key_nbytes)
		return;
	sort_group(refining, &group, room);
	for (uint64_t i = 0; i < group.n && !is_wide; i++)
		element_set_number(op->form, op->elements, group.start + i,
				   element_number(&wide, room, i));
	group.n_equal += WIDE_KEY_NBYTES;
	if (group.n_equal < op->keys->key_nbytes)
		find_groups(refining, &group, &wide, room);
}

bool cpu_refine(const struct refine_op *op)
{
	const bool is_wide = op->form->element_nbytes == wide.element_nbytes;
	struct refining refining = { .op = op, .waiting = op->scratch };
	const struct group all = { 0, (uint32_t)op->n, element_form_tied_nbytes(op->form) };

	find_groups(&refining, &all, op->form, op->elements);
	while (refining.n_waiting > 0) {
		const struct group group = refining.waiting[--refining.n_waiting];

		if (!is_wide && group.n > op->room_n)
			return false;
		refine_group(&refining, group);
	}
	return true;
}
