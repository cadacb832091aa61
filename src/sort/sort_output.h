/*
 * sort_output.h - the output of a sort: an array of files
 *
 *	open -> choose_io_mode -> begin -> (sink) -> end -> commit
 *	                                              \-> abort
 *
 * File i holds the records [begin, end) of the sorted sequence. Usually there is one file
 * (io/output/output.h). With --split it is a directory of part files with a manifest
 * (io/output/part_files.h). Each file is
 *
 *	[ header ][ records ][ trailers, in the last file only ]
 *
 * The header is that of the first input, or one that contains the number of records. Trailers are
 * the incomplete last records that are kept, in the order of the inputs.
 *
 * For the merge the output is one sink: the position of a record in the sorted sequence determines
 * its file and its offset there. Only with -u and --split, where positions are known after the
 * merge, each partition of the merge becomes a file.
 *
 * Several ranks write to the same files. Each writes the records [out->begin, out->end).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "src/checkpoint/checkpoint.h"
#include "src/merge/sink.h"
#include "src/plan/job.h"
#include "src/sort/file_set.h"

/* A file. Members marked (L) are accessed with sort_output.lock held. */
struct output_file {
	uint64_t begin, end; /* its records; UINT64_MAX: not known yet */
	atomic_bool is_begun;
	int begin_error;                 /* (L) 0, or why it could not be begun */
	bool is_finished;                /* (L) or all own content is compressed */
	atomic_uint_least64_t n_records; /* written */
};

/* What the manifest lists about a part file. A zeroed struct describes an empty file. */
struct part_stats {
	struct digest digest;
	uint64_t first_end, last_end; /* end positions of the records with these keys; 0: none */
	char first[PART_MANIFEST_KEYS_TEXT_NBYTES], last[PART_MANIFEST_KEYS_TEXT_NBYTES];
};

struct part_stats_table {
	/* Set at creation. */
	bool needs_digest; /* the merge digests other bytes than those written */
	struct key *keys;  /* n_keys, at their offsets in the output; none: it is not sorted */
	uint32_t n_keys;

	pthread_mutex_t lock;
	struct part_stats *stats; /* of each file; with the lock */
};

struct sort_output {
	const struct sort_spec *spec;
	const struct job *job;
	struct output_header *header;          /* complete from begin on */
	const struct input_runs *merge_inputs; /* read in place of job->input; or NULL */
	struct checkpoint *checkpoint;         /* of the sort, or NULL */
	struct file_set set;
	struct output_file *files;          /* set.n */
	struct part_stats_table part_stats; /* only with --split */
	bool has_exact_sizes;               /* the files end where `end` says */
	bool may_drop;        /* the final merge drops duplicates (-u), so sizes are upper bounds */
	uint64_t n_expected;  /* records of all files; UINT64_MAX: not known before the merge */
	pthread_mutex_t lock; /* serialises the beginning of files */

	/* Of several ranks. */
	uint64_t begin, end;            /* the records that this rank writes */
	uint64_t *rank_begin;           /* by rank: `begin` of each, and the end; free() */
	enum cache_policy cache_policy; /* the ranks of a host use the same one */

	uint32_t n_partitions;             /* of the final merge; 0: not known yet */
	struct file_writer_stats io_stats; /* set when all is written */
};

/* --- size and header --- */

/*
 * Return the size that a single file would have, or OUTPUT_SIZE_UNKNOWN if it is not known before
 * the end.
 */
uint64_t sort_output_expected_nbytes(const struct sort_spec *spec, const struct job *job);

/* Return the memory that each of several files takes. */
uint64_t sort_output_file_memory_nbytes(const struct layout *layout);

/* Check that files of this size are possible. Returns 0 or -EFBIG. */
int sort_output_check_size(const struct sort_spec *spec, const struct job *job);

/* Return the size of header and trailers. The total size of `input` must be known. */
uint64_t sort_output_framing_nbytes(const struct input *input, uint64_t header_nbytes);

/*
 * Make the header of the output of a resolved spec, as far as it is known. It is final once the
 * inputs have been read.
 */
int sort_output_make_header(const struct sort_spec *spec, const struct layout *layout,
			    const struct input *input, struct output_header *ret_header);

/*
 * Return whether the number of records must be known before the final merge: -u drops some, and the
 * output, which begins with their number, is written in order.
 */
bool sort_output_needs_count(const struct sort_spec *spec, const struct output_header *header,
			     bool is_ordered);

/* --- opening --- */

/*
 * Open the output of a job whose inputs are open. `header` is completed by sort_output_begin().
 * `checkpoint` may be NULL. All arguments must outlive the output. Call sort_output_abort() also
 * after a failure.
 */
int sort_output_open(const struct sort_spec *spec, const struct job *job,
		     struct output_header *header, struct checkpoint *checkpoint,
		     struct sort_output *out);

