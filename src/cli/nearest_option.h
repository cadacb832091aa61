/*
 * nearest_option - what may be meant by a name that no option has
 */
#pragma once

#include <stddef.h>

#include "src/cli/option_parse.h"

/* The option whose name is so like the n bytes of a name that it may be meant; NULL: none. */
const struct gsort_option *nearest_option(const struct option_list *options, const char *name,
					  size_t n);
