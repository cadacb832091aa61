/*
 * input_runs.c - the inputs of -m as runs
 *
 * A regular file is a run of a kind of its own, which is read where it is, in blocks of as many
 * records as those of spilled runs. Its order is checked as it is read.
 *
 * A pipe cannot be read in the order that a merge asks for, so it is first copied to a spilled run.
 *
 * When all inputs are regular files, they are parts of job->input, which keeps few descriptors open
 * however many files there are. With a pipe among them, each path gets an input of its own.
 */
#include "src/run/run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "io/spill/run_file.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/check/verify.h"

/* --- A file as a run --- */

_Static_assert((int)PLAN_INPUT_BATCH_NBYTES >= (int)LAYOUT_MAX_RECORD_NBYTES,
	       "a batch has room for a record");

struct input_run {
	struct run run;
	const struct layout *layout;
	struct input *input;
	struct input_extent extent;
	uint64_t position; /* number of the file's first record among all inputs */
	/*
	 * The run's first record in the file, and the block that holds it. 0 if it is not a subrun.
	 */
	uint64_t begin, first_block;
	encoded_key_t first_key; /* of a subrun */
	bool is_subrun;          /* it borrows samples.first_keys from its run */
	struct verify_edge edge; /* the last record read, for the order check */
	unsigned char *records;  /* PLAN_INPUT_BATCH_NBYTES; NULL if a record is an item */
	struct run_samples samples;
};

static void input_run_close(struct run *run)
{
	struct input_run *self = (struct input_run *)run;

	verify_edge_close(&self->edge);
	if (!self->is_subrun)
		free(self->samples.first_keys);
	free(self->records);
	free(self);
}

static uint64_t input_block_start(const struct run *run, uint64_t i)
{
	const struct input_run *self = (const struct input_run *)run;

	return i == 0 ? 0 : (self->first_block + i) * self->samples.stride - self->begin;
}

static encoded_key_t input_first_key(const struct run *run, uint64_t i)
{
	const struct input_run *self = (const struct input_run *)run;

	return self->is_subrun && i == 0 ? self->first_key :
					   self->samples.first_keys[self->first_block + i];
}

/* Report that record number `item`, from 0, of an input of -m is out of order. Returns -EINVAL. */
static int fail_unsorted(const char *path, uint64_t item)
{
	return fail(-EINVAL,
		    "%s: record %" PRIu64 ": disorder; -m merges files that are sorted already",
		    path, item + 1);
}

/* Read n records from record number `start` of the file on. */
static int read_input_records(const struct input_run *self, uint64_t start, uint64_t n,
			      void *records)
{
	const uint64_t record_nbytes = self->layout->record_nbytes;

	return input_read_at(self->input, self->extent.position + start * record_nbytes, records,
			     n * record_nbytes);
}

/* Limit n records to those of one file whose digest is checked, if there is such a file. */
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
		return fail_unsorted(self->extent.path, start + first_unsorted);
	digest_add(digest, read_digest);
	return input_add_read_digest(self->input,
				     self->extent.position + start * self->layout->record_nbytes,
				     read_digest);
}

/* Read n records like read_input_records(), and check that they are in order. */
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

/* Read n records like read_records(), and project them to items. */
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
	struct input_run *self = (struct input_run *)run;
	const uint64_t start = self->begin + run_block_start(run, first);
	const uint64_t n_items = self->begin + run_block_start(run, first + n) - start;

	return self->records ? read_as_items(self, start, n_items, items, ret_digest) :
			       read_records(self, start, n_items, items, ret_digest);
}

static int input_read_item(struct run *run, uint64_t i, void *item)
{
	struct input_run *self = (struct input_run *)run;
	const uint64_t start = self->begin + i; /* in the file */
	int r = read_input_records(self, start, 1, self->records ? self->records : item);

	if (r == 0 && self->records)
		layout_project_record(self->layout, self->records, self->position + start, item);
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

/* Open the order check, and the buffer for records that have to be projected to items. */
static int open_buffers(struct input_run *self)
{
	if (layout_has_projection(self->layout)) {
		self->records = malloc(PLAN_INPUT_BATCH_NBYTES);
		if (!self->records)
			return fail(-ENOMEM, "no memory for records of %s", self->extent.path);
	}
	return verify_edge_open(self->layout, &self->edge);
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
	.is_raw_input = true,
};

/*
 * Open a regular file of `input` as a run, in blocks like those of spilled runs. Reads the first
 * key of each block. position: of its first record among all records of the sort. The input must
 * outlive the run. Returns 0 or a negative errno (reported).
 */
static int open_input_run(const struct job *job, struct input *input, struct input_extent extent,
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
		r = open_buffers(self);
	if (r == 0)
		r = read_first_keys(self);
	if (r < 0) {
		run_close(&self->run);
		return r;
	}
	*ret_run = &self->run;
	return 0;
}

/*
 * Read the subrun's first key, and the record before it, which the first record is compared with.
 */
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
	const uint64_t stride = ((struct input_run *)run)->samples.stride;
	struct input_run *subrun = malloc(sizeof *subrun);
	int r;

	(void)layout;
	if (!subrun)
		return fail(-ENOMEM, "no memory for a part of a run");
	*subrun = *(struct input_run *)run;
	subrun->is_subrun = true;
	subrun->begin += begin;
	subrun->first_block = subrun->begin / stride;
	subrun->run.n_items = end - begin;
	subrun->run.n_blocks =
		(subrun->begin + subrun->run.n_items - 1) / stride + 1 - subrun->first_block;
	subrun->records = NULL;
	subrun->edge = (struct verify_edge){ 0 };
	r = open_buffers(subrun);
	if (r == 0)
		r = read_subrun_start(subrun);
	if (r < 0) {
		run_close(&subrun->run);
		return r;
	}
	*ret_subrun = &subrun->run;
	return 0;
}

