/*
 * run - a sorted sequence of items, wherever it lives (see run.h)
 */
#include "src/run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "io/run_file.h"
#include "src/status.h"
#include "src/verify.h"

enum { DISCARD_NBYTES = 1 << 20 };

enum run_kind { RUN_RESIDENT, RUN_SPILLED, RUN_INPUT };

struct run {
	enum run_kind kind;
	uint64_t n_items, n_blocks;

	/* Resident and input runs: blocks of `stride` items, and their first keys. */
	uint64_t stride;
	code_t *first_keys;

	/* Resident */
	void *elements;
	void (*release)(void *owner);
	void *owner;

	/* Spilled */
	struct run_file *file;
	enum spilled_items items;
	uint64_t n_discarded; /* blocks given back */

	/* Input */
	const struct engine *engine;
	struct input *input;
	struct input_extent extent;
	struct verify_edge edge; /* the last record read, for the order check */
};

static struct run *run_make(enum run_kind kind)
{
	struct run *run = calloc(1, sizeof *run);

	if (!run)
		fail(-ENOMEM, "no memory for a run");
	else
		run->kind = kind;
	return run;
}

static int set_stride(struct run *run, uint64_t stride)
{
	run->stride = stride;
	run->n_blocks = run->n_items / stride + (run->n_items % stride != 0);
	run->first_keys = malloc((run->n_blocks + 1) * sizeof *run->first_keys);
	if (!run->first_keys)
		return fail(-ENOMEM, "no memory for the first keys of %" PRIu64 " blocks",
			    run->n_blocks);
	return 0;
}

int run_open_resident(void *elements, uint64_t n, void (*release)(void *owner), void *owner,
		      struct run **ret_run)
{
	struct run *run = run_make(RUN_RESIDENT);

	if (!run)
		return -ENOMEM;
	run->elements = elements;
	run->n_items = n;
	run->release = release;
	run->owner = owner;
	*ret_run = run;
	return 0;
}

int run_open_spilled(struct run_file *file, enum spilled_items items, struct run **ret_run)
{
	struct run *run = run_make(RUN_SPILLED);

	if (!run) {
		run_file_close(file);
		return -ENOMEM;
	}
	run->file = file;
	run->items = items;
	run->n_items = run_file_n_items(file);
	run->n_blocks = run_file_n_blocks(file);
	*ret_run = run;
	return 0;
}

static int read_first_keys(struct run *run)
{
	const struct layout *layout = run->engine->layout;
	unsigned char record[16];
	int r = 0;

	for (uint64_t i = 0; i < run->n_blocks && r == 0; i++) {
		r = input_read_at(run->input,
				  run->extent.position + i * run->stride * layout->record_nbytes,
				  record, layout->record_nbytes);
		run->first_keys[i] = layout_encode(layout, record);
	}
	return r;
}

int run_open_input(const struct engine *engine, struct input *input, struct input_extent extent,
		   struct run **ret_run)
{
	struct run *run = run_make(RUN_INPUT);
	int r;

	if (!run)
		return -ENOMEM;
	run->engine = engine;
	run->input = input;
	run->extent = extent;
	run->n_items = extent.nbytes / engine->layout->record_nbytes;
	r = set_stride(run, run_file_block_n_items(engine->plan.block_nbytes,
						   engine->layout->element_nbytes));
	if (r == 0)
		r = read_first_keys(run);
	if (r < 0) {
		run_close(run);
		return r;
	}
	*ret_run = run;
	return 0;
}

void run_close(struct run *run)
{
	if (!run)
		return;
	if (run->release)
		run->release(run->owner);
	run_file_close(run->file);
	free(run->first_keys);
	free(run);
}

int run_fail_unsorted(const char *path, uint64_t item)
{
	return fail(-EINVAL,
		    "%s: record %" PRIu64 ": disorder; -m merges files that are sorted already",
		    path, item + 1);
}

bool run_is_resident(const struct run *run)
{
	return run->kind == RUN_RESIDENT;
}

uint64_t run_n_items(const struct run *run)
{
	return run->n_items;
}

uint64_t run_n_blocks(const struct run *run)
{
	return run->n_blocks;
}

const void *run_elements(const struct run *run)
{
	return run->elements;
}

int run_sample(struct run *run, const struct engine *engine, struct lane *lane, uint64_t stride)
{
	int r = set_stride(run, stride);

	if (r < 0)
		return r;
	return engine->backend->sample(lane,
				       &(struct sample_op){
					       .elements = run->elements,
					       .n = run->n_items,
					       .stride = stride,
					       .element_nbytes = engine->layout->element_nbytes,
					       .ret_keys = run->first_keys,
				       });
}

code_t run_first_key(const struct run *run, uint64_t i)
{
	return run->kind == RUN_SPILLED ? run_file_blocks(run->file)[i].first_key :
					  run->first_keys[i];
}

uint64_t run_block_start(const struct run *run, uint64_t i)
{
	if (i == run->n_blocks)
		return run->n_items;
	return run->kind == RUN_SPILLED ? run_file_blocks(run->file)[i].first_item :
					  i * run->stride;
}

static int read_input(struct run *run, uint64_t first, uint64_t n, void *items,
		      struct digest *ret_digest)
{
	const struct layout *layout = run->engine->layout;
	const uint64_t start = run_block_start(run, first);
	const uint64_t n_items = run_block_start(run, first + n) - start;
	uint64_t disorder;
	int r;

	r = input_read_at(run->input, run->extent.position + start * layout->record_nbytes, items,
			  n_items * layout->record_nbytes);
	if (r < 0)
		return r;
	disorder = verify_records(layout, items, n_items, &run->edge, ret_digest);
	return disorder < n_items ? run_fail_unsorted(run->extent.path, start + disorder) : 0;
}

int run_read(struct run *run, uint64_t first, uint64_t n, void *items, struct digest *ret_digest)
{
	if (run->kind == RUN_INPUT)
		return read_input(run, first, n, items, ret_digest);
	return run_file_read(run->file, first, n, items);
}

bool run_holds_records(const struct run *run, const struct layout *layout)
{
	return run_holds_duplicates(run) || (run->kind == RUN_SPILLED && !layout->stores_elements);
}

bool run_holds_duplicates(const struct run *run)
{
	return run->kind == RUN_INPUT ||
	       (run->kind == RUN_SPILLED && run->items == SPILLED_RECORDS);
}

/*
 * Giving space back is a transaction of the file system, so it is done a MiB at a time, and what is
 * left at the end goes with the run itself.
 */
void run_discard_before(struct run *run, uint64_t end)
{
	uint64_t nbytes = 0;

	if (run->kind != RUN_SPILLED)
		return;
	for (uint64_t i = run->n_discarded; i < end; i++)
		nbytes += run_file_blocks(run->file)[i].stored_nbytes;
	if (nbytes < DISCARD_NBYTES)
		return;
	run_file_discard(run->file, run->n_discarded, end - run->n_discarded);
	run->n_discarded = end;
}
