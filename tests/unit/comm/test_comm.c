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
#include "tests/support/ranks_exchange.h"

#include <cmocka.h>

enum { STATUS_KILLED = 9, LONG_NBYTES = 30000, PIECE_NBYTES = 7000 };

static const uint64_t minute_ns = 60000000000, moment_ns = 200000000;

static int exchange_all(struct ranks *ranks, void *argument)
{
	return ranks_exchange(ranks, *(const size_t *)argument);
}

static struct ranks_double exchange_of(unsigned size, const size_t *long_nbytes)
{
	return (struct ranks_double){
		.size = size,
		.settings = { .stall_ns = minute_ns, .piece_nbytes = PIECE_NBYTES },
		.body = exchange_all,
		.argument = (void *)(uintptr_t)long_nbytes,
	};
}

static void test_everything_arrives(void **state)
{
	const size_t long_nbytes = LONG_NBYTES;

	(void)state;
	for (unsigned size = 1; size <= RANKS_DOUBLE_MOST; size++) {
		struct ranks_double ranks = exchange_of(size, &long_nbytes);

		ranks_double_run(&ranks);
		ranks_double_assert_fine(&ranks);
		ranks_double_forget(&ranks);
	}
}

static void test_everything_arrives_in_whatever_order(void **state)
{
	const size_t long_nbytes = LONG_NBYTES;

	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct ranks_double ranks = exchange_of((unsigned)(2 + seed), &long_nbytes);

		ranks.seed = seed;
		ranks_double_run(&ranks);
		ranks_double_assert_fine(&ranks);
		ranks_double_forget(&ranks);
	}
}

static void test_alone_is_a_job_too(void **state)
{
	const struct ranks_settings settings = { .stall_ns = minute_ns, .end = _exit };
	struct ranks *ranks;

	(void)state;
	messages_reset(true);
	assert_int_equal(ranks_open(&settings, alone_open, NULL, &ranks), 0);
	assert_int_equal(ranks_rank(ranks), 0);
	assert_int_equal(ranks_size(ranks), 1);
	assert_int_equal(ranks_exchange(ranks, LONG_NBYTES), 0);
	assert_int_equal(ranks_close(ranks), 0);
	assert_false(messages_failed());
	assert_int_equal(ranks_close(NULL), 0);
}

/* A short exchange, of which each message can be lost. */
static int exchange_a_little(struct ranks *ranks, void *argument)
{
	static unsigned char out[MESSAGE_NBYTES_MOST * 2], in[MESSAGE_NBYTES_MOST * 2];
	const unsigned rank = ranks_rank(ranks), size = ranks_size(ranks);
	struct ranks_transfer sent, received;
	uint64_t sum = rank;
	int r;

	(void)argument;
	memset(out, (int)rank + 1, sizeof out);
	r = ranks_send(ranks, (rank + 1) % size, 5, out, sizeof out, &sent);
	if (r == 0)
		r = ranks_receive(ranks, (rank + size - 1) % size, 5, in, sizeof in, &received);
	if (r == 0)
		r = ranks_wait(ranks, &sent);
	if (r == 0)
		r = ranks_wait(ranks, &received);
	for (size_t i = 0; i < sizeof in && r == 0; i++)
		if (in[i] != (rank + size - 1) % size + 1)
			r = -EILSEQ;
	if (r == 0)
		r = ranks_sum(ranks, &sum, 1);
	return r == 0 && sum != (uint64_t)size * (size - 1) / 2 ? -EILSEQ : r;
}

static struct ranks_double little(unsigned size, enum ranks_fault fault, unsigned message)
{
	return (struct ranks_double){
		.size = size,
		.settings = { .stall_ns = minute_ns, .piece_nbytes = MESSAGE_NBYTES_MOST },
		.fault = fault,
		.fault_rank = 1,
		.fault_message = message,
		.body = exchange_a_little,
	};
}

