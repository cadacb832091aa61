/*
 * checkpoint_dir.h - the directory of a checkpoint
 *
 *	DIR/gsort-manifest	what is finished (manifest.h, checkpoint_state.h)
 *	DIR/gsort-runs		the blocks of all spilled runs
 *
 * Each of several ranks has its own directory in DIR: DIR/rank-0003.
 *
 * Both files begin with a magic. A file of that name without the magic is foreign: it is neither
 * written nor removed, and no checkpoint is created. A file that is empty or contains a prefix of
 * the magic was left by a process that was killed at once, and is used.
 *
 * The directory belongs to one process at a time, which holds a lock on the manifest. It must be
 * owned by the user, so that nobody else can replace these files.
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

/* Return whether gsort has created the directory and removes it when it is empty. */
bool checkpoint_dir_is_created(const struct stat *directory);

/* Initialise, without opening anything. The path must outlive `dir`. */
void checkpoint_dir_init(struct checkpoint_dir *dir, const struct syscalls *io, const char *path);

/* Initialise the directory of a rank, in the directory of all ranks. */
int checkpoint_dir_init_rank(struct checkpoint_dir *dir, const struct syscalls *io,
			     const char *path, unsigned rank);

/*
 * Open the directory and its files; create what is missing. Returns -EBUSY if another process uses
 * it, or -EEXIST if a file is foreign. After a failure, call checkpoint_dir_remove_created().
 */
int checkpoint_dir_open(struct checkpoint_dir *dir);

/*
 * Check that there is no checkpoint of a rank >= n, which a sort by n ranks would never remove.
 * Returns 0 or -EEXIST.
 */
int checkpoint_dir_check_ranks(const struct checkpoint_dir *dir, unsigned n);

/* Sync the directories. */
int checkpoint_dir_sync(const struct checkpoint_dir *dir);

/* Return whether another start would find the files: nobody has moved or removed them. */
bool checkpoint_dir_is_intact(const struct checkpoint_dir *dir);

/*
 * Remove the files, and the directory if gsort has created it and it is empty. A failure is a
 * warning; the manifest is only removed after the runs.
 */
void checkpoint_dir_remove(const struct checkpoint_dir *dir);

/* After a failure to open: remove what this process has created. */
void checkpoint_dir_remove_created(const struct checkpoint_dir *dir);

/* Close the files and release the lock. */
void checkpoint_dir_close(struct checkpoint_dir *dir);
