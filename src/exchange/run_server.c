/*
 * run_server - what is stored here, for the ranks that ask (see remote_runs.h)
 *
 * Each of some threads takes a request, of whoever it is, makes the answer, and sends it. What is
 * asked for is looked at first: it comes from another machine.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/spill/run_file.h"
#include "src/base/diagnostics.h"
#include "src/base/thread.h"
#include "src/exchange/remote_runs_internal.h"
#include "src/comm/tags.h"

enum { SERVED_NBYTES = 8 << 20 }; /* of all of them at once, but for a single answer */

/* May `from` ask for it, and is it here? */
static bool is_answerable(const struct depot *depot, unsigned from, const struct request *request)
{
	const struct run_store *own = depot->own;
	struct spill *spill = depot->job->spill;
	uint64_t n_blocks;

	if (request->tag < RANKS_TAG_ANSWERS || request->tag >= RANKS_TAG_LIMIT)
		return false;
	switch (request->wish) {
	case WISH_ROWS:
		return request->n == own->n;
	case WISH_BLOCKS:
		n_blocks = request->run < own->n ?
				   run_file_n_blocks(run_stored_file(own->runs[request->run])) :
				   0;
		return request->n <= DEPOT_BLOCKS_AT_ONCE && request->first <= n_blocks &&
		       request->n <= n_blocks - request->first;
	case WISH_BYTES:
		return spill_has(spill, request->extent);
	case WISH_COUNTS:
		return true;
	case WISH_PLACES:
		return near_has(depot->near, from) &&
		       request->n <= near_store_count(spill).n_places;
	case WISH_FILES:
		return near_has(depot->near, from) && request->n <= near_store_count(spill).n_files;
	default:
		return false;
	}
}

static int read_bytes(const struct depot *depot, const struct request *request, void *answer)
{
	const struct spill_extent extent = request->extent;
	const int r = spill_read(depot->job->spill, extent, answer);

	return r < 0 ? fail_hint(r, HINT_OTHER_TEMPORARY, 0,
				 "temporary file in %s: %" PRIu64 " bytes at %" PRIu64
				 ", which another rank needs, cannot be read: %m; check the disk",
				 spill_directory(depot->job->spill, extent.file), extent.nbytes,
				 extent.offset) :
		       0;
}

static int make_answer(const struct depot *depot, unsigned from, const struct request *request,
		       void *answer)
{
	struct row *rows = answer;

	switch (request->wish) {
	case WISH_ROWS:
		for (uint64_t i = 0; i < request->n; i++)
			rows[i] = depot_make_row(depot, from, i);
		return 0;
	case WISH_BLOCKS:
		memcpy(answer,
		       run_file_blocks(run_stored_file(depot->own->runs[request->run])) +
			       request->first,
		       depot_answer_nbytes(request));
		return 0;
	case WISH_BYTES:
		return read_bytes(depot, request, answer);
	case WISH_COUNTS:
		*(struct near_store_counts *)answer = near_store_count(depot->job->spill);
		return 0;
	case WISH_PLACES:
		spill_get_places(depot->job->spill, request->n, answer);
		return 0;
	case WISH_FILES:
		near_store_get_files(depot->job->spill, request->n, answer);
		return 0;
	default:
		return 0;
	}
}

/* Memory of a server, for an answer. */
struct room {
	void *bytes;
	size_t nbytes;
};

/* Until others have less, unless nobody has any: whose answer is on its way gives it back. */
static int make_room(struct depot *depot, size_t nbytes, struct room *ret_room)
{
	pthread_mutex_lock(&depot->lock);
	while (depot->served_nbytes > 0 && depot->served_nbytes + nbytes > SERVED_NBYTES)
		pthread_cond_wait(&depot->served, &depot->lock);
	depot->served_nbytes += nbytes;
	pthread_mutex_unlock(&depot->lock);
	*ret_room = (struct room){ malloc(nbytes + 1), nbytes }; /* nothing is an answer, too */
	return ret_room->bytes ? 0 : fail(-ENOMEM, "no memory for what another rank needs");
}

