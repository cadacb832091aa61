/*
 * p2p - what other threads ask of the carrier, and how they wait for it (see comm.h)
 *
 * A transfer goes to the carrier's queue. Who waits for one enters itself among those that are
 * waiting, and is woken by the carrier alone: when its transfer is done, or when nothing is under
 * way any more since something has failed.
 */
#include <assert.h>
#include <errno.h>

#include "src/base/clock.h"
#include "src/comm/comm_internal.h"

/* Later than any clock will be. */
static const uint64_t never_ns = INT64_MAX;

void ranks_init_timed(pthread_cond_t *condition)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &attributes);
	pthread_condattr_destroy(&attributes);
}

int ranks_wait_timed(struct ranks *ranks, pthread_cond_t *condition, uint64_t until_ns)
{
	const struct timespec until = { .tv_sec = (time_t)(until_ns / 1000000000),
					.tv_nsec = (long)(until_ns % 1000000000) };

	return pthread_cond_timedwait(condition, &ranks->lock, &until);
}

/* With the lock. */
static void waiter_enter(struct ranks *ranks, struct ranks_waiter *waiter)
{
	*waiter = (struct ranks_waiter){ .next = ranks->waiting, .at = &ranks->waiting };
	ranks_init_timed(&waiter->told);
	if (waiter->next)
		waiter->next->at = &waiter->next;
	ranks->waiting = waiter;
}

static void waiter_leave(struct ranks_waiter *waiter)
{
	*waiter->at = waiter->next;
	if (waiter->next)
		waiter->next->at = waiter->at;
	pthread_cond_destroy(&waiter->told);
}

int ranks_failure(struct ranks *ranks)
{
	while (ranks->r < 0 && !ranks->has_let_go)
		pthread_cond_wait(&ranks->told, &ranks->lock);
	return ranks->r;
}

int ranks_give_up(struct ranks *ranks, int r)
{
	pthread_mutex_lock(&ranks->lock);
	if (ranks->r == 0)
		ranks->r = r;
	pthread_cond_signal(&ranks->asked);
	r = ranks_failure(ranks);
	pthread_mutex_unlock(&ranks->lock);
	return r;
}

int ranks_await_failure(struct ranks *ranks)
{
	const uint64_t until_ns = clock_now_ns() + ranks->settings.end_ns;
	struct ranks_waiter waiter;
	bool is_late = false;
	int r;

	pthread_mutex_lock(&ranks->lock);
	waiter_enter(ranks, &waiter);
	while (!ranks->has_let_go && !is_late)
		is_late = ranks_wait_timed(ranks, &waiter.told, until_ns) == ETIMEDOUT;
	waiter_leave(&waiter);
	r = ranks_failure(ranks);
	pthread_mutex_unlock(&ranks->lock);
	return r;
}

static int begin(struct ranks *ranks, struct ranks_transfer *transfer)
{
	int r;

	pthread_mutex_lock(&ranks->lock);
	r = ranks_failure(ranks);
	if (r == 0) {
		transfer->next = NULL;
		*ranks->begun_end = transfer;
		ranks->begun_end = &transfer->next;
		pthread_cond_signal(&ranks->asked);
	}
	pthread_mutex_unlock(&ranks->lock);
	return r;
}

int ranks_send(struct ranks *ranks, unsigned to, unsigned tag, const void *data, size_t nbytes,
	       struct ranks_transfer *ret_transfer)
{
	assert(to < ranks->size);
	*ret_transfer = (struct ranks_transfer){
		.peer = to, .tag = tag, .data = (char *)(uintptr_t)data, .nbytes = nbytes
	};
	delivery_seal(ret_transfer);
	return begin(ranks, ret_transfer);
}

static int receive(struct ranks *ranks, struct ranks_transfer what,
		   struct ranks_transfer *ret_transfer)
{
	assert(what.peer < ranks->size || what.peer == RANKS_ANY);
	what.is_receive = true;
	*ret_transfer = what;
	return begin(ranks, ret_transfer);
}

int ranks_receive(struct ranks *ranks, unsigned from, unsigned tag, void *data, size_t nbytes,
		  struct ranks_transfer *ret_transfer)
{
	return receive(ranks,
		       (struct ranks_transfer){
			       .peer = from, .tag = tag, .data = data, .capacity = nbytes },
		       ret_transfer);
}

int ranks_receive_up_to(struct ranks *ranks, unsigned from, unsigned tag, void *data,
			size_t capacity, struct ranks_transfer *ret_transfer)
{
	return receive(ranks,
		       (struct ranks_transfer){ .peer = from,
						.tag = tag,
						.data = data,
						.capacity = capacity,
						.may_be_shorter = true },
		       ret_transfer);
}

int ranks_receive_patiently(struct ranks *ranks, unsigned from, unsigned tag, void *data,
			    size_t nbytes, struct ranks_transfer *ret_transfer)
{
	return receive(ranks,
		       (struct ranks_transfer){ .peer = from,
						.tag = tag,
						.data = data,
						.capacity = nbytes,
						.is_patient = true },
		       ret_transfer);
}

/* What has been carried is looked at by who wants it: the carrier has more to carry. */
static int look_at(struct ranks *ranks, struct ranks_transfer *transfer)
{
	int r;

	if (!transfer->is_receive || transfer->is_checked)
		return 0;
	r = delivery_check(ranks->delivery, transfer);
	transfer->is_checked = true;
	return r < 0 ? ranks_give_up(ranks, r) : 0;
}

int ranks_test(struct ranks *ranks, struct ranks_transfer *transfer, bool *ret_done)
{
	bool is_done;
	int r;

	pthread_mutex_lock(&ranks->lock);
	r = ranks_failure(ranks);
	is_done = transfer->is_done;
	pthread_mutex_unlock(&ranks->lock);
	if (r == 0 && is_done)
		r = look_at(ranks, transfer);
	if (r == 0)
		*ret_done = is_done;
	return r;
}

int ranks_wait_until(struct ranks *ranks, struct ranks_transfer *transfer, uint64_t until_ns,
		     bool *ret_done)
{
	struct ranks_waiter waiter;
	bool is_late = false, is_done;
	int r;

	pthread_mutex_lock(&ranks->lock);
	waiter_enter(ranks, &waiter);
	transfer->waiter = &waiter;
	while (!transfer->is_done && !ranks->has_let_go && !is_late)
		is_late = ranks_wait_timed(ranks, &waiter.told, until_ns) == ETIMEDOUT;
	transfer->waiter = NULL;
	waiter_leave(&waiter);
	is_done = transfer->is_done;
	r = ranks_failure(ranks);
	pthread_mutex_unlock(&ranks->lock);
	if (r == 0 && is_done)
		r = look_at(ranks, transfer);
	if (r == 0)
		*ret_done = is_done;
	return r;
}

int ranks_wait(struct ranks *ranks, struct ranks_transfer *transfer)
{
	bool is_done;

	return ranks_wait_until(ranks, transfer, never_ns, &is_done);
}
