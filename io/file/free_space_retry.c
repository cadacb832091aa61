/*
 * free_space_retry - is there really no more of it? (see free_space_retry.h)
 */
#include "io/file/free_space_retry.h"

#include <poll.h>
#include <stddef.h>

enum { PAUSE_MS = 10, MAX_UNCHANGED_POLLS = 10, MAX_POLLS = 200 };

bool free_space_should_retry(struct free_space_poll *poll_state, uint64_t nbytes,
			     uint64_t required_nbytes)
{
	const bool has_grown = nbytes > poll_state->last_nbytes;

	if (nbytes >= required_nbytes)
		return false;
	poll_state->last_nbytes = nbytes;
	poll_state->n_unchanged = has_grown ? 0 : poll_state->n_unchanged + 1;
	if (++poll_state->n_polls > MAX_POLLS || poll_state->n_unchanged > MAX_UNCHANGED_POLLS)
		return false;
	poll(NULL, 0, PAUSE_MS);
	return true;
}
