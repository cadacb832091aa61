/*
 * part_files_check - the part files of an output (see part_files_check.h)
 */
#include "tests/fault/part_files_check.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/input/part_manifest.h"
#include "src/base/diagnostics.h"
#include "src/record/digest.h"
#include "tests/fault/sort_scenarios.h"

const char test_part_file_names[] = " output.0000 output.0001 output.0002 output.0003 output.0004 "
				    "output.parts ";

void test_part_files_remove(void)
{
	DIR *directory = opendir(".");
	const struct dirent *entry;

	require(directory != NULL, ".");
	while ((entry = readdir(directory)))
		if (strncmp(entry->d_name, "output.", 7) == 0 ||
		    strncmp(entry->d_name, ".output.", 8) == 0)
			unlink(entry->d_name);
	closedir(directory);
}

static void format_old_manifest(char text[static 1024])
{
	int length = sprintf(text, "{\"gsort_part_manifest\": 1, \"content\": \"records\", "
				   "\"record_bytes\": 8, \"header_bytes\": 0, \"keys\": [], "
				   "\"records\": 0, \"part_files\": [");

	for (int i = 0; i < N_OLD_PARTS; i++)
		length += sprintf(text + length,
				  "%s{\"number\": %d, \"name\": \"output.%04d\", \"records\": 0, "
				  "\"bytes\": 7, \"checksum\": \"0000000000000000\"}",
				  i ? ", " : "", i, i);
	strcpy(text + length, "]}");
}

void test_part_files_write_old(void)
{
	char name[32], text[1024];

	test_part_files_remove();
	for (int i = 0; i < N_OLD_PARTS; i++) {
		sprintf(name, "output.%04d", i);
		sprintf(text, "older %d", i);
		write_file(name, text, strlen(text));
	}
	format_old_manifest(text);
	write_file("output.parts", text, strlen(text));
}

bool test_part_files_are_old(void)
{
	char name[32], text[1024];

	for (int i = 0; i < N_OLD_PARTS; i++) {
		sprintf(name, "output.%04d", i);
		sprintf(text, "older %d", i);
		if (!file_contains(name, text, strlen(text)))
			return false;
	}
	format_old_manifest(text);
	return file_contains("output.parts", text, strlen(text));
}

void test_part_files_write_sorted(struct byte_buffer sorted)
{
	enum { N = 3 };
	struct manifest_part part_files[N];
	struct key key = { .nbytes = 8, .kind = KEY_UNSIGNED };
	const struct part_manifest manifest = { .record_nbytes = 8,
						.keys = &key,
						.n_keys = 1,
						.n_records = sorted.nbytes / 8,
						.parts = part_files,
						.n_parts = N };
	char names[N][32], *text;

	for (uint64_t i = 0, begin = 0, end; i < N; i++, begin = end) {
		const unsigned char *records = (const unsigned char *)sorted.data + 8 * begin;

		end = manifest.n_records * (i + 1) / N;
		sprintf(names[i], "sorted.%04u", (unsigned)i);
		part_files[i] = (struct manifest_part){ .name = names[i],
							.n_records = end - begin,
							.nbytes = 8 * (end - begin) };
		for (uint64_t j = 0; j < end - begin; j++)
			part_files[i].checksum += digest_record(records + 8 * j, 8);
		write_file(names[i], records, part_files[i].nbytes);
	}
	require(part_manifest_format(&manifest, &text) == 0, "sorted.parts");
	write_file("sorted.parts", text, strlen(text));
	free(text);
}

static bool is_manifest_correct(uint64_t nbytes)
{
	const struct byte_buffer text = read_file("output.parts");
	struct part_manifest manifest;
	uint64_t sum = 0;
	bool is_correct;

	if (!text.data)
		return false;
	is_correct = part_manifest_parse(text.data, text.nbytes, "output.parts", &manifest) == 0 &&
		     manifest.n_parts == N_NEW_PARTS;
	for (size_t i = 0; is_correct && i < manifest.n_parts; i++)
		sum += manifest.parts[i].nbytes;
	part_manifest_free(&manifest);
	free(text.data);
	return is_correct && sum == nbytes;
}

bool test_part_files_contain(struct byte_buffer expected)
{
	bool is_correct = is_manifest_correct(expected.nbytes);
	size_t offset = 0;

	for (int i = 0; is_correct && i < N_NEW_PARTS; i++) {
		char name[32];
		struct byte_buffer part_file;

		sprintf(name, "output.%04d", i);
		part_file = read_file(name);
		is_correct = part_file.data && part_file.nbytes <= expected.nbytes - offset &&
			     memcmp(part_file.data, (const char *)expected.data + offset,
				    part_file.nbytes) == 0;
		offset += part_file.nbytes;
		free(part_file.data);
	}
	return is_correct && offset == expected.nbytes && access("output.0003", F_OK) < 0;
}
