/*
 * checkpoint_files - the directory of a checkpoint, and what is in it
 *
 *	DIR/manifest	what is finished (manifest.h, checkpoint_state.h)
 *	DIR/runs	the blocks of all spilled runs
 *
 * The directory belongs to one process at a time, which holds a lock on the manifest. It must be
 * the user's own, so that nobody else can put anything in the place of these files.
 */
#pragma once

#include "src/checkpoint/manifest.h"

enum { CHECKPOINT_N_FILES = 2 };
extern const char *const checkpoint_file_names[CHECKPOINT_N_FILES];

struct checkpoint_files {
	const char *path; /* of the directory; must outlive it */
	char *manifest_path;
	struct file directory;
	struct manifest manifest; /* not read yet */
	struct file runs;
	bool made_directory; /* by gsort */
	bool is_locked;
};

/* Nothing is open yet. */
void checkpoint_files_init(struct checkpoint_files *files, const struct io_engine *io,
			   const char *path);

/*
 * Open, and make what is missing. Returns 0, or a negative errno after a message: -EBUSY if another
 * process uses it.
 */
int checkpoint_files_open(struct checkpoint_files *files);

/* Make the names durable. 0, or a negative errno after a message. */
int checkpoint_files_sync_names(const struct checkpoint_files *files);

/*
 * Remove the files; and the directory, if gsort has made it and nothing else is in it. What cannot
 * be removed is named in a warning, and the manifest stays with the runs.
 */
void checkpoint_files_remove(const struct checkpoint_files *files);

/* After a failure, before anything is known of them: remove them if nothing is in them. */
void checkpoint_files_abandon(const struct checkpoint_files *files);

/* Closes what is open, and so gives the lock back. */
void checkpoint_files_close(struct checkpoint_files *files);
