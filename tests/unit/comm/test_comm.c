/*
 * test_comm - messages between several processes, and ranks that fail
 *
 * When a rank fails, each other rank fails too, or has received all that it asked for. None hangs.
 */
#include "src/comm/comm.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/fake_ranks.h"
#include "tests/support/comm_exercise.h"
#include "tests/support/unit_test.h"

enum { STATUS_KILLED = 9, LONG_NBYTES = 30000, TEST_FRAGMENT_NBYTES = 7000, FEW_NBYTES = 8192 };

static const uint64_t minute_ns = 60000000000, second_ns = 1000000000, moment_ns = 200000000;

static int exchange_all(struct comm *comm, void *argument)
{
	return comm_exercise(comm, *(const size_t *)argument);
}

static struct fake_ranks exchange_of(unsigned size, const size_t *long_nbytes)
{
	return (struct fake_ranks){
		.size = size,
		.params = { .timeout_ns = minute_ns, .fragment_nbytes = TEST_FRAGMENT_NBYTES },
		.body = exchange_all,
		.argument = (void *)(uintptr_t)long_nbytes,
	};
}

TEST(test_everything_arrives)
{
	const size_t long_nbytes = LONG_NBYTES;

	assert_int_equal(comm_close(NULL), 0);
	for (unsigned size = 1; size <= FAKE_RANKS_MAX; size++) {
		struct fake_ranks ranks = exchange_of(size, &long_nbytes);

		fake_ranks_succeed(&ranks);
	}
}

TEST(test_everything_arrives_in_whatever_order)
{
	const size_t long_nbytes = LONG_NBYTES;

	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct fake_ranks ranks = exchange_of((unsigned)(2 + seed), &long_nbytes);

		ranks.seed = seed;
		fake_ranks_succeed(&ranks);
	}
}

/* Exchange a few messages, each of which can be lost. */
static int exchange_few_messages(struct comm *comm, void *argument)
{
	static unsigned char out[FEW_NBYTES], in[FEW_NBYTES];
	const unsigned rank = comm_rank(comm), size = comm_size(comm);
	struct comm_transfer sent, received;
	uint64_t sum = rank;
	int r;

	(void)argument;
	memset(out, (int)rank + 1, sizeof out);
	r = comm_send(comm, (rank + 1) % size, 5, out, sizeof out, &sent);
	if (r == 0)
		r = comm_receive(comm, (rank + size - 1) % size, 5, in, sizeof in, 0, &received);
	if (r == 0)
		r = comm_wait(comm, &sent);
	if (r == 0)
		r = comm_wait(comm, &received);
	for (size_t i = 0; i < sizeof in && r == 0; i++)
		if (in[i] != (rank + size - 1) % size + 1)
			r = -EILSEQ;
	if (r == 0)
		r = comm_allreduce_sum(comm, &sum, 1);
	return r == 0 && sum != (uint64_t)size * (size - 1) / 2 ? -EILSEQ : r;
}

static struct fake_ranks few_messages(unsigned size, enum fake_rank_fault fault, unsigned message)
{
	return (struct fake_ranks){
		.size = size,
		.params = { .timeout_ns = minute_ns, .fragment_nbytes = FEW_NBYTES / 2 },
		.fault = fault,
		.fault_rank = 1,
		.fault_message = message,
		.body = exchange_few_messages,
	};
}

/* Return the number of messages that rank 1 sends without a fault. */
static unsigned count_messages(unsigned size)
{
	struct fake_ranks ranks = few_messages(size, FAKE_FAULT_NONE, 0);
	unsigned n;

	fake_ranks_run(&ranks);
	fake_ranks_assert_success(&ranks);
	n = ranks.exits[1].n_sent;
	fake_ranks_free(&ranks);
	return n;
}

/*
 * A message of rank 1 had a fault. Some rank must have detected it, and the first one has named
 * rank 1. A rank that ends without an error has received everything.
 */
static void assert_fault_is_detected(const struct fake_ranks *ranks, const char *what)
{
	unsigned n_named = 0;

	for (unsigned rank = 0; rank < ranks->size; rank++) {
		const struct fake_rank_exit *end = &ranks->exits[rank];

		if (rank == 1 && end->status == STATUS_KILLED)
			continue;
		n_named += strstr(end->error_text, "rank 1") && strstr(end->error_text, what);
		if (end->status == 0) {
			assert_int_equal(end->result, 0);
		} else {
			assert_int_equal(end->status, 2);
			assert_string_not_equal(end->error_text, "");
			assert_int_equal(end->n_before_abort, 1);
		}
	}
	if (n_named == 0)
		for (unsigned rank = 0; rank < ranks->size; rank++)
			print_message("fault %d of message %u: rank %u: %d: %s\n", ranks->fault,
				      ranks->fault_message, rank, ranks->exits[rank].status,
				      ranks->exits[rank].error_text);
	assert_true(n_named > 0);
}

