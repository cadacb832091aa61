/*
 * test_bounded_queue - a bounded queue, and its two ends
 */
#include "src/base/bounded_queue.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/thread_gate.h"

#include <cmocka.h>

enum { CAPACITY = 4, N_ITEMS = 5000 };

static char items[N_ITEMS];

static struct ring *open_ring(void)
{
	struct ring *ring;

	assert_int_equal(ring_open(CAPACITY, &ring), 0);
	return ring;
}

static void assert_pops(struct ring *ring, const void *expected)
{
	void *item;

	assert_int_equal(ring_pop(ring, &item), 0);
	assert_ptr_equal(item, expected);
}

/* A thread that pushes `items`, or pops, until the ring ends. */
struct worker {
	struct ring *ring;
	size_t n;  /* how often it worked */
	int ended; /* what the ring returned then */
	struct gate done;
	pthread_t thread;
};

static void *push_all(void *argument)
{
	struct worker *worker = argument;

	for (; worker->n < N_ITEMS; worker->n++) {
		worker->ended = ring_push(worker->ring, &items[worker->n]);
		if (worker->ended < 0)
			break;
	}
	gate_open(&worker->done, 1);
	return NULL;
}

static void *pop_all(void *argument)
{
	struct worker *worker = argument;
	void *item;

	while ((worker->ended = ring_pop(worker->ring, &item)) == 0)
		worker->n++;
	gate_open(&worker->done, 1);
	return NULL;
}

static void start(struct worker *worker, struct ring *ring, void *(*work)(void *))
{
	*worker = (struct worker){ .ring = ring, .done = GATE_CLOSED };
	assert_int_equal(pthread_create(&worker->thread, NULL, work, worker), 0);
}

static void assert_ends(struct worker *worker, int ended)
{
	assert_true(gate_pass(&worker->done));
	pthread_join(worker->thread, NULL);
	assert_int_equal(worker->ended, ended);
}

static void first_in_is_first_out(void **state)
{
	struct ring *ring = open_ring();

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 3; i++)
			assert_int_equal(ring_push(ring, &items[i]), 0);
		for (int i = 0; i < 3; i++)
			assert_pops(ring, &items[i]);
	}
	ring_close(ring);
}

static void full_ring_holds_back_the_producer(void **state)
{
	struct ring *ring = open_ring();
	struct worker producer;

	(void)state;
	start(&producer, ring, push_all);
	assert_false(gate_pass_within(&producer.done, 1));
	for (int i = 0; i < N_ITEMS - CAPACITY; i++)
		assert_pops(ring, &items[i]);
	assert_ends(&producer, 0);
	for (int i = N_ITEMS - CAPACITY; i < N_ITEMS; i++)
		assert_pops(ring, &items[i]);
	ring_close(ring);
}

static void finished_ring_gives_what_is_left(void **state)
{
	struct ring *ring = open_ring();
	void *item;

	(void)state;
	assert_int_equal(ring_push(ring, &items[0]), 0);
	assert_int_equal(ring_push(ring, &items[1]), 0);
	ring_finish(ring);
	assert_int_equal(ring_push(ring, &items[2]), -EPIPE);
	assert_pops(ring, &items[0]);
	assert_pops(ring, &items[1]);
	assert_int_equal(ring_pop(ring, &item), -ENODATA);
	ring_close(ring);
}

static void failed_ring_gives_nothing_and_keeps_its_first_error(void **state)
{
	struct ring *ring = open_ring();
	void *item;

	(void)state;
	assert_int_equal(ring_push(ring, &items[0]), 0);
	ring_fail(ring, -EIO);
	ring_fail(ring, -ENOSPC);
	assert_int_equal(ring_pop(ring, &item), -EIO);
	assert_int_equal(ring_push(ring, &items[1]), -EIO);
	ring_finish(ring);
	assert_int_equal(ring_pop(ring, &item), -EIO);
	ring_close(ring);
}

static void failure_wakes_all_that_wait(void **state)
{
	struct ring *full = open_ring(), *empty = open_ring();
	struct worker producers[2], consumers[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		start(&producers[i], full, push_all);
		start(&consumers[i], empty, pop_all);
	}
	assert_false(gate_pass_within(&producers[0].done, 1));
	ring_fail(full, -EIO);
	ring_fail(empty, -ENOSPC);
	for (int i = 0; i < 2; i++) {
		assert_ends(&producers[i], -EIO);
		assert_ends(&consumers[i], -ENOSPC);
	}
	assert_int_equal(producers[0].n + producers[1].n, CAPACITY);
	ring_close(full);
	ring_close(empty);
}

static void finishing_wakes_all_that_wait(void **state)
{
	struct ring *full = open_ring(), *empty = open_ring();
	struct worker producer, consumers[2];

	(void)state;
	start(&producer, full, push_all);
	for (int i = 0; i < 2; i++)
		start(&consumers[i], empty, pop_all);
	assert_false(gate_pass_within(&producer.done, 1));
	ring_finish(full);
	ring_finish(empty);
	assert_ends(&producer, -EPIPE);
	for (int i = 0; i < 2; i++)
		assert_ends(&consumers[i], -ENODATA);
	ring_close(full);
	ring_close(empty);
}

static void every_item_is_popped_once(void **state)
{
	struct ring *ring = open_ring();
	struct worker producers[2], consumers[3];
	size_t n = 0;

	(void)state;
	for (int i = 0; i < 2; i++)
		start(&producers[i], ring, push_all);
	for (int i = 0; i < 3; i++)
		start(&consumers[i], ring, pop_all);
	for (int i = 0; i < 2; i++)
		assert_ends(&producers[i], 0);
	ring_finish(ring);
	for (int i = 0; i < 3; i++) {
		assert_ends(&consumers[i], -ENODATA);
		n += consumers[i].n;
	}
	assert_int_equal(n, 2 * N_ITEMS);
	ring_close(ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_in_is_first_out),
		cmocka_unit_test(full_ring_holds_back_the_producer),
		cmocka_unit_test(finished_ring_gives_what_is_left),
		cmocka_unit_test(failed_ring_gives_nothing_and_keeps_its_first_error),
		cmocka_unit_test(failure_wakes_all_that_wait),
		cmocka_unit_test(finishing_wakes_all_that_wait),
		cmocka_unit_test(every_item_is_popped_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
