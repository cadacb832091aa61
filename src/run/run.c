/*
 * run - a sorted sequence of items, wherever it lives (see run.h)
 */
#include "src/run/run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/store/run_file.h"
#include "src/base/status.h"
#include "src/check/verify.h"

enum {
	RECORDS_NBYTES = 64 << 10, /* of an input that are turned into items at a time */
	DISCARD_NBYTES = 2 << 20,  /* of memory that are given back at a time: a huge page */
};
_Static_assert((int)RECORDS_NBYTES >= (int)LAYOUT_MOST_RECORD_NBYTES, "there is room for one");

enum run_kind { RUN_RESIDENT, RUN_SPILLED, RUN_INPUT };

struct run {
	enum run_kind kind;
	uint64_t n_items, n_blocks;
	struct run_origin origin;
	uint32_t level;

	/* Resident and input runs: blocks of `stride` items, and their first keys. */
	uint64_t stride;
	code_t *first_keys;

	/* Resident */
	void *memory;
	void (*release)(void *owner);
	void *owner;
	uint64_t n_discarded_nbytes; /* from its start on, given back */

	/* Spilled */
	struct run_file *file;
	enum spilled_items items;
	uint64_t n_discarded; /* blocks given back */

	/* Input */
	const struct engine *engine;
	struct input *input;
	struct input_extent extent;
	uint64_t position;       /* of its first record in all inputs */
	struct verify_edge edge; /* the last record read, for the order check */
	unsigned char *records;  /* RECORDS_NBYTES, if they are not items as they are */
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

int run_open_resident(void *memory, uint64_t n, void (*release)(void *owner), void *owner,
		      struct run **ret_run)
{
	struct run *run = run_make(RUN_RESIDENT);

