/*
 * test_format_detect - other formats are detected, and records are not taken for them
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "io/input/format_detect.h"
#include "tests/support/unit_test.h"

/* A file of these bytes. */
struct byte_string {
	const void *data;
	size_t nbytes;
};

static int read_bytes(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
	const struct byte_string *bytes = context;

	assert_true(offset + nbytes <= bytes->nbytes);
	memcpy(buffer, (const char *)bytes->data + offset, nbytes);
	return 0;
}

static struct format_view view_of(struct byte_string *bytes, bool is_pipe)
{
	const size_t n = bytes->nbytes;

	return (struct format_view){
		.head = bytes->data,
		.head_nbytes = n < FORMAT_HEAD_NBYTES ? n : FORMAT_HEAD_NBYTES,
		.nbytes = is_pipe ? FORMAT_SIZE_UNKNOWN : n,
		.context = bytes,
		.read_at = is_pipe ? NULL : read_bytes,
	};
}

/* Returns the name of the format; NULL: records. */
static const char *detect(const void *data, size_t nbytes, bool is_pipe, struct format_rules rules)
{
	struct byte_string bytes = { data, nbytes };
	const struct format_view view = view_of(&bytes, is_pipe);
	const struct format *format;

	assert_int_equal(format_detect(&view, &rules, &format), 0);
	return format ? format->name : NULL;
}

static void assert_format(const char *name, const void *data, size_t nbytes)
{
	const struct format_rules automatic = { 0 };

	for (unsigned is_pipe = 0; is_pipe < 2; is_pipe++) {
		const char *format = detect(data, nbytes, is_pipe, automatic);

		if (!name)
			assert_null(format);
		else
			assert_string_equal(format ? format : "records", name);
	}
	assert_null(detect(data, nbytes, false, (struct format_rules){ .mode = FORMAT_RAW }));
}

/* The beginning of a file of zeros. */
struct sample {
	const char *name;
	const char *bytes;
	size_t n;
};
#define SAMPLE(name, bytes)                                                                        \
	{                                                                                          \
		name, bytes, sizeof(bytes) - 1                                                     \
	}

static const struct sample samples[] = {
	SAMPLE("compressed by gzip", "\x1f\x8b\x08\x08\x11\x22\x33\x44\x02\x03name\0"),
	SAMPLE("compressed by gzip", "\x1f\x8b\x08\0\0\0\0\0\0\xff\x63"),
	SAMPLE("compressed by xz", "\xfd\x37zXZ\0\0\4"),
	SAMPLE("compressed by bzip2", "BZh9\x31\x41\x59\x26\x53\x59"),
	SAMPLE("compressed by bzip2", "BZh1\x17\x72\x45\x38\x50\x90"),
	SAMPLE("compressed by lz4", "\x04\x22\x4d\x18\x64\x40\xa7"),
	SAMPLE("compressed by Zstandard", "\x28\xb5\x2f\xfd\x24\x09"),
	SAMPLE("a zip archive", "PK\3\4\x14\0\0\0\x08\0.........\0\0\0\0\0\0\0\x05\0\0\0a.npy"),
	SAMPLE("a 7z archive", "7z\xbc\xaf\x27\x1c\0\4"),
	SAMPLE("an Arrow file", "ARROW1\0\0\xff\xff\xff\xff"),
	SAMPLE("a SQLite database", "SQLite format 3\0\x10\0"),
	SAMPLE("an HDF5 file", "\x89HDF\r\n\x1a\n\0"),
	SAMPLE("a .npy file", "\x93NUMPY\1\0v\0{'descr': '<f8', 'fortran_order': False, "),
};

TEST(other_formats_are_recognised_in_files_and_pipes)
{
	static char file[3 * FORMAT_HEAD_NBYTES];

	for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
		memset(file, 0, sizeof file);
		memcpy(file, samples[i].bytes, samples[i].n);
		assert_format(samples[i].name, file, sizeof file);
		assert_format(samples[i].name, file, 64);
	}
}

