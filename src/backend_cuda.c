/*
 * backend_cuda - sorting and merging on a GPU
 *
 * A lane is a CUDA stream, a mark is an event, an operation is a launch_* of kernels/kernels.h.
 * What an operation tells the host (digests, counts, cuts, keys) is written to device memory and
 * copied to pinned memory in the same stream; mark_wait() hands it out once the event has passed:
 *
 *	stream      [encode][copy result] [decode][copy result] (mark)
 *	deliveries        d0                    d1               ^ n_queued = 2
 *
 * A delivery remembers where its result will lie and where the caller wants it. mark_wait() waits
 * for the event and delivers, in order, everything that was queued in the lane before it. Two
 * events around each operation say how long it took, for the statistics and the timeline.
 *
 * The results live in a small arena of each lane, which starts again from its beginning whenever
 * nothing is outstanding; it grows, after waiting for the stream, in the rare case that it is too
 * small.
 *
 * This is the one file of the engine that knows CUDA. Its error codes are translated to negative
 * errnos here, with their message; only a lack of memory is left to the caller, who can plan
 * smaller.
 */
#include "src/backend.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/kernels.h"
#include "src/status.h"

enum {
	LANES = 2, /* chunks sorted at a time: one computes while another's input comes */
	CHUNK_NBYTES = 512 << 20,
	WINDOW_NBYTES = 8 << 20, /* all that are in flight stay in the host's last cache */
	LEAST_ARENA_NBYTES = 64 << 10,
	RESULT_ALIGN_NBYTES = 16,
};

struct device {
	int gpu;
	char name[128];
	uint64_t memory_nbytes;
	struct stats *stats; /* may be NULL */
	cudaEvent_t origin;  /* passed at origin_ns on the host's clock */
	uint64_t origin_ns;
	atomic_uint n_lanes; /* opened so far: tracks of the timeline */
};

/* What an operation leaves behind, until a mark after it has been waited for. */
struct delivery {
	struct delivery *next;
	const void *from; /* pinned; NULL: it has no result */
	void (*deliver)(const struct delivery *delivery);
	void *to[2]; /* the caller's */
	uint64_t n;  /* bytes or items, as deliver() understands it */
	cudaEvent_t begin, end;
	enum stage stage;
	uint64_t nbytes; /* for the statistics */
};

struct arena {
	char *device, *pinned; /* nbytes each */
	size_t nbytes, used;
};

struct lane {
	struct device *gpu;
	cudaStream_t stream;
	uint32_t track;
	pthread_mutex_t lock; /* guards all below; several threads may wait for marks of a lane */
	struct delivery *first, **last;
	uint64_t n_queued, n_delivered;
	struct arena results;
	void *scratch; /* of encode, decode and unique */
	size_t scratch_nbytes;
};

struct mark {
	cudaEvent_t event;
	struct lane *lane; /* that it was last set in; NULL: never */
	uint64_t n_queued; /* operations before it */
};

/* Translate and print. Lack of memory is the caller's to report. */
static int cuda_status(int code, const char *what)
{
	if (code == cudaSuccess)
		return 0;
	cudaGetLastError(); /* what can be cleared is cleared; other errors stay, and come again */
	if (code == cudaErrorMemoryAllocation)
		return -ENOMEM;
	return fail(-EIO, "GPU: %s: %s", what, cudaGetErrorString((cudaError_t)code));
}

static int use(const struct device *device)
{
	return cuda_status(cudaSetDevice(device->gpu), "cannot be used");
}

static int probe(const char **ret_why)
{
	int n = 0;
	const cudaError_t code = cudaGetDeviceCount(&n);

	if (code == cudaSuccess && n > 0)
		return 0;
	cudaGetLastError();
	*ret_why = code == cudaSuccess ? "no device" : cudaGetErrorString(code);
	return -ENODEV;
}

static int find_memory(struct device *device, uint64_t limit_nbytes)
{
	size_t free_nbytes, total_nbytes;
	int r = cuda_status(cudaMemGetInfo(&free_nbytes, &total_nbytes), "its memory");

	if (r < 0)
		return r;
	device->memory_nbytes = free_nbytes - free_nbytes / 10;
	if (limit_nbytes && limit_nbytes < device->memory_nbytes)
		device->memory_nbytes = limit_nbytes;
	return 0;
}

