/*
 * collectives - what all ranks do together, over messages (see comm.h)
 *
 * Each takes as many rounds as 2 must be doubled to reach the number of ranks. Messages with one
 * tag between two ranks keep their order, so a collective needs nothing to be told from the next.
 *
 *	broadcast       a tree: who has it passes it on: 0 -> 4, then 0 -> 2, 4 -> 6, then ...
 *	sum, least      the same tree backwards, then a broadcast
 *	gather_all      in round k each rank has 2^k ranks' bytes, its own and those behind it, and
 *	                gives them to the one 2^k before it, which so has twice as many
 *	barrier         the same, of nothing
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/comm/comm.h"
#include "src/comm/tags.h"

enum { TAG = RANKS_TAG_COLLECTIVES };

static int send_whole(struct ranks *ranks, unsigned to, const void *data, size_t nbytes)
{
	struct ranks_transfer transfer;
	int r = ranks_send(ranks, to, TAG, data, nbytes, &transfer);

	return r < 0 ? r : ranks_wait(ranks, &transfer);
}

static int receive_whole(struct ranks *ranks, unsigned from, void *data, size_t nbytes)
{
	struct ranks_transfer transfer;
	int r = ranks_receive(ranks, from, TAG, data, nbytes, &transfer);

	return r < 0 ? r : ranks_wait(ranks, &transfer);
}

/* The smallest power of two that is not below n. */
static unsigned power_for(unsigned n)
{
	unsigned power = 1;

	while (power < n)
		power *= 2;
	return power;
}

int ranks_broadcast(struct ranks *ranks, void *data, size_t nbytes, unsigned root)
{
	const unsigned size = ranks_size(ranks);
	const unsigned from_root = (ranks_rank(ranks) + size - root) % size;
	/* Who has it in the beginning of a round, of those that are a multiple of 2 * step away. */
	unsigned step = from_root == 0 ? power_for(size) : from_root & -from_root;
	int r = 0;

	if (from_root != 0)
		r = receive_whole(ranks, (from_root - step + root) % size, data, nbytes);
	for (step /= 2; step > 0 && r == 0; step /= 2)
		if (from_root + step < size)
			r = send_whole(ranks, (from_root + step + root) % size, data, nbytes);
	return r;
}

/* Takes in what another rank has: `count` rows of `width` words. */
typedef void combiner(uint64_t *rows, const uint64_t *others, size_t count, size_t width);

static void add(uint64_t *rows, const uint64_t *others, size_t count, size_t width)
{
	for (size_t i = 0; i < count * width; i++)
		rows[i] += others[i];
}

static void keep_least(uint64_t *rows, const uint64_t *others, size_t count, size_t width)
{
	for (size_t i = 0; i < count * width; i += width)
		if (others[i] < rows[i])
			memcpy(rows + i, others + i, width * sizeof *rows);
}

/* To rank 0: each combines what comes from those below it in the tree, and passes it on. */
static int combine_all(struct ranks *ranks, combiner *combine, uint64_t *rows, uint64_t *others,
		       size_t count, size_t width)
{
	const unsigned rank = ranks_rank(ranks), size = ranks_size(ranks);
	const size_t nbytes = count * width * sizeof *rows;
	int r = 0;

	for (unsigned step = 1; step < size && r == 0; step *= 2) {
		if (rank & step)
			return send_whole(ranks, rank - step, rows, nbytes);
		if (rank + step >= size)
			continue;
		r = receive_whole(ranks, rank + step, others, nbytes);
		if (r == 0)
			combine(rows, others, count, width);
	}
	return r;
}

static int reduce(struct ranks *ranks, combiner *combine, uint64_t *rows, size_t count,
		  size_t width)
{
	const size_t nbytes = count * width * sizeof *rows;
	uint64_t *others = malloc(nbytes + 1);
	int r;

	if (!others)
		return fail(-ENOMEM, "no memory for %zu values of all ranks", count);
	r = combine_all(ranks, combine, rows, others, count, width);
	if (r == 0)
		r = ranks_broadcast(ranks, rows, nbytes, 0);
	free(others);
	return r;
}

int ranks_sum(struct ranks *ranks, uint64_t *values, size_t count)
{
	return reduce(ranks, add, values, count, 1);
}

