/*
 * device.h - device memory for kernel tests, or guarded host memory if kernels run on the CPU
 *
 * Implemented by device_cpu.c and device_cuda.c; a test program links one. Errors end the program.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

void *kernel_memory_alloc(size_t nbytes); /* filled with 0xa5 */
void kernel_memory_free(void *memory, size_t nbytes);
void kernel_memory_write(void *to, const void *from, size_t nbytes);

/* Read device memory after waiting for queued operations. */
void kernel_memory_read(void *to, const void *from, size_t nbytes);

/* Return whether the device is a real GPU, so that tests may use long inputs. */
bool device_is_fast(void);
