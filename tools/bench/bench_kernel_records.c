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
	struct digest *read;
	struct gather_findings *findings;
	struct kernel_slice slices[N_SLICES];
	struct kernel_items view, merge_view; /* of the records; of sorted slices */
};

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static struct kernel_items view_items(const struct records_bench *bench,
				      const struct kernel_slice *slices, uint32_t k, void *tables)
{
	const struct key_field field = { .nbytes = KEY_NBYTES };
	struct kernel_items view = { .item_nbytes = bench->record_nbytes,
				     .body_nbytes = bench->record_nbytes,
				     .keys = { &field, 1, KEY_NBYTES } };

	bench_check(launch_view_items(&view, slices, k, tables, NULL), "tables");
	return view;
}

static void open_bench(struct records_bench *bench, uint32_t record_nbytes, uint64_t n)
{
	const struct kernel_slice all = { bench_alloc(n * record_nbytes), n };
	const size_t scratch_nbytes =
		larger(kernel_sort_scratch_nbytes(n, ELEMENT_NBYTES),
		       kernel_merge_scratch_nbytes(N_SLICES, n, ELEMENT_NBYTES));

	*bench = (struct records_bench){ .record_nbytes = record_nbytes, .n = n };
	bench->records = (char *)all.elements;
	bench->items = bench_alloc(n * record_nbytes);
	bench->elements = bench_alloc(n * ELEMENT_NBYTES);
	bench->sorted = bench_alloc(n * ELEMENT_NBYTES);
	bench->scratch = bench_alloc(scratch_nbytes);
	bench->tables = bench_alloc(2 * kernel_items_nbytes(N_SLICES, 1));
	bench->read = bench_alloc(sizeof *bench->read);
	bench->findings = bench_alloc(sizeof *bench->findings);
	bench_check(reference_fill(bench->records, 4, n * record_nbytes / 4, KEYS_RANDOM), "fill");
	bench->view = view_items(bench, &all, 1, bench->tables);
	for (uint32_t i = 0; i < N_SLICES; i++)
		bench->slices[i] =
			(struct kernel_slice){ bench->items + i * (n / N_SLICES) * record_nbytes,
					       n / N_SLICES };
	bench->merge_view = view_items(bench, bench->slices, N_SLICES,
				       (char *)bench->tables + kernel_items_nbytes(N_SLICES, 1));
}

static void close_bench(struct records_bench *bench)
{
	cudaFree(bench->findings);
	cudaFree(bench->read);
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

static int run_index(void *context)
{
	struct records_bench *bench = context;
	int r = cudaMemsetAsync(bench->read, 0, sizeof *bench->read, NULL);

	return r ? r :
		   launch_index(&bench->view, bench->n, ELEMENT_NBYTES, bench->elements,
				bench->read, NULL);
}

static void prepare_sort(void *context)
{
	bench_check(run_index(context), "index");
}

static int run_sort(void *context)
{
	struct records_bench *bench = context;

	return launch_sort(bench->elements, bench->n, ELEMENT_NBYTES, bench->scratch, NULL);
}

static int gather(const struct records_bench *bench, const struct kernel_items *view,
		  const void *elements, void *out)
{
	const struct gather_task task = { .items = *view,
					  .elements = elements,
					  .element_nbytes = ELEMENT_NBYTES,
					  .n = bench->n,
					  .limit = UINT64_MAX,
					  .out_nbytes = bench->record_nbytes,
					  .out = out,
					  .findings = bench->findings };

	return launch_gather(&task, NULL);
}

static int run_gather(void *context)
{
	struct records_bench *bench = context;

	return gather(bench, &bench->view, bench->elements, bench->items);
}

static int run_all(void *context)
{
	int r = run_index(context);

	r = r ? r : run_sort(context);
	return r ? r : run_gather(context);
}

static int run_merge_index(void *context)
{
	struct records_bench *bench = context;

	return launch_index(&bench->merge_view, bench->n, ELEMENT_NBYTES, bench->elements, NULL,
			    NULL);
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

	return gather(bench, &bench->merge_view, bench->sorted, bench->records);
}

static void check_findings(const struct records_bench *bench, const char *what)
{
	struct gather_findings findings;
	struct digest read;

	bench_check(cudaMemcpy(&read, bench->read, sizeof read, cudaMemcpyDeviceToHost), "copy");
	bench_check(cudaMemcpy(&findings, bench->findings, sizeof findings, cudaMemcpyDeviceToHost),
		    "copy");
	if (digest_equal(read, findings.digest) && findings.n_disorders == 0 &&
	    findings.n == bench->n)
		return;
	printf("WRONG: %s of records of %u bytes\n", what, (unsigned)bench->record_nbytes);
	exit(2);
}

/* Sort what is in each slice of bench->records into that of bench->items. */
static void sort_slices(struct records_bench *bench)
{
	struct records_bench slice = *bench;
	void *const tables = bench_alloc(kernel_items_nbytes(1, 1));

	slice.n = bench->n / N_SLICES;
	for (uint32_t i = 0; i < N_SLICES; i++) {
		const struct kernel_slice from = {
			bench->records + i * slice.n * bench->record_nbytes, slice.n
		};

		slice.view = view_items(bench, &from, 1, tables);
		slice.items = (char *)bench->slices[i].elements;
		bench_check(launch_index(&slice.view, slice.n, ELEMENT_NBYTES, slice.elements, NULL,
					 NULL),
			    "index");
		bench_check(run_sort(&slice), "sort");
		bench_check(run_gather(&slice), "gather");
	}
	bench_check(cudaDeviceSynchronize(), "slices");
	cudaFree(tables);
}

static float print_step(const struct records_bench *bench, const struct bench_options *options,
			struct bench_timed timed, const char *what, double copy_ms)
{
	const float ms = bench_median_ms(timed, options->n_runs);
	const double nbytes = 2.0 * (double)bench->n * bench->record_nbytes;

	printf("%-26s %6u B  %11llu  %8.3f ms  %7.2f Grec/s  %7.1f GB/s", what,
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
	copy_ms = print_step(&bench, options, (struct bench_timed){ NULL, run_copy, &bench },
			     "copy", 0);
	print_step(&bench, options, (struct bench_timed){ NULL, run_index, &bench },
		   "index and digest", copy_ms);
	print_step(&bench, options, (struct bench_timed){ prepare_sort, run_sort, &bench },
		   "sort elements", copy_ms);
	print_step(&bench, options, (struct bench_timed){ NULL, run_gather, &bench },
		   "gather, random order", copy_ms);
	check_findings(&bench, "gather");
	print_step(&bench, options, (struct bench_timed){ NULL, run_all, &bench }, "sort records",
		   copy_ms);
	check_findings(&bench, "sort");
	sort_slices(&bench);
	print_step(&bench, options, (struct bench_timed){ NULL, run_merge_index, &bench },
		   "index keys of 16 slices", copy_ms);
	print_step(&bench, options, (struct bench_timed){ NULL, run_merge, &bench },
		   "merge elements", copy_ms);
	print_step(&bench, options, (struct bench_timed){ NULL, run_merge_gather, &bench },
		   "gather, from 16 slices", copy_ms);
	check_findings(&bench, "merge");
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
