/*
 * command_line - what the words of gsort's command line ask for
 */
#pragma once

#include "src/options/options.h"

/* What options_parse() returns when it has done all there was to do (--help, --version). */
enum { OPTIONS_ANSWERED = 1 };

/*
 * Parse argv (which is permuted: operands last) into *ret_options. The strings of argv and of the
 * environment are pointed to, not copied.
 * Returns 0, OPTIONS_ANSWERED, or a negative errno after one message that names the option; only
 * after 0 is there something to free, by options_free().
 */
int options_parse(int argc, char **argv, struct options *ret_options);
