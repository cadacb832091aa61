/*
 * kernels - the interface of the device code, in plain C
 *
 * Every launch_*() queues kernels in `stream` and returns at once. It returns 0 or the CUDA error
 * code of a launch that failed (a cudaError_t). No function here allocates memory or waits.
 * Pointers are device memory unless the comment says host. Counts are elements or records; n == 0
 * is always valid. Elements and `scratch` are aligned to at least 16 bytes, slices and records as
 * their type. The caller provides scratch of the size in bytes that the kernel_*_nbytes() function
 * of the launch returns, and can reuse it when the queued kernels have run. Elements are encoded
 * keys: unsigned integers of element_nbytes = 4, 8 or 16.
 *
 * Records and items may have any alignment. Kernels read them in whole aligned words of up to 16
 * bytes, so the memory must be readable up to the next multiple of 16 bytes (CUDA allocations are).
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

struct CUstream_st; /* the target of a cudaStream_t */

/* An element widened to 16 bytes, as two words, because not all compilers can pass 128 bits. */
struct kernel_key {
	uint64_t lo, hi;
};

/* A sorted range of elements. */
struct kernel_slice {
	const void *elements;
	uint64_t n;
};

/*
 * Return the architecture of the code that the calling thread's device runs, for example 90 for
 * code compiled for compute capability 9.0. Returns cudaErrorNoKernelImageForDevice or a similar
 * error if the program has no code for the device.
 */
int kernels_architecture(int *ret_architecture);

/*
 * Sort n elements in place. Sorted data costs one read. Kernels: tile_sort.cu, then passes of
 * tile_cuts.cu and merge_pass.cu.
 */
size_t kernel_sort_scratch_nbytes(uint64_t n, uint32_t element_nbytes);
int launch_sort(void *elements, uint64_t n, uint32_t element_nbytes, void *scratch,
		struct CUstream_st *stream);

/*
 * Merge k sorted slices (`slices`: host array, read before this returns) into `out`, which must not
 * overlap them. Equal elements keep the order of their slices. One pass merges up to 16 slices, two
 * passes up to 256, and so on.
 */
size_t kernel_merge_scratch_nbytes(uint32_t k, uint64_t n, uint32_t element_nbytes);
int launch_merge(const struct kernel_slice *slices, uint32_t k, uint32_t element_nbytes, void *out,
		 void *scratch, struct CUstream_st *stream);

/*
 * Sort or merge pairs of 16 bytes: the upper 8 are the key, the lower 8 a payload. Equal keys keep
 * their order.
 */
size_t kernel_sort_pairs_scratch_nbytes(uint64_t n);
int launch_sort_pairs(void *pairs, uint64_t n, void *scratch, struct CUstream_st *stream);
size_t kernel_merge_pairs_scratch_nbytes(uint32_t k, uint64_t n);
int launch_merge_pairs(const struct kernel_slice *slices, uint32_t k, void *out, void *scratch,
		       struct CUstream_st *stream);

/*
 * Find where the splitter (key, slice) cuts k sorted slices (host array, read before this returns).
 * cuts[i] is the number of elements of slices[i] before the splitter; elements equal to the key are
 * before it if i < slice. cuts: k counts in memory that the device can write.
 */
int launch_cut(const struct kernel_slice *slices, uint32_t k, uint32_t element_nbytes,
	       struct kernel_key key, uint32_t slice, uint64_t *cuts, struct CUstream_st *stream);

/* Copy every stride-th element, from element 0 on, widened: ceil(n / stride) keys. */
int launch_sample(const void *elements, uint64_t n, uint64_t stride, uint32_t element_nbytes,
		  struct kernel_key *keys, struct CUstream_st *stream);

/*
 * Encode n records of encoding.record_nbytes as elements of encoding.element_nbytes. The two arrays
 * may be the same memory, or overlap if the records end where the elements end. digest: of the
 * records, added to; may be NULL.
 */
struct encode_task {
	const void *records;
	void *elements;
	uint64_t n;
	struct key_encoding encoding;
	struct digest *digest;
	void *scratch; /* kernel_record_scratch_nbytes(n) */
};

int launch_encode(const struct encode_task *task, struct CUstream_st *stream);

/* The results of decode. They equal those of the CPU back end. */
struct kernel_decode_result {
	struct digest digest;          /* digest of the records written */
	uint64_t n_disorders;          /* neighbours out of order */
	struct kernel_key first, last; /* first and last element, if n > 0 */
};

/* Decode n elements to records; elements == records is allowed. result: assigned. */
struct decode_task {
	const void *elements;
	void *records;
	uint64_t n;
	struct key_encoding encoding;
	bool strict; /* equal neighbours count as out of order */
	struct kernel_decode_result *result;
	void *scratch; /* kernel_record_scratch_nbytes(n) */
};

