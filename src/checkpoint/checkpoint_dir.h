/*
 * checkpoint_dir.h - the directory of a checkpoint
 *
 *	DIR/gsort-manifest	what is finished (manifest.h, checkpoint_state.h)
 *	DIR/gsort-runs		the blocks of all spilled runs
 *
 * Each of several ranks has its own directory in DIR: DIR/rank-0003.
 *
 * Both files begin with a magic. A file of that name without the magic is foreign: it is neither
 * written nor removed, and no checkpoint is created. A file that is empty, or only has a prefix of
 * the magic, is used: a process was killed while it created the file.
 *
 * The directory belongs to one process at a time, which holds a lock on the manifest. The user must
 * own the directory, so that no other user can replace these files.
 *
 * Functions that return an int return 0 or a negative errno (reported).
 */
#pragma once

#include <sys/stat.h>

#include "src/checkpoint/manifest.h"

enum checkpoint_file { CHECKPOINT_MANIFEST, CHECKPOINT_RUNS, CHECKPOINT_N_FILES };

extern const char *const checkpoint_file_names[CHECKPOINT_N_FILES];

/* Offsets of the first record and the first block, after the magics. */
enum { CHECKPOINT_MANIFEST_BEGIN = 16, CHECKPOINT_RUNS_BEGIN = 4096 };

struct checkpoint_dir {
	const char *path;        /* path of the directory; borrowed */
	char *rank_path;         /* allocated copy of `path`, if it is that of a rank */
	const char *parent_path; /* the directory of all ranks, or NULL */
	char *manifest_path;
	struct file directory;
	struct manifest manifest; /* not read yet */
	struct file runs;
	struct file_id file_ids[CHECKPOINT_N_FILES];
	bool is_created[CHECKPOINT_N_FILES];    /* by this process */
	bool created_directory, created_parent; /* by gsort */
	bool is_locked;
};

/* Return whether gsort has created the directory, and so removes it when it is empty. */
bool checkpoint_dir_is_created(const struct stat *directory);

/* Initialise `dir` without opening anything. The path must outlive it. */
void checkpoint_dir_init(struct checkpoint_dir *dir, const struct syscalls *io, const char *path);

/* Initialise `dir` for the directory of a rank in `path`, the directory of all ranks. */
int checkpoint_dir_init_rank(struct checkpoint_dir *dir, const struct syscalls *io,
			     const char *path, unsigned rank);

/*
 * Open and lock the directory and its files; create what is missing. Returns -EBUSY if another
 * process uses the directory, -EEXIST if a file is foreign, or another negative errno (all
 * reported). After a failure, call checkpoint_dir_remove_created().
 */
int checkpoint_dir_open(struct checkpoint_dir *dir);

/*
 * Check that there is no checkpoint of a rank >= n, which a sort by n ranks would never remove.
 * Returns 0 or -EEXIST (reported).
 */
int checkpoint_dir_check_ranks(const struct checkpoint_dir *dir, unsigned n);

/* Make the names of the files and the directories durable. */
int checkpoint_dir_sync(const struct checkpoint_dir *dir);

/* Return whether the directory and the files still have their names, so that a sort can resume. */
bool checkpoint_dir_is_intact(const struct checkpoint_dir *dir);

/*
 * Remove the runs, then the manifest, then the directory if gsort has created it and it is empty. A
 * failure is a warning, and ends the removal.
 */
void checkpoint_dir_remove(const struct checkpoint_dir *dir);

/* After a failure: remove the files and directories that gsort has created. */
void checkpoint_dir_remove_created(const struct checkpoint_dir *dir);

/* Close the files and release the lock. */
void checkpoint_dir_close(struct checkpoint_dir *dir);
