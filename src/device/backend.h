/*
 * backend.h - the interface of the back ends that sort chunks and merge runs
 *
 * A back end is a table of functions. Code above this interface does not know which one runs.
 * backend_cpu.c is complete and is the reference: threads and plain memory. backend_cuda.c does the
 * same on a GPU, bit for bit.
 *
 * Work is asynchronous. A queue runs its operations in order, and different queues run concurrently
 * (CUDA: a stream; CPU: operations of a queue run one after the other on threads of a pool). An
 * event is a point in a queue, for which the host or another queue can wait (CUDA: an event).
 *
 * Functions only queue operations. They return 0, or a negative errno for an error that is known at
 * once. device_event_wait() returns the first later error of the operations before the event.
 * Errors are reported, except where the comment of a function says otherwise.
 *
 * The argument struct of an operation is copied when it is queued. The arrays and results that the
 * struct points to must stay valid until an event recorded after the operation is reached, unless
 * the comment says otherwise.
 *
 * The operations are: sort a chunk, merge a window, cut slices, sample a run. They work on items:
 * the items of records, or elements in layouts whose elements hold the whole key (key-only,
 * indirect). encode makes elements of records before the sort, and decode makes records of elements
 * after the merge. In indirect layouts an element has the number of a record, and decode copies the
 * records. Internally a back end sorts and merges elements of any format; the job sees items
 * (layout.h), in order.
 *
 * Elements are sorted and merged in "device memory". If the device is unified
 * (device_info.unified), host pointers and device pointers are the same: callers then read input
 * directly into device memory, write output directly from it, and do not call copy().
 */
#pragma once

#include "src/base/stats.h"
#include "src/record/key_batch.h"

/* Handles of open devices, queues and events (device.h). */
struct device;
struct device_queue;
struct device_event;

/*
 * Which of the ready operations run first.
 *
 * Merges run before sorts: merging sorted chunks and writing the run frees memory for more input.
 * If sorts ran first, the disk that runs are spilled to would be idle while the chunks of the next
 * run are sorted.
 */
enum queue_priority {
	QUEUE_PRIORITY_LOW, /* sorting chunks */
	QUEUE_PRIORITY_NORMAL,
	QUEUE_PRIORITY_HIGH, /* short operations that another thread waits for */
	N_QUEUE_PRIORITIES,
};

enum memory_kind {
	MEMORY_DEVICE,
	MEMORY_HOST, /* pinned for fast copies; the same as DEVICE if unified */
};

struct backend_config {
	unsigned n_threads;            /* maximum number of CPU threads, at least 1 */
	uint64_t device_memory_nbytes; /* limit for each device; 0: 90 % of the free memory */
	unsigned number;               /* number of the device, from 0 */
	unsigned n_sharers;            /* how many times this process opens it; 0: once */
	unsigned n_other_sharers;      /* how many times other processes open it */
	unsigned stats_device;         /* number in statistics, from 1; 0: the only device */
	struct stats *stats;           /* receives the times of operations; may be NULL */
	/*
	 * Once requested, the CPU skips operations, and event_wait() returns -ECANCELED (reported).
	 * NULL: never.
	 */
	const struct cancellation *cancellation;
};

struct device_info {
	char name[128]; /* for people: "CPU, 2 threads", "NVIDIA H200" */
	bool unified;
	uint64_t memory_nbytes;    /* usable device memory; 0: limited by the host limit only */
	int numa_node;             /* nearest NUMA node of the host (src/base/thread.h) */
	unsigned n_queues;         /* number of queues that keep the device busy */
	uint64_t chunk_nbytes;     /* best size of a chunk's elements, in bytes */
	uint64_t window_nbytes;    /* best size of a merge's output, in bytes */
	unsigned in_memory_factor; /* factor for both if everything fits in memory; 0: 1 */
};

/* A sorted range of elements in device memory. */
struct slice {
	const void *elements;
	uint64_t n;
};