/* The moment from which the times of events are counted. */
static int set_origin(struct device *device)
{
	int r = cuda_status(cudaEventCreate(&device->origin), "event");

	if (r == 0)
		r = cuda_status(cudaEventRecord(device->origin, 0), "event");
	if (r == 0)
		r = cuda_status(cudaEventSynchronize(device->origin), "start");
	device->origin_ns = trace_now_ns();
	return r;
}

static int open_gpu(struct device *device, const struct backend_config *config)
{
	struct cudaDeviceProp properties;
	int r = use(device);

	if (r == 0)
		r = cuda_status(cudaGetDeviceProperties(&properties, device->gpu), "properties");
	if (r < 0)
		return r;
	snprintf(device->name, sizeof device->name, "%.100s", properties.name);
	r = find_memory(device, config->device_memory_nbytes);
	return r < 0 ? r : set_origin(device);
}

static void cuda_close(struct device *device)
{
	if (!device)
		return;
	if (device->origin)
		cudaEventDestroy(device->origin);
	free(device);
}

static int cuda_open(const struct backend_config *config, struct device **ret_device)
{
	struct device *device;
	int r;

	if (config->n_gpus > 1)
		return fail(-ENOTSUP, "--gpus: sorting on more than one GPU is not supported yet");
	device = calloc(1, sizeof *device);
	if (!device)
		return fail(-ENOMEM, "no memory for the CUDA back end");
	device->gpu = config->n_gpus ? (int)config->gpus[0] : 0;
	device->stats = config->stats;
	r = open_gpu(device, config);
	if (r < 0) {
		cuda_close(device);
		return r;
	}
	*ret_device = device;
	return 0;
}

static void describe(const struct device *device, struct device_info *ret_info)
{
	*ret_info = (struct device_info){
		.unified = false,
		.memory_nbytes = device->memory_nbytes,
		.n_lanes = LANES,
		.chunk_nbytes = CHUNK_NBYTES,
		.window_nbytes = WINDOW_NBYTES,
	};
	memcpy(ret_info->name, device->name, sizeof ret_info->name);
}

/*
 * Huge pages of the host, then registered: an order of magnitude faster than cudaMallocHost(),
 * which takes 0.1 s for 256 MiB (docs/benchmarks.md, "file to file").
 */
static int alloc_pinned(size_t nbytes, void **ret_memory)
{
	void *memory =
		mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r;

	if (memory == MAP_FAILED)
		return -ENOMEM;
	madvise(memory, nbytes, MADV_HUGEPAGE);
	r = cuda_status(cudaHostRegister(memory, nbytes, cudaHostRegisterDefault),
			"pinning memory");
	if (r < 0)
		munmap(memory, nbytes);
	else
		*ret_memory = memory;
	return r;
}

static void free_pinned(void *memory, size_t nbytes)
{
	if (!memory)
		return;
	cudaHostUnregister(memory);
	munmap(memory, nbytes);
}

static int cuda_alloc(struct device *device, enum memory kind, size_t nbytes, void **ret_memory)
{
	int r = use(device);

	if (r < 0)
		return r;
	if (kind == MEMORY_DEVICE)
		return cuda_status(cudaMalloc(ret_memory, nbytes), "allocation");
	return alloc_pinned(nbytes, ret_memory);
}

static void cuda_release(struct device *device, enum memory kind, void *memory, size_t nbytes)
{
	if (!memory || use(device) < 0)
		return;
	if (kind == MEMORY_DEVICE)
		cudaFree(memory);
	else
		free_pinned(memory, nbytes);
}

static void arena_free(struct arena *arena)
{
	cudaFree(arena->device);
	free_pinned(arena->pinned, arena->nbytes);
	*arena = (struct arena){ 0 };
}

