/*
 * free_space_retry - is there really no more of it?
 *
 * XFS takes the space of a file back some milliseconds after the file was removed, and asking how
 * much is free makes it hurry. So who removes the older output before a sort is not told that there
 * is no room for the new one:
 *
 *	struct free_space_poll looks = { 0 };
 *
 *	do
 *		nbytes = what is free;
 *	while (free_space_should_retry(&looks, nbytes, wanted_nbytes));
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct free_space_poll {
	uint64_t last_nbytes;
	unsigned n_polls, n_unchanged;
};

/*
 * So much is free: is it less than wanted, and worth another look? Then some milliseconds have
 * passed; a tenth of a second in all, or two as long as it grows.
 */
bool free_space_should_retry(struct free_space_poll *poll_state, uint64_t nbytes,
			     uint64_t required_nbytes);
