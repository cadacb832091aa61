/*
 * test_plan - plans keep within memory, and more memory never makes them worse
 */
#include "src/plan/plan.h"

#include <inttypes.h>
#include <string.h>

#include "io/spill/run_file.h"
#include "src/device/cpu/cpu_sort.h"
#include "src/report/explain.h"
#include "tests/support/unit_test.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static struct device *device, *config_separate;
static struct layout layout;

/*
 * How the device sorts elements. The CPU back end selects the sort by what the processor supports,
 * and each sort needs a different amount of scratch memory. The tests set it explicitly, so that
 * plans are the same on all machines.
 */
static enum sort_method {
	SORT_IN_PLACE,  /* vqsort */
	SORT_IN_PIECES, /* AVX-512 */
	SORT_BY_RADIX,
	N_SORT_METHODS
} sort_method;

static size_t element_sort_scratch_nbytes(uint64_t n, uint32_t element_nbytes)
{
	if (sort_method == SORT_BY_RADIX || element_nbytes == 4)
		return n * element_nbytes;
	if (sort_method == SORT_IN_PIECES && element_nbytes == 8)
		return n * element_nbytes < MIB ? n * element_nbytes : MIB;
	return 0;
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static size_t elements_sort_scratch_nbytes(const struct layout *records, uint64_t n)
{
	return element_sort_scratch_nbytes(n, records->element_nbytes);
}

/* Replace the part of the scratch that depends on the sort of this processor. */
static size_t records_merge_scratch_nbytes(const struct layout *records, uint32_t k, uint64_t n)
{
	const struct backend_layout_ops *ops = backend_cpu.ops_by_layout[LAYOUT_RECORDS];

	return ops->merge_scratch_nbytes(records, k, n) -
	       larger(cpu_sort_scratch_nbytes(n, 8), cpu_sort_scratch_nbytes(n, 16)) +
	       larger(element_sort_scratch_nbytes(n, 8), element_sort_scratch_nbytes(n, 16));
}

static size_t records_sort_scratch_nbytes(const struct layout *records, uint64_t n)
{
	return records_merge_scratch_nbytes(records, 0, n);
}

/* The CPU back end, but with the scratch of sort_method. */
static struct backend backend_fixed_scratch;
static struct backend_layout_ops layout_ops[N_LAYOUT_KINDS];
static const struct backend_layout_ops *ops_by_layout[N_LAYOUT_KINDS];

static void fix_scratch(void)
{
	for (unsigned kind = 0; kind < N_LAYOUT_KINDS; kind++) {
		layout_ops[kind] = *backend_cpu.ops_by_layout[kind];
		layout_ops[kind].sort_scratch_nbytes = elements_sort_scratch_nbytes;
		ops_by_layout[kind] = &layout_ops[kind];
	}
	layout_ops[LAYOUT_RECORDS].sort_scratch_nbytes = records_sort_scratch_nbytes;
	layout_ops[LAYOUT_RECORDS].merge_scratch_nbytes = records_merge_scratch_nbytes;
	backend_fixed_scratch = backend_cpu;
	backend_fixed_scratch.ops_by_layout = ops_by_layout;
}

/* The CPU back end with memory that is separate from the host's. */
static struct backend backend_separate_memory;
static uint64_t separate_nbytes;

static void describe_separate(const struct device *cpu, struct device_info *ret_info)
{
	backend_cpu.get_info(cpu, ret_info);
	ret_info->unified = false;
	ret_info->memory_nbytes = separate_nbytes;
	ret_info->chunk_nbytes = 256 * MIB;
	ret_info->window_nbytes = 64 * MIB;
}

static int open_device(void **state)
{
	const struct backend_config config = { .n_threads = 2 };

	(void)state;
	fix_scratch();
	backend_separate_memory = backend_fixed_scratch;
	backend_separate_memory.get_info = describe_separate;
	return device_open(&backend_fixed_scratch, &config, &device) < 0 ||
	       device_open(&backend_separate_memory, &config, &config_separate) < 0;
}

static int close_device(void **state)
{
	(void)state;
	device_close(device);
	device_close(config_separate);
	return 0;
}

/* For records of `type`, with nothing special. */
static struct plan_request request_for(const char *type, uint64_t input_nbytes,
				       uint64_t memory_nbytes)
{
	struct key key;

	assert_int_equal(key_parse_type(type, &key), 0);
	assert_int_equal(layout_make_key_only(&key, &layout), 0);
	return (struct plan_request){
		.layout = &layout,
		.device = device,
		.input_nbytes = input_nbytes,
		.n_threads = 2,
		.memory_nbytes = memory_nbytes,
	};
}

static struct plan make_plan(const char *type, uint64_t input_nbytes, uint64_t memory_nbytes)
{
	const struct plan_request request = request_for(type, input_nbytes, memory_nbytes);
	struct plan plan;

	plan_make(&request, &plan);
	return plan;
}

TEST(many_chunks_are_longer_if_they_fit)
{
	const struct plan few = make_plan("u64", GIB, 4 * GIB);
	const struct plan many = make_plan("u64", 8 * GIB, 16 * GIB);
	unsigned n_with_short = 0;

	assert_int_equal(many.chunk_nbytes, 2 * few.chunk_nbytes);
	assert_int_equal(many.window_nbytes, 2 * few.window_nbytes);
	assert_int_equal(make_plan("u64", 8 * GIB, 4 * GIB).chunk_nbytes, few.chunk_nbytes);
	/* An input that fits only in shorter chunks is not spilled to have longer ones. */
	for (uint64_t nbytes = 8 * GIB; nbytes < 9 * GIB; nbytes += 4 * MIB) {
		const struct plan plan = make_plan("u64", 8 * GIB, nbytes);

		n_with_short += plan.fits_in_memory && plan.chunk_nbytes == few.chunk_nbytes;
		assert_true(make_plan("u64", 8 * GIB, nbytes + 4 * MIB).fits_in_memory >=
			    plan.fits_in_memory);
	}
	assert_true(n_with_short > 0);
}

static bool has_buckets(const struct plan_request *request)
{
	struct plan plan;

	plan_make(request, &plan);
	assert_true(plan.is_sufficient);
	assert_true(plan.n_buckets == 0 || plan.fits_in_memory);
	return plan.n_buckets > 0;
}

TEST(large_inputs_in_memory_are_distributed)
{
	struct plan_request request = request_for("u64", 8 * GIB, 16 * GIB);
	struct plan_request changed;

	assert_false(has_buckets(&request));
	request.can_sample_input = true;
	assert_true(has_buckets(&request));
	changed = request;
	changed.unique = true;
	assert_false(has_buckets(&changed));
	changed = request;
	changed.limit = 1000;
	assert_false(has_buckets(&changed));
	changed = request;
	changed.memory_nbytes = 8 * GIB + 64 * MIB;
	assert_false(has_buckets(&changed));
	changed = request;
	changed.input_nbytes = GIB / 2;
	assert_false(has_buckets(&changed));
	changed = request_for("u32", 8 * GIB, 16 * GIB);
	changed.can_sample_input = true;
	assert_false(has_buckets(&changed));
}

/* How many pay is known in the end; longer blocks are needed from the beginning. */
TEST(input_of_unknown_size_is_partitioned)
{
	struct plan_request request = request_for("u64", PLAN_SIZE_UNKNOWN, 4 * GIB);
	struct plan plan, undivided;

	request.n_threads = 16;
	plan_make(&request, &plan);
	assert_int_equal(plan.n_partitions, 8);
	assert_int_equal(plan_max_partitions(&plan, &request, GIB / 8), 4);
	assert_int_equal(plan_max_partitions(&plan, &request, MIB), 1);
	assert_int_equal(plan_max_partitions(&plan, &request, 100 * GIB), 8);
	request.n_partitions = 1;
	plan_make(&request, &undivided);
	assert_int_equal(undivided.n_partitions, 1);
	assert_int_equal(plan.block_nbytes, undivided.block_nbytes);
	assert_int_equal(plan.fan_in, undivided.fan_in);
	request.n_partitions = 0;
	request.sequential_output = true;
	plan_make(&request, &plan);
	assert_int_equal(plan.n_partitions, 1);
}

/* For records of record_nbytes that are left where they are, keys of 10 bytes. */
static struct plan plan_indirect(uint64_t record_nbytes, uint64_t n, uint64_t memory_nbytes)
{
	struct plan_request request = request_for("u64", n * record_nbytes, memory_nbytes);
	struct plan plan;

	layout = (struct layout){
		.kind = LAYOUT_INDIRECT,
		.record_nbytes = record_nbytes,
		.item_nbytes = record_nbytes,
		.output_nbytes = record_nbytes,
		.element_nbytes = 16,
		.resident_nbytes = 16,
	};
	plan_make(&request, &plan);
	return plan;
}

static void check_indirect(uint64_t record_nbytes, uint64_t n, uint64_t memory_nbytes)
{
	const struct plan plan = plan_indirect(record_nbytes, n, memory_nbytes);
	const uint64_t chunks_nbytes = plan.n_chunks * plan.chunk_records * 16;
	const uint64_t nbytes = n * record_nbytes + plan.index_nbytes + chunks_nbytes +
				plan.n_queues * plan.sort_scratch_nbytes + plan.merge_nbytes;

	if (!plan.fits_in_memory)
		return;
	assert_true(plan.n_chunks * plan.chunk_records >= n);
	if (nbytes > memory_nbytes)
		fail_msg("%" PRIu64 " records of %" PRIu64 " in %" PRIu64 ": planned %" PRIu64, n,
			 record_nbytes, memory_nbytes, nbytes);
}

TEST(mapped_records_are_part_of_the_memory)
{
	assert_true(plan_indirect(100, 10000000, GIB + GIB / 2).fits_in_memory);
	assert_false(plan_indirect(100, 10000000, GIB).fits_in_memory);
	assert_false(plan_indirect(100, 10000000, MIB).fits_in_memory);
	assert_true(plan_indirect(65536, 100, 8 * MIB).fits_in_memory);
	assert_true(plan_indirect(100, 0, MIB).fits_in_memory);
	for (uint64_t record_nbytes = 32; record_nbytes <= 65536; record_nbytes *= 2)
		for (uint64_t input_nbytes = MIB; input_nbytes <= GIB; input_nbytes *= 4)
			for (uint64_t eighths = 8; eighths <= 16; eighths++)
				check_indirect(record_nbytes, input_nbytes / record_nbytes,
					       input_nbytes / 8 * eighths);
}

static const char *const types[] = { "u8", "u32", "b5", "u64", "b10", "u128" };
enum { N_TYPES = sizeof types / sizeof types[0] };

static const uint64_t input_sizes[] = {
	0, 1000, MIB, 100 * MIB, 10 * GIB, 1000 * GIB, PLAN_SIZE_UNKNOWN
};
enum { N_INPUT_SIZES = sizeof input_sizes / sizeof input_sizes[0] };

static void check_memory(const char *type, uint64_t input_nbytes, uint64_t memory_nbytes)
{
	const struct plan plan = make_plan(type, input_nbytes, memory_nbytes);
	const uint64_t chunks_nbytes = plan.n_chunks * plan.chunk_records * plan.element_nbytes;
	const uint64_t nbytes =
		chunks_nbytes + plan.n_queues * plan.sort_scratch_nbytes + plan.merge_nbytes;

	if (nbytes > memory_nbytes)
		fail_msg("%s, input of %lu, memory of %lu: %lu in chunks, %u x %lu in scratch, "
			 "%lu in windows",
			 type, (unsigned long)input_nbytes, (unsigned long)memory_nbytes,
			 (unsigned long)chunks_nbytes, plan.n_queues,
			 (unsigned long)plan.sort_scratch_nbytes, (unsigned long)plan.merge_nbytes);
}

TEST(all_together_keep_within_memory)
{
	for (unsigned i = 0; i < N_TYPES; i++)
		for (unsigned j = 0; j < N_INPUT_SIZES; j++)
			for (uint64_t nbytes = PLAN_MIN_MEMORY_NBYTES; nbytes <= 64 * GIB;
			     nbytes += nbytes / 3)
				check_memory(types[i], input_sizes[j], nbytes);
}

TEST(more_memory_never_makes_more_runs_or_passes)
{
	for (unsigned i = 0; i < N_TYPES; i++) {
		struct plan before = make_plan(types[i], 100 * GIB, PLAN_MIN_MEMORY_NBYTES);

		for (uint64_t nbytes = 2 * MIB; nbytes <= 512 * GIB; nbytes *= 2) {
			const struct plan plan = make_plan(types[i], 100 * GIB, nbytes);

			assert_true(plan.n_spilled_runs <= before.n_spilled_runs);
			assert_true(plan.n_passes <= before.n_passes);
			assert_true(plan.fits_in_memory >= before.fits_in_memory);
			assert_true(plan.temp_nbytes <= before.temp_nbytes);
			before = plan;
		}
		assert_true(before.fits_in_memory);
	}
}

TEST(memory_below_the_minimum_is_raised)
{
	const struct plan min = make_plan("u64", GIB, PLAN_MIN_MEMORY_NBYTES);
	const struct plan smaller = make_plan("u64", GIB, 1000);

	assert_int_equal(smaller.memory_nbytes, PLAN_MIN_MEMORY_NBYTES);
	assert_int_equal(smaller.chunk_records, min.chunk_records);
	assert_int_equal(smaller.n_chunks, min.n_chunks);
}

TEST(batch_size_limits_the_fan_in)
{
	struct plan_request request = request_for("u64", 100 * GIB, GIB);
	struct plan plan;

	request.batch_size = 2;
	plan_make(&request, &plan);
	assert_int_equal(plan.fan_in, 2);
	assert_in_range(plan.n_passes, 8, 10); /* 260-odd runs */
	request.batch_size = 1000000;
	plan_make(&request, &plan);
	assert_true(plan.fan_in < 1000000);
}

/* Runs of a checkpoint keep their block size, even with another -S. */
TEST(existing_blocks_bound_the_fan_in)
{
	struct plan_request request = request_for("u64", 64 * GIB, 64 * MIB);
	struct plan plan;

	request.min_block_nbytes = 4 * MIB;
	plan_make(&request, &plan);
	assert_true(plan.block_nbytes >= 4 * MIB);
	assert_true(plan.fan_in == 2 ||
		    6 * plan.n_windows * plan.fan_in * 4 * MIB <= plan.merge_nbytes);
	assert_true(make_plan("u64", 64 * GIB, 64 * MIB).block_nbytes < 4 * MIB);
	request.min_block_nbytes = 1;
	plan_make(&request, &plan);
	assert_true(plan.block_nbytes > 1);
}

/* Two threads that write are enough for a file, and for little memory or few processors. */
TEST(many_processors_spill_with_more_writers)
{
	static const struct {
		uint64_t input_nbytes, memory_nbytes;
		uint32_t n_threads, n_writers;
	} cases[] = {
		{ 8 * GIB, GIB, 16, 4 },       { 8 * GIB, GIB, 2, 2 },
		{ 8 * GIB, GIB, 64, 7 },       { 8 * GIB, 128 * MIB, 16, 2 },
		{ 8 * GIB, 64 * GIB, 16, 2 },  { PLAN_SIZE_UNKNOWN, GIB, 16, 4 },
		{ 64 * GIB, 4 * GIB, 128, 8 },
	};
	struct plan plan;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct plan_request request =
			request_for("u64", cases[i].input_nbytes, cases[i].memory_nbytes);

		request.n_threads = cases[i].n_threads;
		plan_make(&request, &plan);
		assert_int_equal(plan.n_writers, cases[i].n_writers);
		assert_true(plan.is_sufficient);
		if (cases[i].memory_nbytes == GIB) {
			request.n_ranks = 2;
			plan_make(&request, &plan);
			assert_int_equal(plan.n_writers, cases[i].n_writers);
			request.n_ranks = 0;
		}
		request.device = config_separate;
		request.device_nbytes = separate_nbytes = GIB;
		plan_make(&request, &plan);
		if (cases[i].n_threads == 16 && cases[i].memory_nbytes == GIB)
			assert_int_equal(plan.n_writers, 8);
	}
}

