/*
 * line_explain.h - what a sort of lines would do (--explain), without sorting
 *
 * The memory is divided as for the sort. The first lines of the input tell how much text fits in
 * it; that is, how many runs there will be.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "src/lines/line_sort.h"
#include "src/sort/sort.h"

/* Numbers of a sort; unknown ones are UINT64_MAX. */
struct line_plan {
	uint64_t input_nbytes;          /* of all lines */
	uint64_t memory_nbytes;         /* the limit */
	uint64_t chunk_nbytes;          /* of text */
	uint64_t n_runs_spilled;        /* 0: nothing is spilled */
	uint64_t fan_in, n_passes;      /* maximum runs of one merge; merge passes */
	struct disk_space temp_space;   /* at most, of all ranks on this host */
	struct disk_space output_space; /* at most */
	size_t n_inputs;
	unsigned n_ranks;      /* more than 1: chunks, runs and merge are those of each rank */
	uint32_t block_nbytes; /* of spilled runs */
	bool may_write_less;   /* than output_space: -u, --limit or --shard */
	char device[96]; /* "CPU, 2 threads", or that a GPU sorts and the plan is for the CPU */
};

/*
 * Make the plan; of several ranks, on one of them. Reads nothing from pipes. Returns 0 or a
 * negative errno after a message.
 */
int line_plan_make(const struct line_sort_params *params, struct line_plan *ret_plan);

void line_plan_print(const struct line_plan *plan, FILE *stream);

/* Returns 0, or -ENOMEM after a message. */
int line_plan_write_json(const struct line_plan *plan, FILE *stream);
