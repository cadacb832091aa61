/*
 * gather - items in their order, checked on the way (see gather.h)
 *
 * The one random access to records that sorting by elements costs. Memory takes some 100 ns to
 * answer, in which a dozen records can be copied, so records are asked for a dozen ahead of their
 * turn. Everything that must be known of an item, its key, its hash, is taken while it is in the
 * first-level cache anyway: the order is checked by the keys of the records themselves, not by the
 * elements that brought them here, and the digest is taken of what was written.
 *
 * Items at random addresses are faster to copy in batches, and to hash and compare from the copies
 * in the first-level cache (docs/performance-log.md). Slices that are merged are read sequentially,
 * each from its beginning to its end: one pass is as fast there, or faster.
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
	GATHER_PREFETCH_N = 16, /* items asked for, a power of 2 */
	CACHE_LINE_NBYTES = 64,
	MAX_PREFETCH_NBYTES =
		512,          /* of each: longer ones are fetched as a stream by the processor */
	BATCH_NBYTES = 16384, /* copied, and then looked at: half of a first-level cache */
};

/*
 * Loops work on a copy of their state whose address nobody has, so that it can stay in registers
 * while bytes are stored.
 */
#define INLINED __attribute__((always_inline)) static inline

/* An item and the beginning of its key. */
struct gathered_item {
	const unsigned char *item;
	uint128_t prefix;
};

struct gather_state {
	const struct gather_op *op;
	struct item_lookup items;
	struct element_format format;
	struct key_prefix prefix;
	const unsigned char *prefetched[GATHER_PREFETCH_N];
	unsigned char *out;
	bool is_whole;                  /* what is written is the item */
	struct gathered_item last_kept; /* kept */
	uint64_t last_count;            /* of it */
	struct sort_op_result result;
};

/* Ask for the i-th item, if there is one. */
INLINED void prefetch_item(struct gather_state *state, uint64_t i)
{
	const uint64_t item_nbytes = state->items.item_nbytes;
	const uint64_t nbytes = item_nbytes < MAX_PREFETCH_NBYTES ? item_nbytes :
								    MAX_PREFETCH_NBYTES;
	const void *elements = state->op->elements;
	const unsigned char *item;

	if (i >= state->op->n)
		return;
	item = item_lookup_get(&state->items,
			       elements ? element_number(&state->format, elements, i) : i);
	state->prefetched[i % GATHER_PREFETCH_N] = item;
	for (uint64_t at = 0; at < nbytes; at += CACHE_LINE_NBYTES)
		__builtin_prefetch(item + at);
	__builtin_prefetch(item + nbytes - 1);
}

/* The i-th item, while a later one is asked for. */
INLINED struct gathered_item next_gathered_item(struct gather_state *state, uint64_t i)
{
	const unsigned char *const item = state->prefetched[i % GATHER_PREFETCH_N];

	prefetch_item(state, i + GATHER_PREFETCH_N);
	return (struct gathered_item){ item, key_prefix_load(&state->prefix, item) };
}

INLINED int compare_gathered(const struct gather_state *state, const struct gathered_item *a,
			     const struct gathered_item *b)
{
	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	return key_tail_compare(&state->op->layout->item_keys, KEY_PREFIX_NBYTES, a->item, b->item);
}

/* The hash of an item's body. */
static uint64_t hash_body(const struct layout *layout, const unsigned char *item)
{
	return hash_bytes(item + layout->body_offset, layout->body_nbytes);
}

/* A whole item for the caller, with the count that is known by now. */
static void return_item(const struct gather_state *state, const unsigned char *item, void *to)
{
	const struct layout *layout = state->op->layout;

	if (!to)
		return;
	memcpy(to, item, layout->item_nbytes);
	if (layout->projection.has_count)
		layout_set_item_count(layout, to, state->last_count);
}

