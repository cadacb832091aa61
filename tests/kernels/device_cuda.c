/*
 * device_cuda.c - device memory for kernel tests
 */
#include "tests/kernels/device.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/unit_test.h"

static void check(cudaError_t error, const char *what)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
	abort();
}

const char *unit_tests_skip_reason(void)
{
	int n = 0;
	const cudaError_t error = cudaGetDeviceCount(&n);

	return error != cudaSuccess ? cudaGetErrorString(error) :
	       n == 0               ? "there is no device" :
				      NULL;
}

void *kernel_memory_alloc(size_t nbytes)
{
	void *memory;

	check(cudaMalloc(&memory, nbytes ? nbytes : 1), "cudaMalloc");
	check(cudaMemset(memory, 0xa5, nbytes), "cudaMemset");
	return memory;
}

void kernel_memory_free(void *memory, size_t nbytes)
{
	(void)nbytes;
	check(cudaFree(memory), "cudaFree");
}

void kernel_memory_write(void *to, const void *from, size_t nbytes)
{
	check(cudaMemcpy(to, from, nbytes, cudaMemcpyHostToDevice), "upload");
}

void kernel_memory_read(void *to, const void *from, size_t nbytes)
{
	check(cudaDeviceSynchronize(), "kernels");
	check(cudaMemcpy(to, from, nbytes, cudaMemcpyDeviceToHost), "download");
}

/* KERNEL_TESTS=short selects short inputs: under compute-sanitizer a GPU is as slow as a CPU. */
bool device_is_fast(void)
{
	const char *choice = getenv("KERNEL_TESTS");

	return !choice || strcmp(choice, "short") != 0;
}