/* Return the number of elements of all k slices. */
static inline uint64_t slices_n(const struct slice *slices, uint32_t k)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < k; i++)
		n += slices[i].n;
	return n;
}

/* Encode records as elements. In indirect layouts the two arrays do not overlap. */
struct encode_op {
	const struct layout *layout; /* must outlive the operation */
	uint64_t first_number;       /* indirect: number of the first record */
	/*
	 * n records of record_nbytes, and room for n elements. Records as wide as elements are
	 * aligned like them; others may have any alignment. The two may be the same memory, or
	 * overlap if the records end where the elements end (they are then expanded in place).
	 */
	const void *records;
	void *elements;
	uint64_t n;
	struct digest *ret_digest; /* host; added to; may be NULL */
};

/* The maximum number of memory ranges that hold the records of an indirect layout. */
enum { BACKEND_MAX_SOURCES = 16 };

/* Decode elements to records, in place if records == elements, except in indirect layouts. */
struct decode_op {
	const struct layout *layout;
	/* indirect: the records, numbered from 0; n_sources, host array */
	const struct slice *sources;
	uint32_t n_sources;
	const void *elements;
	void *records;
	uint64_t n;
	bool strict;               /* count equal neighbours as disorder, too (-u) */
	struct decode_result *ret; /* host; assigned */
};

/* What a sort or merge reports about items. */
struct sort_op_result {
	uint64_t n;            /* items kept */
	uint64_t n_counted;    /* sum of the counts of the items kept */
	uint64_t n_disorders;  /* neighbours out of order, by their keys */
	struct digest digest;  /* digest of the bodies of the items kept */
	struct digest dropped; /* of the items dropped by -u or the limit */
};

/*
 * Sort n records in input order into a run of items. The sort is stable. With `unique`, only one of
 * equal items is kept, with the sum of the counts: the first, or the last if layout->keep_last.
 *
 * Elements (layout_has_elements()) are encoded first and sorted in place. They are never limited,
 * and only n and dropped of *ret are set: decode reports the rest.
 */
struct sort_op {
	const struct layout *layout; /* must outlive the operation */
	const void *records;         /* n of record_nbytes; any alignment; may be overwritten */
	void *items;                 /* n of resident_nbytes; does not overlap the other arrays */
	uint64_t n;                  /* < 2^32 */
	uint64_t position;           /* of the first record in the input, in records */
	bool unique;
	uint64_t limit;                  /* keep at most this many items, the first ones */
	void *scratch;                   /* sort_scratch_nbytes(layout, n) */
	struct digest *ret_input_digest; /* host; assigned: of the bodies of all n records */
	struct sort_op_result *ret;      /* host; assigned */
};

/* The maximum number of buckets. */
enum { BACKEND_MAX_BUCKETS = 4096 };

/* Ranges of encoded keys: bucket i has the keys from first_keys[i] on, below first_keys[i + 1]. */
struct bucket_splitters {
	uint32_t n;                                    /* of buckets */
	encoded_key_t first_keys[BACKEND_MAX_BUCKETS]; /* n, ascending; the first one is 0 */
};

/*
 * Distribute elements among buckets. The elements of a bucket are adjacent, in any order, and
 * follow the elements of the previous bucket.
 */
struct distribute_op {
	const struct layout *layout;
	const struct bucket_splitters *splitters;
	const void *elements;
	void *out;            /* does not overlap the elements; aligned to 64 bytes */
	uint64_t n;           /* < 2^32 */
	void *scratch;        /* distribute_scratch_nbytes(layout, n), aligned to 64 bytes */
	uint32_t *ret_starts; /* host; of the buckets in `out`; splitters->n + 1 */
};