static int arena_open(struct arena *arena, size_t nbytes)
{
	void *device, *pinned;
	int r = cuda_status(cudaMalloc(&device, nbytes), "allocation");

	if (r < 0)
		return r;
	r = alloc_pinned(nbytes, &pinned);
	if (r < 0)
		cudaFree(device);
	else
		*arena = (struct arena){ .device = device, .pinned = pinned, .nbytes = nbytes };
	return r;
}

/* Hand out what an operation left; it has run. */
static void delivery_finish(struct lane *lane, struct delivery *delivery)
{
	const struct device *device = lane->gpu;
	float begin_ms = 0, end_ms = 0;
	struct span span = { .stage = delivery->stage, .track = lane->track };

	if (delivery->deliver)
		delivery->deliver(delivery);
	if (device->stats &&
	    cudaEventElapsedTime(&begin_ms, device->origin, delivery->begin) == cudaSuccess &&
	    cudaEventElapsedTime(&end_ms, device->origin, delivery->end) == cudaSuccess) {
		span.begin_ns = device->origin_ns + (uint64_t)((double)begin_ms * 1e6);
		stats_end_at(device->stats, span,
			     device->origin_ns + (uint64_t)((double)end_ms * 1e6),
			     delivery->nbytes);
	}
	cudaEventDestroy(delivery->begin);
	cudaEventDestroy(delivery->end);
	free(delivery);
}

/* Under the lane's lock: deliver everything up to the n-th operation. */
static void deliver(struct lane *lane, uint64_t n)
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
static int lane_drain(struct lane *lane)
{
	int r = cuda_status(cudaStreamSynchronize(lane->stream), "waiting for a stream");

	deliver(lane, lane->n_queued);
	return r;
}

static void lane_close(struct lane *lane)
{
	if (!lane)
		return;
	use(lane->gpu);
	if (lane->stream) {
		pthread_mutex_lock(&lane->lock);
		lane_drain(lane);
		pthread_mutex_unlock(&lane->lock);
		cudaStreamDestroy(lane->stream);
	}
	arena_free(&lane->results);
	cudaFree(lane->scratch);
	pthread_mutex_destroy(&lane->lock);
	free(lane);
}

static int stream_open(struct lane *lane, enum lane_urgency urgency)
{
	int least, greatest;
	int r = cuda_status(cudaDeviceGetStreamPriorityRange(&least, &greatest),
			    "stream priorities");

	if (r < 0)
		return r;
	return cuda_status(cudaStreamCreateWithPriority(&lane->stream, cudaStreamNonBlocking,
							urgency == LANE_URGENT ? greatest : least),
			   "cannot make a stream");
}

static int lane_open(struct device *device, enum lane_urgency urgency, struct lane **ret_lane)
{
	struct lane *lane = calloc(1, sizeof *lane);
	int r;

	if (!lane)
		return -ENOMEM;
	lane->gpu = device;
	lane->last = &lane->first;
	lane->track = 1 + atomic_fetch_add(&device->n_lanes, 1);
	pthread_mutex_init(&lane->lock, NULL);
	r = use(device);
	if (r == 0)
		r = stream_open(lane, urgency);
	if (r == 0)
		r = arena_open(&lane->results, LEAST_ARENA_NBYTES);
	if (r < 0) {
		lane_close(lane);
		return r;
	}
	*ret_lane = lane;
	return 0;
}

static int mark_open(struct device *device, struct mark **ret_mark)
{
	struct mark *mark = calloc(1, sizeof *mark);
	int r;

	if (!mark)
		return -ENOMEM;
	r = use(device);
	if (r == 0)
		r = cuda_status(cudaEventCreateWithFlags(&mark->event, cudaEventDisableTiming),
				"event");
	if (r < 0) {
		free(mark);
		return r;
	}
	*ret_mark = mark;
	return 0;
}

static void mark_close(struct mark *mark)
{
	if (!mark)
		return;
	cudaEventDestroy(mark->event);
	free(mark);
}

static int set_mark(struct lane *lane, struct mark *mark)
{
	int r;

	pthread_mutex_lock(&lane->lock);
	mark->lane = lane;
	mark->n_queued = lane->n_queued;
	r = cuda_status(cudaEventRecord(mark->event, lane->stream), "event");
	pthread_mutex_unlock(&lane->lock);
	return r;
}

