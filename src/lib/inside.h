/*
 * inside - a sort of the library, as the files of src/lib/ share it
 *
 *	gsort.c		a handle, and what it is told before the sort begins
 *	engine.c	the sort, in threads of its own, and what is put and got
 *	told.c		what is told of it
 */
#pragma once

#include <stdio.h>

#include "include/gsort.h"
#include "src/base/cancellation.h"
#include "src/base/handover.h"
#include "src/base/legible.h"
#include "src/base/messages.h"
#include "src/base/stats.h"
#include "src/options/hint_words.h"
#include "src/options/options.h"
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
	const char *output_name; /* of what is given */

	/* Who is told. */
	struct messages messages; /* of the sort */
	struct messages refusals; /* of the calls */
	char text[TOLD_NBYTES];   /* room for what is said of the sort, one at a time, ... */
	char line[LEGIBLE_NBYTES(TOLD_NBYTES)]; /* ... and as it is told */
	gsort_listener *listener;
	void *listener_context;
	gsort_watcher *watcher;
	void *watcher_context;
	unsigned watch_interval_ms;
	char *json;

	/* The sort. */
	enum purpose purpose;
	bool has_begun;
	bool takes_puts, has_finished_puts;
	bool gives; /* the output is got */
	struct sort_spec spec;
	struct stats *stats;
	struct sort_facts facts;        /* once it has ended, if r is 0 */
	uint64_t disorder;              /* then, of a check: as sort_check() says */
	uint64_t assumed_nbytes;        /* to be explained, ... */
	struct explanation explanation; /* ... as it was then */
	struct cancellation cancellation;
	struct handover in, out;
	pthread_t engine, watching;
	bool is_watched;

	pthread_mutex_t lock;
	pthread_cond_t ended;
	/* Under the lock. */
	bool has_ended;
	int r;
	char failure[LEGIBLE_NBYTES(TOLD_NBYTES)]; /* of the sort */

	/* The caller's: of what the last call that failed has returned. */
	char message[LEGIBLE_NBYTES(TOLD_NBYTES)];
};

/* --- gsort.c --- */

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

/* --- told.c --- */

/* Are given what is said of the sort, and of a call. */
messages_listener told_hear_sort, told_hear_call;

/* What the sort has failed with is told now. Under the lock; the caller's thread. */
void told_failure(struct gsort *sort);

/* What write() writes, as the handle's text; NULL: there is no memory. */
const char *told_json(struct gsort *sort, void (*write)(const struct gsort *sort, FILE *stream));

/* Call the watcher until the sort has ended; a thread's. */
void *told_watch(void *argument);
