/*
 * cuda_queue - streams as lanes, events as marks, and the way of results to the host (see
 * cuda_queue.h)
 */
#include "src/device/cuda/cuda_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/diagnostics.h"

enum {
	LEAST_ARENA_NBYTES = 64 << 10,
	RESULT_ALIGN_NBYTES = 16,
};

struct cuda_mark {
	struct mark handle;
	cudaEvent_t event;
	struct cuda_lane *lane; /* that it was last set in; NULL: never */
	uint64_t n_queued;      /* operations before it */
};

static struct cuda_mark *cuda_mark(struct mark *mark)
{
	return (struct cuda_mark *)mark;
}

static void arena_free(struct arena *arena)
{
	cuda_pass_over(cudaFree(arena->device));
	cuda_pinned_free(arena->pinned, arena->nbytes);
	*arena = (struct arena){ 0 };
}

static int arena_open(struct arena *arena, int node, size_t nbytes)
{
	void *device, *pinned;
	int r = cuda_status(cudaMalloc(&device, nbytes), "allocation");

	if (r < 0)
		return r;
	r = cuda_pinned_alloc(node, nbytes, &pinned);
	if (r < 0)
		cuda_pass_over(cudaFree(device));
	else
		*arena = (struct arena){ .device = device, .pinned = pinned, .nbytes = nbytes };
	return r;
}

/* When an event passed, on the host's clock; false: the device does not tell. */
static bool find_time(const struct cuda_device *device, cudaEvent_t event, uint64_t *ret_ns)
{
	float ms;
	const cudaError_t code = cudaEventElapsedTime(&ms, device->origin, event);

	cuda_pass_over(code);
	if (code != cudaSuccess)
		return false;
	*ret_ns = device->origin_ns + (uint64_t)((double)ms * 1e6);
	return true;
}

static void delivery_free(struct delivery *delivery)
{
	if (delivery->begin)
		cuda_pass_over(cudaEventDestroy(delivery->begin));
	if (delivery->end)
		cuda_pass_over(cudaEventDestroy(delivery->end));
	free(delivery);
}

/* Under the lane's lock: for the next operation. */
static void delivery_put_by(struct cuda_lane *lane, struct delivery *delivery)
{
	delivery->next = lane->spare;
	lane->spare = delivery;
}

/* Under the lane's lock: one with its events. A call of the driver takes microseconds. */
static int delivery_take(struct cuda_lane *lane, struct delivery **ret_delivery)
{
	struct delivery *delivery = lane->spare;

	if (delivery) {
		lane->spare = delivery->next;
		*delivery = (struct delivery){ .begin = delivery->begin, .end = delivery->end };
	} else {
		delivery = calloc(1, sizeof *delivery);
		if (!delivery)
			return -ENOMEM;
	}
	*ret_delivery = delivery;
	return delivery->end ? 0 : cuda_status(cudaEventCreate(&delivery->end), "event");
}

/*
 * When it has begun: as it was queued, or as soon as what was before it in the lane had ended; an
 * event tells it where that had to wait for another lane.
 */
static uint64_t begin_of(const struct cuda_lane *lane, const struct delivery *delivery)
{
	const uint64_t known_ns = delivery->queued_ns > lane->last_end_ns ? delivery->queued_ns :
									    lane->last_end_ns;
	uint64_t begin_ns;

	return delivery->has_waited && find_time(lane->gpu, delivery->begin, &begin_ns) ?
		       begin_ns :
		       known_ns;
}

/* Hand out what an operation left; it has run. */
static void delivery_finish(struct cuda_lane *lane, struct delivery *delivery)
{
	struct stats *stats = lane->gpu->stats;
	struct span span = { .stage = delivery->stage,
			     .lane = lane->track,
			     .device = lane->gpu->place };
	uint64_t end_ns;

	if (delivery->deliver)
		delivery->deliver(delivery);
	if (stats && find_time(lane->gpu, delivery->end, &end_ns)) {
		span.begin_ns = begin_of(lane, delivery);
		lane->last_end_ns = end_ns;
		if (span.begin_ns > end_ns) /* two clocks */
			span.begin_ns = end_ns;
		stats_end_at(stats, span, end_ns, delivery->nbytes);
	}
	delivery_put_by(lane, delivery);
}

/* Under the lane's lock: deliver everything up to the n-th operation. */
static void deliver(struct cuda_lane *lane, uint64_t n)
{
	while (lane->n_delivered < n) {
		struct delivery *delivery = lane->first;

		lane->first = delivery->next;
		if (!lane->first)
			lane->last = &lane->first;
		lane->n_delivered++;
		delivery_finish(lane, delivery);
	}
}

/* Under the lock: wait for all that was queued, and deliver it. */
static int lane_drain(struct cuda_lane *lane)
{
	int r = cuda_status(cudaStreamSynchronize(lane->stream), "waiting for a stream");

	deliver(lane, lane->n_queued);
	return r;
}

