/*
 * watchdog.c - detect ranks that have failed, and end a process that hangs (see watchdog.h)
 */
#include "src/comm/watchdog.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/diagnostics.h"
#include "src/base/thread.h"
#include "src/base/thread_pool.h"
#include "src/comm/transport.h"

enum { WATCHDOG_ROUNDS = 16, WATCHDOG_EXIT_STATUS = 2 };

struct watchdog {
	struct watchdog_params params;
	struct workers worker; /* one thread */
	struct transport *_Atomic transport;
	_Atomic bool has_met;           /* there was a transport */
	_Atomic unsigned call_sequence; /* calls begun plus calls returned: odd during a call */
	bool is_aborting;
	uint64_t timeout_ns;
	int exit_status;
	_Atomic bool has_exited;
	uint64_t exit_deadline_ns;
	/* Used only by the watchdog's thread. */
	unsigned last_sequence, n_stuck_rounds;
};

static void *abort_transport(void *argument)
{
	struct watchdog *watchdog = argument;
	struct transport *transport = watchdog->transport;

	if (transport)
		transport->ops->abort_job(transport, WATCHDOG_EXIT_STATUS);
	return NULL;
}

/* Requires the lock. Another thread calls the transport, because that call may never return. */
static void report_stuck_transport(struct watchdog *watchdog)
{
	struct transport *transport = watchdog->transport;
	const double timeout_s = (double)watchdog->timeout_ns / 1e9;
	pthread_t thread;

	if (transport)
		fail(-ETIMEDOUT, "%s has not returned for %.3g s; check the network",
		     transport->ops->name, timeout_s);
	else if (watchdog->has_met)
		fail(-ETIMEDOUT,
		     "the connection of ranks has not ended for %.3g s, after the work was done",
		     timeout_s);
	else
		fail(-ETIMEDOUT, "ranks have not met within %.3g s; a rank is stopped or missing",
		     timeout_s);
	pthread_mutex_unlock(&watchdog->worker.lock);
	watchdog_begin_abort(watchdog, WATCHDOG_EXIT_STATUS);
	if (thread_start(abort_transport, watchdog, 0, &thread) == 0)
		pthread_detach(thread);
	pthread_mutex_lock(&watchdog->worker.lock);
}

/* Return whether the transport has been in the same call for too many rounds. */
static bool is_transport_stuck(struct watchdog *watchdog)
{
	const unsigned sequence = watchdog->call_sequence;

	if (sequence != watchdog->last_sequence || sequence % 2 == 0)
		watchdog->n_stuck_rounds = 0;
	watchdog->last_sequence = sequence;
	return watchdog->n_stuck_rounds++ > WATCHDOG_ROUNDS;
}

/* Of several callers, the first ends the process. */
void watchdog_exit_process(struct watchdog *watchdog)
{
	if (!atomic_exchange(&watchdog->has_exited, true))
		watchdog->params.exit_process(watchdog->exit_status);
	for (;;)
		pause();
}

static void *run_watchdog(void *argument)
{
	struct watchdog *watchdog = argument;
	uint64_t last_round_ns = clock_now_ns();

	SCOPED_LOCK(&watchdog->worker.lock);
	while (!watchdog->worker.closing) {
		const uint64_t now_ns = clock_now_ns(),
			       round_ns = watchdog->timeout_ns / WATCHDOG_ROUNDS;

		if (watchdog->is_aborting && now_ns >= watchdog->exit_deadline_ns)
			watchdog_exit_process(watchdog);
		if (!watchdog->is_aborting && round_ns > 0 && now_ns >= last_round_ns + round_ns) {
			last_round_ns = now_ns;
			if (is_transport_stuck(watchdog))
				report_stuck_transport(watchdog);
		} else if (watchdog->is_aborting) {
			thread_wait_until(&watchdog->worker.changed, &watchdog->worker.lock,
					  watchdog->exit_deadline_ns);
		} else if (round_ns > 0) {
			thread_wait_until(&watchdog->worker.changed, &watchdog->worker.lock,
					  last_round_ns + round_ns);
		} else {
			pthread_cond_wait(&watchdog->worker.changed, &watchdog->worker.lock);
		}
	}
	return NULL;
}

