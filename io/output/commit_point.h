/*
 * commit_point - from the moment an output gets its name no signal ends the process any more
 *
 * Whoever is told that a sort was killed takes its output for what it was before, and its input, if
 * that is the same file, for what is still to be sorted. So the question whether a process is done
 * or killed is settled once, between who gives the name and the handler of whatever signal comes:
 *
 *	free --commit_begin()--> made		signals are passed over
 *	    \--a signal--> dying			who would give the name waits for the end
 *
 * Signals are of the process: a front end that handles them lends it (file.h: `commitment` of the
 * calls). Where none is lent, names are given without a question.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

/* Of a process. Zeroed: free, and no signal has come. */
struct commit_point {
	atomic_int state;
	atomic_int pending_signal; /* the last signal that was passed over; 0: none */
};

/*
 * A name is about to be given. Returns true if the caller is the first, who may have to revoke it.
 * Does not return if the process is dying. NULL: there are no signals; true.
 */
bool commit_begin(struct commit_point *commit);

/* It was not given. NULL is fine. */
void commit_rollback(struct commit_point *commit);

/* The signal that was passed over for a name that was not given then; 0: none. */
int commit_pending_signal(const struct commit_point *commit);

/*
 * For a front end's handler of a signal that would end the process: is it to? Async-signal-safe.
 * From true on, nothing gets a name any more.
 */
bool commit_signal_may_kill(struct commit_point *commit, int signal_number);