TEST(merge_of_inputs_has_all_memory_for_windows)
{
	struct plan_request request = request_for("u64", 10 * GIB, 256 * MIB);
	struct plan plan;

	request.n_input_runs = 10;
	plan_make(&request, &plan);
	assert_int_equal(plan.merge_nbytes, 256 * MIB - plan.index_nbytes);
	assert_int_equal(plan.n_chunks, 0);
	assert_true(plan.fan_in >= 10);
	assert_int_equal(plan.n_passes, 1);
	assert_int_equal(plan.temp_nbytes, 0);
	request.batch_size = 3;
	plan_make(&request, &plan);
	assert_int_equal(plan.n_passes, 3);
	assert_true(plan.temp_nbytes >= 10 * GIB);
}

/*
 * Check the windows of a merge of n_resident and n_stored runs in nbytes. They may exceed nbytes
 * only with the minimum quota, and only by the scratch memory.
 */
static void check_windows(const struct plan_request *request, const struct plan *plan,
			  uint64_t nbytes, uint32_t n_resident, uint32_t n_stored)
{
	const uint64_t overhang = n_stored * (plan->block_nbytes / plan->element_nbytes);
	struct window_plan windows;
	uint64_t buffers_nbytes, scratch_nbytes;

	plan_windows(plan, request, nbytes, UINT64_MAX, n_resident, n_stored, &windows);
	assert_true(windows.n_windows >= 3);
	assert_true(windows.quota_records > 0);
	assert_true(windows.resident_stride > 0);
	assert_true(windows.capacity_records >=
		    windows.quota_records + n_resident * windows.resident_stride + overhang);
	buffers_nbytes = windows.n_windows * (n_stored ? 2 : 1) * windows.capacity_records *
			 plan->element_nbytes;
	scratch_nbytes = windows.n_windows * windows.scratch_nbytes;
	if (buffers_nbytes + scratch_nbytes <= nbytes)
		return;
	if (windows.quota_records > overhang || buffers_nbytes > nbytes)
		fail_msg("%u resident and %u stored runs in %lu: %u windows take %lu and %lu bytes",
			 n_resident, n_stored, (unsigned long)nbytes, windows.n_windows,
			 (unsigned long)buffers_nbytes, (unsigned long)scratch_nbytes);
}

