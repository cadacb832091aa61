/*
 * kernels - the door to the device code: plain C, so that the engine is C
 *
 * Every launch_* queues kernels in `stream` and returns at once: 0, or the CUDA error code of a
 * launch that failed (cudaError_t; its text comes from cudaGetErrorString). Nothing here allocates
 * or waits. All pointers are device memory unless it says host; counts are elements or records, n
 * == 0 is fine everywhere. Elements and `scratch` are aligned to 16 bytes at least, slices and
 * records as their type is. Scratch is the caller's, of the size that the function beside it
 * tells, and free again when what was queued has run. Elements are codes: unsigned integers of
 * element_nbytes = 4, 8 or 16.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/code.h"
#include "src/digest.h"

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
 * Sort n elements in place. Presorted data costs one reading.
 * Kernels: tile_sort.cu, then passes of splitters.cu and merge_pass.cu.
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
	struct code_map map;
	struct digest *digest;
	void *scratch; /* kernel_record_scratch_nbytes(n) */
};

int launch_encode(const struct encode_task *task, struct CUstream_st *stream);

/* What decode found; the same on both back ends. */
struct decode_findings {
	struct digest digest;          /* of the records written */
	uint64_t n_disorders;          /* neighbours that are out of order */
	struct kernel_key first, last; /* elements at the edges, if n > 0 */
};

/* n elements to records; elements == records is fine. findings: assigned. */
struct decode_task {
	const void *elements;
	void *records;
	uint64_t n;
	struct code_map map;
	bool strict; /* equal neighbours are disorder too */
	struct decode_findings *findings;
	void *scratch; /* kernel_record_scratch_nbytes(n) */
};

int launch_decode(const struct decode_task *task, struct CUstream_st *stream);

/* What unique left and dropped. */
struct unique_findings {
	uint64_t n; /* elements left */
	struct digest dropped;
};

/* Keep the first of equal elements, in place. findings: assigned. */
struct unique_task {
	void *elements;
	uint64_t n;
	struct code_map map; /* to digest what is dropped, as records */
	struct unique_findings *findings;
	void *scratch; /* kernel_record_scratch_nbytes(n) */
};

int launch_unique(const struct unique_task *task, struct CUstream_st *stream);

/* Scratch of encode, decode and unique: about a hundredth of a byte for each record. */
size_t kernel_record_scratch_nbytes(uint64_t n);

#ifdef __cplusplus
}
#endif
