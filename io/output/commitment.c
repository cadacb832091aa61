/*
 * commitment - from the moment an output gets its name no signal ends the process any more (see
 * commitment.h)
 */
#include "io/output/commitment.h"

#include <stdatomic.h>
#include <unistd.h>

enum { FREE, MADE, DYING };

static atomic_int state;  /* FREE, in the beginning */
static atomic_int missed; /* the last signal that was passed over; 0: none */

bool commitment_make(void)
{
	int before = FREE;
	const bool is_first = atomic_compare_exchange_strong(&state, &before, MADE);

	while (before == DYING)
		pause();
	return is_first;
}

void commitment_revoke(void)
{
	atomic_store(&state, FREE);
}

int commitment_missed(void)
{
	return atomic_load(&state) == FREE ? atomic_load(&missed) : 0;
}

bool commitment_lets_die(int signal_number)
{
	int before = FREE;

	atomic_store(&missed, signal_number);
	return atomic_compare_exchange_strong(&state, &before, DYING) || before == DYING;
}
