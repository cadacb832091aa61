/*
 * test_lines - test the option "lines" of libgsort through gsort.h only
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/gsort.h"
#include "tests/support/unit_test.h"

enum { N = 200000, LINE_NBYTES = 40 };

static char directory[] = "/tmp/test_lines.XXXXXX";
static char in_path[64], out_path[64], temp_path[64], checkpoint_path[64];
static char *text, *sorted_text; /* N lines of LINE_NBYTES */

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, LINE_NBYTES);
}

static void write_file(const char *path, const char *bytes, size_t nbytes)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, nbytes, file), nbytes);
	assert_int_equal(fclose(file), 0);
}

static void expect_file(const char *path, const char *expected)
{
	char bytes[256];
	FILE *file = fopen(path, "r");
	size_t n;

	assert_non_null(file);
	n = fread(bytes, 1, sizeof bytes - 1, file);
	fclose(file);
	bytes[n] = '\0';
	assert_string_equal(bytes, expected);
}

static int start(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(in_path, sizeof in_path, "%s/in", directory);
	snprintf(out_path, sizeof out_path, "%s/out", directory);
	snprintf(temp_path, sizeof temp_path, "%s/temp", directory);
	snprintf(checkpoint_path, sizeof checkpoint_path, "%s/checkpoint", directory);
	if (mkdir(temp_path, 0700) < 0)
		return -1;
	text = malloc(N * LINE_NBYTES + 1);
	sorted_text = malloc(N * LINE_NBYTES);
	for (size_t i = 0; i < N; i++)
		sprintf(text + i * LINE_NBYTES, "%020llu %018zu\n",
			(unsigned long long)(i * UINT64_C(0x9e3779b97f4a7c15)), i);
	memcpy(sorted_text, text, N * LINE_NBYTES);
	qsort(sorted_text, N, LINE_NBYTES, compare);
	return 0;
}

static int finish(void **state)
{
	(void)state;
	unlink(in_path);
	unlink(out_path);
	free(text);
	free(sorted_text);
	return rmdir(temp_path) < 0 ? -1 : rmdir(directory);
}

static void good(struct gsort *sort, int r)
{
	if (r < 0)
		fail_msg("%d: %s", r, gsort_message(sort));
}

static void refused(struct gsort *sort, int r, int expected, const char *message)
{
	assert_int_equal(r, expected);
	assert_string_equal(gsort_message(sort), message);
}

static struct gsort *open_lines(void)
{
	struct gsort *sort;

	assert_int_equal(gsort_open(&sort), 0);
	good(sort, gsort_set(sort, "lines", NULL));
	return sort;
}

/* --- files --- */

TEST(test_sorts_files_by_keys)
{
	struct gsort *sort = open_lines();
	struct gsort_stats stats;

	write_file(in_path, "name,n\nb,10\na,9\nc,9", 19);
	good(sort, gsort_set(sort, "field-separator", ","));
	good(sort, gsort_set(sort, "key", "2,2n"));
	good(sort, gsort_set(sort, "header", "1"));
	good(sort, gsort_add_input_path(sort, in_path));
	good(sort, gsort_set_output_path(sort, out_path));
	good(sort, gsort_run(sort));
	expect_file(out_path, "name,n\na,9\nc,9\nb,10\n");
	good(sort, gsort_get_stats(sort, &stats, sizeof stats));
	assert_int_equal(stats.n_records_out, 3);
	assert_string_equal(stats.type, "lines");
	assert_non_null(strstr(gsort_stats_json(sort), "\"lines\""));
	gsort_close(sort);
}

