/*
 * cuda_tie_break.h - break the ties of sorted elements (kernels/records/tie_break.cu)
 *
 * Each round sorts the ties by the next bytes of their keys. Only the device knows how many there
 * are, so the host waits for their number after each round.
 */
#pragma once

#include "src/device/cuda/cuda_queue.h"

/* What the host reads between rounds. */
struct cuda_tie_result {
	struct tie_counts counts;
	uint64_t common_nbytes;
};

struct cuda_ties {
	struct kernel_tie_keys keys;
	struct cuda_operation *operation;
	struct cuda_tie_result *result; /* the beginning of the operation's result */
	void *elements;                 /* n of 16 bytes, sorted by their prefixes */
	uint64_t n;
	void *buffers[2];       /* kernel_sort_scratch_nbytes(n, 16) each, for alternate rounds */
	uint32_t *positions[2]; /* n each: of the tied elements */
	void *scratch;          /* kernel_ties_scratch_nbytes(n) */
};

/*
 * Break ties. The elements hold key_offset bytes of the keys; key_nbytes: the length of keys, or
 * UINT64_MAX. Waits for the device. Returns 0 or a negative errno after a message.
 */
int cuda_ties_break(const struct cuda_ties *ties, uint64_t key_offset, uint64_t key_nbytes);
