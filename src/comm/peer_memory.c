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
struct card {
	uint64_t process; /* 0: it is near to nobody */
	uint64_t address;
	uint64_t proof;
};

struct near {
	struct ranks *ranks;
	bool is_wanted;
	_Atomic uint64_t proof; /* where the own card says; 0: it is not to be read any more */
	struct card *cards;     /* by rank, as the next */
	bool *is_near;
};

enum { PIECE_NBYTES = 64 << 20 };

/*
 * Behind it the proof is read: as long as that is there, so was what is read. Without a message:
 * 0, -ESRCH if the rank is gone or has withdrawn, or another negative errno.
 */
static int read_piece(const struct card *card, uint64_t address, void *to, size_t nbytes)
{
	uint64_t proof = 0;
	const struct iovec here[] = { { to, nbytes }, { &proof, sizeof proof } };
	const struct iovec there[] = { { (void *)(uintptr_t)address, nbytes },
				       { (void *)(uintptr_t)card->address, sizeof proof } };
	const ssize_t n = process_vm_readv((pid_t)card->process, here, 2, there, 2, 0);

	if (n < 0)
		return -errno;
	if ((size_t)n < nbytes + sizeof proof)
		return -EFAULT;
	return proof == card->proof ? 0 : -ESRCH;
}

static bool can_read(const struct near *near, unsigned rank)
{
	return read_piece(&near->cards[rank], near->cards[rank].address, NULL, 0) == 0;
}

/* Another process has some other number there, if anything; it is not 0. */
static int make_proof(struct near *near)
{
	uint64_t proof;
	const ssize_t n = getrandom(&proof, sizeof proof, 0);

	atomic_store(&near->proof, proof | 1);
	return n == (ssize_t)sizeof proof ? 0 : fail(-EIO, "no random number can be had: %m");
}

static int exchange_cards(struct near *near)
{
	const struct card own = { .process = near->is_wanted ? (uint64_t)getpid() : 0,
				  .address = (uintptr_t)&near->proof,
				  .proof = near->proof };

	return ranks_gather_all(near->ranks, &own, sizeof own, near->cards);
}

/* A rank that can be read, if it can read this one, too. */
struct verdict {
	struct ranks_transfer telling, hearing;
	bool is_asked, can, could;
};

/* Could it be that the rank can read this one? Both come to the same. */
static bool may_be_near(const struct near *near, unsigned rank)
{
	const unsigned own = ranks_rank(near->ranks);

	return rank != own && near->cards[rank].process && near->cards[own].process &&
	       strcmp(ranks_host(near->ranks, rank), ranks_host(near->ranks, own)) == 0;
}

static int begin_telling(struct near *near, unsigned rank, struct verdict *verdict)
{
	int r;

	if (!may_be_near(near, rank))
		return 0;
	verdict->is_asked = true;
	verdict->can = can_read(near, rank);
	r = ranks_receive(near->ranks, rank, RANKS_TAG_NEAR, &verdict->could, sizeof verdict->could,
			  &verdict->hearing);
	return r < 0 ? r :
		       ranks_send(near->ranks, rank, RANKS_TAG_NEAR, &verdict->can,
				  sizeof verdict->can, &verdict->telling);
}

static int hear(struct near *near, unsigned rank, struct verdict *verdict)
{
	int r;

	if (!verdict->is_asked)
		return 0;
	r = ranks_wait(near->ranks, &verdict->hearing);
	if (r == 0)
		r = ranks_wait(near->ranks, &verdict->telling);
	near->is_near[rank] = r == 0 && verdict->can && verdict->could;
	return r;
}

static int find_near(struct near *near)
{
	const unsigned n = ranks_size(near->ranks);
	struct verdict *verdicts = calloc(n, sizeof *verdicts);
	int r = verdicts ? 0 : fail(-ENOMEM, "no memory for %u ranks", n);

	for (unsigned i = 0; i < n && r == 0; i++)
		r = begin_telling(near, i, &verdicts[i]);
	for (unsigned i = 0; i < n && r == 0; i++)
		r = hear(near, i, &verdicts[i]);
	free(verdicts);
	return r;
}

int near_open(struct ranks *ranks, bool is_wanted, struct near **ret_near)
{
	const unsigned n = ranks_size(ranks);
	struct near *near = calloc(1, sizeof *near);
	int r;

	*ret_near = near;
	if (!near)
		return fail(-ENOMEM, "no memory for %u ranks", n);
	near->ranks = ranks;
	near->is_wanted = is_wanted;
	near->cards = calloc(n, sizeof *near->cards);
	near->is_near = calloc(n, sizeof *near->is_near);
	if (!near->cards || !near->is_near)
		return fail(-ENOMEM, "no memory for %u ranks", n);
	if (is_wanted)
		ranks_allow_reading(ranks, true);
	r = make_proof(near);
	if (r == 0)
		r = exchange_cards(near);
	return r < 0 ? r : find_near(near);
}

void near_close(struct near *near)
{
	if (!near)
		return;
	if (near->is_wanted)
		ranks_allow_reading(near->ranks, false);
	free(near->cards);
	free(near->is_near);
	free(near);
}

void near_withdraw(struct near *near)
{
	if (near)
		atomic_store(&near->proof, 0);
}

bool near_has(const struct near *near, unsigned rank)
{
	return near->is_near[rank];
}

bool near_has_all(const struct near *near)
{
	for (unsigned i = 0; i < ranks_size(near->ranks); i++)
		if (i != ranks_rank(near->ranks) && !near_has(near, i))
			return false;
	return true;
}

/* Until the watch says so, or this process is ended with it. */
static int await_end(const struct near *near, unsigned rank)
{
	struct ranks_transfer never;
	char nothing;
	int r = ranks_receive(near->ranks, rank, RANKS_TAG_NEAR, &nothing, 0, &never);

	return r < 0 ? r : ranks_wait(near->ranks, &never);
}

static bool has_withdrawn(const struct near *near, unsigned rank)
{
	return !can_read(near, rank);
}

int near_read(const struct near *near, unsigned rank, uint64_t address, void *to, size_t nbytes)
{
	size_t at = 0, n;
	int r;

	do {
		n = nbytes - at < PIECE_NBYTES ? nbytes - at : PIECE_NBYTES;
		r = read_piece(&near->cards[rank], address + at, (char *)to + at, n);
		at += n;
	} while (at < nbytes && r == 0);
	if (r == 0)
		return 0;
	if (r == -EPERM || r == -ENOSYS) /* it lives, and there is no end to wait for */
		return fail_hint(r, HINT_NO_READING, 0,
				 "memory of rank %u on %s cannot be read any more: %m", rank,
				 ranks_host(near->ranks, rank));
	if (r == -ESRCH || has_withdrawn(near, rank))
		return await_end(near, rank);
	return fail(r, "memory of rank %u on %s cannot be read: %m", rank,
		    ranks_host(near->ranks, rank));
}

int near_confirm(const struct near *near, unsigned rank)
{
	char nothing;

	return near_read(near, rank, near->cards[rank].address, &nothing, 0);
}

struct near_path near_path(const struct near *near, unsigned rank, int descriptor)
{
	struct near_path path;

	snprintf(path.text, sizeof path.text, "/proc/%" PRIu64 "/fd/%d", near->cards[rank].process,
		 descriptor);
	return path;
}