/* The bytes behind the signature are invalid: such files are numbers. */
TEST(signatures_alone_are_numbers)
{
	static const struct sample numbers[] = {
		SAMPLE(NULL, "\x1f\x8b\x08\xe0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), /* flags */
		SAMPLE(NULL, "\x1f\x8b\x08\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0"),   /* extra flags */
		SAMPLE(NULL, "\x1f\x8b\x08\0\0\0\0\0\0\x77\0\0\0\0\0\0\0\0\0\0"), /* system */
		SAMPLE(NULL, "\x1f\x8b\x08\0\0\0\0\0\0\3\7\0\0\0\0\0\0\0\0\0"),   /* block */
		SAMPLE(NULL, "\xfd\x37zXZ\0\1\4"),                                /* flags */
		SAMPLE(NULL, "\xfd\x37zXZ\0\0\x14"),
		SAMPLE(NULL, "BZh9\0\0\0\0\0\0\0\0\0\0\0\0"),
		SAMPLE(NULL, "\x04\x22\x4d\x18\0\0\0\0"),
		SAMPLE(NULL, "PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
		SAMPLE(NULL, "PAR1\0\0\0\0\0\0\0\0\0\0\0\0"),
		SAMPLE(NULL, "ARROW1\1\0"),
		SAMPLE(NULL, "\x93NUMP"),
	};

	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		assert_format(NULL, numbers[i].bytes, numbers[i].n);
}

TEST(parquet_is_seen_at_both_ends)
{
	static char file[3 * FORMAT_HEAD_NBYTES] = "PAR1\x15\4\x15";
	char *const end = file + sizeof file - 8;

	/* The end of a pipe is not visible. */
	assert_string_equal(detect(file, sizeof file, true, (struct format_rules){ 0 }),
			    "a Parquet file");
	assert_null(detect(file, sizeof file, false, (struct format_rules){ 0 }));
	memcpy(end, "\0\1\0\0PAR1", 8);
	assert_format("a Parquet file", file, sizeof file);
	memcpy(end, "\0\1\1\1PAR1", 8); /* larger than the file */
	assert_null(detect(file, sizeof file, false, (struct format_rules){ 0 }));
}

TEST(hdf5_may_follow_a_user_block)
{
	static char file[3 * FORMAT_HEAD_NBYTES];

	for (size_t at = 512; at < FORMAT_HEAD_NBYTES; at *= 2) {
		memset(file, 0, sizeof file);
		memcpy(file + at, "\x89HDF\r\n\x1a\n", 8);
		assert_format("an HDF5 file", file, sizeof file);
	}
	memset(file, 0, sizeof file);
	memcpy(file + 520, "\x89HDF\r\n\x1a\n", 8);
	assert_format(NULL, file, sizeof file);
}

TEST(random_numbers_are_records)
{
	static uint64_t numbers[FORMAT_HEAD_NBYTES / 8];
	uint64_t x = 88172645463325252;

	for (size_t i = 0; i < 200000; i++) {
		const size_t n = i % 16 ? 2 + i % 6 : FORMAT_HEAD_NBYTES / 8;

		for (size_t k = 0; k < (n < 8 ? n : 8); k++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			numbers[k] = x;
		}
		assert_null(
			detect(numbers, n * 8, false, (struct format_rules){ .is_untyped = true }));
	}
}

/* --- Zstandard --- */

enum { SKIPPABLE = 0x184d2a50, CONTENT = (int)0xfd2fb528 };

/* is_pipe: only the head is visible. */
static bool is_zstandard(const void *data, size_t nbytes, bool is_pipe)
{
	const char *name = detect(data, nbytes, is_pipe, (struct format_rules){ 0 });

	return name && strcmp(name, "compressed by Zstandard") == 0;
}

TEST(numbers_that_begin_as_skippable_frames_are_records)
{
	static uint32_t numbers[5000];

	for (uint32_t magic = SKIPPABLE; magic < SKIPPABLE + 16; magic++) {
		for (unsigned i = 0; i < 5000; i++)
			numbers[i] = magic + i;
		for (uint32_t nbytes = 0; nbytes < 20100; nbytes += 100) {
			numbers[1] = nbytes;
			assert_false(is_zstandard(numbers, sizeof numbers, false));
			assert_false(is_zstandard(numbers, 4000, true));
		}
		numbers[1] = UINT32_MAX;
		assert_false(is_zstandard(numbers, sizeof numbers, false));
	}
}

TEST(skippable_frames_alone_are_records)
{
	static uint64_t numbers[2000];

	for (size_t i = 0; i < 2000; i++)
		numbers[i] = SKIPPABLE; /* of size 0 */
	for (size_t n = 1; n < 600; n += 7) {
		assert_false(is_zstandard(numbers, n * 8, false));
		if (n * 8 < FORMAT_HEAD_NBYTES)
			assert_false(is_zstandard(numbers, n * 8, true));
	}
	/* The end is not visible: the decoder will find out. */
	assert_true(is_zstandard(numbers, sizeof numbers, true));
	assert_true(is_zstandard(numbers, sizeof numbers, false));
}

TEST(content_behind_skippable_frames_is_found)
{
	static uint32_t file[5000] = { SKIPPABLE + 1, 4, 7, SKIPPABLE + 15, 16000 };

	assert_false(is_zstandard(file, sizeof file, false));
	assert_true(is_zstandard(file, sizeof file, true)); /* not visible */
	file[3 + 2 + 4000] = (uint32_t)CONTENT;
	assert_true(is_zstandard(file, sizeof file, false));
	assert_true(is_zstandard(file, 4 * (3 + 2 + 4000 + 1), false));
	assert_false(is_zstandard(file, 4 * (3 + 2 + 4000), false));
}

static int cannot_read(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
	(void)context, (void)offset, (void)buffer, (void)nbytes;
	return -EIO;
}

TEST(unreadable_file_has_no_format)
{
	static uint32_t file[5000] = { SKIPPABLE, 16000 };
	const struct format_view view = { .head = (const unsigned char *)file,
					  .head_nbytes = FORMAT_HEAD_NBYTES,
					  .nbytes = sizeof file,
					  .read_at = cannot_read };
	const struct format_rules rules = { 0 };
	const struct format *format;

	assert_int_equal(format_detect(&view, &rules, &format), -EIO);
}

/* --- text --- */

static const char *detect_untyped(const char *text, size_t n)
{
	return detect(text, n, false, (struct format_rules){ .is_untyped = true });
}

TEST(keys_of_letters_are_no_text)
{
	static const char *const keys[] = { "ABCDEFGHIJKLMNOP",
					    "AAAA0001AAAA0002AAAA0003",
					    "1+2*3/45",
					    "1\n2\n3\n4\n6\n7\n8\n90",
					    "ABCDEFGH\nJKLMNOP",
					    "two lines\nand a byte\x01 of none\n",
					    "not UTF-8: \xc3(\n..........\n",
					    "\xe2\x82\n.............\n" };

	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		assert_null(detect_untyped(keys[i], strlen(keys[i])));
	assert_null(detect_untyped("zero\n\0..........\n", 17));
}

TEST(few_bytes_of_text_are_text)
{
	static const char *const texts[] = {
		"hi", "a\n", "no\n", "a-b\n", "EIGHT888", "1\n2\n3\n45"
	};

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		assert_string_equal(detect_untyped(texts[i], strlen(texts[i])), "text");
	assert_null(detect_untyped("", 0));
	assert_null(detect_untyped("a", 1));
}

TEST(long_text_may_be_cut_within_a_character)
{
	static char text[2 * FORMAT_HEAD_NBYTES];

	for (size_t first = 0; first < 4; first++) {
		memset(text, 'x', first);
		for (size_t i = first; i + 4 <= sizeof text; i += 4)
			memcpy(text + i, i % 64 < 4 ? "...\n" : "\xf0\x9f\x98\x80", 4);
		assert_string_equal(detect_untyped(text, sizeof text - 4), "text");
	}
}

/* --- known headers (--skip-bytes) --- */

static size_t make_npy(char file[static 256], const char *description, const char *shape)
{
	memset(file, ' ', 256);
	memcpy(file, "\x93NUMPY\1\0\xf6\0", 10);
	file[10 + sprintf(file + 10, "{'descr': %s, 'fortran_order': False, 'shape': %s, }",
			  description, shape)] = ' ';
	return 256;
}

TEST(header_of_skipped_size_is_accepted)
{
	const struct format_rules known = { .skip_nbytes = 256 }, wrong = { .skip_nbytes = 128 };
	const struct format_rules untyped = { .skip_nbytes = 256, .is_untyped = true };
	char file[256];

	for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
		const char *name = detect(samples[i].bytes, samples[i].n, false, known);

		if (strcmp(samples[i].name, "compressed by Zstandard") != 0 &&
		    strcmp(samples[i].name, "a .npy file") != 0)
			assert_null(name);
		else
			assert_string_equal(name, samples[i].name);
	}
	make_npy(file, "'<f8'", "(5,)");
	assert_null(detect(file, 256, false, known));
	assert_string_equal(detect(file, 256, false, wrong), "a .npy file");
	/* Without a type, floats would be sorted as u64. */
	assert_string_equal(detect(file, 256, false, untyped), "a .npy file");
	make_npy(file, "'<u8'", "(5,)");
	assert_null(detect(file, 256, false, untyped));
}
