/*
 * sort_output - what comes of a sort: records that are written in any order, files when all is
 * checked
 *
 *	open -> set_io_mode -> begin -> (sink) -> end -> commit
 *	                                           \-> abort
 *
 * It is one file (io/output/output.h), and what a checkpoint knows of it; or a directory of
 * several, each with a part of the records, and their manifest (io/output/part_files.h). To the
 * merge it is one sink: a record's place in the whole says in which file it goes, and where. Only
 * with -u, when the places of parts are not known before all is merged, each range of the merge is
 * a part.
 */
#pragma once

#include <stdatomic.h>

#include "io/output/orphans.h"
#include "io/output/output.h"
#include "io/output/part_files.h"
#include "src/checkpoint/checkpoint.h"
#include "src/exchange/collective_zst.h"
#include "src/merge/sink.h"
#include "src/plan/cache_policy.h"
#include "src/sort/output_framing.h"
#include "src/sort/part_stats.h"

/* Of the records of the whole, those of one file: [begin, end). */
struct output_file {
	uint64_t begin, end; /* where it is not known yet: all of them */
	atomic_bool is_begun;
	int begin_error;                      /* under the lock: why it could not be begun, or 0 */
	bool is_finished;                     /* under the lock; or all own content compressed */
	atomic_uint_least64_t n_records;      /* written */
	atomic_uint_least64_t foreign_nbytes; /* and of other ranks' records, by this one */

	/* That several ranks compress; else zeroed: */
	struct collective_zst *zst; /* the own */
	struct zst_index index;     /* of these, and then of all */
	uint64_t stored_nbytes;     /* written to the file by this rank, once */
};

struct sort_output {
	const struct sort_spec *spec;
	const struct job *job;
	const struct output_framing *framing; /* from begin on */
	struct checkpoint *checkpoint;        /* of the sort; NULL: none */
	struct output **outputs;   /* of the files, and of the manifest; each NULL: not any more */
	struct output_file *files; /* n_files */
	uint32_t n_files;
	struct part_files *part_files; /* NULL: it is one file, and has none of what follows */
	struct part_stats_table part_stats;
	bool has_exact_sizes; /* files end where it was known before that they would */
	bool may_drop;        /* the final merge may (-u): how many stay shows at its end */
	uint64_t n_expected;  /* records of all files; UINT64_MAX: not known before */
	pthread_mutex_t lock; /* while a file is begun */

	/* Of several ranks: */
	uint64_t begin, end; /* of the whole, what the own merge writes: [begin, end) */
	/* Of several ranks, by rank, for free(): the same; and what only one of them writes to. */
	uint64_t *rank_begin, stripe_nbytes;
	struct foreign_bytes *foreign;  /* under the lock: what others write */
	bool is_collective_zst;         /* all compress: then a stripe is a frame, ... */
	uint64_t file_stripe_nbytes;    /* ... and this one of the file */
	bool has_all_frames;            /* by all */
	enum cache_policy cache_policy; /* that ranks of this machine have chosen together */
	bool joined;                    /* another rank has begun it, and gives it its name */
	uint64_t shared_nbytes;         /* of the one file, at most; or OUTPUT_SIZE_UNKNOWN */
	struct orphan_owner owner;      /* of what a killed start of the same sort has left */
	struct shared_file_name {
		char name[TEMP_NAME_SIZE];
		char preallocates; /* does its file system? As a number */
	} * names; /* n_files, by which they are joined, and that of their directory; NULL: none */

	bool replaces_input;               /* it takes the place of one */
	bool is_committed;                 /* it has its name */
	uint32_t n_partitions;             /* that it was merged in; 0: none yet */
	struct file_writer_stats io_stats; /* that it was written in, once all is */
};

/*
 * The records that will be written, in bytes, and what is around them, as one file has it;
 * OUTPUT_SIZE_UNKNOWN if that is not known before the end.
 */
uint64_t sort_output_expected_nbytes(const struct sort_spec *spec, const struct job *job);

