/*
 * thread_gate.h - a gate at which threads wait until a test opens it
 *
 * Each wait is bounded, so a hang becomes a failure.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

struct gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned n_open; /* passages granted and not yet taken */
};

#define GATE_INITIALIZER                                                                           \
	{                                                                                          \
		.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER             \
	}

/* Let n threads, or one thread n times, through. */
static inline void gate_open(struct gate *gate, unsigned n)
{
	pthread_mutex_lock(&gate->lock);
	gate->n_open += n;
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->lock);
}

/* Wait until the gate is open and go through. Returns false after `seconds`. */
static inline bool gate_pass_within(struct gate *gate, unsigned seconds)
{
	struct timespec end;
	bool passed;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += seconds;
	pthread_mutex_lock(&gate->lock);
	while (!gate->n_open && pthread_cond_timedwait(&gate->changed, &gate->lock, &end) == 0)
		;
	passed = gate->n_open > 0;
	gate->n_open -= passed;
	pthread_mutex_unlock(&gate->lock);
	return passed;
}

static inline bool gate_pass(struct gate *gate)
{
	return gate_pass_within(gate, 20);
}
