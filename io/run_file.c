/*
 * run_file - a sorted run in the temporary space (see run_file.h)
 *
 * Blocks whose stored bytes are neighbours, in memory when they are written and in the file when
 * they are read, are transferred together. A group is bounded: its blocks are hashed and copied by
 * the same core, and both go faster while they are in its cache.
 */
#include "io/run_file.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "io/checksum.h"
#include "src/status.h"

#define GROUP_NBYTES ((uint64_t)4 << 20)

struct run_file {
	/* Set at creation. */
	struct spill *spill;
	enum codec_id codec;
	uint32_t item_nbytes;
	uint32_t block_n_items;

	pthread_mutex_t lock;
	/* Under the lock until the run is finished, then constant but for the discarded flags. */
	struct run_block *blocks;
	size_t n_blocks;
	size_t capacity; /* of blocks */
	uint64_t n_items;
};

uint32_t run_file_block_n_items(uint64_t block_nbytes, uint32_t item_nbytes)
{
	/* The smallest number of items that fills whole pages. */
	const uint32_t even = item_nbytes & -item_nbytes;
	const uint64_t unit = even < SPILL_ALIGN_NBYTES ? SPILL_ALIGN_NBYTES / even : 1;
	const uint64_t largest = UINT64_C(1) << 30; /* stored_nbytes has 32 bits */
	uint64_t n = (block_nbytes < largest ? block_nbytes : largest) / item_nbytes;

	if (n >= unit)
		n -= n % unit;
	return n ? (uint32_t)n : 1;
}

int run_file_open(struct spill *spill, enum codec_id codec, uint32_t item_nbytes,
		  uint32_t block_n_items, struct run_file **ret_run)
{
	struct run_file *run = calloc(1, sizeof *run);

	if (!run)
		return fail(-ENOMEM, "index of temporary data: %m");
	run->spill = spill;
	run->codec = codec;
	run->item_nbytes = item_nbytes;
	run->block_n_items = block_n_items;
	pthread_mutex_init(&run->lock, NULL);
	*ret_run = run;
	return 0;
}

void run_file_close(struct run_file *run)
{
	size_t first, end;

	if (!run)
		return;
	for (first = 0; first < run->n_blocks; first = end + 1) {
		for (end = first; end < run->n_blocks && !run->blocks[end].discarded; end++)
			;
		run_file_discard(run, first, end - first);
	}
	pthread_mutex_destroy(&run->lock);
	free(run->blocks);
	free(run);
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Write the bytes that `n` blocks, neighbours in memory, are stored as. */
static int write_group(struct run_file *run, struct run_block *blocks, size_t n, const void *stored,
		       size_t stored_nbytes)
{
	struct spill_extent extent;
	const int r = spill_write(run->spill, stored, stored_nbytes, &extent);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		blocks[i].file = (uint16_t)extent.file;
		blocks[i].offset = extent.offset;
		extent.offset += blocks[i].stored_nbytes;
	}
	return 0;
}

static int encode_block(const struct run_file *run, struct run_block *block, const void *items,
			const void **ret_stored)
{
	size_t stored_nbytes;
	const int r = codecs[run->codec].encode(items, (size_t)block->n_items * run->item_nbytes,
						ret_stored, &stored_nbytes);

	if (r < 0)
		return fail(r, "temporary data: codec %s: %m", codecs[run->codec].name);
	block->codec = (uint8_t)run->codec;
	block->stored_nbytes = (uint32_t)stored_nbytes;
	block->checksum = checksum64(*ret_stored, stored_nbytes);
	return 0;
}

