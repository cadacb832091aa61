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

struct transport_mpi_params {
	/*
	 * As getenv does, of a front end: who has started this process, and how many
	 * (transport_single_check_launcher()).
	 */
	char *(*get_env)(const char *name);
};

/*
 * A transport_open_fn (src/comm/comm.h). argument: struct transport_mpi_params. Once in a process.
 */
int transport_mpi_open(void *argument, struct transport **ret_transport);
