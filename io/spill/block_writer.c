/*
 * block_writer - a window's items to the blocks that they are stored as (see block_writer.h)
 */
#include "io/spill/block_writer.h"

#include "io/codec/checksum.h"
#include "src/base/clock.h"
#include "src/base/diagnostics.h"

/*
 * Encoded blocks are transferred as many together as the scratch holds: so many bytes at least, and
 * with blocks of 1 MiB as large a group as of raw ones.
 */
enum { LEAST_SCRATCH_NBYTES = 256 << 10, SCRATCH_BLOCKS = 5 };

/* Of items that are encoded in a trial. */
enum { TRIAL_NBYTES = 256 << 10 };

static size_t scratch_nbytes(size_t block_nbytes)
{
	const size_t nbytes = SCRATCH_BLOCKS * block_nbytes;

	return nbytes > LEAST_SCRATCH_NBYTES ? nbytes : LEAST_SCRATCH_NBYTES;
}

size_t block_writer_scratch_nbytes(const struct run_blocks_format *format)
{
	return scratch_nbytes((size_t)format->block_n_items * format->item_nbytes);
}

size_t block_writer_thread_nbytes(const struct compression_choice *choice, bool are_codes,
				  size_t block_nbytes)
{
	if (choice->mode == COMPRESS_NONE)
		return 0;
	return scratch_nbytes(block_nbytes) +
	       compression_context_nbytes(choice, are_codes, block_nbytes);
}

/* A window on its way to the spill. */
struct writing {
	const struct run_blocks_format *format;
	struct run_block *blocks;
	enum codec_id codec;
	struct codec_context *context; /* NULL if nothing is to be encoded */
	unsigned char *scratch;        /* the context's */
	struct compression_sample sample;

	/* The group: blocks from `first` on whose stored bytes are neighbours; may be empty. */
	size_t first;
	const unsigned char *group;
	size_t group_nbytes;
};

/* Write the group, whose last block is the one before `end`. */
static int write_group(struct writing *writing, size_t end)
{
	const uint64_t begin_ns = clock_now_ns();
	struct spill_extent extent;
	int r;

	if (writing->group_nbytes == 0)
		return 0;
	r = spill_write(writing->format->spill, writing->group, writing->group_nbytes, &extent);
	if (r < 0)
		return r;
	for (size_t i = writing->first; i < end; i++) {
		writing->blocks[i].file = (uint16_t)extent.file;
		writing->blocks[i].offset = extent.offset;
		extent.offset += writing->blocks[i].stored_nbytes;
	}
	writing->sample.write_ns += clock_now_ns() - begin_ns;
	writing->sample.stored_nbytes += writing->group_nbytes;
	writing->group_nbytes = 0;
	return 0;
}

/* Encode items to `stored`; as encode() of a codec, if it becomes less. */
static ssize_t encode(struct writing *writing, enum codec_id codec, const struct codec_items *items,
		      void *stored)
{
	const size_t items_nbytes = items->n * items->item_nbytes;
	const uint64_t begin_ns = clock_now_ns();
	const ssize_t nbytes =
		codecs[codec].encode(writing->context, items, stored, items_nbytes - 1);

	if (nbytes < 0)
		return fail_hint((int)nbytes, HINT_NO_COMPRESSION, 0,
				 "a block of %zu bytes of temporary data cannot be compressed "
				 "(%s): %m",
				 items_nbytes, codecs[codec].name);
	writing->sample.encode_ns += clock_now_ns() - begin_ns;
	writing->sample.tried_nbytes += items_nbytes;
	writing->sample.encoded_nbytes += nbytes ? (size_t)nbytes : items_nbytes;
	return nbytes;
}

static bool group_is_encoded(const struct writing *writing)
{
	return writing->group_nbytes && writing->blocks[writing->first].codec != CODEC_RAW;
}

/* Encode block i, behind the group if that is encoded. *ret_nbytes: 0 if it does not shrink. */
static int encode_block(struct writing *writing, size_t i, const struct codec_items *items,
			const unsigned char **ret_stored, size_t *ret_nbytes)
{
	size_t used = group_is_encoded(writing) ? writing->group_nbytes : 0;
	ssize_t nbytes;

	if (block_writer_scratch_nbytes(writing->format) - used < items->n * items->item_nbytes) {
		const int r = write_group(writing, i);

		if (r < 0)
			return r;
		used = 0;
	}
	nbytes = encode(writing, writing->codec, items, writing->scratch + used);
	if (nbytes < 0)
		return (int)nbytes;
	*ret_stored = writing->scratch + used;
	*ret_nbytes = (size_t)nbytes;
	return 0;
}

