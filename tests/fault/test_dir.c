/*
 * test_dir.c - run gsort in a directory with inputs, and check each run (see test_dir.h)
 */
#include "tests/fault/test_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/gsort.h"
#include "tests/fault/saved_checkpoint.h"
#include "tests/fault/part_files_check.h"
#include "tests/fault/pipe_threads.h"
#include "tests/support/captured_messages.h"

int gsort_main(int argc, char **argv);

enum {
	MAX_GSORT_ARGUMENTS = 32,
	RUN_TIMEOUT_S = 60,      /* a thousand times the usual duration */
	INTERRUPT_AT_WRITE = 14, /* of about 24 writes of the output */
};

static struct {
	char path[256];
	struct test_environment environment;
	struct saved_checkpoint checkpoints[N_RESUME_STATES]; /* made by the first use */
	int saved_stdout, saved_stderr;                       /* of the test itself */
	unsigned n_passed[N_POINTS];                          /* by the last trial's first run */
	struct call_site sites[MAX_CALL_SITES];
	size_t n_sites;
	unsigned n_resumed;
} test_dir;

/* The description of the run, for signal handlers. */
static char current_run[512];

/* Redirect the descriptor to the file. */
static void redirect(int descriptor, const char *path, int flags)
{
	const int fd = open(path, flags | O_CLOEXEC);

	require(fd >= 0 && dup2(fd, descriptor) == descriptor && close(fd) == 0, path);
}

/* --- Crashes and timeouts --- */

static void print_current_run(int signal_number)
{
	static const char notice[] = "\nkilled by a signal, or timed out: ";

	if (write(test_dir.saved_stderr, notice, sizeof notice - 1) < 0 ||
	    write(test_dir.saved_stderr, current_run, strlen(current_run)) < 0 ||
	    write(test_dir.saved_stderr, "\n", 1) < 0)
		_exit(98);
	signal(signal_number == SIGALRM ? SIGABRT : signal_number, SIG_DFL);
	raise(signal_number == SIGALRM ? SIGABRT : signal_number);
}

/* Functions of the sanitizers, which report a crash but not the run. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));
void __sanitizer_set_report_fd(void *fd) __attribute__((weak));

static void print_current_run_on_death(void)
{
	dprintf(test_dir.saved_stderr, "during: %s\n", current_run);
}

/* --- Open, close --- */

/* Return the parent directory. On a disk, syncing would take ten times as long as in memory. */
static const char *find_parent(void)
{
	const char *tmpdir = getenv("TMPDIR");

	return tmpdir && *tmpdir                    ? tmpdir :
	       access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" :
						      "/tmp";
}

void test_dir_open(void)
{

	test_dir.saved_stdout = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 100);
	test_dir.saved_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
	test_error_fd = test_dir.saved_stderr;
	snprintf(test_dir.path, sizeof test_dir.path, "%s/gsort-test-XXXXXX", find_parent());
	require(mkdtemp(test_dir.path) && chdir(test_dir.path) == 0, test_dir.path);
	require(mkdir("tmp", 0777) == 0 && mkdir("tmp/a", 0777) == 0 && mkdir("tmp/b", 0777) == 0 &&
			mkdir("reports", 0777) == 0,
		"mkdir");
	fault_points_set_temp_prefix("tmp/");
	memset(test_dir.environment.old_output, 'o', sizeof test_dir.environment.old_output);
	expected_outputs_create(&test_dir.environment.expected);
	write_file("stdout", "", 0);
	write_file("stderr", "", 0);
	signal(SIGALRM, print_current_run);
	signal(SIGABRT, print_current_run);
	if (__sanitizer_set_death_callback) {
		__sanitizer_set_death_callback(print_current_run_on_death);
		__sanitizer_set_report_fd((void *)(intptr_t)test_dir.saved_stderr);
	} else {
		signal(SIGSEGV, print_current_run);
	}
	redirect(STDIN_FILENO, "/dev/null", O_RDONLY);
	test_dir.environment.n_fds = count_fds();
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	(void)status, (void)type, (void)walk;
	return remove(path);
}