/* Merges of up to plan.fan_in stored runs fit in the memory for windows. */
TEST(windows_of_all_merges_keep_within_their_memory)
{
	for (unsigned i = 0; i < N_TYPES; i++)
		for (uint64_t nbytes = 64 * MIB; nbytes <= 64 * GIB; nbytes *= 4) {
			const struct plan_request request =
				request_for(types[i], 50 * nbytes, nbytes);
			struct plan plan;

			plan_make(&request, &plan);
			check_windows(&request, &plan, plan.merge_nbytes, 0, plan.fan_in);
			check_windows(&request, &plan, plan.merge_nbytes, 0, 2);
			check_windows(&request, &plan, plan.merge_nbytes,
				      (uint32_t)plan.chunks_per_run, 0);
			check_windows(&request, &plan, plan.merge_nbytes, (uint32_t)plan.n_chunks,
				      plan.fan_in);
		}
}

/* Short windows would be written in short pieces, and each piece would end within a page. */
TEST(windows_of_little_memory_are_not_all_scratch)
{
	for (uint64_t nbytes = 8 * MIB; nbytes <= 64 * MIB; nbytes *= 2) {
		const struct plan_request request = request_for("u64", 50 * nbytes, nbytes);
		struct window_plan windows;
		struct plan plan;

		plan_make(&request, &plan);
		plan_windows(&plan, &request, plan.merge_nbytes, UINT64_MAX,
			     (uint32_t)plan.chunks_per_run, 0, &windows);
		assert_true(3 * windows.n_windows * windows.quota_records * plan.element_nbytes >=
			    plan.merge_nbytes);
	}
}

