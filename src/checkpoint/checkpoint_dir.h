/*
 * checkpoint_dir - the directory of a checkpoint, and what is in it
 *
 *	DIR/gsort-manifest	what is finished (manifest.h, checkpoint_state.h)
 *	DIR/gsort-runs		the blocks of all spilled runs
 *
 * Of several ranks each has a directory of its own in that, DIR/rank-0003.
 *
 * Both begin with a mark. A file of that name that does not is somebody else's: it is neither
 * written nor removed, and no checkpoint is made there. An empty one, or one with the beginning of
 * a mark, is what a process leaves that is killed at once, and is taken.
 *
 * The directory belongs to one process at a time, which holds a lock on the manifest. It must be
 * the user's own, so that nobody else can put anything in the place of these files.
 */
#pragma once

#include <sys/stat.h>

#include "src/checkpoint/manifest.h"

enum checkpoint_file { CHECKPOINT_MANIFEST, CHECKPOINT_RUNS, CHECKPOINT_N_FILES };

extern const char *const checkpoint_file_names[CHECKPOINT_N_FILES];

/* Where the records of the manifest begin, and the blocks of the runs: behind the marks. */
enum { CHECKPOINT_MANIFEST_BEGIN = 16, CHECKPOINT_RUNS_BEGIN = 4096 };

struct checkpoint_dir {
	const char *path;        /* of the directory */
	char *rank_path;         /* the same, if it is a rank's */
	const char *parent_path; /* that it is in then; else NULL */
	char *manifest_path;
	struct file directory;
	struct manifest manifest; /* not read yet */
	struct file runs;
	struct file_id file_ids[CHECKPOINT_N_FILES];
	bool is_created[CHECKPOINT_N_FILES];    /* by this process */
	bool created_directory, created_parent; /* by gsort */
	bool is_locked;
};

/* Has gsort made that directory, so that it goes when it is empty? */
bool checkpoint_dir_is_created(const struct stat *directory);

/* Nothing is open yet. The path must outlive it. */
void checkpoint_dir_init(struct checkpoint_dir *dir, const struct syscalls *io, const char *path);

/* The same for a rank's, in the directory of all. 0, or -ENOMEM after a message. */
int checkpoint_dir_init_rank(struct checkpoint_dir *dir, const struct syscalls *io,
			     const char *path, unsigned rank);

/*
 * Open, and make what is missing. Returns 0, or a negative errno after a message: -EBUSY if another
 * process uses it, -EEXIST if one of the files is none of gsort's. Then to be abandoned.
 */
int checkpoint_dir_open(struct checkpoint_dir *dir);

/*
 * Is nothing there of ranks from number n on, which a sort by n of them would leave there for good?
 * 0, or -EEXIST after a message.
 */
int checkpoint_dir_check_ranks(const struct checkpoint_dir *dir, unsigned n);

/* Make the names durable. 0, or a negative errno after a message. */
int checkpoint_dir_sync(const struct checkpoint_dir *dir);

/* Would who starts again find them? Not if somebody has moved them away, or removed them. */
bool checkpoint_dir_is_intact(const struct checkpoint_dir *dir);

/*
 * Remove the files; and the directory, if gsort has made it and nothing else is in it. What cannot
 * be removed is named in a warning, and the manifest stays with the runs.
 */
void checkpoint_dir_remove(const struct checkpoint_dir *dir);

/* After a failure, before anything is known of them: remove what this process has made. */
void checkpoint_dir_remove_created(const struct checkpoint_dir *dir);

/* Closes what is open, and so gives the lock back. */
void checkpoint_dir_close(struct checkpoint_dir *dir);
