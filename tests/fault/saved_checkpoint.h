/*
 * saved_checkpoint - what an interrupted sort has left in its checkpoint, "state"
 */
#pragma once

#include "tests/fault/test_files.h"

struct saved_checkpoint {
	struct byte_buffer manifest, runs;
};

/* Is there anything in the place of a checkpoint? */
bool saved_checkpoint_dir_exists(void);

/* Is there a checkpoint that can be taken up? */
bool saved_checkpoint_is_resumable(void);

void saved_checkpoint_read(struct saved_checkpoint *ret_checkpoint);
void saved_checkpoint_write(const struct saved_checkpoint *checkpoint);
void saved_checkpoint_free(struct saved_checkpoint *checkpoint);

/* Remove it all. */
void saved_checkpoint_remove(void);
