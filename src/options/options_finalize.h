/*
 * options_finalize - what options mean together
 */
#pragma once

#include "src/options/options.h"

/*
 * Complete options that were taken one by one (keys, temporary directories), to which the inputs
 * were added, and refuse what makes no sense together. temp_dir: if none was named. Returns 0, or a
 * negative errno after a message that names the options.
 */
int options_finalize(struct options *options, const char *temp_dir);

/* Spill into `path`, too. */
int options_add_temp_dir(struct options *options, const char *path);
