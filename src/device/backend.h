/*
 * backend - the interface behind which a chunk is sorted and runs are merged
 *
 * A back end is a table of functions; nothing above it knows which one runs. backend_cpu.c is
 * complete and is the reference: threads and plain memory. backend_cuda.c does the same on a GPU,
 * bit for bit.
 *
 * Work is asynchronous. A queue runs its operations in order, and different queues run at the same
 * time (CUDA: a stream; CPU: operations of a queue run one after the other on any thread of a
 * pool). An event is a point in a queue that the host can wait for and that another queue can
 * follow (CUDA: an event). Operations only queue; an error shows in the return value when it is
 * known at once, else in device_event_wait(), which reports the first error of everything queued
 * in that queue before the event. Whatever fails prints its message, except as said below.
 *
 * What an operation is given (arrays, results) must stay valid until an event set after it is
 * reached. Structs of arguments are copied when queued; arrays that they point to are not, unless
 * it says so.
 *
 * There is one family of operations: sort a chunk, merge a window, cut slices, sample a run. What
 * they work on is called items here, whatever it is: the items of records, or elements, of layouts
 * in which these hold all of the key (codes, references). Elements are made of records by encode
 * before they are sorted, and become records by decode after they are merged; where the records of
 * references are is said to these two. To sort and merge items a back end uses what elements it
 * likes: what the job sees is items (layout.h), in order.
 *
 * "Device memory" is what elements live in while they are sorted and merged. When the device is
 * unified (device_info.unified), host pointers and device pointers are the same thing: callers then
 * read input straight into device memory, and write output straight from it, and skip copy().
 */
#pragma once

#include "src/base/stats.h"
#include "src/device/queue_priority.h"
#include "src/record/key_encode.h"

/* What is opened of a back end (device.h), which calls the functions of its table. */
struct device;
struct device_queue;
struct device_event;

enum memory_kind {
	MEMORY_DEVICE,
	MEMORY_HOST, /* pinned, so that copies run fastest; the same as DEVICE if unified */
};

struct backend_config {
	unsigned n_threads;            /* CPU threads to use at most; at least 1 */
	uint64_t device_memory_nbytes; /* limit for each device; 0: what is free less a tenth */
	unsigned number;               /* which device of the back end; from 0 */
	unsigned n_sharers;            /* so many times it is opened; 0: once */
	unsigned n_other_sharers;      /* and so many times by other processes */
	unsigned stats_device; /* among several of a sort, from 1, for statistics; 0: alone */
	struct stats *stats;   /* where operations report their time; may be NULL */
};

struct device_info {
	char name[128]; /* as a person knows it: "CPU, 2 threads", "NVIDIA H200" */
	bool unified;
	uint64_t memory_nbytes;    /* device memory to use; 0: bounded by the host limit only */
	int numa_node;             /* of the host's memory, that is near (src/base/numa.h) */
	unsigned n_queues;         /* queues that keep the device busy */
	uint64_t chunk_nbytes;     /* elements of a chunk, in bytes, that it sorts best */
	uint64_t window_nbytes;    /* output of one merge, in bytes, that it likes best */
	unsigned in_memory_factor; /* both so many times as long where all fits; 0: no longer */
};

/* A sorted range of elements in device memory. */
struct slice {
	const void *elements;
	uint64_t n;
};

/* Elements of all k slices. */
static inline uint64_t slices_n(const struct slice *slices, uint32_t k)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < k; i++)
		n += slices[i].n;
	return n;
}

/* records -> elements. Of references the two lie apart. */
struct encode_op {
	const struct layout *layout; /* must outlive the operation */
	uint64_t first_number;       /* of references: that of the first record */
	/*
	 * n records of record_nbytes, and room for n elements. Records that are as wide as elements
	 * are aligned like them, others need not be. The two may be the same memory, or
	 * overlap if the records end where the elements end (then they expand in place).
	 */
	const void *records;
	void *elements;
	uint64_t n;
	struct digest *ret_digest; /* host; added to; may be NULL */
};

/* What references refer to lies in at most so many places. */
enum { BACKEND_MAX_SOURCES = 16 };

/* elements -> records, in place if asked (records == elements), but for references. */
struct decode_op {
	const struct layout *layout;
	/* Of references: the records, numbered from 0 on; n_sources, host array */
	const struct slice *sources;
	uint32_t n_sources;
	const void *elements;
	void *records;
	uint64_t n;
	bool strict;               /* equal neighbours are disorder too (-u) */
	struct decode_result *ret; /* host; assigned */
};

