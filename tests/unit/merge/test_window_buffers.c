/*
 * test_window_buffers - buffers of windows go from one merge to the next, if they are large enough
 */
#include "tests/support/numbered_runs.h"

#include <errno.h>

#include "src/merge/passes.h"

static const struct window_buffers *take(uint32_t n, uint64_t nbytes)
{
	const struct window_sizes sizes = { .in = nbytes, .out = nbytes, .scratch = nbytes / 2 };
	const struct window_buffers *buffers;

	assert_int_equal(window_memory_take(job_windows(&job), &job, n, &sizes, &buffers), 0);
	for (uint32_t i = 0; i < n; i++) {
		assert_non_null(buffers[i].lane);
		assert_non_null(buffers[i].mark);
		assert_null(buffers[i].host);
		memset(buffers[i].in, 1, nbytes);
		memset(buffers[i].out, 1, nbytes);
		memset(buffers[i].scratch, 1, nbytes / 2);
	}
	return buffers;
}

static void what_is_large_enough_is_kept(void **state)
{
	const void *in, *out;

	(void)state;
	job_start("u64", false, MEMORY_UNIFIED);
	in = take(3, 1 << 20)[2].in;
	assert_ptr_equal(take(3, 1 << 20)[2].in, in);
	assert_ptr_equal(take(3, 1 << 16)[2].in, in);
	out = take(3, 1 << 20)[0].out;
	assert_ptr_equal(take(3, 1 << 20)[0].out, out);
}

static void more_is_made_if_it_is_wanted(void **state)
{
	(void)state;
	job_start("u64", false, MEMORY_UNIFIED);
	take(3, 1 << 16);
	take(3, 1 << 22);
	take(5, 1 << 16);
	take(2, 1 << 16);
}

/* How many bytes of memory the last merge has taken from the back end. */
static uint64_t n_allocated;

static int count_alloc(struct device *device, enum memory kind, size_t nbytes, void **ret_memory)
{
	n_allocated += nbytes;
	return backend_cpu.alloc(device, kind, nbytes, ret_memory);
}

static void merge_four_runs(void)
{
	struct ledger none = { 0 };

	for (uint64_t run = 0; run < 4; run++)
		add_numbers(RESIDENT, random_number, LONG_RUN, run);
	n_allocated = 0;
	assert_int_equal(merge_to_run(&job, &store, store.n - 4, 4, 0, &none), 0);
}

static void second_spilled_run_takes_no_more_memory(void **state)
{
	static struct backend counting; /* as long as its lanes */

	(void)state;
	job_start("u64", false, MEMORY_UNIFIED);
	counting = backend_cpu;
	counting.alloc = count_alloc;
	job_device(&job)->backend = &counting;
	merge_four_runs();
	assert_true(n_allocated > 0);
	merge_four_runs();
	assert_int_equal(n_allocated, 0);
}

static int no_memory(struct device *device, enum memory kind, size_t nbytes, void **ret_memory)
{
	(void)device, (void)kind, (void)nbytes, (void)ret_memory;
	return -ENOMEM;
}

static void want_of_memory_is_said_of_the_device(void **state)
{
	static struct backend without;
	const struct window_sizes sizes = { .in = 4096, .out = 4096 };
	const struct window_buffers *buffers;
	struct device_info info;

	(void)state;
	job_start("u64", false, MEMORY_UNIFIED);
	without = backend_cpu;
	without.alloc = no_memory;
	job_device(&job)->backend = &without;
	assert_int_equal(window_memory_take(job_windows(&job), &job, 1, &sizes, &buffers), -ENOMEM);
	device_describe(job_device(&job), &info);
	assert_memory_equal(messages_last(), info.name, strlen(info.name));
	assert_non_null(strstr(messages_last(), "no memory for windows of 4096 bytes"));
	assert_int_equal(messages_last_hint(), HINT_LESS_MEMORY);
}

int main(void)
{
#define FIXTURE(name) cmocka_unit_test_setup_teardown(name, start, finish)
	const struct CMUnitTest tests[] = {
		FIXTURE(what_is_large_enough_is_kept),
		FIXTURE(more_is_made_if_it_is_wanted),
		FIXTURE(second_spilled_run_takes_no_more_memory),
		FIXTURE(want_of_memory_is_said_of_the_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
