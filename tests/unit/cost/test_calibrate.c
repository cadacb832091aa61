/*
 * test_calibrate - how long measuring may take, and when it is worth it
 */
#include "src/cost/calibrate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "tests/support/io_fixture.h"

#include <cmocka.h> /* last: it makes a macro of fail */

#define MS UINT64_C(1000000)

enum { WRITE_MS = 5, BUDGET_MS = 500, WRITERS = 2, READERS = 3 };

/* Of a sort whose only phase took so long. */
static struct stats_totals totals_of(uint64_t elapsed_ns)
{
	struct stats_totals totals = { .elapsed_ns = elapsed_ns };

	totals.phases[PHASE_RUNS].has_begun = true;
	totals.phases[PHASE_RUNS].elapsed_ns = elapsed_ns;
	totals.phases[PHASE_RUNS].stages[STAGE_READ].nbytes = 1;
	return totals;
}

static void what_was_over_soon_is_not_measured(void **state)
{
	const struct stats_totals soon = totals_of(900 * MS), late = totals_of(3000 * MS);
	struct link_request request;

	(void)state;
	assert_false(rates_request_after(&soon, 1, &request));
	assert_true(rates_request_after(&late, 1, &request));
	assert_int_equal(request.budget_ns, 300 * MS);
	assert_true(request.wanted[STAGE_READ]);
	assert_false(request.wanted[STAGE_SORT]);
}

/* How many writes fit into the time, each of which takes at least WRITE_MS. */
static void measuring_ends_when_its_time_is_over(void **state)
{
	static const char *directories[] = { fixture_directory };
	const struct sort_spec spec = { .temp_dirs = directories, .n_temp_dirs = 1 };
	const struct job job = { .io = &faulty_calls, .plan = { .n_writers = WRITERS } };
	const struct link_request request = {
		.nbytes = UINT64_C(1) << 30,
		.budget_ns = BUDGET_MS * MS,
		.wanted = { [STAGE_SPILL] = true },
	};
	struct link_rates rates;

	(void)state;
	faults.marked_directory = fixture_directory;
	faults.marked_delay = WRITE_MS * 1000;
	rates_measure(&job, &spec, &request, &rates);
	assert_true(rates.rates[STAGE_SPILL] > 0);
	assert_true(faults.n_transfers <= WRITERS * (2 * BUDGET_MS / WRITE_MS + 1));
	assert_int_equal(faults.most_preallocated_nbytes, 0); /* which would be discarded */
}

/* The kernel reads ahead behind each piece: in little ones a slow file would be read many times. */
static void a_little_is_read_in_few_pieces(void **state)
{
	const struct backend_config config = { .n_threads = 1 };
	struct worker worker = { 0 };
	struct job job = { .io = &faulty_calls,
			   .workers = &worker,
			   .n_workers = 1,
			   .plan = { .n_readers = READERS, .record_nbytes = 8 } };
	const struct link_request request = {
		.nbytes = 1 << 20,
		.budget_ns = 10000 * MS,
		.wanted = { [STAGE_READ] = true },
	};
	const char *path = path_of("input");
	struct link_rates rates;

	(void)state;
	write_file(path, "", 1);
	assert_int_equal(truncate(path, 16 << 20), 0);
	assert_int_equal(input_open(&faulty_calls, &path, 1, 8, &job.input), 0);
	assert_int_equal(device_open(&backend_cpu, &config, &worker.device), 0);
	device_describe(worker.device, &job.info);
	faults.n_transfers = 0;
	rates_measure(&job, &(struct sort_spec){ 0 }, &request, &rates);
	assert_true(rates.rates[STAGE_READ] > 0);
	assert_in_range(faults.n_transfers, 2 * READERS, 4 * READERS);
	device_close(worker.device);
	input_close(job.input);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_over_soon_is_not_measured),
		cmocka_unit_test_setup_teardown(a_little_is_read_in_few_pieces, fixture_start,
						fixture_finish),
		cmocka_unit_test_setup_teardown(measuring_ends_when_its_time_is_over, fixture_start,
						fixture_finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
