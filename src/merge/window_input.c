/*
 * window_input.c - take the slices of one window after the other from runs
 *
 * For each window: take the blocks that the forecast names (forecast.c), make the items of all runs
 * available, and cut every run at the splitter. The available items of a run are, if the run is
 *
 *	in this device's memory, or     a slice of the run itself: nothing is copied
 *	in memory that it can read
 *	in another device's memory      copied to the host, then to the window's buffer
 *	stored, or an input             read by a thread pool into the window's buffer; blocks that
 *					are packed for a device are unpacked there
 *
 * For each run that is copied, the window's buffer has first the items that the last window left
 * over, and then the new blocks:
 *
 *	buffer of window w	[ run 0: leftover, blocks ][ run 2: leftover, blocks ] ...
 *	                                            ^ cut                    ^ cut
 *	                                             \ leftover, copied to window w + 1
 *
 * The cut is exact. The splitter is the first item of a block that was not taken, say with key K
 * in run S. The available items before the splitter are
 *
 *	in runs before S	those with keys up to K, including K (upper bound)
 *	in run S		exactly the taken blocks
 *	in runs after S		those with keys below K (lower bound)
 *
 * In each case less than a block is left over: a run after S has no taken block that starts at K.
 *
 * With -u, equal items of different runs must meet in one window, so all runs are cut at their
 * lower bound, including run S. Then less than a block is left over only if no key is in a run
 * twice. This holds for runs that gsort made. Input runs (-m) are made unique here as they are
 * read. (Duplicates always meet: if a run's next block starts with the key of its last item, the
 * splitter is not above that key, so the item is still in the leftover.)
 *
 * The device is synchronised once for all operations that fill a window.
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
struct run_source {
	struct run *run;
	const char *memory;      /* the run's items, if this device can read them; else NULL */
	const char *peer_memory; /* items in a device whose memory it cannot read; else NULL */
	uint64_t next_block;     /* the first block not taken */
	uint64_t position;       /* with `memory`: items merged so far */
	const char *leftover;    /* n_leftover items that the last window did not use */
	uint64_t n_leftover;

	/* The new blocks for this window */
	uint64_t n_blocks, n_read; /* number of blocks, and of items in them */
	char *destination;         /* in device memory, with room for resident items */
	const char *items;   /* where they are read to: the end of `destination`, or staging */
	size_t items_nbytes; /* bytes that are read */

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
	char *staging;                   /* host memory to read into; NULL: not needed */
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
	struct run_source sources[];
};

/* Return whether threads of the host read the run. */
static bool is_read(const struct run_source *source)
{
	return !source->memory && !source->peer_memory;
}

/* Return whether the run is read as packed blocks, which the device unpacks. */
static bool is_read_packed(const struct window_input *input, const struct run_source *source)
{
	return input->job->plan.packs_on_device && run_can_read_packed(source->run);
}

/* --- Open and close --- */

/* struct item_loader.load */
static int load_first_item(void *context, struct run *run, uint64_t block, void *item)
{
	struct window_input *input = context;
	const size_t item_nbytes = input->job->layout->item_nbytes;
	const char *memory = run->memory;
	int r;

	if (!memory)
		return run_read_item(run, run_block_start(run, block), item);
	r = device_queue_copy(merge_queues_get(&input->queues, run), item,
			      memory + run_block_start(run, block) * item_nbytes, item_nbytes);
	return r < 0 ? r : merge_queues_wait(&input->queues);
}

/* Have the devices fetch the first keys of resident runs. */
static int sample_resident_runs(struct window_input *input, uint64_t stride)
{
	int r = 0;

	for (uint32_t i = 0; i < input->n_runs && r == 0; i++)
		r = merge_queues_sample(&input->queues, input->runs[i], stride);
	return r < 0 ? r : merge_queues_wait(&input->queues);
}

