/*
 * cuda_queue - queues, events, and results for the host (see cuda_queue.h)
 */
#include "src/device/cuda/cuda_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/diagnostics.h"
#include "src/base/thread.h"

enum {
	MIN_ARENA_NBYTES = 64 << 10,
	RESULT_ALIGN_NBYTES = 16,
};

struct cuda_event {
	struct device_event handle;
	cudaEvent_t event;
	struct cuda_queue *queue; /* queue in which it was last recorded; NULL: never */
	uint64_t n_queued;        /* number of operations before it */
};

static struct cuda_event *cuda_event(struct device_event *event)
{
	return (struct cuda_event *)event;
}

static void result_arena_free(struct result_arena *arena)
{
	cuda_ignore_error(cudaFree(arena->device));
	cuda_pinned_free(arena->pinned, arena->nbytes);
	*arena = (struct result_arena){ 0 };
}

static int result_arena_open(struct result_arena *arena, int node, size_t nbytes)
{
	void *device, *pinned;
	int r = cuda_status(cudaMalloc(&device, nbytes), "allocation");

	if (r < 0)
		return r;
	r = cuda_pinned_alloc(node, nbytes, &pinned);
	if (r < 0)
		cuda_ignore_error(cudaFree(device));
	else
		*arena = (struct result_arena){ .device = device,
						.pinned = pinned,
						.nbytes = nbytes };
	return r;
}

/* Get the time when an event was reached, on the host's clock. Returns false if it is unknown. */
static bool event_time_ns(const struct cuda_device *device, cudaEvent_t event, uint64_t *ret_ns)
{
	float ms;
	const cudaError_t code = cudaEventElapsedTime(&ms, device->origin, event);

	cuda_ignore_error(code);
	if (code != cudaSuccess)
		return false;
	*ret_ns = device->origin_ns + (uint64_t)((double)ms * 1e6);
	return true;
}

static void pending_result_free(struct pending_result *pending)
{
	if (pending->begin)
		cuda_ignore_error(cudaEventDestroy(pending->begin));
	if (pending->end)
		cuda_ignore_error(cudaEventDestroy(pending->end));
	free(pending);
}

/* Keep a pending result for a later operation. The queue's lock is held. */
static void pending_result_recycle(struct cuda_queue *queue, struct pending_result *pending)
{
	pending->next = queue->recycled;
	queue->recycled = pending;
}

/* Get a pending result with its event; creating an event takes microseconds. The lock is held. */
static int pending_result_get(struct cuda_queue *queue, struct pending_result **ret_pending)
{
	struct pending_result *pending = queue->recycled;

	if (pending) {
		queue->recycled = pending->next;
		*pending = (struct pending_result){ .begin = pending->begin, .end = pending->end };
	} else {
		pending = calloc(1, sizeof *pending);
		if (!pending)
			return -ENOMEM;
	}
	*ret_pending = pending;
	return pending->end ? 0 : cuda_status(cudaEventCreate(&pending->end), "creating an event");
}

/*
 * Return when the operation began: when it was queued or the previous operation ended, whichever is
 * later. If the queue waited for another queue, an event has the time.
 */
static uint64_t result_begin_ns(const struct cuda_queue *queue,
				const struct pending_result *pending)
{
	const uint64_t earliest_ns = pending->queued_ns > queue->last_end_ns ? pending->queued_ns :
									       queue->last_end_ns;
	uint64_t begin_ns;

	return pending->has_begin_event && event_time_ns(queue->device, pending->begin, &begin_ns) ?
		       begin_ns :
		       earliest_ns;
}

/* Deliver the results of an operation that has ended. */
static void pending_result_finish(struct cuda_queue *queue, struct pending_result *pending)
{
	struct stats *stats = queue->device->stats;
	struct span span = { .stage = pending->stage,
			     .queue = queue->track,
			     .device = queue->device->stats_device };
	uint64_t end_ns;

	if (pending->delivery.deliver)
		pending->delivery.deliver(&pending->delivery);
	if (stats && event_time_ns(queue->device, pending->end, &end_ns)) {
		span.begin_ns = result_begin_ns(queue, pending);
		queue->last_end_ns = end_ns;
		if (span.begin_ns > end_ns) /* the clocks differ */
			span.begin_ns = end_ns;
		stats_end_at(stats, span, end_ns, pending->nbytes);
	}
	pending_result_recycle(queue, pending);
}

/* Deliver the results of all operations up to number n. The queue's lock is held. */
static void deliver_results(struct cuda_queue *queue, uint64_t n)
{
	while (queue->n_delivered < n) {
		struct pending_result *pending = queue->first;

		queue->first = pending->next;
		if (!queue->first)
			queue->last = &queue->first;
		queue->n_delivered++;
		pending_result_finish(queue, pending);
	}
}

/* Wait for all queued operations, and deliver their results. The lock is held. */
static int drain_queue(struct cuda_queue *queue)
{
	int r = cuda_status(cudaStreamSynchronize(queue->stream), "waiting for a stream");

	deliver_results(queue, queue->n_queued);
	return r;
}

