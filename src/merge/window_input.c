/*
 * window_input.c - take the slices of one window after the other from runs
 *
 * For each window: take the blocks that the forecast names (forecast.c), make the items of all runs
 * available, and cut every run at the splitter. What is available of a run is
 *
 *	in this device's memory, or     a slice of the run itself: nothing is copied
 *	in memory that it can read
 *	in another device's memory      copied to the host, then to the window's buffer
 *	stored, or an input             read by a thread pool into the window's buffer; blocks that
 *					are packed for a device are unpacked there
 *
 * and in the window's buffer lies, for each run that is copied, first what the last window left of
 * it and then the new blocks:
 *
 *	buffer of window w	[ run 0: leftover, blocks ][ run 2: leftover, blocks ] ...
 *	                                            ^ cut                    ^ cut
 *	                                             \ leftover, copied to window w + 1
 *
 * The cut is exact. The splitter is the first item of a block that was not taken, say with key K
 * and of run S. Of the available items,
 *
 *	of runs before S, those up to K come before the splitter, K included (upper bound)
 *	of run S, exactly the taken blocks do
 *	of runs after S, those below K do (lower bound)
 *
 * In each case less than a block is left over: a run after S has no taken block that starts at K.
 *
 * With -u, equal items of different runs must meet in one window, so all runs are cut at their
 * lower bound, run S too. Less than a block is left over only if a run holds no key twice. Runs
 * that gsort made do not; input runs (-m) may, so they are made unique here, as they are read.
 * (Duplicates always meet: if a run's next block starts with the key of its last item, the splitter
 * is not above that key, so the item is still in the leftover.)
 *
 * All that is queued on the device for a window is waited for once.
 */
#include "src/merge/window.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/base/thread_pool.h"
#include "src/run/run.h"

/* The state of one run in the merge. */
struct run_input {
	struct run *run;
	const char *memory;      /* the run's items, if they are merged from there; else NULL */
	const char *peer_memory; /* in a device whose memory is not readable here; else NULL */
	uint64_t next_block;     /* the first block not taken */
	uint64_t position;       /* with `memory`: items merged so far */
	const char *leftover;    /* n_leftover items that the last window did not use */
	uint64_t n_leftover;

	/* What comes in for this window */
	uint64_t n_blocks, n_read; /* blocks, and items in them */
	char *destination;         /* in device memory, with room for resident items */
	const char *items;         /* read to here: the end of `destination`, or staging */
	size_t items_nbytes;       /* of what is read */

	struct sort_op_result unique_result; /* of queue_unique() */
	struct record_totals totals;         /* of an input run: read, and dropped by -u */
};

/* Where a packed block comes from, for messages. */
struct unpack_origin {
	const struct run *run;
	uint64_t block;
};

struct window_input {
	const struct job *job;
	struct run *const *runs;
	struct forecast *forecast; /* NULL: the runs have buckets, and each window takes one */
	uint32_t next_bucket;
	uint64_t quota_records, capacity_records;
	uint64_t number; /* number of the window */

	struct merge_queues queues;
	struct device_queue *queue; /* of the device that merges: one of `queues` */
	struct device_event *event;
	struct thread_pool *thread_pool; /* reads blocks; NULL: nothing is read */
	char *staging;                   /* host memory that is read into; NULL: not needed */
	size_t staging_nbytes, staging_used;

	/* The blocks to unpack for this window, with room for n_allocated */
	struct packed_block *packed_blocks; /* n_packed */
	struct unpack_origin *origins;      /* n_packed */
	uint32_t n_packed, n_allocated;
	uint32_t damaged_block; /* set by the device; see unpack_op */

	uint64_t *n_blocks;      /* n_runs: blocks taken for the window */
	uint64_t *cuts;          /* n_runs */
	struct slice *available; /* n_runs */
	uint32_t n_runs;
	struct run_input inputs[];
};

/* Return whether threads of the host read the run. */
static bool is_read(const struct run_input *input)
{
	return !input->memory && !input->peer_memory;
}

/* Return whether the run is read as packed blocks, which the device unpacks. */
static bool is_read_packed(const struct window_input *windows, const struct run_input *input)
{
	return windows->job->plan.packs_on_device && run_is_packed(input->run);
}

/* --- Open and close --- */

