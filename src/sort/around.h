/*
 * around - what of the inputs is no record, around the records of the output
 *
 *	[ header of the first input ][ records ][ tails that are kept, in the order of the inputs ]
 */
#pragma once

#include "io/output/output.h"
#include "src/run/input_runs.h"

/* The inputs, once they have been read. */
struct around {
	struct input *input;
	const struct input_runs *merged; /* which were read in the place of `input`; or NULL */
};

/* What it will take of the output; only if the total size of `input` is known. */
uint64_t around_nbytes(const struct input *input);

/* Both return 0 or a negative errno after a message. */
int around_write_header(const struct around *frame, struct output *output);
int around_write_tails(const struct around *frame, struct output *output, uint64_t offset);

/*
 * Read both back: are they what was written? Returns 0 and *ret_same; -ESPIPE without a message if
 * the output cannot be read, or another negative errno after one.
 */
int around_verify(const struct around *frame, struct output *output, uint64_t tails_offset,
		  bool *ret_same);
