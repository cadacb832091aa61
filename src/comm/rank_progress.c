/*
 * rank_progress.c - progress of a distributed sort (see rank_progress.h)
 */
#include "src/comm/rank_progress.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "src/base/clock.h"
#include "src/base/diagnostics.h"
#include "src/base/stats.h"
#include "src/base/thread.h"
#include "src/comm/comm.h"

/* How long rank 0 waits for replies. */
static const uint64_t reply_timeout_ns = 100000000;

enum { QUERY_PROGRESS, QUERY_FINAL };

/* Another rank, on rank 0. */
struct progress_peer {
	struct comm_transfer query_send, reply_receive;
	uint64_t query;
	bool is_pending; /* a query has not been answered yet */
	struct progress_counters reply, last_reply;
};

struct rank_progress {
	struct comm *comm;
	pthread_mutex_t lock;
	struct stats *stats;
	bool is_finished;

	/* Rank 0 only. */
	struct progress_peer *peers; /* by rank; its own entry is unused */
	uint64_t interval_ns, last_query_ns;

	/* Other ranks only. */
	pthread_t thread; /* answers queries */
	struct comm_transfer transfer;
	uint64_t query;
	struct progress_counters reply;
};

static bool is_first(const struct rank_progress *progress)
{
	return comm_rank(progress->comm) == 0;
}

/* --- others: answers --- */

/* Answer until the last query. A failure is reported by others. */
static void *run_responder(void *argument)
{
	struct rank_progress *progress = argument;
	int r;

	do {
		r = comm_receive(progress->comm, 0, COMM_TAG_PROGRESS, &progress->query,
				 sizeof progress->query, COMM_UNWATCHED, &progress->transfer);
		if (r == 0)
			r = comm_wait(progress->comm, &progress->transfer);
		if (r < 0)
			break;
		stats_get_progress_counters(progress->stats, &progress->reply);
		r = comm_send_wait(progress->comm, 0, COMM_TAG_PROGRESS, &progress->reply,
				   sizeof progress->reply);
	} while (r == 0 && progress->query != QUERY_FINAL);
	return NULL;
}

/* --- the first: questions --- */

static int send_query(struct rank_progress *progress, unsigned rank, uint64_t query)
{
	struct progress_peer *peer = &progress->peers[rank];

	peer->query = query;
	return comm_send(progress->comm, rank, COMM_TAG_PROGRESS, &peer->query, sizeof peer->query,
			 &peer->query_send);
}

/* Query the ranks that have answered the previous query. */
static void query_all_ranks(struct rank_progress *progress)
{
	const uint64_t now_ns = clock_now_ns();

	if (now_ns - progress->last_query_ns < progress->interval_ns)
		return;
	progress->last_query_ns = now_ns;
	for (unsigned i = 1; i < comm_size(progress->comm); i++) {
		struct progress_peer *peer = &progress->peers[i];

		if (peer->is_pending || send_query(progress, i, QUERY_PROGRESS) < 0 ||
		    comm_receive(progress->comm, i, COMM_TAG_PROGRESS, &peer->reply,
				 sizeof peer->reply, COMM_UNWATCHED, &peer->reply_receive) < 0)
			continue;
		peer->is_pending = true;
	}
}

/* Requires the lock. */
static void query_and_sum(struct rank_progress *progress, struct progress_counters *ret_sum)
{
	const uint64_t until_ns = clock_now_ns() + reply_timeout_ns;
	struct progress_counters own;

	if (!progress->is_finished)
		query_all_ranks(progress);
	*ret_sum = progress_counters_none;
	for (unsigned i = 1; i < comm_size(progress->comm); i++) {
		struct progress_peer *peer = &progress->peers[i];
		bool is_done = false;

		if (peer->is_pending &&
		    comm_wait_until(progress->comm, &peer->reply_receive, until_ns, &is_done) ==
			    0 &&
		    is_done) {
			peer->is_pending = false;
			peer->last_reply = peer->reply;
		}
		progress_counters_add(ret_sum, &peer->last_reply);
	}
	stats_get_progress_counters(progress->stats, &own);
	progress_counters_add(ret_sum, &own);
}

