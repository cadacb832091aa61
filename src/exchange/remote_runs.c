/*
 * remote_runs.c - merge parts of runs that other ranks have stored (see exchange.h)
 *
 * A run of another rank is a run file in a remote spill. Its index is fetched once, and its blocks
 * when the merge needs them, by requests to the server threads of that rank. If the rank is a peer
 * (peer_memory.h), the places of its spill are fetched first: addresses of what it has in memory,
 * and descriptors of its files, which this process opens itself. Extents are then read from there.
 */
#include "src/exchange/exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/spill/memory_tier.h"
#include "io/spill/run_file.h"
#include "io/spill/spill.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/thread.h"
#include "src/base/thread_pool.h"
#include "src/comm/comm.h"

enum {
	N_SERVERS = 8,                  /* threads; most of them wait until a message is sent */
	MAX_REQUEST_BLOCKS = 1 << 14,   /* of an index */
	MAX_RESPONSES_NBYTES = 8 << 20, /* of all responses at once, unless there is only one */
	RANK_NAME_NBYTES = 96,
	RANK_HINT_NBYTES = 128,
};

enum request_kind {
	REQUEST_STOP,     /* to the own servers: end */
	REQUEST_SEGMENTS, /* of the runs: struct run_segment, n of them */
	REQUEST_BLOCKS,   /* n blocks of a run's index, from `first` on */
	REQUEST_BYTES,    /* stored bytes of a spilled block */
	REQUEST_COUNTS,   /* struct place_counts */
	REQUEST_PLACES,   /* `first` struct extent_address and n descriptors (int64_t) */
};

/* A message. Its response has response_nbytes(). */
struct request {
	uint32_t kind, tag;
	uint64_t run, first, n;
	struct spill_extent extent;
};

/* The part of a run that the requesting rank merges. */
struct run_segment {
	uint64_t begin, end; /* items */
	uint64_t first_block, n_blocks;
};

/* Places of a spill. */
struct place_counts {
	uint64_t n_regions, n_files;
};

/* The runs of a rank. */
struct remote_rank {
	struct remote_runs *remote;
	unsigned rank;
	char name[RANK_NAME_NBYTES];
	char hint[RANK_HINT_NBYTES]; /* for damage found by a resumed sort */
	struct spill *spill;
	/* Set if the rank is a peer. */
	bool has_places;
	struct place_counts counts;
	struct extent_address *regions; /* by offset; followed by the descriptors */
	struct file *files;             /* one that cannot be opened has fd -1 */
};

struct remote_runs {
	struct comm *comm;
	const struct peer_memory *peer_memory;
	const struct job *job;
	const struct run_list *own_runs;
	const uint64_t *cuts;
	struct remote_rank *peers; /* by rank */
	uint64_t *n_runs;          /* by rank */
	struct thread_group servers;
	pthread_mutex_t lock;
	pthread_cond_t response_freed; /* responses_nbytes is less than before */
	uint64_t responses_nbytes;     /* with the lock: memory of all responses */
	atomic_uint next_tag;
};

/* --- both sides --- */

/* Return the part of an own run between two cuts. */
static struct run_segment get_segment(const struct remote_runs *remote, unsigned rank, uint64_t run)
{
	const uint64_t *cut = &remote->cuts[rank * remote->own_runs->n + run];
	const struct run_index *index =
		run_file_index(run_spilled_file(remote->own_runs->runs[run]));
	struct run_segment segment = { .begin = cut[0], .end = cut[remote->own_runs->n] };

	if (segment.begin >= segment.end)
		return (struct run_segment){ 0 };
	segment.first_block = run_index_find_block(index, segment.begin);
	segment.n_blocks = run_index_find_block(index, segment.end - 1) + 1 - segment.first_block;
	return segment;
}

static size_t response_nbytes(const struct request *request)
{
	switch (request->kind) {
	case REQUEST_SEGMENTS:
		return request->n * sizeof(struct run_segment);
	case REQUEST_BLOCKS:
		return request->n * sizeof(struct run_block);
	case REQUEST_BYTES:
		return request->extent.nbytes;
	case REQUEST_COUNTS:
		return sizeof(struct place_counts);
	case REQUEST_PLACES:
		return request->first * sizeof(struct extent_address) +
		       request->n * sizeof(int64_t);
	default:
		return 0;
	}
}

