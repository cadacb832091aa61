/*
 * scene - a directory with inputs, and whole runs of gsort in it, judged (see scene.h)
 */
#include "tests/fault/scene.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "src/status.h"

int gsort_main(int argc, char **argv);

enum {
	N_RECORDS = 200000,
	N_PARTS = 6,
	MOST_ARGUMENTS = 32,
	SECONDS_A_RUN = 60, /* a thousand times what it takes */
};

const struct mode modes[] = {
	{ .name = "memory", .arguments = "-S 64M input -o output" },
	{ .name = "spill", .arguments = "-S 1M -T tmp/a input -o output" },
	{ .name = "passes", .arguments = "-S 1M -T tmp/a -T tmp/b --batch-size=2 input -o output" },
	{ .name = "unique",
	  .answer = ANSWER_UNIQUE,
	  .arguments = "-u -S 1M -T tmp/a input -o output" },
	{ .name = "verify",
	  .arguments = "--verify -S 1M -T tmp/a input -o output",
	  .verifies = true },
	{ .name = "in-place",
	  .arguments = "--verify -S 1M -T tmp/a input -o input",
	  .in_place = true,
	  .verifies = true },
	{ .name = "fsync", .arguments = "--fsync -S 64M input -o output" },
	{ .name = "delta", .arguments = "--compress=delta -S 1M -T tmp/a input -o output" },
	{ .name = "zstd", .arguments = "--compress=zstd -S 1M -T tmp/a input -o output" },
	{ .name = "records",
	  .answer = ANSWER_RECORDS,
	  .arguments = "-R 16 -k 0:b3 --compress=none -S 1M -T tmp/a input -o output" },
	{ .name = "records-limit",
	  .answer = ANSWER_FIRST_RECORDS,
	  .arguments = "-R 16 -k 0:b3 --limit=5000 -S 1M -T tmp/a input -o output" },
	{ .name = "long-keys",
	  .answer = ANSWER_LONG_KEYS,
	  .arguments = "-R 40 -k 3:b30 -S 1M -T tmp/a input -o output" },
	{ .name = "records-apart",
	  .answer = ANSWER_RECORDS,
	  .shape = SHAPE_APART,
	  .arguments = "-R 16 -k 0:b3 -S 1M -T tmp/a input -o output" },
	{ .name = "zst-in", .arguments = "-S 1M -T tmp/a input.zst -o output" },
	{ .name = "zst-out", .arguments = "--zstd -S 1M -T tmp/a input -o output", .is_zst = true },
	{ .name = "pipes", .arguments = "-S 1M -T tmp/a", .from_pipe = true, .to_pipe = true },
	{ .name = "merge",
	  .arguments = "-m -S 1M -T tmp/a part0 part1 part2 part3 part4 part5 -o output" },
	{ .name = "merge-passes",
	  .answer = ANSWER_UNIQUE,
	  .arguments = "-m -u -S 1M -T tmp/a --batch-size=2 part0 part1 part2 part3 part4 part5 "
		       "-o output" },
	{ .name = "check", .arguments = "-c sorted" },
	{ .name = "disorder", .arguments = "-C input", .status = 1 },
	{ .name = "reports",
	  .arguments = "--files0-from=names --stats-json=reports/s --trace=reports/t "
		       "--progress=always -S 1M -T tmp/a -o output",
	  .measures = true },
	{ .name = "explain",
	  .arguments = "--explain --debug -S 1M -T tmp/a input",
	  .measures = true },
	{ .name = "device",
	  .answer = ANSWER_UNIQUE,
	  .arguments = "-u -S 1M -T tmp/a --batch-size=2 input -o output",
	  .shape = SHAPE_UNIFIED },
	{ .name = "device-apart",
	  .arguments = "-S 16M -T tmp/a --device-memory=1M input -o output",
	  .shape = SHAPE_APART },
	{ .name = "device-apart-passes",
	  .answer = ANSWER_UNIQUE,
	  .arguments = "-u -S 1M -T tmp/a --batch-size=2 input -o output",
	  .shape = SHAPE_APART },
	{ .name = "device-apart-merge",
	  .arguments = "-m -S 1M -T tmp/a part0 part1 part2 part3 part4 part5 -o output",
	  .shape = SHAPE_APART },
};
const size_t n_modes = sizeof modes / sizeof *modes;

