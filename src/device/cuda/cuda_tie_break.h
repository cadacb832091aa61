/*
 * cuda_tie_break - elements in the order of whole keys
 *
 * For cuda_records.c only. Elements of records that are in the order of what they hold of the key
 * are put in the order of all of it; nothing is done where they hold all. Refining goes in rounds,
 * each of which sorts what ties by eight more bytes of the key, and how many there are only the
 * device knows: the host waits for the number of ties after each.
 */
#pragma once

#include "src/device/cuda/cuda_record_op.h"

/* Returns 0, or a negative errno after a message. */
int cuda_break_ties(struct cuda_record_op *record_op);