TEST(short_merge_has_a_window_per_queue)
{
	const struct plan_request request = request_for("u64", 10 * MIB, GIB);
	struct window_plan windows;
	struct plan plan;

	plan_make(&request, &plan);
	plan_windows(&plan, &request, plan.merge_nbytes, 10 * MIB / 8, 4, 0, &windows);
	assert_true(windows.quota_records * plan.n_queues <= 10 * MIB / 8);
}

TEST(separate_device_packs_spilled_runs)
{
	struct plan_request request = request_for("u64", 100 * GIB, GIB);
	struct window_plan windows;
	struct plan plan;

	request.stores_encoded_keys = true;
	plan_make(&request, &plan);
	assert_false(plan.packs_on_device); /* nothing would be saved */
	request.device = config_separate;
	request.device_nbytes = separate_nbytes = GIB;
	plan_make(&request, &plan);
	assert_true(plan.packs_on_device);
	plan_windows(&plan, &request, plan.merge_nbytes, UINT64_MAX, 0, plan.fan_in, &windows);
	assert_true(windows.scratch_nbytes >= windows.capacity_records * plan.resident_nbytes);
	assert_true(windows.n_windows * (2 * windows.capacity_records * plan.resident_nbytes +
					 windows.scratch_nbytes) <=
		    plan.merge_nbytes);
	request.input_nbytes = MIB;
	plan_make(&request, &plan);
	assert_true(plan.fits_in_memory);
	assert_false(plan.packs_on_device);
}

