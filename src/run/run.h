/*
 * run.h - a sorted sequence of items, wherever it lives, and lists of them
 *
 *	resident   a sorted chunk in device memory: elements, or items of records
 *	spilled    a run in temporary space (io/spill/run_file.h): items
 *	input      with -m, a file that is said to be sorted: records
 *
 * A merge treats all of these as lists of blocks, and knows the first key and the position of each
 * block. A resident run has no blocks of its own: one begins every `stride` items. Spilled runs and
 * inputs are read block by block, in order.
 */
#pragma once

#include "src/plan/job.h"
#include "src/plan/sort_spec.h"
#include "src/record/digest.h"

struct run;
struct run_file;

/* A point at which a run is cut. */
struct run_bound {
	const struct layout *layout;
	const void *key;   /* layout_key_nbytes() */
	bool after_equals; /* after the items that equal the key; else before them */
};

/*
 * A kind of run. Its functions implement those of the same name below, and merge_queues_sample();
 * only the files of runs know them. A kind is either in device memory, and slices of it are merged
 * in place, or it is read by blocks: `sample` or `read` is NULL.
 *
 * A subrun is of the same kind as its run: each knows where it begins in what it is a part of,
 * which for a whole run is at 0.
 */
struct run_ops {
	/* Free the run and its memory or space. Accepts a run that was not opened completely. */
	void (*close)(struct run *run);
	/* Free what close() keeps. NULL: it keeps nothing. */
	void (*remove)(struct run *run);
	int (*open_subrun)(const struct layout *layout, struct run *run, uint64_t begin,
			   uint64_t end, struct run **ret_subrun);
	uint64_t (*block_start)(const struct run *run, uint64_t i); /* i < n_blocks */
	encoded_key_t (*first_key)(const struct run *run, uint64_t i);

	/* In device memory; NULL for the others */
	int (*sample)(struct run *run, struct device_queue *queue, uint64_t stride);
	void (*discard_slice)(struct run *run, const struct slice *slice);

	/* Read by blocks; NULL for the others */
	int (*read)(struct run *run, uint64_t first, uint64_t n, void *items,
		    struct digest *ret_digest);
	int (*read_item)(struct run *run, uint64_t i, void *item);
	/*
	 * run_count_before() of a bound that lies in block i or at its end: reads the block. NULL:
	 * single items are read.
	 */
	int (*count_in_block)(struct run *run, uint64_t i, const struct run_bound *bound,
			      uint64_t *ret_n_before);
	/* NULL: nothing is freed early. */
	void (*discard_before)(struct run *run, uint64_t end);
	/* read() gives records of an input, among which keys may repeat even with -u. */
	bool is_raw_input;
};

/* The part of the input that a run was made of. */
struct run_origin {
	struct record_totals totals; /* records read, and those that the run no longer holds */
	uint64_t nbytes;             /* of its records, which follow those of the run before it */
	uint64_t max_record_nbytes;  /* no record is longer */
};

/* Add the origin of the next run. */
void run_origin_add(struct run_origin *total, const struct run_origin *addend);

/* The common part of all runs. The struct of each kind begins with it. */
struct run {
	const struct run_ops *ops;
	uint64_t n_items, n_blocks;
	struct run_origin origin; /* zero until it is set, and for runs that are inputs */
	/*
	 * How many merges, one after the other, have made the run; 0 until it is set. (The merge
	 * that spills sorted chunks does not count.)
	 */
	uint32_t level;

	/* Of a resident run: its elements or items, and which of the job's devices has them. */
	char *memory; /* NULL: another kind, which has to be read */
	uint32_t device_index;
	/*
	 * Of a resident run that is not sorted, but distributed among buckets: n_buckets + 1
	 * positions at which buckets begin. They count from the beginning of the whole run; a
	 * subrun begins at position part_begin of it. NULL: the run is sorted.
	 */
	const uint32_t *bucket_starts;
	uint32_t n_buckets;
	uint64_t part_begin;
};

/* Return where a bucket begins; n_buckets gives n_items. In a subrun, it may be empty. */
static inline uint64_t run_bucket_start(const struct run *run, uint32_t bucket)
{
	const uint64_t start = run->bucket_starts[bucket];

	if (start <= run->part_begin)
		return 0;
	return start - run->part_begin < run->n_items ? start - run->part_begin : run->n_items;
}

/* Blocks of `stride` items whose first keys are in memory. */
struct run_samples {
	uint64_t stride;
	encoded_key_t *first_keys; /* n_blocks of the run; for free() */
};

/*
 * For a kind: divide the run into blocks of `stride` items, instead of those that it had. Sets
 * run->n_blocks. Returns 0 or -ENOMEM (reported).
 */
