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

enum {
	P2P_TIMEOUT_NS = 1600,
	P2P_CHECK_NS = P2P_TIMEOUT_NS / 16,
	FRAGMENT_NBYTES = 5000,
	MAX_OPERATIONS = 16
};

/* Something that was sent and not received, or the other way round. */
struct pending_operation {
	struct transport_request *request; /* NULL: the place is free */
	int tag;
	char *data;
	size_t nbytes;
};

struct fake_endpoint {
	struct transport transport;
	struct fake_endpoint *peer;
	struct pending_operation sent[MAX_OPERATIONS], posted[MAX_OPERATIONS];
	struct transport_request *completed[2 * MAX_OPERATIONS];
	unsigned n_completed;
};

static struct fake_endpoint endpoints[2];
static struct p2p *protocols[2];

static void enqueue_operation(struct pending_operation *operations,
			      struct pending_operation operation)
{
	for (unsigned i = 0; i < MAX_OPERATIONS; i++)
		if (!operations[i].request) {
			operations[i] = operation;
			return;
		}
	assert_true(false);
}

static int endpoint_send(struct transport *transport, int to, int tag, const void *data,
			 size_t nbytes, struct transport_request *request)
{
	assert_int_equal(to, 1 - transport->rank);
	enqueue_operation(((struct fake_endpoint *)transport)->sent,
			  (struct pending_operation){ request, tag, (char *)(uintptr_t)data,
						      nbytes });
	return 0;
}

static int endpoint_receive(struct transport *transport, int from, int tag, void *data,
			    size_t capacity, struct transport_request *request)
{
	(void)from;
	enqueue_operation(((struct fake_endpoint *)transport)->posted,
			  (struct pending_operation){ request, tag, data, capacity });
	return 0;
}

static void complete_operation(struct fake_endpoint *endpoint, struct pending_operation *operation,
			       size_t nbytes)
{
	operation->request->peer = endpoint->peer->transport.rank;
	operation->request->nbytes = nbytes;
	endpoint->completed[endpoint->n_completed++] = operation->request;
	operation->request = NULL;
}

/* The first that the other has sent and this one wants. */
static void match_operations(struct fake_endpoint *endpoint)
{
	for (struct pending_operation *sent = endpoint->peer->sent;
	     sent < endpoint->peer->sent + MAX_OPERATIONS; sent++)
		for (struct pending_operation *posted = endpoint->posted;
		     posted < endpoint->posted + MAX_OPERATIONS; posted++)
			if (sent->request && posted->request && sent->tag == posted->tag) {
				assert_true(sent->nbytes <= posted->nbytes);
				memcpy(posted->data, sent->data, sent->nbytes);
				complete_operation(endpoint, posted, sent->nbytes);
				complete_operation(endpoint->peer, sent, 0);
				return;
			}
}

static int endpoint_poll(struct transport *transport, struct transport_request **ret_request)
{
	struct fake_endpoint *endpoint = (struct fake_endpoint *)transport;

	*ret_request = NULL;
	match_operations(endpoint);
	if (endpoint->n_completed == 0)
		return 0;
	*ret_request = endpoint->completed[0];
	memmove(endpoint->completed, endpoint->completed + 1,
		--endpoint->n_completed * sizeof *endpoint->completed);
	return 0;
}

static const struct transport_ops ops = {
	.name = "the test",
	.send = endpoint_send,
	.receive = endpoint_receive,
	.poll = endpoint_poll,
};

static int open_both(void **state)
{
	(void)state;
	captured_messages_reset(true);
	memset(endpoints, 0, sizeof endpoints);
	for (int rank = 0; rank < 2; rank++) {
		endpoints[rank].transport = (struct transport){ &ops, rank, 2 };
		endpoints[rank].peer = &endpoints[1 - rank];
		if (p2p_open(&endpoints[rank].transport, P2P_TIMEOUT_NS, FRAGMENT_NBYTES, 0,
			     &protocols[rank]) < 0)
			return -1;
	}
	return 0;
}

