/*
 * test_files - whole files, read, written and compared by the test itself
 *
 * A test that cannot do that ends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Of a file, or a part of it. */
struct bytes {
	void *data;
	size_t nbytes;
};

/* End the test with a message to `contents_complaints` and errno's text if it does not hold. */
void must(bool holds, const char *what);

/* A descriptor; standard error at first. */
extern int contents_complaints;

void write_file(const char *path, const void *data, size_t nbytes);
void write_zst(const char *path, struct bytes bytes);

/* All of a file; data to be freed, NULL if there is none. */
struct bytes read_file(const char *path);

bool bytes_hold(struct bytes found, const void *data, size_t nbytes);
bool file_holds(const char *path, const void *data, size_t nbytes);

/* The same when the file is compressed. */
bool zst_holds(const char *path, const void *data, size_t nbytes);

/*
 * Names in a directory, with "." and "..", and the last that is not among the `known` (separated,
 * and surrounded, by blanks).
 */
unsigned count_names(const char *path, const char *known, char unknown[static 256]);
