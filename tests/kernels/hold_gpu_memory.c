/*
 * hold_gpu_memory.c - a program that allocates most of a GPU's memory
 *
 * usage: hold_gpu_memory MIB
 *
 * Leaves MIB free, prints a line, and holds the memory until standard input ends.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_STEP_NBYTES = 1 << 30, MIN_STEP_NBYTES = 2 << 20 };

int main(int argc, char **argv)
{
	char *end = NULL;
	const size_t left_nbytes = argc == 2 ? strtoull(argv[1], &end, 10) << 20 : 0;
	size_t free_nbytes = 0, total_nbytes, nbytes = MAX_STEP_NBYTES;
	void *memory;

	if (!end || end == argv[1] || *end) {
		fprintf(stderr, "usage: hold_gpu_memory MIB\n");
		return 2;
	}
	while (nbytes >= MIN_STEP_NBYTES) {
		if (cudaMemGetInfo(&free_nbytes, &total_nbytes) != cudaSuccess)
			return 1;
		if (free_nbytes < left_nbytes + nbytes || cudaMalloc(&memory, nbytes))
			nbytes /= 2;
	}
	printf("%zu MiB left\n", free_nbytes >> 20);
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
