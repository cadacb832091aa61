/*
 * heartbeat - who has been silent for too long, of those from whom something is awaited
 *
 * A rank that computes says nothing, and is well: its carrier answers when it is asked (comm.h).
 * So whoever awaits something of a rank asks after a quarter of the timeout without a word from
 * it, and gives it up after all of that. Nobody is asked of whom nothing is awaited.
 *
 * Who was away himself, stopped or without a processor, cannot say that others were silent: after
 * a pause between two looks everybody's time begins again. Plain data and no clock: one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct watched {
	uint64_t heard_ns; /* or since when something is awaited, if that is later */
	unsigned n_awaited;
	bool is_asked; /* since it was heard */
};

struct watch {
	uint64_t stall_ns; /* 0: nobody is ever given up */
	uint64_t looked_ns;
	unsigned n_ranks;
	unsigned n_awaited_of_any;
	struct watched *ranks;
};

enum silence {
	SILENCE_SHORT, /* or nothing is awaited */
	SILENCE_ASK,   /* ask it: said once for each silence */
	SILENCE_STALL, /* give it up */
};

/* 0 or -ENOMEM, without a message. */
int watch_init(struct watch *watch, unsigned n_ranks, uint64_t stall_ns, uint64_t now_ns);
void watch_destroy(struct watch *watch);

/* From now on, and everybody's time begins again. */
void watch_set_stall(struct watch *watch, uint64_t stall_ns, uint64_t now_ns);

/* Something is awaited from `rank`, or if that is n_ranks from anybody; and: no more. */
void watch_await(struct watch *watch, unsigned rank, uint64_t now_ns);
void watch_awaited(struct watch *watch, unsigned rank);

void watch_heard(struct watch *watch, unsigned rank, uint64_t now_ns);

/* Is it time to look at all? So often that a silence is seen a sixteenth too late at most. */
bool watch_is_time(struct watch *watch, uint64_t now_ns);
enum silence watch_look(struct watch *watch, unsigned rank, uint64_t now_ns);

/* Is anything awaited that `rank` could send? */
bool watch_awaits(const struct watch *watch, unsigned rank);
