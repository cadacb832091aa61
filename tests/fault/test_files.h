/*
 * test_files.h - read, write and compare whole files in a test
 *
 * An error ends the test.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The content of a file, or a part of it. */
struct byte_buffer {
	void *data;
	size_t nbytes;
};

/* If the condition is false, print `what` and errno to test_error_fd and end the test. */
void require(bool condition, const char *what);

/* The descriptor for messages of the test; initially standard error. */
extern int test_error_fd;

void write_file(const char *path, const void *data, size_t nbytes);
void write_zst(const char *path, struct byte_buffer bytes);
void write_gzip(const char *path, struct byte_buffer bytes);

/* Read a file. The caller frees the data, which is NULL if there is no file. */
struct byte_buffer read_file(const char *path);

bool bytes_equal(struct byte_buffer actual, const void *data, size_t nbytes);
bool file_contains(const char *path, const void *data, size_t nbytes);

/* Like file_contains(), for a compressed file. */
bool zst_contains(const char *path, const void *data, size_t nbytes);

/*
 * Count the names in a directory, with "." and "..", and get the last one that is not among
 * known_names (separated and surrounded by blanks); "" if there is none.
 */
unsigned count_directory_entries(const char *path, const char *known_names,
				 char unknown_name[static 256]);
