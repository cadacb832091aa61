/*
 * test_dir - a directory with inputs, and whole runs of gsort in it, judged (see test_dir.h)
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
#include "tests/fault/checkpoint_state.h"
#include "tests/fault/part_files_check.h"
#include "tests/fault/pipe_threads.h"
#include "tests/support/captured_messages.h"

int gsort_main(int argc, char **argv);

enum {
	MOST_ARGUMENTS = 32,
	SECONDS_A_RUN = 60, /* a thousand times what it takes */
	BROKEN_OFF_AT = 14, /* of some 24 writes of the output */
};

static struct {
	char directory[256];
	struct surroundings around;
	struct kept kept[N_TAKEN_UP]; /* made when they are wanted */
	int out, err;                 /* what standard output and error were before */
	unsigned n_passed[N_POINTS];  /* by the last trial's first run */
	struct site sites[MOST_SITES];
	size_t n_sites;
	unsigned n_resumed;
} scene;

/* What is happening, for the handlers of signals. */
static char now[512];

/* Let the descriptor lead to the file. */
static void redirect(int descriptor, const char *path, int flags)
{
	const int fd = open(path, flags | O_CLOEXEC);

	must(fd >= 0 && dup2(fd, descriptor) == descriptor && close(fd) == 0, path);
}

/* --- What goes wrong with the trial itself --- */

static void say_now(int signal_number)
{
	static const char what[] = "\nended by a signal, or not in time: ";

	if (write(scene.err, what, sizeof what - 1) < 0 || write(scene.err, now, strlen(now)) < 0 ||
	    write(scene.err, "\n", 1) < 0)
		_exit(98);
	signal(signal_number == SIGALRM ? SIGABRT : signal_number, SIG_DFL);
	raise(signal_number == SIGALRM ? SIGABRT : signal_number);
}

/* Where the sanitizers are, they tell of a death, not of the trial. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));
void __sanitizer_set_report_fd(void *fd) __attribute__((weak));

static void say_now_on_death(void)
{
	dprintf(scene.err, "during: %s\n", now);
}

/* --- Open, close --- */

/* What is synced to a disk takes ten times as long as in memory, and fails no better. */
static const char *find_parent(void)
{
	const char *tmpdir = getenv("TMPDIR");

	return tmpdir && *tmpdir                    ? tmpdir :
	       access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" :
						      "/tmp";
}

void scene_open(void)
{

	scene.out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 100);
	scene.err = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
	contents_complaints = scene.err;
	snprintf(scene.directory, sizeof scene.directory, "%s/gsort-test-XXXXXX", find_parent());
	must(mkdtemp(scene.directory) && chdir(scene.directory) == 0, scene.directory);
	must(mkdir("tmp", 0777) == 0 && mkdir("tmp/a", 0777) == 0 && mkdir("tmp/b", 0777) == 0 &&
		     mkdir("reports", 0777) == 0,
	     "mkdir");
	points_set_temporary("tmp/");
	memset(scene.around.older, 'o', sizeof scene.around.older);
	answers_make(&scene.around.answers);
	write_file("stdout", "", 0);
	write_file("stderr", "", 0);
	signal(SIGALRM, say_now);
	signal(SIGABRT, say_now);
	if (__sanitizer_set_death_callback) {
		__sanitizer_set_death_callback(say_now_on_death);
		__sanitizer_set_report_fd((void *)(intptr_t)scene.err);
	} else {
		signal(SIGSEGV, say_now);
	}
	redirect(STDIN_FILENO, "/dev/null", O_RDONLY);
	scene.around.n_fds = count_fds();
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	(void)status, (void)type, (void)walk;
	return remove(path);
}

