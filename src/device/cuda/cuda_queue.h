/*
 * cuda_queue - streams as queues, CUDA events as events, and the way of results to the host
 *
 * For the CUDA back end only (backend_cuda.c). What an operation tells the host (digests,
 * counts, cuts, keys) is written to device memory and copied to pinned memory in the same stream;
 * cuda_event_wait() hands it out once the event has passed:
 *
 *	stream      [encode][copy result] [decode][copy result] (event)
 *	deliveries        d0                    d1               ^ n_queued = 2
 *
 * A delivery remembers where its result will lie and where the caller wants it. Waiting for an
 * event delivers, in order, everything that was queued in the queue before it. An event behind each
 * operation says when it had ended, and with that how long it took, for the statistics and the
 * timeline.
 *
 * The results live in a small arena of each queue, which starts again from its beginning whenever
 * nothing is outstanding; it grows, after waiting for the stream, in the rare case that it is too
 * small.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "kernels/kernels.h"
#include "src/device/cuda/cuda_device.h"

/* What an operation leaves behind, until an event after it has been waited for. */
struct pending_result {
	struct pending_result *next;
	const void *from; /* pinned; NULL: it has no result */
	void (*deliver)(const struct pending_result *pending);
	void *to[3];            /* the caller's */
	uint64_t n;             /* bytes or items, as deliver_results() understands it */
	cudaEvent_t begin, end; /* begin: only where it is needed; both outlast the delivery */
	uint64_t queued_ns;
	bool has_begin_event; /* before it the queue waited for another: `begin` tells how long */
	enum stage stage;
	uint64_t nbytes; /* for the statistics */
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
	pthread_mutex_t lock; /* guards all below; several threads may wait for events of a queue */
	struct pending_result *first, **last;
	struct pending_result *recycled; /* to be used again */
	uint64_t n_queued, n_delivered;
	uint64_t last_end_ns;  /* of what was delivered */
	bool has_pending_wait; /* for another, since the last operation */
	struct result_arena results;
	void *scratch; /* of short operations */
	size_t scratch_nbytes;
};

static inline struct cuda_queue *cuda_queue(struct device_queue *queue)
{
	return (struct cuda_queue *)queue;
}

/* Members of struct backend. */
int cuda_queue_open(struct device *device, enum queue_priority priority,
		    struct device_queue **ret_queue);
void cuda_queue_close(struct device_queue *queue);
int cuda_event_open(struct device *device, struct device_event **ret_event);
void cuda_event_close(struct device_event *event);
int cuda_queue_record(struct device_queue *queue, struct device_event *event);
int cuda_event_wait(struct device_event *event);
int cuda_queue_wait_event(struct device_queue *queue, struct device_event *event);

/* An operation that is being queued: its delivery, and where on the device its result goes. */
struct cuda_operation {
	struct cuda_queue *queue;
	struct pending_result *pending;
	void *result;
	size_t result_nbytes;
};

/*
 * Begin to queue an operation, which has a result of result_nbytes or none, zeroed. Takes the
 * queue's lock, which cuda_operation_submit() or cuda_operation_abort() gives back; one of them is
 * due, also after a failure. *ret_operation must be zeroed before.
 */
int cuda_operation_begin(struct device_queue *queue, enum stage stage, uint64_t nbytes,
			 size_t result_nbytes, struct cuda_operation *ret_operation);

/* In between: scratch memory of the queue, free again when what was queued has run. */
int cuda_queue_scratch(struct cuda_queue *queue, size_t nbytes, void **ret_scratch);

/* In between: wait, until the first nbytes of the result are at *ret_result. */
int cuda_operation_peek(struct cuda_operation *operation, size_t nbytes, const void **ret_result);

/* The kernels are queued, with `code`: queue the way of the result, and remember it. */
int cuda_operation_submit(struct cuda_operation *operation, int code, const char *what);

/* Give it up; returns r. */
int cuda_operation_abort(struct cuda_operation *operation, int r);

/* Members of struct delivery: n bytes, or n keys widened to codes, to to[0]. */
void cuda_deliver_bytes(const struct pending_result *pending);
void cuda_deliver_keys(const struct pending_result *pending);

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
