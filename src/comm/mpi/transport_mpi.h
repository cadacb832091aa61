/*
 * transport_mpi - ranks that MPI has started
 *
 * What of MPI is used is what all libraries do well: messages of bytes between two ranks, of
 * lengths that fit an int, by one thread. Nothing waits in MPI, where waiting spins; collectives,
 * derived types, one-sided communication and files are not used. MPI takes no trouble over ranks
 * that are gone: that is the watch's (src/comm/heartbeat.h).
 */
#pragma once

struct transport;

struct ranks_mpi_settings {
	/*
	 * As getenv does, of a front end: who has started this process, and how many
	 * (alone_check()).
	 */
	char *(*get_environment)(const char *name);
};

/*
 * A transport_opener (src/comm/comm.h). argument: struct ranks_mpi_settings. Once in a process.
 */
int ranks_mpi_open(void *argument, struct transport **ret_transport);
