/*
 * ranks_exchange - everything that ranks can do with each other, once (see ranks_exchange.h)
 */
#include "tests/support/ranks_exchange.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/comm/comm.h"

enum { N_TAGS = 3 };

/* What rank `from` sends to rank `to` with a tag: bytes that nobody else sends. */
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

static int expect_equal(const char *what, uint64_t is, uint64_t must_be)
{
	return is == must_be ? 0 :
			       fail(-EILSEQ, "%s is %ju where it must be %ju", what, (uintmax_t)is,
				    (uintmax_t)must_be);
}

static int try_broadcasts(struct ranks *ranks, unsigned char *bytes, size_t long_nbytes)
{
	const size_t lengths[] = { 0, 1, 5000, long_nbytes };
	int r = 0;

	for (unsigned root = 0; root < ranks_size(ranks); root++)
		for (unsigned i = 0; i < 4 && r == 0; i++) {
			if (lengths[i] > long_nbytes)
				continue;
			memset(bytes, 0, lengths[i]);
			if (ranks_rank(ranks) == root)
				make_bytes(root, root, i, bytes, lengths[i]);
			r = ranks_broadcast(ranks, bytes, lengths[i], root);
			if (r == 0)
				r = expect_bytes(root, root, i, bytes, lengths[i]);
		}
	return r;
}

static int try_gathers(struct ranks *ranks)
{
	const unsigned rank = ranks_rank(ranks), size = ranks_size(ranks);
	unsigned char *all = malloc((size_t)size * 11), mine[11];
	int r = all ? 0 : fail(-ENOMEM, "no memory");

	make_bytes(rank, 0, 77, mine, sizeof mine);
	if (r == 0)
		r = ranks_gather_all(ranks, mine, sizeof mine, all);
	for (unsigned i = 0; i < size && r == 0; i++)
		r = expect_bytes(i, 0, 77, all + i * sizeof mine, sizeof mine);
	free(all);
	return r;
}

/* Rank i has i^2 times 1000 bytes, so rank 0 has none. */
static int try_varying(struct ranks *ranks, unsigned char *bytes, size_t long_nbytes)
{
	const unsigned rank = ranks_rank(ranks), size = ranks_size(ranks);
	size_t nbytes = (size_t)rank * rank * 1000 % (long_nbytes + 1), at = 0;
	size_t *sizes = malloc(size * sizeof *sizes);
	void *all = NULL;
	int r = sizes ? 0 : fail(-ENOMEM, "no memory");

	make_bytes(rank, 0, 78, bytes, nbytes);
	if (r == 0)
		r = ranks_gather_all_varying(ranks, bytes, nbytes, &all, sizes);
	for (unsigned i = 0; i < size && r == 0; i++) {
		r = expect_equal("a length", sizes[i], (size_t)i * i * 1000 % (long_nbytes + 1));
		if (r == 0)
			r = expect_bytes(i, 0, 78, (char *)all + at, sizes[i]);
		at += sizes[i];
	}
	free(all);
	free(sizes);
	return r;
}

static int try_sums(struct ranks *ranks)
{
	const unsigned rank = ranks_rank(ranks), size = ranks_size(ranks);
	uint64_t values[700];
	int r;

	for (unsigned i = 0; i < 700; i++)
		values[i] = i == 0 ? UINT64_MAX : (uint64_t)rank * i;
	r = ranks_sum(ranks, values, 700);
	if (r == 0)
		r = expect_equal("a sum", values[0], -(uint64_t)size);
	for (unsigned i = 1; i < 700 && r == 0; i++)
		r = expect_equal("a sum", values[i], (uint64_t)size * (size - 1) / 2 * i);
	return r == 0 ? ranks_sum(ranks, values, 0) : r;
}

/* Rows of three words: of row i, that of rank i is the least, and of all further ones any. */
static int try_least(struct ranks *ranks)
{
	enum { N = 300, WIDTH = 3 };
	const unsigned rank = ranks_rank(ranks), size = ranks_size(ranks);
	uint64_t rows[N][WIDTH];
	int r;

	for (unsigned i = 0; i < N; i++)
		for (unsigned j = 0; j < WIDTH; j++)
			rows[i][j] = j == 0 ? (i == rank ? i : UINT64_MAX) : rank + j;
	r = ranks_least(ranks, &rows[0][0], N, WIDTH);
	for (unsigned i = 0; i < size && r == 0; i++)
		for (unsigned j = 0; j < WIDTH && r == 0; j++)
			r = expect_equal("the least", rows[i][j], i + j);
	return r < 0 ? r : expect_equal("the least of equals", rows[N - 1][0], UINT64_MAX);
}

/* Messages between all pairs, oneself included: of one rank to one other. */
struct pair {
	struct ranks_transfer out[N_TAGS], in[N_TAGS];
	unsigned char *sent[N_TAGS], *received[N_TAGS];
};

/* Shorter than an announcement, a little longer, and long; not the same for two pairs. */
static size_t length_of(unsigned from, unsigned to, unsigned tag, size_t long_nbytes)
{
	const size_t lengths[N_TAGS] = { 100, 5000, long_nbytes };

	return (lengths[tag] - from * 3 - to) % (long_nbytes + 1);
}