/* What is still under way is moves, and what each wants to be told (tag 0), which is its own. */
static int close_both(void **state)
{
	(void)state;
	for (int rank = 0; rank < 2; rank++) {
		const struct fake_endpoint *endpoint = &endpoints[rank];

		for (unsigned i = 0; i < MAX_OPERATIONS; i++) {
			free(endpoint->sent[i].request);
			if (endpoint->posted[i].tag != 0)
				free(endpoint->posted[i].request);
		}
		for (unsigned i = 0; i < endpoint->n_completed; i++)
			free(endpoint->completed[i]);
		p2p_close(protocols[rank]);
	}
	return 0;
}

static struct comm_transfer receive_of(unsigned tag, void *data, size_t capacity)
{
	return (struct comm_transfer){
		.is_receive = true, .peer = 1, .tag = tag, .data = data, .capacity = capacity
	};
}

static struct comm_transfer send_of(unsigned tag, void *data, size_t nbytes)
{
	struct comm_transfer transfer = { .peer = 0, .tag = tag, .data = data, .nbytes = nbytes };

	p2p_set_checksum(&transfer);
	return transfer;
}

static int step(unsigned rank, uint64_t now_ns)
{
	bool moved;

	return p2p_progress(protocols[rank], now_ns, &moved);
}

/* A rank that computes has a carrier, which answers for it. */
static void test_computing_rank_does_not_time_out(void **state)
{
	char byte;
	struct comm_transfer receive = receive_of(3, &byte, 1);
	uint64_t now;

	(void)state;
	assert_int_equal(p2p_begin(protocols[0], &receive, 0), 0);
	for (now = 0; now < 10 * P2P_TIMEOUT_NS; now += P2P_CHECK_NS)
		for (unsigned rank = 0; rank < 2; rank++)
			assert_int_equal(step(rank, now), 0);
	assert_false(captured_messages_has_error());
	assert_null(p2p_take_completed(protocols[0]));
}

static void test_silent_rank_fails_at_the_timeout(void **state)
{
	static const char hosts[2][COMM_HOST_NBYTES] = { "here", "there" };
	char byte;
	struct comm_transfer receive = receive_of(3, &byte, 1);
	uint64_t now;

	(void)state;
	p2p_set_hosts(protocols[0], hosts);
	assert_int_equal(p2p_begin(protocols[0], &receive, 0), 0);
	for (now = 0; now < P2P_TIMEOUT_NS; now += P2P_CHECK_NS)
		assert_int_equal(step(0, now), 0);
	assert_int_equal(step(0, now), -ETIMEDOUT);
	assert_non_null(strstr(captured_messages_error(),
			       "rank 1 on there has not answered for 1.6e-06 s"));
}

/* What nobody wants yet stays with who sends it, and what is wanted later is not in its way. */
static void test_messages_are_received_in_any_order(void **state)
{
	enum { N = 3, NBYTES = 2 * FRAGMENT_NBYTES + 100 };
	static char out[N][NBYTES], in[N][NBYTES];
	struct comm_transfer sends[N], receives[N];

	(void)state;
	for (unsigned i = 0; i < N; i++) {
		memset(out[i], 'a' + (int)i, NBYTES);
		sends[i] = send_of(i, out[i], NBYTES);
		assert_int_equal(p2p_begin(protocols[1], &sends[i], 0), 0);
	}
	assert_true(p2p_is_sending(protocols[1]));
	for (unsigned i = N; i-- > 0;) {
		assert_int_equal(step(0, 0), 0);
		assert_int_equal(step(1, 0), 0);
		receives[i] = receive_of(i, in[i], NBYTES);
		assert_int_equal(p2p_begin(protocols[0], &receives[i], 0), 0);
		assert_int_equal(step(0, 0), 0);
		assert_int_equal(step(1, 0), 0);
		assert_ptr_equal(p2p_take_completed(protocols[0]), &receives[i]);
		assert_ptr_equal(p2p_take_completed(protocols[1]), &sends[i]);
		assert_int_equal(receives[i].nbytes, NBYTES);
		assert_int_equal(receives[i].from, 1);
		assert_int_equal(p2p_verify_checksum(protocols[0], &receives[i]), 0);
		assert_memory_equal(in[i], out[i], NBYTES);
	}
	assert_true(p2p_is_idle(protocols[0]));
	assert_true(p2p_is_idle(protocols[1]));
	in[0][FRAGMENT_NBYTES] ^= 1;
	assert_int_equal(p2p_verify_checksum(protocols[0], &receives[0]), -EBADMSG);
}

