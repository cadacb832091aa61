/*
 * final_options - a command line as the options that a sort would have of it
 */
#pragma once

#include "src/options/options.h"

/*
 * Parse argv (which is permuted: operands last) into *ret_options, as the program and the library
 * do together. Returns 0; a positive number if that was all (--help); or a negative errno after a
 * message. Only after 0 is there something to free, by options_free().
 */
int parse_final_options(int argc, char **argv, struct options *ret_options);