/* The contents of a file. */
struct bytes {
	void *data;
	size_t nbytes;
};

static struct {
	char directory[256];
	struct bytes input, answers[N_ANSWERS];
	char older[100];
	int out, err;   /* what standard output and error were before */
	unsigned n_fds; /* open between runs */
} scene;

/* What is happening, for the handlers of signals. */
static char now[512];

/* --- Files --- */

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	dprintf(scene.err ? scene.err : STDERR_FILENO, "scene: %s: %s\n", what, strerror(errno));
	_exit(99);
}

static void write_file(const char *path, const void *data, size_t nbytes)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	must(fd >= 0 && write(fd, data, nbytes) == (ssize_t)nbytes && close(fd) == 0, path);
}

/* Let the descriptor lead to the file. */
static void redirect(int descriptor, const char *path, int flags)
{
	const int fd = open(path, flags | O_CLOEXEC);

	must(fd >= 0 && dup2(fd, descriptor) == descriptor && close(fd) == 0, path);
}

/* All of a file; data to be freed, NULL if there is none. */
static struct bytes read_file(const char *path)
{
	const int fd = open(path, O_RDONLY);
	struct bytes bytes = { 0 };
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0)
		return bytes;
	bytes = (struct bytes){ malloc((size_t)status.st_size + 1), (size_t)status.st_size };
	must(bytes.data && read(fd, bytes.data, bytes.nbytes) == (ssize_t)bytes.nbytes, path);
	close(fd);
	return bytes;
}

static bool holds(struct bytes found, const void *data, size_t nbytes)
{
	return found.nbytes == nbytes && found.data && memcmp(found.data, data, nbytes) == 0;
}

static bool file_holds(const char *path, const void *data, size_t nbytes)
{
	const struct bytes found = read_file(path);
	const bool same = holds(found, data, nbytes);

	free(found.data);
	return same;
}

/* The same when the file is compressed. */
static bool zst_holds(const char *path, const void *data, size_t nbytes)
{
	const struct bytes stored = read_file(path);
	struct bytes found = { malloc(nbytes + 1), 0 };
	bool same;

	must(found.data != NULL, "memory");
	found.nbytes = ZSTD_decompress(found.data, nbytes + 1, stored.data, stored.nbytes);
	same = stored.data && !ZSTD_isError(found.nbytes) && holds(found, data, nbytes);
	free(found.data);
	free(stored.data);
	return same;
}

static void write_zst(const char *path, struct bytes bytes)
{
	const size_t capacity = ZSTD_compressBound(bytes.nbytes);
	void *stored = malloc(capacity);
	const size_t nbytes =
		stored ? ZSTD_compress(stored, capacity, bytes.data, bytes.nbytes, 1) : 0;

	must(stored && !ZSTD_isError(nbytes), path);
	write_file(path, stored, nbytes);
	free(stored);
}

/* What makes an answer of the input. */
static const struct arrangement {
	size_t record_nbytes, key_offset, key_nbytes; /* a key of one number, or of bytes */
	bool is_number, unique;
	size_t limit; /* in records */
} arrangements[N_ANSWERS] = {
	[ANSWER_SORTED] = { 8, 0, 8, .is_number = true, .limit = SIZE_MAX },
	[ANSWER_UNIQUE] = { 8, 0, 8, .is_number = true, .unique = true, .limit = SIZE_MAX },
	[ANSWER_RECORDS] = { 16, 0, 3, .limit = SIZE_MAX },
	[ANSWER_FIRST_RECORDS] = { 16, 0, 3, .limit = 5000 },
	[ANSWER_LONG_KEYS] = { 40, 3, 30, .limit = SIZE_MAX },
};

static int compare_keys(const struct arrangement *arrangement, const void *a, const void *b)
{
	const char *x = a, *y = b;
	uint64_t m, n;

	if (!arrangement->is_number)
		return memcmp(x + arrangement->key_offset, y + arrangement->key_offset,
			      arrangement->key_nbytes);
	memcpy(&m, x, sizeof m);
	memcpy(&n, y, sizeof n);
	return (m > n) - (m < n);
}

