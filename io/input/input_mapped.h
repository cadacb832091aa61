/*
 * input_mapped - the records of an input where they lie in the page cache
 *
 * Few regular files that are in the page cache anyway need not be copied to be looked at: they can
 * be mapped, and records be taken from there, in any order, as often as they are wanted. What can
 * become of a file meanwhile is found out afterwards (mapping.h), so before anything that was made
 * of the records is believed, input_check_mapped() is due.
 */
#pragma once

#include "io/input/input.h"

/* Of more files no input is mapped. */
enum { INPUT_MAX_MAPPED = 16 };

/*
 * Map all files. Returns 1; 0 if the input should be read instead: it is a pipe, or compressed, of
 * too many files, not in the page cache, or the system refuses; or a negative errno after a
 * message.
 */
int input_map(struct input *input);

/* Nobody looks at the records any more; input_close() does it, too. Not mapped is fine. */
void input_unmap(struct input *input);

/* Where the records of file i are, as many bytes as its extent says; NULL if it has none. */
const void *input_mapped_file(const struct input *input, size_t i);

/*
 * As input_read(), of a mapped input: but the part is only claimed, and made ready where it is.
 * Thread-safe.
 */
int input_claim_mapped(struct input *input, size_t nbytes, uint64_t *ret_position,
		       size_t *ret_nbytes);

/*
 * Was everything that has been seen until now in the files? 0, or a negative errno after a message
 * that names the one that was cut, or cannot be read. Thread-safe, and costs next to nothing.
 */
int input_check_mapped(struct input *input);
