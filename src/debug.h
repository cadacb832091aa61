/*
 * debug - how the keys were understood, for --debug
 */
#pragma once

#include "io/input.h"
#include "src/record.h"

/*
 * Print on standard error the key's offset, type and direction, what is sorted in its place, and
 * the codes of the first records, if they can be read without taking them away from the sort (a
 * pipe's cannot). Returns 0 or a negative errno after a message.
 */
int debug_print(const struct layout *layout, struct input *input);