static int open_read_threads(struct window_input *input)
{
	uint32_t n_read = 0, n_fetchers = input->job->plan.n_fetchers;
	int r;

	for (uint32_t i = 0; i < input->n_runs; i++)
		n_read += is_read(&input->sources[i]);
	if (n_read == 0)
		return 0;
	r = thread_pool_open(n_fetchers < n_read ? n_fetchers : n_read, &input->thread_pool);
	return r < 0 ? fail(r, "no memory for %u readers", n_fetchers) : 0;
}

/* Return the maximum size of an item in staging memory; 0: no staging is needed. */
static size_t staging_item_nbytes(const struct window_input *input)
{
	const struct layout *layout = input->job->layout;
	size_t max_nbytes = 0;

	for (uint32_t i = 0; input->job->plan.copies_to_device && i < input->n_runs; i++) {
		const struct run_source *source = &input->sources[i];
		size_t nbytes = 0;

		if (is_read(source))
			nbytes = layout->item_nbytes;
		else if (source->peer_memory)
			nbytes = layout->resident_nbytes;
		max_nbytes = nbytes > max_nbytes ? nbytes : max_nbytes;
	}
	return max_nbytes;
}

static int open_staging(struct window_input *input)
{
	const struct job *job = input->job;
	void *staging;
	int r;

	input->staging_nbytes = input->capacity_records * staging_item_nbytes(input);
	if (input->staging_nbytes == 0)
		return 0;
	r = device_alloc(job_device(job), MEMORY_HOST, input->staging_nbytes, &staging);
	if (r < 0)
		return fail(r, "no pinned memory to read runs into: %m; try a smaller -S");
	input->staging = staging;
	return 0;
}

/* Describe a run. It is merged from where it is if this device can read that memory. */
static struct run_source make_run_source(const struct job *job, struct run *run)
{
	const char *memory = run->memory;
	const bool is_accessible = run_is_peer_accessible(job, run);

	return (struct run_source){
		.run = run,
		.memory = is_accessible ? memory : NULL,
		.peer_memory = is_accessible ? NULL : memory,
	};
}

static int open_parts(struct window_input *input, uint64_t resident_stride)
{
	const struct job *job = input->job;
	const struct item_loader loader = { .layout = job->layout,
					    .load = load_first_item,
					    .context = input };
	const size_t n = input->n_runs;
	int r;

	input->n_blocks = calloc(n, sizeof *input->n_blocks);
	input->cuts = calloc(n, sizeof *input->cuts);
	input->available = calloc(n, sizeof *input->available);
	if (!input->n_blocks || !input->cuts || !input->available)
		return fail(-ENOMEM, "no memory for a merge of %zu runs", n);
	r = merge_queues_open(job, input->runs, input->n_runs, &input->queues);
	if (r < 0)
		return r;
	if (input->n_runs > 0 && input->runs[0]->bucket_starts)
		return 0;
	input->queue = input->queues.by_device[job->merge_device].queue;
	input->event = input->queues.by_device[job->merge_device].event;
	r = open_read_threads(input);
	if (r == 0)
		r = open_staging(input);
	if (r == 0)
		r = sample_resident_runs(input, resident_stride);
	if (r == 0)
		r = forecast_open(input->runs, input->n_runs, &loader, &input->forecast);
	return r;
}

int window_input_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
		      const struct window_plan *plan, struct window_input **ret_input)
{
	struct window_input *input = calloc(1, sizeof *input + n_runs * sizeof input->sources[0]);
	int r;

	if (!input)
		return fail(-ENOMEM, "no memory for a merge of %u runs", n_runs);
	input->job = job;
	input->runs = runs;
	input->n_runs = n_runs;
	input->quota_records = plan->quota_records;
	input->capacity_records = plan->capacity_records;
	for (uint32_t i = 0; i < n_runs; i++)
		input->sources[i] = make_run_source(job, runs[i]);
	r = open_parts(input, plan->resident_stride);
	if (r < 0) {
		window_input_close(input);
		return r;
	}
	*ret_input = input;
	return 0;
}

