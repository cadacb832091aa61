/*
 * commit_point - from the moment an output gets its name no signal ends the process any more
 *
 * Whoever is told that a sort was killed takes its output for what it was before, and its input, if
 * that is the same file, for what is still to be sorted. So the question whether a process is done
 * or killed is settled once, between who gives the name and the handler of whatever signal comes:
 *
 *	free --commitment_make()--> made		signals are passed over
 *	    \--a signal--> dying			who would give the name waits for the end
 *
 * Signals are of the process: a front end that handles them lends it (file.h: `commitment` of the
 * calls). Where none is lent, names are given without a question.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

/* Of a process. Zeroed: free, and no signal has come. */
struct commitment {
	atomic_int state;
	atomic_int missed; /* the last signal that was passed over; 0: none */
};

/*
 * A name is about to be given. Returns true if the caller is the first, who may have to revoke it.
 * Does not return if the process is dying. NULL: there are no signals; true.
 */
bool commitment_make(struct commitment *commitment);

/* It was not given. NULL is fine. */
void commitment_revoke(struct commitment *commitment);

/* The signal that was passed over for a name that was not given then; 0: none. */
int commitment_missed(const struct commitment *commitment);

/*
 * For a front end's handler of a signal that would end the process: is it to? Async-signal-safe.
 * From true on, nothing gets a name any more.
 */
bool commitment_lets_die(struct commitment *commitment, int signal_number);
