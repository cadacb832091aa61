/*
 * test_fatal_signals.c - a signal ends the process and leaves no unfinished file
 */
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "src/cli/process_setup.h"
#include "tests/support/output_fixture.h"
#include "tests/support/unit_test.h"

enum { SURVIVED = 99 };

/* The signals that end a process by default and can be caught, by number. */
static const int fatal[] = { SIGHUP,    SIGINT,  SIGQUIT, SIGILL,    SIGTRAP, SIGABRT, SIGBUS,
			     SIGFPE,    SIGUSR1, SIGSEGV, SIGUSR2,   SIGPIPE, SIGALRM, SIGTERM,
			     SIGSTKFLT, SIGXCPU, SIGIO,   SIGVTALRM, SIGPROF, SIGPWR,  SIGSYS };

static int ignored_signal; /* a signal whose action is kept; 0: none */

/* Open an output with a temporary name, and raise a signal. */
static void run_until_killed_by(int signal_number)
{
	const struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++)
		if (fatal[i] != ignored_signal)
			signal(fatal[i], SIG_DFL); /* cmocka has handlers */
	fatal_signals_install();
	faults.rejects_tmpfile = true;
	open_output(fixture_path("f"), N);
	if (count_directory_entries() > 0)
		raise(signal_number);
	_exit(SURVIVED);
}

/* The exit status of a child that raises the signal. */
static int status_after(int signal_number)
{
	const pid_t child = fork();
	int status = -1;

	assert_true(child >= 0);
	if (child == 0)
		run_until_killed_by(signal_number);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void assert_dies_clean(int signal_number)
{
	const int status = status_after(signal_number);

	if (!WIFSIGNALED(status) || WTERMSIG(status) != signal_number ||
	    count_directory_entries() > 0)
		fail_msg("signal %d: status %#x, %u names left", signal_number, (unsigned)status,
			 count_directory_entries());
}

DIRECTORY_TEST(every_fatal_signal_leaves_no_file)
{
	for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++)
		assert_dies_clean(fatal[i]);
	assert_dies_clean(SIGRTMIN);
	assert_dies_clean(SIGRTMAX);
}

DIRECTORY_TEST(nonfatal_signals_stay_nonfatal)
{
	static const int harmless[] = { SIGCONT, SIGCHLD, SIGURG, SIGWINCH, SIGXFSZ };

	for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++) {
		const int status = status_after(harmless[i]);

		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), SURVIVED);
	}
}

DIRECTORY_TEST(ignored_signal_stays_ignored)
{
	int status;

	signal(SIGHUP, SIG_IGN);
	ignored_signal = SIGHUP;
	status = status_after(SIGHUP);
	ignored_signal = 0;
	signal(SIGHUP, SIG_DFL);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), SURVIVED);
}

static int raise_and_rename(int from, const char *name, int to, const char *as)
{
	raise(SIGTERM);
	return renameat(from, name, to, as);
}

/* The exit status of a child that commits an output and then calls after(). */
static int status_of_commit(int (*rename_it)(int, const char *, int, const char *),
			    void (*after)(void))
{
	struct syscalls calls = faulty_calls;
	struct output *output;
	int status = -1;
	pid_t child;

	calls.renameat = rename_it;
	write_file(fixture_path("f"), "older", 5);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++)
			signal(fatal[i], SIG_DFL);
		fatal_signals_install();
		if (output_open(&calls, fixture_path("f"), N, &output) == 0 &&
		    output_write_at(output, 0, output_bytes, N) == 0 &&
		    output_commit(output, OUTPUT_UNSYNCED) == 0)
			after();
		fatal_signals_raise_pending();
		_exit(SURVIVED);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(count_directory_entries(), 1);
	return status;
}

static void raise_some(void)
{
	raise(SIGTERM);
	raise(SIGHUP);
	raise(SIGPIPE);
}