TEST(test_typed_setters_set_options_of_lines)
{
	struct gsort *sort = open_lines();

	write_file(in_path, "1\n3\n2\n3\n", 8);
	good(sort, gsort_set_descending(sort));
	good(sort, gsort_set_unique(sort));
	good(sort, gsort_set_limit(sort, 2));
	good(sort, gsort_set_memory(sort, 8 << 20));
	good(sort, gsort_set_threads(sort, 1));
	good(sort, gsort_add_temporary_directory(sort, temp_path));
	good(sort, gsort_add_input_path(sort, in_path));
	good(sort, gsort_set_output_path(sort, in_path));
	good(sort, gsort_run(sort));
	expect_file(in_path, "3\n2\n");
	gsort_close(sort);
}

TEST(test_list_of_names_and_reports)
{
	struct gsort *sort = open_lines();
	char names_path[80], report_path[80];

	snprintf(names_path, sizeof names_path, "%s/names", directory);
	snprintf(report_path, sizeof report_path, "%s/report.json", directory);
	write_file(in_path, "b\na\n", 4);
	write_file(names_path, in_path, strlen(in_path) + 1);
	good(sort, gsort_set(sort, "files0-from", names_path));
	good(sort, gsort_set(sort, "stats-json", report_path));
	good(sort, gsort_set_output_path(sort, out_path));
	good(sort, gsort_run(sort));
	expect_file(out_path, "a\nb\n");
	good(sort, gsort_write_reports(sort));
	assert_int_equal(access(report_path, R_OK), 0);
	gsort_close(sort);
	unlink(names_path);
	unlink(report_path);
}

TEST(test_descriptors)
{
	struct gsort *sort = open_lines();
	int in[2], out;

	assert_int_equal(pipe(in), 0);
	assert_int_equal(write(in[1], "b\na", 3), 3);
	close(in[1]);
	write_file(in_path, "skipped\nd\nc\n", 12);
	out = open(in_path, O_RDONLY);
	assert_int_equal(lseek(out, 8, SEEK_SET), 8);
	good(sort, gsort_add_input_fd(sort, in[0]));
	good(sort, gsort_add_input_fd(sort, out));
	write_file(out_path, "", 0);
	const int to = open(out_path, O_WRONLY);
	good(sort, gsort_set_output_fd(sort, to));
	good(sort, gsort_run(sort));
	gsort_close(sort);
	close(in[0]);
	close(out);
	close(to);
	expect_file(out_path, "a\nb\nc\nd\n");
}

/* --- streams --- */

static void put_text(struct gsort *sort)
{
	enum { PIECE_NBYTES = 100003 }; /* pieces end within lines */

	for (size_t i = 0; i < N * LINE_NBYTES; i += PIECE_NBYTES) {
		const size_t rest = N * LINE_NBYTES - i;

		good(sort, gsort_put(sort, text + i, rest < PIECE_NBYTES ? rest : PIECE_NBYTES));
	}
}

static void expect_sorted_text(struct gsort *sort)
{
	char *got = malloc(N * LINE_NBYTES + 1);
	size_t n;

	good(sort, gsort_get(sort, got, N * LINE_NBYTES + 1, &n));
	assert_int_equal(n, N * LINE_NBYTES);
	assert_memory_equal(got, sorted_text, n);
	good(sort, gsort_get(sort, got, 1, &n));
	assert_int_equal(n, 0);
	free(got);
}

TEST(test_streams)
{
	for (int is_spilled = 0; is_spilled < 2; is_spilled++) {
		struct gsort *sort = open_lines();
		struct gsort_stats stats;

		good(sort, gsort_set(sort, "buffer-size", is_spilled ? "4M" : "64M"));
		good(sort, gsort_set(sort, "temporary-directory", temp_path));
		put_text(sort);
		good(sort, gsort_finish(sort));
		expect_sorted_text(sort);
		good(sort, gsort_get_stats(sort, &stats, sizeof stats));
		assert_int_equal(stats.n_records_in, N);
		assert_int_equal(stats.n_runs_spilled > 0, is_spilled);
		gsort_close(sort);
	}
}

