/*
 * test_thread_pool - every part of a job is done once, and the first failure ends it
 */
#include "src/base/thread_pool.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include "src/base/diagnostics.h"

#include <cmocka.h>

#include "tests/support/thread_gate.h"

enum { N_PARTS = 1000 };

struct job {
	atomic_uint n_done[N_PARTS];
	uint32_t failing; /* part */
};

static int do_part(void *context, uint32_t i)
{
	struct job *job = context;

	atomic_fetch_add(&job->n_done[i], 1);
	return i == job->failing ? -EIO : 0;
}

static void every_part_is_done_once(void **state)
{
	(void)state;
	for (uint32_t n_threads = 1; n_threads <= 5; n_threads++) {
		struct job job = { .failing = N_PARTS };
		struct crew *crew;

		assert_int_equal(crew_open(n_threads, &crew), 0);
		for (unsigned round = 1; round <= 20; round++) {
			assert_int_equal(crew_run(crew, do_part, &job, N_PARTS), 0);
			for (uint32_t i = 0; i < N_PARTS; i++)
				assert_int_equal(job.n_done[i], round);
		}
		crew_close(crew);
	}
}

static int warn_of_part(void *context, uint32_t i)
{
	(void)context;
	warn("part %u", i);
	return 0;
}

static void count(void *context, const struct message *message)
{
	unsigned *n = context;

	(void)message;
	(*n)++;
}

static void what_parts_say_comes_to_who_wants_them_done(void **state)
{
	unsigned n_heard[2] = { 0 };
	struct messages messages[2];
	struct crew *crew;

	(void)state;
	for (int i = 0; i < 2; i++)
		messages_init(&messages[i], count, &n_heard[i]);
	messages_enter(&messages[0]);
	assert_int_equal(crew_open(4, &crew), 0);
	messages_enter(&messages[1]);
	assert_int_equal(crew_run(crew, warn_of_part, NULL, N_PARTS), 0);
	messages_enter(NULL);
	crew_close(crew);
	assert_int_equal(n_heard[0], 0);
	assert_int_equal(n_heard[1], N_PARTS);
	for (int i = 0; i < 2; i++)
		messages_destroy(&messages[i]);
}

static void failure_ends_the_job_and_not_the_crew(void **state)
{
	enum { N_THREADS = 3 };
	struct job job = { .failing = 10 };
	struct crew *crew;

	(void)state;
	assert_int_equal(crew_open(N_THREADS, &crew), 0);
	assert_int_equal(crew_run(crew, do_part, &job, N_PARTS), -EIO);
	assert_int_equal(job.n_done[10], 1);
	job.failing = N_PARTS;
	assert_int_equal(crew_run(crew, do_part, &job, N_PARTS), 0);
	assert_true(job.n_done[N_PARTS - 1] > 0);
	crew_close(crew);
}

static void job_without_parts_is_done(void **state)
{
	struct job job = { .failing = 0 };
	struct crew *crew;

	(void)state;
	assert_int_equal(crew_open(2, &crew), 0);
	assert_int_equal(crew_run(crew, do_part, &job, 0), 0);
	assert_int_equal(job.n_done[0], 0);
	crew_close(crew);
	crew_close(NULL);
}

/* Two parts, neither of which ends before the other has begun. */
struct meeting {
	struct gate begun[2];
};

static int meet(void *context, uint32_t i)
{
	struct meeting *meeting = context;

	gate_open(&meeting->begun[i], 1);
	return gate_pass(&meeting->begun[1 - i]) ? 0 : -ETIMEDOUT;
}

static void parts_are_done_side_by_side(void **state)
{
	struct meeting meeting = { { GATE_CLOSED, GATE_CLOSED } };
	struct crew *crew;

	(void)state;
	assert_int_equal(crew_open(2, &crew), 0);
	assert_int_equal(crew_run(crew, meet, &meeting, 2), 0);
	crew_close(crew);
}

static bool lacks_memory;

void *__real_calloc(size_t n, size_t nbytes);
void *__wrap_calloc(size_t n, size_t nbytes);
void *__wrap_calloc(size_t n, size_t nbytes)
{
	return lacks_memory ? NULL : __real_calloc(n, nbytes);
}

static void want_of_memory_for_a_crew_is_an_error(void **state)
{
	struct crew *crew = NULL;

	(void)state;
	lacks_memory = true;
	assert_int_equal(crew_open(2, &crew), -ENOMEM);
	lacks_memory = false;
}

/* Threads that claim what is next. */
struct claims {
	atomic_uint next, n_threads;
	atomic_uint n_done[N_PARTS];
};

static void claim_all(void *context)
{
	struct claims *claims = context;
	unsigned i;

	while ((i = atomic_fetch_add(&claims->next, 1)) < N_PARTS)
		atomic_fetch_add(&claims->n_done[i], 1);
	atomic_fetch_add(&claims->n_threads, 1);
}

static void shared_work_is_done_by_all_and_waited_for(void **state)
{
	(void)state;
	for (uint32_t n_threads = 1; n_threads <= 5; n_threads++) {
		struct claims claims = { 0 };

		crew_share(n_threads, claim_all, &claims);
		assert_int_equal(claims.n_threads, n_threads);
		for (uint32_t i = 0; i < N_PARTS; i++)
			assert_int_equal(claims.n_done[i], 1);
	}
}

static void note_number(void *context, uint32_t number, uint32_t n)
{
	struct claims *claims = context;

	atomic_fetch_add(&claims->n_done[number], 1);
	atomic_fetch_add(&claims->n_threads, n);
}

static void who_shares_work_has_a_number_of_its_own(void **state)
{
	(void)state;
	for (uint32_t n_threads = 1; n_threads <= 5; n_threads++) {
		struct claims claims = { 0 };

		crew_share_numbered(n_threads, note_number, &claims);
		assert_int_equal(claims.n_threads, n_threads * n_threads);
		for (uint32_t i = 0; i < n_threads; i++)
			assert_int_equal(claims.n_done[i], 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_part_is_done_once),
		cmocka_unit_test(what_parts_say_comes_to_who_wants_them_done),
		cmocka_unit_test(failure_ends_the_job_and_not_the_crew),
		cmocka_unit_test(parts_are_done_side_by_side),
		cmocka_unit_test(want_of_memory_for_a_crew_is_an_error),
		cmocka_unit_test(shared_work_is_done_by_all_and_waited_for),
		cmocka_unit_test(who_shares_work_has_a_number_of_its_own),
		cmocka_unit_test(job_without_parts_is_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