static void test_short_fragment_is_detected(void **state)
{
	static char out[2 * FRAGMENT_NBYTES], in[2 * FRAGMENT_NBYTES];
	struct comm_transfer send = send_of(1, out, sizeof out);
	struct comm_transfer receive = receive_of(1, in, sizeof in);

	(void)state;
	assert_int_equal(p2p_begin(protocols[1], &send, 0), 0);
	assert_int_equal(p2p_begin(protocols[0], &receive, 0), 0);
	/* The announcement, and two pieces. */
	endpoints[1].sent[2].nbytes--;
	assert_int_equal(step(0, 0), -EBADMSG);
	assert_non_null(strstr(captured_messages_error(), "a piece of it is cut short"));
}

/* At the end a rank may still wait for questions that nobody asks any more. */
static void test_receives_can_be_cancelled(void **state)
{
	char bytes[2];
	struct comm_transfer one = receive_of(1, bytes, 1), any = receive_of(2, bytes + 1, 1);

	(void)state;
	any.peer = COMM_ANY_RANK;
	assert_int_equal(p2p_begin(protocols[0], &one, 0), 0);
	assert_int_equal(p2p_begin(protocols[0], &any, 0), 0);
	assert_false(p2p_is_idle(protocols[0]));
	p2p_cancel_receives(protocols[0]);
	assert_true(p2p_is_idle(protocols[0]));
	for (uint64_t now = 0; now < 2 * P2P_TIMEOUT_NS; now += P2P_CHECK_NS)
		assert_int_equal(step(0, now), 0);
}

/* What may never come is had when it does come, and nobody is asked for it, given up, or missed. */
static void test_unwatched_receive_never_times_out(void **state)
{
	char in[2] = { 0 }, out = 'x';
	struct comm_transfer one = receive_of(1, in, 1), any = receive_of(2, in + 1, 1);
	struct comm_transfer send = send_of(1, &out, 1);
	uint64_t now;

	(void)state;
	one.is_unwatched = any.is_unwatched = true;
	any.peer = COMM_ANY_RANK;
	assert_int_equal(p2p_begin(protocols[0], &one, 0), 0);
	assert_int_equal(p2p_begin(protocols[0], &any, 0), 0);
	assert_true(p2p_is_idle(protocols[0]));
	for (now = 0; now < 2 * P2P_TIMEOUT_NS; now += P2P_CHECK_NS)
		assert_int_equal(step(0, now), 0);
	assert_false(p2p_is_sending(protocols[0]));
	assert_int_equal(p2p_begin(protocols[1], &send, now), 0);
	assert_int_equal(step(0, now), 0);
	assert_ptr_equal(p2p_take_completed(protocols[0]), &one);
	assert_int_equal(in[0], 'x');
	p2p_cancel_receives(protocols[0]);
	assert_true(p2p_is_idle(protocols[0]));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_both, close_both)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_computing_rank_does_not_time_out),
		TEST(test_silent_rank_fails_at_the_timeout),
		TEST(test_messages_are_received_in_any_order),
		TEST(test_short_fragment_is_detected),
		TEST(test_receives_can_be_cancelled),
		TEST(test_unwatched_receive_never_times_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