void scene_close(void)
{
	must(chdir("/") == 0, "/");
	nftw(scene.directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	answers_free(&scene.around.answers);
	for (int i = 0; i < N_TAKEN_UP; i++)
		kept_free(&scene.kept[i]);
}

/* --- A run --- */

/* Instead of being printed it is kept, for the judge. */
void __wrap_say(enum gsort_severity kind, const char *text);
void __wrap_say(enum gsort_severity kind, const char *text)
{
	messages_keep(kind == GSORT_ERROR   ? MESSAGE_FAILURE :
		      kind == GSORT_WARNING ? MESSAGE_WARNING :
					      MESSAGE_NOTE,
		      text);
}

int __wrap_complain(int r, const char *format, ...);
int __wrap_complain(int r, const char *format, ...)
{
	char text[1024];
	va_list args;

	errno = -r;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	messages_keep(MESSAGE_FAILURE, text);
	return r;
}

static int call_main(const struct trial *trial)
{
	char text[512], *argv[MOST_ARGUMENTS + 2] = { "gsort" }, *position = NULL;
	int argc = 1, status;

	strcpy(text, trial->mode->arguments);
	for (char *word = strtok_r(text, " ", &position); word && argc <= MOST_ARGUMENTS;
	     word = strtok_r(NULL, " ", &position))
		argv[argc++] = word;
	points_set_device(trial->mode->shape);
	points_set_page_cache(trial->mode->is_cold, trial->mode->goes_either_way);
	messages_reset(true);
	alarm(SECONDS_A_RUN);
	points_arm(trial->fault);
	status = gsort_main(argc, argv);
	points_disarm();
	alarm(0);
	return status;
}

static void run(const struct trial *trial, struct result *result)
{
	const struct answers *answers = &scene.around.answers;
	const struct bytes input = trial->mode->is_array ? answers->array : answers->input;
	struct pump feeder, drainer;
	sigset_t pipe_signal, before;

	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
	redirect(STDOUT_FILENO, "stdout", O_WRONLY | O_TRUNC);
	redirect(STDERR_FILENO, "stderr", O_WRONLY | O_TRUNC);
	if (trial->mode->from_pipe)
		pump_feed(&feeder, input);
	if (trial->mode->to_pipe)
		pump_drain(&drainer, input.nbytes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);

	result->status = call_main(trial);
	result->balance = points_balance();

	dup2(scene.out, STDOUT_FILENO);
	dup2(scene.err, STDERR_FILENO);
	redirect(STDIN_FILENO, "/dev/null", O_RDONLY);
	result->streamed = (struct bytes){ 0 };
	if (trial->mode->from_pipe)
		pump_end(&feeder);
	if (trial->mode->to_pipe) {
		pump_end(&drainer);
		result->streamed = drainer.bytes;
	}
}

static void put_older(const struct mode *mode)
{
	if (mode->has_parts)
		parts_put_older();
	write_file("output", scene.around.older, sizeof scene.around.older);
}

static enum outcome run_and_judge(const struct trial *trial)
{
	struct result result;
	enum outcome outcome;

	snprintf(now, sizeof now, "%s: %s", trial->mode->name, trial->text);
	run(trial, &result);
	outcome = trial_judge(trial, &result, &scene.around);
	free(result.streamed.data);
	return outcome;
}

/* --- Checkpoints --- */

/* Was what is stored made wrong, and not only a call refused? */
static bool lies(const struct fault *fault)
{
	return fault && fault->effect >= EFFECT_LOSE;
}

/* The same again, but no fault. */
static enum outcome go_on(const struct trial *first)
{
	char text[256];
	const struct trial again = { .mode = first->mode,
				     .demand = lies(first->fault) ? DEMAND_EITHER : DEMAND_SUCCESS,
				     .text = text };

	snprintf(text, sizeof text, "%s; and again", first->text);
	scene.n_resumed += kept_is_there();
	return run_and_judge(&again);
}

/* Break the mode's sort off, as far as it wants, and keep what it leaves. */
static void leave_checkpoint(const struct mode *mode)
{
	struct mode anew = *mode;
	struct trial trial = { .mode = &anew, .demand = DEMAND_SUCCESS, .text = "no fault" };
	struct fault fault = { .point = POINT_WRITE,
			       .nth = 1,
			       .n_times = FOR_GOOD,
			       .effect = EFFECT_FAIL,
			       .error = EIO };

	anew.taken_up = TAKEN_UP_NOTHING;
	must(run_and_judge(&trial) == OUTCOME_DONE, mode->name);
	if (mode->taken_up == TAKEN_UP_OUTPUT)
		fault.nth = points_passed(POINT_WRITE) * 3 / 4;
	trial.fault = &fault;
	trial.demand = DEMAND_FAILURE;
	put_older(mode);
	must(run_and_judge(&trial) == OUTCOME_REFUSED && kept_is_there(), mode->name);
	kept_read(&scene.kept[mode->taken_up]);
	must(!*scene.kept[mode->taken_up].output_name == mode->has_parts, "a hidden output");
	kept_remove();
}

static void take_up(const struct mode *mode)
{
	const struct kept *kept = &scene.kept[mode->taken_up];

	if (!kept->manifest.data)
		leave_checkpoint(mode);
	kept_write(kept);
}

enum outcome scene_run(const struct trial *trial)
{
	const struct bytes input = scene.around.answers.input;
	const struct mode *mode = trial->mode;
	enum outcome outcome;

	put_older(mode);
	if (mode->taken_up)
		take_up(mode);
	points_break_off_at(mode->is_broken_off ? BROKEN_OFF_AT : 0);
	outcome = run_and_judge(trial);
	points_break_off_at(0);
	for (int point = 0; point < N_POINTS; point++)
		scene.n_passed[point] = points_passed(point);
	scene.n_sites = points_sites(scene.sites);
	if (mode->in_place)
		write_file("input", input.data, input.nbytes);
	if (mode->has_parts)
		put_older(mode); /* and nothing of what was half moved aside */
	if (mode->has_checkpoint && outcome != OUTCOME_BROKEN &&
	    (outcome == OUTCOME_REFUSED || kept_anything()) && go_on(trial) == OUTCOME_BROKEN)
		outcome = OUTCOME_BROKEN;
	if (mode->has_parts)
		parts_remove();
	if (mode->has_checkpoint)
		kept_remove();
	/* One complaint is enough. */
	scene.around.n_fds = count_fds();
	return outcome;
}

unsigned scene_n_passed(enum point point)
{
	return scene.n_passed[point];
}

size_t scene_sites(struct site ret_sites[static MOST_SITES])
{
	memcpy(ret_sites, scene.sites, scene.n_sites * sizeof *ret_sites);
	return scene.n_sites;
}

unsigned scene_n_resumed(void)
{
	return scene.n_resumed;
}
