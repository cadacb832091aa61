/*
 * manifest_records - what the records of a checkpoint's manifest say
 *
 *	HEADER	what is being sorted, and the name of the output under construction
 *	OUTPUT	which file that is
 *	RUN	a spilled run: what part of the input it holds, and the index of its blocks;
 *		it takes the place of runs that were merged into it
 *	RANGES	where the ranges of the final merge begin, as long as nothing of it is written
 *	POINT	where a range of it can be taken up (sink.h), and the checksums of what has been
 *		written of it since the point before
 *	DONE	the output is complete, and about to be given its name
 *	DAMAGED	a block of a run was not what was written when it was read
 *
 * Each is written when what it speaks of is on stable storage. Read one after the other they give
 * the state. Numbers are the machine's own: a checkpoint does not travel.
 */
#pragma once

#include "io/spill/run_format.h"
#include "src/checkpoint/manifest.h"
#include "src/merge/merge.h"

enum checkpoint_record {
	RECORD_HEADER = 1,
	RECORD_OUTPUT,
	RECORD_RUN,
	RECORD_RESTORE_POINT,
	RECORD_DONE,
	RECORD_DAMAGED,
	RECORD_PARTITIONS
};

struct saved_header {
	/*
	 * Hidden, beside the output. Where nothing of that is kept there is no such file, but the
	 * digits are in the names of what is unfinished (orphans.h).
	 */
	char output_name[FILE_UNIQUE_NAME_SIZE];
};

struct saved_output {
	uint64_t device, inode;
};

struct saved_run {
	uint64_t first, n_replaced; /* its place among the runs, and how many it replaces there */
	struct record_totals origin;
	uint64_t n_items, item_nbytes;
	uint64_t n_blocks; /* which follow */
};

/* A part of the output, in bytes from where the records begin. */
struct output_extent {
	uint64_t offset, nbytes;
	uint64_t checksum; /* checksum64() */
};

/* What follows: where each begins, as the parts do, and then as many keys; the first has none. */
struct saved_partitions {
	uint64_t n_partitions, key_nbytes;
};

struct saved_restore_point {
	struct merge_result result;
	uint64_t partition;
	uint64_t key_nbytes, edge_nbytes;
	uint64_t n_extents; /* which follow, and then the key and the two edges */
};

struct saved_done {
	uint64_t offset;                          /* where records begin in the output */
	uint64_t output_nbytes;                   /* its size, ... */
	int64_t modified_seconds, modified_nanos; /* and the time of its last modification */
	uint64_t framing_checksum;                /* written_extents_framing_checksum() */
	uint64_t n_extents;                       /* which follow, of one range after the other */
};

struct saved_damage {
	uint64_t offset; /* of the block in the file of the runs */
};

/* A run of the state. */
struct checkpoint_run {
	struct saved_run run;
	struct run_block *blocks;
};

/* A range of the final merge. */
struct checkpoint_partition {
	uint64_t begin; /* in the output */
	void *key;      /* that it begins in front of; NULL: it is the first */
	bool has_restore_point;
	struct restore_point restore_point;
	struct output_extent *extents; /* n_extents, without a gap from `begin` on */
	size_t n_extents, n_extents_at_point;
};

struct checkpoint_state {
	struct saved_header header;
	char *fingerprint; /* fingerprint.h; NULL: there is no checkpoint yet */
	size_t fingerprint_nbytes;
	struct saved_output output;
	struct checkpoint_run *runs; /* n_runs, in the order of the input */
	size_t n_runs;
	struct checkpoint_partition *partitions; /* n_partitions; 0: they are not known yet */
	size_t n_partitions;
	size_t key_nbytes, edge_nbytes; /* of their points */
	bool is_done;
	struct saved_done done;
	bool is_damaged; /* a block of a run, or it was not read as it is */
	struct saved_damage damage;
};

/*
 * A manifest_visitor: take the record into the struct checkpoint_state. -EBADMSG without a message
 * if it cannot be right, or -ENOMEM after one.
 */
int checkpoint_state_visit(void *state, const struct manifest_record *record);

/* The output was complete, but did not get its name: its last part is to be written again. */
void checkpoint_state_clear_done(struct checkpoint_state *state);

/* Forget the runs: their indexes take memory. */
void checkpoint_state_free_runs(struct checkpoint_state *state);

/* A zeroed state is fine. */
void checkpoint_state_free(struct checkpoint_state *state);

/* A part of a payload. */
struct payload_slice {
	const void *bytes;
	size_t nbytes;
};

/* The n parts one after the other, for free(); NULL after a message. */
void *payload_join(const struct payload_slice *slices, size_t n, size_t *ret_nbytes);

/* Append a record that consists of n parts. 0, or a negative errno after a message. */
int checkpoint_append_record(struct manifest *manifest, enum checkpoint_record type,
			     const struct payload_slice *slices, size_t n);

/* Where n parts end that begin at `begin` and have no gap. */
uint64_t output_extents_end(uint64_t begin, const struct output_extent *extents, size_t n);

/* Has any of the final merge been finished? */
bool checkpoint_state_has_progress(const struct checkpoint_state *state);

/* Bytes of the output that all parts describe, and where the last of them ends. */
uint64_t checkpoint_state_written_nbytes(const struct checkpoint_state *state);
uint64_t checkpoint_state_written_end(const struct checkpoint_state *state);
