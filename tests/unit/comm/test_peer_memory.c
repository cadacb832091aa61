/*
 * test_peer_memory - memory of other ranks is read where it is, as long as they are there
 *
 * Where the system forbids it, nobody is near, and there is nothing to be tested.
 */
#include "src/comm/peer_memory.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/diagnostics.h"
#include "tests/support/fake_ranks.h"

#include <cmocka.h>

enum { SIZE = 3, N_NUMBERS = 200000, STATUS_GONE = 9 };

static const uint64_t minute_ns = 60000000000;

/* Of all ranks: how many others each has near. */
static unsigned *n_near;

static int start(void **state)
{
	(void)state;
	n_near = mmap(NULL, SIZE * sizeof *n_near, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return n_near == MAP_FAILED ? -1 : 0;
}

static int end(void **state)
{
	(void)state;
	return munmap(n_near, SIZE * sizeof *n_near);
}

static struct ranks_double ranks_that(int (*body)(struct ranks *ranks, void *argument))
{
	return (struct ranks_double){ .size = SIZE,
				      .settings = { .stall_ns = minute_ns,
						    .piece_nbytes = RANKS_DOUBLE_PIECE_NBYTES },
				      .body = body };
}

static void run(struct ranks_double *ranks)
{
	memset(n_near, 0, SIZE * sizeof *n_near);
	ranks_double_run(ranks);
}

static int find_near(struct ranks *ranks, bool is_wanted, struct near **ret_near)
{
	int r = near_open(ranks, is_wanted, ret_near);

	for (unsigned rank = 0; rank < ranks_size(ranks) && r == 0; rank++)
		n_near[ranks_rank(ranks)] += near_has(*ret_near, rank);
	return r;
}

static uint64_t number_of(unsigned rank, size_t i)
{
	return rank * UINT64_C(1000000007) + i;
}

static int look_at(const struct near *near, unsigned rank, uint64_t address, uint64_t *numbers)
{
	int r = near_read(near, rank, address, numbers, N_NUMBERS * sizeof *numbers);

	for (size_t i = 0; i < N_NUMBERS && r == 0; i++)
		r = numbers[i] == number_of(rank, i) ? 0 : -EBADMSG;
	return r;
}

/* Each rank's numbers, of all others that are near. */
static int read_others(struct ranks *ranks, const struct near *near)
{
	uint64_t *own = malloc(N_NUMBERS * sizeof *own), *other = malloc(N_NUMBERS * sizeof *own);
	uint64_t addresses[SIZE] = { 0 };
	const uint64_t address = (uintptr_t)own;
	int r;

	for (size_t i = 0; i < N_NUMBERS; i++)
		own[i] = number_of(ranks_rank(ranks), i);
	r = ranks_gather_all(ranks, &address, sizeof address, addresses);
	for (unsigned rank = 0; rank < SIZE && r == 0; rank++)
		if (near_has(near, rank))
			r = look_at(near, rank, addresses[rank], other);
	if (r == 0)
		r = ranks_barrier(ranks);
	free(own);
	free(other);
	return r;
}

static int read_all(struct ranks *ranks, void *argument)
{
	const unsigned *stranger = argument;
	struct near *near;
	int r = find_near(ranks, !stranger || *stranger != ranks_rank(ranks), &near);

	if (r == 0)
		r = read_others(ranks, near);
	near_close(near);
	return r;
}

/* Are processes of this machine allowed to read each other? */
static bool can_read(void)
{
	struct ranks_double ranks = ranks_that(read_all);

	run(&ranks);
	ranks_double_assert_fine(&ranks);
	ranks_double_forget(&ranks);
	return n_near[0] > 0;
}

static void memory_of_all_others_is_read(void **state)
{
	(void)state;
	if (!can_read())
		skip();
	for (unsigned rank = 0; rank < SIZE; rank++)
		assert_int_equal(n_near[rank], SIZE - 1);
}

static void who_does_not_want_to_is_near_to_nobody(void **state)
{
	unsigned stranger = 1;
	struct ranks_double ranks = ranks_that(read_all);

	(void)state;
	if (!can_read())
		skip();
	ranks.argument = &stranger;
	run(&ranks);
	ranks_double_assert_fine(&ranks);
	ranks_double_forget(&ranks);
	for (unsigned rank = 0; rank < SIZE; rank++)
		assert_int_equal(n_near[rank], rank == stranger ? 0 : SIZE - 2);
}

/* Until it fails, which is to be seen by whoever reads. */
static int read_for_ever(const struct near *near, unsigned rank, uint64_t address)
{
	uint64_t number;
	int r = 0;

	while (r == 0) {
		r = near_read(near, rank, address, &number, sizeof number);
		usleep(1000);
	}
	return r;
}

/* Rank 1 is gone when rank 0 has read of it once; the others wait for both. */
static int be_gone(struct ranks *ranks, void *argument)
{
	const uint64_t number = 5, address = (uintptr_t)&number;
	const unsigned own = ranks_rank(ranks);
	uint64_t addresses[SIZE] = { 0 };
	struct near *near;
	int r = find_near(ranks, true, &near);

	(void)argument;
	if (r == 0)
		r = ranks_gather_all(ranks, &address, sizeof address, addresses);
	if (r == 0)
		r = ranks_barrier(ranks);
	if (r == 0 && own == 1)
		_exit(STATUS_GONE);
	if (r == 0 && own == 0)
		r = read_for_ever(near, 1, addresses[1]);
	return r < 0 ? r : ranks_barrier(ranks);
}

static void rank_that_is_gone_is_said_to_be(void **state)
{
	struct ranks_double ranks = ranks_that(be_gone);

	(void)state;
	if (!can_read())
		skip();
	run(&ranks);
	assert_int_equal(ranks.ends[1].status, STATUS_GONE);
	assert_int_equal(ranks.ends[0].r, -EPIPE);
	assert_non_null(strstr(ranks.ends[0].text, "rank 1 on "));
	assert_non_null(strstr(ranks.ends[0].text, " is gone"));
	ranks_double_forget(&ranks);
}

/* What is not there. */
static int read_nothing(struct ranks *ranks, void *argument)
{
	struct near *near;
	char byte;
	int r = find_near(ranks, true, &near);

	(void)argument;
	if (r == 0 && ranks_rank(ranks) == 0)
		r = near_read(near, 1, 16, &byte, 1);
	return r < 0 ? r : ranks_barrier(ranks);
}

static void memory_that_is_not_there_is_named_with_its_rank(void **state)
{
	struct ranks_double ranks = ranks_that(read_nothing);

	(void)state;
	if (!can_read())
		skip();
	run(&ranks);
	assert_int_equal(ranks.ends[0].r, -EFAULT);
	assert_non_null(strstr(ranks.ends[0].text, "memory of rank 1 on "));
	assert_non_null(strstr(ranks.ends[0].text, "cannot be read: Bad address"));
	ranks_double_forget(&ranks);
}

/*
 * Rank 1 fails, and frees what rank 0 reads; who reads says nothing of that. argument: it has read
 * something else of that rank, of which it was not seen.
 */
static int withdraw(struct ranks *ranks, void *argument)
{
	const size_t nbytes = 1 << 16;
	char *memory =
		mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint64_t address = (uintptr_t)memory;
	const unsigned own = ranks_rank(ranks);
	uint64_t addresses[SIZE] = { 0 };
	struct near *near;
	char byte;
	int r = find_near(ranks, true, &near);

	if (r == 0)
		r = ranks_gather_all(ranks, &address, sizeof address, addresses);
	if (r == 0 && own == 0)
		assert_int_equal(near_confirm(near, 1), 0);
	if (r == 0)
		r = ranks_barrier(ranks);
	if (own == 1) {
		near_withdraw(near);
		munmap(memory, nbytes);
	}
	if (r == 0)
		r = ranks_barrier(ranks);
	if (r == 0 && own == 1)
		return (fail)(-ENOSPC, "nothing is left"); /* cmocka has a macro of that name */
	if (r == 0 && own == 0)
		r = argument ? near_confirm(near, 1) : near_read(near, 1, addresses[1], &byte, 1);
	if (r == 0 && own == 0)
		return (fail)(-EBADMSG, "what is read stands");
	return r < 0 ? r : ranks_barrier(ranks);
}

static void memory_of_a_rank_that_has_failed_is_not_complained_about(void **state)
{
	static bool confirms = true;
	bool *const arguments[] = { NULL, &confirms };

	(void)state;
	if (!can_read())
		skip();
	for (unsigned i = 0; i < 2; i++) {
		struct ranks_double ranks = ranks_that(withdraw);

		ranks.argument = arguments[i];
		run(&ranks);
		assert_string_equal(ranks.ends[1].text, "nothing is left");
		assert_null(strstr(ranks.ends[0].text, "cannot be read"));
		assert_null(strstr(ranks.ends[0].text, "stands"));
		ranks_double_forget(&ranks);
	}
}

/* From now on this process may read no other, which the system can come to at any time. */
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

/* What is read is there, and its rank lives, and goes on doing so. */
static int read_what_is_forbidden(struct ranks *ranks, void *argument)
{
	const uint64_t number = 5, address = (uintptr_t)&number;
	uint64_t addresses[SIZE] = { 0 }, found;
	struct near *near;
	int r = find_near(ranks, true, &near);

	(void)argument;
	if (r == 0)
		r = ranks_gather_all(ranks, &address, sizeof address, addresses);
	if (r == 0 && ranks_rank(ranks) == 0) {
		if (forbid_reading() < 0)
			return (fail)(-ENOTSUP, "nothing can be forbidden");
		r = near_read(near, 1, addresses[1], &found, sizeof found);
	}
	return r < 0 ? r : ranks_barrier(ranks);
}

/* It would be waited for without end, as only the silence of others is watched. */
static void rank_that_lives_and_cannot_be_read_is_named(void **state)
{
	struct ranks_double ranks = ranks_that(read_what_is_forbidden);

	(void)state;
	if (!can_read())
		skip();
	run(&ranks);
	if (ranks.ends[0].r == -ENOTSUP)
		skip();
	assert_int_equal(ranks.ends[0].r, -EPERM);
	assert_non_null(strstr(ranks.ends[0].text, "memory of rank 1 on "));
	assert_non_null(strstr(ranks.ends[0].text, "cannot be read any more: Operation not perm"));
	ranks_double_forget(&ranks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_of_all_others_is_read),
		cmocka_unit_test(who_does_not_want_to_is_near_to_nobody),
		cmocka_unit_test(rank_that_is_gone_is_said_to_be),
		cmocka_unit_test(memory_that_is_not_there_is_named_with_its_rank),
		cmocka_unit_test(rank_that_lives_and_cannot_be_read_is_named),
		cmocka_unit_test(memory_of_a_rank_that_has_failed_is_not_complained_about),
	};

	return cmocka_run_group_tests(tests, start, end);
}
