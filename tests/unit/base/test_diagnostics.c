/*
 * test_diagnostics - what is said comes to the job that it is said for, and to no other
 */
#include "src/base/diagnostics.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "src/base/thread.h"

#include <cmocka.h>
#undef fail /* cmocka's: here it is the one that is tested */

/* A job, and what was heard of it. */
struct job {
	struct messages messages;
	int number;
	unsigned n_heard[MESSAGE_NOTE + 1];
	int last_code;
	char last[256];
	unsigned n_foreign; /* that are another job's */
};

static int number_of(const char *text)
{
	int number = -1;

	sscanf(text, "job %d", &number);
	return number;
}

static void hear(void *context, const struct message *message)
{
	struct job *job = context;

	job->n_heard[message->kind]++;
	job->last_code = message->code;
	job->n_foreign += number_of(message->text) != job->number;
	snprintf(job->last, sizeof job->last, "%s", message->text);
}

static void begin(struct job *job, int number)
{
	memset(job, 0, sizeof *job);
	job->number = number;
	messages_init(&job->messages, hear, job);
}

static void first_failure_is_the_one_that_counts(void **state)
{
	struct job job;

	(void)state;
	begin(&job, 1);
	messages_enter(&job.messages);
	assert_int_equal(fail(-EIO, "job 1: %s: %m", "a"), -EIO);
	assert_int_equal(fail(-ENOSPC, "job 1: b: %m"), -ENOSPC);
	messages_enter(NULL);
	assert_int_equal(job.n_heard[MESSAGE_FAILURE], 1);
	assert_int_equal(job.last_code, -EIO);
	assert_string_equal(job.last, "job 1: a: Input/output error");
	assert_true(job.messages.failed);
	assert_int_equal(job.messages.code, -EIO);
	assert_string_equal(job.messages.text, job.last);
	messages_destroy(&job.messages);
}

static void warnings_and_notes_are_all_heard(void **state)
{
	struct job job;

	(void)state;
	begin(&job, 1);
	messages_enter(&job.messages);
	warn("job %d: a", 1);
	warn("job %d: b", 1);
	tell("job %d: c", 1);
	messages_enter(NULL);
	assert_int_equal(job.n_heard[MESSAGE_WARNING], 2);
	assert_int_equal(job.n_heard[MESSAGE_NOTE], 1);
	assert_int_equal(job.n_heard[MESSAGE_FAILURE], 0);
	assert_string_equal(job.last, "job 1: c");
	assert_false(job.messages.failed);
	messages_destroy(&job.messages);
}

static void nobody_need_listen(void **state)
{
	struct messages messages;

	(void)state;
	assert_null(messages_current());
	assert_int_equal(fail(-EIO, "to nobody"), -EIO);
	warn("to nobody");
	tell("to nobody");
	messages_init(&messages, NULL, NULL);
	assert_null(messages_enter(&messages));
	warn("to nobody");
	fail(-EIO, "kept");
	assert_ptr_equal(messages_enter(NULL), &messages);
	assert_string_equal(messages.text, "kept");
	messages_destroy(&messages);
}

/* What is tried has messages of its own: that it fails is no failure of the job. */
static void trial_that_fails_is_no_failure_of_its_job(void **state)
{
	struct messages trial, *before;
	struct job job;

	(void)state;
	begin(&job, 1);
	messages_enter(&job.messages);
	messages_init(&trial, NULL, NULL);
	before = messages_enter(&trial);
	assert_ptr_equal(before, &job.messages);
	fail(-ENODEV, "no device");
	messages_enter(before);
	assert_false(job.messages.failed);
	assert_string_equal(trial.text, "no device");
	messages_destroy(&trial);
	fail(-EIO, "job 1: fails");
	messages_enter(NULL);
	assert_string_equal(job.last, "job 1: fails");
	messages_destroy(&job.messages);
}

enum { N_JOBS = 4, N_THREADS = 3, N_ROUNDS = 500 };

static void *say_much(void *argument)
{
	const struct job *job = argument;

	for (int i = 0; i < N_ROUNDS; i++) {
		warn("job %d warns", job->number);
		tell("job %d tells", job->number);
		fail(-EIO - job->number, "job %d fails", job->number);
	}
	return NULL;
}

/* The threads of a job's own thread are the job's, too. */
static void *do_job(void *argument)
{
	struct job *job = argument;
	pthread_t threads[N_THREADS];

	messages_enter(&job->messages);
	for (int i = 0; i < N_THREADS; i++)
		if (thread_start(say_much, job, 0, &threads[i]) < 0)
			job->n_foreign++;
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	return NULL;
}

static void jobs_at_the_same_time_hear_nothing_of_each_other(void **state)
{
	struct job jobs[N_JOBS];
	pthread_t threads[N_JOBS];

	(void)state;
	for (int i = 0; i < N_JOBS; i++) {
		begin(&jobs[i], i);
		assert_int_equal(thread_start(do_job, &jobs[i], 0, &threads[i]), 0);
	}
	for (int i = 0; i < N_JOBS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(jobs[i].n_foreign, 0);
		assert_int_equal(jobs[i].n_heard[MESSAGE_FAILURE], 1);
		assert_int_equal(jobs[i].n_heard[MESSAGE_WARNING], N_THREADS * N_ROUNDS);
		assert_int_equal(jobs[i].n_heard[MESSAGE_NOTE], N_THREADS * N_ROUNDS);
		assert_int_equal(jobs[i].messages.code, -EIO - i);
		messages_destroy(&jobs[i].messages);
	}
}

static volatile sig_atomic_t n_signals;

static void count_signal(int signal_number)
{
	(void)signal_number;
	n_signals++;
}

static void no_signal_interrupts_what_holds_them(void **state)
{
	const struct sigaction action = { .sa_handler = count_signal };
	sigset_t before;

	(void)state;
	sigaction(SIGUSR1, &action, NULL);
	thread_hold_signals(&before);
	pthread_kill(pthread_self(), SIGUSR1);
	assert_int_equal(n_signals, 0);
	thread_let_signals(&before);
	assert_int_equal(n_signals, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_failure_is_the_one_that_counts),
		cmocka_unit_test(warnings_and_notes_are_all_heard),
		cmocka_unit_test(nobody_need_listen),
		cmocka_unit_test(trial_that_fails_is_no_failure_of_its_job),
		cmocka_unit_test(jobs_at_the_same_time_hear_nothing_of_each_other),
		cmocka_unit_test(no_signal_interrupts_what_holds_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
