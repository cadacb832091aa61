/*
 * gather - items in their order, checked on the way (see gather.h)
 *
 * The one random access to records that sorting by elements costs. Memory takes some 100 ns to
 * answer, in which a dozen records can be copied, so records are asked for a dozen ahead of their
 * turn. Everything that must be known of an item, its key, its hash, is taken while it is in the
 * first-level cache anyway: the order is checked by the keys of the records themselves, not by the
 * elements that brought them here, and the digest is taken of what was written.
 *
 * Where items lie anywhere in much memory it is faster to copy some of them first, and to look at
 * the copies then, in the first-level cache (docs/benchmarks.md). Slices that are merged are read
 * each from its beginning to its end: there one go is as fast, or faster.
 *
 * Items in memory that others can write have no content that could be relied on from one load to
 * the next, only their copies have. So of these each byte is taken once, and everything else is
 * read from the copy.
 */
#include "src/device/cpu/gather.h"

#include <assert.h>
#include <stdatomic.h>

#include "src/record/record_hash.h"
#include "src/record/key_prefix.h"
#include "src/record/key_tail.h"

enum {
	AHEAD_N = 16, /* items asked for, a power of 2 */
	CACHE_LINE_NBYTES = 64,
	MOST_AHEAD_NBYTES = 512, /* of each: longer ones are fetched as a stream by the processor */
	TOGETHER_NBYTES = 16384, /* copied, and then looked at: half of a first-level cache */
};

/*
 * Loops work on a copy of their state whose address nobody has, so that it can stay in registers
 * while bytes are stored.
 */
#define INLINED __attribute__((always_inline)) static inline

/* An item and the beginning of its key. */
struct seen {
	const unsigned char *item;
	uint128_t prefix;
};

struct gathering {
	const struct gather_op *op;
	struct sequence items;
	struct element_form form;
	struct key_prefix prefix;
	const unsigned char *ahead[AHEAD_N];
	unsigned char *out;
	bool is_whole;    /* what is written is the item */
	struct seen last; /* kept */
	uint64_t count;   /* of it */
	struct arranged found;
};

/* Ask for the i-th item, if there is one. */
INLINED void fetch(struct gathering *gathering, uint64_t i)
{
	const uint64_t item_nbytes = gathering->items.item_nbytes;
	const uint64_t nbytes = item_nbytes < MOST_AHEAD_NBYTES ? item_nbytes : MOST_AHEAD_NBYTES;
	const void *elements = gathering->op->elements;
	const unsigned char *item;

	if (i >= gathering->op->n)
		return;
	item = sequence_item(&gathering->items,
			     elements ? element_number(&gathering->form, elements, i) : i);
	gathering->ahead[i % AHEAD_N] = item;
	for (uint64_t at = 0; at < nbytes; at += CACHE_LINE_NBYTES)
		__builtin_prefetch(item + at);
	__builtin_prefetch(item + nbytes - 1);
}

/* The i-th item, while a later one is asked for. */
INLINED struct seen next(struct gathering *gathering, uint64_t i)
{
	const unsigned char *const item = gathering->ahead[i % AHEAD_N];

	fetch(gathering, i + AHEAD_N);
	return (struct seen){ item, key_prefix_load(&gathering->prefix, item) };
}

INLINED int compare(const struct gathering *gathering, const struct seen *a, const struct seen *b)
{
	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	return key_rest_compare(&gathering->op->layout->item_keys, KEY_PREFIX_NBYTES, a->item,
				b->item);
}

/* The hash of an item's body. */
static uint64_t hash_of(const struct layout *layout, const unsigned char *item)
{
	return hash_bytes(item + layout->body_offset, layout->body_nbytes);
}

/* A whole item for the caller, with the count that is known by now. */
static void return_item(const struct gathering *gathering, const unsigned char *item, void *to)
{
	const struct layout *layout = gathering->op->layout;

	if (!to)
		return;
	memcpy(to, item, layout->item_nbytes);
	if (layout->intake.has_count)
		layout_set_item_count(layout, to, gathering->count);
}

