/*
 * commit_point - from the moment an output gets its name no signal ends the process any more (see
 * commit_point.h)
 */
#include "io/output/commit_point.h"

#include <unistd.h>

enum { COMMIT_IDLE, COMMIT_BEGUN, COMMIT_TERMINATING }; /* of state */

bool commit_begin(struct commit_point *commit)
{
	int expected = COMMIT_IDLE;
	const bool is_first =
		!commit || atomic_compare_exchange_strong(&commit->state, &expected, COMMIT_BEGUN);

	while (expected == COMMIT_TERMINATING)
		pause();
	return is_first;
}

void commit_rollback(struct commit_point *commit)
{
	if (commit)
		atomic_store(&commit->state, COMMIT_IDLE);
}

int commit_pending_signal(const struct commit_point *commit)
{
	return atomic_load(&commit->state) == COMMIT_IDLE ? atomic_load(&commit->pending_signal) :
							    0;
}

bool commit_signal_may_kill(struct commit_point *commit, int signal_number)
{
	int expected = COMMIT_IDLE;

	atomic_store(&commit->pending_signal, signal_number);
	return atomic_compare_exchange_strong(&commit->state, &expected, COMMIT_TERMINATING) ||
	       expected == COMMIT_TERMINATING;
}
