/*
 * test_device - a handle knows its back end, so several devices can be open at a time
 */
#include "src/device/device.h"

#include <errno.h>
#include <stdatomic.h>

#include "tests/support/unit_test.h"

static const struct layout layout = { .kind = LAYOUT_KEY_ONLY,
				      .record_nbytes = sizeof(uint64_t),
				      .resident_nbytes = sizeof(uint64_t),
				      .element_nbytes = sizeof(uint64_t) };

enum { N = 1000, NBYTES = N * sizeof(uint64_t) };

/* A device with one queue, and numbers to sort. */
struct bench {
	struct device *device;
	struct device_queue *queue;
	struct device_event *event;
	uint64_t *numbers;
	struct sort_op_result result;
	void *scratch;
	size_t scratch_nbytes;
};

static void bench_open(const struct backend *backend, unsigned n_threads, struct bench *bench)
{
	const struct backend_config config = { .n_threads = n_threads };
	void *numbers;

	assert_int_equal(device_open(backend, &config, &bench->device), 0);
	assert_int_equal(device_queue_open(bench->device, QUEUE_PRIORITY_NORMAL, &bench->queue), 0);
	assert_int_equal(device_event_open(bench->device, &bench->event), 0);
	assert_int_equal(device_alloc(bench->device, MEMORY_DEVICE, NBYTES, &numbers), 0);
	bench->numbers = numbers;
	bench->scratch_nbytes = device_sort_scratch_nbytes(bench->device, &layout, N) + 1;
	assert_int_equal(device_alloc(bench->device, MEMORY_DEVICE, bench->scratch_nbytes,
				      &bench->scratch),
			 0);
}

static void bench_close(struct bench *bench)
{
	device_queue_close(bench->queue);
	device_event_close(bench->event);
	device_free(bench->device, MEMORY_DEVICE, bench->numbers, NBYTES);
	device_free(bench->device, MEMORY_DEVICE, bench->scratch, bench->scratch_nbytes);
	device_close(bench->device);
}

/* Queue the sort of the numbers from n down to 1. */
static void queue_sort(struct bench *bench)
{
	for (uint64_t i = 0; i < N; i++)
		bench->numbers[i] = N - i;
	assert_int_equal(device_queue_sort(bench->queue,
					   &(struct sort_op){ .layout = &layout,
							      .items = bench->numbers,
							      .n = N,
							      .scratch = bench->scratch,
							      .ret = &bench->result }),
			 0);
}

static void expect_sorted(struct bench *bench)
{
	assert_int_equal(device_queue_synchronize(bench->queue, bench->event), 0);
	for (uint64_t i = 0; i < N; i++)
		assert_int_equal(bench->numbers[i], i + 1);
}

TEST(two_devices_of_a_kind_work_side_by_side)
{
	struct bench a, b;
	struct device_info info_a, info_b;

	bench_open(&backend_cpu, 1, &a);
	bench_open(&backend_cpu, 2, &b);
	device_get_info(a.device, &info_a);
	device_get_info(b.device, &info_b);
	assert_int_equal(info_a.n_queues, 1);
	assert_int_equal(info_b.n_queues, 2);
	queue_sort(&a);
	queue_sort(&b);
	expect_sorted(&b);
	bench_close(&b);
	expect_sorted(&a);
	bench_close(&a);
}

/* The CPU's table, but for a sort that counts, and one that fails. */
static atomic_uint n_counted;

static int counting_sort(struct device_queue *queue, const struct sort_op *op)
{
	n_counted++;
	return backend_cpu.ops_by_layout[LAYOUT_KEY_ONLY]->sort(queue, op);
}

static int failing_sort(struct device_queue *queue, const struct sort_op *op)
{
	(void)queue, (void)op;
	return -EIO;
}

TEST(devices_of_different_kinds_work_side_by_side)
{
	struct backend_layout_ops counts = *backend_cpu.ops_by_layout[LAYOUT_KEY_ONLY],
				  fails = counts;
	const struct backend_layout_ops *const counting_kinds[N_LAYOUT_KINDS] = { &counts };
	const struct backend_layout_ops *const failing_kinds[N_LAYOUT_KINDS] = { &fails };
	struct backend counting = backend_cpu, failing = backend_cpu;
	struct bench plain, counted, failed;

	counts.sort = counting_sort;
	counting.ops_by_layout = counting_kinds;
	fails.sort = failing_sort;
	failing.ops_by_layout = failing_kinds;
	n_counted = 0;
	bench_open(&backend_cpu, 1, &plain);
	bench_open(&counting, 1, &counted);
	bench_open(&failing, 1, &failed);
	queue_sort(&plain);
	assert_int_equal(n_counted, 0);
	queue_sort(&counted);
	assert_int_equal(n_counted, 1);
	assert_int_equal(device_queue_sort(failed.queue, &(struct sort_op){ .layout = &layout }),
			 -EIO);
	expect_sorted(&plain);
	expect_sorted(&counted);
	bench_close(&failed);
	bench_close(&plain);
	bench_close(&counted);
}

/* It has no row for them. */
TEST(device_reports_supported_layouts)
{
	const struct layout indirect_layout = { .kind = LAYOUT_INDIRECT };
	const struct backend_layout_ops *const kinds[N_LAYOUT_KINDS] = {
		[LAYOUT_KEY_ONLY] = backend_cpu.ops_by_layout[LAYOUT_KEY_ONLY],
	};
	struct backend one_kind = backend_cpu;
	const struct device device = { .backend = &one_kind }, cpu = { .backend = &backend_cpu };

	one_kind.ops_by_layout = kinds;
	assert_true(device_supports_layout(&device, &layout));
	assert_false(device_supports_layout(&device, &indirect_layout));
	assert_true(device_supports_layout(&cpu, &indirect_layout));
}

/* As opening fails half-way, and things are closed that never were. */
TEST(closing_null_is_allowed)
{
	device_queue_close(NULL);
	device_event_close(NULL);
	device_close(NULL);
}
