/*
 * test_library - test libgsort through gsort.h only
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/gsort.h"
#include "tests/support/unit_test.h"

enum { N = 100000, PUT_N_NUMBERS = 1000 };

static char directory[] = "/tmp/test_library.XXXXXX";
static char in_path[64], other_path[64], out_path[64];
static uint64_t numbers[N], sorted[N];

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void write_numbers(const char *path, const uint64_t *values, size_t n)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(values, sizeof *values, n, file), n);
	assert_int_equal(fclose(file), 0);
}

static int start(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(in_path, sizeof in_path, "%s/in", directory);
	snprintf(other_path, sizeof other_path, "%s/other", directory);
	snprintf(out_path, sizeof out_path, "%s/out", directory);
	for (uint64_t i = 0; i < N; i++)
		numbers[i] = sorted[i] = i * UINT64_C(0x9e3779b97f4a7c15);
	qsort(sorted, N, sizeof *sorted, compare);
	write_numbers(in_path, numbers, N);
	return 0;
}

static int finish(void **state)
{
	(void)state;
	unlink(in_path);
	unlink(other_path);
	unlink(out_path);
	rmdir(directory);
	strcpy(directory + strlen(directory) - 6, "XXXXXX");
	return 0;
}

/* --- shared functions --- */

static void good(struct gsort *sort, int r)
{
	if (r < 0)
		fail_msg("%d: %s", r, gsort_message(sort));
}

static void refused(struct gsort *sort, int r, int why, const char *part)
{
	assert_int_equal(r, why);
	if (!strstr(gsort_message(sort), part))
		fail_msg("'%s' has no '%s'", gsort_message(sort), part);
}

/* Open a sort of u64 that spills 2 MiB of numbers. */
static struct gsort *open_sort(void)
{
	struct gsort *sort;

	assert_int_equal(gsort_open(&sort), 0);
	good(sort, gsort_set_type(sort, "u64"));
	good(sort, gsort_set_memory(sort, 1 << 20));
	good(sort, gsort_set_threads(sort, 2));
	good(sort, gsort_add_temporary_directory(sort, directory));
	return sort;
}

/* Open a sort from in_path to out_path. */
static struct gsort *open_sort_of_file(void)
{
	struct gsort *sort = open_sort();

	good(sort, gsort_add_input_path(sort, in_path));
	good(sort, gsort_set_output_path(sort, out_path));
	return sort;
}

static void put_all(struct gsort *sort, const uint64_t *from, size_t n)
{
	for (size_t i = 0; i < n; i += PUT_N_NUMBERS)
		good(sort, gsort_put(sort, from + i,
				     8 * (n - i < PUT_N_NUMBERS ? n - i : (size_t)PUT_N_NUMBERS)));
}

/* Read the whole output, in pieces that end within records. */
static size_t get_all(struct gsort *sort, void *buffer, size_t capacity)
{
	const size_t step_nbytes = 8 * PUT_N_NUMBERS - 3;
	size_t n_received, nbytes = 0;

	do {
		const size_t wanted = capacity - nbytes < step_nbytes ? capacity - nbytes :
									step_nbytes;

		good(sort, gsort_get(sort, (char *)buffer + nbytes, wanted, &n_received));
		nbytes += n_received;
	} while (n_received > 0);
	return nbytes;
}

static void assert_gets(struct gsort *sort, const void *expected, size_t nbytes)
{
	char *actual = malloc(nbytes + 8);

	assert_int_equal(get_all(sort, actual, nbytes + 8), nbytes);
	assert_memory_equal(actual, expected, nbytes);
	free(actual);
}

static void assert_file_is(const char *path, const uint64_t *expected, size_t n)
{
	uint64_t *actual = malloc(8 * (n + 1));
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	assert_int_equal(fread(actual, 8, n + 1, file), n);
	assert_memory_equal(actual, expected, 8 * n);
	fclose(file);
	free(actual);
}

/* --- input and output --- */

#define FIXTURE_TEST(claim) TEST_WITH(claim, start, finish)

FIXTURE_TEST(put_records_are_spilled_and_got_sorted)
{
	struct gsort *sort = open_sort();
	struct gsort_stats stats;

	put_all(sort, numbers, N);
	good(sort, gsort_finish(sort));
	assert_gets(sort, sorted, sizeof sorted);
	good(sort, gsort_get_stats(sort, &stats, sizeof stats));
	assert_int_equal(stats.n_records_in, N);
	assert_int_equal(stats.n_records_out, N);
	assert_true(stats.n_runs_spilled > 0 && stats.peak_temporary_nbytes > 0);
	assert_string_equal(stats.type, "u64le");
	gsort_close(sort);
}

FIXTURE_TEST(put_records_go_to_a_file)
{
	struct gsort *sort = open_sort();

	good(sort, gsort_set_output_path(sort, out_path));
	put_all(sort, numbers, N);
	assert_int_equal(access(out_path, F_OK), -1); /* the output appears when it is complete */
	good(sort, gsort_finish(sort));
	assert_file_is(out_path, sorted, N);
	gsort_close(sort);
}

FIXTURE_TEST(file_is_sorted_to_a_file_and_to_get)
{
	struct gsort *sort = open_sort_of_file(), *other = open_sort();

	good(sort, gsort_run(sort));
	assert_file_is(out_path, sorted, N);
	gsort_close(sort);
	good(other, gsort_add_input_path(other, in_path));
	assert_gets(other, sorted, sizeof sorted);
	gsort_close(other);
}

