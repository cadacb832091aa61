/*
 * plan.h - how much memory, and how many threads, each part of a sort gets
 *
 * A plan is a pure function of the input's size, the memory limit, the device and the options. It
 * is made before anything starts; everything that is allocated later is allocated from its numbers,
 * and --explain prints them.
 *
 *	memory (-S)
 *	+-----------------------------------------------+---------------+-----------+----------+
 *	| chunk buffers: being read, sorted, resident   | sort scratch  | windows   | overhead |
 *	+-----------------------------------------------+---------------+-----------+----------+
 *
 * If the whole input fits into chunk buffers, nothing is spilled: the final merge reads the chunks
 * where they are, and only its windows need memory. Otherwise a quarter of the memory is reserved
 * for windows. As soon as half of the chunk buffers hold sorted chunks, these are merged into one
 * spilled run, while the other half is filled. So a run is about three eighths of the memory long.
 * The chunks that fit at the end are never spilled. Example: with -S 1G and an input of 10 GiB,
 * runs have about 384 MiB, and about 25 of them are spilled.
 *
 * Indirect layouts. Mapped records count as memory of the process once they have been read, so the
 * input is part of the memory, and the layout is used only if all of it fits.
 *
 * Devices with memory of their own. Chunks, scratch and windows are in device memory
 * (--device-memory). Of the host's memory (-S) an eighth is used for reading (slots), a quarter for
 * windows on their way out, and a half is the first tier for spilled runs, before the disk. Such a
 * device also packs what is spilled, if it is to be packed, because less then goes over the link;
 * the scratch of a window has room for that.
 *
 * Several devices. Each has the same number of chunks, and its own scratch and windows. A merge is
 * done by one of them, or by all of them in partitions. The merge into a spilled run has one
 * partition for each. What a device needs of a run in another device's memory goes through the
 * input buffers of windows, like stored runs.
 *
 * Overhead. Compressed inputs and outputs need memory, every thread that stores or fetches blocks
 * needs a codec context with scratch, and the first keys and positions of all blocks of all runs
 * are in memory. With a few MiB of memory these would leave nothing for data. So they are limited
 * to a half, a sixteenth and an eighth of the memory; what is beyond that is not counted.
 *
 * Ranks. Each rank of several also stores what is left in its chunks at the end, because the others
 * read it. These chunks are stored in memory, unless windows could then not merge the runs of all
 * ranks at once, or only in blocks that are too short to be messages. In that case they are stored
 * on disk, and the merge has all of the memory.
 *
 * Merging k stored runs takes, for each window in flight, room for what is read (the window, and
 * for each run one block that may reach beyond it) and for what is written. Blocks are so short
 * that the expected number of runs can be merged at once in windows twice as long as that overhang.
 * If there are more runs than that (fan_in), some are merged into longer ones first.
 *
 * An input of unknown size may turn out to be so long that the index of its blocks has no room.
 * Then blocks become longer while runs are generated (plan_lengthen_blocks()).
 */
#pragma once

#include "io/spill/compression_policy.h"
#include "src/device/device.h"

#define PLAN_SIZE_UNKNOWN UINT64_MAX

/* Figures of an endless input are given for a part of this size. */
#define PLAN_UNBOUNDED_UNIT_NBYTES (UINT64_C(1) << 30)

/* The default maximum of partitions of the final merge. More are not faster. */
enum { PLAN_DEFAULT_MAX_PARTITIONS = 8 };

/*
 * The maximum number of threads that write to one file with write(). A file has one lock for
 * write(), so more threads would wait for it. More threads write through mappings, and merges to
 * spilled runs write to several files.
 */
enum { PLAN_MAX_FILE_WRITERS = 2 };

/*
 * Round n_partitions > 0 down until the number of part files is a multiple of it, or it is a
 * multiple of that number. n_files may be 0.
 */
uint32_t plan_round_to_files(uint32_t n_partitions, uint32_t n_files);

