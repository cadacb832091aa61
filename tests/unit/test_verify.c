/*
 * test_verify - the first disorder is found exactly, and the digest is that of the records
 */
#include "src/verify.h"
#include "src/status.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Several pieces of several threads. */
enum { N_RECORDS = 300001 };

struct records {
	struct layout layout;
	unsigned char *bytes;
	uint64_t n;
};

static code_t ascending_code(uint64_t i)
{
	return 2 * i + 2;
}

static struct records make_ascending(const char *type, uint64_t n)
{
	struct records records = { .n = n };
	struct key key;

	assert_int_equal(key_parse_type(type, &key), 0);
	assert_int_equal(layout_make_plain(&key, &records.layout), 0);
	records.bytes = malloc(n * records.layout.record_nbytes + 1);
	assert_non_null(records.bytes);
	for (uint64_t i = 0; i < n; i++)
		layout_decode(&records.layout, ascending_code(i),
			      records.bytes + i * records.layout.record_nbytes);
	return records;
}

static void put(struct records *records, uint64_t i, code_t code)
{
	layout_decode(&records->layout, code, records->bytes + i * records->layout.record_nbytes);
}

struct writer {
	int fd;
	const struct records *records;
};

static void *write_records(void *arg)
{
	const struct writer *writer = arg;
	const size_t nbytes = writer->records->n * writer->records->layout.record_nbytes;

	for (size_t done = 0; done < nbytes;) {
		const ssize_t n = write(writer->fd, writer->records->bytes + done, nbytes - done);

		if (n <= 0)
			break; /* the reader had enough */
		done += (size_t)n;
	}
	close(writer->fd);
	return NULL;
}

static struct verify_result check_path(const struct records *records, const char *path,
				       struct verify_options options)
{
	struct verify_result result;
	struct input *input;

	options.layout = &records->layout;
	assert_int_equal(
		input_open(&io_engine_plain, &path, 1, records->layout.record_nbytes, &input), 0);
	assert_int_equal(verify_input(input, &options, &result), 0);
	input_close(input);
	return result;
}

static struct verify_result check_file(const struct records *records, struct verify_options options)
{
	char path[] = "/tmp/test_verify.XXXXXX";
	struct writer writer = { .fd = mkstemp(path), .records = records };
	struct verify_result result;

	assert_true(writer.fd >= 0);
	write_records(&writer);
	result = check_path(records, path, options);
	unlink(path);
	return result;
}

static struct verify_result check_pipe(const struct records *records, struct verify_options options)
{
	struct verify_result result;
	struct writer writer = { .records = records };
	char path[32];
	pthread_t thread;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	writer.fd = fds[1];
	assert_int_equal(pthread_create(&thread, NULL, write_records, &writer), 0);
	snprintf(path, sizeof path, "/dev/fd/%d", fds[0]);
	result = check_path(records, path, options);
	close(fds[0]);
	pthread_join(thread, NULL);
	return result;
}

static struct digest digest_of(const struct records *records)
{
	const uint64_t record_nbytes = records->layout.record_nbytes;
	struct digest digest = { .n_records = records->n };

	for (uint64_t i = 0; i < records->n; i++)
		digest.sum += digest_record(records->bytes + i * record_nbytes, record_nbytes);
	return digest;
}

static const char *const types[] = { "u16", "b3", "f32be", "u64", "b10", "i128" };

static void sorted_file_has_no_disorder(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof types / sizeof types[0]; i++) {
		/* 16 bits are used up early: fewer records there. */
		struct records records = make_ascending(types[i], i ? N_RECORDS : 30000);
		const struct verify_options options = { .strict = true, .n_threads = 3 };
		const struct verify_result file = check_file(&records, options);
		const struct verify_result stream = check_pipe(&records, options);

		assert_int_equal(file.first_disorder, 0);
		assert_int_equal(file.n_disorders, 0);
		assert_int_equal(file.n_duplicates, 0);
		assert_true(digest_equal(file.digest, digest_of(&records)));
		assert_int_equal(stream.first_disorder, 0);
		assert_true(digest_equal(stream.digest, digest_of(&records)));
		free(records.bytes);
	}
}