TEST(test_last_line_of_stream_gets_delimiter)
{
	struct gsort *sort = open_lines();
	char got[16];
	size_t n;

	good(sort, gsort_set(sort, "zero-terminated", ""));
	good(sort, gsort_put(sort, "b\0a", 3));
	good(sort, gsort_finish(sort));
	good(sort, gsort_get(sort, got, sizeof got, &n));
	assert_int_equal(n, 4);
	assert_memory_equal(got, "a\0b", 4);
	gsort_close(sort);
}

/* --- cancellation --- */

static int count_files(const char *path)
{
	DIR *stream = opendir(path);
	int n = 0;

	assert_non_null(stream);
	while (readdir(stream))
		n++;
	closedir(stream);
	return n - 2;
}

TEST(test_cancelled_sort_leaves_nothing)
{
	struct gsort *sort = open_lines();

	write_file(out_path, "old", 3);
	good(sort, gsort_set(sort, "buffer-size", "4M"));
	good(sort, gsort_set(sort, "temporary-directory", temp_path));
	good(sort, gsort_set_output_path(sort, out_path));
	put_text(sort); /* the sort spills */
	gsort_cancel(sort);
	assert_int_equal(gsort_finish(sort), -ECANCELED);
	assert_string_equal(gsort_message(sort), "cancelled");
	assert_int_equal(gsort_put(sort, "a\n", 2), -ECANCELED);
	gsort_close(sort);
	expect_file(out_path, "old");
	assert_int_equal(count_files(temp_path), 0);
	assert_int_equal(count_files(directory), 3); /* in, out, temp */
}

static void cancel(void *context, const struct gsort_progress *progress)
{
	(void)progress;
	gsort_cancel(context);
}

TEST(test_cancelling_wakes_what_waits_for_input)
{
	for (int is_check = 0; is_check < 2; is_check++) {
		struct gsort *sort = open_lines();
		uint64_t number;
		int in[2];

		assert_int_equal(pipe(in), 0);
		good(sort, gsort_add_input_fd(sort, in[0]));
		if (!is_check)
			good(sort, gsort_set_output_path(sort, out_path));
		good(sort, gsort_set_progress_callback(sort, cancel, sort, 1));
		assert_int_equal(is_check ? gsort_check(sort, &number) : gsort_run(sort),
				 -ECANCELED);
		gsort_close(sort);
		close(in[0]);
		close(in[1]);
	}
}

static void save_progress(void *context, const struct gsort_progress *progress)
{
	*(struct gsort_progress *)context = *progress;
}

TEST(test_last_progress_call_of_a_successful_sort_is_complete)
{
	struct gsort *sort = open_lines();
	struct gsort_progress progress = { 0 };

	good(sort, gsort_set(sort, "buffer-size", "4M"));
	good(sort, gsort_set(sort, "temporary-directory", temp_path));
	good(sort, gsort_set_output_path(sort, out_path));
	good(sort, gsort_set_progress_callback(sort, save_progress, &progress, 1000000));
	put_text(sort); /* the sort spills */
	good(sort, gsort_finish(sort));
	assert_string_equal(progress.phase, "final merge");
	assert_true(progress.total_nbytes > 0);
	assert_int_equal(progress.done_nbytes, progress.total_nbytes);
	assert_int_equal(progress.overall_done_nbytes, progress.overall_total_nbytes);
	gsort_close(sort);
}

/* --- checks and plans --- */