/* Encode and write the blocks, whose n_items are set, in groups of neighbours. */
static int write_blocks(struct run_file *run, struct run_block *blocks, size_t n,
			const unsigned char *items)
{
	const unsigned char *group = NULL;
	size_t first = 0, group_nbytes = 0;

	for (size_t i = 0; i < n; i++) {
		const void *stored;
		int r = encode_block(run, &blocks[i], items, &stored);

		if (r < 0)
			return r;
		if (group_nbytes > 0 &&
		    (stored != group + group_nbytes || group_nbytes >= GROUP_NBYTES)) {
			r = write_group(run, blocks + first, i - first, group, group_nbytes);
			if (r < 0)
				return r;
			group_nbytes = 0;
		}
		if (group_nbytes == 0) {
			group = stored;
			first = i;
		}
		group_nbytes += blocks[i].stored_nbytes;
		items += (size_t)blocks[i].n_items * run->item_nbytes;
	}
	return write_group(run, blocks + first, n - first, group, group_nbytes);
}

/* Append to the index. */
static int append_blocks(struct run_file *run, const struct run_block *blocks, size_t n,
			 uint64_t n_items)
{
	int r = 0;

	pthread_mutex_lock(&run->lock);
	if (run->n_blocks + n > run->capacity) {
		const size_t capacity = run->n_blocks + n + run->n_blocks / 2;
		struct run_block *grown = realloc(run->blocks, capacity * sizeof *grown);

		if (!grown) {
			r = -ENOMEM;
			goto out;
		}
		run->blocks = grown;
		run->capacity = capacity;
	}
	memcpy(run->blocks + run->n_blocks, blocks, n * sizeof *blocks);
	run->n_blocks += n;
	run->n_items += n_items;
out:
	pthread_mutex_unlock(&run->lock);
	return r;
}

int run_file_write(struct run_file *run, uint64_t sequence, const void *items, uint64_t n_items,
		   const code_t *first_keys)
{
	const size_t n = (size_t)((n_items + run->block_n_items - 1) / run->block_n_items);
	struct run_block *blocks;
	int r;

	if (n == 0)
		return 0;
	blocks = aligned_alloc(_Alignof(struct run_block), n * sizeof *blocks);
	if (!blocks)
		return fail(-ENOMEM, "index of temporary data: %m");
	for (size_t i = 0; i < n; i++)
		blocks[i] = (struct run_block){
			.first_key = first_keys[i],
			.sequence = sequence,
			.in_window = (uint32_t)i,
			.n_items = (uint32_t)min_u64(run->block_n_items,
						     n_items - i * run->block_n_items),
		};
	r = write_blocks(run, blocks, n, items);
	if (r < 0)
		goto out;
	r = append_blocks(run, blocks, n, n_items);
	if (r < 0)
		r = fail(r, "index of temporary data: %m");
out:
	free(blocks);
	return r;
}

static int compare_blocks(const void *a, const void *b)
{
	const struct run_block *x = a, *y = b;

	if (x->sequence != y->sequence)
		return x->sequence < y->sequence ? -1 : 1;
	return x->in_window < y->in_window ? -1 : x->in_window > y->in_window;
}

int run_file_finish(struct run_file *run)
{
	struct run_block *fitting;
	uint64_t first_item = 0;

	if (run->n_blocks == 0)
		return 0;
	fitting = realloc(run->blocks, run->n_blocks * sizeof *fitting);
	if (fitting) {
		run->blocks = fitting;
		run->capacity = run->n_blocks;
	}
	qsort(run->blocks, run->n_blocks, sizeof *run->blocks, compare_blocks);
	for (size_t i = 0; i < run->n_blocks; i++) {
		assert(i == 0 || compare_blocks(&run->blocks[i - 1], &run->blocks[i]) < 0);
		run->blocks[i].first_item = first_item;
		first_item += run->blocks[i].n_items;
	}
	return 0;
}

const struct run_block *run_file_blocks(const struct run_file *run)
{
	return run->blocks;
}

uint64_t run_file_n_blocks(const struct run_file *run)
{
	return run->n_blocks;
}

uint64_t run_file_n_items(const struct run_file *run)
{
	return run->n_items;
}

uint32_t run_file_item_nbytes(const struct run_file *run)
{
	return run->item_nbytes;
}

