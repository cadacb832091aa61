/*
 * run_spilled.c - a run in temporary space, spilled or kept from an earlier process
 *
 * The run file (io/spill/run_file.h) knows its blocks. A pipe that is an input of -m is spilled as
 * it came; that is a second table of operations.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/spill/run_file.h"
#include "src/base/int_math.h"
#include "src/base/diagnostics.h"
#include "src/run/run.h"

struct spilled_run {
	struct run run;
	struct run_file *file;
	const struct run_index *index; /* index of the file; borrowed */
	bool owns_file;                /* not that of a subrun */
	/* The run's items, as they are counted in the index, and the block of the first one. */
	uint64_t begin, end, first_block;
	encoded_key_t first_key;
	/*
	 * Blocks of the file: those before discard_begin are freed; those from discard_end on are
	 * kept.
	 */
	uint64_t discard_begin, discard_end;
};

static void spilled_close(struct run *run)
{
	const struct spilled_run *self = (struct spilled_run *)run;

	if (self->owns_file)
		run_file_close(self->file);
	free(run);
}

static void spilled_remove(struct run *run)
{
	run_file_discard_remaining(((struct spilled_run *)run)->file);
}

/* Return the items of block i of the file that belong to the run: [begin, end) in the file. */
static uint64_t spilled_block_begin(const struct spilled_run *self, uint64_t i)
{
	const uint64_t first = self->index->blocks[i].first_item;

	return first < self->begin ? self->begin : first;
}

static uint64_t spilled_block_end(const struct spilled_run *self, uint64_t i)
{
	const struct run_block *block = &self->index->blocks[i];
	const uint64_t end = block->first_item + block->n_items;

	return end > self->end ? self->end : end;
}

static bool has_full_block(const struct spilled_run *self, uint64_t i)
{
	return spilled_block_end(self, i) - spilled_block_begin(self, i) ==
	       self->index->blocks[i].n_items;
}

static uint64_t spilled_block_start(const struct run *run, uint64_t i)
{
	const struct spilled_run *self = (const struct spilled_run *)run;

	return spilled_block_begin(self, self->first_block + i) - self->begin;
}

static encoded_key_t spilled_first_key(const struct run *run, uint64_t i)
{
	const struct spilled_run *self = (const struct spilled_run *)run;

	return i == 0 ? self->first_key : self->index->blocks[self->first_block + i].first_key;
}

/*
 * Read the items [begin, end) of the index, which are in block i of the file. All of the block is
 * read, because only a whole block can be verified.
 */
static int read_in_block(const struct spilled_run *self, uint64_t i, uint64_t begin, uint64_t end,
			 void *items)
{
	const struct run_block *block = &self->index->blocks[i];
	const size_t item_nbytes = self->index->item_nbytes;
	char *buffer = malloc(block->n_items * item_nbytes);
	int r = buffer ? run_file_read(self->file, i, 1, READ_ITEMS, buffer) :
			 fail(-ENOMEM, "no memory for a block of %" PRIu64 " records",
			      (uint64_t)block->n_items);

	if (r == 0)
		memcpy(items, buffer + (begin - block->first_item) * item_nbytes,
		       (end - begin) * item_nbytes);
	free(buffer);
	return r;
}

/* Read the items of block i of the file that belong to the run. */
static int read_partial_block(const struct spilled_run *self, uint64_t i, void *items)
{
	return read_in_block(self, i, spilled_block_begin(self, i), spilled_block_end(self, i),
			     items);
}

/* Return the size of block i of the file as it is read. Only whole blocks are read packed. */
static uint32_t block_nbytes(const struct spilled_run *self, uint64_t i, enum read_format format)
{
	return has_full_block(self, i) ?
		       run_file_block_nbytes(self->file, i, format) :
		       (uint32_t)((spilled_block_end(self, i) - spilled_block_begin(self, i)) *
				  self->index->item_nbytes);
}

/*
 * Read n blocks. Whole ones are read directly to the destination. The first and the last one may be
 * only partly in the run, and go through a buffer.
 */
static int read_blocks(const struct spilled_run *self, uint64_t first, uint64_t n,
		       enum read_format format, char *destination)
{
	const uint64_t end = self->first_block + first + n;
	uint64_t i = end - n, full_end = end;
	int r = 0;

