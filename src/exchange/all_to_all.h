/*
 * all_to_all - the runs that all ranks have in memory, of which each gets its range
 *
 *	rank 0   [run 0][run 1]		cut at the same splitters (global_splitters.h); then every
 *	part
 *	rank 1   [run 0][run 1]		goes to memory of the rank whose range it is, and is
 *	          ^ range of rank 0	merged there as what has been sorted there
 *
 * In the place of remote_runs.h where nothing had to be stored, and nothing need be: so it is
 * read and written once, as by one process, and no merge waits for other ranks. In each of P - 1
 * steps every rank tells one other what there is for it, and hears it of one. Parts go as they
 * lie: who is near (peer_memory.h) reads them from where they are, when it has heard of all; to
 * others they are sent in that step. What the others have is given back.
 */
#pragma once

#include "src/comm/peer_memory.h"
#include "src/comm/comm.h"
#include "src/run/run_list.h"

struct all_to_all;

/*
 * Has every rank room for what it would get? room_nbytes: of this one. The cuts are as in
 * remote_runs_open(), of runs all resident in memory of the host. Every rank calls it. Returns 0,
 * or a negative errno after a message.
 */
int all_to_all_fits(struct comm *comm, const struct job *job, const struct run_list *own_runs,
		    const uint64_t *cuts, uint64_t available_nbytes, bool *ret_fits);

/*
 * Carry it out, and append the own range's parts of all ranks' runs, in the order of ties. Every
 * rank calls it. Near, job and store must outlive the trade, which must outlive the parts; of own
 * runs only what is in parts is there from then on. Returns 0 or a negative errno after a message;
 * to be closed in both cases.
 */
int all_to_all_open(struct comm *comm, const struct peer_memory *peer_memory, const struct job *job,
		    const struct run_list *own_runs, const uint64_t *cuts, struct run_list *store,
		    struct all_to_all **ret_exchange);

/* The parts must be closed before; after a failure nothing is under way (comm.h). NULL is fine. */
void all_to_all_close(struct all_to_all *exchange);

/* Bytes that have come from other ranks, and that their memory takes. NULL: 0. */
uint64_t all_to_all_received_nbytes(const struct all_to_all *exchange);
