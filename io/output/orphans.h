/*
 * orphans - unfinished files and directories whose process was killed outright
 *
 * Where there are no nameless files, an unfinished one has a hidden name; where there are, one that
 * takes the place of another has it for the moment of the rename. A signal that can be caught
 * removes it; after SIGKILL, or when the machine stops, it stays, hidden, and takes as much space
 * as an output. Whoever starts there next says so, and leaves it to the user to remove it; but who
 * goes on with the same sort removes what that has left, which it knows by digits in the name.
 *
 * A file that somebody works on is told from one that was left by a lock on it, which the kernel
 * takes back from whoever dies. A directory (part_files.h) is left if neither it nor a file in it
 * is locked; it goes with the files in it.
 */
#pragma once

#include "io/file/file.h"

/*
 * ".gsort-temp-" and 16 random hexadecimal digits, with the final '\0'; of an owner its own
 * digits are in front of these.
 */
enum { TEMP_NAME_SIZE = 45 };

/*
 * Who begins the same file again after a kill, and may then remove what was left of it: 16 random
 * digits (file_unique_digits()) that nobody else has, and that only one process at a time goes on
 * with. "": there is no such one.
 */
struct orphan_owner {
	char digits[FILE_UNIQUE_DIGITS + 1];
};

/* A hidden name that no other file has, and that tells everybody what it is. owner: NULL: "". */
void orphans_make_temp_name(const struct orphan_owner *owner, char name[static TEMP_NAME_SIZE]);

/* Could a name come from one of these? */
bool orphans_is_temp_name(const char *name);

/* The same one, each time, for what is to take the place of `target`, in the same directory. */
void orphans_make_rename_name(const char *target, char name[static TEMP_NAME_SIZE]);

/*
 * Mark `file`, open for writing, or a directory, open for reading, as one that somebody works on,
 * until it and all duplicates of its descriptor are closed. A file system without locks is no
 * error: nothing in it is taken for left.
 */
void orphans_lock(const struct file *file);

/* Warn of the file with orphans_make_rename_name(target), if nobody works on it. */
void orphans_warn_target(const struct file *directory, const char *path, const char *target);

/*
 * Warn of the files of such names in `directory`, that of `path`, that nobody works on: of each of
 * the first three, and then of all others at once.
 */
void orphans_warn(const struct file *directory, const char *path);

/*
 * This process is the owner, and has begun no such file yet: remove those in `directory` that have
 * its digits and that nobody works on. What cannot be removed stays.
 */
void orphans_remove(const struct file *directory, const struct orphan_owner *owner);
