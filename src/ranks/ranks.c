/*
 * ranks - several processes that do one job: the carrier, and who waits for it (see ranks.h)
 */
#include "src/ranks/ranks.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "src/base/clock.h"
#include "src/base/messages.h"
#include "src/base/thread.h"
#include "src/ranks/delivery.h"
#include "src/ranks/guard.h"
#include "src/ranks/transport.h"

enum {
	PIECE_NBYTES = 16 << 20,
	STATUS_TROUBLE = 2,
	STAGGER = 60,   /* a stall time has so many steps */
	PAUSE_PART = 8, /* of the time that nothing has moved */
	VERSION_NBYTES = 48,
	CARRIER_STACK_NBYTES = 8 << 20, /* of a library that is not ours */
};

/* Between two looks at the transport: when something is under way, and when nothing is. */
static const uint64_t shortest_pause_ns = 50000, longest_pause_ns = 500000, idle_pause_ns = 5000000;
/* Others may be started late: so long, or five stall times if that is more. */
static const uint64_t opening_ns = 60000000000;
/* Later than any clock will be. */
static const uint64_t never_ns = INT64_MAX;
/* What ending all ranks may take, unless somebody knows better. */
static const uint64_t usual_end_ns = 5000000000;

struct ranks {
	struct ranks_settings settings;
	transport_opener *open;
	void *argument;
	struct guard *guard;
	pthread_t carrier;
	unsigned rank, size;
	char (*hosts)[RANKS_HOST_NBYTES];

	pthread_mutex_t lock;
	pthread_cond_t asked;         /* something is to be done by the carrier */
	pthread_cond_t told;          /* all are to look: it is open, has forgotten, or failed */
	struct ranks_waiter *waiting; /* for transfers; each is told of its own */
	struct ranks_transfer *begun, **begun_end;
	bool is_open, is_forgetting, is_closing, is_aborting, has_new_stall;
	int status;      /* if aborting */
	int r;           /* of the first failure */
	bool has_let_go; /* of all that was under way then */

	/* The carrier's own. */
	struct transport *transport;
	struct delivery *delivery;
	uint64_t moved_ns; /* when something was last to be done */
};

/* A thread that waits for a transfer. There are many: who has nothing to do is not to be woken. */
struct ranks_waiter {
	struct ranks_waiter *next, **at; /* at: the pointer that leads here */
	pthread_cond_t told;
};

/* What is waited for until clock_now_ns() says so. */
static void init_timed(pthread_cond_t *condition)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &attributes);
	pthread_condattr_destroy(&attributes);
}

/* With the lock. Returns 0, or ETIMEDOUT. */
static int wait_timed(struct ranks *ranks, pthread_cond_t *condition, uint64_t until_ns)
{
	const struct timespec until = { .tv_sec = (time_t)(until_ns / 1000000000),
					.tv_nsec = (long)(until_ns % 1000000000) };

	return pthread_cond_timedwait(condition, &ranks->lock, &until);
}

/* With the lock. */
static void waiter_enter(struct ranks *ranks, struct ranks_waiter *waiter)
{
	*waiter = (struct ranks_waiter){ .next = ranks->waiting, .at = &ranks->waiting };
	init_timed(&waiter->told);
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

/* With the lock: 0, or, when nothing is under way any more, the first failure. */
static int failure(struct ranks *ranks)
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
	r = failure(ranks);
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
		is_late = wait_timed(ranks, &waiter.told, until_ns) == ETIMEDOUT;
	waiter_leave(&waiter);
	r = failure(ranks);
	pthread_mutex_unlock(&ranks->lock);
	return r;
}

/* In stall times. */
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
	wait_timed(ranks, &ranks->asked, at_ns);
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
		ranks->status = STATUS_TROUBLE;
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

void ranks_get_traffic(const struct ranks *ranks, struct ranks_traffic *ret_traffic)
{
	delivery_get_traffic(ranks->delivery, ret_traffic);
}

