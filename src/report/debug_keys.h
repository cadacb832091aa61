/*
 * debug_keys - how the keys were understood, and with what they are sorted, for --debug
 */
#pragma once

#include "io/input/input.h"
#include "src/plan/sort_spec.h"

/*
 * Tell, line by line (debug_line()), each key's offset, type and direction, what is sorted in the
 * place of the records, and what the first of them sort by, if they can be read without taking
 * them away from the sort (a pipe's cannot). Returns 0 or a negative errno after a message.
 */
int debug_report_keys(const struct sort_spec *spec, const struct layout *layout,
		      struct input *input);

/* What it is sorted with. */
void debug_report_device(const char *name);
