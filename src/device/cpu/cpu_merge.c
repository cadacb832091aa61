/*
 * cpu_merge.c - merge sorted slices into one, with one thread (see cpu_merge.h)
 *
 * Merging k slices pairwise takes log2(k) levels. Outside the cache each level would be a pass over
 * memory. So the output is cut into tiles, two of which fit the second-level cache. Each tile
 * passes all levels between two buffers, and memory is read and written once:
 *
 *	slices    |....:....|  |..:......|  |.....:...|  |...:.....|	read in place
 *	               \         /                  \        /
 *	buffer 0        [  merge  ]                 [  merge  ]
 *	                        \                    /
 *	out                     [       merge       ]			or buffer 1, then 0, ...
 *
 * The first level merges only as many pairs as are needed to leave a power of two, so that every
 * segment of a later level has a partner.
 *
 * A loser tree (Knuth, vol. 3, 5.4.1) needs log2(k) comparisons per element as well, but they form
 * one chain of unpredictable loads. Pairs of segments allow merge2 to overlap several chains, and
 * to use vectors.
 *
 * Where to cut: every slice is a sequence of blocks of block_n elements, and only the last element
 * of each block is read. Take blocks in the order of their last elements (equal ones: the earlier
 * slice first) while the tile has space. None of their elements is larger than the last element of
 * the last block, which becomes the splitter. The next block of every slice may begin with smaller
 * elements, too: fewer than block_n, found by binary search. This is Knuth's forecasting (5.4.9),
 * applied to memory. So a tile needs space for its blocks and k * block_n more elements. It never
 * overflows, for any data: equal elements are cut between slices, and within a slice at the end of
 * a block.
 *
 * Tiles need not have an exact length, unlike those of the GPU back end.
 */
#include "src/device/cpu/cpu_merge.h"

#include <string.h>

#include "src/device/co_rank.h"
#include "src/device/cpu/cpu_ops.h"
#ifdef __x86_64__
#include "src/device/cpu/x86/network_avx512.h"
#endif

/*
 * --- two slices ---
 *
 * A merge is a chain of dependent steps: the next comparison depends on the result of the last one.
 * With a branch, half of the comparisons of random data are mispredicted (3.0 ns per element).
 * Without a branch, the processor waits for the comparison, the address and the load. To use this
 * time, the merge is cut at output positions (by co-rank) into independent parts, whose steps are
 * interleaved. The pointers of three parts fit the registers of x86-64.
 *
 * The inner loop does not check for ends: as long as each side of each part has n elements left, n
 * steps are safe. Then n is computed again. Random data takes about log2(n) such rounds.
 */

enum { N_CHAINS = 3 };

#define ELEMENT uint32_t
#define CO_RANK co_rank_4
#define NAME(stem) stem##_4
#include "src/device/cpu/merge2.inc"

#define ELEMENT uint64_t
#define CO_RANK co_rank_8
#define NAME(stem) stem##_8
#include "src/device/cpu/merge2.inc"

#define ELEMENT uint128_t
#define CO_RANK co_rank_16
#define NAME(stem) stem##_16
#include "src/device/cpu/merge2.inc"

merge2_fn *merge2_choose(uint32_t element_nbytes)
{
#ifdef __x86_64__
	if (element_nbytes < 16 && avx512_is_supported())
		return element_nbytes == 4 ? merge2_avx512_4 : merge2_avx512_8;
#endif
	return element_nbytes == 4 ? merge2_4 : element_nbytes == 8 ? merge2_8 : merge2_16;
}

/* --- slices --- */

enum {
	CACHE_LINE_NBYTES = 64,
	TILE_NBYTES = 1 << 19, /* a buffer; two of them fit a second-level cache of 1 MiB */
	TILE_DIVISOR = 4,      /* buffers take at most half of the memory of the merge */
	MAX_BLOCK_N = 256,     /* longer blocks save little: few slices need few steps anyway */
	MIN_BLOCK_N = 8,       /* shorter blocks cost more to cut than to merge */
};

/* Sorted elements in memory. */
struct merge_segment {
	const char *elements;
	uint64_t n;
};

/*
 * A slice while it is cut into tiles: [0, cut_end) is in earlier tiles, [cut_end, taken_end) in
 * blocks taken for this tile.
 */
struct slice_cursor {
	const char *elements;
	uint64_t n;
	uint64_t cut_end;
	uint64_t taken_end;
};

/* The next block of a slice. */
struct block_head {
	encoded_key_t last_element; /* its last element */
	uint32_t cursor;
};

/* The state of the merge; the arrays are in the scratch. */
struct slice_merge {
	struct block_head *heads;       /* min-heap: slices with blocks to take */
	struct slice_cursor *cursors;   /* slices that are not empty */
	struct merge_segment *segments; /* of one tile */
	char *buffers[2];               /* tile_n elements each */
	uint32_t n_heads, n_cursors;
	uint32_t element_nbytes;
	uint64_t tile_n, block_n;
	merge2_fn *merge2;
};

