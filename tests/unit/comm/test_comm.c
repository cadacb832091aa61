/*
 * test_comm - several processes, their messages, and all that can befall these
 *
 * Where a rank fails, the others fail, too, or have all that they asked for: none hangs, and none
 * takes what was not sent.
 */
#include "src/comm/comm.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/comm/transport_single.h"
#include "src/comm/message_header.h"
#include "tests/support/captured_messages.h"
#include "tests/support/fake_ranks.h"
#include "tests/support/comm_exercise.h"

#include <cmocka.h>

enum { STATUS_KILLED = 9, LONG_NBYTES = 30000, TEST_FRAGMENT_NBYTES = 7000 };

static const uint64_t minute_ns = 60000000000, moment_ns = 200000000;

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

static void test_everything_arrives(void **state)
{
	const size_t long_nbytes = LONG_NBYTES;

	(void)state;
	for (unsigned size = 1; size <= FAKE_RANKS_MAX; size++) {
		struct fake_ranks ranks = exchange_of(size, &long_nbytes);

		fake_ranks_run(&ranks);
		fake_ranks_assert_success(&ranks);
		fake_ranks_free(&ranks);
	}
}

static void test_everything_arrives_in_whatever_order(void **state)
{
	const size_t long_nbytes = LONG_NBYTES;

	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct fake_ranks ranks = exchange_of((unsigned)(2 + seed), &long_nbytes);

		ranks.seed = seed;
		fake_ranks_run(&ranks);
		fake_ranks_assert_success(&ranks);
		fake_ranks_free(&ranks);
	}
}

static void test_single_process_is_a_job(void **state)
{
	const struct comm_params params = { .timeout_ns = minute_ns, .exit_process = _exit };
	struct comm *comm;

	(void)state;
	captured_messages_reset(true);
	assert_int_equal(comm_open(&params, transport_single_open, NULL, &comm), 0);
	assert_int_equal(comm_rank(comm), 0);
	assert_int_equal(comm_size(comm), 1);
	assert_int_equal(comm_exercise(comm, LONG_NBYTES), 0);
	assert_int_equal(comm_close(comm), 0);
	assert_false(captured_messages_has_error());
	assert_int_equal(comm_close(NULL), 0);
}

/* A short exchange, of which each message can be lost. */
static int exchange_few_messages(struct comm *comm, void *argument)
{
	static unsigned char out[MESSAGE_MAX_NBYTES * 2], in[MESSAGE_MAX_NBYTES * 2];
	const unsigned rank = comm_rank(comm), size = comm_size(comm);
	struct comm_transfer sent, received;
	uint64_t sum = rank;
	int r;

	(void)argument;
	memset(out, (int)rank + 1, sizeof out);
	r = comm_send(comm, (rank + 1) % size, 5, out, sizeof out, &sent);
	if (r == 0)
		r = comm_receive(comm, (rank + size - 1) % size, 5, in, sizeof in, &received);
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
		.params = { .timeout_ns = minute_ns, .fragment_nbytes = MESSAGE_MAX_NBYTES },
		.fault = fault,
		.fault_rank = 1,
		.fault_message = message,
		.body = exchange_few_messages,
	};
}

/* How many messages rank 1 sends if nothing befalls it. */
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
 * Something has befallen a message of rank 1. Somebody must have noticed that, and the first who
 * did has named it; who is ended with nothing wrong has got all that it asked for.
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

/* Each message of rank 1 in turn; some at once, as they mostly wait. */
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

static void test_rank_that_dies_before_any_message(void **state)
{
	(void)state;
	try_all_messages(3, FAKE_FAULT_EXIT, "is gone");
}

static void test_rank_that_dies_inside_of_any_message(void **state)
{
	(void)state;
	try_all_messages(3, FAKE_FAULT_EXIT_MIDWAY, "");
}

static void test_any_message_cut_short(void **state)
{
	(void)state;
	try_all_messages(2, FAKE_FAULT_TRUNCATED, "cannot be used");
}