FIXTURE_TEST(descriptors_are_used_from_where_they_stand)
{
	const int in = open(in_path, O_RDONLY | O_CLOEXEC);
	const int out = open(out_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	static uint64_t expected[N];
	struct gsort *sort = open_sort();

	memcpy(expected, numbers, sizeof numbers);
	qsort(expected + 2, N - 2, 8, compare);
	assert_int_equal(write(out, numbers, 16), 16);
	assert_int_equal(lseek(in, 16, SEEK_SET), 16);
	good(sort, gsort_add_input_fd(sort, in));
	good(sort, gsort_set_output_fd(sort, out));
	good(sort, gsort_run(sort));
	assert_int_equal(lseek(in, 0, SEEK_CUR), sizeof numbers);
	assert_int_equal(lseek(out, 0, SEEK_CUR), sizeof numbers);
	assert_file_is(out_path, expected, N);
	gsort_close(sort);
	assert_int_equal(close(in), 0);
	assert_int_equal(close(out), 0);
}

static void *read_pipe(void *argument)
{
	const int fd = *(int *)argument;
	uint64_t *actual = malloc(sizeof sorted);
	size_t nbytes = 0;
	ssize_t n;

	while ((n = read(fd, (char *)actual + nbytes, sizeof sorted - nbytes)) > 0)
		nbytes += (size_t)n;
	return actual;
}

static void *run_it(void *sort)
{
	gsort_run(sort);
	return NULL;
}

FIXTURE_TEST(pipes_and_sockets_are_descriptors_too)
{
	struct gsort *sort = open_sort(), *other = open_sort();
	int between[2], last[2];
	pthread_t reader, merging;
	void *actual;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, between), 0);
	assert_int_equal(pipe(last), 0);
	pthread_create(&reader, NULL, read_pipe, &last[0]);
	good(sort, gsort_add_input_path(sort, in_path));
	good(sort, gsort_set_output_fd(sort, between[1]));
	good(other, gsort_set(other, "merge", NULL));
	good(other, gsort_add_input_fd(other, between[0]));
	good(other, gsort_set_output_fd(other, last[1]));
	pthread_create(&merging, NULL, run_it, other);
	good(sort, gsort_run(sort));
	close(between[1]);
	pthread_join(merging, NULL);
	good(other, gsort_finish(other));
	close(last[1]);
	pthread_join(reader, &actual);
	assert_memory_equal(actual, sorted, sizeof sorted);
	free(actual);
	gsort_close(other);
	gsort_close(sort);
	close(between[0]);
	close(last[0]);
}

/* Records of a key and their origin. */
FIXTURE_TEST(ties_follow_input_order_with_put_last)
{
	const uint64_t first[] = { 7, 1, 5, 1 }, put[] = { 5, 3, 7, 3 };
	const uint64_t expected[] = { 5, 1, 5, 3, 7, 1, 7, 3 };
	struct gsort *sort = open_sort();

	write_numbers(other_path, first, 4);
	assert_int_equal(gsort_set_record_size(sort, 16), 0);
	refused(sort, gsort_add_key(sort, "0:u63"), -EINVAL, "unknown type");
	gsort_close(sort);
	assert_int_equal(gsort_open(&sort), 0);
	good(sort, gsort_set_record_size(sort, 16));
	good(sort, gsort_add_key(sort, "0:u64"));
	good(sort, gsort_set_memory(sort, 1 << 20));
	good(sort, gsort_add_input_path(sort, other_path));
	good(sort, gsort_put(sort, put, sizeof put));
	good(sort, gsort_finish(sort));
	assert_gets(sort, expected, sizeof expected);
	gsort_close(sort);
}

FIXTURE_TEST(sorted_streams_are_merged_with_put)
{
	const uint64_t other[] = { 2, 4, 6 }, put[] = { 1, 4, 9 },
		       expected[] = { 1, 2, 4, 4, 6, 9 };
	struct gsort *sort = open_sort();

	write_numbers(other_path, other, 3);
	good(sort, gsort_set(sort, "merge", NULL));
	good(sort, gsort_add_input_path(sort, other_path));
	good(sort, gsort_put(sort, put, sizeof put));
	good(sort, gsort_finish(sort));
	assert_gets(sort, expected, sizeof expected);
	gsort_close(sort);
}

FIXTURE_TEST(empty_put_gives_empty_output)
{
	struct gsort *sort = open_sort();
	uint64_t actual;

	good(sort, gsort_finish(sort));
	assert_int_equal(get_all(sort, &actual, sizeof actual), 0);
	gsort_close(sort);
}

FIXTURE_TEST(put_records_may_look_compressed)
{
	const uint64_t put[] = { UINT64_C(0xfd2fb528), 1 }; /* magic number of Zstandard */
	struct gsort *sort = open_sort();
	uint64_t actual[3];

	good(sort, gsort_put(sort, put, sizeof put));
	good(sort, gsort_finish(sort));
	assert_int_equal(get_all(sort, actual, sizeof actual), sizeof put);
	assert_int_equal(actual[0], 1);
	gsort_close(sort);
}

FIXTURE_TEST(get_skips_the_numpy_header)
{
	static const char header[128] =
		"\x93NUMPY\1\0v\0{'descr': '<u2', 'fortran_order': False, "
		"'shape': (3,), }                                            "
		"      ";
	const uint16_t three[] = { 3, 1, 2 };
	struct gsort *sort;
	uint16_t actual[4];
	FILE *file = fopen(other_path, "w");

	fwrite(header, 1, 127, file);
	fputc('\n', file);
	fwrite(three, 2, 3, file);
	fclose(file);
	assert_int_equal(gsort_open(&sort), 0);
	good(sort, gsort_add_input_path(sort, other_path));
	assert_int_equal(get_all(sort, actual, sizeof actual), sizeof three);
	assert_int_equal(actual[0], 1);
	assert_int_equal(actual[2], 3);
	gsort_close(sort);
}

/* --- cancellation --- */

static void cancel_when_it_runs(void *context, const struct gsort_progress *progress)
{
	if (progress->phase[0])
		gsort_cancel(context);
}

static void *cancel_it(void *sort)
{
	gsort_cancel(sort);
	return NULL;
}