void window_input_close(struct window_input *input)
{
	if (!input)
		return;
	merge_queues_close(&input->queues);
	thread_pool_close(input->thread_pool);
	device_free(job_device(input->job), MEMORY_HOST, input->staging, input->staging_nbytes);
	forecast_close(input->forecast);
	free(input->packed_blocks);
	free(input->origins);
	free(input->available);
	free(input->n_blocks);
	free(input->cuts);
	free(input);
}

/* --- The layout of the window's buffer --- */

/*
 * Return where in the window's buffer the new items of a run are before they are encoded. Items
 * narrower than elements are at the end of the space for elements, and expand in place. Elements
 * from another device have their final width.
 */
static char *new_items(const struct window_input *input, const struct run_source *source)
{
	const struct layout *layout = input->job->layout;

	if (source->peer_memory)
		return source->destination;
	return source->destination +
	       source->n_read * (layout->resident_nbytes - layout->item_nbytes);
}

static size_t incoming_nbytes(const struct window_input *input, const struct run_source *source)
{
	const struct layout *layout = input->job->layout;

	if (source->peer_memory)
		return source->n_read * layout->resident_nbytes;
	return is_read_packed(input, source) ?
		       run_packed_nbytes(source->run, source->next_block, source->n_blocks) :
		       source->n_read * layout->item_nbytes;
}

/* Assign space at `elements` in the window's buffer to the leftover and new blocks of a run. */
static void place_incoming(struct window_input *input, struct run_source *source, uint64_t n_blocks,
			   char *elements, struct slice *ret_slice)
{
	const struct layout *layout = input->job->layout;
	const uint64_t first = run_block_start(source->run, source->next_block);

	source->n_blocks = n_blocks;
	source->n_read = run_block_start(source->run, source->next_block + n_blocks) - first;
	source->destination = elements + source->n_leftover * layout->resident_nbytes;
	source->items_nbytes = incoming_nbytes(input, source);
	if (input->staging) {
		source->items = input->staging + input->staging_used;
		input->staging_used += source->items_nbytes;
	} else {
		source->items = new_items(input, source);
	}
	*ret_slice =
		(struct slice){ .elements = elements, .n = source->n_leftover + source->n_read };
}

/* Set the available slice of each run, for the blocks taken. */
static int place_slices(struct window_input *input, const struct window *window)
{
	const uint64_t resident_nbytes = input->job->layout->resident_nbytes;
	uint64_t n_used = 0;

	input->staging_used = 0;
	for (uint32_t i = 0; i < input->n_runs; i++) {
		struct run_source *source = &input->sources[i];
		struct slice *slice = &input->available[i];

		if (source->memory) {
			slice->elements = source->memory + source->position * resident_nbytes;
			slice->n = run_block_start(source->run,
						   source->next_block + input->n_blocks[i]) -
				   source->position;
			continue;
		}
		place_incoming(input, source, input->n_blocks[i],
			       (char *)window->buffers.in + n_used * resident_nbytes, slice);
		n_used += slice->n;
		if (n_used > input->capacity_records)
			return fail(-EOVERFLOW,
				    "internal error: a window of %" PRIu64 " records "
				    "has room for %" PRIu64,
				    n_used, input->capacity_records);
	}
	return 0;
}

/* --- Reading to host memory --- */

/* Task i of the thread pool: read the new blocks of run i, if it is read. */
static int read_blocks(void *context, uint32_t i)
{
	struct window_input *input = context;
	struct run_source *source = &input->sources[i];
	struct span span;
	int r;

	if (source->n_blocks == 0 || !is_read(source))
		return 0;
	span = stats_begin(STAGE_FETCH, input->number);
	if (is_read_packed(input, source))
		r = run_read_packed(source->run, source->next_block, source->n_blocks,
				    (char *)source->items);
	else
		r = run_read(source->run, source->next_block, source->n_blocks,
			     (char *)source->items, &source->totals.read);
	stats_end(input->job->stats, span, source->n_read * input->job->layout->item_nbytes);
	return r;
}

