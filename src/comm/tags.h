/*
 * tags - the tags of all messages between ranks
 *
 * Each kind of message has a tag of its own, so that modules which send at the same time do not
 * receive each other's messages.
 */
#pragma once

enum comm_tag {
	COMM_TAG_COLLECTIVES = 1, /* each to others, in what all do together (collectives.c) */
	COMM_TAG_PEER_MEMORY,     /* each to those on its machine: whether it can read them
				     (peer_memory.c) */
	COMM_TAG_PROGRESS,   /* the first to others, how far are you?, and back (rank_progress.c) */
	COMM_TAG_TRACE,      /* the same, what time is it?; then others to it, when they did what */
	COMM_TAG_RANK_STATS, /* others to the first: what they did */
	COMM_TAG_PARTITION_BOUNDS, /* each to the one before it: where its range of the inputs
				      begins */
	COMM_TAG_SEGMENT_DESCS,    /* each to each: what it has in memory for it (all_to_all.c), */
	COMM_TAG_SEGMENTS,         /* and that itself */
	COMM_TAG_REQUESTS,  /* a reader of a merge to a server of each other rank (remote_runs.c);
			       ... */
	COMM_TAG_STRIPES,   /* each to the one that writes a stripe of a file, what it has of it */
	COMM_TAG_RESPONSES, /* ... the server to the reader: from here on, as it was asked to */
	COMM_TAG_LIMIT = 0x7fff,             /* all others are below it */
	COMM_TAG_HEARTBEAT = COMM_TAG_LIMIT, /* comm.c; the largest tag that MPI guarantees */
};
