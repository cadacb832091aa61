/*
 * part_files_inside - what the files of its implementation share
 *
 *	part_files.c		opened: the names, and what has them
 *	part_files_commit.c	the names are given
 *
 * Files are known by their number; the list's comes behind all others. Numbers from n on are of
 * files that only the older list has.
 */
#pragma once

#include <limits.h>

#include "io/output/part_files.h"

#define LIST_NUMBER UINT32_MAX
struct part_files {
	const struct syscalls *calls;
	const char *given;     /* as it was, for messages */
	struct file directory; /* by path only */
	char *base;            /* the end of the name */
	uint32_t n;
	char **paths; /* n + 1, the list's last */

	/* What was there before. */
	bool has_list;
	uint32_t *stale; /* n_stale numbers from n on, of the older list */
	uint32_t n_stale;

	/* While names are given. */
	uint32_t n_aside; /* of stale, behind the n, that are */
	bool *is_aside;   /* n */
	bool list_is_aside;
	uint32_t n_named;
};

/* What a file is called in the directory, or when it is aside. */
void part_files_make_name(const struct part_files *files, uint32_t number, bool is_aside,
			  char name[static NAME_MAX + 1]);

/* Move it aside, or back. 0, or a negative errno without a message, -ENOENT if it is not there. */
int part_files_rename(const struct part_files *files, uint32_t number, bool comes_back);

/* Remove it. 0, also if it is not there, or a negative errno without a message. */
int part_files_remove(const struct part_files *files, uint32_t number, bool is_aside);