int launch_decode(const struct decode_task *task, struct CUstream_st *stream);

struct kernel_unique_result {
	uint64_t n;            /* elements kept */
	struct digest dropped; /* of the records of the elements dropped */
};

/* Keep the first of equal elements, in place. result: assigned. */
struct unique_task {
	void *elements;
	uint64_t n;
	struct key_encoding encoding; /* to digest dropped elements as records */
	struct kernel_unique_result *result;
	void *scratch; /* kernel_record_scratch_nbytes(n) */
};

int launch_unique(const struct unique_task *task, struct CUstream_st *stream);

/* Return the scratch of encode, decode and unique: about a hundredth of a byte per record. */
size_t kernel_record_scratch_nbytes(uint64_t n);

/*
 * Pack sorted elements in blocks of block_n (the last may have fewer). A block has at most 2^30
 * bytes of elements. The format is that of src/record/delta_pack.h; blocks follow each other
 * without gaps. A block that does not shrink is stored as its elements. packed: room for the n
 * elements, aligned as they are. packed_nbytes: assigned, one per block.
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

/*
 * A block of n elements. It is stored unpacked if packed_nbytes is the size of the elements. Both
 * are aligned as elements are.
 */
struct kernel_packed_block {
	const void *packed;
	void *elements;
	uint32_t packed_nbytes, n;
};

/*
 * Unpack blocks. The packed bytes need not be valid. damaged: assigned the number of the first
 * invalid block, whose elements are then undefined; UINT32_MAX if all are valid.
 */
struct delta_unpack_task {
	const struct kernel_packed_block *blocks; /* host array, read before this returns */
	uint32_t n_blocks, element_nbytes;
	uint32_t *damaged;
	void *tables; /* kernel_delta_unpack_nbytes(n_blocks) */
};

size_t kernel_delta_unpack_nbytes(uint32_t n_blocks);
int launch_delta_unpack(const struct delta_unpack_task *task, struct CUstream_st *stream);

/* --- Records (layout.h): items, their keys, and elements of key prefix and number --- */

/* A slice of items in device memory: its address, and the number of its first item. */
struct item_slice {
	const unsigned char *items;
	uint64_t first;
};

/*
 * Items of item_nbytes, numbered through k slices, fewer than 2^32 in all. The caller sets the
 * first four members; launch_prepare_items() sets the others.
 */
struct kernel_items {
	uint32_t item_nbytes;
	uint32_t body_offset, body_nbytes; /* the part that is digested */
	struct key_fields keys;            /* on the device after launch_prepare_items() */
	struct key_field first_field;
	uint32_t k;
	uint32_t alignment;              /* alignment of every item, 1 to 16 */
	const unsigned char *items;      /* if k is 1 */
	const struct item_slice *slices; /* on the device */
};

/*
 * Complete the description of items in k slices (host array, read before this returns). Copies the
 * slices and the keys to `tables`, kernel_items_nbytes() of memory that must outlive `items`.
 */
size_t kernel_items_nbytes(uint32_t k, uint32_t n_fields);
int launch_prepare_items(struct kernel_items *items, const struct kernel_slice *slices, uint32_t k,
			 void *tables, struct CUstream_st *stream);

/* Copy nbytes of a record to an item. */
struct kernel_projection_copy {
	uint32_t record_offset, item_offset, nbytes;
};

/*
 * Make items of n records. An item consists of a count of 1 (with has_count), pieces of the record
 * without gaps, and the record's position in the input (with has_position).
 */
struct projection_task {
	const void *records;
	void *items;
	uint64_t n, position; /* number of records; number of the first one */
	uint32_t record_nbytes, item_nbytes;
	const struct kernel_projection_copy *copies; /* host array, read before this returns */
	uint32_t n_copies;
	bool has_count, count_is_big_endian, has_position;
	void *tables; /* kernel_projection_nbytes(n_copies) */
};

size_t kernel_projection_nbytes(uint32_t n_copies);
int launch_project(const struct projection_task *task, struct CUstream_st *stream);

/*
 * Make the elements of n items: the first bytes of the key, and the item's number in the low 4
 * bytes. digest: of the bodies, added to; may be NULL.
 */
int launch_make_elements(const struct kernel_items *items, uint64_t n, uint32_t element_nbytes,
			 void *elements, struct digest *digest, struct CUstream_st *stream);