/* Of pointers into the input; stable. */
static int compare_records(const void *a, const void *b, void *context)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	const int order = compare_keys(context, x, y);

	return order ? order : (x > y) - (x < y);
}

static struct bytes arrange(struct bytes input, const struct arrangement *arrangement)
{
	const size_t record_nbytes = arrangement->record_nbytes;
	const size_t n = input.nbytes / record_nbytes;
	const char **records = malloc(n * sizeof *records);
	struct bytes answer = { malloc(input.nbytes), 0 };
	char *to = answer.data;

	must(records && to, "memory");
	for (size_t i = 0; i < n; i++)
		records[i] = (const char *)input.data + i * record_nbytes;
	qsort_r(records, n, sizeof *records, compare_records, (void *)arrangement);
	for (size_t i = 0; i < n && answer.nbytes / record_nbytes < arrangement->limit; i++) {
		if (arrangement->unique && i > 0 &&
		    compare_keys(arrangement, records[i], records[i - 1]) == 0)
			continue;
		memcpy(to + answer.nbytes, records[i], record_nbytes);
		answer.nbytes += record_nbytes;
	}
	free(records);
	return answer;
}

static void make_inputs(void)
{
	const struct arrangement *plain = &arrangements[ANSWER_SORTED];
	uint64_t *keys = malloc(N_RECORDS * sizeof *keys), x = 1;

	must(keys != NULL, "memory");
	for (size_t i = 0; i < N_RECORDS; i++) {
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
		keys[i] = x >> 46; /* of 18 bits: a third of them have equals */
	}
	scene.input = (struct bytes){ keys, N_RECORDS * sizeof *keys };
	write_file("input", keys, scene.input.nbytes);
	write_zst("input.zst", scene.input);
	for (int i = 0; i < N_ANSWERS; i++)
		scene.answers[i] = arrange(scene.input, &arrangements[i]);
	write_file("sorted", scene.answers[ANSWER_SORTED].data, scene.input.nbytes);
	for (size_t i = 0, begin = 0, end; i < N_PARTS; i++, begin = end) {
		char name[] = "part0";
		struct bytes part;

		name[4] += (char)i;
		end = N_RECORDS * (i + 1) / N_PARTS;
		part = arrange((struct bytes){ keys + begin, (end - begin) * sizeof *keys }, plain);
		write_file(name, part.data, part.nbytes);
		free(part.data);
	}
	write_file("names", "input", sizeof "input");
}

/* Names in a directory, and the first that is not among the `known` (separated by blanks). */
static unsigned count_names(const char *path, const char *known, char unknown[static 256])
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	unsigned n = 0;

	must(directory != NULL, path);
	unknown[0] = '\0';
	while ((entry = readdir(directory))) {
		char word[300];

		n++;
		snprintf(word, sizeof word, " %s ", entry->d_name);
		if (!strstr(known, word))
			strcpy(unknown, entry->d_name);
	}
	closedir(directory);
	return n;
}

static unsigned count_fds(void)
{
	char unknown[256];

	return count_names("/proc/self/fd", "", unknown);
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

void scene_complain(const struct trial *trial, const char *format, ...)
{
	va_list arguments;
	char text[1024];

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	dprintf(scene.err, "BROKEN: %s: %s: %s\n\tmessage: %s\n", trial->mode->name, trial->text,
		text, status_last());
}

/* --- Open, close --- */

void scene_open(void)
{
	const char *tmpdir = getenv("TMPDIR");

	scene.out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 100);
	scene.err = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
	snprintf(scene.directory, sizeof scene.directory, "%s/gsort-test-XXXXXX",
		 tmpdir ? tmpdir : "/tmp");
	must(mkdtemp(scene.directory) && chdir(scene.directory) == 0, scene.directory);
	must(mkdir("tmp", 0777) == 0 && mkdir("tmp/a", 0777) == 0 && mkdir("tmp/b", 0777) == 0 &&
		     mkdir("reports", 0777) == 0,
	     "mkdir");
	points_set_temporary("tmp/");
	memset(scene.older, 'o', sizeof scene.older);
	make_inputs();
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
	scene.n_fds = count_fds();
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
	free(scene.input.data);
	for (int i = 0; i < N_ANSWERS; i++)
		free(scene.answers[i].data);
}

