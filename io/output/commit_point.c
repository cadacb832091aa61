/*
 * commit_point - from the moment an output gets its name no signal ends the process any more (see
 * commit_point.h)
 */
#include "io/output/commit_point.h"

#include <unistd.h>

enum { FREE, MADE, DYING }; /* of state */

bool commitment_make(struct commitment *commitment)
{
	int before = FREE;
	const bool is_first = !commitment ||
			      atomic_compare_exchange_strong(&commitment->state, &before, MADE);

	while (before == DYING)
		pause();
	return is_first;
}

void commitment_revoke(struct commitment *commitment)
{
	if (commitment)
		atomic_store(&commitment->state, FREE);
}

int commitment_missed(const struct commitment *commitment)
{
	return atomic_load(&commitment->state) == FREE ? atomic_load(&commitment->missed) : 0;
}

bool commitment_lets_die(struct commitment *commitment, int signal_number)
{
	int before = FREE;

	atomic_store(&commitment->missed, signal_number);
	return atomic_compare_exchange_strong(&commitment->state, &before, DYING) ||
	       before == DYING;
}
