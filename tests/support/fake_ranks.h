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

enum fake_rank_fault {
	FAKE_FAULT_NONE,
	FAKE_FAULT_EXIT,        /* the process is gone before it is sent */
	FAKE_FAULT_EXIT_MIDWAY, /* the process is gone when half of it is sent */
	FAKE_FAULT_TRUNCATED,   /* only half of it is sent */
	FAKE_FAULT_LOST,        /* it is not sent */
	FAKE_FAULT_DUPLICATED,  /* it is sent twice */
	FAKE_FAULT_CORRUPTED,   /* one bit is another */
	FAKE_FAULT_BYTE_ORDER,  /* its header is that of a machine with another byte order */
	FAKE_FAULT_SILENT,      /* from then on nothing is sent or received: the link is cut */
	FAKE_FAULT_HANG,        /* sending never returns */
};

/* The most bytes of a message: a packet of a socket. */
enum { FAKE_RANKS_FRAGMENT_NBYTES = 60000, FAKE_RANKS_MAX = 8 };

/* How one rank has ended. */
struct fake_rank_exit {
	int status;              /* of its process */
	int result;              /* of what it did; 1 if it never came back */
	unsigned n_sent;         /* messages of the transport */
	unsigned n_before_abort; /* calls of before_abort() */
	char error_text[512];    /* of the first failure; "" if none */
};

struct fake_ranks {
	/* What is to happen. */
	unsigned size;
	struct comm_params params;            /* end, before_abort, context are the double's */
	const char *versions[FAKE_RANKS_MAX]; /* NULL: the program's own */
	uint64_t seed;                        /* 0: all comes as it is sent */
	enum fake_rank_fault fault;
	unsigned fault_rank, fault_message, fault_bit;
	/* What each rank does; returns 0 or a negative errno: comm_close(), or comm_abort(2). */
	int (*body)(struct comm *fake_ranks, void *argument);
	void *argument;

	/* What has happened. */
	struct fake_rank_exit *exits; /* shared with the children */
	pid_t pids[FAKE_RANKS_MAX];
};

/* Start all ranks; and wait until all have ended. */
void fake_ranks_start(struct fake_ranks *fake_ranks);
void fake_ranks_join(struct fake_ranks *fake_ranks);
/* Both. */
void fake_ranks_run(struct fake_ranks *fake_ranks);
/* After that: all have done what they should, in silence. */
void fake_ranks_assert_success(const struct fake_ranks *fake_ranks);
/* After it has been joined: `ends` is gone. */
void fake_ranks_free(struct fake_ranks *fake_ranks);
