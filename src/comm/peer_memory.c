/*
 * peer_memory - memory of other ranks that are on the same machine (see peer_memory.h)
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
#include "src/comm/tags.h"

/* What a rank can be read by, and what is to be read. */
struct peer_descriptor {
	uint64_t pid; /* 0: it is near to nobody */
	uint64_t address;
	uint64_t cookie;
};

struct peer_memory {
	struct comm *comm;
	bool is_enabled;
	_Atomic uint64_t cookie; /* where the own card says; 0: it is not to be read any more */
	struct peer_descriptor *descriptors; /* by rank, as the next */
	bool *is_readable;
};

enum { MAX_PEER_READ_NBYTES = 64 << 20 };

/*
 * Behind it the proof is read: as long as that is there, so was what is read. Without a message:
 * 0, -ESRCH if the rank is gone or has withdrawn, or another negative errno.
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

/* Another process has some other number there, if anything; it is not 0. */
static int create_cookie(struct peer_memory *peer_memory)
{
	uint64_t cookie;
	const ssize_t n = getrandom(&cookie, sizeof cookie, 0);

	atomic_store(&peer_memory->cookie, cookie | 1);
	return n == (ssize_t)sizeof cookie ? 0 : fail(-EIO, "no random number can be had: %m");
}

static int exchange_descriptors(struct peer_memory *peer_memory)
{
	const struct peer_descriptor own = { .pid = peer_memory->is_enabled ? (uint64_t)getpid() :
									      0,
					     .address = (uintptr_t)&peer_memory->cookie,
					     .cookie = peer_memory->cookie };

	return comm_allgather(peer_memory->comm, &own, sizeof own, peer_memory->descriptors);
}

/* A rank that can be read, if it can read this one, too. */
struct peer_probe {
	struct comm_transfer send, receive;
	bool is_candidate, can_read, peer_can_read;
};

/* Could it be that the rank can read this one? Both come to the same. */
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
			 sizeof probe->peer_can_read, &probe->receive);
	return r < 0 ? r :
		       comm_send(peer_memory->comm, rank, COMM_TAG_PEER_MEMORY, &probe->can_read,
				 sizeof probe->can_read, &probe->send);
}

static int finish_peer_probe(struct peer_memory *peer_memory, unsigned rank,
			     struct peer_probe *probe)
{
	int r;

	if (!probe->is_candidate)
		return 0;
	r = comm_wait(peer_memory->comm, &probe->receive);
	if (r == 0)
		r = comm_wait(peer_memory->comm, &probe->send);
	peer_memory->is_readable[rank] = r == 0 && probe->can_read && probe->peer_can_read;
	return r;
}

static int probe_peers(struct peer_memory *peer_memory)
{
	const unsigned n = comm_size(peer_memory->comm);
	struct peer_probe *probes = calloc(n, sizeof *probes);
	int r = probes ? 0 : fail(-ENOMEM, "no memory for %u ranks", n);

	for (unsigned i = 0; i < n && r == 0; i++)
		r = begin_peer_probe(peer_memory, i, &probes[i]);
	for (unsigned i = 0; i < n && r == 0; i++)
		r = finish_peer_probe(peer_memory, i, &probes[i]);
	free(probes);
	return r;
}

int peer_memory_open(struct comm *comm, bool is_enabled, struct peer_memory **ret_peer_memory)
{
	const unsigned n = comm_size(comm);
	struct peer_memory *peer_memory = calloc(1, sizeof *peer_memory);
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
	r = create_cookie(peer_memory);
	if (r == 0)
		r = exchange_descriptors(peer_memory);
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

/* Until the watch says so, or this process is ended with it. */
static int wait_peer_failure(const struct peer_memory *peer_memory, unsigned rank)
{
	struct comm_transfer transfer;
	char empty;
	int r = comm_receive(peer_memory->comm, rank, COMM_TAG_PEER_MEMORY, &empty, 0, &transfer);

	return r < 0 ? r : comm_wait(peer_memory->comm, &transfer);
}

static bool is_access_revoked(const struct peer_memory *peer_memory, unsigned rank)
{
	return !can_read(peer_memory, rank);
}

int peer_memory_read(const struct peer_memory *peer_memory, unsigned rank, uint64_t address,
		     void *to, size_t nbytes)
{
	size_t offset = 0, n;
	int r;

	do {
		n = nbytes - offset < MAX_PEER_READ_NBYTES ? nbytes - offset : MAX_PEER_READ_NBYTES;
		r = read_remote(&peer_memory->descriptors[rank], address + offset,
				(char *)to + offset, n);
		offset += n;
	} while (offset < nbytes && r == 0);
	if (r == 0)
		return 0;
	if (r == -EPERM || r == -ENOSYS) /* it lives, and there is no end to wait for */
		return fail(r,
			    "memory of rank %u on %s cannot be read any more: %m; "
			    "--shared-memory=off does without",
			    rank, comm_host(peer_memory->comm, rank));
	if (r == -ESRCH || is_access_revoked(peer_memory, rank))
		return wait_peer_failure(peer_memory, rank);
	return fail(r, "memory of rank %u on %s cannot be read: %m", rank,
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
