/*
 * check - is a file sorted? (-c and -C)
 */
#pragma once

#include "src/options/options.h"
#include "src/sort/sort.h"

/*
 * What is known about the records goes into *ret_facts. Returns 0, 1 after the message about a
 * disorder (none for -C), or a negative errno after a message.
 */
int check_run(const struct options *options, const struct sort_spec *spec,
	      const struct sort_observer *observer, struct stats *stats,
	      struct sort_facts *ret_facts);
