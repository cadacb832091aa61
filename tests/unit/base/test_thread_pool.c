/*
 * test_thread_pool - each task of a job runs once, and the first error ends the job
 */
#include "src/base/thread_pool.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "tests/support/unit_test.h"

#include "tests/support/thread_gate.h"

enum { N_POOL_TASKS = 1000 };

struct pool_job {
	atomic_uint n_done[N_POOL_TASKS];
	uint32_t failing_task; /* index of the task that fails */
};

static int run_pool_task(void *context, uint32_t i)
{
	struct pool_job *job = context;

	atomic_fetch_add(&job->n_done[i], 1);
	return i == job->failing_task ? -EIO : 0;
}

TEST(every_task_runs_once)
{
	for (uint32_t n_threads = 1; n_threads <= 5; n_threads++) {
		struct pool_job job = { .failing_task = N_POOL_TASKS };
		struct thread_pool *pool;

		assert_int_equal(thread_pool_open(n_threads, &pool), 0);
		for (unsigned round = 1; round <= 20; round++) {
			assert_int_equal(thread_pool_run(pool, run_pool_task, &job, N_POOL_TASKS),
					 0);
			for (uint32_t i = 0; i < N_POOL_TASKS; i++)
				assert_int_equal(job.n_done[i], round);
		}
		thread_pool_close(pool);
	}
}

static int warn_of_pool_task(void *context, uint32_t i)
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

TEST(task_messages_go_to_the_caller)
{
	unsigned n_received[2] = { 0 };
	struct diagnostics diagnostics[2];
	struct thread_pool *pool;

	for (int i = 0; i < 2; i++)
		diagnostics_init(&diagnostics[i], count, &n_received[i]);
	diagnostics_push(&diagnostics[0]);
	assert_int_equal(thread_pool_open(4, &pool), 0);
	diagnostics_push(&diagnostics[1]);
	assert_int_equal(thread_pool_run(pool, warn_of_pool_task, NULL, N_POOL_TASKS), 0);
	diagnostics_push(NULL);
	thread_pool_close(pool);
	assert_int_equal(n_received[0], 0);
	assert_int_equal(n_received[1], N_POOL_TASKS);
	for (int i = 0; i < 2; i++)
		diagnostics_destroy(&diagnostics[i]);
}

TEST(failure_ends_the_job_not_the_pool)
{
	enum { N_THREADS = 3 };
	struct pool_job job = { .failing_task = 10 };
	struct thread_pool *pool;

	assert_int_equal(thread_pool_open(N_THREADS, &pool), 0);
	assert_int_equal(thread_pool_run(pool, run_pool_task, &job, N_POOL_TASKS), -EIO);
	assert_int_equal(job.n_done[10], 1);
	job.failing_task = N_POOL_TASKS;
	assert_int_equal(thread_pool_run(pool, run_pool_task, &job, N_POOL_TASKS), 0);
	assert_true(job.n_done[N_POOL_TASKS - 1] > 0);
	thread_pool_close(pool);
}

TEST(job_without_tasks_returns)
{
	struct pool_job job = { .failing_task = 0 };
	struct thread_pool *pool;

	assert_int_equal(thread_pool_open(2, &pool), 0);
	assert_int_equal(thread_pool_run(pool, run_pool_task, &job, 0), 0);
	assert_int_equal(job.n_done[0], 0);
	thread_pool_close(pool);
	thread_pool_close(NULL);
}

/* Two tasks, each of which waits until the other has begun. */
struct task_barrier {
	struct gate begun[2];
};

static int wait_for_other_task(void *context, uint32_t i)
{
	struct task_barrier *barrier = context;

	gate_open(&barrier->begun[i], 1);
	return gate_pass(&barrier->begun[1 - i]) ? 0 : -ETIMEDOUT;
}

TEST(tasks_run_concurrently)
{
	struct task_barrier barrier = { { GATE_INITIALIZER, GATE_INITIALIZER } };
	struct thread_pool *pool;

	assert_int_equal(thread_pool_open(2, &pool), 0);
	assert_int_equal(thread_pool_run(pool, wait_for_other_task, &barrier, 2), 0);
	thread_pool_close(pool);
}

/* Tasks that threads claim by themselves. */
struct thread_claims {
	atomic_uint n_threads;
	atomic_uint n_done[N_POOL_TASKS];
};

enum { BLOCK_BUFFER_NBYTES = 16 };

struct block_claims {
	atomic_uint n_done[N_POOL_TASKS];
	uint64_t last; /* the block that ends the job */
	int r;         /* its result */
};

static int claim_block(void *context, uint64_t block, void *buffer)
{
	struct block_claims *claims = context;

	memset(buffer, (int)block, BLOCK_BUFFER_NBYTES);
	atomic_fetch_add(&claims->n_done[block], 1);
	return block == claims->last ? claims->r : 0;
}

TEST(threads_process_each_block_once)
{
	for (uint32_t n_threads = 1; n_threads <= 5; n_threads++) {
		struct block_claims claims = { 0 };

		assert_int_equal(threads_run_blocks(n_threads, N_POOL_TASKS, BLOCK_BUFFER_NBYTES,
						    claim_block, &claims),
				 0);
		for (uint32_t i = 0; i < N_POOL_TASKS; i++)
			assert_int_equal(claims.n_done[i], 1);
	}
}

TEST(a_block_ends_the_job)
{
	static const int results[] = { 1, -EIO };

	for (unsigned i = 0; i < 2; i++) {
		struct block_claims claims = { .last = 10, .r = results[i] };

		assert_int_equal(threads_run_blocks(1, N_POOL_TASKS, BLOCK_BUFFER_NBYTES,
						    claim_block, &claims),
				 results[i] < 0 ? results[i] : 0);
		assert_int_equal(claims.n_done[10], 1);
		assert_int_equal(claims.n_done[11], 0);
	}
}

static void record_number(void *context, uint32_t number, uint32_t n)
{
	struct thread_claims *claims = context;

	atomic_fetch_add(&claims->n_done[number], 1);
	atomic_fetch_add(&claims->n_threads, n);
}

TEST(each_thread_has_its_own_number)
{
	for (uint32_t n_threads = 1; n_threads <= 5; n_threads++) {
		struct thread_claims claims = { 0 };

		threads_run_numbered(n_threads, record_number, &claims);
		assert_int_equal(claims.n_threads, n_threads * n_threads);
		for (uint32_t i = 0; i < n_threads; i++)
			assert_int_equal(claims.n_done[i], 1);
	}
}

static void *count_thread(void *context)
{
	atomic_fetch_add((atomic_uint *)context, 1);
	return NULL;
}

TEST(group_waits_for_all_threads_that_were_added)
{
	struct thread_group group = { 0 };
	atomic_uint n_ended = 0;

	thread_group_join(&group);
	for (uint32_t n = 0; n <= 3; n++)
		assert_int_equal(thread_group_start(&group, n, count_thread, &n_ended, NULL), 0);
	assert_int_equal(group.n_threads, 6);
	thread_group_join(&group);
	assert_int_equal(n_ended, 6);
	assert_int_equal(group.n_threads, 0);
}