	if (i < end && !has_full_block(self, i)) {
		r = read_partial_block(self, i, destination);
		destination += block_nbytes(self, i++, format);
	}
	if (i < end && !has_full_block(self, end - 1))
		full_end--;
	if (r == 0 && i < full_end)
		r = run_file_read(self->file, i, full_end - i, format, destination);
	if (r < 0 || full_end == end)
		return r;
	for (; i < full_end; i++)
		destination += block_nbytes(self, i, format);
	return read_partial_block(self, full_end, destination);
}

static int spilled_read(struct run *run, uint64_t first, uint64_t n, void *items,
			struct digest *ret_digest)
{
	(void)ret_digest; /* spilled records were counted when they were read */
	return read_blocks((struct spilled_run *)run, first, n, READ_ITEMS, items);
}

static int spilled_read_item(struct run *run, uint64_t i, void *item)
{
	const struct spilled_run *self = (struct spilled_run *)run;
	const uint64_t file_item = self->begin + i;

	return read_in_block(self, run_index_find_block(self->index, file_item), file_item,
			     file_item + 1, item);
}

/* Count those of a block's n items that come before the bound. key: room for a key. */
static uint64_t spilled_count_items_before(const struct run *run, const char *items, uint64_t n,
					   const struct run_bound *bound, void *key)
{
	uint64_t lo = 0, hi = n;

	while (lo < hi) {
		const uint64_t i = lo + (hi - lo) / 2;
		int order;

		run_item_key(run, bound->layout, items + i * bound->layout->item_nbytes, key);
		order = layout_compare_keys(bound->layout, key, bound->key);
		if (order < 0 || (order == 0 && bound->after_equals))
			lo = i + 1;
		else
			hi = i;
	}
	return lo;
}

static int spilled_count_in_block(struct run *run, uint64_t i, const struct run_bound *bound,
				  uint64_t *ret_n_before)
{
	const uint64_t start = run_block_start(run, i), n = run_block_start(run, i + 1) - start;
	char *items = malloc(n * bound->layout->item_nbytes);
	void *key = malloc(layout_key_nbytes(bound->layout));
	struct digest ignored = { 0 };
	int r = items && key ? spilled_read(run, i, 1, items, &ignored) :
			       fail(-ENOMEM, "no memory for a block of %" PRIu64 " records", n);

	if (r == 0)
		*ret_n_before = start + spilled_count_items_before(run, items, n, bound, key);
	free(items);
	free(key);
	return r;
}

static void spilled_discard_before(struct run *run, uint64_t end)
{
	struct spilled_run *self = (struct spilled_run *)run;

	end += self->first_block;
	if (end > self->discard_end)
		end = self->discard_end;
	if (end <= self->discard_begin)
		return;
	run_file_discard(self->file, self->discard_begin, end - self->discard_begin);
	self->discard_begin = end;
}

/* Return the first block after block i that does not begin in the page in which block i ends. */
static uint64_t find_next_page_block(const struct spilled_run *self, uint64_t i)
{
	const struct run_block *blocks = self->index->blocks;
	const uint64_t last_page =
		(blocks[i].offset + blocks[i].stored_nbytes - 1) / SPILL_ALIGN_NBYTES;
	uint64_t next = i + 1;

	while (next < self->index->n_blocks && blocks[next].file == blocks[i].file &&
	       blocks[next].offset / SPILL_ALIGN_NBYTES == last_page)
		next++;
	return next;
}

static int spilled_open_subrun(const struct layout *layout, struct run *run, uint64_t begin,
			       uint64_t end, struct run **ret_subrun);

#define SPILLED_RUN_OPS                                                                            \
	.close = spilled_close, .remove = spilled_remove, .open_subrun = spilled_open_subrun,      \
	.block_start = spilled_block_start, .first_key = spilled_first_key, .read = spilled_read,  \
	.read_item = spilled_read_item, .count_in_block = spilled_count_in_block,                  \
	.discard_before = spilled_discard_before

static const struct run_ops spilled_run_ops[] = {
	[SPILLED_ITEMS] = { SPILLED_RUN_OPS },
	[SPILLED_RECORDS] = { SPILLED_RUN_OPS, .is_raw_input = true },
};

int run_open_spilled(struct run_file *file, enum spilled_items items, struct run **ret_run)
{
	const struct run_index *index = run_file_index(file);
	struct spilled_run *self = calloc(1, sizeof *self);

	if (!self) {
		run_file_close(file);
		return fail(-ENOMEM, "no memory for a run");
	}
	*self = (struct spilled_run){ .run = { .ops = &spilled_run_ops[items],
					       .n_items = index->n_items,
					       .n_blocks = index->n_blocks },
				      .file = file,
				      .index = index,
				      .owns_file = true,
				      .end = index->n_items,
				      .first_key = index->n_blocks ? index->blocks[0].first_key : 0,
				      .discard_end = index->n_blocks };
	*ret_run = &self->run;
	return 0;
}

