/*
 * test_diagnostics - messages reach the diagnostics of their job and no other
 */
#include "src/base/diagnostics.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "src/base/thread.h"
#include "tests/support/unit_test.h"
#undef fail /* the macro of cmocka; this file tests the function */

/* A job, and the messages that it received. */
struct diagnostics_job {
	struct diagnostics diagnostics;
	int number;
	unsigned n_received[MESSAGE_NOTICE + 1];
	char last[256];
	unsigned n_foreign; /* messages of other jobs */
};

static int number_of(const char *text)
{
	int number = -1;

	sscanf(text, "job %d", &number);
	return number;
}

static void receive_message(void *context, const struct message *message)
{
	struct diagnostics_job *job = context;

	job->n_received[message->kind]++;
	job->n_foreign += number_of(message->text) != job->number;
	snprintf(job->last, sizeof job->last, "%s", message->text);
}

static void begin_job(struct diagnostics_job *job, int number)
{
	memset(job, 0, sizeof *job);
	job->number = number;
	diagnostics_init(&job->diagnostics, receive_message, job);
}

TEST(only_the_first_error_counts)
{
	struct diagnostics_job job;

	begin_job(&job, 1);
	diagnostics_push(&job.diagnostics);
	assert_int_equal(fail(-EIO, "job 1: %s: %m", "a"), -EIO);
	assert_int_equal(fail(-ENOSPC, "job 1: b: %m"), -ENOSPC);
	diagnostics_push(NULL);
	assert_int_equal(job.n_received[MESSAGE_ERROR], 1);
	assert_string_equal(job.last, "job 1: a: Input/output error");
	assert_true(job.diagnostics.failed);
	assert_string_equal(job.diagnostics.text, job.last);
	diagnostics_destroy(&job.diagnostics);
}

TEST(all_warnings_and_notices_are_sent)
{
	struct diagnostics_job job;

	begin_job(&job, 1);
	diagnostics_push(&job.diagnostics);
	warn("job %d: a", 1);
	warn("job %d: b", 1);
	notice("job %d: c", 1);
	diagnostics_push(NULL);
	assert_int_equal(job.n_received[MESSAGE_WARNING], 2);
	assert_int_equal(job.n_received[MESSAGE_NOTICE], 1);
	assert_int_equal(job.n_received[MESSAGE_ERROR], 0);
	assert_string_equal(job.last, "job 1: c");
	assert_false(job.diagnostics.failed);
	diagnostics_destroy(&job.diagnostics);
}

TEST(callback_is_optional)
{
	struct diagnostics messages;

	assert_null(diagnostics_current());
	assert_int_equal(fail(-EIO, "to nobody"), -EIO);
	warn("to nobody");
	notice("to nobody");
	diagnostics_init(&messages, NULL, NULL);
	assert_null(diagnostics_push(&messages));
	warn("to nobody");
	fail(-EIO, "kept");
	assert_ptr_equal(diagnostics_push(NULL), &messages);
	assert_string_equal(messages.text, "kept");
	diagnostics_destroy(&messages);
}

/* An error of a captured step is no error of the job. */
TEST(captured_error_is_no_job_error)
{
	struct diagnostics trial, *before;
	struct diagnostics_job job;

	begin_job(&job, 1);
	diagnostics_push(&job.diagnostics);
	diagnostics_init(&trial, NULL, NULL);
	before = diagnostics_push(&trial);
	assert_ptr_equal(before, &job.diagnostics);
	fail(-ENODEV, "no device");
	diagnostics_push(before);
	assert_false(job.diagnostics.failed);
	assert_string_equal(trial.text, "no device");
	diagnostics_destroy(&trial);
	fail(-EIO, "job 1: fails");
	diagnostics_push(NULL);
	assert_string_equal(job.last, "job 1: fails");
	diagnostics_destroy(&job.diagnostics);
}

enum { N_JOBS = 4, N_THREADS = 3, N_ROUNDS = 500 };

static void *emit_many_messages(void *argument)
{
	const struct diagnostics_job *job = argument;

	for (int i = 0; i < N_ROUNDS; i++) {
		warn("job %d warns", job->number);
		notice("job %d tells", job->number);
		fail(-EIO - job->number, "job %d fails", job->number);
	}
	return NULL;
}

/* Threads started by a thread of the job belong to the job. */
static void *do_job(void *argument)
{
	struct diagnostics_job *job = argument;
	pthread_t threads[N_THREADS];

	diagnostics_push(&job->diagnostics);
	for (int i = 0; i < N_THREADS; i++)
		if (thread_start(emit_many_messages, job, 0, &threads[i]) < 0)
			job->n_foreign++;
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	return NULL;
}

TEST(concurrent_jobs_are_isolated)
{
	struct diagnostics_job jobs[N_JOBS];
	pthread_t threads[N_JOBS];

	for (int i = 0; i < N_JOBS; i++) {
		begin_job(&jobs[i], i);
		assert_int_equal(thread_start(do_job, &jobs[i], 0, &threads[i]), 0);
	}
	for (int i = 0; i < N_JOBS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(jobs[i].n_foreign, 0);
		assert_int_equal(jobs[i].n_received[MESSAGE_ERROR], 1);
		assert_int_equal(jobs[i].n_received[MESSAGE_WARNING], N_THREADS * N_ROUNDS);
		assert_int_equal(jobs[i].n_received[MESSAGE_NOTICE], N_THREADS * N_ROUNDS);
		diagnostics_destroy(&jobs[i].diagnostics);
	}
}

static volatile sig_atomic_t n_signals;

static void count_signal(int signal_number)
{
	(void)signal_number;
	n_signals++;
}

TEST(blocked_signals_do_not_interrupt)
{
	const struct sigaction action = { .sa_handler = count_signal };
	sigset_t before;

	sigaction(SIGUSR1, &action, NULL);
	thread_block_signals(&before);
	pthread_kill(pthread_self(), SIGUSR1);
	assert_int_equal(n_signals, 0);
	thread_restore_signals(&before);
	assert_int_equal(n_signals, 1);
}
