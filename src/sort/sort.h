/*
 * sort - the whole sort (or merge) that the options ask for
 */
#pragma once

#include "src/cli/options.h"
#include "src/cli/report.h"

/*
 * Sort or merge the inputs into the output, or print the plan with --explain. stats may be NULL;
 * *ret_facts is filled in for it. Returns 0, or a negative errno after a message; the output is
 * then untouched.
 */
int sort_run(const struct options *options, struct stats *stats, struct report_facts *ret_facts);
