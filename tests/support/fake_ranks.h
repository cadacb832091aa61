/*
 * fake_ranks - ranks that are processes of the test, on socket pairs, and what can go wrong
 * there
 *
 * Each rank is a child of the test, so it can be killed, hang, or fall silent as a rank of MPI
 * can. A fault befalls one message of the transport (src/comm/transport.h), which the sender
 * counts from 0. With a seed, messages of different pairs or tags overtake each other, and arrive
 * late; the same seed gives the same choices.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/comm/comm.h"

enum ranks_fault {
	RANKS_FINE,
	RANKS_CUT,        /* the process is gone before it is sent */
	RANKS_CUT_INSIDE, /* the process is gone when half of it is sent */
	RANKS_SHORT,      /* only half of it is sent */
	RANKS_LOST,       /* it is not sent */
	RANKS_REPEATED,   /* it is sent twice */
	RANKS_DAMAGED,    /* one bit is another */
	RANKS_FOREIGN,    /* its header is that of a machine with another byte order */
	RANKS_SILENT,     /* from then on nothing is sent or received: the link is cut */
	RANKS_HANGING,    /* sending never returns */
};

/* The most bytes of a message: a packet of a socket. */
enum { RANKS_DOUBLE_PIECE_NBYTES = 60000, RANKS_DOUBLE_MOST = 8 };

/* How one rank has ended. */
struct ranks_end {
	int status;        /* of its process */
	int r;             /* of what it did; 1 if it never came back */
	unsigned n_sent;   /* messages of the transport */
	unsigned n_before; /* calls of before_end() */
	char text[512];    /* of the first failure; "" if none */
};

struct ranks_double {
	/* What is to happen. */
	unsigned size;
	struct ranks_settings settings;          /* end, before_end, context are the double's */
	const char *versions[RANKS_DOUBLE_MOST]; /* NULL: the program's own */
	uint64_t seed;                           /* 0: all comes as it is sent */
	enum ranks_fault fault;
	unsigned fault_rank, fault_message, fault_bit;
	/* What each rank does; returns 0 or a negative errno: ranks_close(), or ranks_abort(2). */
	int (*body)(struct ranks *ranks, void *argument);
	void *argument;

	/* What has happened. */
	struct ranks_end *ends; /* shared with the children */
	pid_t processes[RANKS_DOUBLE_MOST];
};

/* Start all ranks; and wait until all have ended. */
void ranks_double_start(struct ranks_double *ranks);
void ranks_double_join(struct ranks_double *ranks);
/* Both. */
void ranks_double_run(struct ranks_double *ranks);
/* After that: all have done what they should, in silence. */
void ranks_double_assert_fine(const struct ranks_double *ranks);
/* After it has been joined: `ends` is gone. */
void ranks_double_forget(struct ranks_double *ranks);
