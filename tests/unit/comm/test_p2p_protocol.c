/*
 * test_p2p_protocol - two ranks in one thread, by a clock that the test sets
 */
#include "src/comm/p2p_protocol.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "src/comm/message_header.h"
#include "src/comm/transport.h"
#include "tests/support/captured_messages.h"

#include <cmocka.h>

enum { STALL = 1600, LOOK = STALL / 16, PIECE = 5000, MOST = 16 };

/* Something that was sent and not received, or the other way round. */
struct half {
	struct transport_request *request; /* NULL: the place is free */
	int tag;
	char *data;
	size_t nbytes;
};

struct side {
	struct transport transport;
	struct side *other;
	struct half sent[MOST], wanted[MOST];
	struct transport_request *done[2 * MOST];
	unsigned n_done;
};

static struct side sides[2];
static struct delivery *deliveries[2];

static void add_half(struct half *halves, struct half half)
{
	for (unsigned i = 0; i < MOST; i++)
		if (!halves[i].request) {
			halves[i] = half;
			return;
		}
	assert_true(false);
}

static int side_send(struct transport *transport, int to, int tag, const void *data, size_t nbytes,
		     struct transport_request *request)
{
	assert_int_equal(to, 1 - transport->rank);
	add_half(((struct side *)transport)->sent,
		 (struct half){ request, tag, (char *)(uintptr_t)data, nbytes });
	return 0;
}

static int side_receive(struct transport *transport, int from, int tag, void *data, size_t capacity,
			struct transport_request *request)
{
	(void)from;
	add_half(((struct side *)transport)->wanted, (struct half){ request, tag, data, capacity });
	return 0;
}

static void done(struct side *side, struct half *half, size_t nbytes)
{
	half->request->peer = side->other->transport.rank;
	half->request->nbytes = nbytes;
	side->done[side->n_done++] = half->request;
	half->request = NULL;
}

/* The first that the other has sent and this one wants. */
static void match(struct side *side)
{
	for (struct half *sent = side->other->sent; sent < side->other->sent + MOST; sent++)
		for (struct half *want = side->wanted; want < side->wanted + MOST; want++)
			if (sent->request && want->request && sent->tag == want->tag) {
				assert_true(sent->nbytes <= want->nbytes);
				memcpy(want->data, sent->data, sent->nbytes);
				done(side, want, sent->nbytes);
				done(side->other, sent, 0);
				return;
			}
}

static int side_take(struct transport *transport, struct transport_request **ret_request)
{
	struct side *side = (struct side *)transport;

	*ret_request = NULL;
	match(side);
	if (side->n_done == 0)
		return 0;
	*ret_request = side->done[0];
	memmove(side->done, side->done + 1, --side->n_done * sizeof *side->done);
	return 0;
}

static const struct transport_ops ops = {
	.name = "the test",
	.send = side_send,
	.receive = side_receive,
	.take = side_take,
};

static int open_both(void **state)
{
	(void)state;
	messages_reset(true);
	memset(sides, 0, sizeof sides);
	for (int rank = 0; rank < 2; rank++) {
		sides[rank].transport = (struct transport){ &ops, rank, 2 };
		sides[rank].other = &sides[1 - rank];
		if (delivery_open(&sides[rank].transport, STALL, PIECE, 0, &deliveries[rank]) < 0)
			return -1;
	}
	return 0;
}

/* What is still under way is moves, and what each wants to be told (tag 0), which is its own. */
static int close_both(void **state)
{
	(void)state;
	for (int rank = 0; rank < 2; rank++) {
		const struct side *side = &sides[rank];

		for (unsigned i = 0; i < MOST; i++) {
			free(side->sent[i].request);
			if (side->wanted[i].tag != 0)
				free(side->wanted[i].request);
		}
		for (unsigned i = 0; i < side->n_done; i++)
			free(side->done[i]);
		delivery_close(deliveries[rank]);
	}
	return 0;
}

static struct ranks_transfer receive_of(unsigned tag, void *data, size_t capacity)
{
	return (struct ranks_transfer){
		.is_receive = true, .peer = 1, .tag = tag, .data = data, .capacity = capacity
	};
}

static struct ranks_transfer send_of(unsigned tag, void *data, size_t nbytes)
{
	struct ranks_transfer transfer = { .peer = 0, .tag = tag, .data = data, .nbytes = nbytes };

	delivery_seal(&transfer);
	return transfer;
}

static int step(unsigned rank, uint64_t now_ns)
{
	bool moved;

	return delivery_step(deliveries[rank], now_ns, &moved);
}

/* A rank that computes has a carrier, which answers for it. */
static void test_who_computes_for_long_is_not_given_up(void **state)
{
	char byte;
	struct ranks_transfer receive = receive_of(3, &byte, 1);
	uint64_t now;

	(void)state;
	assert_int_equal(delivery_begin(deliveries[0], &receive, 0), 0);
	for (now = 0; now < 10 * STALL; now += LOOK)
		for (unsigned rank = 0; rank < 2; rank++)
			assert_int_equal(step(rank, now), 0);
	assert_false(messages_failed());
	assert_null(delivery_take_done(deliveries[0]));
}

