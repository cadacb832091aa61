/*
 * peer_memory.c - read the memory of ranks on the same host (see peer_memory.h)
 */
#include "src/comm/peer_memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include "src/base/diagnostics.h"
#include "src/comm/comm.h"

/* What a rank sends to the others: where its memory can be read, and the cookie to find there. */
struct peer_descriptor {
	uint64_t pid; /* 0: peer memory is disabled */
	uint64_t address;
	uint64_t cookie;
};

struct peer_memory {
	struct comm *comm;
	bool is_enabled;
	_Atomic uint64_t cookie; /* in shared use: the peers read it; 0: access is revoked */
	struct peer_descriptor *descriptors; /* by rank, like is_readable */
	bool *is_readable;
};

enum { MAX_PEER_READ_NBYTES = 64 << 20 };

/*
 * Read nbytes and, after them, the cookie. If the cookie is intact, the data was still allocated
 * when it was read. Returns 0, -ESRCH if the rank has ended or revoked access, or another negative
 * errno. Reports no message.
 */
static int read_remote(const struct peer_descriptor *descriptor, uint64_t address, void *to,
		       size_t nbytes)
{
	uint64_t cookie = 0;
	const struct iovec local[] = { { to, nbytes }, { &cookie, sizeof cookie } };
	const struct iovec remote[] = { { (void *)(uintptr_t)address, nbytes },
					{ (void *)(uintptr_t)descriptor->address, sizeof cookie } };
	const ssize_t n = process_vm_readv((pid_t)descriptor->pid, local, 2, remote, 2, 0);

	if (n < 0)
		return -errno;
	if ((size_t)n < nbytes + sizeof cookie)
		return -EFAULT;
	return cookie == descriptor->cookie ? 0 : -ESRCH;
}

static bool can_read(const struct peer_memory *peer_memory, unsigned rank)
{
	return read_remote(&peer_memory->descriptors[rank], peer_memory->descriptors[rank].address,
			   NULL, 0) == 0;
}

/* A handshake with a peer: both must be able to read each other. */
struct peer_probe {
	struct comm_transfer send, receive;
	bool is_candidate, can_read, peer_can_read;
};

/* Return whether the peer might be readable. Both sides get the same answer. */
static bool is_peer_candidate(const struct peer_memory *peer_memory, unsigned rank)
{
	const unsigned own = comm_rank(peer_memory->comm);

	return rank != own && peer_memory->descriptors[rank].pid &&
	       peer_memory->descriptors[own].pid &&
	       strcmp(comm_host(peer_memory->comm, rank), comm_host(peer_memory->comm, own)) == 0;
}

static int begin_peer_probe(struct peer_memory *peer_memory, unsigned rank,
			    struct peer_probe *probe)
{
	int r;

	if (!is_peer_candidate(peer_memory, rank))
		return 0;
	probe->is_candidate = true;
	probe->can_read = can_read(peer_memory, rank);
	r = comm_receive(peer_memory->comm, rank, COMM_TAG_PEER_MEMORY, &probe->peer_can_read,
			 sizeof probe->peer_can_read, 0, &probe->receive);
	return r < 0 ? r :
		       comm_send(peer_memory->comm, rank, COMM_TAG_PEER_MEMORY, &probe->can_read,
				 sizeof probe->can_read, &probe->send);
}

static int probe_peers(struct peer_memory *peer_memory)
{
	const unsigned n = comm_size(peer_memory->comm);
	struct peer_probe *probes = calloc(n, sizeof *probes);
	int r = probes ? 0 : fail(-ENOMEM, "no memory for %u ranks", n);

	for (unsigned i = 0; i < n && r == 0; i++)
		r = begin_peer_probe(peer_memory, i, &probes[i]);
	for (unsigned i = 0; i < n && r == 0; i++) {
		if (!probes[i].is_candidate)
			continue;
		r = comm_wait(peer_memory->comm, &probes[i].receive);
		if (r == 0)
			r = comm_wait(peer_memory->comm, &probes[i].send);
		peer_memory->is_readable[i] = r == 0 && probes[i].can_read &&
					      probes[i].peer_can_read;
	}
	free(probes);
	return r;
}

