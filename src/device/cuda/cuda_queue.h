/*
 * cuda_queue - queues as streams, events as CUDA events, and results for the host
 *
 * Internal to the CUDA back end (backend_cuda.c). The results of an operation for the host
 * (digests, counts, cuts, keys) are written to device memory and copied to pinned memory in the
 * same stream. cuda_event_wait() delivers them when the event is reached:
 *
 *	stream      [encode][copy result] [decode][copy result] (event)
 *	results           0                     1               ^ n_queued = 2
 *
 * A pending result has the address in pinned memory and the address that the caller wants. Waiting
 * for an event delivers, in order, the results of all operations before it. An event after each
 * operation gives its end time and duration, for the statistics and the timeline.
 *
 * Each queue has a small arena for results, which is used from its beginning again whenever no
 * result is pending. If the arena is too small, which is rare, the queue waits for the stream and
 * enlarges it.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "kernels/kernels.h"
#include "src/device/cuda/cuda_device.h"

/* How the result of an operation reaches its caller. */
struct result_delivery {
	void (*deliver)(const struct result_delivery *delivery); /* NULL: no delivery */
	void *to[3];                                             /* destination */
	uint64_t n;       /* number of bytes or keys, for the deliver function */
	const void *from; /* pinned; set by the queue */
};

/* The result of an operation until an event after it has been waited for. */
struct pending_result {
	struct pending_result *next;
	struct result_delivery delivery;
	cudaEvent_t begin, end; /* begin: only if needed; both are kept for later operations */
	uint64_t queued_ns;
	bool has_begin_event; /* the queue waited before the operation: `begin` gives its start */
	enum stage stage;
	uint64_t nbytes; /* for statistics */
};

struct result_arena {
	char *device, *pinned; /* nbytes each */
	size_t nbytes, used;
};

struct cuda_queue {
	struct device_queue handle;
	struct cuda_device *device;
	cudaStream_t stream;
	uint32_t track;
	pthread_mutex_t lock; /* several threads may wait for events of a queue */
	struct pending_result *first, **last;
	struct pending_result *recycled; /* free list */
	uint64_t n_queued, n_delivered;
	uint64_t last_end_ns;  /* end of the last delivered operation */
	bool has_pending_wait; /* the queue waits for another one since the last operation */
	struct result_arena results;
	void *scratch; /* for short operations */
	size_t scratch_nbytes;
};

static inline struct cuda_queue *cuda_queue(struct device_queue *queue)
{
	return (struct cuda_queue *)queue;
}

/* Functions of struct backend; see backend.h. */
int cuda_queue_open(struct device *device, enum queue_priority priority,
		    struct device_queue **ret_queue);
void cuda_queue_close(struct device_queue *queue);
int cuda_event_open(struct device *device, struct device_event **ret_event);
void cuda_event_close(struct device_event *event);
int cuda_queue_record(struct device_queue *queue, struct device_event *event);
int cuda_event_wait(struct device_event *event);
int cuda_queue_wait_event(struct device_queue *queue, struct device_event *event);

/*
 * An operation that is being queued:
 *
 *	struct cuda_operation operation = { .stage = STAGE_SORT, .nbytes = nbytes };
 *	int r = cuda_operation_begin(&operation, queue);
 *
 *	if (r < 0)
 *		return r;
 *	r = cuda_status(launch_sort(..., operation.stream), "sort");
 *	return cuda_operation_end(&operation, r);
 */
struct cuda_operation {
	/* Set by the caller before cuda_operation_begin(); what is not needed is zero. */
	enum stage stage;
	uint64_t nbytes;      /* for the statistics */
	size_t result_nbytes; /* of the result, which the kernels find zeroed */
	size_t scratch_nbytes;
	struct result_delivery delivery;

	/* Set by cuda_operation_begin(). */
	struct cuda_queue *queue;
	cudaStream_t stream;
	struct pending_result *pending;
	void *result;  /* on the device */
	void *scratch; /* on the device; later operations of the queue use it, too */
};

/*
 * Begin to queue an operation. Takes the queue's lock, which cuda_operation_end() releases. Returns
 * 0 or a negative errno after a message; after a failure, the operation must not be ended.
 */
int cuda_operation_begin(struct cuda_operation *operation, struct device_queue *queue);

/*
 * Wait for the queued kernels, and return the first nbytes of the result. Call between begin and
 * end. Returns 0, -ENOMEM without a message, or another negative errno after a message.
 */
int cuda_operation_peek(struct cuda_operation *operation, size_t nbytes, const void **ret_result);

/*
 * End an operation, and release the lock. r == 0: its kernels are queued; queue the copy of its
 * result. r < 0: an error, as of cuda_status(); drop the operation. Returns 0 or a negative errno
 * after a message.
 */
int cuda_operation_end(struct cuda_operation *operation, int r);

/* Deliver functions: copy n bytes, or widen n keys, to to[0]. */
void cuda_deliver_bytes(const struct result_delivery *delivery);
void cuda_deliver_keys(const struct result_delivery *delivery);

static inline encoded_key_t cuda_widen_key(struct kernel_key key)
{
	return (encoded_key_t)key.hi << 64 | key.lo;
}

_Static_assert(sizeof(struct slice) == sizeof(struct kernel_slice) &&
		       offsetof(struct slice, n) == offsetof(struct kernel_slice, n),
	       "slices are handed to the kernels as they are");

static inline const struct kernel_slice *cuda_slices(const struct slice *slices)
{
	return (const struct kernel_slice *)slices;
}

/* --- operations on records (cuda_records.c) --- */

size_t cuda_records_scratch_nbytes(const struct layout *layout, uint32_t k, uint64_t n);
int cuda_sort_records(struct device_queue *queue, const struct sort_op *op);
int cuda_merge_records(struct device_queue *queue, const struct merge_op *op);
int cuda_cut_items(struct device_queue *queue, const struct cut_op *op);
int cuda_sample_items(struct device_queue *queue, const struct sample_op *op);

/*
 * --- ties of sorted elements (cuda_records.c, kernels/records/tie_break.cu) ---
 *
 * Each round sorts the ties by the next bytes of their keys. Only the device knows the number of
 * ties, so the host waits for this number in each round.
 */

/* What the host reads between rounds. */
struct cuda_tie_result {
	struct tie_counts counts;
	uint64_t common_nbytes;
};

struct cuda_ties {
	struct kernel_tie_keys keys;
	struct cuda_operation *operation;
	struct cuda_tie_result *result; /* the beginning of the operation's result */
	void *elements;                 /* n of 16 bytes, sorted by their prefixes */
	uint64_t n;
	void *buffers[2];       /* kernel_sort_scratch_nbytes(n, 16) each, for alternate rounds */
	uint32_t *positions[2]; /* n each: of the tied elements */
	void *scratch;          /* kernel_ties_scratch_nbytes(n) */
};

/*
 * Break ties. The elements hold key_offset bytes of the keys; key_nbytes: the length of keys, or
 * UINT64_MAX. Waits for the device. Returns 0 or a negative errno after a message.
 */
int cuda_ties_break(const struct cuda_ties *ties, uint64_t key_offset, uint64_t key_nbytes);

/* --- operations on lines (cuda_lines.c) --- */

extern const struct backend_line_ops cuda_line_ops;
