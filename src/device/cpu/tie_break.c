/*
 * tie_break - order elements with equal prefixes by the rest of their keys (see tie_break.h)
 *
 * A group is a range of elements that tie in some leading bytes of their keys. These bytes are no
 * longer needed, so the next twelve replace them, and the group is sorted like the whole array.
 * Elements that tie again form new groups:
 *
 *	key      aaaaaaaaaaaa bbbbbbbbbbbb 1	elements   a..a 0  a..a 1  a..a 2
 *	         aaaaaaaaaaaa cccccccccccc 2	           c..c 1  b..b 0  b..b 2	next bytes
 *	         aaaaaaaaaaaa bbbbbbbbbbbb 0	           b..b 0  b..b 2  c..c 1	sorted
 *	                                 	           "1"  0  "0"  2		next bytes
 *	                                 	           "0"  2  "1"  0  c..c 1
 *
 * Keys with long common prefixes would take many rounds, each with accesses to all records. So a
 * round first finds how many bytes the group has in common, which is cheap: the first key is
 * compared with the others, each only up to the shortest match so far. Without a long common prefix
 * this ends at once. A group of equal keys takes one pass.
 *
 * Small groups are sorted by insertion, which compares keys in place.
 *
 * Waiting groups are disjoint and none is small, so few of them need space.
 *
 * All this uses wide elements (element_format.h). Wide elements are changed in place. A group of
 * narrow elements is copied to be sorted, and only its numbers are copied back. Narrow elements are
 * used only where few ties are expected, so the space for copies is limited.
 */
#include "src/device/cpu/tie_break.h"

#include "src/device/cpu/cpu_sort.h"
#include "src/record/key_prefix.h"

enum {
	SMALL_N = 16,              /* largest group that is sorted by insertion */
	TIE_BREAK_PREFETCH_N = 16, /* elements whose items are prefetched */
};

/*
 * The format of groups, whatever that of the elements is: twelve bytes of the key, four of the
 * number.
 */
static const struct element_format wide_format = { .element_nbytes = 16, .number_bits = 32 };
enum { WIDE_KEY_NBYTES = 12 };

struct tie_group {
	uint32_t start, n;
	uint32_t n_equal_nbytes; /* leading bytes of the key that are equal in the group */
};

struct tie_break_state {
	const struct tie_break_op *op;
	struct tie_group *pending;
	uint64_t n_pending;
};

static uint64_t max_pending_groups(uint64_t n)
{
	return n / (SMALL_N + 1) + 1;
}

size_t tie_break_scratch_nbytes(uint64_t n)
{
	return max_pending_groups(n) * sizeof(struct tie_group);
}

static uint32_t number_at(const struct tie_break_state *state, uint64_t i)
{
	return element_number(state->op->format, state->op->elements, i);
}

static const unsigned char *item_at(const struct tie_break_state *state, uint64_t i)
{
	return item_lookup_get(state->op->items, number_at(state, i));
}

/* Prefetch the part of element i's item that is read next. */
static void prefetch_key(const struct tie_break_state *state, uint64_t i, uint32_t n_equal)
{
	const struct key_fields *const keys = state->op->keys;
	const uint32_t skipped = key_tail_is_bytes(keys) ? n_equal : 0;

	__builtin_prefetch(item_at(state, i) + keys->fields[0].offset + skipped);
}

/* Prefetch for a loop over all elements of a group. */
static void prefetch_group_item(const struct tie_break_state *state, const struct tie_group *group,
				uint64_t i)
{
	if (i + TIE_BREAK_PREFETCH_N < (uint64_t)group->start + group->n)
		prefetch_key(state, i + TIE_BREAK_PREFETCH_N, group->n_equal_nbytes);
}

/*
 * Sort a small group by insertion. It is stable, because the elements are in the order of their
 * numbers.
 */
static void sort_small_group(const struct tie_break_state *state, const struct tie_group *group)
{
	const unsigned char *items[SMALL_N];
	uint32_t numbers[SMALL_N];

	for (uint32_t i = 0; i < group->n; i++) {
		const uint32_t number = number_at(state, group->start + i);
		const unsigned char *const item = item_lookup_get(state->op->items, number);
		uint32_t at = i;

		for (; at > 0 && key_tail_compare(state->op->keys, group->n_equal_nbytes,
						  items[at - 1], item) > 0;
		     at--) {
			items[at] = items[at - 1];
			numbers[at] = numbers[at - 1];
		}
		items[at] = item;
		numbers[at] = number;
	}
	for (uint32_t i = 0; i < group->n; i++)
		element_set_number(state->op->format, state->op->elements, group->start + i,
				   numbers[i]);
}