/* The canceller may stop a put that waits for memory, or come after the last put. */
FIXTURE_TEST(cancel_wakes_put)
{
	struct gsort *sort = open_sort();
	pthread_t canceller;
	int r = 0;

	good(sort, gsort_set_output_path(sort, out_path));
	good(sort, gsort_put(sort, numbers, sizeof numbers));
	pthread_create(&canceller, NULL, cancel_it, sort);
	while (r == 0) /* until the sort is cancelled */
		r = gsort_put(sort, numbers, sizeof numbers);
	pthread_join(canceller, NULL);
	refused(sort, r, -ECANCELED, "cancelled");
	refused(sort, gsort_finish(sort), -ECANCELED, "cancelled");
	assert_int_equal(access(out_path, F_OK), -1);
	gsort_close(sort);
}

FIXTURE_TEST(cancel_ends_get)
{
	struct gsort *sort = open_sort();
	uint64_t actual[PUT_N_NUMBERS];
	size_t n_received = 0;

	put_all(sort, numbers, N);
	good(sort, gsort_finish(sort));
	good(sort, gsort_get(sort, actual, sizeof actual, &n_received));
	gsort_cancel(sort);
	refused(sort, gsort_get(sort, actual, sizeof actual, &n_received), -ECANCELED, "cancelled");
	gsort_close(sort);
}

FIXTURE_TEST(cancel_wakes_pipe_reader)
{
	struct gsort *sort = open_sort();
	pthread_t canceller;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	good(sort, gsort_add_input_fd(sort, fds[0]));
	good(sort, gsort_set_output_path(sort, out_path));
	pthread_create(&canceller, NULL, cancel_it, sort);
	refused(sort, gsort_run(sort), -ECANCELED, "cancelled");
	pthread_join(canceller, NULL);
	gsort_close(sort);
	close(fds[0]);
	close(fds[1]);
}

/* A sort and a merge, which wait for a pipe. */
FIXTURE_TEST(progress_callback_may_cancel)
{
	for (int is_merge = 0; is_merge < 2; is_merge++) {
		struct gsort *sort = open_sort();
		int fds[2];

		assert_int_equal(pipe(fds), 0);
		if (is_merge)
			good(sort, gsort_set(sort, "merge", NULL));
		good(sort, gsort_add_input_fd(sort, fds[0]));
		good(sort, gsort_set_output_path(sort, out_path));
		good(sort, gsort_set_progress_callback(sort, cancel_when_it_runs, sort, 1));
		refused(sort, gsort_run(sort), -ECANCELED, "cancelled");
		gsort_close(sort);
		close(fds[0]);
		close(fds[1]);
	}
}

struct progress_calls {
	unsigned n;
	struct gsort_progress last;
};

static void count_progress_call(void *context, const struct gsort_progress *progress)
{
	struct progress_calls *calls = context;

	calls->n++;
	calls->last = *progress;
}

FIXTURE_TEST(last_progress_call_of_a_successful_sort_is_complete)
{
	static const char *const options[] = { "verify", "unique", "limit" };

	for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
		struct gsort *sort = open_sort();
		struct progress_calls calls = { 0 };

		good(sort, gsort_set(sort, options[i], strcmp(options[i], "limit") ? NULL : "2"));
		good(sort, gsort_set_output_path(sort, out_path));
		good(sort, gsort_set_progress_callback(sort, count_progress_call, &calls, 1000000));
		put_all(sort, numbers, N);
		good(sort, gsort_finish(sort));
		assert_int_equal(calls.n, 1);
		assert_string_equal(calls.last.phase, i == 0 ? "verify" : "final merge");
		assert_true(calls.last.total_nbytes > 0);
		assert_int_equal(calls.last.done_nbytes, calls.last.total_nbytes);
		assert_int_equal(calls.last.overall_done_nbytes, calls.last.overall_total_nbytes);
		gsort_close(sort);
	}
}

FIXTURE_TEST(failed_sort_has_no_last_progress_call)
{
	struct gsort *sort = open_sort();
	struct progress_calls calls = { 0 };

	good(sort, gsort_add_input_path(sort, "/nonexistent"));
	good(sort, gsort_set_output_path(sort, out_path));
	good(sort, gsort_set_progress_callback(sort, count_progress_call, &calls, 1000000));
	assert_true(gsort_run(sort) < 0);
	gsort_close(sort);
	assert_int_equal(calls.n, 0);
}

FIXTURE_TEST(cancelled_sort_does_not_begin)
{
	struct gsort *sort = open_sort();

	gsort_cancel(sort);
	refused(sort, gsort_put(sort, numbers, sizeof numbers), -ECANCELED, "cancelled");
	gsort_close(sort);
}

FIXTURE_TEST(closed_in_the_middle_it_leaves_nothing)
{
	struct gsort *sort = open_sort();

	good(sort, gsort_set_output_path(sort, out_path));
	put_all(sort, numbers, N);
	gsort_close(sort);
	assert_int_equal(access(out_path, F_OK), -1);
	gsort_close(NULL);
}

/* --- errors --- */

TEST(equivalent_values_are_no_duplicates)
{
	struct gsort *sort;

	assert_int_equal(gsort_open(&sort), 0);
	good(sort, gsort_set(sort, "buffer-size", "1M"));
	good(sort, gsort_set(sort, "S", "1024K"));
	good(sort, gsort_set_memory(sort, 1 << 20));
	good(sort, gsort_set(sort, "type", "u64"));
	good(sort, gsort_set(sort, "type", "uint64_t"));
	good(sort, gsort_set(sort, "fields", "a:u64"));
	good(sort, gsort_set(sort, "fields", "a:u64"));
	refused(sort, gsort_set(sort, "fields", "b:u32"), -EINVAL, "given twice");
	refused(sort, gsort_set(sort, "S", "2M"), -EINVAL, "given twice, as '1M' and as '2M'");
	refused(sort, gsort_set(sort, "S", "much"), -EINVAL, "much");
	refused(sort, gsort_set(sort, "limit", "one"), -EINVAL, "one");
	assert_string_equal(gsort_get_set(sort, "buffer-size"), "1M");
	good(sort, gsort_set(sort, "S", "1048576b")); /* equals 1M */
	good(sort, gsort_set(sort, "limit", "3"));
	gsort_close(sort);
}

