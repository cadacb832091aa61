/*
 * bench_kernels.c - gsort-bench-kernels: the kernels against CUB and Thrust, in device memory
 *
 * It needs only the CUDA driver, so it can be built on one machine and run on another.
 *
 * Each figure is the median of several runs, timed by events on the device. The input is copied
 * again before each run, outside of the timed part. The first run, which also warms up, is checked:
 * the output must equal, bit for bit, what CUB's radix sort makes of the same input. Everything is
 * in the default stream. Errors end the program with status 2.
 */
#include <cuda_runtime_api.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "src/base/int_math.h"
#include "tools/bench/bench_device.h"

/* --- timing --- */

enum { BENCH_MAX_RUNS = 101 };

struct bench_options {
	unsigned n_runs;
	unsigned log2_n;         /* 0: the default sizes of the benchmark */
	uint32_t element_nbytes; /* 0: all */
	bool compares_cub;       /* also time CUB and Thrust */
};

static void bench_check_cuda(int error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "gsort-bench-kernels: %s: %s\n", what,
		cudaGetErrorString((cudaError_t)error));
	exit(2);
}

static void *bench_device_alloc(size_t nbytes)
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

/* `run` is timed, `prepare` (may be NULL) is not. The first run only warms up. */
static float bench_median_ms(const struct bench_options *options, void (*prepare)(void *context),
			     int (*run)(void *context), void *context)
{
	cudaEvent_t start, end;
	float ms[1 + BENCH_MAX_RUNS];

	bench_check_cuda(cudaEventCreate(&start), "event");
	bench_check_cuda(cudaEventCreate(&end), "event");
	for (unsigned i = 0; i <= options->n_runs; i++) {
		if (prepare)
			prepare(context);
		bench_check_cuda(cudaEventRecord(start, NULL), "event");
		bench_check_cuda(run(context), "launch");
		bench_check_cuda(cudaEventRecord(end, NULL), "event");
		bench_check_cuda(cudaEventSynchronize(end), "kernels");
		bench_check_cuda(cudaEventElapsedTime(&ms[i], start, end), "event");
	}
	cudaEventDestroy(start);
	cudaEventDestroy(end);
	qsort(ms + 1, options->n_runs, sizeof *ms, compare_float);
	return ms[1 + options->n_runs / 2];
}

