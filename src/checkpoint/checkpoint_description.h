/*
 * checkpoint_description - what a checkpoint is of, in words that can be compared
 *
 * A list of names and values, each ended by a NUL: everything that decides what the output's bytes
 * are. How they are made (memory, threads, back end, compression) may be different the next time.
 */
#pragma once

#include "src/cli/options.h"

struct description {
	char *text; /* free() */
	size_t nbytes;
};

/* Describe the sort; looks at the input files. 0, or a negative errno after a message. */
int description_make(const struct options *options, struct description *ret_description);

/*
 * Is the checkpoint in `directory`, whose description is `saved`, of the sort `now`? -EINVAL after
 * a message that names the first difference. but_inputs: the input files may have changed.
 */
int description_compare(const char *directory, const struct description *saved,
			const struct description *now, bool but_inputs);