/* Read the new blocks of stored runs, and download those of other devices. */
static int fetch_to_host(struct window_input *input)
{
	const size_t resident_nbytes = input->job->layout->resident_nbytes;
	uint32_t n_staged = 0;
	int r = 0, wait_result;

	for (uint32_t i = 0; i < input->n_runs && r == 0; i++) {
		const struct run_source *source = &input->sources[i];

		if (!source->peer_memory || !source->n_blocks)
			continue;
		n_staged++;
		r = device_queue_copy(
			merge_queues_get(&input->queues, source->run), (char *)source->items,
			source->peer_memory +
				run_block_start(source->run, source->next_block) * resident_nbytes,
			source->items_nbytes);
	}
	if (r == 0 && input->thread_pool)
		r = thread_pool_run(input->thread_pool, read_blocks, input, input->n_runs);
	if (n_staged == 0)
		return r;
	wait_result = merge_queues_wait(&input->queues);
	return r < 0 ? r : wait_result;
}

/* --- Filling the window's buffer --- */

/* Make room for n more packed blocks. */
static int reserve_packed_blocks(struct window_input *input, uint64_t n)
{
	const size_t n_needed = input->n_packed + n;
	struct packed_block *blocks;
	struct unpack_origin *origins;

	if (n_needed <= input->n_allocated)
		return 0;
	blocks = realloc(input->packed_blocks, 2 * n_needed * sizeof *blocks);
	if (blocks)
		input->packed_blocks = blocks;
	origins = realloc(input->origins, 2 * n_needed * sizeof *origins);
	if (origins)
		input->origins = origins;
	if (!blocks || !origins)
		return fail(-ENOMEM, "no memory for a list of %zu blocks", 2 * n_needed);
	input->n_allocated = (uint32_t)(2 * n_needed);
	return 0;
}

/*
 * Add the new blocks of a run to those that the device unpacks. They are at `packed` in device
 * memory, as read by run_read_packed(); their elements go to `elements`, next to each other.
 */
static int add_packed_blocks(struct window_input *input, const struct run_source *source,
			     const char *packed, char *elements)
{
	const uint64_t end = source->next_block + source->n_blocks;
	int r = reserve_packed_blocks(input, source->n_blocks);

	if (r < 0)
		return r;
	for (uint64_t i = source->next_block; i < end; i++) {
		const struct packed_block block = {
			.packed = packed,
			.elements = elements,
			.packed_nbytes = (uint32_t)run_packed_nbytes(source->run, i, 1),
			.n = (uint32_t)(run_block_start(source->run, i + 1) -
					run_block_start(source->run, i)),
		};

		input->origins[input->n_packed] = (struct unpack_origin){ source->run, i };
		input->packed_blocks[input->n_packed++] = block;
		packed += block.packed_nbytes;
		elements += (size_t)block.n * input->job->layout->element_nbytes;
	}
	return 0;
}

static int queue_unpack(struct window_input *input)
{
	if (input->n_packed == 0)
		return 0;
	return device_queue_unpack(input->queue,
				   &(struct unpack_op){
					   .blocks = input->packed_blocks,
					   .n_blocks = input->n_packed,
					   .element_nbytes = input->job->layout->element_nbytes,
					   .ret_damaged = &input->damaged_block,
				   });
}

/* After the device has unpacked: -EBADMSG after reporting the first damaged block, if any. */
static int check_unpacked(const struct window_input *input)
{
	const struct unpack_origin *origin;

	if (input->damaged_block == UINT32_MAX)
		return 0;
	origin = &input->origins[input->damaged_block];
	return run_fail_packed(origin->run, origin->block);
}

/* Queue the copy of new blocks to the device. Packed blocks are copied to window->out. */
static int queue_upload(struct window_input *input, struct run_source *source,
			const struct window *window)
{
	char *items = new_items(input, source), *packed;
	int r;

	if (items == source->items)
		return 0;
	if (!is_read_packed(input, source))
		return device_queue_copy(input->queue, items, source->items, source->items_nbytes);
	packed = (char *)window->out + (source->items - input->staging);
	r = device_queue_copy(input->queue, packed, source->items, source->items_nbytes);
	return r < 0 ? r : add_packed_blocks(input, source, packed, items);
}