static void bench_print_row(const char *label, uint32_t element_nbytes, uint64_t n, float ms,
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

/* --- sorting elements --- */

struct sort_bench {
	uint32_t element_nbytes;
	uint64_t n;
	void *input, *elements, *sorted, *scratch;
	size_t scratch_nbytes;
};

static void sort_prepare(void *context)
{
	struct sort_bench *bench = context;

	bench_check_cuda(cudaMemcpyAsync(bench->elements, bench->input,
					 bench->n * bench->element_nbytes, cudaMemcpyDeviceToDevice,
					 NULL),
			 "copy");
}

static int sort_with_gsort(void *context)
{
	struct sort_bench *bench = context;

	return launch_sort(bench->elements, bench->n, bench->element_nbytes, bench->scratch, NULL);
}

static int sort_with_cub_radix(void *context)
{
	struct sort_bench *bench = context;

	return cub_radix_sort(bench->scratch, &bench->scratch_nbytes, bench->input, bench->sorted,
			      bench->element_nbytes, bench->n);
}

static int sort_with_cub_merge(void *context)
{
	struct sort_bench *bench = context;

	return cub_merge_sort(bench->scratch, &bench->scratch_nbytes, bench->elements,
			      bench->element_nbytes, bench->n);
}

static void sort_bench_open(struct sort_bench *bench, uint32_t element_nbytes, uint64_t n)
{
	const size_t nbytes = n * element_nbytes;
	size_t scratch_nbytes = 0;

	*bench = (struct sort_bench){ .element_nbytes = element_nbytes, .n = n };
	bench->input = bench_device_alloc(nbytes);
	bench->elements = bench_device_alloc(nbytes);
	bench->sorted = bench_device_alloc(nbytes);
	bench->scratch_nbytes = kernel_sort_scratch_nbytes(n, element_nbytes);
	bench_check_cuda(cub_radix_sort(NULL, &scratch_nbytes, NULL, NULL, element_nbytes, n),
			 "size");
	bench->scratch_nbytes = u64_max(bench->scratch_nbytes, scratch_nbytes);
	bench_check_cuda(cub_merge_sort(NULL, &scratch_nbytes, NULL, element_nbytes, n), "size");
	bench->scratch_nbytes = u64_max(bench->scratch_nbytes, scratch_nbytes);
	bench->scratch = bench_device_alloc(bench->scratch_nbytes);
}

static void sort_bench_close(struct sort_bench *bench)
{
	cudaFree(bench->scratch);
	cudaFree(bench->sorted);
	cudaFree(bench->elements);
	cudaFree(bench->input);
}

/* Sort once and compare with the radix sort; ends the program if they differ. */
static void sort_check(struct sort_bench *bench, enum key_distribution distribution)
{
	bool is_different;

	bench_check_cuda(bench_fill_keys(bench->input, bench->element_nbytes, bench->n,
					 distribution),
			 "fill");
	bench_check_cuda(sort_with_cub_radix(bench), "radix sort");
	sort_prepare(bench);
	bench_check_cuda(sort_with_gsort(bench), "sort");
	bench_check_cuda(bench_compare_memory(bench->elements, bench->sorted,
					      bench->n * bench->element_nbytes, &is_different),
			 "compare");
	if (is_different) {
		printf("WRONG: sort of %s, %u B, n %llu\n", key_distribution_names[distribution],
		       (unsigned)bench->element_nbytes, (unsigned long long)bench->n);
		exit(2);
	}
}

static void bench_sort_size(const struct bench_options *options, uint32_t element_nbytes,
			    unsigned log2_n)
{
	struct sort_bench bench;
	float gsort_ms, merge_ms = 0;

	sort_bench_open(&bench, element_nbytes, (uint64_t)1 << log2_n);
	sort_check(&bench, KEYS_RANDOM);
	if (options->compares_cub) {
		merge_ms = bench_median_ms(options, sort_prepare, sort_with_cub_merge, &bench);
		bench_print_row("cub::DeviceMergeSort", element_nbytes, bench.n, merge_ms, 0);
		bench_print_row("cub::DeviceRadixSort", element_nbytes, bench.n,
				bench_median_ms(options, NULL, sort_with_cub_radix, &bench),
				merge_ms);
	}
	gsort_ms = bench_median_ms(options, sort_prepare, sort_with_gsort, &bench);
	bench_print_row("gsort", element_nbytes, bench.n, gsort_ms, merge_ms);
	sort_bench_close(&bench);
}

static void bench_kernel_sort(const struct bench_options *options)
{
	static const struct {
		uint32_t element_nbytes;
		unsigned log2_n;
	} table[] = { { 4, 28 }, { 4, 30 }, { 8, 28 }, { 8, 30 }, { 16, 28 } };

	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		if (!options->element_nbytes || options->element_nbytes == table[i].element_nbytes)
			if (!options->log2_n || options->log2_n == table[i].log2_n)
				bench_sort_size(options, table[i].element_nbytes, table[i].log2_n);
}

static void bench_kernel_distributions(const struct bench_options *options)
{
	const unsigned log2_n = options->log2_n ? options->log2_n : 28;

	for (uint32_t nbytes = 4; nbytes <= 16; nbytes *= 2) {
		struct sort_bench bench;
		float random_ms = 0;

		if (options->element_nbytes && options->element_nbytes != nbytes)
			continue;
		sort_bench_open(&bench, nbytes, (uint64_t)1 << log2_n);
		for (enum key_distribution distribution = 0; distribution < N_KEY_DISTRIBUTIONS;
		     distribution++) {
			float ms;

			sort_check(&bench, distribution);
			ms = bench_median_ms(options, sort_prepare, sort_with_gsort, &bench);
			random_ms = distribution == KEYS_RANDOM ? ms : random_ms;
			bench_print_row(key_distribution_names[distribution], nbytes, bench.n, ms,
					random_ms);
		}
		sort_bench_close(&bench);
	}
}

/*
 * --- sorting and merging records ---
 *
 * Rates count each byte of a record as read and written, as for the copy, so the last column is the
 * share of the copy's bandwidth. The first run is checked: items are in order, and have the digest
 * of the records.
 */

enum { ELEMENT_NBYTES = 16, KEY_NBYTES = 10, N_SLICES = 16 };

struct records_bench {
	uint32_t record_nbytes;
	uint64_t n;
	char *records, *items;
	void *elements, *sorted, *scratch, *tables;
	struct digest *input_digest;
	struct kernel_gather_result *result;
	struct kernel_slice slices[N_SLICES];
	struct kernel_items record_items, slice_items; /* of the records; of the sorted slices */
};

static struct kernel_items records_prepare_items(const struct records_bench *bench,
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

static void records_bench_open(struct records_bench *bench, uint32_t record_nbytes, uint64_t n)
{
	const struct kernel_slice records_slice = { bench_device_alloc(n * record_nbytes), n };
	const size_t scratch_nbytes =
		u64_max(kernel_sort_scratch_nbytes(n, ELEMENT_NBYTES),
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
	bench->record_items = records_prepare_items(bench, &records_slice, 1, bench->tables);
	for (uint32_t i = 0; i < N_SLICES; i++)
		bench->slices[i] =
			(struct kernel_slice){ bench->items + i * (n / N_SLICES) * record_nbytes,
					       n / N_SLICES };
	bench->slice_items =
		records_prepare_items(bench, bench->slices, N_SLICES,
				      (char *)bench->tables + kernel_items_nbytes(N_SLICES, 1));
}

static void records_bench_close(struct records_bench *bench)
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

static int records_copy(void *context)
{
	struct records_bench *bench = context;

	return cudaMemcpyAsync(bench->items, bench->records, bench->n * bench->record_nbytes,
			       cudaMemcpyDeviceToDevice, NULL);
}

static int records_make_elements(void *context)
{
	struct records_bench *bench = context;
	int r = cudaMemsetAsync(bench->input_digest, 0, sizeof *bench->input_digest, NULL);

	return r ? r :
		   launch_make_elements(&bench->record_items, bench->n, ELEMENT_NBYTES,
					bench->elements, bench->input_digest, NULL);
}

static void records_prepare_sort(void *context)
{
	bench_check_cuda(records_make_elements(context), "index");
}

static int records_sort(void *context)
{
	struct records_bench *bench = context;

	return launch_sort(bench->elements, bench->n, ELEMENT_NBYTES, bench->scratch, NULL);
}

static int records_gather(const struct records_bench *bench, const struct kernel_items *items,
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

static int records_gather_random(void *context)
{
	struct records_bench *bench = context;

	return records_gather(bench, &bench->record_items, bench->elements, bench->items);
}

static int records_sort_all(void *context)
{
	int r = records_make_elements(context);

	r = r ? r : records_sort(context);
	return r ? r : records_gather_random(context);
}

static int records_merge_make_elements(void *context)
{
	struct records_bench *bench = context;

	return launch_make_elements(&bench->slice_items, bench->n, ELEMENT_NBYTES, bench->elements,
				    NULL, NULL);
}

static int records_merge(void *context)
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

static int records_merge_gather(void *context)
{
	struct records_bench *bench = context;

	return records_gather(bench, &bench->slice_items, bench->sorted, bench->records);
}

static void records_check(const struct records_bench *bench, const char *label)
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

/* Sort each slice of bench->records into the same slice of bench->items. */
static void records_sort_slices(struct records_bench *bench)
{
	struct records_bench slice = *bench;
	void *const tables = bench_device_alloc(kernel_items_nbytes(1, 1));

	slice.n = bench->n / N_SLICES;
	for (uint32_t i = 0; i < N_SLICES; i++) {
		const struct kernel_slice from = {
			bench->records + i * slice.n * bench->record_nbytes, slice.n
		};

		slice.record_items = records_prepare_items(bench, &from, 1, tables);
		slice.items = (char *)bench->slices[i].elements;
		bench_check_cuda(launch_make_elements(&slice.record_items, slice.n, ELEMENT_NBYTES,
						      slice.elements, NULL, NULL),
				 "index");
		bench_check_cuda(records_sort(&slice), "sort");
		bench_check_cuda(records_gather_random(&slice), "gather");
	}
	bench_check_cuda(cudaDeviceSynchronize(), "slices");
	cudaFree(tables);
}

static const struct {
	const char *label;
	void (*prepare)(void *context);
	int (*run)(void *context);
	const char *checked; /* for records_check(); NULL: the result is not checked */
} record_steps[] = {
	{ "copy", NULL, records_copy, NULL }, /* the first, with which the others are compared */
	{ "index and digest", NULL, records_make_elements, NULL },
	{ "sort elements", records_prepare_sort, records_sort, NULL },
	{ "gather, random order", NULL, records_gather_random, "gather" },
	{ "sort records", NULL, records_sort_all, "sort" },
	{ "index keys of 16 slices", NULL, records_merge_make_elements, NULL },
	{ "merge elements", NULL, records_merge, NULL },
	{ "gather, from 16 slices", NULL, records_merge_gather, "merge" },
};

static void bench_record_size(const struct bench_options *options, uint32_t record_nbytes,
			      uint64_t n)
{
	struct records_bench bench;
	double copy_ms = 0;

	records_bench_open(&bench, record_nbytes, n / N_SLICES * N_SLICES);
	for (size_t i = 0; i < sizeof record_steps / sizeof record_steps[0]; i++) {
		const double nbytes = 2.0 * (double)bench.n * record_nbytes;
		float ms;

		if (record_steps[i].run == records_merge_make_elements)
			records_sort_slices(&bench);
		ms = bench_median_ms(options, record_steps[i].prepare, record_steps[i].run, &bench);
		printf("%-26s %6u B  %11llu  %8.3f ms  %7.2f Grec/s  %7.1f GB/s",
		       record_steps[i].label, (unsigned)record_nbytes, (unsigned long long)bench.n,
		       ms, (double)bench.n / ms / 1e6, nbytes / ms / 1e6);
		if (copy_ms > 0)
			printf("  %5.1f %% of the copy's", 100 * copy_ms / ms);
		else
			copy_ms = ms;
		printf("\n");
		fflush(stdout);
		if (record_steps[i].checked)
			records_check(&bench, record_steps[i].checked);
	}
	records_bench_close(&bench);
}

static void bench_kernel_records(const struct bench_options *options)
{
	static const uint32_t sizes[] = { 100, 16, 24, 60, 101, 200, 1024, 4096 };

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		if (!options->element_nbytes || options->element_nbytes == sizes[i])
			bench_record_size(options, sizes[i],
					  ((uint64_t)1 << 33) / (sizes[i] < 64 ? 64 : sizes[i]));
}

/* --- merging --- */

/* A merge of k equal runs side by side. */

struct merge_bench {
	uint64_t n;
	uint32_t k;
	struct kernel_slice *slices;
	uint64_t *input, *out;
	void *scratch;
};

static int merge_with_gsort(void *context)
{
	struct merge_bench *bench = context;

	return launch_merge(bench->slices, bench->k, 8, bench->out, bench->scratch, NULL);
}

/* Check that `run` merges the runs to what the radix sort makes of them. */
static void verify_merge(struct merge_bench *bench, int (*run)(void *context))
{
	uint64_t *sorted = bench_device_alloc(bench->n * 8);
	size_t scratch_nbytes = 0;
	void *scratch;
	bool is_different;

	bench_check_cuda(cub_radix_sort(NULL, &scratch_nbytes, NULL, NULL, 8, bench->n), "size");
	scratch = bench_device_alloc(scratch_nbytes);
	bench_check_cuda(cub_radix_sort(scratch, &scratch_nbytes, bench->input, sorted, 8,
					bench->n),
			 "radix sort");
	bench_check_cuda(run(bench), "merge");
	bench_check_cuda(bench_compare_memory(bench->out, sorted, bench->n * 8, &is_different),
			 "compare");
	if (is_different) {
		printf("WRONG: merge of %u runs\n", (unsigned)bench->k);
		exit(2);
	}
	cudaFree(scratch);
	cudaFree(sorted);
}

static void merge_bench_open(struct merge_bench *bench, const struct bench_options *options,
			     uint32_t k)
{
	*bench = (struct merge_bench){
		.n = (uint64_t)1 << (options->log2_n ? options->log2_n : 29),
		.k = k,
	};
	bench->input = bench_device_alloc(bench->n * 8);
	bench->out = bench_device_alloc(bench->n * 8);
	bench->scratch = bench_device_alloc(kernel_merge_scratch_nbytes(k, bench->n, 8));
	bench->slices = calloc(k, sizeof *bench->slices);
	for (uint32_t i = 0; i < k; i++)
		bench->slices[i] =
			(struct kernel_slice){ bench->input + i * (bench->n / k), bench->n / k };
	bench_check_cuda(bench_fill_runs(bench->input, 8, bench->n, bench->n / k), "fill");
}

static void merge_bench_close(struct merge_bench *bench)
{
	free(bench->slices);
	cudaFree(bench->scratch);
	cudaFree(bench->out);
	cudaFree(bench->input);
}

static float bench_merge_kernel(struct merge_bench *bench, const struct bench_options *options,
				int (*run)(void *context), const char *label, float base_ms)
{
	float ms;

	verify_merge(bench, run);
	ms = bench_median_ms(options, NULL, run, bench);
	bench_print_row(label, 8, bench->n, ms, base_ms);
	return ms;
}

static void bench_merge(const struct bench_options *options)
{
	static const uint32_t run_counts[] = { 2, 4, 8, 16, 64, 256 };

	for (size_t i = 0; i < sizeof run_counts / sizeof run_counts[0]; i++) {
		struct merge_bench bench;
		char label[64];

		merge_bench_open(&bench, options, run_counts[i]);
		snprintf(label, sizeof label, "gsort, %u runs", (unsigned)run_counts[i]);
		bench_merge_kernel(&bench, options, merge_with_gsort, label, 0);
		merge_bench_close(&bench);
	}
}

/* The merge variants, on two runs. */

#define DEFINE_VARIANT(name)                                                                       \
	static int run_##name(void *context)                                                       \
	{                                                                                          \
		struct merge_bench *bench = context;                                               \
		const uint64_t half = bench->n / 2;                                                \
                                                                                                   \
		return name(bench->input, half, bench->input + half, half, bench->out);            \
	}

DEFINE_VARIANT(merge_variant_direct)
DEFINE_VARIANT(merge_variant_tiles)
DEFINE_VARIANT(merge_variant_circular)
DEFINE_VARIANT(thrust_merge)

static void bench_merge_variants(const struct bench_options *options)
{
	static const struct {
		int (*work)(void *context);
		const char *what;
	} variants[] = {
		{ run_merge_variant_direct, "a thread per piece" },
		{ run_merge_variant_tiles, "tiles in shared memory" },
		{ run_merge_variant_circular, "circular buffers" },
		{ merge_with_gsort, "gsort" },
	};
	struct merge_bench bench;
	float thrust_ms;

	merge_bench_open(&bench, options, 2);
	thrust_ms = bench_merge_kernel(&bench, options, run_thrust_merge, "thrust::merge", 0);
	for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
		bench_merge_kernel(&bench, options, variants[i].work, variants[i].what, thrust_ms);
	merge_bench_close(&bench);
}

/* Cuts of k runs, for all tiles of the first pass and for one splitter. */

/* A cut by one splitter is short, so several are timed together. */
enum { N_TIMED_CUTS = 32 };

struct splitters_bench {
	struct merge_bench merge;
	struct split_pass split;
	uint64_t *cuts;
	uint64_t key; /* changes with each cut, so that the cache does not help */
};

static int run_split_exactly(void *context)
{
	return split_exactly(&((struct splitters_bench *)context)->split);
}

static int run_split_by_keys(void *context)
{
	return split_by_keys(&((struct splitters_bench *)context)->split);
}

static int run_cuts(void *context)
{
	struct splitters_bench *bench = context;
	int r = 0;

	for (unsigned i = 0; !r && i < N_TIMED_CUTS; i++) {
		bench->key += 0x9e3779b97f4a7c15u;
		r = launch_cut(bench->merge.slices, bench->merge.k, 8,
			       (struct kernel_key){ bench->key, 0 }, 0, bench->cuts, NULL);
	}
	return r;
}

/*
 * Use random runs. Those of merge_bench_open() are so regular that the first guess of the exact
 * splitters is nearly right.
 */
static void fill_random_runs(struct merge_bench *merge)
{
	const uint64_t run_n = merge->slices[0].n;
	void *scratch = bench_device_alloc(kernel_sort_scratch_nbytes(run_n, 8));

	bench_check_cuda(bench_fill_keys(merge->input, 8, merge->n, KEYS_RANDOM), "fill");
	for (uint32_t i = 0; i < merge->k; i++)
		bench_check_cuda(launch_sort(merge->input + i * run_n, run_n, 8, scratch, NULL),
				 "sort");
	bench_check_cuda(cudaDeviceSynchronize(), "sort");
	cudaFree(scratch);
}

static void splitters_bench_open(struct splitters_bench *bench, const struct bench_options *options,
				 uint32_t k)
{
	bool is_correct;

	*bench = (struct splitters_bench){ 0 };
	merge_bench_open(&bench->merge, options, k);
	fill_random_runs(&bench->merge);
	bench_check_cuda(split_pass_open(&bench->split, bench->merge.input, bench->merge.n, k),
			 "splitters");
	bench->cuts = bench_device_alloc(k * sizeof *bench->cuts);
	bench_check_cuda(split_check(&bench->split, &is_correct), "splitters");
	if (!is_correct) {
		printf("WRONG: splitters of %u runs\n", (unsigned)k);
		exit(2);
	}
	verify_merge(&bench->merge, merge_with_gsort);
}

static void splitters_bench_close(struct splitters_bench *bench)
{
	cudaFree(bench->cuts);
	split_pass_close(&bench->split);
	merge_bench_close(&bench->merge);
}

static void print_splitters(const char *label, const struct splitters_bench *bench, float ms,
			    float merge_ms)
{
	printf("%-34s %4u runs  %8llu boundaries  %8.3f ms  %7.1f M/s  %5.1f %% of the merge\n",
	       label, (unsigned)bench->merge.k, (unsigned long long)bench->split.n_rows, ms,
	       (double)bench->split.n_rows / ms / 1e3, 100 * ms / merge_ms);
}

static void bench_splitters(const struct bench_options *options)
{
	static const uint32_t run_counts[] = { 16, 64, 256 };

	for (size_t i = 0; i < sizeof run_counts / sizeof run_counts[0]; i++) {
		struct splitters_bench bench;
		float merge_ms, cuts_ms;

		splitters_bench_open(&bench, options, run_counts[i]);
		merge_ms = bench_median_ms(options, NULL, merge_with_gsort, &bench.merge);
		print_splitters("by given keys, a thread per run", &bench,
				bench_median_ms(options, NULL, run_split_by_keys, &bench),
				merge_ms);
		print_splitters("gsort, exact, first pass", &bench,
				bench_median_ms(options, NULL, run_split_exactly, &bench),
				merge_ms);
		cuts_ms = bench_median_ms(options, NULL, run_cuts, &bench);
		printf("%-34s %4u runs  %8u splitter    %8.1f us\n", "gsort, one splitter",
		       (unsigned)run_counts[i], 1, cuts_ms * 1e3 / N_TIMED_CUTS);
		splitters_bench_close(&bench);
	}
}

/* --- the program --- */

static const struct {
	const char *name;
	void (*bench)(const struct bench_options *options);
	const char *help;
} benches[] = {
	{ "sort", bench_kernel_sort, "random elements, against CUB" },
	{ "distributions", bench_kernel_distributions, "against random elements" },
	{ "merge", bench_merge, "k sorted runs" },
	{ "merge-steps", bench_merge_variants,
	  "two sorted runs: from simple to fast, against Thrust" },
	{ "splitters", bench_splitters, "where k sorted runs are cut" },
	{ "records", bench_kernel_records, "records of 100 bytes, step by step, against copying" },
};

static int usage(void)
{
	printf("gsort-bench-kernels BENCH [--element=BYTES] [--log2=N] [--runs=N] "
	       "[--no-reference]\n");
	for (size_t i = 0; i < sizeof benches / sizeof benches[0]; i++)
		printf("  %-14s %s\n", benches[i].name, benches[i].help);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = { { "element", required_argument, NULL, 'e' },
						      { "log2", required_argument, NULL, 'l' },
						      { "runs", required_argument, NULL, 'n' },
						      { "no-reference", no_argument, NULL, 'x' },
						      { NULL, 0, NULL, 0 } };
	struct bench_options options = { .n_runs = 7, .compares_cub = true };
	int c;

	if (argc < 2)
		return usage();
	while ((c = getopt_long(argc - 1, argv + 1, "", long_options, NULL)) != -1)
		switch (c) {
		case 'e':
			options.element_nbytes = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'l':
			options.log2_n = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'n':
			options.n_runs = (unsigned)strtoul(optarg, NULL, 10);
			options.n_runs = options.n_runs < BENCH_MAX_RUNS ? options.n_runs :
									   BENCH_MAX_RUNS;
			break;
		case 'x':
			options.compares_cub = false;
			break;
		default:
			return usage();
		}
	for (size_t i = 0; i < sizeof benches / sizeof benches[0]; i++)
		if (strcmp(argv[1], benches[i].name) == 0) {
			benches[i].bench(&options);
			return 0;
		}
	return usage();
}
