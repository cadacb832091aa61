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
enum { MIN_SCRATCH_NBYTES = 256 << 10, SCRATCH_BLOCKS = 5 };

/* Of items that are encoded in a trial. */
enum { PROBE_NBYTES = 256 << 10 };

static size_t scratch_nbytes(size_t block_nbytes)
{
	const size_t nbytes = SCRATCH_BLOCKS * block_nbytes;

	return nbytes > MIN_SCRATCH_NBYTES ? nbytes : MIN_SCRATCH_NBYTES;
}

size_t block_writer_scratch_nbytes(const struct run_blocks_format *format)
{
	return scratch_nbytes((size_t)format->block_n_items * format->item_nbytes);
}

size_t block_writer_thread_nbytes(const struct compression_params *params, bool are_encoded_keys,
				  size_t block_nbytes)
{
	if (params->mode == COMPRESS_NONE)
		return 0;
	return scratch_nbytes(block_nbytes) +
	       compression_context_nbytes(params, are_encoded_keys, block_nbytes);
}

/* A window on its way to the spill. */
struct window_writer {
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
static int write_group(struct window_writer *window, size_t end)
{
	const uint64_t begin_ns = clock_now_ns();
	struct spill_extent extent;
	int r;

	if (window->group_nbytes == 0)
		return 0;
	r = spill_write(window->format->spill, window->group, window->group_nbytes, &extent);
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

/* Encode items to `stored`; as encode() of a codec, if it becomes less. */
static ssize_t encode(struct window_writer *window, enum codec_id codec,
		      const struct codec_items *items, void *stored)
{
	const size_t items_nbytes = items->n * items->item_nbytes;
	const uint64_t begin_ns = clock_now_ns();
	const ssize_t nbytes =
		codecs[codec].encode(window->context, items, stored, items_nbytes - 1);

	if (nbytes < 0)
		return fail((int)nbytes,
			    "a block of %zu bytes of temporary data cannot be compressed (%s): %m; "
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

/* Encode block i, behind the group if that is encoded. *ret_nbytes: 0 if it does not shrink. */
static int encode_block(struct window_writer *window, size_t i, const struct codec_items *items,
			const unsigned char **ret_stored, size_t *ret_nbytes)
{
	size_t used_nbytes = is_encoded_group(window) ? window->group_nbytes : 0;
	ssize_t nbytes;

	if (block_writer_scratch_nbytes(window->format) - used_nbytes <
	    items->n * items->item_nbytes) {
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

/* Add block i to the group, writing what cannot be in one group with it. */
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

/* Store the blocks, n of them, whose n_items are set. */
static int write_blocks(struct window_writer *window, size_t n, const unsigned char *items)
{
	const uint32_t item_nbytes = window->format->item_nbytes;

	for (size_t i = 0; i < n; i++) {
		const size_t n_items = window->blocks[i].n_items;
		const int r = store_block(window, i,
					  &(struct codec_items){ .items = (void *)items,
								 .n = n_items,
								 .item_nbytes = item_nbytes });

		if (r < 0)
			return r;
		items += n_items * item_nbytes;
	}
	return write_group(window, n);
}

/*
 * Encode some of the blocks for the sake of what is seen then. The first time does not count: it
 * takes the page faults of the scratch.
 */
static int probe_codec(struct window_writer *window, enum codec_id codec, size_t n,
		       const unsigned char *items)
{
	const struct compression_sample empty_sample = { 0 };
	size_t probed_nbytes = 0;

	for (size_t i = 0; i <= n && probed_nbytes < PROBE_NBYTES; i++) {
		const struct run_block *block = &window->blocks[i ? i - 1 : 0];
		const struct codec_items probed = { .items = (void *)items,
						    .n = block->n_items,
						    .item_nbytes = window->format->item_nbytes };
		const ssize_t nbytes = encode(window, codec, &probed, window->scratch);

		if (nbytes < 0)
			return (int)nbytes;
		if (i == 0) {
			window->sample = empty_sample;
			continue;
		}
		probed_nbytes += probed.n * probed.item_nbytes;
		items += probed.n * probed.item_nbytes;
	}
	return 0;
}

/* A context with its scratch, if the plan asks for one. */
static int start_encoding(struct window_writer *window, struct compression_plan plan, size_t n,
			  const void *items)
{
	int r;

	if (plan.codec == CODEC_RAW && plan.probe_codec == CODEC_RAW)
		return 0;
	r = compression_acquire(window->format->compression,
				block_writer_scratch_nbytes(window->format), &window->context);
	if (r < 0)
		return r;
	window->scratch = codec_context_scratch(window->context);
	return plan.probe_codec == CODEC_RAW ? 0 : probe_codec(window, plan.probe_codec, n, items);
}

int block_writer_write(const struct run_blocks_format *format, struct run_block *blocks, size_t n,
		       const void *items)
{
	const struct compression_plan plan = compression_plan_window(format->compression);
	struct window_writer window = { .format = format, .blocks = blocks, .codec = plan.codec };
	int r = start_encoding(&window, plan, n, items);

	if (r == 0)
		r = write_blocks(&window, n, items);
	compression_release(format->compression, window.context);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		window.sample.items_nbytes += (uint64_t)blocks[i].n_items * format->item_nbytes;
	compression_record_sample(format->compression, &window.sample);
	return 0;
}

int block_writer_write_packed(const struct run_blocks_format *format, struct run_block *blocks,
			      size_t n, const void *packed, const uint32_t *packed_nbytes)
{
	struct window_writer window = { .format = format, .blocks = blocks, .group = packed };
	int r;

	for (size_t i = 0; i < n; i++) {
		const uint64_t items_nbytes = (uint64_t)blocks[i].n_items * format->item_nbytes;
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
		compression_record_sample(format->compression, &window.sample);
	return r;
}
