/*
 * test_calibrate - the time that measuring takes, and when it is worth it
 */
#include "src/cost/calibrate.h"

#include "tests/support/io_fixture.h"
#include "tests/support/open_input.h"
#include "tests/support/unit_test.h"

#define MS UINT64_C(1000000)

enum { WRITE_MS = 5, BUDGET_MS = 500, WRITERS = 2, READERS = 3 };

/* Return the totals of a sort with one phase of that length. */
static struct stats_totals totals_of(uint64_t elapsed_ns)
{
	struct stats_totals totals = { .elapsed_ns = elapsed_ns };

	totals.phases[PHASE_RUN_GENERATION].has_begun = true;
	totals.phases[PHASE_RUN_GENERATION].elapsed_ns = elapsed_ns;
	totals.phases[PHASE_RUN_GENERATION].stages[STAGE_READ].nbytes = 1;
	return totals;
}

TEST(short_phases_are_not_measured)
{
	const struct stats_totals soon = totals_of(900 * MS), late = totals_of(3000 * MS);
	struct calibration_request request;

	assert_false(calibrate_request_from_stats(&soon, 1, &request));
	assert_true(calibrate_request_from_stats(&late, 1, &request));
	assert_int_equal(request.budget_ns, 300 * MS);
	assert_true(request.stages[STAGE_READ]);
	assert_false(request.stages[STAGE_SORT]);
}

/* Count the writes that fit in the budget; each takes at least WRITE_MS. */
TEST_WITH(measuring_ends_when_its_time_is_over, fixture_start, fixture_finish)
{
	static const char *directories[] = { fixture_directory };
	const struct sort_spec spec = { .temp_dirs = directories, .n_temp_dirs = 1 };
	const struct job job = { .io = &faulty_calls, .plan = { .n_writers = WRITERS } };
	const struct calibration_request request = {
		.nbytes = UINT64_C(1) << 30,
		.budget_ns = BUDGET_MS * MS,
		.stages = { [STAGE_SPILL] = true },
	};
	struct stage_rates rates;

	faults.faulty_directory = fixture_directory;
	faults.faulty_write_delay_us = WRITE_MS * 1000;
	calibrate_stages(&job, &spec, &request, &rates);
	assert_true(rates.bytes_per_s[STAGE_SPILL] > 0);
	assert_true(faults.n_transfers <= WRITERS * (2 * BUDGET_MS / WRITE_MS + 1));
	assert_int_equal(faults.max_preallocated_nbytes,
			 0); /* preallocated space would be discarded */
}

/* The kernel reads ahead after each block, so many small blocks would read a file several times. */
TEST_WITH(small_input_is_read_in_few_blocks, fixture_start, fixture_finish)
{
	const struct backend_config config = { .n_threads = 1 };
	struct sort_device device = { 0 };
	struct job job = { .io = &faulty_calls,
			   .devices = &device,
			   .n_devices = 1,
			   .plan = { .n_readers = READERS, .record_nbytes = 8 } };
	const struct calibration_request request = {
		.nbytes = 1 << 20,
		.budget_ns = 10000 * MS,
		.stages = { [STAGE_READ] = true },
	};
	const char *path = fixture_path("input");
	struct stage_rates rates;

	write_file(path, "", 1);
	assert_int_equal(truncate(path, 16 << 20), 0);
	assert_int_equal(input_open(&faulty_calls, &path, 1, 8, &job.input), 0);
	assert_int_equal(device_open(&backend_cpu, &config, &device.device), 0);
	device_get_info(device.device, &job.device_info);
	faults.n_transfers = 0;
	calibrate_stages(&job, &(struct sort_spec){ 0 }, &request, &rates);
	assert_true(rates.bytes_per_s[STAGE_READ] > 0);
	assert_in_range(faults.n_transfers, 2 * READERS, 4 * READERS);
	device_close(device.device);
	input_close(job.input);
}

/* The CPU back end, which counts merged records and has no memory after some allocations. */
static struct backend probed_backend;
static struct backend_layout_ops probed_ops;
static uint64_t n_merged_records;
static int n_allocations_left;

static int alloc_a_few(struct device *device, enum memory_kind kind, size_t nbytes,
		       void **ret_memory)
{
	return n_allocations_left-- > 0 ? backend_cpu.alloc(device, kind, nbytes, ret_memory) :
					  -ENOMEM;
}

static int merge_sorted(struct device_queue *queue, const struct merge_op *op)
{
	for (uint32_t i = 0; i < op->k; i++) {
		const uint64_t *elements = op->slices[i].elements;

		for (uint64_t j = 1; j < op->slices[i].n; j++)
			assert_true(elements[j - 1] <= elements[j]);
		n_merged_records += op->slices[i].n;
	}
	return backend_cpu.ops_by_layout[LAYOUT_KEY_ONLY]->merge(queue, op);
}

/* Each stage of the device is measured, with runs that are sorted; without memory none is. */
TEST(stages_of_a_device_are_measured)
{
	enum { N_ALLOCATIONS = 4, N_RUNS = 3, N_RECORDS = (1 << 20) / 4 / 8 };
	static const struct backend_layout_ops *const ops[N_LAYOUT_KINDS] = { [LAYOUT_KEY_ONLY] =
										      &probed_ops };
	static const enum stage stages[] = { STAGE_UPLOAD, STAGE_ENCODE, STAGE_SORT,
					     STAGE_MERGE,  STAGE_DECODE, STAGE_DOWNLOAD };
	const struct calibration_request request = { .nbytes = 1 << 20,
						     .budget_ns = 10000 * MS,
						     .stages = { [STAGE_SORT] = true } };
	const struct backend_config config = { .n_threads = 1 };
	struct sort_device device = { 0 };
	struct layout layout;
	struct job job = {
		.layout = &layout,
		.devices = &device,
		.n_devices = 1,
		.plan = { .fan_in = N_RUNS, .sorts_on_cpu = true, .copies_to_device = true }
	};
	struct stage_rates rates;
	struct key key;

	assert_int_equal(key_parse_type("u64", &key), 0);
	assert_int_equal(layout_make_key_only(&key, &layout), 0);
	probed_backend = backend_cpu;
	probed_backend.ops_by_layout = ops;
	probed_backend.alloc = alloc_a_few;
	probed_ops = *backend_cpu.ops_by_layout[LAYOUT_KEY_ONLY];
	probed_ops.merge = merge_sorted;
	assert_int_equal(device_open(&probed_backend, &config, &device.device), 0);
	device_get_info(device.device, &job.device_info);
	for (int n = 0; n <= N_ALLOCATIONS; n++) {
		n_allocations_left = n;
		calibrate_stages(&job, &(struct sort_spec){ 0 }, &request, &rates);
		for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++)
			assert_int_equal(rates.bytes_per_s[stages[i]] > 0, n == N_ALLOCATIONS);
	}
	assert_int_equal(n_merged_records, 2 * (N_RECORDS / N_RUNS * N_RUNS));
	device_close(device.device);
}
