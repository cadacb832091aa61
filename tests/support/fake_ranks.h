/*
 * fake_ranks.h - ranks as child processes of a test, connected by sockets, with faults
 *
 * A rank can die, hang or fall silent, as an MPI rank can. A fault happens when the rank sends a
 * given message of the transport (src/comm/transport.h), counted from 0. With a seed, messages of
 * different senders or tags overtake each other and arrive late; the same seed gives the same
 * choices.
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
	FAKE_FAULT_ERROR,       /* the transport reports that it cannot be sent */
	FAKE_FAULT_BYTE_ORDER,  /* its first word has the other byte order */
	FAKE_FAULT_SILENT,      /* from then on nothing is sent or received: the link is cut */
	FAKE_FAULT_HANG,        /* sending never returns */
	FAKE_FAULT_HANG_AT_END, /* closing the transport never returns */
};

enum { FAKE_RANKS_MAX = 8 };

/* The end of one rank. */
struct fake_rank_exit {
	int status;              /* exit status of the process */
	int result;              /* of body(); 1 if it did not return */
	unsigned n_sent;         /* messages of the transport */
	unsigned n_before_abort; /* calls of before_abort() */
	char error_text[512];    /* of the first failure; "" if none */
};

struct fake_ranks {
	/* Input. */
	unsigned size;
	struct comm_params params;            /* end, before_abort, context are the double's */
	const char *versions[FAKE_RANKS_MAX]; /* NULL: the program's own */
	uint64_t seed;                        /* 0: messages arrive in order */
	enum fake_rank_fault fault;
	unsigned fault_rank, fault_message;
	/* Run by each rank. comm_close() follows if it returns 0, else comm_abort(2). */
	int (*body)(struct comm *fake_ranks, void *argument);
	void *argument;

	/* Output. */
	struct fake_rank_exit *exits; /* shared with the children */
	pid_t pids[FAKE_RANKS_MAX];
};

/* Return the number of threads of this process, and whether no more than n are left. */
unsigned fake_rank_n_threads(void);
bool fake_rank_has_threads(unsigned n);

/* Start all ranks, and wait until all have ended. */
void fake_ranks_start(struct fake_ranks *fake_ranks);
void fake_ranks_join(struct fake_ranks *fake_ranks);
/* Start all ranks and wait for them. */
void fake_ranks_run(struct fake_ranks *fake_ranks);
/* Assert that all ranks succeeded without a message. Call after fake_ranks_run(). */
void fake_ranks_assert_success(const struct fake_ranks *fake_ranks);
/* Run the ranks, assert that all succeeded, and free `exits`. */
void fake_ranks_succeed(struct fake_ranks *fake_ranks);
/* Free `exits`. Call after fake_ranks_join(). */
void fake_ranks_free(struct fake_ranks *fake_ranks);

/* In the process of a rank: its number. */
extern unsigned fake_rank_number;

/* Return whether a descriptor leads to an output that has no name yet. */
bool fake_rank_writes_output(int fd);

/*
 * Record which ranks write to each MiB of such outputs by this pwrite().
 * stripe_writers_close() asserts that each MiB was written by one rank, and returns how many were
 * written.
 */
void stripe_writers_open(void);
ssize_t stripe_writers_pwrite(int fd, const void *data, size_t nbytes, off_t offset);
unsigned stripe_writers_close(void);