/* struct item_loader.load */
static int load_first_item(void *context, struct run *run, uint64_t block, void *item)
{
	struct window_input *windows = context;
	const size_t item_nbytes = windows->job->layout->item_nbytes;
	const char *memory = run->memory;
	int r;

	if (!memory)
		return run_read_item(run, run_block_start(run, block), item);
	r = device_queue_copy(merge_queues_get(&windows->queues, run), item,
			      memory + run_block_start(run, block) * item_nbytes, item_nbytes);
	return r < 0 ? r : merge_queues_wait(&windows->queues);
}

static int open_forecast(struct window_input *windows)
{
	const struct item_loader loader = {
		.layout = windows->job->layout,
		.load = load_first_item,
		.context = windows,
	};

	return forecast_open(windows->runs, windows->n_runs, &loader, &windows->forecast);
}

/* Have the devices fetch the first keys of resident runs. */
static int sample_resident_runs(struct window_input *windows, uint64_t stride)
{
	int r = 0;

	for (uint32_t i = 0; i < windows->n_runs && r == 0; i++)
		r = merge_queues_sample(&windows->queues, windows->runs[i], stride);
	return r < 0 ? r : merge_queues_wait(&windows->queues);
}

static int open_read_threads(struct window_input *windows)
{
	uint32_t n_read = 0, n_fetchers = windows->job->plan.n_fetchers;
	int r;

	for (uint32_t i = 0; i < windows->n_runs; i++)
		n_read += is_read(&windows->inputs[i]);
	if (n_read == 0)
		return 0;
	r = thread_pool_open(n_fetchers < n_read ? n_fetchers : n_read, &windows->thread_pool);
	return r < 0 ? fail(r, "no memory for %u readers", n_fetchers) : 0;
}

/* Return the size of an item on its way to the device in host memory; 0: none goes that way. */
static size_t staging_item_nbytes(const struct window_input *windows)
{
	const struct layout *layout = windows->job->layout;
	size_t max_nbytes = 0;

	for (uint32_t i = 0; windows->job->plan.copies_to_device && i < windows->n_runs; i++) {
		const struct run_input *input = &windows->inputs[i];
		size_t nbytes = 0;

		if (is_read(input))
			nbytes = layout->item_nbytes;
		else if (input->peer_memory)
			nbytes = layout->resident_nbytes;
		max_nbytes = nbytes > max_nbytes ? nbytes : max_nbytes;
	}
	return max_nbytes;
}

static int open_staging(struct window_input *windows)
{
	const struct job *job = windows->job;
	void *staging;
	int r;

	windows->staging_nbytes = windows->capacity_records * staging_item_nbytes(windows);
	if (windows->staging_nbytes == 0)
		return 0;
	r = device_alloc(job_device(job), MEMORY_HOST, windows->staging_nbytes, &staging);
	if (r < 0)
		return fail(r, "no pinned memory to read runs into: %m; try a smaller -S");
	windows->staging = staging;
	return 0;
}

/* A run is merged from where it is if this device can read that memory. */
static struct run_input make_run_input(const struct job *job, struct run *run)
{
	const char *memory = run->memory;
	const bool is_accessible = run_is_peer_accessible(job, run);

	return (struct run_input){
		.run = run,
		.memory = is_accessible ? memory : NULL,
		.peer_memory = is_accessible ? NULL : memory,
	};
}

static int open_parts(struct window_input *windows, uint64_t resident_stride)
{
	const struct job *job = windows->job;
	const size_t n = windows->n_runs;
	int r;

	windows->n_blocks = calloc(n, sizeof *windows->n_blocks);
	windows->cuts = calloc(n, sizeof *windows->cuts);
	windows->available = calloc(n, sizeof *windows->available);
	if (!windows->n_blocks || !windows->cuts || !windows->available)
		return fail(-ENOMEM, "no memory for a merge of %zu runs", n);
	r = merge_queues_open(job, windows->runs, windows->n_runs, &windows->queues);
	if (r < 0)
		return r;
	if (windows->n_runs > 0 && windows->runs[0]->bucket_starts)
		return 0;
	windows->queue = windows->queues.by_device[job->merge_device].queue;
	windows->event = windows->queues.by_device[job->merge_device].event;
	r = open_read_threads(windows);
	if (r == 0)
		r = open_staging(windows);
	if (r == 0)
		r = sample_resident_runs(windows, resident_stride);
	return r < 0 ? r : open_forecast(windows);
}

