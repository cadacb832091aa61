/*
 * part_files - several files and a list of them, which appear together or not at all
 *
 *	NAME.0000  NAME.0001  ...  NAME.parts
 *
 *	open -> (an output for each name) -> commit     all are there, the list last
 *	                                \-> close       nothing has happened
 *
 * The list is the truth: who reads, reads it, and the files that it names. Each name is given as
 * any output gets its own (output.h); but what was there before under one of them is moved aside
 * first, the older list before all, and comes back if one of the new names cannot be had:
 *
 *	.NAME.parts.pending                    a copy of the new list: it tells what is new
 *	NAME.parts -> .NAME.parts.backup      from here on there is no list, and nothing is believed
 *	NAME.0000  -> .NAME.0000.backup       the new one gets the name; and so on
 *	the new list gets its name           from here on all of it is believed
 *	.NAME.*.backup, .NAME.parts.pending are removed
 *
 * So a list never describes files of another run. A process that is killed outright in between
 * leaves files aside; the next to open the same names finds them: if there is a list they are
 * removed, else they get their names back, and what is new besides goes. What was left is known by
 * two lists: .NAME.parts.backup names what is aside, .NAME.parts.pending what is new, each with its
 * size. What has such a name, and is in neither, is refused before anything is touched; and nothing
 * is moved aside over what others have put there.
 *
 * Two processes may write parts of the same name: who is first to commit has them, and the other
 * finds that they have changed. What is looked at when they are opened, and the commit, is done by
 * one at a time (part_files_lock.c).
 *
 * Files that the older list has beyond the new ones go with it, if nobody has changed them since
 * they were looked at. Any other that looks like one of the parts is refused, then or when it
 * appears: it would be taken for one by who has no list, or be lost.
 *
 * All functions print their message.
 */
#pragma once

#include "io/output/output.h"

enum { PART_FILES_MAX = 1000 };

struct part_files;

/*
 * Of n files, for which `name` stands (in a directory that is there); its end names files in a
 * list. Returns 0, or a negative errno: something has one of the names that is no regular file, or
 * looks like one more part, or is no list.
 */
int part_files_open(const struct syscalls *calls, const char *name, uint32_t n,
		    struct part_files **ret_files);

/* Would they be opened? The same, but what a killed process has left stays, and what that hides. */
int part_files_check(const struct syscalls *calls, const char *name, uint32_t n);

/*
 * The path of file i of n for which `name` stands, or of the list, i == n: to be freed. 0, or
 * -ENOMEM after a message.
 */
int part_files_make_path(const char *name, uint32_t n, uint32_t i, char **ret_path);

/*
 * Is that the name of a file, of one moved aside, or of the copy of the list, in the directory of
 * NAME, whose end is `base`? However many there are to be: another than they would be taken for one
 * of them.
 */
bool part_files_is_reserved_name(const char *base, const char *name);

/* The same, of open ones; of the list, i == n. Theirs. And the name that the list has for it. */
const char *part_files_path(const struct part_files *files, uint32_t i);
const char *part_files_name(const struct part_files *files, uint32_t i);

/*
 * The n outputs of these paths, and the list's behind them, are complete (output_complete()): give
 * them their names. list: the text of that. Takes the outputs in any case, leaving NULL. On failure
 * everything is as it was before; but if is_durable, and only that cannot be had, a message says
 * that all is complete.
 */
int part_files_commit(struct part_files *files, struct output **outputs, const char *manifest,
		      bool is_durable);

/* NULL is fine. */
void part_files_close(struct part_files *files);
