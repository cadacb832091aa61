/*
 * adaptive.h - choose the fastest of several methods to do the same thing
 *
 * Which method is fastest is not known in advance. Writing a file through the page cache is a copy
 * at the speed of memory while free pages are at hand, and much slower if the kernel has to find
 * and clear pages, or a virtual machine to get them from its host. Direct I/O runs at the speed of
 * the disk and needs no CPU. So all methods are tried and timed at first. Then the fastest is used,
 * and the others are tried again from time to time, the less often the slower they were: trials of
 * a method cost at most about 1/32 of the time.
 *
 * Methods are not mixed in proportion: a direct write into a file waits for cached writes into the
 * same file, and the reverse.
 *
 * The scope says what is timed:
 *
 *	ADAPTIVE_SINGLE		each operation by itself
 *	ADAPTIVE_TURNS		all threads use one method for a turn of 256 MiB, and the turn is
 *				timed. For methods that hinder each other: while some threads
 *				write() to a file that others have mapped, both are slow.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum adaptive_method { METHOD_DEFAULT, METHOD_SECOND, METHOD_THIRD, N_METHODS };

/* Sets of methods. */
enum {
	METHOD_MASK_DEFAULT = 1 << METHOD_DEFAULT,
	METHOD_MASK_SECOND = 1 << METHOD_SECOND,
	METHOD_MASK_THIRD = 1 << METHOD_THIRD
};

enum adaptive_scope { ADAPTIVE_SINGLE, ADAPTIVE_TURNS };

struct adaptive {
	enum adaptive_scope scope;
	pthread_mutex_t lock;
	/* Protected by lock. */
	struct adaptive_state {
		uint32_t n_started;
		uint32_t n_since_trial; /* choices of other methods since the last trial */
		double nbytes, ns;      /* decaying sums, or the last turn; 0: not timed yet */
	} methods[N_METHODS];
	/* ADAPTIVE_TURNS: the turn. */
	bool has_turn, is_timed; /* is_timed: the writes of the turn before are over */
	enum adaptive_method method;
	unsigned presumed_methods;
	uint64_t turn_begin_ns, turn_nbytes;
};

void adaptive_init(struct adaptive *adaptive, enum adaptive_scope scope);
void adaptive_destroy(struct adaptive *adaptive);

/*
 * ADAPTIVE_TURNS: presume that a set of methods is the fastest. At first only these are tried; the
 * others as if they were as fast. 0: presume nothing. Thread-safe, like the rest.
 */
void adaptive_presume(struct adaptive *adaptive, unsigned methods);

/* Choose a method out of a set. */
enum adaptive_method adaptive_choose(struct adaptive *adaptive, unsigned available);

/* Record that nbytes were processed by a method, from begin_ns to end_ns. */
void adaptive_record(struct adaptive *adaptive, enum adaptive_method method, uint64_t nbytes,
		     uint64_t begin_ns, uint64_t end_ns);
