/*
 * trap_kernel - a kernel that ends the context that it runs in (see trap_kernel.h)
 */
#include "tests/fault/trap_kernel.h"

static __global__ void trap()
{
	asm volatile("trap;");
}

void launch_trap(void)
{
	trap<<<1, 1>>>();
	cudaDeviceSynchronize();
}
