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

enum { MAX_RESPONSES_NBYTES = 8 << 20 }; /* of all of them at once, but for a single answer */

/* May `from` ask for it, and is it here? */
static bool is_valid_request(const struct remote_runs *remote, unsigned from,
			     const struct run_request *request)
{
	const struct run_list *own_runs = remote->own_runs;
	struct spill *spill = remote->job->spill;
	uint64_t n_blocks;

	if (request->tag < COMM_TAG_RESPONSES || request->tag >= COMM_TAG_LIMIT)
		return false;
	switch (request->kind) {
	case REQUEST_SEGMENTS:
		return request->n == own_runs->n;
	case REQUEST_BLOCKS:
		n_blocks =
			request->run < own_runs->n ?
				run_file_n_blocks(run_stored_file(own_runs->runs[request->run])) :
				0;
		return request->n <= RUN_REQUEST_MAX_BLOCKS && request->first <= n_blocks &&
		       request->n <= n_blocks - request->first;
	case REQUEST_BYTES:
		return spill_contains(spill, request->extent);
	case REQUEST_COUNTS:
		return true;
	case REQUEST_MEMORY_REGIONS:
		return peer_memory_can_read(remote->peer_memory, from) &&
		       request->n <= peer_spill_count(spill).n_regions;
	case REQUEST_FILES:
		return peer_memory_can_read(remote->peer_memory, from) &&
		       request->n <= peer_spill_count(spill).n_files;
	default:
		return false;
	}
}

static int read_spilled_bytes(const struct remote_runs *remote, const struct run_request *request,
			      void *response)
{
	const struct spill_extent extent = request->extent;
	const int r = spill_read(remote->job->spill, extent, response);

	return r < 0 ? fail_hint(r, HINT_OTHER_TEMP_DIR, 0,
				 "temporary file in %s: %" PRIu64 " bytes at %" PRIu64
				 ", which another rank needs, cannot be read: %m; check the disk",
				 spill_directory(remote->job->spill, extent.file), extent.nbytes,
				 extent.offset) :
		       0;
}

static int fill_response(const struct remote_runs *remote, unsigned from,
			 const struct run_request *request, void *response)
{
	struct run_segment *segments = response;

	switch (request->kind) {
	case REQUEST_SEGMENTS:
		for (uint64_t i = 0; i < request->n; i++)
			segments[i] = remote_runs_get_segment(remote, from, i);
		return 0;
	case REQUEST_BLOCKS:
		memcpy(response,
		       run_file_blocks(run_stored_file(remote->own_runs->runs[request->run])) +
			       request->first,
		       run_request_response_nbytes(request));
		return 0;
	case REQUEST_BYTES:
		return read_spilled_bytes(remote, request, response);
	case REQUEST_COUNTS:
		*(struct peer_spill_counts *)response = peer_spill_count(remote->job->spill);
		return 0;
	case REQUEST_MEMORY_REGIONS:
		spill_get_memory_addresses(remote->job->spill, request->n, response);
		return 0;
	case REQUEST_FILES:
		peer_spill_get_fds(remote->job->spill, request->n, response);
		return 0;
	default:
		return 0;
	}
}

/* Memory of a server, for an answer. */
struct response_buffer {
	void *data;
	size_t nbytes;
};

/* Until others have less, unless nobody has any: whose answer is on its way gives it back. */
static int allocate_response(struct remote_runs *remote, size_t nbytes,
			     struct response_buffer *ret_response)
{
	pthread_mutex_lock(&remote->lock);
	while (remote->responses_nbytes > 0 &&
	       remote->responses_nbytes + nbytes > MAX_RESPONSES_NBYTES)
		pthread_cond_wait(&remote->response_freed, &remote->lock);
	remote->responses_nbytes += nbytes;
	pthread_mutex_unlock(&remote->lock);
	*ret_response = (struct response_buffer){ malloc(nbytes + 1),
						  nbytes }; /* nothing is an answer, too */
	return ret_response->data ? 0 : fail(-ENOMEM, "no memory for what another rank needs");
}

