/*
 * failing_backend.c - the CPU back end with a fault point in each call (see fault_points.h)
 *
 * Calls fail like those of a GPU. An allocation without memory returns -ENOMEM and reports nothing.
 * Every other error is reported and is -EIO. Waiting for an event fails after the wait, because
 * queued operations are still running. A fault with FAULT_FOREVER is an error that sticks to a CUDA
 * context, or the loss of one device or of all.
 */
#include "src/device/device.h"

#include <errno.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "tests/fault/fault_points.h"
#include "tests/support/separate_memory_backend.h"

/* The memory that a separate device reports without --device-memory. */
enum { DEFAULT_DEVICE_MEMORY_NBYTES = 64 << 20 };

static enum test_device_kind device_kind;
static uint64_t device_memory_nbytes;

enum { N_DEVICES = 2 };

unsigned fault_points_n_devices(const char **ret_reason)
{
	(void)ret_reason;
	return N_DEVICES;
}

void fault_points_set_device(enum test_device_kind kind)
{
	device_kind = kind;
	/* Devices on the host's memory are one device. */
	separate_memory_set_devices(kind == TEST_DEVICE_UNIFIED ? 1 : N_DEVICES,
				    kind == TEST_DEVICE_PEER_ACCESS);
}

static int device_error(unsigned number)
{
	return fail(-EIO, "GPU %u: injected fault: %m", number);
}

/* Inject a fault. object: the device, or one of its queues or events. */
static int inject_fault(enum fault_point point, const void *object)
{
	const unsigned number = separate_memory_device_number(object);

	return fault_point_pass_on_device(point, (int)number) == EFFECT_FAIL ?
		       device_error(number) :
		       0;
}

#define INJECT_FAULT(point, object)                                                                \
	do {                                                                                       \
		if (inject_fault(point, object) < 0)                                               \
			return -EIO;                                                               \
	} while (0)

static unsigned failing_n_devices(void)
{
	return separate_memory_backend.n_devices();
}

static bool failing_can_access(struct device *device, struct device *peer)
{
	return separate_memory_backend.can_access(device, peer);
}

static int failing_open(const struct backend_config *config, struct device **ret_device)
{
	int r;

	if (fault_point_pass_on_device(POINT_DEVICE_OPEN, (int)config->number) == EFFECT_FAIL)
		return errno == ENOMEM ? -ENOMEM : device_error(config->number);
	device_memory_nbytes = config->device_memory_nbytes ? config->device_memory_nbytes :
							      DEFAULT_DEVICE_MEMORY_NBYTES;
	r = separate_memory_backend.open(config, ret_device);
	fault_points_count_resource(RESOURCE_DEVICE_OBJECT, r == 0);
	return r;
}

static void failing_close(struct device *device)
{
	fault_points_count_resource(RESOURCE_DEVICE_OBJECT, -(device != NULL));
	separate_memory_backend.close(device);
}

static void failing_get_info(const struct device *device, struct device_info *ret_info)
{
	separate_memory_backend.get_info(device, ret_info);
	if (device_kind != TEST_DEVICE_SEPARATE && device_kind != TEST_DEVICE_PEER_ACCESS)
		return;
	strcpy(ret_info->name, "a separate device");
	ret_info->unified = false;
	ret_info->memory_nbytes = device_memory_nbytes;
}

static int failing_alloc(struct device *device, enum memory_kind kind, size_t nbytes,
			 void **ret_memory)
{
	const unsigned number = separate_memory_device_number(device);
	int r;

	if (fault_point_pass_on_device(POINT_DEVICE_ALLOCATION, (int)number) == EFFECT_FAIL)
		return errno == ENOMEM ? -ENOMEM : device_error(number);
	r = separate_memory_backend.alloc(device, kind, nbytes, ret_memory);
	fault_points_count_resource(RESOURCE_DEVICE_OBJECT, r == 0);
	return r;
}

static void failing_free(struct device *device, enum memory_kind kind, void *memory, size_t nbytes)
{
	fault_points_count_resource(RESOURCE_DEVICE_OBJECT, -(memory != NULL));
	separate_memory_backend.free(device, kind, memory, nbytes);
}

static int failing_queue_open(struct device *device, enum queue_priority priority,
			      struct device_queue **ret_queue)
{
	int r;

	INJECT_FAULT(POINT_DEVICE_QUEUE, device);
	r = separate_memory_backend.queue_open(device, priority, ret_queue);
	fault_points_count_resource(RESOURCE_DEVICE_OBJECT, r == 0);
	return r;
}

static void failing_queue_close(struct device_queue *queue)
{
	fault_points_count_resource(RESOURCE_DEVICE_OBJECT, -(queue != NULL));
	separate_memory_backend.queue_close(queue);
}

static int failing_event_open(struct device *device, struct device_event **ret_event)
{
	int r;

	INJECT_FAULT(POINT_DEVICE_QUEUE, device);
	r = separate_memory_backend.event_open(device, ret_event);
	fault_points_count_resource(RESOURCE_DEVICE_OBJECT, r == 0);
	return r;
}

static void failing_event_close(struct device_event *event)
{
	fault_points_count_resource(RESOURCE_DEVICE_OBJECT, -(event != NULL));
	separate_memory_backend.event_close(event);
}