static int begin(struct ranks *ranks, struct ranks_transfer *transfer)
{
	int r;

	pthread_mutex_lock(&ranks->lock);
	r = failure(ranks);
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
	r = failure(ranks);
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
		is_late = wait_timed(ranks, &waiter.told, until_ns) == ETIMEDOUT;
	transfer->waiter = NULL;
	waiter_leave(&waiter);
	is_done = transfer->is_done;
	r = failure(ranks);
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

void ranks_set_stall(struct ranks *ranks, uint64_t stall_ns)
{
	guard_set_stall(ranks->guard, stall_ns);
	pthread_mutex_lock(&ranks->lock);
	ranks->settings.stall_ns = stall_ns;
	ranks->has_new_stall = true;
	pthread_cond_signal(&ranks->asked);
	pthread_mutex_unlock(&ranks->lock);
}

void ranks_allow_reading(const struct ranks *ranks, bool is_allowed)
{
	if (ranks->settings.allow_reading)
		ranks->settings.allow_reading(is_allowed);
}

unsigned ranks_rank(const struct ranks *ranks)
{
	return ranks->rank;
}

unsigned ranks_size(const struct ranks *ranks)
{
	return ranks->size;
}

const char *ranks_host(const struct ranks *ranks, unsigned rank)
{
	return ranks->hosts ? ranks->hosts[rank] : "?";
}

unsigned ranks_count_neighbours(const struct ranks *ranks, unsigned *ret_first)
{
	const char *host = ranks_host(ranks, ranks->rank);
	unsigned n = 0;

	for (unsigned i = ranks->size; i-- > 0;)
		if (strcmp(ranks_host(ranks, i), host) == 0) {
			*ret_first = i;
			n++;
		}
	return n;
}

void ranks_abort(struct ranks *ranks, int status)
{
	guard_begin_end(ranks->guard, status);
	pthread_mutex_lock(&ranks->lock);
	if (!ranks->is_aborting) {
		ranks->is_aborting = true;
		ranks->status = status;
	}
	pthread_cond_signal(&ranks->asked);
	for (;;) /* the carrier ends the process, or the guard */
		pthread_cond_wait(&ranks->told, &ranks->lock);
}

/* What ranks know of each other. */
struct introduction {
	char version[VERSION_NBYTES];
	char host[RANKS_HOST_NBYTES];
};

static int compare_versions(const struct ranks *ranks, const struct introduction *all)
{
	const struct introduction *mine = &all[ranks->rank];

	for (unsigned rank = 0; rank < ranks->size; rank++)
		if (memcmp(all[rank].version, mine->version, sizeof mine->version) != 0)
			return fail(-EPROTO,
				    "ranks of different versions cannot work together: "
				    "%s on %s (rank %u), %.*s on %.*s (rank %u)",
				    mine->version, mine->host, ranks->rank, VERSION_NBYTES,
				    all[rank].version, RANKS_HOST_NBYTES, all[rank].host, rank);
	return 0;
}

static int introduce(struct ranks *ranks)
{
	const char *version = ranks->settings.version;
	struct introduction mine = { 0 };
	struct introduction *all = calloc(ranks->size, sizeof *all);
	char(*hosts)[RANKS_HOST_NBYTES] = calloc(ranks->size, sizeof *hosts);
	int r;

	strncpy(mine.version, version ? version : GSORT_VERSION, sizeof mine.version - 1);
	gethostname(mine.host, sizeof mine.host - 1);
	if (all && hosts)
		r = ranks_gather_all(ranks, &mine, sizeof mine, all);
	else
		r = fail(-ENOMEM, "no memory for the names of %u ranks", ranks->size);
	if (r == 0)
		r = compare_versions(ranks, all);
	for (unsigned rank = 0; rank < ranks->size && r == 0; rank++)
		memcpy(hosts[rank], all[rank].host, sizeof hosts[rank] - 1);
	free(all);
	if (r < 0) {
		free(hosts);
		return r;
	}
	ranks->hosts = hosts;
	delivery_name(ranks->delivery, (const char(*)[RANKS_HOST_NBYTES])hosts);
	return 0;
}

/* NULL: there is no memory. */
static struct ranks *make(const struct ranks_settings *settings, transport_opener *open,
			  void *argument)
{
	struct ranks *ranks = calloc(1, sizeof *ranks);

	if (!ranks)
		return NULL;
	ranks->settings = *settings;
	if (ranks->settings.piece_nbytes == 0)
		ranks->settings.piece_nbytes = PIECE_NBYTES;
	if (ranks->settings.end_ns == 0)
		ranks->settings.end_ns = usual_end_ns;
	ranks->open = open;
	ranks->argument = argument;
	ranks->begun_end = &ranks->begun;
	pthread_mutex_init(&ranks->lock, NULL);
	init_timed(&ranks->asked);
	pthread_cond_init(&ranks->told, NULL);
	return ranks;
}

/* Its threads are gone. */
static void free_ranks(struct ranks *ranks)
{
	guard_close(ranks->guard);
	delivery_close(ranks->delivery);
	pthread_cond_destroy(&ranks->told);
	pthread_cond_destroy(&ranks->asked);
	pthread_mutex_destroy(&ranks->lock);
	free(ranks->hosts);
	free(ranks);
}

/* Returns when the transport is there, or cannot be had. */
static int start(struct ranks *ranks)
{
	char limits[THREAD_LIMITS_NBYTES];
	int r = guard_open(&ranks->settings, &ranks->guard);

	if (r < 0)
		return r;
	r = thread_start(run_carrier, ranks, CARRIER_STACK_NBYTES, &ranks->carrier);
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

int ranks_open(const struct ranks_settings *settings, transport_opener *open, void *argument,
	       struct ranks **ret_ranks)
{
	struct ranks *ranks = make(settings, open, argument);
	int r;

	if (!ranks)
		return fail(-ENOMEM, "no memory for ranks");
	r = start(ranks);
	if (r < 0) {
		free_ranks(ranks);
		return r;
	}
	r = introduce(ranks);
	if (r < 0)
		ranks_abort(ranks, STATUS_TROUBLE);
	*ret_ranks = ranks;
	return 0;
}

/* Until the carrier has forgotten what nothing has come for. */
static int forget(struct ranks *ranks)
{
	int r;

	pthread_mutex_lock(&ranks->lock);
	ranks->is_forgetting = true;
	pthread_cond_signal(&ranks->asked);
	while (ranks->is_forgetting && !ranks->has_let_go)
		pthread_cond_wait(&ranks->told, &ranks->lock);
	r = failure(ranks);
	pthread_mutex_unlock(&ranks->lock);
	return r;
}

int ranks_close(struct ranks *ranks)
{
	int r;

	if (!ranks)
		return 0;
	r = forget(ranks);
	if (r == 0)
		r = ranks_barrier(ranks);
	if (r < 0)
		return r;
	pthread_mutex_lock(&ranks->lock);
	ranks->is_closing = true;
	pthread_cond_signal(&ranks->asked);
	pthread_mutex_unlock(&ranks->lock);
	pthread_join(ranks->carrier, NULL);
	if (ranks->r < 0) /* which ranks_abort() is told of */
		return ranks->r;
	free_ranks(ranks);
	return 0;
}