/*
 * Find where a splitter cuts k sorted slices: the number of items of slices[i] before it. Items
 * below `key` are before it; equal items only if the index of their slice is below `slice`. (So an
 * earlier slice returns its upper bound of the key, `slice` and later ones their lower bound.) This
 * is the order of (key, slice), which is exact for any data. slice == 0 keeps all equal items after
 * the splitter. Whole keys are compared.
 */
struct cut_op {
	const struct layout *layout;
	const struct slice *slices; /* k, host array */
	uint32_t k;
	const void *key; /* host; layout_key_nbytes() */
	uint32_t slice;
	uint64_t *ret_cuts; /* host; k */
};

/*
 * Merge k sorted slices of items into items, or into the output's part of items. Ties keep the
 * order of the slices. For elements see sort_op; the output consists of decoded elements.
 */
struct merge_op {
	const struct layout *layout;
	const struct slice *slices; /* k, host array; may be empty */
	uint32_t k;
	void *out;        /* for the sum of n, < 2^32; does not overlap the other arrays */
	bool for_output;  /* write only output_nbytes from output_offset of each item */
	bool is_unsorted; /* the slices are of one bucket, to be sorted; without `unique` */
	bool unique;
	uint64_t limit;
	void *scratch; /* merge_scratch_nbytes(layout, k, n) */
	/*
	 * Host, item_nbytes each: the first and last item kept, if any (whole, also if for_output),
	 * so that the caller can compare windows. NULL: not needed. Not set for elements.
	 */
	void *ret_first, *ret_last;
	struct sort_op_result *ret; /* host; assigned */
};

/* Keep one of equal items of a sorted slice, as sort_op does, in place. */
struct unique_op {
	const struct layout *layout;
	void *items;
	uint64_t n;
	/* Not used if the items are elements. */
	void *buffer;               /* for n items */
	void *scratch;              /* merge_scratch_nbytes(layout, 1, n) */
	struct sort_op_result *ret; /* host; assigned, as by merge_op */
};

/*
 * Copy the key prefixes of every `stride`-th item, from item 0 on, to the host: the first keys of a
 * run's blocks.
 */
struct sample_op {
	const struct layout *layout;
	const void *items;
	uint64_t n, stride;
	encoded_key_t *ret_keys; /* host; ceil(n / stride) */
};

/*
 * Pack sorted elements into the blocks that a run stores, in the format of delta_pack.h. A block
 * that does not shrink is stored as its elements. Blocks follow each other without gaps.
 */
struct pack_op {
	const void *elements;
	uint64_t n;
	uint32_t element_nbytes;
	uint32_t block_n;     /* per block, at most 2^30 bytes; the last may have fewer */
	void *packed;         /* room for the n elements; aligned like them */
	uint32_t *ret_nbytes; /* host; size of each block; that of its elements: not packed */
};

/* A block of n elements. It is stored unpacked if packed_nbytes is the size of the elements. */
struct packed_block {
	const void *packed; /* aligned like the elements */
	void *elements;
	uint32_t packed_nbytes, n;
};

/* Return the number of elements of all blocks. */
static inline uint64_t packed_blocks_n(const struct packed_block *blocks, uint32_t n_blocks)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < n_blocks; i++)
		n += blocks[i].n;
	return n;
}

/* Unpack blocks to elements. The packed bytes need not be valid (see ret_damaged). */
struct unpack_op {
	const struct packed_block *blocks; /* n_blocks, host array */
	uint32_t n_blocks, element_nbytes;
	/*
	 * Host: the number of the first invalid block, whose elements are undefined; UINT32_MAX if
	 * all are valid.
	 */
	uint32_t *ret_damaged;
};

/*
 * The operations of a back end for one kind of layout. Kinds may share functions or tables.
 *
 * sort, merge and unique may wait for the device if keys are longer than an element's prefix
 * (layout_needs_refining()). They then return errors of the operations that they waited for.
 */
