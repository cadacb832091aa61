/*
 * device_cpu.c - memory for kernels on the CPU: each buffer ends at an unmapped page
 */
#include "tests/kernels/device.h"

#include <string.h>

#include "tests/support/guarded.h"

void *kernel_memory_alloc(size_t nbytes)
{
	return guarded_alloc(nbytes);
}

void kernel_memory_free(void *memory, size_t nbytes)
{
	guarded_free(memory, nbytes);
}

void kernel_memory_write(void *to, const void *from, size_t nbytes)
{
	if (nbytes)
		memcpy(to, from, nbytes);
}

void kernel_memory_read(void *to, const void *from, size_t nbytes)
{
	if (nbytes)
		memcpy(to, from, nbytes);
}

bool device_is_fast(void)
{
	return false;
}