/*
 * Copy the leftover of a run into the window's buffer. In host memory it is copied at once, which
 * takes less time than queueing so short a copy. No queued operation writes to the leftover.
 */
static int copy_leftover(struct window_input *input, const struct run_source *source,
			 const struct slice *slice)
{
	const size_t nbytes = source->n_leftover * input->job->layout->resident_nbytes;
	void *to = (void *)slice->elements;

	if (nbytes == 0)
		return 0;
	if (input->job->plan.copies_to_device)
		return device_queue_copy(input->queue, to, source->leftover, nbytes);
	memcpy(to, source->leftover, nbytes);
	return 0;
}

/* Transfer a run's leftover and its new items into the window's buffer. */
static int queue_transfer(struct window_input *input, struct run_source *source,
			  const struct slice *slice, const struct window *window)
{
	int r;

	if (source->n_blocks && !input->job->checkpoint_hooks)
		run_discard_before(source->run, source->next_block + source->n_blocks);
	r = copy_leftover(input, source, slice);
	return r == 0 && source->n_blocks ? queue_upload(input, source, window) : r;
}

/* Queue the encoding of new records to elements, if the run has records. */
static int queue_encode(struct window_input *input, struct run_source *source)
{
	const struct layout *layout = input->job->layout;

	if (!layout_has_elements(layout) || !run_has_records(source->run, layout) ||
	    key_encoding_is_identity(&layout->encoding))
		return 0;
	return device_queue_encode(input->queue, &(struct encode_op){
							 .layout = layout,
							 .records = new_items(input, source),
							 .elements = source->destination,
							 .n = source->n_read,
						 });
}

/* With -u: queue the removal of duplicates from the available items of an input run. */
static int queue_unique(struct window_input *input, struct run_source *source,
			const struct slice *slice, const struct window *window)
{
	source->unique_result = (struct sort_op_result){ 0 };
	if (slice->n == 0)
		return 0;
	return device_queue_unique(input->queue, &(struct unique_op){
							 .layout = input->job->layout,
							 .items = (void *)slice->elements,
							 .n = slice->n,
							 .buffer = window->out,
							 .scratch = window->buffers.scratch,
							 .ret = &source->unique_result,
						 });
}

/* Queue all operations that fill the window's buffer. */
static int fill_buffer(struct window_input *input, const struct window *window)
{
	int r = 0;

	input->n_packed = 0;
	input->damaged_block = UINT32_MAX;
	for (uint32_t i = 0; i < input->n_runs && r == 0; i++)
		if (!input->sources[i].memory)
			r = queue_transfer(input, &input->sources[i], &input->available[i], window);
	if (r == 0)
		r = queue_unpack(input);
	for (uint32_t i = 0; i < input->n_runs && r == 0; i++) {
		struct run_source *source = &input->sources[i];

		if (source->memory)
			continue;
		if (source->n_blocks)
			r = queue_encode(input, source);
		if (r == 0 && input->job->unique && run_may_have_duplicates(source->run))
			r = queue_unique(input, source, &input->available[i], window);
	}
	return r;
}

/* Apply the results of queue_unique(). */
static void apply_unique(struct window_input *input)
{
	for (uint32_t i = 0; i < input->n_runs; i++) {
		struct run_source *source = &input->sources[i];

		if (!run_may_have_duplicates(source->run))
			continue;
		input->available[i].n = source->unique_result.n;
		digest_add(&source->totals.dropped, source->unique_result.dropped);
	}
}

/* Make the taken blocks available, after the leftover of each run. */
static int make_available(struct window_input *input, const struct window *window)
{
	int r = place_slices(input, window);

	if (r == 0)
		r = fetch_to_host(input);
	if (r == 0)
		r = fill_buffer(input, window);
	if (r == 0)
		r = device_queue_synchronize(input->queue, input->event);
	if (r == 0)
		r = check_unpacked(input);
	for (uint32_t i = 0; i < input->n_runs; i++)
		input->sources[i].next_block += input->n_blocks[i];
	if (r == 0 && input->job->unique)
		apply_unique(input);
	return r;
}

