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
static const uint64_t no_deadline_ns = INT64_MAX;

void comm_cond_init(pthread_cond_t *condition)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &attributes);
	pthread_condattr_destroy(&attributes);
}

int comm_cond_timedwait(struct comm *comm, pthread_cond_t *condition, uint64_t until_ns)
{
	const struct timespec until = { .tv_sec = (time_t)(until_ns / 1000000000),
					.tv_nsec = (long)(until_ns % 1000000000) };

	return pthread_cond_timedwait(condition, &comm->lock, &until);
}

/* With the lock. */
static void waiter_add(struct comm *comm, struct comm_waiter *waiter)
{
	*waiter = (struct comm_waiter){ .next = comm->waiters, .link = &comm->waiters };
	comm_cond_init(&waiter->wakeup);
	if (waiter->next)
		waiter->next->link = &waiter->next;
	comm->waiters = waiter;
}

static void waiter_remove(struct comm_waiter *waiter)
{
	*waiter->link = waiter->next;
	if (waiter->next)
		waiter->next->link = waiter->link;
	pthread_cond_destroy(&waiter->wakeup);
}

int comm_get_error(struct comm *comm)
{
	while (comm->first_error < 0 && !comm->has_stopped)
		pthread_cond_wait(&comm->state_changed, &comm->lock);
	return comm->first_error;
}

int comm_fail(struct comm *comm, int r)
{
	pthread_mutex_lock(&comm->lock);
	if (comm->first_error == 0)
		comm->first_error = r;
	pthread_cond_signal(&comm->work_available);
	r = comm_get_error(comm);
	pthread_mutex_unlock(&comm->lock);
	return r;
}

int comm_wait_remote_failure(struct comm *comm)
{
	const uint64_t until_ns = clock_now_ns() + comm->params.abort_timeout_ns;
	struct comm_waiter waiter;
	bool timed_out = false;
	int r;

	pthread_mutex_lock(&comm->lock);
	waiter_add(comm, &waiter);
	while (!comm->has_stopped && !timed_out)
		timed_out = comm_cond_timedwait(comm, &waiter.wakeup, until_ns) == ETIMEDOUT;
	waiter_remove(&waiter);
	r = comm_get_error(comm);
	pthread_mutex_unlock(&comm->lock);
	return r;
}

static int submit_transfer(struct comm *comm, struct comm_transfer *transfer)
{
	int r;

	pthread_mutex_lock(&comm->lock);
	r = comm_get_error(comm);
	if (r == 0) {
		transfer->next = NULL;
		*comm->submitted_end = transfer;
		comm->submitted_end = &transfer->next;
		pthread_cond_signal(&comm->work_available);
	}
	pthread_mutex_unlock(&comm->lock);
	return r;
}

int comm_send(struct comm *comm, unsigned to, unsigned tag, const void *data, size_t nbytes,
	      struct comm_transfer *ret_transfer)
{
	assert(to < comm->size);
	*ret_transfer = (struct comm_transfer){
		.peer = to, .tag = tag, .data = (char *)(uintptr_t)data, .nbytes = nbytes
	};
	p2p_set_checksum(ret_transfer);
	return submit_transfer(comm, ret_transfer);
}

static int submit_receive(struct comm *comm, struct comm_transfer transfer,
			  struct comm_transfer *ret_transfer)
{
	assert(transfer.peer < comm->size || transfer.peer == COMM_ANY_RANK);
	transfer.is_receive = true;
	*ret_transfer = transfer;
	return submit_transfer(comm, ret_transfer);
}

int comm_receive(struct comm *comm, unsigned from, unsigned tag, void *data, size_t nbytes,
		 struct comm_transfer *ret_transfer)
{
	return submit_receive(comm,
			      (struct comm_transfer){
				      .peer = from, .tag = tag, .data = data, .capacity = nbytes },
			      ret_transfer);
}

int comm_receive_up_to(struct comm *comm, unsigned from, unsigned tag, void *data, size_t capacity,
		       struct comm_transfer *ret_transfer)
{
	return submit_receive(comm,
			      (struct comm_transfer){ .peer = from,
						      .tag = tag,
						      .data = data,
						      .capacity = capacity,
						      .may_be_shorter = true },
			      ret_transfer);
}

int comm_receive_unwatched(struct comm *comm, unsigned from, unsigned tag, void *data,
			   size_t nbytes, struct comm_transfer *ret_transfer)
{
	return submit_receive(comm,
			      (struct comm_transfer){ .peer = from,
						      .tag = tag,
						      .data = data,
						      .capacity = nbytes,
						      .is_unwatched = true },
			      ret_transfer);
}

/* What has been carried is looked at by who wants it: the carrier has more to carry. */
static int verify_received(struct comm *comm, struct comm_transfer *transfer)
{
	int r;

	if (!transfer->is_receive || transfer->is_checked)
		return 0;
	r = p2p_verify_checksum(comm->p2p, transfer);
	transfer->is_checked = true;
	return r < 0 ? comm_fail(comm, r) : 0;
}

int comm_test(struct comm *comm, struct comm_transfer *transfer, bool *ret_done)
{
	bool is_done;
	int r;

	pthread_mutex_lock(&comm->lock);
	r = comm_get_error(comm);
	is_done = transfer->is_done;
	pthread_mutex_unlock(&comm->lock);
	if (r == 0 && is_done)
		r = verify_received(comm, transfer);
	if (r == 0)
		*ret_done = is_done;
	return r;
}

int comm_wait_until(struct comm *comm, struct comm_transfer *transfer, uint64_t until_ns,
		    bool *ret_done)
{
	struct comm_waiter waiter;
	bool timed_out = false, is_done;
	int r;

	pthread_mutex_lock(&comm->lock);
	waiter_add(comm, &waiter);
	transfer->waiter = &waiter;
	while (!transfer->is_done && !comm->has_stopped && !timed_out)
		timed_out = comm_cond_timedwait(comm, &waiter.wakeup, until_ns) == ETIMEDOUT;
	transfer->waiter = NULL;
	waiter_remove(&waiter);
	is_done = transfer->is_done;
	r = comm_get_error(comm);
	pthread_mutex_unlock(&comm->lock);
	if (r == 0 && is_done)
		r = verify_received(comm, transfer);
	if (r == 0)
		*ret_done = is_done;
	return r;
}

int comm_wait(struct comm *comm, struct comm_transfer *transfer)
{
	bool is_done;

	return comm_wait_until(comm, transfer, no_deadline_ns, &is_done);
}