/* Fault each message of rank 1 in turn; several at once, because they mostly wait. */
static void try_all_messages(unsigned size, enum fake_rank_fault fault, const char *what)
{
	enum { N_PARALLEL_JOBS = 8 };
	const unsigned n = count_messages(size);
	struct fake_ranks ranks[N_PARALLEL_JOBS];

	assert_true(n > 5);
	for (unsigned first = 0; first < n; first += N_PARALLEL_JOBS) {
		const unsigned n_now = n - first < N_PARALLEL_JOBS ? n - first : N_PARALLEL_JOBS;

		for (unsigned i = 0; i < n_now; i++) {
			ranks[i] = few_messages(size, fault, first + i);
			fake_ranks_start(&ranks[i]);
		}
		for (unsigned i = 0; i < n_now; i++) {
			fake_ranks_join(&ranks[i]);
			assert_fault_is_detected(&ranks[i], what);
			fake_ranks_free(&ranks[i]);
		}
	}
}

TEST(test_rank_that_dies_before_any_message)
{
	try_all_messages(3, FAKE_FAULT_EXIT, "has ended");
}

TEST(test_rank_that_dies_inside_of_any_message)
{
	try_all_messages(3, FAKE_FAULT_EXIT_MIDWAY, "");
}

/* Each rank posts a receive for which nothing is sent. */
static int post_unmatched_receive(struct comm *comm, void *argument)
{
	static struct comm_transfer transfer;
	static char byte;

	(void)argument;
	return comm_receive(comm, COMM_ANY_RANK, 4, &byte, 1, 0, &transfer);
}

TEST(test_rank_that_ends_first_is_no_loss)
{
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct fake_ranks ranks = few_messages(FAKE_RANKS_MAX, FAKE_FAULT_NONE, 0);

		ranks.body = post_unmatched_receive;
		ranks.seed = seed;
		fake_ranks_succeed(&ranks);
	}
}

static bool message_contains(const struct fake_rank_exit *end, const char *text)
{
	return strstr(end->error_text, text) != NULL;
}

/* Check that both ranks end, because of the timeout or of the watchdog. */
static void check_silence(struct fake_ranks *ranks)
{
	bool is_reported = false;

	fake_ranks_run(ranks);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(ranks->exits[i].status, 2);
		is_reported |= message_contains(&ranks->exits[i], "has not answered for 0.2") ||
			       message_contains(&ranks->exits[i], "has not returned");
	}
	assert_true(is_reported);
	fake_ranks_free(ranks);
}

/*
 * The link is cut, or a rank is stopped: no connection is closed, and both ranks blame each other.
 * The first one to do so exits, which the other one may notice. On a busy machine the watchdog may
 * be first.
 */
TEST(test_silent_rank)
{
	struct fake_ranks ranks = few_messages(2, FAKE_FAULT_SILENT, 3);

	ranks.params.timeout_ns = moment_ns;
	check_silence(&ranks);
}

/* Rank 1 sends nothing for three timeouts; its progress thread answers pings. */
static int compute_for_long(struct comm *comm, void *argument)
{
	struct comm_transfer transfer;
	char byte = 0;
	int r;

	(void)argument;
	if (comm_rank(comm) == 0) {
		r = comm_receive(comm, 1, 1, &byte, 1, 0, &transfer);
	} else {
		r = comm_wait_remote_failure(comm);
		if (r == 0)
			r = comm_send(comm, 0, 1, &byte, 1, &transfer);
	}
	return r < 0 ? r : comm_wait(comm, &transfer);
}

TEST(test_computing_rank_does_not_time_out)
{
	struct fake_ranks ranks = few_messages(2, FAKE_FAULT_NONE, 0);

	ranks.body = compute_for_long;
	/* On a busy machine a pong may come too late, so try again with a longer timeout. */
	for (unsigned i = 0; i < 3; i++) {
		ranks.params.timeout_ns = second_ns << i;
		ranks.params.abort_timeout_ns = 3 * ranks.params.timeout_ns;
		fake_ranks_run(&ranks);
		if (ranks.exits[0].status == 0 || i == 2)
			break;
		fake_ranks_free(&ranks);
	}
	fake_ranks_assert_success(&ranks);
	assert_in_range(ranks.exits[1].n_sent, 5, 100); /* identity, pongs, the byte, end */
	fake_ranks_free(&ranks);
}

