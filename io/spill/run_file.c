/*
 * run_file.c - a sorted run in temporary space (see run_file.h)
 *
 * Blocks whose stored bytes are adjacent in memory are written together, as one extent of the
 * spill, and blocks that are adjacent in the file are read together. Such a group is bounded,
 * because its blocks are hashed and copied by the same core, which is faster while they are in its
 * cache. Raw blocks are transferred from and to their place; encoded ones pass through the scratch
 * of a codec context.
 */
#include "io/spill/run_file.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "io/codec/checksum.h"
#include "src/base/array.h"
#include "src/base/clock.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/thread.h"

struct run_file {
	/* Constant. */
	struct spill *spill;
	struct compression *compression; /* NULL: all blocks are raw */
	uint32_t block_n_items;          /* the maximum in a block */

	pthread_mutex_t lock;
	/* Protected by lock until the run is finished, then constant except `discarded`. */
	struct run_index index;
	size_t capacity; /* of its blocks */
};

/* --- scratch --- */

/* Encoded groups are as large as the scratch: with blocks of 1 MiB as large as raw groups. */
enum { MIN_SCRATCH_NBYTES = 256 << 10, SCRATCH_BLOCKS = 5 };

static size_t scratch_nbytes_for(size_t block_nbytes)
{
	const size_t nbytes = SCRATCH_BLOCKS * block_nbytes;

	return nbytes > MIN_SCRATCH_NBYTES ? nbytes : MIN_SCRATCH_NBYTES;
}

static size_t scratch_nbytes(const struct run_file *run)
{
	return scratch_nbytes_for((size_t)run->block_n_items * run->index.item_nbytes);
}

size_t run_file_thread_nbytes(const struct compression_params *params, bool are_encoded_keys,
			      size_t block_nbytes)
{
	if (params->mode == COMPRESS_NONE)
		return 0;
	return scratch_nbytes_for(block_nbytes) +
	       compression_context_nbytes(params, are_encoded_keys, block_nbytes);
}

/* --- write a window --- */

enum { PROBE_NBYTES = 256 << 10 }; /* of items that are encoded in a trial */

struct window_writer {
	const struct run_file *run;
	struct run_block *blocks;
	enum codec_id codec;
	struct codec_context *context; /* NULL: nothing is encoded */
	unsigned char *scratch;        /* memory of the context; borrowed */
	struct compression_sample sample;

	/* The group: blocks from `first` on whose stored bytes are adjacent; may be empty. */
	size_t first;
	const unsigned char *group;
	size_t group_nbytes;
};

/* Write the group, which ends before block `end`. */
static int write_group(struct window_writer *window, size_t end)
{
	const uint64_t begin_ns = clock_now_ns();
	struct spill_extent extent;
	int r;

	if (window->group_nbytes == 0)
		return 0;
	r = spill_write(window->run->spill, window->group, window->group_nbytes, &extent);
	if (r < 0)
		return r;
	for (size_t i = window->first; i < end; i++) {
		window->blocks[i].file = (uint16_t)extent.file;
		window->blocks[i].offset = extent.offset;
		extent.offset += window->blocks[i].stored_nbytes;
	}
	window->sample.write_ns += clock_now_ns() - begin_ns;
	window->sample.stored_nbytes += window->group_nbytes;
	window->group_nbytes = 0;
	return 0;
}

/* Returns the encoded size, 0 if it is not smaller than the items, or a negative errno. */
static ssize_t encode(struct window_writer *window, enum codec_id codec,
		      const struct codec_items *items, void *stored)
{
	const size_t items_nbytes = items->n * items->item_nbytes;
	const uint64_t begin_ns = clock_now_ns();
	const ssize_t nbytes =
		codecs[codec].encode(window->context, items, stored, items_nbytes - 1);

	if (nbytes < 0)
		return fail((int)nbytes,
			    "temporary data: cannot compress a block of %zu bytes (%s): %m; "
			    "--temp-compress=none stores it as it is",
			    items_nbytes, codecs[codec].name);
	window->sample.encode_ns += clock_now_ns() - begin_ns;
	window->sample.encoder_input_nbytes += items_nbytes;
	window->sample.encoded_nbytes += nbytes ? (size_t)nbytes : items_nbytes;
	return nbytes;
}

