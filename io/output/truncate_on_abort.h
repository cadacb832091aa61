/*
 * truncate_on_abort - files that others have opened for us, for whoever has to cut them back in a hurry
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
enum { CUT_BACKS_MOST = 16 };

/* Zeroed: none. */
struct cut_back {
	atomic_bool taken;
	atomic_bool live;
	int fd;
	uint64_t begin;               /* of the output, and the end of what was there before */
	atomic_uint_least64_t behind; /* what is written or reserved cannot go beyond */
};

/* Of a process. Zeroed: none. Any thread. */
struct cut_backs {
	struct cut_back all[CUT_BACKS_MOST];
	atomic_bool is_cutting;
	atomic_bool has_cut;
};

/*
 * The regular file of that descriptor, open for writing, ends at `begin`, where an output begins.
 * Not in the table, and at `own`, if there is none or it is full. cut_back_give_up() is due before
 * the descriptor is closed.
 */
struct cut_back *cut_back_take(struct cut_backs *cuts, int fd, uint64_t begin,
			       struct cut_back *own);

/* Something up to `end` of the file is going to be written or reserved. */
void cut_back_reach(struct cut_back *cut, uint64_t end);

/*
 * Has the file grown since, and no further than we can have made it? What is longer somebody else
 * has written to, whose bytes stay. Async-signal-safe.
 */
bool cut_back_is_ours(const struct cut_back *cut);

/* It is complete, or was cut. Does not return once the table's files are being cut. */
void cut_back_give_up(struct cut_backs *cuts, struct cut_back *cut);

/*
 * The process is about to end: cut all that there are at the moment. If that is one, the process
 * cannot make a file grow any more. Async-signal-safe.
 */
void cut_back_all(struct cut_backs *cuts);

/* Does not return if that has been done: what fails then, fails of it. NULL is fine. */
void cut_back_wait_for_end(const struct cut_backs *cuts);
