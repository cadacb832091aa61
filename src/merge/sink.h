/*
 * sink - where merged windows go, and what is told of them
 *
 * Spilling, an intermediate pass and the final merge differ only in the runs and in the sink. It
 * takes the windows of one merge, from several threads, each with its place.
 */
#pragma once

#include "src/base/stats.h"
#include "src/merge/forecast.h"
#include "src/record/record_totals.h"

/* A merged window on its way out. */
struct merged_window {
	uint64_t number;      /* 0, 1, ... in output order */
	uint64_t position;    /* of its first item in the output, in items */
	uint32_t partition;   /* that it is of; 0 if there is one */
	const void *items;    /* as the sink takes them; in host memory */
	uint64_t n_items;     /* > 0 */
	struct digest digest; /* of their bodies (layout.h); if the sink takes records */
	const encoded_key_t
		*first_keys; /* of each block of sink.block_n_items, if the sink wants them */
	const uint32_t *packed_nbytes; /* of each block, if the sink takes them packed */
};

struct merge_result {
	uint64_t n_items; /* written */
	uint64_t n_windows;
	uint64_t n_counted;   /* the sum of their counts (layout.h) */
	uint64_t n_disorders; /* neighbours out of order; of codes only if it takes records */
	/* Read from input runs (-m); written, if the sink takes records; dropped */
	struct record_totals totals;
};

/* What a merge has written first and last, if anything: layout_edge_nbytes() each; the caller's. */
struct merge_edges {
	void *first, *last;
	bool has_items;
};

/* Where merged windows go. */
struct sink {
	void *context;
	/* Records, checked; else what a stored run consists of: elements or items. */
	bool takes_records;
	bool takes_packed;      /* elements in blocks of block_n_items, packed (pack_op) */
	uint32_t block_n_items; /* 0: first_keys are not wanted */
	enum stage stage;       /* its name in the statistics */
	uint64_t item_nbytes;   /* of what it takes */
	/*
	 * If align_nbytes is not 0: items best lie in memory as they will in a file where the first
	 * of all is at `base`, modulo align_nbytes. Done where it is possible, and their place
	 * known in time: with -u it may not be.
	 */
	uint32_t align_nbytes;
	uint64_t base_offset;
	/* Or where in which of several files, not known with -u: in bytes. NULL: as above. */
	uint64_t (*map_position)(void *context, uint64_t position);
	/*
	 * Called by several threads, for each window once. 0 or a negative errno after a message.
	 */
	int (*write)(void *context, const struct merged_window *window);
	/*
	 * Before anything is written: there will be so many writers, each from a place of its own
	 * on. NULL: no matter.
	 */
	void (*set_n_partitions)(void *context, uint32_t n_partitions);
	/*
	 * If n_part_files is not 0, what is written is to be divided into so many parts, so that
	 * no key is in two of them, and `set_part_bounds` is told before anything is written
	 * where they begin: n_part_files + 1 numbers of items, the last of them all. With -u that
	 * is not known; there each part is a range (as below).
	 */
	uint32_t n_part_files;
	int (*set_part_bounds)(void *context, const uint64_t *bounds);
	/*
	 * In ranges also with -u, where their places are not known before: positions then count
	 * from the beginning of the range, which merged.range says.
	 */
	bool positions_per_partition;
	bool is_spilled_run; /* not the output: a range for each device is enough */
	/* The merge has failed: a write that waits must return. */
	void (*cancel)(void *context);
	struct merge_edges *edges; /* of what it writes; NULL: not wanted */
};