static void empty_and_single_record_are_sorted(void **state)
{
	(void)state;
	for (uint64_t n = 0; n < 2; n++) {
		struct records records = make_ascending("u64", n);
		const struct verify_options options = { .strict = true, .n_threads = 3 };

		assert_int_equal(check_file(&records, options).digest.n_records, n);
		assert_int_equal(check_pipe(&records, options).digest.n_records, n);
		assert_int_equal(check_file(&records, options).first_disorder, 0);
		free(records.bytes);
	}
}

/* A zero at every place where something begins or ends, and another one at the end of the file. */
static void first_disorder_is_exact(void **state)
{
	const uint64_t piece = VERIFY_THREAD_NBYTES / 8 - 1;
	const uint64_t places[] = { 1,
				    2,
				    511,
				    512,
				    513,
				    piece - 1,
				    piece,
				    piece + 1,
				    2 * piece - 1,
				    2 * piece,
				    2 * piece + 1,
				    250000,
				    N_RECORDS - 2,
				    N_RECORDS - 1 };

	(void)state;
	for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++)
		for (unsigned stop = 0; stop < 2; stop++) {
			struct records records = make_ascending("u64", N_RECORDS);
			const struct verify_options options = { .n_threads = 1 + i % 4,
								.stop_at_disorder = stop };

			put(&records, N_RECORDS - 1, 0);
			put(&records, places[i], 0);
			assert_int_equal(check_file(&records, options).first_disorder,
					 places[i] + 1);
			assert_int_equal(check_pipe(&records, options).first_disorder,
					 places[i] + 1);
			free(records.bytes);
		}
}

static void all_disorders_and_duplicates_are_counted(void **state)
{
	struct records records = make_ascending("u32", N_RECORDS);
	struct verify_options options = { .n_threads = 2 };
	struct verify_result result;

	(void)state;
	for (uint64_t i = 1000; i < N_RECORDS; i += 1000)
		put(&records, i, ascending_code(i - 1));
	put(&records, 777, 0);
	result = check_file(&records, options);
	assert_int_equal(result.n_duplicates, 300);
	assert_int_equal(result.n_disorders, 1);
	assert_int_equal(result.first_disorder, 778);
	options.strict = true;
	result = check_pipe(&records, options);
	assert_int_equal(result.n_duplicates, 300);
	assert_int_equal(result.n_disorders, 301);
	free(records.bytes);
}

static void equal_neighbours_are_disorder_only_if_strict(void **state)
{
	struct records records = make_ascending("u64", N_RECORDS);
	struct verify_options options = { .n_threads = 2 };

	(void)state;
	put(&records, 200000, ascending_code(199999));
	assert_int_equal(check_file(&records, options).first_disorder, 0);
	options.strict = true;
	assert_int_equal(check_file(&records, options).first_disorder, 200001);
	free(records.bytes);
}

static void shrunken_file_is_an_error(void **state)
{
	struct records records = make_ascending("u64", N_RECORDS);
	const struct verify_options options = { .layout = &records.layout, .n_threads = 2 };
	char path[] = "/tmp/test_verify.XXXXXX";
	const char *const paths[] = { path };
	struct writer writer = { .fd = mkstemp(path), .records = &records };
	struct verify_result result;
	struct input *input;

	(void)state;
	assert_true(writer.fd >= 0);
	write_records(&writer);
	status_reset(true);
	assert_int_equal(input_open(&io_engine_plain, paths, 1, 8, &input), 0);
	assert_int_equal(truncate(path, 1000000), 0);
	assert_true(verify_input(input, &options, &result) < 0);
	assert_non_null(strstr(status_last(), path));
	input_close(input);
	unlink(path);
	free(records.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sorted_file_has_no_disorder),
		cmocka_unit_test(empty_and_single_record_are_sorted),
		cmocka_unit_test(first_disorder_is_exact),
		cmocka_unit_test(all_disorders_and_duplicates_are_counted),
		cmocka_unit_test(equal_neighbours_are_disorder_only_if_strict),
		cmocka_unit_test(shrunken_file_is_an_error),
	};

	signal(SIGPIPE, SIG_IGN); /* a check that stops early leaves its pipe */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
