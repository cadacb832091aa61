/*
 * kernels - the door to the device code: plain C, so that what calls it is C
 *
 * Every launch_* queues kernels in `stream` and returns at once: 0, or the CUDA error code of a
 * launch that failed (cudaError_t; its text comes from cudaGetErrorString). Nothing here allocates
 * or waits. All pointers are device memory unless it says host; counts are elements or records, n
 * == 0 is fine everywhere. Elements and `scratch` are aligned to 16 bytes at least, slices and
 * records as their type is. Scratch is the caller's, of the size that the function beside it
 * tells, and free again when what was queued has run. Elements are codes: unsigned integers of
 * element_nbytes = 4, 8 or 16.
 *
 * Records and items may lie at any address. They are read in aligned words of up to 16 bytes,
 * whole, so the ends of their memory must be readable as far as these reach (memory of CUDA is).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/record/key_encoding.h"
#include "src/record/digest.h"
#include "src/record/normalised_key.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* what a cudaStream_t points to */

/* Where a widened element is too wide for plain C arguments of every compiler: two words. */
struct kernel_key {
	uint64_t lo, hi;
};

/* A sorted range of elements. */
struct kernel_slice {
	const void *elements;
	uint64_t n;
};

/*
 * Of this program's code, what the calling thread's device runs: 90, say, of what was made for
 * compute capability 9.0. cudaErrorNoKernelImageForDevice or the like if there is none for it.
 */
int kernels_architecture(int *ret_architecture);

/*
 * Sort n elements in place. Presorted data costs one reading.
 * Kernels: tile_sort.cu, then passes of tile_cuts.cu and merge_pass.cu.
 */
size_t kernel_sort_scratch_nbytes(uint64_t n, uint32_t element_nbytes);
int launch_sort(void *elements, uint64_t n, uint32_t element_nbytes, void *scratch,
		struct CUstream_st *stream);

/*
 * Merge k sorted slices (`slices`: host array, read before this returns) into `out`, which
 * overlaps none of them. Equal elements come in the order of their slices. Up to 16 slices are
 * merged in one pass,
 * 256 in two, and so on.
 */
size_t kernel_merge_scratch_nbytes(uint32_t k, uint64_t n, uint32_t element_nbytes);
int launch_merge(const struct kernel_slice *slices, uint32_t k, uint32_t element_nbytes, void *out,
		 void *scratch, struct CUstream_st *stream);

/*
 * The same for pairs of 16 bytes, of which the upper 8 are the key and the lower 8 are carried
 * along. Equal keys keep their order.
 */
size_t kernel_sort_pairs_scratch_nbytes(uint64_t n);
int launch_sort_pairs(void *pairs, uint64_t n, void *scratch, struct CUstream_st *stream);
size_t kernel_merge_pairs_scratch_nbytes(uint32_t k, uint64_t n);
int launch_merge_pairs(const struct kernel_slice *slices, uint32_t k, void *out, void *scratch,
		       struct CUstream_st *stream);

/*
 * Where splitter (key, slice) cuts k sorted slices (host array, read before this returns):
 * cuts[i] elements of slices[i] come before it, those equal to key if i < slice.
 * cuts: k counts in memory that the device can write.
 */
int launch_cut(const struct kernel_slice *slices, uint32_t k, uint32_t element_nbytes,
	       struct kernel_key key, uint32_t slice, uint64_t *cuts, struct CUstream_st *stream);

/* Every stride-th element, the 0th first, widened: ceil(n / stride) keys. */
int launch_sample(const void *elements, uint64_t n, uint64_t stride, uint32_t element_nbytes,
		  struct kernel_key *keys, struct CUstream_st *stream);

/*
 * n records of map->record_nbytes to elements of map->element_nbytes. The two may be the same
 * memory, or overlap if the records end where the elements end. digest: added to; may be NULL.
 */
struct encode_task {
	const void *records;
	void *elements;
	uint64_t n;
	struct key_encoding map;
	struct digest *digest;
	void *scratch; /* kernel_record_scratch_nbytes(n) */
};

int launch_encode(const struct encode_task *task, struct CUstream_st *stream);

/* What decode found; the same on both back ends. */
struct kernel_decode_result {
	struct digest digest;          /* of the records written */
	uint64_t n_disorders;          /* neighbours that are out of order */
	struct kernel_key first, last; /* elements at the edges, if n > 0 */
};

/* n elements to records; elements == records is fine. findings: assigned. */
struct decode_task {
	const void *elements;
	void *records;
	uint64_t n;
	struct key_encoding map;
	bool strict; /* equal neighbours are disorder too */
	struct kernel_decode_result *result;
	void *scratch; /* kernel_record_scratch_nbytes(n) */
};

int launch_decode(const struct decode_task *task, struct CUstream_st *stream);

