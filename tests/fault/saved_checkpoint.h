/*
 * saved_checkpoint.h - the checkpoint that an interrupted sort has left in "state"
 */
#pragma once

#include "tests/fault/test_files.h"

struct saved_checkpoint {
	struct byte_buffer manifest, runs;
};

/* Return whether the directory of the checkpoint exists. */
bool saved_checkpoint_dir_exists(void);

/* Return whether there is a checkpoint that can be resumed. */
bool saved_checkpoint_is_resumable(void);

void saved_checkpoint_read(struct saved_checkpoint *ret_checkpoint);
void saved_checkpoint_write(const struct saved_checkpoint *checkpoint);
void saved_checkpoint_free(struct saved_checkpoint *checkpoint);

/* Remove the directory and its files. */
void saved_checkpoint_remove(void);