static void free_recycled_results(struct cuda_queue *queue)
{
	while (queue->recycled) {
		struct pending_result *pending = queue->recycled;

		queue->recycled = pending->next;
		pending_result_free(pending);
	}
}

void cuda_queue_close(struct device_queue *handle)
{
	struct cuda_queue *queue = cuda_queue(handle);

	if (!queue)
		return;
	cuda_ignore_error(cudaSetDevice(queue->device->gpu));
	if (queue->stream) {
		cuda_ignore_error(cudaStreamSynchronize(queue->stream));
		/* Drop results that no thread has waited for: their destination may be gone. */
		for (struct pending_result *pending = queue->first; pending;
		     pending = pending->next)
			pending->delivery.deliver = NULL;
		deliver_results(queue, queue->n_queued);
		cuda_ignore_error(cudaStreamDestroy(queue->stream));
	}
	free_recycled_results(queue);
	result_arena_free(&queue->results);
	cuda_ignore_error(cudaFree(queue->scratch));
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}

static int stream_open(struct cuda_queue *queue, enum queue_priority priority)
{
	int lowest, highest;
	int r = cuda_status(cudaDeviceGetStreamPriorityRange(&lowest, &highest),
			    "querying stream priorities");

	if (r < 0)
		return r;
	return cuda_status(cudaStreamCreateWithPriority(&queue->stream, cudaStreamNonBlocking,
							lowest + (highest - lowest) *
									 (int)priority /
									 (N_QUEUE_PRIORITIES - 1)),
			   "creating a stream");
}

int cuda_queue_open(struct device *device, enum queue_priority priority,
		    struct device_queue **ret_queue)
{
	struct cuda_queue *queue = calloc(1, sizeof *queue);
	int r;

	if (!queue)
		return -ENOMEM;
	queue->device = cuda_device(device);
	queue->last = &queue->first;
	queue->track = 1 + atomic_fetch_add(&queue->device->n_queues, 1);
	pthread_mutex_init(&queue->lock, NULL);
	r = cuda_device_set_current(cuda_device(device));
	if (r == 0)
		r = stream_open(queue, priority);
	if (r == 0)
		r = result_arena_open(&queue->results, queue->device->numa_node, MIN_ARENA_NBYTES);
	if (r < 0) {
		cuda_queue_close(&queue->handle);
		return r;
	}
	*ret_queue = &queue->handle;
	return 0;
}

int cuda_event_open(struct device *device, struct device_event **ret_event)
{
	struct cuda_event *event = calloc(1, sizeof *event);
	int r;

	if (!event)
		return -ENOMEM;
	r = cuda_device_set_current(cuda_device(device));
	if (r == 0)
		r = cuda_status(cudaEventCreateWithFlags(&event->event, cudaEventDisableTiming),
				"event");
	if (r < 0) {
		free(event);
		return r;
	}
	*ret_event = &event->handle;
	return 0;
}

void cuda_event_close(struct device_event *handle)
{
	struct cuda_event *event = cuda_event(handle);

	if (!event)
		return;
	cuda_ignore_error(cudaEventDestroy(event->event));
	free(event);
}

int cuda_queue_record(struct device_queue *queue_handle, struct device_event *event_handle)
{
	struct cuda_queue *queue = cuda_queue(queue_handle);
	struct cuda_event *event = cuda_event(event_handle);

	SCOPED_LOCK(&queue->lock);
	event->queue = queue;
	event->n_queued = queue->n_queued;
	return cuda_device_status(queue->device, cudaEventRecord(event->event, queue->stream),
				  "event");
}

int cuda_event_wait(struct device_event *handle)
{
	struct cuda_event *event = cuda_event(handle);
	int r;

	if (!event->queue)
		return 0;
	r = cuda_device_status(event->queue->device, cudaEventSynchronize(event->event),
			       "waiting for an event");
	SCOPED_LOCK(&event->queue->lock);
	deliver_results(event->queue, event->n_queued);
	return r;
}

int cuda_queue_wait_event(struct device_queue *handle, struct device_event *event_handle)
{
	const struct cuda_event *event = cuda_event(event_handle);
	struct cuda_queue *queue = cuda_queue(handle);

	if (!event->queue)
		return 0;
	SCOPED_LOCK(&queue->lock);
	queue->has_pending_wait = true;
	return cuda_device_status(event->queue->device,
				  cudaStreamWaitEvent(queue->stream, event->event, 0), "event");
}

/* Reserve space for a result in the arena. The lock is held. */
static int reserve_result(struct cuda_operation *operation)
{
	struct cuda_queue *queue = operation->queue;
	struct result_arena *arena = &queue->results;
	const size_t nbytes = (operation->result_nbytes + RESULT_ALIGN_NBYTES - 1) /
			      RESULT_ALIGN_NBYTES * RESULT_ALIGN_NBYTES;
	int r = 0;

	if (arena->used + nbytes > arena->nbytes)
		r = drain_queue(queue);
	if (queue->n_delivered == queue->n_queued)
		arena->used = 0;
	if (r == 0 && nbytes > arena->nbytes) {
		result_arena_free(arena);
		r = result_arena_open(arena, queue->device->numa_node, 2 * nbytes);
	}
	if (r < 0)
		return r;
	operation->result = arena->device + arena->used;
	operation->pending->delivery.from = arena->pinned + arena->used;
	arena->used += nbytes;
	return cuda_status(cudaMemsetAsync(operation->result, 0, nbytes, queue->stream),
			   "clearing a result");
}