FIXTURE_TEST(invalid_calls_change_nothing)
{
	struct gsort *sort = open_sort();
	uint64_t actual[3];
	size_t n_received;

	refused(sort, gsort_set(sort, "sort-of", "x"), -EINVAL, "unknown option 'sort-of'");
	refused(sort, gsort_set(sort, "limt", "3"), -EINVAL,
		"unknown option 'limt'; did you mean limit?");
	refused(sort, gsort_set(sort, "type", NULL), -EINVAL, "-t, --type requires a value");
	refused(sort, gsort_set(sort, "type", "u32"), -EINVAL,
		"given twice, as 'u64' and as 'u32'");
	refused(sort, gsort_set(sort, "unique", "yes"), -EINVAL, "takes no value");
	refused(sort, gsort_set(sort, "S", "much"), -EINVAL, "-S, --buffer-size");
	refused(sort, gsort_set(sort, "S", "1Q"), -EINVAL, "invalid suffix");
	refused(sort, gsort_set(sort, "help", NULL), -ENOTSUP, "--help: only for programs");
	refused(sort, gsort_set(sort, "progress", "always"), -ENOTSUP, "only for programs");
	refused(sort, gsort_set_threads(sort, 3), -EINVAL, "given twice, as '2' and as '3'");
	refused(sort, gsort_set_progress_callback(sort, NULL, NULL, 0), -EINVAL, "at least 1 ms");
	refused(sort, gsort_get(sort, actual, 8, &n_received), -EINVAL, "call gsort_put()");
	refused(sort, gsort_run(sort), -EINVAL, "no input; call");
	good(sort, gsort_set_type(sort, "u64"));
	good(sort, gsort_put(sort, (const uint64_t[]){ 2, 1 }, 16));
	refused(sort, gsort_set_limit(sort, 1), -EBUSY, "the sort has begun");
	refused(sort, gsort_add_input_path(sort, in_path), -EBUSY, "the sort has begun");
	refused(sort, gsort_get(sort, actual, 8, &n_received), -EINVAL, "call gsort_finish()");
	refused(sort, gsort_get_stats(sort, &(struct gsort_stats){ 0 }, 8), -EINVAL,
		"not succeeded");
	assert_null(gsort_stats_json(sort));
	good(sort, gsort_finish(sort));
	assert_string_equal(gsort_message(sort), "");
	refused(sort, gsort_put(sort, numbers, 8), -EINVAL, "gsort_finish() was called");
	assert_int_equal(get_all(sort, actual, sizeof actual), 16);
	assert_int_equal(actual[0], 1);
	gsort_close(sort);
}

FIXTURE_TEST(refused_option_is_not_set)
{
	struct gsort *sort;

	assert_int_equal(gsort_open(&sort), 0);
	refused(sort, gsort_set_type(sort, "u63"), -EINVAL, "unknown type 'u63'");
	refused(sort, gsort_set_memory(sort, 0), -EINVAL,
		"gsort_set_memory(): size must be above 0");
	refused(sort, gsort_set(sort, "memory", "1G"), -EINVAL, "did you mean buffer-size?");
	good(sort, gsort_set_type(sort, "u64"));
	good(sort, gsort_set_memory(sort, 1 << 20));
	good(sort, gsort_finish(sort));
	gsort_close(sort);
}

static void refuse_together(const char *option, const char *value, const char *part)
{
	struct gsort *sort = open_sort();

	good(sort, gsort_set(sort, option, value));
	refused(sort, gsort_put(sort, numbers, sizeof numbers), -EINVAL, part);
	good(sort, gsort_set_descending(sort));
	refused(sort, gsort_finish(sort), -EINVAL, part);
	gsort_close(sort);
}

/* Open a sort of records with their counts. */
FIXTURE_TEST(refused_options_can_be_corrected)
{
	const uint64_t put[] = { 5, 3, 5 };
	struct gsort *sort = open_sort();
	uint64_t actual[5];
	size_t n_received;

	write_numbers(other_path, (const uint64_t[]){ 3 }, 1);
	good(sort, gsort_set(sort, "count", NULL));
	good(sort, gsort_add_input_path(sort, other_path));
	for (int i = 0; i < 3; i++) { /* a refused call adds nothing */
		refused(sort, gsort_put(sort, put, sizeof put), -EINVAL, "--count requires -u");
		refused(sort, gsort_get(sort, actual, 8, &n_received), -EINVAL,
			"--count requires -u");
		refused(sort, gsort_check(sort, &(uint64_t){ 0 }), -EINVAL, "--count");
	}
	good(sort, gsort_set_unique(sort));
	good(sort, gsort_put(sort, put, sizeof put));
	good(sort, gsort_finish(sort));
	assert_int_equal(get_all(sort, actual, sizeof actual), 32);
	assert_memory_equal(actual, ((const uint64_t[]){ 2, 3, 2, 5 }), 32);
	gsort_close(sort);
}

/* No file is read, so the record size stays unknown. */
FIXTURE_TEST(keys_without_record_size_are_refused_early)
{
	const uint64_t put[] = { 5, 3 };
	struct gsort *sort;
	uint64_t actual[2];

	assert_int_equal(gsort_open(&sort), 0);
	good(sort, gsort_add_key(sort, "0:u64"));
	refused(sort, gsort_put(sort, put, sizeof put), -EINVAL, "-k, --key requires -R");
	refused(sort, gsort_finish(sort), -EINVAL, "-k, --key requires -R");
	good(sort, gsort_set_record_size(sort, 8));
	good(sort, gsort_put(sort, put, sizeof put));
	good(sort, gsort_finish(sort));
	assert_int_equal(get_all(sort, actual, sizeof actual), sizeof actual);
	assert_int_equal(actual[0], 3);
	gsort_close(sort);
}

FIXTURE_TEST(shard_of_put_records_is_refused_early)
{
	struct gsort *sort = open_sort();

	good(sort, gsort_set(sort, "shard", "1/2"));
	good(sort, gsort_set(sort, "merge", NULL));
	refused(sort, gsort_put(sort, numbers, 16), -EINVAL, "--shard requires files as inputs");
	good(sort, gsort_set_descending(sort)); /* the sort has not begun */
	gsort_close(sort);
}