int window_input_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
		      const struct window_plan *plan, struct window_input **ret_windows)
{
	struct window_input *windows =
		calloc(1, sizeof *windows + n_runs * sizeof windows->inputs[0]);
	int r;

	if (!windows)
		return fail(-ENOMEM, "no memory for a merge of %u runs", n_runs);
	windows->job = job;
	windows->runs = runs;
	windows->n_runs = n_runs;
	windows->quota_records = plan->quota_records;
	windows->capacity_records = plan->capacity_records;
	for (uint32_t i = 0; i < n_runs; i++)
		windows->inputs[i] = make_run_input(job, runs[i]);
	r = open_parts(windows, plan->resident_stride);
	if (r < 0) {
		window_input_close(windows);
		return r;
	}
	*ret_windows = windows;
	return 0;
}

void window_input_close(struct window_input *windows)
{
	if (!windows)
		return;
	merge_queues_close(&windows->queues);
	thread_pool_close(windows->thread_pool);
	device_free(job_device(windows->job), MEMORY_HOST, windows->staging,
		    windows->staging_nbytes);
	forecast_close(windows->forecast);
	free(windows->packed_blocks);
	free(windows->origins);
	free(windows->available);
	free(windows->n_blocks);
	free(windows->cuts);
	free(windows);
}

/* --- Where the available items of each run will be --- */

/*
 * Return where in the window's buffer the new items of a run lie before they are encoded. Items
 * narrower than elements lie at the end of the elements' room and expand in place. Elements from
 * another device have their width already.
 */
static char *new_items(const struct window_input *windows, const struct run_input *input)
{
	const struct layout *layout = windows->job->layout;

	if (input->peer_memory)
		return input->destination;
	return input->destination + input->n_read * (layout->resident_nbytes - layout->item_nbytes);
}

static size_t incoming_nbytes(const struct window_input *windows, const struct run_input *input)
{
	const struct layout *layout = windows->job->layout;

	if (input->peer_memory)
		return input->n_read * layout->resident_nbytes;
	return is_read_packed(windows, input) ?
		       run_packed_nbytes(input->run, input->next_block, input->n_blocks) :
		       input->n_read * layout->item_nbytes;
}

/* Lay out the leftover and n_blocks new blocks of a run at `elements` in the window's buffer. */
static void place_incoming(struct window_input *windows, struct run_input *input, uint64_t n_blocks,
			   char *elements, struct slice *ret_slice)
{
	const struct layout *layout = windows->job->layout;
	const uint64_t first = run_block_start(input->run, input->next_block);

	input->n_blocks = n_blocks;
	input->n_read = run_block_start(input->run, input->next_block + n_blocks) - first;
	input->destination = elements + input->n_leftover * layout->resident_nbytes;
	input->items_nbytes = incoming_nbytes(windows, input);
	if (windows->staging) {
		input->items = windows->staging + windows->staging_used;
		windows->staging_used += input->items_nbytes;
	} else {
		input->items = new_items(windows, input);
	}
	*ret_slice = (struct slice){ .elements = elements, .n = input->n_leftover + input->n_read };
}

/* Set the available slice of each run, for the blocks taken. */
static int place_slices(struct window_input *windows, const struct window *window)
{
	const uint64_t resident_nbytes = windows->job->layout->resident_nbytes;
	uint64_t n_used = 0;

	windows->staging_used = 0;
	for (uint32_t i = 0; i < windows->n_runs; i++) {
		struct run_input *input = &windows->inputs[i];
		struct slice *slice = &windows->available[i];

		if (input->memory) {
			slice->elements = input->memory + input->position * resident_nbytes;
			slice->n = run_block_start(input->run,
						   input->next_block + windows->n_blocks[i]) -
				   input->position;
			continue;
		}
		place_incoming(windows, input, windows->n_blocks[i],
			       (char *)window->buffers.in + n_used * resident_nbytes, slice);
		n_used += slice->n;
		if (n_used > windows->capacity_records)
			return fail(-EOVERFLOW,
				    "internal error: a window of %" PRIu64 " records "
				    "has room for %" PRIu64,
				    n_used, windows->capacity_records);
	}
	return 0;
}

/* --- Into host memory --- */