/* What was found out about items while they were put in order. */
struct sort_op_result {
	uint64_t n;            /* items kept */
	uint64_t n_counted;    /* the sum of their counts */
	uint64_t n_disorders;  /* neighbours among them that are out of order, seen in their keys */
	struct digest digest;  /* of the bodies of those kept */
	struct digest dropped; /* and of those dropped: by -u, or beyond the limit */
};

/*
 * n records, in the order of the input, to a sorted run of items. Equal keys stay in order. With
 * `unique` the first of equal ones is kept, with the sum of their counts.
 *
 * Elements (layout_has_elements()) are sorted in place, after encode; they are never limited, and
 * of *ret only n and dropped are found out: the rest is, when they are decoded.
 */
struct sort_op {
	const struct layout *layout; /* must outlive the operation */
	const void *records;         /* n of record_nbytes; any alignment; may be overwritten */
	void *items;                 /* n of resident_nbytes; overlaps nothing else */
	uint64_t n;                  /* < 2^32 */
	uint64_t position;           /* of the first record in the input, in records */
	bool unique;
	uint64_t limit;                  /* keep at most so many, the first ones */
	void *scratch;                   /* sort_scratch_nbytes(layout, n) */
	struct digest *ret_input_digest; /* host; assigned: of the bodies of all n, taken before the
					    sort */
	struct sort_op_result *ret;      /* host; assigned */
};

/*
 * Where a splitter cuts k sorted slices: the number of items of slices[i] that come before it.
 * Items smaller than `key` come before it; equal ones only if their slice's index is below `slice`
 * (so an earlier slice gives its upper bound of key, `slice` and later ones their lower bound).
 * That is the order of (key, slice): exact for any data. slice == 0 keeps all equal items on the
 * far side. Whole keys are compared.
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
 * k sorted slices of items to one sequence: items, or what the output takes of them. Ties are
 * broken by the order of the slices. Elements are as sort_op says; the output takes what decode
 * makes of them.
 */
struct merge_op {
	const struct layout *layout;
	const struct slice *slices; /* k, host array; may be empty */
	uint32_t k;
	void *out;       /* for the sum of n, < 2^32; overlaps nothing else */
	bool for_output; /* take output_nbytes from output_offset of each item, not all of it */
	bool unique;
	uint64_t limit;
	void *scratch; /* merge_scratch_nbytes(layout, k, n) */
	/*
	 * Host, item_nbytes each: the first and the last item kept, if any is (whole, also if
	 * for_output): the caller compares windows. NULL: not wanted. Not of elements.
	 */
	void *ret_first, *ret_last;
	struct sort_op_result *ret; /* host; assigned */
};

/* Keep the first of equal items of a sorted slice, in place. */
struct unique_op {
	const struct layout *layout;
	void *items;
	uint64_t n;
	void *buffer;  /* for n items, and scratch as a merge of one slice has it: ... */
	void *scratch; /* ... neither is used if the items are elements */
	struct sort_op_result *ret; /* host; assigned, as by merge_op */
};

/*
 * Of every `stride`-th item (the 0th first) the beginning of the key, to the host: the first keys
 * of a run's blocks.
 */
struct sample_op {
	const struct layout *layout;
	const void *items;
	uint64_t n, stride;
	encoded_key_t *ret_keys; /* host; ceil(n / stride) */
};

/*
 * Sorted elements to the blocks that a run stores: packed as delta_pack.h says, or, where that
 * does not make them smaller, as they are. They lie one behind the other, without gaps.
 */
struct pack_op {
	const void *elements;
	uint64_t n;
	uint32_t element_nbytes;
	uint32_t block_n;     /* elements of a block, 2^30 bytes at most; the last may have fewer */
	void *packed;         /* room for the n elements; aligned like them */
	uint32_t *ret_nbytes; /* host; of each block; of its n elements: it is not packed */
};

/* A block of n elements: packed, or as they are if it takes as many bytes. */
struct packed_block {
	const void *packed; /* aligned like the elements */
	void *elements;
	uint32_t packed_nbytes, n;
};

/* Elements of all blocks. */
static inline uint64_t packed_blocks_n(const struct packed_block *blocks, uint32_t n_blocks)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < n_blocks; i++)
		n += blocks[i].n;
	return n;
}

/* Back to elements. What is packed may be any bytes. */
struct unpack_op {
	const struct packed_block *blocks; /* n_blocks, host array */
	uint32_t n_blocks, element_nbytes;
	/*
	 * Host: the first block that no elements are packed as, whose elements may then be
	 * anything; UINT32_MAX: none.
	 */
	uint32_t *ret_damaged;
};

