/*
 * temp_space_check - does what is to be spilled fit?
 *
 * What can be known to fail should fail before it starts: a sort whose runs are stored as they are,
 * and all of its records, and for which the directories or --temp-limit have too little. What
 * shrinks on its way may fit. Then it goes on, encoding whatever it costs, and looks again when the
 * first run is stored: if that did not shrink, the others are not expected to either. After that it
 * is the spill that finds a full disk, and says so.
 */
#pragma once

#include <stdbool.h>

struct job;
struct sort_spec;

struct temp_space {
	const struct sort_spec *spec;
	bool needs_compression; /* it fits only if it shrinks */
};

/* Before anything is spilled. 0, or -ENOSPC after a message that says how much is missing where. */
int temp_space_check(struct job *job, const struct sort_spec *spec);

/* The same when a run has been spilled. */
int temp_space_recheck(const struct job *job);
