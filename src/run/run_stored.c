/*
 * run_stored - a run in the temporary space, spilled or kept from before (see run.h)
 *
 * It is a run file (io/store/run_file.h), which knows its blocks. With -m, what comes through a
 * pipe is stored as it came, and is another row here.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/store/run_file.h"
#include "src/base/messages.h"
#include "src/run/run_kind.h"

struct stored_run {
	struct run run;
	struct run_file *file;
	uint64_t n_discarded; /* blocks given back */
};

static struct stored_run *stored(struct run *run)
{
	return (struct stored_run *)run;
}

static struct run_file *stored_file(const struct run *run)
{
	return ((const struct stored_run *)run)->file;
}

static void stored_close(struct run *run)
{
	run_file_close(stored_file(run));
	free(stored(run));
}

static void stored_give_back(struct run *run)
{
	run_file_discard_rest(stored_file(run));
}

static uint64_t stored_block_start(const struct run *run, uint64_t i)
{
	return run_file_blocks(stored_file(run))[i].first_item;
}

static code_t stored_first_key(const struct run *run, uint64_t i)
{
	return run_file_blocks(stored_file(run))[i].first_key;
}

static int stored_read(struct run *run, uint64_t first, uint64_t n, void *items,
		       struct digest *ret_digest)
{
	(void)ret_digest; /* what is spilled was counted when it was read */
	return run_file_read(stored_file(run), first, n, items);
}

/* Only whole blocks can be verified. */
static int stored_read_first_item(struct run *run, uint64_t i, void *item)
{
	struct run_file *file = stored_file(run);
	const uint64_t n = run_file_blocks(file)[i].n_items;
	const size_t item_nbytes = run_file_item_nbytes(file);
	void *block = malloc(n * item_nbytes);
	int r = block ? run_file_read(file, i, 1, block) :
			fail(-ENOMEM, "no memory for a block of %" PRIu64 " records", n);

	if (r == 0)
		memcpy(item, block, item_nbytes);
	free(block);
	return r;
}

static void stored_discard_before(struct run *run, uint64_t end)
{
	struct stored_run *self = stored(run);

	if (end <= self->n_discarded)
		return;
	run_file_discard(self->file, self->n_discarded, end - self->n_discarded);
	self->n_discarded = end;
}

#define STORED                                                                                     \
	.close = stored_close, .give_back = stored_give_back, .block_start = stored_block_start,   \
	.first_key = stored_first_key, .read = stored_read,                                        \
	.read_first_item = stored_read_first_item, .discard_before = stored_discard_before,        \
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
				     .file = file };
	*ret_run = &self->run;
	return 0;
}
