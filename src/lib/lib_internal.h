/*
 * lib_internal.h - the handle of include/gsort.h, shared by the files of src/lib/
 *
 *	api_handle.c		the handle, its options, inputs and output
 *	api_records.c		sorts of records
 *	api_lines.c		sorts of lines: the option "lines"
 *	api_start.c		from options to a running sort, check or plan
 *	api_stream.c		the sort's threads; gsort_put(), gsort_get(), gsort_run()
 *	api_status.c		messages, progress, statistics, report files
 *	api_distributed.c	sorts of several ranks
 *	process_hooks.c		what a process shares with its sorts
 */
#pragma once

#include <errno.h>
#include <stdio.h>

#include "include/gsort.h"
#include "src/base/cancellation.h"
#include "src/base/diagnostics.h"
#include "src/base/text.h"
#include "src/base/rendezvous.h"
#include "src/comm/rank_progress.h"
#include "src/lib/process_hooks.h"
#include "src/options/options.h"
#include "src/report/reports.h"
#include "src/sort/sort.h"

/* A handle does one operation. */
enum api_operation { API_SORT, API_CHECK, API_EXPLAIN };
enum progress_end { PROGRESS_CONTINUES, PROGRESS_SUCCEEDED, PROGRESS_FAILED };

/*
 * What a handle sorts: records (api_records.c) or, after the option "lines", lines of text
 * (api_lines.c). Functions return 0 or a negative errno (reported).
 */
struct api_engine {
	const struct option_table *option_table;
	const char *option_kind; /* follows the name of an unknown option in messages */
	bool follows_gnu_sort;   /* in which files a program may use twice, and what it prints */
	/* Complete the options when inputs and output are known. */
	int (*finalize)(struct gsort *sort);
	/* Run the operation in the thread of the sort. */
	int (*run)(struct gsort *sort);
};

struct gsort {
	/* What is requested. */
	const struct api_engine *engine;
	struct option_arguments arguments;
	struct options options;
	bool writes_to_stdout;            /* if there is no other output */
	struct endpoint *input_endpoints; /* of each input; options.spec points to it */
	char **strings;                   /* n_strings; options point to them */
	size_t n_strings;
	struct gsort_process *process; /* NULL: not shared */
	struct api_lines *lines;       /* state of the engine of lines; NULL: records */
	struct comm *comm;             /* the ranks; NULL: a single process */

	/* Messages and callbacks. */
	struct diagnostics sort_messages;              /* of the sort's threads */
	struct diagnostics call_messages;              /* of API calls */
	char sort_line[QUOTED_NBYTES(MESSAGE_NBYTES)]; /* current message of the sort, quoted */
	char call_line[QUOTED_NBYTES(MESSAGE_NBYTES)]; /* current message of a call, quoted */
	pthread_mutex_t message_callback_lock;         /* held during message_callback */
	gsort_message_callback *message_callback;
	void *message_context;
	gsort_progress_callback *progress_callback;
	void *progress_context;
	unsigned progress_interval_ms;
	char *returned_text; /* the last text that the handle owns */
	struct reports reports;

	/* The operation; constant once has_started. */
	enum api_operation operation;
	const char *check_label; /* name of a check in messages */
	bool reports_disorder;   /* a check prints a notice about the first disorder */
	bool has_started;
	bool drops_warnings; /* they would be among the records */
	bool accepts_puts, has_finished_puts;
	uint64_t n_put_nbytes;
	bool returns_output; /* gsort_get() returns the output */
	uint64_t assumed_nbytes;
	struct stats *stats;
	struct cancellation cancellation;
	struct rendezvous put_channel, get_channel;
	pthread_t sort_thread, progress_thread;
	bool has_progress_thread; /* constant while sort_thread runs */

	/* Results; valid once has_ended, if result is 0. */
	struct sort_summary summary;
	struct rank_stats *rank_stats; /* on the first of several ranks; else NULL */
	uint64_t disorder;             /* of a check: as sort_check() */
	struct explanation explanation;

	pthread_mutex_t progress_lock;       /* held while other ranks are asked */
	struct rank_progress *rank_progress; /* under progress_lock; NULL: one rank */

	pthread_mutex_t lock;
	pthread_cond_t ended_cond; /* has_ended or progress_end has changed */
	/* Under lock. */
	enum progress_end progress_end;
	bool has_ended;
	int result;
	char failure_text[QUOTED_NBYTES(MESSAGE_NBYTES)]; /* error of the sort */

	/* The caller's thread: the error of the last call; "": it succeeded. */
	char last_error[QUOTED_NBYTES(MESSAGE_NBYTES)];
};

/* --- api_handle.c --- */

