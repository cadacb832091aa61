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

const char parts_names[] = " output.0000 output.0001 output.0002 output.0003 output.0004 "
			   "output.parts ";

void parts_remove(void)
{
	DIR *directory = opendir(".");
	const struct dirent *entry;

	must(directory != NULL, ".");
	while ((entry = readdir(directory)))
		if (strncmp(entry->d_name, "output.", 7) == 0 ||
		    strncmp(entry->d_name, ".output.", 8) == 0)
			unlink(entry->d_name);
	closedir(directory);
}

static void older_list(char text[static 1024])
{
	int at = sprintf(text, "{\"gsort_part_manifest\": 1, \"content\": \"records\", "
			       "\"record_bytes\": 8, \"header_bytes\": 0, \"keys\": [], "
			       "\"records\": 0, \"part_files\": [");

	for (int i = 0; i < N_OLDER_PARTS; i++)
		at += sprintf(text + at,
			      "%s{\"number\": %d, \"name\": \"output.%04d\", \"records\": 0, "
			      "\"bytes\": 7, \"checksum\": \"0000000000000000\"}",
			      i ? ", " : "", i, i);
	strcpy(text + at, "]}");
}

void parts_put_older(void)
{
	char name[32], text[1024];

	parts_remove();
	for (int i = 0; i < N_OLDER_PARTS; i++) {
		sprintf(name, "output.%04d", i);
		sprintf(text, "older %d", i);
		write_file(name, text, strlen(text));
	}
	older_list(text);
	write_file("output.parts", text, strlen(text));
}

bool parts_are_older(void)
{
	char name[32], text[1024];

	for (int i = 0; i < N_OLDER_PARTS; i++) {
		sprintf(name, "output.%04d", i);
		sprintf(text, "older %d", i);
		if (!file_holds(name, text, strlen(text)))
			return false;
	}
	older_list(text);
	return file_holds("output.parts", text, strlen(text));
}

void parts_write_sorted(struct bytes sorted)
{
	enum { N = 3 };
	struct listed_part parts[N];
	struct key key = { .nbytes = 8, .kind = KEY_UNSIGNED };
	const struct parts_list list = { .record_nbytes = 8,
					 .keys = &key,
					 .n_keys = 1,
					 .n_records = sorted.nbytes / 8,
					 .parts = parts,
					 .n_parts = N };
	char names[N][32], *text;

	for (uint64_t i = 0, begin = 0, end; i < N; i++, begin = end) {
		const unsigned char *records = (const unsigned char *)sorted.data + 8 * begin;

		end = list.n_records * (i + 1) / N;
		sprintf(names[i], "sorted.%04u", (unsigned)i);
		parts[i] = (struct listed_part){ .name = names[i],
						 .n_records = end - begin,
						 .nbytes = 8 * (end - begin) };
		for (uint64_t j = 0; j < end - begin; j++)
			parts[i].checksum += digest_record(records + 8 * j, 8);
		write_file(names[i], records, parts[i].nbytes);
	}
	must(parts_list_format(&list, &text) == 0, "sorted.parts");
	write_file("sorted.parts", text, strlen(text));
	free(text);
}

static bool list_is_right(uint64_t nbytes)
{
	const struct bytes text = read_file("output.parts");
	struct parts_list list;
	uint64_t sum = 0;
	bool is_right;

	if (!text.data)
		return false;
	is_right = parts_list_parse(text.data, text.nbytes, "output.parts", &list) == 0 &&
		   list.n_parts == N_NEW_PARTS;
	for (size_t i = 0; is_right && i < list.n_parts; i++)
		sum += list.parts[i].nbytes;
	parts_list_free(&list);
	free(text.data);
	return is_right && sum == nbytes;
}

bool parts_hold(struct bytes right)
{
	bool is_right = list_is_right(right.nbytes);
	size_t at = 0;

	for (int i = 0; is_right && i < N_NEW_PARTS; i++) {
		char name[32];
		struct bytes part;

		sprintf(name, "output.%04d", i);
		part = read_file(name);
		is_right = part.data && part.nbytes <= right.nbytes - at &&
			   memcmp(part.data, (const char *)right.data + at, part.nbytes) == 0;
		at += part.nbytes;
		free(part.data);
	}
	return is_right && at == right.nbytes && access("output.0003", F_OK) < 0;
}
