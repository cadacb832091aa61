/*
 * run_stored - a run in the temporary space, spilled or kept from before (see run.h)
 *
 * It is a run file (io/spill/run_file.h), which knows its blocks. With -m, what comes through a
 * pipe is stored as it came, and is another row here.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/spill/run_file.h"
#include "src/base/interval_search.h"
#include "src/base/diagnostics.h"
#include "src/run/run_ops.h"

struct stored_run {
	struct run run;
	struct run_file *file;
	bool is_part; /* the file is another run's, which holds all of it */
	/* Of the file: the run's items, and the block that holds the first of them. */
	uint64_t begin, end, first_block;
	code_t first_key; /* of a part */
	/* Blocks of the file: given back before the one, and not to be from the other on. */
	uint64_t n_discarded, end_discarded;
};

static struct stored_run *stored(struct run *run)
{
	return (struct stored_run *)run;
}

static const struct stored_run *stored_const(const struct run *run)
{
	return (const struct stored_run *)run;
}

/* Of all of it; not of a part. */
static struct run_file *stored_file(const struct run *run)
{
	return stored_const(run)->is_part ? NULL : stored_const(run)->file;
}

static void stored_close(struct run *run)
{
	if (!stored(run)->is_part)
		run_file_close(stored(run)->file);
	free(stored(run));
}

static void stored_give_back(struct run *run)
{
	run_file_discard_rest(stored(run)->file);
}

/* Block i of the file, as far as it is the run's: its items in the file. */
static uint64_t begin_of(const struct stored_run *self, uint64_t i)
{
	const uint64_t first = run_file_blocks(self->file)[i].first_item;

	return first < self->begin ? self->begin : first;
}

static uint64_t end_of(const struct stored_run *self, uint64_t i)
{
	const struct run_block *block = &run_file_blocks(self->file)[i];
	const uint64_t end = block->first_item + block->n_items;

	return end > self->end ? self->end : end;
}

static bool is_whole(const struct stored_run *self, uint64_t i)
{
	return end_of(self, i) - begin_of(self, i) == run_file_blocks(self->file)[i].n_items;
}

static uint64_t stored_block_start(const struct run *run, uint64_t i)
{
	const struct stored_run *self = stored_const(run);

	return begin_of(self, self->first_block + i) - self->begin;
}

static code_t stored_first_key(const struct run *run, uint64_t i)
{
	const struct stored_run *self = stored_const(run);

	return self->is_part && i == 0 ?
		       self->first_key :
		       run_file_blocks(self->file)[self->first_block + i].first_key;
}

/* Only whole blocks can be verified: read all of block i of the file; for free(). */
static int read_whole(const struct stored_run *self, uint64_t i, char **ret_items)
{
	const uint64_t n = run_file_blocks(self->file)[i].n_items;
	char *items = malloc(n * run_file_item_nbytes(self->file));
	int r = items ? run_file_read(self->file, i, 1, items) :
			fail(-ENOMEM, "no memory for a block of %" PRIu64 " records", n);

	if (r < 0)
		free(items);
	else
		*ret_items = items;
	return r;
}

/* The run's items of block i of the file. */
static int read_its_items(const struct stored_run *self, uint64_t i, void *items)
{
	const size_t item_nbytes = run_file_item_nbytes(self->file);
	const uint64_t begin = begin_of(self, i);
	char *block = NULL;
	int r = read_whole(self, i, &block);

	if (r < 0)
		return r;
	memcpy(items, block + (begin - run_file_blocks(self->file)[i].first_item) * item_nbytes,
	       (end_of(self, i) - begin) * item_nbytes);
	free(block);
	return 0;
}

/* What is read of block i of the file: its items, or as it is stored. */
typedef uint32_t block_nbytes_fn(const struct stored_run *self, uint64_t i);
/* As run_file_read(). */
typedef int read_blocks_fn(struct run_file *file, uint64_t first, uint64_t n, void *to);

static uint32_t items_nbytes(const struct stored_run *self, uint64_t i)
{
	return (uint32_t)((end_of(self, i) - begin_of(self, i)) * run_file_item_nbytes(self->file));
}

/* A block of which the run has a part only is read as items. */
static uint32_t packed_nbytes(const struct stored_run *self, uint64_t i)
{
	return is_whole(self, i) ? run_file_packed_nbytes(self->file, i) : items_nbytes(self, i);
}