/* --- servers of the own runs --- */

static struct place_counts count_places(const struct spill *spill)
{
	return (struct place_counts){ .n_regions = memory_tier_n_extents(spill_memory(spill)),
				      .n_files = spill_n_files(spill) };
}

/* Check a request of another host: it must be for existing data that rank `from` may read. */
static bool is_valid_request(const struct remote_runs *remote, unsigned from,
			     const struct request *request)
{
	const struct run_list *own_runs = remote->own_runs;
	struct spill *spill = remote->job->spill;
	struct place_counts counts;
	uint64_t n_blocks;

	if (request->tag < COMM_TAG_RESPONSES || request->tag >= COMM_TAG_LIMIT)
		return false;
	switch (request->kind) {
	case REQUEST_SEGMENTS:
		return request->n == own_runs->n;
	case REQUEST_BLOCKS:
		n_blocks = request->run < own_runs->n ? own_runs->runs[request->run]->n_blocks : 0;
		return request->n <= MAX_REQUEST_BLOCKS && request->first <= n_blocks &&
		       request->n <= n_blocks - request->first;
	case REQUEST_BYTES:
		return spill_contains(spill, request->extent);
	case REQUEST_COUNTS:
		return true;
	case REQUEST_PLACES:
		counts = count_places(spill);
		return peer_memory_can_read(remote->peer_memory, from) &&
		       request->first <= counts.n_regions && request->n <= counts.n_files;
	default:
		return false;
	}
}

static int read_spilled_bytes(const struct remote_runs *remote, const struct request *request,
			      void *response)
{
	const struct spill_extent extent = request->extent;
	const int r = spill_read(remote->job->spill, extent, response);

	return r < 0 ? fail(r,
			    "temporary file in %s: cannot read %" PRIu64 " bytes at %" PRIu64
			    " for another rank: %m; check the disk, or use another directory (-T)",
			    spill_directory(remote->job->spill, extent.file), extent.nbytes,
			    extent.offset) :
		       0;
}

static int fill_response(const struct remote_runs *remote, unsigned from,
			 const struct request *request, void *response)
{
	struct spill *spill = remote->job->spill;
	struct run_segment *segments = response;
	int64_t *fds;

	switch (request->kind) {
	case REQUEST_SEGMENTS:
		for (uint64_t i = 0; i < request->n; i++)
			segments[i] = get_segment(remote, from, i);
		return 0;
	case REQUEST_BLOCKS:
		memcpy(response,
		       run_file_index(run_spilled_file(remote->own_runs->runs[request->run]))
				       ->blocks +
			       request->first,
		       response_nbytes(request));
		return 0;
	case REQUEST_BYTES:
		return read_spilled_bytes(remote, request, response);
	case REQUEST_COUNTS:
		*(struct place_counts *)response = count_places(spill);
		return 0;
	case REQUEST_PLACES: /* with the descriptor of each file, or -1 */
		memory_tier_get_addresses(spill_memory(spill), request->first, response);
		fds = (int64_t *)((struct extent_address *)response + request->first);
		for (uint32_t i = 0; i < request->n; i++)
			fds[i] = spill_descriptor(spill, i);
		return 0;
	default:
		return 0;
	}
}

/* Limit the memory of responses in progress, but always allow one. */
static void *allocate_response(struct remote_runs *remote, size_t nbytes)
{
	pthread_mutex_lock(&remote->lock);
	while (remote->responses_nbytes > 0 &&
	       remote->responses_nbytes + nbytes > MAX_RESPONSES_NBYTES)
		pthread_cond_wait(&remote->response_freed, &remote->lock);
	remote->responses_nbytes += nbytes;
	pthread_mutex_unlock(&remote->lock);
	return malloc(nbytes + 1); /* a response may be empty */
}

