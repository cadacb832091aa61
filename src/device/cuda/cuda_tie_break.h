/*
 * cuda_tie_break - order elements with equal prefixes by the rest of their keys
 *
 * Internal to cuda_records.c. Input: elements sorted by their prefix. Nothing is done if the prefix
 * is the whole key. Each round sorts the ties by eight more bytes of the key. Only the device knows
 * how many there are, so the host waits for the number of ties after each round.
 */
#pragma once

#include "src/device/cuda/cuda_record_op.h"

/* Returns 0, or a negative errno after a message. */
int cuda_break_ties(struct cuda_record_op *record_op);