	if (!run)
		return -ENOMEM;
	run->memory = memory;
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

code_t run_record_key(const struct layout *layout, const void *record)
{
	return layout->kind == LAYOUT_RECORDS ? layout_key_prefix(&layout->record_keys, record) :
						layout_encode(layout, record);
}

static int read_first_keys(struct run *run)
{
	const struct layout *layout = run->engine->layout;
	unsigned char *record = malloc(layout->record_nbytes);
	int r = 0;

	if (!record)
		return fail(-ENOMEM, "no memory for a record");
	for (uint64_t i = 0; i < run->n_blocks && r == 0; i++) {
		r = input_read_at(run->input,
				  run->extent.position + i * run->stride * layout->record_nbytes,
				  record, layout->record_nbytes);
		if (r == 0)
			run->first_keys[i] = run_record_key(layout, record);
	}
	free(record);
	return r;
}

/* Room for records that become items, if they are not as they are. */
static int open_records(struct run *run)
{
	const struct layout *layout = run->engine->layout;

	if (layout->kind != LAYOUT_RECORDS || layout->intake.is_identity)
		return 0;
	run->records = malloc(RECORDS_NBYTES);
	return run->records ? 0 : fail(-ENOMEM, "no memory for records of %s", run->extent.path);
}

int run_open_input(const struct engine *engine, struct input *input, struct input_extent extent,
		   uint64_t position, struct run **ret_run)
{
	struct run *run = run_make(RUN_INPUT);
	int r;

	if (!run)
		return -ENOMEM;
	run->engine = engine;
	run->input = input;
	run->extent = extent;
	run->position = position;
	run->n_items = extent.nbytes / engine->layout->record_nbytes;
	r = set_stride(run, run_file_block_n_items(engine->plan.block_nbytes,
						   (uint32_t)engine->layout->resident_nbytes));
	if (r == 0)
		r = open_records(run);
	if (r == 0)
		r = verify_edge_open(engine->layout, &run->edge);
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
	verify_edge_close(&run->edge);
	free(run->first_keys);
	free(run->records);
	free(run);
}

void run_remove(struct run *run)
{
	if (run && run->kind == RUN_SPILLED)
		run_file_discard_rest(run->file);
	run_close(run);
}

void run_set_level(struct run *run, uint32_t level)
{
	run->level = level;
}

uint32_t run_level(const struct run *run)
{
	return run->level;
}

void run_set_origin(struct run *run, struct run_origin origin)
{
	run->origin = origin;
}

struct run_origin run_origin(const struct run *run)
{
	return run->origin;
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

struct run_file *run_spilled_file(const struct run *run)
{
	return run->file;
}

uint64_t run_n_items(const struct run *run)
{
	return run->n_items;
}

uint64_t run_n_blocks(const struct run *run)
{
	return run->n_blocks;
}

const void *run_memory(const struct run *run)
{
	return run->memory;
}

int run_sample(struct run *run, const struct engine *engine, struct lane *lane, uint64_t stride)
{
	int r = set_stride(run, stride);

	if (r < 0)
		return r;
	if (engine->layout->kind == LAYOUT_RECORDS)
		return lane_sample_records(lane, &(struct sample_records_op){
							 .layout = engine->layout,
							 .items = run->memory,
							 .n = run->n_items,
							 .stride = stride,
							 .ret_keys = run->first_keys,
						 });
	return lane_sample(lane, &(struct sample_op){
					 .elements = run->memory,
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

uint64_t run_seek(const struct run *run, code_t key)
{
	uint64_t lo = 0, hi = run->n_blocks;

	while (hi - lo > 1) {
		const uint64_t i = lo + (hi - lo) / 2;

		if (run_first_key(run, i) < key)
			lo = i;
		else
			hi = i;
	}
	return lo;
}

uint64_t run_block_start(const struct run *run, uint64_t i)
{
	if (i == run->n_blocks)
		return run->n_items;
	return run->kind == RUN_SPILLED ? run_file_blocks(run->file)[i].first_item :
					  i * run->stride;
}

/* Read n records from number `start` of the file on, and check that they are in order. */
static int read_records(struct run *run, uint64_t start, uint64_t n, void *records,
			struct digest *ret_digest)
{
	const struct layout *layout = run->engine->layout;
	uint64_t disorder;
	int r;

	r = input_read_at(run->input, run->extent.position + start * layout->record_nbytes, records,
			  n * layout->record_nbytes);
	if (r < 0)
		return r;
	disorder = verify_records(layout, records, n, &run->edge, ret_digest);
	return disorder < n ? run_fail_unsorted(run->extent.path, start + disorder) : 0;
}

/* The same, as items. */
static int read_as_items(struct run *run, uint64_t start, uint64_t n, unsigned char *items,
			 struct digest *ret_digest)
{
	const struct layout *layout = run->engine->layout;
	const uint64_t batch = RECORDS_NBYTES / layout->record_nbytes;
	struct digest of_records = { 0 };
	int r = 0;

	for (uint64_t i = 0; i < n && r == 0; i += batch) {
		const uint64_t n_batch = n - i < batch ? n - i : batch;

		r = read_records(run, start + i, n_batch, run->records, &of_records);
		if (r == 0)
			layout_make_items(layout, run->records, n_batch, run->position + start + i,
					  items + i * layout->item_nbytes, ret_digest);
	}
	return r;
}

static int read_input(struct run *run, uint64_t first, uint64_t n, void *items,
		      struct digest *ret_digest)
{
	const uint64_t start = run_block_start(run, first);
	const uint64_t n_items = run_block_start(run, first + n) - start;

	return run->records ? read_as_items(run, start, n_items, items, ret_digest) :
			      read_records(run, start, n_items, items, ret_digest);
}

int run_read(struct run *run, uint64_t first, uint64_t n, void *items, struct digest *ret_digest)
{
	if (run->kind == RUN_INPUT)
		return read_input(run, first, n, items, ret_digest);
	return run_file_read(run->file, first, n, items);
}

static int read_first_of_input(struct run *run, uint64_t i, void *item)
{
	const struct layout *layout = run->engine->layout;
	const uint64_t start = run_block_start(run, i);
	void *record = run->records ? run->records : item;
	int r = input_read_at(run->input, run->extent.position + start * layout->record_nbytes,
			      record, layout->record_nbytes);

	if (r == 0 && run->records)
		layout_make_item(layout, record, run->position + start, item);
	return r;
}

/* Only whole blocks can be verified. */
static int read_first_of_spilled(struct run *run, uint64_t i, void *item)
{
	const uint64_t n = run_block_start(run, i + 1) - run_block_start(run, i);
	const size_t item_nbytes = run_file_item_nbytes(run->file);
	void *block = malloc(n * item_nbytes);
	int r = block ? run_file_read(run->file, i, 1, block) :
			fail(-ENOMEM, "no memory for a block of %" PRIu64 " records", n);

	if (r == 0)
		memcpy(item, block, item_nbytes);
	free(block);
	return r;
}

int run_read_first_item(struct run *run, uint64_t i, void *item)
{
	return run->kind == RUN_INPUT ? read_first_of_input(run, i, item) :
					read_first_of_spilled(run, i, item);
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

void run_discard_before(struct run *run, uint64_t end)
{
	if (run->kind != RUN_SPILLED || end <= run->n_discarded)
		return;
	run_file_discard(run->file, run->n_discarded, end - run->n_discarded);
	run->n_discarded = end;
}

void run_discard_slice(struct run *run, const struct engine *engine, const struct slice *slice)
{
	char *memory = run->memory;
	uint64_t passed_nbytes;

	if (run->kind != RUN_RESIDENT || slice->n == 0)
		return;
	passed_nbytes = (uint64_t)((const char *)slice->elements - memory) +
			slice->n * engine->layout->resident_nbytes;
	passed_nbytes -= passed_nbytes % DISCARD_NBYTES;
	if (passed_nbytes <= run->n_discarded_nbytes)
		return;
	device_discard(engine->device, memory + run->n_discarded_nbytes,
		       passed_nbytes - run->n_discarded_nbytes);
	run->n_discarded_nbytes = passed_nbytes;
}
