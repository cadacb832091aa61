/*
 * test_progress_display - the line says how far the sort is, when it should and not otherwise
 */
#include "src/cli/cli_main.h"

#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "tests/support/unit_test.h"

enum { GIVE_UP_MS = 10000, SECOND_NS = 1000000000 };

static char text[4096];

static atomic_uint percent = 42; /* of the first phase of the sort that is asked */
static sem_t queried;

static void answer_progress_query(void *context, struct gsort_progress *ret_progress)
{
	(void)context;
	*ret_progress = (struct gsort_progress){ .phase = "run generation",
						 .done_nbytes = atomic_load(&percent),
						 .total_nbytes = 100,
						 .overall_done_nbytes = atomic_load(&percent),
						 .overall_total_nbytes = 100,
						 .phase_elapsed_ns = 1000000 };
	sem_post(&queried);
}

/* A sort whose progress is reported to a standard error that the test reads. */
struct session {
	int real_stderr, reader, writer;
	struct progress_display *progress;
};

static struct session start(enum progress_mode mode, int reader, int writer)
{
	struct session session = { .real_stderr = dup(STDERR_FILENO),
				   .reader = reader,
				   .writer = writer };

	assert_true(session.real_stderr >= 0 && dup2(writer, STDERR_FILENO) >= 0);
	assert_int_equal(
		progress_display_open(mode, answer_progress_query, NULL, &session.progress), 0);
	return session;
}

static struct session start_with_pipe(enum progress_mode mode)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	return start(mode, ends[0], ends[1]);
}

static struct session start_with_terminal(enum progress_mode mode)
{
	const int controller = posix_openpt(O_RDWR | O_NOCTTY);

	assert_true(controller >= 0 && grantpt(controller) == 0 && unlockpt(controller) == 0);
	return start(mode, controller, open(ptsname(controller), O_RDWR | O_NOCTTY));
}

/* What has been written, waiting for it up to a time; "" if nothing came. */
static const char *arrived(struct session session, int wait_ms)
{
	struct pollfd pollfd = { .fd = session.reader, .events = POLLIN };
	ssize_t n = 0;

	if (poll(&pollfd, 1, wait_ms) == 1)
		n = read(session.reader, text, sizeof text - 1);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

static bool ends_with(const char *string, const char *end)
{
	const size_t n = strlen(string), n_end = strlen(end);

	return n >= n_end && strcmp(string + n - n_end, end) == 0;
}

/* Wait until what has been written ends so. A terminal passes it on later, and in parts. */
static void arrived_up_to(struct session session, const char *end)
{
	char all[sizeof text] = "";

	while (!ends_with(all, end) && *arrived(session, GIVE_UP_MS))
		strncat(all, text, sizeof all - strlen(all) - 1);
	strcpy(text, all);
}

/* Stop reporting; what that wrote is what arrives. */
static const char *last_output(struct session session)
{
	progress_display_close(session.progress);
	return arrived(session, 0);
}

static void stop(struct session session)
{
	dup2(session.real_stderr, STDERR_FILENO);
	close(session.real_stderr);
	close(session.reader);
	close(session.writer);
}

TEST(sigusr1_prints_the_line_once)
{
	const struct session session = start_with_pipe(PROGRESS_NEVER);

	kill(getpid(), SIGUSR1);
	arrived(session, GIVE_UP_MS);
	assert_non_null(strstr(text, "run generation: 42 %"));
	assert_string_equal(strchr(text, '\n'), "\n");
	assert_string_equal(arrived(session, 50), "");
	assert_string_equal(last_output(session), "");
	stop(session);
}

TEST(sigusr1_leaves_its_line_on_a_terminal)
{
	const struct session session = start_with_terminal(PROGRESS_NEVER);

	kill(getpid(), SIGUSR1);
	arrived_up_to(session, "\n");
	assert_non_null(strstr(text, "run generation: 42 %"));
	assert_true(ends_with(text, "\n"));
	assert_string_equal(last_output(session), "");
	stop(session);
}

/* It ended the process, where a library had started a thread before. */
TEST(sigusr1_before_the_first_thread_is_kept)
{
	struct session session;
	sigset_t usr1;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
	progress_display_block_signal();
	kill(getpid(), SIGUSR1);
	session = start_with_pipe(PROGRESS_NEVER);
	assert_non_null(strstr(arrived(session, GIVE_UP_MS), "run generation: 42 %"));
	last_output(session);
	stop(session);
}

/* A line each second while the last pages went to the disk, and the same once more at the end. */
TEST(completion_line_is_printed_once)
{
	struct session session;

	while (sem_trywait(&queried) == 0)
		;
	atomic_store(&percent, 100);
	session = start_with_pipe(PROGRESS_ALWAYS);
	assert_int_equal(sem_wait(&queried), 0);
	assert_non_null(strstr(last_output(session), "run generation: 100 %"));
	assert_string_equal(strchr(text, '\n'), "\n");
	stop(session);
	atomic_store(&percent, 42);
}

TEST(line_on_a_terminal_appears_after_a_second_and_is_removed_at_the_end)
{
	const uint64_t begin_ns = clock_now_ns();
	const struct session session = start_with_terminal(PROGRESS_AUTO);

	arrived_up_to(session, "\033[K");
	assert_true(clock_now_ns() - begin_ns >= SECOND_NS);
	assert_int_equal(text[0], '\r');
	assert_non_null(strstr(text, "run generation: 42 %"));
	assert_null(strchr(text, '\n'));
	progress_display_close(session.progress);
	arrived_up_to(session, "\r\033[K");
	assert_true(ends_with(text, "\r\033[K"));
	stop(session);
}

static int prepare(void **state)
{
	(void)state;
	sem_init(&queried, 0, 0);
	return 0;
}

GROUP_FIXTURE(prepare, NULL)
