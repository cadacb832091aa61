/*
 * gen_file - a data set into a file, by several threads
 */
#pragma once

#include "tools/gen/data_set.h"

/*
 * Write all records to `path`, or to standard output if that is NULL. An older file is replaced
 * when all is written. Returns 0, or a negative errno after a message.
 */
int gen_write_file(const struct data_set *data_set, const char *path, unsigned n_threads);
