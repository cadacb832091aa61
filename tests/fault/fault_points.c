/*
 * fault_points.c - inject a fault into the n-th call of a kind (see fault_points.h)
 */
#include "tests/fault/fault_points.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

const char *const fault_point_names[N_POINTS] = {
	[POINT_OPEN] = "open",
	[POINT_CLOSE] = "close",
	[POINT_STAT] = "stat",
	[POINT_READ] = "read",
	[POINT_READ_BACK] = "read-back",
	[POINT_READ_TEMP] = "read-temporary",
	[POINT_READ_MANIFEST] = "read-manifest",
	[POINT_WRITE] = "write",
	[POINT_WRITE_TEMP] = "write-temporary",
	[POINT_WRITE_MANIFEST] = "write-manifest",
	[POINT_PREALLOCATE] = "preallocate",
	[POINT_PUNCH] = "punch",
	[POINT_TRUNCATE] = "truncate",
	[POINT_SYNC] = "sync",
	[POINT_LINK] = "link",
	[POINT_RENAME] = "rename",
	[POINT_PERMISSIONS] = "permissions",
	[POINT_MKDIR] = "mkdir",
	[POINT_UNLINK] = "unlink",
	[POINT_LOCK] = "lock",
	[POINT_STREAM] = "stream",
	[POINT_EVENTFD] = "event",
	[POINT_ALLOCATION] = "allocation",
	[POINT_THREAD] = "thread",
	[POINT_DEVICE_OPEN] = "device-open",
	[POINT_DEVICE_ALLOCATION] = "device-allocation",
	[POINT_DEVICE_PEER] = "device-peer",
	[POINT_DEVICE_QUEUE] = "device-queue",
	[POINT_DEVICE_COPY] = "device-copy",
	[POINT_DEVICE_SORT] = "device-sort",
	[POINT_DEVICE_CUT] = "device-cut",
	[POINT_DEVICE_MERGE] = "device-merge",
	[POINT_DEVICE_WAIT] = "device-wait",
	[POINT_DEVICE_KERNEL_IMAGE] = "device-kernel-image",
	[POINT_DEVICE_SELECT] = "device-select",
	[POINT_DEVICE_EVENT] = "device-event",
	[POINT_DEVICE_LAUNCH] = "device-launch",
	[POINT_DEVICE_TIMING] = "device-timing",
	[POINT_DEVICE_FREE] = "device-free",
};

enum { NO_DEVICE = -1, ALL_DEVICES = -2 };

static struct {
	/* Set while counting is off. */
	struct fault fault;
	unsigned interrupt_at;

	atomic_bool armed;
	atomic_uint n_passed[N_POINTS];
	atomic_uint n_faults;
	atomic_int lost_device; /* or NO_DEVICE, ALL_DEVICES */
	atomic_int n_resources[N_TRACKED_RESOURCES];

	pthread_mutex_t lock; /* protects the members below */
	struct call_site sites[MAX_CALL_SITES];
	size_t n_sites;
} fault_points = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Thread_local bool is_exempt;

void fault_points_arm(const struct fault *fault)
{
	static const struct fault none = { .effect = EFFECT_NONE };

	fault_points.fault = fault ? *fault : none;
	for (int i = 0; i < N_POINTS; i++)
		atomic_store(&fault_points.n_passed[i], 0);
	atomic_store(&fault_points.n_faults, 0);
	atomic_store(&fault_points.lost_device, NO_DEVICE);
	for (int i = 0; i < N_TRACKED_RESOURCES; i++)
		atomic_store(&fault_points.n_resources[i], 0);
	fault_points.n_sites = 0;
	atomic_store(&fault_points.armed, true);
}

void fault_points_interrupt_at(unsigned nth_write)
{
	fault_points.interrupt_at = nth_write;
}

void fault_points_disarm(void)
{
	atomic_store(&fault_points.armed, false);
}

unsigned fault_points_n_passed(enum fault_point point)
{
	return atomic_load(&fault_points.n_passed[point]);
}

unsigned fault_points_n_injected(void)
{
	return atomic_load(&fault_points.n_faults);
}

int fault_points_lost_device(void)
{
	const int device = atomic_load(&fault_points.lost_device);

	return device >= 0 ? device : -1;
}

