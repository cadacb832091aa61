/*
 * run_buffers_fill - the slices of a window, from wherever the runs are (see run_buffers.h)
 *
 *	in device memory      the slice is where the run is
 *	with another device   copied to the host, then to the window's buffer
 *	stored, an input      read by the thread pool; packed blocks are unpacked by the device
 *
 * All that is queued for a window is waited for once.
 */
#include <errno.h>
#include <inttypes.h>

#include "src/base/diagnostics.h"
#include "src/merge/run_buffers_internal.h"

/* Is what is read of it unpacked by the device? */
static bool is_read_packed(const struct run_buffers *buffers, const struct run_buffer *buffer)
{
	return buffers->job->plan.packs_on_device && run_is_packed(buffer->run);
}

/* Of the thread pool: read what a run has to read, if anything. */
static int read_run_buffer(void *context, uint32_t i)
{
	struct run_buffers *buffers = context;
	struct run_buffer *buffer = &buffers->runs[i];
	struct span span;
	int r;

	if (buffer->n_blocks == 0 || !run_buffer_is_read(buffer))
		return 0;
	span = stats_begin(STAGE_FETCH, buffers->number);
	if (is_read_packed(buffers, buffer))
		r = run_read_packed(buffer->run, buffer->next_block, buffer->n_blocks,
				    (char *)buffer->items);
	else
		r = run_read(buffer->run, buffer->next_block, buffer->n_blocks,
			     (char *)buffer->items, &buffer->totals.read);
	stats_end(buffers->job->stats, span, buffer->n_read * buffers->job->layout->item_nbytes);
	return r;
}

/* Is something of it to come by way of the host? */
static bool is_staged_by_host(const struct run_buffer *buffer)
{
	return buffer->peer_memory && buffer->n_blocks;
}

/* Queue the first part of that way. */
static int download(struct run_buffers *buffers, const struct run_buffer *buffer)
{
	const uint64_t start = run_block_start(buffer->run, buffer->next_block);

	return device_queue_copy(
		run_devices_queue(&buffers->run_devices, buffer->run), (char *)buffer->items,
		buffer->peer_memory + start * buffers->job->layout->resident_nbytes,
		buffer->items_nbytes);
}

/* Have in host memory what does not come from here. */
static int fetch_to_host(struct run_buffers *buffers)
{
	uint32_t n_staged = 0;
	int r = 0, wait_result;

	for (uint32_t i = 0; i < buffers->n_runs && r == 0; i++) {
		if (!is_staged_by_host(&buffers->runs[i]))
			continue;
		n_staged++;
		r = download(buffers, &buffers->runs[i]);
	}
	if (r == 0 && buffers->thread_pool)
		r = thread_pool_run(buffers->thread_pool, read_run_buffer, buffers,
				    buffers->n_runs);
	if (n_staged == 0)
		return r;
	wait_result = run_devices_wait(&buffers->run_devices);
	return r < 0 ? r : wait_result;
}

/*
 * Where items are that become records behind the rest. Narrower ones expand in place; what comes
 * from another device is as wide as it will be.
 */
static char *device_items(const struct run_buffers *buffers, const struct run_buffer *buffer)
{
	const struct layout *layout = buffers->job->layout;

	if (buffer->peer_memory)
		return buffer->destination;
	return buffer->destination +
	       buffer->n_read * (layout->resident_nbytes - layout->item_nbytes);
}

/* Queue the way of what was read to the device; what comes packed has a list for itself. */
static int upload(struct run_buffers *buffers, struct run_buffer *buffer,
		  const struct run_buffers_memory *memory)
{
	char *items = device_items(buffers, buffer), *packed;
	int r;

	if (items == buffer->items)
		return 0;
	if (!is_read_packed(buffers, buffer))
		return device_queue_copy(buffers->queue, items, buffer->items,
					 buffer->items_nbytes);
	packed = (char *)memory->workspace + (buffer->items - buffers->staging);
	r = device_queue_copy(buffers->queue, packed, buffer->items, buffer->items_nbytes);
	return r < 0 ? r :
		       block_unpack_add(&buffers->unpack, buffer->run, buffer->next_block,
					buffer->n_blocks, packed, items,
					buffers->job->layout->element_nbytes);
}

/* Queue that a stored run's part of the buffer gets its rest and what was read. */
static int queue_transfer(struct run_buffers *buffers, struct run_buffer *buffer,
			  const struct slice *slice, const struct run_buffers_memory *memory)
{
	const struct job *job = buffers->job;
	const uint64_t leftover_nbytes = buffer->n_leftover * job->layout->resident_nbytes;
	int r = 0;

	if (buffer->n_blocks && !job->checkpoint_hooks)
		run_discard_before(buffer->run, buffer->next_block + buffer->n_blocks);
	if (leftover_nbytes)
		r = device_queue_copy(buffers->queue, (void *)slice->elements, buffer->leftover,
				      leftover_nbytes);
	return r == 0 && buffer->n_blocks ? upload(buffers, buffer, memory) : r;
}

/* Queue that records become elements. */
static int encode(struct run_buffers *buffers, struct run_buffer *buffer)
{
	const struct job *job = buffers->job;
	const struct layout *layout = job->layout;

	if (!layout_has_elements(layout) || !run_has_records(buffer->run, layout) ||
	    key_encoding_is_identity(&layout->encoding))
		return 0;
	return device_queue_encode(buffers->queue, &(struct encode_op){
							   .layout = layout,
							   .records = device_items(buffers, buffer),
							   .elements = buffer->destination,
							   .n = buffer->n_read,
						   });
}

