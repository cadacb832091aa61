/*
 * comm_exercise.c - use each operation of a communicator once (see comm_exercise.h)
 */
#include "tests/support/comm_exercise.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/comm/comm.h"

enum { N_TAGS = 3 };

/* Fill with the bytes that rank `from` sends to rank `to` with a tag; no other message has them. */
static void make_bytes(unsigned from, unsigned to, unsigned tag, unsigned char *bytes,
		       size_t nbytes)
{
	uint32_t state = from * 2654435761u + to * 40503u + tag * 97u + (uint32_t)nbytes;

	for (size_t i = 0; i < nbytes; i++) {
		state = state * 1664525u + 1013904223u;
		bytes[i] = (unsigned char)(state >> 24);
	}
}

static int expect_bytes(unsigned from, unsigned to, unsigned tag, const void *bytes, size_t nbytes)
{
	unsigned char *expected = malloc(nbytes + 1);
	int r = 0;

	if (!expected)
		return fail(-ENOMEM, "no memory");
	make_bytes(from, to, tag, expected, nbytes);
	if (memcmp(expected, bytes, nbytes) != 0)
		r = fail(-EILSEQ,
			 "%zu bytes of rank %u for rank %u, tag %u, are others than were sent",
			 nbytes, from, to, tag);
	free(expected);
	return r;
}

static int expect_equal(const char *what, uint64_t actual, uint64_t expected)
{
	return actual == expected ? 0 :
				    fail(-EILSEQ, "%s is %ju where it must be %ju", what,
					 (uintmax_t)actual, (uintmax_t)expected);
}

static int try_broadcasts(struct comm *comm, unsigned char *bytes, size_t max_nbytes)
{
	const size_t lengths[] = { 0, 1, 5000, max_nbytes };
	int r = 0;

	for (unsigned i = 0; i < 4 && r == 0; i++) {
		if (lengths[i] > max_nbytes)
			continue;
		memset(bytes, 0, lengths[i]);
		if (comm_rank(comm) == 0)
			make_bytes(0, 0, i, bytes, lengths[i]);
		r = comm_broadcast(comm, bytes, lengths[i]);
		if (r == 0)
			r = expect_bytes(0, 0, i, bytes, lengths[i]);
	}
	return r;
}

static int try_allgather(struct comm *comm)
{
	const unsigned rank = comm_rank(comm), size = comm_size(comm);
	unsigned char *gathered = malloc((size_t)size * 11), own_bytes[11];
	int r = gathered ? 0 : fail(-ENOMEM, "no memory");

	make_bytes(rank, 0, 77, own_bytes, sizeof own_bytes);
	if (r == 0)
		r = comm_allgather(comm, own_bytes, sizeof own_bytes, gathered);
	for (unsigned i = 0; i < size && r == 0; i++)
		r = expect_bytes(i, 0, 77, gathered + i * sizeof own_bytes, sizeof own_bytes);
	free(gathered);
	return r;
}

/* Rank i contributes i^2 * 1000 bytes, so rank 0 contributes none. */
static int try_allgatherv(struct comm *comm, unsigned char *bytes, size_t max_nbytes)
{
	const unsigned rank = comm_rank(comm), size = comm_size(comm);
	size_t nbytes = (size_t)rank * rank * 1000 % (max_nbytes + 1), offset = 0;
	size_t *sizes = malloc(size * sizeof *sizes);
	void *gathered = NULL;
	int r = sizes ? 0 : fail(-ENOMEM, "no memory");

	make_bytes(rank, 0, 78, bytes, nbytes);
	if (r == 0)
		r = comm_allgatherv(comm, bytes, nbytes, &gathered, sizes);
	for (unsigned i = 0; i < size && r == 0; i++) {
		r = expect_equal("a length", sizes[i], (size_t)i * i * 1000 % (max_nbytes + 1));
		if (r == 0)
			r = expect_bytes(i, 0, 78, (char *)gathered + offset, sizes[i]);
		offset += sizes[i];
	}
	free(gathered);
	free(sizes);
	return r;
}

static int try_sums(struct comm *comm)
{
	const unsigned rank = comm_rank(comm), size = comm_size(comm);
	uint64_t values[700];
	int r;

	for (unsigned i = 0; i < 700; i++)
		values[i] = i == 0 ? UINT64_MAX : (uint64_t)rank * i;
	r = comm_allreduce_sum(comm, values, 700);
	if (r == 0)
		r = expect_equal("a sum", values[0], -(uint64_t)size);
	for (unsigned i = 1; i < 700 && r == 0; i++)
		r = expect_equal("a sum", values[i], (uint64_t)size * (size - 1) / 2 * i);
	return r == 0 ? comm_allreduce_sum(comm, values, 0) : r;
}

/* Rows of three words. Rank i has the minimum of row i; further rows are arbitrary. */
static int try_min(struct comm *comm)
{
	enum { N = 300, WIDTH = 3 };
	const unsigned rank = comm_rank(comm), size = comm_size(comm);
	uint64_t rows[N][WIDTH];
	int r;

	for (unsigned i = 0; i < N; i++)
		for (unsigned j = 0; j < WIDTH; j++)
			rows[i][j] = j == 0 ? (i == rank ? i : UINT64_MAX) : rank + j;
	r = comm_allreduce_min(comm, &rows[0][0], N, WIDTH);
	for (unsigned i = 0; i < size && r == 0; i++)
		for (unsigned j = 0; j < WIDTH && r == 0; j++)
			r = expect_equal("the least", rows[i][j], i + j);
	return r < 0 ? r : expect_equal("the least of equals", rows[N - 1][0], UINT64_MAX);
}

