/*
 * test_queue_pool - lanes are queues, different lanes run at once, and marks order them
 */
#include "src/device/cpu/queue_pool.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "src/base/diagnostics.h"
#include "src/base/thread.h"
#include "tests/support/thread_gate.h"
#include "tests/support/captured_messages.h"

#include <cmocka.h>

enum { N_TASKS = 1000, MOST_NOTES = 4 * N_TASKS };

/* What tasks do: open a gate, pass a gate, note that they ran; each unless it is NULL or 0. */
struct action {
	struct gate *open, *wait;
	int note;
};

/* The notes of a pool's tasks, in the order in which they ran. */
struct journal {
	pthread_mutex_t lock;
	size_t n;
	int notes[MOST_NOTES];
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

static struct lane_pool *open_pool(unsigned n_threads)
{
	struct lane_pool *pool;

	journal.n = 0;
	journal.n_stuck = 0;
	assert_int_equal(lane_pool_open(n_threads, &journal, &pool), 0);
	return pool;
}

static void close_pool(struct lane_pool *pool)
{
	lane_pool_close(pool);
	assert_int_equal(journal.n_stuck, 0);
}

static struct lane *open_lane(struct lane_pool *pool, enum lane_urgency urgency)
{
	struct lane *lane;

	assert_int_equal(lane_pool_lane_open(pool, urgency, &lane), 0);
	return lane;
}

static struct mark *open_mark(struct lane_pool *pool)
{
	struct mark *mark;