/* Return the desired number of elements of a tile, for n elements in all. */
static uint64_t target_tile_n(uint64_t n, uint32_t element_nbytes)
{
	const uint64_t max_tile_n = TILE_NBYTES / element_nbytes;

	return n / TILE_DIVISOR < max_tile_n ? n / TILE_DIVISOR : max_tile_n;
}

/*
 * Return the block size: half of a tile for taken blocks, half for the beginnings of the next ones.
 */
static uint64_t choose_block_n(uint32_t k, uint64_t n, uint32_t element_nbytes)
{
	const uint64_t block_n = target_tile_n(n, element_nbytes) / 2 / (k ? k : 1);

	return block_n < MIN_BLOCK_N ? MIN_BLOCK_N : block_n > MAX_BLOCK_N ? MAX_BLOCK_N : block_n;
}

static uint64_t choose_tile_n(uint32_t k, uint64_t n, uint32_t element_nbytes)
{
	const uint64_t target = target_tile_n(n, element_nbytes);
	const uint64_t min_tile_n = 2 * (uint64_t)k * choose_block_n(k, n, element_nbytes);

	return target < min_tile_n ? min_tile_n : target;
}

size_t cpu_merge_scratch_nbytes(uint32_t k, uint64_t n, uint32_t element_nbytes)
{
	return (sizeof(struct block_head) + sizeof(struct slice_cursor) +
		sizeof(struct merge_segment)) *
		       k +
	       2 * choose_tile_n(k, n, element_nbytes) * element_nbytes;
}

static void init_slice_merge(const struct merge_elements_op *op, struct slice_merge *merge)
{
	const uint64_t n = slices_n(op->slices, op->k);
	char *scratch = op->scratch;
	size_t buffer_nbytes;

	*merge = (struct slice_merge){
		.element_nbytes = op->element_nbytes,
		.tile_n = choose_tile_n(op->k, n, op->element_nbytes),
		.block_n = choose_block_n(op->k, n, op->element_nbytes),
		.merge2 = merge2_choose(op->element_nbytes),
	};
	buffer_nbytes = merge->tile_n * op->element_nbytes;
	merge->heads = (struct block_head *)scratch;
	merge->cursors = (struct slice_cursor *)(merge->heads + op->k);
	merge->segments = (struct merge_segment *)(merge->cursors + op->k);
	merge->buffers[0] = (char *)(merge->segments + op->k);
	merge->buffers[1] = merge->buffers[0] + buffer_nbytes;
}

static bool head_less(const struct block_head *a, const struct block_head *b)
{
	return a->last_element < b->last_element ||
	       (a->last_element == b->last_element && a->cursor < b->cursor);
}

/* Move the head at `at` down to where the heap order holds. */
static void sift_down(struct block_head *heads, uint32_t n, uint32_t at)
{
	const struct block_head head = heads[at];

	for (uint32_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
		if (child + 1 < n && head_less(&heads[child + 1], &heads[child]))
			child++;
		if (head_less(&head, &heads[child]))
			break;
		heads[at] = heads[child];
		at = child;
	}
	heads[at] = head;
}

/* Return the number of elements of the slice's next block; 0 at its end. */
static uint64_t next_block_n(const struct slice_merge *merge, const struct slice_cursor *cursor)
{
	const uint64_t n = cursor->n - cursor->taken_end;

	return n < merge->block_n ? n : merge->block_n;
}

static encoded_key_t next_block_last(const struct slice_merge *merge,
				     const struct slice_cursor *cursor)
{
	return element_get(cursor->elements, merge->element_nbytes,
			   cursor->taken_end + next_block_n(merge, cursor) - 1);
}

/*
 * Prefetch the block after the next. Taking and cutting blocks reads a few scattered elements, and
 * would wait for memory each time.
 */
static void prefetch_block(const struct slice_merge *merge, const struct slice_cursor *cursor,
			   uint64_t start)
{
	const uint64_t block_end = start + merge->block_n;
	const uint64_t end = block_end < cursor->n ? block_end : cursor->n;

	for (uint64_t i = start; i < end; i += CACHE_LINE_NBYTES / merge->element_nbytes)
		__builtin_prefetch(cursor->elements + i * merge->element_nbytes, 0, 2);
}

static void open_cursors(const struct merge_elements_op *op, struct slice_merge *merge)
{
	for (uint32_t i = 0; i < op->k; i++) {
		struct slice_cursor *cursor = &merge->cursors[merge->n_cursors];

		if (op->slices[i].n == 0)
			continue;
		*cursor = (struct slice_cursor){ .elements = op->slices[i].elements,
						 .n = op->slices[i].n };
		merge->heads[merge->n_cursors] = (struct block_head){
			.last_element = next_block_last(merge, cursor),
			.cursor = merge->n_cursors,
		};
		merge->n_cursors++;
	}
	merge->n_heads = merge->n_cursors;
	for (uint32_t at = merge->n_heads / 2; at-- > 0;)
		sift_down(merge->heads, merge->n_heads, at);
}

/* Take blocks for the next tile. Returns the last one, the splitter. The heap must not be empty. */
static struct block_head take_blocks(struct slice_merge *merge)
{
	const uint64_t capacity = merge->tile_n - merge->n_cursors * merge->block_n;
	struct block_head splitter = merge->heads[0];
	uint64_t n_taken = 0;

