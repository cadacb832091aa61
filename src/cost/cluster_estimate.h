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
enum rank_resource {
	RANK_DISK,       /* bytes read and written, of inputs, temporary files and the output */
	RANK_NETWORK,    /* bytes received, while as many are sent */
	RANK_MESSAGES,   /* that others ask for and are sent */
	RANK_PROCESSORS, /* bytes sorted, or merged; 0: not reckoned with */
	N_RANK_RESOURCES
};

struct rank_rates {
	uint64_t per_s[N_RANK_RESOURCES];
	bool user_supplied[N_RANK_RESOURCES]; /* else it is assumed */
};

/* As they are called: "disk", "network", "messages", "processors". */
const char *rank_resource_name(enum rank_resource resource);

/* What was not stated (0) becomes an assumption. */
void rank_rates_set_defaults(struct rank_rates *rates);

enum rank_phase {
	RANK_RUN_GENERATION, /* runs of the own part of the input */
	RANK_MERGE,          /* the own range, of the runs of all; also by merges before the last */
	N_RANK_PHASES
};
const char *rank_phase_name(enum rank_phase phase); /* for people */
const char *rank_phase_key(enum rank_phase phase);  /* for programs */

/* What there is too much of first. */
enum rank_limit {
	RANK_FAN_IN,    /* runs of all that can be merged at once; with more, all is moved again */
	RANK_INDEX,     /* memory for what is known of blocks */
	RANK_IMBALANCE, /* a block of each run, of a range: a percent of its bytes */
	RANK_OVERHEAD,  /* of what a rank receives, that is no item: 2 percent */
	RANK_MESSAGE_RATE, /* messages: as many as take the time that the bytes do */
	N_RANK_LIMITS
};

const char *rank_limit_key(enum rank_limit limit); /* for programs */

struct rank_limit_state {
	uint64_t value, limit; /* in what it counts */
	double ratio;          /* is / limit; above 1 it is passed */
};

/* All of one rank. */
struct cluster_estimate {
	uint32_t n_ranks;            /* 0: this is not filled in */
	uint64_t total_input_nbytes; /* of the input of all; who asks knows it */
	/* Bytes of the input, and of the output. */
	uint64_t read_nbytes, written_nbytes;
	uint64_t n_output_records;
	/* Stored: to the disk when runs are formed, then in memory; and by merges but the last. */
	uint64_t spilled_nbytes, spilled_to_memory_nbytes, merge_pass_nbytes;
	/* Received: items, blocks at cuts that two ranks read, the index, and to find splitters. */
	uint64_t items_nbytes, boundary_nbytes, index_nbytes, splitter_nbytes;
	uint64_t received_nbytes, disk_nbytes; /* sums */
	uint64_t n_runs, n_merged_runs;      /* own, and those of all, of which it merges a range */
	uint64_t n_messages, message_nbytes; /* for items */
	uint32_t splitter_rounds;
	bool in_memory_exchange; /* nothing is stored: memory goes to the ranks whose range it is */
	uint64_t max_imbalance_nbytes; /* a range is longer or shorter than others by so much at
					  most */
	uint64_t nbytes[N_RANK_PHASES][N_RANK_RESOURCES];
	struct rank_limit_state limits[N_RANK_LIMITS];
};

/* The request is one of several ranks, with a size that is known, and the plan is its plan. */
void cluster_estimate_make(const struct plan *plan, const struct plan_request *request,
			   const struct rank_rates *rates, struct cluster_estimate *ret_estimate);

/* Are there rates for everything? Else it takes longer. */
bool rank_rates_is_complete(const struct rank_rates *rates);

/* Seconds of a link in a phase, by these rates, and of the phase, as its slowest link. */
double rank_resource_s(const struct cluster_estimate *estimate, const struct rank_rates *rates,
		       enum rank_phase phase, enum rank_resource resource);
double rank_phase_s(const struct cluster_estimate *estimate, const struct rank_rates *rates,
		    enum rank_phase phase, enum rank_resource *ret_slowest);

/* Of the limits, the one that is nearest, or passed by the most. */
enum rank_limit rank_limiting_factor(const struct cluster_estimate *estimate);