	assert_int_equal(lane_pool_mark_open(pool, &mark), 0);
	return mark;
}

static void queue(struct lane *lane, struct action action)
{
	assert_int_equal(lane_pool_queue(lane, act, &action, sizeof action), 0);
}

static void queue_note(struct lane *lane, int note)
{
	queue(lane, (struct action){ .note = note });
}

static void assert_notes(const int *notes, size_t n)
{
	assert_int_equal(journal.n, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(journal.notes[i], notes[i]);
}

#define ASSERT_NOTES(...)                                                                          \
	assert_notes((const int[]){ __VA_ARGS__ }, sizeof((int[]){ __VA_ARGS__ }) / sizeof(int))

/* Lane l notes l * N_TASKS + 1, ... */
static void tasks_of_a_lane_run_in_order(void **state)
{
	struct lane_pool *pool = open_pool(3);
	struct lane *lanes[4];
	int next[4];

	(void)state;
	for (int l = 0; l < 4; l++) {
		lanes[l] = open_lane(pool, l == 1);
		next[l] = l * N_TASKS + 1;
	}
	for (int i = 1; i <= N_TASKS; i++)
		for (int l = 0; l < 4; l++)
			queue_note(lanes[l], l * N_TASKS + i);
	for (int l = 0; l < 4; l++)
		lane_pool_lane_close(lanes[l]);
	close_pool(pool);
	assert_int_equal(journal.n, 4 * N_TASKS);
	for (size_t i = 0; i < journal.n; i++)
		assert_int_equal(journal.notes[i], next[(journal.notes[i] - 1) / N_TASKS]++);
}

/* Each task waits for what the other does. */
static void lanes_run_at_the_same_time(void **state)
{
	struct gate a_began = GATE_CLOSED, b_began = GATE_CLOSED;
	struct lane_pool *pool = open_pool(2);
	struct lane *a = open_lane(pool, LANE_NORMAL), *b = open_lane(pool, LANE_NORMAL);

	(void)state;
	queue(a, (struct action){ .open = &a_began, .wait = &b_began });
	queue(b, (struct action){ .open = &b_began, .wait = &a_began });
	lane_pool_lane_close(a);
	lane_pool_lane_close(b);
	close_pool(pool);
}

static void lane_that_follows_waits(void **state)
{
	struct gate gate = GATE_CLOSED;
	struct lane_pool *pool = open_pool(2);
	struct lane *a = open_lane(pool, LANE_NORMAL), *b = open_lane(pool, LANE_NORMAL);
	struct mark *mark = open_mark(pool);

	(void)state;
	queue(a, (struct action){ .wait = &gate, .note = 1 });
	assert_int_equal(lane_pool_mark(a, mark), 0);
	queue_note(b, 2);
	assert_int_equal(lane_pool_follow(b, mark), 0);
	queue(b, (struct action){ .note = 3 });
	gate_open(&gate, 1);
	lane_pool_lane_close(b);
	lane_pool_lane_close(a);
	lane_pool_mark_close(mark);
	close_pool(pool);
	assert_int_equal(journal.n, 3);
	assert_int_equal(journal.notes[2], 3);
}

/* On one thread: were it waiting in a lane, the mark could not be reached. */
static void parked_lanes_hold_no_thread(void **state)
{
	struct gate gate = GATE_CLOSED;
	struct lane_pool *pool = open_pool(1);
	struct lane *first = open_lane(pool, LANE_NORMAL), *lanes[10];
	struct mark *mark = open_mark(pool);

	(void)state;
	queue(first, (struct action){ .wait = &gate, .note = 1 });
	assert_int_equal(lane_pool_mark(first, mark), 0);
	for (int i = 0; i < 10; i++) {
		lanes[i] = open_lane(pool, i % 2);
		assert_int_equal(lane_pool_follow(lanes[i], mark), 0);
		queue_note(lanes[i], 2);
	}
	gate_open(&gate, 1);
	for (int i = 0; i < 10; i++)
		lane_pool_lane_close(lanes[i]);
	lane_pool_lane_close(first);
	lane_pool_mark_close(mark);
	close_pool(pool);
	ASSERT_NOTES(1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2);
}

static void urgent_lanes_overtake(void **state)
{
	struct gate began = GATE_CLOSED, gate = GATE_CLOSED;
	struct lane_pool *pool = open_pool(1);
	struct lane *first = open_lane(pool, LANE_NORMAL), *normal = open_lane(pool, LANE_NORMAL);
	struct lane *patient = open_lane(pool, LANE_PATIENT);
	struct lane *urgent = open_lane(pool, LANE_URGENT);

	(void)state;
	queue(first, (struct action){ .open = &began, .wait = &gate, .note = 1 });
	assert_true(gate_pass(&began));
	queue_note(patient, 4);
	queue_note(normal, 3);
	queue_note(urgent, 2);
	gate_open(&gate, 1);
	lane_pool_lane_close(first);
	lane_pool_lane_close(patient);
	lane_pool_lane_close(normal);
	lane_pool_lane_close(urgent);
	close_pool(pool);
	ASSERT_NOTES(1, 2, 3, 4);
}

static void who_waits_runs_urgent_lanes(void **state)
{
	struct gate began = GATE_CLOSED, gate = GATE_CLOSED;
	struct lane_pool *pool = open_pool(1);
	struct lane *first = open_lane(pool, LANE_NORMAL), *urgent = open_lane(pool, LANE_URGENT);
	struct mark *mark = open_mark(pool);

	(void)state;
	queue(first, (struct action){ .open = &began, .wait = &gate, .note = 2 });
	assert_true(gate_pass(&began));
	queue_note(urgent, 1);
	assert_int_equal(lane_pool_mark(urgent, mark), 0);
	lane_pool_wait(mark);
	gate_open(&gate, 1);
	lane_pool_lane_close(first);
	lane_pool_lane_close(urgent);
	lane_pool_mark_close(mark);
	close_pool(pool);
	ASSERT_NOTES(1, 2);
}

static void long_lane_lets_others_have_their_turn(void **state)
{
	struct gate gate = GATE_CLOSED;
	struct lane_pool *pool = open_pool(1);
	struct lane *a = open_lane(pool, LANE_NORMAL), *b = open_lane(pool, LANE_NORMAL);

	(void)state;
	queue(a, (struct action){ .wait = &gate, .note = 1 });
	queue_note(a, 3);
	queue_note(a, 5);
	queue_note(b, 2);
	queue_note(b, 4);
	gate_open(&gate, 1);
	lane_pool_lane_close(a);
	lane_pool_lane_close(b);
	close_pool(pool);
	ASSERT_NOTES(1, 2, 3, 4, 5);
}

static void mark_never_set_is_reached(void **state)
{
	struct lane_pool *pool = open_pool(1);
	struct lane *lane = open_lane(pool, LANE_NORMAL);
	struct mark *mark = open_mark(pool);

	(void)state;
	lane_pool_wait(mark);
	assert_int_equal(lane_pool_follow(lane, mark), 0);
	queue_note(lane, 1);
	lane_pool_lane_close(lane);
	lane_pool_mark_close(mark);
	close_pool(pool);
	ASSERT_NOTES(1);
}

static void host_waits_for_a_mark(void **state)
{
	struct lane_pool *pool = open_pool(2);
	struct lane *lane = open_lane(pool, LANE_NORMAL);
	struct mark *mark = open_mark(pool);

	(void)state;
	for (int i = 1; i <= N_TASKS; i++) {
		queue_note(lane, i);
		assert_int_equal(lane_pool_mark(lane, mark), 0);
		lane_pool_wait(mark);
		assert_int_equal(journal.n, i);
	}
	lane_pool_lane_close(lane);
	lane_pool_mark_close(mark);
	close_pool(pool);
}

/* `follower` is to wait for what was marked when it was told to follow, not for what came later. */
static void mark_that_moves_on_does_not_hold_followers(void **state)
{
	struct gate first = GATE_CLOSED, never_before_end = GATE_CLOSED;
	struct lane_pool *pool = open_pool(2);
	struct lane *lane = open_lane(pool, LANE_NORMAL), *follower = open_lane(pool, LANE_NORMAL);
	struct mark *mark = open_mark(pool);

	(void)state;
	queue(lane, (struct action){ .wait = &first, .note = 1 });
	assert_int_equal(lane_pool_mark(lane, mark), 0);
	assert_int_equal(lane_pool_follow(follower, mark), 0);
	queue_note(follower, 2);
	queue(lane, (struct action){ .wait = &never_before_end, .note = 3 });
	assert_int_equal(lane_pool_mark(lane, mark), 0);
	gate_open(&first, 1);
	lane_pool_lane_close(follower);
	gate_open(&never_before_end, 1);
	lane_pool_wait(mark);
	ASSERT_NOTES(1, 2, 3);
	lane_pool_lane_close(lane);
	lane_pool_mark_close(mark);
	close_pool(pool);
}

static void chain_of_lanes_runs_in_order(void **state)
{
	enum { N_LANES = 50 };
	struct lane_pool *pool = open_pool(2);
	struct lane *lanes[N_LANES];
	struct mark *marks[N_LANES];
	struct gate gate = GATE_CLOSED;

	(void)state;
	for (int i = 0; i < N_LANES; i++) {
		lanes[i] = open_lane(pool, i % 3 == 0);
		marks[i] = open_mark(pool);
	}
	queue(lanes[0], (struct action){ .wait = &gate });
	for (int i = 0; i < N_LANES; i++) {
		if (i)
			assert_int_equal(lane_pool_follow(lanes[i], marks[i - 1]), 0);
		queue_note(lanes[i], i + 1);
		assert_int_equal(lane_pool_mark(lanes[i], marks[i]), 0);
	}
	gate_open(&gate, 1);
	lane_pool_wait(marks[N_LANES - 1]);
	assert_int_equal(journal.n, N_LANES);
	for (int i = 0; i < N_LANES; i++) {
		assert_int_equal(journal.notes[i], i + 1);
		lane_pool_lane_close(lanes[i]);
		lane_pool_mark_close(marks[i]);
	}
	close_pool(pool);
}

static void closing_a_lane_waits_for_its_tasks(void **state)
{
	struct lane_pool *pool = open_pool(2);
	struct lane *lane = open_lane(pool, LANE_NORMAL);

	(void)state;
	for (int i = 1; i <= 100; i++)
		queue_note(lane, i);
	lane_pool_lane_close(lane);
	assert_int_equal(journal.n, 100);
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

static void what_tasks_say_comes_to_who_queued_them(void **state)
{
	struct lane_pool *pool = open_pool(2);
	struct messages messages[2];
	unsigned n_heard[2] = { 0 };
	struct lane *lane;
	struct mark *mark;

	(void)state;
	assert_int_equal(lane_pool_lane_open(pool, LANE_URGENT, &lane), 0);
	assert_int_equal(lane_pool_mark_open(pool, &mark), 0);
	for (int i = 0; i < 2; i++)
		messages_init(&messages[i], count_warning, &n_heard[i]);
	for (int i = 0; i < N_TASKS; i++) {
		messages_enter(&messages[i % 3 == 0]);
		assert_int_equal(lane_pool_queue(lane, warn_of_task, &i, sizeof i), 0);
	}
	assert_int_equal(lane_pool_mark(lane, mark), 0);
	lane_pool_wait(mark); /* and takes a part in them */
	assert_ptr_equal(messages_enter(NULL), &messages[(N_TASKS - 1) % 3 == 0]);
	assert_int_equal(n_heard[0], N_TASKS - (N_TASKS + 2) / 3);
	assert_int_equal(n_heard[1], (N_TASKS + 2) / 3);
	lane_pool_mark_close(mark);
	lane_pool_lane_close(lane);
	close_pool(pool);
	for (int i = 0; i < 2; i++)
		messages_destroy(&messages[i]);
}

/* Fewer threads than one are no help. */
static void thread_that_cannot_be_started_is_told_with_what_limits_it(void **state)
{
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
	(void)state;
	skip();
#else
	struct rlimit before, little;
	struct lane_pool *pool;
	void *more;
	int r;

	(void)state;
	messages_reset(true);
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
	r = lane_pool_open(1, NULL, &pool);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_int_equal(r, -EAGAIN);
	assert_non_null(strstr(messages_last(), "cannot start thread 1 of 1: "));
	assert_non_null(strstr(messages_last(), "ulimit -v, which is 1024"));
	assert_int_equal(messages_last_hint(), HINT_NONE);
#endif
}

static void limit_of_data_is_told_as_what_limits_threads(void **state)
{
	char text[THREAD_LIMITS_NBYTES];
	struct rlimit before, limit;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
	limit = before;
	limit.rlim_cur = UINT64_C(1) << 40;
	if (setrlimit(RLIMIT_DATA, &limit) < 0)
		skip();
	assert_int_equal(getrlimit(RLIMIT_DATA, &limit), 0);
	if (limit.rlim_cur != UINT64_C(1) << 40) /* qemu-user limits nothing */
		skip();
	assert_non_null(strstr(thread_limits(-EAGAIN, text), " ulimit -d, which is 1073741824"));
	assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
	assert_string_equal(thread_limits(-ENOMEM, text), "");
}

static void nothing_is_closed_quietly(void **state)
{
	(void)state;
	lane_pool_close(NULL);
	lane_pool_lane_close(NULL);
	lane_pool_mark_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* The first: threads that have ended leave their stacks to others. */
		cmocka_unit_test(thread_that_cannot_be_started_is_told_with_what_limits_it),
		cmocka_unit_test(tasks_of_a_lane_run_in_order),
		cmocka_unit_test(lanes_run_at_the_same_time),
		cmocka_unit_test(lane_that_follows_waits),
		cmocka_unit_test(parked_lanes_hold_no_thread),
		cmocka_unit_test(urgent_lanes_overtake),
		cmocka_unit_test(who_waits_runs_urgent_lanes),
		cmocka_unit_test(long_lane_lets_others_have_their_turn),
		cmocka_unit_test(mark_never_set_is_reached),
		cmocka_unit_test(host_waits_for_a_mark),
		cmocka_unit_test(mark_that_moves_on_does_not_hold_followers),
		cmocka_unit_test(chain_of_lanes_runs_in_order),
		cmocka_unit_test(closing_a_lane_waits_for_its_tasks),
		cmocka_unit_test(what_tasks_say_comes_to_who_queued_them),
		cmocka_unit_test(limit_of_data_is_told_as_what_limits_threads),
		cmocka_unit_test(nothing_is_closed_quietly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
