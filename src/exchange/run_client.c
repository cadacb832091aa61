/*
 * run_client - what is stored by another rank, as runs of this one (see remote_runs.h)
 *
 * A run is a run file in a spill that is elsewhere: its index is asked for once, and its blocks
 * when the merge wants them. Of a rank that is near they are read where they are (peer_spill.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "io/spill/run_file.h"
#include "src/base/diagnostics.h"
#include "src/exchange/remote_runs_internal.h"
#include "src/comm/tags.h"

/* Given to an answer by who asks: unlike that of any other that may be under way. */
static uint32_t next_response_tag(struct remote_runs *remote)
{
	const unsigned n = atomic_fetch_add(&remote->next_tag, 1);

	return COMM_TAG_RESPONSES + n % (COMM_TAG_LIMIT - COMM_TAG_RESPONSES);
}

static int request_data(struct remote_runs *remote, unsigned rank, struct run_request request,
			void *ret_response)
{
	const size_t nbytes = run_request_response_nbytes(&request);
	struct comm_transfer request_send, response_receive;
	int r;

	request.tag = next_response_tag(remote);
	r = comm_receive(remote->comm, rank, request.tag, ret_response, nbytes, &response_receive);
	if (r < 0)
		return r;
	r = comm_send(remote->comm, rank, COMM_TAG_REQUESTS, &request, sizeof request,
		      &request_send);
	if (r == 0)
		r = comm_wait(remote->comm, &response_receive);
	if (r == 0) /* done by then, so nobody is woken twice */
		r = comm_wait(remote->comm, &request_send);
	if (r == 0)
		atomic_fetch_add(&remote->received_nbytes, nbytes);
	return r;
}

/* As spill_read(). What has failed was said, and is no matter of a disk. */
static int read_remote_extent(void *context, struct spill_extent extent, void *buffer)
{
	const struct remote_rank *peer = context;
	const struct run_request request = { .kind = REQUEST_BYTES, .extent = extent };
	int r;

	if (!peer_spill_can_read(peer->peer_spill, extent))
		return request_data(peer->remote, peer->rank, request, buffer) < 0 ? -ECANCELED : 0;
	r = peer_spill_read(peer->peer_spill, extent, buffer);
	if (r == 0)
		atomic_fetch_add(&peer->remote->received_nbytes, extent.nbytes);
	return r < 0 ? -ECANCELED : 0;
}

static int fail_remote_index(const struct remote_rank *peer)
{
	return fail(-EPROTO,
		    "internal error: what rank %u on %s has told of its runs cannot be; the output "
		    "was not written",
		    peer->rank, comm_host(peer->remote->comm, peer->rank));
}

/* As run files store them: who reads one relies on that. */
static bool are_blocks_valid(const struct run_block *blocks, uint64_t n, uint64_t item_nbytes)
{
	for (uint64_t i = 0; i < n; i++)
		if (!run_block_is_valid(&blocks[i], item_nbytes))
			return false;
	return true;
}

/* The blocks of a row, into the index of a file. */
static int fetch_blocks(struct remote_rank *peer, uint64_t run_index,
			const struct run_segment *segment, struct run_file *file)
{
	struct run_block *blocks =
		aligned_alloc(_Alignof(struct run_block), RUN_REQUEST_MAX_BLOCKS * sizeof *blocks);
	int r = blocks ? 0 :
			 fail_hint(-ENOMEM, HINT_LESS_MEMORY, 0,
				   "no memory for the index of a run of rank %u", peer->rank);

	for (uint64_t i = 0; i < segment->n_blocks && r == 0; i += RUN_REQUEST_MAX_BLOCKS) {
		const uint64_t remaining = segment->n_blocks - i;
		const uint64_t n = remaining < RUN_REQUEST_MAX_BLOCKS ? remaining :
									RUN_REQUEST_MAX_BLOCKS;

		r = request_data(peer->remote, peer->rank,
				 (struct run_request){ .kind = REQUEST_BLOCKS,
						       .run = run_index,
						       .first = segment->first_block + i,
						       .n = n },
				 blocks);
		if (r == 0 && !are_blocks_valid(blocks, n, run_file_item_nbytes(file)))
			r = fail_remote_index(peer);
		for (uint64_t j = 0; j < n && r == 0; j++)
			blocks[j].discarded = false;
		if (r == 0)
			r = run_file_restore(file, blocks, n);
	}
	free(blocks);
	return r < 0 ? r : run_file_finish(file);
}

