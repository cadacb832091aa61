/*
 * remote_runs - the stored runs of all ranks, of which each merges a part (see remote_runs.h)
 */
#include "src/exchange/remote_runs.h"

#include <errno.h>
#include <stdlib.h>

#include "io/spill/run_file.h"
#include "src/base/interval_search.h"
#include "src/base/diagnostics.h"
#include "src/exchange/remote_runs_internal.h"

struct run_segment remote_runs_get_segment(const struct remote_runs *remote, unsigned rank,
					   uint64_t run)
{
	const uint64_t *cut = &remote->cuts[rank * remote->own_runs->n + run];
	const struct run_file *file = run_stored_file(remote->own_runs->runs[run]);
	const struct run_block *blocks = run_file_blocks(file);
	struct run_segment segment = { .begin = cut[0], .end = cut[remote->own_runs->n] };
	uint64_t last;

	if (segment.begin >= segment.end)
		return (struct run_segment){ 0 };
	segment.first_block = find_interval(blocks, sizeof *blocks,
					    offsetof(struct run_block, first_item),
					    run_file_n_blocks(file), segment.begin);
	last = find_interval(blocks, sizeof *blocks, offsetof(struct run_block, first_item),
			     run_file_n_blocks(file), segment.end - 1);
	segment.n_blocks = last + 1 - segment.first_block;
	segment.first_item = blocks[segment.first_block].first_item;
	return segment;
}

size_t run_request_response_nbytes(const struct run_request *request)
{
	switch (request->kind) {
	case REQUEST_SEGMENTS:
		return request->n * sizeof(struct run_segment);
	case REQUEST_BLOCKS:
		return request->n * sizeof(struct run_block);
	case REQUEST_BYTES:
		return request->extent.nbytes;
	case REQUEST_COUNTS:
		return sizeof(struct peer_spill_counts);
	case REQUEST_MEMORY_REGIONS:
		return request->n * sizeof(struct extent_address);
	case REQUEST_FILES:
		return request->n * sizeof(int64_t);
	default:
		return 0;
	}
}

int remote_runs_append_segment(struct remote_runs *remote, struct run *run, uint64_t begin,
			       uint64_t end, struct run_list *store)
{
	struct run *segment;
	int r = run_open_subrun(remote->job->layout, run, begin, end, &segment);

	return r < 0 ? r : run_list_add(store, segment);
}

static int append_own_segments(struct remote_runs *remote, struct run_list *store)
{
	int r = 0;

	for (size_t i = 0; i < remote->own_runs->n && r == 0; i++) {
		const struct run_segment segment =
			remote_runs_get_segment(remote, comm_rank(remote->comm), i);

		if (segment.begin < segment.end)
			r = remote_runs_append_segment(remote, remote->own_runs->runs[i],
						       segment.begin, segment.end, store);
	}
	return r;
}

int remote_runs_append(struct remote_runs *remote, struct run_list *store)
{
	const unsigned n = comm_size(remote->comm), own_rank = comm_rank(remote->comm);
	int r = 0;

	for (unsigned i = 0; i < n && r == 0; i++)
		r = i == own_rank ? append_own_segments(remote, store) :
				    run_client_append(&remote->peers[i], store);
	return r;
}

int remote_runs_open(struct comm *comm, const struct peer_memory *peer_memory,
		     const struct job *job, const struct run_list *own_runs, const uint64_t *cuts,
		     struct remote_runs **ret_remote)
{
	const unsigned n = comm_size(comm);
	const uint64_t n_local_runs = own_runs->n;
	struct remote_runs *remote = calloc(1, sizeof *remote);
	int r = 0;

	*ret_remote = remote;
	if (!remote)
		return fail(-ENOMEM, "no memory for the runs of %u ranks", n);
	remote->comm = comm;
	remote->peer_memory = peer_memory;
	remote->job = job;
	remote->own_runs = own_runs;
	remote->cuts = cuts;
	pthread_mutex_init(&remote->lock, NULL);
	pthread_cond_init(&remote->response_freed, NULL);
	remote->peers = calloc(n, sizeof *remote->peers);
	remote->n_runs = calloc(n, sizeof *remote->n_runs);
	if (!remote->peers || !remote->n_runs)
		return fail(-ENOMEM, "no memory for the runs of %u ranks", n);
	for (unsigned i = 0; i < n && r == 0; i++)
		r = run_client_open(remote, i);
	if (r == 0)
		r = comm_allgather(comm, &n_local_runs, sizeof n_local_runs, remote->n_runs);
	return r < 0 ? r : run_server_start(remote);
}

int remote_runs_finish(struct remote_runs *remote)
{
	int r = comm_barrier(remote->comm);

	if (r == 0)
		r = run_server_stop(remote);
	if (r == 0)
		run_server_join(remote);
	return r;
}

void remote_runs_close(struct remote_runs *remote)
{
	if (!remote)
		return;
	run_server_join(remote);
	run_list_free(&remote->fetched_runs);
	for (unsigned i = 0; remote->peers && i < comm_size(remote->comm); i++)
		run_client_close(&remote->peers[i]);
	free(remote->peers);
	free(remote->n_runs);
	pthread_cond_destroy(&remote->response_freed);
	pthread_mutex_destroy(&remote->lock);
	free(remote);
}

uint64_t remote_runs_received_nbytes(const struct remote_runs *remote)
{
	return atomic_load(&remote->received_nbytes);
}
