/*
 * heartbeat.c - detect silent ranks (see heartbeat.h)
 */
#include "src/comm/heartbeat.h"

#include <errno.h>
#include <stdlib.h>

int heartbeat_init(struct heartbeat *heartbeat, unsigned n_ranks, uint64_t timeout_ns,
		   uint64_t now_ns)
{
	struct peer_state *peers = calloc(n_ranks, sizeof *peers);

	if (!peers)
		return -ENOMEM;
	for (unsigned rank = 0; rank < n_ranks; rank++)
		peers[rank].last_message_ns = now_ns;
	*heartbeat = (struct heartbeat){ .timeout_ns = timeout_ns,
					 .last_check_ns = now_ns,
					 .n_ranks = n_ranks,
					 .peers = peers };
	return 0;
}

void heartbeat_destroy(struct heartbeat *heartbeat)
{
	free(heartbeat->peers);
	heartbeat->peers = NULL;
}

/* Start the timeout of a peer again; while nothing was awaited it did not need to send anything. */
static void reset_peer_state(struct peer_state *peer, uint64_t now_ns)
{
	peer->last_message_ns = now_ns;
	peer->is_pinged = false;
}

void heartbeat_set_timeout(struct heartbeat *heartbeat, uint64_t timeout_ns, uint64_t now_ns)
{
	heartbeat->timeout_ns = timeout_ns;
	heartbeat->last_check_ns = now_ns;
	for (unsigned rank = 0; rank < heartbeat->n_ranks; rank++)
		reset_peer_state(&heartbeat->peers[rank], now_ns);
}

void heartbeat_begin_wait(struct heartbeat *heartbeat, unsigned rank, uint64_t now_ns)
{
	if (rank < heartbeat->n_ranks) {
		if (!heartbeat_is_waiting(heartbeat, rank))
			reset_peer_state(&heartbeat->peers[rank], now_ns);
		heartbeat->peers[rank].n_pending++;
		return;
	}
	for (unsigned i = 0; i < heartbeat->n_ranks && heartbeat->n_pending_any == 0; i++)
		if (heartbeat->peers[i].n_pending == 0)
			reset_peer_state(&heartbeat->peers[i], now_ns);
	heartbeat->n_pending_any++;
}

void heartbeat_end_wait(struct heartbeat *heartbeat, unsigned rank)
{
	if (rank < heartbeat->n_ranks)
		heartbeat->peers[rank].n_pending--;
	else
		heartbeat->n_pending_any--;
}

void heartbeat_end_all_waits(struct heartbeat *heartbeat)
{
	for (unsigned rank = 0; rank < heartbeat->n_ranks; rank++)
		heartbeat->peers[rank].n_pending = 0;
	heartbeat->n_pending_any = 0;
}

void heartbeat_record(struct heartbeat *heartbeat, unsigned rank, uint64_t now_ns)
{
	reset_peer_state(&heartbeat->peers[rank], now_ns);
}

bool heartbeat_is_waiting(const struct heartbeat *heartbeat, unsigned rank)
{
	return heartbeat->peers[rank].n_pending > 0 || heartbeat->n_pending_any > 0;
}

bool heartbeat_needs_check(struct heartbeat *heartbeat, uint64_t now_ns)
{
	const uint64_t elapsed_ns = now_ns - heartbeat->last_check_ns;

	if (heartbeat->timeout_ns == 0 || elapsed_ns < heartbeat->timeout_ns / 16)
		return false;
	for (unsigned rank = 0; rank < heartbeat->n_ranks && elapsed_ns > heartbeat->timeout_ns / 4;
	     rank++)
		reset_peer_state(&heartbeat->peers[rank], now_ns);
	heartbeat->last_check_ns = now_ns;
	return true;
}

enum heartbeat_state heartbeat_check(struct heartbeat *heartbeat, unsigned rank, uint64_t now_ns)
{
	struct peer_state *peer = &heartbeat->peers[rank];
	const uint64_t silent_ns = now_ns - peer->last_message_ns;

	if (!heartbeat_is_waiting(heartbeat, rank) || silent_ns < heartbeat->timeout_ns / 4)
		return HEARTBEAT_OK;
	if (silent_ns >= heartbeat->timeout_ns)
		return HEARTBEAT_TIMEOUT;
	if (peer->is_pinged)
		return HEARTBEAT_OK;
	peer->is_pinged = true;
	return HEARTBEAT_PING;
}