static bool is_encoded_group(const struct window_writer *window)
{
	return window->group_nbytes && window->blocks[window->first].codec != CODEC_RAW;
}

/* Encode block i after the group, if that is encoded. *ret_nbytes: as encode(). */
static int encode_block(struct window_writer *window, size_t i, const struct codec_items *items,
			const unsigned char **ret_stored, size_t *ret_nbytes)
{
	size_t used_nbytes = is_encoded_group(window) ? window->group_nbytes : 0;
	ssize_t nbytes;

	if (scratch_nbytes(window->run) - used_nbytes < items->n * items->item_nbytes) {
		const int r = write_group(window, i);

		if (r < 0)
			return r;
		used_nbytes = 0;
	}
	nbytes = encode(window, window->codec, items, window->scratch + used_nbytes);
	if (nbytes < 0)
		return (int)nbytes;
	*ret_stored = window->scratch + used_nbytes;
	*ret_nbytes = (size_t)nbytes;
	return 0;
}

/* Add block i to the group; write the group first if the block does not fit. */
static int store_block(struct window_writer *window, size_t i, const struct codec_items *items)
{
	struct run_block *block = &window->blocks[i];
	const unsigned char *stored = items->items;
	size_t nbytes = 0;
	int r = 0;

	if (window->codec != CODEC_RAW)
		r = encode_block(window, i, items, &stored, &nbytes);
	if (r < 0)
		return r;
	block->codec = (uint8_t)(nbytes ? window->codec : CODEC_RAW);
	window->sample.n_encoded_blocks += nbytes > 0;
	if (nbytes == 0) {
		stored = items->items;
		nbytes = items->n * items->item_nbytes;
	}
	block->stored_nbytes = (uint32_t)nbytes;
	block->checksum = checksum64(stored, nbytes);
	if (window->group_nbytes && (stored != window->group + window->group_nbytes ||
				     is_encoded_group(window) != (block->codec != CODEC_RAW) ||
				     window->group_nbytes >= BLOCK_GROUP_NBYTES)) {
		r = write_group(window, i);
		if (r < 0)
			return r;
	}
	if (window->group_nbytes == 0) {
		window->group = stored;
		window->first = i;
	}
	window->group_nbytes += nbytes;
	return 0;
}

/* The items of block i, which are at `items`. */
static struct codec_items items_of(const struct window_writer *window, size_t i,
				   const unsigned char *items)
{
	return (struct codec_items){ .items = (void *)items,
				     .n = window->blocks[i].n_items,
				     .item_nbytes = window->run->index.item_nbytes };
}

/*
 * Encode some blocks to measure the codec. The first block is encoded twice, and not measured the
 * first time, which takes the page faults of the scratch.
 */
static int probe_codec(struct window_writer *window, enum codec_id codec, size_t n,
		       const unsigned char *items)
{
	size_t probed_nbytes = 0;

	for (size_t i = 0; i <= n && probed_nbytes < PROBE_NBYTES; i++) {
		const struct codec_items probed = items_of(window, i ? i - 1 : 0, items);
		const ssize_t nbytes = encode(window, codec, &probed, window->scratch);

		if (nbytes < 0)
			return (int)nbytes;
		if (i == 0) {
			window->sample = (struct compression_sample){ 0 };
			continue;
		}
		probed_nbytes += probed.n * probed.item_nbytes;
		items += probed.n * probed.item_nbytes;
	}
	return 0;
}

/* Get a context with scratch if the plan requires one. */
static int start_encoding(struct window_writer *window, struct compression_plan plan, size_t n,
			  const void *items)
{
	int r;

	if (plan.codec == CODEC_RAW && plan.probe_codec == CODEC_RAW)
		return 0;
	r = compression_acquire(window->run->compression, scratch_nbytes(window->run),
				&window->context);
	if (r < 0)
		return r;
	window->scratch = codec_context_scratch(window->context);
	return plan.probe_codec == CODEC_RAW ? 0 : probe_codec(window, plan.probe_codec, n, items);
}

