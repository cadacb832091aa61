/*
 * failing_backend - the CPU back end, whose every call passes a fault point (see fault_points.h)
 *
 * A call that fails does so as a GPU's would: an allocation for want of memory says nothing and
 * returns -ENOMEM; everything else is a GPU error, which is -EIO after a message. Waiting for a
 * mark fails after the wait, since what was queued is still under way. A fault "from then on" is
 * the error that sticks to a CUDA context, or a device that is gone: all of them, or that one.
 */
#include "src/device/device.h"

#include <errno.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "tests/fault/fault_points.h"
#include "tests/support/separate_memory_backend.h"

/* Device memory that a device of the shape "apart" says it has without --device-memory. */
enum { APART_MEMORY_NBYTES = 64 << 20 };

static enum device_shape chosen_shape;
static uint64_t apart_memory_nbytes;

enum { N_DEVICES = 2 };

unsigned points_n_devices(const char **ret_why)
{
	(void)ret_why;
	return N_DEVICES;
}

void points_set_device(enum device_shape shape)
{
	chosen_shape = shape;
	/* There is one host. */
	owned_memory_set(shape == SHAPE_UNIFIED ? 1 : N_DEVICES, shape == SHAPE_REACHED);
}

static int device_error(unsigned number)
{
	return fail(-EIO, "GPU %u: injected fault: %m", number);
}

/* thing: the device, or what belongs to it. */
static int fail_at(enum point point, const void *thing)
{
	const unsigned number = owned_memory_number_of(thing);

	return point_pass_on(point, (int)number) == EFFECT_FAIL ? device_error(number) : 0;
}

#define FAIL_AT(point, thing)                                                                      \
	do {                                                                                       \
		if (fail_at(point, thing) < 0)                                                     \
			return -EIO;                                                               \
	} while (0)

static unsigned failing_n_devices(void)
{
	return backend_owning.n_devices();
}

static bool failing_reaches(struct device *device, struct device *other)
{
	return backend_owning.reaches(device, other);
}

static int failing_open(const struct backend_config *config, struct device **ret_device)
{
	int r;

	if (point_pass_on(POINT_DEVICE_OPEN, (int)config->number) == EFFECT_FAIL)
		return errno == ENOMEM ? -ENOMEM : device_error(config->number);
	apart_memory_nbytes = config->device_memory_nbytes ? config->device_memory_nbytes :
							     APART_MEMORY_NBYTES;
	r = backend_owning.open(config, ret_device);
	points_gave(THING_OF_DEVICE, r == 0);
	return r;
}

static void failing_close(struct device *device)
{
	points_gave(THING_OF_DEVICE, -(device != NULL));
	backend_owning.close(device);
}

static void failing_describe(const struct device *device, struct device_info *ret_info)
{
	backend_owning.describe(device, ret_info);
	if (chosen_shape != SHAPE_APART && chosen_shape != SHAPE_REACHED)
		return;
	strcpy(ret_info->name, "a device apart");
	ret_info->unified = false;
	ret_info->memory_nbytes = apart_memory_nbytes;
}

static int failing_alloc(struct device *device, enum memory kind, size_t nbytes, void **ret_memory)
{
	const unsigned number = owned_memory_number_of(device);
	int r;

	if (point_pass_on(POINT_DEVICE_ALLOCATION, (int)number) == EFFECT_FAIL)
		return errno == ENOMEM ? -ENOMEM : device_error(number);
	r = backend_owning.alloc(device, kind, nbytes, ret_memory);
	points_gave(THING_OF_DEVICE, r == 0);
	return r;
}

static void failing_release(struct device *device, enum memory kind, void *memory, size_t nbytes)
{
	points_gave(THING_OF_DEVICE, -(memory != NULL));
	backend_owning.release(device, kind, memory, nbytes);
}

static int failing_lane_open(struct device *device, enum lane_urgency urgency,
			     struct lane **ret_lane)
{
	int r;

	FAIL_AT(POINT_DEVICE_LANE, device);
	r = backend_owning.lane_open(device, urgency, ret_lane);
	points_gave(THING_OF_DEVICE, r == 0);
	return r;
}

static void failing_lane_close(struct lane *lane)
{
	points_gave(THING_OF_DEVICE, -(lane != NULL));
	backend_owning.lane_close(lane);
}

