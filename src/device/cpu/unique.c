/*
 * unique - keep the first of equal elements
 *
 * Dropped elements are collected in a small buffer, so that the usual fast loop digests many at a
 * time.
 */
#include "src/device/cpu/unique.h"

#include <string.h>

#include "src/record/key_batch.h"

enum { DROPPED_NBYTES = 4096 };

struct dropped_buffer {
	_Alignas(16) char elements[DROPPED_NBYTES];
	uint64_t n;
	struct digest digest;
};

/* Add the digest of the collected elements, as records. */
static void flush_dropped(struct dropped_buffer *dropped, const struct layout *layout)
{
	struct decode_result result;

	key_batch_decode(layout, dropped->elements, dropped->n, false, dropped->elements, &result);
	digest_add(&dropped->digest, result.digest);
	dropped->n = 0;
}

#define UNIQUE_DEFINE(suffix, type)                                                                \
	/* Compact; returns how many are left. */                                                  \
	static uint64_t unique_##suffix(type *elements, uint64_t n, const struct layout *layout,   \
					struct dropped_buffer *dropped)                            \
	{                                                                                          \
		type *const dropped_elements = (type *)dropped->elements;                          \
		uint64_t n_kept = n > 0;                                                           \
                                                                                                   \
		for (uint64_t i = 1; i < n; i++) {                                                 \
			const type element = elements[i];                                          \
			const bool equal = element == elements[n_kept - 1];                        \
                                                                                                   \
			if (dropped->n == DROPPED_NBYTES / sizeof(type))                           \
				flush_dropped(dropped, layout);                                    \
			dropped_elements[dropped->n] = element;                                    \
			dropped->n += equal;                                                       \
			elements[n_kept] = equal ? elements[n_kept] : element;                     \
			n_kept += !equal;                                                          \
		}                                                                                  \
		return n_kept;                                                                     \
	}

UNIQUE_DEFINE(4, uint32_t)
UNIQUE_DEFINE(8, uint64_t)
UNIQUE_DEFINE(16, uint128_t)

void cpu_unique(const struct unique_elements_op *op)
{
	struct dropped_buffer dropped = { .n = 0 };

	switch (op->element_nbytes) {
	case 4:
		*op->ret_n = unique_4(op->elements, op->n, op->layout, &dropped);
		break;
	case 8:
		*op->ret_n = unique_8(op->elements, op->n, op->layout, &dropped);
		break;
	default:
		*op->ret_n = unique_16(op->elements, op->n, op->layout, &dropped);
	}
	flush_dropped(&dropped, op->layout);
	*op->ret_dropped = dropped.digest;
}