void rank_progress_get(struct rank_progress *rank_progress, struct stats_progress *ret_progress)
{
	struct progress_counters total;

	pthread_mutex_lock(&rank_progress->lock);
	if (is_first(rank_progress))
		query_and_sum(rank_progress, &total);
	else
		stats_get_progress_counters(rank_progress->stats, &total);
	pthread_mutex_unlock(&rank_progress->lock);
	progress_counters_summarize(&total, ret_progress);
}

/* --- the end --- */

static int finish_queries(struct rank_progress *progress)
{
	const unsigned n = comm_size(progress->comm);
	int r = 0;

	SCOPED_LOCK(&progress->lock);
	for (unsigned i = 1; i < n && r == 0; i++) {
		if (progress->peers[i].is_pending) /* send_query() reuses its buffer */
			r = comm_wait(progress->comm, &progress->peers[i].query_send);
		if (r == 0)
			r = send_query(progress, i, QUERY_FINAL);
	}
	/* The replies to the last query are awaited. Those to earlier ones have arrived before. */
	for (unsigned i = 1; i < n && r == 0; i++) {
		struct progress_peer *peer = &progress->peers[i];

		r = comm_receive_wait(progress->comm, i, COMM_TAG_PROGRESS, &peer->last_reply,
				      sizeof peer->last_reply);
		if (r == 0 && peer->is_pending)
			r = comm_wait(progress->comm, &peer->reply_receive);
		peer->is_pending = false;
	}
	progress->is_finished = r == 0;
	return r;
}

int rank_progress_finish(struct rank_progress *progress)
{
	int r = is_first(progress) ? finish_queries(progress) : 0;

	/* Either all have answered the last query or this fails, so the thread ends soon. */
	if (r == 0)
		r = comm_barrier(progress->comm);
	if (r < 0 || is_first(progress))
		return r;
	pthread_join(progress->thread, NULL);
	progress->is_finished = true;
	return 0;
}

static void free_rank_progress(struct rank_progress *progress)
{
	pthread_mutex_destroy(&progress->lock);
	free(progress->peers);
	free(progress);
}

void rank_progress_close(struct rank_progress *progress)
{
	if (!progress)
		return;
	if (!progress->is_finished) {
		comm_fail(progress->comm, -ECANCELED); /* no effect if the job has failed already */
		if (!is_first(progress))
			pthread_join(progress->thread, NULL);
	}
	free_rank_progress(progress);
}

static int start(struct rank_progress *progress)
{
	int r;

	if (!is_first(progress)) {
		r = thread_start(run_responder, progress, 0, &progress->thread);
		return r < 0 ? fail(r, "cannot start a thread for progress queries: %m") : 0;
	}
	progress->peers = calloc(comm_size(progress->comm), sizeof *progress->peers);
	if (!progress->peers)
		return fail(-ENOMEM, "no memory for the progress of %u ranks",
			    comm_size(progress->comm));
	for (unsigned i = 0; i < comm_size(progress->comm); i++)
		progress->peers[i].last_reply = progress_counters_none;
	return 0;
}

int rank_progress_open(struct comm *comm, struct stats *stats, uint64_t interval_ns,
		       struct rank_progress **ret_progress)
{
	struct rank_progress *progress = calloc(1, sizeof *progress);
	int r;

	if (!progress)
		return fail(-ENOMEM, "no memory for the progress of ranks");
	progress->comm = comm;
	progress->stats = stats;
	progress->interval_ns = interval_ns;
	pthread_mutex_init(&progress->lock, NULL);
	r = start(progress);
	if (r < 0) {
		free_rank_progress(progress);
		return r;
	}
	*ret_progress = progress;
	return 0;
}
