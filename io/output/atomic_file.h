/*
 * atomic_file.h - a new file that takes the name of a target when it is complete
 *
 *	create -> (write the file) -> commit     the target's name leads to the new file
 *	                          \-> discard    the target is unchanged
 *
 * The new file is created in the target's directory, so that a rename can put it in place. Where
 * the system can (O_TMPFILE and /proc), it has no name until the commit: then it is linked under
 * the target's name, or, because a link cannot replace a file, under a temporary name for the
 * moment of the rename. Otherwise it has a temporary name from the start. A process that is killed
 * outright leaves that behind (orphans.h); a signal handler removes it (undo.h).
 *
 * The target is examined when the output is opened, and again before the rename. Nothing is
 * replaced if meanwhile the target was changed, or another file was put there, or the path leads
 * elsewhere. Between the last look and the rename are two system calls, and no kernel has one for
 * both: a process that writes to the old file just then loses what it has written. Symbolic links
 * are followed: the target is the file at their end, which need not exist.
 *
 * The new file gets the attributes of the old one: owner, permissions, access list, extended
 * attributes. It must not be accessible to users who could not access the old file.
 *
 * All functions report their errors, unless noted.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "io/output/orphans.h"

/* --- what will be replaced, also of a directory (part_files.h) --- */

struct atomic_target {
	const char *path;       /* as given, for messages */
	struct file directory;  /* opened with O_PATH */
	bool borrows_directory; /* the caller's; the path need not lead there yet */
	char *name;             /* within the directory */
	bool had_file;
	struct stat old_status; /* if had_file */
	struct file old_file;   /* for its attributes */
};

/*
 * Follow the path, which must outlive the target, and check that a rename there is permitted. old:
 * the result of stat() for the existing file, or NULL. Returns 0 or a negative errno, reported or
 * not; atomic_target_close() is due in any case.
 */
int atomic_target_open(const struct syscalls *calls, const char *path, const struct stat *old,
		       struct atomic_target *ret_target);

/*
 * Check that the target is still the original file, or still missing, and that the path leads to
 * it. Returns 0, -EBUSY (reported), or another negative errno (not reported).
 */
int atomic_target_verify(const struct atomic_target *target);

/* Bring the target's name to stable storage. Errors are not reported. */
int atomic_target_sync_name(const struct atomic_target *target);

void atomic_target_close(struct atomic_target *target);

/* --- attributes; errors are not reported --- */

struct lost_attributes {
	bool acl;    /* only the owner has access to the new file */
	bool xattrs; /* extended attributes of the user */
};

/*
 * Open a file (not a link) to copy its attributes from. The permission to read it is not required.
 */
int attributes_open(const struct syscalls *calls, int directory, const char *name,
		    struct file *ret_old);

/*
 * Give `file`, which only its owner may use yet, the attributes of `old` as far as this process
 * may. If the group cannot be kept, its members get the permissions of others; if the owner or
 * group cannot, the set-user-ID or set-group-ID bit is dropped. Labels of the system that may not
 * be set, and attributes that describe the contents, are not copied.
 */
int attributes_copy(const struct file *old, const struct file *file,
		    struct lost_attributes *ret_lost);

/* Warn of the attributes that were lost. */
void attributes_warn_lost(const char *path, const struct lost_attributes *lost);

/* --- the new file --- */

struct atomic_file;

/* Zeroed: a file of this process alone. */
struct atomic_file_params {
	enum {
		ATOMIC_PRIVATE,
		ATOMIC_SHARED,          /* named from the start, so that other processes can join */
		ATOMIC_SHARED_EXISTING, /* another process has created it, as `name` */
	} kind;
	const char *name;             /* of ATOMIC_SHARED_EXISTING */
	const struct file *directory; /* NULL, or where to create it; the path is for messages */
	bool is_silent;               /* do not report orphans */
	struct orphan_owner owner;    /* whose orphans are removed */
};

/*
 * Create the new file, or join one, open for reading and writing. old: the result of stat() for the
 * existing file, or NULL. On success the caller closes the file and commits, discards or closes the
 * atomic file. Only the creator of a file that other processes have joined may commit; a joined
 * process closes, or discards the file for all.
 */
int atomic_file_open(const struct syscalls *calls, const char *path, const struct stat *old,
		     const struct atomic_file_params *params, struct file *ret_file,
		     struct atomic_file **ret_atomic_file);

/* Return the temporary name, or NULL. Valid as long as the atomic file. */
const char *atomic_file_temp_name(const struct atomic_file *atomic_file);

/*
 * Note that the file is written and has its final size; called again: check that no other process
 * has changed it since. Returns 0 or -EBUSY. Unnamed files, which no other process can open, always
 * pass.
 */
int atomic_file_mark_complete(struct atomic_file *atomic_file, const struct file *file);

/*
 * Close the file, which has nbytes, and give it the target's name. Frees the atomic file in any
 * case; on failure nothing is left of the new file. -EBUSY: another process has changed the file
 * or the target, or put another file under the temporary name (which stays). -ENOENT: another
 * process has removed it. sync_name: bring the name to stable storage.
 */
int atomic_file_commit(struct atomic_file *atomic_file, struct file *file, uint64_t nbytes,
		       bool sync_name);

/* Remove the temporary name, and free. Closing the file frees its space. NULL is ignored. */
void atomic_file_discard(struct atomic_file *atomic_file);

/* Free, and leave the file to the other processes. */
void atomic_file_close(struct atomic_file *atomic_file);
