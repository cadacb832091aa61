/*
 * bench_kernel_records - time what sorting records on a GPU consists of (see
 * bench_kernel_records.h)
 *
 * Rates count every byte of a record read and written, as those of the copy do, so that the last
 * column says how much of its bandwidth a step reaches. The first run is checked: the items are in
 * order, as gather sees it in their keys, and have the digest of the records.
 */
#include "tools/bench/bench_kernel_records.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/kernels.h"
#include "tools/bench/bench_cub.h"

enum { ELEMENT_NBYTES = 16, KEY_NBYTES = 10, N_SLICES = 16 };

struct records_bench {
	uint32_t record_nbytes;
	uint64_t n;
	char *records, *items;
	void *elements, *sorted, *scratch, *tables;
	struct digest *input_digest;
	struct kernel_gather_result *result;
	struct kernel_slice slices[N_SLICES];
	struct kernel_items record_items, slice_items; /* of the records; of sorted slices */
};

static size_t max_size(size_t a, size_t b)
{
	return a > b ? a : b;
}

static struct kernel_items prepare_items(const struct records_bench *bench,
					 const struct kernel_slice *slices, uint32_t k,
					 void *tables)
{
	const struct key_field field = { .nbytes = KEY_NBYTES };
	struct kernel_items items = { .item_nbytes = bench->record_nbytes,
				      .body_nbytes = bench->record_nbytes,
				      .keys = { &field, 1, KEY_NBYTES } };

	bench_check_cuda(launch_prepare_items(&items, slices, k, tables, NULL), "tables");
	return items;
}

static void open_bench(struct records_bench *bench, uint32_t record_nbytes, uint64_t n)
{
	const struct kernel_slice records_slice = { bench_device_alloc(n * record_nbytes), n };
	const size_t scratch_nbytes =
		max_size(kernel_sort_scratch_nbytes(n, ELEMENT_NBYTES),
			 kernel_merge_scratch_nbytes(N_SLICES, n, ELEMENT_NBYTES));

	*bench = (struct records_bench){ .record_nbytes = record_nbytes, .n = n };
	bench->records = (char *)records_slice.elements;
	bench->items = bench_device_alloc(n * record_nbytes);
	bench->elements = bench_device_alloc(n * ELEMENT_NBYTES);
	bench->sorted = bench_device_alloc(n * ELEMENT_NBYTES);
	bench->scratch = bench_device_alloc(scratch_nbytes);
	bench->tables = bench_device_alloc(2 * kernel_items_nbytes(N_SLICES, 1));
	bench->input_digest = bench_device_alloc(sizeof *bench->input_digest);
	bench->result = bench_device_alloc(sizeof *bench->result);
	bench_check_cuda(bench_fill_keys(bench->records, 4, n * record_nbytes / 4, KEYS_RANDOM),
			 "fill");
	bench->record_items = prepare_items(bench, &records_slice, 1, bench->tables);
	for (uint32_t i = 0; i < N_SLICES; i++)
		bench->slices[i] =
			(struct kernel_slice){ bench->items + i * (n / N_SLICES) * record_nbytes,
					       n / N_SLICES };
	bench->slice_items =
		prepare_items(bench, bench->slices, N_SLICES,
			      (char *)bench->tables + kernel_items_nbytes(N_SLICES, 1));
}

static void close_bench(struct records_bench *bench)
{
	cudaFree(bench->result);
	cudaFree(bench->input_digest);
	cudaFree(bench->tables);
	cudaFree(bench->scratch);
	cudaFree(bench->sorted);
	cudaFree(bench->elements);
	cudaFree(bench->items);
	cudaFree(bench->records);
}

static int run_copy(void *context)
{
	struct records_bench *bench = context;

	return cudaMemcpyAsync(bench->items, bench->records, bench->n * bench->record_nbytes,
			       cudaMemcpyDeviceToDevice, NULL);
}

static int run_make_elements(void *context)
{
	struct records_bench *bench = context;
	int r = cudaMemsetAsync(bench->input_digest, 0, sizeof *bench->input_digest, NULL);

	return r ? r :
		   launch_make_elements(&bench->record_items, bench->n, ELEMENT_NBYTES,
					bench->elements, bench->input_digest, NULL);
}

static void prepare_sort(void *context)
{
	bench_check_cuda(run_make_elements(context), "index");
}

static int run_sort(void *context)
{
	struct records_bench *bench = context;

	return launch_sort(bench->elements, bench->n, ELEMENT_NBYTES, bench->scratch, NULL);
}

static int gather(const struct records_bench *bench, const struct kernel_items *items,
		  const void *elements, void *out)
{
	const struct gather_task task = { .items = *items,
					  .elements = elements,
					  .element_nbytes = ELEMENT_NBYTES,
					  .n = bench->n,
					  .limit = UINT64_MAX,
					  .out_nbytes = bench->record_nbytes,
					  .out = out,
					  .result = bench->result };

	return launch_gather(&task, NULL);
}

static int run_gather(void *context)
{
	struct records_bench *bench = context;

	return gather(bench, &bench->record_items, bench->elements, bench->items);
}

static int run_all(void *context)
{
	int r = run_make_elements(context);

	r = r ? r : run_sort(context);
	return r ? r : run_gather(context);
}