/* Task i of the thread pool: read the new blocks of run i, if it is read. */
static int read_blocks(void *context, uint32_t i)
{
	struct window_input *windows = context;
	struct run_input *input = &windows->inputs[i];
	struct span span;
	int r;

	if (input->n_blocks == 0 || !is_read(input))
		return 0;
	span = stats_begin(STAGE_FETCH, windows->number);
	if (is_read_packed(windows, input))
		r = run_read_packed(input->run, input->next_block, input->n_blocks,
				    (char *)input->items);
	else
		r = run_read(input->run, input->next_block, input->n_blocks, (char *)input->items,
			     &input->totals.read);
	stats_end(windows->job->stats, span, input->n_read * windows->job->layout->item_nbytes);
	return r;
}

/* Queue the copy of new items from another device's memory to the host. */
static int queue_download(struct window_input *windows, const struct run_input *input)
{
	const uint64_t start = run_block_start(input->run, input->next_block);

	return device_queue_copy(merge_queues_get(&windows->queues, input->run),
				 (char *)input->items,
				 input->peer_memory + start * windows->job->layout->resident_nbytes,
				 input->items_nbytes);
}

/* Read, or download, what is not in memory of this device. */
static int fetch_to_host(struct window_input *windows)
{
	uint32_t n_staged = 0;
	int r = 0, wait_result;

	for (uint32_t i = 0; i < windows->n_runs && r == 0; i++) {
		const struct run_input *input = &windows->inputs[i];

		if (!input->peer_memory || !input->n_blocks)
			continue;
		n_staged++;
		r = queue_download(windows, input);
	}
	if (r == 0 && windows->thread_pool)
		r = thread_pool_run(windows->thread_pool, read_blocks, windows, windows->n_runs);
	if (n_staged == 0)
		return r;
	wait_result = merge_queues_wait(&windows->queues);
	return r < 0 ? r : wait_result;
}

/* --- Into the window's buffer --- */

/* Make room for n more packed blocks. */
static int reserve_packed_blocks(struct window_input *windows, uint64_t n)
{
	const size_t n_needed = windows->n_packed + n;
	struct packed_block *blocks;
	struct unpack_origin *origins;

	if (n_needed <= windows->n_allocated)
		return 0;
	blocks = realloc(windows->packed_blocks, 2 * n_needed * sizeof *blocks);
	if (blocks)
		windows->packed_blocks = blocks;
	origins = realloc(windows->origins, 2 * n_needed * sizeof *origins);
	if (origins)
		windows->origins = origins;
	if (!blocks || !origins)
		return fail(-ENOMEM, "no memory for a list of %zu blocks", 2 * n_needed);
	windows->n_allocated = (uint32_t)(2 * n_needed);
	return 0;
}

/*
 * Add the new blocks of a run to those that the device unpacks. They lie at `packed` in device
 * memory as run_read_packed() has read them; their elements go to `elements`, next to each other.
 */
static int add_packed_blocks(struct window_input *windows, const struct run_input *input,
			     const char *packed, char *elements)
{
	const uint64_t end = input->next_block + input->n_blocks;
	int r = reserve_packed_blocks(windows, input->n_blocks);

	if (r < 0)
		return r;
	for (uint64_t i = input->next_block; i < end; i++) {
		const struct packed_block block = {
			.packed = packed,
			.elements = elements,
			.packed_nbytes = (uint32_t)run_packed_nbytes(input->run, i, 1),
			.n = (uint32_t)(run_block_start(input->run, i + 1) -
					run_block_start(input->run, i)),
		};

		windows->origins[windows->n_packed] = (struct unpack_origin){ input->run, i };
		windows->packed_blocks[windows->n_packed++] = block;
		packed += block.packed_nbytes;
		elements += (size_t)block.n * windows->job->layout->element_nbytes;
	}
	return 0;
}

static int queue_unpack(struct window_input *windows)
{
	if (windows->n_packed == 0)
		return 0;
	return device_queue_unpack(windows->queue,
				   &(struct unpack_op){
					   .blocks = windows->packed_blocks,
					   .n_blocks = windows->n_packed,
					   .element_nbytes = windows->job->layout->element_nbytes,
					   .ret_damaged = &windows->damaged_block,
				   });
}

/* After the device has unpacked: -EBADMSG after reporting the first damaged block, if any. */
static int check_unpacked(const struct window_input *windows)
{
	const struct unpack_origin *origin;

	if (windows->damaged_block == UINT32_MAX)
		return 0;
	origin = &windows->origins[windows->damaged_block];
	return run_fail_packed(origin->run, origin->block);
}

