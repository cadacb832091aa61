/*
 * fault_points - every place where the system can fail gsort, and a way to make it
 *
 * A program that is linked with fault_points.c, wrap_system.c and wrap_files.c, and with `--wrap`
 * for each function that has a __wrap_ twin there, calls the system by way of these twins. Each
 * call passes a fault point and is counted there. One fault can be armed at a time: that the nth
 * call that passes a point fails, or transfers less, or lies, once or from then on. So a test can
 * go through all n. A device that fails from then on fails in all that it is asked to do, unless
 * it only has no memory, or cannot be opened; and so do all devices, unless only one is lost:
 * then the others go on.
 *
 * The twins also keep accounts: threads started and joined, pages mapped and unmapped. A thread
 * that belongs to the test itself exempts itself, and its calls count nothing.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct backend;

enum fault_point {
	POINT_OPEN,
	POINT_CLOSE,
	POINT_STAT, /* stat and its like */
	POINT_READ, /* of what is neither output nor temporary */
	POINT_READ_BACK,
	POINT_READ_TEMP,
	POINT_READ_MANIFEST, /* of a checkpoint, whose runs are temporary */
	POINT_WRITE,
	POINT_WRITE_TEMP,
	POINT_WRITE_MANIFEST,
	POINT_PREALLOCATE,
	POINT_PUNCH,
	POINT_TRUNCATE,
	POINT_SYNC,
	POINT_LINK,
	POINT_RENAME,
	POINT_PERMISSIONS,
	POINT_MKDIR,
	POINT_UNLINK, /* names of files and directories */
	POINT_LOCK,
	POINT_STREAM,  /* opening, writing out and closing a stdio stream */
	POINT_EVENTFD, /* making a descriptor to wake somebody by */
	POINT_ALLOCATION,
	POINT_THREAD,
	POINT_DEVICE_OPEN,
	POINT_DEVICE_ALLOCATION,
	POINT_DEVICE_PEER, /* of two devices, one by the other's memory */
	/* What a device is asked to do: see failing_backend.c. */
	POINT_DEVICE_QUEUE, /* queues and marks */
	POINT_DEVICE_COPY,  /* and what else prepares, or looks at, one range */
	POINT_DEVICE_SORT,
	POINT_DEVICE_CUT,
	POINT_DEVICE_MERGE,
	POINT_DEVICE_WAIT, /* its answer */
	/* And of CUDA's runtime besides: see wrap_cuda.c. */
	POINT_DEVICE_KERNEL_IMAGE, /* whether there is any for it */
	POINT_DEVICE_SELECT,
	POINT_DEVICE_EVENT,
	POINT_DEVICE_LAUNCH,
	POINT_DEVICE_TIMING,
	POINT_DEVICE_FREE,
	N_POINTS,
};

#define POINT_FIRST_DEVICE_CALL POINT_DEVICE_QUEUE

enum fault_effect {
	EFFECT_NONE,
	EFFECT_FAIL,        /* -1 and the errno */
	EFFECT_SHORT,       /* a transfer moves only half of the bytes */
	EFFECT_EOF,         /* a transfer moves nothing and says so */
	EFFECT_LOSE_WRITE,  /* a write says that it is done, but nothing is written */
	EFFECT_ALTER_WRITE, /* a write changes a byte on the way */
	/* Before a read at an offset, somebody else ... */
	EFFECT_CORRUPT,     /* changes a byte of what it will read */
	EFFECT_TRUNCATE,    /* cuts the file within it */
	EFFECT_TRAP_DEVICE, /* the device itself breaks, for good: see wrap_cuda.c */
};

struct fault {
	enum fault_point point;
	unsigned nth;     /* from 1 */
	unsigned n_times; /* how often in a row; UINT_MAX: from then on */
	enum fault_effect effect;
	int error;             /* of EFFECT_FAIL */
	bool is_single_device; /* the device that it befalls is lost for good, and no other */
	size_t position; /* of ALTER, DAMAGE, CUT: the byte of the transfer, modulo its size */
};

#define FAULT_FOREVER UINT_MAX
#define POSITION_LAST SIZE_MAX

extern const char *const fault_point_names[N_POINTS];

/* Begin to count, with a fault to come, or NULL for none. */
void fault_points_arm(const struct fault *fault);

/*
 * Besides any fault that is armed then, every write of the output fails from the nth on, which does
 * not count as one; 0: none.
 */
void fault_points_interrupt_at(unsigned nth_write);

/* Stop counting; nothing fails any more. */
void fault_points_disarm(void);

/* How often the point was passed between arm and disarm. */
unsigned fault_points_n_passed(enum fault_point point);

/* The device that was lost, while others go on; -1: none. */
int fault_points_lost_device(void);

/* How often the fault took effect. */
unsigned fault_points_n_injected(void);

/* A place in the code that calls a twin, and the first of its calls, as counted at the point. */
struct call_site {
	const void *address;
	enum fault_point point;
	unsigned nth;
};

enum { MAX_CALL_SITES = 512 };

/* The places that passed a point since arm, of the twins that know them. How many there are. */
size_t fault_points_get_sites(struct call_site ret_sites[static MAX_CALL_SITES]);

/* What was begun and not ended since fault_points_arm(): threads, mapped pages, what a device gave.
 */
struct resource_balance {
	int n_threads;
	int n_pages;
	int n_device_objects;
};

struct resource_balance fault_points_get_balance(void);

/* The calling thread is the test's, not gsort's. */
void fault_points_exempt_thread(void);

/* Files that are opened below here are temporary. */
void fault_points_set_temp_prefix(const char *prefix);

/* Set whether the page cache is cold and too small, and whether I/O bypasses it where possible. */
void fault_points_set_page_cache(bool is_cold, bool may_bypass);

/* Which back end __wrap_backend_choose() gives: see failing_backend.c. */
enum test_device_kind {
	TEST_DEVICE_CPU,         /* the CPU itself: it fails by its allocations and threads */
	TEST_DEVICE_UNIFIED,     /* a device that can fail, on the host's memory */
	TEST_DEVICE_SEPARATE,    /* one with memory of its own, or several */
	TEST_DEVICE_PEER_ACCESS, /* the same; several may copy from each other */
	TEST_DEVICE_CUDA,        /* CUDA's, with fault points below: see wrap_cuda.c */
};

void fault_points_set_device(enum test_device_kind kind);

/* How many are there? If none, *ret_reason says why. Called once, before anything else. */
unsigned fault_points_n_devices(const char **ret_reason);

/* For the twins: what becomes of this call. EFFECT_FAIL: errno is set. */
enum fault_effect fault_point_pass(enum fault_point point);

/* The same of a call that is made on a device of that number; -1: on none of them. */
enum fault_effect fault_point_pass_on_device(enum fault_point point, int device);

/* Does the call fail? With errno set. */
bool fault_point_fails(enum fault_point point);

/* As fault_point_fails(), for a call from that place. */
bool fault_point_fails_at(enum fault_point point, const void *caller);

/* Which byte of a transfer the fault is about. */
size_t fault_points_byte_position(size_t nbytes);

/* Something of the balance was given to gsort, or taken back. */
enum tracked_resource {
	RESOURCE_THREAD,
	RESOURCE_MAPPED_PAGE,
	RESOURCE_DEVICE_OBJECT,
	N_TRACKED_RESOURCES
};

void fault_points_count_resource(enum tracked_resource resource, int n);
