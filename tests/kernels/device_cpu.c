/*
 * device_cpu - memory for kernels that run on the CPU: every buffer ends at an unmapped page
 */
#include "tests/kernels/device.h"

#include <string.h>

#include "tests/support/guarded.h"

bool device_usable(const char **ret_why)
{
	(void)ret_why;
	return true;
}

void *device_alloc(size_t nbytes)
{
	return guarded_alloc(nbytes);
}

void device_free(void *memory, size_t nbytes)
{
	guarded_free(memory, nbytes);
}

void device_write(void *to, const void *from, size_t nbytes)
{
	if (nbytes)
		memcpy(to, from, nbytes);
}

void device_read(void *to, const void *from, size_t nbytes)
{
	if (nbytes)
		memcpy(to, from, nbytes);
}

bool device_is_fast(void)
{
	return false;
}
