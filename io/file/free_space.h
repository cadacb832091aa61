/*
 * free_space - is there really no more of it?
 *
 * XFS takes the space of a file back some milliseconds after the file was removed, and asking how
 * much is free makes it hurry. So who removes the older output before a sort is not told that there
 * is no room for the new one:
 *
 *	struct free_space_looks looks = { 0 };
 *
 *	do
 *		nbytes = what is free;
 *	while (free_space_may_grow(&looks, nbytes, wanted_nbytes));
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct free_space_looks {
	uint64_t before_nbytes;
	unsigned n, n_alike;
};

/*
 * So much is free: is it less than wanted, and worth another look? Then some milliseconds have
 * passed; a tenth of a second in all, or two as long as it grows.
 */
bool free_space_may_grow(struct free_space_looks *looks, uint64_t nbytes, uint64_t wanted_nbytes);
