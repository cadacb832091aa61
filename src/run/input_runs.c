/*
 * input_runs - the inputs of -m as runs (see input_runs.h)
 *
 * When all inputs are regular files, they are the parts of job->input, which keeps few
 * descriptors open however many files there are. With a pipe among them, each path gets an input of
 * its own.
 */
#include "src/run/input_runs.h"

#include <errno.h>
#include <stdlib.h>

#include "io/spill/run_file.h"
#include "src/base/diagnostics.h"
#include "src/check/verify.h"

struct input_runs {
	uint64_t n_records; /* in the inputs opened so far: the position of the next */
	size_t n;
	struct input *inputs[]; /* n, opened here */
};

/* A pipe on its way into a spilled run, one buffer after the other. */
struct spooler {
	const struct job *job;
	struct input *input;
	struct run_file *file;
	uint32_t block_n_items;
	size_t buffer_nbytes; /* of records; whole blocks */
	char *records;
	char *items;               /* the same as `records` if a record is an item */
	encoded_key_t *first_keys; /* of the blocks of a buffer */
	uint64_t n_records;        /* stored */
	uint64_t position;         /* of the next record in all inputs */
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
		return run_fail_unsorted(path, record);
	}
	for (uint64_t i = 0; i < n; i += spooler->block_n_items)
		spooler->first_keys[i / spooler->block_n_items] =
			layout_record_key(layout, spooler->records + i * layout->record_nbytes);
	if (layout_has_projection(layout))
		layout_project_records(layout, spooler->records, n, spooler->position,
				       spooler->items, ret_read);
	spooler->n_records += n;
	spooler->position += n;
	return run_file_write(spooler->file, spooler->n_records, spooler->items, n,
			      spooler->first_keys);
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
		if (nbytes == 0)
			return run_file_finish(spooler->file);
		r = store_buffer(spooler, nbytes / spooler->job->layout->record_nbytes, ret_read);
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

/* Store all of a pipe as a run. *position: of its first record, then behind its last. */
static int spool_pipe(const struct job *job, struct input *input, uint64_t *position,
		      struct digest *ret_read, struct run **ret_run)
{
	struct spooler spooler = { .job = job, .input = input, .position = *position };
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
	return run_open_stored(spooler.file, STORED_RECORDS, ret_run);
}

/* The files of an input of known size, whose first record is at `position` in all inputs. */
static int add_files(const struct job *job, struct input *input, uint64_t position,
		     struct run_list *runs)
{
	int r = 0;

	for (size_t i = 0; i < input_n_groups(input) && r == 0; i++) {
		const struct input_extent extent = input_group_extent(input, i);
		struct run *run;

		if (extent.nbytes == 0)
			continue;
		r = run_open_input(job, input, extent,
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
		r = spool_pipe(job, input, &inputs->n_records, ret_read, &run);
	if (r == 0)
		r = run_list_add(runs, run);
	return r < 0 ? r : run_list_check_index_space(runs, &job->plan);
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

size_t input_runs_n_stored(const struct input_runs *inputs)
{
	size_t n = 0;

	for (size_t i = 0; inputs && i < inputs->n; i++)
		n += input_total_nbytes(inputs->inputs[i]) == INPUT_SIZE_UNKNOWN;
	return n;
}

size_t input_runs_count(const struct input_runs *inputs)
{
	return inputs->n;
}

const struct input *input_runs_get(const struct input_runs *inputs, size_t i)
{
	return inputs->inputs[i];
}