/* A request that cannot be answered aborts the job, because its sender waits. */
static int answer_request(struct remote_runs *remote, unsigned from, const struct request *request)
{
	size_t nbytes;
	void *response;
	int r;

	if (!is_valid_request(remote, from, request)) {
		fail(-EPROTO,
		     "internal error: invalid request of rank %u on %s; the output was not written",
		     from, comm_host(remote->comm, from));
		comm_abort(remote->comm, 2);
	}
	nbytes = response_nbytes(request);
	response = allocate_response(remote, nbytes);
	r = response ? fill_response(remote, from, request, response) :
		       fail(-ENOMEM, "no memory for a response to another rank");
	if (r < 0)
		comm_abort(remote->comm, 2);
	r = comm_send_wait(remote->comm, from, request->tag, response, nbytes);
	free(response);
	SCOPED_LOCK(&remote->lock);
	remote->responses_nbytes -= nbytes;
	pthread_cond_broadcast(&remote->response_freed);
	return r;
}

/* A thread: answer requests until REQUEST_STOP or a failure of the job. */
static void *serve_requests(void *context)
{
	struct remote_runs *remote = context;
	struct comm_transfer transfer;
	struct request request;

	while (comm_receive(remote->comm, COMM_ANY_RANK, COMM_TAG_REQUESTS, &request,
			    sizeof request, 0, &transfer) == 0 &&
	       comm_wait(remote->comm, &transfer) == 0) {
		if (request.kind == REQUEST_STOP && transfer.from == comm_rank(remote->comm))
			break;
		if (answer_request(remote, transfer.from, &request) < 0)
			break;
	}
	return NULL;
}

/* --- the runs of another rank --- */

static int request_data(struct remote_runs *remote, unsigned rank, struct request request,
			void *ret_response)
{
	const size_t nbytes = response_nbytes(&request);
	const unsigned n = atomic_fetch_add(&remote->next_tag, 1);
	struct comm_transfer request_send, response_receive;
	int r;

	/* There are far fewer requests in progress than tags. */
	request.tag = COMM_TAG_RESPONSES + n % (COMM_TAG_LIMIT - COMM_TAG_RESPONSES);
	r = comm_receive(remote->comm, rank, request.tag, ret_response, nbytes, 0,
			 &response_receive);
	if (r < 0)
		return r;
	r = comm_send(remote->comm, rank, COMM_TAG_REQUESTS, &request, sizeof request,
		      &request_send);
	if (r == 0)
		r = comm_wait(remote->comm, &response_receive);
	if (r == 0) /* it is done by now, so this thread does not wait again */
		r = comm_wait(remote->comm, &request_send);
	return r;
}

static bool is_in_memory(const struct remote_rank *peer, struct spill_extent extent)
{
	return extent.file == peer->counts.n_files;
}

static int read_peer_region(const struct remote_rank *peer, struct spill_extent extent,
			    void *buffer)
{
	const uint64_t n = peer->counts.n_regions;
	const uint64_t i = find_interval(peer->regions, sizeof *peer->regions,
					 offsetof(struct extent_address, offset), n, extent.offset);
	const struct extent_address *region = &peer->regions[i];

	if (i >= n || extent.offset < region->offset ||
	    extent.offset - region->offset > region->nbytes ||
	    extent.nbytes > region->nbytes - (extent.offset - region->offset))
		return fail(-EINVAL, "internal error: rank %u has nothing in memory at %" PRIu64,
			    peer->rank, extent.offset);
	return peer_memory_read(peer->remote->peer_memory, peer->rank,
				region->address + (extent.offset - region->offset), buffer,
				extent.nbytes);
}

static int read_peer_file(const struct remote_rank *peer, struct spill_extent extent, void *buffer)
{
	const int r = file_read_at(&peer->files[extent.file], extent.offset, buffer, extent.nbytes);
	/* A rank that fails frees its space, so the bytes read may be other data. */
	const int alive = peer_memory_check_alive(peer->remote->peer_memory, peer->rank);

	if (alive < 0)
		return alive;
	return r < 0 ? fail(r,
			    "temporary file of rank %u: cannot read %" PRIu64 " bytes at %" PRIu64
			    ": %m; check the disk",
			    peer->rank, extent.nbytes, extent.offset) :
		       0;
}

/*
 * Like spill_read(). Returns -ECANCELED after a message, because no disk of this host has failed.
 */