static int begin_pair(struct ranks *ranks, struct pair *pair, unsigned peer, size_t long_nbytes)
{
	const unsigned rank = ranks_rank(ranks);
	int r = 0;

	for (unsigned tag = 0; tag < N_TAGS && r == 0; tag++) {
		const size_t nbytes = length_of(rank, peer, tag, long_nbytes);

		pair->sent[tag] = malloc(nbytes + 1);
		if (!pair->sent[tag])
			return fail(-ENOMEM, "no memory");
		make_bytes(rank, peer, tag, pair->sent[tag], nbytes);
		r = ranks_send(ranks, peer, tag, pair->sent[tag], nbytes, &pair->out[tag]);
	}
	/* Those that were sent last are wanted first. */
	for (unsigned tag = N_TAGS; tag-- > 0 && r == 0;) {
		const size_t nbytes = length_of(peer, rank, tag, long_nbytes);

		pair->received[tag] = malloc(nbytes + 1);
		if (!pair->received[tag])
			return fail(-ENOMEM, "no memory");
		r = ranks_receive(ranks, peer, tag, pair->received[tag], nbytes, &pair->in[tag]);
	}
	return r;
}

static int end_pair(struct ranks *ranks, struct pair *pair, unsigned peer, size_t long_nbytes)
{
	const unsigned rank = ranks_rank(ranks);
	int r = 0;

	for (unsigned tag = 0; tag < N_TAGS && r == 0; tag++) {
		r = ranks_wait(ranks, &pair->in[tag]);
		if (r == 0)
			r = expect_equal("a length", pair->in[tag].nbytes,
					 length_of(peer, rank, tag, long_nbytes));
		if (r == 0)
			r = expect_bytes(peer, rank, tag, pair->received[tag],
					 pair->in[tag].nbytes);
		if (r == 0)
			r = ranks_wait(ranks, &pair->out[tag]);
	}
	return r;
}

static int try_pairs(struct ranks *ranks, size_t long_nbytes)
{
	const unsigned rank = ranks_rank(ranks), size = ranks_size(ranks);
	struct pair *pairs = calloc(size, sizeof *pairs);
	int r = pairs ? 0 : fail(-ENOMEM, "no memory");

	for (unsigned i = 0; i < size && r == 0; i++)
		r = begin_pair(ranks, &pairs[(rank + i) % size], (rank + i) % size, long_nbytes);
	for (unsigned i = 0; i < size && r == 0; i++)
		r = end_pair(ranks, &pairs[i], i, long_nbytes);
	/* After a failure the memory may be in use. */
	for (unsigned i = 0; i < size && r == 0; i++)
		for (unsigned tag = 0; tag < N_TAGS; tag++) {
			free(pairs[i].sent[tag]);
			free(pairs[i].received[tag]);
		}
	if (r == 0)
		free(pairs);
	return r;
}

/* Rank 0 answers whoever asks, in the order in which they do. */
static int try_any(struct ranks *ranks)
{
	const unsigned rank = ranks_rank(ranks), size = ranks_size(ranks);
	struct ranks_transfer transfer;
	unsigned number = rank, n_asked = 0;
	bool is_done = false;
	int r = 0;

	for (; rank == 0 && n_asked < size - 1 && r == 0; n_asked++) {
		r = ranks_receive(ranks, RANKS_ANY, 9, &number, sizeof number, &transfer);
		if (r == 0)
			r = ranks_wait(ranks, &transfer);
		if (r == 0)
			r = expect_equal("who asks", transfer.from, number);
		if (r == 0)
			r = ranks_send(ranks, transfer.from, 10, &number, sizeof number, &transfer);
		if (r == 0)
			r = ranks_wait(ranks, &transfer);
	}
	if (rank == 0 || r < 0)
		return r;
	r = ranks_send(ranks, 0, 9, &number, sizeof number, &transfer);
	if (r == 0)
		r = ranks_wait(ranks, &transfer);
	number = 0;
	if (r == 0)
		r = ranks_receive(ranks, 0, 10, &number, sizeof number, &transfer);
	while (r == 0 && !is_done)
		r = ranks_test(ranks, &transfer, &is_done);
	return r < 0 ? r : expect_equal("the answer", number, rank);
}

int ranks_exchange(struct ranks *ranks, size_t long_nbytes)
{
	unsigned char *bytes = malloc(long_nbytes + 1);
	int r = bytes ? 0 : fail(-ENOMEM, "no memory");

	if (r == 0)
		r = try_broadcasts(ranks, bytes, long_nbytes);
	if (r == 0)
		r = try_gathers(ranks);
	if (r == 0)
		r = try_varying(ranks, bytes, long_nbytes);
	if (r == 0)
		r = try_sums(ranks);
	if (r == 0)
		r = try_least(ranks);
	if (r == 0)
		r = try_pairs(ranks, long_nbytes);
	if (r == 0)
		r = try_any(ranks);
	if (r == 0)
		r = ranks_barrier(ranks);
	free(bytes);
	return r;
}