FIXTURE_TEST(failure_keeps_its_own_message)
{
	struct gsort *sort = open_sort();
	uint64_t actual;
	size_t n_received;

	good(sort, gsort_put(sort, numbers, 12));
	refused(sort, gsort_finish(sort), -EINVAL, "gsort_put()");
	refused(sort, gsort_get(sort, &actual, 8, &n_received), -EINVAL, "gsort_put()");
	refused(sort, gsort_set_unique(sort), -EBUSY, "-u, --unique: the sort has begun");
	refused(sort, gsort_finish(sort), -EINVAL, "gsort_put()");
	refused(sort, gsort_set_unique(sort), -EBUSY, "-u, --unique: the sort has begun");
	refused(sort, gsort_put(sort, numbers, 8), -EINVAL, "gsort_put()");
	refused(sort, gsort_get(sort, &actual, 8, &n_received), -EINVAL, "gsort_put()");
	gsort_close(sort);
}

FIXTURE_TEST(null_is_refused_with_a_message)
{
	struct gsort *sort = open_sort();
	uint64_t actual;
	size_t n_received;

	refused(sort, gsort_set(sort, NULL, NULL), -EINVAL, "the name of an option is NULL");
	refused(sort, gsort_set_type(sort, NULL), -EINVAL, "requires a value");
	refused(sort, gsort_add_key(sort, NULL), -EINVAL, "requires a value");
	refused(sort, gsort_add_temporary_directory(sort, NULL), -EINVAL, "requires a value");
	refused(sort, gsort_set_output_path(sort, NULL), -EINVAL, "requires a value");
	refused(sort, gsort_add_input_path(sort, NULL), -EINVAL, "path of an input is NULL");
	refused(sort, gsort_check(sort, NULL), -EINVAL, "ret_first_unsorted is NULL");
	refused(sort, gsort_explain(sort, 0, NULL), -EINVAL, "ret_json is NULL");
	refused(sort, gsort_get_stats(sort, NULL, 8), -EINVAL, "ret_stats is NULL");
	refused(sort, gsort_put(sort, NULL, 8), -EINVAL, "records is NULL");
	gsort_get_progress(sort, NULL, sizeof(struct gsort_progress));
	good(sort, gsort_put(sort, numbers, 8));
	refused(sort, gsort_put(sort, NULL, 8), -EINVAL, "records is NULL");
	good(sort, gsort_put(sort, NULL, 0));
	good(sort, gsort_finish(sort));
	refused(sort, gsort_get(sort, NULL, 8, &n_received), -EINVAL, "buffer is NULL");
	refused(sort, gsort_get(sort, &actual, 8, NULL), -EINVAL, "ret_nbytes is NULL");
	assert_int_equal(get_all(sort, &actual, 8), 8); /* no data was lost */
	gsort_close(sort);
}

FIXTURE_TEST(null_handle_is_refused)
{
	struct gsort_progress progress;
	struct gsort_stats stats;
	const char *json;
	uint64_t number;
	size_t n_received;

	assert_int_equal(gsort_open(NULL), -EINVAL);
	assert_int_equal(gsort_set(NULL, "unique", NULL), -EINVAL);
	assert_int_equal(gsort_set_threads(NULL, 1), -EINVAL);
	assert_int_equal(gsort_add_input_path(NULL, in_path), -EINVAL);
	assert_int_equal(gsort_add_input_fd(NULL, 0), -EINVAL);
	assert_int_equal(gsort_set_output_path(NULL, out_path), -EINVAL);
	assert_int_equal(gsort_set_output_fd(NULL, 1), -EINVAL);
	assert_int_equal(gsort_put(NULL, numbers, 8), -EINVAL);
	assert_int_equal(gsort_finish(NULL), -EINVAL);
	assert_int_equal(gsort_get(NULL, &number, 8, &n_received), -EINVAL);
	assert_int_equal(gsort_run(NULL), -EINVAL);
	assert_int_equal(gsort_check(NULL, &number), -EINVAL);
	assert_int_equal(gsort_explain(NULL, 0, &json), -EINVAL);
	assert_int_equal(gsort_set_message_callback(NULL, NULL, NULL), -EINVAL);
	assert_int_equal(gsort_set_progress_callback(NULL, NULL, NULL, 1), -EINVAL);
	assert_int_equal(gsort_get_stats(NULL, &stats, sizeof stats), -EINVAL);
	assert_null(gsort_stats_json(NULL));
	assert_null(gsort_stats_text(NULL));
	assert_null(gsort_get_set(NULL, "unique"));
	assert_int_equal(gsort_set_from_cli(NULL, "unique", NULL), -EINVAL);
	assert_int_equal(gsort_set_process(NULL, NULL), -EINVAL);
	assert_int_equal(gsort_explain_text(NULL, 0, &json), -EINVAL);
	assert_int_equal(gsort_write_reports(NULL), -EINVAL);
	assert_int_equal(gsort_signal_action(NULL, SIGTERM), GSORT_SIGNAL_TERMINATE);
	assert_string_equal(gsort_quote(NULL, NULL, 0), "");
	assert_null(gsort_suggest(NULL, 0, NULL, 0));
	gsort_get_progress(NULL, &progress, sizeof progress);
	assert_string_equal(progress.phase, "");
	assert_non_null(gsort_message(NULL));
	gsort_cancel(NULL);
}

FIXTURE_TEST(no_name_and_no_descriptor_are_refused_at_once)
{
	struct gsort *sort = open_sort();

	refused(sort, gsort_add_input_fd(sort, -1), -EINVAL, "descriptor -1");
	refused(sort, gsort_set_output_fd(sort, -1), -EINVAL, "descriptor -1");
	refused(sort, gsort_add_input_path(sort, ""), -EINVAL, "cannot be empty");
	refused(sort, gsort_set_output_path(sort, ""), -EINVAL, "cannot be empty");
	refused(sort, gsort_run(sort), -EINVAL, "no input; call"); /* no input was added */
	gsort_close(sort);
}

