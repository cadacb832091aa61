/*
 * temp_names - the names of unfinished files, for whoever has to remove them in a hurry
 *
 * An output that is being written can have a hidden name (atomic_file.h), which goes when the
 * output is complete or given up; and a lock of part files is a file (part_files_lock.c). A signal
 * that ends the process leaves no time for that: a front end that handles signals lends a table
 * (struct syscalls), and its handler removes what is in it.
 */
#pragma once

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "io/output/orphans.h"

/* As many as there are part files (part_files.h), and a few. */
enum { HIDDEN_NAMES_MOST = 1024 };

/* Zeroed: none. */
struct hidden_name {
	atomic_bool taken;
	atomic_bool live;
	atomic_bool is_being_made;
	pthread_t maker;
	int directory;
	char name[NAME_MAX + 1];
};

/* Of a process. Zeroed: none. Any thread. */
struct hidden_names {
	atomic_bool is_over;
	struct hidden_name all[HIDDEN_NAMES_MOST];
};

/*
 * A new name in the directory, which this thread is to create now: it is in the table before it
 * exists. hidden_names_made() is due then. Does not return if the process is ending. names NULL: it
 * is in none, and at `own`. owner: as leftovers_make_name(). NULL if the table is full.
 */
struct hidden_name *hidden_names_take(struct hidden_names *names, int directory,
				      const struct leftovers_owner *owner, struct hidden_name *own);

/* It has been created, or could not be. */
void hidden_names_made(struct hidden_name *name);

/*
 * The same of a name that is there: somebody else has created it, who may be ended before it is
 * removed, or it has just become ours.
 */
struct hidden_name *hidden_names_share(struct hidden_names *names, int directory, const char *name,
				       struct hidden_name *own);

/* The name is gone, or has never been, or is somebody else's. */
void hidden_names_give_up(struct hidden_name *name);

/* Remove the names that there are at the moment. Async-signal-safe, as the next. */
void hidden_names_remove(struct hidden_names *names);

/*
 * The process is ending: none is taken any more, and all are removed, also those that other threads
 * are about to create.
 */
void hidden_names_end(struct hidden_names *names);
