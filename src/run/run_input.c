/*
 * run_input - with -m, a file that is said to be sorted, as a run (see run.h)
 *
 * It is read where it is, in blocks of as many records as those of spilled runs have. That it is
 * sorted is checked as it is read.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "io/spill/run_file.h"
#include "src/base/diagnostics.h"
#include "src/check/verify.h"
#include "src/run/run_ops.h"

_Static_assert((int)PLAN_INPUT_BATCH_NBYTES >= (int)LAYOUT_MAX_RECORD_NBYTES,
	       "there is room for one");

struct input_run {
	struct run run;
	const struct layout *layout;
	struct input *input;
	struct input_extent extent;
	uint64_t position; /* of the file's first record in all inputs */
	/* The run's first record in the file, and the block that holds it: 0 if it is no part. */
	uint64_t begin, first_block;
	encoded_key_t first_key; /* of a part */
	bool is_subrun;          /* the keys of other blocks are another run's */
	struct verify_edge edge; /* the last record read, for the order check */
	unsigned char *records;  /* PLAN_INPUT_BATCH_NBYTES, if they are not items as they are */
	struct run_samples samples;
};

static struct input_run *input_run(struct run *run)
{
	return (struct input_run *)run;
}

static void input_run_close(struct run *run)
{
	struct input_run *self = input_run(run);

	verify_edge_close(&self->edge);
	if (!self->is_subrun)
		free(self->samples.first_keys);
	free(self->records);
	free(self);
}

static const struct input_run *input_run_const(const struct run *run)
{
	return (const struct input_run *)run;
}

static uint64_t input_block_start(const struct run *run, uint64_t i)
{
	const struct input_run *self = input_run_const(run);

	return i == 0 ? 0 : (self->first_block + i) * self->samples.stride - self->begin;
}

static encoded_key_t input_first_key(const struct run *run, uint64_t i)
{
	const struct input_run *self = input_run_const(run);

	return self->is_subrun && i == 0 ? self->first_key :
					   self->samples.first_keys[self->first_block + i];
}

int run_fail_unsorted(const char *path, uint64_t item)
{
	return fail(-EINVAL,
		    "%s: record %" PRIu64 ": disorder; -m merges files that are sorted already",
		    path, item + 1);
}

/* Read n records from number `start` of the file on. */
static int read_input_records(const struct input_run *self, uint64_t start, uint64_t n,
			      void *records)
{
	const uint64_t record_nbytes = self->layout->record_nbytes;

	return input_read_at(self->input, self->extent.position + start * record_nbytes, records,
			     n * record_nbytes);
}

/* Of n records those that are in one file, if that is of interest to anybody. */
static uint64_t limit_to_file(const struct input_run *self, uint64_t start, uint64_t n)
{
	const uint64_t record_nbytes = self->layout->record_nbytes;
	const uint64_t n_in_file =
		input_verify_nbytes(self->input, self->extent.position + start * record_nbytes);

	return n_in_file / record_nbytes < n ? n_in_file / record_nbytes : n;
}

static int check_records(struct input_run *self, uint64_t start, uint64_t n, const void *records,
			 struct digest *digest)
{
	struct digest read_digest = { 0 };
	const uint64_t first_unsorted =
		verify_records(self->layout, records, n, &self->edge, &read_digest);

	if (first_unsorted < n)
		return run_fail_unsorted(self->extent.path, start + first_unsorted);
	digest_add(digest, read_digest);
	return input_add_read_digest(self->input,
				     self->extent.position + start * self->layout->record_nbytes,
				     read_digest);
}

/* The same, and check that they are in order. */
static int read_records(struct input_run *self, uint64_t start, uint64_t n, void *records,
			struct digest *ret_digest)
{
	int r = read_input_records(self, start, n, records);

	for (uint64_t i = 0, n_in_file; i < n && r == 0; i += n_in_file) {
		n_in_file = limit_to_file(self, start + i, n - i);
		r = check_records(self, start + i, n_in_file,
				  (char *)records + i * self->layout->record_nbytes, ret_digest);
	}
	return r;
}

/* The same, as items. */
static int read_as_items(struct input_run *self, uint64_t start, uint64_t n, unsigned char *items,
			 struct digest *ret_digest)
{
	const struct layout *layout = self->layout;
	const uint64_t batch = PLAN_INPUT_BATCH_NBYTES / layout->record_nbytes;
	struct digest record_digest = { 0 };
	int r = 0;

	for (uint64_t i = 0; i < n && r == 0; i += batch) {
		const uint64_t n_batch = n - i < batch ? n - i : batch;

		r = read_records(self, start + i, n_batch, self->records, &record_digest);
		if (r == 0)
			layout_project_records(layout, self->records, n_batch,
					       self->position + start + i,
					       items + i * layout->item_nbytes, ret_digest);
	}
	return r;
}

static int input_run_read(struct run *run, uint64_t first, uint64_t n, void *items,
			  struct digest *ret_digest)
{
	struct input_run *self = input_run(run);
	const uint64_t start = self->begin + run_block_start(run, first);
	const uint64_t n_items = self->begin + run_block_start(run, first + n) - start;

	return self->records ? read_as_items(self, start, n_items, items, ret_digest) :
			       read_records(self, start, n_items, items, ret_digest);
}

/* The item of record number `start` of the file. */
static int read_item(struct input_run *self, uint64_t start, void *item)
{
	int r = read_input_records(self, start, 1, self->records ? self->records : item);

	if (r == 0 && self->records)
		layout_project_record(self->layout, self->records, self->position + start, item);
	return r;
}

