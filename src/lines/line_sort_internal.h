/*
 * line_sort_internal.h - the state of a sort of lines, shared by the files that carry it out
 *
 *	line_sort.c	memory, chunks, the whole sort
 *	line_runs.c	spilled runs
 *	line_checkpoint.c	runs of an earlier process
 *	line_merge.c	merging them
 *	line_output.c	the output: one file or part files, of one or several ranks
 *	line_ranks.c	several ranks: runs and partitions
 *	line_check.c	checking the order of an input
 */
#pragma once

#include "io/spill/run_file.h"
#include "src/checkpoint/checkpoint.h"
#include "src/lines/device_text.h"
#include "src/lines/line_block.h"
#include "src/lines/line_scan.h"
#include "src/plan/job.h"
#include "src/run/run.h"
#include "src/sort/file_set.h"
#include "src/sort/sort_summary.h"

struct line_sort_params;

enum {
	/* Buffers of threads, and blocks of runs. */
	LINE_MAX_BUFFER_NBYTES = 1 << 20,
	LINE_MIN_BLOCK_NBYTES = 16 << 10,
	LINE_SAMPLE_NBYTES = 256 << 10, /* of text, to estimate how much fits in memory */
	LINE_MIN_RESUME_BLOCKS = 32,    /* minimum blocks in memory to resume a sort */
};

/* Writes the lines of a run. */
struct line_run_writer {
	struct run_file *file;
	struct stats *stats;
	struct line_sort *sampled; /* NULL, or take samples for splitters */
	uint64_t nbytes, n_lines;  /* written before this block */
};

/* The last line that was counted. More lines may equal it. */
struct pending_line {
	unsigned char *bytes; /* with the delimiter */
	size_t nbytes, capacity;
	uint64_t count; /* 0: there is no such line */
};

/* The checkpoint of a sort, and the description of the sort for it. */
struct line_checkpoint {
	struct checkpoint *checkpoint;
	struct sort_spec spec;
	char *order;         /* line_keys_format() */
	struct input *input; /* all inputs as one stream of bytes */
};

/*
 * Where the lines of a rank are: in part files `first` to `last`. It has all lines of those between
 * them. A single file is part file 0.
 */
struct line_extent {
	uint64_t nbytes; /* of all files; 0: there are no lines, and the rest is 0 */
	uint64_t first, last;
	uint64_t first_nbytes, last_nbytes; /* of this rank in these files */
};

struct line_disorder;
struct line_ranks;

struct line_sort {
	const struct line_sort_params *params;
	const struct sort_spec *spec;       /* of params */
	struct line_checkpoint *checkpoint; /* NULL: none */
	const struct line_keys *keys;       /* of params */
	/*
	 * What parts of src/ need that sorts of records and of lines share. Its records are bytes
	 * (line_text_layout). The spill is opened by line_runs_open_spill().
	 */
	struct job job;
	struct thread_pool *threads;
	struct line_input *input;
	struct line_block *block;
	struct device_text *text;       /* NULL: chunks are sorted in the block */
	struct file_set set;            /* the output */
	struct output *output;          /* of the set: the single file or the current part file */
	struct line_part_files *parts;  /* NULL: the output is one file */
	struct line_ranks *ranks;       /* NULL: a single process */
	struct rank_share *rank_shares; /* of each rank; NULL: not gathered yet */
	size_t buffer_nbytes, memory_nbytes;
	uint32_t n_threads, n_compressors;
	bool has_output_size; /* the size of the output was set */
	/* Threads may write to the output through mappings: now, and when runs are merged. */
	bool maps_output, plans_mappings;

	struct run_list runs;     /* in the order of the input; their items are bytes */
	struct run_origin origin; /* of all runs together */
	size_t longest_nbytes;    /* of all lines, with the delimiter */

	struct line_key_buffer scratch[2];
	uint64_t n_lines_left;    /* lines that --limit still allows */
	uint64_t n_lines_skipped; /* before those of the shard, and not reached yet */
	uint64_t offset;          /* in the output */
	bool is_measuring;        /* nothing is written to the output */
	struct pending_line pending;
	uint64_t text_nbytes; /* of all lines that were read */
	struct record_totals totals;
	struct sort_summary summary;
};

static inline int line_sort_compare(struct line_sort *sort, struct line_view a, struct line_view b)
{
	return line_keys_compare(sort->keys, a, b, sort->scratch);
}

/* Return the line that begins there. */
static inline struct line_view line_sort_view(const struct line_sort *sort,
					      const unsigned char *line)
{
	return (struct line_view){ line, (size_t)(line_end(line, sort->keys->delimiter) - line) };
}

/* --- line_sort.c --- */

/*
 * Open a sort, and close it, also after an error of line_sort_open(). checkpoint: NULL: none; must
 * outlive the sort.
 */
int line_sort_open(const struct line_sort_params *params, struct line_checkpoint *checkpoint,
		   struct line_sort *ret_sort);
void line_sort_close(struct line_sort *sort);