/* --- Pipes --- */

struct pump {
	pthread_t thread;
	int fd;
	struct bytes bytes; /* to write; or read so far, with room for one more */
	size_t capacity;
};

static void *feed(void *argument)
{
	struct pump *pump = argument;
	const char *data = pump->bytes.data;
	ssize_t n;

	points_exempt_thread();
	for (size_t i = 0; i < pump->bytes.nbytes; i += (size_t)n) {
		n = write(pump->fd, data + i, pump->bytes.nbytes - i);
		if (n < 0)
			break; /* it was refused: nobody reads any more */
	}
	close(pump->fd);
	return NULL;
}

static void *drain(void *argument)
{
	struct pump *pump = argument;
	char *data = pump->bytes.data;
	ssize_t n;

	points_exempt_thread();
	while ((n = read(pump->fd, data + pump->bytes.nbytes,
			 pump->capacity - pump->bytes.nbytes)) > 0)
		pump->bytes.nbytes += (size_t)n;
	close(pump->fd);
	return NULL;
}

static void start_feeding(struct pump *pump)
{
	int ends[2];

	must(pipe2(ends, O_CLOEXEC) == 0, "pipe");
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	*pump = (struct pump){ .fd = ends[1], .bytes = scene.input };
	must(pthread_create(&pump->thread, NULL, feed, pump) == 0, "thread");
}

static void start_draining(struct pump *pump)
{
	int ends[2];

	must(pipe2(ends, O_CLOEXEC) == 0, "pipe");
	dup2(ends[1], STDOUT_FILENO);
	close(ends[1]);
	*pump = (struct pump){ .fd = ends[0], .capacity = scene.input.nbytes + 1 };
	pump->bytes.data = malloc(pump->capacity);
	must(pump->bytes.data && pthread_create(&pump->thread, NULL, drain, pump) == 0, "thread");
}

/* --- A run --- */

struct result {
	int status;
	struct bytes streamed; /* what came out of the pipe; data to be freed */
	struct points_balance balance;
};

static int call_main(const struct trial *trial)
{
	char text[512], *argv[MOST_ARGUMENTS + 2] = { "gsort" }, *position = NULL;
	int argc = 1, status;

	strcpy(text, trial->mode->arguments);
	for (char *word = strtok_r(text, " ", &position); word && argc <= MOST_ARGUMENTS;
	     word = strtok_r(NULL, " ", &position))
		argv[argc++] = word;
	status_reset(true);
	points_set_device(trial->mode->shape);
	alarm(SECONDS_A_RUN);
	points_arm(trial->fault);
	status = gsort_main(argc, argv);
	points_disarm();
	alarm(0);
	return status;
}

static void run(const struct trial *trial, struct result *result)
{
	struct pump feeder, drainer;
	sigset_t pipe_signal, before;

	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
	redirect(STDOUT_FILENO, "stdout", O_WRONLY | O_TRUNC);
	redirect(STDERR_FILENO, "stderr", O_WRONLY | O_TRUNC);
	if (trial->mode->from_pipe)
		start_feeding(&feeder);
	if (trial->mode->to_pipe)
		start_draining(&drainer);
	pthread_sigmask(SIG_SETMASK, &before, NULL);

	result->status = call_main(trial);
	result->balance = points_balance();

	dup2(scene.out, STDOUT_FILENO);
	dup2(scene.err, STDERR_FILENO);
	redirect(STDIN_FILENO, "/dev/null", O_RDONLY);
	result->streamed = (struct bytes){ 0 };
	if (trial->mode->from_pipe)
		pthread_join(feeder.thread, NULL);
	if (trial->mode->to_pipe) {
		pthread_join(drainer.thread, NULL);
		result->streamed = drainer.bytes;
	}
}

/* --- Judging it --- */

static bool has_output(const struct mode *mode)
{
	return strstr(mode->arguments, "-o ") != NULL;
}

static bool older_is_intact(const struct mode *mode)
{
	return mode->in_place || file_holds("output", scene.older, sizeof scene.older);
}

