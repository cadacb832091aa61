/*
 * free_space - is there really no more of it? (see free_space.h)
 */
#include "io/file/free_space.h"

#include <poll.h>
#include <stddef.h>

enum { PAUSE_MS = 10, MOST_ALIKE = 10, MOST = 200 };

bool free_space_may_grow(struct free_space_looks *looks, uint64_t nbytes, uint64_t wanted_nbytes)
{
	const bool has_grown = nbytes > looks->before_nbytes;

	if (nbytes >= wanted_nbytes)
		return false;
	looks->before_nbytes = nbytes;
	looks->n_alike = has_grown ? 0 : looks->n_alike + 1;
	if (++looks->n > MOST || looks->n_alike > MOST_ALIKE)
		return false;
	poll(NULL, 0, PAUSE_MS);
	return true;
}