/* Store the items of n blocks, whose n_items are set, and set what describes the stored bytes. */
static int write_blocks(const struct run_file *run, struct run_block *blocks, size_t n,
			const unsigned char *items)
{
	const struct compression_plan plan = compression_plan_window(run->compression);
	struct window_writer window = { .run = run, .blocks = blocks, .codec = plan.codec };
	uint64_t items_nbytes = 0;
	int r = start_encoding(&window, plan, n, items);

	for (size_t i = 0; i < n && r == 0; i++) {
		const struct codec_items block_items = items_of(&window, i, items + items_nbytes);

		r = store_block(&window, i, &block_items);
		items_nbytes += block_items.n * block_items.item_nbytes;
	}
	if (r == 0)
		r = write_group(&window, n);
	compression_release(run->compression, window.context);
	if (r < 0)
		return r;
	window.sample.items_nbytes = items_nbytes;
	compression_record_sample(run->compression, &window.sample);
	return 0;
}

/* Store blocks that were packed on a device, as one group. */
static int write_packed_blocks(const struct run_file *run, struct run_block *blocks, size_t n,
			       const void *packed, const uint32_t *packed_nbytes)
{
	struct window_writer window = { .run = run, .blocks = blocks, .group = packed };
	int r;

	for (size_t i = 0; i < n; i++) {
		const uint64_t items_nbytes = (uint64_t)blocks[i].n_items * run->index.item_nbytes;
		const bool is_raw = packed_nbytes[i] == items_nbytes;

		blocks[i].codec = is_raw ? CODEC_RAW : CODEC_DELTA;
		blocks[i].stored_nbytes = packed_nbytes[i];
		blocks[i].checksum =
			checksum64(window.group + window.group_nbytes, packed_nbytes[i]);
		window.group_nbytes += packed_nbytes[i];
		window.sample.items_nbytes += items_nbytes;
		window.sample.n_encoded_blocks += !is_raw;
	}
	r = write_group(&window, n);
	if (r == 0)
		compression_record_sample(run->compression, &window.sample);
	return r;
}

/* --- the run and its index --- */

uint32_t run_file_block_n_items(uint64_t block_nbytes, uint32_t item_nbytes)
{
	/* The smallest number of items that fills whole pages. */
	const uint32_t power_of_two = item_nbytes & -item_nbytes;
	const uint64_t unit =
		power_of_two < SPILL_ALIGN_NBYTES ? SPILL_ALIGN_NBYTES / power_of_two : 1;
	const uint64_t max_nbytes = UINT64_C(1) << 30; /* stored_nbytes has 32 bits */
	uint64_t n = u64_min(block_nbytes, max_nbytes) / item_nbytes;

	if (n >= unit)
		n -= n % unit;
	return n ? (uint32_t)n : 1;
}

/* The plan has counted this memory, so the process may not have as much as was planned. */
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
	run->spill = spill;
	run->compression = compression;
	run->index.item_nbytes = item_nbytes;
	run->block_n_items = block_n_items;
	pthread_mutex_init(&run->lock, NULL);
	*ret_run = run;
	return 0;
}

void run_file_close(struct run_file *run)
{
	if (!run)
		return;
	if (!spill_is_persistent(run->spill))
		run_file_discard_remaining(run);
	pthread_mutex_destroy(&run->lock);
	free(run->index.blocks);
	free(run);
}

static int append_blocks(struct run_file *run, const struct run_block *blocks, size_t n,
			 uint64_t n_items)
{
	SCOPED_LOCK(&run->lock);
	if (!array_reserve(&run->index.blocks, &run->capacity, run->index.n_blocks + n,
			   sizeof *blocks))
		return fail_index(run->index.n_blocks + n);
	memcpy(run->index.blocks + run->index.n_blocks, blocks, n * sizeof *blocks);
	run->index.n_blocks += n;
	run->index.n_items += n_items;
	return 0;
}