/* What each of several files takes of the memory. */
uint64_t sort_output_file_memory_nbytes(const struct layout *layout);

/* Could a file hold them? 0, or -EFBIG after a message. */
int sort_output_check_size(const struct sort_spec *spec, const struct job *job);

/*
 * Open the output of a job whose inputs are open; header: as far as it is known; checkpoint: of the
 * sort; NULL: none. All must outlive it. Returns 0, or a negative errno after a message;
 * sort_output_abort() is due in both cases.
 */
int sort_output_open(const struct sort_spec *spec, const struct job *job,
		     const struct output_header *header, struct checkpoint *checkpoint,
		     struct sort_output *out);

/* Is it several files? */
static inline bool sort_output_is_split(const struct sort_output *out)
{
	return out->spec->n_part_files > 0;
}

/* The one file; NULL: not any more. */
struct output *sort_output_single_file(const struct sort_output *out);

/* What messages call it, and whether it is written in order. */
const char *sort_output_name(const struct sort_output *out);
bool sort_output_is_ordered(const struct sort_output *out);

/*
 * A device is about to be started, and host processors have nothing to do meanwhile: have them make
 * the files ready, if they are large, and memory and disk have room for them beside all else.
 */
void sort_output_start_prefault(struct sort_output *out);

/* It cannot be started, and processors and memory are wanted for sorting. */
void sort_output_stop_prefault(struct sort_output *out);

/*
 * What it may do to the page cache, when the job is planned, and have it go that way to where it is
 * to lie; or, if only then it is known how large it will be, when all runs are there, which make
 * nbytes.
 */
enum cache_policy sort_output_cache_policy(const struct sort_output *out);
void sort_output_choose_io_mode(struct sort_output *out, enum cache_policy policy);
void sort_output_rechoose_io_mode(struct sort_output *out, uint64_t nbytes);

/*
 * All runs are there, of so many records together: write what is in front of them. And behind the
 * last of them, when n are written. Both return 0, or a negative errno after a message.
 */
int sort_output_begin(struct sort_output *out, const struct output_framing *framing,
		      uint64_t n_records);
int sort_output_end(struct sort_output *out, uint64_t n_records);

/* For the final merge: its records go into the output. The result's. */
struct sink sort_output_sink(struct sort_output *out);

/*
 * After sort_output_end(): the records, one after the other, as verify_read_fn; context: the
 * result. And: is what is around them what was written? 0, or -EIO or another negative errno
 * after a message; both -ESPIPE without one if the output cannot be read.
 */
int sort_output_read_at(void *context, uint64_t position, void *buffer, size_t nbytes);
int sort_output_verify_framing(const struct sort_output *out);

/*
 * All is written and checked: give it its name, if the inputs are still what they were. Returns 0,
 * or a negative errno after a message.
 */
int sort_output_commit(struct sort_output *out);

/*
 * Of several ranks: parts that end at keys begin there, n_files + 1 numbers of records. Before
 * sort_output_begin().
 */
void sort_output_place_part_files(struct sort_output *out, const uint64_t *part_bounds);

/* Every rank calls it before any begins: what only one of them writes to. Returns as the next. */
int sort_output_agree_stripe(struct sort_output *out);

/*
 * All ranks call it when they have written their ranges, which are fixture_n_keys records: what
 * they know of them comes together. Before sort_output_end(), which is then told of all. 0, or a
 * negative errno after a message.
 */
int sort_output_sync_ranks(struct sort_output *out, uint64_t n_total);

/*
 * In the place of sort_output_commit(), for a rank that has joined: its range is written, and
 * goes to stable storage if that is asked for. The same returns.
 */
int sort_output_close_shared(struct sort_output *out);

/* Leave what was there before, unless it is committed. */
void sort_output_abort(struct sort_output *out);

/* Behind that: what was to be passed on to other ranks. Nothing of it may be under way. */
void sort_output_drop_foreign(struct sort_output *out);