/* How many messages rank 1 sends if nothing befalls it. */
static unsigned count_messages(unsigned size)
{
	struct ranks_double ranks = little(size, RANKS_FINE, 0);
	unsigned n;

	ranks_double_run(&ranks);
	ranks_double_assert_fine(&ranks);
	n = ranks.ends[1].n_sent;
	ranks_double_forget(&ranks);
	return n;
}

/*
 * Something has befallen a message of rank 1. Somebody must have noticed that, and the first who
 * did has named it; who is ended with nothing wrong has got all that it asked for.
 */
static void assert_noticed(const struct ranks_double *ranks, const char *what)
{
	unsigned n_named = 0;

	for (unsigned rank = 0; rank < ranks->size; rank++) {
		const struct ranks_end *end = &ranks->ends[rank];

		if (rank == 1 && end->status == STATUS_KILLED)
			continue;
		n_named += strstr(end->text, "rank 1") && strstr(end->text, what);
		if (end->status == 0) {
			assert_int_equal(end->r, 0);
		} else {
			assert_int_equal(end->status, 2);
			assert_string_not_equal(end->text, "");
			assert_int_equal(end->n_before, 1);
		}
	}
	if (n_named == 0)
		for (unsigned rank = 0; rank < ranks->size; rank++)
			print_message("fault %d of message %u: rank %u: %d: %s\n", ranks->fault,
				      ranks->fault_message, rank, ranks->ends[rank].status,
				      ranks->ends[rank].text);
	assert_true(n_named > 0);
}

/* Each message of rank 1 in turn; some at once, as they mostly wait. */
static void try_all_messages(unsigned size, enum ranks_fault fault, const char *what)
{
	enum { AT_ONCE = 8 };
	const unsigned n = count_messages(size);
	struct ranks_double ranks[AT_ONCE];

	assert_true(n > 5);
	for (unsigned first = 0; first < n; first += AT_ONCE) {
		const unsigned n_now = n - first < AT_ONCE ? n - first : AT_ONCE;

		for (unsigned i = 0; i < n_now; i++) {
			ranks[i] = little(size, fault, first + i);
			ranks_double_start(&ranks[i]);
		}
		for (unsigned i = 0; i < n_now; i++) {
			ranks_double_join(&ranks[i]);
			assert_noticed(&ranks[i], what);
			ranks_double_forget(&ranks[i]);
		}
	}
}

static void test_rank_that_dies_before_any_message(void **state)
{
	(void)state;
	try_all_messages(3, RANKS_CUT, "is gone");
}

static void test_rank_that_dies_inside_of_any_message(void **state)
{
	(void)state;
	try_all_messages(3, RANKS_CUT_INSIDE, "");
}

static void test_any_message_cut_short(void **state)
{
	(void)state;
	try_all_messages(2, RANKS_SHORT, "cannot be used");
}

/* Each waits for questions of anybody until the end, which nobody asks. */
static int leave_a_receive(struct ranks *ranks, void *argument)
{
	static struct ranks_transfer transfer;
	static char byte;

	(void)argument;
	return ranks_receive(ranks, RANKS_ANY, 4, &byte, 1, &transfer);
}

static void test_who_ends_first_is_not_missed(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct ranks_double ranks = little(RANKS_DOUBLE_MOST, RANKS_FINE, 0);

		ranks.body = leave_a_receive;
		ranks.seed = seed;
		ranks_double_run(&ranks);
		ranks_double_assert_fine(&ranks);
		ranks_double_forget(&ranks);
	}
}

/* One bit of a message of rank 1. */
static void assert_damage_is_noticed(unsigned message, unsigned bit, const char *what)
{
	struct ranks_double ranks = little(2, RANKS_DAMAGED, message);

	ranks.fault_bit = bit;
	ranks_double_run(&ranks);
	assert_noticed(&ranks, what);
	assert_int_equal(ranks.ends[0].status, 2);
	ranks_double_forget(&ranks);
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
			assert_damage_is_noticed(message, (unsigned)members[i].offset * 8 + i,
						 members[i].what);
}