static int mark_wait(struct mark *mark)
{
	int r;

	if (!mark->lane)
		return 0;
	r = cuda_status(cudaEventSynchronize(mark->event), "waiting for an event");
	pthread_mutex_lock(&mark->lane->lock);
	deliver(mark->lane, mark->n_queued);
	pthread_mutex_unlock(&mark->lane->lock);
	return r;
}

static int follow(struct lane *lane, struct mark *mark)
{
	return mark->lane ?
		       cuda_status(cudaStreamWaitEvent(lane->stream, mark->event, 0), "event") :
		       0;
}

/* An operation that is being queued: its delivery, and where on the device its result goes. */
struct operation {
	struct lane *lane;
	struct delivery *delivery;
	void *result;
	size_t result_nbytes;
};

/* Under the lock: room for a result in the arena. */
static int reserve_result(struct operation *operation)
{
	struct lane *lane = operation->lane;
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
		r = arena_open(arena, 2 * nbytes);
	}
	if (r < 0)
		return r;
	operation->result = arena->device + arena->used;
	operation->delivery->from = arena->pinned + arena->used;
	arena->used += nbytes;
	return cuda_status(cudaMemsetAsync(operation->result, 0, nbytes, lane->stream),
			   "clearing a result");
}

/*
 * Begin to queue an operation, which has a result of result_nbytes or none. Takes the lane's lock,
 * which operation_queue() or operation_fail() gives back.
 */
static int operation_begin(struct lane *lane, enum stage stage, uint64_t nbytes,
			   size_t result_nbytes, struct operation *ret_operation)
{
	struct operation operation = { .lane = lane, .result_nbytes = result_nbytes };
	int r = use(lane->gpu);

	operation.delivery = calloc(1, sizeof *operation.delivery);
	if (r < 0 || !operation.delivery) {
		free(operation.delivery);
		return r < 0 ? r : -ENOMEM;
	}
	operation.delivery->stage = stage;
	operation.delivery->nbytes = nbytes;
	pthread_mutex_lock(&lane->lock);
	r = cuda_status(cudaEventCreate(&operation.delivery->begin), "event");
	if (r == 0)
		r = cuda_status(cudaEventCreate(&operation.delivery->end), "event");
	if (r == 0 && result_nbytes)
		r = reserve_result(&operation);
	if (r == 0)
		r = cuda_status(cudaEventRecord(operation.delivery->begin, lane->stream), "event");
	*ret_operation = operation;
	return r;
}

static int operation_fail(struct operation *operation, int r)
{
	if (!operation->delivery)
		return r; /* it did not begin */
	if (operation->delivery->begin)
		cudaEventDestroy(operation->delivery->begin);
	if (operation->delivery->end)
		cudaEventDestroy(operation->delivery->end);
	free(operation->delivery);
	pthread_mutex_unlock(&operation->lane->lock);
	return r;
}

/* The kernels are queued, with `code`: queue the way of the result, and remember it. */
static int operation_queue(struct operation *operation, int code, const char *what)
{
	struct lane *lane = operation->lane;
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
		return operation_fail(operation, r);
	*lane->last = delivery;
	lane->last = &delivery->next;
	lane->n_queued++;
	pthread_mutex_unlock(&lane->lock);
	return 0;
}

