/*
 * progress_thread - the thread that calls the transport: what is begun goes out, and what is done is told
 *
 *	open the transport -> { begin what is asked, step, tell who waits, pause }* -> close it
 *	                                      | a failure, or ranks_abort()
 *	                                      +-> let go of all -> end all ranks, and the process
 *
 * Nobody else calls the transport, or what moves messages over it (p2p_protocol.c): messages are only
 * sealed and checked by who sends and receives them (p2p.c).
 */
#include <errno.h>

#include "src/base/clock.h"
#include "src/base/diagnostics.h"
#include "src/base/thread.h"
#include "src/comm/comm_internal.h"

enum {
	STAGGER = 60,           /* a timeout has so many steps */
	PAUSE_PART = 8,         /* of the time that nothing has moved */
	STACK_NBYTES = 8 << 20, /* of a library that is not ours */
};

/* Between two looks at the transport: when something is under way, and when nothing is. */
static const uint64_t shortest_pause_ns = 50000, longest_pause_ns = 500000, idle_pause_ns = 5000000;
/* Others may be started late: so long, or five timeouts if that is more. */
static const uint64_t opening_ns = 60000000000;

/*
 * The carrier's, which carries no more: of what is under way nothing is touched from now on, and
 * who has begun it hears that all has failed.
 */
static void let_go(struct ranks *ranks, int r)
{
	pthread_mutex_lock(&ranks->lock);
	if (ranks->r == 0)
		ranks->r = r;
	ranks->has_let_go = true;
	pthread_cond_broadcast(&ranks->told);
	for (struct ranks_waiter *waiter = ranks->waiting; waiter; waiter = waiter->next)
		pthread_cond_signal(&waiter->told);
	pthread_mutex_unlock(&ranks->lock);
}

/* In timeouts. */
static unsigned patience_opening(const struct ranks_settings *settings)
{
	const uint64_t n = settings->stall_ns ? opening_ns / settings->stall_ns : 0;

	return n < 5 ? 5 : (unsigned)n;
}

/*
 * When a rank is lost, all others notice at about the same time, and one line is enough. Rank 0 is
 * the first to say it, and all are ended before many have joined in.
 */
static uint64_t own_stall_ns(const struct ranks *ranks)
{
	const struct transport *transport = ranks->transport;
	const uint64_t stall_ns = ranks->settings.stall_ns, step_ns = stall_ns / STAGGER;

	if (transport->rank == 0)
		return stall_ns;
	return stall_ns + step_ns + step_ns * (uint64_t)transport->rank / (uint64_t)transport->size;
}

static int open_transport(struct ranks *ranks)
{
	int r;

	guard_enter(ranks->guard, patience_opening(&ranks->settings));
	r = ranks->open(ranks->argument, &ranks->transport);
	if (r == 0) {
		guard_lend_transport(ranks->guard, ranks->transport);
		r = delivery_open(ranks->transport, own_stall_ns(ranks),
				  ranks->settings.piece_nbytes, clock_now_ns(), &ranks->delivery);
	}
	guard_leave(ranks->guard);
	if (r < 0)
		return r;
	pthread_mutex_lock(&ranks->lock);
	ranks->rank = (unsigned)ranks->transport->rank;
	ranks->size = (unsigned)ranks->transport->size;
	ranks->is_open = true;
	pthread_cond_broadcast(&ranks->told);
	pthread_mutex_unlock(&ranks->lock);
	return 0;
}

/* Begin what is asked for, and take what is done. */
static int carry(struct ranks *ranks, struct ranks_transfer *begun, bool *ret_moved)
{
	int r = 0;

	guard_enter(ranks->guard, 1);
	for (struct ranks_transfer *next; begun && r == 0; begun = next) {
		next = begun->next;
		r = delivery_begin(ranks->delivery, begun, clock_now_ns());
	}
	if (r == 0)
		r = delivery_step(ranks->delivery, clock_now_ns(), ret_moved);
	guard_leave(ranks->guard);
	return r;
}

/* With the lock. */
static void tell_done(struct ranks *ranks)
{
	struct ranks_transfer *done = delivery_take_done(ranks->delivery);

	for (struct ranks_transfer *next; done; done = next) {
		next = done->next;
		done->is_done = true;
		if (done->waiter)
			pthread_cond_signal(&done->waiter->told);
	}
}

/* With the lock: until the time has come, or something is asked. */
static void pause_until(struct ranks *ranks, uint64_t at_ns)
{
	ranks_wait_timed(ranks, &ranks->asked, at_ns);
}

/*
 * With the lock: the longer nothing has moved, the longer the pause, but always a small part of
 * that: a library that is not looked at may not go on with a long message.
 */
static void pause_carrier(struct ranks *ranks, bool moved)
{
	const uint64_t longest_ns = delivery_is_idle(ranks->delivery) ? idle_pause_ns :
									longest_pause_ns;
	const uint64_t now_ns = clock_now_ns();
	uint64_t pause_ns;

	if (moved)
		ranks->moved_ns = now_ns;
	pause_ns = (now_ns - ranks->moved_ns) / PAUSE_PART;
	if (pause_ns > longest_ns)
		pause_ns = longest_ns;
	if (pause_ns < shortest_pause_ns)
		pause_ns = shortest_pause_ns;
	if (!ranks->begun && !ranks->is_forgetting && !ranks->is_aborting &&
	    !ranks->has_new_stall && ranks->r == 0)
		pause_until(ranks, now_ns + pause_ns);
}

