/*
 * test_cuda_queues.c - the number of driver calls of queues, counted by the runtime of
 * cuda_emulation
 *
 * Each call of the driver takes microseconds, and queues of one GPU wait for each other in it. So
 * needless calls slow down merges of short windows.
 */

#include <cuda_runtime_api.h>

#include "tests/backend/subject.h"
#include "tests/support/unit_test.h"

enum { NBYTES = 4096, N_AT_A_TIME = 3, N_TIMES = 20 };

struct test_queues {
	struct subject subject;
	struct device_queue *other_queue;
	void *host, *device;
};

static void open_queues(struct test_queues *queues)
{
	struct device *device;

	assert_int_equal(subject_open(&backend_cuda, 1, &queues->subject), 0);
	device = queues->subject.device;
	assert_int_equal(device_queue_open(device, QUEUE_PRIORITY_NORMAL, &queues->other_queue), 0);
	assert_int_equal(device_alloc(device, MEMORY_HOST, NBYTES, &queues->host), 0);
	assert_int_equal(device_alloc(device, MEMORY_DEVICE, NBYTES, &queues->device), 0);
}

static void close_queues(struct test_queues *queues)
{
	struct device *device = queues->subject.device;

	device_free(device, MEMORY_HOST, queues->host, NBYTES);
	device_free(device, MEMORY_DEVICE, queues->device, NBYTES);
	device_queue_close(queues->other_queue);
	subject_close(&queues->subject);
}

static void upload_to(struct test_queues *queues, struct device_queue *queue)
{
	assert_int_equal(device_queue_copy(queue, queues->device, queues->host, NBYTES), 0);
}

/* Queue some operations; the last one waits for an event of another queue. */
static void run_queue_round(struct test_queues *queues)
{
	struct subject *subject = &queues->subject;

	for (unsigned i = 0; i < N_AT_A_TIME; i++)
		upload_to(queues, subject->queue);
	assert_int_equal(device_queue_record(subject->queue, subject->event), 0);
	assert_int_equal(device_queue_wait_event(queues->other_queue, subject->event), 0);
	upload_to(queues, queues->other_queue);
	assert_int_equal(device_event_wait(subject->event), 0);
	assert_int_equal(device_queue_synchronize(queues->other_queue, subject->event), 0);
}

TEST(operations_make_no_events_once_there_have_been_as_many)
{
	struct test_queues queues;
	unsigned n_events;

	open_queues(&queues);
	run_queue_round(&queues);
	n_events = runtime_n_events_made();
	for (unsigned i = 0; i < N_TIMES; i++)
		run_queue_round(&queues);
	assert_int_equal(runtime_n_events_made(), n_events);
	close_queues(&queues);
}

/* An operation that waits for a queue has a second event, to measure the wait. */
TEST(an_operation_has_one_event)
{
	struct test_queues queues;
	unsigned n_events;

	open_queues(&queues);
	n_events = runtime_n_events_made();
	run_queue_round(&queues);
	assert_int_equal(runtime_n_events_made(), n_events + N_AT_A_TIME + 2);
	close_queues(&queues);
}
