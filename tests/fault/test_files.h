/*
 * test_files - whole files, read, written and compared by the test itself
 *
 * A test that cannot do that ends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Of a file, or a part of it. */
struct byte_buffer {
	void *data;
	size_t nbytes;
};

/* End the test with a message to `test_error_fd` and errno's text if it does not hold. */
void require(bool condition, const char *what);

/* A descriptor; standard error at first. */
extern int test_error_fd;

void write_file(const char *path, const void *data, size_t nbytes);
void write_zst(const char *path, struct byte_buffer bytes);
void write_gzip(const char *path, struct byte_buffer bytes);

/* All of a file; data to be freed, NULL if there is none. */
struct byte_buffer read_file(const char *path);

bool bytes_equal(struct byte_buffer actual, const void *data, size_t nbytes);
bool file_contains(const char *path, const void *data, size_t nbytes);

/* The same when the file is compressed. */
bool zst_contains(const char *path, const void *data, size_t nbytes);

/*
 * Names in a directory, with "." and "..", and the last that is not among the `known` (separated,
 * and surrounded, by blanks).
 */
unsigned count_directory_entries(const char *path, const char *known_names,
				 char unknown_name[static 256]);