static int read_remote_extent(void *context, struct spill_extent extent, void *buffer)
{
	struct remote_rank *peer = context;
	const struct request request = { .kind = REQUEST_BYTES, .extent = extent };
	const bool has_place = peer->has_places &&
			       (is_in_memory(peer, extent) || (extent.file < peer->counts.n_files &&
							       peer->files[extent.file].fd >= 0));
	int r;

	if (!has_place)
		return request_data(peer->remote, peer->rank, request, buffer) < 0 ? -ECANCELED : 0;
	r = is_in_memory(peer, extent) ? read_peer_region(peer, extent, buffer) :
					 read_peer_file(peer, extent, buffer);
	return r < 0 ? -ECANCELED : 0;
}

static void open_peer_files(struct remote_rank *peer)
{
	const int64_t *fds = (const int64_t *)(peer->regions + peer->counts.n_regions);

	for (uint64_t i = 0; i < peer->counts.n_files; i++) {
		struct file *file = &peer->files[i];

		*file = (struct file){ .calls = &syscalls_plain, .fd = -1 };
		if (fds[i] >= 0 && file_open(&syscalls_plain, AT_FDCWD,
					     peer_memory_fd_path(peer->remote->peer_memory,
								 peer->rank, (int)fds[i])
						     .text,
					     O_RDONLY, 0, file) < 0)
			file->fd = -1;
	}
}

/* If the rank is a peer, fetch the places of its spill. */
static int fetch_places(struct remote_rank *peer)
{
	struct place_counts counts;
	int r;

	if (!peer_memory_can_read(peer->remote->peer_memory, peer->rank))
		return 0;
	r = request_data(peer->remote, peer->rank, (struct request){ .kind = REQUEST_COUNTS },
			 &counts);
	if (r < 0)
		return r;
	if (counts.n_regions < UINT32_MAX && counts.n_files < UINT16_MAX) {
		peer->regions = malloc(counts.n_regions * sizeof *peer->regions +
				       counts.n_files * sizeof(int64_t) + 1);
		peer->files = calloc(counts.n_files + 1, sizeof *peer->files);
	}
	if (!peer->regions || !peer->files)
		return fail(-ENOMEM, "no memory for the places of rank %u", peer->rank);
	r = request_data(peer->remote, peer->rank,
			 (struct request){ .kind = REQUEST_PLACES,
					   .first = counts.n_regions,
					   .n = counts.n_files },
			 peer->regions);
	if (r < 0)
		return r;
	peer->counts = counts;
	peer->has_places = true;
	open_peer_files(peer);
	return 0;
}

/* Fetch the blocks of a segment, which must have all its items. ret_index->blocks: for free(). */
static int fetch_index(struct remote_rank *peer, uint64_t run_index,
		       const struct run_segment *segment, struct run_index *ret_index)
{
	struct run_block *blocks = calloc(u64_max(segment->n_blocks, 1), sizeof *blocks);
	int r = blocks ? 0 :
			 fail(-ENOMEM,
			      "no memory for the index of a run of rank %u; try a smaller -S",
			      peer->rank);

	*ret_index = (struct run_index){
		.blocks = blocks,
		.n_blocks = segment->n_blocks,
		.item_nbytes = (uint32_t)peer->remote->job->layout->item_nbytes,
	};
	for (uint64_t i = 0; i < segment->n_blocks && r == 0; i += MAX_REQUEST_BLOCKS)
		r = request_data(
			peer->remote, peer->rank,
			(struct request){ .kind = REQUEST_BLOCKS,
					  .run = run_index,
					  .first = segment->first_block + i,
					  .n = u64_min(segment->n_blocks - i, MAX_REQUEST_BLOCKS) },
			blocks + i);
	if (r < 0)
		return r;
	if (run_index_check(ret_index) < 0 || blocks[0].first_item > segment->begin ||
	    ret_index->n_items < segment->end - blocks[0].first_item)
		return fail(-EPROTO,
			    "internal error: rank %u on %s sent an invalid index; the output was "
			    "not written",
			    peer->rank, comm_host(peer->remote->comm, peer->rank));
	return 0;
}