/*
 * How a back end does it for a kind of layout: a row of its table. Where nothing
 * differs between two kinds, they have the same functions, or the same row.
 *
 * sort, merge and unique may wait for the device when the keys of items are longer than an
 * element's prefix (layout_needs_refining()), and then return what they waited for as an error.
 */
struct backend_layout_ops {
	/* NULL unless layout_has_elements(). */
	int (*encode)(struct device_queue *queue, const struct encode_op *op);
	int (*decode)(struct device_queue *queue, const struct decode_op *op);
	size_t (*sort_scratch_nbytes)(const struct layout *layout, uint64_t n);
	int (*sort)(struct device_queue *queue, const struct sort_op *op);
	/* Of k slices with n items in all. */
	size_t (*merge_scratch_nbytes)(const struct layout *layout, uint32_t k, uint64_t n);
	int (*merge)(struct device_queue *queue, const struct merge_op *op);
	int (*unique)(struct device_queue *queue, const struct unique_op *op);
	int (*cut)(struct device_queue *queue, const struct cut_op *op);
	int (*sample)(struct device_queue *queue, const struct sample_op *op);
};

enum { BACKEND_UUID_NBYTES = 16 };

struct backend {
	const char *name; /* "cpu", "cuda" */
	/* N_LAYOUT_KINDS, by enum layout_kind; NULL: it does not take such layouts. */
	const struct backend_layout_ops *const *ops_by_layout;

	/*
	 * Is there a usable device? 0, or -ENODEV; no message, but the reason in *ret_reason
	 * (static).
	 */
	int (*probe)(const char **ret_reason);
	/* How many there are. NULL: one. */
	unsigned (*n_devices)(void);
	/*
	 * Which one it is, whatever its number is in this process; zeros: it cannot be known. NULL:
	 * they are not told apart.
	 */
	void (*get_uuid)(unsigned number, unsigned char ret_uuid[BACKEND_UUID_NBYTES]);
	/* -ENOMEM without a message: the device has no memory left; else after one. */
	int (*open)(const struct backend_config *config, struct device **ret_device);
	void (*close)(struct device *device); /* NULL is fine; all queues must be closed */
	void (*get_info)(const struct device *device, struct device_info *ret_info);

	/* -ENOMEM without a message: the caller may plan smaller. Aligned to 256 bytes. */
	int (*alloc)(struct device *device, enum memory_kind kind, size_t nbytes,
		     void **ret_memory);
	void (*free)(struct device *device, enum memory_kind kind, void *memory, size_t nbytes);
	/*
	 * What a part of MEMORY_DEVICE holds is not needed any more: what can go back to the system
	 * before the whole is released goes back. No operation may be using the part.
	 */
	void (*discard)(struct device *device, void *memory, size_t nbytes);

	/*
	 * May operations in queues of the device read memory of `other`, as slices and to copy it?
	 * Whether they can is tried, with bytes that have to arrive. NULL: never. No message.
	 */
	bool (*can_access)(struct device *device, struct device *peer);

	/* Queues and events, too, are refused for want of memory without a message. */
	int (*queue_open)(struct device *device, enum queue_priority priority,
			  struct device_queue **ret_queue);
	void (*queue_close)(struct device_queue *queue); /* waits until it is empty; NULL is fine */
	int (*event_open)(struct device *device, struct device_event **ret_event);
	void (*event_close)(
		struct device_event *event); /* not while a queue may still reach or follow it */
	int (*queue_record)(struct device_queue *queue,
			    struct device_event *event); /* set it at the end of the queue */
	int (*event_wait)(struct device_event *event);   /* host; an event never set is reached */
	int (*queue_wait_event)(struct device_queue *queue, struct device_event *event);

	int (*copy)(struct device_queue *queue, void *to, const void *from,
		    size_t nbytes); /* any direction */
	int (*pack)(struct device_queue *queue, const struct pack_op *op);
	int (*unpack)(struct device_queue *queue, const struct unpack_op *op);
};

extern const struct backend backend_cpu;
extern const struct backend backend_cuda; /* only with HAVE_CUDA */

enum backend_choice { BACKEND_AUTO, BACKEND_CPU, BACKEND_CUDA };

/*
 * The back end for `choice`. AUTO takes the GPU if there is one and the input is large enough to
 * pay for starting it, against so many CPU threads. input_nbytes: UINT64_MAX if unknown. Returns 0,
 * or -ENODEV with a message when CUDA was asked for and cannot be had.
 */
int backend_choose(enum backend_choice choice, uint64_t input_nbytes, unsigned n_threads,
		   const struct backend **ret_backend);