/*
 * Lines of a text: line i is bytes [starts[i], starts[i + 1] - 1), and its delimiter follows. The
 * text begins at a multiple of 16 bytes.
 *
 * has_keys: the key of line i precedes it as a line of its own, so starts[2 * i] is the start of
 * the key, and starts[2 * i + 1] that of the line. No key is a prefix of another key. Lines are
 * compared by the key; then, unless keys_decide, by the line.
 */
struct kernel_lines {
	const unsigned char *text;
	const uint64_t *starts;
	bool descending; /* the order of lines; that of keys is always ascending */
	bool has_keys, keys_decide;
};

/* The keys that break ties: those of items or of lines. The other pointer is NULL. On the host. */
struct kernel_tie_keys {
	const struct kernel_items *items;
	const struct kernel_lines *lines;
};

/* The bytes of a key that a round of breaking ties compares. */
enum { ITEM_TIE_WORD_NBYTES = 8, LINE_WORD_NBYTES = 7 };

/*
 * Count ties: elements of 16 bytes that differ only in their number and whose keys have more bytes.
 * *ties: the number of elements that tie with a neighbour, and the number of groups of these.
 */
struct tie_counts {
	uint32_t n_elements, n_groups;
};

size_t kernel_ties_scratch_nbytes(uint64_t n);
int launch_count_ties(struct kernel_tie_keys keys, const void *elements, uint64_t n, void *scratch,
		      struct tie_counts *ties, struct CUstream_st *stream);

/*
 * Break ties by the next bytes of the keys, from `at` on. The tied elements of `list`, as counted
 * by launch_count_ties(), are copied to `next` as (group, next bytes, number) and sorted. Then
 * their numbers are written back to the positions in `elements` that they came from. positions[i]
 * is the position of list[i] in `elements`; NULL if list is elements. `list` is read before
 * sort_scratch is written, so the two may share memory.
 */
struct tie_break_task {
	void *elements;
	const void *list;
	const uint32_t *positions; /* n */
	uint64_t n;
	const void *ties_scratch; /* of launch_count_ties(list, n) */
	uint32_t n_ties;
	uint64_t at;
	void *next;               /* n_ties of 16 bytes: the list of the next round */
	uint32_t *next_positions; /* n_ties: its positions */
	void *sort_scratch;       /* kernel_sort_scratch_nbytes(n_ties, 16) */
};

int launch_break_ties(struct kernel_tie_keys keys, const struct tie_break_task *task,
		      struct CUstream_st *stream);

/*
 * Find the length of the common prefix of tied keys in `list` of a tie_break_task. *common_nbytes
 * becomes the offset, `at` or later, of the first round in which neighbours of a group differ. If
 * none differ, it is UINT64_MAX for lines, and the end of the keys or more for items.
 */
int launch_find_common_prefix(struct kernel_tie_keys keys, const void *list, uint64_t n,
			      uint64_t at, uint64_t *common_nbytes, struct CUstream_st *stream);

/*
 * Flags of the heads of n sorted elements. The head of a group of equal keys is its first element,
 * or with keep_last its last. launch_flag_heads() makes the flags in kernel_head_flags_nbytes(n) of
 * memory.
 */
struct kernel_head_flags {
	const uint32_t *equal; /* bit i % 32 of word i / 32: not a head */
	bool keep_last;
	const uint32_t *before; /* number of heads before element 32 * i */
	const uint64_t *n;      /* number of heads */
};

size_t kernel_head_flags_nbytes(uint64_t n);
int launch_flag_heads(const struct kernel_items *items, const void *elements,
		      uint32_t element_nbytes, uint64_t n, bool keep_last, void *memory,
		      struct kernel_head_flags *ret_heads, struct CUstream_st *stream);

/* The results of gather. They equal those of the CPU back end. */
struct kernel_gather_result {
	uint64_t n;         /* items kept */
	uint64_t n_counted; /* sum of the counts of these items */
	uint64_t n_disorders;
	struct digest digest, dropped;
};

/* Gather the items of n sorted elements in their order. */
struct gather_task {
	struct kernel_items items;
	const void *elements;
	uint32_t element_nbytes;
	uint64_t n;
	struct kernel_head_flags heads; /* keep only heads; all NULL: keep all items */
	uint64_t limit;                 /* keep at most this many items, the first ones */
	uint32_t out_offset, out_nbytes;
	void *out; /* out_nbytes from out_offset of each item kept */
	bool has_count, count_is_big_endian;
	uint64_t *counts; /* scratch of n counts, if items have counts and only heads are kept */
	struct kernel_gather_result *result;
	void *first, *last; /* assigned the first and last item kept, whole; may be NULL */
};

int launch_gather(const struct gather_task *task, struct CUstream_st *stream);