FIXTURE_TEST(putting_nothing_does_not_begin)
{
	struct gsort *sort = open_sort();
	uint64_t actual[2];

	good(sort, gsort_put(sort, numbers, 0));
	good(sort, gsort_set_limit(sort, 1));
	good(sort, gsort_put(sort, (const uint64_t[]){ 2, 1 }, 16));
	good(sort, gsort_finish(sort));
	assert_int_equal(get_all(sort, actual, sizeof actual), 8);
	gsort_close(sort);
}

FIXTURE_TEST(options_unfit_for_put_and_get_are_refused)
{
	refuse_together("verify", NULL,
			"--verify requires -o with the name of a file, not gsort_get()");
	refuse_together("fsync", NULL,
			"--fsync requires -o with the name of a file, not gsort_get()");
	refuse_together("checkpoint", directory, "--checkpoint");
	refuse_together("partial", "keep", "--partial=keep");
	refuse_together("skip-bytes", "8", "--skip-bytes");
	refuse_together("format", "npy", "--format=npy");
	refuse_together("count", NULL, "--count requires -u");
	refuse_together("keep", "first", "--keep requires -u");
	refuse_together("keep", "last", "--keep requires -u");
}

FIXTURE_TEST(two_outputs_are_refused)
{
	struct gsort *sort = open_sort();

	good(sort, gsort_set_output_path(sort, out_path));
	good(sort, gsort_set_output_fd(sort, 2));
	refused(sort, gsort_set_output_fd(sort, 3), -EINVAL, "is already descriptor 2");
	refused(sort, gsort_put(sort, numbers, 8), -EINVAL, "two outputs");
	gsort_close(sort);
}

FIXTURE_TEST(failure_says_why_and_what_helps)
{
	struct gsort *sort = open_sort();
	uint64_t actual;
	size_t n_received;

	good(sort, gsort_add_input_path(sort, other_path));
	refused(sort, gsort_get(sort, &actual, 8, &n_received), -ENOENT, other_path);
	refused(sort, gsort_get(sort, &actual, 8, &n_received), -ENOENT,
		other_path); /* the sort stays failed */
	gsort_close(sort);
	sort = open_sort();
	good(sort, gsort_set(sort, "temp-limit", "0"));
	refused(sort, gsort_set_progress_callback(sort, NULL, NULL, 0), -EINVAL, "at least 1 ms");
	while (gsort_put(sort, numbers, sizeof numbers) == 0)
		continue;
	if (!strstr(gsort_message(sort), "--temp-limit"))
		fail_msg("'%s' says nothing that helps", gsort_message(sort));
	refused(sort, gsort_set_limit(sort, 1), -EBUSY, "the sort has begun");
	refused(sort, gsort_finish(sort), -ENOSPC,
		"--temp-limit"); /* the error is returned again */
	gsort_close(sort);
}

FIXTURE_TEST(pipe_without_a_reader_is_an_error_and_no_signal)
{
	struct gsort *sort = open_sort();
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	good(sort, gsort_add_input_path(sort, in_path));
	good(sort, gsort_set_output_fd(sort, fds[1]));
	refused(sort, gsort_run(sort), -EPIPE, "descriptor ");
	gsort_close(sort);
	close(fds[1]);
}

/* --- messages --- */

static void store_message(void *context, enum gsort_severity kind, const char *text)
{
	snprintf(context, 256, "%d %s", kind, text);
}

/* Open a sort of u64 from in_path to out_path with a report. */
static struct gsort *sort_with_report(struct gsort *sort, const char *report_path)
{
	good(sort, gsort_set(sort, "report", report_path));
	good(sort, gsort_add_input_path(sort, in_path));
	good(sort, gsort_set_output_path(sort, out_path));
	good(sort, gsort_run(sort));
	assert_int_equal(access(report_path, F_OK), -1);
	return sort;
}

FIXTURE_TEST(warnings_reach_the_callback)
{
	const uint64_t put[] = { UINT64_C(0xfd2fb528) };
	struct gsort *sort = open_sort();
	char messages[256] = "";

	good(sort, gsort_set_message_callback(sort, store_message, messages));
	good(sort, gsort_set_output_path(sort, out_path));
	good(sort, gsort_put(sort, put, sizeof put));
	good(sort, gsort_finish(sort));
	assert_non_null(strstr(messages, "looks like "));
	assert_int_equal(messages[0], '0' + GSORT_WARNING);
	assert_string_equal(gsort_message(sort), "");
	gsort_close(sort);
}

FIXTURE_TEST(statistics_are_a_struct_and_json)
{
	struct {
		struct gsort_stats stats;
		char trailing[8];
	} larger;
	struct gsort *sort = open_sort();
	struct gsort_progress progress;
	uint64_t record_nbytes = 0;
	const char *json;

	gsort_get_progress(sort, &progress, sizeof progress);
	assert_string_equal(progress.phase, "");
	good(sort, gsort_set_output_path(sort, out_path));
	put_all(sort, numbers, N);
	good(sort, gsort_finish(sort));
	memset(&larger, 1, sizeof larger);
	assert_int_equal(gsort_get_stats(sort, &larger.stats, sizeof larger), 0);
	assert_int_equal(larger.trailing[7], 0);
	assert_int_equal(gsort_get_stats(sort, (void *)&record_nbytes, sizeof record_nbytes), 0);
	assert_int_equal(record_nbytes, 8);
	gsort_get_progress(sort, &progress, sizeof progress);
	assert_int_equal(progress.done_nbytes, sizeof numbers);
	json = gsort_stats_json(sort);
	assert_non_null(json);
	assert_int_equal(json[0], '{');
	assert_non_null(strstr(json, "\"u64le\""));
	assert_string_equal(gsort_version(), GSORT_VERSION_EXPECTED);
	gsort_close(sort);
}

