/*
 * transport_mpi - ranks that MPI has started
 *
 * It uses what all MPI libraries do well: messages of bytes between two ranks, sent and received by
 * one thread. Nothing waits inside MPI, where waiting spins. Collectives, derived types, one-sided
 * communication and files of MPI are not used. MPI delivers messages once, whole and in order. It
 * need not notice that a rank is gone (src/comm/heartbeat.h).
 */
#pragma once

struct transport;

/* A transport_open_fn (src/comm/comm.h), at most once in a process. argument: unused. */
int transport_mpi_open(void *argument, struct transport **ret_transport);