struct backend_layout_ops {
	/* NULL unless layout_has_elements(). */
	int (*encode)(struct device_queue *queue, const struct encode_op *op);
	int (*decode)(struct device_queue *queue, const struct decode_op *op);
	size_t (*sort_scratch_nbytes)(const struct layout *layout, uint64_t n);
	int (*sort)(struct device_queue *queue, const struct sort_op *op);
	/* For k slices with n items in all. */
	size_t (*merge_scratch_nbytes)(const struct layout *layout, uint32_t k, uint64_t n);
	int (*merge)(struct device_queue *queue, const struct merge_op *op);
	int (*unique)(struct device_queue *queue, const struct unique_op *op);
	/* NULL: not supported. distribute_scratch_nbytes: 0: not supported for this layout. */
	int (*distribute)(struct device_queue *queue, const struct distribute_op *op);
	size_t (*distribute_scratch_nbytes)(const struct layout *layout, uint64_t n);
	int (*cut)(struct device_queue *queue, const struct cut_op *op);
	int (*sample)(struct device_queue *queue, const struct sample_op *op);
};

/* --- Lines of text --- */

/*
 * How lines are compared. Without keys, whole lines are compared. With keys, the text has the key
 * of each line before it, as a line of its own; no key is a prefix of another key. Keys are
 * compared first, and then, unless keys_decide, the lines.
 */
struct device_line_order {
	bool has_keys, keys_decide;
	bool descending; /* of lines; the order of keys is always ascending */
};

/*
 * Sorted lines in device memory. The arrays are in the memory of sort_lines_op. The output is
 * divided into segments of segment_n lines; the last one may have fewer.
 */
struct device_lines {
	const void *text;
	const void *starts;  /* u64: of all lines (and keys) in the text */
	const void *order;   /* u32: numbers of the lines in sorted order */
	const void *offsets; /* u64: of each segment in the output */
	struct device_line_order order_by;
	uint32_t segment_n;
	uint64_t first_line, n; /* the output: n lines of the order from first_line on */
	uint64_t output_nbytes; /* with delimiters */
};

/* What a sort of lines reports. */
struct sort_lines_result {
	struct device_lines lines;
	struct digest digest, dropped; /* of all lines; of those that `unique` dropped */
	uint64_t longest_nbytes;       /* of the longest line, with the delimiter */
};

/*
 * Find the lines of a text and their sorted order. The lines themselves are not moved. Waits for
 * the device.
 */
struct sort_lines_op {
	const void *text; /* nbytes, ends with a delimiter; readable up to a multiple of 16 bytes */
	uint64_t nbytes;
	uint64_t max_n; /* at least the number of lines, not counting keys; < 2^32 */
	unsigned char delimiter;
	struct device_line_order order_by;
	bool unique;    /* drop all but the first of lines that are equal in this order */
	uint64_t limit; /* the order ends after this many lines */
	void *memory;   /* memory_nbytes(nbytes, max_n, has_keys); the lines refer to it */
	struct sort_lines_result *ret; /* host; assigned */
};

/* Results for the lines that begin in the range of a gather. */
struct gather_lines_result {
	struct digest digest;
	uint64_t n_disorders; /* number of lines that should precede the previous line */
};

/* Write bytes [begin, end) of the output, which belong to n_segments segments. */
struct gather_lines_op {
	const struct device_lines *lines;
	uint64_t first_segment;
	uint32_t n_segments;
	uint64_t longest_nbytes; /* of the longest of these segments, or more */
	uint64_t begin, end;
	void *out;                       /* device memory, aligned to 16 bytes */
	struct gather_lines_result *ret; /* host; assigned */
};

struct backend_line_ops {
	/* Return the device memory that a sort of at most max_n lines needs besides the text. */
	size_t (*memory_nbytes)(uint64_t nbytes, uint64_t max_n, bool has_keys);
	int (*sort)(struct device_queue *queue, const struct sort_lines_op *op);
	/* Change the output to n lines of the order from first_line on. Waits for the device. */
	int (*select)(struct device_queue *queue, struct device_lines *lines, uint64_t first_line,
		      uint64_t n);
	int (*gather)(struct device_queue *queue, const struct gather_lines_op *op);
};

