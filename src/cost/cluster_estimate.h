/*
 * cluster_estimate - what each of several ranks moves, how long that takes, and which limit is near
 *
 * Of a plan for one of several ranks (plan_request.n_ranks), and of the exchange between them
 * (src/exchange/): what is read and written of the disk, what comes over the network, in how many
 * messages. All ranks do as much, within a block of each run. If nothing shrinks; packed runs are
 * less, wherever they are counted.
 *
 * The machines are others than this one, so nothing is measured: times follow from rates that were
 * stated, or else assumed.
 */
#pragma once

#include "src/plan/plan.h"

/* What a rank's share of its machine can do in a second. */
enum rank_link {
	RANK_DISK,       /* bytes read and written, of inputs, temporary files and the output */
	RANK_NETWORK,    /* bytes received, while as many are sent */
	RANK_MESSAGES,   /* that others ask for and are sent */
	RANK_PROCESSORS, /* bytes sorted, or merged; 0: not reckoned with */
	N_RANK_LINKS
};

struct rank_rates {
	uint64_t per_s[N_RANK_LINKS];
	bool is_stated[N_RANK_LINKS]; /* else it is assumed */
};

/* As they are called: "disk", "network", "messages", "processors". */
const char *rank_link_name(enum rank_link link);

/* What was not stated (0) becomes an assumption. */
void rank_rates_assume(struct rank_rates *rates);

enum rank_phase {
	RANK_FORM,  /* runs of the own part of the input */
	RANK_MERGE, /* the own range, of the runs of all; also by merges before the last */
	N_RANK_PHASES
};
const char *rank_phase_name(enum rank_phase phase); /* for people */
const char *rank_phase_key(enum rank_phase phase);  /* for programs */

/* What there is too much of first. */
enum rank_limit {
	RANK_FAN_IN,   /* runs of all that can be merged at once; with more, all is moved again */
	RANK_INDEX,    /* memory for what is known of blocks */
	RANK_UNEVEN,   /* a block of each run, of a range: a percent of its bytes */
	RANK_OVERHEAD, /* of what a rank receives, that is no item: 2 percent */
	RANK_WAITING,  /* messages: as many as take the time that the bytes do */
	N_RANK_LIMITS
};

const char *rank_limit_key(enum rank_limit limit); /* for programs */

struct rank_limit_state {
	uint64_t is, limit; /* in what it counts */
	double part;        /* is / limit; above 1 it is passed */
};

/* All of one rank. */
struct rank_loads {
	uint32_t n_ranks;    /* 0: this is not filled in */
	uint64_t all_nbytes; /* of the input of all; who asks knows it */
	/* Bytes of the input, and of the output. */
	uint64_t read_nbytes, written_nbytes;
	uint64_t n_output_records;
	/* Stored: to the disk when runs are formed, then in memory; and by merges but the last. */
	uint64_t spilled_nbytes, kept_nbytes, passes_nbytes;
	/* Received: items, blocks at cuts that two ranks read, the index, and to find splitters. */
	uint64_t items_nbytes, edges_nbytes, index_nbytes, cut_nbytes;
	uint64_t received_nbytes, disk_nbytes; /* sums */
	uint64_t n_runs, n_merged;           /* own, and those of all, of which it merges a range */
	uint64_t n_messages, message_nbytes; /* for items */
	uint32_t n_cut_rounds;
	bool trades;            /* nothing is stored: memory goes to the ranks whose range it is */
	uint64_t uneven_nbytes; /* a range is longer or shorter than others by so much at most */
	uint64_t nbytes[N_RANK_PHASES][N_RANK_LINKS];
	struct rank_limit_state limits[N_RANK_LIMITS];
};

/* The request is one of several ranks, with a size that is known, and the plan is its plan. */
void rank_loads_find(const struct plan *plan, const struct plan_request *request,
		     const struct rank_rates *rates, struct rank_loads *ret_loads);

/* Are there rates for everything? Else it takes longer. */
bool rank_rates_are_complete(const struct rank_rates *rates);

/* Seconds of a link in a phase, by these rates, and of the phase, as its slowest link. */
double rank_link_s(const struct rank_loads *loads, const struct rank_rates *rates,
		   enum rank_phase phase, enum rank_link link);
double rank_phase_s(const struct rank_loads *loads, const struct rank_rates *rates,
		    enum rank_phase phase, enum rank_link *ret_slowest);

/* Of the limits, the one that is nearest, or passed by the most. */
enum rank_limit rank_nearest_limit(const struct rank_loads *loads);