/* What unique left and dropped. */
struct kernel_unique_result {
	uint64_t n; /* elements left */
	struct digest dropped;
};

/* Keep the first of equal elements, in place. findings: assigned. */
struct unique_task {
	void *elements;
	uint64_t n;
	struct key_encoding map; /* to digest what is dropped, as records */
	struct kernel_unique_result *result;
	void *scratch; /* kernel_record_scratch_nbytes(n) */
};

int launch_unique(const struct unique_task *task, struct CUstream_st *stream);

/* Scratch of encode, decode and unique: about a hundredth of a byte for each record. */
size_t kernel_record_scratch_nbytes(uint64_t n);

/*
 * Sorted codes as blocks of block_n each (the last may have fewer), of at most 2^30 bytes of codes,
 * packed as src/record/delta_pack.h says, one behind the other without gaps; a block that does not
 * shrink is its codes. packed: room for the n codes, aligned as they are. packed_nbytes:
 * assigned, for each block.
 */
struct delta_pack_task {
	const void *elements;
	uint64_t n;
	uint32_t element_nbytes, block_n;
	void *packed;
	uint32_t *packed_nbytes;
	void *scratch; /* kernel_delta_pack_scratch_nbytes(n, block_n) */
};

size_t kernel_delta_pack_scratch_nbytes(uint64_t n, uint32_t block_n);
int launch_delta_pack(const struct delta_pack_task *task, struct CUstream_st *stream);

/* n codes, packed, or as they are if they take as many bytes; both are aligned as codes are. */
struct kernel_packed_block {
	const void *packed;
	void *elements;
	uint32_t packed_nbytes, n;
};

/*
 * Blocks back to codes. The packed bytes may be anything. damaged: assigned: the first block that
 * no codes are packed as, whose codes may then be anything; UINT32_MAX: none.
 */
struct delta_unpack_task {
	const struct kernel_packed_block *blocks; /* host array, read before this returns */
	uint32_t n_blocks, element_nbytes;
	uint32_t *damaged;
	void *tables; /* kernel_delta_unpack_nbytes(n_blocks) */
};

size_t kernel_delta_unpack_nbytes(uint32_t n_blocks);
int launch_delta_unpack(const struct delta_unpack_task *task, struct CUstream_st *stream);

/* --- Records (layout.h): items, their keys, and elements of a key prefix and a number --- */

/* A slice of items on the device: where it begins, and the number of its first item. */
struct item_slice {
	const unsigned char *items;
	uint64_t first;
};

/*
 * Items of item_nbytes, numbered through k slices, less than 2^32 in all. The first four are
 * the caller's to set, the rest is made by launch_prepare_items().
 */
struct kernel_items {
	uint32_t item_nbytes;
	uint32_t body_offset, body_nbytes; /* what is digested */
	struct key_fields keys;            /* at first in host memory; then on the device */
	struct key_field first_field;
	uint32_t k;
	uint32_t alignment;              /* of every item, 1 to 16 */
	const unsigned char *items;      /* if k is 1 */
	const struct item_slice *slices; /* on the device */
};

/*
 * Put what is needed to find items in slices (host array, read before this returns) and their keys
 * into `tables`, which is used as long as the view is.
 */
size_t kernel_items_nbytes(uint32_t k, uint32_t n_fields);
int launch_prepare_items(struct kernel_items *items, const struct kernel_slice *slices, uint32_t k,
			 void *tables, struct CUstream_st *stream);

/* nbytes of a record to an item. */
struct kernel_projection_copy {
	uint32_t record_offset, item_offset, nbytes;
};

/*
 * n records to items: pieces of them, in the order of `to`, without gaps; before them a count of 1
 * (has_count), behind them the record's position in the input (has_position).
 */
struct projection_task {
	const void *records;
	void *items;
	uint64_t n, position; /* of the first record */
	uint32_t record_nbytes, item_nbytes;
	const struct kernel_projection_copy *copies; /* host array, read before this returns */
	uint32_t n_copies;
	bool has_count, count_is_big_endian, has_position;
	void *tables; /* kernel_projection_nbytes(n_copies) */
};

size_t kernel_projection_nbytes(uint32_t n_copies);
int launch_project(const struct projection_task *task, struct CUstream_st *stream);

/*
 * The elements of n items: the first bytes of the key, and the number in the low 4. digest: of the
 * bodies, added to; may be NULL.
 */
int launch_make_elements(const struct kernel_items *items, uint64_t n, uint32_t element_nbytes,
			 void *elements, struct digest *digest, struct CUstream_st *stream);

/*
 * Elements of 16 bytes tie when they agree in all but the number. *ties: how many tie with a
 * neighbour, in how many groups.
 */
struct tie_counts {
	uint32_t n_elements, n_groups;
};

