/*
 * fault_points.h - inject a fault into the n-th call of a kind of system call
 *
 * A program is linked with fault_points.c, wrap_system.c and wrap_files.c, and with `--wrap` for
 * each function that has a __wrap_ double there. So it calls the system through these doubles. Each
 * call passes a fault point, which counts it. One fault can be armed at a time: the nth call that
 * passes a point fails, transfers less, or falsely succeeds, once or from then on. So a test can
 * try each n.
 *
 * A device that fails from then on fails in all calls, except if it only lacks memory or cannot be
 * opened. All devices fail then, or only one of them (fault.is_single_device).
 *
 * The doubles also count resources: threads started and joined, pages mapped and unmapped. Threads
 * of the test itself are exempt: their calls neither fail nor count.
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
	POINT_STAT, /* stat, fstat, statvfs ... */
	POINT_READ, /* of files other than outputs and temporary files */
	POINT_READ_BACK,
	POINT_READ_TEMP,
	POINT_READ_MANIFEST, /* of a checkpoint; its runs are temporary files */
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
	POINT_EVENTFD, /* creating an eventfd */
	POINT_ALLOCATION,
	POINT_THREAD,
	POINT_DEVICE_OPEN,
	POINT_DEVICE_ALLOCATION,
	POINT_DEVICE_PEER, /* enabling access to the memory of another device */
	/* Calls of a back end: see failing_backend.c. */
	POINT_DEVICE_QUEUE, /* queues and events */
	POINT_DEVICE_COPY,  /* copy, encode, decode, pack, unpack and sample */
	POINT_DEVICE_SORT,
	POINT_DEVICE_CUT,
	POINT_DEVICE_MERGE,
	POINT_DEVICE_WAIT,
	/* More calls of CUDA's runtime: see wrap_cuda.c. */
	POINT_DEVICE_KERNEL_IMAGE, /* whether there is one for the device */
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
	EFFECT_FAIL,        /* the call returns -1 and sets errno */
	EFFECT_SHORT,       /* a transfer moves only half of the bytes */
	EFFECT_EOF,         /* a transfer moves nothing and returns 0 */
	EFFECT_LOSE_WRITE,  /* a write returns success, but nothing is written */
	EFFECT_ALTER_WRITE, /* a write changes one byte */
	EFFECT_CORRUPT,     /* a byte of the file changes before it is read */
	EFFECT_TRUNCATE,    /* the file is truncated before it is read, within the bytes to read */
	EFFECT_TRAP_DEVICE, /* a kernel breaks the context for good: see wrap_cuda.c */
};

struct fault {
	enum fault_point point;
	unsigned nth;     /* from 1 */
	unsigned n_times; /* consecutive calls; FAULT_FOREVER: all calls from then on */
	enum fault_effect effect;
	int error;             /* of EFFECT_FAIL */
	bool is_single_device; /* the device of the call is lost for good, the others are not */
	size_t position; /* of a changed byte, or of the cut, in the transfer, modulo its size */
};

#define FAULT_FOREVER UINT_MAX
#define POSITION_LAST SIZE_MAX

extern const char *const fault_point_names[N_POINTS];

/* Begin to count calls and arm a fault; NULL: none. */
void fault_points_arm(const struct fault *fault);

/*
 * Also fail every write of the output from the nth on, without counting that as a fault. 0: do not.
 */
void fault_points_interrupt_at(unsigned nth_write);

/* Stop counting and injecting. */
void fault_points_disarm(void);

/* Return how often the point was passed between arm and disarm. */
unsigned fault_points_n_passed(enum fault_point point);

/* Return the device that was lost while others were not; -1: none. */
int fault_points_lost_device(void);

/* Return how often the fault took effect. */
unsigned fault_points_n_injected(void);

/* A place in the code that calls a double, and the number of its first call at the point. */
struct call_site {
	const void *address;
	enum fault_point point;
	unsigned nth;
};

enum { MAX_CALL_SITES = 512 };

/* Get the call sites since arm, of the doubles that record them. Returns their number. */
size_t fault_points_get_sites(struct call_site ret_sites[static MAX_CALL_SITES]);

/* Resources acquired and not released since fault_points_arm(). */
struct resource_balance {
	int n_threads;
	int n_pages;
	int n_device_objects;
};

struct resource_balance fault_points_get_balance(void);

/* Exempt the calling thread, which belongs to the test. */
void fault_points_exempt_thread(void);

/* Set the directory below which files are temporary. */
void fault_points_set_temp_prefix(const char *prefix);

/* Set whether the page cache is cold and too small, and whether I/O bypasses it where possible. */
void fault_points_set_page_cache(bool is_cold, bool may_bypass);

/* The back end that __wrap_backend_choose() returns: see failing_backend.c. */
enum test_device_kind {
	TEST_DEVICE_CPU,         /* the CPU back end; only its allocations and threads fail */
	TEST_DEVICE_UNIFIED,     /* a failing device on the host's memory */
	TEST_DEVICE_SEPARATE,    /* failing devices with separate memory */
	TEST_DEVICE_PEER_ACCESS, /* failing devices that may copy from each other */
	TEST_DEVICE_CUDA,        /* the CUDA back end on a failing runtime: see wrap_cuda.c */
};

void fault_points_set_device(enum test_device_kind kind);

/* Count the devices. If there are none, *ret_reason is set. Called once, before all others. */
unsigned fault_points_n_devices(const char **ret_reason);

/* Pass a point in a double and return the effect on this call. EFFECT_FAIL: errno is set. */
enum fault_effect fault_point_pass(enum fault_point point);

/* Like fault_point_pass(), for a call on a device; -1: on none. */
enum fault_effect fault_point_pass_on_device(enum fault_point point, int device);

/* Pass a point and return whether the call fails, with errno set. */
bool fault_point_fails(enum fault_point point);

/* Like fault_point_fails(), and record the call site. */
bool fault_point_fails_at(enum fault_point point, const void *caller);

/* Return the byte of a transfer that the fault changes. */
size_t fault_points_byte_position(size_t nbytes);

/* Resources of the balance. */
enum tracked_resource {
	RESOURCE_THREAD,
	RESOURCE_MAPPED_PAGE,
	RESOURCE_DEVICE_OBJECT,
	N_TRACKED_RESOURCES
};

/* Add n resources that gsort acquired; negative: released. */
void fault_points_count_resource(enum tracked_resource resource, int n);