int run_file_write(struct run_file *run, uint64_t sequence, const void *items,
		   const uint32_t *packed_nbytes, uint64_t n_items, const encoded_key_t *first_keys)
{
	const size_t n = (size_t)((n_items + run->block_n_items - 1) / run->block_n_items);
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
			.n_items = (uint32_t)u64_min(run->block_n_items,
						     n_items - i * run->block_n_items),
		};
	r = packed_nbytes ? write_packed_blocks(run, blocks, n, items, packed_nbytes) :
			    write_blocks(run, blocks, n, items);
	if (r == 0)
		r = append_blocks(run, blocks, n, n_items);
	free(blocks);
	return r;
}

static bool is_valid_block(const struct run_block *block, uint64_t item_nbytes)
{
	const uint64_t nbytes = block->n_items * item_nbytes;

	return block->n_items > 0 && nbytes <= UINT32_MAX && block->codec < N_CODECS &&
	       block->offset <= INT64_MAX - UINT32_MAX &&
	       (block->codec == CODEC_RAW ? block->stored_nbytes == nbytes :
					    block->stored_nbytes && block->stored_nbytes < nbytes);
}

int run_index_check(struct run_index *index)
{
	index->n_items = 0;
	for (uint64_t i = 0; i < index->n_blocks; i++) {
		struct run_block *block = &index->blocks[i];

		if (!is_valid_block(block, index->item_nbytes) ||
		    block->first_item != index->blocks[0].first_item + index->n_items ||
		    (i && block->first_key < block[-1].first_key))
			return -EBADMSG;
		block->discarded = false;
		index->n_items += block->n_items;
	}
	return 0;
}

uint32_t run_index_max_block_items(const struct run_index *index)
{
	uint32_t max_items = 1;

	for (uint64_t i = 0; i < index->n_blocks; i++)
		if (index->blocks[i].n_items > max_items)
			max_items = index->blocks[i].n_items;
	return max_items;
}

int run_file_open_finished(struct spill *spill, struct compression *compression,
			   struct run_index *index, struct run_file **ret_run)
{
	int r = run_file_open(spill, compression, index->item_nbytes,
			      run_index_max_block_items(index), ret_run);

	if (r < 0)
		return r;
	(*ret_run)->index = *index;
	index->blocks = NULL;
	return 0;
}

static int compare_blocks(const void *a, const void *b)
{
	const struct run_block *x = a, *y = b;

	if (x->sequence != y->sequence)
		return x->sequence < y->sequence ? -1 : 1;
	return x->index_in_window < y->index_in_window ? -1 :
							 x->index_in_window > y->index_in_window;
}

void run_file_finish(struct run_file *run)
{
	struct run_block *trimmed;
	uint64_t first_item = 0;

	if (run->index.n_blocks == 0)
		return;
	trimmed = realloc(run->index.blocks, run->index.n_blocks * sizeof *trimmed);
	if (trimmed) {
		run->index.blocks = trimmed;
		run->capacity = run->index.n_blocks;
	}
	qsort(run->index.blocks, run->index.n_blocks, sizeof *run->index.blocks, compare_blocks);
	for (size_t i = 0; i < run->index.n_blocks; i++) {
		assert(i == 0 ||
		       compare_blocks(&run->index.blocks[i - 1], &run->index.blocks[i]) < 0);
		run->index.blocks[i].first_item = first_item;
		first_item += run->index.blocks[i].n_items;
	}
}

const struct run_index *run_file_index(const struct run_file *run)
{
	return &run->index;
}

uint64_t run_index_find_block(const struct run_index *index, uint64_t item)
{
	return find_interval(index->blocks, sizeof *index->blocks,
			     offsetof(struct run_block, first_item), index->n_blocks, item);
}

/* --- read --- */