int run_set_stride(struct run *run, uint64_t stride, struct run_samples *samples);

/* --- Opening and closing --- */

/* n elements or items in memory of a device. */
struct resident_buffer {
	uint32_t device_index; /* index among the devices of the job */
	void *memory;
	uint64_t n;
	const uint32_t *bucket_starts; /* n_buckets + 1; NULL: they are sorted */
	uint32_t n_buckets;
};

/*
 * Open a resident run; release(owner) is called when it is closed. Returns 0; or -ENOMEM
 * (reported), and the memory stays the caller's.
 */
int run_open_resident(const struct job *job, struct resident_buffer buffer,
		      void (*release)(void *owner), void *owner, struct run **ret_run);

/* What a spilled run holds. */
enum spilled_items {
	SPILLED_ITEMS,   /* of the layout (layout.stores_elements); with -u without duplicates */
	SPILLED_RECORDS, /* records of an input of -m as they came */
};

/* Open a spilled run. Takes over the file, which must be finished, also on failure. */
int run_open_spilled(struct run_file *file, enum spilled_items items, struct run **ret_run);

/*
 * Open the items [begin, end), at least one, of a file whose index holds them: positions are those
 * of the index, whose first block need not begin at 0. Takes over the file, also on failure.
 */
int run_open_spilled_part(const struct layout *layout, struct run_file *file, uint64_t begin,
			  uint64_t end, struct run **ret_run);

/* Close the run and free its memory or space, except for the space of a kept spill. */
void run_close(struct run *run);

/* Close the run and free its space in any case. */
void run_remove(struct run *run);

/*
 * Open the items [begin, end), at least one, as a run of its own that is merged independently of
 * the rest. Several threads may each use subruns that do not overlap. The run must outlive its
 * subruns and must not be read any more. Space that several subruns need is freed when the run is
 * closed. Returns 0 or a negative errno (reported).
 */
int run_open_subrun(const struct layout *layout, struct run *run, uint64_t begin, uint64_t end,
		    struct run **ret_subrun);

/* --- What it is --- */

static inline bool run_is_resident(const struct run *run)
{
	return run->ops->sample;
}

/* Return the file of a spilled run, which owns it; NULL of other runs and of subruns. */
struct run_file *run_spilled_file(const struct run *run);

/* Return whether the job's merge device can read the run in place. Other runs are copied to it. */
bool run_is_peer_accessible(const struct job *job, const struct run *run);

/* Return of n runs: the sum of their items; the number of resident, and of peer-accessible ones. */
uint64_t runs_n_items(struct run *const *runs, size_t n);
size_t runs_n_resident(struct run *const *runs, size_t n);
size_t runs_n_peer_accessible(const struct job *job, struct run *const *runs, size_t n);

/* Return whether run_read() returns records that have to be encoded, instead of elements. */
bool run_has_records(const struct run *run, const struct layout *layout);

/*
 * Return whether keys may repeat in the run although -u was given. (They do not in runs that gsort
 * made.)
 */
static inline bool run_may_have_duplicates(const struct run *run)
{
	return run->ops->is_raw_input;
}

/* --- Its blocks --- */

/* Return the first key of block i: its encoded key, or the first 16 bytes of a normalised key. */
encoded_key_t run_first_key(const struct run *run, uint64_t i);

/* Return the first item of block i; i == n_blocks gives n_items. */
uint64_t run_block_start(const struct run *run, uint64_t i);

/*
 * Count the blocks whose first keys are below `key`, or, with or_equal, not above it. The count
 * must be known to lie in [lo, hi].
 */
uint64_t run_n_blocks_before(const struct run *run, uint64_t lo, uint64_t hi, encoded_key_t key,
			     bool or_equal);

/*
 * Count the items of a run that is not resident that come before the bound. (Devices cut resident
 * runs.) Reads a block, or several if keys of more than 16 bytes tie on these. One thread at a
 * time, before anything else is read. Returns 0 or a negative errno (reported).
 */
int run_count_before(struct run *run, const struct run_bound *bound, uint64_t *ret_n_before);

/* --- Reading a run that is not resident --- */

/*
 * Read and verify the blocks [first, first + n). Their items are stored one after the other.
 * Records of an input are checked for order, projected to items, and added to *ret_digest, by one
 * thread at a time, in order. Several threads may read blocks of other runs, in any order. Returns
 * 0 or a negative errno (reported).
 */
int run_read(struct run *run, uint64_t first, uint64_t n, void *items, struct digest *ret_digest);

/*
 * Read item i, before or after run_read() reads its block; items of spilled runs only until they
 * are discarded. The calling thread must be that of run_read(). Returns 0 or a negative errno
 * (reported).
 */