/* Add block i to the group, writing what cannot be in one group with it. */
static int store_block(struct writing *writing, size_t i, const struct codec_items *items)
{
	struct run_block *block = &writing->blocks[i];
	const unsigned char *stored = items->items;
	size_t nbytes = 0;
	int r = 0;

	if (writing->codec != CODEC_RAW)
		r = encode_block(writing, i, items, &stored, &nbytes);
	if (r < 0)
		return r;
	block->codec = (uint8_t)(nbytes ? writing->codec : CODEC_RAW);
	writing->sample.n_encoded_blocks += nbytes > 0;
	if (nbytes == 0) {
		stored = items->items;
		nbytes = items->n * items->item_nbytes;
	}
	block->stored_nbytes = (uint32_t)nbytes;
	block->checksum = checksum64(stored, nbytes);
	if (writing->group_nbytes && (stored != writing->group + writing->group_nbytes ||
				      group_is_encoded(writing) != (block->codec != CODEC_RAW) ||
				      writing->group_nbytes >= BLOCK_GROUP_NBYTES)) {
		r = write_group(writing, i);
		if (r < 0)
			return r;
	}
	if (writing->group_nbytes == 0) {
		writing->group = stored;
		writing->first = i;
	}
	writing->group_nbytes += nbytes;
	return 0;
}

/* Store the blocks, n of them, whose n_items are set. */
static int write_blocks(struct writing *writing, size_t n, const unsigned char *items)
{
	const uint32_t item_nbytes = writing->format->item_nbytes;

	for (size_t i = 0; i < n; i++) {
		const size_t n_items = writing->blocks[i].n_items;
		const int r = store_block(writing, i,
					  &(struct codec_items){ .items = (void *)items,
								 .n = n_items,
								 .item_nbytes = item_nbytes });

		if (r < 0)
			return r;
		items += n_items * item_nbytes;
	}
	return write_group(writing, n);
}

/*
 * Encode some of the blocks for the sake of what is seen then. The first time does not count: it
 * takes the page faults of the scratch.
 */
static int try_codec(struct writing *writing, enum codec_id codec, size_t n,
		     const unsigned char *items)
{
	const struct compression_sample nothing = { 0 };
	size_t tried_nbytes = 0;

	for (size_t i = 0; i <= n && tried_nbytes < TRIAL_NBYTES; i++) {
		const struct run_block *block = &writing->blocks[i ? i - 1 : 0];
		const struct codec_items tried = { .items = (void *)items,
						   .n = block->n_items,
						   .item_nbytes = writing->format->item_nbytes };
		const ssize_t nbytes = encode(writing, codec, &tried, writing->scratch);

		if (nbytes < 0)
			return (int)nbytes;
		if (i == 0) {
			writing->sample = nothing;
			continue;
		}
		tried_nbytes += tried.n * tried.item_nbytes;
		items += tried.n * tried.item_nbytes;
	}
	return 0;
}

/* A context with its scratch, if the plan asks for one. */
static int start_encoding(struct writing *writing, struct compression_plan plan, size_t n,
			  const void *items)
{
	int r;

	if (plan.codec == CODEC_RAW && plan.trial == CODEC_RAW)
		return 0;
	r = compression_acquire(writing->format->compression,
				block_writer_scratch_nbytes(writing->format), &writing->context);
	if (r < 0)
		return r;
	writing->scratch = codec_context_scratch(writing->context);
	return plan.trial == CODEC_RAW ? 0 : try_codec(writing, plan.trial, n, items);
}

int block_writer_write(const struct run_blocks_format *format, struct run_block *blocks, size_t n,
		       const void *items)
{
	const struct compression_plan plan = compression_plan_window(format->compression);
	struct writing writing = { .format = format, .blocks = blocks, .codec = plan.codec };
	int r = start_encoding(&writing, plan, n, items);

	if (r == 0)
		r = write_blocks(&writing, n, items);
	compression_release(format->compression, writing.context);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		writing.sample.items_nbytes += (uint64_t)blocks[i].n_items * format->item_nbytes;
	compression_note(format->compression, &writing.sample);
	return 0;
}

int block_writer_write_packed(const struct run_blocks_format *format, struct run_block *blocks,
			      size_t n, const void *packed, const uint32_t *packed_nbytes)
{
	struct writing writing = { .format = format, .blocks = blocks, .group = packed };
	int r;

	for (size_t i = 0; i < n; i++) {
		const uint64_t items_nbytes = (uint64_t)blocks[i].n_items * format->item_nbytes;
		const bool is_raw = packed_nbytes[i] == items_nbytes;

		blocks[i].codec = is_raw ? CODEC_RAW : CODEC_DELTA;
		blocks[i].stored_nbytes = packed_nbytes[i];
		blocks[i].checksum =
			checksum64(writing.group + writing.group_nbytes, packed_nbytes[i]);
		writing.group_nbytes += packed_nbytes[i];
		writing.sample.items_nbytes += items_nbytes;
		writing.sample.n_encoded_blocks += !is_raw;
	}
	r = write_group(&writing, n);
	if (r == 0)
		compression_note(format->compression, &writing.sample);
	return r;
}