struct plan_request {
	const struct layout *layout;
	const struct device *device;
	uint64_t input_nbytes; /* PLAN_SIZE_UNKNOWN: a pipe */
	uint32_t n_threads;    /* of the CPU */
	/*
	 * The memory limit (-S or its default) in two parts: what is planned with, and what is
	 * reserved for an exchange between ranks.
	 */
	uint64_t memory_nbytes, exchange_nbytes;
	uint64_t device_nbytes;         /* memory of the device, if it has its own */
	const char *device_name;        /* of all devices; NULL: that of `device` */
	uint32_t n_devices;             /* of this kind, if they have memory of their own; 0: one */
	uint32_t n_input_runs;          /* with -m the number of inputs; else 0 */
	uint32_t batch_size;            /* maximum fan-in; 0: only memory limits it */
	uint64_t min_block_nbytes;      /* of blocks that exist already, or 0 */
	uint32_t n_partitions;          /* of the final merge; 0: chosen by the plan */
	uint32_t n_part_files;          /* of the output; 0: it is a single file */
	bool part_files_are_partitions; /* the merge cuts where part files end */
	/* Each has an input of input_nbytes and merges a partition of the runs of all; 0: one. */
	uint32_t n_ranks;
	bool sequential_input;  /* of a merge: best read from front to back */
	bool can_sample_input;  /* parts of it can be read before the rest */
	bool sequential_output; /* a pipe: only one writer is useful */
	/* All runs are merged to one before the output, to count the records that -u leaves. */
	bool needs_count_pass;
	uint64_t stream_codec_nbytes; /* of the memory: for compressed inputs and outputs */
	/* How spilled runs are stored. stores_encoded_keys: see compression_open(). */
	struct compression_params compression;
	bool stores_encoded_keys;
	/* A checkpoint keeps the runs, and its records hold the index of blocks, too. */
	bool keeps_checkpoint_index;
	bool unique;
	uint64_t limit; /* maximum records of a run; 0: none */
	/* Several ranks compress the output: each stores its frames until all have theirs. */
	bool stores_frames;
	/*
	 * For an input of unknown size: the size to assume. With assumes_unbounded: plan for a part
	 * of this size in the middle of an endless input. 0: assume nothing.
	 */
	uint64_t assumed_nbytes;
	bool assumes_unbounded;
};

struct plan {
	/*
	 * The host memory that the plan uses: that of the request, raised to
	 * PLAN_MIN_MEMORY_NBYTES, or less of it if only a smaller plan is sufficient. Without
	 * exchange_nbytes.
	 */
	uint64_t memory_nbytes;
	uint64_t exchange_nbytes; /* reserved in addition, for an exchange between ranks */
	uint64_t codec_nbytes;  /* of memory_nbytes: compressed input and output, codec contexts */
	uint64_t index_nbytes;  /* of memory_nbytes: the index of all runs */
	uint64_t mapped_nbytes; /* of memory_nbytes: the input, if it is mapped */
	/* Memory of each device. If it has no memory of its own: the rest of memory_nbytes. */
	uint64_t device_nbytes;
	uint32_t n_devices;
	uint32_t n_ranks; /* each as planned here; 1: not distributed */
	/*
	 * The properties of the device (device_info.unified) that matter elsewhere: data is copied
	 * to its memory and back; or the CPU sorts, and the same processors read and write.
	 */
	bool copies_to_device, sorts_on_cpu;
	uint64_t input_nbytes; /* or PLAN_SIZE_UNKNOWN */
	uint32_t record_nbytes, element_nbytes;
	uint64_t resident_nbytes; /* of a record in a resident run */
	/* Size of the record that a window gathers for each element; 0: none. */
	uint64_t gathered_nbytes;
	char device[128];

	uint32_t n_readers, n_writers;
	/* Threads that fetch blocks for a merge: more than n_readers if ranks send them. */
	uint32_t n_fetchers;
	uint32_t n_queues;   /* of each device: chunks that it sorts at the same time */
	bool fits_in_memory; /* nothing has to be spilled */

	/* Pinned buffers to read into; 0, like the next two, unless it copies to the device. */
	uint32_t n_slots;
	uint64_t slot_nbytes;
	uint64_t host_spill_nbytes; /* of spilled runs, in host memory */
	bool packs_on_device;       /* the device packs and unpacks spilled blocks */

