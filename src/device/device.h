/*
 * device - opened devices, their lanes and marks: how a back end's functions are called
 *
 * A handle knows the table that it came from, so whoever has a device has all that it can do, and
 * devices of different back ends can be open side by side. A back end's own handles begin with
 * these:
 *
 *	struct cpu_device { struct device device; struct lane_pool *pool; ... };
 *
 * and the functions that open (device_open(), lane_open(), mark_open()) enter the table. So a table
 * that passes on to another one, and does only some things itself, needs no handles of its own.
 *
 * What each call does, and how it fails, is said of the table's functions (backend.h).
 */
#pragma once

#include "src/device/backend.h"

struct device {
	const struct backend *backend;
};

struct lane {
	const struct backend *backend;
};

struct mark {
	const struct backend *backend;
};

/* --- Devices --- */

/* A device of `backend`; device_close() is due. */
static inline int device_open(const struct backend *backend, const struct backend_config *config,
			      struct device **ret_device)
{
	int r = backend->open(config, ret_device);

	if (r == 0)
		(*ret_device)->backend = backend;
	return r;
}

/* That can be opened of the back end. */
static inline unsigned backend_n_devices(const struct backend *backend)
{
	return backend->n_devices ? backend->n_devices() : 1;
}

/* NULL is fine. */
static inline void device_close(struct device *device)
{
	if (device)
		device->backend->close(device);
}

static inline void device_describe(const struct device *device, struct device_info *ret_info)
{
	device->backend->describe(device, ret_info);
}

static inline int device_alloc(struct device *device, enum memory kind, size_t nbytes,
			       void **ret_memory)
{
	return device->backend->alloc(device, kind, nbytes, ret_memory);
}

static inline void device_release(struct device *device, enum memory kind, void *memory,
				  size_t nbytes)
{
	device->backend->release(device, kind, memory, nbytes);
}

static inline void device_discard(struct device *device, void *memory, size_t nbytes)
{
	device->backend->discard(device, memory, nbytes);
}

/* May what its lanes do read memory of the other? */
static inline bool device_reaches(struct device *device, struct device *other)
{
	if (device == other)
		return true;
	return device->backend == other->backend && device->backend->reaches &&
	       device->backend->reaches(device, other);
}

/* Does it sort layouts of this kind? Nothing else below may be called for one that it does not. */
static inline bool device_takes(const struct device *device, const struct layout *layout)
{
	return device->backend->kinds[layout->kind];
}

static inline size_t device_sort_scratch_nbytes(const struct device *device,
						const struct layout *layout, uint64_t n)
{
	return device->backend->kinds[layout->kind]->sort_scratch_nbytes(layout, n);
}

static inline size_t device_merge_scratch_nbytes(const struct device *device,
						 const struct layout *layout, uint32_t k,
						 uint64_t n)
{
	return device->backend->kinds[layout->kind]->merge_scratch_nbytes(layout, k, n);
}

/* --- Lanes and marks --- */

static inline int lane_open(struct device *device, enum lane_urgency urgency,
			    struct lane **ret_lane)
{
	int r = device->backend->lane_open(device, urgency, ret_lane);

	if (r == 0)
		(*ret_lane)->backend = device->backend;
	return r;
}

/* NULL is fine. */
static inline void lane_close(struct lane *lane)
{
	if (lane)
		lane->backend->lane_close(lane);
}

static inline int mark_open(struct device *device, struct mark **ret_mark)
{
	int r = device->backend->mark_open(device, ret_mark);

	if (r == 0)
		(*ret_mark)->backend = device->backend;
	return r;
}

/* NULL is fine. */
static inline void mark_close(struct mark *mark)
{
	if (mark)
		mark->backend->mark_close(mark);
}

static inline int mark_wait(struct mark *mark)
{
	return mark->backend->mark_wait(mark);
}

static inline int lane_mark(struct lane *lane, struct mark *mark)
{
	return lane->backend->mark(lane, mark);
}

static inline int lane_follow(struct lane *lane, struct mark *mark)
{
	return lane->backend->follow(lane, mark);
}

/* Wait for all that is queued in the lane; moves the mark to its end. */
static inline int lane_wait(struct lane *lane, struct mark *mark)
{
	int r = lane_mark(lane, mark);

	return r < 0 ? r : mark_wait(mark);
}

/* --- Operations --- */

/* How it is done for the kind of layout: the only place where kinds are told apart. */
static inline const struct backend_kind *lane_kind(const struct lane *lane,
						   const struct layout *layout)
{
	return lane->backend->kinds[layout->kind];
}

static inline int lane_copy(struct lane *lane, void *to, const void *from, size_t nbytes)
{
	return lane->backend->copy(lane, to, from, nbytes);
}

static inline int lane_encode(struct lane *lane, const struct encode_op *op)
{
	return lane_kind(lane, op->layout)->encode(lane, op);
}

static inline int lane_decode(struct lane *lane, const struct decode_op *op)
{
	return lane_kind(lane, op->layout)->decode(lane, op);
}

static inline int lane_sort(struct lane *lane, const struct sort_op *op)
{
	return lane_kind(lane, op->layout)->sort(lane, op);
}

static inline int lane_cut(struct lane *lane, const struct cut_op *op)
{
	return lane_kind(lane, op->layout)->cut(lane, op);
}

static inline int lane_merge(struct lane *lane, const struct merge_op *op)
{
	return lane_kind(lane, op->layout)->merge(lane, op);
}

static inline int lane_unique(struct lane *lane, const struct unique_op *op)
{
	return lane_kind(lane, op->layout)->unique(lane, op);
}

static inline int lane_sample(struct lane *lane, const struct sample_op *op)
{
	return lane_kind(lane, op->layout)->sample(lane, op);
}

static inline int lane_pack(struct lane *lane, const struct pack_op *op)
{
	return lane->backend->pack(lane, op);
}

static inline int lane_unpack(struct lane *lane, const struct unpack_op *op)
{
	return lane->backend->unpack(lane, op);
}
