/*
 * part_files_internal - what the files of its implementation share
 *
 *	part_files.c		opened: the names, and what has them
 *	part_files_recovery.c	what a process that was killed has left of that
 *	part_files_lock.c	others do none of it meanwhile
 *	part_files_commit.c	the names are given
 *
 * Files are known by their number; the list's comes behind all others. Numbers from n on are of
 * files that only the older list has.
 */
#pragma once

#include <limits.h>

#include "io/file/file_change.h"
#include "io/input/part_manifest.h"
#include "io/output/temp_names.h"
#include "io/output/part_files.h"

#define LIST_NUMBER UINT32_MAX
#define NO_NUMBER (UINT32_MAX - 1)

struct older_part {
	uint32_t number;
	uint64_t nbytes;
};

/* As it was when it was looked at. */
struct stale_part {
	uint32_t number;
	struct file_identity identity;
	struct file_state state;
};

struct part_files {
	const struct syscalls *calls;
	const char *given;     /* as it was, for messages */
	struct file directory; /* by path only */
	char *base;            /* the end of the name */
	uint32_t n;
	char **paths; /* n + 1, the list's last */

	/* What was there before. */
	bool has_list;
	struct older_part *older; /* n_older, of the older list */
	uint32_t n_older;
	struct stale_part *stale; /* n_stale, number n and on, of the older list */
	uint32_t n_stale;

	/* Left by a killed process: the list aside, and the copy of the new one; or none. */
	struct parts_list left_older, left_newer;

	struct file lock;  /* .NAME.parts.pending, while nobody else may do anything; or closed */
	bool lock_is_left; /* it holds a list, and not the one that is given names now */
	/* Its name, while it is nothing but the lock; NULL: it is more. And where that is. */
	struct hidden_name *lock_name, own_lock_name;

	/* While names are given. */
	uint32_t n_aside; /* of stale, behind the n, that are */
	bool *is_aside;   /* n */
	bool list_is_aside;
	uint32_t n_named;
};

/* What a file is called in the directory, or when it is aside. */
void part_files_make_name(const struct part_files *files, uint32_t number, bool is_aside,
			  char name[static NAME_MAX + 1]);

/* What the copy of the list is called, where the names end with `base`. */
void part_files_make_newer_name(const char *base, char name[static NAME_MAX + 1]);

/*
 * Move it aside, where nothing may be; or back, in the place of what is there or of nothing. 0, or
 * a negative errno without a message: -ENOENT if it is not there, -EEXIST if something is.
 */
int part_files_move_aside(const struct part_files *files, uint32_t number);
int part_files_move_back(const struct part_files *files, uint32_t number, bool replaces);

/* Remove it. 0, also if it is not there, or a negative errno without a message. */
int part_files_remove(const struct part_files *files, uint32_t number, bool is_aside);

/* The number that a name of the directory has; NO_NUMBER: none. */
uint32_t part_files_number_of(const struct part_files *files, const char *name, bool *ret_is_aside);

/* 1: it is there; 0: it is not; or a negative errno after a message. */
int part_files_look_at(const struct part_files *files, uint32_t number, bool is_aside,
		       struct stat *ret_status);

/* The same of any name in the directory. */
int part_files_look_at_name(const struct part_files *files, const char *name,
			    struct stat *ret_status);

/* Called with what has a name of ours. 0, or a negative errno after a message. */
typedef int part_files_look_fn(struct part_files *files, uint32_t number, bool is_aside,
			       const char *name);

/* At all that the directory has. A directory that may not be read tells nothing. */
int part_files_look_through(struct part_files *files, part_files_look_fn *look);

/*
 * The list of that name in the directory, to be freed in any case. 1; 0: there is none; or a
 * negative errno after a message.
 */
int part_files_read_list(const struct part_files *files, const char *name,
			 struct parts_list *ret_list);

/*
 * Whether it is there, as what a list could be. 1; 0: it is not; or a negative errno after a
 * message.
 */
int part_files_look_at_list(const struct part_files *files, const char *name);

/*
 * Let nobody else give such names, or look at what has them, until it is unlocked; waits for those
 * who do. 0, or a negative errno after a message.
 */
int part_files_lock(struct part_files *files);
/*
 * From now on no signal removes the file that is locked: it tells who comes next what has a name.
 * Due when names are about to be given.
 */
void part_files_keep_lock(struct part_files *files);

/* If it was locked; .NAME.parts.pending goes, unless it is left there by others. */
void part_files_unlock(struct part_files *files);

/*
 * Find out whether there is a list, and what a killed process has left; nothing is changed. 0, or a
 * negative errno after a message: something has a name of what is left, and no list says that it
 * is.
 */
int part_files_find_left(struct part_files *files);

/* Put what was found in order, locked. 0, or a negative errno after a message. */
int part_files_settle(struct part_files *files);

/*
 * Before names are given, locked, so that the next finds what it needs if this process is killed in
 * the middle: a copy of the list, until it is unlocked. 0, or a negative errno after a message.
 */
int part_files_begin(struct part_files *files, const char *list);
