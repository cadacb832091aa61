/*
 * heartbeat - who has been silent for too long (see heartbeat.h)
 */
#include "src/comm/heartbeat.h"

#include <errno.h>
#include <stdlib.h>

int watch_init(struct watch *watch, unsigned n_ranks, uint64_t stall_ns, uint64_t now_ns)
{
	struct watched *ranks = calloc(n_ranks, sizeof *ranks);

	if (!ranks)
		return -ENOMEM;
	for (unsigned rank = 0; rank < n_ranks; rank++)
		ranks[rank].heard_ns = now_ns;
	*watch = (struct watch){
		.stall_ns = stall_ns, .looked_ns = now_ns, .n_ranks = n_ranks, .ranks = ranks
	};
	return 0;
}

void watch_destroy(struct watch *watch)
{
	free(watch->ranks);
	watch->ranks = NULL;
}

/* Its time begins now: while nothing was awaited it owed nobody a word. */
static void begin_waiting(struct watched *watched, uint64_t now_ns)
{
	watched->heard_ns = now_ns;
	watched->is_asked = false;
}

void watch_set_stall(struct watch *watch, uint64_t stall_ns, uint64_t now_ns)
{
	watch->stall_ns = stall_ns;
	watch->looked_ns = now_ns;
	for (unsigned rank = 0; rank < watch->n_ranks; rank++)
		begin_waiting(&watch->ranks[rank], now_ns);
}

void watch_await(struct watch *watch, unsigned rank, uint64_t now_ns)
{
	if (rank < watch->n_ranks) {
		if (!watch_awaits(watch, rank))
			begin_waiting(&watch->ranks[rank], now_ns);
		watch->ranks[rank].n_awaited++;
		return;
	}
	for (unsigned any = 0; any < watch->n_ranks && watch->n_awaited_of_any == 0; any++)
		if (watch->ranks[any].n_awaited == 0)
			begin_waiting(&watch->ranks[any], now_ns);
	watch->n_awaited_of_any++;
}

void watch_awaited(struct watch *watch, unsigned rank)
{
	if (rank < watch->n_ranks)
		watch->ranks[rank].n_awaited--;
	else
		watch->n_awaited_of_any--;
}

void watch_heard(struct watch *watch, unsigned rank, uint64_t now_ns)
{
	begin_waiting(&watch->ranks[rank], now_ns);
}

bool watch_awaits(const struct watch *watch, unsigned rank)
{
	return watch->ranks[rank].n_awaited > 0 || watch->n_awaited_of_any > 0;
}

bool watch_is_time(struct watch *watch, uint64_t now_ns)
{
	const uint64_t pause_ns = now_ns - watch->looked_ns;

	if (watch->stall_ns == 0 || pause_ns < watch->stall_ns / 16)
		return false;
	for (unsigned rank = 0; rank < watch->n_ranks && pause_ns > watch->stall_ns / 4; rank++)
		begin_waiting(&watch->ranks[rank], now_ns);
	watch->looked_ns = now_ns;
	return true;
}

enum silence watch_look(struct watch *watch, unsigned rank, uint64_t now_ns)
{
	struct watched *watched = &watch->ranks[rank];
	const uint64_t silent_ns = now_ns - watched->heard_ns;

	if (!watch_awaits(watch, rank) || silent_ns < watch->stall_ns / 4)
		return SILENCE_SHORT;
	if (silent_ns >= watch->stall_ns)
		return SILENCE_STALL;
	if (watched->is_asked)
		return SILENCE_SHORT;
	watched->is_asked = true;
	return SILENCE_ASK;
}