/*
 * Begin an API call: until api_end_call(), messages of this thread are those of the call. Returns
 * false for a NULL handle: then the call returns -EINVAL without api_end_call().
 */
bool api_begin_call(struct gsort *sort, struct diagnostics **ret_saved);

/* End the call. Returns r. */
int api_end_call(struct diagnostics *saved, int r);

/*
 * Evaluate an expression between api_begin_call() and api_end_call(). The value of the macro is
 * that of the expression. With a NULL handle the expression is not evaluated, and it is -EINVAL.
 */
#define API_CALL(sort, result)                                                                     \
	({                                                                                         \
		struct diagnostics *call_saved;                                                    \
                                                                                                   \
		api_begin_call(sort, &call_saved) ? api_end_call(call_saved, result) : -EINVAL;    \
	})

/* Return 0, or -EINVAL (reported) if the pointer is NULL. */
int api_check_pointer(const void *pointer, const char *name);

/* Return 0, or -EBUSY (reported) if the sort has begun. */
int api_check_not_started(const struct gsort *sort, const char *name);

/* Append an input. `name` must live as long as the handle. Returns 0 or -ENOMEM (reported). */
int api_append_input(struct gsort *sort, const char *name, struct endpoint endpoint);

/* Copy the known beginning of a struct; zero what the source lacks. */
void copy_struct_prefix(void *destination, size_t destination_nbytes, const void *source,
			size_t source_nbytes);

/* --- api_records.c --- */

extern const struct api_engine api_record_engine;

/* --- api_lines.c --- */

/* The option that switches a handle to lines. */
#define LINES_OPTION "lines"

/* Switch the handle to lines. Returns 0 or a negative errno (reported). */
int api_lines_enable(struct gsort *sort, const char *value);

void api_lines_free(struct api_lines *lines);

/* --- api_start.c --- */

/* The library does not read $TMPDIR. */
extern const char api_default_temp_dir[];

/* Check the roles of all files. Returns 0 or a negative errno (reported). */
int api_check_files(const struct gsort *sort);

/* Return whether inputs other than gsort_put() exist. */
bool api_has_inputs(const struct gsort *sort);

/*
 * Begin the operation unless it has begun. accepts_puts: gsort_put() follows. Returns 0 or a
 * negative errno (reported); an error leaves the handle unchanged.
 */
int api_start(struct gsort *sort, enum api_operation operation, bool accepts_puts);

/* Check the request without beginning. Returns 0 or a negative errno (reported). */
int api_start_check(struct gsort *sort, enum api_operation operation);

/* --- api_stream.c --- */

/* Run the operation: the function of its thread. */
void *api_sort_thread(void *sort);

/* Wait for the end of the operation. Returns its result; its error becomes that of the call. */
int api_wait(struct gsort *sort);

/* --- api_status.c --- */

message_callback api_on_sort_message, api_on_call_message;

/*
 * Make the error of the sort the error of the call. Requires the lock; called by the caller's
 * thread.
 */
void api_set_failure(struct gsort *sort);

/* Replace the returned text by the output of write(). Returns 0 or a negative errno (reported). */
typedef int api_text_writer(const struct gsort *sort, FILE *stream);
int api_make_text(struct gsort *sort, api_text_writer *write, const char **ret_text);

/* Start the thread that calls the progress callback, if there is one. */
void api_start_progress_thread(struct gsort *sort);

/* End the thread. If the operation succeeded (result 0), this calls the callback once more. */
void api_end_progress_thread(struct gsort *sort, int result);

/* Return whether any report, or the table of --stats, is requested. */
bool reports_are_requested(const struct options *options);

/*
 * --- api_distributed.c ---
 *
 * Without ranks these functions do nothing, unless they say more.
 */

/* Require that a list of names ("-": standard input) is a regular file, which every rank reads. */
int api_distributed_check_files0(const struct gsort *sort, const char *path);

/*
 * For --explain --ranks=N: reject options that gsort-mpi does not support, and plan for CPUs,
 * with the memory and CPUs of this host unless -S and --parallel were given.
 * Without --ranks: reject --assume-rates.
 */
int api_distributed_check_planned(const struct gsort *sort, struct sort_spec *spec);

/* After --explain --ranks=N: print a notice about memory and CPUs that were assumed. */
void api_distributed_notice_assumed(const struct gsort *sort);

/* Return whether this process writes the reports: it is the first rank, or the only process. */
bool api_is_reporting_rank(const struct gsort *sort);

/* Let the first rank query the progress of the others, or stop that. Requires sort->stats. */
int api_distributed_open_progress(struct gsort *sort);
void api_distributed_close_progress(struct gsort *sort);

/* Collective, after success: collect statistics and traces of all ranks on the first one. */
int api_distributed_gather_stats(struct gsort *sort);
