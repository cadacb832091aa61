/*
 * test_verify.c - long keys are compared to their end, and ranges with the record before them
 */
#include "src/check/verify.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/open_input.h"
#include "tests/support/unit_test.h"

struct records {
	struct layout layout;
	unsigned char *bytes;
	uint64_t n;
};

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
			break; /* the reader has stopped */
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
		input_open(&syscalls_plain, &path, 1, records->layout.record_nbytes, &input), 0);
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

/* The keys of make_long(): a u16 that ascends slowly, then an i32be that descends. */
static const struct key two_keys[] = {
	{ .offset = 30, .nbytes = 2, .kind = KEY_UNSIGNED },
	{ .offset = 3, .nbytes = 4, .kind = KEY_SIGNED, .big_endian = true, .descending = true },
};

enum { LONG_NBYTES = 37, GROUP = 20 };

static void put_two_keys(struct records *records, uint64_t i, uint16_t first, int32_t second)
{
	unsigned char *record = records->bytes + i * LONG_NBYTES;

	record[30] = (unsigned char)first;
	record[31] = (unsigned char)(first >> 8);
	for (int byte = 0; byte < 4; byte++)
		record[3 + byte] = (unsigned char)((uint32_t)second >> (24 - 8 * byte));
}

static struct records make_long(uint64_t n)
{
	const struct layout_params request = { .record_nbytes = LONG_NBYTES,
					       .keys = two_keys,
					       .n_keys = 2 };
	struct records records = { .n = n };

	assert_int_equal(layout_make(&request, &records.layout), 0);
	records.bytes = malloc(n * LONG_NBYTES);
	assert_non_null(records.bytes);
	for (uint64_t i = 0; i < n * LONG_NBYTES; i++)
		records.bytes[i] = (unsigned char)(i * 2654435761u >> 13);
	for (uint64_t i = 0; i < n; i++)
		put_two_keys(&records, i, (uint16_t)(i / GROUP), 10 - (int32_t)(i % GROUP));
	return records;
}

static void free_long(struct records *records)
{
	free(records->bytes);
	layout_free(&records->layout);
}

TEST(long_records_of_bytes_are_compared_to_their_end)
{
	const struct key key = { .nbytes = 65536, .kind = KEY_BYTES, .big_endian = true };
	const struct key down = {
		.nbytes = 65536, .kind = KEY_BYTES, .big_endian = true, .descending = true
	};
	struct layout_params request = { .record_nbytes = 65536, .keys = &key, .n_keys = 1 };
	const struct verify_options options = { .n_threads = 2 };
	struct records records = { .n = 40 };

	records.bytes = calloc(records.n, 65536);
	assert_non_null(records.bytes);
	for (uint64_t i = 0; i < records.n; i++)
		records.bytes[i * 65536 + 65535] = (unsigned char)i;
	assert_int_equal(layout_make(&request, &records.layout), 0);
	assert_int_equal(check_file(&records, options).first_disorder, 0);
	assert_int_equal(check_pipe(&records, options).first_disorder, 0);
	records.bytes[20 * 65536 + 65535] = 0;
	assert_int_equal(check_file(&records, options).first_disorder, 21);
	assert_int_equal(check_pipe(&records, options).first_disorder, 21);
	layout_free(&records.layout);

	request.keys = &down;
	assert_int_equal(layout_make(&request, &records.layout), 0);
	assert_int_equal(check_file(&records, options).first_disorder, 2);
	free_long(&records);
}

TEST(ranges_are_checked_across_boundaries)
{
	struct records records = make_long(100);
	struct verify_edge edge;
	struct digest digest = { 0 };

	assert_int_equal(verify_edge_open(&records.layout, &edge), 0);
	assert_int_equal(verify_records(&records.layout, records.bytes, 50, &edge, &digest), 50);
	assert_int_equal(verify_records(&records.layout, records.bytes, 0, &edge, &digest), 0);
	assert_int_equal(verify_records(&records.layout, records.bytes + 50 * LONG_NBYTES, 50,
					&edge, &digest),
			 50);
	assert_true(digest_equal(digest, digest_of(&records)));
	assert_int_equal(verify_records(&records.layout, records.bytes, 3, &edge, &digest), 0);
	verify_edge_close(&edge);
	free_long(&records);
}

static int prepare(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN); /* a check that stops early closes its pipe */
	return 0;
}

GROUP_FIXTURE(prepare, NULL)
