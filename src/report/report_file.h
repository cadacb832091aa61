/*
 * report_file.h - a text file that appears when it is complete
 *
 *	open -> (write to the stream) -> commit    the file is there
 *	                             \-> abort     an older file is unchanged
 *
 * It is written like the sort's output (io/output/output.h), so errors show before the sort. Paths
 * such as /dev/stdout and /dev/fd/3 are written directly.
 *
 * All functions report their errors.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct report_file;
struct syscalls;

/*
 * Open a file. calls and path must outlive it. Returns 0, or a negative errno; the caller must
 * commit or abort the file.
 */
int report_file_open(const struct syscalls *calls, const char *path, struct report_file **ret_file);

/*
 * Return the stream to write to, by one thread at a time; it must not be closed. Write errors are
 * reported by the commit.
 */
FILE *report_file_stream(const struct report_file *file);

/*
 * Give the complete text its name and free `file`, also after an error. output_is_complete: an
 * error message says so. Returns 0 or a negative errno after one message. NULL is fine.
 */
int report_file_commit(struct report_file *file, bool output_is_complete);

/* NULL is fine. */
void report_file_abort(struct report_file *file);