/* With the lock. */
static struct ranks_transfer *take_begun(struct ranks *ranks)
{
	struct ranks_transfer *begun = ranks->begun;

	ranks->begun = NULL;
	ranks->begun_end = &ranks->begun;
	if (begun)
		ranks->moved_ns = clock_now_ns();
	return begun;
}

/*
 * With the lock. Who waits for anybody misses whoever is gone, which is no loss when all are about
 * to end.
 */
static void forget_receives(struct ranks *ranks)
{
	if (!ranks->is_forgetting || ranks->begun)
		return;
	delivery_forget(ranks->delivery);
	ranks->is_forgetting = false;
	pthread_cond_broadcast(&ranks->told);
}

/* With the lock. */
static void take_stall(struct ranks *ranks)
{
	if (ranks->has_new_stall)
		delivery_set_stall(ranks->delivery, own_stall_ns(ranks), clock_now_ns());
	ranks->has_new_stall = false;
}

/* With the lock. Until all is over, or something fails. */
static int carry_all(struct ranks *ranks)
{
	while (!ranks->is_aborting && ranks->r == 0) {
		struct ranks_transfer *begun = take_begun(ranks);
		const bool is_closing = ranks->is_closing;
		bool moved = false;
		int r;

		take_stall(ranks);
		pthread_mutex_unlock(&ranks->lock);
		r = carry(ranks, begun, &moved);
		pthread_mutex_lock(&ranks->lock);
		if (r < 0)
			return r;
		tell_done(ranks);
		forget_receives(ranks);
		if (is_closing && !delivery_sends(ranks->delivery))
			return 0;
		pause_carrier(ranks, moved);
	}
	return ranks->is_aborting ? 0 : ranks->r;
}

static int close_transport(struct ranks *ranks)
{
	int r;

	guard_enter(ranks->guard, 1);
	guard_lend_transport(ranks->guard, NULL);
	r = ranks->transport->ops->close(ranks->transport);
	guard_leave(ranks->guard);
	return r;
}

/* The job has failed. If nobody ends it, that is done here. */
static void wait_for_abort(struct ranks *ranks)
{
	const uint64_t until_ns = clock_now_ns() + ranks->settings.end_ns / 5;

	pthread_mutex_lock(&ranks->lock);
	while (!ranks->is_aborting && clock_now_ns() < until_ns)
		pause_until(ranks, until_ns);
	if (!ranks->is_aborting) {
		ranks->is_aborting = true;
		ranks->status = RANKS_STATUS_TROUBLE;
	}
	pthread_mutex_unlock(&ranks->lock);
}

static void abort_all(struct ranks *ranks) __attribute__((noreturn));
static void abort_all(struct ranks *ranks)
{
	guard_begin_end(ranks->guard, ranks->status);
	guard_enter(ranks->guard, 1);
	ranks->transport->ops->end_all(ranks->transport, ranks->status);
	guard_leave(ranks->guard);
	guard_end(ranks->guard);
}

static void *run_carrier(void *argument)
{
	struct ranks *ranks = argument;
	int r = open_transport(ranks);

	if (r < 0) {
		let_go(ranks, r);
		return NULL;
	}
	pthread_mutex_lock(&ranks->lock);
	r = carry_all(ranks);
	pthread_mutex_unlock(&ranks->lock);
	if (r < 0) {
		let_go(ranks, r);
		wait_for_abort(ranks);
	}
	if (r < 0 || ranks->is_aborting)
		abort_all(ranks);
	r = close_transport(ranks);
	if (r < 0)
		let_go(ranks, r);
	return NULL;
}

int carrier_start(struct ranks *ranks)
{
	char limits[THREAD_LIMITS_NBYTES];
	int r = thread_start(run_carrier, ranks, STACK_NBYTES, &ranks->carrier);

	if (r < 0)
		return fail(r, "cannot start a thread for messages between ranks: %m%s",
			    thread_limits(r, limits));
	pthread_mutex_lock(&ranks->lock);
	while (!ranks->is_open && !ranks->has_let_go)
		pthread_cond_wait(&ranks->told, &ranks->lock);
	r = ranks->is_open ? 0 : ranks->r;
	pthread_mutex_unlock(&ranks->lock);
	if (r < 0)
		pthread_join(ranks->carrier, NULL);
	return r;
}

int carrier_forget(struct ranks *ranks)
{
	int r;

	pthread_mutex_lock(&ranks->lock);
	ranks->is_forgetting = true;
	pthread_cond_signal(&ranks->asked);
	while (ranks->is_forgetting && !ranks->has_let_go)
		pthread_cond_wait(&ranks->told, &ranks->lock);
	r = ranks_failure(ranks);
	pthread_mutex_unlock(&ranks->lock);
	return r;
}

int carrier_finish(struct ranks *ranks)
{
	pthread_mutex_lock(&ranks->lock);
	ranks->is_closing = true;
	pthread_cond_signal(&ranks->asked);
	pthread_mutex_unlock(&ranks->lock);
	pthread_join(ranks->carrier, NULL);
	return ranks->r;
}