static void leave_room(struct depot *depot, struct room *room)
{
	free(room->bytes);
	pthread_mutex_lock(&depot->lock);
	depot->served_nbytes -= room->nbytes;
	pthread_cond_broadcast(&depot->served);
	pthread_mutex_unlock(&depot->lock);
}

/* Of what another rank asks for. 0, or a negative errno after a message. */
static int prepare(struct depot *depot, unsigned from, const struct request *request,
		   struct room *ret_room)
{
	int r;

	if (!is_answerable(depot, from, request))
		return fail(
			-EPROTO,
			"internal error: rank %u on %s asks for what is not here; the output was "
			"not written",
			from, ranks_host(depot->ranks, from));
	r = make_room(depot, depot_answer_nbytes(request), ret_room);
	return r < 0 ? r : make_answer(depot, from, request, ret_room->bytes);
}

static int hear(struct depot *depot, struct request *ret_request, unsigned *ret_from)
{
	struct ranks_transfer transfer;
	int r = ranks_receive(depot->ranks, RANKS_ANY, RANKS_TAG_REQUESTS, ret_request,
			      sizeof *ret_request, &transfer);

	if (r == 0)
		r = ranks_wait(depot->ranks, &transfer);
	*ret_from = transfer.from;
	return r;
}

static int answer(struct depot *depot, unsigned to, const struct request *request,
		  const struct room *room)
{
	struct ranks_transfer transfer;
	int r = ranks_send(depot->ranks, to, request->tag, room->bytes,
			   depot_answer_nbytes(request), &transfer);

	return r < 0 ? r : ranks_wait(depot->ranks, &transfer);
}

/* Said by this rank itself. */
static bool is_end(const struct depot *depot, unsigned from, const struct request *request)
{
	return request->wish == WISH_END && from == ranks_rank(depot->ranks);
}

/*
 * A server: one request after the other, until it is told that there will be none, or nobody can
 * ask any more. What it cannot read ends all, who wait for it.
 */
static void *serve(void *context)
{
	struct depot *depot = context;
	struct request request;
	unsigned from;
	int r = 0;

	while (r == 0 && hear(depot, &request, &from) == 0 && !is_end(depot, from, &request)) {
		struct room room = { 0 };

		if (prepare(depot, from, &request, &room) < 0)
			ranks_abort(depot->ranks, 2);
		r = answer(depot, from, &request, &room);
		leave_room(depot, &room);
	}
	return NULL;
}

int depot_start_servers(struct depot *depot)
{
	char limits[THREAD_LIMITS_NBYTES];
	int r = 0;

	for (; depot->n_servers < DEPOT_N_SERVERS && r == 0; depot->n_servers += r == 0)
		r = thread_start(serve, depot, 0, &depot->servers[depot->n_servers]);
	return r < 0 ? fail_hint(r, HINT_LESS_MEMORY_OR_THREADS, 0,
				 "cannot start a thread that serves other ranks: %m%s",
				 thread_limits(r, limits)) :
		       0;
}

/* They take what comes in turn, so each is told. */
int depot_tell_servers(const struct depot *depot)
{
	const struct request end = { .wish = WISH_END };
	int r = 0;

	for (unsigned i = 0; i < depot->n_servers && r == 0; i++) {
		struct ranks_transfer transfer;

		r = ranks_send(depot->ranks, ranks_rank(depot->ranks), RANKS_TAG_REQUESTS, &end,
			       sizeof end, &transfer);
		if (r == 0)
			r = ranks_wait(depot->ranks, &transfer);
	}
	return r;
}

void depot_join_servers(struct depot *depot)
{
	for (; depot->n_servers > 0; depot->n_servers--)
		pthread_join(depot->servers[depot->n_servers - 1], NULL);
}