/*
 * How records are stored as pairs (launch_sort_pairs()). Records have one key of at most 8 bytes
 * and at most 8 other bytes.
 */
struct pair_shape {
	struct key_encoding encoding; /* of the key, to elements of 8 bytes */
	uint32_t key_offset;
};

/* Make pairs of n records. digest: of the records, added to; may be NULL. */
int launch_make_pairs(const struct kernel_items *items, const struct pair_shape *shape, uint64_t n,
		      void *pairs, struct digest *digest, struct CUstream_st *stream);

/* Convert n sorted pairs to records. See gather_task for the members. */
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
 * Find where the splitter (key, slice) cuts the slices of n items, like launch_cut(). cuts[i] is
 * the number of items of slice i before the splitter.
 */
struct cut_items_task {
	struct kernel_items items;
	uint64_t n;
	const unsigned char *key; /* host memory, read before this returns; normalised */
	uint32_t key_nbytes;      /* padded with zeros to a multiple of 8 */
	uint32_t slice;
	uint64_t *cuts;
	void *scratch; /* key_nbytes */
};

int launch_cut_items(const struct cut_items_task *task, struct CUstream_st *stream);

/* Copy the first 16 bytes of the key of every stride-th of n items: ceil(n / stride) keys. */
int launch_sample_items(const struct kernel_items *items, uint64_t n, uint64_t stride,
			struct kernel_key *keys, struct CUstream_st *stream);

/* --- Lines of text (struct kernel_lines) --- */

/*
 * Find the lines of a text that ends with a delimiter: starts[0] is 0, starts[i + 1] follows the
 * i-th delimiter. The text is readable up to a multiple of 16 bytes. *n: their number, assigned.
 */
struct find_lines_task {
	const unsigned char *text;
	uint64_t nbytes;
	unsigned char delimiter;
	uint64_t *starts; /* max_n + 1; lines after the first max_n are only counted */
	uint64_t max_n;
	uint64_t *n;
	void *scratch; /* kernel_find_lines_scratch_nbytes(nbytes) */
};

size_t kernel_find_lines_scratch_nbytes(uint64_t nbytes);
int launch_find_lines(const struct find_lines_task *task, struct CUstream_st *stream);

/*
 * The digest of lines without their keys, and the length of the longest. A launch adds to both.
 */
struct kernel_line_totals {
	struct digest digest;
	uint64_t longest_nbytes; /* with the delimiter */
};

/*
 * Make the elements of n lines, of 16 bytes: LINE_ELEMENT_NBYTES of what the line is compared by, a
 * byte that says whether there is more (lines.cuh), and the number of the line.
 */
enum { LINE_ELEMENT_NBYTES = 11 };
int launch_make_line_elements(const struct kernel_lines *lines, uint64_t n, void *elements,
			      struct kernel_line_totals *totals, struct CUstream_st *stream);

/*
 * List the numbers of n sorted elements. unique: only the first of equal lines. *n_kept: assigned
 * the length of the list. dropped: digest of the other lines, added to.
 */
struct order_lines_task {
	struct kernel_lines lines;
	const void *elements;
	uint64_t n;
	bool unique;
	uint32_t *order; /* n */
	uint64_t *n_kept;
	struct digest *dropped;
	void *scratch; /* kernel_ties_scratch_nbytes(n) */
};

int launch_order_lines(const struct order_lines_task *task, struct CUstream_st *stream);

/*
 * Compute offsets in the output: offsets[i] becomes the offset of line i * LINE_SEGMENT of the
 * order, and *total_nbytes the size of all lines, with delimiters.
 */
enum { LINE_SEGMENT = 1024 };
int launch_measure_lines(const struct kernel_lines *lines, const uint32_t *order, uint64_t n,
			 uint64_t *offsets, uint64_t *total_nbytes, struct CUstream_st *stream);

/*
 * Write the bytes [begin, end) of the output, which belong to n_segments of LINE_SEGMENT lines from
 * `first_segment` on. Lines that begin in this range are counted, hashed and compared with the
 * previous line.
 */
struct gather_lines_task {
	struct kernel_lines lines;
	const uint32_t *order;
	uint64_t first_line, n;  /* the lines of the order that are the output */
	const uint64_t *offsets; /* launch_measure_lines() of these lines */
	uint64_t first_segment;
	uint32_t n_segments;
	uint64_t longest_nbytes; /* of the longest of these segments, or more */
	uint64_t begin, end;
	unsigned char *out;    /* aligned to 16 bytes */
	struct digest *digest; /* added to, like n_disorders */
	uint64_t *n_disorders;
};

int launch_gather_lines(const struct gather_lines_task *task, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