/* Queue the copy of what was read to the device. Packed blocks go to window->out first. */
static int queue_upload(struct window_input *windows, struct run_input *input,
			const struct window *window)
{
	char *items = new_items(windows, input), *packed;
	int r;

	if (items == input->items)
		return 0;
	if (!is_read_packed(windows, input))
		return device_queue_copy(windows->queue, items, input->items, input->items_nbytes);
	packed = (char *)window->out + (input->items - windows->staging);
	r = device_queue_copy(windows->queue, packed, input->items, input->items_nbytes);
	return r < 0 ? r : add_packed_blocks(windows, input, packed, items);
}

/*
 * Copy the leftover of a run into the window's buffer. In host memory it is copied at once, which
 * takes less time than queueing so short a copy. No queued operation writes to the leftover.
 */
static int copy_leftover(struct window_input *windows, const struct run_input *input,
			 const struct slice *slice)
{
	const size_t nbytes = input->n_leftover * windows->job->layout->resident_nbytes;
	void *to = (void *)slice->elements;

	if (nbytes == 0)
		return 0;
	if (windows->job->plan.copies_to_device)
		return device_queue_copy(windows->queue, to, input->leftover, nbytes);
	memcpy(to, input->leftover, nbytes);
	return 0;
}

/* Transfer a run's leftover and its new items into the window's buffer. */
static int queue_transfer(struct window_input *windows, struct run_input *input,
			  const struct slice *slice, const struct window *window)
{
	int r;

	if (input->n_blocks && !windows->job->checkpoint_hooks)
		run_discard_before(input->run, input->next_block + input->n_blocks);
	r = copy_leftover(windows, input, slice);
	return r == 0 && input->n_blocks ? queue_upload(windows, input, window) : r;
}

/* Queue the encoding of new records to elements, if the run has records. */
static int queue_encode(struct window_input *windows, struct run_input *input)
{
	const struct layout *layout = windows->job->layout;

	if (!layout_has_elements(layout) || !run_has_records(input->run, layout) ||
	    key_encoding_is_identity(&layout->encoding))
		return 0;
	return device_queue_encode(windows->queue, &(struct encode_op){
							   .layout = layout,
							   .records = new_items(windows, input),
							   .elements = input->destination,
							   .n = input->n_read,
						   });
}

/* With -u: queue the removal of duplicates from the available items of an input run. */
static int queue_unique(struct window_input *windows, struct run_input *input,
			const struct slice *slice, const struct window *window)
{
	input->unique_result = (struct sort_op_result){ 0 };
	if (slice->n == 0)
		return 0;
	return device_queue_unique(windows->queue, &(struct unique_op){
							   .layout = windows->job->layout,
							   .items = (void *)slice->elements,
							   .n = slice->n,
							   .buffer = window->out,
							   .scratch = window->buffers.scratch,
							   .ret = &input->unique_result,
						   });
}

/* Queue all that fills the window's buffer. */
static int fill_buffer(struct window_input *windows, const struct window *window)
{
	int r = 0;

	windows->n_packed = 0;
	windows->damaged_block = UINT32_MAX;
	for (uint32_t i = 0; i < windows->n_runs && r == 0; i++)
		if (!windows->inputs[i].memory)
			r = queue_transfer(windows, &windows->inputs[i], &windows->available[i],
					   window);
	if (r == 0)
		r = queue_unpack(windows);
	for (uint32_t i = 0; i < windows->n_runs && r == 0; i++) {
		struct run_input *input = &windows->inputs[i];

		if (input->memory)
			continue;
		if (input->n_blocks)
			r = queue_encode(windows, input);
		if (r == 0 && windows->job->unique && run_may_have_duplicates(input->run))
			r = queue_unique(windows, input, &windows->available[i], window);
	}
	return r;
}

/* Take over the results of queue_unique(). */
static void apply_unique(struct window_input *windows)
{
	for (uint32_t i = 0; i < windows->n_runs; i++) {
		struct run_input *input = &windows->inputs[i];

		if (!run_may_have_duplicates(input->run))
			continue;
		windows->available[i].n = input->unique_result.n;
		digest_add(&input->totals.dropped, input->unique_result.dropped);
	}
}