	while (merge->n_heads > 0 && n_taken + merge->block_n <= capacity) {
		struct block_head *head = &merge->heads[0];
		struct slice_cursor *cursor = &merge->cursors[head->cursor];
		const uint64_t block_n = next_block_n(merge, cursor);

		splitter = *head;
		cursor->taken_end += block_n;
		n_taken += block_n;
		prefetch_block(merge, cursor, cursor->taken_end + merge->block_n);
		if (cursor->taken_end < cursor->n)
			head->last_element = next_block_last(merge, cursor);
		else
			*head = merge->heads[--merge->n_heads];
		sift_down(merge->heads, merge->n_heads, 0);
	}
	return splitter;
}

/* Return how many elements of the slice's next block are before the splitter. */
static uint64_t count_before_splitter(const struct slice_merge *merge,
				      const struct slice_cursor *cursor, encoded_key_t splitter,
				      bool equal_before)
{
	const struct slice next_block = { cursor->elements +
						  cursor->taken_end * merge->element_nbytes,
					  next_block_n(merge, cursor) };

	return cpu_cut_slice(&next_block, merge->element_nbytes, splitter, equal_before);
}

/* Cut all slices at the splitter, which gives the tile's segments in the order of the slices. */
static uint32_t cut_tile(struct slice_merge *merge, const struct block_head *splitter)
{
	uint32_t n_segments = 0;

	for (uint32_t i = 0; i < merge->n_cursors; i++) {
		struct slice_cursor *cursor = &merge->cursors[i];
		uint64_t end = cursor->taken_end;

		if (i != splitter->cursor)
			end += count_before_splitter(merge, cursor, splitter->last_element,
						     i < splitter->cursor);
		if (end == cursor->cut_end)
			continue;
		merge->segments[n_segments++] = (struct merge_segment){
			.elements = cursor->elements + cursor->cut_end * merge->element_nbytes,
			.n = end - cursor->cut_end,
		};
		cursor->cut_end = end;
	}
	return n_segments;
}

/* Return whether the last element of a is not larger than the first of b. */
static bool is_in_order(const struct slice_merge *merge, struct merge_segment a,
			struct merge_segment b)
{
	return element_get(a.elements, merge->element_nbytes, a.n - 1) <=
	       element_get(b.elements, merge->element_nbytes, 0);
}

/* Copy a, then b. */
static void concatenate(const struct slice_merge *merge, struct merge_segment a,
			struct merge_segment b, char *out)
{
	memcpy(out, a.elements, a.n * merge->element_nbytes);
	memcpy(out + a.n * merge->element_nbytes, b.elements, b.n * merge->element_nbytes);
}

static struct merge_segment merge_pair(const struct slice_merge *merge, struct merge_segment a,
				       struct merge_segment b, char *out)
{
	if (is_in_order(merge, a, b))
		concatenate(merge, a, b, out);
	else if (is_in_order(merge, b, a))
		concatenate(merge, b, a, out);
	else
		merge->merge2(a.elements, a.n, b.elements, b.n, out);
	return (struct merge_segment){ .elements = out, .n = a.n + b.n };
}

/* Merge the first n_pairs pairs of segments into `to`; the other segments stay where they are. */
static void merge_level(const struct slice_merge *merge, uint32_t n_segments, uint32_t n_pairs,
			char *to)
{
	struct merge_segment *segments = merge->segments;

	for (uint32_t i = 0; i < n_pairs; i++) {
		segments[i] = merge_pair(merge, segments[2 * i], segments[2 * i + 1], to);
		to += segments[i].n * merge->element_nbytes;
	}
	for (uint32_t i = 2 * n_pairs; i < n_segments; i++)
		segments[i - n_pairs] = segments[i];
}

/*
 * Merge the tile's segments to `out`; return the number of elements. The first level leaves the
 * segments in place that it need not merge.
 */
static uint64_t merge_tile(const struct slice_merge *merge, uint32_t n_segments, char *out)
{
	const struct merge_segment first = merge->segments[0];
	uint32_t n_left = 1;

	if (n_segments == 1)
		memcpy(out, first.elements, first.n * merge->element_nbytes);
	while (2 * n_left < n_segments)
		n_left *= 2;
	for (unsigned level = 0; n_segments > 1; level++, n_left /= 2) {
		merge_level(merge, n_segments, n_segments - n_left,
			    n_left == 1 ? out : merge->buffers[level % 2]);
		n_segments = n_left;
	}
	return merge->segments[0].n;
}

void cpu_merge(const struct merge_elements_op *op)
{
	struct slice_merge merge;
	char *out = op->out;

	init_slice_merge(op, &merge);
	open_cursors(op, &merge);
	while (merge.n_heads > 0) {
		const struct block_head splitter = take_blocks(&merge);
		const uint32_t n_segments = cut_tile(&merge, &splitter);

		out += merge_tile(&merge, n_segments, out) * merge.element_nbytes;
	}
}