int ranks_least(struct ranks *ranks, uint64_t *rows, size_t count, size_t width)
{
	return reduce(ranks, keep_least, rows, count, width);
}

/* Where the bytes of each rank are: those of rank i from at[i] to at[i + 1]. */
struct places {
	char *all;
	const size_t *at;
	unsigned size;
};

/*
 * A part of the circle of ranks as a stretch up to the last rank, and one from rank 0 on if there
 * is any. Returns their number.
 */
static int stretches(const struct places *places, unsigned first, unsigned n, char *ret_data[2],
		     size_t ret_nbytes[2])
{
	const unsigned end = first + n < places->size ? first + n : places->size;

	ret_data[0] = places->all + places->at[first];
	ret_nbytes[0] = places->at[end] - places->at[first];
	ret_data[1] = places->all;
	ret_nbytes[1] = places->at[first + n - end];
	return first + n > places->size ? 2 : 1;
}

/* Give n ranks' bytes from one's own on to `to`, and get as many, from `from`'s own on. */
static int exchange(struct ranks *ranks, const struct places *places, unsigned to, unsigned from,
		    unsigned n)
{
	struct ranks_transfer out[2], in[2];
	char *data[2], *room[2];
	size_t nbytes[2], capacity[2];
	const int n_out = stretches(places, ranks_rank(ranks), n, data, nbytes);
	const int n_in = stretches(places, from, n, room, capacity);
	int r = 0;

	for (int i = 0; i < n_in && r == 0; i++)
		r = ranks_receive(ranks, from, TAG, room[i], capacity[i], &in[i]);
	for (int i = 0; i < n_out && r == 0; i++)
		r = ranks_send(ranks, to, TAG, data[i], nbytes[i], &out[i]);
	for (int i = 0; i < n_in && r == 0; i++)
		r = ranks_wait(ranks, &in[i]);
	for (int i = 0; i < n_out && r == 0; i++)
		r = ranks_wait(ranks, &out[i]);
	return r;
}

static int gather(struct ranks *ranks, const struct places *places)
{
	const unsigned rank = ranks_rank(ranks), size = places->size;
	int r = 0;

	for (unsigned n = 1; n < size && r == 0; n *= 2)
		r = exchange(ranks, places, (rank + size - n) % size, (rank + n) % size,
			     n < size - n ? n : size - n);
	return r;
}

/* sizes[] of each; NULL: nbytes. */
static int gather_sizes(struct ranks *ranks, const void *mine, size_t nbytes, const size_t *sizes,
			void *all)
{
	const unsigned rank = ranks_rank(ranks), size = ranks_size(ranks);
	size_t *at = malloc((size + 1) * sizeof *at);
	int r;

	if (!at)
		return fail(-ENOMEM, "no memory for what %u ranks have", size);
	at[0] = 0;
	for (unsigned i = 0; i < size; i++)
		at[i + 1] = at[i] + (sizes ? sizes[i] : nbytes);
	if (nbytes > 0)
		memmove((char *)all + at[rank], mine, nbytes);
	r = gather(ranks, &(struct places){ all, at, size });
	free(at);
	return r;
}

int ranks_gather_all(struct ranks *ranks, const void *mine, size_t nbytes, void *ret_all)
{
	return gather_sizes(ranks, mine, nbytes, NULL, ret_all);
}

int ranks_gather_all_varying(struct ranks *ranks, const void *mine, size_t nbytes, void **ret_all,
			     size_t *ret_sizes)
{
	size_t total = 0;
	void *all;
	int r = ranks_gather_all(ranks, &nbytes, sizeof nbytes, ret_sizes);

	for (unsigned i = 0; i < ranks_size(ranks) && r == 0; i++)
		if (__builtin_add_overflow(total, ret_sizes[i], &total))
			r = fail(-EOVERFLOW, "what the ranks have together is too long");
	if (r < 0)
		return r;
	all = malloc(total + 1);
	if (!all)
		return fail(-ENOMEM, "no memory for the %zu bytes that the ranks have together",
			    total);
	r = gather_sizes(ranks, mine, nbytes, ret_sizes, all);
	if (r < 0)
		free(all);
	else
		*ret_all = all;
	return r;
}

int ranks_barrier(struct ranks *ranks)
{
	char nothing = 0;

	return ranks_gather_all(ranks, &nothing, 0, &nothing);
}
