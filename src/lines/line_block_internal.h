/*
 * line_block_internal.h - the state of a block of lines, shared by the files that sort and write it
 */
#pragma once

#include <errno.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/base/thread_pool.h"
#include "src/device/cpu/page_alloc.h"
#include "src/lines/line_elements.h"
#include "src/record/digest.h"

struct line_sink;
struct piece;

enum {
	MAX_BUCKETS = 256,        /* with the first and the last one */
	MAX_SPLIT_BUCKETS = 1024, /* after large ones have been split */
	MAX_SHARED_NBYTES = 1024,
	PREFETCH_N = 12, /* lines fetched ahead of their turn */
};

/* What becomes of lines with equal keys. */
enum equal_lines { EQUAL_KEEP, EQUAL_DROP, EQUAL_COUNT };

/* The count of lines with the key of an element, stored in place of one that was dropped. */
struct line_count {
	uint64_t n;       /* more than 1; others are not stored */
	uint64_t element; /* number of the element */
};

_Static_assert(sizeof(struct line_count) == sizeof(struct line_element), "one place for both");

/* Bytes that all strings of a sample begin with. */
struct shared_prefix {
	unsigned char bytes[MAX_SHARED_NBYTES];
	uint32_t n; /* UINT32_MAX: no string was sampled */
};

/* Shorten the prefix to the part that another string of the sample begins with. */
void shared_prefix_shorten(struct shared_prefix *shared, struct line_view string);

struct bucket {
	uint64_t first_element, n;
	size_t depth;            /* bytes that all strings share; prefixes hold those after them */
	uint64_t nbytes, offset; /* of its lines in the output */
	bool is_changed;         /* nbytes must be measured again */
	/* How many lines had the key of an element; in the order of elements. */
	const struct line_count *counts;
	uint64_t n_counts, counted;        /* counted: the element whose number in `counts` is 0 */
	uint64_t all_first_element, all_n; /* of line_block_select() */
	struct digest dropped, written;
};

struct line_block {
	const struct line_keys *keys;
	struct thread_pool *threads;
	uint32_t n_threads;
	struct page_alloc allocator;
	unsigned char *memory; /* memory_nbytes: text, elements and what belongs to them, keys */
	size_t memory_nbytes, reserved_nbytes;

	/* What lines look like, to divide the memory. */
	uint64_t seen_nbytes, seen_n_lines, seen_key_nbytes;

	bool hashes_lines; /* for a digest of what is sorted or written */

	/* The current text. */
	struct piece *pieces; /* n_pieces */
	uint32_t n_pieces, max_pieces;
	struct line_elements in;  /* elements by buckets, text and keys */
	unsigned char *bucket_of; /* of each line, in the order of the text */
	unsigned char *length_of; /* of its key if keys are stored, else of the line: at most
				   * LENGTH_OF_MAX */
	uint64_t *prefix_of;      /* of its key if keys are not stored */
	unsigned char *key_memory;
	uint64_t n_elements;
	size_t longest_nbytes;

	/* The sample. */
	struct shared_prefix shared;
	uint64_t splitters[MAX_BUCKETS]; /* lower bounds of all buckets but the first and last */
	uint64_t mean_entry_nbytes;      /* of its keys in memory */
	uint32_t n_splitter_slots;       /* a power of 2, from 1; unused splitters are UINT64_MAX */

	bool counts; /* of line_block_params */
	struct bucket buckets[MAX_SPLIT_BUCKETS];
	uint32_t n_buckets;
	enum equal_lines equal; /* KEEP, or COUNT with line_block_params.counts */
	bool has_selection;     /* line_block_select() was called */

	/* Of line_block_write(). */
	const struct line_sink *sink;
	size_t buffer_nbytes;
};

/* Return the count of an element, and advance *next to its place in the counts. */
static inline uint64_t find_count(const struct bucket *bucket, uint64_t element, uint64_t *next)
{
	const uint64_t number = element - bucket->counted;

	while (*next < bucket->n_counts && bucket->counts[*next].element < number)
		(*next)++;
	return *next < bucket->n_counts && bucket->counts[*next].element == number ?
		       bucket->counts[*next].n :
		       1;
}

/* Return the i-th line of a sorted bucket. */
static inline struct line_view bucket_line(const struct line_block *block,
					   const struct bucket *bucket, uint64_t i)
{
	return line_reference_view(&block->in,
				   block->in.elements[bucket->first_element + i].reference);
}

/*
 * Load the eight bytes of a string that follow the shared prefix, and return 0. A string without
 * the prefix is before (-1) or after (1) all that have it; then load its first eight bytes.
 */
static inline int shared_prefix_load(const struct shared_prefix *shared, struct line_view string,
				     bool descending, uint64_t *ret_prefix)
{
	const size_t n = string.nbytes < shared->n ? string.nbytes : shared->n;
	const int order = n ? memcmp(string.bytes, shared->bytes, n) : 0;

	if (order == 0 && n == shared->n) {
		*ret_prefix = line_load_prefix(string, shared->n, descending);
		return 0;
	}
	*ret_prefix = line_load_prefix(string, 0, descending);
	return (order > 0) != descending ? 1 : -1;
}

/*
 * Split the buckets of a block that are so large that threads would wait for the one that sorts
 * them. Returns 0 or a negative errno after a message.
 */
int line_block_split_buckets(struct line_block *block);

/* Return the elements, with buffers for the keys that a thread makes. */
static inline struct line_elements line_block_elements(const struct line_block *block,
						       struct line_key_buffer buffers[2])
{
	struct line_elements in = block->in;

	in.buffers = buffers;
	return in;
}

/* Returns 0, or -ENOMEM after a message if a key could not be made. */
static inline int line_block_free_buffers(struct line_key_buffer buffers[2])
{
	const bool has_failed = buffers[0].has_failed || buffers[1].has_failed;

	line_key_buffer_free(&buffers[0]);
	line_key_buffer_free(&buffers[1]);
	return has_failed ? fail(-ENOMEM, "no memory for the key of a line") : 0;
}

static inline int fail_line_order(void)
{
	return fail(-EIO, "internal error: lines are out of order");
}