TEST(small_memory_has_few_device_partitions)
{
	struct plan_request request = request_for("u64", 8 * GIB, GIB);
	struct plan plan;

	request.n_threads = 16;
	plan_make(&request, &plan);
	assert_int_equal(plan.n_partitions, 8);
	request.device = config_separate;
	request.device_nbytes = separate_nbytes = GIB;
	plan_make(&request, &plan);
	assert_true(plan.n_partitions == 1);
	request.memory_nbytes = 8 * GIB;
	plan_make(&request, &plan);
	assert_int_equal(plan.n_partitions, 8);
}

TEST(device_memory_bounds_what_is_on_the_device)
{
	for (separate_nbytes = 64 * MIB; separate_nbytes <= 64 * GIB; separate_nbytes *= 2)
		for (unsigned i = 0; i < N_TYPES; i++) {
			struct plan_request request = request_for(types[i], 100 * GIB, GIB);
			struct plan plan;

			request.device = config_separate;
			request.device_nbytes = separate_nbytes;
			plan_make(&request, &plan);
			assert_true(plan.copies_to_device);
			assert_true(plan.n_chunks * plan.chunk_records * plan.element_nbytes +
					    plan.n_queues * plan.sort_scratch_nbytes +
					    plan.merge_nbytes <=
				    separate_nbytes);
			assert_true(plan.sort_scratch_nbytes >=
				    plan.chunk_records * plan.record_nbytes);
			assert_true(plan.n_slots * plan.slot_nbytes + plan.host_spill_nbytes <=
				    GIB);
			assert_int_equal(plan.chunk_records * plan.record_nbytes % plan.slot_nbytes,
					 0);
		}
}

