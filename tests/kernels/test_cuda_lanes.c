/*
 * test_cuda_lanes - what a lane of the CUDA back end costs, with the runtime of cuda_emulation
 *
 * Every call of the driver takes microseconds, and lanes of one GPU wait for each other in it: what
 * an operation does not have to ask for shows in how long a merge of short windows takes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>

#include "tests/backend/subject.h"

#include <cmocka.h> /* last: it makes a macro of fail */

enum { NBYTES = 4096, N_AT_A_TIME = 3, N_TIMES = 20 };

struct lanes {
	struct subject subject;
	struct lane *other;
	void *host, *device;
};

static void open_lanes(struct lanes *lanes)
{
	struct device *device;

	assert_int_equal(subject_open(&backend_cuda, 1, &lanes->subject), 0);
	device = lanes->subject.device;
	assert_int_equal(lane_open(device, LANE_NORMAL, &lanes->other), 0);
	assert_int_equal(device_alloc(device, MEMORY_HOST, NBYTES, &lanes->host), 0);
	assert_int_equal(device_alloc(device, MEMORY_DEVICE, NBYTES, &lanes->device), 0);
}

static void close_lanes(struct lanes *lanes)
{
	struct device *device = lanes->subject.device;

	device_release(device, MEMORY_HOST, lanes->host, NBYTES);
	device_release(device, MEMORY_DEVICE, lanes->device, NBYTES);
	lane_close(lanes->other);
	subject_close(&lanes->subject);
}

static void upload(struct lanes *lanes, struct lane *lane)
{
	assert_int_equal(lane_copy(lane, lanes->device, lanes->host, NBYTES), 0);
}

/* Some operations, of which the last waits for those of another lane. */
static void go_round(struct lanes *lanes)
{
	struct subject *subject = &lanes->subject;

	for (unsigned i = 0; i < N_AT_A_TIME; i++)
		upload(lanes, subject->lane);
	assert_int_equal(lane_mark(subject->lane, subject->mark), 0);
	assert_int_equal(lane_follow(lanes->other, subject->mark), 0);
	upload(lanes, lanes->other);
	assert_int_equal(mark_wait(subject->mark), 0);
	assert_int_equal(lane_wait(lanes->other, subject->mark), 0);
}

static void operations_make_no_events_once_there_have_been_as_many(void **state)
{
	struct lanes lanes;
	unsigned n_events;

	(void)state;
	open_lanes(&lanes);
	go_round(&lanes);
	n_events = runtime_n_events_made();
	for (unsigned i = 0; i < N_TIMES; i++)
		go_round(&lanes);
	assert_int_equal(runtime_n_events_made(), n_events);
	close_lanes(&lanes);
}

/* One that waits for a lane has one more, to tell how long. */
static void an_operation_has_one_event(void **state)
{
	struct lanes lanes;
	unsigned n_events;

	(void)state;
	open_lanes(&lanes);
	n_events = runtime_n_events_made();
	go_round(&lanes);
	assert_int_equal(runtime_n_events_made(), n_events + N_AT_A_TIME + 2);
	close_lanes(&lanes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_make_no_events_once_there_have_been_as_many),
		cmocka_unit_test(an_operation_has_one_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
