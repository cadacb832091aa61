/*
 * report_file - a text beside the output, which appears when it is complete
 *
 *	open -> (write to the stream) -> commit    the file is there
 *	                             \-> abort     an older one is as it was
 *
 * It is an output like the sort's (io/output/output.h), so that it can be told before the sort
 * whether it can be written; only that /dev/stdout, /dev/fd/3 and their like are written to as they
 * stand.
 *
 * All functions print their message.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct report_file;
struct syscalls;

/*
 * calls: through which it is written (file.h), which must outlive it, as the path. Returns 0 and a
 * file to commit or abort, or a negative errno.
 */
int report_file_open(const struct syscalls *calls, const char *path, struct report_file **ret_file);

/* To write to, by one thread at a time; never to be closed. What fails is told by the commit. */
FILE *report_file_stream(const struct report_file *file);

/*
 * Give the complete text its name. Frees the file, whether it succeeds or not; NULL is fine.
 * output_is_complete: an error message says so. 0, or a negative errno after one message.
 */
int report_file_commit(struct report_file *file, bool output_is_complete);

/* NULL is fine. */
void report_file_abort(struct report_file *file);
