/*
 * remote_runs.h - merge parts of runs that other ranks have stored
 *
 *	rank 0   [ run 0 |    run 1   ]		each rank has stored its own runs, which are cut at
 *	rank 1   [    run 0   | run 1 ]		global splitters
 *	           ^ partition of rank 0
 *
 * The part of a run between two cuts, a segment, is itself a run (run_open_subrun()). That also
 * holds for a run of another rank: it is a run file in a remote spill (spill.h). Its index is
 * fetched once. Its blocks are fetched when the merge needs them, as they are stored: compressed,
 * with checksums that the reader verifies. So the merge need not know about ranks.
 *
 *	reader of the merge --- request ---> a server thread of the run's rank, which reads
 *	                    <-- bytes ------ from its spill
 *
 * The data of a rank on the same host (peer_memory.h) is read from its memory or its files, without
 * requests.
 *
 * A rank that cannot read what another rank needs aborts the job (comm_abort()), after a message.
 */
#pragma once

#include "src/comm/peer_memory.h"
#include "src/comm/comm.h"
#include "src/run/run.h"

struct remote_runs;

/*
 * Collective. Offer the own runs, all of them stored, to other ranks: of n runs, the items [cuts[q
 * * n + i], cuts[(q + 1) * n + i]) of run i are for rank q. All arguments must outlive the result.
 * Call remote_runs_close() also after a failure.
 */
int remote_runs_open(struct comm *comm, const struct peer_memory *peer_memory,
		     const struct job *job, const struct run_list *own_runs, const uint64_t *cuts,
		     struct remote_runs **ret_remote);

/* Append the segments of this rank's partition to `store`, in the order of ties. */
int remote_runs_append(struct remote_runs *remote, struct run_list *store);

/*
 * Collective. Called when this rank reads no more segments. Serves other ranks until they do not
 * either.
 */
int remote_runs_finish(struct remote_runs *remote);

/*
 * Requires that remote_runs_finish() has succeeded or that the job has failed (comm_fail()), and
 * that the segments are closed. NULL is ignored.
 */
void remote_runs_close(struct remote_runs *remote);
