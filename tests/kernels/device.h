/*
 * device - memory for the tests of the kernels: device memory, or plain guarded memory when the
 * kernels run on the CPU
 *
 * Two implementations, device_cpu.c and device_cuda.c; a test program is linked with one.
 * Everything ends the program on failure: a test has no use for less.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Is there a device? If not, *ret_why says why. */
bool device_usable(const char **ret_why);

void *device_alloc(size_t nbytes); /* filled with 0xa5 */
void device_free(void *memory, size_t nbytes);
void device_write(void *to, const void *from, size_t nbytes);

/* Waits for what has been queued. */
void device_read(void *to, const void *from, size_t nbytes);

/* Does the device run at hardware speed, so that tests may use long inputs? */
bool device_is_fast(void);