/* --- A pipe as a spilled run --- */

/* A pipe on its way into a spilled run, one buffer after the other. */
struct spooler {
	const struct job *job;
	struct input *input;
	struct run_file *file;
	uint32_t block_n_items;
	size_t buffer_nbytes; /* of `records`; a multiple of the block size */
	char *records;
	char *items;               /* `records` itself if a record is an item */
	encoded_key_t *first_keys; /* one for each block in the buffer */
	uint64_t n_records;        /* spilled so far */
	uint64_t n_earlier_blocks; /* of the runs of other inputs */
	uint64_t position;         /* number of the next record among all inputs */
	struct verify_edge edge;
};

/* Check the n records in the buffer and store them. */
static int store_buffer(struct spooler *spooler, uint64_t n, struct digest *ret_read)
{
	const struct layout *layout = spooler->job->layout;
	struct digest record_digest = { 0 };
	const uint64_t first_unsorted =
		verify_records(layout, spooler->records, n, &spooler->edge,
			       layout_has_projection(layout) ? &record_digest : ret_read);
	const char *path;
	uint64_t record;

	if (first_unsorted < n) {
		input_path_at(spooler->input,
			      (spooler->n_records + first_unsorted) * layout->record_nbytes, &path,
			      &record);
		return fail_unsorted(path, record);
	}
	for (uint64_t i = 0; i < n; i += spooler->block_n_items)
		spooler->first_keys[i / spooler->block_n_items] =
			layout_record_key(layout, spooler->records + i * layout->record_nbytes);
	if (layout_has_projection(layout))
		layout_project_records(layout, spooler->records, n, spooler->position,
				       spooler->items, ret_read);
	spooler->n_records += n;
	spooler->position += n;
	return run_file_write(spooler->file, spooler->n_records, spooler->items, NULL, n,
			      spooler->first_keys);
}

/* Check that the index of all blocks still has room in memory. */
static int check_index_space(const struct spooler *spooler)
{
	const struct job *job = spooler->job;
	const uint64_t n_blocks =
		spooler->n_earlier_blocks + divide_up(spooler->n_records, spooler->block_n_items);

	return n_blocks <= job->plan.max_stored_blocks ?
		       0 :
		       plan_check_unknown_input(&job->plan_request, &job->plan,
						n_blocks * job->plan.block_nbytes);
}

static int spool_records(struct spooler *spooler, struct digest *ret_read)
{
	for (;;) {
		struct span span = stats_begin(STAGE_READ, 0);
		uint64_t position;
		size_t nbytes;
		int r = cancellation_check(spooler->job->cancellation);

		if (r == 0)
			r = input_read(spooler->input, spooler->records, spooler->buffer_nbytes,
				       &position, &nbytes);
		if (r < 0)
			return r;
		stats_end(spooler->job->stats, span, nbytes);
		if (nbytes == 0) {
			run_file_finish(spooler->file);
			return 0;
		}
		r = store_buffer(spooler, nbytes / spooler->job->layout->record_nbytes, ret_read);
		if (r == 0)
			r = check_index_space(spooler);
		if (r < 0)
			return r;
	}
}