/* The count of the last item kept is known. */
static void finish_item(struct gathering *gathering)
{
	const struct gather_op *op = gathering->op;

	if (gathering->found.n == 0)
		return;
	gathering->found.n_counted += gathering->count;
	if (op->layout->intake.has_count && gathering->is_whole)
		layout_set_item_count(op->layout, gathering->out - op->layout->item_nbytes,
				      gathering->count);
	if (gathering->found.n == 1)
		return_item(gathering, gathering->last.item, op->ret_first);
}

/* Write what is wanted of an item; returns the hash of its body. */
INLINED uint64_t write_item(struct gathering *gathering, const unsigned char *item)
{
	const struct layout *layout = gathering->op->layout;
	unsigned char *const to = gathering->out;

	if (!gathering->is_whole) {
		memcpy(to, item + layout->output_offset, layout->output_nbytes);
		gathering->out += layout->output_nbytes;
		return hash_of(layout, item);
	}
	gathering->out += layout->item_nbytes;
	if (layout->body_nbytes == layout->item_nbytes)
		return hash_copied(to, item, layout->item_nbytes);
	memcpy(to, item, layout->item_nbytes);
	return hash_of(layout, to);
}

static void keep(struct gathering *gathering, struct seen seen)
{
	finish_item(gathering);
	gathering->found.digest.sum += write_item(gathering, seen.item);
	gathering->found.n++;
	gathering->last = seen;
	gathering->count = layout_item_count(gathering->op->layout, seen.item);
}

static void drop(struct gathering *gathering, struct seen seen)
{
	const uint64_t hash = hash_of(gathering->op->layout, seen.item);

	digest_add(&gathering->found.dropped, (struct digest){ 1, hash });
}

/* What was put aside lies nearly in the order in which it came: nothing has to be asked for. */
static void drop_rest(struct gathering *gathering)
{
	const struct gather_op *op = gathering->op;
	struct digest rest = { .n_records = op->n - op->n_ordered };

	for (uint64_t i = op->n_ordered; i < op->n; i++) {
		const uint32_t number = element_number(&gathering->form, op->elements, i);

		rest.sum += hash_of(op->layout, sequence_item(op->items, number));
	}
	digest_add(&gathering->found.dropped, rest);
}

static void gather_some(struct gathering *gathering)
{
	const struct gather_op *op = gathering->op;

	for (uint64_t i = 0; i < op->n_ordered; i++) {
		const struct seen seen = next(gathering, i);
		const int order = gathering->found.n ? compare(gathering, &gathering->last, &seen) :
						       -1;

		if (order == 0 && op->unique) {
			gathering->count += layout_item_count(op->layout, seen.item);
			drop(gathering, seen);
		} else if (gathering->found.n == op->limit) {
			drop(gathering, seen);
		} else {
			gathering->found.n_disorders += order > 0;
			keep(gathering, seen);
		}
	}
	finish_item(gathering);
	drop_rest(gathering);
}

/* The same, when every item is kept and counts 1. */
INLINED void gather_all(struct gathering *gathering, uint32_t n_steps)
{
	struct gathering own = *gathering;
	const uint64_t n = own.op->n;
	struct arranged found = { .n = n, .n_counted = n };

	own.prefix.n_steps = n_steps;
	if (n > 0)
		return_item(gathering, own.ahead[0], own.op->ret_first);
	for (uint64_t i = 0; i < n; i++) {
		const struct seen seen = next(&own, i);

		found.n_disorders += i > 0 && compare(&own, &own.last, &seen) > 0;
		found.digest.sum += write_item(&own, seen.item);
		own.last = seen;
	}
	gathering->last = own.last;
	gathering->found = found;
}

/*
 * Is the i-th item, which is not the first, out of order? Where items are shared, equal keys go by
 * their numbers.
 */
