/*
 * gpu_timing - time what runs on a GPU (see gpu_timing.h)
 */
#include "tools/bench/gpu_timing.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

void bench_check_cuda(int error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "gsort-bench: %s: %s\n", what, cudaGetErrorString((cudaError_t)error));
	exit(2);
}

void *bench_device_alloc(size_t nbytes)
{
	void *memory;

	bench_check_cuda(cudaMalloc(&memory, nbytes + 256), "device memory");
	return memory;
}

static int compare_float(const void *x, const void *y)
{
	const float a = *(const float *)x, b = *(const float *)y;

	return (a > b) - (a < b);
}

static float run_once(struct bench_task task, cudaEvent_t start, cudaEvent_t end)
{
	float ms;

	if (task.prepare)
		task.prepare(task.context);
	bench_check_cuda(cudaEventRecord(start, NULL), "event");
	bench_check_cuda(task.run(task.context), "launch");
	bench_check_cuda(cudaEventRecord(end, NULL), "event");
	bench_check_cuda(cudaEventSynchronize(end), "kernels");
	bench_check_cuda(cudaEventElapsedTime(&ms, start, end), "event");
	return ms;
}

float bench_median_ms(struct bench_task task, unsigned n_runs)
{
	cudaEvent_t start, end;
	float ms[BENCH_MAX_RUNS];

	bench_check_cuda(cudaEventCreate(&start), "event");
	bench_check_cuda(cudaEventCreate(&end), "event");
	run_once(task, start, end);
	for (unsigned i = 0; i < n_runs; i++)
		ms[i] = run_once(task, start, end);
	cudaEventDestroy(start);
	cudaEventDestroy(end);
	qsort(ms, n_runs, sizeof *ms, compare_float);
	return ms[n_runs / 2];
}

void bench_print_row(const char *label, uint32_t element_nbytes, uint64_t n, float ms,
		     float base_ms)
{
	printf("%-34s %2u B  %11llu  %8.3f ms  %7.2f Gkey/s  %7.1f GB/s", label,
	       (unsigned)element_nbytes, (unsigned long long)n, ms, (double)n / ms / 1e6,
	       (double)n * element_nbytes / ms / 1e6);
	if (base_ms > 0)
		printf("  %5.2f x", base_ms / ms);
	printf("\n");
	fflush(stdout);
}