/* Whole blocks go to where they are wanted; of others, which are at the ends, a part does. */
static int read_blocks(const struct stored_run *self, uint64_t first, uint64_t n,
		       read_blocks_fn *read_whole_blocks, block_nbytes_fn *nbytes_of, char *to)
{
	const uint64_t end = self->first_block + first + n;
	uint64_t i = end - n, whole_end = end;
	int r = 0;

	if (i < end && !is_whole(self, i)) {
		r = read_its_items(self, i, to);
		to += items_nbytes(self, i++);
	}
	if (i < end && !is_whole(self, end - 1))
		whole_end--;
	if (r == 0 && i < whole_end)
		r = read_whole_blocks(self->file, i, whole_end - i, to);
	if (r < 0 || whole_end == end)
		return r;
	for (; i < whole_end; i++)
		to += nbytes_of(self, i);
	return read_its_items(self, whole_end, to);
}

static int stored_read(struct run *run, uint64_t first, uint64_t n, void *items,
		       struct digest *ret_digest)
{
	(void)ret_digest; /* what is spilled was counted when it was read */
	return read_blocks(stored(run), first, n, run_file_read, items_nbytes, items);
}

/* The block of the file that holds item `at`, which is there. */
static uint64_t find_block(const struct run_file *file, uint64_t at)
{
	return begins_find(run_file_blocks(file), sizeof(struct run_block),
			   offsetof(struct run_block, first_item), run_file_n_blocks(file), at);
}

static bool stored_is_packed(const struct run *run)
{
	(void)run;
	return true;
}

static uint32_t stored_packed_nbytes(const struct run *run, uint64_t i)
{
	const struct stored_run *self = stored_const(run);

	return packed_nbytes(self, self->first_block + i);
}

static int stored_read_packed(struct run *run, uint64_t first, uint64_t n, void *packed)
{
	return read_blocks(stored(run), first, n, run_file_read_packed, packed_nbytes, packed);
}

static int stored_fail_packed(const struct run *run, uint64_t i)
{
	const struct stored_run *self = stored_const(run);

	return run_file_fail_packed(self->file, self->first_block + i);
}

static int stored_read_item(struct run *run, uint64_t i, void *item)
{
	const struct stored_run *self = stored(run);
	const size_t item_nbytes = run_file_item_nbytes(self->file);
	const uint64_t at = self->begin + i, block = find_block(self->file, at);
	char *items = NULL;
	int r = read_whole(self, block, &items);

	if (r < 0)
		return r;
	memcpy(item, items + (at - run_file_blocks(self->file)[block].first_item) * item_nbytes,
	       item_nbytes);
	free(items);
	return 0;
}

/* How many of a block's n items come before the place; key: room for one. */
static uint64_t count_before(const struct run *run, const char *items, uint64_t n,
			     const struct run_cut_at *at, void *key)
{
	uint64_t lo = 0, hi = n;

	while (lo < hi) {
		const uint64_t i = lo + (hi - lo) / 2;
		int order;

		run_item_key(run, at->layout, items + i * at->layout->item_nbytes, key);
		order = layout_compare_keys(at->layout, key, at->key);
		if (order < 0 || (order == 0 && at->behind_equals))
			lo = i + 1;
		else
			hi = i;
	}
	return lo;
}

static int stored_cut_block(struct run *run, uint64_t i, const struct run_cut_at *at,
			    uint64_t *ret_cut)
{
	const uint64_t start = run_block_start(run, i), n = run_block_start(run, i + 1) - start;
	char *items = malloc(n * at->layout->item_nbytes);
	void *key = malloc(layout_key_nbytes(at->layout));
	struct digest unread = { 0 };
	int r = items && key ? stored_read(run, i, 1, items, &unread) :
			       fail(-ENOMEM, "no memory for a block of %" PRIu64 " records", n);

	if (r == 0)
		*ret_cut = start + count_before(run, items, n, at, key);
	free(items);
	free(key);
	return r;
}

static void stored_discard_before(struct run *run, uint64_t end)
{
	struct stored_run *self = stored(run);

	end += self->first_block;
	if (end > self->end_discarded)
		end = self->end_discarded;
	if (end <= self->n_discarded)
		return;
	run_file_discard(self->file, self->n_discarded, end - self->n_discarded);
	self->n_discarded = end;
}

