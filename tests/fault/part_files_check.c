/*
 * part_files_check.c - write and check the part files of an output (see part_files_check.h)
 */
#include "tests/fault/part_files_check.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/input/part_manifest.h"
#include "src/record/digest.h"
#include "tests/fault/sort_scenarios.h"

const char test_part_file_names[] = " divided ";

static void remove_directory(const char *path)
{
	DIR *directory = opendir(path);
	const struct dirent *entry;

	while (directory && (entry = readdir(directory)))
		unlinkat(dirfd(directory), entry->d_name, 0);
	if (directory)
		closedir(directory);
	rmdir(path);
}

void test_part_files_remove(void)
{
	DIR *directory = opendir(".");
	const struct dirent *entry;

	require(directory != NULL, ".");
	while ((entry = readdir(directory)))
		if (strcmp(entry->d_name, "divided") == 0 ||
		    strncmp(entry->d_name, ".gsort-temp-", 12) == 0)
			remove_directory(entry->d_name);
	closedir(directory);
}

static void format_old_manifest(char text[static 1024])
{
	int length = sprintf(text, "{\"gsort_part_manifest\": 1, \"content\": \"records\", "
				   "\"record_bytes\": 8, \"header_bytes\": 0, \"keys\": [], "
				   "\"records\": 0, \"part_files\": [");

	for (int i = 0; i < N_OLD_PARTS; i++)
		length += sprintf(text + length,
				  "%s{\"number\": %d, \"name\": \"part-%04d\", \"records\": 0, "
				  "\"bytes\": 7, \"checksum\": \"0000000000000000\"}",
				  i ? ", " : "", i, i);
	strcpy(text + length, "]}");
}

void test_part_files_write_old(void)
{
	char name[32], text[1024];

	test_part_files_remove();
	require(mkdir("divided", 0777) == 0, "divided");
	for (int i = 0; i < N_OLD_PARTS; i++) {
		sprintf(name, "divided/part-%04d", i);
		sprintf(text, "older %d", i);
		write_file(name, text, strlen(text));
	}
	format_old_manifest(text);
	write_file("divided/manifest.json", text, strlen(text));
}

bool test_part_files_are_old(void)
{
	char name[32], text[1024];

	for (int i = 0; i < N_OLD_PARTS; i++) {
		sprintf(name, "divided/part-%04d", i);
		sprintf(text, "older %d", i);
		if (!file_contains(name, text, strlen(text)))
			return false;
	}
	format_old_manifest(text);
	return file_contains("divided/manifest.json", text, strlen(text));
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
	char names[N][32], path[128], *text;

	require(mkdir("sorted-parts", 0777) == 0, "sorted-parts");
	for (uint64_t i = 0, begin = 0, end; i < N; i++, begin = end) {
		const unsigned char *records = (const unsigned char *)sorted.data + 8 * begin;

		end = manifest.n_records * (i + 1) / N;
		sprintf(names[i], "part-%04u", (unsigned)i);
		part_files[i] = (struct manifest_part){ .name = names[i],
							.n_records = end - begin,
							.nbytes = 8 * (end - begin) };
		for (uint64_t j = 0; j < end - begin; j++)
			part_files[i].checksum += digest_record(records + 8 * j, 8);
		snprintf(path, sizeof path, "sorted-parts/%s", names[i]);
		write_file(path, records, part_files[i].nbytes);
	}
	require(part_manifest_format(&manifest, &text) == 0, "sorted-parts/manifest.json");
	write_file("sorted-parts/manifest.json", text, strlen(text));
	free(text);
}

static bool is_manifest_correct(uint64_t nbytes)
{
	const struct byte_buffer text = read_file("divided/manifest.json");
	struct part_manifest manifest;
	uint64_t sum = 0;
	bool is_correct;

	if (!text.data)
		return false;
	is_correct = part_manifest_parse(text.data, text.nbytes, "divided/manifest.json",
					 &manifest) == 0 &&
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

		sprintf(name, "divided/part-%04d", i);
		part_file = read_file(name);
		is_correct = part_file.data && part_file.nbytes <= expected.nbytes - offset &&
			     memcmp(part_file.data, (const char *)expected.data + offset,
				    part_file.nbytes) == 0;
		offset += part_file.nbytes;
		free(part_file.data);
	}
	return is_correct && offset == expected.nbytes && access("divided/part-0003", F_OK) < 0;
}