/* Codecs' contexts and compressed streams are part of the memory. */
TEST(codec_memory_is_counted)
{
	for (uint64_t nbytes = 64 * MIB; nbytes <= 4 * GIB; nbytes *= 4) {
		struct plan_request request = request_for("u64", 10 * nbytes, nbytes);
		struct plan plan, without;

		request.compression.mode = COMPRESS_NONE;
		plan_make(&request, &without);
		assert_int_equal(without.codec_nbytes, 0);
		request.compression =
			(struct compression_params){ .mode = COMPRESS_ZSTD, .zstd_level = 9 };
		request.stream_codec_nbytes = 3 * MIB;
		plan_make(&request, &plan);
		/* 5 blocks of scratch for each of two readers and two writers. */
		assert_in_range(plan.codec_nbytes, 3 * MIB + 4 * 5 * plan.block_nbytes, nbytes / 4);
		assert_int_equal(plan.device_nbytes,
				 nbytes - plan.codec_nbytes - plan.index_nbytes);
		assert_true(plan.n_spilled_runs >= without.n_spilled_runs);
	}
}

/* Fetchers wait for messages. Their codecs take a small part of the memory. */
TEST(remote_runs_get_more_fetchers)
{
	struct plan plan;

	for (uint64_t nbytes = 2 * MIB; nbytes <= 4 * GIB; nbytes *= 2) {
		struct plan_request request = request_for("u64", 10 * nbytes, nbytes);

		request.compression =
			(struct compression_params){ .mode = COMPRESS_ZSTD, .zstd_level = 9 };
		plan_make(&request, &plan);
		assert_int_equal(plan.n_fetchers, plan.n_readers);
		request.n_ranks = 4;
		plan_make(&request, &plan);
		assert_in_range(plan.n_fetchers, plan.n_readers, 8);
		if (plan.n_fetchers > plan.n_readers)
			assert_in_range(plan.codec_nbytes,
					5 * plan.block_nbytes * (plan.n_writers + plan.n_fetchers),
					nbytes / 16);
	}
	assert_int_equal(plan.n_fetchers, 8);
}