enum { BACKEND_UUID_NBYTES = 16 };

struct backend {
	const char *name; /* "cpu", "cuda" */
	/* N_LAYOUT_KINDS entries, by enum layout_kind; NULL: such layouts are not supported. */
	const struct backend_layout_ops *const *ops_by_layout;
	/* NULL: lines are sorted in host memory (src/lines/line_block.h). */
	const struct backend_line_ops *line_ops;

	/*
	 * Return 0 if there is a usable device, else -ENODEV without a message and a static text in
	 * *ret_reason.
	 */
	int (*probe)(const char **ret_reason);
	/* Return the number of devices. NULL: one. */
	unsigned (*n_devices)(void);
	/*
	 * Identify the device independently of its number in this process; zeros: unknown. NULL:
	 * devices cannot be identified.
	 */
	void (*get_uuid)(unsigned number, unsigned char ret_uuid[BACKEND_UUID_NBYTES]);
	/* Returns -ENOMEM without a message if the device has no free memory. */
	int (*open)(const struct backend_config *config, struct device **ret_device);
	void (*close)(struct device *device); /* NULL is fine; all queues must be closed */
	void (*get_info)(const struct device *device, struct device_info *ret_info);

	/* Returns -ENOMEM without a message: the caller may plan smaller. Aligned to 256 bytes. */
	int (*alloc)(struct device *device, enum memory_kind kind, size_t nbytes,
		     void **ret_memory);
	void (*free)(struct device *device, enum memory_kind kind, void *memory, size_t nbytes);
	/*
	 * Discard the contents of a part of MEMORY_DEVICE, so that its pages can return to the
	 * system before the memory is freed. No operation may use the part any more.
	 */
	void (*discard)(struct device *device, void *memory, size_t nbytes);

	/*
	 * Return whether operations of the device can copy memory of `peer` and read slices in it.
	 * The function copies test data and verifies it. No message. NULL: they never can.
	 */
	bool (*can_access)(struct device *device, struct device *peer);

	/* queue_open and event_open return -ENOMEM without a message if there is no memory. */
	int (*queue_open)(struct device *device, enum queue_priority priority,
			  struct device_queue **ret_queue);
	void (*queue_close)(struct device_queue *queue); /* waits until it is empty; NULL is fine */
	int (*event_open)(struct device *device, struct device_event **ret_event);
	/* No queue may reach or wait for the event later. */
	void (*event_close)(struct device_event *event);
	/* Move the event to the current end of the queue. */
	int (*queue_record)(struct device_queue *queue, struct device_event *event);
	/* Wait on the host. Returns at once for an event that was never recorded. */
	int (*event_wait)(struct device_event *event);
	/* Make later operations of the queue wait for the current position of the event. */
	int (*queue_wait_event)(struct device_queue *queue, struct device_event *event);

	/* Copy between any two of host and device memory. */
	int (*copy)(struct device_queue *queue, void *to, const void *from, size_t nbytes);
	int (*pack)(struct device_queue *queue, const struct pack_op *op);
	int (*unpack)(struct device_queue *queue, const struct unpack_op *op);
};

extern const struct backend backend_cpu;
extern const struct backend backend_cuda; /* only with HAVE_CUDA */

enum backend_choice { BACKEND_AUTO, BACKEND_CPU, BACKEND_CUDA };

/*
 * Choose the back end for `choice`. AUTO takes the GPU if there is one and the input is large
 * enough to pay for starting CUDA, compared with this number of CPU threads. input_nbytes:
 * UINT64_MAX if unknown. Returns 0, or -ENODEV after a message if CUDA was requested and is not
 * available.
 */
int backend_choose(enum backend_choice choice, uint64_t input_nbytes, unsigned n_threads,
		   const struct backend **ret_backend);
