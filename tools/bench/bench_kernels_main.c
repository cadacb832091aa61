/*
 * bench_kernels_main - gsort-bench-kernels: the kernel benchmarks as a program of their own
 *
 * It needs nothing but the driver, so it can be built on one machine and run on another that has
 * the GPU.
 */
#include "tools/bench/bench_kernels.h"

int main(int argc, char **argv)
{
	return bench_kernels(argc - (argc > 1), argv + (argc > 1));
}