static void raise_while_reporting(void)
{
	process_set_output_committed(process_get());
	raise(SIGPIPE);
	freopen("/dev/null", "w", stderr);
	raise(SIGINT);
}

static void raise_a_fault(void)
{
	const struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	raise(SIGSEGV);
}

/* Otherwise users would believe that the output is unchanged. */
DIRECTORY_TEST(signal_after_rename_is_not_a_kill)
{
	int status = status_of_commit(raise_and_rename, raise_some);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), SURVIVED);
	assert_true(file_contains(fixture_path("f"), output_bytes, N));
	status = status_of_commit(renameat, raise_while_reporting);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 2);
	status = status_of_commit(renameat, raise_a_fault);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
}

/* In a new process namespace the first child is process 1. */
static void run_as_process_1(int signal_number)
{
	int status;

	if (unshare(CLONE_NEWPID) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
		_exit(77);
	status = status_after(signal_number);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

DIRECTORY_TEST(first_process_of_a_container_ends_with_128_and_the_signal)
{
	static const int some[] = { SIGTERM, SIGINT, SIGQUIT };

	for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
		const pid_t child = fork();
		int status = -1;

		assert_true(child >= 0);
		if (child == 0)
			run_as_process_1(some[i]);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		if (WEXITSTATUS(status) == 77)
			skip();
		assert_int_equal(WEXITSTATUS(status), 128 + some[i]);
		assert_int_equal(count_directory_entries(), 0);
	}
}

enum { GROWN_NBYTES = 32 << 20, GROWN_WRITE_NBYTES = 64 << 10 };

/* Open an output behind existing bytes, like `(echo; gsort) > file`. */
static struct output *open_append_output(uint64_t nbytes)
{
	const int fd = open(fixture_path("f"), O_WRONLY);
	const struct endpoint given = { .kind = ENDPOINT_DESCRIPTOR, .fd = fd };
	struct output *output;

	assert_true(lseek(fd, 0, SEEK_END) == 5);
	assert_int_equal(output_open_endpoint(&faulty_calls, "f", given, nbytes, &output), 0);
	return output;
}

static atomic_uint n_grown;

static void *grow(void *argument)
{
	static const unsigned char piece[GROWN_WRITE_NBYTES];
	struct output_writer *w = argument;

	for (uint64_t at = w->first * GROWN_WRITE_NBYTES; at < GROWN_NBYTES;
	     at += w->stride * GROWN_WRITE_NBYTES) {
		if (output_write_at(w->output, at, piece, GROWN_WRITE_NBYTES) < 0)
			break;
		atomic_fetch_add(&n_grown, 1);
	}
	pause();
	return NULL;
}

/* Raise the signal while other threads write. */
static void run_until_killed_during_growth(int signal_number)
{
	struct output_writer writers[3];

	for (unsigned i = 0; i < 3; i++) {
		writers[i] = (struct output_writer){ .first = i, .stride = 3 };
		writers[i].output = i ? writers[0].output : open_append_output(GROWN_NBYTES);
		thread_start(grow, &writers[i], 0, &writers[i].thread);
	}
	while (atomic_load(&n_grown) < 9)
		sched_yield();
	raise(signal_number);
}

/* The file is not truncated, because another process has appended to it. */
static void run_until_killed_after_foreign_append(int signal_number)
{
	struct output *output = open_append_output(N);
	const int fd = open(fixture_path("f"), O_WRONLY | O_APPEND);

	output_write_at(output, 0, output_bytes, N);
	if (write(fd, "more", 4) == 4)
		raise(signal_number);
}

static off_t nbytes_after(void (*be_killed)(int), int signal_number)
{
	struct stat status;
	int how = -1;
	pid_t child;

	write_file(fixture_path("f"), "older", 5);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		signal(signal_number, SIG_DFL);
		signal(SIGSEGV, SIG_DFL); /* cmocka has a handler of its own */
		fatal_signals_install();
		be_killed(signal_number);
		_exit(SURVIVED);
	}
	assert_int_equal(waitpid(child, &how, 0), child);
	assert_true(WIFSIGNALED(how) && WTERMSIG(how) == signal_number);
	assert_int_equal(stat(fixture_path("f"), &status), 0);
	return status.st_size;
}

