/*
 * rank_stats.h - the table of statistics, and the statistics of several ranks
 *
 * One table describes each number once: its name, unit and place, where it is shown, and how ranks
 * are combined. Text, JSON, the HTML page and the sum over ranks loop over that table, so a new
 * number is one row.
 *
 * When a distributed sort is done, every rank sends its summary to rank 0. The total has the same
 * type as the summary of one process, so reports need not distinguish them.
 */
#pragma once

#include "src/comm/comm.h"
#include "src/sort/sort_summary.h"

/* The struct that a number is in. */
enum stat_scope {
	STAT_OF_RUN,    /* struct rank_summary */
	STAT_OF_PHASE,  /* struct phase_totals */
	STAT_OF_STAGE,  /* struct stage_totals */
	STAT_OF_DEVICE, /* struct device_totals */
};

/* Where a number is shown; a number may be in several groups. */
enum stat_group {
	STAT_PROCESS = 1 << 0, /* of any run */
	STAT_INPUT = 1 << 1,   /* of a sort or a check */
	STAT_SORT = 1 << 2,    /* of a sort */
	STAT_SPILL = 1 << 3,   /* of a sort that may spill */
	STAT_RANKS = 1 << 4,   /* of all ranks together, if there are several */
	STAT_RANK = 1 << 5,    /* of each rank */
	STAT_TIME = 1 << 6,    /* of each rank, and of a phase */
	STAT_DISK = 1 << 7,    /* of a phase that used temporary files */
	STAT_NETWORK = 1 << 8, /* of a phase in which ranks exchanged messages */
	STAT_WORK = 1 << 9,    /* of a stage or a device */
	STAT_ALL = ~0,
};

struct stat_field {
	enum stat_scope scope;
	size_t offset;       /* of a uint64_t in the struct of the scope */
	const char *key;     /* of JSON */
	const char *heading; /* of the column in tables of ranks; NULL: only in JSON */
	enum { STAT_COUNT, STAT_BYTES, STAT_SECONDS /* stored in ns */ } unit;
	enum { STAT_SUM, STAT_MAX } combine; /* of several ranks */
	unsigned groups;                     /* enum stat_group */
};

/* Return the row after `field` (NULL: the first) of that scope and any of the groups, or NULL. */
const struct stat_field *stat_field_next(const struct stat_field *field, enum stat_scope scope,
					 unsigned groups);

/* Return the number in `object`, a struct of the field's scope. */
uint64_t stat_field_value(const struct stat_field *field, const void *object);

/* The statistics of one rank, or of all ranks. */
struct rank_summary {
	struct sort_summary summary;
	struct stats_totals totals;
	/* Sums over the phases, set by rank_stats_gather(). */
	struct stats_volumes volumes;
	uint64_t disk_read_nbytes, disk_written_nbytes; /* temporary files included */
};

struct rank_stats {
	/*
	 * Bytes, records, processor times and memory are added up; of elapsed times it is that of
	 * the slowest rank. Names are those of rank 0; each rank has its own devices
	 * (summary.backend).
	 */
	struct rank_summary total;
	unsigned n_ranks;
	struct rank_summary *ranks;      /* n, by rank */
	char (*hosts)[COMM_HOST_NBYTES]; /* n: the host name of each */
};

/*
 * Gather the statistics of all ranks on rank 0; every rank calls it. Sets the sums of `own`.
 * Messages have their own tag. Returns 0, with *ret_stats NULL on all ranks but 0, or a negative
 * errno after a message.
 */
int rank_stats_gather(struct comm *comm, struct rank_summary *own, struct rank_stats **ret_stats);

/* NULL is fine. */
void rank_stats_close(struct rank_stats *stats);

/* Return by which fraction of the mean the largest output of a rank exceeds the mean. */
double rank_stats_imbalance(const struct rank_stats *stats);
