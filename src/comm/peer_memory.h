/*
 * peer_memory.h - read the memory of ranks on the same host
 *
 * A message between two processes of a host is copied by threads that sleep in between.
 * process_vm_readv() copies the memory of another process once, in the thread that needs it. Linux
 * allows it if one process may trace the other: they have the same user, see each other's PIDs, and
 * no seccomp filter forbids it. So each rank tries to read a number from every rank with the same
 * host name. Two ranks are peers if both reads succeed; other ranks exchange messages. While
 * peer_memory is open, any process of this user may read this one.
 *
 * The data read has no checksum, because it never leaves the memory of the host.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct peer_memory;
struct comm;

/*
 * Collective. Find out which ranks can be read. If is_enabled is false, no rank reads this one.
 * `comm` must outlive the result. Call peer_memory_close() also after a failure.
 */
int peer_memory_open(struct comm *comm, bool is_enabled, struct peer_memory **ret_peer_memory);
/* NULL is ignored. */
void peer_memory_close(struct peer_memory *peer_memory);

/*
 * Revoke the access of other ranks. A rank that has failed calls it before it frees anything that
 * others read. A peer that reads afterwards waits until it is aborted. NULL is ignored.
 */
void peer_memory_revoke(struct peer_memory *peer_memory);

/* Return whether another rank can be read, or whether all other ranks can. */
bool peer_memory_can_read(const struct peer_memory *peer_memory, unsigned rank);
bool peer_memory_can_read_all(const struct peer_memory *peer_memory);

/*
 * Read nbytes at an address of a peer. The peer must keep the data there until it learns that it
 * was read. If the peer has ended or revoked its access, wait for the heartbeat to fail it, as if a
 * message were awaited (comm.h). Thread-safe.
 */
int peer_memory_read(const struct peer_memory *peer_memory, unsigned rank, uint64_t address,
		     void *to, size_t nbytes);

/*
 * Check that a peer was alive and had not revoked its access until now, so that data read from its
 * files is valid. Returns a negative errno as peer_memory_read() does.
 */
int peer_memory_check_alive(const struct peer_memory *peer_memory, unsigned rank);

/* The path by which this process can open a descriptor of a peer. */
struct peer_fd_path {
	char text[48];
};
struct peer_fd_path peer_memory_fd_path(const struct peer_memory *peer_memory, unsigned rank,
					int fd);
