/*
 * progress_thread - the thread that calls the transport: what is begun goes out, and what is done
 * is told
 *
 *	open the transport -> { begin what is asked, step, tell who waits, pause }* -> close it
 *	                                      | a failure, or comm_abort()
 *	                                      +-> let go of all -> end all ranks, and the process
 *
 * Nobody else calls the transport, or what moves messages over it (p2p_protocol.c): messages are
 * only sealed and checked by who sends and receives them (p2p.c).
 */
#include <errno.h>

#include "src/base/clock.h"
#include "src/base/diagnostics.h"
#include "src/base/thread.h"
#include "src/comm/comm_internal.h"

enum {
	TIMEOUT_STEPS = 60,     /* a timeout has so many steps */
	PAUSE_DIVISOR = 8,      /* of the time that nothing has moved */
	STACK_NBYTES = 8 << 20, /* of a library that is not ours */
};

/* Between two looks at the transport: when something is under way, and when nothing is. */
static const uint64_t min_pause_ns = 50000, max_pause_ns = 500000, idle_pause_ns = 5000000;
/* Others may be started late: so long, or five timeouts if that is more. */
static const uint64_t transport_open_timeout_ns = 60000000000;

/*
 * The carrier's, which carries no more: of what is under way nothing is touched from now on, and
 * who has begun it hears that all has failed.
 */
static void stop_transfers(struct comm *comm, int r)
{
	pthread_mutex_lock(&comm->lock);
	if (comm->first_error == 0)
		comm->first_error = r;
	comm->has_stopped = true;
	pthread_cond_broadcast(&comm->state_changed);
	for (struct comm_waiter *waiter = comm->waiters; waiter; waiter = waiter->next)
		pthread_cond_signal(&waiter->wakeup);
	pthread_mutex_unlock(&comm->lock);
}

/* In timeouts. */
static unsigned startup_timeout_factor(const struct comm_params *params)
{
	const uint64_t n = params->timeout_ns ? transport_open_timeout_ns / params->timeout_ns : 0;

	return n < 5 ? 5 : (unsigned)n;
}

/*
 * When a rank is lost, all others notice at about the same time, and one line is enough. Rank 0 is
 * the first to say it, and all are ended before many have joined in.
 */
static uint64_t staggered_timeout_ns(const struct comm *comm)
{
	const struct transport *transport = comm->transport;
	const uint64_t timeout_ns = comm->params.timeout_ns, step_ns = timeout_ns / TIMEOUT_STEPS;

	if (transport->rank == 0)
		return timeout_ns;
	return timeout_ns + step_ns +
	       step_ns * (uint64_t)transport->rank / (uint64_t)transport->size;
}

static int open_transport(struct comm *comm)
{
	int r;

	watchdog_begin_call(comm->watchdog, startup_timeout_factor(&comm->params));
	r = comm->transport_open(comm->transport_argument, &comm->transport);
	if (r == 0) {
		watchdog_set_transport(comm->watchdog, comm->transport);
		r = p2p_open(comm->transport, staggered_timeout_ns(comm),
			     comm->params.fragment_nbytes, clock_now_ns(), &comm->p2p);
	}
	watchdog_end_call(comm->watchdog);
	if (r < 0)
		return r;
	pthread_mutex_lock(&comm->lock);
	comm->rank = (unsigned)comm->transport->rank;
	comm->size = (unsigned)comm->transport->size;
	comm->is_open = true;
	pthread_cond_broadcast(&comm->state_changed);
	pthread_mutex_unlock(&comm->lock);
	return 0;
}

/* Begin what is asked for, and take what is done. */
static int progress_step(struct comm *comm, struct comm_transfer *submitted, bool *ret_progressed)
{
	int r = 0;

	watchdog_begin_call(comm->watchdog, 1);
	for (struct comm_transfer *next; submitted && r == 0; submitted = next) {
		next = submitted->next;
		r = p2p_begin(comm->p2p, submitted, clock_now_ns());
	}
	if (r == 0)
		r = p2p_progress(comm->p2p, clock_now_ns(), ret_progressed);
	watchdog_end_call(comm->watchdog);
	return r;
}

/* With the lock. */
static void signal_completed(struct comm *comm)
{
	struct comm_transfer *completed = p2p_take_completed(comm->p2p);

	for (struct comm_transfer *next; completed; completed = next) {
		next = completed->next;
		completed->is_done = true;
		if (completed->waiter)
			pthread_cond_signal(&completed->waiter->wakeup);
	}
}

/* With the lock: until the time has come, or something is asked. */
static void pause_until(struct comm *comm, uint64_t until_ns)
{
	comm_cond_timedwait(comm, &comm->work_available, until_ns);
}

/*
 * With the lock: the longer nothing has moved, the longer the pause, but always a small part of
 * that: a library that is not looked at may not go on with a long message.
 */
static void pause_progress(struct comm *comm, bool progressed)
{
	const uint64_t max_ns = p2p_is_idle(comm->p2p) ? idle_pause_ns : max_pause_ns;
	const uint64_t now_ns = clock_now_ns();
	uint64_t pause_ns;

	if (progressed)
		comm->last_progress_ns = now_ns;
	pause_ns = (now_ns - comm->last_progress_ns) / PAUSE_DIVISOR;
	if (pause_ns > max_ns)
		pause_ns = max_ns;
	if (pause_ns < min_pause_ns)
		pause_ns = min_pause_ns;
	if (!comm->submitted && !comm->cancels_receives && !comm->is_aborting &&
	    !comm->has_new_timeout && comm->first_error == 0)
		pause_until(comm, now_ns + pause_ns);
}