/* Messages between all pairs of ranks, a rank and itself included. */
struct rank_pair {
	struct comm_transfer out[N_TAGS], in[N_TAGS];
	unsigned char *sent[N_TAGS], *received[N_TAGS];
};

/* Return a length below, slightly above or far above that of an announcement, by pair. */
static size_t length_of(unsigned from, unsigned to, unsigned tag, size_t max_nbytes)
{
	const size_t lengths[N_TAGS] = { 100, 5000, max_nbytes };

	return (lengths[tag] - from * 3 - to) % (max_nbytes + 1);
}

static int begin_pair(struct comm *comm, struct rank_pair *pair, unsigned peer, size_t max_nbytes)
{
	const unsigned rank = comm_rank(comm);
	int r = 0;

	for (unsigned tag = 0; tag < N_TAGS && r == 0; tag++) {
		const size_t nbytes = length_of(rank, peer, tag, max_nbytes);

		pair->sent[tag] = malloc(nbytes + 1);
		if (!pair->sent[tag])
			return fail(-ENOMEM, "no memory");
		make_bytes(rank, peer, tag, pair->sent[tag], nbytes);
		r = comm_send(comm, peer, tag, pair->sent[tag], nbytes, &pair->out[tag]);
	}
	/* Receive the last messages first. */
	for (unsigned tag = N_TAGS; tag-- > 0 && r == 0;) {
		const size_t nbytes = length_of(peer, rank, tag, max_nbytes);

		pair->received[tag] = malloc(nbytes + 1);
		if (!pair->received[tag])
			return fail(-ENOMEM, "no memory");
		r = comm_receive(comm, peer, tag, pair->received[tag], nbytes, 0, &pair->in[tag]);
	}
	return r;
}

static int end_pair(struct comm *comm, struct rank_pair *pair, unsigned peer, size_t max_nbytes)
{
	const unsigned rank = comm_rank(comm);
	int r = 0;

	for (unsigned tag = 0; tag < N_TAGS && r == 0; tag++) {
		r = comm_wait(comm, &pair->in[tag]);
		if (r == 0)
			r = expect_equal("a length", pair->in[tag].nbytes,
					 length_of(peer, rank, tag, max_nbytes));
		if (r == 0)
			r = expect_bytes(peer, rank, tag, pair->received[tag],
					 pair->in[tag].nbytes);
		if (r == 0)
			r = comm_wait(comm, &pair->out[tag]);
	}
	return r;
}

static int try_pairs(struct comm *comm, size_t max_nbytes)
{
	const unsigned rank = comm_rank(comm), size = comm_size(comm);
	struct rank_pair *pairs = calloc(size, sizeof *pairs);
	int r = pairs ? 0 : fail(-ENOMEM, "no memory");

	for (unsigned i = 0; i < size && r == 0; i++)
		r = begin_pair(comm, &pairs[(rank + i) % size], (rank + i) % size, max_nbytes);
	for (unsigned i = 0; i < size && r == 0; i++)
		r = end_pair(comm, &pairs[i], i, max_nbytes);
	/* After a failure the memory may still be in use. */
	for (unsigned i = 0; i < size && r == 0; i++)
		for (unsigned tag = 0; tag < N_TAGS; tag++) {
			free(pairs[i].sent[tag]);
			free(pairs[i].received[tag]);
		}
	if (r == 0)
		free(pairs);
	return r;
}

/* Rank 0 answers requests in the order in which they arrive. */
static int try_any_rank(struct comm *comm)
{
	const unsigned rank = comm_rank(comm), size = comm_size(comm);
	struct comm_transfer transfer;
	unsigned number = rank, n_requests = 0;
	bool is_done = false;
	int r = 0;

	for (; rank == 0 && n_requests < size - 1 && r == 0; n_requests++) {
		r = comm_receive(comm, COMM_ANY_RANK, 9, &number, sizeof number, 0, &transfer);
		if (r == 0)
			r = comm_wait(comm, &transfer);
		if (r == 0)
			r = expect_equal("who asks", transfer.from, number);
		if (r == 0)
			r = comm_send(comm, transfer.from, 10, &number, sizeof number, &transfer);
		if (r == 0)
			r = comm_wait(comm, &transfer);
	}
	if (rank == 0 || r < 0)
		return r;
	r = comm_send(comm, 0, 9, &number, sizeof number, &transfer);
	if (r == 0)
		r = comm_wait(comm, &transfer);
	number = 0;
	if (r == 0)
		r = comm_receive(comm, 0, 10, &number, sizeof number, 0, &transfer);
	while (r == 0 && !is_done)
		r = comm_wait_until(comm, &transfer, 0, &is_done);
	return r < 0 ? r : expect_equal("the answer", number, rank);
}

int comm_exercise(struct comm *comm, size_t max_nbytes)
{
	unsigned char *bytes = malloc(max_nbytes + 1);
	int r = bytes ? 0 : fail(-ENOMEM, "no memory");

	if (r == 0)
		r = try_broadcasts(comm, bytes, max_nbytes);
	if (r == 0)
		r = try_allgather(comm);
	if (r == 0)
		r = try_allgatherv(comm, bytes, max_nbytes);
	if (r == 0)
		r = try_sums(comm);
	if (r == 0)
		r = try_min(comm);
	if (r == 0)
		r = try_pairs(comm, max_nbytes);
	if (r == 0)
		r = try_any_rank(comm);
	if (r == 0)
		r = comm_barrier(comm);
	free(bytes);
	return r;
}