static int append_remote_run(struct remote_rank *peer, uint64_t run_index,
			     const struct run_segment *segment, struct run_list *runs)
{
	const struct job *job = peer->remote->job;
	struct run_index index;
	struct run_file *file;
	struct run *run;
	int r;

	if (segment->begin >= segment->end)
		return 0;
	r = fetch_index(peer, run_index, segment, &index);
	if (r == 0)
		r = run_file_open_finished(peer->spill, job->compression, &index, &file);
	free(index.blocks);
	if (r == 0)
		r = run_open_spilled_part(job->layout, file, segment->begin, segment->end, &run);
	return r < 0 ? r : run_list_add(runs, run);
}

static int append_remote_runs(struct remote_rank *peer, struct run_list *runs)
{
	const uint64_t n = peer->remote->n_runs[peer->rank];
	struct run_segment *segments = calloc(n + 1, sizeof *segments);
	int r = segments ? fetch_places(peer) :
			   fail(-ENOMEM, "no memory for a merge of %" PRIu64 " runs", n);

	if (r == 0)
		r = request_data(peer->remote, peer->rank,
				 (struct request){ .kind = REQUEST_SEGMENTS, .n = n }, segments);
	for (uint64_t i = 0; i < n && r == 0; i++)
		r = append_remote_run(peer, i, &segments[i], runs);
	free(segments);
	return r;
}

static int open_peer(struct remote_runs *remote, unsigned rank)
{
	struct remote_rank *peer = &remote->peers[rank];
	struct spill_remote source = { .read = read_remote_extent,
				       .context = peer,
				       .name = peer->name };
	int r;

	peer->remote = remote;
	peer->rank = rank;
	snprintf(peer->name, sizeof peer->name, "the temporary space of rank %u", rank);
	r = spill_open_remote(&source, &peer->spill);
	if (r == 0 && spill_is_persistent(remote->job->spill)) {
		snprintf(peer->hint, sizeof peer->hint,
			 "to sort the part of that rank again, remove the contents of rank-%04u in "
			 "the checkpoint",
			 rank);
		spill_set_damage_hint(peer->spill, peer->hint);
	}
	return r;
}

/* --- the runs of all ranks --- */

int remote_runs_append(struct remote_runs *remote, struct run_list *runs)
{
	const unsigned n = comm_size(remote->comm), own_rank = comm_rank(remote->comm);
	int r = 0;

	for (unsigned i = 0; i < n && r == 0; i++)
		r = i == own_rank ? own_segments_append(remote->job->layout, remote->own_runs,
							remote->cuts, i, runs) :
				    append_remote_runs(&remote->peers[i], runs);
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
		r = open_peer(remote, i);
	if (r == 0)
		r = comm_allgather(comm, &n_local_runs, sizeof n_local_runs, remote->n_runs);
	return r < 0 ? r :
		       thread_group_start(&remote->servers, N_SERVERS, serve_requests, remote,
					  "a thread to serve other ranks");
}

int remote_runs_finish(struct remote_runs *remote)
{
	const struct request end = { .kind = REQUEST_STOP };
	int r = comm_barrier(remote->comm);

	/* Each server takes one such request and ends. */
	for (unsigned i = 0; i < remote->servers.n_threads && r == 0; i++)
		r = comm_send_wait(remote->comm, comm_rank(remote->comm), COMM_TAG_REQUESTS, &end,
				   sizeof end);
	if (r == 0)
		thread_group_join(&remote->servers);
	return r;
}

void remote_runs_close(struct remote_runs *remote)
{
	if (!remote)
		return;
	/* The servers were stopped, or the job has failed. */
	thread_group_join(&remote->servers);
	for (unsigned i = 0; remote->peers && i < comm_size(remote->comm); i++) {
		struct remote_rank *peer = &remote->peers[i];

		spill_close(peer->spill);
		for (uint64_t file = 0; file < peer->counts.n_files; file++)
			file_close(&peer->files[file]);
		free(peer->regions);
		free(peer->files);
	}
	free(remote->peers);
	free(remote->n_runs);
	pthread_cond_destroy(&remote->response_freed);
	pthread_mutex_destroy(&remote->lock);
	free(remote);
}
