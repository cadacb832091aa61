/*
 * watchdog - a thread that ends the process when nobody else can (see watchdog.h)
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
#include "src/comm/comm.h"
#include "src/comm/transport.h"

enum { ROUNDS = 16, STATUS_TROUBLE = 2 };

struct guard {
	const struct ranks_settings *settings;
	pthread_t thread;
	struct transport *_Atomic transport;
	_Atomic unsigned n_crossings; /* into the transport and back: odd inside */
	_Atomic unsigned patience;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_closing, is_ending;
	uint64_t stall_ns;
	int status;
	_Atomic bool has_ended;
	uint64_t end_at_ns;
	/* The thread's own. */
	unsigned n_seen, n_rounds;
};

static void *end_all(void *argument)
{
	struct guard *guard = argument;
	struct transport *transport = guard->transport;

	if (transport)
		transport->ops->end_all(transport, STATUS_TROUBLE);
	return NULL;
}

/* With the lock. The transport is asked by a thread of its own, which may never come back. */
static void give_up(struct guard *guard)
{
	struct transport *transport = guard->transport;
	pthread_t thread;

	fail(-ETIMEDOUT,
	     "%s has not returned for %.3g s: the network, or what carries messages over it, "
	     "is stuck",
	     transport ? transport->ops->name : "what carries messages between ranks",
	     (double)(guard->stall_ns * guard->patience) / 1e9);
	pthread_mutex_unlock(&guard->lock);
	guard_begin_end(guard, STATUS_TROUBLE);
	if (thread_start(end_all, guard, 0, &thread) == 0)
		pthread_detach(thread);
	pthread_mutex_lock(&guard->lock);
}

/* A round is over. Is the same call still under way as in the rounds before? */
static bool is_stuck(struct guard *guard)
{
	const unsigned n_crossings = guard->n_crossings;

	if (n_crossings != guard->n_seen || n_crossings % 2 == 0)
		guard->n_rounds = 0;
	guard->n_seen = n_crossings;
	return guard->n_rounds++ > ROUNDS * guard->patience;
}

static void sleep_until(struct guard *guard, uint64_t at_ns)
{
	const struct timespec at = { .tv_sec = (time_t)(at_ns / 1000000000),
				     .tv_nsec = (long)(at_ns % 1000000000) };

	pthread_cond_timedwait(&guard->changed, &guard->lock, &at);
}

/* Whoever comes second is ended by the first. */
void guard_end(struct guard *guard)
{
	if (!atomic_exchange(&guard->has_ended, true))
		guard->settings->end(guard->status);
	for (;;)
		pause();
}

static void *stand_guard(void *argument)
{
	struct guard *guard = argument;
	uint64_t looked_ns = clock_now_ns();

	pthread_mutex_lock(&guard->lock);
	while (!guard->is_closing) {
		const uint64_t now_ns = clock_now_ns(), round_ns = guard->stall_ns / ROUNDS;

		if (guard->is_ending && now_ns >= guard->end_at_ns)
			guard_end(guard);
		if (!guard->is_ending && round_ns > 0 && now_ns >= looked_ns + round_ns) {
			looked_ns = now_ns;
			if (is_stuck(guard))
				give_up(guard);
		} else if (guard->is_ending) {
			sleep_until(guard, guard->end_at_ns);
		} else if (round_ns > 0) {
			sleep_until(guard, looked_ns + round_ns);
		} else {
			pthread_cond_wait(&guard->changed, &guard->lock);
		}
	}
	pthread_mutex_unlock(&guard->lock);
	return NULL;
}

/* Its waits end by the clock that nobody sets. */
static void init_condition(pthread_cond_t *condition)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &attributes);
	pthread_condattr_destroy(&attributes);
}

int guard_open(const struct ranks_settings *settings, struct guard **ret_guard)
{
	struct guard *guard = calloc(1, sizeof *guard);
	char limits[THREAD_LIMITS_NBYTES];
	int r;

	if (!guard)
		return fail(-ENOMEM, "no memory for messages between ranks");
	guard->settings = settings;
	guard->stall_ns = settings->stall_ns;
	guard->patience = 1;
	pthread_mutex_init(&guard->lock, NULL);
	init_condition(&guard->changed);
	r = thread_start(stand_guard, guard, 0, &guard->thread);
	if (r < 0) {
		fail(r, "cannot start a thread that watches over ranks: %m%s",
		     thread_limits(r, limits));
		free(guard);
		return r;
	}
	*ret_guard = guard;
	return 0;
}

void guard_close(struct guard *guard)
{
	if (!guard)
		return;
	pthread_mutex_lock(&guard->lock);
	guard->is_closing = true;
	pthread_cond_signal(&guard->changed);
	pthread_mutex_unlock(&guard->lock);
	pthread_join(guard->thread, NULL);
	pthread_cond_destroy(&guard->changed);
	pthread_mutex_destroy(&guard->lock);
	free(guard);
}

void guard_set_stall(struct guard *guard, uint64_t stall_ns)
{
	pthread_mutex_lock(&guard->lock);
	guard->stall_ns = stall_ns;
	guard->n_rounds = 0;
	pthread_cond_signal(&guard->changed);
	pthread_mutex_unlock(&guard->lock);
}

void guard_lend_transport(struct guard *guard, struct transport *transport)
{
	guard->transport = transport;
}

void guard_enter(struct guard *guard, unsigned patience)
{
	guard->patience = patience;
	guard->n_crossings++;
}

void guard_leave(struct guard *guard)
{
	guard->n_crossings++;
}

void guard_begin_end(struct guard *guard, int status)
{
	const struct ranks_settings *settings = guard->settings;
	bool is_first;

	pthread_mutex_lock(&guard->lock);
	is_first = !guard->is_ending;
	if (is_first) {
		guard->is_ending = true;
		guard->status = status;
		guard->end_at_ns = clock_now_ns() + settings->end_ns;
		pthread_cond_signal(&guard->changed);
	}
	pthread_mutex_unlock(&guard->lock);
	if (is_first && settings->before_end)
		settings->before_end(settings->context);
}