/* The count of the last item kept is known. */
static void finish_item(struct gather_state *state)
{
	const struct gather_op *op = state->op;

	if (state->result.n == 0)
		return;
	state->result.n_counted += state->last_count;
	if (op->layout->projection.has_count && state->is_whole)
		layout_set_item_count(op->layout, state->out - op->layout->item_nbytes,
				      state->last_count);
	if (state->result.n == 1)
		return_item(state, state->last_kept.item, op->ret_first);
}

/* Write what is wanted of an item; returns the hash of its body. */
INLINED uint64_t write_item(struct gather_state *state, const unsigned char *item)
{
	const struct layout *layout = state->op->layout;
	unsigned char *const to = state->out;

	if (!state->is_whole) {
		memcpy(to, item + layout->output_offset, layout->output_nbytes);
		state->out += layout->output_nbytes;
		return hash_body(layout, item);
	}
	state->out += layout->item_nbytes;
	if (layout->body_nbytes == layout->item_nbytes)
		return hash_and_copy(to, item, layout->item_nbytes);
	memcpy(to, item, layout->item_nbytes);
	return hash_body(layout, to);
}

static void keep_item(struct gather_state *state, struct gathered_item gathered)
{
	finish_item(state);
	state->result.digest.sum += write_item(state, gathered.item);
	state->result.n++;
	state->last_kept = gathered;
	state->last_count = layout_item_count(state->op->layout, gathered.item);
}

static void drop_item(struct gather_state *state, struct gathered_item gathered)
{
	const uint64_t hash = hash_body(state->op->layout, gathered.item);

	digest_add(&state->result.dropped, (struct digest){ 1, hash });
}

/* What was put aside lies nearly in the order in which it came: nothing has to be asked for. */
static void drop_unordered(struct gather_state *state)
{
	const struct gather_op *op = state->op;
	struct digest dropped = { .n_records = op->n - op->n_ordered };

	for (uint64_t i = op->n_ordered; i < op->n; i++) {
		const uint32_t number = element_number(&state->format, op->elements, i);

		dropped.sum += hash_body(op->layout, item_lookup_get(op->items, number));
	}
	digest_add(&state->result.dropped, dropped);
}

static void gather_filtered(struct gather_state *state)
{
	const struct gather_op *op = state->op;

	for (uint64_t i = 0; i < op->n_ordered; i++) {
		const struct gathered_item gathered = next_gathered_item(state, i);
		const int order = state->result.n ?
					  compare_gathered(state, &state->last_kept, &gathered) :
					  -1;

		if (order == 0 && op->unique) {
			state->last_count += layout_item_count(op->layout, gathered.item);
			drop_item(state, gathered);
		} else if (state->result.n == op->limit) {
			drop_item(state, gathered);
		} else {
			state->result.n_disorders += order > 0;
			keep_item(state, gathered);
		}
	}
	finish_item(state);
	drop_unordered(state);
}

/* The same, when every item is kept and counts 1. */
INLINED void gather_all(struct gather_state *state, uint32_t n_steps)
{
	struct gather_state local_state = *state;
	const uint64_t n = local_state.op->n;
	struct sort_op_result result = { .n = n, .n_counted = n };

	local_state.prefix.n_steps = n_steps;
	if (n > 0)
		return_item(state, local_state.prefetched[0], local_state.op->ret_first);
	for (uint64_t i = 0; i < n; i++) {
		const struct gathered_item gathered = next_gathered_item(&local_state, i);

		result.n_disorders +=
			i > 0 &&
			compare_gathered(&local_state, &local_state.last_kept, &gathered) > 0;
		result.digest.sum += write_item(&local_state, gathered.item);
		local_state.last_kept = gathered;
	}
	state->last_kept = local_state.last_kept;
	state->result = result;
}

/*
 * Is the i-th item, which is not the first, out of order? Where items are shared, equal keys go by
 * their numbers.
 */