/* A timeout that is set after the ranks have met applies from then on. */
static int exchange_with_short_timeout(struct comm *comm, void *argument)
{
	comm_set_timeout(comm, moment_ns);
	return exchange_few_messages(comm, argument);
}

TEST(test_timeout_that_is_set_later)
{
	struct fake_ranks ranks = few_messages(2, FAKE_FAULT_SILENT, 3);

	ranks.body = exchange_with_short_timeout;
	check_silence(&ranks);
}

/*
 * Rank 1 reports that its transport hangs. On a busy machine a rank may not answer in time before,
 * so try again with longer timeouts. Returns the status of rank 0.
 */
static int report_hang(enum fake_rank_fault fault, unsigned message, const char *text)
{
	bool is_reported = false;
	int status = -1;

	for (unsigned i = 0; i < 6 && !is_reported; i++) {
		struct fake_ranks ranks = few_messages(2, fault, message);
		char expected[100];

		ranks.params.timeout_ns = moment_ns << i;
		ranks.params.abort_timeout_ns = ranks.params.timeout_ns / 4;
		snprintf(expected, sizeof expected, "%s for %.3g s", text,
			 (double)ranks.params.timeout_ns / 1e9);
		fake_ranks_run(&ranks);
		assert_int_equal(ranks.exits[1].status, 2);
		assert_int_equal(ranks.exits[1].n_before_abort, 1);
		is_reported = message_contains(&ranks.exits[1], expected);
		status = ranks.exits[0].status;
		fake_ranks_free(&ranks);
	}
	assert_true(is_reported);
	return status;
}

/* The transport does not return, so only the watchdog can act. */
TEST(test_transport_that_hangs)
{
	assert_int_equal(report_hang(FAKE_FAULT_HANG, 3, "a socket pair has not returned"), 2);
}

TEST(test_transport_that_does_not_end)
{
	report_hang(FAKE_FAULT_HANG_AT_END, 0, "the connection of ranks has not ended");
}

/* The caller does not return, so the progress thread aborts the job. */
static int hang_forever(struct comm *comm, void *argument)
{
	struct comm_transfer transfer;
	char byte;

	(void)argument;
	if (comm_rank(comm) == 1)
		comm_abort(comm, 7);
	comm_receive(comm, 1, 0, &byte, 1, 0, &transfer);
	for (;;)
		pause();
}

TEST(test_rank_that_computes_when_another_fails)
{
	struct fake_ranks ranks = few_messages(2, FAKE_FAULT_NONE, 0);

	ranks.body = hang_forever;
	ranks.params.abort_timeout_ns = moment_ns;
	fake_ranks_run(&ranks);
	assert_int_equal(ranks.exits[1].status, 7);
	assert_int_equal(ranks.exits[1].n_before_abort, 1);
	assert_int_equal(ranks.exits[0].status, 2);
	assert_int_equal(ranks.exits[0].n_before_abort, 1);
	assert_non_null(strstr(ranks.exits[0].error_text, "rank 1 on "));
	fake_ranks_free(&ranks);
}

TEST(test_ranks_of_different_versions)
{
	struct fake_ranks ranks = few_messages(3, FAKE_FAULT_NONE, 0);

	ranks.versions[2] = "0.1 of long ago";
	fake_ranks_run(&ranks);
	for (unsigned rank = 0; rank < 3; rank++)
		assert_int_equal(ranks.exits[rank].status, 2);
	assert_true(strstr(ranks.exits[0].error_text, "ranks have different versions") ||
		    strstr(ranks.exits[1].error_text, "ranks have different versions") ||
		    strstr(ranks.exits[2].error_text, "ranks have different versions"));
	fake_ranks_free(&ranks);
}

TEST(test_ranks_of_another_byte_order)
{
	struct fake_ranks ranks = few_messages(2, FAKE_FAULT_BYTE_ORDER, 0);

	fake_ranks_run(&ranks);
	assert_fault_is_detected(&ranks, "has a different byte order");
	assert_int_equal(ranks.exits[0].status, 2);
	fake_ranks_free(&ranks);
}