/* Return the minimum size of the index of the stored blocks. */
static uint64_t index_of_runs_nbytes(const struct plan *plan)
{
	const uint64_t stored_nbytes =
		plan->n_spilled_runs * plan->chunks_per_run * plan->chunk_nbytes;

	return stored_nbytes / plan->block_nbytes * sizeof(struct run_block);
}

TEST(index_of_runs_is_counted)
{
	for (uint64_t nbytes = 64 * MIB; nbytes <= 4 * GIB; nbytes *= 4) {
		struct plan_request request = request_for("u64", 10 * nbytes, nbytes);
		struct plan plan, kept;

		plan_make(&request, &plan);
		assert_int_equal(plan.n_passes, 1);
		assert_in_range(plan.index_nbytes, index_of_runs_nbytes(&plan), nbytes / 8);
		assert_int_equal(plan.device_nbytes,
				 nbytes - plan.codec_nbytes - plan.index_nbytes);
		/* The records of a checkpoint hold another. */
		request.keeps_checkpoint_index = true;
		plan_make(&request, &kept);
		assert_in_range(kept.index_nbytes, 2 * index_of_runs_nbytes(&kept), nbytes / 8);
	}
}

TEST(index_of_much_more_than_memory_has_longer_blocks)
{
	const struct plan plan = make_plan("u64", 100 * GIB, GIB);

	assert_true(index_of_runs_nbytes(&plan) <= GIB / 8);
	assert_true(plan.fan_in >= 32);
}

/* A plan is sufficient as long as longer blocks make the index fit; then it is insufficient. */
TEST(index_that_has_no_room_is_too_large_for_the_memory)
{
	const struct plan fitting = make_plan("u64", 2 * GIB, 16 * MIB);
	const struct plan too_large = make_plan("u64", 1000 * GIB, 64 * MIB);
	struct plan_request request = request_for("u64", GIB, GIB);
	struct plan plan;

	assert_true(fitting.is_sufficient);
	assert_in_range(fitting.fan_in, 2, 31);
	assert_in_range(fitting.required_index_nbytes, 4 * MIB, 16 * MIB + MIB / 2);
	assert_false(too_large.is_sufficient);
	assert_true(too_large.total_nbytes > 100 * MIB);
	assert_true(make_plan("u64", 1000 * GIB, GIB).is_sufficient);
	request.stream_codec_nbytes = 2 * GIB;
	plan_make(&request, &plan);
	assert_false(plan.is_sufficient);
}

/* That memory is enough, and all of it is used. */
static void check_room(const struct layout *records, uint64_t input_nbytes, uint64_t memory_nbytes)
{
	const struct plan_request request = {
		.layout = records,
		.device = device,
		.input_nbytes = input_nbytes,
		.n_threads = 2,
		.memory_nbytes = memory_nbytes,
	};
	struct plan plan;

	plan_make(&request, &plan);
	if (!plan.is_sufficient || plan.memory_nbytes != memory_nbytes)
		fail_msg("%" PRIu64 " bytes of %" PRIu64 " in %" PRIu64 ", sort method %d: %" PRIu64
			 " are planned with",
			 input_nbytes, records->record_nbytes, memory_nbytes, (int)sort_method,
			 plan.is_sufficient ? plan.memory_nbytes : 0);
	/* Longer blocks are also whole records. */
	while (plan_lengthen_blocks(&request, &plan))
		assert_int_equal(plan.block_nbytes % plan.resident_nbytes, 0);
}

static void check_room_in_any_memory(const struct layout *records)
{
	for (uint64_t memory_nbytes = MIB; memory_nbytes <= 256 * GIB;
	     memory_nbytes += memory_nbytes / 8) {
		check_room(records, PLAN_SIZE_UNKNOWN, memory_nbytes);
		check_room(records, 48 * MIB / records->record_nbytes * records->record_nbytes,
			   memory_nbytes);
	}
}

enum { MAX_KEYS = 300 };

