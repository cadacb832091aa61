/*
 * target_check - what has the name that a new file is to take
 *
 * Found when the output is opened, and looked at again when it is complete: in between others may
 * have written to it, put another file there, or made the path lead elsewhere. Then nothing is
 * replaced. Symbolic links are followed: the name is the one at their end, there or not.
 *
 * All functions print their message, but where it says so.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "io/file/file.h"

struct replaced {
	const char *path;      /* as given, for messages */
	struct file directory; /* of the name; by path only */
	char *name;            /* in it */
	bool has_old;
	struct stat old;
	struct file old_file; /* for its attributes; open if it has_old */
};

/*
 * Follow the path, which must outlive this, and see that a rename there would be allowed. old: what
 * stat() said about the file that is there; NULL: there is none. Returns 0 or a negative errno,
 * with a message or without; to be forgotten in any case.
 */
int replaced_find(const struct syscalls *calls, const char *path, const struct stat *old,
		  struct replaced *ret_replaced);

/*
 * Is what has the name still what was there at first, or nothing, and does the path lead there? 0,
 * -EBUSY after a message, or -ENOMEM without one.
 */
int replaced_check(const struct replaced *replaced);

/* There is a file now where there was none. -EBUSY. */
int replaced_fail_taken(const struct replaced *replaced);

void replaced_forget(struct replaced *replaced);
