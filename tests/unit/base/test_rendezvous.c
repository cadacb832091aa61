/*
 * test_rendezvous - bytes pass from one thread to another
 */
#include "src/base/rendezvous.h"

#include <errno.h>

#include "tests/support/unit_test.h"

enum { N = 10000 };

static unsigned char data[N];

/* The inner side transfers all bytes, in pieces of its own. */
struct inner_side {
	struct rendezvous rendezvous;
	pthread_t thread;
	unsigned char bytes[N + 100];
	size_t n;
	int result;
};

static void *receive_all(void *argument)
{
	struct inner_side *inner = argument;
	size_t n_copied = 1, piece = 1;

	for (; n_copied > 0 && inner->result == 0; piece = piece % 97 + 1) {
		n_copied = 0;
		inner->result = rendezvous_receive(&inner->rendezvous, inner->bytes + inner->n,
						   piece, &n_copied);
		inner->n += n_copied;
	}
	return NULL;
}

static int start(void **state)
{
	static struct inner_side inner;

	inner = (struct inner_side){ .n = 0 };
	rendezvous_init(&inner.rendezvous);
	for (size_t i = 0; i < N; i++)
		data[i] = (unsigned char)(i * i >> 3);
	*state = &inner;
	return 0;
}

static int finish(void **state)
{
	struct inner_side *inner = *state;

	rendezvous_destroy(&inner->rendezvous);
	return 0;
}

#define FIXTURE_TEST(claim) TEST_WITH(claim, start, finish)

FIXTURE_TEST(put_data_is_received_in_any_sizes)
{
	struct inner_side *inner = *state;
	size_t n = 0;

	pthread_create(&inner->thread, NULL, receive_all, inner);
	for (size_t piece = 1; n < N; n += piece, piece = piece % 501 + 7)
		assert_int_equal(rendezvous_put(&inner->rendezvous, data + n,
						piece = piece < N - n ? piece : N - n),
				 0);
	rendezvous_end(&inner->rendezvous);
	pthread_join(inner->thread, NULL);
	assert_int_equal(inner->result, 0);
	assert_int_equal(inner->n, N);
	assert_memory_equal(inner->bytes, data, N);
	assert_int_equal(rendezvous_put(&inner->rendezvous, data, 1), -EPIPE);
}

FIXTURE_TEST(failure_wakes_both_sides_and_the_first_stays)
{
	struct inner_side *inner = *state;
	size_t n_copied = 77;

	pthread_create(&inner->thread, NULL, receive_all, inner);
	rendezvous_fail(&inner->rendezvous, -ECANCELED);
	rendezvous_fail(&inner->rendezvous, -EIO);
	pthread_join(inner->thread, NULL);
	assert_int_equal(inner->result, -ECANCELED);
	assert_int_equal(rendezvous_put(&inner->rendezvous, data, 1), -ECANCELED);
	assert_int_equal(rendezvous_get(&inner->rendezvous, data, 1, &n_copied), -ECANCELED);
	assert_int_equal(rendezvous_send(&inner->rendezvous, data, 1), -ECANCELED);
	assert_int_equal(n_copied, 77);
}

FIXTURE_TEST(nothing_takes_no_time)
{
	struct inner_side *inner = *state;
	size_t n_copied;

	assert_int_equal(rendezvous_put(&inner->rendezvous, NULL, 0), 0);
	assert_int_equal(rendezvous_send(&inner->rendezvous, NULL, 0), 0);
	assert_int_equal(rendezvous_get(&inner->rendezvous, NULL, 0, &n_copied), 0);
	assert_int_equal(n_copied, 0);
}