int run_read_item(struct run *run, uint64_t i, void *item);

/* Make the whole key of an item that was read from the run: layout_key_nbytes(). */
void run_item_key(const struct run *run, const struct layout *layout, const void *item, void *key);

/*
 * Return whether blocks can be read as they are stored, for a device to unpack. Only spilled runs
 * have such blocks.
 */
bool run_can_read_packed(const struct run *run);

/*
 * Return the size of blocks as run_read_packed() reads them, if run_can_read_packed(). A block that
 * is only partly in a subrun is read as items.
 */
size_t run_packed_nbytes(const struct run *run, uint64_t first, uint64_t n);
int run_read_packed(struct run *run, uint64_t first, uint64_t n, void *packed);
/* Report that block i cannot be unpacked. Returns -EBADMSG. */
int run_fail_packed(const struct run *run, uint64_t i);

/* --- Freeing what is merged --- */

/* Free the space of the blocks before `end`, which are no longer needed. */
void run_discard_before(struct run *run, uint64_t end);

/*
 * Free the memory of a slice of a resident run early: the slice and all slices before it are
 * merged. A slice in other memory is ignored.
 */
void run_discard_slice(struct run *run, const struct slice *slice);

/*
 * --- lists of runs ---
 *
 * Runs are consecutive parts of the input, in its order, and merging neighbours gives a run that
 * takes their place. So the order of the list always says which of two equal records came first.
 * Owned by one thread.
 */

struct run_list {
	struct run **runs;
	size_t n, n_allocated;
};

/* Append a run. Takes it over, also on failure. Returns 0 or -ENOMEM (reported). */
int run_list_add(struct run_list *list, struct run *run);

/* Close the n runs from `first` on, and put `run` in their place; NULL: nothing. */
void run_list_replace(struct run_list *list, size_t first, size_t n, struct run *run);

/* Return the number of runs that are not resident: spilled runs and inputs. */
size_t run_list_n_spilled(const struct run_list *list);

/* Return the number of blocks of all runs that are not resident. Their index is in memory. */
uint64_t run_list_n_stored_blocks(const struct run_list *list);

/* Close all runs. */
void run_list_free(struct run_list *list);

/*
 * --- a queue for each device that holds resident runs of a merge ---
 *
 *	device 0	[ run 0 ][ run 2 ]	merges: reads these where they are
 *	device 1	[ run 1 ][ run 3 ]	its own queue samples, cuts and reads these
 *
 * The queues of a device work on the memory of that device. If peer access was found to work
 * (sort_device.peer_access_mask), another device merges from that memory as if it were its own.
 * Otherwise the data is copied through host memory.
 *
 * Used by one thread.
 */

struct merge_queue {
	struct device_queue *queue; /* NULL: the device holds no run and does not merge */
	struct device_event *event;
};

struct merge_queues {
	struct merge_queue *by_device; /* job.n_devices */
	uint32_t n;
};

/*
 * Open queues of the merging device and of the devices that hold runs. *ret_queues must be zeroed
 * before. Returns 0 or a negative errno (reported); call merge_queues_close() in both cases.
 */
int merge_queues_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
		      struct merge_queues *ret_queues);

/* Wait for queued operations, and close the queues. */
void merge_queues_close(struct merge_queues *queues);

/* Return the queue of the device that holds a resident run. */
struct device_queue *merge_queues_get(const struct merge_queues *queues, const struct run *run);

/*
 * Divide a resident run into blocks of `stride` items. Queues the operation that fetches their
 * first keys; these are valid after the next event of the queue of its device. Other runs have
 * blocks already. Returns 0 or a negative errno (reported).
 */
int merge_queues_sample(const struct merge_queues *queues, struct run *run, uint64_t stride);

/* Wait for all operations on the queues. Returns 0 or a negative errno (reported). */
int merge_queues_wait(const struct merge_queues *queues);

/* --- the inputs of -m as runs (input_runs.c) --- */

struct input_runs {
	uint64_t n_records; /* of the inputs opened so far: the position of the next record */
	size_t n;
	struct input *inputs[]; /* n, opened here, in the order of the spec */
};

/*
 * Append a run for each input of the spec that is not empty. Records that had to be read are added
 * to *ret_read. *ret_inputs, set in any case, owns what the runs read from: close it after them.
 * Returns 0 or a negative errno (reported).
 */
int input_runs_open(const struct job *job, const struct sort_spec *spec, struct run_list *runs,
		    struct digest *ret_read, struct input_runs **ret_inputs);

void input_runs_close(struct input_runs *inputs);

/* Count the inputs that were pipes, and are spilled runs now. NULL: 0. */
size_t input_runs_n_spilled(const struct input_runs *inputs);