/* --- The slices of the window --- */

/* Cut the available items at the splitter (see above). */
static int cut_at_splitter(struct window_input *input, const struct splitter *splitter)
{
	const bool unique = input->job->unique;
	struct span span = stats_begin(STAGE_CUT, input->number);
	int r = device_queue_cut(input->queue, &(struct cut_op){
						       .layout = input->job->layout,
						       .slices = input->available,
						       .k = input->n_runs,
						       .key = splitter->key,
						       .slice = unique ? 0 : splitter->run,
						       .ret_cuts = input->cuts,
					       });

	if (r == 0)
		r = device_queue_synchronize(input->queue, input->event);
	/* After a failure the queue may still be writing cuts. */
	if (r == 0 && !unique)
		input->cuts[splitter->run] = input->available[splitter->run].n;
	stats_end_wait(input->job->stats, span);
	return r;
}

/* Count the bytes that the window reads from other devices, directly or through the host. */
static void count_peer_reads(const struct window_input *input, const struct slice *slices)
{
	const struct job *job = input->job;
	struct device_totals device_totals = { 0 };

	for (uint32_t i = 0; i < input->n_runs; i++) {
		const struct run_source *source = &input->sources[i];
		const uint64_t nbytes = slices[i].n * job->layout->resident_nbytes;

		if (source->peer_memory)
			device_totals.staged_read_nbytes += nbytes;
		else if (source->memory && source->run->device_index != job->merge_device)
			device_totals.peer_read_nbytes += nbytes;
	}
	stats_add_device(job->stats, job->devices[job->merge_device].stats_index, &device_totals);
}

/* Set the window's slices: the items before the cuts (NULL: all). The others are left over. */
static void take_slices(struct window_input *input, const uint64_t *cuts, struct window *window)
{
	const uint64_t resident_nbytes = input->job->layout->resident_nbytes;

	window->n_items = 0;
	for (uint32_t i = 0; i < input->n_runs; i++) {
		struct run_source *source = &input->sources[i];
		const struct slice *available = &input->available[i];
		const uint64_t n = cuts ? cuts[i] : available->n;

		window->slices[i] = (struct slice){ .elements = available->elements, .n = n };
		source->leftover = (const char *)available->elements + n * resident_nbytes;
		source->n_leftover = available->n - n;
		source->position += n;
		window->n_items += n;
	}
	count_peer_reads(input, window->slices);
}

/* Make the next bucket of all runs available. Returns whether it is the last one. */
static bool take_bucket(struct window_input *input)
{
	const uint64_t resident_nbytes = input->job->layout->resident_nbytes;
	const uint32_t end = ++input->next_bucket;

	for (uint32_t i = 0; i < input->n_runs; i++) {
		const struct run_source *source = &input->sources[i];

		input->available[i] = (struct slice){
			.elements = source->memory + source->position * resident_nbytes,
			.n = run_bucket_start(source->run, end) - source->position,
		};
	}
	return end == input->runs[0]->n_buckets;
}

int window_input_next(struct window_input *input, struct window *window, bool *ret_last)
{
	struct splitter splitter;
	int has_more, r;

	if (!input->forecast) {
		*ret_last = take_bucket(input);
		take_slices(input, NULL, window);
		return 0;
	}
	has_more = forecast_next_window(input->forecast, input->quota_records, input->n_blocks,
					&splitter);
	r = has_more < 0 ? has_more : make_available(input, window);
	if (r == 0 && has_more)
		r = cut_at_splitter(input, &splitter);
	if (r < 0)
		return r;
	take_slices(input, has_more ? input->cuts : NULL, window);
	*ret_last = !has_more;
	input->number++;
	return 0;
}

struct record_totals window_input_totals(const struct window_input *input)
{
	struct record_totals sum = { 0 };

	for (uint32_t i = 0; i < input->n_runs; i++)
		record_totals_add(&sum, input->sources[i].totals);
	return sum;
}
