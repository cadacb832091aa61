/*
 * sort_output - what comes of a sort: records that are written in any order, files when all is checked
 *
 *	open -> choose_way -> begin -> (sink) -> end -> commit
 *	                                           \-> abort
 *
 * It is one file (io/output/output.h), and what a checkpoint knows of it; or several, each with a
 * part of the records, and a list of them (io/output/part_files.h). To the merge it is one sink: a
 * record's place in the whole says in which file it goes, and where. Only with -u, when the places
 * of parts are not known before all is merged, each range of the merge is a part.
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
struct result_file {
	uint64_t begin, end; /* where it is not known yet: all of them */
	atomic_bool is_begun;
	int r;                                /* under the lock: why it could not be begun, or 0 */
	bool is_settled;                      /* under the lock; or all own content compressed */
	atomic_uint_least64_t n_records;      /* written */
	atomic_uint_least64_t foreign_nbytes; /* and of other ranks' records, by this one */

	/* That several ranks compress; else zeroed: */
	struct frames *frames;  /* the own */
	struct zst_index index; /* of these, and then of all */
	uint64_t stored_nbytes; /* written to the file by this rank, once */
};

struct result {
	const struct sort_spec *spec;
	const struct job *job;
	const struct around *around;   /* from begin on */
	struct checkpoint *checkpoint; /* that keeps the output; NULL: none */
	struct output **outputs;       /* of the files, and of the list; each NULL: not any more */
	struct result_file *files;     /* n_files */
	uint32_t n_files;
	struct part_files *part_files; /* NULL: it is one file, and has none of what follows */
	struct part_notes notes;
	bool is_exact;        /* files end where it was known before that they would */
	bool drops;           /* the final merge may (-u): how many stay shows at its end */
	uint64_t n_due;       /* records of all files; UINT64_MAX: not known before */
	pthread_mutex_t lock; /* while a file is begun */

	/* Of several ranks: */
	uint64_t begin, end; /* of the whole, what the own merge writes: [begin, end) */
	/* Of several ranks, by rank, for free(): the same; and what only one of them writes to. */
	uint64_t *begins, stripe_nbytes;
	struct kept_edge *kept;       /* under the lock: what others write */
	bool is_framed;               /* all compress: then a stripe is a frame, ... */
	uint64_t file_stripe_nbytes;  /* ... and this one of the file */
	bool frames_are_made;         /* by all */
	enum page_cache_use use;      /* that ranks of this machine have chosen together */
	bool is_joined;               /* another rank has begun it, and gives it its name */
	uint64_t shared_nbytes;       /* of the one file, at most; or OUTPUT_SIZE_UNKNOWN */
	struct leftovers_owner owner; /* of what a killed start of the same sort has left */
	struct shared_name {
		char name[LEFTOVERS_NAME_SIZE];
		char reserves; /* does its file system? As a number */
	} * names;    /* n_files, by which they are joined; NULL: none */
	char **paths; /* n_files, of parts that are, or NULL; NULL: none */

	bool is_input;                /* it takes the place of one */
	bool is_committed;            /* it has its name */
	uint32_t n_ranges;            /* that it was merged in; 0: none yet */
	struct file_writer_ways ways; /* that it was written in, once all is */
};

/*
 * The records that will be written, in bytes, and what is around them, as one file has it;
 * OUTPUT_SIZE_UNKNOWN if that is not known before the end.
 */
uint64_t result_expected_nbytes(const struct sort_spec *spec, const struct job *job);

/* What each of several files takes of the memory. */
uint64_t result_file_nbytes(const struct layout *layout);

/* Could a file hold them? 0, or -EFBIG after a message. */
int result_check_size(const struct sort_spec *spec, const struct job *job);

/*
 * Open the output of a job whose inputs are open; checkpoint: of the sort; NULL: none. All must
 * outlive it. Returns 0, or a negative errno after a message; result_abort() is due in both cases.
 */
int result_open(const struct sort_spec *spec, const struct job *job, struct checkpoint *checkpoint,
		struct result *result);

/* Is it several files? */
static inline bool result_has_parts(const struct result *result)
{
	return result->spec->n_part_files > 0;
}

/* The one file; NULL: not any more. */
struct output *result_output(const struct result *result);

/* What messages call it, and whether it is written in order. */
const char *result_name(const struct result *result);
bool result_is_ordered(const struct result *result);

/*
 * A device is about to be started, and host processors have nothing to do meanwhile: have them make
 * the files ready, if they are large, and memory and disk have room for them beside all else.
 */
void result_make_ready(struct result *result);

/* It cannot be started, and processors and memory are wanted for sorting. */
void result_stop_readying(struct result *result);

/*
 * What it may do to the page cache, when the job is planned, and have it go that way to where it is
 * to lie; or, if only then it is known how large it will be, when all runs are there, which make
 * nbytes.
 */
enum page_cache_use result_use(const struct result *result);
void result_choose_way(struct result *result, enum page_cache_use use);
void result_choose_way_late(struct result *result, uint64_t nbytes);

/*
 * All runs are there, of so many records together: write what is in front of them. And behind the
 * last of them, when n are written. Both return 0, or a negative errno after a message.
 */
int result_begin(struct result *result, const struct around *around, uint64_t n_records);
int result_end(struct result *result, uint64_t n_records);

/* For the final merge: its records go into the output. The result's. */
struct sink result_sink(struct result *result);

/*
 * After result_end(): the records, one after the other, as verify_read_fn; context: the result.
 * And: is what is around them what was written? 0, or -EIO or another negative errno after a
 * message; both -ESPIPE without one if the output cannot be read.
 */
int result_read_at(void *context, uint64_t position, void *buffer, size_t nbytes);
int result_verify_around(const struct result *result);

/*
 * All is written and checked: give it its name, if the inputs are still what they were. Returns 0,
 * or a negative errno after a message.
 */
int result_commit(struct result *result);

/*
 * Of several ranks: parts that end at keys begin there, n_files + 1 numbers of records. Before
 * result_begin().
 */
void result_place_parts(struct result *result, const uint64_t *begins);

/* Every rank calls it before any begins: what only one of them writes to. Returns as the next. */
int result_agree_stripe(struct result *result);

/*
 * All ranks call it when they have written their ranges, which are n_all records: what they know of
 * them comes together. Before result_end(), which is then told of all. 0, or a negative errno after
 * a message.
 */
int result_meet(struct result *result, uint64_t n_all);

/*
 * In the place of result_commit(), for a rank that has joined: its range is written, and goes to
 * stable storage if that is asked for. The same returns.
 */
int result_leave(struct result *result);

/* Leave what was there before, unless it is committed. */
void result_abort(struct result *result);

/* Behind that: what was to be passed on to other ranks. Nothing of it may be under way. */
void result_forget_edges(struct result *result);
