/*
 * lib_internal - a sort of the library, as the files of src/lib/ share it
 *
 *	api_handle.c		a handle, and what it is told before the sort begins
 *	api_options.c		options, by name
 *	api_start.c		how that becomes a sort
 *	api_stream.c	the sort, in threads of its own, and what is put and got
 *	api_check_explain.c	a check, or an explanation, in its place
 *	api_status.c		what is told of it
 *	report_outputs.c	in files
 *	process_hooks.c	what of the process it may use
 *	api_distributed.c	who sorts with it
 *	api_distributed_options.c	whether they are asked for the same
 *	api_distributed_trace.c	and when who did what
 */
#pragma once

#include <stdio.h>

#include "include/gsort.h"
#include "src/base/cancellation.h"
#include "src/base/rendezvous.h"
#include "src/base/text.h"
#include "src/base/diagnostics.h"
#include "src/base/stats.h"
#include "src/lib/api_distributed.h"
#include "src/lib/process_hooks.h"
#include "src/lib/report_outputs.h"
#include "src/options/options.h"
#include "src/options/check_file_roles.h"
#include "src/comm/rank_progress.h"
#include "src/sort/sort.h"

/* What a handle is used for, once it is. */
enum api_operation { API_SORT, API_CHECK, API_EXPLAIN };

struct gsort {
	/* What is asked for. */
	struct option_arguments arguments;
	struct options options;
	struct endpoint *input_endpoints; /* options.n_inputs: in the place of names, or not */
	struct endpoint output_endpoint;
	char **strings; /* n_strings, all that options and names point to */
	size_t n_strings;
	const char *output_label;      /* of what is given */
	struct gsort_process *process; /* lent; NULL: nothing is */
	struct comm *comm;             /* who sorts with it; NULL: nobody */

	/* Who is told. */
	struct diagnostics sort_messages;              /* of the sort */
	struct diagnostics call_messages;              /* of the calls */
	char sort_line[QUOTED_NBYTES(MESSAGE_NBYTES)]; /* the current message of the sort, quoted */
	char call_line[QUOTED_NBYTES(MESSAGE_NBYTES)]; /* the same of a call */
	pthread_mutex_t message_callback_lock;         /* while the listener is called */
	gsort_message_callback *message_callback;
	void *message_context;
	gsort_progress_callback *progress_callback;
	void *progress_context;
	unsigned progress_interval_ms;
	char *returned_text; /* the last text that is the handle's */
	struct reports reports;

	/* The sort. */
	enum api_operation operation;
	const char *check_label; /* what messages call who checks */
	bool reports_disorder;   /* that a check finds: it is told */
	bool has_started;
	bool accepts_puts, has_finished_puts;
	uint64_t n_put_nbytes;
	bool returns_output; /* the output is got */
	struct sort_spec spec;
	struct stats *stats;
	struct sort_summary summary;    /* once it has ended, if r is 0 */
	struct rank_stats *rank_stats;  /* of several ranks, at the first; NULL: there is none */
	uint64_t disorder;              /* then, of a check: as sort_check() says */
	uint64_t assumed_nbytes;        /* to be explained, ... */
	struct explanation explanation; /* ... as it was then */
	struct cancellation cancellation;
	struct rendezvous put_channel, get_channel;
	pthread_t sort_thread, progress_thread;
	bool has_progress_thread;

	pthread_mutex_t progress_lock; /* while ranks are asked how far they are */
	/* Under that one. */
	struct rank_progress *rank_progress; /* of several ranks; NULL: there are none */

	pthread_mutex_t lock;
	pthread_cond_t ended_cond;
	/* Under the lock. */
	bool has_ended;
	int result;
	char failure_text[QUOTED_NBYTES(MESSAGE_NBYTES)]; /* of the sort */

	/* The caller's: the error of the last call; "": it succeeded. */
	char last_error[QUOTED_NBYTES(MESSAGE_NBYTES)];
};

/* --- api_handle.c --- */

/*
 * From here to api_end_call() what is said is of this call. False if there is no handle, and nobody
 * to be told: the call is -EINVAL, and there is nothing to leave.
 */
bool api_begin_call(struct gsort *sort, struct diagnostics **ret_saved);

/* Returns r, which fail() and its like have returned. */
int api_end_call(struct diagnostics *saved, int r);

/* 0, or -EINVAL after a message, if the pointer of that name is NULL. */
int api_check_pointer(const void *pointer, const char *name);

/* 0, or -EBUSY after a message: it is too late to be told what is called `name`. */
int api_check_not_started(const struct gsort *sort, const char *name);

/* A copy that lives as long as the handle. 0, or -ENOMEM after a message. */
int api_copy_string(struct gsort *sort, const char *text, const char **ret_copy);

/* Another input, in the end. name: kept. 0, or -ENOMEM after a message. */
int api_append_input(struct gsort *sort, const char *name, struct endpoint endpoint);

/* --- api_start.c --- */

/* What must not be two things. */
struct command_files api_command_files(const struct gsort *sort);

/* Will anything be read but what is put? */
bool api_has_inputs(const struct gsort *sort);

/*
 * Begin, unless it has begun already. accepts_puts: more inputs than were added. Returns 0, or a
 * negative errno after a message; then it has not begun, and what was asked for is as it was.
 */
int api_start(struct gsort *sort, enum api_operation operation, bool accepts_puts);

/* Could it begin, as far as what is asked for tells? 0, or a negative errno after a message. */
int api_start_check(struct gsort *sort, enum api_operation operation);

/* --- api_stream.c --- */

/* The engine's thread. */
void *api_sort_thread(void *sort);

/* Until it has ended. What it has ended with, told. */
int api_wait(struct gsort *sort);

/* --- api_status.c --- */

/* Are given what is said of the sort, and of a call. */
message_callback on_sort_message, on_call_message;

/* What the sort has failed with is told now. Under the lock; the caller's thread. */
void api_set_failure(struct gsort *sort);

/* Has it ended well? */
bool api_has_succeeded(struct gsort *sort);

/* What write() writes, as the handle's text. 0, or a negative errno after a message. */
typedef int api_text_writer(const struct gsort *sort, FILE *stream);
int api_make_text(struct gsort *sort, api_text_writer *write, const char **ret_text);

/* As much of a struct as the caller knows of; what we do not know is zeroed. */
void copy_struct_prefix(void *destination, size_t destination_nbytes, const void *source,
			size_t source_nbytes);

/* Call the watcher until the sort has ended; a thread's. */
void *api_progress_thread(void *argument);
