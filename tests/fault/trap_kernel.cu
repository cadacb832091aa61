/*
 * trap_kernel.cu - a kernel that breaks its CUDA context (see trap_kernel.h)
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