/*
 * Choose the back end of a GPU if there is one and the input is large. With keys, part files or
 * shards a GPU is used only if the options demand it: when it is faster has not been measured.
 * *ret_backend: NULL: the CPU sorts.
 */
int line_sort_choose_gpu(const struct line_sort *sort, const struct backend **ret_backend);

/*
 * Read text to the block's memory, in which the first *n bytes are, until as much is there as can
 * be sorted, and at least min_nbytes if memory suffices. Returns 0 and the end of the last whole
 * line. *ret_at_end: nothing is left to read.
 */
int line_sort_read_chunk(struct line_sort *sort, size_t min_nbytes, size_t *n,
			 unsigned char **ret_end, bool *ret_at_end);

/*
 * Report that a line is too long. context: the sort. path: NULL: unknown. line: its label.
 * key_nbytes: of its key, if that must fit in memory with it. Returns -E2BIG.
 */
int line_sort_fail_long_line(const void *context, const char *path, const char *line, size_t nbytes,
			     size_t key_nbytes);

/*
 * Refuse a line of which nbytes were read last. Read on to its end, unless that is very far, for
 * its length. Overwrites the text. Returns a negative errno after a message.
 */
int line_sort_fail_unfinished_line(struct line_sort *sort, size_t nbytes);

/* Wake up a thread that waits for a pipe, because the sort is cancelled. context: the sort. */
void line_sort_stop_waiting(void *context);

/*
 * Drop the first line of the sorted block if it has the key of `last` (-u), add the dropped lines
 * to the totals, and cut the block at the limit. With --count, only count lines with equal keys if
 * the block goes to the output.
 */
int line_sort_reduce_block(struct line_sort *sort, struct line_view last, bool is_output);

/*
 * Return the end of the last whole line of a text; the text's beginning if there is none. If the
 * text begins with a line, that is the beginning of the line that holds the byte at `end`.
 */
unsigned char *line_sort_last_end(const struct line_sort *sort, unsigned char *begin,
				  const unsigned char *end);

/*
 * Return the end of the lines of [begin, end) that come before the bound, or equal it (if
 * after_equals).
 */
unsigned char *line_sort_find_cut(struct line_sort *sort, unsigned char *begin, unsigned char *end,
				  struct line_view bound, bool after_equals);

/* Returns 0, or -ENOMEM after a message if the key of a line could not be made. */
int line_sort_check_scratch(const struct line_sort *sort);

/* --- line_runs.c --- */

/* Return the temporary space that nbytes of lines take in uncompressed runs. */
uint64_t line_runs_stored_nbytes(uint64_t nbytes);

/*
 * Return the space for what a rank stores, whose runs take nbytes: all runs and, if there is any,
 * the single run that they are merged into, and the compressed output.
 */
uint64_t line_runs_rank_nbytes(const struct line_sort *sort, uint64_t nbytes);

/*
 * A line may take this part of the memory. A merge needs room for the longest line of two runs, and
 * for elements and keys. If keys need more, the merge takes fewer lines at a time; that of a single
 * line is not stored.
 */
enum { MERGE_SHARE = 4 };

/*
 * Return the least memory limit, in whole MiB, from which on lines of line_nbytes bytes can be
 * merged.
 */
uint64_t line_sort_find_memory(const struct line_sort *sort, size_t line_nbytes);

/* Return -E2BIG after a message if a line of any rank or process is too long to be merged. */
int line_runs_check_longest(const struct line_sort *sort);

int line_run_open(struct line_sort *sort, struct line_run_writer *ret_writer);

/* Write the sorted block to a run. *ret_nbytes: of its lines. */
int line_run_write_block(struct line_sort *sort, struct line_run_writer *writer,
			 uint64_t *ret_nbytes);

/*
 * Finish a run, and replace n runs from `first` on by it; n = 0: append it. Its origin is the sum
 * of the origins of these runs and of the text that was read since the last run was finished.
 */
int line_run_finish(struct line_sort *sort, const struct line_run_writer *writer, size_t first,
		    size_t n);

/*
 * Open the space for runs, unless it is open, and check that they fit, as far as it is known.
 * Returns 0, or -ENOSPC after a message.
 */
int line_runs_open_spill(struct line_sort *sort);

/* --- line_checkpoint.c --- */

/* A run of lines as a run of records: one sequence of bytes. */
extern const struct layout line_text_layout;

/*
 * Open the checkpoint of --checkpoint (of ranks: a collective), and close a zeroed or opened one.
 * is_committed: the output is complete; remove the checkpoint.
 */
int line_checkpoint_open(const struct line_sort_params *params,
			 struct line_checkpoint *ret_checkpoint);
void line_checkpoint_close(struct line_checkpoint *checkpoint, bool is_committed);

/* Store the runs of a sort in a checkpoint. */
void line_checkpoint_attach(struct line_checkpoint *checkpoint, struct line_sort *sort);

/* Restore the runs of an earlier process, and skip their text in the input. */
int line_checkpoint_restore(struct line_sort *sort);