/* What nobody has waited for, nobody wants any more, and its place may be gone. */
static void forget_results(struct cuda_lane *lane)
{
	for (struct delivery *delivery = lane->first; delivery; delivery = delivery->next)
		delivery->deliver = NULL;
}

static void free_spare(struct cuda_lane *lane)
{
	while (lane->spare) {
		struct delivery *delivery = lane->spare;

		lane->spare = delivery->next;
		delivery_free(delivery);
	}
}

void cuda_lane_close(struct lane *handle)
{
	struct cuda_lane *lane = cuda_lane(handle);

	if (!lane)
		return;
	cuda_pass_over(cudaSetDevice(lane->gpu->gpu));
	if (lane->stream) {
		cuda_pass_over(cudaStreamSynchronize(lane->stream));
		forget_results(lane);
		deliver(lane, lane->n_queued);
		cuda_pass_over(cudaStreamDestroy(lane->stream));
	}
	free_spare(lane);
	arena_free(&lane->results);
	cuda_pass_over(cudaFree(lane->scratch));
	pthread_mutex_destroy(&lane->lock);
	free(lane);
}

static int stream_open(struct cuda_lane *lane, enum lane_urgency urgency)
{
	int least, greatest;
	int r = cuda_status(cudaDeviceGetStreamPriorityRange(&least, &greatest),
			    "stream priorities");

	if (r < 0)
		return r;
	return cuda_status(cudaStreamCreateWithPriority(&lane->stream, cudaStreamNonBlocking,
							least + (greatest - least) * (int)urgency /
									(N_LANE_URGENCIES - 1)),
			   "cannot make a stream");
}

int cuda_lane_open(struct device *device, enum lane_urgency urgency, struct lane **ret_lane)
{
	struct cuda_lane *lane = calloc(1, sizeof *lane);
	int r;

	if (!lane)
		return -ENOMEM;
	lane->gpu = cuda_device(device);
	lane->last = &lane->first;
	lane->track = 1 + atomic_fetch_add(&lane->gpu->n_lanes, 1);
	pthread_mutex_init(&lane->lock, NULL);
	r = cuda_device_use(cuda_device(device));
	if (r == 0)
		r = stream_open(lane, urgency);
	if (r == 0)
		r = arena_open(&lane->results, lane->gpu->node, LEAST_ARENA_NBYTES);
	if (r < 0) {
		cuda_lane_close(&lane->handle);
		return r;
	}
	*ret_lane = &lane->handle;
	return 0;
}

int cuda_mark_open(struct device *device, struct mark **ret_mark)
{
	struct cuda_mark *mark = calloc(1, sizeof *mark);
	int r;

	if (!mark)
		return -ENOMEM;
	r = cuda_device_use(cuda_device(device));
	if (r == 0)
		r = cuda_status(cudaEventCreateWithFlags(&mark->event, cudaEventDisableTiming),
				"event");
	if (r < 0) {
		free(mark);
		return r;
	}
	*ret_mark = &mark->handle;
	return 0;
}

void cuda_mark_close(struct mark *handle)
{
	struct cuda_mark *mark = cuda_mark(handle);

	if (!mark)
		return;
	cuda_pass_over(cudaEventDestroy(mark->event));
	free(mark);
}

int cuda_lane_mark(struct lane *lane_handle, struct mark *mark_handle)
{
	struct cuda_lane *lane = cuda_lane(lane_handle);
	struct cuda_mark *mark = cuda_mark(mark_handle);
	int r;

	pthread_mutex_lock(&lane->lock);
	mark->lane = lane;
	mark->n_queued = lane->n_queued;
	r = cuda_status_in(lane->gpu, cudaEventRecord(mark->event, lane->stream), "event");
	pthread_mutex_unlock(&lane->lock);
	return r;
}

int cuda_mark_wait(struct mark *handle)
{
	struct cuda_mark *mark = cuda_mark(handle);
	int r;

	if (!mark->lane)
		return 0;
	r = cuda_status_in(mark->lane->gpu, cudaEventSynchronize(mark->event),
			   "waiting for an event");
	pthread_mutex_lock(&mark->lane->lock);
	deliver(mark->lane, mark->n_queued);
	pthread_mutex_unlock(&mark->lane->lock);
	return r;
}

int cuda_lane_follow(struct lane *handle, struct mark *mark_handle)
{
	const struct cuda_mark *mark = cuda_mark(mark_handle);
	struct cuda_lane *lane = cuda_lane(handle);
	int r;

	if (!mark->lane)
		return 0;
	pthread_mutex_lock(&lane->lock);
	lane->waits = true;
	r = cuda_status_in(mark->lane->gpu, cudaStreamWaitEvent(lane->stream, mark->event, 0),
			   "event");
	pthread_mutex_unlock(&lane->lock);
	return r;
}

