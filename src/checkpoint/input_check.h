/*
 * input_check - do the inputs still hold what stored runs were made of?
 *
 * Runs that are taken up are merged with what is read now. That the inputs are the same files, with
 * the same times, is known by then (fingerprint.h); but times can be wrong: a clock was
 * set back, a file system keeps none, a change came within one tick of the clock. A run knows the
 * digest of the records that it was made of, so what it was made of can be read again:
 *
 * - where that is in the page cache, which costs little;
 * - elsewhere as long as it is a small part of what all runs hold, the latest runs first.
 *
 * What is neither is not looked at: reading all of it again could cost as much as what the
 * checkpoint saves.
 */
#pragma once

#include "io/input/input.h"
#include "src/base/stats.h"
#include "src/checkpoint/manifest_records.h"

struct input_check {
	struct input *input;
	const struct layout *layout;
	const struct checkpoint_run *runs; /* n_runs: of one part of the input after the other */
	size_t n_runs;
	uint64_t first_record; /* of the input, that the first run is made of */
	unsigned n_threads;
	struct stats *stats; /* may be NULL */
};

/* Of bytes that must be had from a disk, so many are read at most: a part of nbytes. */
uint64_t input_check_budget(uint64_t nbytes);

/*
 * Returns 0; -EBADMSG without a message if what *ret_bad was made of is not there any more; or
 * another negative errno after a message.
 */
int input_check_run(const struct input_check *check, size_t *ret_bad);
