/*
 * truncate_on_abort - files that others have opened for us, for whoever has to cut them back in a
 * hurry
 *
 * What is written in place (`> file`) grows under the eyes of whoever looks. When the output is
 * given up, it is cut to where it began, if nothing was behind that. A signal that ends the process
 * leaves no time for that: a front end that handles signals lends a table (struct syscalls), and
 * its handler cuts what is in it.
 *
 * Other threads go on writing meanwhile. So first the limit on the size of files (RLIMIT_FSIZE)
 * becomes zero for the whole process. File systems look at it when they have locked the file for a
 * write or an allocation, and cutting takes the same lock: what has passed the limit is complete
 * before the cut, and what comes behind fails. Nothing here waits for another thread, which may be
 * the one that the handler has interrupted. A descriptor that is closed could be that of another
 * file in the next moment: who gives a file up waits for the end once the handler has begun.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* As many as there may be sorts at a time whose output is in place; others are not cut. */
enum { TRUNCATE_MAX_ENTRIES = 16 };

/* Zeroed: none. */
struct truncate_entry {
	atomic_bool in_use;
	atomic_bool is_active;
	int fd;
	uint64_t start;                /* of the output, and the end of what was there before */
	atomic_uint_least64_t max_end; /* what is written or reserved cannot go beyond */
};

/* Of a process. Zeroed: none. Any thread. */
struct truncate_table {
	struct truncate_entry entries[TRUNCATE_MAX_ENTRIES];
	atomic_bool is_running;
	atomic_bool has_truncated;
};

/*
 * The regular file of that descriptor, open for writing, ends at `begin`, where an output begins.
 * Not in the table, and at `own`, if there is none or it is full. truncate_unregister() is due
 * before the descriptor is closed.
 */
struct truncate_entry *truncate_register(struct truncate_table *table, int fd, uint64_t start,
					 struct truncate_entry *fallback);

/* Something up to `end` of the file is going to be written or reserved. */
void truncate_extend(struct truncate_entry *entry, uint64_t end);

/*
 * Has the file grown since, and no further than we can have made it? What is longer somebody else
 * has written to, whose bytes stay. Async-signal-safe.
 */
bool truncate_is_unmodified(const struct truncate_entry *entry);

/* It is complete, or was cut. Does not return once the table's files are being cut. */
void truncate_unregister(struct truncate_table *table, struct truncate_entry *entry);

/*
 * The process is about to end: cut all that there are at the moment. If that is one, the process
 * cannot make a file grow any more. Async-signal-safe.
 */
void truncate_run(struct truncate_table *table);

/* Does not return if that has been done: what fails then, fails of it. NULL is fine. */
void truncate_wait_for_exit(const struct truncate_table *table);
