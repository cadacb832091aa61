/*
 * target_snapshot - what has the name that a new file is to take
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

struct target_snapshot {
	const char *path;       /* as given, for messages */
	struct file directory;  /* of the name; by path only */
	bool borrows_directory; /* it is the caller's, and the path does not lead there yet */
	char *name;             /* in it */
	bool had_file;
	struct stat old_status;
	struct file old_file; /* for its attributes; open if it had_file */
};

/*
 * Follow the path, which must outlive this, and see that a rename there would be allowed. old: what
 * stat() said about the file that is there; NULL: there is none. Returns 0 or a negative errno,
 * with a message or without; to be forgotten in any case.
 */
int target_snapshot_take(const struct syscalls *calls, const char *path, const struct stat *old,
			 struct target_snapshot *ret_target);

/*
 * Name a new file after the last component of `path` in `directory`, which stays open longer than
 * this. The path is only for messages. As above.
 */
int target_snapshot_take_in(const struct file *directory, const char *path,
			    struct target_snapshot *ret_target);

/*
 * Is what has the name still what was there at first, or nothing, and does the path lead there? 0,
 * -EBUSY after a message, or -ENOMEM without one.
 */
int target_snapshot_verify(const struct target_snapshot *target);

/* There is a file now where there was none. -EBUSY. */
int target_snapshot_fail_exists(const struct target_snapshot *target);

void target_snapshot_close(struct target_snapshot *target);