static int fail_block(const struct run_file *run, uint64_t i, int r, const char *what)
{
	const struct run_block *block = &run->index.blocks[i];
	const char *hint = spill_damage_hint(run->spill);

	if (r == -EBADMSG)
		spill_record_damage(run->spill, block->offset);
	return fail(r,
		    "temporary file in %s: block %" PRIu64 " of %" PRIu64 " (%" PRIu32
		    " bytes at %" PRIu64 ") %s: %s; %s",
		    spill_directory(run->spill, block->file), i, run->index.n_blocks,
		    block->stored_nbytes, block->offset, what,
		    r == -EBADMSG ? "it is not what was written" : strerror(-r),
		    hint ? hint : "check the disk, or use another directory (-T)");
}

/* Return whether block i is returned as it is stored. */
static bool is_returned_as_stored(const struct run_file *run, uint64_t i, enum read_format format)
{
	const enum codec_id codec = run->index.blocks[i].codec;

	return codec == CODEC_RAW || (format == READ_PACKED && codec == CODEC_DELTA);
}

uint32_t run_file_block_nbytes(const struct run_file *run, uint64_t i, enum read_format format)
{
	return is_returned_as_stored(run, i, format) ?
		       run->index.blocks[i].stored_nbytes :
		       run->index.blocks[i].n_items * run->index.item_nbytes;
}

/*
 * Find the longest group from `first` on, before `end`: blocks that are adjacent in the file, and
 * all returned as stored, or none. Bounded, unless the first block alone is larger. Returns the
 * block after the group.
 */
static uint64_t find_group(const struct run_file *run, uint64_t first, uint64_t end,
			   enum read_format format, struct spill_extent *ret_extent)
{
	const bool as_stored = is_returned_as_stored(run, first, format);
	const uint64_t max_nbytes = as_stored ? BLOCK_GROUP_NBYTES : scratch_nbytes(run);
	const struct run_block *block = &run->index.blocks[first];
	struct spill_extent extent = { .file = block->file,
				       .offset = block->offset,
				       .nbytes = block->stored_nbytes };

	for (first++, block++; first < end; first++, block++) {
		if (is_returned_as_stored(run, first, format) != as_stored ||
		    block->file != extent.file || block->offset != extent.offset + extent.nbytes ||
		    extent.nbytes + block->stored_nbytes > max_nbytes)
			break;
		extent.nbytes += block->stored_nbytes;
	}
	*ret_extent = extent;
	return first;
}

/* Read the stored bytes of blocks [first, end), unchecked. */
static int fetch_group(const struct run_file *run, uint64_t first, uint64_t end,
		       struct spill_extent extent, unsigned char *to)
{
	int r = spill_read(run->spill, extent, to);

	if (r == 0 || r == -ECANCELED)
		return r;
	if (end - first == 1)
		return r == -ENODATA ? fail_block(run, first, -EBADMSG, "is cut off") :
				       fail_block(run, first, r, "cannot be read");
	/* Find out which block fails. */
	for (uint64_t i = first; i < end; i++) {
		extent.nbytes = run->index.blocks[i].stored_nbytes;
		r = fetch_group(run, i, i + 1, extent, to);
		if (r < 0)
			return r;
		to += extent.nbytes;
		extent.offset += extent.nbytes;
	}
	return 0;
}

/* Verify the stored bytes of block i, and with a context decode them to `items`. */
static int decode_block(const struct run_file *run, uint64_t i, struct codec_context *context,
			const unsigned char *stored, unsigned char *items)
{
	const struct run_block *block = &run->index.blocks[i];
	int r;

	assert(!block->discarded);
	if (checksum64(stored, block->stored_nbytes) != block->checksum)
		return fail_block(run, i, -EBADMSG, "is damaged");
	if (!context)
		return 0;
	r = codecs[block->codec].decode(context, stored, block->stored_nbytes,
					&(struct codec_items){ .items = items,
							       .n = block->n_items,
							       .item_nbytes =
								       run->index.item_nbytes });
	return r < 0 ? fail_block(run, i, r, "cannot be decoded") : 0;
}

