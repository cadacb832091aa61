/*
 * subject - an opened back end, and arrays in its memory (see subject.h)
 */
#include "tests/backend/subject.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATTERN = 0xa5 };

void subject_must(int r, const char *what)
{
	if (r == 0)
		return;
	fprintf(stderr, "check_backend: %s: %s\n", what, strerror(-r));
	exit(EXIT_FAILURE);
}

int subject_open(const struct backend *backend, unsigned n_threads, struct subject *ret_subject)
{
	const struct backend_config config = { .n_threads = n_threads };
	struct subject subject;
	int r = device_open(backend, &config, &subject.device);

	if (r < 0)
		return r;
	device_get_info(subject.device, &subject.info);
	subject_must(device_queue_open(subject.device, QUEUE_PRIORITY_NORMAL, &subject.queue),
		     "device_queue_open");
	subject_must(device_event_open(subject.device, &subject.event), "device_event_open");
	*ret_subject = subject;
	return 0;
}

void subject_close(struct subject *subject)
{
	device_queue_close(subject->queue);
	device_event_close(subject->event);
	device_close(subject->device);
}

void subject_wait(struct subject *subject)
{
	subject_must(device_queue_synchronize(subject->queue, subject->event), "wait");
}

void array_free(struct subject *subject, struct array *array)
{
	if (array->host != array->device)
		device_free(subject->device, MEMORY_HOST, array->host, array->allocated_nbytes);
	device_free(subject->device, MEMORY_DEVICE, array->device, array->allocated_nbytes);
	*array = (struct array){ 0 };
}

static void array_reserve(struct subject *subject, struct array *array, size_t nbytes)
{
	void *host, *device;

	if (nbytes <= array->allocated_nbytes)
		return;
	array_free(subject, array);
	nbytes += nbytes / 2;
	subject_must(device_alloc(subject->device, MEMORY_DEVICE, nbytes, &device), "alloc");
	host = device;
	if (!subject->info.unified)
		subject_must(device_alloc(subject->device, MEMORY_HOST, nbytes, &host), "alloc");
	*array = (struct array){ .host = host, .device = device, .allocated_nbytes = nbytes };
}

/* All bytes of the array that are watched. */
static size_t watched_nbytes(const struct array *array)
{
	return array->start + array->nbytes + REDZONE_NBYTES;
}

static void array_copy(struct subject *subject, void *to, const void *from, size_t nbytes)
{
	if (!subject->info.unified)
		subject_must(device_queue_copy(subject->queue, to, from, nbytes), "copy");
}

void array_set(struct subject *subject, struct array *array, const void *from, size_t nbytes,
	       size_t shift)
{
	array_reserve(subject, array, REDZONE_NBYTES + shift + nbytes + REDZONE_NBYTES);
	array->start = REDZONE_NBYTES + shift;
	array->nbytes = nbytes;
	memset(array->host, PATTERN, watched_nbytes(array));
	if (from && nbytes)
		memcpy(array->host + array->start, from, nbytes);
	array_copy(subject, array->device, array->host, watched_nbytes(array));
}

void *array_device(const struct array *array)
{
	return array->device + array->start;
}

static bool holds_pattern(const char *bytes, size_t nbytes)
{
	for (size_t i = 0; i < nbytes; i++)
		if ((unsigned char)bytes[i] != PATTERN)
			return false;
	return true;
}

const void *array_get(struct subject *subject, const struct array *array)
{
	array_copy(subject, array->host, array->device, watched_nbytes(array));
	subject_wait(subject);
	if (holds_pattern(array->host, array->start) &&
	    holds_pattern(array->host + array->start + array->nbytes, REDZONE_NBYTES))
		return array->host + array->start;
	fprintf(stderr, "check_backend: something was written outside of an array\n");
	return NULL;
}