struct resource_balance fault_points_get_balance(void)
{
	return (struct resource_balance){
		.n_threads = atomic_load(&fault_points.n_resources[RESOURCE_THREAD]),
		.n_pages = atomic_load(&fault_points.n_resources[RESOURCE_MAPPED_PAGE]),
		.n_device_objects = atomic_load(&fault_points.n_resources[RESOURCE_DEVICE_OBJECT]),
	};
}

void fault_points_exempt_thread(void)
{
	is_exempt = true;
}

static bool is_counting(void)
{
	return !is_exempt && atomic_load(&fault_points.armed);
}

void fault_points_count_resource(enum tracked_resource resource, int n)
{
	if (is_counting())
		atomic_fetch_add(&fault_points.n_resources[resource], n);
}

static bool is_device_lost(int device)
{
	const int lost_device = atomic_load(&fault_points.lost_device);

	return lost_device == ALL_DEVICES || (lost_device >= 0 && lost_device == device);
}

/* Return whether the fault is for this call, the nth that passes the point. */
static bool is_faulty_call(enum fault_point point, unsigned n, int device)
{
	const struct fault *fault = &fault_points.fault;

	if (fault->effect == EFFECT_NONE)
		return false;
	if (point >= POINT_DEVICE_OPEN && is_device_lost(device))
		return true;
	if (point != fault->point || n < fault->nth)
		return false;
	/* The nth call may be on no device. The device of the next call is lost then. */
	if (fault->is_single_device)
		return device >= 0 && atomic_load(&fault_points.lost_device) == NO_DEVICE;
	return n - fault->nth < fault->n_times;
}

static void lose_device(int device)
{
	int none = NO_DEVICE;

	atomic_compare_exchange_strong(&fault_points.lost_device, &none,
				       fault_points.fault.is_single_device ? device : ALL_DEVICES);
}

static bool is_interrupted(enum fault_point point, unsigned n)
{
	return point == POINT_WRITE && fault_points.interrupt_at && n >= fault_points.interrupt_at;
}

size_t fault_points_get_sites(struct call_site ret_sites[static MAX_CALL_SITES])
{
	memcpy(ret_sites, fault_points.sites, fault_points.n_sites * sizeof *ret_sites);
	return fault_points.n_sites;
}

static void record_site(enum fault_point point, const void *address, unsigned nth)
{
	size_t i = 0;

	pthread_mutex_lock(&fault_points.lock);
	while (i < fault_points.n_sites &&
	       (fault_points.sites[i].address != address || fault_points.sites[i].point != point))
		i++;
	if (i == fault_points.n_sites && i < MAX_CALL_SITES)
		fault_points.sites[fault_points.n_sites++] =
			(struct call_site){ address, point, nth };
	pthread_mutex_unlock(&fault_points.lock);
}

static enum fault_effect pass_point(enum fault_point point, const void *caller, int device)
{
	const struct fault *fault = &fault_points.fault;
	unsigned n;

	if (!is_counting())
		return EFFECT_NONE;
	n = atomic_fetch_add(&fault_points.n_passed[point], 1) + 1;
	if (caller)
		record_site(point, caller, n);
	if (is_interrupted(point, n)) {
		errno = EIO;
		return EFFECT_FAIL;
	}
	if (!is_faulty_call(point, n, device))
		return EFFECT_NONE;
	if (point >= POINT_FIRST_DEVICE_CALL && fault->n_times == FAULT_FOREVER)
		lose_device(device);
	/* Another thread may have lost its device at the same time. */
	if (fault->is_single_device && !is_device_lost(device))
		return EFFECT_NONE;
	atomic_fetch_add(&fault_points.n_faults, 1);
	if (fault->effect == EFFECT_FAIL)
		errno = fault->error;
	return fault->effect;
}

enum fault_effect fault_point_pass(enum fault_point point)
{
	return pass_point(point, NULL, NO_DEVICE);
}

enum fault_effect fault_point_pass_on_device(enum fault_point point, int device)
{
	return pass_point(point, NULL, device);
}

bool fault_point_fails_at(enum fault_point point, const void *caller)
{
	return pass_point(point, caller, NO_DEVICE) == EFFECT_FAIL;
}

bool fault_point_fails(enum fault_point point)
{
	return fault_point_pass(point) == EFFECT_FAIL;
}

size_t fault_points_byte_position(size_t nbytes)
{
	const size_t position = is_counting() ? fault_points.fault.position : 0;

	return nbytes == 0 ? 0 : position == POSITION_LAST ? nbytes - 1 : position % nbytes;
}