/* Message 0 has data in it; 1 announces two pieces, which follow. */
static void test_any_damage_of_data(void **state)
{
	(void)state;
	assert_damage_is_noticed(0, sizeof(struct message_header) * 8 + 3, "damaged");
	assert_damage_is_noticed(2, 7, "damaged");
	assert_damage_is_noticed(3, MESSAGE_NBYTES_MOST * 8 - 1, "damaged");
}

/* What follows it has another number. */
static void test_lost_message(void **state)
{
	struct ranks_double ranks = little(2, RANKS_LOST, 1);

	(void)state;
	ranks_double_run(&ranks);
	assert_noticed(&ranks, "one before it is lost");
	ranks_double_forget(&ranks);
}

static void test_message_sent_twice(void **state)
{
	struct ranks_double ranks = little(2, RANKS_REPEATED, 0);

	(void)state;
	ranks_double_run(&ranks);
	assert_noticed(&ranks, "it has come before");
	ranks_double_forget(&ranks);
}

static bool says(const struct ranks_end *end, const char *text)
{
	return strstr(end->text, text) != NULL;
}

/*
 * The link is cut, or one is stopped: nobody closes anything, and both blame each other. Who does
 * so first ends, which the other may see. On a machine with no time for a carrier its own guard
 * can be the first.
 */
static void test_silent_rank(void **state)
{
	struct ranks_double ranks = little(2, RANKS_SILENT, 3);

	(void)state;
	ranks.settings.stall_ns = moment_ns;
	ranks_double_run(&ranks);
	assert_int_equal(ranks.ends[0].status, 2);
	assert_int_equal(ranks.ends[1].status, 2);
	assert_true(says(&ranks.ends[0], "has not answered for 0.2") ||
		    says(&ranks.ends[1], "has not answered for 0.2") ||
		    says(&ranks.ends[0], "has not returned") ||
		    says(&ranks.ends[1], "has not returned"));
	ranks_double_forget(&ranks);
}

/* What is asked for is known when ranks have met, and counts from then on. */
static int exchange_with_little_patience(struct ranks *ranks, void *argument)
{
	ranks_set_stall(ranks, moment_ns);
	return exchange_a_little(ranks, argument);
}

static void test_stall_time_that_is_set_later(void **state)
{
	struct ranks_double ranks = little(2, RANKS_SILENT, 3);

	(void)state;
	ranks.body = exchange_with_little_patience;
	ranks_double_run(&ranks);
	assert_int_equal(ranks.ends[0].status, 2);
	assert_int_equal(ranks.ends[1].status, 2);
	assert_true(says(&ranks.ends[0], "has not answered for 0.2") ||
		    says(&ranks.ends[1], "has not answered for 0.2") ||
		    says(&ranks.ends[0], "has not returned") ||
		    says(&ranks.ends[1], "has not returned"));
	ranks_double_forget(&ranks);
}

/* What carries the messages does not return, so nobody but the guard can do anything. */
static void test_transport_that_hangs(void **state)
{
	struct ranks_double ranks = little(2, RANKS_HANGING, 3);

	(void)state;
	ranks.settings.stall_ns = moment_ns;
	ranks.settings.end_ns = moment_ns / 4;
	ranks_double_run(&ranks);
	assert_int_equal(ranks.ends[1].status, 2);
	assert_int_equal(ranks.ends[1].n_before, 1);
	assert_true(says(&ranks.ends[1], "a socket pair has not returned for 0.2 s"));
	assert_int_equal(ranks.ends[0].status, 2);
	ranks_double_forget(&ranks);
}

/* Nothing of it comes back: the carrier ends all by itself. */
static int never_come_back(struct ranks *ranks, void *argument)
{
	struct ranks_transfer transfer;
	char byte;

	(void)argument;
	if (ranks_rank(ranks) == 1)
		ranks_abort(ranks, 7);
	ranks_receive(ranks, 1, 0, &byte, 1, &transfer);
	for (;;)
		pause();
}

