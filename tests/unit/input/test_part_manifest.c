/*
 * test_part_manifest - part manifests survive writing and reading, and invalid ones are refused
 */
#include "io/input/part_manifest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/captured_messages.h"
#include "tests/support/unit_test.h"

static int parse(const char *text, struct part_manifest *ret_manifest)
{
	captured_messages_reset(true);
	return part_manifest_parse(text, strlen(text), "manifest.json", ret_manifest);
}

/* Lines have no records of fixed size, and no keys at offsets. */
TEST(manifest_of_lines_is_read)
{
	struct manifest_part parts[] = {
		{ .name = "part-0000", .n_records = 3, .nbytes = 51, .checksum = 7 },
		{ .name = "part-0001" },
	};
	const struct part_manifest manifest = { .content = PART_CONTENT_LINES,
						.order = (char *)"--lines -t, -k2,2n",
						.unique = true,
						.n_records = 3,
						.parts = parts,
						.n_parts = 2 };
	struct part_manifest read;
	char *text;

	assert_int_equal(part_manifest_format(&manifest, &text), 0);
	assert_int_equal(parse(text, &read), 0);
	assert_null(strstr(text, "record_bytes"));
	free(text);
	assert_int_equal(read.content, PART_CONTENT_LINES);
	assert_string_equal(read.order, manifest.order);
	assert_int_equal(read.record_nbytes, 0);
	assert_int_equal(read.n_records, 3);
	assert_int_equal(read.parts[0].checksum, 7);
	part_manifest_free(&read);
	assert_int_equal(parse("{\"gsort_part_manifest\":1,\"content\":\"lines\",\"records\":0,"
			       "\"keys\":[\"0:u8\"],\"part_files\":[{\"number\":0,\"name\":\"p\","
			       "\"records\":0,\"bytes\":0,\"checksum\":\"0000000000000000\"}]}",
			       &read),
			 -EINVAL);
	part_manifest_free(&read);
}

static int parse_ends(const char *last, const char *next, bool split_by_keys, uint32_t key_nbytes)
{
	struct key keys[] = { { .nbytes = key_nbytes, .kind = KEY_BYTES } };
	char first_key[] = "00", *last_key = strdup(last), *next_key = strdup(next);
	struct manifest_part parts[] = {
		{ .name = "part-0000",
		  .n_records = 1,
		  .nbytes = 8,
		  .first_key = first_key,
		  .last_key = last_key },
		{ .name = "part-0001" },
		{ .name = "part-0002",
		  .n_records = 1,
		  .nbytes = 8,
		  .first_key = next_key,
		  .last_key = next_key },
	};
	const struct part_manifest manifest = { .record_nbytes = 8,
						.keys = keys,
						.n_keys = 1,
						.split_by_keys = split_by_keys,
						.n_records = 2,
						.parts = parts,
						.n_parts = 3 };
	struct part_manifest read;
	char *text;
	int r;

	assert_int_equal(part_manifest_format(&manifest, &text), 0);
	r = parse(text, &read);
	part_manifest_free(&read);
	free(last_key);
	free(next_key);
	free(text);
	return r;
}

TEST(split_key_is_refused)
{
	assert_int_equal(parse_ends("01", "01", true, 1), -EINVAL);
	assert_int_equal(parse_ends("01", "02", true, 1), 0);
	assert_int_equal(parse_ends("01", "01", false, 1), 0);
	assert_int_equal(parse_ends("01", "01", true, 2), 0); /* truncated */
}

TEST(manifest_is_detected_by_its_prefix)
{
	static const char *const manifests[] = { "{\"gsort_part_manifest\":1",
						 "{\n \"gsort_part_manifest\" : 1",
						 " \t{ \"gsort_part_manifest\":" };
	static const char *const non_manifests[] = { "",
						     "{",
						     "{\"gsort_part_manifest\"",
						     "{\"gsort_part\": 1",
						     "[\"gsort_part_manifest\":",
						     "{\"a\": 1, \"gsort_part_manifest\": 1" };

	for (size_t i = 0; i < sizeof manifests / sizeof *manifests; i++)
		assert_true(part_manifest_detect(manifests[i], strlen(manifests[i])));
	for (size_t i = 0; i < sizeof non_manifests / sizeof *non_manifests; i++)
		assert_false(part_manifest_detect(non_manifests[i], strlen(non_manifests[i])));
	assert_false(part_manifest_detect("{\"gsort_part_manifest\":", 5));
	assert_false(part_manifest_detect("{\0\"gsort_part_manifest\":", 16));
}

