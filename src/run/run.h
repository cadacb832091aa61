/*
 * run - a sorted sequence of items, wherever it lives
 *
 *	resident   a sorted chunk in device memory: elements, or items of records
 *	stored     a run in the temporary space (io/spill/run_file.h): items
 *	input      with -m, a file that is said to be sorted: records
 *
 * To a merge all are lists of blocks, of each of which it knows the first key and the place. Blocks
 * of a resident run are a view: every so many elements. The others are read by blocks, one after
 * the other. What differs between them is in a table of functions for each kind (run_ops.h).
 */
#pragma once

#include "src/plan/job.h"
#include "src/record/record_totals.h"

struct run;

/* Where a resident run lives: n elements or items in memory of a worker's device. */
struct resident_buffer {
	uint32_t device_index; /* of the job */
	void *memory;
	uint64_t n;
};

/*
 * A run that lives there; release(owner) is called when it is closed. -ENOMEM after a message; the
 * memory then stays the caller's.
 */
int run_open_resident(const struct job *job, struct resident_buffer buffer,
		      void (*release)(void *owner), void *owner, struct run **ret_run);

struct run_file;

/* What a stored run consists of. */
enum stored_items {
	STORED_ITEMS, /* what the layout says (layout.stores_elements), without duplicates if -u */
	STORED_RECORDS, /* records of an input as they came */
};

/* A stored run; the file must be finished and is owned from then on, also on failure. */
int run_open_stored(struct run_file *file, enum stored_items items, struct run **ret_run);

/*
 * A regular file of `input` as a run, in blocks like those of stored runs; reads the first key of
 * each. position: of its first record among all that are sorted. The input must outlive the run.
 * Returns 0 or a negative errno after a message.
 */
int run_open_input(const struct job *job, struct input *input, struct input_extent extent,
		   uint64_t position, struct run **ret_run);

/*
 * Print that an input of -m is not sorted: its record number `item`, from 0, sorts before the last
 * one. -EINVAL.
 */
int run_fail_unsorted(const char *path, uint64_t item);

/* Gives its memory or space back, but the space of a kept spill. NULL is fine. */
void run_close(struct run *run);

/* Gives the space back in any case. */
void run_remove(struct run *run);

/*
 * How many merges of runs, one after the other, have made it: 0 until it is set. (The merge of
 * sorted chunks that are spilled together is none: the run has only been formed.)
 */
void run_set_level(struct run *run, uint32_t level);
uint32_t run_level(const struct run *run);

/*
 * What part of the input a run was made of (read), and what it does not hold of that any more
 * (dropped). Parts of neighbouring runs are neighbours. Zero until it is set; only of runs that are
 * made of the input.
 */
void run_set_origin(struct run *run, struct record_totals origin);
struct record_totals run_origin(const struct run *run);

bool run_is_resident(const struct run *run);
/* The file of a stored run, owned by it; NULL of others. */
struct run_file *run_stored_file(const struct run *run);
uint64_t run_n_items(const struct run *run);
uint64_t run_n_blocks(const struct run *run);

/* Of n runs: all their items, and how many are resident. */
uint64_t runs_n_items(struct run *const *runs, size_t n);
size_t runs_n_resident(struct run *const *runs, size_t n);
/* And those that run_is_peer_accessible(). */
size_t runs_n_peer_accessible(const struct job *job, struct run *const *runs, size_t n);

/* The elements or items of a resident run; NULL of others, which have to be read. */
const void *run_memory(const struct run *run);

/* Of a resident run: the worker in whose memory it is. */
uint32_t run_device_index(const struct run *run);

/* Is it merged from where it is, by the job's worker? Else it is read, or fetched. */
bool run_is_peer_accessible(const struct job *job, const struct run *run);

/*
 * Cut a resident run into blocks of `stride` records: queues the operation that fetches their
 * first keys; valid after the next mark of `queue`, which is of its worker's device. -ENOMEM
 * after a message. Others have blocks.
 */
