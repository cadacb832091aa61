/*
 * unsupported_options - what users of GNU sort will try, and what gsort has instead
 */
#pragma once

#include "src/cli/option_parse.h"

/* Ends with a name of NULL. */
extern const struct unsupported_option unsupported_options[];
