/*
 * transport_mpi.h - MPI as a transport
 *
 * Uses only messages of bytes between two ranks, sent and received by one thread. Nothing waits
 * inside MPI, where waiting spins. MPI's collectives, derived types, one-sided communication and
 * file I/O are not used. MPI delivers messages once, whole and in order, but need not notice that a
 * rank has died (src/comm/watchdog.h).
 */
#pragma once

struct transport;

/* A transport_open_fn (src/comm/comm.h). May be called once per process. `argument` is unused. */
int transport_mpi_open(void *argument, struct transport **ret_transport);
