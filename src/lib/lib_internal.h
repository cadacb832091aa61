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
 *	signal_hooks.c	what of the process it may use
 *	distributed.c	who sorts with it
 *	distributed_options.c	whether they are asked for the same
 *	distributed_trace.c	and when who did what
 */
#pragma once

#include <stdio.h>

#include "include/gsort.h"
#include "src/base/cancellation.h"
#include "src/base/rendezvous.h"
#include "src/base/quote.h"
#include "src/base/diagnostics.h"
#include "src/base/stats.h"
#include "src/lib/distributed.h"
#include "src/lib/signal_hooks.h"
#include "src/lib/report_outputs.h"
#include "src/options/hint_text.h"
#include "src/options/options.h"
#include "src/options/command_files.h"
#include "src/comm/rank_progress.h"
#include "src/sort/sort.h"

/* Of a text with the words of its hint around it. */
enum { TOLD_NBYTES = MESSAGE_NBYTES + 256 };

/* What a handle is used for, once it is. */
enum purpose { PURPOSE_SORT, PURPOSE_CHECK, PURPOSE_EXPLAIN };

struct gsort {
	/* What is asked for. */
	struct option_arguments arguments;
	struct options options;
	struct given *given_inputs; /* options.n_inputs: in the place of names, or not */
	struct given given_output;
	char **texts; /* n_texts, all that options and names point to */
	size_t n_texts;
	const char *output_name;       /* of what is given */
	struct gsort_process *process; /* lent; NULL: nothing is */
	struct ranks *ranks;           /* who sorts with it; NULL: nobody */

	/* Who is told. */
	struct messages messages; /* of the sort */
	struct messages refusals; /* of the calls */
	char text[TOLD_NBYTES];   /* room for what is said of the sort, one at a time, ... */
	char line[LEGIBLE_NBYTES(TOLD_NBYTES)];      /* ... and as it is told */
	char call_line[LEGIBLE_NBYTES(TOLD_NBYTES)]; /* the same of a call */
	pthread_mutex_t listening;                   /* while the listener is called */
	gsort_message_callback *listener;
	void *listener_context;
	gsort_progress_callback *watcher;
	void *watcher_context;
	unsigned watch_interval_ms;
	char *told; /* the last text that is the handle's */
	struct reports reports;

	/* The sort. */
	enum purpose purpose;
	const char *checker; /* what messages call who checks */
	bool names_disorder; /* that a check finds: it is told */
	bool has_begun;
	bool takes_puts, has_finished_puts;
	bool gives; /* the output is got */
	struct sort_spec spec;
	struct stats *stats;
	struct sort_facts facts;        /* once it has ended, if r is 0 */
	struct census *census;          /* of several ranks, at the first; NULL: there is none */
	uint64_t disorder;              /* then, of a check: as sort_check() says */
	uint64_t assumed_nbytes;        /* to be explained, ... */
	struct explanation explanation; /* ... as it was then */
	struct cancellation cancellation;
	struct handover in, out;
	pthread_t engine, watching;
	bool is_watched;

	pthread_mutex_t looking; /* while ranks are asked how far they are */
	/* Under that one. */
	struct news *news; /* of several ranks; NULL: there are none */

	pthread_mutex_t lock;
	pthread_cond_t ended;
	/* Under the lock. */
	bool has_ended;
	int r;
	char failure[LEGIBLE_NBYTES(TOLD_NBYTES)]; /* of the sort */

	/* The caller's: of what the last call that failed has returned. */
	char message[LEGIBLE_NBYTES(TOLD_NBYTES)];
};

/* --- api_handle.c --- */

/*
 * From here to told_leave() what is said is of this call. False if there is no handle, and nobody
 * to be told: the call is -EINVAL, and there is nothing to leave.
 */
bool told_enter(struct gsort *sort, struct messages **ret_before);

/* Returns r, which fail() and its like have returned. */
int told_leave(struct messages *before, int r);

/* 0, or -EINVAL after a message, if the pointer of that name is NULL. */
int check_pointer(const void *pointer, const char *name);

/* 0, or -EBUSY after a message: it is too late to be told what is called `name`. */
int check_early(const struct gsort *sort, const char *name);

/* A copy that lives as long as the handle. 0, or -ENOMEM after a message. */
int keep_text(struct gsort *sort, const char *text, const char **ret_kept);

/* Another input, in the end. name: kept. 0, or -ENOMEM after a message. */
int append_input(struct gsort *sort, const char *name, struct given given);

/* --- api_start.c --- */

/* What must not be two things. */
struct run_files begin_files(const struct gsort *sort);

/* Will anything be read but what is put? */
bool begin_has_inputs(const struct gsort *sort);

/*
 * Begin, unless it has begun already. takes_puts: more inputs than were added. Returns 0, or a
 * negative errno after a message; then it has not begun, and what was asked for is as it was.
 */
int begin(struct gsort *sort, enum purpose purpose, bool takes_puts);

/* Could it begin, as far as what is asked for tells? 0, or a negative errno after a message. */
int begin_try(struct gsort *sort, enum purpose purpose);

/* --- api_stream.c --- */

/* The engine's thread. */
void *engine_run(void *sort);

/* Until it has ended. What it has ended with, told. */
int engine_wait(struct gsort *sort);

/* --- api_status.c --- */

/* Are given what is said of the sort, and of a call. */
messages_listener told_hear_sort, told_hear_call;

/* What the sort has failed with is told now. Under the lock; the caller's thread. */
void told_failure(struct gsort *sort);

/* Has it ended well? */
bool told_success(struct gsort *sort);

/* What write() writes, as the handle's text. 0, or a negative errno after a message. */
typedef int told_writer(const struct gsort *sort, FILE *stream);
int told_text(struct gsort *sort, told_writer *write, const char **ret_text);

/* As much of a struct as the caller knows of; what we do not know is zeroed. */
void give_struct(void *to, size_t to_nbytes, const void *from, size_t from_nbytes);

/* Call the watcher until the sort has ended; a thread's. */
void *told_watch(void *argument);
