/*
 * final_options.h - the options that a command line gives a sort
 */
#pragma once

#include "src/options/options.h"

/*
 * Parse argv into *ret_options, as the program and the library do together. Moves operands to the
 * end of argv. Returns 0, a positive number after --help and the like, or a negative errno
 * (reported). Call options_free() only after 0.
 */
int parse_final_options(int argc, char **argv, struct options *ret_options);
