/*
 * fault_points - every place where the system can fail gsort, and a way to make it (see fault_points.h)
 */
#include "tests/fault/fault_points.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

const char *const point_names[N_POINTS] = {
	[POINT_OPEN] = "open",
	[POINT_CLOSE] = "close",
	[POINT_EXAMINE] = "examine",
	[POINT_READ] = "read",
	[POINT_READ_BACK] = "read-back",
	[POINT_READ_TEMPORARY] = "read-temporary",
	[POINT_READ_MANIFEST] = "read-manifest",
	[POINT_WRITE] = "write",
	[POINT_WRITE_TEMPORARY] = "write-temporary",
	[POINT_WRITE_MANIFEST] = "write-manifest",
	[POINT_PREALLOCATE] = "preallocate",
	[POINT_PUNCH] = "punch",
	[POINT_TRUNCATE] = "truncate",
	[POINT_SYNC] = "sync",
	[POINT_LINK] = "link",
	[POINT_RENAME] = "rename",
	[POINT_PERMISSIONS] = "permissions",
	[POINT_MAKE_DIRECTORY] = "make-directory",
	[POINT_REMOVE] = "remove",
	[POINT_LOCK] = "lock",
	[POINT_STREAM] = "stream",
	[POINT_EVENT] = "event",
	[POINT_ALLOCATION] = "allocation",
	[POINT_THREAD] = "thread",
	[POINT_DEVICE_OPEN] = "device-open",
	[POINT_DEVICE_ALLOCATION] = "device-allocation",
	[POINT_DEVICE_PEER] = "device-peer",
	[POINT_DEVICE_LANE] = "device-lane",
	[POINT_DEVICE_COPY] = "device-copy",
	[POINT_DEVICE_SORT] = "device-sort",
	[POINT_DEVICE_CUT] = "device-cut",
	[POINT_DEVICE_MERGE] = "device-merge",
	[POINT_DEVICE_WAIT] = "device-wait",
	[POINT_DEVICE_CODE] = "device-code",
	[POINT_DEVICE_USE] = "device-use",
	[POINT_DEVICE_EVENT] = "device-event",
	[POINT_DEVICE_LAUNCH] = "device-launch",
	[POINT_DEVICE_CLOCK] = "device-clock",
	[POINT_DEVICE_RELEASE] = "device-release",
};

enum { NO_DEVICE = -1, ALL_DEVICES = -2 };

static struct {
	/* Set while nothing is armed. */
	struct fault fault;
	unsigned broken_off_at;

	atomic_bool armed;
	atomic_uint n_passed[N_POINTS];
	atomic_uint n_faults;
	atomic_int lost_device; /* or one of these: */
	atomic_int n_given[N_THINGS];

	pthread_mutex_t lock; /* of what follows */
	struct site sites[MOST_SITES];
	size_t n_sites;
} points = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Thread_local bool exempt;

void points_arm(const struct fault *fault)
{
	static const struct fault none = { .effect = EFFECT_NONE };

	points.fault = fault ? *fault : none;
	for (int i = 0; i < N_POINTS; i++)
		atomic_store(&points.n_passed[i], 0);
	atomic_store(&points.n_faults, 0);
	atomic_store(&points.lost_device, NO_DEVICE);
	for (int i = 0; i < N_THINGS; i++)
		atomic_store(&points.n_given[i], 0);
	points.n_sites = 0;
	atomic_store(&points.armed, true);
}

void points_break_off_at(unsigned nth_write)
{
	points.broken_off_at = nth_write;
}

void points_disarm(void)
{
	atomic_store(&points.armed, false);
}

unsigned points_passed(enum point point)
{
	return atomic_load(&points.n_passed[point]);
}

unsigned points_n_faults(void)
{
	return atomic_load(&points.n_faults);
}

int points_lost_device(void)
{
	const int device = atomic_load(&points.lost_device);

	return device >= 0 ? device : -1;
}