size_t kernel_ties_scratch_nbytes(uint64_t n);
int launch_count_ties(const void *elements, uint64_t n, void *scratch, struct tie_counts *ties,
		      struct CUstream_st *stream);

/*
 * Refine ties by the next 8 bytes of the keys. Those of `list`, as launch_count_ties() has counted
 * them, go to `next` as (group, key bytes [at, at + 8), number), are sorted, and the numbers go
 * back into the elements, to where they were from: places[i] is the place of list[i] among the
 * elements, NULL if list is the elements. `list` is read before sort_scratch is written, so the
 * two may be the same memory.
 */
struct tie_break_task {
	const struct kernel_items *items;
	void *elements;
	const void *list;
	const uint32_t *positions; /* n */
	uint64_t n;
	const void *ties_scratch; /* of launch_count_ties(list, n) */
	uint32_t n_ties;
	uint32_t at;
	void *next;               /* n_ties of 16 bytes */
	uint32_t *next_positions; /* n_ties */
	void *sort_scratch;       /* kernel_sort_scratch_nbytes(n_ties, 16) */
};

int launch_break_ties(const struct tie_break_task *task, struct CUstream_st *stream);

/*
 * How far keys agree: *reach becomes the first multiple of 8 bytes from `at` on at which neighbours
 * of a group differ in `list` of a tie_break_task, key_nbytes rounded up if none do.
 */
int launch_find_common_prefix(const struct kernel_items *items, const void *list, uint64_t n,
			      uint32_t at, uint32_t *common_nbytes, struct CUstream_st *stream);

/*
 * Which of n sorted elements are the first of those with equal keys. Made by launch_flag_heads()
 * in kernel_head_flags_nbytes(n) of memory.
 */
struct kernel_head_flags {
	const uint32_t *equal;  /* bit i % 32 of word i / 32: equal to the one before */
	const uint32_t *before; /* firsts before element 32 * i */
	const uint64_t *n;      /* firsts in all */
};

size_t kernel_head_flags_nbytes(uint64_t n);
int launch_flag_heads(const struct kernel_items *items, const void *elements,
		      uint32_t element_nbytes, uint64_t n, void *memory,
		      struct kernel_head_flags *ret_heads, struct CUstream_st *stream);

/* What gather found out; the same on both back ends. */
struct kernel_gather_result {
	uint64_t n;         /* items kept */
	uint64_t n_counted; /* the sum of counts of those that they stand for */
	uint64_t n_disorders;
	struct digest digest, dropped;
};

/* The items of n sorted elements, in their order. */
struct gather_task {
	struct kernel_items items;
	const void *elements;
	uint32_t element_nbytes;
	uint64_t n;
	struct kernel_head_flags heads; /* keep only these, unless NULL */
	uint64_t limit;                 /* keep at most so many, the first ones */
	uint32_t out_offset, out_nbytes;
	void *out; /* out_nbytes from out_offset of each item kept */
	bool has_count, count_is_big_endian;
	uint64_t *counts; /* n; scratch if items have counts and only firsts are kept */
	struct kernel_gather_result *result;
	void *first, *last; /* the items at the edges, whole; may be NULL */
};

int launch_gather(const struct gather_task *task, struct CUstream_st *stream);

/*
 * Records of up to 16 bytes with one key, no more than 8 bytes of either and of the rest, as pairs
 * (launch_sort_pairs()) that hold all of them.
 */
struct pair_shape {
	struct key_encoding map; /* of the key, to elements of 8 bytes */
	uint32_t key_offset;
};

/* digest: of the records, added to; may be NULL. */
int launch_make_pairs(const struct kernel_items *items, const struct pair_shape *shape, uint64_t n,
		      void *pairs, struct digest *digest, struct CUstream_st *stream);

/* The records of n sorted pairs; members as those of gather_task. */
struct unpack_pairs_task {
	struct pair_shape shape;
	uint32_t record_nbytes;
	const void *pairs;
	uint64_t n;
	uint64_t limit;
	void *out;
	struct kernel_gather_result *result;
	void *first, *last;
};

int launch_unpack_pairs(const struct unpack_pairs_task *task, struct CUstream_st *stream);

/*
 * Where a splitter cuts the slices of a view of n items: cuts[i] items of slice i come before (key,
 * slice), as in launch_cut().
 */
struct cut_items_task {
	struct kernel_items items;
	uint64_t n;
	const unsigned char *key; /* host, read before this returns; normalised */
	uint32_t key_nbytes;      /* rounded up to 8 by zeros */
	uint32_t slice;
	uint64_t *cuts;
	void *scratch; /* key_nbytes */
};

int launch_cut_items(const struct cut_items_task *task, struct CUstream_st *stream);

/* The first 16 bytes of the key of every stride-th of n items: ceil(n / stride) keys. */
int launch_sample_items(const struct kernel_items *items, uint64_t n, uint64_t stride,
			struct kernel_key *keys, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
