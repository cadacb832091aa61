/*
 * test_device - a handle knows its back end, so several devices can be open at a time
 */
#include "src/device/device.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct layout layout = { .kind = LAYOUT_CODES,
				      .record_nbytes = sizeof(uint64_t),
				      .resident_nbytes = sizeof(uint64_t),
				      .element_nbytes = sizeof(uint64_t) };

enum { N = 1000, NBYTES = N * sizeof(uint64_t) };

/* A device with one lane, and numbers to sort. */
struct bench {
	struct device *device;
	struct lane *lane;
	struct mark *mark;
	uint64_t *numbers;
	struct arranged arranged;
	void *scratch;
	size_t scratch_nbytes;
};

static void bench_open(const struct backend *backend, unsigned n_threads, struct bench *bench)
{
	const struct backend_config config = { .n_threads = n_threads };
	void *numbers;

	assert_int_equal(device_open(backend, &config, &bench->device), 0);
	assert_int_equal(lane_open(bench->device, LANE_NORMAL, &bench->lane), 0);
	assert_int_equal(mark_open(bench->device, &bench->mark), 0);
	assert_int_equal(device_alloc(bench->device, MEMORY_DEVICE, NBYTES, &numbers), 0);
	bench->numbers = numbers;
	bench->scratch_nbytes = device_sort_scratch_nbytes(bench->device, &layout, N) + 1;
	assert_int_equal(device_alloc(bench->device, MEMORY_DEVICE, bench->scratch_nbytes,
				      &bench->scratch),
			 0);
}

static void bench_close(struct bench *bench)
{
	lane_close(bench->lane);
	mark_close(bench->mark);
	device_release(bench->device, MEMORY_DEVICE, bench->numbers, NBYTES);
	device_release(bench->device, MEMORY_DEVICE, bench->scratch, bench->scratch_nbytes);
	device_close(bench->device);
}

/* Queue the sort of the numbers from n down to 1. */
static void queue_sort(struct bench *bench)
{
	for (uint64_t i = 0; i < N; i++)
		bench->numbers[i] = N - i;
	assert_int_equal(lane_sort(bench->lane, &(struct sort_op){ .layout = &layout,
								   .items = bench->numbers,
								   .n = N,
								   .scratch = bench->scratch,
								   .ret = &bench->arranged }),
			 0);
}

static void expect_sorted(struct bench *bench)
{
	assert_int_equal(lane_wait(bench->lane, bench->mark), 0);
	for (uint64_t i = 0; i < N; i++)
		assert_int_equal(bench->numbers[i], i + 1);
}

static void two_devices_of_a_kind_work_side_by_side(void **state)
{
	struct bench a, b;
	struct device_info info_a, info_b;

	(void)state;
	bench_open(&backend_cpu, 1, &a);
	bench_open(&backend_cpu, 2, &b);
	device_describe(a.device, &info_a);
	device_describe(b.device, &info_b);
	assert_int_equal(info_a.n_lanes, 1);
	assert_int_equal(info_b.n_lanes, 2);
	queue_sort(&a);
	queue_sort(&b);
	expect_sorted(&b);
	bench_close(&b);
	expect_sorted(&a);
	bench_close(&a);
}

/* The CPU's table, but for a sort that counts, and one that fails. */
static atomic_uint n_counted;

static int counting_sort(struct lane *lane, const struct sort_op *op)
{
	n_counted++;
	return backend_cpu.kinds[LAYOUT_CODES]->sort(lane, op);
}

static int failing_sort(struct lane *lane, const struct sort_op *op)
{
	(void)lane, (void)op;
	return -EIO;
}

static void devices_of_different_kinds_work_side_by_side(void **state)
{
	struct backend_kind counts = *backend_cpu.kinds[LAYOUT_CODES], fails = counts;
	const struct backend_kind *const counting_kinds[N_LAYOUT_KINDS] = { &counts };
	const struct backend_kind *const failing_kinds[N_LAYOUT_KINDS] = { &fails };
	struct backend counting = backend_cpu, failing = backend_cpu;
	struct bench plain, counted, failed;

	(void)state;
	counts.sort = counting_sort;
	counting.kinds = counting_kinds;
	fails.sort = failing_sort;
	failing.kinds = failing_kinds;
	n_counted = 0;
	bench_open(&backend_cpu, 1, &plain);
	bench_open(&counting, 1, &counted);
	bench_open(&failing, 1, &failed);
	queue_sort(&plain);
	assert_int_equal(n_counted, 0);
	queue_sort(&counted);
	assert_int_equal(n_counted, 1);
	assert_int_equal(lane_sort(failed.lane, &(struct sort_op){ .layout = &layout }), -EIO);
	expect_sorted(&plain);
	expect_sorted(&counted);
	bench_close(&failed);
	bench_close(&plain);
	bench_close(&counted);
}

/* It has no row for them. */
static void device_says_which_kinds_it_takes(void **state)
{
	const struct layout references = { .kind = LAYOUT_REFERENCES };
	const struct backend_kind *const kinds[N_LAYOUT_KINDS] = {
		[LAYOUT_CODES] = backend_cpu.kinds[LAYOUT_CODES],
	};
	struct backend one_kind = backend_cpu;
	const struct device device = { .backend = &one_kind }, cpu = { .backend = &backend_cpu };

	(void)state;
	one_kind.kinds = kinds;
	assert_true(device_takes(&device, &layout));
	assert_false(device_takes(&device, &references));
	assert_true(device_takes(&cpu, &references));
}

/* As opening fails half-way, and things are closed that never were. */
static void what_was_not_opened_can_be_closed(void **state)
{
	(void)state;
	lane_close(NULL);
	mark_close(NULL);
	device_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_devices_of_a_kind_work_side_by_side),
		cmocka_unit_test(devices_of_different_kinds_work_side_by_side),
		cmocka_unit_test(device_says_which_kinds_it_takes),
		cmocka_unit_test(what_was_not_opened_can_be_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