static void free_response(struct remote_runs *remote, struct response_buffer *response)
{
	free(response->data);
	pthread_mutex_lock(&remote->lock);
	remote->responses_nbytes -= response->nbytes;
	pthread_cond_broadcast(&remote->response_freed);
	pthread_mutex_unlock(&remote->lock);
}

/* Of what another rank asks for. 0, or a negative errno after a message. */
static int prepare_response(struct remote_runs *remote, unsigned from,
			    const struct run_request *request, struct response_buffer *ret_response)
{
	int r;

	if (!is_valid_request(remote, from, request))
		return fail(
			-EPROTO,
			"internal error: rank %u on %s asks for what is not here; the output was "
			"not written",
			from, comm_host(remote->comm, from));
	r = allocate_response(remote, run_request_response_nbytes(request), ret_response);
	return r < 0 ? r : fill_response(remote, from, request, ret_response->data);
}

static int receive_request(struct remote_runs *remote, struct run_request *ret_request,
			   unsigned *ret_from)
{
	struct comm_transfer transfer;
	int r = comm_receive(remote->comm, COMM_ANY_RANK, COMM_TAG_REQUESTS, ret_request,
			     sizeof *ret_request, &transfer);

	if (r == 0)
		r = comm_wait(remote->comm, &transfer);
	*ret_from = transfer.from;
	return r;
}

static int send_response(struct remote_runs *remote, unsigned to, const struct run_request *request,
			 const struct response_buffer *response)
{
	struct comm_transfer transfer;
	int r = comm_send(remote->comm, to, request->tag, response->data,
			  run_request_response_nbytes(request), &transfer);

	return r < 0 ? r : comm_wait(remote->comm, &transfer);
}

/* Said by this rank itself. */
static bool is_stop_request(const struct remote_runs *remote, unsigned from,
			    const struct run_request *request)
{
	return request->kind == REQUEST_STOP && from == comm_rank(remote->comm);
}

/*
 * A server: one request after the other, until it is told that there will be none, or nobody can
 * ask any more. What it cannot read ends all, who wait for it.
 */
static void *serve_requests(void *context)
{
	struct remote_runs *remote = context;
	struct run_request request;
	unsigned from;
	int r = 0;

	while (r == 0 && receive_request(remote, &request, &from) == 0 &&
	       !is_stop_request(remote, from, &request)) {
		struct response_buffer response = { 0 };

		if (prepare_response(remote, from, &request, &response) < 0)
			comm_abort(remote->comm, 2);
		r = send_response(remote, from, &request, &response);
		free_response(remote, &response);
	}
	return NULL;
}

int run_server_start(struct remote_runs *remote)
{
	char limits[THREAD_LIMITS_NBYTES];
	int r = 0;

	for (; remote->n_servers < RUN_SERVER_N_THREADS && r == 0; remote->n_servers += r == 0)
		r = thread_start(serve_requests, remote, 0, &remote->servers[remote->n_servers]);
	return r < 0 ? fail_hint(r, HINT_LESS_MEMORY_OR_THREADS, 0,
				 "cannot start a thread that serves other ranks: %m%s",
				 thread_format_limits(r, limits)) :
		       0;
}

/* They take what comes in turn, so each is told. */
int run_server_stop(const struct remote_runs *remote)
{
	const struct run_request end = { .kind = REQUEST_STOP };
	int r = 0;

	for (unsigned i = 0; i < remote->n_servers && r == 0; i++) {
		struct comm_transfer transfer;

		r = comm_send(remote->comm, comm_rank(remote->comm), COMM_TAG_REQUESTS, &end,
			      sizeof end, &transfer);
		if (r == 0)
			r = comm_wait(remote->comm, &transfer);
	}
	return r;
}

void run_server_join(struct remote_runs *remote)
{
	for (; remote->n_servers > 0; remote->n_servers--)
		pthread_join(remote->servers[remote->n_servers - 1], NULL);
}
