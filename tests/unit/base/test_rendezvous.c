/*
 * test_rendezvous - bytes that go from one thread to another
 */
#include "src/base/rendezvous.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { N = 10000 };

static unsigned char data[N];

/* The inner side: as much as there is, in pieces of its own. */
struct inner {
	struct handover handover;
	pthread_t thread;
	unsigned char bytes[N + 100];
	size_t n;
	int r;
};

static void *receive_all(void *argument)
{
	struct inner *inner = argument;
	size_t got = 1, piece = 1;

	for (; got > 0 && inner->r == 0; piece = piece % 97 + 1) {
		got = 0;
		inner->r = handover_receive(&inner->handover, inner->bytes + inner->n, piece, &got);
		inner->n += got;
	}
	return NULL;
}

static void *send_all(void *argument)
{
	struct inner *inner = argument;
	size_t piece = 1;

	for (; inner->n < N && inner->r == 0; piece = piece % 97 + 1) {
		const size_t n = piece < N - inner->n ? piece : N - inner->n;

		inner->r = handover_send(&inner->handover, data + inner->n, n);
		inner->n += n;
	}
	handover_end(&inner->handover);
	return NULL;
}

static int start(void **state)
{
	static struct inner inner;

	inner = (struct inner){ .n = 0 };
	handover_init(&inner.handover);
	for (size_t i = 0; i < N; i++)
		data[i] = (unsigned char)(i * i >> 3);
	*state = &inner;
	return 0;
}

static int finish(void **state)
{
	struct inner *inner = *state;

	handover_destroy(&inner->handover);
	return 0;
}

static void what_is_put_is_received_in_whatever_pieces(void **state)
{
	struct inner *inner = *state;
	size_t n = 0;

	pthread_create(&inner->thread, NULL, receive_all, inner);
	for (size_t piece = 1; n < N; n += piece, piece = piece % 501 + 7)
		assert_int_equal(handover_put(&inner->handover, data + n,
					      piece = piece < N - n ? piece : N - n),
				 0);
	handover_end(&inner->handover);
	pthread_join(inner->thread, NULL);
	assert_int_equal(inner->r, 0);
	assert_int_equal(inner->n, N);
	assert_memory_equal(inner->bytes, data, N);
	assert_int_equal(handover_put(&inner->handover, data, 1), -EPIPE);
}

static void what_is_sent_is_got_in_whatever_pieces(void **state)
{
	struct inner *inner = *state;
	unsigned char found[N + 1];
	size_t n = 0, got = 1;

	pthread_create(&inner->thread, NULL, send_all, inner);
	for (size_t piece = 1; got > 0; n += got, piece = piece % 501 + 7)
		assert_int_equal(handover_get(&inner->handover, found + n,
					      piece < sizeof found - n ? piece : sizeof found - n,
					      &got),
				 0);
	pthread_join(inner->thread, NULL);
	assert_int_equal(inner->r, 0);
	assert_int_equal(n, N);
	assert_memory_equal(found, data, N);
}

static void failure_wakes_both_sides_and_the_first_stays(void **state)
{
	struct inner *inner = *state;
	size_t got = 77;

	pthread_create(&inner->thread, NULL, receive_all, inner);
	handover_fail(&inner->handover, -ECANCELED);
	handover_fail(&inner->handover, -EIO);
	pthread_join(inner->thread, NULL);
	assert_int_equal(inner->r, -ECANCELED);
	assert_int_equal(handover_put(&inner->handover, data, 1), -ECANCELED);
	assert_int_equal(handover_get(&inner->handover, data, 1, &got), -ECANCELED);
	assert_int_equal(handover_send(&inner->handover, data, 1), -ECANCELED);
	assert_int_equal(got, 77);
}

static void nothing_takes_no_time(void **state)
{
	struct inner *inner = *state;
	size_t got;

	assert_int_equal(handover_put(&inner->handover, NULL, 0), 0);
	assert_int_equal(handover_send(&inner->handover, NULL, 0), 0);
	assert_int_equal(handover_get(&inner->handover, NULL, 0, &got), 0);
	assert_int_equal(got, 0);
}

int main(void)
{
#define FIXTURE(name) cmocka_unit_test_setup_teardown(name, start, finish)
	const struct CMUnitTest tests[] = {
		FIXTURE(what_is_put_is_received_in_whatever_pieces),
		FIXTURE(what_is_sent_is_got_in_whatever_pieces),
		FIXTURE(failure_wakes_both_sides_and_the_first_stays),
		FIXTURE(nothing_takes_no_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
