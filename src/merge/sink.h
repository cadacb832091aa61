/*
 * sink.h - the sink that takes merged windows, and the result of a merge
 */
#pragma once

#include <string.h>

#include "src/base/stats.h"
#include "src/record/layout.h"

/* A merged window on its way to the sink. */
struct merged_window {
	uint64_t number;      /* in its partition: 0, 1, ... in output order */
	uint64_t position;    /* of its first item in the output, in items */
	uint32_t partition;   /* sink.partition */
	const void *items;    /* in host memory: records or items of a run (sink.takes_records) */
	uint64_t n_items;     /* > 0 */
	struct digest digest; /* of the items' bodies (layout.h), if the sink takes records */
	/* First key of each block of sink.block_n_items items, if that is not 0. */
	const encoded_key_t *first_keys;
	const uint32_t *packed_nbytes; /* of each block, if the sink takes packed blocks */
};

struct merge_result {
	uint64_t n_items; /* written */
	uint64_t n_windows;
	uint64_t n_counted;   /* sum of the items' counts (layout.h) */
	uint64_t n_disorders; /* neighbours out of order; of elements only if they are decoded */
	/* Read from input runs (-m); written, if the sink takes records; dropped by -u. */
	struct record_totals totals;
};

/* The edges of the first and the last item of a piece of output (layout_is_disorder()). */
struct merge_edges {
	void *first, *last; /* layout_edge_nbytes() each, allocated by the owner */
	bool has_items;     /* else the bytes are undefined */
};

/*
 * Append the edges of the next piece of output to those of all earlier pieces. Returns whether the
 * next piece is out of order: it begins below the last earlier item, or, if `strict`, equal to it.
 */
static inline bool merge_edges_append(const struct layout *layout, bool strict,
				      struct merge_edges *edges, const struct merge_edges *next)
{
	const size_t nbytes = layout_edge_nbytes(layout);
	bool is_disorder = false;

	if (!next->has_items)
		return false;
	if (edges->has_items)
		is_disorder = layout_is_disorder(layout, strict, edges->last, next->first);
	else
		memcpy(edges->first, next->first, nbytes);
	memcpy(edges->last, next->last, nbytes);
	edges->has_items = true;
	return is_disorder;
}

/* Where merged windows go. The functions are called with `context`. */
struct sink {
	void *context;
	bool takes_records;     /* output records, which are checked; else items of a stored run */
	bool takes_packed;      /* elements in packed blocks of block_n_items (pack_op) */
	uint32_t block_n_items; /* items of a block; 0: first_keys are not wanted */
	enum stage stage;       /* of the writes, in the statistics */
	uint64_t item_nbytes;   /* size of a record or item that the sink takes */
	bool is_spilled_run;    /* not the output: one partition per device is enough */
	/*
	 * If not 0: the items of a window begin in memory at the offset, modulo align_nbytes, that
	 * they will have in the file: base_offset + position * item_nbytes, or the result of
	 * map_position() if that is not NULL (several files; not with -u). With -u the positions
	 * are not known in time, and the alignment is a guess.
	 */
	uint32_t align_nbytes;
	uint64_t base_offset;
	uint64_t (*map_position)(void *context, uint64_t position);
	/*
	 * Write a window. Called once for each window, by several threads. Returns 0 or a negative
	 * errno (reported).
	 */
	int (*write)(void *context, const struct merged_window *window);
	/* Make writes that wait return, because the merge has failed. NULL: no write waits. */
	void (*cancel)(void *context);
	/*
	 * Called before the first write with the number of partitions, and the number of threads
	 * that write each of them. NULL: not wanted.
	 */
	void (*set_n_partitions)(void *context, uint32_t n_partitions, uint32_t n_writers);
	/*
	 * If not 0: the output is split into n_part_files, and no key is in two of them. Before the
	 * first write set_part_bounds() gets n_part_files + 1 positions: where each part file
	 * begins, and the end of the last. With -u these are not known; each part file is then a
	 * partition.
	 */
	uint32_t n_part_files;
	void (*set_part_bounds)(void *context, const uint64_t *bounds);
	/*
	 * Allow several partitions with -u, where the length of a partition is not known before it
	 * is merged. Positions then count from the beginning of the partition.
	 */
	bool positions_per_partition;

	/* Set by merge_in_partitions() in its copy of the sink for each partition; else 0. */
	uint32_t partition;
	uint64_t base_position; /* of the partition's first item */

	struct merge_edges *edges; /* set to the edges of the output; NULL: not wanted */
};
