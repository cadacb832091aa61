/*
 * run_file_read - the blocks of a run file are read, and given back (see run_file.h)
 *
 * Blocks whose stored bytes are neighbours in the file are read together, in groups like those that
 * they are written in (block_writer.h): raw ones to where they are needed, encoded ones to the
 * scratch of a codec's context.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "io/codec/checksum.h"
#include "io/spill/run_file_internal.h"
#include "src/base/diagnostics.h"

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
	const char *advice = spill_advice(run->format.spill);

	if (r == -EBADMSG)
		spill_record_damage(run->format.spill, block->offset);
	return fail(r,
		    "temporary file in %s: block %" PRIu64 " of %zu (%" PRIu32 " bytes at %" PRIu64
		    ") %s: %s; %s",
		    spill_directory(run->format.spill, block->file), i, run->n_blocks,
		    block->stored_nbytes, block->offset, what,
		    r == -EBADMSG ? "it is not what was written" : strerror(-r),
		    advice ? advice : "check the disk, or use another directory (-T)");
}

/* Bring the stored bytes of the blocks [first, end) to `to`, where they are not yet checked. */
static int fetch_group(const struct run_file *run, uint64_t first, uint64_t end,
		       struct spill_extent extent, unsigned char *to)
{
	int r = spill_read(run->format.spill, extent, to);

	if (r == 0 || r == -ECANCELED)
		return r;
	if (end - first == 1)
		return r == -ENODATA ? fail_block(run, first, -EBADMSG, "is cut off") :
				       fail_block(run, first, r, "cannot be read");
	/* Find out which block it is. */
	for (uint64_t i = first; i < end; i++) {
		group_extent(run, i, i + 1, 0, &extent);
		r = fetch_group(run, i, i + 1, extent, to);
		if (r < 0)
			return r;
		to += extent.nbytes;
	}
	return 0;
}

/* What is to become of the blocks that are read. */
enum read_format { READ_ITEMS, READ_PACKED };

/* Is block i wanted as it is stored? */
static bool is_returned_as_stored(const struct run_file *run, uint64_t i, enum read_format format)
{
	const enum codec_id codec = run->blocks[i].codec;

	return codec == CODEC_RAW || (format == READ_PACKED && codec == CODEC_DELTA);
}

/* What it takes where it is wanted. */
static size_t read_nbytes(const struct run_file *run, uint64_t i, enum read_format format)
{
	return is_returned_as_stored(run, i, format) ?
		       run->blocks[i].stored_nbytes :
		       (size_t)run->blocks[i].n_items * run->format.item_nbytes;
}

/* Check the stored bytes of block i, and make items of them. context: NULL: they stay so. */
static int decode_block(const struct run_file *run, uint64_t i, struct codec_context *context,
			const unsigned char *stored, unsigned char *items)
{
	const struct run_block *block = &run->blocks[i];
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
								       run->format.item_nbytes });
	return r < 0 ? fail_block(run, i, r, "cannot be decoded") : 0;
}

/*
 * The longest group from `first` on, below `end`, that is read at once; all are wanted as they are
 * stored, or none is.
 */
static uint64_t read_extent(const struct run_file *run, uint64_t first, uint64_t end,
			    enum read_format format, struct spill_extent *ret_extent)
{
	const bool as_stored = is_returned_as_stored(run, first, format);
	uint64_t prefix_end;

	for (prefix_end = first; prefix_end < end; prefix_end++)
		if (is_returned_as_stored(run, prefix_end, format) != as_stored)
			break;
	return group_extent(run, first, prefix_end,
			    as_stored ? BLOCK_GROUP_NBYTES :
					block_writer_scratch_nbytes(&run->format),
			    ret_extent);
}

/* Read the group [first, end): to its place, or with a context to the scratch and then there. */
static int read_group(const struct run_file *run, uint64_t first, uint64_t end,
		      struct spill_extent extent, struct codec_context *context, unsigned char *to)
{
	const uint32_t item_nbytes = run->format.item_nbytes;
	unsigned char *stored = context ? codec_context_scratch(context) : to;
	int r = fetch_group(run, first, end, extent, stored);

	for (uint64_t i = first; r == 0 && i < end; i++) {
		r = decode_block(run, i, context, stored, to);
		stored += run->blocks[i].stored_nbytes;
		if (context)
			to += (size_t)run->blocks[i].n_items * item_nbytes;
	}
	return r;
}

static int read_blocks(struct run_file *run, uint64_t first, uint64_t n, enum read_format format,
		       unsigned char *to)
{
	const uint64_t end = first + n;
	int r = 0;

	assert(end <= run->n_blocks);
	while (r == 0 && first < end) {
		struct codec_context *context = NULL;
		struct spill_extent extent;
		const uint64_t group_end = read_extent(run, first, end, format, &extent);

		if (!is_returned_as_stored(run, first, format))
			r = compression_acquire(run->format.compression,
						block_writer_scratch_nbytes(&run->format),
						&context);
		if (r == 0)
			r = read_group(run, first, group_end, extent, context, to);
		compression_release(run->format.compression, context);
		for (; first < group_end; first++)
			to += read_nbytes(run, first, format);
	}
	return r;
}

int run_file_read(struct run_file *run, uint64_t first, uint64_t n, void *items)
{
	return read_blocks(run, first, n, READ_ITEMS, items);
}

int run_file_read_packed(struct run_file *run, uint64_t first, uint64_t n, void *packed)
{
	return read_blocks(run, first, n, READ_PACKED, packed);
}

uint32_t run_file_packed_nbytes(const struct run_file *run, uint64_t i)
{
	return (uint32_t)read_nbytes(run, i, READ_PACKED);
}

int run_file_fail_packed(const struct run_file *run, uint64_t i)
{
	return fail_block(run, i, -EBADMSG, "cannot be decoded");
}

/* Does the page in which block i ends hold the next one's beginning, too? */
static bool shares_page_with_next(const struct run_file *run, uint64_t i)
{
	const struct run_block *block = &run->blocks[i];
	const uint64_t end = block->offset + block->stored_nbytes;

	return end % SPILL_ALIGN_NBYTES != 0 && i + 1 < run->n_blocks &&
	       block[1].file == block->file && block[1].offset == end;
}

/*
 * The pages of the blocks from `first` on, below `end`, as far as they follow each other. The space
 * between two windows, less than a page, belongs to the first. A page at the beginning that is
 * shared with the block before goes with it, since that is not needed any more; one at the end
 * stays until the block behind it goes. Returns the block after the last.
 */
static uint64_t discard_extent(const struct run_file *run, uint64_t first, uint64_t end,
			       struct spill_extent *ret_extent)
{
	const struct run_block *block = &run->blocks[first];
	uint64_t begin_page = block->offset / SPILL_ALIGN_NBYTES, end_page = begin_page;

	for (; first < end; first++) {
		const struct run_block *next = &run->blocks[first];
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

	assert(end <= run->n_blocks);
	while (first < end) {
		struct spill_extent extent;
		const uint64_t extent_end = discard_extent(run, first, end, &extent);

		spill_discard(run->format.spill, extent);
		for (; first < extent_end; first++)
			run->blocks[first].discarded = true;
	}
}

void run_file_discard_remaining(struct run_file *run)
{
	for (size_t first = 0, end; first < run->n_blocks; first = end) {
		const bool discarded = run->blocks[first].discarded;

		for (end = first + 1; end < run->n_blocks; end++)
			if (run->blocks[end].discarded != discarded)
				break;
		if (!discarded)
			run_file_discard(run, first, end - first);
	}
}
