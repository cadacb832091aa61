/*
 * trap - a kernel that ends the context that it runs in (see trap.h)
 */
#include "tests/fault/trap.h"

static __global__ void trap()
{
	asm volatile("trap;");
}

void launch_trap(void)
{
	trap<<<1, 1>>>();
	cudaDeviceSynchronize();
}
