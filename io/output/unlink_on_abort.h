/*
 * unlink_on_abort - the names of unfinished outputs, which a handler of signals removes
 *
 * An output that is being written can have a hidden name (atomic_file.h), which goes when the
 * output is complete or given up; part files are written in a hidden directory (part_files.h). A
 * signal that ends the process leaves no time for that: a front end that handles signals lends a
 * table (struct syscalls), and its handler removes what is in it, files before directories.
 */
#pragma once

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "io/output/orphans.h"

/* As many as there are part files (part_files.h), and a few. */
enum { TEMP_NAMES_MAX = 1024 };

/* Zeroed: none. */
struct temp_name {
	atomic_bool in_use;
	atomic_bool is_active;
	atomic_bool is_being_created;
	bool is_directory;
	pthread_t creator;
	int directory;
	char name[NAME_MAX + 1];
};

/* Of a process. Zeroed: none. Any thread. */
struct temp_names {
	atomic_bool is_shut_down;
	struct temp_name slots[TEMP_NAMES_MAX];
};

/*
 * A new name in the directory, which this thread is to create now: it is in the table before it
 * exists. temp_names_created() is due then. Does not return if the process is ending. names NULL:
 * it is in none, and at `own`. owner: as orphans_make_temp_name(). NULL if the table is full.
 */
struct temp_name *temp_names_reserve(struct temp_names *names, int directory,
				     const struct orphan_owner *owner, bool is_directory,
				     struct temp_name *fallback);

/* It has been created, or could not be. */
void temp_names_created(struct temp_name *slot);

/* The same of a name that another process has created, which may end before it removes it. */
struct temp_name *temp_names_adopt(struct temp_names *names, int directory, const char *name,
				   bool is_directory, struct temp_name *fallback);

/* The name is gone, or has never been, or is somebody else's. */
void temp_names_release(struct temp_name *slot);

/* Remove the names that there are at the moment. Async-signal-safe, as the next. */
void temp_names_remove(struct temp_names *names);

/*
 * The process is ending: none is taken any more, and all are removed, also those that other threads
 * are about to create.
 */
void temp_names_shutdown(struct temp_names *names);
