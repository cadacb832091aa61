/*
 * run_ops - what a kind of run can do: a table of functions for each
 *
 * For the kinds only (run_resident.c, run_stored.c, run_input.c); everybody else calls run.h. A
 * kind's own struct begins with a struct run, and its file is the only one that knows more of it.
 *
 * There are runs in device memory, of which slices are merged from where they lie, and runs that
 * are read, block by block, into memory of the merge. A kind is one or the other: `memory` says
 * which.
 *
 * A part of a run (run_open_subrun()) is of the kind of the run: each knows where it begins in what
 * it is a part of, which for a whole run is at 0.
 */
#pragma once

#include "src/run/run.h"

struct run_ops {
	/* Frees it, and gives its memory or space back; half opened, too. */
	void (*close)(struct run *run);
	/* Give back what close() would leave. NULL: it leaves nothing. */
	void (*remove)(struct run *run);

	/* As run_open_subrun(). */
	int (*open_subrun)(const struct layout *layout, struct run *run, uint64_t begin,
			   uint64_t end, struct run **ret_subrun);

	/* As run_block_start(), i < n_blocks, and run_first_key(). */
	uint64_t (*block_start)(const struct run *run, uint64_t i);
	encoded_key_t (*first_key)(const struct run *run, uint64_t i);

	/*
	 * In device memory: as run_memory(), run_device_index(), run_sample(),
	 * run_discard_slice(). Else NULL, all.
	 */
	const void *(*memory)(const struct run *run);
	uint32_t (*device_index)(const struct run *run);
	int (*sample)(struct run *run, struct device_queue *queue, uint64_t stride);
	void (*discard_slice)(struct run *run, const struct slice *slice);

	/* Read by blocks: as run_read(), run_read_item(). Else NULL. */
	int (*read)(struct run *run, uint64_t first, uint64_t n, void *items,
		    struct digest *ret_digest);
	int (*read_item)(struct run *run, uint64_t i, void *item);
	/*
	 * As run_count_before(), if the cut is in block i or at its end. The block may be read
	 * for that.
	 */
	int (*count_in_block)(struct run *run, uint64_t i, const struct run_bound *bound,
			      uint64_t *ret_n_before);
	/* As run_is_packed(), and what may be called if it is; NULL: it never is. */
	bool (*is_packed)(const struct run *run);
	uint32_t (*packed_nbytes)(const struct run *run, uint64_t i);
	int (*read_packed)(struct run *run, uint64_t first, uint64_t n, void *packed);
	int (*fail_packed)(const struct run *run, uint64_t i);
	/*
	 * As run_discard_before(), run_stored_file(); NULL: nothing goes back, there is no file.
	 */
	void (*discard_before)(struct run *run, uint64_t end);
	struct run_file *(*file)(const struct run *run);
	/* What is read is records of an input, in which equal ones may follow each other. */
	bool is_raw_input;
};

struct run {
	const struct run_ops *ops;
	uint64_t n_items, n_blocks;
	struct record_totals origin;
	uint32_t level;
};

/* Blocks of `stride` items, of which the first keys are here. */
struct run_samples {
	uint64_t stride;
	encoded_key_t *first_keys; /* n_blocks of the run; malloc() */
};

/*
 * Cut the run into such blocks, or others than before; sets run->n_blocks. -ENOMEM after a message.
 */
int run_set_stride(struct run *run, uint64_t stride, struct run_samples *samples);