INLINED bool is_disorder(const struct gathering *gathering, uint64_t i, const struct seen *seen)
{
	const int order = compare(gathering, &gathering->last, seen);
	const void *elements = gathering->op->elements;

	return order > 0 || (order == 0 && gathering->op->shared &&
			     element_number(&gathering->form, elements, i - 1) >=
				     element_number(&gathering->form, elements, i));
}

/* Make copies of the items [begin, end). */
INLINED void copy_items(struct gathering *gathering, uint64_t begin, uint64_t end)
{
	const uint64_t item_nbytes = gathering->op->layout->item_nbytes;

	for (uint64_t i = begin; i < end; i++) {
		const unsigned char *const item = gathering->ahead[i % AHEAD_N];

		fetch(gathering, i + AHEAD_N);
		memcpy(gathering->out, item, item_nbytes);
		gathering->out += item_nbytes;
	}
}

/* Look at the copies of the items [begin, end), which lie in front of `out`. */
INLINED void look_at_copies(struct gathering *gathering, uint64_t begin, uint64_t end)
{
	const struct layout *layout = gathering->op->layout;
	const unsigned char *copy = gathering->out - (end - begin) * layout->item_nbytes;

	for (uint64_t i = begin; i < end; i++, copy += layout->item_nbytes) {
		const struct seen seen = { copy, key_prefix_load(&gathering->prefix, copy) };

		gathering->found.n_disorders += i > 0 && is_disorder(gathering, i, &seen);
		gathering->found.digest.sum += hash_of(layout, copy);
		gathering->last = seen;
	}
}

/*
 * The same, when all of every item is written, and none is near the one before. Some are copied,
 * and then looked at: while memory is waited for, what is under way in the processor asks for more
 * of it, and does not wait for its bytes to be hashed. And nothing is read of an item that may be
 * another one by now.
 */
INLINED void gather_scattered(struct gathering *gathering, uint32_t n_steps)
{
	struct gathering own = *gathering;
	const uint64_t n = own.op->n;
	const uint64_t most_together = 1 + TOGETHER_NBYTES / own.op->layout->item_nbytes;

	own.prefix.n_steps = n_steps;
	own.found = (struct arranged){ .n = n, .n_counted = n };
	for (uint64_t begin = 0, end; begin < n; begin = end) {
		end = n - begin < most_together ? n : begin + most_together;
		copy_items(&own, begin, end);
		/* The compiler knows that copies are equal; it may not look at the items for it. */
		atomic_signal_fence(memory_order_seq_cst);
		look_at_copies(&own, begin, end);
	}
	gathering->last = own.last;
	gathering->found = own.found;
	if (n > 0)
		return_item(gathering, own.op->out, own.op->ret_first);
}

void cpu_gather(const struct gather_op *op)
{
	struct gathering gathering = {
		.op = op,
		.items = *op->items,
		.out = op->out,
		.is_whole = !op->for_output || op->layout->output_nbytes == op->layout->item_nbytes,
	};

	assert(!op->shared || (op->scattered && op->elements && gathering.is_whole && !op->unique &&
			       op->limit >= op->n && !op->layout->intake.has_count));
	if (op->elements)
		gathering.form = *op->form;
	key_prefix_make(&op->layout->item_keys, op->layout->item_nbytes, &gathering.prefix);
	for (uint64_t i = 0; i < AHEAD_N; i++)
		fetch(&gathering, i);
	if (op->unique || op->limit < op->n || op->layout->intake.has_count)
		gather_some(&gathering);
	else if (op->scattered && gathering.is_whole && gathering.prefix.n_steps == 1)
		gather_scattered(&gathering, 1);
	else if (op->scattered && gathering.is_whole)
		gather_scattered(&gathering, gathering.prefix.n_steps);
	else if (gathering.prefix.n_steps == 1)
		gather_all(&gathering, 1);
	else
		gather_all(&gathering, gathering.prefix.n_steps);
	gathering.found.digest.n_records = gathering.found.n;
	if (gathering.found.n > 0)
		return_item(&gathering, gathering.last.item, op->ret_last);
	*op->ret = gathering.found;
}