int peer_memory_open(struct comm *comm, bool is_enabled, struct peer_memory **ret_peer_memory)
{
	const unsigned n = comm_size(comm);
	struct peer_memory *peer_memory = calloc(1, sizeof *peer_memory);
	struct peer_descriptor own = { .pid = is_enabled ? (uint64_t)getpid() : 0 };
	uint64_t cookie;
	int r;

	*ret_peer_memory = peer_memory;
	if (!peer_memory)
		return fail(-ENOMEM, "no memory for %u ranks", n);
	peer_memory->comm = comm;
	peer_memory->is_enabled = is_enabled;
	peer_memory->descriptors = calloc(n, sizeof *peer_memory->descriptors);
	peer_memory->is_readable = calloc(n, sizeof *peer_memory->is_readable);
	if (!peer_memory->descriptors || !peer_memory->is_readable)
		return fail(-ENOMEM, "no memory for %u ranks", n);
	if (is_enabled)
		comm_allow_peer_access(comm, true);
	if (getrandom(&cookie, sizeof cookie, 0) != (ssize_t)sizeof cookie)
		return fail(-EIO, "cannot get a random number: %m");
	/* Another process has a different number at that address, if any. Never 0. */
	atomic_store(&peer_memory->cookie, cookie | 1);
	own.address = (uintptr_t)&peer_memory->cookie;
	own.cookie = peer_memory->cookie;
	r = comm_allgather(comm, &own, sizeof own, peer_memory->descriptors);
	return r < 0 ? r : probe_peers(peer_memory);
}

void peer_memory_close(struct peer_memory *peer_memory)
{
	if (!peer_memory)
		return;
	if (peer_memory->is_enabled)
		comm_allow_peer_access(peer_memory->comm, false);
	free(peer_memory->descriptors);
	free(peer_memory->is_readable);
	free(peer_memory);
}

void peer_memory_revoke(struct peer_memory *peer_memory)
{
	if (peer_memory)
		atomic_store(&peer_memory->cookie, 0);
}

bool peer_memory_can_read(const struct peer_memory *peer_memory, unsigned rank)
{
	return peer_memory->is_readable[rank];
}

bool peer_memory_can_read_all(const struct peer_memory *peer_memory)
{
	for (unsigned i = 0; i < comm_size(peer_memory->comm); i++)
		if (i != comm_rank(peer_memory->comm) && !peer_memory_can_read(peer_memory, i))
			return false;
	return true;
}

int peer_memory_read(const struct peer_memory *peer_memory, unsigned rank, uint64_t address,
		     void *to, size_t nbytes)
{
	size_t offset = 0, n;
	char empty;
	int r;

	do {
		n = nbytes - offset < MAX_PEER_READ_NBYTES ? nbytes - offset : MAX_PEER_READ_NBYTES;
		r = read_remote(&peer_memory->descriptors[rank], address + offset,
				(char *)to + offset, n);
		offset += n;
	} while (offset < nbytes && r == 0);
	if (r == 0)
		return 0;
	if (r == -EPERM || r == -ENOSYS) /* the peer is alive, so its end would never come */
		return fail(r,
			    "cannot read the memory of rank %u on %s any more: %m; use "
			    "--shared-memory=off",
			    rank, comm_host(peer_memory->comm, rank));
	/* Wait until the heartbeat fails the rank, or this process is aborted with it. */
	if (r == -ESRCH || !can_read(peer_memory, rank))
		return comm_receive_wait(peer_memory->comm, rank, COMM_TAG_PEER_MEMORY, &empty, 0);
	return fail(r, "cannot read the memory of rank %u on %s: %m", rank,
		    comm_host(peer_memory->comm, rank));
}

int peer_memory_check_alive(const struct peer_memory *peer_memory, unsigned rank)
{
	char empty;

	return peer_memory_read(peer_memory, rank, peer_memory->descriptors[rank].address, &empty,
				0);
}

struct peer_fd_path peer_memory_fd_path(const struct peer_memory *peer_memory, unsigned rank,
					int fd)
{
	struct peer_fd_path path;

	snprintf(path.text, sizeof path.text, "/proc/%" PRIu64 "/fd/%d",
		 peer_memory->descriptors[rank].pid, fd);
	return path;
}
