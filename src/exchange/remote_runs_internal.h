/*
 * remote_runs_internal - what those who serve other ranks and those who ask them share; of
 * depot*.c only
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "src/exchange/remote_runs.h"
#include "src/exchange/peer_spill.h"

enum {
	RUN_SERVER_N_THREADS = 8, /* of which most wait for what is on its way */
	RUN_REQUEST_MAX_BLOCKS = 1 << 14,
	REMOTE_RANK_NAME_NBYTES = 96,
	REMOTE_RANK_HINT_NBYTES = 128,
};

enum run_request_kind {
	REQUEST_STOP,           /* of the own servers: nobody asks any more */
	REQUEST_SEGMENTS,       /* of the runs: struct row, n of them */
	REQUEST_BLOCKS,         /* of a run's index: from `first` on, n */
	REQUEST_BYTES,          /* of the spill: the extent */
	REQUEST_COUNTS,         /* of that, for who is near: how much there is of ... */
	REQUEST_MEMORY_REGIONS, /* ... struct extent_address, n of them, ... */
	REQUEST_FILES,          /* ... and of descriptors, n of them */
	N_REQUEST_KINDS
};

/* A message. Its answer is of run_request_response_nbytes(). */
struct run_request {
	uint32_t kind, tag;
	uint64_t run, first, n;
	struct spill_extent extent;
};

/* Of a run, the range of the one who asks. */
struct run_segment {
	uint64_t begin, end; /* items */
	uint64_t first_block, n_blocks;
	uint64_t first_item; /* of the first block */
};

/* A rank's runs, as another one reads them. */
struct remote_rank {
	struct remote_runs *remote;
	unsigned rank;
	char name[REMOTE_RANK_NAME_NBYTES];
	char hint[REMOTE_RANK_HINT_NBYTES]; /* advice about damage that a resumed sort meets */
	struct spill *spill;
	struct peer_spill *peer_spill; /* what of it is read where it is; NULL: nothing */
};

struct remote_runs {
	struct comm *comm;
	const struct peer_memory *peer_memory;
	const struct job *job;
	const struct run_list *own_runs;
	const uint64_t *cuts;
	struct remote_rank *peers;    /* one of each rank */
	uint64_t *n_runs;             /* the same */
	struct run_list fetched_runs; /* runs of other ranks, of which the parts are */
	pthread_t servers[RUN_SERVER_N_THREADS];
	unsigned n_servers;
	pthread_mutex_t lock;
	pthread_cond_t response_freed; /* one of them has less room than before */
	uint64_t responses_nbytes;     /* room of all of them; under the lock */
	atomic_uint next_tag;
	atomic_uint_least64_t received_nbytes;
};

/* What of an own run is between two cuts. */
struct run_segment remote_runs_get_segment(const struct remote_runs *remote, unsigned rank,
					   uint64_t run);

size_t run_request_response_nbytes(const struct run_request *request);

/* A part of a run, appended to the store. 0, or a negative errno after a message. */
int remote_runs_append_segment(struct remote_runs *remote, struct run *run, uint64_t begin,
			       uint64_t end, struct run_list *store);

/* --- run_server.c: who is asked --- */

/* 0, or a negative errno after a message: some may have been started. */
int run_server_start(struct remote_runs *remote);
/* Nobody asks any more: let them end. */
int run_server_stop(const struct remote_runs *remote);
/* They have been told, or the ranks have failed. */
void run_server_join(struct remote_runs *remote);

/* --- run_client.c: who asks --- */

/* What is stored by another rank; to be closed in any case. */
int run_client_open(struct remote_runs *remote, unsigned rank);
void run_client_close(struct remote_rank *peer);
/* Append the own range's parts of its runs. */
int run_client_append(struct remote_rank *peer, struct run_list *store);
