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
#include "io/output/unlink_on_abort.h"
#include "io/output/part_files.h"

#define MANIFEST_NUMBER UINT32_MAX
#define NO_PART_NUMBER (UINT32_MAX - 1)

struct old_part {
	uint32_t number;
	uint64_t nbytes;
};

/* As it was when it was looked at. */
struct stale_part {
	uint32_t number;
	struct file_id identity;
	struct file_state state;
};

struct part_files {
	const struct syscalls *calls;
	const char *name;      /* as it was, for messages */
	struct file directory; /* by path only */
	char *base;            /* the end of the name */
	uint32_t n;
	char **paths; /* n + 1, the list's last */

	/* What was there before. */
	bool has_manifest;
	struct old_part *old_parts; /* n_old_parts, of the older list */
	uint32_t n_old_parts;
	struct stale_part *stale_parts; /* n_stale_parts, number n and on, of the older list */
	uint32_t n_stale_parts;

	/* Left by a killed process: the list aside, and the copy of the new one; or none. */
	struct part_manifest orphan_manifest, orphan_journal;

	struct file journal_file; /* .NAME.parts.pending, while nobody else may do anything; or
				     closed */
	bool has_orphan_journal;  /* it holds a list, and not the one that is given names now */
	/* Its name, while it is nothing but the lock; NULL: it is more. And where that is. */
	struct temp_name *journal_name, own_journal_name;

	/* While names are given. */
	uint32_t n_stale_backups; /* of stale, behind the n, that are */
	bool *has_backup;         /* n */
	bool has_manifest_backup;
	uint32_t n_published;
};

/* What a file is called in the directory, or when it is aside. */
void part_files_format_name(const struct part_files *files, uint32_t number, bool is_backup,
			    char name[static NAME_MAX + 1]);

/* What the copy of the list is called, where the names end with `base`. */
void part_files_format_journal_name(const char *base, char name[static NAME_MAX + 1]);

/*
 * Move it aside, where nothing may be; or back, in the place of what is there or of nothing. 0, or
 * a negative errno without a message: -ENOENT if it is not there, -EEXIST if something is.
 */
int part_files_backup(const struct part_files *files, uint32_t number);
int part_files_restore(const struct part_files *files, uint32_t number, bool overwrite);

/* Remove it. 0, also if it is not there, or a negative errno without a message. */
int part_files_remove(const struct part_files *files, uint32_t number, bool is_backup);

/* The number that a name of the directory has; NO_PART_NUMBER: none. */
uint32_t part_files_parse_number(const struct part_files *files, const char *name,
				 bool *ret_is_backup);

/* 1: it is there; 0: it is not; or a negative errno after a message. */
int part_files_stat(const struct part_files *files, uint32_t number, bool is_backup,
		    struct stat *ret_status);

/* The same of any name in the directory. */
int part_files_stat_name(const struct part_files *files, const char *name, struct stat *ret_status);

/* Called with what has a name of ours. 0, or a negative errno after a message. */
typedef int part_files_visit_fn(struct part_files *files, uint32_t number, bool is_backup,
				const char *name);

/* At all that the directory has. A directory that may not be read tells nothing. */
int part_files_for_each(struct part_files *files, part_files_visit_fn *visit);

/*
 * The list of that name in the directory, to be freed in any case. 1; 0: there is none; or a
 * negative errno after a message.
 */
int part_files_read_manifest(const struct part_files *files, const char *name,
			     struct part_manifest *ret_manifest);

/*
 * Whether it is there, as what a list could be. 1; 0: it is not; or a negative errno after a
 * message.
 */
int part_files_stat_manifest(const struct part_files *files, const char *name);

/*
 * Let nobody else give such names, or look at what has them, until it is unlocked; waits for those
 * who do. 0, or a negative errno after a message.
 */
int part_files_lock(struct part_files *files);
/*
 * From now on no signal removes the file that is locked: it tells who comes next what has a name.
 * Due when names are about to be given.
 */
void part_files_keep_journal(struct part_files *files);

/* If it was locked; .NAME.parts.pending goes, unless it is left there by others. */
void part_files_unlock(struct part_files *files);

/*
 * Find out whether there is a list, and what a killed process has left; nothing is changed. 0, or a
 * negative errno after a message: something has a name of what is left, and no list says that it
 * is.
 */
int part_files_find_orphans(struct part_files *files);

/* Put what was found in order, locked. 0, or a negative errno after a message. */
int part_files_recover(struct part_files *files);

/*
 * Before names are given, locked, so that the next finds what it needs if this process is killed in
 * the middle: a copy of the list, until it is unlocked. 0, or a negative errno after a message.
 */
int part_files_write_journal(struct part_files *files, const char *manifest);