TEST(test_check)
{
	static const struct {
		const char *text, *option;
		unsigned long long number;
	} cases[] = {
		{ "a\nb\nb\n", NULL, 0 }, { "a\nc\nb\n", NULL, 3 },   { "a\nb\nb\n", "unique", 3 },
		{ "", NULL, 0 },          { "z\na\nb", "header", 0 }, { "z\nb\na", "header", 3 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct gsort *sort = open_lines();
		uint64_t number;

		write_file(in_path, cases[i].text, strlen(cases[i].text));
		if (cases[i].option)
			good(sort, gsort_set(sort, cases[i].option, NULL));
		good(sort, gsort_add_input_path(sort, in_path));
		good(sort, gsort_check(sort, &number));
		assert_int_equal(number, cases[i].number);
		gsort_close(sort);
	}
}

TEST(test_explain)
{
	const char *plan;

	write_file(in_path, text, N * LINE_NBYTES);
	for (int puts = 0; puts < 2; puts++) {
		struct gsort *sort = open_lines();

		good(sort, gsort_set(sort, "buffer-size", "4M"));
		if (!puts)
			good(sort, gsort_add_input_path(sort, in_path));
		good(sort, gsort_explain(sort, 0, &plan));
		assert_non_null(
			strstr(plan, puts ? "\"bytes\": null" : "\"fits_in_memory\": false"));
		gsort_close(sort);
		sort = open_lines();
		good(sort, gsort_add_input_path(sort, in_path));
		good(sort, gsort_explain_text(sort, 0, &plan));
		assert_non_null(strstr(plan, "CPU, "));
		gsort_close(sort);
	}
}

/* --- options --- */

TEST(test_refused_options)
{
	struct gsort *sort;

	assert_int_equal(gsort_open(&sort), 0);
	refused(sort, gsort_set(sort, "field-separator", ","), -EINVAL,
		"unknown option 'field-separator'; for lines, set lines first");
	good(sort, gsort_set(sort, "unique", NULL));
	refused(sort, gsort_set(sort, "lines", NULL), -EINVAL, "lines: set it before unique");
	gsort_close(sort);
	assert_int_equal(gsort_open(&sort), 0);
	refused(sort, gsort_set(sort, "lines", "yes"), -EINVAL, "lines takes no value: 'yes'");
	good(sort, gsort_set(sort, "lines", ""));
	good(sort, gsort_set(sort, "lines", NULL));
	refused(sort, gsort_set(sort, "field-seperator", ","), -EINVAL,
		"unknown option 'field-seperator' of lines; did you mean field-separator?");
	refused(sort, gsort_set_type(sort, "u64"), -EINVAL, "unknown option 'type' of lines");
	refused(sort, gsort_set(sort, "check", NULL), -ENOTSUP,
		"-c, --check: only for programs, see gsort_set_from_cli()");
	refused(sort, gsort_set(sort, "C", NULL), -ENOTSUP,
		"-C: only for programs, see gsort_set_from_cli()");
	refused(sort, gsort_set(sort, "key", NULL), -EINVAL,
		"-k, --key requires a value, POS1[,POS2]");
	refused(sort, gsort_set(sort, "stable", "1"), -EINVAL, "-s, --stable takes no value: '1'");
	refused(sort, gsort_set(sort, "limit", "x"), -EINVAL, "--limit: 'x' is not a number");
	assert_null(gsort_get_set(sort, "limit"));
	good(sort, gsort_set(sort, "t", ","));
	assert_string_equal(gsort_get_set(sort, "field-separator"), ",");
	gsort_close(sort);
}

TEST(test_refused_sort_can_be_corrected)
{
	struct gsort *sort = open_lines();

	write_file(in_path, "10\n9\n", 5);
	good(sort, gsort_set(sort, "n", NULL));
	good(sort, gsort_set(sort, "count", NULL));
	good(sort, gsort_add_input_path(sort, in_path));
	good(sort, gsort_set_output_path(sort, out_path));
	refused(sort, gsort_run(sort), -EINVAL, "--count requires -u, --unique");
	good(sort, gsort_set_unique(sort));
	good(sort, gsort_run(sort));
	refused(sort, gsort_set(sort, "stable", NULL), -EBUSY, "-s, --stable: the sort has begun");
	gsort_close(sort);
	expect_file(out_path, "      1 9\n      1 10\n");
}

TEST(test_missing_input)
{
	struct gsort *sort = open_lines();

	good(sort, gsort_add_input_path(sort, "/nowhere/lines"));
	good(sort, gsort_set_output_path(sort, out_path));
	refused(sort, gsort_run(sort), -ENOENT,
		"/nowhere/lines: cannot open: No such file or directory");
	gsort_close(sort);
}

static struct gsort *open_with_checkpoint(const char *temp_limit)
{
	struct gsort *sort = open_lines();

	good(sort, gsort_set(sort, "checkpoint", checkpoint_path));
	good(sort, gsort_set(sort, "buffer-size", "4M"));
	good(sort, gsort_set(sort, "temp-limit", temp_limit));
	good(sort, gsort_add_input_path(sort, in_path));
	good(sort, gsort_set_output_path(sort, out_path));
	return sort;
}

TEST(test_sort_without_temporary_space_is_resumed_with_more)
{
	struct gsort *sort = open_with_checkpoint("1M");
	char *sorted = malloc(N * LINE_NBYTES);
	FILE *file;

	write_file(in_path, text, N * LINE_NBYTES);
	assert_int_equal(gsort_run(sort), -ENOSPC);
	gsort_close(sort);
	assert_int_equal(access(checkpoint_path, F_OK), 0);
	sort = open_with_checkpoint("1G");
	good(sort, gsort_run(sort));
	gsort_close(sort);
	assert_int_equal(access(checkpoint_path, F_OK), -1);
	file = fopen(out_path, "r");
	assert_non_null(file);
	assert_int_equal(fread(sorted, 1, N * LINE_NBYTES, file), N * LINE_NBYTES);
	assert_int_equal(fgetc(file), EOF);
	fclose(file);
	assert_memory_equal(sorted, sorted_text, N * LINE_NBYTES);
	free(sorted);
}

TEST(test_streams_cannot_be_resumed)
{
	struct gsort *sort = open_lines();

	good(sort, gsort_set(sort, "checkpoint", checkpoint_path));
	good(sort, gsort_set_output_path(sort, out_path));
	refused(sort, gsort_put(sort, "b\na\n", 4), -EINVAL,
		"--checkpoint requires paths as inputs, not gsort_put()");
	gsort_close(sort);
	sort = open_lines();
	good(sort, gsort_set(sort, "checkpoint", checkpoint_path));
	good(sort, gsort_add_input_fd(sort, 0));
	good(sort, gsort_set_output_path(sort, out_path));
	refused(sort, gsort_run(sort), -EINVAL,
		"--checkpoint requires paths as inputs, not descriptor 0");
	gsort_close(sort);
}

TEST(test_option_arguments)
{
	static const char *const arguments[][2] = {
		{ "buffer-size", "SIZE" }, { "device-memory", "SIZE" }, { "temp-limit", "SIZE" },
		{ "batch-size", "N" },     { "key", "POS1[,POS2]" },    { "unique", NULL },
	};
	struct gsort_option option;

	for (size_t i = 0; i < sizeof arguments / sizeof arguments[0]; i++) {
		unsigned row = 0;

		do
			assert_int_equal(gsort_get_line_option(row++, &option, sizeof option), 0);
		while (strcmp(option.name, arguments[i][0]) != 0);
		if (arguments[i][1])
			assert_string_equal(option.argument, arguments[i][1]);
		else
			assert_null(option.argument);
	}
}

TEST(test_option_rows)
{
	struct gsort_option option;
	unsigned i = 0;

	for (; gsort_get_line_option(i, &option, sizeof option) == 0; i++) {
		struct gsort *sort = open_lines();
		const int r = gsort_set(sort, option.name, NULL);

		assert_true(option.cli_only                          ? r == -ENOTSUP :
			    option.argument && !option.default_value ? r == -EINVAL :
								       r == 0);
		gsort_close(sort);
	}
	assert_true(i > 30);
	assert_int_equal(gsort_get_line_option(i, &option, sizeof option), -ENOENT);
}

GROUP_FIXTURE(start, finish)
