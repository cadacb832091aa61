/*
 * files0.h - lists of file names that end with NULs, as "find -print0" writes them
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Read the names in the list at `path` ("-": standard input) into *ret_paths, an array of *ret_n
 * names, at least one. The NUL after the last name is optional. The names point into *ret_text;
 * free() both. memory_nbytes: refuse more names than fit (input_check_names()); 0: no limit.
 *
 * Returns 0 or a negative errno (reported). Errors are a list that cannot be read or is empty, an
 * empty name, and the name "-" in a list from standard input.
 */
int files0_read(const char *path, uint64_t memory_nbytes, const char ***ret_paths, size_t *ret_n,
		char **ret_text);