#define BEGIN                                                                                      \
	"{\"gsort_part_manifest\": 1, \"content\": \"records\", \"record_bytes\": 8, "             \
	"\"header_bytes\": 0, "
#define KEYS "\"keys\": [\"0:u64\"], "
#define PART(number, name, records)                                                                \
	"{\"number\": " number ", \"name\": \"" name "\", \"records\": " records                   \
	", \"bytes\": 8, \"checksum\": \"0123456789abcdef\"}"

TEST(contradictory_manifest_is_refused)
{
	static const struct {
		const char *text, *message;
	} wrong[] = {
		{ BEGIN KEYS "\"records\": 1, \"part_files\": [" PART("0", "a", "1"), "not JSON" },
		{ "{\"gsort_part_manifest\": 7}", "version 7, not 1" },
		{ "{\"gsort_part_manifest\": \"1\"}", "no version" },
		{ "{\"gsort_part_manifest\": 1, \"gsort_part_manifest\": 1}", "occurs twice" },
		{ BEGIN "\"keys\": [], \"keys\": []}", "occurs twice" },
		{ BEGIN "\"records\": 1}}", "not JSON" },
		{ BEGIN "\"other\": }", "not JSON" },
		{ BEGIN "\"other\": [}", "not JSON" },
		{ "{\"gsort_part_manifest\": 1}", "does not describe its records" },
		{ BEGIN KEYS "\"records\": 1, \"part_files\": []}", "has no part files" },
		{ BEGIN KEYS "\"records\": 1}", "has no part files" },
		{ BEGIN KEYS "\"records\": 2, \"part_files\": [" PART("0", "a", "1") "]}",
		  "do not add up" },
		{ BEGIN KEYS "\"records\": 1, \"part_files\": [" PART("1", "a", "1") "]}",
		  "consecutive" },
		{ BEGIN KEYS "\"records\": 1, \"part_files\": [" PART("0", "../a", "1") "]}",
		  "plain file name" },
		{ BEGIN KEYS "\"records\": 1, \"part_files\": [" PART("0", "", "1") "]}",
		  "plain file name" },
		{ BEGIN KEYS "\"records\": 1, \"part_files\": [" PART("0", "..", "1") "]}",
		  "plain file name" },
		{ BEGIN KEYS "\"records\": 1, \"part_files\": [" PART("0", "a", "-1") "]}",
		  "has no records" },
		{ BEGIN KEYS "\"records\": 1, \"part_files\": [{\"number\": 0, \"name\": \"a\", "
			     "\"records\": 1,"
			     " \"bytes\": 8, \"checksum\": \"0123456789ABCDEF\"}]}",
		  "has no records" },
		{ BEGIN "\"keys\": [\"4:u64\"], \"records\": 0, \"part_files\": []}",
		  "a key does not fit" },
		{ BEGIN "\"keys\": [\"u64\"], \"records\": 0, \"part_files\": []}",
		  "an invalid key" },
		{ BEGIN "\"keys\": [\"0:u63\"], \"records\": 0, \"part_files\": []}",
		  "an invalid key" },
		{ BEGIN "\"keys\": [8], \"records\": 0, \"part_files\": []}", "an invalid key" },
		{ BEGIN "\"keys\": 8}", "no array" },
	};
	struct part_manifest manifest;

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_int_equal(parse(wrong[i].text, &manifest), -EINVAL);
		if (!strstr(captured_messages_error(), wrong[i].message))
			print_error("%s: %s\n", wrong[i].text, captured_messages_error());
		assert_non_null(strstr(captured_messages_error(), wrong[i].message));
		assert_non_null(strstr(captured_messages_error(), "manifest.json"));
		part_manifest_free(&manifest);
	}
	assert_int_equal(parse(BEGIN KEYS
			       "\"records\": 1, \"part_files\": [" PART("0", "a", "1") "]}",
			       &manifest),
			 0);
	part_manifest_free(&manifest);
}