/* Return how many leading bytes of the keys are equal in the group, in whole words. */
static uint32_t count_equal(const struct tie_break_state *state, const struct tie_group *group)
{
	const struct key_fields *const keys = state->op->keys;
	const unsigned char *const first = item_at(state, group->start);
	uint32_t end = keys->key_nbytes;

	for (uint64_t i = group->start + 1;
	     i < (uint64_t)group->start + group->n && end > group->n_equal_nbytes; i++) {
		const unsigned char *const item = item_at(state, i);
		uint32_t at = group->n_equal_nbytes;

		prefetch_group_item(state, group, i);
		while (at < end && key_tail_word(keys, first, at) == key_tail_word(keys, item, at))
			at += 8;
		end = at < end ? at : end;
	}
	return end;
}

/* Make wide elements of the next bytes of the keys of a group, and sort them. */
static void sort_group(const struct tie_break_state *state, const struct tie_group *group,
		       uint128_t *buffer)
{
	const struct tie_break_op *op = state->op;

	for (uint64_t i = 0; i < group->n; i++) {
		const uint32_t number = number_at(state, group->start + i);
		const unsigned char *const item = item_lookup_get(op->items, number);
		const uint64_t word = key_tail_word(op->keys, item, group->n_equal_nbytes);
		const uint64_t next = key_tail_word(op->keys, item, group->n_equal_nbytes + 8);

		prefetch_group_item(state, group, group->start + i);
		element_put(&wide_format, buffer, i, (uint128_t)word << 64 | next, number);
	}
	cpu_sort(&(struct sort_elements_op){ .elements = buffer,
					     .n = group->n,
					     .scratch = op->sort_scratch,
					     .element_nbytes = wide_format.element_nbytes });
}

/* Return whether an element ties with the previous one. */
static bool elements_tie(const struct element_format *format, const void *elements, uint64_t i)
{
	return element_key(format, elements, i - 1) == element_key(format, elements, i);
}

/*
 * Find ties among the sorted elements of a group; sort small groups, and push the others. elements:
 * the first element of the group.
 */
static void find_groups(struct tie_break_state *state, const struct tie_group *parent,
			const struct element_format *format, const void *elements)
{
	uint64_t start = 0;

	for (uint64_t i = 1; i <= parent->n; i++) {
		struct tie_group group;

		if (i + TIE_BREAK_PREFETCH_N < parent->n &&
		    elements_tie(format, elements, i + TIE_BREAK_PREFETCH_N)) {
			prefetch_key(state, parent->start + i + TIE_BREAK_PREFETCH_N - 1,
				     parent->n_equal_nbytes);
			prefetch_key(state, parent->start + i + TIE_BREAK_PREFETCH_N,
				     parent->n_equal_nbytes);
		}
		if (i < parent->n && elements_tie(format, elements, i))
			continue;
		group = (struct tie_group){ parent->start + (uint32_t)start, (uint32_t)(i - start),
					    parent->n_equal_nbytes };
		start = i;
		if (group.n > SMALL_N)
			state->pending[state->n_pending++] = group;
		else if (group.n > 1)
			sort_small_group(state, &group);
	}
}

/* Sort a group by the next bytes in which it differs, if there are any. */
static void break_group_ties(struct tie_break_state *state, struct tie_group group)
{
	const struct tie_break_op *op = state->op;
	const bool is_wide = op->format->element_nbytes == wide_format.element_nbytes;
	uint128_t *const buffer = is_wide ? (uint128_t *)op->elements + group.start :
					    op->wide_buffer;

	group.n_equal_nbytes = count_equal(state, &group);
	if (group.n_equal_nbytes >= op->keys->key_nbytes)
		return;
	sort_group(state, &group, buffer);
	for (uint64_t i = 0; i < group.n && !is_wide; i++)
		element_set_number(op->format, op->elements, group.start + i,
				   element_number(&wide_format, buffer, i));
	group.n_equal_nbytes += WIDE_KEY_NBYTES;
	if (group.n_equal_nbytes < op->keys->key_nbytes)
		find_groups(state, &group, &wide_format, buffer);
}

bool cpu_break_ties(const struct tie_break_op *op)
{
	const bool is_wide = op->format->element_nbytes == wide_format.element_nbytes;
	struct tie_break_state state = { .op = op, .pending = op->scratch };
	const struct tie_group whole = { 0, (uint32_t)op->n,
					 element_format_tied_nbytes(op->format) };

	find_groups(&state, &whole, op->format, op->elements);
	while (state.n_pending > 0) {
		const struct tie_group group = state.pending[--state.n_pending];

		if (!is_wide && group.n > op->wide_buffer_n)
			return false;
		break_group_ties(&state, group);
	}
	return true;
}
