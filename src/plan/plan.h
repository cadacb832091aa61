/*
 * plan - how much of what, before anything starts
 *
 * A pure function of the size of the input, the memory limit, the device and the options.
 * Everything that is allocated later is allocated from these numbers, and --explain prints them.
 *
 *	memory (-S)
 *	+-----------------------------------------------+---------------+-----------+------+
 *	| chunk buffers: being read, sorted, resident   | sort scratch  | windows   | side |
 *	+-----------------------------------------------+---------------+-----------+------+
 *
 * If the whole input fits into chunk buffers, nothing is spilled: the final merge reads the chunks
 * where they are, and only its windows need memory. Else a quarter of the memory is set aside for
 * windows, and as soon as half of the chunk buffers hold sorted chunks, these are merged into one
 * spilled run while the other half fills. A run is therefore about three eighths of the memory
 * long. The chunks that fit at the end are never spilled.
 *
 * Records that stay where they are mapped (layout_is_indirect()) are part of the memory, since
 * what of a mapping has been looked at counts as the process's. They are only referred to if all
 * fits.
 *
 * On a device with memory of its own, chunks, scratch and windows are in that (--device-memory),
 * and of the host's memory (-S) an eighth goes to slots for reading, a quarter to windows on their
 * way out, and half is the first tier that runs are spilled to, before the disk.
 *
 * Of several such devices each has as many chunks as any other, and scratch and windows of its own.
 * A merge is done by one of them, or in ranges by all, each with as many; one to a run that is
 * spilled, too, with a range for each device. What of a run is in another device's memory goes
 * through the windows' input, as what is stored does.
 *
 * Such a device also packs what is spilled, if it is to be packed: then less goes over the link. A
 * window then has scratch that holds it packed.
 *
 * What stands at the side is what encodes and decodes: compressed inputs and outputs, and for each
 * thread that stores or fetches blocks a codec's context with its scratch; and the first keys and
 * places of the blocks of all runs. With less than some MiB of memory they would leave nothing for
 * data: then only a half is counted for the first, a sixteenth for the second, and an eighth for
 * the last.
 *
 * One of several ranks also stores what is left in chunks in the end, since others read it: in
 * memory, unless windows could then not merge the runs of all at once, or only in short blocks,
 * each of which is a message; then it goes to the disk, and the merge has all of the memory.
 *
 * Merging k spilled runs takes, for each window in flight, room for what is read (the window and up
 * to one block of each run that reaches beyond it) and for what is written. Blocks are made so
 * small that the expected number of runs can be merged at once with windows twice as long as that
 * overhang; when there are more runs than that (fan_in), some are merged to longer runs first.
 */
#pragma once

#include "io/spill/compression_policy.h"
#include "src/device/device.h"

#define PLAN_SIZE_UNKNOWN UINT64_MAX

/* What is said of an endless input is said of each GiB. */
#define PLAN_UNBOUNDED_UNIT_NBYTES (UINT64_C(1) << 30)

/* Writers of one file, at most, unless others are asked for: more are not faster. */
enum { PLAN_DEFAULT_MAX_PARTITIONS = 8 };

/* Of n_partitions > 0 and less, the most that n_files, or 0, are made of; or that are made of
 * these. */
uint32_t plan_round_to_files(uint32_t n_partitions, uint32_t n_files);

struct plan_request {
	const struct layout *layout;
	const struct device *device;
	uint64_t input_nbytes;     /* PLAN_SIZE_UNKNOWN: a pipe */
	uint32_t n_threads;        /* of the CPU */
	uint64_t memory_nbytes;    /* -S, or its default, but for */
	uint64_t exchange_nbytes;  /* what is set aside of it for an exchange of several ranks */
	uint64_t device_nbytes;    /* of the device, if it has its own */
	const char *device_name;   /* what they are called; NULL: as this is */
	uint32_t n_devices;        /* such as this, if they have their own; 0: one */
	uint32_t n_input_runs;     /* with -m, how many inputs; else 0 */
	uint32_t batch_size;       /* 0: no limit but memory */
	uint64_t min_block_nbytes; /* of blocks that are there already, or 0 */
	uint32_t n_partitions;     /* of the final merge; 0: as the plan likes */
	uint32_t n_part_files;     /* that the output is divided into; 0: it is one file */
	bool part_files_are_partitions; /* where they end is where the merge cuts */
	uint32_t n_ranks;       /* each with as long an input, whose runs are merged together,
					all stored for that; each merges a part of all; 0: one */
	bool sequential_input;  /* of a merge: best read from the beginning to the end */
	bool sequential_output; /* a pipe: one writer is all that can be used */
	bool needs_count_pass;  /* all runs become one before they are written: its length says
					how many records -u leaves */
	uint64_t stream_codec_nbytes; /* of the memory: what compressed inputs and outputs take */
	/* How what is spilled is stored; are_encoded_keys: see compression_open() */
	struct compression_params compression;
	bool stores_encoded_keys;
	bool keeps_checkpoint_index; /* also in the records of a checkpoint, which keeps runs */
	bool unique;
	uint64_t limit; /* of the records of a run; 0: none */
	/* Several ranks compress the output: what each has made is stored until all have theirs. */
	bool stores_frames;
	/*
	 * Of a pipe, what is to be said something about: an input of that size, or, if endless, so
	 * much in the middle of it. 0: nothing.
	 */
	uint64_t assumed_nbytes;
	bool assumes_unbounded;
};