static void test_rank_that_computes_when_another_fails(void **state)
{
	struct ranks_double ranks = little(2, RANKS_FINE, 0);

	(void)state;
	ranks.body = never_come_back;
	ranks.settings.end_ns = moment_ns;
	ranks_double_run(&ranks);
	assert_int_equal(ranks.ends[1].status, 7);
	assert_int_equal(ranks.ends[1].n_before, 1);
	assert_int_equal(ranks.ends[0].status, 2);
	assert_int_equal(ranks.ends[0].n_before, 1);
	assert_non_null(strstr(ranks.ends[0].text, "rank 1 on "));
	ranks_double_forget(&ranks);
}

static void test_ranks_of_different_versions(void **state)
{
	struct ranks_double ranks = little(3, RANKS_FINE, 0);

	(void)state;
	ranks.versions[2] = "0.1 of long ago";
	ranks_double_run(&ranks);
	for (unsigned rank = 0; rank < 3; rank++)
		assert_int_equal(ranks.ends[rank].status, 2);
	assert_true(strstr(ranks.ends[0].text, "ranks of different versions") ||
		    strstr(ranks.ends[1].text, "ranks of different versions") ||
		    strstr(ranks.ends[2].text, "ranks of different versions"));
	ranks_double_forget(&ranks);
}

/* Their first message says it: nothing in it can be read as it is meant. */
static void test_ranks_of_another_byte_order(void **state)
{
	struct ranks_double ranks = little(2, RANKS_FOREIGN, 0);

	(void)state;
	ranks_double_run(&ranks);
	assert_noticed(&ranks, "ranks of different byte order cannot work together");
	assert_int_equal(ranks.ends[0].status, 2);
	ranks_double_forget(&ranks);
}

static int send_200_bytes(struct ranks *ranks, void *argument)
{
	struct ranks_transfer transfer;
	char bytes[300] = { 0 };
	int r;

	if (ranks_rank(ranks) == 1)
		r = ranks_send(ranks, 0, 3, bytes, 200, &transfer);
	else
		r = ranks_receive(ranks, 1, 3, bytes, *(const size_t *)argument, &transfer);
	return r < 0 ? r : ranks_wait(ranks, &transfer);
}

static void test_message_of_another_length(void **state)
{
	static const char *const said[] = { "has sent 200 bytes where 199 were expected",
					    "has sent 200 bytes where 201 were expected" };

	(void)state;
	for (unsigned i = 0; i < sizeof said / sizeof said[0]; i++) {
		struct ranks_double ranks = little(2, RANKS_FINE, 0);
		size_t nbytes = i == 0 ? 199 : 201;

		ranks.body = send_200_bytes;
		ranks.argument = &nbytes;
		ranks_double_run(&ranks);
		assert_int_equal(ranks.ends[0].status, 2);
		assert_int_equal(ranks.ends[0].r, -EMSGSIZE);
		assert_non_null(strstr(ranks.ends[0].text, said[i]));
		assert_int_equal(ranks.ends[1].status, 2);
		ranks_double_forget(&ranks);
	}
}

/* Of two ranks: the first has failed, and what it still awaited has been given back. */
static atomic_bool *memory_is_gone;

/* What cannot be touched any more: nothing comes back, and the carrier ends all by itself. */
static void give_back(void *memory, size_t nbytes) __attribute__((noreturn));
static void give_back(void *memory, size_t nbytes)
{
	munmap(memory, nbytes);
	atomic_store(memory_is_gone, true);
	for (;;)
		pause();
}

/* The first awaits two messages, and fails with the one, or by itself, before the other comes. */
struct awaited {
	struct ranks_transfer transfers[2];
	char room[LONG_NBYTES], one;
};

