/*
 * all_to_all.h - exchange runs in memory: each rank gets its partition of all runs
 *
 *	rank 0   [run 0][run 1]		the runs are cut at global splitters; each part, called a
 *	rank 1   [run 0][run 1]		segment, is copied to the memory of the rank whose
 *	          ^ partition of rank 0	partition it belongs to, and merged there
 *
 * Used in place of remote_runs.h if nothing has been stored and nothing need be: every record is
 * then read and written once, as by one process, and no merge waits for other ranks. In each of P -
 * 1 steps a rank describes its segments to one other rank and receives the descriptions of another
 * one. Segments move as they are: a peer (peer_memory.h) reads them from memory when all
 * descriptions have arrived; to other ranks they are sent in that step. Afterwards the sender frees
 * its copy.
 */
#pragma once

#include "src/comm/peer_memory.h"
#include "src/comm/comm.h"
#include "src/run/run.h"

struct all_to_all;

/*
 * Collective. Return whether every rank has room for what it would get; available_nbytes: of this
 * rank. The cuts are as in remote_runs_open(). All runs are resident in host memory.
 */
int all_to_all_fits(struct comm *comm, const struct job *job, const struct run_list *own_runs,
		    const uint64_t *cuts, uint64_t available_nbytes, bool *ret_fits);

/*
 * Collective. Exchange the segments, and append those of this rank's partition to `store`, in the
 * order of ties. peer_memory, job and store must outlive the exchange, and the exchange must
 * outlive the segments. Of own_runs only the segments of this rank are valid afterwards. Call
 * all_to_all_close() also after a failure.
 */
int all_to_all_open(struct comm *comm, const struct peer_memory *peer_memory, const struct job *job,
		    const struct run_list *own_runs, const uint64_t *cuts, struct run_list *store,
		    struct all_to_all **ret_exchange);

/* The segments must be closed. NULL is ignored. */
void all_to_all_close(struct all_to_all *exchange);

/* Return the memory of segments received from other ranks. NULL: 0. */
uint64_t all_to_all_received_nbytes(const struct all_to_all *exchange);