FIXTURE_TEST(check_finds_the_first_disorder_and_nothing_else)
{
	struct gsort *sort = open_sort();
	uint64_t record = 77, number;
	size_t n_received;

	refused(sort, gsort_check(sort, &record), -EINVAL, "no input; call");
	write_numbers(other_path, (const uint64_t[]){ 1, 2, 2, 1 }, 4);
	good(sort, gsort_add_input_path(sort, other_path));
	good(sort, gsort_check(sort, &record));
	assert_int_equal(record, 4);
	refused(sort, gsort_get(sort, &number, 8, &n_received), -EINVAL,
		"in use for another operation");
	gsort_close(sort);
	write_numbers(other_path, sorted, N);
	sort = open_sort();
	good(sort, gsort_add_input_path(sort, other_path));
	good(sort, gsort_check(sort, &record));
	assert_int_equal(record, 0);
	gsort_close(sort);
	sort = open_sort();
	good(sort, gsort_add_input_path(sort, other_path));
	good(sort, gsort_set_limit(sort, 1));
	refused(sort, gsort_check(sort, &record), -EINVAL, "a check writes nothing");
	gsort_close(sort);
}

FIXTURE_TEST(explain_of_put_is_json_and_sorts_nothing)
{
	struct gsort *sort = open_sort();
	struct gsort_stats stats;
	const char *json = NULL;

	good(sort, gsort_explain(sort, 256 << 20, &json));
	assert_int_equal(json[0], '{');
	assert_non_null(strstr(json, "\"expected_s\""));
	refused(sort, gsort_put(sort, numbers, 8), -EINVAL, "in use for another operation");
	refused(sort, gsort_explain(sort, 256 << 20, &json), -EBUSY, "in use; open another");
	gsort_close(sort);
	sort = open_sort_of_file();
	refused(sort, gsort_explain(sort, 1, &json), -EINVAL, "--assume-size");
	gsort_close(sort);
	sort = open_sort_of_file();
	good(sort, gsort_explain(sort, 0, &json));
	good(sort, gsort_get_stats(sort, &stats, sizeof stats));
	assert_int_equal(stats.record_nbytes, sizeof numbers[0]);
	assert_int_equal(access(out_path, F_OK), -1);
	gsort_close(sort);
}

FIXTURE_TEST(statistics_are_available_as_text)
{
	struct gsort *sort = open_sort();
	struct gsort_progress progress;
	const char *text = NULL;
	char line[256];

	assert_null(gsort_stats_text(sort));
	good(sort, gsort_set_output_path(sort, out_path));
	put_all(sort, numbers, N);
	good(sort, gsort_finish(sort));
	text = gsort_stats_text(sort);
	assert_non_null(text);
	assert_non_null(strstr(text, "final merge"));
	gsort_get_progress(sort, &progress, sizeof progress);
	gsort_format_progress(&progress, sizeof progress, line, sizeof line);
	assert_int_equal(strncmp(line, "final merge: 100 %", 18), 0);
	gsort_format_progress(&progress, sizeof progress, line, 8);
	assert_string_equal(line, "final m");
	gsort_close(sort);
	sort = open_sort();
	good(sort, gsort_explain_text(sort, 256 << 20, &text));
	assert_non_null(strstr(text, "spill"));
	gsort_close(sort);
}

FIXTURE_TEST(reports_are_written_on_request)
{
	char path[80], text[8] = "";
	struct gsort *sort = open_sort();
	FILE *file;

	snprintf(path, sizeof path, "%s/report", directory);
	good(sort, gsort_write_reports(sort_with_report(sort, path)));
	file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fread(text, 1, 7, file), 7);
	fclose(file);
	assert_string_equal(text, "<!DOCTY");
	good(sort, gsort_write_reports(sort)); /* the second call does nothing */
	gsort_close(sort);
	unlink(path);
	sort = open_sort();
	sort_with_report(sort, path);
	gsort_close(sort); /* without gsort_write_reports() there is no report */
	assert_int_equal(access(path, F_OK), -1);
	sort = open_sort_of_file();
	refused(sort, gsort_write_reports(sort), -EINVAL, "has not succeeded");
	good(sort, gsort_set(sort, "report", in_path));
	refused(sort, gsort_run(sort), -EINVAL, "are the same file");
	assert_file_is(in_path, numbers, N);
	gsort_close(sort);
}

/* Store the message about a record. A later one is about the device. */
static void record_first_disorder(void *context, enum gsort_severity kind, const char *text)
{
	if (strncmp(text, "record ", 7) == 0)
		store_message(context, kind, text);
}

FIXTURE_TEST(debug_reports_keys_line_by_line)
{
	struct gsort *sort = open_sort_of_file();
	char messages[256] = "";

	good(sort, gsort_set(sort, "debug", NULL));
	good(sort, gsort_set_message_callback(sort, record_first_disorder, messages));
	good(sort, gsort_run(sort));
	assert_string_equal(messages,
			    "4 record 5: bytes 54f029fde5e6dd78 encoded key 78dde6e5fd29f054");
	gsort_close(sort);
}

FIXTURE_TEST(failures_reach_the_callback_at_once)
{
	struct gsort *sort = open_sort();
	char messages[256] = "";

	good(sort, gsort_set_message_callback(sort, store_message, messages));
	assert_int_equal(gsort_set(sort, "limit", "x"), -EINVAL);
	assert_int_equal(messages[0], '0' + GSORT_ERROR);
	assert_string_equal(messages + 2, gsort_message(sort));
	gsort_close(sort);
}

/* --- functions for command lines --- */

FIXTURE_TEST(options_can_be_listed)
{
	struct gsort *sort = open_sort();
	char room[GSORT_WORD_NBYTES];
	struct gsort_option option;
	unsigned n = 0, n_words = 0;

	for (; gsort_get_option(n, &option, sizeof option) == 0; n++) {
		assert_true(*option.name && *option.help);
		assert_true(option.argument || !option.default_value);
		while (gsort_get_option_word(n, n_words, room))
			n_words++;
		assert_true(option.argument || n_words == 0);
		if (strcmp(option.name, "backend") == 0)
			assert_string_equal(gsort_get_option_word(n, 2, room), "cpu");
		n_words = 0;
		assert_int_equal(gsort_set(sort, option.name, "\n") == -ENOTSUP, option.cli_only);
	}
	assert_true(n > 30);
	assert_int_equal(gsort_get_option(n, &option, sizeof option), -ENOENT);
	assert_int_equal(gsort_get_option(0, NULL, 0), -EINVAL);
	assert_null(gsort_get_option_word(n, 0, room));
	assert_non_null(strstr(gsort_describe_types(), "u8"));
	gsort_close(sort);
}