static void test_who_says_nothing_is_given_up_at_the_stall_time(void **state)
{
	static const char hosts[2][RANKS_HOST_NBYTES] = { "here", "there" };
	char byte;
	struct ranks_transfer receive = receive_of(3, &byte, 1);
	uint64_t now;

	(void)state;
	delivery_name(deliveries[0], hosts);
	assert_int_equal(delivery_begin(deliveries[0], &receive, 0), 0);
	for (now = 0; now < STALL; now += LOOK)
		assert_int_equal(step(0, now), 0);
	assert_int_equal(step(0, now), -ETIMEDOUT);
	assert_non_null(strstr(messages_last(), "rank 1 on there has not answered for 1.6e-06 s"));
}

/* What nobody wants yet stays with who sends it, and what is wanted later is not in its way. */
static void test_messages_are_had_in_whatever_order_they_are_wanted(void **state)
{
	enum { N = 3, NBYTES = 2 * PIECE + 100 };
	static char out[N][NBYTES], in[N][NBYTES];
	struct ranks_transfer sends[N], receives[N];

	(void)state;
	for (unsigned i = 0; i < N; i++) {
		memset(out[i], 'a' + (int)i, NBYTES);
		sends[i] = send_of(i, out[i], NBYTES);
		assert_int_equal(delivery_begin(deliveries[1], &sends[i], 0), 0);
	}
	assert_true(delivery_sends(deliveries[1]));
	for (unsigned i = N; i-- > 0;) {
		assert_int_equal(step(0, 0), 0);
		assert_int_equal(step(1, 0), 0);
		receives[i] = receive_of(i, in[i], NBYTES);
		assert_int_equal(delivery_begin(deliveries[0], &receives[i], 0), 0);
		assert_int_equal(step(0, 0), 0);
		assert_int_equal(step(1, 0), 0);
		assert_ptr_equal(delivery_take_done(deliveries[0]), &receives[i]);
		assert_ptr_equal(delivery_take_done(deliveries[1]), &sends[i]);
		assert_int_equal(receives[i].nbytes, NBYTES);
		assert_int_equal(receives[i].from, 1);
		assert_int_equal(delivery_check(deliveries[0], &receives[i]), 0);
		assert_memory_equal(in[i], out[i], NBYTES);
	}
	assert_true(delivery_is_idle(deliveries[0]));
	assert_true(delivery_is_idle(deliveries[1]));
	in[0][PIECE] ^= 1;
	assert_int_equal(delivery_check(deliveries[0], &receives[0]), -EBADMSG);
}

static void test_piece_cut_short_is_seen_before_the_data_is(void **state)
{
	static char out[2 * PIECE], in[2 * PIECE];
	struct ranks_transfer send = send_of(1, out, sizeof out);
	struct ranks_transfer receive = receive_of(1, in, sizeof in);

	(void)state;
	assert_int_equal(delivery_begin(deliveries[1], &send, 0), 0);
	assert_int_equal(delivery_begin(deliveries[0], &receive, 0), 0);
	/* The announcement, and two pieces. */
	sides[1].sent[2].nbytes--;
	assert_int_equal(step(0, 0), -EBADMSG);
	assert_non_null(strstr(messages_last(), "a piece of it is cut short"));
}

/* At the end a rank may still wait for questions that nobody asks any more. */
static void test_receives_can_be_forgotten(void **state)
{
	char bytes[2];
	struct ranks_transfer one = receive_of(1, bytes, 1), any = receive_of(2, bytes + 1, 1);

	(void)state;
	any.peer = RANKS_ANY;
	assert_int_equal(delivery_begin(deliveries[0], &one, 0), 0);
	assert_int_equal(delivery_begin(deliveries[0], &any, 0), 0);
	assert_false(delivery_is_idle(deliveries[0]));
	delivery_forget(deliveries[0]);
	assert_true(delivery_is_idle(deliveries[0]));
	for (uint64_t now = 0; now < 2 * STALL; now += LOOK)
		assert_int_equal(step(0, now), 0);
}

/* What may never come is had when it does come, and nobody is asked for it, given up, or missed. */
static void test_who_is_patient_misses_nobody(void **state)
{
	char in[2] = { 0 }, out = 'x';
	struct ranks_transfer one = receive_of(1, in, 1), any = receive_of(2, in + 1, 1);
	struct ranks_transfer send = send_of(1, &out, 1);
	uint64_t now;

	(void)state;
	one.is_patient = any.is_patient = true;
	any.peer = RANKS_ANY;
	assert_int_equal(delivery_begin(deliveries[0], &one, 0), 0);
	assert_int_equal(delivery_begin(deliveries[0], &any, 0), 0);
	assert_true(delivery_is_idle(deliveries[0]));
	for (now = 0; now < 2 * STALL; now += LOOK)
		assert_int_equal(step(0, now), 0);
	assert_false(delivery_sends(deliveries[0]));
	assert_int_equal(delivery_begin(deliveries[1], &send, now), 0);
	assert_int_equal(step(0, now), 0);
	assert_ptr_equal(delivery_take_done(deliveries[0]), &one);
	assert_int_equal(in[0], 'x');
	delivery_forget(deliveries[0]);
	assert_true(delivery_is_idle(deliveries[0]));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_both, close_both)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_who_computes_for_long_is_not_given_up),
		TEST(test_who_says_nothing_is_given_up_at_the_stall_time),
		TEST(test_messages_are_had_in_whatever_order_they_are_wanted),
		TEST(test_piece_cut_short_is_seen_before_the_data_is),
		TEST(test_receives_can_be_forgotten),
		TEST(test_who_is_patient_misses_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
