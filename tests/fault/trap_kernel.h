/*
 * trap_kernel - a kernel that ends the context that it runs in
 *
 * After that every call of CUDA's runtime fails for as long as the process lives: an error that
 * sticks, for real.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* It has happened when it returns. NULL where kernels run on the CPU. */
void launch_trap(void) __attribute__((weak));

#ifdef __cplusplus
}
#endif