int run_sample(struct run *run, struct device_queue *queue, uint64_t stride);

/* First key of block i < n_blocks: its code, or the first 16 bytes of its normalised key. */
encoded_key_t run_first_key(const struct run *run, uint64_t i);
/*
 * If the cut between blocks that begin below `key` (or_equal: not above it) and the others is in
 * [lo, hi]: how many begin so.
 */
uint64_t run_n_blocks_before(const struct run *run, uint64_t lo, uint64_t hi, encoded_key_t key,
			     bool or_equal);
/* The last block whose first key is below `key`, or 0: what comes before it is below `key`. */
uint64_t run_seek(const struct run *run, encoded_key_t key);
/* Where block i starts, in items; i == n_blocks gives n_items. */
uint64_t run_block_start(const struct run *run, uint64_t i);

/*
 * Read the blocks [first, first + n) of a run that is not resident into `items`, one after the
 * other, verified. Records of an input are checked to be in order, become items, and are added to
 * *ret_digest. One thread at a time, in order. Returns 0 or a negative errno after a message.
 */
int run_read(struct run *run, uint64_t first, uint64_t n, void *items, struct digest *ret_digest);

/*
 * The first item of block i of such a run, which is about to be read, or may be; of items of
 * records only. The same thread as run_read(). Returns 0 or a negative errno after a message.
 */
int run_read_first_item(struct run *run, uint64_t i, void *item);

/* Item i, in the same way; of inputs at any time. */
int run_read_item(struct run *run, uint64_t i, void *item);

/* The whole key of an item that was read of the run: layout_key_nbytes(). */
void run_item_key(const struct run *run, const struct layout *layout, const void *item, void *key);

/* Where a run is to be cut. */
struct run_bound {
	const struct layout *layout;
	const void *key;   /* whole (layout_key_nbytes()) */
	bool after_equals; /* else in front of them */
};

/*
 * How many items of a run that is not resident come before the place: a block is read for that, or
 * more of them where keys of more than 16 bytes tie on these. One thread at a time; before anything
 * else is read. Returns 0 or a negative errno after a message. (Resident runs are cut by the
 * device.)
 */
int run_count_before(struct run *run, const struct run_bound *bound, uint64_t *ret_n_before);

/*
 * The items [begin, end), at least one, as a run of their own, to be merged without the others and
 * beside them: parts of one run that do not overlap may be used by one thread each. The run must
 * outlive its parts, and is not to be read itself any more. What its parts cannot give back of it,
 * since others need it too, is given back when it is closed. Returns 0 or a negative errno after a
 * message.
 */
int run_open_subrun(const struct layout *layout, struct run *run, uint64_t begin, uint64_t end,
		    struct run **ret_subrun);

/* Can blocks be had as they are stored, for a device to unpack? */
bool run_is_packed(const struct run *run);
/*
 * If so: what blocks take, and to read them as run_file_read_packed() says; of one that a part has
 * a part of, its items.
 */
size_t run_packed_nbytes(const struct run *run, uint64_t first, uint64_t n);
int run_read_packed(struct run *run, uint64_t first, uint64_t n, void *packed);
/* Print that block i cannot be unpacked. -EBADMSG. */
int run_fail_packed(const struct run *run, uint64_t i);

/* Are the items that run_read() gives records, and not elements? */
bool run_has_records(const struct run *run, const struct layout *layout);

/*
 * May equal keys follow each other, though -u was asked for? (The runs that gsort makes are free of
 * them.)
 */
bool run_may_have_duplicates(const struct run *run);

/* The blocks before `end` are not needed any more: give their space back. */
void run_discard_before(struct run *run, uint64_t end);

/*
 * A resident run's slice is merged, and so are all before it: their memory may go back before the
 * run is closed. Other runs' slices are somebody else's memory: nothing happens.
 */
void run_discard_slice(struct run *run, const struct slice *slice);
