/*
 * output_probe.h - find out about an output without writing it, for plans
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "io/file/file.h"

/* Return whether it is a pipe or a device. */
bool output_is_special_file(const char *path);

/*
 * Check that the output can be opened, and remove it again. A pipe or a device is not opened,
 * because its reader or writer would notice. Returns 0 or a negative errno (reported).
 */
int output_try(const struct syscalls *calls, const char *path);

/* Find the free space in the directory of a file; false if it is unknown. */
bool output_find_free_space(const char *path, uint64_t *ret_nbytes);
