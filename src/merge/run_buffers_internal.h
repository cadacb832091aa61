/*
 * run_buffers_internal - a supply, as the files that make it up share it
 *
 *	run_buffers.c	what is open for it; cutting, and what is left
 *	run_buffers_fill.c	the slices of a window, from wherever runs are
 */
#pragma once

#include "src/base/thread_pool.h"
#include "src/merge/run_devices.h"
#include "src/merge/run_buffers.h"
#include "src/merge/block_unpack.h"

/* One run's share in the windows. */
struct share {
	struct run *run;
	const char *memory;  /* the run's, from where it is merged; NULL: it is read, or: */
	const char *away;    /* in memory of a device that is not reached: it is fetched */
	uint64_t next_block; /* the first not taken */
	uint64_t position;   /* in memory: records consumed */
	const char *rest;    /* read: n_rest records that the last window left, in its buffer */
	uint64_t n_rest;

	/* What is read for this window, by whoever of the crew */
	uint64_t n_blocks, n_read; /* blocks, records */
	char *to;                  /* device memory, with room for resident records */
	const char *items;         /* where they come from: its end, or staging */
	size_t items_nbytes;       /* what is read */

	struct arranged found; /* by make_unique(): n and dropped */
	struct ledger ledger;  /* of an input run: read, and dropped before it is merged */
};

struct supply {
	const struct job *job;
	struct homes homes;
	struct lane *lane; /* of the device that merges: one of them, as the mark */
	struct mark *mark;
	struct crew *crew; /* that reads; NULL if nothing is read */
	uint64_t capacity_records;
	uint64_t number;         /* of the window */
	struct slice *available; /* n_shares */
	char *staging;           /* host memory that is read into, or NULL */
	size_t staging_nbytes, staging_used;
	struct unpacking unpacking;
	uint32_t n_shares;
	struct share shares[];
};

/* Is it read, by threads of the host? */
static inline bool share_is_read(const struct share *share)
{
	return !share->memory && !share->away;
}
