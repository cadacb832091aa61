/*
 * remote_runs_internal - what those who serve other ranks and those who ask them share; of depot*.c only
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "src/exchange/remote_runs.h"
#include "src/exchange/peer_spill.h"

enum {
	DEPOT_N_SERVERS = 8, /* of which most wait for what is on its way */
	DEPOT_BLOCKS_AT_ONCE = 1 << 14,
	DEPOT_NAME_NBYTES = 96,
	DEPOT_ADVICE_NBYTES = 128,
};

enum wish {
	WISH_END,    /* of the own servers: nobody asks any more */
	WISH_ROWS,   /* of the runs: struct row, n of them */
	WISH_BLOCKS, /* of a run's index: from `first` on, n */
	WISH_BYTES,  /* of the spill: the extent */
	WISH_COUNTS, /* of that, for who is near: how much there is of ... */
	WISH_PLACES, /* ... struct memory_place, n of them, ... */
	WISH_FILES,  /* ... and of descriptors, n of them */
	N_WISHES
};

/* A message. Its answer is of depot_answer_nbytes(). */
struct request {
	uint32_t wish, tag;
	uint64_t run, first, n;
	struct spill_extent extent;
};

/* Of a run, the range of the one who asks. */
struct row {
	uint64_t begin, end; /* items */
	uint64_t first_block, n_blocks;
	uint64_t first_item; /* of the first block */
};

/* A rank's runs, as another one reads them. */
struct far {
	struct depot *depot;
	unsigned rank;
	char name[DEPOT_NAME_NBYTES];
	char advice[DEPOT_ADVICE_NBYTES]; /* if it is kept: of damage, which will be there again */
	struct spill *spill;
	struct near_store *store; /* what of it is read where it is; NULL: nothing */
};

struct depot {
	struct ranks *ranks;
	const struct near *near;
	const struct job *job;
	const struct run_store *own;
	const uint64_t *cuts;
	struct far *far;      /* one of each rank */
	uint64_t *n_runs;     /* the same */
	struct run_store all; /* runs of other ranks, of which the parts are */
	pthread_t servers[DEPOT_N_SERVERS];
	unsigned n_servers;
	pthread_mutex_t lock;
	pthread_cond_t served;  /* one of them has less room than before */
	uint64_t served_nbytes; /* room of all of them; under the lock */
	atomic_uint next_tag;
	atomic_uint_least64_t received_nbytes;
};

/* What of an own run is between two cuts. */
struct row depot_make_row(const struct depot *depot, unsigned rank, uint64_t run);

size_t depot_answer_nbytes(const struct request *request);

/* A part of a run, appended to the store. 0, or a negative errno after a message. */
int depot_take_part(struct depot *depot, struct run *run, uint64_t begin, uint64_t end,
		    struct run_store *store);

/* --- run_server.c: who is asked --- */

/* 0, or a negative errno after a message: some may have been started. */
int depot_start_servers(struct depot *depot);
/* Nobody asks any more: let them end. */
int depot_tell_servers(const struct depot *depot);
/* They have been told, or the ranks have failed. */
void depot_join_servers(struct depot *depot);

/* --- run_client.c: who asks --- */

/* What is stored by another rank; to be closed in any case. */
int depot_open_far(struct depot *depot, unsigned rank);
void depot_close_far(struct far *far);
/* Append the own range's parts of its runs. */
int depot_take_far(struct far *far, struct run_store *store);