struct plan {
	uint64_t exchange_nbytes; /* of the host's memory, set aside, */
	uint64_t memory_nbytes;   /* and all else, which is planned with */
	uint64_t codec_nbytes;    /* of that: for compressed inputs and outputs, and for codecs */
	uint64_t index_nbytes;    /* and for what is known of the blocks of all runs */
	uint64_t mapped_nbytes;   /* and for the input itself, if it is mapped; else 0 */
	/* Of each device; the rest of the memory if it has none itself. */
	uint64_t device_nbytes;
	uint32_t n_devices;
	uint32_t n_ranks; /* with each as much as here; 1: it is alone */
	/*
	 * What it is that sorts (device_info.unified), as far as it matters to others: data goes to
	 * memory of the device and comes back; or processors sort, which read and write, too.
	 */
	bool copies_to_device, sorts_on_cpu;
	uint64_t input_nbytes; /* or PLAN_SIZE_UNKNOWN */
	uint32_t record_nbytes, element_nbytes;
	uint64_t resident_nbytes; /* of a record in a run in device memory */
	uint64_t gathered_nbytes; /* of one that a window has beside its element; 0: it has none */
	char device[128];

	uint32_t n_readers, n_writers;
	uint32_t n_fetchers; /* of blocks, in a merge; with other ranks more than readers */
	uint32_t n_queues;   /* chunks sorted at the same time by each device */
	bool fits_in_memory; /* nothing need be spilled */

	uint32_t n_slots; /* pinned, to read into; 0 unless it copies, as the next two */
	uint64_t slot_nbytes;
	uint64_t host_spill_nbytes; /* of spilled runs, that may stay in host memory */
	bool packs_on_device;       /* the device packs and unpacks them */

	uint64_t chunk_records;
	uint64_t chunk_nbytes;        /* of the buffer of a chunk */
	uint64_t n_chunks;            /* buffers of all devices, of which not all need be used */
	uint64_t chunks_per_run;      /* sorted chunks that make one spilled run */
	uint64_t sort_scratch_nbytes; /* for each queue */
	uint64_t sort_output_nbytes;  /* the same: a chunk that sorted records go to; 0 for codes */

	uint32_t n_windows;     /* in flight */
	uint64_t window_nbytes; /* output of one window if memory allows */
	uint64_t merge_nbytes;  /* of each device, for windows while the chunks are there too */
	/*
	 * The same of what a rank merges in the end, its range of the runs of all: then no chunk is
	 * there any more, unless what was left is stored in memory (keep_last_run_in_memory).
	 * Else merge_nbytes.
	 */
	uint64_t final_merge_nbytes;
	bool keep_last_run_in_memory;
	uint64_t block_nbytes; /* of spilled runs, as in device memory */
	uint32_t fan_in;       /* spilled runs merged at once */
	uint32_t n_partitions; /* of the final merge at a time, if memory has room for their windows
				*/
	/*
	 * In which it will be made, as far as that can be known: of keys that begin alike, or when
	 * all are in few blocks, it is made in one.
	 */
	uint32_t n_expected_partitions;

	/* What is to be expected (plan_passes.h) of an input of expected_nbytes. */
	uint64_t expected_nbytes; /* the input's size, or what is assumed of a pipe, or 0 */
	bool is_unbounded;        /* and this is a part in the middle of it */
	uint64_t n_spilled_runs;
	uint32_t n_passes;       /* merges that a record goes through, the final one included */
	uint64_t spilled_nbytes; /* when runs are formed, ... */
	uint64_t spilled_to_memory_nbytes; /* and stored then, too, in memory: what ranks have left;
					      and ... */
	uint64_t merge_pass_nbytes;        /* ... by merges before the final one, n_merges, ... */
	uint64_t n_merges,
		merge_pass_input_nbytes; /* ... of so much; with a limit less comes out */
	uint64_t n_stored_records; /* of the input, that become stored runs as they are formed */
	uint64_t final_merge_stored_nbytes; /* what the final merge has of stored runs, or of inputs
					     */
	uint64_t count_pass_nbytes; /* of these, by the last, if records are counted before; or 0 */
	/* Stored at the same time, and the space for that; less if it shrinks, or with -u. */
	uint64_t temp_nbytes, max_temp_nbytes;