/* --- packed blocks --- */

bool run_can_read_packed(const struct run *run)
{
	return run->ops->close == spilled_close;
}

struct run_file *run_spilled_file(const struct run *run)
{
	const struct spilled_run *self = (const struct spilled_run *)run;

	return run_can_read_packed(run) && self->owns_file ? self->file : NULL;
}

size_t run_packed_nbytes(const struct run *run, uint64_t first, uint64_t n)
{
	const struct spilled_run *self = (const struct spilled_run *)run;
	size_t nbytes = 0;

	for (uint64_t i = first; i < first + n; i++)
		nbytes += block_nbytes(self, self->first_block + i, READ_PACKED);
	return nbytes;
}

int run_read_packed(struct run *run, uint64_t first, uint64_t n, void *packed)
{
	return read_blocks((struct spilled_run *)run, first, n, READ_PACKED, packed);
}

int run_fail_packed(const struct run *run, uint64_t i)
{
	const struct spilled_run *self = (const struct spilled_run *)run;

	return run_file_fail_packed(self->file, self->first_block + i);
}

/* --- parts of runs --- */

/*
 * Limit what a subrun, which has [first, end) of the blocks, may free to the blocks that no other
 * subrun reads. A page that two blocks share is freed with the second, but may hold the end of a
 * block that another subrun reads: the block in which this one begins, or the one before it.
 */
static void set_discard_bounds(struct spilled_run *subrun, uint64_t end)
{
	const uint64_t first = subrun->first_block;

	subrun->discard_begin = first;
	if (!has_full_block(subrun, first))
		subrun->discard_begin = find_next_page_block(subrun, first);
	else if (first > 0)
		subrun->discard_begin = find_next_page_block(subrun, first - 1);
	subrun->discard_end = has_full_block(subrun, end - 1) ? end : end - 1;
}

/* Set first_key. The index has it only if the part begins where a block does. */
static int read_first_key(struct spilled_run *part, const struct layout *layout)
{
	const struct run_block *block = &part->index->blocks[part->first_block];
	char *item;
	void *key;
	int r;

	part->first_key = block->first_key;
	if (block->first_item == part->begin)
		return 0;
	item = malloc(layout->item_nbytes);
	key = malloc(layout_key_nbytes(layout));
	r = item && key ? spilled_read_item(&part->run, 0, item) :
			  fail(-ENOMEM, "no memory for a record");
	if (r == 0) {
		run_item_key(&part->run, layout, item, key);
		part->first_key = layout_get_key_prefix(layout, key);
	}
	free(item);
	free(key);
	return r;
}

/* Narrow a run that was just opened to the items [begin, end) of the index. */
static int narrow(struct spilled_run *part, const struct layout *layout, uint64_t begin,
		  uint64_t end)
{
	const uint64_t end_block = run_index_find_block(part->index, end - 1) + 1;

	part->begin = begin;
	part->end = end;
	part->first_block = run_index_find_block(part->index, begin);
	part->run.n_items = end - begin;
	part->run.n_blocks = end_block - part->first_block;
	set_discard_bounds(part, end_block);
	return read_first_key(part, layout);
}

static int spilled_open_subrun(const struct layout *layout, struct run *run, uint64_t begin,
			       uint64_t end, struct run **ret_subrun)
{
	const struct spilled_run *self = (struct spilled_run *)run;
	struct spilled_run *subrun = malloc(sizeof *subrun);
	int r;

	if (!subrun)
		return fail(-ENOMEM, "no memory for a part of a run");
	*subrun = *self;
	subrun->owns_file = false;
	r = narrow(subrun, layout, self->begin + begin, self->begin + end);
	if (r < 0) {
		free(subrun);
		return r;
	}
	*ret_subrun = &subrun->run;
	return 0;
}

int run_open_spilled_part(const struct layout *layout, struct run_file *file, uint64_t begin,
			  uint64_t end, struct run **ret_run)
{
	int r = run_open_spilled(file, SPILLED_ITEMS, ret_run);

	if (r < 0)
		return r;
	r = narrow((struct spilled_run *)*ret_run, layout, begin, end);
	if (r < 0)
		run_close(*ret_run);
	return r;
}