struct points_balance points_balance(void)
{
	return (struct points_balance){
		.n_threads = atomic_load(&points.n_given[THING_THREAD]),
		.n_pages = atomic_load(&points.n_given[THING_MAPPED_PAGE]),
		.n_device = atomic_load(&points.n_given[THING_OF_DEVICE]),
	};
}

void points_exempt_thread(void)
{
	exempt = true;
}

static bool counting(void)
{
	return !exempt && atomic_load(&points.armed);
}

void points_gave(enum thing thing, int n)
{
	if (counting())
		atomic_fetch_add(&points.n_given[thing], n);
}

static bool is_lost(int device)
{
	const int lost = atomic_load(&points.lost_device);

	return lost == ALL_DEVICES || (lost >= 0 && lost == device);
}

/* Is it this call's turn, the nth that passes the point? */
static bool is_turn(enum point point, unsigned n, int device)
{
	const struct fault *fault = &points.fault;

	if (fault->effect == EFFECT_NONE)
		return false;
	if (point >= POINT_DEVICE_OPEN && is_lost(device))
		return true;
	if (point != fault->point || n < fault->nth)
		return false;
	/* The nth may be on no device; whichever is the next on one is lost. */
	if (fault->is_of_one)
		return device >= 0 && atomic_load(&points.lost_device) == NO_DEVICE;
	return n - fault->nth < fault->n_times;
}

static void lose_device(int device)
{
	int none = NO_DEVICE;

	atomic_compare_exchange_strong(&points.lost_device, &none,
				       points.fault.is_of_one ? device : ALL_DEVICES);
}

static bool is_broken_off(enum point point, unsigned n)
{
	return point == POINT_WRITE && points.broken_off_at && n >= points.broken_off_at;
}

size_t points_sites(struct site ret_sites[static MOST_SITES])
{
	memcpy(ret_sites, points.sites, points.n_sites * sizeof *ret_sites);
	return points.n_sites;
}

static void note_site(enum point point, const void *at, unsigned nth)
{
	size_t i = 0;

	pthread_mutex_lock(&points.lock);
	while (i < points.n_sites && (points.sites[i].at != at || points.sites[i].point != point))
		i++;
	if (i == points.n_sites && i < MOST_SITES)
		points.sites[points.n_sites++] = (struct site){ at, point, nth };
	pthread_mutex_unlock(&points.lock);
}

static enum effect pass(enum point point, const void *site, int device)
{
	const struct fault *fault = &points.fault;
	unsigned n;

	if (!counting())
		return EFFECT_NONE;
	n = atomic_fetch_add(&points.n_passed[point], 1) + 1;
	if (site)
		note_site(point, site, n);
	if (is_broken_off(point, n)) {
		errno = EIO;
		return EFFECT_FAIL;
	}
	if (!is_turn(point, n, device))
		return EFFECT_NONE;
	if (point >= POINT_FIRST_DEVICE_CALL && fault->n_times == FOR_GOOD)
		lose_device(device);
	/* Of two that have come at the same time, one has lost its device. */
	if (fault->is_of_one && !is_lost(device))
		return EFFECT_NONE;
	atomic_fetch_add(&points.n_faults, 1);
	if (fault->effect == EFFECT_FAIL)
		errno = fault->error;
	return fault->effect;
}

enum effect point_pass(enum point point)
{
	return pass(point, NULL, NO_DEVICE);
}

enum effect point_pass_on(enum point point, int device)
{
	return pass(point, NULL, device);
}

bool point_fails_at(enum point point, const void *site)
{
	return pass(point, site, NO_DEVICE) == EFFECT_FAIL;
}

bool point_fails(enum point point)
{
	return point_pass(point) == EFFECT_FAIL;
}

size_t points_fault_position(size_t nbytes)
{
	const size_t position = counting() ? points.fault.position : 0;

	return nbytes == 0 ? 0 : position == POSITION_LAST ? nbytes - 1 : position % nbytes;
}
