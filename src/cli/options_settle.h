/*
 * options_settle - what the options of a command line mean together
 */
#pragma once

#include "src/cli/option_table.h"
#include "src/cli/options.h"

/*
 * Complete options that were taken one by one (inputs, keys, temporary directories), and refuse
 * what makes no sense together. Returns 0, or a negative errno after a message that names the
 * options.
 */
int options_settle(struct options *options, const struct option_result *result);

/* Spill into `path`, too. */
int options_add_temp_dir(struct options *options, const char *path);
