/*
 * atomic_file - a new file that takes the name of a target when it is complete
 *
 *	start -> (write the file) -> finish     the target's name leads to the new file
 *	                         \-> drop       the target is as it was
 *
 * The new file is made in the target's directory, so that a rename can put it in place. It has no
 * name until finish (O_TMPFILE), when it is linked under its own, or, since a link cannot replace a
 * file, under a hidden one for the moment that the rename takes. Where the system does not know
 * nameless files, or has no /proc to link them by, it has the hidden name from the start; a process
 * that is killed outright then leaves it behind, which the next one tells (orphans.h), and a
 * handler of signals can remove it (unlink_on_abort.h). From the moment in which it gets its name
 * signals do not end the process (commit_point.h).
 *
 * What it replaces must be what was there at first: a file that has changed since, or is another
 * one, stays. Between looking at it and the rename are two calls of the system, and no kernel has
 * one for both; who writes to the old file just then, or has it open and writes to it later,
 * writes to what is gone.
 *
 * Symbolic links are followed: the target is the file at their end, there or not.
 *
 * All functions print their message.
 */
#pragma once

#include <stdbool.h>

#include "io/output/orphans.h"

struct atomic_file;

/* How a new file is made. Zeroed: by this process, for itself. */
struct atomic_file_params {
	/* NULL, or the directory of the new file, to which the path need not lead yet. */
	const struct file *directory;
	/* It has a hidden name from the start, by which other processes join (below). */
	bool is_shared;
	/* Nothing is told of what others have left beside it. */
	bool is_silent;
	/* And whose it is, who removes what was left of it by an earlier start. */
	struct orphan_owner owner;
};

/*
 * Make the new file, open for reading and writing. old: what stat() said about the target, whose
 * owner, permissions and other attributes (file_attributes.h) the new file will get; NULL if it
 * does not exist: permissions then come from the umask. On success the file is the caller's to
 * close, the replacement to finish or drop.
 */
int atomic_file_create(const struct syscalls *calls, const char *path, const struct stat *old,
		       const struct atomic_file_params *params, struct file *ret_file,
		       struct atomic_file **ret_atomic_file);

/*
 * Join one that is shared: until it is finished its processes write to it, too. `name` is its
 * hidden one; directory: as in the parameters. The file is theirs to close, the replacement to
 * leave, and what becomes of it is for the first to say; or to drop, which removes the file for
 * all.
 */
int atomic_file_open_shared(const struct syscalls *calls, const struct file *directory,
			    const char *path, const struct stat *old, const char *name,
			    struct file *ret_file, struct atomic_file **ret_atomic_file);

/* The hidden name; NULL: it has none. As long as the replacement. */
const char *atomic_file_temp_name(const struct atomic_file *atomic_file);

/*
 * All of the file is written, and it has its size: nobody changes it any more. Again, later: has
 * nobody? 0, or -EBUSY after a message, as atomic_file_commit() would fail. Of a file without a
 * name, which nobody else can open, nothing is noted.
 */
int atomic_file_mark_complete(struct atomic_file *atomic_file, const struct file *file);

/*
 * Put the file, which has nbytes, under the target's name; closes it. -EBUSY if somebody else has
 * changed its size, or anything since atomic_file_mark_complete(), put another one under its name,
 * or made the path lead elsewhere; -ENOENT if its name is gone. sync_name: and bring the name to
 * stable storage. Frees the replacement, whether it succeeds or not; on failure nothing is left of
 * the new file.
 */
int atomic_file_commit(struct atomic_file *atomic_file, struct file *file, uint64_t nbytes,
		       bool sync_name);

/*
 * Is what has the target's name still what was there at first, or nothing, and does the path lead
 * there? 0, or -EBUSY after a message, as atomic_file_commit() would fail.
 */
int atomic_file_check_target(const struct atomic_file *atomic_file);

/*
 * Remove the name, if it has one, and free. The space comes back when the file is closed. NULL is
 * fine.
 */
void atomic_file_discard(struct atomic_file *atomic_file);

/* Free it and leave the file of all its processes as it is. */
void atomic_file_close(struct atomic_file *atomic_file);