static int input_read_item(struct run *run, uint64_t i, void *item)
{
	struct input_run *self = input_run(run);

	return read_item(self, self->begin + i, item);
}

/* As many are read as a binary search looks at. */
static int input_count_before(struct input_run *self, uint64_t i, const struct run_bound *bound,
			      void *item, void *key, uint64_t *ret_n_before)
{
	uint64_t lo = run_block_start(&self->run, i), hi = run_block_start(&self->run, i + 1);

	while (lo < hi) {
		const uint64_t middle = lo + (hi - lo) / 2;
		int r = read_item(self, self->begin + middle, item), order;

		if (r < 0)
			return r;
		layout_item_key(bound->layout, item, key);
		order = layout_compare_keys(bound->layout, key, bound->key);
		if (order < 0 || (order == 0 && bound->after_equals))
			lo = middle + 1;
		else
			hi = middle;
	}
	*ret_n_before = lo;
	return 0;
}

static int input_count_in_block(struct run *run, uint64_t i, const struct run_bound *bound,
				uint64_t *ret_n_before)
{
	void *item = malloc(bound->layout->item_nbytes),
	     *key = malloc(layout_key_nbytes(bound->layout));
	int r = item && key ?
			input_count_before(input_run(run), i, bound, item, key, ret_n_before) :
			fail(-ENOMEM, "no memory for a record");

	free(item);
	free(key);
	return r;
}

static int read_first_keys(struct input_run *self)
{
	const struct layout *layout = self->layout;
	unsigned char *record = malloc(layout->record_nbytes);
	int r = 0;

	if (!record)
		return fail(-ENOMEM, "no memory for a record");
	for (uint64_t i = 0; i < self->run.n_blocks && r == 0; i++) {
		r = read_input_records(self, i * self->samples.stride, 1, record);
		if (r == 0)
			self->samples.first_keys[i] = layout_record_key(layout, record);
	}
	free(record);
	return r;
}

/* Room for records that become items, if they are not as they are. */
static int alloc_input_records(struct input_run *self)
{
	const struct layout *layout = self->layout;

	if (!layout_has_projection(layout))
		return 0;
	self->records = malloc(PLAN_INPUT_BATCH_NBYTES);
	return self->records ? 0 : fail(-ENOMEM, "no memory for records of %s", self->extent.path);
}

static int input_open_subrun(const struct layout *layout, struct run *run, uint64_t begin,
			     uint64_t end, struct run **ret_subrun);

static const struct run_ops input_run_ops = {
	.close = input_run_close,
	.open_subrun = input_open_subrun,
	.block_start = input_block_start,
	.first_key = input_first_key,
	.read = input_run_read,
	.read_item = input_read_item,
	.count_in_block = input_count_in_block,
	.is_raw_input = true,
};

int run_open_input(const struct job *job, struct input *input, struct input_extent extent,
		   uint64_t position, struct run **ret_run)
{
	const struct layout *layout = job->layout;
	struct input_run *self = calloc(1, sizeof *self);
	int r;

	if (!self)
		return fail(-ENOMEM, "no memory for a run");
	*self = (struct input_run){ .run = { .ops = &input_run_ops,
					     .n_items = extent.nbytes / layout->record_nbytes },
				    .layout = layout,
				    .input = input,
				    .extent = extent,
				    .position = position };
	r = run_set_stride(&self->run,
			   run_file_block_n_items(job->plan.block_nbytes,
						  (uint32_t)layout->resident_nbytes),
			   &self->samples);
	if (r == 0)
		r = alloc_input_records(self);
	if (r == 0)
		r = verify_edge_open(layout, &self->edge);
	if (r == 0)
		r = read_first_keys(self);
	if (r < 0) {
		run_close(&self->run);
		return r;
	}
	*ret_run = &self->run;
	return 0;
}

/* Its first key, and in front of it the record that its first is compared with. */
static int read_subrun_start(struct input_run *subrun)
{
	const struct layout *layout = subrun->layout;
	const uint64_t n_before = subrun->begin > 0;
	unsigned char *records = malloc((n_before + 1) * layout->record_nbytes);
	struct digest digest = { 0 };
	int r = records ? read_input_records(subrun, subrun->begin - n_before, n_before + 1,
					     records) :
			  fail(-ENOMEM, "no memory for a record");

	if (r == 0) {
		verify_records(layout, records, n_before, &subrun->edge, &digest);
		subrun->first_key =
			layout_record_key(layout, records + n_before * layout->record_nbytes);
	}
	free(records);
	return r;
}

static int input_open_subrun(const struct layout *layout, struct run *run, uint64_t begin,
			     uint64_t end, struct run **ret_subrun)
{
	const uint64_t stride = input_run(run)->samples.stride;
	struct input_run *subrun = malloc(sizeof *subrun);
	int r;

	if (!subrun)
		return fail(-ENOMEM, "no memory for a part of a run");
	*subrun = *input_run(run);
	subrun->is_subrun = true;
	subrun->begin += begin;
	subrun->first_block = subrun->begin / stride;
	subrun->run.n_items = end - begin;
	subrun->run.n_blocks =
		(subrun->begin + subrun->run.n_items - 1) / stride + 1 - subrun->first_block;
	subrun->records = NULL;
	subrun->edge = (struct verify_edge){ 0 };
	r = alloc_input_records(subrun);
	if (r == 0)
		r = verify_edge_open(layout, &subrun->edge);
	if (r == 0)
		r = read_subrun_start(subrun);
	if (r < 0) {
		run_close(&subrun->run);
		return r;
	}
	*ret_subrun = &subrun->run;
	return 0;
}
