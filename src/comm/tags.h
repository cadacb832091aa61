/*
 * tags - what a message between ranks is about: all tags there are
 *
 * Who sends it, and to whom. What two parts of the program send each other at the same time has
 * two tags, so nothing is taken for another thing, whichever comes first.
 */
#pragma once

enum ranks_tag {
	RANKS_TAG_COLLECTIVES = 1, /* each to others, in what all do together (collectives.c) */
	RANKS_TAG_NEAR,     /* each to those on its machine: whether it can read them (peer_memory.c) */
	RANKS_TAG_NEWS,     /* the first to others, how far are you?, and back (rank_progress.c) */
	RANKS_TAG_TRACE,    /* the same, what time is it?; then others to it, when they did what */
	RANKS_TAG_CENSUS,   /* others to the first: what they did */
	RANKS_TAG_BEGINS,   /* each to the one before it: where its range of the inputs begins */
	RANKS_TAG_OFFERS,   /* each to each: what it has in memory for it (all_to_all.c), */
	RANKS_TAG_PARTS,    /* and that itself */
	RANKS_TAG_REQUESTS, /* a reader of a merge to a server of each other rank (remote_runs.c); ... */
	RANKS_TAG_EDGES,    /* each to the one that writes a stripe of a file, what it has of it */
	RANKS_TAG_ANSWERS,  /* ... the server to the reader: from here on, as it was asked to */
	RANKS_TAG_LIMIT = 0x7fffff00 /* all are below it */
};
