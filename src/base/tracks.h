/*
 * tracks - where on a timeline a piece of work is shown: by what was done, not by which thread
 *
 *	reader 1	[read ][read ]    [read ]		a thread that ended ...
 *	reader 2	   [read ][read ]	     [read ]	... leaves its track to the next
 *	queue 1		       [sort   ][sort   ]
 *
 * Threads come and go with each merge, and a timeline of them would have hundreds of lines with a
 * little on each. Here a piece of work gets a track of its role: that on which its owner's last
 * piece was, if that is free; or else one that is free, longest of all; or else a new one. Pieces
 * on one track never overlap, and there are about as many tracks of a role as were at work at once.
 *
 * By one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* In the order in which they are shown: that of the way that records take. */
enum track_role {
	TRACK_PHASES,     /* of the whole sort; one track */
	TRACK_PARTITIONS, /* merges of a part of the output each */
	TRACK_READERS,
	TRACK_FETCHERS,      /* of stored runs */
	TRACK_CPU_QUEUES,    /* of the processors: sorting and merging */
	TRACK_DEVICE_QUEUES, /* queues of a device apart */
	TRACK_WRITERS,
	TRACK_CHECKERS,
	N_TRACK_ROLES
};

/* More than so many of a role share the last one, on which pieces may then overlap. */
enum { TRACKS_MAX = 1024 };

struct tracks;

/* 0, or -ENOMEM without a message. */
int tracks_open(struct tracks **ret_tracks);

/* NULL is fine. */
void tracks_close(struct tracks *tracks);

/* A thread, or whatever else does one piece after the other. */
struct track_owner {
	uint32_t device; /* several devices have tracks of their own each; 0 of what is of none */
	uint64_t id;
};

/*
 * The number of the track of a piece of work, from 0 for each role. Pieces come in the order in
 * which they ended, more or less.
 * *begin_ns is moved behind the end of what is on the track already where the two overlap by less
 * than a clock may be wrong.
 */
uint32_t tracks_assign(struct tracks *tracks, enum track_role role, struct track_owner owner,
		       uint64_t *begin_ns, uint64_t end_ns);

/* How many tracks a role has. */
uint32_t tracks_count(const struct tracks *tracks, enum track_role role);

/* What one of them is called ("reader"), and all ("readers"). */
const char *track_role_name(enum track_role role);
const char *track_role_names(enum track_role role);