void test_dir_close(void)
{
	require(chdir("/") == 0, "/");
	nftw(test_dir.path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	expected_outputs_free(&test_dir.environment.expected);
	for (int i = 0; i < N_RESUME_STATES; i++)
		saved_checkpoint_free(&test_dir.checkpoints[i]);
}

/* --- A run --- */

/* Capture messages instead of printing them. */
void __wrap_cli_message(enum gsort_severity kind, const char *text);
void __wrap_cli_message(enum gsort_severity kind, const char *text)
{
	captured_messages_add(kind == GSORT_ERROR   ? MESSAGE_ERROR :
			      kind == GSORT_WARNING ? MESSAGE_WARNING :
						      MESSAGE_NOTICE,
			      text);
}

int __wrap_cli_error(int r, const char *format, ...);
int __wrap_cli_error(int r, const char *format, ...)
{
	char text[1024];
	va_list args;

	errno = -r;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	captured_messages_add(MESSAGE_ERROR, text);
	return r;
}

static int call_main(const struct fault_run *fault_run)
{
	char text[512], *argv[MAX_GSORT_ARGUMENTS + 2] = { "gsort" }, *position = NULL;
	int argc = 1, status;

	strcpy(text, fault_run->scenario->arguments);
	for (char *word = strtok_r(text, " ", &position); word && argc <= MAX_GSORT_ARGUMENTS;
	     word = strtok_r(NULL, " ", &position))
		argv[argc++] = word;
	fault_points_set_device(fault_run->scenario->device_kind);
	fault_points_set_page_cache(fault_run->scenario->has_cold_cache,
				    fault_run->scenario->may_bypass_cache);
	captured_messages_reset(true);
	alarm(RUN_TIMEOUT_S);
	fault_points_arm(fault_run->fault);
	status = gsort_main(argc, argv);
	fault_points_disarm();
	alarm(0);
	return status;
}

static void run_gsort(const struct fault_run *fault_run, struct fault_run_result *result)
{
	const struct expected_output_set *expected = &test_dir.environment.expected;
	const struct byte_buffer input = fault_run->scenario->input_is_npy ? expected->npy :
									     expected->input;
	const size_t output_nbytes = expected->outputs[fault_run->scenario->expected_output].nbytes;
	const size_t max_output_nbytes = input.nbytes > output_nbytes ? input.nbytes :
									output_nbytes;
	struct pipe_thread feeder, drainer;
	sigset_t pipe_signal, before;

	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
	redirect(STDOUT_FILENO, "stdout", O_WRONLY | O_TRUNC);
	redirect(STDERR_FILENO, "stderr", O_WRONLY | O_TRUNC);
	if (fault_run->scenario->from_pipe)
		pipe_thread_feed_stdin(&feeder, input);
	if (fault_run->scenario->to_pipe)
		pipe_thread_drain_stdout(&drainer, max_output_nbytes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);

	result->status = call_main(fault_run);
	result->balance = fault_points_get_balance();

	dup2(test_dir.saved_stdout, STDOUT_FILENO);
	dup2(test_dir.saved_stderr, STDERR_FILENO);
	redirect(STDIN_FILENO, "/dev/null", O_RDONLY);
	result->piped_output = (struct byte_buffer){ 0 };
	if (fault_run->scenario->from_pipe)
		pipe_thread_join(&feeder);
	if (fault_run->scenario->to_pipe) {
		pipe_thread_join(&drainer);
		result->piped_output = drainer.bytes;
	}
}

static void write_old_output(const struct sort_scenario *scenario)
{
	if (scenario->has_part_files)
		test_part_files_write_old();
	write_file("output", test_dir.environment.old_output,
		   sizeof test_dir.environment.old_output);
}

static enum run_outcome run_and_check(const struct fault_run *fault_run)
{
	struct fault_run_result result;
	enum run_outcome outcome;

	snprintf(current_run, sizeof current_run, "%s: %s", fault_run->scenario->name,
		 fault_run->description);
	run_gsort(fault_run, &result);
	outcome = fault_run_check(fault_run, &result, &test_dir.environment);
	free(result.piped_output.data);
	return outcome;
}

/* --- Checkpoints --- */

/* Return whether the fault damages stored data, other than a failing call. */
static bool corrupts_data(const struct fault *fault)
{
	return fault && fault->effect >= EFFECT_LOSE_WRITE;
}

/* Run the same command again, without a fault. */
static enum run_outcome resume_sort(const struct fault_run *first_run)
{
	char text[256];
	const struct fault_run resumed_run = { .scenario = first_run->scenario,
					       .expected_outcome = corrupts_data(first_run->fault) ?
									   EXPECT_EITHER :
									   EXPECT_SUCCESS,
					       .description = text };

	snprintf(text, sizeof text, "%s; resumed", first_run->description);
	test_dir.n_resumed += saved_checkpoint_is_resumable();
	return run_and_check(&resumed_run);
}

/* Interrupt the scenario's sort where it is to be resumed, and keep its checkpoint. */
static void make_checkpoint(const struct sort_scenario *scenario)
{
	struct sort_scenario fresh_scenario = *scenario;
	struct fault_run fault_run = { .scenario = &fresh_scenario,
				       .expected_outcome = EXPECT_SUCCESS,
				       .description = "no fault" };
	struct fault fault = { .point = POINT_WRITE,
			       .nth = 1,
			       .n_times = FAULT_FOREVER,
			       .effect = EFFECT_FAIL,
			       .error = EIO };

	fresh_scenario.resume_from = RESUME_NOTHING;
	require(run_and_check(&fault_run) == OUTCOME_SUCCEEDED, scenario->name);
	if (scenario->resume_from == RESUME_MERGE)
		fault.nth = fault_points_n_passed(POINT_WRITE) * 3 / 4;
	fault_run.fault = &fault;
	fault_run.expected_outcome = EXPECT_FAILURE;
	write_old_output(scenario);
	require(run_and_check(&fault_run) == OUTCOME_REFUSED && saved_checkpoint_is_resumable(),
		scenario->name);
	saved_checkpoint_read(&test_dir.checkpoints[scenario->resume_from]);
	saved_checkpoint_remove();
}

static void restore_checkpoint(const struct sort_scenario *scenario)
{
	const struct saved_checkpoint *checkpoint = &test_dir.checkpoints[scenario->resume_from];

	if (!checkpoint->manifest.data)
		make_checkpoint(scenario);
	saved_checkpoint_write(checkpoint);
}

enum run_outcome test_dir_run(const struct fault_run *fault_run)
{
	const struct byte_buffer input = test_dir.environment.expected.input;
	const struct sort_scenario *scenario = fault_run->scenario;
	enum run_outcome outcome;

	expected_outputs_make(&test_dir.environment.expected, scenario->expected_output);
	write_old_output(scenario);
	if (scenario->resume_from)
		restore_checkpoint(scenario);
	fault_points_interrupt_at(scenario->is_interrupted ? INTERRUPT_AT_WRITE : 0);
	outcome = run_and_check(fault_run);
	fault_points_interrupt_at(0);
	for (int point = 0; point < N_POINTS; point++)
		test_dir.n_passed[point] = fault_points_n_passed(point);
	test_dir.n_sites = fault_points_get_sites(test_dir.sites);
	if (scenario->in_place)
		write_file("input", input.data, input.nbytes);
	if (scenario->has_part_files)
		write_old_output(scenario); /* also removes what the run has left */
	if (scenario->has_checkpoint && outcome != OUTCOME_WRONG &&
	    (outcome == OUTCOME_REFUSED || saved_checkpoint_dir_exists()) &&
	    resume_sort(fault_run) == OUTCOME_WRONG)
		outcome = OUTCOME_WRONG;
	if (scenario->has_part_files)
		test_part_files_remove();
	if (scenario->has_checkpoint)
		saved_checkpoint_remove();
	/* A lost descriptor is reported once. */
	test_dir.environment.n_fds = count_fds();
	return outcome;
}

unsigned test_dir_n_passed(enum fault_point point)
{
	return test_dir.n_passed[point];
}

size_t test_dir_get_sites(struct call_site ret_sites[static MAX_CALL_SITES])
{
	memcpy(ret_sites, test_dir.sites, test_dir.n_sites * sizeof *ret_sites);
	return test_dir.n_sites;
}

unsigned test_dir_n_resumed(void)
{
	return test_dir.n_resumed;
}