/* Return whether the output is a directory of part files. */
static inline bool sort_output_is_split(const struct sort_output *out)
{
	return out->spec->n_part_files > 0;
}

/* Return the name of the output for messages. */
const char *sort_output_name(const struct sort_output *out);

/* Return whether the output must be written in order. */
bool sort_output_is_ordered(const struct sort_output *out);

/*
 * Let idle CPUs prefault the files while a device starts, if the files are large and there is
 * enough free memory and disk space.
 */
void sort_output_start_prefault(struct sort_output *out);
void sort_output_stop_prefault(struct sort_output *out);

/* Return how the planned job should use the page cache for the output. */
enum cache_policy sort_output_cache_policy(const struct sort_output *out);

/* Write the files by this policy. */
void sort_output_choose_io_mode(struct sort_output *out, enum cache_policy policy);

/* Choose again if the size was not known before all runs were there, which make nbytes. */
void sort_output_rechoose_io_mode(struct sort_output *out, uint64_t nbytes);

/* --- writing --- */

/*
 * Begin the final merge of n_records records: complete the header, and place the files.
 * merge_inputs: read in place of job->input; or NULL.
 */
int sort_output_begin(struct sort_output *out, const struct input_runs *merge_inputs,
		      uint64_t n_records);

/* End the merge, which has written n_records records on all ranks. */
int sort_output_end(struct sort_output *out, uint64_t n_records);

/* Return a sink that writes the merged records. Its context is the output. */
struct sink sort_output_sink(struct sort_output *out);

/*
 * Read back the records (a verify_read_fn), or verify header and trailers. Both are called after
 * sort_output_end(). They return -ESPIPE without a message if the output cannot be read, and -EIO
 * if the framing is not what was written.
 */
int sort_output_read_at(void *context, uint64_t position, void *buffer, size_t nbytes);
int sort_output_verify_framing(const struct sort_output *out);

/* Report that the output did not verify; returns -EIO. */
int sort_output_fail_verify(const char *name);

/* Report -ESPIPE, which reading back returns without a message. Returns r. */
int sort_output_fail_read_back(int r, const char *name);

/* Commit the output, after checking that the inputs have not changed. */
int sort_output_commit(struct sort_output *out);

/* Remove files that are not committed, and free the output. The older output stays. */
void sort_output_abort(struct sort_output *out);

/* --- several ranks --- */

/*
 * Set where files that end at keys begin: set.n + 1 positions. Called before
 * sort_output_begin().
 */
void sort_output_place_part_files(struct sort_output *out, const uint64_t *part_bounds);

/*
 * Collective, after all ranks have merged: exchange the bytes of shared stripes and the statistics
 * of part files. n_total: records of all ranks. Then rank 0 calls sort_output_end() for all.
 */
int sort_output_sync_ranks(struct sort_output *out, uint64_t n_total);

/* Collective, as file_set_close_joined(). Then rank 0 calls sort_output_commit(). */
int sort_output_close_joined(struct sort_output *out);

/* ------------------------------------------------------------------------------------------------
 * Between the files of this module:
 *
 *	sort_output.c		opening, choosing the I/O mode, committing
 *	sort_output_files.c	header, records and statistics of each file
 *	sort_output_ranks.c	files that several ranks write, and the stripes of each rank
 */

/* --- sort_output_files.c --- */

/* Return the last file that begins at or before the position. Empty files precede it. */
uint32_t sort_output_find_file(const struct sort_output *out, uint64_t position);

/* Set the sizes of equal parts of n_records records, before sort_output_begin(). */
void sort_output_set_part_sizes(struct sort_output *out, uint64_t n_records);

/* Begin a file, once: place it and write its header. Thread-safe. */
int sort_output_begin_file(struct sort_output *out, uint32_t i);

/* Return how many records of the file this rank writes. */
uint64_t sort_output_count_local(const struct sort_output *out, const struct output_file *file);

void part_stats_close(struct part_stats_table *table);

/* Collective: combine the statistics of all ranks on each of them. */
int part_stats_gather(struct sort_output *out);

/* Make a manifest without names and sizes. Free it in any case. */
int part_stats_make_manifest(const struct sort_output *out, struct part_manifest *ret_manifest);

/* --- sort_output_ranks.c --- */

/* Open the part files in which this rank has records, and which rank 0 has created. */
int sort_output_open_shared_parts(struct sort_output *out);

/* Tell the set where the records of each rank are. The files are placed. */
int sort_output_place_ranks(struct sort_output *out);

/*
 * Set the size of a file before this rank writes to it, and preallocate it if that is possible
 * while others write.
 */
int sort_output_set_shared_size(struct sort_output *out, uint32_t i, uint64_t nbytes);
