/*
 * subject - an opened back end, and arrays in its memory that are watched on both sides
 *
 * An array is what operations work on: `device` memory, and `host` memory as its copy (the same, if
 * the device is unified). Both hold a pattern around the data, which array_get() checks, so that an
 * operation that writes one byte too far is seen on any device.
 *
 *	| pattern, REDZONE and `shift` bytes | data, nbytes | pattern, REDZONE bytes |
 *
 * Everything here ends the program with a message when the back end fails: there is nothing left to
 * be tested then.
 */
#pragma once

#include "src/device/device.h"

/* A page, so that data without a shift is aligned as what alloc_window_memory() returns. */
enum { REDZONE_NBYTES = 4096 };

struct subject {
	struct device *device;
	struct device_info info;
	struct device_queue *queue;
	struct device_event *event;
};

/* -ENODEV when the back end has no device. */
int subject_open(const struct backend *backend, unsigned n_threads, struct subject *ret_subject);
void subject_close(struct subject *subject);

/* End the program unless r, which `what` returned, is 0. */
void subject_must(int r, const char *what);

/* Until all that was queued in the subject's lane is done. */
void subject_wait(struct subject *subject);

/* Made by {0}. */
struct array {
	char *host, *device;
	size_t allocated_nbytes;
	size_t start, nbytes; /* of the data */
};

/*
 * The array becomes a copy of nbytes at `from` (NULL: of the pattern), `shift` bytes from an
 * aligned address.
 */
void array_set(struct subject *subject, struct array *array, const void *from, size_t nbytes,
	       size_t shift);

/* What operations are given. */
void *array_device(const struct array *array);

/*
 * Wait for what was queued, and bring the data to the host: valid until the next array_set(). NULL,
 * after a message, when something was written outside of it.
 */
const void *array_get(struct subject *subject, const struct array *array);

void array_free(struct subject *subject, struct array *array);
