/*
 * test_peer_memory - read the memory of other ranks as long as they are alive
 *
 * Where the system forbids it there are no peers, and nothing is tested.
 */
#include "src/comm/peer_memory.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/diagnostics.h"
#include "tests/support/fake_ranks.h"
#include "tests/support/unit_test.h"

enum { SIZE = 3, N_NUMBERS = 200000, EXITED_STATUS = 9 };

static const uint64_t minute_ns = 60000000000;

/* Shared memory, by rank: the number of peers. */
static unsigned *n_readable;

static int start(void **state)
{
	(void)state;
	n_readable = mmap(NULL, SIZE * sizeof *n_readable, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return n_readable == MAP_FAILED ? -1 : 0;
}

static int end(void **state)
{
	(void)state;
	return munmap(n_readable, SIZE * sizeof *n_readable);
}

static struct fake_ranks ranks_running(int (*body)(struct comm *comm, void *argument))
{
	return (struct fake_ranks){ .size = SIZE,
				    .params = { .timeout_ns = minute_ns },
				    .body = body };
}

static void run(struct fake_ranks *ranks)
{
	memset(n_readable, 0, SIZE * sizeof *n_readable);
	fake_ranks_run(ranks);
}

static int open_peer_memory_test(struct comm *comm, bool is_wanted,
				 struct peer_memory **ret_peer_memory)
{
	int r = peer_memory_open(comm, is_wanted, ret_peer_memory);

	for (unsigned rank = 0; rank < comm_size(comm) && r == 0; rank++)
		n_readable[comm_rank(comm)] += peer_memory_can_read(*ret_peer_memory, rank);
	return r;
}

static uint64_t number_of(unsigned rank, size_t i)
{
	return rank * UINT64_C(1000000007) + i;
}

static int check_number(const struct peer_memory *peer_memory, unsigned rank, uint64_t address,
			uint64_t *numbers)
{
	int r = peer_memory_read(peer_memory, rank, address, numbers, N_NUMBERS * sizeof *numbers);

	for (size_t i = 0; i < N_NUMBERS && r == 0; i++)
		r = numbers[i] == number_of(rank, i) ? 0 : -EBADMSG;
	return r;
}

/* Read the numbers of all peers. */
static int read_others(struct comm *comm, const struct peer_memory *peer_memory)
{
	uint64_t *own = malloc(N_NUMBERS * sizeof *own), *other = malloc(N_NUMBERS * sizeof *own);
	uint64_t addresses[SIZE] = { 0 };
	const uint64_t address = (uintptr_t)own;
	int r;

	for (size_t i = 0; i < N_NUMBERS; i++)
		own[i] = number_of(comm_rank(comm), i);
	r = comm_allgather(comm, &address, sizeof address, addresses);
	for (unsigned rank = 0; rank < SIZE && r == 0; rank++)
		if (peer_memory_can_read(peer_memory, rank))
			r = check_number(peer_memory, rank, addresses[rank], other);
	if (r == 0)
		r = comm_barrier(comm);
	free(own);
	free(other);
	return r;
}

static int read_all(struct comm *comm, void *argument)
{
	const unsigned *stranger = argument;
	struct peer_memory *peer_memory;
	int r = open_peer_memory_test(comm, !stranger || *stranger != comm_rank(comm),
				      &peer_memory);

	if (r == 0)
		r = read_others(comm, peer_memory);
	peer_memory_close(peer_memory);
	return r;
}

/* Return whether processes of this host may read each other. */
static bool can_read(void)
{
	struct fake_ranks ranks = ranks_running(read_all);

	run(&ranks);
	fake_ranks_assert_success(&ranks);
	fake_ranks_free(&ranks);
	return n_readable[0] > 0;
}

TEST(all_peer_memory_is_read)
{
	if (!can_read())
		skip();
	for (unsigned rank = 0; rank < SIZE; rank++)
		assert_int_equal(n_readable[rank], SIZE - 1);
}

TEST(disabled_rank_is_not_readable)
{
	unsigned stranger = 1;
	struct fake_ranks ranks = ranks_running(read_all);

	if (!can_read())
		skip();
	ranks.argument = &stranger;
	run(&ranks);
	fake_ranks_assert_success(&ranks);
	fake_ranks_free(&ranks);
	for (unsigned rank = 0; rank < SIZE; rank++)
		assert_int_equal(n_readable[rank], rank == stranger ? 0 : SIZE - 2);
}

/* Read until that fails. */
static int read_forever(const struct peer_memory *peer_memory, unsigned rank, uint64_t address)
{
	uint64_t number;
	int r = 0;

	while (r == 0) {
		r = peer_memory_read(peer_memory, rank, address, &number, sizeof number);
		usleep(1000);
	}
	return r;
}

/* Rank 1 exits after rank 0 has read from it once; the others wait for both. */
static int exit_rank(struct comm *comm, void *argument)
{
	const uint64_t number = 5, address = (uintptr_t)&number;
	const unsigned own = comm_rank(comm);
	uint64_t addresses[SIZE] = { 0 };
	struct peer_memory *peer_memory;
	int r = open_peer_memory_test(comm, true, &peer_memory);

	(void)argument;
	if (r == 0)
		r = comm_allgather(comm, &address, sizeof address, addresses);
	if (r == 0)
		r = comm_barrier(comm);
	if (r == 0 && own == 1)
		_exit(EXITED_STATUS);
	if (r == 0 && own == 0)
		r = read_forever(peer_memory, 1, addresses[1]);
	return r < 0 ? r : comm_barrier(comm);
}

TEST(lost_rank_is_reported)
{
	struct fake_ranks ranks = ranks_running(exit_rank);

	if (!can_read())
		skip();
	run(&ranks);
	assert_int_equal(ranks.exits[1].status, EXITED_STATUS);
	assert_int_equal(ranks.exits[0].result, -EPIPE);
	assert_non_null(strstr(ranks.exits[0].error_text, "rank 1 on "));
	assert_non_null(strstr(ranks.exits[0].error_text, " has ended"));
	fake_ranks_free(&ranks);
}

/* Read an address that is not mapped. */
static int read_nothing(struct comm *comm, void *argument)
{
	struct peer_memory *peer_memory;
	char byte;
	int r = open_peer_memory_test(comm, true, &peer_memory);

	(void)argument;
	if (r == 0 && comm_rank(comm) == 0)
		r = peer_memory_read(peer_memory, 1, 16, &byte, 1);
	return r < 0 ? r : comm_barrier(comm);
}

TEST(bad_address_is_reported_with_its_rank)
{
	struct fake_ranks ranks = ranks_running(read_nothing);

	if (!can_read())
		skip();
	run(&ranks);
	assert_int_equal(ranks.exits[0].result, -EFAULT);
	assert_non_null(strstr(ranks.exits[0].error_text, "memory of rank 1 on "));
	assert_non_null(strstr(ranks.exits[0].error_text, ": Bad address"));
	fake_ranks_free(&ranks);
}

/*
 * Rank 1 fails and frees what rank 0 reads; rank 0 reports nothing. argument: rank 0 has read in
 * another way and checks afterwards.
 */
static int revoke_and_fail(struct comm *comm, void *argument)
{
	const size_t nbytes = 1 << 16;
	char *memory =
		mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint64_t address = (uintptr_t)memory;
	const unsigned own = comm_rank(comm);
	uint64_t addresses[SIZE] = { 0 };
	struct peer_memory *peer_memory;
	char byte;
	int r = open_peer_memory_test(comm, true, &peer_memory);

	if (r == 0)
		r = comm_allgather(comm, &address, sizeof address, addresses);
	if (r == 0 && own == 0)
		assert_int_equal(peer_memory_check_alive(peer_memory, 1), 0);
	if (r == 0)
		r = comm_barrier(comm);
	if (own == 1) {
		peer_memory_revoke(peer_memory);
		munmap(memory, nbytes);
	}
	if (r == 0)
		r = comm_barrier(comm);
	if (r == 0 && own == 1)
		return (fail)(-ENOSPC, "nothing is left"); /* cmocka has a macro of that name */
	if (r == 0 && own == 0)
		r = argument ? peer_memory_check_alive(peer_memory, 1) :
			       peer_memory_read(peer_memory, 1, addresses[1], &byte, 1);
	if (r == 0 && own == 0)
		return (fail)(-EBADMSG, "what is read stands");
	return r < 0 ? r : comm_barrier(comm);
}

TEST(failed_rank_memory_is_not_reported)
{
	static bool confirms = true;
	bool *const arguments[] = { NULL, &confirms };

	if (!can_read())
		skip();
	for (unsigned i = 0; i < 2; i++) {
		struct fake_ranks ranks = ranks_running(revoke_and_fail);

		ranks.argument = arguments[i];
		run(&ranks);
		assert_string_equal(ranks.exits[1].error_text, "nothing is left");
		assert_null(strstr(ranks.exits[0].error_text, "cannot read"));
		assert_null(strstr(ranks.exits[0].error_text, "stands"));
		fake_ranks_free(&ranks);
	}
}

/* From now on this process may read no other one, which a system may decide at any time. */
static int forbid_reading(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof filter / sizeof filter[0], filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return -errno;
	return 0;
}

/* The memory is there and its rank is alive. */
static int read_what_is_forbidden(struct comm *comm, void *argument)
{
	const uint64_t number = 5, address = (uintptr_t)&number;
	uint64_t addresses[SIZE] = { 0 }, found;
	struct peer_memory *peer_memory;
	int r = open_peer_memory_test(comm, true, &peer_memory);

	(void)argument;
	if (r == 0)
		r = comm_allgather(comm, &address, sizeof address, addresses);
	if (r == 0 && comm_rank(comm) == 0) {
		if (forbid_reading() < 0)
			return (fail)(-ENOTSUP, "nothing can be forbidden");
		r = peer_memory_read(peer_memory, 1, addresses[1], &found, sizeof found);
	}
	return r < 0 ? r : comm_barrier(comm);
}

/* Otherwise rank 0 would wait for ever, because the heartbeat only detects silence. */
TEST(live_unreadable_rank_is_reported)
{
	struct fake_ranks ranks = ranks_running(read_what_is_forbidden);

	if (!can_read())
		skip();
	run(&ranks);
	if (ranks.exits[0].result == -ENOTSUP)
		skip();
	assert_int_equal(ranks.exits[0].result, -EPERM);
	assert_non_null(strstr(ranks.exits[0].error_text, "memory of rank 1 on "));
	assert_non_null(strstr(ranks.exits[0].error_text, "any more: Operation not perm"));
	fake_ranks_free(&ranks);
}

GROUP_FIXTURE(start, end)
