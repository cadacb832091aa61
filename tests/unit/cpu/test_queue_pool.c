/*
 * test_queue_pool - queues are queues, different queues run at once, and marks order them
 */
#include "src/device/cpu/queue_pool.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "src/base/cancellation.h"
#include "src/base/diagnostics.h"
#include "src/base/thread.h"
#include "tests/support/thread_gate.h"
#include "tests/support/captured_messages.h"
#include "tests/support/unit_test.h"

enum { N_TASKS = 1000, MAX_NOTES = 4 * N_TASKS };

/* What tasks do: open a gate, pass a gate, note that they ran; each unless it is NULL or 0. */
struct action {
	struct gate *open, *wait;
	int note;
};

/* The notes of a pool's tasks, in the order in which they ran. */
struct journal {
	pthread_mutex_t lock;
	size_t n;
	int notes[MAX_NOTES];
	atomic_uint n_stuck;
};

static struct journal journal = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void act(void *context, const void *arguments)
{
	struct journal *to = context;
	const struct action *action = arguments;

	if (action->open)
		gate_open(action->open, 1);
	if (action->wait && !gate_pass(action->wait))
		atomic_fetch_add(&to->n_stuck, 1);
	if (action->note) {
		pthread_mutex_lock(&to->lock);
		to->notes[to->n++] = action->note;
		pthread_mutex_unlock(&to->lock);
	}
}

static struct queue_pool *open_pool(unsigned n_threads)
{
	struct queue_pool *pool;

	journal.n = 0;
	journal.n_stuck = 0;
	assert_int_equal(queue_pool_open(n_threads, NULL, &journal, &pool), 0);
	return pool;
}

static void close_pool(struct queue_pool *pool)
{
	queue_pool_close(pool);
	assert_int_equal(journal.n_stuck, 0);
}

static struct device_queue *open_pool_queue(struct queue_pool *pool, enum queue_priority priority)
{
	struct device_queue *queue;

	assert_int_equal(pool_queue_open(pool, priority, &queue), 0);
	return queue;
}

static struct device_event *open_pool_event(struct queue_pool *pool)
{
	struct device_event *event;

	assert_int_equal(pool_event_open(pool, &event), 0);
	return event;
}

static void submit_task(struct device_queue *queue, struct action action)
{
	assert_int_equal(pool_queue_submit(queue, act, &action, sizeof action), 0);
}

static void submit_note(struct device_queue *queue, int note)
{
	submit_task(queue, (struct action){ .note = note });
}