static int spooler_open(struct spooler *spooler)
{
	const struct plan *plan = &spooler->job->plan;
	const struct layout *layout = spooler->job->layout;
	uint64_t block_nbytes, n_blocks;
	int r;

	spooler->block_n_items =
		run_file_block_n_items(plan->block_nbytes, (uint32_t)plan->resident_nbytes);
	block_nbytes = (uint64_t)spooler->block_n_items * plan->record_nbytes;
	n_blocks = plan->window_nbytes / block_nbytes + 1;
	spooler->buffer_nbytes = n_blocks * block_nbytes;
	spooler->records = spooler->items = malloc(spooler->buffer_nbytes);
	if (layout_has_projection(layout))
		spooler->items = malloc(n_blocks * spooler->block_n_items * layout->item_nbytes);
	spooler->first_keys = malloc(n_blocks * sizeof *spooler->first_keys);
	if (!spooler->records || !spooler->items || !spooler->first_keys)
		return fail(-ENOMEM,
			    "no memory to read a pipe in parts of %zu bytes; try a smaller -S",
			    spooler->buffer_nbytes);
	r = verify_edge_open(layout, &spooler->edge);
	if (r < 0)
		return r;
	return run_file_open(spooler->job->spill, spooler->job->compression,
			     (uint32_t)layout->item_nbytes, spooler->block_n_items, &spooler->file);
}

/* Store all of a pipe as a run. *position: of its first record; set to the one after its last. */
static int spool_pipe(const struct job *job, struct input *input, uint64_t n_earlier_blocks,
		      uint64_t *position, struct digest *ret_read, struct run **ret_run)
{
	struct spooler spooler = { .job = job,
				   .input = input,
				   .n_earlier_blocks = n_earlier_blocks,
				   .position = *position };
	int r = spooler_open(&spooler);

	if (r == 0)
		r = spool_records(&spooler, ret_read);
	if (spooler.items != spooler.records)
		free(spooler.items);
	free(spooler.records);
	free(spooler.first_keys);
	verify_edge_close(&spooler.edge);
	if (r < 0) {
		run_file_close(spooler.file);
		return r;
	}
	*position = spooler.position;
	return run_open_spilled(spooler.file, SPILLED_RECORDS, ret_run);
}

/* Add the files of an input of known size, whose first record is at `position` among all inputs. */
static int add_files(const struct job *job, struct input *input, uint64_t position,
		     struct run_list *runs)
{
	int r = 0;

	for (size_t i = 0; i < input_n_groups(input) && r == 0; i++) {
		const struct input_extent extent = input_group_extent(input, i);
		struct run *run = NULL;

		if (extent.nbytes == 0)
			continue;
		r = open_input_run(job, input, extent,
				   position + extent.position / job->layout->record_nbytes, &run);
		if (r == 0)
			r = run_list_add(runs, run);
	}
	return r;
}

static int add_input(const struct job *job, struct input_runs *inputs, const struct sort_spec *spec,
		     struct run_list *runs, struct digest *ret_read)
{
	const size_t i = inputs->n;
	struct input *input;
	struct run *run;
	int r = input_transfer_pipe(job->input, i, &input);

	if (r == 0 && !input)
		r = input_open_endpoints(job->io, spec->inputs + i,
					 spec->input_endpoints ? spec->input_endpoints + i : NULL,
					 1, input_framing(job->input), &input);
	if (r < 0)
		return r;
	inputs->inputs[inputs->n++] = input;
	input_set_max_window(input, input_max_window_nbytes(job->input));
	input_set_frame_cache(input, 0);
	if (input_total_nbytes(input) != INPUT_SIZE_UNKNOWN) {
		const uint64_t position = inputs->n_records;

		inputs->n_records += input_total_nbytes(input) / job->layout->record_nbytes;
		return add_files(job, input, position, runs);
	}
	r = input_share_cancel(input, job->input);
	if (r == 0)
		r = spool_pipe(job, input, run_list_n_stored_blocks(runs), &inputs->n_records,
			       ret_read, &run);
	if (r == 0)
		r = run_list_add(runs, run);
	return r;
}

int input_runs_open(const struct job *job, const struct sort_spec *spec, struct run_list *runs,
		    struct digest *ret_read, struct input_runs **ret_inputs)
{
	const size_t n = spec->n_inputs;
	int r = 0;

	*ret_inputs = NULL;
	if (input_total_nbytes(job->input) != INPUT_SIZE_UNKNOWN)
		return add_files(job, job->input, 0, runs);
	*ret_inputs = calloc(1, sizeof **ret_inputs + n * sizeof(*ret_inputs)->inputs[0]);
	if (!*ret_inputs)
		return fail(-ENOMEM, "no memory for %zu inputs", n);
	for (size_t i = 0; i < n && r == 0; i++)
		r = add_input(job, *ret_inputs, spec, runs, ret_read);
	return r;
}

void input_runs_close(struct input_runs *inputs)
{
	if (!inputs)
		return;
	for (size_t i = 0; i < inputs->n; i++)
		input_close(inputs->inputs[i]);
	free(inputs);
}

size_t input_runs_n_spilled(const struct input_runs *inputs)
{
	size_t n = 0;

	for (size_t i = 0; inputs && i < inputs->n; i++)
		n += input_total_nbytes(inputs->inputs[i]) == INPUT_SIZE_UNKNOWN;
	return n;
}
