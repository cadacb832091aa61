/*
 * peer_memory - memory of other ranks that are on the same machine, read where it is
 *
 * A message between two processes of one machine is copied by threads that sleep in between. Memory
 * of another process is copied once, by the thread that needs it (process_vm_readv()). The system
 * allows that where one may trace the other: processes of one user that see each other's numbers,
 * unless that is forbidden (seccomp). So it is tried: each rank reads a number from every other one
 * that is on a machine of the same name. Two ranks are near if both could; all others have
 * messages. As long as it is open any process of this user may read this one.
 *
 * What is read has no checksum, as nothing of it has left the machine's memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct peer_memory;
struct comm;

/*
 * Find out who is near. Every rank calls it. is_wanted: else this rank is near to nobody. The ranks
 * must outlive it. Returns 0 or a negative errno, said by fail(); to be closed in both cases.
 */
int peer_memory_open(struct comm *comm, bool is_enabled, struct peer_memory **ret_peer_memory);
/* NULL is fine. */
void peer_memory_close(struct peer_memory *peer_memory);

/*
 * This rank has failed: before anything that others read is freed. Who reads of it then, or has
 * just done so, waits for its end. NULL is fine.
 */
void peer_memory_revoke(struct peer_memory *peer_memory);

/* Is it near, and another one? And are all others? */
bool peer_memory_can_read(const struct peer_memory *peer_memory, unsigned rank);
bool peer_memory_can_read_all(const struct peer_memory *peer_memory);

/*
 * Read nbytes at an address of a rank that is near, which must leave them there until it is told
 * otherwise. Any thread. Returns 0 or a negative errno, said by fail(). If the rank is gone, or
 * has withdrawn, that is for the watch to say, as if a message of it were awaited (comm.h).
 */
int peer_memory_read(const struct peer_memory *peer_memory, unsigned rank, uint64_t address,
		     void *to, size_t nbytes);

/*
 * What was read of a rank that is near in another way, as from its files: did it stand until now?
 * Returns 0, or as peer_memory_read() if the rank is gone, or has withdrawn.
 */
int peer_memory_check_alive(const struct peer_memory *peer_memory, unsigned rank);

/* A name by which this process can open a file that a rank which is near has open. */
struct peer_fd_path {
	char text[48];
};
struct peer_fd_path peer_memory_fd_path(const struct peer_memory *peer_memory, unsigned rank,
					int fd);