static int send_200_bytes(struct comm *comm, void *argument)
{
	struct comm_transfer transfer;
	char bytes[300] = { 0 };
	int r;

	if (comm_rank(comm) == 1)
		r = comm_send(comm, 0, 3, bytes, 200, &transfer);
	else
		r = comm_receive(comm, 1, 3, bytes, *(const size_t *)argument, 0, &transfer);
	return r < 0 ? r : comm_wait(comm, &transfer);
}

TEST(test_message_of_wrong_length)
{
	static const char *const said[] = { "has sent more than the 199 bytes that were expected",
					    "has sent 200 bytes where 201 were expected" };

	for (unsigned i = 0; i < sizeof said / sizeof said[0]; i++) {
		struct fake_ranks ranks = few_messages(2, FAKE_FAULT_NONE, 0);
		size_t nbytes = i == 0 ? 199 : 201;

		ranks.body = send_200_bytes;
		ranks.argument = &nbytes;
		fake_ranks_run(&ranks);
		assert_int_equal(ranks.exits[0].status, 2);
		assert_int_equal(ranks.exits[0].result, -EMSGSIZE);
		assert_non_null(strstr(ranks.exits[0].error_text, said[i]));
		assert_int_equal(ranks.exits[1].status, 2);
		fake_ranks_free(&ranks);
	}
}

/* Shared by two ranks: rank 0 has failed and freed the buffer of a pending receive. */
static atomic_bool *memory_is_freed;

/* The memory is unmapped; the caller does not return, and the progress thread aborts the job. */
static void free_shared_memory(void *memory, size_t nbytes) __attribute__((noreturn));
static void free_shared_memory(void *memory, size_t nbytes)
{
	munmap(memory, nbytes);
	atomic_store(memory_is_freed, true);
	for (;;)
		pause();
}

/*
 * Rank 0 awaits two messages. It fails because one has a wrong length, or by itself, before the
 * other arrives.
 */
struct pending_transfers {
	struct comm_transfer transfers[2];
	char buffer[LONG_NBYTES], single;
};

static int fail_during_transfers(struct comm *comm, void *argument)
{
	struct pending_transfers *awaited = mmap(NULL, sizeof *awaited, PROT_READ | PROT_WRITE,
						 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const bool gives_up = argument;
	int r;

	if (awaited == MAP_FAILED)
		return -ENOMEM;
	r = comm_receive(comm, 1, 1, awaited->buffer, LONG_NBYTES, 0, &awaited->transfers[0]);
	if (r == 0)
		r = comm_receive(comm, 1, 2, &awaited->single, 1, 0, &awaited->transfers[1]);
	if (r == 0 && gives_up)
		r = comm_fail(comm, -ECANCELED);
	else if (r == 0)
		r = comm_wait(comm, &awaited->transfers[0]);
	if (r != (gives_up ? -ECANCELED : -EMSGSIZE))
		return r < 0 ? r : -EPROTO;
	if (comm_send(comm, 1, 1, "", 1, &awaited->transfers[0]) != r)
		return -EPROTO;
	free_shared_memory(awaited, sizeof *awaited);
}

static int send_after_free(struct comm *comm, const void *gives_up)
{
	static struct comm_transfer transfers[2];
	static const char bytes[LONG_NBYTES];
	int r = comm_send(comm, 0, 1, bytes, sizeof bytes - !gives_up, &transfers[0]);

	while (!atomic_load(memory_is_freed))
		usleep(100);
	return r < 0 ? r : comm_send(comm, 0, 2, "", 1, &transfers[1]);
}

static int fail_and_free(struct comm *comm, void *argument)
{
	return comm_rank(comm) == 0 ? fail_during_transfers(comm, argument) :
				      send_after_free(comm, argument);
}

TEST(test_no_transfer_is_active_after_a_failure)
{
	bool gives_up = true;

	memory_is_freed = mmap(NULL, sizeof *memory_is_freed, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(memory_is_freed, MAP_FAILED);
	for (unsigned i = 0; i < 2; i++) {
		struct fake_ranks ranks = few_messages(2, FAKE_FAULT_NONE, 0);

		atomic_store(memory_is_freed, false);
		ranks.body = fail_and_free;
		ranks.argument = i == 0 ? &gives_up : NULL;
		ranks.params.abort_timeout_ns = 5 * moment_ns;
		fake_ranks_run(&ranks);
		assert_int_equal(ranks.exits[0].status, 2);
		assert_int_equal(ranks.exits[0].n_before_abort, 1);
		fake_ranks_free(&ranks);
	}
	munmap(memory_is_freed, sizeof *memory_is_freed);
}
