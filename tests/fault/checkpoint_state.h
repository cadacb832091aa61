/*
 * checkpoint_state - what an interrupted sort has left in its checkpoint, "state", and beside its output
 */
#pragma once

#include "tests/fault/test_files.h"

struct kept {
	struct bytes manifest, runs, output;
	char output_name[256]; /* "" if no output is kept */
};

/* Is there anything in the place of a checkpoint? */
bool kept_anything(void);

/* Is there a checkpoint that can be taken up? */
bool kept_is_there(void);

void kept_read(struct kept *ret_kept);
void kept_write(const struct kept *kept);
void kept_free(struct kept *kept);

/* Remove it all. */
void kept_remove(void);
