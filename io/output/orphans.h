/*
 * orphans.h - temporary names of unfinished files, and files that killed processes left behind
 *
 * An unfinished output may have a temporary name: all the time where the system has no unnamed
 * files, otherwise during the rename that replaces an older file. A signal that can be caught
 * removes the name (undo.h). After SIGKILL or a power loss it stays, and takes as much space as an
 * output. The next process that writes to the directory warns about such an orphan of its user, and
 * leaves it to the user to remove it. An empty file may be new and not locked yet, so it is an
 * orphan only after a minute. A process that resumes the same sort removes the orphans of the
 * earlier attempt, which it recognises by digits in the name.
 *
 * A file in use is locked, and the kernel releases the lock when the process ends. A directory
 * (part_files.h) is an orphan if neither the directory nor a file in it is locked; it is removed
 * together with the files in it.
 */
#pragma once

#include "io/file/file.h"

/* How many entries to read where temporary names are rare: a large directory would take long. */
enum { ORPHANS_FEW_ENTRIES = 1000 };

/* ".gsort-temp-", the digits of the owner, if any, 16 random hexadecimal digits, and '\0'. */
enum { TEMP_NAME_SIZE = 45 };

/*
 * The owner of a file that is begun again after a kill: 16 random digits (file_unique_digits()),
 * which only one process at a time uses. "": no owner.
 */
struct orphan_owner {
	char digits[FILE_UNIQUE_DIGITS + 1];
};

/* Make up a temporary name that no other file has. owner: NULL means none. */
void orphans_make_temp_name(const struct orphan_owner *owner, char name[static TEMP_NAME_SIZE]);

/* Return whether a name can come from one of these functions. */
bool orphans_is_temp_name(const char *name);

/* Derive the temporary name for the rename that replaces `target`, always the same one. */
void orphans_make_rename_name(const char *target, char name[static TEMP_NAME_SIZE]);

/*
 * Mark a file, open for writing, or a directory, open for reading, as in use, until it and all
 * duplicates of its descriptor are closed. Failure is ignored: on a file system without locks
 * nothing is taken for an orphan.
 */
void orphans_lock(const struct file *file);

/*
 * Warn of an orphan of a rename to `target` (NULL: none), then of each of the first three other
 * orphans in `directory`, and of the rest in one message. Only the first max_entries entries of the
 * directory are read. path: for messages.
 */
void orphans_warn(const struct file *directory, const char *path, const char *target,
		  uint64_t max_entries);

/*
 * Remove the orphans of an owner, which is this process and has begun no file yet. Failure is
 * ignored.
 */
void orphans_remove(const struct file *directory, const struct orphan_owner *owner);

/*
 * Call callback() for each entry of a directory, until it fails. Returns 0, or its negative errno,
 * or that of reading the directory (not reported).
 */
typedef int directory_entry_fn(const struct file *directory, const char *name, void *context);
int directory_for_each(const struct file *directory, directory_entry_fn *callback, void *context);
