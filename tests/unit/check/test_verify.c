/*
 * test_verify.c - the first disorder is found exactly, and the digest is that of the records
 */
#include "src/check/verify.h"
#include "tests/support/captured_messages.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/unit_test.h"
#include "tests/support/decode_key.h"

/* Several blocks for each of several threads. */
enum { N_RECORDS = 300001 };

struct records {
	struct layout layout;
	unsigned char *bytes;
	uint64_t n;
};

static encoded_key_t ascending_key(uint64_t i)
{
	return 2 * i + 2;
}

static struct records make_ascending(const char *type, uint64_t n)
{
	struct records records = { .n = n };
	struct key key;

	assert_int_equal(key_parse_type(type, &key), 0);
	assert_int_equal(layout_make_key_only(&key, &records.layout), 0);
	records.bytes = malloc(n * records.layout.record_nbytes + 1);
	assert_non_null(records.bytes);
	for (uint64_t i = 0; i < n; i++)
		layout_decode(&records.layout, ascending_key(i),
			      records.bytes + i * records.layout.record_nbytes);
	return records;
}

static void put(struct records *records, uint64_t i, encoded_key_t code)
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

static const char *const types[] = { "u16", "b3", "f32be", "u64", "b10", "i128" };

static void sorted_file_has_no_disorder(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof types / sizeof types[0]; i++) {
		/* There are only 65,536 keys of 16 bits, so use fewer records. */
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

/* Put a zero at each boundary of blocks and threads, and another one at the end of the file. */
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
		put(&records, i, ascending_key(i - 1));
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
	put(&records, 200000, ascending_key(199999));
	assert_int_equal(check_file(&records, options).first_disorder, 0);
	options.strict = true;
	assert_int_equal(check_file(&records, options).first_disorder, 200001);
	free(records.bytes);
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

static void records_are_ordered_by_all_their_keys(void **state)
{
	const uint64_t piece = VERIFY_THREAD_NBYTES / LONG_NBYTES - 1;
	const uint64_t places[] = { 1, GROUP - 1, piece - 1, piece, piece + 1, 2 * piece, 99999 };
	struct records records = make_long(100000);
	const struct verify_options options = { .strict = true, .n_threads = 3 };
	struct verify_result found = check_file(&records, options);

	(void)state;
	assert_int_equal(found.n_disorders, 0);
	assert_true(digest_equal(found.digest, digest_of(&records)));
	found = check_pipe(&records, options);
	assert_int_equal(found.n_disorders, 0);
	assert_true(digest_equal(found.digest, digest_of(&records)));
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		const uint64_t at = places[i];

		/*
		 * Make the second key one too large: a disorder within the group, or an equal key.
		 */
		put_two_keys(&records, at, (uint16_t)(at / GROUP), 12 - (int32_t)(at % GROUP));
		if (at % GROUP) {
			assert_int_equal(check_file(&records, options).first_disorder, at + 1);
			assert_int_equal(check_pipe(&records, options).first_disorder, at + 1);
		}
		put_two_keys(&records, at, (uint16_t)(at / GROUP), 10 - (int32_t)(at % GROUP));
	}
	free_long(&records);
}

static void records_with_equal_keys_are_duplicates(void **state)
{
	struct records records = make_long(1000);
	struct verify_options options = { .n_threads = 2 };

	(void)state;
	put_two_keys(&records, 501, 500 / GROUP, 10 - 500 % GROUP);
	assert_int_equal(check_file(&records, options).n_duplicates, 1);
	assert_int_equal(check_file(&records, options).n_disorders, 0);
	options.strict = true;
	assert_int_equal(check_file(&records, options).first_disorder, 502);
	free_long(&records);
}

static void long_records_of_bytes_are_compared_to_their_end(void **state)
{
	const struct key key = { .nbytes = 65536, .kind = KEY_BYTES, .big_endian = true };
	const struct key down = {
		.nbytes = 65536, .kind = KEY_BYTES, .big_endian = true, .descending = true
	};
	struct layout_params request = { .record_nbytes = 65536, .keys = &key, .n_keys = 1 };
	const struct verify_options options = { .n_threads = 2 };
	struct records records = { .n = 40 };

	(void)state;
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

static int read_items(void *context, uint64_t position, void *buffer, size_t nbytes)
{
	memcpy(buffer, (const unsigned char *)context + position, nbytes);
	return 0;
}

/* Items begin with a count, which is not part of their digest. */
static void items_are_compared_by_the_keys_within_them(void **state)
{
	const struct layout_params request = {
		.record_nbytes = LONG_NBYTES, .keys = two_keys, .n_keys = 2, .count = true
	};
	struct records records = make_long(100);
	const struct verify_options options = { .layout = &records.layout, .n_threads = 1 };
	struct verify_result found;
	unsigned char *items;

	(void)state;
	layout_free(&records.layout);
	assert_int_equal(layout_make(&request, &records.layout), 0);
	items = malloc(records.n * records.layout.item_nbytes);
	assert_non_null(items);
	for (uint64_t i = 0; i < records.n; i++) {
		unsigned char *item = items + i * records.layout.item_nbytes;

		layout_project_record(&records.layout, records.bytes + i * LONG_NBYTES, i, item);
		layout_set_item_count(&records.layout, item, 1000 - i);
	}
	assert_int_equal(verify_output(read_items, items, records.n * records.layout.item_nbytes,
				       &options, &found),
			 0);
	assert_int_equal(found.n_disorders, 0);
	assert_int_equal(found.n_duplicates, 0);
	assert_int_equal(found.counts_sum, 100 * 1000 - 99 * 100 / 2);
	assert_true(digest_equal(found.digest, digest_of(&records)));
	free(items);
	free_long(&records);
}

static void ranges_are_checked_across_boundaries(void **state)
{
	struct records records = make_long(100);
	struct verify_edge edge;
	struct digest digest = { 0 };

	(void)state;
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
	captured_messages_reset(true);
	assert_int_equal(input_open(&syscalls_plain, paths, 1, 8, &input), 0);
	assert_int_equal(truncate(path, 1000000), 0);
	assert_true(verify_input(input, &options, &result) < 0);
	assert_non_null(strstr(captured_messages_error(), path));
	input_close(input);
	unlink(path);
	free(records.bytes);
}

static int prepare(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN); /* a check that stops early closes its pipe */
	return 0;
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(sorted_file_has_no_disorder),
	cmocka_unit_test(empty_and_single_record_are_sorted),
	cmocka_unit_test(first_disorder_is_exact),
	cmocka_unit_test(all_disorders_and_duplicates_are_counted),
	cmocka_unit_test(equal_neighbours_are_disorder_only_if_strict),
	cmocka_unit_test(records_are_ordered_by_all_their_keys),
	cmocka_unit_test(records_with_equal_keys_are_duplicates),
	cmocka_unit_test(long_records_of_bytes_are_compared_to_their_end),
	cmocka_unit_test(items_are_compared_by_the_keys_within_them),
	cmocka_unit_test(ranges_are_checked_across_boundaries),
	cmocka_unit_test(shrunken_file_is_an_error),
};

UNIT_TESTS(verify, tests, prepare, NULL)