/* Record an event at the start of an operation, after the queue waited. The lock is held. */
static int record_wait_begin(struct cuda_operation *operation)
{
	struct pending_result *pending = operation->pending;
	int r = 0;

	if (!pending->begin)
		r = cuda_status(cudaEventCreate(&pending->begin), "event");
	if (r == 0)
		r = cuda_status(cudaEventRecord(pending->begin, operation->queue->stream), "event");
	pending->has_begin_event = true;
	operation->queue->has_pending_wait = false;
	return r;
}

/*
 * Reserve scratch memory. The operations of a queue run one after the other, so all of them use the
 * same scratch. The lock is held.
 */
static int reserve_scratch(struct cuda_operation *operation)
{
	struct cuda_queue *queue = operation->queue;
	const size_t nbytes = operation->scratch_nbytes;
	int r = 0;

	if (nbytes > queue->scratch_nbytes) {
		r = drain_queue(queue);
		cuda_ignore_error(cudaFree(queue->scratch));
		queue->scratch = NULL;
		queue->scratch_nbytes = 0;
		if (r == 0)
			r = cuda_status(cudaMalloc(&queue->scratch, nbytes), "allocation");
		if (r == 0)
			queue->scratch_nbytes = nbytes;
	}
	operation->scratch = queue->scratch;
	return r;
}

/* Report -ENOMEM, which cuda_status() does not report. Returns r. */
static int report_no_memory(int r)
{
	return r == -ENOMEM ? fail(r, "GPU: no memory to queue an operation") : r;
}

/* Drop an operation after error r, and release the lock. Returns r. */
static int drop_operation(struct cuda_operation *operation, int r)
{
	pending_result_recycle(operation->queue, operation->pending);
	pthread_mutex_unlock(&operation->queue->lock);
	return report_no_memory(r);
}

int cuda_operation_begin(struct cuda_operation *operation, struct device_queue *handle)
{
	struct cuda_queue *queue = cuda_queue(handle);
	int r = cuda_device_set_current(queue->device);

	if (r < 0)
		return report_no_memory(r);
	operation->queue = queue;
	operation->stream = queue->stream;
	pthread_mutex_lock(&queue->lock);
	r = pending_result_get(queue, &operation->pending);
	if (!operation->pending) {
		pthread_mutex_unlock(&queue->lock);
		return report_no_memory(r);
	}
	operation->pending->stage = operation->stage;
	operation->pending->nbytes = operation->nbytes;
	operation->pending->delivery = operation->delivery;
	operation->pending->queued_ns = clock_now_ns();
	if (r == 0 && operation->result_nbytes)
		r = reserve_result(operation);
	if (r == 0 && queue->has_pending_wait)
		r = record_wait_begin(operation);
	if (r == 0)
		r = reserve_scratch(operation);
	return r < 0 ? drop_operation(operation, r) : 0;
}

int cuda_operation_end(struct cuda_operation *operation, int r)
{
	struct cuda_queue *queue = operation->queue;
	struct pending_result *pending = operation->pending;

	if (r == 0)
		r = cuda_status(cudaEventRecord(pending->end, queue->stream), "event");
	if (r == 0 && operation->result_nbytes)
		r = cuda_status(cudaMemcpyAsync((void *)pending->delivery.from, operation->result,
						operation->result_nbytes, cudaMemcpyDeviceToHost,
						queue->stream),
				"copying a result");
	if (r < 0)
		return drop_operation(operation, r);
	*queue->last = pending;
	queue->last = &pending->next;
	queue->n_queued++;
	pthread_mutex_unlock(&queue->lock);
	return 0;
}

int cuda_operation_peek(struct cuda_operation *operation, size_t nbytes, const void **ret_result)
{
	const cudaStream_t stream = operation->queue->stream;
	void *const to = (void *)operation->pending->delivery.from;
	int r = cuda_status(cudaMemcpyAsync(to, operation->result, nbytes, cudaMemcpyDeviceToHost,
					    stream),
			    "copying a result");

	if (r == 0)
		r = cuda_status(cudaStreamSynchronize(stream), "waiting for a result");
	*ret_result = to;
	return r;
}

void cuda_deliver_bytes(const struct result_delivery *delivery)
{
	memcpy(delivery->to[0], delivery->from, delivery->n);
}

void cuda_deliver_keys(const struct result_delivery *delivery)
{
	const struct kernel_key *keys = delivery->from;
	encoded_key_t *ret_keys = delivery->to[0];

	for (uint64_t i = 0; i < delivery->n; i++)
		ret_keys[i] = cuda_widen_key(keys[i]);
}