	uint64_t chunk_records;
	uint64_t chunk_nbytes;        /* of a chunk's buffer */
	uint64_t n_chunks;            /* buffers of all devices; not all need be used */
	uint64_t chunks_per_run;      /* sorted chunks that make one spilled run */
	uint64_t sort_scratch_nbytes; /* of each queue */
	/* Of each queue: a spare chunk to sort into; 0 if elements are sorted in place. */
	uint64_t sort_output_nbytes;
	/* Chunks are distributed among buckets, which windows sort; 0: chunks are sorted. */
	uint32_t n_buckets;
	uint64_t max_bucket_records; /* of all chunks, for which a window has room */

	uint32_t n_windows;     /* in flight */
	uint64_t window_nbytes; /* output of one window, if memory allows */
	uint64_t merge_nbytes;  /* of each device, for windows, while its chunks are allocated */
	/*
	 * Like merge_nbytes, for the final merge of a rank. If its last chunks are not stored in
	 * memory (keep_last_run_in_memory), they are freed before it. Otherwise equal to
	 * merge_nbytes.
	 */
	uint64_t final_merge_nbytes;
	bool keep_last_run_in_memory;
	uint64_t block_nbytes; /* of spilled runs, by their size in device memory */
	uint32_t fan_in;       /* stored runs that are merged at once */
	/* The final merge has so many at the same time, if memory has room for their windows. */
	uint32_t n_partitions;
	/*
	 * The number of partitions that the final merge is expected to have. (It turns out to be
	 * one if most keys begin alike, or all items are in few blocks.)
	 */
	uint32_t n_expected_partitions;

	/* Expectations (plan_passes.c) for an input of expected_nbytes */
	uint64_t expected_nbytes; /* input size, or the assumed one of a pipe, or 0 */
	bool is_unbounded;        /* this is a part in the middle of an endless input */
	uint64_t n_spilled_runs;
	uint32_t n_passes;       /* merges that a record goes through, the final one included */
	uint64_t spilled_nbytes; /* during run generation, to disk */
	/* Stored in memory at its end: the last chunks of a rank. */
	uint64_t spilled_to_memory_nbytes;
	uint64_t merge_pass_nbytes;       /* written by the n_merges merges */
	uint64_t n_merges;                /* before the final one */
	uint64_t merge_pass_input_nbytes; /* read by them; with a limit more than written */
	uint64_t n_stored_records; /* of the input, in runs that are stored during run generation */
	uint64_t final_merge_stored_nbytes; /* read by the final merge from stored runs or inputs */
	uint64_t count_pass_nbytes;         /* of these, written by a pass that only counts; or 0 */
	/*
	 * The most items that are stored at the same time, and the temporary space that they take.
	 * It is less if they are compressed, or with -u.
	 */
	uint64_t temp_nbytes, max_temp_nbytes;

	/* The minimum of host memory that the plan needs at the same time. */
	uint64_t total_nbytes;
	uint64_t required_index_nbytes; /* of total_nbytes: for the index of all runs */
	bool is_sufficient;             /* total_nbytes <= memory_nbytes + PLAN_OVERHEAD_NBYTES */
	uint64_t max_stored_blocks;     /* that the index has room for */
};

/* The minimum memory of a plan; lower limits are raised to this. */
enum { PLAN_MIN_MEMORY_NBYTES = 1 << 20 };

/*
 * The maximum memory, to which larger limits are reduced (no address space has more), and the
 * maximum data of a sort.
 */
#define PLAN_MAX_MEMORY_NBYTES (UINT64_C(1) << 56)
#define PLAN_MAX_DATA_NBYTES (UINT64_C(1) << 60)

/*
 * The process may use 32 MiB in addition to the memory limit. Parts of a plan that cannot shrink
 * may use this much of it; the rest is for the program and its threads.
 */
enum { PLAN_OVERHEAD_NBYTES = 24 << 20 };

/* Memory for each sorting thread; the minimum of two threads is allowed in any case. */
enum { PLAN_THREAD_NBYTES = 1 << 20 };
enum { PLAN_MIN_QUEUES = 2 };

/* Return the maximum number of sorting threads for a memory limit. */
static inline uint64_t plan_max_threads(uint64_t memory_nbytes)
{
	const uint64_t n = memory_nbytes / PLAN_THREAD_NBYTES;

	return n > PLAN_MIN_QUEUES ? n : PLAN_MIN_QUEUES;
}