	/* Of the host's memory, all that is needed at once, where it does not shrink any more. */
	uint64_t total_nbytes;
	uint64_t required_index_nbytes; /* of it, for what is known of the blocks of all runs */
	bool is_sufficient;             /* that is within the memory and PLAN_OVERHEAD_NBYTES */
	uint64_t max_stored_blocks;     /* that the index of runs has room for */
};

/* The least memory a plan is made for; smaller limits are taken as this. */
enum { PLAN_MIN_MEMORY_NBYTES = 1 << 20 };

/* More than there are addresses; larger limits are taken as this. And more than can be sorted. */
#define PLAN_MAX_MEMORY_NBYTES (UINT64_C(1) << 56)
#define PLAN_MAX_DATA_NBYTES (UINT64_C(1) << 60)

/*
 * The process may take 32 MiB besides the memory. With little memory, what does not shrink with it
 * may have so much of them; the rest is for the program and its threads.
 */
enum { PLAN_OVERHEAD_NBYTES = 24 << 20 };

/* Threads that sort: more than one for each MiB would have too little of it; 2 are no matter. */
enum { PLAN_THREAD_NBYTES = 1 << 20 };
uint64_t plan_max_threads(uint64_t memory_nbytes);

/* Threads that read the input for each device, of those that there are. */
enum { PLAN_MAX_READERS = 8 };

/* Of each input of -m, what is turned into items at a time, where its records are none. */
enum { PLAN_INPUT_BATCH_NBYTES = 64 << 10 };

/*
 * What ranks have in memory they send each other as it lies, and store nothing, if all of it fits,
 * and they have no more runs than this: each has a slice in every window.
 */
enum { PLAN_MAX_ALL_TO_ALL_RUNS = 1 << 14 };

/* Of those that the output will be made in, how many side by side, at most. */
static inline uint32_t plan_concurrent_partitions(const struct plan *plan)
{
	return plan->n_partitions < plan->n_expected_partitions ? plan->n_partitions :
								  plan->n_expected_partitions;
}

/* Any request makes a plan; it can be carried out if it says is_sufficient. */
void plan_make(const struct plan_request *request, struct plan *ret_plan);

/* The windows of one merge. */
struct window_plan {
	uint32_t n_windows;
	uint64_t quota_records;    /* blocks are taken for a window until they hold so many */
	uint64_t capacity_records; /* what a window may come to: quota and one block of each run */
	uint64_t resident_stride;  /* records in a block of a resident run */
	uint64_t scratch_nbytes;
};

/*
 * Plan the windows of a merge of n_records in n_resident and n_stored runs, in at most `nbytes` of
 * a device's memory, or in the least that works if that is more.
 */
void plan_windows(const struct plan *plan, const struct plan_request *request, uint64_t nbytes,
		  uint64_t n_records, uint32_t n_resident, uint32_t n_stored,
		  struct window_plan *ret_windows);

/*
 * In how many ranges to merge the n_records that there have turned out to be, at most: of an input
 * of unknown size they may be fewer than planned, as each has to be worth its windows.
 */
uint32_t plan_max_partitions(const struct plan *plan, const struct plan_request *request,
			     uint64_t n_records);

/*
 * Is a merge of n_items better made in n ranges, of which the largest has so many? Else it is
 * better off with all of the memory and all of the threads.
 */
bool plan_worth_splitting(uint64_t n_items, uint64_t n_largest, uint32_t n);

/*
 * Of a merge like that, plan the ranges that it is divided into: the plan that each of them has,
 * with a part of the threads, one writer, and merge_nbytes for its windows. Returns how many there
 * are: no more than n_most, and as many as have room for windows like those of an undivided merge
 * of stored runs. If it is 1, the plan stays as it is.
 */
uint32_t plan_partitions(const struct plan *plan, const struct plan_request *request,
			 uint64_t nbytes, uint64_t n_records, uint32_t n_resident,
			 uint32_t n_stored, uint32_t max_partitions,
			 struct plan *ret_partition_plan);

/* What the windows take, all together; has_stored: if not all runs are resident. */
uint64_t plan_windows_nbytes(const struct plan *plan, const struct window_plan *windows,
			     bool has_stored);
