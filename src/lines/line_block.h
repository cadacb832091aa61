/*
 * line_block.h - sort the lines of a text in memory
 *
 *	text      lines, each with its delimiter           piece 0 | piece 1 | ...
 *	elements  [ prefix | line ], divided by prefixes   bucket 0 | bucket 1 | ... , each sorted
 *
 * A line is represented by an element (line_elements.h). Threads share the pieces of the text to
 * make elements, then the buckets to sort them, and finally each writes the lines of a bucket. This
 * is a sample sort (Blelloch et al., 1991) whose buckets fit the cache.
 *
 * All keys of a sample begin with the same bytes: the shared prefix, which may be empty. The prefix
 * of an element holds the bytes after it. Lines whose keys do not begin with it go to the first or
 * the last bucket.
 */
#pragma once

#include "src/lines/line_elements.h"
#include "src/record/digest.h"

/* Lines that follow each other in the text. */
struct line_range {
	const unsigned char *begin, *end;
};

/* What a block writes its lines to. */
struct line_sink {
	/*
	 * Write nbytes at `offset` from the beginning of the block's output. Several threads call
	 * it, and start in the order of the offsets. Returns 0 or a negative errno after a message.
	 */
	int (*write)(void *context, uint64_t offset, const void *bytes, size_t nbytes);
	void *context;
	size_t max_nbytes;     /* at a time */
	uint64_t begin;        /* of the block's output in the file: for the alignment of writes */
	bool is_run;           /* each write is placed by itself */
	uint32_t align_nbytes; /* for direct writes; 0: there are none */
	/* Number of threads that write at different offsets of a file; 0: write in order. */
	uint32_t n_writers;
};

struct line_block;

struct line_block_params {
	const struct line_keys *keys;
	struct thread_pool *threads;
	uint32_t n_threads;
	size_t memory_nbytes; /* for text, elements and keys */
	bool counts;          /* with keys->unique: see line_block_count_equal() */
	const struct cancellation *cancellation; /* NULL: never */
};

/* Returns 0 or -ENOMEM after a message. */
int line_block_open(const struct line_block_params *params, struct line_block **ret_block);
/* NULL is ignored. */
void line_block_close(struct line_block *block);

/* Do not use nbytes at the end of the block's memory, less than an eighth of it. */
void line_block_reserve(struct line_block *block, size_t nbytes);

/* Return the memory for text, which is at the beginning of the block's memory. */
unsigned char *line_block_text(struct line_block *block);

/*
 * Return how much text to read, so that elements and keys probably fit as well. Adapts to the lines
 * that have been seen; `sample`: lines of the text, before the first call of line_block_sort().
 */
size_t line_block_text_nbytes(struct line_block *block, struct line_range sample);

/*
 * Sort the lines of n ranges of the text, which follow each other in memory and in the order of
 * equal lines. text_end: elements and keys are placed after it. Returns 0 or a negative errno after
 * a message. *ret_n_sorted: the number of bytes that were sorted, from the beginning of the ranges:
 * at least one whole line, and fewer than all if elements or keys do not fit in memory.
 * ret_digest: of the sorted lines; NULL: not computed.
 */
int line_block_sort(struct line_block *block, const struct line_range *ranges, size_t n,
		    const unsigned char *text_end, uint64_t *ret_n_sorted,
		    struct digest *ret_digest);

/* Add lines of the text, which need not be sorted, to a digest. */
int line_block_add_digest(struct line_block *block, struct line_range range, struct digest *digest);

/* --- of a sorted block --- */

/* Drop the line with the key of `last`, unless its bytes are NULL; with -u there is one at most. */
int line_block_drop_equal(struct line_block *block, struct line_view last);

/*
 * With `counts`, after line_block_sort() and before everything below: keep lines with equal keys,
 * or drop all but the first, and count them. line_block_write() writes the number before each line,
 * as uniq -c does.
 */
int line_block_count_equal(struct line_block *block, bool keeps);

/* Drop the first or the last of counted lines. Returns its count. */
uint64_t line_block_drop_first(struct line_block *block);
uint64_t line_block_drop_last(struct line_block *block);

/* A count as text, with a blank after it. Returns the number of bytes. */
enum { LINE_COUNT_NBYTES = 24 };
size_t line_count_format(uint64_t n, char text[static LINE_COUNT_NBYTES]);

/* Drop all but the first n lines. */
void line_block_truncate(struct line_block *block, uint64_t n);

/*
 * Restrict the block to the lines [first, first + n) until the next call. Lines count from the
 * first one that was not dropped.
 */
void line_block_select(struct line_block *block, uint64_t first, uint64_t n);

uint64_t line_block_n_lines(const struct line_block *block);

/* Return the bytes of the longest line that was sorted, with its delimiter. */
size_t line_block_longest(const struct line_block *block);

/* Return the digest of the lines that were dropped since they were sorted. */
struct digest line_block_dropped_digest(const struct line_block *block);

/* Return the first and the last line; bytes NULL: there is none. */
struct line_view line_block_first(const struct line_block *block);
struct line_view line_block_last(const struct line_block *block);

/* Add up the bytes of the lines with their delimiters, before line_block_write(). */
int line_block_measure(struct line_block *block, uint64_t *ret_nbytes);

/*
 * Write the lines, each with its delimiter, through buffers of buffer_nbytes for each thread, at
 * most what the sink takes at a time.
 * ret_digest: of what was written; NULL: not computed. Returns 0; -EIO after a message if lines are
 * out of order, an internal error; or the error of the sink.
 */
int line_block_write(struct line_block *block, size_t buffer_nbytes, const struct line_sink *sink,
		     struct digest *ret_digest);
