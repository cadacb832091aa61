/*
 * exchange.h - exchange the runs of all ranks: in memory, or from where they are stored
 */
#pragma once

#include "src/comm/peer_memory.h"
#include "src/run/run.h"

/*
 * Append the segments of this rank's own runs that are in its own partition to `runs`. The cuts are
 * as in remote_runs_open().
 */
int own_segments_append(const struct layout *layout, const struct run_list *own_runs,
			const uint64_t *cuts, unsigned rank, struct run_list *runs);

/*
 * --- in memory: each rank gets its partition of all runs (all_to_all.c) ---
 *
 *	rank 0   [run 0][run 1]		the runs are cut at global splitters; each part, called a
 *	rank 1   [run 0][run 1]		segment, is copied to the memory of the rank whose
 *	          ^ partition of rank 0	partition it belongs to, and merged there
 *
 * Used instead of remote runs if no run is stored and none needs to be: every record is then read
 * and written once, as by one process, and no merge waits for other ranks. In each of P - 1 steps a
 * rank describes its segments to one other rank and receives the descriptions of another one.
 * Segments move as they are: a peer (peer_memory.h) reads them from memory when all descriptions
 * have arrived; to other ranks they are sent in that step. Afterwards the sender frees its copy.
 */

struct all_to_all;

/*
 * Collective. Return whether every rank has room for the segments that it would receive.
 * available_nbytes: the memory of this rank. The cuts are as in remote_runs_open(). All runs are
 * resident in host memory.
 */
int all_to_all_fits(struct comm *comm, const struct job *job, const struct run_list *own_runs,
		    const uint64_t *cuts, uint64_t available_nbytes, bool *ret_fits);

/*
 * Collective. Exchange the segments, and append those of this rank's partition to `runs`, in the
 * order of ties. peer_memory, job and runs must outlive the exchange, and the exchange must
 * outlive the segments. Of own_runs only the segments of this rank are valid afterwards. Call
 * all_to_all_close() also after a failure.
 */
int all_to_all_open(struct comm *comm, const struct peer_memory *peer_memory, const struct job *job,
		    const struct run_list *own_runs, const uint64_t *cuts, struct run_list *runs,
		    struct all_to_all **ret_exchange);

/* The segments must be closed. NULL is ignored. */
void all_to_all_close(struct all_to_all *exchange);

/* Return the memory of segments received from other ranks. NULL: 0. */
uint64_t all_to_all_received_nbytes(const struct all_to_all *exchange);

/*
 * --- merge parts of runs that other ranks have stored (remote_runs.c) ---
 *
 *	rank 0   [ run 0 |    run 1   ]		each rank has stored its own runs, which are cut at
 *	rank 1   [    run 0   | run 1 ]		global splitters
 *	           ^ partition of rank 0
 *
 * The part of a run between two cuts, a segment, is itself a run (run_open_subrun()). A segment of
 * another rank is a part of a run file in a remote spill (run_open_spilled_part(), spill.h). Its
 * part of the index is fetched once. Its blocks are fetched when the merge needs them, as they are
 * stored: compressed, with checksums that the reader verifies. So the merge need not know about
 * ranks.
 *
 *	reader of the merge --- request ---> a server thread of the run's rank, which reads
 *	                    <-- bytes ------ from its spill
 *
 * The data of a rank on the same host (peer_memory.h) is read from its memory or its files, without
 * requests.
 *
 * A rank that cannot read what another rank needs aborts the job (comm_abort()), after a message.
 */

struct remote_runs;

/*
 * Collective. Offer own_runs, all of them stored, to other ranks: of n runs, the items [cuts[q
 * * n + i], cuts[(q + 1) * n + i]) of run i are for rank q. All arguments must outlive the result.
 * Call remote_runs_close() also after a failure.
 */
int remote_runs_open(struct comm *comm, const struct peer_memory *peer_memory,
		     const struct job *job, const struct run_list *own_runs, const uint64_t *cuts,
		     struct remote_runs **ret_remote);

/* Append the segments of this rank's partition to `runs`, in the order of ties. */
int remote_runs_append(struct remote_runs *remote, struct run_list *runs);

/*
 * Collective. Call it when this rank reads no more segments. Serves other ranks until none of them
 * reads any more.
 */
int remote_runs_finish(struct remote_runs *remote);

/*
 * Requires that remote_runs_finish() has succeeded or that the job has failed (comm_fail()), and
 * that the segments are closed. NULL is ignored.
 */
void remote_runs_close(struct remote_runs *remote);
