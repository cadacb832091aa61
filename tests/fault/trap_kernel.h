/*
 * trap_kernel.h - a kernel that breaks its CUDA context
 *
 * Every later call of CUDA's runtime in this process fails: it is a real sticky error.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Launch the kernel and wait for it. NULL if kernels run on the CPU. */
void launch_trap(void) __attribute__((weak));

#ifdef __cplusplus
}
#endif