/* Make the taken blocks available, after the leftover of each run. */
static int make_available(struct window_input *windows, const struct window *window)
{
	int r = place_slices(windows, window);

	if (r == 0)
		r = fetch_to_host(windows);
	if (r == 0)
		r = fill_buffer(windows, window);
	if (r == 0)
		r = device_queue_synchronize(windows->queue, windows->event);
	if (r == 0)
		r = check_unpacked(windows);
	for (uint32_t i = 0; i < windows->n_runs; i++)
		windows->inputs[i].next_block += windows->n_blocks[i];
	if (r == 0 && windows->job->unique)
		apply_unique(windows);
	return r;
}

/* --- The slices of the window --- */

/* Cut what is available at the splitter (see above). */
static int cut_at_splitter(struct window_input *windows, const struct splitter *splitter)
{
	const bool unique = windows->job->unique;
	struct span span = stats_begin(STAGE_CUT, windows->number);
	int r = device_queue_cut(windows->queue, &(struct cut_op){
							 .layout = windows->job->layout,
							 .slices = windows->available,
							 .k = windows->n_runs,
							 .key = splitter->key,
							 .slice = unique ? 0 : splitter->run,
							 .ret_cuts = windows->cuts,
						 });

	if (r == 0)
		r = device_queue_synchronize(windows->queue, windows->event);
	/* After a failure the queue may still be writing cuts. */
	if (r == 0 && !unique)
		windows->cuts[splitter->run] = windows->available[splitter->run].n;
	stats_end_wait(windows->job->stats, span);
	return r;
}

/* Count what the window reads of other devices, directly or by way of the host. */
static void count_peer_reads(const struct window_input *windows, const struct slice *slices)
{
	const struct job *job = windows->job;
	struct device_totals device_totals = { 0 };

	for (uint32_t i = 0; i < windows->n_runs; i++) {
		const struct run_input *input = &windows->inputs[i];
		const uint64_t nbytes = slices[i].n * job->layout->resident_nbytes;

		if (input->peer_memory)
			device_totals.staged_read_nbytes += nbytes;
		else if (input->memory && input->run->device_index != job->merge_device)
			device_totals.peer_read_nbytes += nbytes;
	}
	stats_add_device(job->stats, job->devices[job->merge_device].stats_index, &device_totals);
}

/* Give the window the available items before the cuts, or all of them; the others are left over. */
static void take_slices(struct window_input *windows, const uint64_t *cuts, struct window *window)
{
	const uint64_t resident_nbytes = windows->job->layout->resident_nbytes;

	window->n_items = 0;
	for (uint32_t i = 0; i < windows->n_runs; i++) {
		struct run_input *input = &windows->inputs[i];
		const struct slice *available = &windows->available[i];
		const uint64_t n = cuts ? cuts[i] : available->n;

		window->slices[i] = (struct slice){ .elements = available->elements, .n = n };
		input->leftover = (const char *)available->elements + n * resident_nbytes;
		input->n_leftover = available->n - n;
		input->position += n;
		window->n_items += n;
	}
	count_peer_reads(windows, window->slices);
}

/* Make the next bucket of all runs available. Returns whether it is the last one. */
static bool take_bucket(struct window_input *windows)
{
	const uint64_t resident_nbytes = windows->job->layout->resident_nbytes;
	const uint32_t end = ++windows->next_bucket;

	for (uint32_t i = 0; i < windows->n_runs; i++) {
		const struct run_input *input = &windows->inputs[i];

		windows->available[i] = (struct slice){
			.elements = input->memory + input->position * resident_nbytes,
			.n = run_bucket_start(input->run, end) - input->position,
		};
	}
	return end == windows->runs[0]->n_buckets;
}

int window_input_next(struct window_input *windows, struct window *window, bool *ret_last)
{
	struct splitter splitter;
	int has_more, r;

	if (!windows->forecast) {
		*ret_last = take_bucket(windows);
		take_slices(windows, NULL, window);
		return 0;
	}
	has_more = forecast_next_window(windows->forecast, windows->quota_records,
					windows->n_blocks, &splitter);
	r = has_more < 0 ? has_more : make_available(windows, window);
	if (r == 0 && has_more)
		r = cut_at_splitter(windows, &splitter);
	if (r < 0)
		return r;
	take_slices(windows, has_more ? windows->cuts : NULL, window);
	*ret_last = !has_more;
	windows->number++;
	return 0;
}

struct record_totals window_input_totals(const struct window_input *windows)
{
	struct record_totals sum = { 0 };

	for (uint32_t i = 0; i < windows->n_runs; i++)
		record_totals_add(&sum, windows->inputs[i].totals);
	return sum;
}