static int run_merge_make_elements(void *context)
{
	struct records_bench *bench = context;

	return launch_make_elements(&bench->slice_items, bench->n, ELEMENT_NBYTES, bench->elements,
				    NULL, NULL);
}

static int run_merge(void *context)
{
	struct records_bench *bench = context;
	struct kernel_slice slices[N_SLICES];

	for (uint32_t i = 0; i < N_SLICES; i++)
		slices[i] =
			(struct kernel_slice){ (char *)bench->elements +
						       i * (bench->n / N_SLICES) * ELEMENT_NBYTES,
					       bench->n / N_SLICES };
	return launch_merge(slices, N_SLICES, ELEMENT_NBYTES, bench->sorted, bench->scratch, NULL);
}

static int run_merge_gather(void *context)
{
	struct records_bench *bench = context;

	return gather(bench, &bench->slice_items, bench->sorted, bench->records);
}

static void check_result(const struct records_bench *bench, const char *label)
{
	struct kernel_gather_result result;
	struct digest read;

	bench_check_cuda(cudaMemcpy(&read, bench->input_digest, sizeof read,
				    cudaMemcpyDeviceToHost),
			 "copy");
	bench_check_cuda(cudaMemcpy(&result, bench->result, sizeof result, cudaMemcpyDeviceToHost),
			 "copy");
	if (digest_equal(read, result.digest) && result.n_disorders == 0 && result.n == bench->n)
		return;
	printf("WRONG: %s of records of %u bytes\n", label, (unsigned)bench->record_nbytes);
	exit(2);
}

/* Sort what is in each slice of bench->records into that of bench->items. */
static void sort_slices(struct records_bench *bench)
{
	struct records_bench slice = *bench;
	void *const tables = bench_device_alloc(kernel_items_nbytes(1, 1));

	slice.n = bench->n / N_SLICES;
	for (uint32_t i = 0; i < N_SLICES; i++) {
		const struct kernel_slice from = {
			bench->records + i * slice.n * bench->record_nbytes, slice.n
		};

		slice.record_items = prepare_items(bench, &from, 1, tables);
		slice.items = (char *)bench->slices[i].elements;
		bench_check_cuda(launch_make_elements(&slice.record_items, slice.n, ELEMENT_NBYTES,
						      slice.elements, NULL, NULL),
				 "index");
		bench_check_cuda(run_sort(&slice), "sort");
		bench_check_cuda(run_gather(&slice), "gather");
	}
	bench_check_cuda(cudaDeviceSynchronize(), "slices");
	cudaFree(tables);
}

static float print_step(const struct records_bench *bench, const struct bench_options *options,
			struct bench_task task, const char *label, double copy_ms)
{
	const float ms = bench_median_ms(task, options->n_runs);
	const double nbytes = 2.0 * (double)bench->n * bench->record_nbytes;

	printf("%-26s %6u B  %11llu  %8.3f ms  %7.2f Grec/s  %7.1f GB/s", label,
	       (unsigned)bench->record_nbytes, (unsigned long long)bench->n, ms,
	       (double)bench->n / ms / 1e6, nbytes / ms / 1e6);
	if (copy_ms > 0)
		printf("  %5.1f %% of the copy's", 100 * copy_ms / ms);
	printf("\n");
	fflush(stdout);
	return ms;
}

static void bench_size(const struct bench_options *options, uint32_t record_nbytes, uint64_t n)
{
	struct records_bench bench;
	double copy_ms;

	open_bench(&bench, record_nbytes, n / N_SLICES * N_SLICES);
	copy_ms = print_step(&bench, options, (struct bench_task){ NULL, run_copy, &bench }, "copy",
			     0);
	print_step(&bench, options, (struct bench_task){ NULL, run_make_elements, &bench },
		   "index and digest", copy_ms);
	print_step(&bench, options, (struct bench_task){ prepare_sort, run_sort, &bench },
		   "sort elements", copy_ms);
	print_step(&bench, options, (struct bench_task){ NULL, run_gather, &bench },
		   "gather, random order", copy_ms);
	check_result(&bench, "gather");
	print_step(&bench, options, (struct bench_task){ NULL, run_all, &bench }, "sort records",
		   copy_ms);
	check_result(&bench, "sort");
	sort_slices(&bench);
	print_step(&bench, options, (struct bench_task){ NULL, run_merge_make_elements, &bench },
		   "index keys of 16 slices", copy_ms);
	print_step(&bench, options, (struct bench_task){ NULL, run_merge, &bench },
		   "merge elements", copy_ms);
	print_step(&bench, options, (struct bench_task){ NULL, run_merge_gather, &bench },
		   "gather, from 16 slices", copy_ms);
	check_result(&bench, "merge");
	close_bench(&bench);
}

void bench_kernel_records(const struct bench_options *options)
{
	static const uint32_t sizes[] = { 100, 16, 24, 60, 101, 200, 1024, 4096 };

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		if (!options->element_nbytes || options->element_nbytes == sizes[i])
			bench_size(options, sizes[i],
				   ((uint64_t)1 << 33) / (sizes[i] < 64 ? 64 : sizes[i]));
}
