/*
 * files0.h - lists of file names, each ended by a NUL, as "find -print0" writes them
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * memory_nbytes: refuse more names than have room in it (input_check_names()); 0: no limit.
 *
 * Read all names of the list at `path` ("-": standard input) into *ret_paths, an array of *ret_n
 * (at least one). The last name need not be ended. The names point into *ret_text; free() both.
 * Returns 0, or a negative errno after a message: a list that cannot be read or is empty, an empty
 * name, or, in a list that is read from standard input, the name "-".
 */
int files0_read(const char *path, uint64_t memory_nbytes, const char ***ret_paths, size_t *ret_n,
		char **ret_text);