static int failing_mark_open(struct device *device, struct mark **ret_mark)
{
	int r;

	FAIL_AT(POINT_DEVICE_LANE, device);
	r = backend_owning.mark_open(device, ret_mark);
	points_gave(THING_OF_DEVICE, r == 0);
	return r;
}

static void failing_mark_close(struct mark *mark)
{
	points_gave(THING_OF_DEVICE, -(mark != NULL));
	backend_owning.mark_close(mark);
}

static int failing_mark_wait(struct mark *mark)
{
	const int r = backend_owning.mark_wait(mark);

	FAIL_AT(POINT_DEVICE_WAIT, mark);
	return r;
}

/* A call that only queues: it fails, or is the CPU's. */
#define QUEUES(point, name, parameters, arguments)                                                 \
	static int failing_##name parameters                                                       \
	{                                                                                          \
		FAIL_AT(point, lane);                                                              \
		return backend_owning.name arguments;                                              \
	}

/* The same, by the kind of layout. */
#define DOES(point, name)                                                                          \
	static int failing_##name(struct lane *lane, const struct name##_op *op)                   \
	{                                                                                          \
		FAIL_AT(point, lane);                                                              \
		return backend_owning.kinds[op->layout->kind]->name(lane, op);                     \
	}

/* clang-format off */
QUEUES(POINT_DEVICE_LANE, mark, (struct lane * lane, struct mark *mark), (lane, mark))
QUEUES(POINT_DEVICE_LANE, follow, (struct lane * lane, struct mark *mark), (lane, mark))
QUEUES(POINT_DEVICE_COPY, copy, (struct lane * lane, void *to, const void *from, size_t n),
	(lane, to, from, n))
DOES(POINT_DEVICE_COPY, encode)
DOES(POINT_DEVICE_COPY, decode)
DOES(POINT_DEVICE_SORT, sort)
DOES(POINT_DEVICE_CUT, cut)
DOES(POINT_DEVICE_MERGE, merge)
DOES(POINT_DEVICE_SORT, unique)
DOES(POINT_DEVICE_COPY, sample)
QUEUES(POINT_DEVICE_COPY, pack, (struct lane * lane, const struct pack_op *op), (lane, op))
QUEUES(POINT_DEVICE_COPY, unpack, (struct lane * lane, const struct unpack_op *op), (lane, op))
/* clang-format on */

/* Sizes of scratch cannot fail, and what goes back early neither. */
static size_t sort_scratch_nbytes(const struct layout *layout, uint64_t n)
{
	return backend_owning.kinds[layout->kind]->sort_scratch_nbytes(layout, n);
}

static size_t merge_scratch_nbytes(const struct layout *layout, uint32_t k, uint64_t n)
{
	return backend_owning.kinds[layout->kind]->merge_scratch_nbytes(layout, k, n);
}

static void discard(struct device *device, void *memory, size_t nbytes)
{
	backend_owning.discard(device, memory, nbytes);
}

static const struct backend_kind failing_kind = {
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

static const struct backend_kind *const failing_kinds[N_LAYOUT_KINDS] = {
	[LAYOUT_CODES] = &failing_kind,
	[LAYOUT_REFERENCES] = &failing_kind,
	[LAYOUT_RECORDS] = &failing_kind,
};

static const struct backend failing_backend = {
	.name = "failing",
	.kinds = failing_kinds,
	.n_devices = failing_n_devices,
	.open = failing_open,
	.close = failing_close,
	.describe = failing_describe,
	.alloc = failing_alloc,
	.release = failing_release,
	.lane_open = failing_lane_open,
	.lane_close = failing_lane_close,
	.mark_open = failing_mark_open,
	.mark_close = failing_mark_close,
	.mark = failing_mark,
	.mark_wait = failing_mark_wait,
	.follow = failing_follow,
	.copy = failing_copy,
	.pack = failing_pack,
	.unpack = failing_unpack,
	.discard = discard,
	.reaches = failing_reaches,
};

int __wrap_backend_choose(enum backend_choice choice, uint64_t input_nbytes, unsigned n_threads,
			  const struct backend **ret_backend);
int __wrap_backend_choose(enum backend_choice choice, uint64_t input_nbytes, unsigned n_threads,
			  const struct backend **ret_backend)
{
	(void)input_nbytes, (void)n_threads;
	/* The fallback of a GPU without memory is the CPU itself. */
	*ret_backend = choice == BACKEND_CPU || chosen_shape == SHAPE_CPU ? &backend_cpu :
									    &failing_backend;
	return 0;
}
