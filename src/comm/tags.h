/*
 * tags.h - the tags of all messages between ranks
 *
 * Each kind of message has its own tag, so that modules which communicate at the same time do not
 * receive each other's messages.
 */
#pragma once

enum comm_tag {
	COMM_TAG_COLLECTIVES = 1,  /* collectives.c */
	COMM_TAG_PEER_MEMORY,      /* handshakes on a host (peer_memory.c) */
	COMM_TAG_PROGRESS,         /* queries of rank 0 and replies (rank_progress.c) */
	COMM_TAG_TRACE,            /* clock readings and traces, to rank 0 */
	COMM_TAG_RANK_STATS,       /* summaries, to rank 0 (rank_stats.c) */
	COMM_TAG_PARTITION_BOUNDS, /* to the previous rank: where the own partition begins */
	COMM_TAG_SEGMENT_DESCS,    /* to each rank: the segments that follow (all_to_all.c) */
	COMM_TAG_SEGMENTS,         /* those segments */
	COMM_TAG_REQUESTS,         /* to the servers of a rank (remote_runs.c) */
	COMM_TAG_STRIPES,          /* bytes of a stripe of the output, to its writer */
	COMM_TAG_RESPONSES,        /* from a server to the reader; the first of many */
	COMM_TAG_LIMIT = 0x7fff,   /* all tags but the next are less */
	COMM_TAG_HEARTBEAT = COMM_TAG_LIMIT, /* comm.c; the largest tag that MPI guarantees */
};