/* Each waits for questions of anybody until the end, which nobody asks. */
static int post_unmatched_receive(struct comm *comm, void *argument)
{
	static struct comm_transfer transfer;
	static char byte;

	(void)argument;
	return comm_receive(comm, COMM_ANY_RANK, 4, &byte, 1, &transfer);
}

static void test_rank_that_ends_first_is_no_loss(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct fake_ranks ranks = few_messages(FAKE_RANKS_MAX, FAKE_FAULT_NONE, 0);

		ranks.body = post_unmatched_receive;
		ranks.seed = seed;
		fake_ranks_run(&ranks);
		fake_ranks_assert_success(&ranks);
		fake_ranks_free(&ranks);
	}
}

/* One bit of a message of rank 1. */
static void assert_damage_is_detected(unsigned message, unsigned bit, const char *what)
{
	struct fake_ranks ranks = few_messages(2, FAKE_FAULT_CORRUPTED, message);

	ranks.fault_bit = bit;
	fake_ranks_run(&ranks);
	assert_fault_is_detected(&ranks, what);
	assert_int_equal(ranks.exits[0].status, 2);
	fake_ranks_free(&ranks);
}

/* A bit of each member of the header, of the first message, and of one with nothing behind it. */
static void test_any_damage_of_a_header(void **state)
{
	static const struct {
		size_t offset;
		const char *what;
	} members[] = {
		{ offsetof(struct message_header, magic), "damaged" },
		{ offsetof(struct message_header, format), "different versions" },
		{ offsetof(struct message_header, kind), "damaged" },
		{ offsetof(struct message_header, from), "damaged" },
		{ offsetof(struct message_header, to), "damaged" },
		{ offsetof(struct message_header, tag), "damaged" },
		{ offsetof(struct message_header, sequence), "damaged" },
		{ offsetof(struct message_header, nbytes), "damaged" },
		{ offsetof(struct message_header, data_checksum), "damaged" },
		{ offsetof(struct message_header, checksum), "damaged" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof members / sizeof *members; i++)
		for (unsigned message = 0; message < 2; message++)
			assert_damage_is_detected(message, (unsigned)members[i].offset * 8 + i,
						  members[i].what);
}

/* Message 0 has data in it; 1 announces two pieces, which follow. */
static void test_any_damage_of_data(void **state)
{
	(void)state;
	assert_damage_is_detected(0, sizeof(struct message_header) * 8 + 3, "damaged");
	assert_damage_is_detected(2, 7, "damaged");
	assert_damage_is_detected(3, MESSAGE_MAX_NBYTES * 8 - 1, "damaged");
}

/* What follows it has another number. */
static void test_lost_message(void **state)
{
	struct fake_ranks ranks = few_messages(2, FAKE_FAULT_LOST, 1);

	(void)state;
	fake_ranks_run(&ranks);
	assert_fault_is_detected(&ranks, "one before it is lost");
	fake_ranks_free(&ranks);
}

static void test_message_sent_twice(void **state)
{
	struct fake_ranks ranks = few_messages(2, FAKE_FAULT_DUPLICATED, 0);

	(void)state;
	fake_ranks_run(&ranks);
	assert_fault_is_detected(&ranks, "it has come before");
	fake_ranks_free(&ranks);
}

static bool message_contains(const struct fake_rank_exit *end, const char *text)
{
	return strstr(end->error_text, text) != NULL;
}

/*
 * The link is cut, or one is stopped: nobody closes anything, and both blame each other. Who does
 * so first ends, which the other may see. On a machine with no time for a carrier its own guard
 * can be the first.
 */
static void test_silent_rank(void **state)
{
	struct fake_ranks ranks = few_messages(2, FAKE_FAULT_SILENT, 3);

	(void)state;
	ranks.params.timeout_ns = moment_ns;
	fake_ranks_run(&ranks);
	assert_int_equal(ranks.exits[0].status, 2);
	assert_int_equal(ranks.exits[1].status, 2);
	assert_true(message_contains(&ranks.exits[0], "has not answered for 0.2") ||
		    message_contains(&ranks.exits[1], "has not answered for 0.2") ||
		    message_contains(&ranks.exits[0], "has not returned") ||
		    message_contains(&ranks.exits[1], "has not returned"));
	fake_ranks_free(&ranks);
}

/* What is asked for is known when ranks have met, and counts from then on. */
static int exchange_with_short_timeout(struct comm *comm, void *argument)
{
	comm_set_timeout(comm, moment_ns);
	return exchange_few_messages(comm, argument);
}

static void test_timeout_that_is_set_later(void **state)
{
	struct fake_ranks ranks = few_messages(2, FAKE_FAULT_SILENT, 3);

	(void)state;
	ranks.body = exchange_with_short_timeout;
	fake_ranks_run(&ranks);
	assert_int_equal(ranks.exits[0].status, 2);
	assert_int_equal(ranks.exits[1].status, 2);
	assert_true(message_contains(&ranks.exits[0], "has not answered for 0.2") ||
		    message_contains(&ranks.exits[1], "has not answered for 0.2") ||
		    message_contains(&ranks.exits[0], "has not returned") ||
		    message_contains(&ranks.exits[1], "has not returned"));
	fake_ranks_free(&ranks);
}

/* What carries the messages does not return, so nobody but the guard can do anything. */
static void test_transport_that_hangs(void **state)
{
	struct fake_ranks ranks = few_messages(2, FAKE_FAULT_HANG, 3);

	(void)state;
	ranks.params.timeout_ns = moment_ns;
	ranks.params.abort_timeout_ns = moment_ns / 4;
	fake_ranks_run(&ranks);
	assert_int_equal(ranks.exits[1].status, 2);
	assert_int_equal(ranks.exits[1].n_before_abort, 1);
	assert_true(message_contains(&ranks.exits[1], "a socket pair has not returned for 0.2 s"));
	assert_int_equal(ranks.exits[0].status, 2);
	fake_ranks_free(&ranks);
}

/* Nothing of it comes back: the carrier ends all by itself. */
static int hang_forever(struct comm *comm, void *argument)
{
	struct comm_transfer transfer;
	char byte;

	(void)argument;
	if (comm_rank(comm) == 1)
		comm_abort(comm, 7);
	comm_receive(comm, 1, 0, &byte, 1, &transfer);
	for (;;)
		pause();
}

static void test_rank_that_computes_when_another_fails(void **state)
{
	struct fake_ranks ranks = few_messages(2, FAKE_FAULT_NONE, 0);

	(void)state;
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

static void test_ranks_of_different_versions(void **state)
{
	struct fake_ranks ranks = few_messages(3, FAKE_FAULT_NONE, 0);

	(void)state;
	ranks.versions[2] = "0.1 of long ago";
	fake_ranks_run(&ranks);
	for (unsigned rank = 0; rank < 3; rank++)
		assert_int_equal(ranks.exits[rank].status, 2);
	assert_true(strstr(ranks.exits[0].error_text, "ranks of different versions") ||
		    strstr(ranks.exits[1].error_text, "ranks of different versions") ||
		    strstr(ranks.exits[2].error_text, "ranks of different versions"));
	fake_ranks_free(&ranks);
}

/* Their first message says it: nothing in it can be read as it is meant. */
static void test_ranks_of_another_byte_order(void **state)
{
	struct fake_ranks ranks = few_messages(2, FAKE_FAULT_BYTE_ORDER, 0);

	(void)state;
	fake_ranks_run(&ranks);
	assert_fault_is_detected(&ranks, "ranks of different byte order cannot work together");
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
		r = comm_receive(comm, 1, 3, bytes, *(const size_t *)argument, &transfer);
	return r < 0 ? r : comm_wait(comm, &transfer);
}

static void test_message_of_wrong_length(void **state)
{
	static const char *const said[] = { "has sent 200 bytes where 199 were expected",
					    "has sent 200 bytes where 201 were expected" };

	(void)state;
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

/* Of two ranks: the first has failed, and what it still awaited has been given back. */
static atomic_bool *memory_is_freed;

/* What cannot be touched any more: nothing comes back, and the carrier ends all by itself. */
static void free_shared_memory(void *memory, size_t nbytes) __attribute__((noreturn));
static void free_shared_memory(void *memory, size_t nbytes)
{
	munmap(memory, nbytes);
	atomic_store(memory_is_freed, true);
	for (;;)
		pause();
}

/* The first awaits two messages, and fails with the one, or by itself, before the other comes. */
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
	r = comm_receive(comm, 1, 1, awaited->buffer, LONG_NBYTES, &awaited->transfers[0]);
	if (r == 0)
		r = comm_receive(comm, 1, 2, &awaited->single, 1, &awaited->transfers[1]);
	if (r == 0 && gives_up)
		r = comm_fail(comm, -ECANCELED);
	else if (r == 0)
		r = comm_wait(comm, &awaited->transfers[0]);
	if (r != (gives_up ? -ECANCELED : -EBADMSG))
		return r < 0 ? r : -EPROTO;
	if (comm_send(comm, 1, 1, "", 1, &awaited->transfers[0]) != r)
		return -EPROTO;
	free_shared_memory(awaited, sizeof *awaited);
}

static int send_after_free(struct comm *comm)
{
	static struct comm_transfer transfers[2];
	static const char bytes[LONG_NBYTES];
	int r = comm_send(comm, 0, 1, bytes, sizeof bytes, &transfers[0]);

	while (!atomic_load(memory_is_freed))
		usleep(100);
	return r < 0 ? r : comm_send(comm, 0, 2, "", 1, &transfers[1]);
}

static int fail_and_free(struct comm *comm, void *argument)
{
	return comm_rank(comm) == 0 ? fail_during_transfers(comm, argument) : send_after_free(comm);
}

static void test_no_transfer_is_active_after_a_failure(void **state)
{
	bool gives_up = true;

	(void)state;
	memory_is_freed = mmap(NULL, sizeof *memory_is_freed, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(memory_is_freed, MAP_FAILED);
	for (unsigned i = 0; i < 2; i++) {
		struct fake_ranks ranks =
			few_messages(2, FAKE_FAULT_CORRUPTED, 2); /* its first piece */

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

/* What the environment holds: "NAME=VALUE". */
static const char *environment;

static char *test_getenv(const char *name)
{
	const size_t n = strlen(name);

	return strncmp(environment, name, n) == 0 && environment[n] == '=' ?
		       (char *)(uintptr_t)environment + n + 1 :
		       NULL;
}

static void test_singletons_are_refused(void **state)
{
	static const char *const many[] = { "OMPI_COMM_WORLD_SIZE=4", "PMI_SIZE=4",
					    "SLURM_STEP_NUM_TASKS=4" };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		captured_messages_reset(true);
		environment = many[i];
		assert_int_equal(transport_single_check_launcher(4, test_getenv), 0);
		assert_int_equal(transport_single_check_launcher(8, test_getenv), 0);
		assert_false(captured_messages_has_error());
		assert_int_equal(transport_single_check_launcher(1, test_getenv), -EINVAL);
		assert_non_null(strstr(captured_messages_error(), "has started 4 ranks"));
		assert_non_null(strstr(captured_messages_error(), "start it with"));
	}
	environment = "SLURM_NTASKS=4";
	assert_int_equal(transport_single_check_launcher(1, test_getenv), 0);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_everything_arrives),
		TEST(test_everything_arrives_in_whatever_order),
		TEST(test_single_process_is_a_job),
		TEST(test_rank_that_ends_first_is_no_loss),
		TEST(test_rank_that_dies_before_any_message),
		TEST(test_rank_that_dies_inside_of_any_message),
		TEST(test_any_message_cut_short),
		TEST(test_any_damage_of_a_header),
		TEST(test_any_damage_of_data),
		TEST(test_lost_message),
		TEST(test_message_sent_twice),
		TEST(test_silent_rank),
		TEST(test_timeout_that_is_set_later),
		TEST(test_transport_that_hangs),
		TEST(test_rank_that_computes_when_another_fails),
		TEST(test_ranks_of_different_versions),
		TEST(test_ranks_of_another_byte_order),
		TEST(test_message_of_wrong_length),
		TEST(test_no_transfer_is_active_after_a_failure),
		TEST(test_singletons_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