int watchdog_open(const struct watchdog_params *params, struct watchdog **ret_watchdog)
{
	struct watchdog *watchdog = calloc(1, sizeof *watchdog);
	int r;

	if (!watchdog)
		return fail(-ENOMEM, "no memory for messages between ranks");
	watchdog->params = *params;
	watchdog->timeout_ns = params->timeout_ns;
	workers_open(&watchdog->worker);
	r = thread_group_start(&watchdog->worker.threads, 1, run_watchdog, watchdog, NULL);
	if (r < 0) {
		watchdog_close(watchdog);
		return fail(r, "cannot start the watchdog thread: %m%s",
			    thread_format_limits(r).text);
	}
	*ret_watchdog = watchdog;
	return 0;
}

void watchdog_close(struct watchdog *watchdog)
{
	if (!watchdog)
		return;
	workers_close(&watchdog->worker);
	free(watchdog);
}

void watchdog_set_timeout(struct watchdog *watchdog, uint64_t timeout_ns)
{
	SCOPED_LOCK(&watchdog->worker.lock);
	watchdog->timeout_ns = timeout_ns;
	watchdog->n_stuck_rounds = 0;
	pthread_cond_signal(&watchdog->worker.changed);
}

void watchdog_set_transport(struct watchdog *watchdog, struct transport *transport)
{
	watchdog->transport = transport;
	watchdog->has_met = watchdog->has_met || transport;
}

void watchdog_begin_call(struct watchdog *watchdog)
{
	watchdog->call_sequence++;
}

void watchdog_end_call(struct watchdog *watchdog)
{
	watchdog->call_sequence++;
}

void watchdog_begin_abort(struct watchdog *watchdog, int status)
{
	const struct watchdog_params *params = &watchdog->params;
	bool is_first;

	pthread_mutex_lock(&watchdog->worker.lock);
	is_first = !watchdog->is_aborting;
	if (is_first) {
		watchdog->is_aborting = true;
		watchdog->exit_status = status;
		watchdog->exit_deadline_ns = clock_now_ns() + params->abort_timeout_ns;
		pthread_cond_signal(&watchdog->worker.changed);
	}
	pthread_mutex_unlock(&watchdog->worker.lock);
	if (is_first && params->before_abort)
		params->before_abort(params->context);
}

/* --- heartbeat --- */

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
void heartbeat_record(struct heartbeat *heartbeat, unsigned rank, uint64_t now_ns)
{
	heartbeat->peers[rank].last_message_ns = now_ns;
	heartbeat->peers[rank].is_pinged = false;
}

void heartbeat_set_timeout(struct heartbeat *heartbeat, uint64_t timeout_ns, uint64_t now_ns)
{
	heartbeat->timeout_ns = timeout_ns;
	heartbeat->last_check_ns = now_ns;
	for (unsigned rank = 0; rank < heartbeat->n_ranks; rank++)
		heartbeat_record(heartbeat, rank, now_ns);
}

void heartbeat_begin_wait(struct heartbeat *heartbeat, unsigned rank, uint64_t now_ns)
{
	if (rank < heartbeat->n_ranks) {
		if (!heartbeat_is_waiting(heartbeat, rank))
			heartbeat_record(heartbeat, rank, now_ns);
		heartbeat->peers[rank].n_pending++;
		return;
	}
	for (unsigned i = 0; i < heartbeat->n_ranks && heartbeat->n_pending_any == 0; i++)
		if (heartbeat->peers[i].n_pending == 0)
			heartbeat_record(heartbeat, i, now_ns);
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
		heartbeat_record(heartbeat, rank, now_ns);
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
