/*
 * run_file - a sorted run in the temporary space (see run_file.h)
 *
 * Windows are written by any thread, as they come; when all are, their blocks are put in order.
 */
#include "io/spill/run_file_internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint32_t run_file_block_n_items(uint64_t block_nbytes, uint32_t item_nbytes)
{
	/* The smallest number of items that fills whole pages. */
	const uint32_t power_of_two = item_nbytes & -item_nbytes;
	const uint64_t unit =
		power_of_two < SPILL_ALIGN_NBYTES ? SPILL_ALIGN_NBYTES / power_of_two : 1;
	const uint64_t largest = UINT64_C(1) << 30; /* stored_nbytes has 32 bits */
	uint64_t n = (block_nbytes < largest ? block_nbytes : largest) / item_nbytes;

	if (n >= unit)
		n -= n % unit;
	return n ? (uint32_t)n : 1;
}

/* What is planned for it is more than the process may have. */
static int fail_index(uint64_t n_blocks)
{
	return fail(-ENOMEM,
		    "no memory for the index of a temporary run of %" PRIu64
		    " blocks; try a smaller -S",
		    n_blocks);
}

int run_file_open(struct spill *spill, struct compression *compression, uint32_t item_nbytes,
		  uint32_t block_n_items, struct run_file **ret_run)
{
	struct run_file *run = calloc(1, sizeof *run);

	if (!run)
		return fail_index(1);
	run->format = (struct run_blocks_format){ .spill = spill,
						  .compression = compression,
						  .item_nbytes = item_nbytes,
						  .block_n_items = block_n_items };
	pthread_mutex_init(&run->lock, NULL);
	*ret_run = run;
	return 0;
}

void run_file_close(struct run_file *run)
{
	if (!run)
		return;
	if (!spill_is_persistent(run->format.spill))
		run_file_discard_remaining(run);
	pthread_mutex_destroy(&run->lock);
	free(run->blocks);
	free(run);
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
			r = fail_index(capacity);
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

/* packed_nbytes: of each block; NULL: they are items yet. */
static int write_window(struct run_file *run, uint64_t sequence, const void *bytes,
			const uint32_t *packed_nbytes, uint64_t n_items,
			const encoded_key_t *first_keys)
{
	const size_t n =
		(size_t)((n_items + run->format.block_n_items - 1) / run->format.block_n_items);
	struct run_block *blocks;
	int r;

	if (n == 0)
		return 0;
	blocks = aligned_alloc(_Alignof(struct run_block), n * sizeof *blocks);
	if (!blocks)
		return fail_index(n);
	for (size_t i = 0; i < n; i++)
		blocks[i] = (struct run_block){
			.first_key = first_keys[i],
			.sequence = sequence,
			.index_in_window = (uint32_t)i,
			.n_items = (uint32_t)min_u64(run->format.block_n_items,
						     n_items - i * run->format.block_n_items),
		};
	r = packed_nbytes ?
		    block_writer_write_packed(&run->format, blocks, n, bytes, packed_nbytes) :
		    block_writer_write(&run->format, blocks, n, bytes);
	if (r < 0)
		goto out;
	r = append_blocks(run, blocks, n, n_items);
out:
	free(blocks);
	return r;
}

int run_file_write(struct run_file *run, uint64_t sequence, const void *items, uint64_t n_items,
		   const encoded_key_t *first_keys)
{
	return write_window(run, sequence, items, NULL, n_items, first_keys);
}

int run_file_write_packed(struct run_file *run, uint64_t sequence, const void *packed,
			  const uint32_t *packed_nbytes, uint64_t n_items,
			  const encoded_key_t *first_keys)
{
	return write_window(run, sequence, packed, packed_nbytes, n_items, first_keys);
}

bool run_block_is_valid(const struct run_block *block, uint64_t item_nbytes)
{
	const uint64_t nbytes = block->n_items * item_nbytes;

	return block->n_items > 0 && block->codec < N_CODECS &&
	       block->offset <= INT64_MAX - UINT32_MAX &&
	       (block->codec == CODEC_RAW ? block->stored_nbytes == nbytes :
					    block->stored_nbytes && block->stored_nbytes < nbytes);
}

int run_file_restore(struct run_file *run, const struct run_block *blocks, size_t n)
{
	uint64_t n_items = 0;

	if (n == 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		n_items += blocks[i].n_items;
	return append_blocks(run, blocks, n, n_items);
}

static int compare_blocks(const void *a, const void *b)
{
	const struct run_block *x = a, *y = b;

	if (x->sequence != y->sequence)
		return x->sequence < y->sequence ? -1 : 1;
	return x->index_in_window < y->index_in_window ? -1 :
							 x->index_in_window > y->index_in_window;
}

int run_file_finish(struct run_file *run)
{
	struct run_block *trimmed;
	uint64_t first_item = 0;

	if (run->n_blocks == 0)
		return 0;
	trimmed = realloc(run->blocks, run->n_blocks * sizeof *trimmed);
	if (trimmed) {
		run->blocks = trimmed;
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
	return run->format.item_nbytes;
}

size_t run_file_memory_nbytes(const struct run_file *run)
{
	return sizeof *run + run->capacity * sizeof *run->blocks;
}