DIRECTORY_TEST(signal_truncates_appended_file)
{
	static const int some[] = { SIGTERM, SIGHUP, SIGINT, SIGTERM, SIGTERM, SIGTERM };

	for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
		assert_int_equal(nbytes_after(run_until_killed_during_growth, some[i]), 5);
	assert_int_equal(nbytes_after(run_until_killed_after_foreign_append, SIGTERM), 5 + N + 4);
}

static void (*before_truncate)(void); /* called once in the handler; or NULL */

/* Replaces the C library's, so that something can happen during the truncation. */
int ftruncate(int fd, off_t nbytes)
{
	void (*const act)(void) = before_truncate;

	before_truncate = NULL;
	if (act)
		act();
	return (int)syscall(SYS_ftruncate, fd, nbytes);
}

static void raise_more(void)
{
	raise(SIGTERM);
	raise(SIGINT);
}

static atomic_int faulty_thread; /* the number of the thread that will block; 0: not started */

static void *have_a_fault(void *argument)
{
	atomic_store(&faulty_thread, gettid());
	raise(SIGSEGV);
	return argument;
}

/* Does the thread sleep? */
static bool sleeps(int thread)
{
	char path[64], state = '?';
	FILE *file;

	snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
	file = fopen(path, "r");
	if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	if (file)
		fclose(file);
	return state == 'S';
}

/* Like a thread that reads a mapping of a truncated file. */
static void fault_elsewhere(void)
{
	pthread_t thread;

	thread_start(have_a_fault, NULL, 0, &thread);
	while (!atomic_load(&faulty_thread) || !sleeps(atomic_load(&faulty_thread)))
		sched_yield();
}

static void run_until_killed_after_growth(int signal_number)
{
	struct output *output = open_append_output(N);

	output_write_at(output, 0, output_bytes, N);
	raise(signal_number);
}

/* timeout(1) signals the command and then its process group. */
DIRECTORY_TEST(later_signals_wait_for_truncation)
{
	static void (*const all[])(void) = { raise_more, fault_elsewhere };

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		before_truncate = all[i];
		assert_int_equal(nbytes_after(run_until_killed_after_growth, SIGTERM), 5);
	}
	before_truncate = raise_a_fault; /* in the handling thread, which cannot continue */
	assert_int_equal(nbytes_after(run_until_killed_after_growth, SIGSEGV), 5 + N);
	before_truncate = NULL;
}

static atomic_bool may_begin, has_begun;

/* A thread that opens another output while the process is ending. */
static void *begin_another(void *argument)
{
	while (!atomic_load(&may_begin))
		sched_yield();
	atomic_store(&faulty_thread, gettid());
	open_output(fixture_path("g"), N);
	atomic_store(&has_begun, true);
	return argument;
}

/* Called when all names are removed. */
static void let_another_begin(void)
{
	atomic_store(&may_begin, true);
	while (!atomic_load(&has_begun) &&
	       (!atomic_load(&faulty_thread) || !sleeps(atomic_load(&faulty_thread))))
		sched_yield();
}

static void run_until_killed_at_next_open(int signal_number)
{
	struct output *output = open_append_output(N);
	pthread_t thread;

	output_write_at(output, 0, output_bytes, N);
	faults.rejects_tmpfile = true;
	thread_start(begin_another, NULL, 0, &thread);
	before_truncate = let_another_begin;
	raise(signal_number);
}

DIRECTORY_TEST(no_file_opens_after_names_are_removed)
{
	assert_int_equal(nbytes_after(run_until_killed_at_next_open, SIGTERM), 5);
	assert_int_equal(count_directory_entries(), 1);
}
