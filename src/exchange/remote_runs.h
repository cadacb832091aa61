/*
 * remote_runs - the stored runs of all ranks, of which each merges a part
 *
 *	rank 0   [ run 0 |    run 1   ]		every run lies with the rank that has made it, and
 *	rank 1   [    run 0   | run 1 ]		is cut at the same splitters (global_splitters.h)
 *	           ^ range of rank 0 ^ range of rank 1
 *
 * What lies between two cuts is a part of a run, and a part is a run (run_open_subrun()), also if
 * the run is another rank's: that is a run file in a spill which is elsewhere (spill.h). Its index
 * comes once, and its blocks when the merge wants them, as they are stored: packed and compressed,
 * to be checked and decoded by who reads them. So nothing in a merge knows of ranks.
 *
 *	reader of the merge --- request ---> a server thread of the run's rank, which reads
 *	                    <-- bytes ------ from its spill
 *
 * Bytes of a rank on the same machine (peer_memory.h) are not requested, but read from its memory
 * or its files.
 *
 * A rank that cannot read what another one wants ends them all (comm_abort()), after a message.
 */
#pragma once

#include "src/comm/peer_memory.h"
#include "src/comm/comm.h"
#include "src/run/run_list.h"

struct remote_runs;

/*
 * Offer the own runs, all stored, to the other ranks: of n runs, [cuts[q * n], cuts[(q + 1) * n])
 * are for rank q. Every rank calls it, and waits for all others. All arguments must outlive it.
 * Returns 0 or a negative errno after a message; to be closed in both cases.
 */
int remote_runs_open(struct comm *comm, const struct peer_memory *peer_memory,
		     const struct job *job, const struct run_list *own_runs, const uint64_t *cuts,
		     struct remote_runs **ret_remote);

/* Append the own range's parts of all ranks' runs, in the order of ties. As above. */
int remote_runs_append(struct remote_runs *remote, struct run_list *store);

/*
 * Every rank calls it when its parts are not read any more, and waits for all others: serve them
 * until then. 0, or a negative errno after a message.
 */
int remote_runs_finish(struct remote_runs *remote);

/*
 * It is finished, or the ranks have failed (comm_fail()): others are served no more when it
 * returns. Parts that were taken must be closed before. NULL is fine.
 */
void remote_runs_close(struct remote_runs *remote);

/* Bytes that have come from other ranks. */
uint64_t remote_runs_received_nbytes(const struct remote_runs *remote);
