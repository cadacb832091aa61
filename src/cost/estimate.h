/*
 * estimate.h - what a planned sort moves over each link, and how long that takes
 *
 * An estimate is a list of phases, each with the links that it uses: an amount and a rate for each.
 * Links work concurrently, so a phase takes as long as its slowest link. If links share the CPUs,
 * it takes at least as long as all of them together, each with the CPUs that it occupies.
 *
 * In one process the links are the stages, and the rates are measured (calibrate.h). In a
 * distributed sort they are the resources of a rank, and the rates are given by the user or
 * assumed: the machines of the ranks need not exist yet.
 */
#pragma once

#include "src/plan/plan.h"

/* --- estimates --- */

struct link_estimate {
	const char *name;
	uint64_t amount;
	bool is_messages;    /* the amount; else bytes */
	double per_s;        /* 0: unknown */
	double cpu_fraction; /* of the CPUs that the link occupies while it runs alone */
	bool user_supplied;  /* the rate, by --assume-rates; else it was measured or assumed */
};

struct phase_estimate {
	enum phase phase;
	uint32_t n_links;
	struct link_estimate links[N_STAGES];
};

struct estimate {
	uint32_t n_phases;
	struct phase_estimate phases[N_PHASES];
};

/* Return the seconds that the link takes alone; 0 if its rate is unknown. */
double link_estimate_s(const struct link_estimate *link);

/* Return the seconds of a phase. ret_bottleneck: its slowest link, or NULL if none takes time. */
double phase_estimate_s(const struct phase_estimate *phase,
			const struct link_estimate **ret_bottleneck);

/* Return the seconds of all phases. If the estimate is not complete, the sort takes longer. */
double estimate_s(const struct estimate *estimate);

/* Return whether there is a rate for everything that is moved. */
bool estimate_is_complete(const struct estimate *estimate);

/* --- one process --- */

/* Bytes that each stage moves in each phase. */
struct stage_volumes {
	uint64_t nbytes[N_PHASES][N_STAGES];
};

/* Bytes per second of each stage when it runs alone, on all its threads; 0: not measured. */
struct stage_rates {
	double bytes_per_s[N_STAGES];
	uint32_t n_devices; /* the rates of device stages are sums over this many devices; 0: one */
};

/* Compute what the stages of a plan move. With -u this assumes that no two records are equal. */
void estimate_volumes(const struct plan *plan, const struct plan_request *request,
		      struct stage_volumes *ret_volumes);

/*
 * Return the bytes that a sort and a merge count for a record: those of the element if they handle
 * nothing else.
 */
uint64_t estimate_sorted_nbytes(const struct layout *layout);
uint64_t estimate_merged_nbytes(const struct layout *layout);

/* Make the estimate of a sort by one process. */
void estimate_make(const struct plan *plan, const struct stage_volumes *volumes,
		   const struct stage_rates *rates, struct estimate *ret_estimate);

/* --- a distributed sort --- */

/* What a rank's share of its machine can do in a second. */
enum rank_resource {
	RANK_DISK,       /* bytes read and written: inputs, temporary files, the output */
	RANK_NETWORK,    /* bytes received, while as many are sent */
	RANK_MESSAGES,   /* that ranks request and get */
	RANK_PROCESSORS, /* bytes sorted or merged; 0: ignored */
	N_RANK_RESOURCES
};

struct rank_rates {
	uint64_t per_s[N_RANK_RESOURCES];
	bool user_supplied[N_RANK_RESOURCES]; /* else assumed */
};

/* Return the name of a resource: "disk", "network", "messages", "processors". */
const char *rank_resource_name(enum rank_resource resource);

/* Replace rates that the user did not give (0) by assumptions. */
void rank_rates_set_defaults(struct rank_rates *rates);

/* What may be exceeded with more ranks. */
enum rank_limit {
	RANK_FAN_IN,    /* runs of all ranks that can be merged at once; more need another pass */
	RANK_INDEX,     /* memory for the index of blocks */
	RANK_IMBALANCE, /* a block of each run: one percent of a partition */
	RANK_OVERHEAD,  /* received bytes that are no items: 2 percent */
	RANK_MESSAGE_RATE, /* messages: as many as take the transfer time of the bytes */
	N_RANK_LIMITS
};

struct rank_limit_state {
	uint64_t value, limit;
	double ratio; /* value / limit; above 1 the limit is exceeded */
};

/*
 * What one rank moves, if nothing is compressed. All ranks do as much, to within a block of each
 * run.
 */
struct cluster_estimate {
	uint32_t n_ranks;                     /* 0: not a distributed sort */
	uint64_t total_input_nbytes;          /* of all ranks; set by the caller */
	uint64_t read_nbytes, written_nbytes; /* of the input; to the output */
	uint64_t n_output_records;
	/* Run generation stores to disk and to memory; merge passes store to disk. */
	uint64_t spilled_nbytes, spilled_to_memory_nbytes, merge_pass_nbytes;
	/* Received: items, boundary blocks that two ranks read, the index, splitter searches. */
	uint64_t items_nbytes, boundary_nbytes, index_nbytes, splitter_nbytes;
	uint64_t received_nbytes, disk_nbytes; /* sums */
	uint64_t n_runs, n_merged_runs;        /* its own; of all ranks */
	uint64_t n_messages, message_nbytes;   /* with items */
	uint32_t splitter_rounds;
	bool in_memory_exchange;       /* nothing is stored: runs in memory are exchanged */
	uint64_t max_imbalance_nbytes; /* the maximum difference between partitions */
	struct rank_limit_state limits[N_RANK_LIMITS];
};

/*
 * Make the estimate of one rank of a distributed sort. The request must have n_ranks and a known
 * size; the plan is the plan of the request. Every phase of *ret_estimate has a link for each
 * resource, in order.
 */
void cluster_estimate_make(const struct plan *plan, const struct plan_request *request,
			   const struct rank_rates *rates, struct estimate *ret_estimate,
			   struct cluster_estimate *ret_cluster);

/* Return the limit that is nearest, or exceeded by most. */
enum rank_limit rank_limiting_factor(const struct cluster_estimate *cluster);