FIXTURE_TEST(cli_options_are_set_and_returned)
{
	struct gsort *sort = open_sort();
	char messages[256] = "";
	uint64_t record;

	good(sort, gsort_set_message_callback(sort, store_message, messages));
	assert_null(gsort_get_set(sort, "help"));
	good(sort, gsort_set_from_cli(sort, "help", NULL));
	assert_string_equal(gsort_get_set(sort, "help"), "");
	assert_null(gsort_get_set(sort, "version"));
	assert_null(gsort_get_set(sort, "progress"));
	good(sort, gsort_set_from_cli(sort, "progress", "never"));
	assert_string_equal(gsort_get_set(sort, "progress"), "never");
	refused(sort, gsort_set_from_cli(sort, "progress", "perhaps"), -EINVAL,
		"invalid; use auto|always|never");
	good(sort, gsort_set_from_cli(sort, "S", "1024K")); /* the same value */
	good(sort, gsort_set_from_cli(sort, "check", NULL));
	write_numbers(other_path, (const uint64_t[]){ 2, 1 }, 2);
	good(sort, gsort_add_input_path(sort, other_path));
	good(sort, gsort_set_output_path(sort, out_path));
	refused(sort, gsort_run(sort), -EINVAL, "a check writes nothing");
	gsort_close(sort);
	sort = open_sort();
	good(sort, gsort_set_message_callback(sort, store_message, messages));
	good(sort, gsort_set_from_cli(sort, "check", NULL));
	good(sort, gsort_add_input_path(sort, other_path));
	refused(sort, gsort_finish(sort), -EINVAL, "call gsort_check()");
	good(sort, gsort_check(sort, &record));
	assert_int_equal(record, 2);
	assert_non_null(strstr(messages, "/other: record 2: disorder"));
	gsort_close(sort);
}

FIXTURE_TEST(names_of_inputs_come_from_a_list)
{
	struct gsort *sort = open_sort();
	FILE *file = fopen(other_path, "w");

	assert_non_null(file);
	fwrite(in_path, 1, strlen(in_path) + 1, file);
	fclose(file);
	good(sort, gsort_set(sort, "files0-from", other_path));
	good(sort, gsort_set_output_path(sort, out_path));
	good(sort, gsort_set(sort, "count", NULL)); /* without --unique: the sort does not begin */
	refused(sort, gsort_run(sort), -EINVAL, "--count requires -u");
	good(sort, gsort_set_unique(sort));
	good(sort, gsort_run(sort));
	gsort_close(sort);
	sort = open_sort();
	good(sort, gsort_set(sort, "files0-from", other_path));
	good(sort, gsort_set_output_path(sort, out_path));
	good(sort, gsort_run(sort));
	assert_file_is(out_path, sorted, N);
	gsort_close(sort);
	sort = open_sort_of_file();
	good(sort, gsort_set(sort, "files0-from", other_path));
	refused(sort, gsort_run(sort), -EINVAL, "cannot be given as well");
	gsort_close(sort);
}

FIXTURE_TEST(process_decides_the_signal_action)
{
	struct gsort_process *process;
	struct gsort *sort = open_sort_of_file();

	assert_int_equal(gsort_open_process(NULL), -EINVAL);
	assert_int_equal(gsort_open_process(&process), 0);
	refused(sort, gsort_set_process(sort, NULL), -EINVAL, "process is NULL");
	good(sort, gsort_set_process(sort, process));
	good(sort, gsort_run(sort));
	assert_file_is(out_path, sorted, N);
	assert_int_equal(gsort_signal_action(process, SIGTERM), GSORT_SIGNAL_IGNORE);
	assert_int_equal(gsort_pending_signal(process), 0);
	assert_int_equal(gsort_handle_sigbus(process, numbers), 0);
	gsort_cleanup_files(process);
	assert_file_is(out_path, sorted, N);
	gsort_close(sort);
	gsort_close_process(process);
	assert_int_equal(gsort_open_process(&process), 0);
	assert_int_equal(gsort_signal_action(process, SIGTERM), GSORT_SIGNAL_TERMINATE);
	gsort_close_process(process);
	gsort_close_process(NULL);
}

/* --- one process --- */

static void *sort_all(void *argument)
{
	struct gsort *sort = open_sort();

	(void)argument;
	put_all(sort, numbers, N);
	good(sort, gsort_finish(sort));
	assert_gets(sort, sorted, sizeof sorted);
	gsort_close(sort);
	return NULL;
}

FIXTURE_TEST(several_sort_at_once)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, sort_all, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static unsigned count_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

FIXTURE_TEST(process_is_left_as_it_was)
{
	const unsigned n_before = count_descriptors();
	struct sigaction before[32], after;
	sigset_t held_before, held_after;
	const mode_t mask = umask(022);

	umask(mask);
	sigprocmask(SIG_BLOCK, NULL, &held_before);
	for (int i = 1; i < 32; i++)
		sigaction(i, NULL, &before[i]);
	sort_all(NULL);
	for (int i = 1; i < 32; i++) {
		sigaction(i, NULL, &after);
		assert_ptr_equal((void *)after.sa_handler, (void *)before[i].sa_handler);
	}
	sigprocmask(SIG_BLOCK, NULL, &held_after);
	for (int i = 1; i < 32; i++)
		assert_int_equal(sigismember(&held_after, i), sigismember(&held_before, i));
	assert_int_equal(umask(mask), mask);
	assert_int_equal(count_descriptors(), n_before);
}