/* Under the lock: the lane's scratch memory for n records. */
static int lane_scratch(struct lane *lane, uint64_t n, void **ret_scratch)
{
	const size_t nbytes = kernel_record_scratch_nbytes(n);
	int r = 0;

	if (nbytes > lane->scratch_nbytes) {
		r = lane_drain(lane);
		cudaFree(lane->scratch);
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

static enum stage copy_stage(const void *to, const void *from)
{
	struct cudaPointerAttributes a, b;

	if (cudaPointerGetAttributes(&a, to) != cudaSuccess ||
	    cudaPointerGetAttributes(&b, from) != cudaSuccess) {
		cudaGetLastError();
		return STAGE_UPLOAD;
	}
	if (a.type != cudaMemoryTypeDevice)
		return STAGE_DOWNLOAD;
	return b.type == cudaMemoryTypeDevice ? STAGE_FETCH : STAGE_UPLOAD;
}

static int copy(struct lane *lane, void *to, const void *from, size_t nbytes)
{
	struct operation operation = { 0 };
	int r = operation_begin(lane, copy_stage(to, from), nbytes, 0, &operation);

	if (r < 0)
		return operation_fail(&operation, r);
	return operation_queue(&operation,
			       cudaMemcpyAsync(to, from, nbytes, cudaMemcpyDefault, lane->stream),
			       "copy");
}

static code_t key_widen(struct kernel_key key)
{
	return (code_t)key.hi << 64 | key.lo;
}

static struct kernel_key key_split(code_t key)
{
	return (struct kernel_key){ .lo = (uint64_t)key, .hi = (uint64_t)(key >> 64) };
}

static void deliver_digest(const struct delivery *delivery)
{
	digest_add(delivery->to[0], *(const struct digest *)delivery->from);
}

static int encode(struct lane *lane, const struct encode_op *op)
{
	struct encode_task task = {
		.records = op->records, .elements = op->elements, .n = op->n, .map = op->layout->map
	};
	struct operation operation = { 0 };
	int r = operation_begin(lane, STAGE_ENCODE, op->n * op->layout->record_nbytes,
				op->ret_digest ? sizeof(struct digest) : 0, &operation);

	if (r == 0)
		r = lane_scratch(lane, op->n, &task.scratch);
	if (r < 0)
		return operation_fail(&operation, r);
	if (op->ret_digest) {
		task.digest = operation.result;
		operation.delivery->to[0] = op->ret_digest;
		operation.delivery->deliver = deliver_digest;
	}
	return operation_queue(&operation, launch_encode(&task, lane->stream), "encode");
}

static void deliver_decoded(const struct delivery *delivery)
{
	const struct decode_findings *found = delivery->from;
	struct decode_result *ret = delivery->to[0];

	*ret = (struct decode_result){
		.digest = found->digest,
		.n_disorders = found->n_disorders,
		.first = key_widen(found->first),
		.last = key_widen(found->last),
	};
}

static int decode(struct lane *lane, const struct decode_op *op)
{
	struct decode_task task = { .elements = op->elements,
				    .records = op->records,
				    .n = op->n,
				    .map = op->layout->map,
				    .strict = op->strict };
	struct operation operation = { 0 };
	int r = operation_begin(lane, STAGE_DECODE, op->n * op->layout->record_nbytes,
				sizeof(struct decode_findings), &operation);

	if (r == 0)
		r = lane_scratch(lane, op->n, &task.scratch);
	if (r < 0)
		return operation_fail(&operation, r);
	task.findings = operation.result;
	operation.delivery->to[0] = op->ret;
	operation.delivery->deliver = deliver_decoded;
	return operation_queue(&operation, launch_decode(&task, lane->stream), "decode");
}

static size_t sort_scratch_nbytes(const struct device *device, uint64_t n, uint32_t element_nbytes)
{
	(void)device;
	return kernel_sort_scratch_nbytes(n, element_nbytes);
}

static int sort(struct lane *lane, const struct sort_op *op)
{
	struct operation operation = { 0 };
	int r = operation_begin(lane, STAGE_SORT, op->n * op->element_nbytes, 0, &operation);

	if (r < 0)
		return operation_fail(&operation, r);
	return operation_queue(&operation,
			       launch_sort(op->elements, op->n, op->element_nbytes, op->scratch,
					   lane->stream),
			       "sort");
}

_Static_assert(sizeof(struct slice) == sizeof(struct kernel_slice) &&
		       offsetof(struct slice, n) == offsetof(struct kernel_slice, n),
	       "slices are handed to the kernels as they are");

static const struct kernel_slice *kernel_slices(const struct slice *slices)
{
	return (const struct kernel_slice *)slices;
}

static void deliver_bytes(const struct delivery *delivery)
{
	memcpy(delivery->to[0], delivery->from, delivery->n);
}

static int cut(struct lane *lane, const struct cut_op *op)
{
	const size_t nbytes = op->k * sizeof *op->ret_cuts;
	struct operation operation = { 0 };
	int r = operation_begin(lane, STAGE_CUT, 0, nbytes, &operation);

	if (r < 0)
		return operation_fail(&operation, r);
	operation.delivery->to[0] = op->ret_cuts;
	operation.delivery->n = nbytes;
	operation.delivery->deliver = deliver_bytes;
	return operation_queue(&operation,
			       launch_cut(kernel_slices(op->slices), op->k, op->element_nbytes,
					  key_split(op->key), op->slice, operation.result,
					  lane->stream),
			       "cut");
}

static size_t merge_scratch_nbytes(const struct device *device, uint32_t k, uint64_t n,
				   uint32_t element_nbytes)
{
	(void)device;
	return kernel_merge_scratch_nbytes(k, n, element_nbytes);
}

static int merge(struct lane *lane, const struct merge_op *op)
{
	struct operation operation = { 0 };
	uint64_t n = 0;
	int r;

	for (uint32_t i = 0; i < op->k; i++)
		n += op->slices[i].n;
	r = operation_begin(lane, STAGE_MERGE, n * op->element_nbytes, 0, &operation);
	if (r < 0)
		return operation_fail(&operation, r);
	return operation_queue(&operation,
			       launch_merge(kernel_slices(op->slices), op->k, op->element_nbytes,
					    op->out, op->scratch, lane->stream),
			       "merge");
}

static void deliver_unique(const struct delivery *delivery)
{
	const struct unique_findings *found = delivery->from;

	*(uint64_t *)delivery->to[0] = found->n;
	*(struct digest *)delivery->to[1] = found->dropped;
}

static int unique(struct lane *lane, const struct unique_op *op)
{
	struct unique_task task = { .elements = op->elements, .n = op->n, .map = op->layout->map };
	struct operation operation = { 0 };
	int r = operation_begin(lane, STAGE_MERGE, op->n * op->element_nbytes,
				sizeof(struct unique_findings), &operation);

	if (r == 0)
		r = lane_scratch(lane, op->n, &task.scratch);
	if (r < 0)
		return operation_fail(&operation, r);
	task.findings = operation.result;
	operation.delivery->to[0] = op->ret_n;
	operation.delivery->to[1] = op->ret_dropped;
	operation.delivery->deliver = deliver_unique;
	return operation_queue(&operation, launch_unique(&task, lane->stream), "unique");
}

static void deliver_keys(const struct delivery *delivery)
{
	const struct kernel_key *keys = delivery->from;
	code_t *ret_keys = delivery->to[0];

	for (uint64_t i = 0; i < delivery->n; i++)
		ret_keys[i] = key_widen(keys[i]);
}

static int sample(struct lane *lane, const struct sample_op *op)
{
	const uint64_t n_keys = op->n / op->stride + (op->n % op->stride != 0);
	struct operation operation = { 0 };
	int r = operation_begin(lane, STAGE_CUT, 0, n_keys * sizeof(struct kernel_key), &operation);

	if (r < 0)
		return operation_fail(&operation, r);
	operation.delivery->to[0] = op->ret_keys;
	operation.delivery->n = n_keys;
	operation.delivery->deliver = deliver_keys;
	return operation_queue(&operation,
			       launch_sample(op->elements, op->n, op->stride, op->element_nbytes,
					     operation.result, lane->stream),
			       "sample");
}

const struct backend backend_cuda = {
	.name = "cuda",
	.probe = probe,
	.open = cuda_open,
	.close = cuda_close,
	.describe = describe,
	.alloc = cuda_alloc,
	.release = cuda_release,
	.lane_open = lane_open,
	.lane_close = lane_close,
	.mark_open = mark_open,
	.mark_close = mark_close,
	.mark = set_mark,
	.mark_wait = mark_wait,
	.follow = follow,
	.copy = copy,
	.encode = encode,
	.decode = decode,
	.sort_scratch_nbytes = sort_scratch_nbytes,
	.sort = sort,
	.cut = cut,
	.merge_scratch_nbytes = merge_scratch_nbytes,
	.merge = merge,
	.unique = unique,
	.sample = sample,
};
