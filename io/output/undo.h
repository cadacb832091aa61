/*
 * undo.h - what a fatal signal undoes: temporary names and the growth of files written in place
 *
 * An unfinished output leaves traces that a normal end of the process removes: a temporary name
 * (atomic_file.h), a hidden directory (part_files.h), or bytes at the end of a file that the
 * process was given open (`> file`). A signal that ends the process leaves no time for that. So a
 * front end that handles signals owns one table of traces (struct syscalls points to it), and its
 * handler calls undo_abort():
 *
 *	UNDO_UNLINK	remove the name of a file
 *	UNDO_RMDIR	remove a directory, after the files in it
 *	UNDO_TRUNCATE	cut a file to its old size, unless others have written to it
 *
 * The same table decides once whether the process is killed or has committed its output. Users who
 * see that a sort was killed assume that the output, which may be the input, is unchanged:
 *
 *	idle --undo_commit_begin()--> committing	signals are ignored
 *	    \---a fatal signal---> terminating		undo_commit_begin() blocks until the end
 *
 * Without a table (NULL) nothing is undone, and a signal ends the process at any moment.
 *
 * undo_abort() and undo_signal_may_kill() are async-signal-safe; the rest is thread-safe.
 */
#pragma once

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "io/output/orphans.h"

enum { UNDO_MAX_ENTRIES = 1024 + 16 }; /* the part files of a directory, and a few */

enum undo_action { UNDO_UNLINK, UNDO_RMDIR, UNDO_TRUNCATE, N_UNDO_ACTIONS };

/* Zeroed: free. The contents are set before is_active. */
struct undo_entry {
	atomic_bool in_use;
	atomic_bool is_active;
	atomic_bool is_being_created; /* the creator has the name, but perhaps no file yet */
	pthread_t creator;
	enum undo_action action;
	int fd;                        /* UNDO_TRUNCATE: the file; otherwise its directory */
	char name[NAME_MAX + 1];       /* not of UNDO_TRUNCATE */
	uint64_t start;                /* UNDO_TRUNCATE: the old size */
	atomic_uint_least64_t max_end; /* UNDO_TRUNCATE: this process writes nothing beyond */
};

/* Zeroed: empty, idle. */
struct undo_table {
	atomic_int commit_state;
	atomic_int pending_signal; /* the last signal that was ignored; 0: none */
	atomic_bool is_aborting;
	struct undo_entry entries[UNDO_MAX_ENTRIES];
};

/*
 * Make up a temporary name in a directory and register it, before the calling thread creates it:
 * the name is in the table before it exists. undo_name_created() must follow, also if creating it
 * fails. owner: see orphans_make_temp_name(). fallback: the entry to use if there is no table.
 * Returns NULL if the table is full. Does not return if the process is aborting.
 */
struct undo_entry *undo_reserve_name(struct undo_table *table, int directory,
				     const struct orphan_owner *owner, enum undo_action action,
				     struct undo_entry *fallback);
void undo_name_created(struct undo_entry *entry);

/* Register a name that another process has created. Otherwise like undo_reserve_name(). */
struct undo_entry *undo_adopt_name(struct undo_table *table, int directory, const char *name,
				   enum undo_action action, struct undo_entry *fallback);

/*
 * Register a regular file, open for writing, that ends at `start`, where an output begins. Uses the
 * fallback if there is no table or it is full; then the file is not truncated by a signal.
 */
struct undo_entry *undo_add_truncation(struct undo_table *table, int fd, uint64_t start,
				       struct undo_entry *fallback);

/* Announce that bytes of the file up to `end` will be written or preallocated. */
void undo_extend_truncation(struct undo_entry *entry, uint64_t end);

/* Return whether the file has grown, but no further than this process can have extended it. */
bool undo_is_growth_ours(const struct undo_entry *entry);

/*
 * Free an entry: the name is gone, or belongs to someone else, or the file is complete or was cut.
 * Due before the file is closed. Freeing a truncation does not return if the process is aborting:
 * the handler might use a descriptor that means another file by then.
 */
void undo_remove(struct undo_table *table, struct undo_entry *entry);

/* Undo all entries of the table. If a file is truncated, RLIMIT_FSIZE becomes 0. */
void undo_run(struct undo_table *table);

/*
 * End all work of the process: from now on no name is reserved. Then undo all entries, including
 * names that other threads are just creating. The process must end afterwards.
 */
void undo_abort(struct undo_table *table);

/* Do not return if the process is aborting: its failures are consequences. NULL is ignored. */
void undo_wait_if_aborting(const struct undo_table *table);

/*
 * Announce that an output gets its name now. Returns true for the first caller, which may call
 * undo_commit_rollback() if that fails. Does not return if the process is terminating. NULL: true.
 */
bool undo_commit_begin(struct undo_table *table);
void undo_commit_rollback(struct undo_table *table);

/* Return the signal that was ignored for a commit that was rolled back; 0: none. */
int undo_pending_signal(const struct undo_table *table);

/*
 * Decide in a signal handler whether a signal ends the process: true, and no output is committed
 * any more; or false, because one is being or was committed.
 */
bool undo_signal_may_kill(struct undo_table *table, int signal_number);