/* The maximum number of threads that read the input, for each device. */
enum { PLAN_MAX_READERS = 8 };

/* The size of the records of an input of -m that are projected to items at a time. */
enum { PLAN_INPUT_BATCH_NBYTES = 64 << 10 };

/*
 * Ranks exchange runs in memory, and store nothing, if everything fits and there are at most this
 * many runs: each has a slice in every window.
 */
enum { PLAN_MAX_ALL_TO_ALL_RUNS = 1 << 14 };

enum {
	PLAN_INDEX_DIVISOR = 4,         /* of the memory: the maximum for the index of runs */
	PLAN_DEFAULT_INDEX_DIVISOR = 8, /* its usual maximum */
	PLAN_MIN_BLOCK_NBYTES = 4 << 10,
};

/* Return the maximum size of the index of all runs. */
static inline uint64_t plan_max_index_nbytes(const struct plan *plan)
{
	return plan->memory_nbytes / PLAN_INDEX_DIVISOR + PLAN_OVERHEAD_NBYTES / 2;
}

/* Return how many of the expected partitions are merged at the same time, at most. */
static inline uint32_t plan_concurrent_partitions(const struct plan *plan)
{
	return plan->n_partitions < plan->n_expected_partitions ? plan->n_partitions :
								  plan->n_expected_partitions;
}

/*
 * Lengthen the blocks of an input of unknown size, and lower the fan-in by the same factor. Then
 * the index has room for a longer input, and windows take as much memory as before. Returns false,
 * and changes nothing, if the fan-in is at its minimum or memory does not suffice.
 */
bool plan_lengthen_blocks(const struct plan_request *request, struct plan *plan);

/*
 * Check that the index of runs has room, with the longest blocks, for an input of unknown size that
 * takes at least nbytes in runs. Returns 0, or -E2BIG after a message with a sufficient -S.
 */
int plan_check_unknown_input(const struct plan_request *request, const struct plan *plan,
			     uint64_t nbytes);

/* Make a plan. Any request makes one; it can be carried out if it is_sufficient. */
void plan_make(const struct plan_request *request, struct plan *ret_plan);

/* The windows of a merge. */
struct window_plan {
	uint32_t n_windows;
	uint64_t quota_records; /* items in the blocks taken for a window, at most */
	/* The quota plus one block of each run: what a window has room for. */
	uint64_t capacity_records;
	uint64_t resident_stride; /* items in a block of a resident run */
	uint64_t scratch_nbytes;
};

/*
 * Plan the windows of a merge of n_records in n_resident and n_stored runs, in at most `nbytes` of
 * a device's memory; or in the minimum that works, if that is more.
 */
void plan_windows(const struct plan *plan, const struct plan_request *request, uint64_t nbytes,
		  uint64_t n_records, uint32_t n_resident, uint32_t n_stored,
		  struct window_plan *ret_windows);

/*
 * Return the maximum number of partitions for a merge of n_records. If the size of the input was
 * unknown, this may be less than planned, because each partition has to be worth its windows.
 */
uint32_t plan_max_partitions(const struct plan *plan, const struct plan_request *request,
			     uint64_t n_records);

/*
 * Return whether a merge of n_items is faster in n partitions, of which the largest has n_largest
 * items. Otherwise a single merge uses memory and threads better.
 */
bool plan_worth_splitting(uint64_t n_items, uint64_t n_largest, uint32_t n);

/*
 * Plan the partitions of a merge. The plan of each has a share of the threads, one writer, and
 * merge_nbytes for its windows. Returns their number: at most max_partitions, and as many as have
 * room for windows like those of a single merge of spilled runs. If it is 1, the plan is unchanged.
 */
uint32_t plan_partitions(const struct plan *plan, const struct plan_request *request,
			 uint64_t nbytes, uint64_t n_records, uint32_t n_resident,
			 uint32_t n_stored, uint32_t max_partitions,
			 struct plan *ret_partition_plan);

/* Return the memory of all windows. has_stored: not all runs are resident. */
uint64_t plan_windows_nbytes(const struct plan *plan, const struct window_plan *windows,
			     bool has_stored);