static int fail_with_something_under_way(struct ranks *ranks, void *argument)
{
	struct awaited *awaited = mmap(NULL, sizeof *awaited, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const bool gives_up = argument;
	int r;

	if (awaited == MAP_FAILED)
		return -ENOMEM;
	r = ranks_receive(ranks, 1, 1, awaited->room, LONG_NBYTES, &awaited->transfers[0]);
	if (r == 0)
		r = ranks_receive(ranks, 1, 2, &awaited->one, 1, &awaited->transfers[1]);
	if (r == 0 && gives_up)
		r = ranks_give_up(ranks, -ECANCELED);
	else if (r == 0)
		r = ranks_wait(ranks, &awaited->transfers[0]);
	if (r != (gives_up ? -ECANCELED : -EBADMSG))
		return r < 0 ? r : -EPROTO;
	if (ranks_send(ranks, 1, 1, "", 1, &awaited->transfers[0]) != r)
		return -EPROTO;
	give_back(awaited, sizeof *awaited);
}

static int send_when_it_is_gone(struct ranks *ranks)
{
	static struct ranks_transfer transfers[2];
	static const char bytes[LONG_NBYTES];
	int r = ranks_send(ranks, 0, 1, bytes, sizeof bytes, &transfers[0]);

	while (!atomic_load(memory_is_gone))
		usleep(100);
	return r < 0 ? r : ranks_send(ranks, 0, 2, "", 1, &transfers[1]);
}

static int fail_and_free(struct ranks *ranks, void *argument)
{
	return ranks_rank(ranks) == 0 ? fail_with_something_under_way(ranks, argument) :
					send_when_it_is_gone(ranks);
}

static void test_nothing_is_under_way_after_a_failure(void **state)
{
	bool gives_up = true;

	(void)state;
	memory_is_gone = mmap(NULL, sizeof *memory_is_gone, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(memory_is_gone, MAP_FAILED);
	for (unsigned i = 0; i < 2; i++) {
		struct ranks_double ranks = little(2, RANKS_DAMAGED, 2); /* its first piece */

		atomic_store(memory_is_gone, false);
		ranks.body = fail_and_free;
		ranks.argument = i == 0 ? &gives_up : NULL;
		ranks.settings.end_ns = 5 * moment_ns;
		ranks_double_run(&ranks);
		assert_int_equal(ranks.ends[0].status, 2);
		assert_int_equal(ranks.ends[0].n_before, 1);
		ranks_double_forget(&ranks);
	}
	munmap(memory_is_gone, sizeof *memory_is_gone);
}

/* What the environment holds: "NAME=VALUE". */
static const char *environment;

static char *look_up(const char *name)
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
		messages_reset(true);
		environment = many[i];
		assert_int_equal(alone_check(4, look_up), 0);
		assert_int_equal(alone_check(8, look_up), 0);
		assert_false(messages_failed());
		assert_int_equal(alone_check(1, look_up), -EINVAL);
		assert_non_null(strstr(messages_last(), "has started 4 ranks"));
		assert_non_null(strstr(messages_last(), "start it with"));
	}
	environment = "SLURM_NTASKS=4";
	assert_int_equal(alone_check(1, look_up), 0);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_everything_arrives),
		TEST(test_everything_arrives_in_whatever_order),
		TEST(test_alone_is_a_job_too),
		TEST(test_who_ends_first_is_not_missed),
		TEST(test_rank_that_dies_before_any_message),
		TEST(test_rank_that_dies_inside_of_any_message),
		TEST(test_any_message_cut_short),
		TEST(test_any_damage_of_a_header),
		TEST(test_any_damage_of_data),
		TEST(test_lost_message),
		TEST(test_message_sent_twice),
		TEST(test_silent_rank),
		TEST(test_stall_time_that_is_set_later),
		TEST(test_transport_that_hangs),
		TEST(test_rank_that_computes_when_another_fails),
		TEST(test_ranks_of_different_versions),
		TEST(test_ranks_of_another_byte_order),
		TEST(test_message_of_another_length),
		TEST(test_nothing_is_under_way_after_a_failure),
		TEST(test_singletons_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