/* --- line_merge.c --- */

/* Return how many runs can be merged at once, if no line is longer than those before. */
size_t line_merge_max_runs(const struct line_sort *sort);

/* Return how many passes over all runs reduce them to n. */
unsigned line_merge_count_passes(uint64_t n_runs, uint64_t n);

/* Merge all runs into the output, in several passes if memory is small. */
int line_merge_all(struct line_sort *sort);

/* --- line_output.c --- */

/* Open the output, of a size that is not known yet. */
int line_output_open(struct line_sort *sort);

/*
 * Check the space for the output, if its size can be known before anything is read. Returns 0, or
 * -ENOSPC or -EFBIG after a message.
 */
int line_output_check_space(struct line_sort *sort);

/* Return how the output should use the page cache. The device is open. */
enum cache_policy line_output_cache_policy(const struct line_sort *sort);

/*
 * Set the number of lines and what this process writes at most, and write the header. Before the
 * first block.
 */
int line_output_begin(struct line_sort *sort, const struct line_extent *extent, uint64_t n_lines);

/*
 * Return whether runs must be merged into one before the first line is written. Only a single run
 * tells how many lines -u leaves; and ranks measure their lines with --count, --split and a limit.
 */
bool line_output_needs_single_run(const struct line_sort *sort);

/* Return whether the lines of that run must be counted when it is written. */
bool line_output_needs_n_lines(const struct line_sort *sort);

/* Allocate the pages of the output while a GPU starts and sorts, if that is likely to pay. */
void line_output_start_prefault(struct line_sort *sort);

/* Return the number of lines of the sorted block, or of the sorted text on the device. */
uint64_t line_sort_n_lines(const struct line_sort *sort);

/* Add up the bytes of these lines. */
int line_sort_measure_block(struct line_sort *sort, uint64_t *ret_nbytes);

/* Write these lines. *ret_nbytes and *ret_digest: of them; ret_digest may be NULL. */
int line_sort_write_block(struct line_sort *sort, const struct line_sink *sink,
			  uint64_t *ret_nbytes, struct digest *ret_digest);

/* Write the sorted block to the output. *ret_nbytes: of its lines. */
int line_output_write_block(struct line_sort *sort, uint64_t *ret_nbytes);

/* After all blocks: write the line that was held back. */
int line_output_finish(struct line_sort *sort);

/* Commit the output after success (r == 0), else abort it. Returns r or the error of that. */
int line_output_close(struct line_sort *sort, int r);

/*
 * Part files: divide n_lines among the files, before the first block. This process writes lines
 * from n_before on.
 */
int line_part_files_begin(struct line_sort *sort, uint64_t n_lines, uint64_t n_before);

/* Part files of ranks: return what was measured since the files were begun. */
struct line_extent line_part_files_extent(const struct line_sort *sort);

/*
 * Ranks, collective: the partition is written. Exchange stripes, and check its place in the output.
 */
int line_output_finish_ranks(struct line_sort *sort);

/* --- line_ranks.c --- */

/*
 * Collectives, called in this order, unless they say otherwise. One rank reports an error; then
 * comm_abort() ends all. After an error line_ranks_abandon() is due. line_ranks_close() is always
 * due, when sort.runs are closed.
 */

/* Not a collective: open a sort without a share, or refuse what several ranks do not support. */
int line_ranks_open_local(const struct line_sort_params *params, struct line_sort *ret_sort);

/* Open the sort of each rank and its checkpoint, if any, and give it a share of the input. */
int line_ranks_open(const struct line_sort_params *params, struct line_checkpoint *checkpoint,
		    struct line_sort *ret_sort);

/* Take samples of restored runs, and report the runs of all ranks. */
int line_ranks_resume(struct line_sort *sort);

/*
 * A check: find the first disorder of all ranks from those that each has found. Only the rank that
 * has found it keeps the line.
 */
int line_ranks_agree_disorder(const struct line_sort *sort, struct line_disorder *disorder);

/*
 * Not collective: begin to take samples of run number `run` of nbytes, from which the splitters are
 * chosen; and take those at nbytes from `offset` of this run on. Any number of threads may take
 * samples of a run, in any order.
 */
void line_ranks_begin_samples(struct line_sort *sort, size_t run, uint64_t nbytes);
void line_ranks_take_samples(struct line_sort *sort, uint64_t offset, const void *bytes,
			     size_t nbytes);

/* Replace the runs of this rank by the segments of its partition. */
int line_ranks_exchange_runs(struct line_sort *sort);

/* Check that the lines of the sorted block belong to the partition. Not a collective. */
int line_ranks_check_block(struct line_sort *sort);

/* The partition is written: exchange stripes, and check the lines and inputs of all ranks. */
int line_ranks_finish(struct line_sort *sort);

/* Make sure that other ranks no longer read from this one. Not a collective. */
void line_ranks_abandon(const struct line_sort *sort, int r);
void line_ranks_close(struct line_sort *sort);