/* The run of another rank, as far as it is in the blocks of the row. */
static int open_remote_run(struct remote_rank *peer, uint64_t run_index,
			   const struct run_segment *segment, struct run **ret_run)
{
	const struct job *job = peer->remote->job;
	const struct layout *layout = job->layout;
	struct run_file *file;
	int r = run_file_open(peer->spill, job->compression, (uint32_t)layout->item_nbytes,
			      run_file_block_n_items(job->plan.block_nbytes,
						     (uint32_t)layout->resident_nbytes),
			      &file);

	if (r < 0)
		return r;
	r = fetch_blocks(peer, run_index, segment, file);
	if (r == 0 && (segment->first_item > segment->begin ||
		       run_file_n_items(file) < segment->end - segment->first_item))
		r = fail_remote_index(peer);
	if (r < 0) {
		run_file_close(file);
		return r;
	}
	return run_open_stored(file, STORED_ITEMS, ret_run);
}

static int append_remote_run(struct remote_rank *peer, uint64_t run_index,
			     const struct run_segment *segment, struct run_list *store)
{
	struct run *run;
	int r;

	if (segment->begin >= segment->end)
		return 0;
	r = open_remote_run(peer, run_index, segment, &run);
	if (r == 0)
		r = run_list_add(&peer->remote->fetched_runs, run);
	return r < 0 ? r :
		       remote_runs_append_segment(peer->remote, run,
						  segment->begin - segment->first_item,
						  segment->end - segment->first_item, store);
}

/* With room for what it has: places, and behind them descriptors. */
static int fetch_spill_layout(struct remote_rank *peer, struct peer_spill_counts counts,
			      void *buffer)
{
	struct extent_address *regions = buffer;
	int64_t *fds = (int64_t *)(regions + counts.n_regions);
	int r = request_data(peer->remote, peer->rank,
			     (struct run_request){ .kind = REQUEST_MEMORY_REGIONS,
						   .n = counts.n_regions },
			     regions);

	if (r == 0)
		r = request_data(peer->remote, peer->rank,
				 (struct run_request){ .kind = REQUEST_FILES, .n = counts.n_files },
				 fds);
	return r < 0 ? r :
		       peer_spill_open(peer->remote->peer_memory, peer->rank, counts, regions, fds,
				       &peer->peer_spill);
}

/* If it is near: where it has what it has stored. */
static int open_peer_spill(struct remote_rank *peer)
{
	struct peer_spill_counts counts;
	void *buffer;
	int r;

	if (!peer_memory_can_read(peer->remote->peer_memory, peer->rank))
		return 0;
	r = request_data(peer->remote, peer->rank, (struct run_request){ .kind = REQUEST_COUNTS },
			 &counts);
	if (r < 0)
		return r;
	buffer = counts.n_regions < UINT32_MAX && counts.n_files < UINT16_MAX ?
			 malloc(counts.n_regions * sizeof(struct extent_address) +
				counts.n_files * sizeof(int64_t) + 1) :
			 NULL;
	r = buffer ? fetch_spill_layout(peer, counts, buffer) :
		     fail(-ENOMEM, "no memory for what rank %u has stored", peer->rank);
	free(buffer);
	return r;
}

static int append_remote_runs(struct remote_rank *peer, struct run_list *store)
{
	const uint64_t n = peer->remote->n_runs[peer->rank];
	struct run_segment *segments = calloc(n + 1, sizeof *segments);
	int r = segments ? request_data(peer->remote, peer->rank,
					(struct run_request){ .kind = REQUEST_SEGMENTS, .n = n },
					segments) :
			   fail(-ENOMEM, "no memory for a merge of %" PRIu64 " runs", n);

	for (uint64_t i = 0; i < n && r == 0; i++)
		r = append_remote_run(peer, i, &segments[i], store);
	free(segments);
	return r;
}

int run_client_append(struct remote_rank *peer, struct run_list *store)
{
	const int r = open_peer_spill(peer);

	return r < 0 ? r : append_remote_runs(peer, store);
}

int run_client_open(struct remote_runs *remote, unsigned rank)
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
			 "to have that rank's part sorted again, remove what rank-%04u of the "
			 "checkpoint holds",
			 rank);
		spill_set_advice(peer->spill, peer->hint);
	}
	return r;
}

void run_client_close(struct remote_rank *peer)
{
	spill_close(peer->spill);
	peer_spill_close(peer->peer_spill);
}