INLINED bool is_disorder(const struct gather_state *state, uint64_t i,
			 const struct gathered_item *gathered)
{
	const int order = compare_gathered(state, &state->last_kept, gathered);
	const void *elements = state->op->elements;

	return order > 0 || (order == 0 && state->op->may_change &&
			     element_number(&state->format, elements, i - 1) >=
				     element_number(&state->format, elements, i));
}

/* Make copies of the items [begin, end). */
INLINED void copy_items(struct gather_state *state, uint64_t begin, uint64_t end)
{
	const uint64_t item_nbytes = state->op->layout->item_nbytes;

	for (uint64_t i = begin; i < end; i++) {
		const unsigned char *const item = state->prefetched[i % GATHER_PREFETCH_N];

		prefetch_item(state, i + GATHER_PREFETCH_N);
		memcpy(state->out, item, item_nbytes);
		state->out += item_nbytes;
	}
}

/* Look at the copies of the items [begin, end), which lie in front of `out`. */
INLINED void check_copies(struct gather_state *state, uint64_t begin, uint64_t end)
{
	const struct layout *layout = state->op->layout;
	const unsigned char *copy = state->out - (end - begin) * layout->item_nbytes;

	for (uint64_t i = begin; i < end; i++, copy += layout->item_nbytes) {
		const struct gathered_item gathered = { copy,
							key_prefix_load(&state->prefix, copy) };

		state->result.n_disorders += i > 0 && is_disorder(state, i, &gathered);
		state->result.digest.sum += hash_body(layout, copy);
		state->last_kept = gathered;
	}
}

/*
 * The same, when all of every item is written, and none is near the one before. Some are copied,
 * and then looked at: while memory is waited for, what is under way in the processor asks for more
 * of it, and does not wait for its bytes to be hashed. And nothing is read of an item that may be
 * another one by now.
 */
INLINED void gather_scattered(struct gather_state *state, uint32_t n_steps)
{
	struct gather_state local_state = *state;
	const uint64_t n = local_state.op->n;
	const uint64_t max_batch_n = 1 + BATCH_NBYTES / local_state.op->layout->item_nbytes;

	local_state.prefix.n_steps = n_steps;
	local_state.result = (struct sort_op_result){ .n = n, .n_counted = n };
	for (uint64_t begin = 0, end; begin < n; begin = end) {
		end = n - begin < max_batch_n ? n : begin + max_batch_n;
		copy_items(&local_state, begin, end);
		/* The compiler knows that copies are equal; it may not look at the items for it. */
		atomic_signal_fence(memory_order_seq_cst);
		check_copies(&local_state, begin, end);
	}
	state->last_kept = local_state.last_kept;
	state->result = local_state.result;
	if (n > 0)
		return_item(state, local_state.op->out, local_state.op->ret_first);
}

void cpu_gather(const struct gather_op *op)
{
	struct gather_state state = {
		.op = op,
		.items = *op->items,
		.out = op->out,
		.is_whole = !op->for_output || op->layout->output_nbytes == op->layout->item_nbytes,
	};

	assert(!op->may_change || (op->scattered && op->elements && state.is_whole && !op->unique &&
				   op->limit >= op->n && !op->layout->projection.has_count));
	if (op->elements)
		state.format = *op->format;
	key_prefix_make(&op->layout->item_keys, op->layout->item_nbytes, &state.prefix);
	for (uint64_t i = 0; i < GATHER_PREFETCH_N; i++)
		prefetch_item(&state, i);
	if (op->unique || op->limit < op->n || op->layout->projection.has_count)
		gather_filtered(&state);
	else if (op->scattered && state.is_whole && state.prefix.n_steps == 1)
		gather_scattered(&state, 1);
	else if (op->scattered && state.is_whole)
		gather_scattered(&state, state.prefix.n_steps);
	else if (state.prefix.n_steps == 1)
		gather_all(&state, 1);
	else
		gather_all(&state, state.prefix.n_steps);
	state.result.digest.n_records = state.result.n;
	if (state.result.n > 0)
		return_item(&state, state.last_kept.item, op->ret_last);
	*op->ret = state.result;
}