/* The first block behind block i that begins in no page which that one ends in. */
static uint64_t find_apart(const struct stored_run *self, uint64_t i)
{
	const struct run_block *blocks = run_file_blocks(self->file);
	const uint64_t last_page =
		(blocks[i].offset + blocks[i].stored_nbytes - 1) / SPILL_ALIGN_NBYTES;
	uint64_t apart = i + 1;

	while (apart < run_file_n_blocks(self->file) && blocks[apart].file == blocks[i].file &&
	       blocks[apart].offset / SPILL_ALIGN_NBYTES == last_page)
		apart++;
	return apart;
}

static void stored_discard_between(struct run *run, uint64_t first, uint64_t end)
{
	const struct stored_run *self = stored(run);
	const struct run_block *blocks = run_file_blocks(self->file);

	if (first > 0 && first < end)
		first = find_apart(self, first - 1);
	while (first < end && blocks[first].discarded)
		first++;
	if (first < end)
		run_file_discard(self->file, first, end - first);
}

static int stored_open_part(const struct layout *layout, struct run *run, uint64_t begin,
			    uint64_t end, struct run **ret_part);

#define STORED                                                                                     \
	.close = stored_close, .give_back = stored_give_back, .open_part = stored_open_part,       \
	.block_start = stored_block_start, .first_key = stored_first_key, .read = stored_read,     \
	.read_item = stored_read_item, .cut_block = stored_cut_block,                              \
	.is_packed = stored_is_packed, .packed_nbytes = stored_packed_nbytes,                      \
	.read_packed = stored_read_packed, .fail_packed = stored_fail_packed,                      \
	.discard_before = stored_discard_before, .discard_between = stored_discard_between,        \
	.file = stored_file

static const struct run_kind kinds[] = {
	[STORED_ITEMS] = { STORED },
	[STORED_RECORDS] = { STORED, .is_as_it_came = true },
};

int run_open_stored(struct run_file *file, enum stored_items items, struct run **ret_run)
{
	struct stored_run *self = calloc(1, sizeof *self);

	if (!self) {
		run_file_close(file);
		return fail(-ENOMEM, "no memory for a run");
	}
	*self = (struct stored_run){ .run = { .kind = &kinds[items],
					      .n_items = run_file_n_items(file),
					      .n_blocks = run_file_n_blocks(file) },
				     .file = file,
				     .end = run_file_n_items(file),
				     .end_discarded = run_file_n_blocks(file) };
	*ret_run = &self->run;
	return 0;
}

/*
 * What a part may give back, of the blocks [first, end) that it has a part of: those that nobody
 * else reads. A page between blocks goes with the last of them, and may hold what others read: the
 * block in which the part begins, or the one before it.
 */
static void set_discards(struct stored_run *part, uint64_t end)
{
	const uint64_t first = part->first_block;

	part->n_discarded = first;
	if (part->begin > 0)
		part->n_discarded = find_apart(part, is_whole(part, first) ? first - 1 : first);
	part->end_discarded = is_whole(part, end - 1) ? end : end - 1;
}

static int read_first_key(struct stored_run *part, const struct layout *layout)
{
	char *item = malloc(layout->item_nbytes);
	void *key = malloc(layout_key_nbytes(layout));
	int r = item && key ? stored_read_item(&part->run, 0, item) :
			      fail(-ENOMEM, "no memory for a record");

	if (r == 0) {
		run_item_key(&part->run, layout, item, key);
		part->first_key = layout_key_beginning(layout, key);
	}
	free(item);
	free(key);
	return r;
}

static int stored_open_part(const struct layout *layout, struct run *run, uint64_t begin,
			    uint64_t end, struct run **ret_part)
{
	const struct stored_run *self = stored(run);
	struct stored_run *part = malloc(sizeof *part);
	uint64_t end_block;
	int r;

	if (!part)
		return fail(-ENOMEM, "no memory for a part of a run");
	*part = *self;
	part->is_part = true;
	part->begin = self->begin + begin;
	part->end = self->begin + end;
	part->first_block = find_block(part->file, part->begin);
	end_block = find_block(part->file, part->end - 1) + 1;
	part->run.n_items = end - begin;
	part->run.n_blocks = end_block - part->first_block;
	set_discards(part, end_block);
	r = read_first_key(part, layout);
	if (r < 0) {
		free(part);
		return r;
	}
	*ret_part = &part->run;
	return 0;
}
