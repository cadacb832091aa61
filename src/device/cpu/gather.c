/*
 * gather.c - copy items in their order, with digests and a check of the order (see gather.h)
 *
 * This is the only random access to records when sorting by elements. A load from memory takes
 * about 100 ns; a dozen records can be copied in that time. So records are prefetched 16 ahead. The
 * key is loaded and the item hashed while it is in the first-level cache. The order is checked with
 * the keys of the records themselves, not with the elements, and the digest covers the written
 * bytes.
 *
 * For items at random addresses it is faster to copy a batch, and then to hash and compare the
 * copies in the first-level cache (docs/performance-log.md). Merged slices are read sequentially;
 * there one pass is at least as fast.
 *
 * Memory that another thread may write can change between two loads. So each byte of such items is
 * loaded once, and everything else reads the copy.
 */
#include "src/device/cpu/gather.h"

#include <assert.h>
#include <stdatomic.h>

#include "src/base/cancellation.h"
#include "src/record/record_hash.h"
#include "src/record/key_prefix.h"

enum {
	GATHER_PREFETCH_N = 16, /* prefetched items, a power of 2 */
	CACHE_LINE_NBYTES = 64,
	/* Bytes of an item that are prefetched. The processor prefetches the rest as a stream. */
	MAX_PREFETCH_NBYTES = 512,
	BATCH_NBYTES = 16384, /* copied before they are checked: half of a first-level cache */
};

/*
 * Loops work on a local copy of their state, so that it stays in registers while bytes are stored.
 */
#define INLINE __attribute__((always_inline)) static inline

/* An item and its key prefix. */
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
	bool is_whole;                  /* the output is the whole item */
	struct gathered_item last_kept; /* last kept item */
	uint64_t last_count;            /* its count */
	struct sort_op_result result;
};

/* Prefetch item i, if it exists. */
INLINE void prefetch_item(struct gather_state *state, uint64_t i)
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

/* Return item i, and prefetch a later one. */
INLINE struct gathered_item next_gathered_item(struct gather_state *state, uint64_t i)
{
	const unsigned char *const item = state->prefetched[i % GATHER_PREFETCH_N];

	prefetch_item(state, i + GATHER_PREFETCH_N);
	return (struct gathered_item){ item, key_prefix_load(&state->prefix, item) };
}

INLINE int compare_gathered(const struct gather_state *state, const struct gathered_item *a,
			    const struct gathered_item *b)
{
	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	return key_tail_compare(&state->op->layout->item_keys, KEY_PREFIX_NBYTES, a->item, b->item);
}

/* Return the hash of an item's body. */
static uint64_t hash_body(const struct layout *layout, const unsigned char *item)
{
	return hash_bytes(item + layout->body_offset, layout->body_nbytes);
}

/* Copy a whole item for the caller, with its current count. */
static void return_item(const struct gather_state *state, const unsigned char *item, void *to)
{
	const struct layout *layout = state->op->layout;

	if (!to)
		return;
	memcpy(to, item, layout->item_nbytes);
	if (layout->projection.has_count)
		layout_set_item_count(layout, to, state->last_count);
}

/* Finish the last kept item: its count is known. */
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

/* Write the output's part of an item; return the hash of its body. */
INLINE uint64_t write_item(struct gather_state *state, const unsigned char *item)
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

/* Drop the items after the limit. They are almost in input order, so no prefetch is needed. */
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

/* Drop an item that equals the last kept one, or keep it instead of that one. */
static void merge_equal(struct gather_state *state, struct gathered_item gathered)
{
	const struct layout *layout = state->op->layout;

	state->last_count += layout_item_count(layout, gathered.item);
	if (!layout->keep_last) {
		drop_item(state, gathered);
		return;
	}
	drop_item(state, state->last_kept);
	state->result.digest.sum -= hash_body(layout, state->last_kept.item);
	state->out -= state->is_whole ? layout->item_nbytes : layout->output_nbytes;
	state->result.digest.sum += write_item(state, gathered.item);
	state->last_kept = gathered;
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
			merge_equal(state, gathered);
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

/* Gather all items, if all are kept and each counts 1. */
INLINE void gather_all(struct gather_state *state, uint32_t n_steps)
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
 * Return whether item i > 0 belongs before the previous one. With may_change, the numbers of equal
 * keys must ascend, too.
 */
INLINE bool is_disorder(const struct gather_state *state, uint64_t i,
			const struct gathered_item *gathered)
{
	const int order = compare_gathered(state, &state->last_kept, gathered);
	const void *elements = state->op->elements;

	return order > 0 || (order == 0 && state->op->may_change &&
			     element_number(&state->format, elements, i - 1) >=
				     element_number(&state->format, elements, i));
}

/* Copy the items [begin, end). */
INLINE void copy_items(struct gather_state *state, uint64_t begin, uint64_t end)
{
	const uint64_t item_nbytes = state->op->layout->item_nbytes;

	for (uint64_t i = begin; i < end; i++) {
		const unsigned char *const item = state->prefetched[i % GATHER_PREFETCH_N];

		prefetch_item(state, i + GATHER_PREFETCH_N);
		memcpy(state->out, item, item_nbytes);
		state->out += item_nbytes;
	}
}

/* Check the copies of the items [begin, end), which end at `out`. */
INLINE void check_copies(struct gather_state *state, uint64_t begin, uint64_t end)
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
 * Gather whole items at random addresses. A batch is copied and then checked, so that the processor
 * keeps more loads in flight instead of waiting for the bytes to hash. An item is not read again
 * after it was copied, because another thread may have changed it.
 */
INLINE void gather_scattered(struct gather_state *state, uint32_t n_steps)
{
	struct gather_state local_state = *state;
	const uint64_t n = local_state.op->n;
	const uint64_t max_batch_n = 1 + BATCH_NBYTES / local_state.op->layout->item_nbytes;

	local_state.prefix.n_steps = n_steps;
	local_state.result = (struct sort_op_result){ .n = n, .n_counted = n };
	for (uint64_t begin = 0, end; begin < n; begin = end) {
		if (cancellation_is_requested(local_state.op->cancellation))
			return;
		end = n - begin < max_batch_n ? n : begin + max_batch_n;
		copy_items(&local_state, begin, end);
		/*
		 * The fence keeps the compiler from reading the items again instead of the copies,
		 * which it may assume to be equal.
		 */
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

/* --- items by number --- */

void item_lookup_init(const struct slice *slices, uint32_t k, uint64_t item_nbytes,
		      struct item_lookup_entry *entries, uint32_t *buckets,
		      struct item_lookup *ret_lookup)
{
	struct item_lookup lookup = { .entries = entries,
				      .buckets = buckets,
				      .item_nbytes = item_nbytes };
	uint32_t entry = 0;

	for (uint32_t i = 0; i < k; i++) {
		if (slices[i].n == 0)
			continue;
		entries[lookup.n_entries++] = (struct item_lookup_entry){
			.items = slices[i].elements,
			.start = lookup.n,
			.end = lookup.n + slices[i].n,
		};
		lookup.n += slices[i].n;
	}
	/* Choose the smallest bucket size with at most two buckets per slice. */
	while (lookup.n >> lookup.bucket_shift > 2 * (uint64_t)lookup.n_entries)
		lookup.bucket_shift++;
	for (uint64_t start = 0; start < lookup.n; start += UINT64_C(1) << lookup.bucket_shift) {
		while (start >= entries[entry].end)
			entry++;
		*buckets++ = entry;
	}
	*ret_lookup = lookup;
}