static int failing_event_wait(struct device_event *event)
{
	const int r = separate_memory_backend.event_wait(event);

	INJECT_FAULT(POINT_DEVICE_WAIT, event);
	return r;
}

/* Define a call that only queues: it fails, or calls the CPU back end. */
#define DEFINE_ENQUEUE(point, name, parameters, arguments)                                         \
	static int failing_##name parameters                                                       \
	{                                                                                          \
		INJECT_FAULT(point, queue);                                                        \
		return separate_memory_backend.name arguments;                                     \
	}

/* Define a queueing call that depends on the kind of layout. */
#define DEFINE_LAYOUT_OP(point, name)                                                              \
	static int failing_##name(struct device_queue *queue, const struct name##_op *op)          \
	{                                                                                          \
		INJECT_FAULT(point, queue);                                                        \
		return separate_memory_backend.ops_by_layout[op->layout->kind]->name(queue, op);   \
	}

/* clang-format off */
DEFINE_ENQUEUE(POINT_DEVICE_QUEUE, queue_record,
	(struct device_queue * queue, struct device_event *event), (queue, event))
DEFINE_ENQUEUE(POINT_DEVICE_QUEUE, queue_wait_event,
	(struct device_queue * queue, struct device_event *event), (queue, event))
DEFINE_ENQUEUE(POINT_DEVICE_COPY, copy,
	(struct device_queue * queue, void *to, const void *from, size_t n),
	(queue, to, from, n))
DEFINE_LAYOUT_OP(POINT_DEVICE_COPY, encode)
DEFINE_LAYOUT_OP(POINT_DEVICE_COPY, decode)
DEFINE_LAYOUT_OP(POINT_DEVICE_SORT, sort)
DEFINE_LAYOUT_OP(POINT_DEVICE_CUT, cut)
DEFINE_LAYOUT_OP(POINT_DEVICE_MERGE, merge)
DEFINE_LAYOUT_OP(POINT_DEVICE_SORT, unique)
DEFINE_LAYOUT_OP(POINT_DEVICE_COPY, sample)
DEFINE_ENQUEUE(POINT_DEVICE_COPY, pack,
	(struct device_queue * queue, const struct pack_op *op), (queue, op))
DEFINE_ENQUEUE(POINT_DEVICE_COPY, unpack,
	(struct device_queue * queue, const struct unpack_op *op), (queue, op))
/* clang-format on */

/* Calls that cannot fail: sizes of scratch memory, and discarding memory. */
static size_t sort_scratch_nbytes(const struct layout *layout, uint64_t n)
{
	return separate_memory_backend.ops_by_layout[layout->kind]->sort_scratch_nbytes(layout, n);
}

static size_t merge_scratch_nbytes(const struct layout *layout, uint32_t k, uint64_t n)
{
	return separate_memory_backend.ops_by_layout[layout->kind]->merge_scratch_nbytes(layout, k,
											 n);
}

static void discard(struct device *device, void *memory, size_t nbytes)
{
	separate_memory_backend.discard(device, memory, nbytes);
}

static const struct backend_layout_ops failing_layout_ops = {
	.encode = failing_encode,
	.decode = failing_decode,
	.sort_scratch_nbytes = sort_scratch_nbytes,
	.sort = failing_sort,
	.merge_scratch_nbytes = merge_scratch_nbytes,
	.merge = failing_merge,
	.unique = failing_unique,
	.cut = failing_cut,
	.sample = failing_sample,
};

static const struct backend_layout_ops *const failing_ops_by_layout[N_LAYOUT_KINDS] = {
	[LAYOUT_KEY_ONLY] = &failing_layout_ops,
	[LAYOUT_INDIRECT] = &failing_layout_ops,
	[LAYOUT_RECORDS] = &failing_layout_ops,
};

static const struct backend failing_backend = {
	.name = "failing",
	.ops_by_layout = failing_ops_by_layout,
	.n_devices = failing_n_devices,
	.open = failing_open,
	.close = failing_close,
	.get_info = failing_get_info,
	.alloc = failing_alloc,
	.free = failing_free,
	.queue_open = failing_queue_open,
	.queue_close = failing_queue_close,
	.event_open = failing_event_open,
	.event_close = failing_event_close,
	.queue_record = failing_queue_record,
	.event_wait = failing_event_wait,
	.queue_wait_event = failing_queue_wait_event,
	.copy = failing_copy,
	.pack = failing_pack,
	.unpack = failing_unpack,
	.discard = discard,
	.can_access = failing_can_access,
};

int __wrap_backend_choose(enum backend_choice choice, uint64_t input_nbytes, unsigned n_threads,
			  const struct backend **ret_backend);
int __wrap_backend_choose(enum backend_choice choice, uint64_t input_nbytes, unsigned n_threads,
			  const struct backend **ret_backend)
{
	(void)input_nbytes, (void)n_threads;
	/* gsort falls back to the CPU if a GPU has too little memory. */
	*ret_backend = choice == BACKEND_CPU || device_kind == TEST_DEVICE_CPU ? &backend_cpu :
										 &failing_backend;
	return 0;
}