/* What comes of a run that is not here. */
static size_t incoming_nbytes(const struct run_buffers *buffers, const struct run_buffer *buffer)
{
	const struct layout *layout = buffers->job->layout;

	if (buffer->peer_memory)
		return buffer->n_read * layout->resident_nbytes;
	return is_read_packed(buffers, buffer) ?
		       run_packed_nbytes(buffer->run, buffer->next_block, buffer->n_blocks) :
		       buffer->n_read * layout->item_nbytes;
}

/* The part of a run that is not here in the buffer, at `elements`: its rest, then the blocks. */
static void place_incoming(struct run_buffers *buffers, struct run_buffer *buffer,
			   uint64_t n_blocks, char *elements, struct slice *ret_slice)
{
	const struct layout *layout = buffers->job->layout;
	const uint64_t first = run_block_start(buffer->run, buffer->next_block);

	buffer->n_blocks = n_blocks;
	buffer->n_read = run_block_start(buffer->run, buffer->next_block + n_blocks) - first;
	buffer->destination = elements + buffer->n_leftover * layout->resident_nbytes;
	buffer->items_nbytes = incoming_nbytes(buffers, buffer);
	if (buffers->staging) {
		buffer->items = buffers->staging + buffers->staging_used;
		buffers->staging_used += buffer->items_nbytes;
	} else {
		buffer->items = device_items(buffers, buffer);
	}
	*ret_slice =
		(struct slice){ .elements = elements, .n = buffer->n_leftover + buffer->n_read };
}

/* Where every run's available records will be, for the blocks taken. */
static int place_slices(struct run_buffers *buffers, const struct run_buffers_memory *memory,
			const uint64_t *n_blocks)
{
	const uint64_t resident_nbytes = buffers->job->layout->resident_nbytes;
	uint64_t n_used = 0;

	buffers->staging_used = 0;
	for (uint32_t i = 0; i < buffers->n_runs; i++) {
		struct run_buffer *buffer = &buffers->runs[i];
		struct slice *slice = &buffers->available[i];

		if (buffer->memory) {
			slice->elements = buffer->memory + buffer->position * resident_nbytes;
			slice->n = run_block_start(buffer->run, buffer->next_block + n_blocks[i]) -
				   buffer->position;
			continue;
		}
		place_incoming(buffers, buffer, n_blocks[i],
			       (char *)memory->in + n_used * resident_nbytes, slice);
		n_used += slice->n;
		if (n_used > buffers->capacity_records)
			return fail(-EOVERFLOW,
				    "internal error: a window of %" PRIu64 " records "
				    "has room for %" PRIu64,
				    n_used, buffers->capacity_records);
	}
	return 0;
}

/* Queue that a slice of what was read as it came loses its duplicates. */
static int queue_unique_slice(struct run_buffers *buffers, struct run_buffer *buffer,
			      const struct slice *slice, const struct run_buffers_memory *memory)
{
	buffer->unique_result = (struct sort_op_result){ 0 };
	if (slice->n == 0)
		return 0;
	return device_queue_unique(buffers->queue, &(struct unique_op){
							   .layout = buffers->job->layout,
							   .items = (void *)slice->elements,
							   .n = slice->n,
							   .buffer = memory->workspace,
							   .scratch = memory->scratch,
							   .ret = &buffer->unique_result,
						   });
}

/* Queue what makes the slices of runs that are read of their rests and of what was read. */
static int fill_slices(struct run_buffers *buffers, const struct run_buffers_memory *memory)
{
	const struct job *job = buffers->job;
	int r = 0;

	block_unpack_reset(&buffers->unpack);
	for (uint32_t i = 0; i < buffers->n_runs && r == 0; i++)
		if (!buffers->runs[i].memory)
			r = queue_transfer(buffers, &buffers->runs[i], &buffers->available[i],
					   memory);
	if (r == 0)
		r = block_unpack_queue(&buffers->unpack, job, buffers->queue);
	for (uint32_t i = 0; i < buffers->n_runs && r == 0; i++) {
		struct run_buffer *buffer = &buffers->runs[i];

		if (buffer->memory)
			continue;
		if (buffer->n_blocks)
			r = encode(buffers, buffer);
		if (r == 0 && job->unique && run_may_have_duplicates(buffer->run))
			r = queue_unique_slice(buffers, buffer, &buffers->available[i], memory);
	}
	return r;
}

/* With -u, once that is done: what is left of the input runs' parts. */
static void apply_unique(struct run_buffers *buffers)
{
	for (uint32_t i = 0; i < buffers->n_runs; i++) {
		struct run_buffer *buffer = &buffers->runs[i];

		if (!run_may_have_duplicates(buffer->run))
			continue;
		buffers->available[i].n = buffer->unique_result.n;
		digest_add(&buffer->totals.dropped, buffer->unique_result.dropped);
	}
}

int run_buffers_fill(struct run_buffers *buffers, const struct run_buffers_memory *memory,
		     const uint64_t *n_blocks, uint64_t number)
{
	int r = place_slices(buffers, memory, n_blocks);

	buffers->number = number;
	if (r == 0)
		r = fetch_to_host(buffers);
	if (r == 0)
		r = fill_slices(buffers, memory);
	if (r == 0)
		r = device_queue_synchronize(buffers->queue, buffers->event);
	if (r == 0)
		r = block_unpack_check(&buffers->unpack);
	for (uint32_t i = 0; i < buffers->n_runs; i++)
		buffers->runs[i].next_block += n_blocks[i];
	if (r == 0 && buffers->job->unique)
		apply_unique(buffers);
	return r;
}