/* Read the group [first, end) to its place, or with a context through its scratch. */
static int read_group(const struct run_file *run, uint64_t first, uint64_t end,
		      struct spill_extent extent, struct codec_context *context, unsigned char *to)
{
	unsigned char *stored = context ? codec_context_scratch(context) : to;
	int r = fetch_group(run, first, end, extent, stored);

	for (uint64_t i = first; r == 0 && i < end; i++) {
		r = decode_block(run, i, context, stored, to);
		stored += run->index.blocks[i].stored_nbytes;
		if (context)
			to += (size_t)run->index.blocks[i].n_items * run->index.item_nbytes;
	}
	return r;
}

int run_file_read(struct run_file *run, uint64_t first, uint64_t n, enum read_format format,
		  void *blocks)
{
	const uint64_t end = first + n;
	unsigned char *to = blocks;
	int r = 0;

	assert(end <= run->index.n_blocks);
	while (r == 0 && first < end) {
		struct codec_context *context = NULL;
		struct spill_extent extent;
		const uint64_t group_end = find_group(run, first, end, format, &extent);

		if (!is_returned_as_stored(run, first, format))
			r = compression_acquire(run->compression, scratch_nbytes(run), &context);
		if (r == 0)
			r = read_group(run, first, group_end, extent, context, to);
		compression_release(run->compression, context);
		for (; first < group_end; first++)
			to += run_file_block_nbytes(run, first, format);
	}
	return r;
}

int run_file_fail_packed(const struct run_file *run, uint64_t i)
{
	return fail_block(run, i, -EBADMSG, "cannot be decoded");
}

/* --- discard --- */

/* Return whether the page in which block i ends also holds the beginning of the next block. */
static bool shares_page_with_next(const struct run_file *run, uint64_t i)
{
	const struct run_block *block = &run->index.blocks[i];
	const uint64_t end = block->offset + block->stored_nbytes;

	return end % SPILL_ALIGN_NBYTES != 0 && i + 1 < run->index.n_blocks &&
	       block[1].file == block->file && block[1].offset == end;
}

/*
 * Find the pages of the blocks from `first` on, before `end`, as far as they are adjacent. The
 * space between two windows, less than a page, belongs to the first. A page that is shared with the
 * block before `first` is released with `first`; a page that is shared with the next block stays
 * until that is discarded. Returns the block after the last.
 */
static uint64_t discard_extent(const struct run_file *run, uint64_t first, uint64_t end,
			       struct spill_extent *ret_extent)
{
	const struct run_block *block = &run->index.blocks[first];
	uint64_t begin_page = block->offset / SPILL_ALIGN_NBYTES, end_page = begin_page;

	for (; first < end; first++) {
		const struct run_block *next = &run->index.blocks[first];
		const uint64_t next_end = next->offset + next->stored_nbytes;

		if (next->file != block->file || next->offset / SPILL_ALIGN_NBYTES != end_page)
			break;
		end_page = next_end / SPILL_ALIGN_NBYTES;
		if (next_end % SPILL_ALIGN_NBYTES && !shares_page_with_next(run, first))
			end_page++;
	}
	*ret_extent =
		(struct spill_extent){ .file = block->file,
				       .offset = begin_page * SPILL_ALIGN_NBYTES,
				       .nbytes = (end_page - begin_page) * SPILL_ALIGN_NBYTES };
	return first;
}

void run_file_discard(struct run_file *run, uint64_t first, uint64_t n)
{
	const uint64_t end = first + n;

	assert(end <= run->index.n_blocks);
	while (first < end) {
		struct spill_extent extent;
		const uint64_t extent_end = discard_extent(run, first, end, &extent);

		spill_discard(run->spill, extent);
		for (; first < extent_end; first++)
			run->index.blocks[first].discarded = true;
	}
}

void run_file_discard_remaining(struct run_file *run)
{
	for (size_t first = 0, end; first < run->index.n_blocks; first = end) {
		const bool discarded = run->index.blocks[first].discarded;

		for (end = first + 1; end < run->index.n_blocks; end++)
			if (run->index.blocks[end].discarded != discarded)
				break;
		if (!discarded)
			run_file_discard(run, first, end - first);
	}
}