/* With the lock. */
static struct comm_transfer *take_submitted(struct comm *comm)
{
	struct comm_transfer *submitted = comm->submitted;

	comm->submitted = NULL;
	comm->submitted_end = &comm->submitted;
	if (submitted)
		comm->last_progress_ns = clock_now_ns();
	return submitted;
}

/*
 * With the lock. Who waits for anybody misses whoever is gone, which is no loss when all are about
 * to end.
 */
static void cancel_posted_receives(struct comm *comm)
{
	if (!comm->cancels_receives || comm->submitted)
		return;
	p2p_cancel_receives(comm->p2p);
	comm->cancels_receives = false;
	pthread_cond_broadcast(&comm->state_changed);
}

/* With the lock. */
static void apply_new_timeout(struct comm *comm)
{
	if (comm->has_new_timeout)
		p2p_set_timeout(comm->p2p, staggered_timeout_ns(comm), clock_now_ns());
	comm->has_new_timeout = false;
}

/* With the lock. Until all is over, or something fails. */
static int progress_loop(struct comm *comm)
{
	while (!comm->is_aborting && comm->first_error == 0) {
		struct comm_transfer *submitted = take_submitted(comm);
		const bool is_closing = comm->is_closing;
		bool progressed = false;
		int r;

		apply_new_timeout(comm);
		pthread_mutex_unlock(&comm->lock);
		r = progress_step(comm, submitted, &progressed);
		pthread_mutex_lock(&comm->lock);
		if (r < 0)
			return r;
		signal_completed(comm);
		cancel_posted_receives(comm);
		if (is_closing && !p2p_is_sending(comm->p2p))
			return 0;
		pause_progress(comm, progressed);
	}
	return comm->is_aborting ? 0 : comm->first_error;
}

static int close_transport(struct comm *comm)
{
	int r;

	watchdog_begin_call(comm->watchdog, 1);
	watchdog_set_transport(comm->watchdog, NULL);
	r = comm->transport->ops->close(comm->transport);
	watchdog_end_call(comm->watchdog);
	return r;
}

/* The job has failed. If nobody ends it, that is done here. */
static void wait_for_abort(struct comm *comm)
{
	const uint64_t until_ns = clock_now_ns() + comm->params.abort_timeout_ns / 5;

	pthread_mutex_lock(&comm->lock);
	while (!comm->is_aborting && clock_now_ns() < until_ns)
		pause_until(comm, until_ns);
	if (!comm->is_aborting) {
		comm->is_aborting = true;
		comm->abort_status = COMM_EXIT_FAILURE;
	}
	pthread_mutex_unlock(&comm->lock);
}

static void abort_all(struct comm *comm) __attribute__((noreturn));
static void abort_all(struct comm *comm)
{
	watchdog_begin_abort(comm->watchdog, comm->abort_status);
	watchdog_begin_call(comm->watchdog, 1);
	comm->transport->ops->abort_job(comm->transport, comm->abort_status);
	watchdog_end_call(comm->watchdog);
	watchdog_exit_process(comm->watchdog);
}

static void *run_progress_thread(void *argument)
{
	struct comm *comm = argument;
	int r = open_transport(comm);

	if (r < 0) {
		stop_transfers(comm, r);
		return NULL;
	}
	pthread_mutex_lock(&comm->lock);
	r = progress_loop(comm);
	pthread_mutex_unlock(&comm->lock);
	if (r < 0) {
		stop_transfers(comm, r);
		wait_for_abort(comm);
	}
	if (r < 0 || comm->is_aborting)
		abort_all(comm);
	r = close_transport(comm);
	if (r < 0)
		stop_transfers(comm, r);
	return NULL;
}

int progress_thread_start(struct comm *comm)
{
	char limits[THREAD_LIMITS_NBYTES];
	int r = thread_start(run_progress_thread, comm, STACK_NBYTES, &comm->progress_thread);

	if (r < 0)
		return fail(r, "cannot start a thread for messages between ranks: %m%s",
			    thread_format_limits(r, limits));
	pthread_mutex_lock(&comm->lock);
	while (!comm->is_open && !comm->has_stopped)
		pthread_cond_wait(&comm->state_changed, &comm->lock);
	r = comm->is_open ? 0 : comm->first_error;
	pthread_mutex_unlock(&comm->lock);
	if (r < 0)
		pthread_join(comm->progress_thread, NULL);
	return r;
}

int progress_thread_cancel_receives(struct comm *comm)
{
	int r;

	pthread_mutex_lock(&comm->lock);
	comm->cancels_receives = true;
	pthread_cond_signal(&comm->work_available);
	while (comm->cancels_receives && !comm->has_stopped)
		pthread_cond_wait(&comm->state_changed, &comm->lock);
	r = comm_get_error(comm);
	pthread_mutex_unlock(&comm->lock);
	return r;
}

int progress_thread_stop(struct comm *comm)
{
	pthread_mutex_lock(&comm->lock);
	comm->is_closing = true;
	pthread_cond_signal(&comm->work_available);
	pthread_mutex_unlock(&comm->lock);
	pthread_join(comm->progress_thread, NULL);
	return comm->first_error;
}
