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

/* Is there a device? If not, *ret_reason says why. */
bool kernel_memory_is_available(const char **ret_reason);

void *kernel_memory_alloc(size_t nbytes); /* filled with 0xa5 */
void kernel_memory_free(void *memory, size_t nbytes);
void kernel_memory_write(void *to, const void *from, size_t nbytes);

/* Waits for what has been queued. */
void kernel_memory_read(void *to, const void *from, size_t nbytes);

/* Does the device run at hardware speed, so that tests may use long inputs? */
bool device_is_fast(void);