static void assert_notes(const int *notes, size_t n)
{
	assert_int_equal(journal.n, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(journal.notes[i], notes[i]);
}

#define ASSERT_NOTES(...)                                                                          \
	assert_notes((const int[]){ __VA_ARGS__ }, sizeof((int[]){ __VA_ARGS__ }) / sizeof(int))

/*
 * Fewer threads than one are no help. The first test: threads that have ended leave their stacks to
 * others.
 */
TEST(failed_thread_reports_its_limit)
{
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
	skip();
#else
	struct rlimit before, little;
	struct queue_pool *pool;
	void *more;
	int r;

	captured_messages_reset(true);
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	little = before;
	little.rlim_cur = 1 << 20;
	assert_int_equal(setrlimit(RLIMIT_AS, &little), 0);
	more = mmap(NULL, 2 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (more != MAP_FAILED) { /* qemu-user limits nothing */
		assert_int_equal(munmap(more, 2 << 20), 0);
		assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
		skip();
	}
	r = queue_pool_open(1, NULL, NULL, &pool);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_int_equal(r, -EAGAIN);
	assert_non_null(strstr(captured_messages_error(), "cannot start thread 1 of 1: "));
	assert_non_null(strstr(captured_messages_error(), "ulimit -v (1024)"));
#endif
}

/* Queue l notes l * N_TASKS + 1, ... */
TEST(tasks_of_a_queue_run_in_order)
{
	struct queue_pool *pool = open_pool(3);
	struct device_queue *queues[4];
	int next[4];

	for (int l = 0; l < 4; l++) {
		queues[l] = open_pool_queue(pool, l == 1);
		next[l] = l * N_TASKS + 1;
	}
	for (int i = 1; i <= N_TASKS; i++)
		for (int l = 0; l < 4; l++)
			submit_note(queues[l], l * N_TASKS + i);
	for (int l = 0; l < 4; l++)
		pool_queue_close(queues[l]);
	close_pool(pool);
	assert_int_equal(journal.n, 4 * N_TASKS);
	for (size_t i = 0; i < journal.n; i++)
		assert_int_equal(journal.notes[i], next[(journal.notes[i] - 1) / N_TASKS]++);
}

/* Each task waits for what the other does. */
TEST(queues_run_concurrently)
{
	struct gate a_began = GATE_INITIALIZER, b_began = GATE_INITIALIZER;
	struct queue_pool *pool = open_pool(2);
	struct device_queue *a = open_pool_queue(pool, QUEUE_PRIORITY_NORMAL),
			    *b = open_pool_queue(pool, QUEUE_PRIORITY_NORMAL);

	submit_task(a, (struct action){ .open = &a_began, .wait = &b_began });
	submit_task(b, (struct action){ .open = &b_began, .wait = &a_began });
	pool_queue_close(a);
	pool_queue_close(b);
	close_pool(pool);
}

TEST(queue_waits_for_event)
{
	struct gate gate = GATE_INITIALIZER;
	struct queue_pool *pool = open_pool(2);
	struct device_queue *a = open_pool_queue(pool, QUEUE_PRIORITY_NORMAL),
			    *b = open_pool_queue(pool, QUEUE_PRIORITY_NORMAL);
	struct device_event *event = open_pool_event(pool);

	submit_task(a, (struct action){ .wait = &gate, .note = 1 });
	assert_int_equal(pool_queue_record(a, event), 0);
	submit_note(b, 2);
	assert_int_equal(pool_queue_wait_event(b, event), 0);
	submit_task(b, (struct action){ .note = 3 });
	gate_open(&gate, 1);
	pool_queue_close(b);
	pool_queue_close(a);
	pool_event_close(event);
	close_pool(pool);
	assert_int_equal(journal.n, 3);
	assert_int_equal(journal.notes[2], 3);
}

/* On one thread: were it waiting in a queue, the event could not be reached. */
TEST(parked_queues_hold_no_thread)
{
	struct gate gate = GATE_INITIALIZER;
	struct queue_pool *pool = open_pool(1);
	struct device_queue *first = open_pool_queue(pool, QUEUE_PRIORITY_NORMAL), *queues[10];
	struct device_event *event = open_pool_event(pool);

	submit_task(first, (struct action){ .wait = &gate, .note = 1 });
	assert_int_equal(pool_queue_record(first, event), 0);
	for (int i = 0; i < 10; i++) {
		queues[i] = open_pool_queue(pool, i % 2);
		assert_int_equal(pool_queue_wait_event(queues[i], event), 0);
		submit_note(queues[i], 2);
	}
	gate_open(&gate, 1);
	for (int i = 0; i < 10; i++)
		pool_queue_close(queues[i]);
	pool_queue_close(first);
	pool_event_close(event);
	close_pool(pool);
	ASSERT_NOTES(1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2);
}

TEST(high_priority_queues_run_first)
{
	struct gate began = GATE_INITIALIZER, gate = GATE_INITIALIZER;
	struct queue_pool *pool = open_pool(1);
	struct device_queue *first = open_pool_queue(pool, QUEUE_PRIORITY_NORMAL),
			    *normal = open_pool_queue(pool, QUEUE_PRIORITY_NORMAL);
	struct device_queue *low_priority = open_pool_queue(pool, QUEUE_PRIORITY_LOW);
	struct device_queue *urgent = open_pool_queue(pool, QUEUE_PRIORITY_HIGH);

	submit_task(first, (struct action){ .open = &began, .wait = &gate, .note = 1 });
	assert_true(gate_pass(&began));
	submit_note(low_priority, 4);
	submit_note(normal, 3);
	submit_note(urgent, 2);
	gate_open(&gate, 1);
	pool_queue_close(first);
	pool_queue_close(low_priority);
	pool_queue_close(normal);
	pool_queue_close(urgent);
	close_pool(pool);
	ASSERT_NOTES(1, 2, 3, 4);
}

TEST(waiter_runs_high_priority_queues)
{
	struct gate began = GATE_INITIALIZER, gate = GATE_INITIALIZER;
	struct queue_pool *pool = open_pool(1);
	struct device_queue *first = open_pool_queue(pool, QUEUE_PRIORITY_NORMAL),
			    *urgent = open_pool_queue(pool, QUEUE_PRIORITY_HIGH);
	struct device_event *event = open_pool_event(pool);

	submit_task(first, (struct action){ .open = &began, .wait = &gate, .note = 2 });
	assert_true(gate_pass(&began));
	submit_note(urgent, 1);
	assert_int_equal(pool_queue_record(urgent, event), 0);
	pool_event_wait(event);
	gate_open(&gate, 1);
	pool_queue_close(first);
	pool_queue_close(urgent);
	pool_event_close(event);
	close_pool(pool);
	ASSERT_NOTES(1, 2);
}

TEST(long_queue_yields_to_others)
{
	struct gate gate = GATE_INITIALIZER;
	struct queue_pool *pool = open_pool(1);
	struct device_queue *a = open_pool_queue(pool, QUEUE_PRIORITY_NORMAL),
			    *b = open_pool_queue(pool, QUEUE_PRIORITY_NORMAL);

	submit_task(a, (struct action){ .wait = &gate, .note = 1 });
	submit_note(a, 3);
	submit_note(a, 5);
	submit_note(b, 2);
	submit_note(b, 4);
	gate_open(&gate, 1);
	pool_queue_close(a);
	pool_queue_close(b);
	close_pool(pool);
	ASSERT_NOTES(1, 2, 3, 4, 5);
}

TEST(unrecorded_event_does_not_block)
{
	struct queue_pool *pool = open_pool(1);
	struct device_queue *queue = open_pool_queue(pool, QUEUE_PRIORITY_NORMAL);
	struct device_event *event = open_pool_event(pool);

	pool_event_wait(event);
	assert_int_equal(pool_queue_wait_event(queue, event), 0);
	submit_note(queue, 1);
	pool_queue_close(queue);
	pool_event_close(event);
	close_pool(pool);
	ASSERT_NOTES(1);
}

TEST(host_waits_for_an_event)
{
	struct queue_pool *pool = open_pool(2);
	struct device_queue *queue = open_pool_queue(pool, QUEUE_PRIORITY_NORMAL);
	struct device_event *event = open_pool_event(pool);

	for (int i = 1; i <= N_TASKS; i++) {
		submit_note(queue, i);
		assert_int_equal(pool_queue_record(queue, event), 0);
		pool_event_wait(event);
		assert_int_equal(journal.n, i);
	}
	pool_queue_close(queue);
	pool_event_close(event);
	close_pool(pool);
}

/* `follower` must wait for the tasks before the event, not for later ones. */
TEST(rerecorded_event_does_not_block)
{
	struct gate first = GATE_INITIALIZER, never_before_end = GATE_INITIALIZER;
	struct queue_pool *pool = open_pool(2);
	struct device_queue *queue = open_pool_queue(pool, QUEUE_PRIORITY_NORMAL),
			    *follower = open_pool_queue(pool, QUEUE_PRIORITY_NORMAL);
	struct device_event *event = open_pool_event(pool);

	submit_task(queue, (struct action){ .wait = &first, .note = 1 });
	assert_int_equal(pool_queue_record(queue, event), 0);
	assert_int_equal(pool_queue_wait_event(follower, event), 0);
	submit_note(follower, 2);
	submit_task(queue, (struct action){ .wait = &never_before_end, .note = 3 });
	assert_int_equal(pool_queue_record(queue, event), 0);
	gate_open(&first, 1);
	pool_queue_close(follower);
	gate_open(&never_before_end, 1);
	pool_event_wait(event);
	ASSERT_NOTES(1, 2, 3);
	pool_queue_close(queue);
	pool_event_close(event);
	close_pool(pool);
}

TEST(chain_of_queues_runs_in_order)
{
	enum { N_TEST_QUEUES = 50 };
	struct queue_pool *pool = open_pool(2);
	struct device_queue *queues[N_TEST_QUEUES];
	struct device_event *events[N_TEST_QUEUES];
	struct gate gate = GATE_INITIALIZER;

	for (int i = 0; i < N_TEST_QUEUES; i++) {
		queues[i] = open_pool_queue(pool, i % 3 == 0);
		events[i] = open_pool_event(pool);
	}
	submit_task(queues[0], (struct action){ .wait = &gate });
	for (int i = 0; i < N_TEST_QUEUES; i++) {
		if (i)
			assert_int_equal(pool_queue_wait_event(queues[i], events[i - 1]), 0);
		submit_note(queues[i], i + 1);
		assert_int_equal(pool_queue_record(queues[i], events[i]), 0);
	}
	gate_open(&gate, 1);
	pool_event_wait(events[N_TEST_QUEUES - 1]);
	assert_int_equal(journal.n, N_TEST_QUEUES);
	for (int i = 0; i < N_TEST_QUEUES; i++) {
		assert_int_equal(journal.notes[i], i + 1);
		pool_queue_close(queues[i]);
		pool_event_close(events[i]);
	}
	close_pool(pool);
}

static void warn_of_task(void *context, const void *arguments)
{
	(void)context;
	warn("task %d", *(const int *)arguments);
}

static void count_warning(void *context, const struct message *message)
{
	unsigned *n = context;

	(void)message;
	(*n)++;
}

TEST(task_messages_reach_submitter)
{
	struct queue_pool *pool = open_pool(2);
	struct diagnostics messages[2];
	unsigned n_warnings[2] = { 0 };
	struct device_queue *queue;
	struct device_event *event;

	assert_int_equal(pool_queue_open(pool, QUEUE_PRIORITY_HIGH, &queue), 0);
	assert_int_equal(pool_event_open(pool, &event), 0);
	for (int i = 0; i < 2; i++)
		diagnostics_init(&messages[i], count_warning, &n_warnings[i]);
	for (int i = 0; i < N_TASKS; i++) {
		diagnostics_push(&messages[i % 3 == 0]);
		assert_int_equal(pool_queue_submit(queue, warn_of_task, &i, sizeof i), 0);
	}
	assert_int_equal(pool_queue_record(queue, event), 0);
	pool_event_wait(event); /* and takes a part in them */
	assert_ptr_equal(diagnostics_push(NULL), &messages[(N_TASKS - 1) % 3 == 0]);
	assert_int_equal(n_warnings[0], N_TASKS - (N_TASKS + 2) / 3);
	assert_int_equal(n_warnings[1], (N_TASKS + 2) / 3);
	pool_event_close(event);
	pool_queue_close(queue);
	close_pool(pool);
	for (int i = 0; i < 2; i++)
		diagnostics_destroy(&messages[i]);
}

TEST(data_limit_limits_threads)
{
	struct rlimit before, limit;

	assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
	limit = before;
	limit.rlim_cur = UINT64_C(1) << 40;
	if (setrlimit(RLIMIT_DATA, &limit) < 0)
		skip();
	assert_int_equal(getrlimit(RLIMIT_DATA, &limit), 0);
	if (limit.rlim_cur != UINT64_C(1) << 40) /* qemu-user limits nothing */
		skip();
	assert_non_null(strstr(thread_format_limits(-EAGAIN).text, " ulimit -d (1073741824)"));
	assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
	assert_string_equal(thread_format_limits(-ENOMEM).text, "");
}

TEST(cancelled_pool_skips_tasks)
{
	struct cancellation cancellation;
	struct queue_pool *pool;
	struct device_queue *queue;
	struct device_event *event;

	captured_messages_reset(true);
	journal.n = 0;
	cancellation_init(&cancellation);
	assert_int_equal(queue_pool_open(1, &cancellation, &journal, &pool), 0);
	queue = open_pool_queue(pool, QUEUE_PRIORITY_NORMAL);
	event = open_pool_event(pool);
	submit_note(queue, 1);
	assert_int_equal(pool_queue_record(queue, event), 0);
	assert_int_equal(pool_event_wait(event), 0);
	cancellation_request(&cancellation);
	submit_note(queue, 2);
	assert_int_equal(pool_queue_record(queue, event), 0);
	assert_int_equal(pool_event_wait(event), -ECANCELED);
	assert_string_equal(captured_messages_error(), "cancelled");
	pool_queue_close(queue);
	pool_event_close(event);
	close_pool(pool);
	cancellation_destroy(&cancellation);
	ASSERT_NOTES(1);
}