size_t run_file_memory_nbytes(const struct run_file *run)
{
	return sizeof *run + run->capacity * sizeof *run->blocks;
}

/*
 * The longest group of blocks from `first` on, below `end`, that are neighbours in the file.
 * Bounded by max_nbytes, unless the first block alone is larger. Returns the block after it.
 */
static uint64_t group_extent(const struct run_file *run, uint64_t first, uint64_t end,
			     uint64_t max_nbytes, struct spill_extent *ret_extent)
{
	const struct run_block *block = &run->blocks[first];
	struct spill_extent extent = { .file = block->file,
				       .offset = block->offset,
				       .nbytes = block->stored_nbytes };

	for (first++, block++; first < end; first++, block++) {
		if (block->file != extent.file || block->offset != extent.offset + extent.nbytes ||
		    extent.nbytes + block->stored_nbytes > max_nbytes)
			break;
		extent.nbytes += block->stored_nbytes;
	}
	*ret_extent = extent;
	return first;
}

static int fail_block(const struct run_file *run, uint64_t i, int r, const char *what)
{
	const struct run_block *block = &run->blocks[i];

	return fail(r,
		    "temporary file in %s: block %" PRIu64 " of %zu (%" PRIu32 " bytes at %" PRIu64
		    ") %s: %s; check the disk, or use another directory (-T)",
		    spill_directory(run->spill, block->file), i, run->n_blocks,
		    block->stored_nbytes, block->offset, what,
		    r == -EBADMSG ? "it is not what was written" : strerror(-r));
}

/* Bring the stored bytes of the blocks [first, end) to `items`, where they are not yet checked. */
static int fetch_group(const struct run_file *run, uint64_t first, uint64_t end,
		       struct spill_extent extent, unsigned char *items)
{
	int r = spill_read(run->spill, extent, items);

	if (r == 0)
		return 0;
	if (end - first == 1)
		return r == -ENODATA ? fail_block(run, first, -EBADMSG, "is cut off") :
				       fail_block(run, first, r, "cannot be read");
	/* Find out which block it is. */
	for (uint64_t i = first; i < end; i++) {
		group_extent(run, i, i + 1, 0, &extent);
		r = fetch_group(run, i, i + 1, extent, items);
		if (r < 0)
			return r;
		items += extent.nbytes;
	}
	return 0;
}

/* Check the stored bytes of block i, which are where its items go, and make items of them. */
static int decode_block(const struct run_file *run, uint64_t i, unsigned char *items)
{
	const struct run_block *block = &run->blocks[i];
	int r;

	if (checksum64(items, block->stored_nbytes) != block->checksum)
		return fail_block(run, i, -EBADMSG, "is damaged");
	r = codecs[block->codec].decode(items, block->stored_nbytes, items,
					(size_t)block->n_items * run->item_nbytes);
	return r < 0 ? fail_block(run, i, r, "cannot be decoded") : 0;
}

int run_file_read(struct run_file *run, uint64_t first, uint64_t n, void *items)
{
	const uint64_t end = first + n;
	unsigned char *to = items;

	assert(end <= run->n_blocks);
	while (first < end) {
		struct spill_extent extent;
		const uint64_t group_end = group_extent(run, first, end, GROUP_NBYTES, &extent);
		int r = fetch_group(run, first, group_end, extent, to);

		for (; r == 0 && first < group_end; first++) {
			assert(!run->blocks[first].discarded);
			r = decode_block(run, first, to);
			to += (size_t)run->blocks[first].n_items * run->item_nbytes;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

void run_file_discard(struct run_file *run, uint64_t first, uint64_t n)
{
	const uint64_t end = first + n;

	assert(end <= run->n_blocks);
	while (first < end) {
		struct spill_extent extent;
		const uint64_t group_end = group_extent(run, first, end, UINT64_MAX, &extent);

		spill_discard(run->spill, extent);
		for (; first < group_end; first++)
			run->blocks[first].discarded = true;
	}
}