/* Unknown members are skipped wherever they are, with all of their content. */
TEST(other_members_are_skipped)
{
	struct part_manifest manifest;

	assert_int_equal(
		parse("{\"gsort_part_manifest\": 1, \"part_files\": [" PART(
			      "0", "a",
			      "1") "], \"x\": [{\"]\": \"\\\"}\"}, [[]]], \"keys\": [\"0:u64\"],"
				   "\"y\": 1e3, \"content\": \"records\", \"record_bytes\": 8,"
				   "\"z\": \"\", \"header_bytes\": 0, \"records\": 1, "
				   "\"a\": null} ",
		      &manifest),
		0);
	assert_int_equal(manifest.n_parts, 1);
	assert_int_equal(manifest.n_keys, 1);
	part_manifest_free(&manifest);
}

/* The parsed values would need a hundred times their size. */
TEST(too_many_values_are_refused)
{
	enum { SIZE = 3 << 20 };
	static const char begin[] = "{\"gsort_part_manifest\": 1, \"x\": [[]";
	char *text = malloc(SIZE + 64);
	struct part_manifest manifest;
	struct rlimit limit, saved_limit;
	size_t length = sizeof begin - 1;

	memcpy(text, begin, length);
	for (; length < SIZE; length += 3)
		memcpy(text + length, ",[]", 3);
	strcpy(text + length, "]}");
	captured_messages_reset(true);
	assert_int_equal(getrlimit(RLIMIT_DATA, &saved_limit), 0);
	limit = saved_limit;
	limit.rlim_cur = 32 << 20;
	assert_int_equal(setrlimit(RLIMIT_DATA, &limit), 0);
	assert_int_equal(parse(text, &manifest), -EINVAL);
	assert_int_equal(setrlimit(RLIMIT_DATA, &saved_limit), 0);
	assert_non_null(strstr(captured_messages_error(), "more than 40000 values"));
	part_manifest_free(&manifest);
	free(text);
}

static int parse_n_parts(unsigned n)
{
	char *text = malloc(256 + 128 * (size_t)n);
	struct part_manifest manifest;
	size_t length;
	int r;

	length = (size_t)sprintf(text, BEGIN KEYS "\"records\": %u, \"part_files\": [", n);
	for (unsigned i = 0; i < n; i++)
		length += (size_t)sprintf(text + length,
					  "%s{\"number\": %u, \"name\": \"part-%04u\", "
					  "\"records\": 1, \"bytes\": 8, "
					  "\"checksum\": \"0123456789abcdef\"}",
					  i ? "," : "", i, i);
	strcpy(text + length, "]}");
	r = parse(text, &manifest);
	part_manifest_free(&manifest);
	free(text);
	return r;
}

TEST(more_parts_than_are_written_are_refused)
{
	assert_int_equal(parse_n_parts(PART_MANIFEST_MAX_PARTS), 0);
	assert_int_equal(parse_n_parts(PART_MANIFEST_MAX_PARTS + 1), -EINVAL);
	assert_non_null(strstr(captured_messages_error(), "more than 1000 part files"));
}

/* A sparse file of that size. */
TEST(oversized_manifest_is_not_read)
{
	FILE *stream = tmpfile();
	struct file file = { .calls = &syscalls_plain, .fd = fileno(stream) };
	struct part_manifest manifest;

	captured_messages_reset(true);
	assert_int_equal(ftruncate(file.fd, (4 << 20) + 1), 0);
	assert_int_equal(part_manifest_read(&file, "manifest.json", &manifest), -EFBIG);
	captured_messages_reset(true);
	assert_int_equal(ftruncate(file.fd, 4 << 20), 0);
	assert_int_equal(part_manifest_read(&file, "manifest.json", &manifest), -EINVAL);
	assert_non_null(strstr(captured_messages_error(), "is not a part manifest"));
	fclose(stream);
}
