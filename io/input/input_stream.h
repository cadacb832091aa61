/*
 * input_stream - inputs with a pipe among them: one source after the other, to its end
 *
 * Where the records of a pipe end shows only when it is read: its header is read over when it is
 * started, and its tail is what is left at its end.
 */
#pragma once

#include "io/input/input_internal.h"

/* input_read(), under the claim lock. */
int input_read_serial(struct input *input, void *buffer, size_t nbytes, uint64_t *ret_position,
		      size_t *ret_nbytes);

/* Room for the last nbytes of a source, which are no record. -ENOMEM after a message. */
int input_allocate_trailer(struct input_source *entry, size_t nbytes);