/*
 * Records have more scratch in a window than codes, and those with many keys many times as much as
 * they have bytes; blocks, chunks and the shortest windows must leave room for it.
 */
TEST(records_have_room_in_any_memory)
{
	static const struct {
		uint64_t record_nbytes, key_nbytes;
		uint32_t n_keys; /* all of them the same */
	} shapes[] = { { 3, 3, 1 },      { 9, 8, 1 },     { 16, 8, 1 }, { 100, 10, 1 },
		       { 1000, 900, 1 }, { 65536, 1, 1 }, { 1, 1, 9 },  { 2, 2, 300 } };

	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
		struct key keys[MAX_KEYS];
		const struct layout_params expected = { .record_nbytes = shapes[i].record_nbytes,
							.keys = keys,
							.n_keys = shapes[i].n_keys,
							.force_records = true };
		struct layout records;

		for (uint32_t k = 0; k < shapes[i].n_keys; k++)
			keys[k] = (struct key){ .kind = KEY_BYTES,
						.nbytes = (uint32_t)shapes[i].key_nbytes };
		assert_int_equal(layout_make(&expected, &records), 0);
		for (sort_method = 0; sort_method < N_SORT_METHODS; sort_method++)
			check_room_in_any_memory(&records);
		sort_method = SORT_IN_PLACE;
		layout_free(&records);
	}
}

/* Small inputs fit in any memory, even if windows of more data would not. */
TEST(small_inputs_fit_into_any_memory)
{
	const struct key key = { .kind = KEY_BYTES, .nbytes = 8 };
	const struct layout_params expected = {
		.record_nbytes = 8, .keys = &key, .n_keys = 1, .force_records = true
	};
	struct layout records;

	assert_int_equal(layout_make(&expected, &records), 0);
	for (uint64_t memory_nbytes = MIB; memory_nbytes <= GIB;
	     memory_nbytes += memory_nbytes / 4) {
		const struct plan_request request = {
			.layout = &records,
			.device = device,
			.input_nbytes = 8000,
			.n_threads = 2,
			.memory_nbytes = memory_nbytes,
		};
		struct plan plan;

		plan_make(&request, &plan);
		assert_true(plan.is_sufficient);
		assert_true(plan.fits_in_memory || memory_nbytes < 32 * MIB);
	}
	layout_free(&records);
}

/* A pipe may be long enough to spill. */
TEST(codecs_are_counted_for_inputs_of_unknown_size)
{
	struct plan_request request = request_for("u64", PLAN_SIZE_UNKNOWN, GIB);
	struct plan plan;

	request.compression.mode = COMPRESS_ZSTD;
	plan_make(&request, &plan);
	assert_true(plan.codec_nbytes >= 4 * plan.block_nbytes);
	assert_true(plan.index_nbytes > 0);
}

/* Return the text of --explain. */
static const char *explain(const struct plan *plan)
{
	static char text[4096];
	FILE *file = fmemopen(text, sizeof text, "w");

	assert_non_null(file);
	explain_print(&(struct explanation){ .plan = *plan }, file);
	assert_int_equal(fclose(file), 0);
	return text;
}

TEST(explain_says_how_many_partitions_are_merged_at_once)
{
	struct plan plan = make_plan("u64", 10 * GIB, GIB);

	plan.n_partitions = 8;
	plan.n_expected_partitions = 20;
	assert_non_null(strstr(explain(&plan), "20 in total, 8 merged in parallel\n"));
	plan.n_expected_partitions = 8;
	assert_non_null(strstr(explain(&plan), "8 at most, merged in parallel\n"));
	plan.n_expected_partitions = 1;
	assert_null(strstr(explain(&plan), "partitions"));
}

TEST(explain_says_where_runs_are_packed)
{
	struct plan_request request = request_for("u64", 10 * GIB, GIB);
	struct plan plan;

	separate_nbytes = GIB;
	request.device = config_separate;
	request.device_nbytes = GIB;
	request.stores_encoded_keys = true;
	request.compression.mode = COMPRESS_DELTA;
	plan_make(&request, &plan);
	assert_true(plan.packs_on_device);
	assert_non_null(
		strstr(explain(&plan), "compression       runs are compressed on the device\n"));
}

GROUP_FIXTURE(open_device, close_device)
