/*
 * test_bounded_queue - order, capacity and the two ends of a bounded queue
 */
#include "src/base/thread_pool.h"

#include <errno.h>

#include "tests/support/thread_gate.h"
#include "tests/support/unit_test.h"

enum { CAPACITY = 4, N_ITEMS = 5000 };

static char items[N_ITEMS];

static struct bounded_queue *open_bounded_queue(void)
{
	struct bounded_queue *queue;

	assert_int_equal(bounded_queue_open(CAPACITY, &queue), 0);
	return queue;
}

static void assert_pops(struct bounded_queue *queue, const void *expected)
{
	void *item;

	assert_int_equal(bounded_queue_pop(queue, &item), 0);
	assert_ptr_equal(item, expected);
}

/* A thread that pushes `items`, or pops, until the queue ends. */
struct queue_client {
	struct bounded_queue *queue;
	size_t n;   /* successful operations */
	int result; /* the last result */
	struct gate done;
	pthread_t thread;
};

static void *push_all(void *argument)
{
	struct queue_client *client = argument;

	for (; client->n < N_ITEMS; client->n++) {
		client->result = bounded_queue_push(client->queue, &items[client->n]);
		if (client->result < 0)
			break;
	}
	gate_open(&client->done, 1);
	return NULL;
}

static void *pop_all(void *argument)
{
	struct queue_client *client = argument;
	void *item;

	while ((client->result = bounded_queue_pop(client->queue, &item)) == 0)
		client->n++;
	gate_open(&client->done, 1);
	return NULL;
}

static void start_client(struct queue_client *client, struct bounded_queue *queue,
			 void *(*work)(void *))
{
	*client = (struct queue_client){ .queue = queue, .done = GATE_INITIALIZER };
	assert_int_equal(pthread_create(&client->thread, NULL, work, client), 0);
}

static void assert_client_ends(struct queue_client *client, int result)
{
	assert_true(gate_pass(&client->done));
	pthread_join(client->thread, NULL);
	assert_int_equal(client->result, result);
}

TEST(first_in_is_first_out)
{
	struct bounded_queue *queue = open_bounded_queue();

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 3; i++)
			assert_int_equal(bounded_queue_push(queue, &items[i]), 0);
		for (int i = 0; i < 3; i++)
			assert_pops(queue, &items[i]);
	}
	bounded_queue_close(queue);
}

TEST(full_queue_blocks_the_producer)
{
	struct bounded_queue *queue = open_bounded_queue();
	struct queue_client producer;

	start_client(&producer, queue, push_all);
	assert_false(gate_pass_within(&producer.done, 1));
	for (int i = 0; i < N_ITEMS - CAPACITY; i++)
		assert_pops(queue, &items[i]);
	assert_client_ends(&producer, 0);
	for (int i = N_ITEMS - CAPACITY; i < N_ITEMS; i++)
		assert_pops(queue, &items[i]);
	bounded_queue_close(queue);
}

TEST(finished_queue_is_drained)
{
	struct bounded_queue *queue = open_bounded_queue();
	void *item;

	assert_int_equal(bounded_queue_push(queue, &items[0]), 0);
	assert_int_equal(bounded_queue_push(queue, &items[1]), 0);
	bounded_queue_finish(queue);
	assert_int_equal(bounded_queue_push(queue, &items[2]), -EPIPE);
	assert_pops(queue, &items[0]);
	assert_pops(queue, &items[1]);
	assert_int_equal(bounded_queue_pop(queue, &item), -ENODATA);
	bounded_queue_close(queue);
}

TEST(failed_queue_keeps_its_first_error)
{
	struct bounded_queue *queue = open_bounded_queue();
	void *item;

	assert_int_equal(bounded_queue_push(queue, &items[0]), 0);
	bounded_queue_fail(queue, -EIO);
	bounded_queue_fail(queue, -ENOSPC);
	assert_int_equal(bounded_queue_pop(queue, &item), -EIO);
	assert_int_equal(bounded_queue_push(queue, &items[1]), -EIO);
	bounded_queue_finish(queue);
	assert_int_equal(bounded_queue_pop(queue, &item), -EIO);
	bounded_queue_close(queue);
}

TEST(failure_wakes_all_waiters)
{
	struct bounded_queue *full = open_bounded_queue(), *empty = open_bounded_queue();
	struct queue_client producers[2], consumers[2];

	for (int i = 0; i < 2; i++) {
		start_client(&producers[i], full, push_all);
		start_client(&consumers[i], empty, pop_all);
	}
	assert_false(gate_pass_within(&producers[0].done, 1));
	bounded_queue_fail(full, -EIO);
	bounded_queue_fail(empty, -ENOSPC);
	for (int i = 0; i < 2; i++) {
		assert_client_ends(&producers[i], -EIO);
		assert_client_ends(&consumers[i], -ENOSPC);
	}
	assert_int_equal(producers[0].n + producers[1].n, CAPACITY);
	bounded_queue_close(full);
	bounded_queue_close(empty);
}

TEST(finishing_wakes_all_waiters)
{
	struct bounded_queue *full = open_bounded_queue(), *empty = open_bounded_queue();
	struct queue_client producer, consumers[2];

	start_client(&producer, full, push_all);
	for (int i = 0; i < 2; i++)
		start_client(&consumers[i], empty, pop_all);
	assert_false(gate_pass_within(&producer.done, 1));
	bounded_queue_finish(full);
	bounded_queue_finish(empty);
	assert_client_ends(&producer, -EPIPE);
	for (int i = 0; i < 2; i++)
		assert_client_ends(&consumers[i], -ENODATA);
	bounded_queue_close(full);
	bounded_queue_close(empty);
}

TEST(every_item_is_popped_once)
{
	struct bounded_queue *queue = open_bounded_queue();
	struct queue_client producers[2], consumers[3];
	size_t n = 0;

	for (int i = 0; i < 2; i++)
		start_client(&producers[i], queue, push_all);
	for (int i = 0; i < 3; i++)
		start_client(&consumers[i], queue, pop_all);
	for (int i = 0; i < 2; i++)
		assert_client_ends(&producers[i], 0);
	bounded_queue_finish(queue);
	for (int i = 0; i < 3; i++) {
		assert_client_ends(&consumers[i], -ENODATA);
		n += consumers[i].n;
	}
	assert_int_equal(n, 2 * N_ITEMS);
	bounded_queue_close(queue);
}
