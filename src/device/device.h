/*
 * device - handles of opened devices, queues and events, and how to call their back end
 *
 * A handle points to the table of its back end, so code that has a device can do everything with
 * it, and devices of different back ends can be open at the same time. A back end's own handles
 * begin with these structs:
 *
 *	struct cpu_device { struct device device; struct queue_pool *pool; ... };
 *
 * and device_open(), device_queue_open() and device_event_open() set the table. So a table that
 * wraps another one and changes only some functions needs no handles of its own.
 *
 * backend.h describes what each function does, and how it fails.
 */
#pragma once

#include "src/device/backend.h"

struct device {
	const struct backend *backend;
};

struct device_queue {
	const struct backend *backend;
};

struct device_event {
	const struct backend *backend;
};

/* --- Devices --- */

/* Open a device of `backend`; the caller closes it with device_close(). */
static inline int device_open(const struct backend *backend, const struct backend_config *config,
			      struct device **ret_device)
{
	int r = backend->open(config, ret_device);

	if (r == 0)
		(*ret_device)->backend = backend;
	return r;
}

/* Return the number of devices of the back end. */
static inline unsigned backend_n_devices(const struct backend *backend)
{
	return backend->n_devices ? backend->n_devices() : 1;
}

/* NULL is ignored. */
static inline void device_close(struct device *device)
{
	if (device)
		device->backend->close(device);
}

static inline void device_get_info(const struct device *device, struct device_info *ret_info)
{
	device->backend->get_info(device, ret_info);
}

static inline int device_alloc(struct device *device, enum memory_kind kind, size_t nbytes,
			       void **ret_memory)
{
	return device->backend->alloc(device, kind, nbytes, ret_memory);
}

static inline void device_free(struct device *device, enum memory_kind kind, void *memory,
			       size_t nbytes)
{
	device->backend->free(device, kind, memory, nbytes);
}

static inline void device_discard(struct device *device, void *memory, size_t nbytes)
{
	device->backend->discard(device, memory, nbytes);
}

/* Return whether operations of the device can read memory of the peer. */
static inline bool device_can_access(struct device *device, struct device *peer)
{
	if (device == peer)
		return true;
	return device->backend == peer->backend && device->backend->can_access &&
	       device->backend->can_access(device, peer);
}

/*
 * Return whether the device supports layouts of this kind. If not, no function below may be called.
 */
static inline bool device_supports_layout(const struct device *device, const struct layout *layout)
{
	return device->backend->ops_by_layout[layout->kind];
}

static inline size_t device_sort_scratch_nbytes(const struct device *device,
						const struct layout *layout, uint64_t n)
{
	return device->backend->ops_by_layout[layout->kind]->sort_scratch_nbytes(layout, n);
}

static inline size_t device_merge_scratch_nbytes(const struct device *device,
						 const struct layout *layout, uint32_t k,
						 uint64_t n)
{
	return device->backend->ops_by_layout[layout->kind]->merge_scratch_nbytes(layout, k, n);
}

/* 0: the device does not distribute elements of the layout among buckets. */
static inline size_t device_distribute_scratch_nbytes(const struct device *device,
						      const struct layout *layout, uint64_t n)
{
	const struct backend_layout_ops *ops = device->backend->ops_by_layout[layout->kind];

	return ops->distribute ? ops->distribute_scratch_nbytes(layout, n) : 0;
}

/* --- Queues and events --- */

static inline int device_queue_open(struct device *device, enum queue_priority priority,
				    struct device_queue **ret_queue)
{
	int r = device->backend->queue_open(device, priority, ret_queue);

	if (r == 0)
		(*ret_queue)->backend = device->backend;
	return r;
}

/* NULL is ignored. */
static inline void device_queue_close(struct device_queue *queue)
{
	if (queue)
		queue->backend->queue_close(queue);
}

static inline int device_event_open(struct device *device, struct device_event **ret_event)
{
	int r = device->backend->event_open(device, ret_event);

	if (r == 0)
		(*ret_event)->backend = device->backend;
	return r;
}

/* NULL is ignored. */
static inline void device_event_close(struct device_event *event)
{
	if (event)
		event->backend->event_close(event);
}

static inline int device_event_wait(struct device_event *event)
{
	return event->backend->event_wait(event);
}

static inline int device_queue_record(struct device_queue *queue, struct device_event *event)
{
	return queue->backend->queue_record(queue, event);
}

static inline int device_queue_wait_event(struct device_queue *queue, struct device_event *event)
{
	return queue->backend->queue_wait_event(queue, event);
}

/* Wait for all operations of the queue; records the event at its end. */
static inline int device_queue_synchronize(struct device_queue *queue, struct device_event *event)
{
	int r = device_queue_record(queue, event);

	return r < 0 ? r : device_event_wait(event);
}

/* --- Operations --- */

/* Return the operations for the kind of the layout. Kinds are distinguished only here. */
static inline const struct backend_layout_ops *
device_queue_layout_ops(const struct device_queue *queue, const struct layout *layout)
{
	return queue->backend->ops_by_layout[layout->kind];
}

static inline int device_queue_copy(struct device_queue *queue, void *to, const void *from,
				    size_t nbytes)
{
	return queue->backend->copy(queue, to, from, nbytes);
}

static inline int device_queue_encode(struct device_queue *queue, const struct encode_op *op)
{
	return device_queue_layout_ops(queue, op->layout)->encode(queue, op);
}

static inline int device_queue_decode(struct device_queue *queue, const struct decode_op *op)
{
	return device_queue_layout_ops(queue, op->layout)->decode(queue, op);
}

static inline int device_queue_sort(struct device_queue *queue, const struct sort_op *op)
{
	return device_queue_layout_ops(queue, op->layout)->sort(queue, op);
}

static inline int device_queue_distribute(struct device_queue *queue,
					  const struct distribute_op *op)
{
	return device_queue_layout_ops(queue, op->layout)->distribute(queue, op);
}

static inline int device_queue_cut(struct device_queue *queue, const struct cut_op *op)
{
	return device_queue_layout_ops(queue, op->layout)->cut(queue, op);
}

static inline int device_queue_merge(struct device_queue *queue, const struct merge_op *op)
{
	return device_queue_layout_ops(queue, op->layout)->merge(queue, op);
}

static inline int device_queue_unique(struct device_queue *queue, const struct unique_op *op)
{
	return device_queue_layout_ops(queue, op->layout)->unique(queue, op);
}

/* For back ends: finish sorted or merged elements by dropping duplicates, if requested. */
static inline int device_queue_finish_elements(struct device_queue *queue,
					       const struct layout *layout, void *items, uint64_t n,
					       bool is_unique, struct sort_op_result *ret)
{
	const struct unique_op op = { .layout = layout, .items = items, .n = n, .ret = ret };

	*ret = (struct sort_op_result){ .n = n };
	return is_unique ? device_queue_unique(queue, &op) : 0;
}

static inline int device_queue_sample(struct device_queue *queue, const struct sample_op *op)
{
	return device_queue_layout_ops(queue, op->layout)->sample(queue, op);
}

static inline int device_queue_pack(struct device_queue *queue, const struct pack_op *op)
{
	return queue->backend->pack(queue, op);
}

static inline int device_queue_unpack(struct device_queue *queue, const struct unpack_op *op)
{
	return queue->backend->unpack(queue, op);
}