/* Under the lock: room for a result in the arena. */
static int reserve_result(struct operation *operation)
{
	struct cuda_lane *lane = operation->lane;
	struct arena *arena = &lane->results;
	const size_t nbytes = (operation->result_nbytes + RESULT_ALIGN_NBYTES - 1) /
			      RESULT_ALIGN_NBYTES * RESULT_ALIGN_NBYTES;
	int r = 0;

	if (arena->used + nbytes > arena->nbytes)
		r = lane_drain(lane);
	if (lane->n_delivered == lane->n_queued)
		arena->used = 0;
	if (r == 0 && nbytes > arena->nbytes) {
		arena_free(arena);
		r = arena_open(arena, lane->gpu->node, 2 * nbytes);
	}
	if (r < 0)
		return r;
	operation->result = arena->device + arena->used;
	operation->delivery->from = arena->pinned + arena->used;
	arena->used += nbytes;
	return cuda_status(cudaMemsetAsync(operation->result, 0, nbytes, lane->stream),
			   "clearing a result");
}

/* Under the lock: what is queued before it waits for another lane. */
static int note_wait(struct operation *operation)
{
	struct delivery *delivery = operation->delivery;
	int r = 0;

	if (!delivery->begin)
		r = cuda_status(cudaEventCreate(&delivery->begin), "event");
	if (r == 0)
		r = cuda_status(cudaEventRecord(delivery->begin, operation->lane->stream), "event");
	delivery->has_waited = true;
	operation->lane->waits = false;
	return r;
}

/*
 * Begin to queue an operation, which has a result of result_nbytes or none. Takes the lane's lock,
 * which cuda_operation_queue() or cuda_operation_fail() gives back.
 */
int cuda_operation_begin(struct lane *handle, enum stage stage, uint64_t nbytes,
			 size_t result_nbytes, struct operation *ret_operation)
{
	struct cuda_lane *lane = cuda_lane(handle);
	struct operation operation = { .lane = lane, .result_nbytes = result_nbytes };
	int r = cuda_device_use(lane->gpu);

	if (r < 0)
		return r;
	pthread_mutex_lock(&lane->lock);
	r = delivery_take(lane, &operation.delivery);
	if (!operation.delivery) {
		pthread_mutex_unlock(&lane->lock);
		return r;
	}
	operation.delivery->stage = stage;
	operation.delivery->nbytes = nbytes;
	operation.delivery->queued_ns = clock_now_ns();
	if (r == 0 && result_nbytes)
		r = reserve_result(&operation);
	if (r == 0 && lane->waits)
		r = note_wait(&operation);
	*ret_operation = operation;
	return r;
}

int cuda_operation_fail(struct operation *operation, int r)
{
	if (r == -ENOMEM)
		fail(r, "GPU: no memory to queue an operation");
	if (!operation->delivery)
		return r; /* it did not begin */
	delivery_put_by(operation->lane, operation->delivery);
	pthread_mutex_unlock(&operation->lane->lock);
	return r;
}

int cuda_operation_queue(struct operation *operation, int code, const char *what)
{
	struct cuda_lane *lane = operation->lane;
	struct delivery *delivery = operation->delivery;
	int r = cuda_status(code, what);

	if (r == 0)
		r = cuda_status(cudaEventRecord(delivery->end, lane->stream), "event");
	if (r == 0 && operation->result_nbytes)
		r = cuda_status(cudaMemcpyAsync((void *)delivery->from, operation->result,
						operation->result_nbytes, cudaMemcpyDeviceToHost,
						lane->stream),
				"copying a result");
	if (r < 0)
		return cuda_operation_fail(operation, r);
	*lane->last = delivery;
	lane->last = &delivery->next;
	lane->n_queued++;
	pthread_mutex_unlock(&lane->lock);
	return 0;
}

int cuda_operation_peek(struct operation *operation, size_t nbytes, const void **ret_result)
{
	const cudaStream_t stream = operation->lane->stream;
	void *const to = (void *)operation->delivery->from;
	int r = cuda_status(cudaMemcpyAsync(to, operation->result, nbytes, cudaMemcpyDeviceToHost,
					    stream),
			    "copying a result");

	if (r == 0)
		r = cuda_status(cudaStreamSynchronize(stream), "waiting for a result");
	*ret_result = to;
	return r;
}

int cuda_lane_scratch(struct cuda_lane *lane, size_t nbytes, void **ret_scratch)
{
	int r = 0;

	if (nbytes > lane->scratch_nbytes) {
		r = lane_drain(lane);
		cuda_pass_over(cudaFree(lane->scratch));
		lane->scratch = NULL;
		lane->scratch_nbytes = 0;
		if (r == 0)
			r = cuda_status(cudaMalloc(&lane->scratch, nbytes), "allocation");
		if (r == 0)
			lane->scratch_nbytes = nbytes;
	}
	*ret_scratch = lane->scratch;
	return r;
}

void cuda_deliver_bytes(const struct delivery *delivery)
{
	memcpy(delivery->to[0], delivery->from, delivery->n);
}

void cuda_deliver_keys(const struct delivery *delivery)
{
	const struct kernel_key *keys = delivery->from;
	code_t *ret_keys = delivery->to[0];

	for (uint64_t i = 0; i < delivery->n; i++)
		ret_keys[i] = cuda_widen(keys[i]);
}
