/*
 * bench_kernels_main.c - gsort-bench-kernels: the kernel benchmarks as a program of their own
 *
 * It needs only the CUDA driver, so it can be built on one machine and run on another.
 */
#include "tools/bench/bench.h"

int main(int argc, char **argv)
{
	return bench_kernels(argc - (argc > 1), argv + (argc > 1));
}