static bool is_right(const struct mode *mode, const struct result *result)
{
	const struct bytes right = scene.answers[mode->answer];

	if (mode->to_pipe)
		return holds(result->streamed, right.data, right.nbytes);
	if (mode->is_zst)
		return zst_holds("output", right.data, right.nbytes);
	if (!has_output(mode))
		return older_is_intact(mode);
	return file_holds(mode->in_place ? "input" : "output", right.data, right.nbytes);
}

/*
 * Two things can fail when the output is there already, and say so: its name is not on stable
 * storage, or a report about the sort cannot be written.
 */
static bool failed_late(void)
{
	return strstr(status_last(), "is complete, but") || strstr(status_last(), "reports/");
}

/* What is wrong with a refusal; NULL: nothing. */
static const char *fault_of_refusal(const struct trial *trial, const struct result *result)
{
	const struct mode *mode = trial->mode;

	if (!status_failed() || !*status_last())
		return "no message";
	if (strstr(status_last(), "internal error"))
		return "it blames itself";
	if (trial->reason && !strstr(status_last(), trial->reason))
		return "the message does not say why";
	if (failed_late() && is_right(mode, result))
		return NULL;
	if (!older_is_intact(mode))
		return "the older output has changed";
	if (!file_holds("input", scene.input.data, scene.input.nbytes))
		return "the input has changed";
	return NULL;
}

static const char *fault_of_success(const struct trial *trial, const struct result *result)
{
	const struct mode *mode = trial->mode;

	if (status_failed())
		return "a message, but no failure";
	if (!is_right(mode, result))
		return "wrong bytes";
	if (!mode->in_place && !file_holds("input", scene.input.data, scene.input.nbytes))
		return "the input has changed";
	return NULL;
}

/* What is left that was not there before; "" if nothing. */
static const char *left_over(const struct result *result)
{
	static const char known[] =
		" . .. input input.zst output sorted names stdout stderr tmp reports part0 "
		"part1 part2 part3 part4 part5 ";
	static char unknown[256];
	unsigned n_fds;

	count_names(".", known, unknown);
	if (!*unknown)
		count_names("tmp/a", " . .. ", unknown);
	if (!*unknown)
		count_names("tmp/b", " . .. ", unknown);
	if (*unknown)
		return unknown;
	n_fds = count_fds();
	if (n_fds != scene.n_fds) {
		scene.n_fds = n_fds;
		return "descriptors";
	}
	return result->balance.n_threads  ? "threads" :
	       result->balance.n_mappings ? "mappings" :
	       result->balance.n_device   ? "what a device gave" :
					    "";
}

static const char *fault_of_failing(const struct trial *trial)
{
	return trial->demand == DEMAND_SUCCESS ? "it need not fail" : NULL;
}

/* Threads take turns: this time there may have been no n-th call. */
static const char *fault_of_succeeding(const struct trial *trial)
{
	return trial->demand == DEMAND_FAILURE && points_n_faults() > 0 ?
		       "it cannot have succeeded" :
		       NULL;
}

static enum outcome judge(const struct trial *trial, const struct result *result)
{
	const bool refused = result->status == 2 && trial->mode->status != 2;
	const char *wrong, *left;

	if (!refused && result->status != trial->mode->status) {
		scene_complain(trial, "status %d", result->status);
		return OUTCOME_BROKEN;
	}
	wrong = refused ? fault_of_refusal(trial, result) : fault_of_success(trial, result);
	if (!wrong && !trial->mode->measures)
		wrong = refused ? fault_of_failing(trial) : fault_of_succeeding(trial);
	if (wrong) {
		scene_complain(trial, "status %d: %s", result->status, wrong);
		return OUTCOME_BROKEN;
	}
	left = left_over(result);
	if (*left) {
		scene_complain(trial, "status %d: left behind: %s", result->status, left);
		return OUTCOME_BROKEN;
	}
	return refused ? OUTCOME_REFUSED : OUTCOME_DONE;
}

enum outcome scene_run(const struct trial *trial)
{
	struct result result;
	enum outcome outcome;

	snprintf(now, sizeof now, "%s: %s", trial->mode->name, trial->text);
	write_file("output", scene.older, sizeof scene.older);
	run(trial, &result);
	outcome = judge(trial, &result);
	free(result.streamed.data);
	if (trial->mode->in_place)
		write_file("input", scene.input.data, scene.input.nbytes);
	return outcome;
}
