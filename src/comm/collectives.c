/*
 * collectives.c - collective operations, built from messages (see comm.h)
 *
 * A collective takes ceil(log2(size)) rounds. Messages with the same tag between two ranks keep
 * their order, so successive collectives need no numbers.
 *
 *	broadcast      binomial tree: 0 -> 4, then 0 -> 2 and 4 -> 6, then ...
 *	allreduce      the same tree backwards, then a broadcast
 *	allgather      Bruck's algorithm: in round k each rank has the data of 2^k ranks, its own
 *	               and those that follow it. It sends them to the rank 2^k before it, which
 *	               then has twice as many
 *	barrier        an allgather of nothing
 *
 * Bruck et al., "Efficient algorithms for all-to-all communications in multiport message-passing
 * systems", IEEE TPDS 1997.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/comm/comm.h"

enum { TAG = COMM_TAG_COLLECTIVES };

int comm_send_wait(struct comm *comm, unsigned to, unsigned tag, const void *data, size_t nbytes)
{
	struct comm_transfer transfer;
	const int r = comm_send(comm, to, tag, data, nbytes, &transfer);

	return r < 0 ? r : comm_wait(comm, &transfer);
}

int comm_receive_wait(struct comm *comm, unsigned from, unsigned tag, void *data, size_t nbytes)
{
	struct comm_transfer transfer;
	const int r = comm_receive(comm, from, tag, data, nbytes, 0, &transfer);

	return r < 0 ? r : comm_wait(comm, &transfer);
}

/* Return the smallest power of two that is at least n. */
static unsigned ceil_power_of_two(unsigned n)
{
	unsigned power = 1;

	while (power < n)
		power *= 2;
	return power;
}

int comm_broadcast(struct comm *comm, void *data, size_t nbytes)
{
	const unsigned rank = comm_rank(comm), size = comm_size(comm);
	/* At the beginning of a round, the multiples of 2 * step have the data. */
	unsigned step = rank == 0 ? ceil_power_of_two(size) : rank & -rank;
	int r = 0;

	if (rank != 0)
		r = comm_receive_wait(comm, rank - step, TAG, data, nbytes);
	for (step /= 2; step > 0 && r == 0; step /= 2)
		if (rank + step < size)
			r = comm_send_wait(comm, rank + step, TAG, data, nbytes);
	return r;
}

/* Combine the rows of another rank, `count` of `width` words, into `rows`. */
typedef void combine_fn(uint64_t *rows, const uint64_t *other_rows, size_t count, size_t width);

static void add_rows(uint64_t *rows, const uint64_t *other_rows, size_t count, size_t width)
{
	for (size_t i = 0; i < count * width; i++)
		rows[i] += other_rows[i];
}

static void keep_min_rows(uint64_t *rows, const uint64_t *other_rows, size_t count, size_t width)
{
	for (size_t i = 0; i < count * width; i += width)
		if (other_rows[i] < rows[i])
			memcpy(rows + i, other_rows + i, width * sizeof *rows);
}

/* Each rank combines the rows of its children and sends them to its parent. */
static int reduce_and_broadcast(struct comm *comm, combine_fn *combine, uint64_t *rows,
				size_t count, size_t width)
{
	const unsigned rank = comm_rank(comm), size = comm_size(comm);
	const size_t nbytes = count * width * sizeof *rows;
	uint64_t *other_rows = malloc(nbytes + 1);
	unsigned step = 1;
	int r = 0;

	if (!other_rows)
		return fail(-ENOMEM, "no memory for %zu values of all ranks", count);
	for (; step < size && !(rank & step) && r == 0; step *= 2) {
		if (rank + step >= size)
			continue;
		r = comm_receive_wait(comm, rank + step, TAG, other_rows, nbytes);
		if (r == 0)
			combine(rows, other_rows, count, width);
	}
	if (r == 0 && rank > 0)
		r = comm_send_wait(comm, rank - step, TAG, rows, nbytes);
	if (r == 0)
		r = comm_broadcast(comm, rows, nbytes);
	free(other_rows);
	return r;
}

int comm_allreduce_sum(struct comm *comm, uint64_t *values, size_t count)
{
	return reduce_and_broadcast(comm, add_rows, values, count, 1);
}

int comm_allreduce_min(struct comm *comm, uint64_t *rows, size_t count, size_t width)
{
	return reduce_and_broadcast(comm, keep_min_rows, rows, count, width);
}

/* The data of rank i is at offsets[i] to offsets[i + 1]. */
struct gather_buffer {
	char *data;
	const size_t *offsets;
	unsigned n_ranks;
};

/*
 * Split n ranks of the circle from `first` on into at most two contiguous spans. Return their
 * number.
 */
static int contiguous_spans(const struct gather_buffer *buffer, unsigned first, unsigned n,
			    char *ret_data[2], size_t ret_nbytes[2])
{
	const unsigned end = first + n < buffer->n_ranks ? first + n : buffer->n_ranks;

	ret_data[0] = buffer->data + buffer->offsets[first];
	ret_nbytes[0] = buffer->offsets[end] - buffer->offsets[first];
	ret_data[1] = buffer->data;
	ret_nbytes[1] = buffer->offsets[first + n - end];
	return first + n > buffer->n_ranks ? 2 : 1;
}

/*
 * Send the data of n ranks, beginning with this one, and receive the data of n ranks, beginning
 * with `from`.
 */
static int exchange_round(struct comm *comm, const struct gather_buffer *buffer, unsigned to,
			  unsigned from, unsigned n)
{
	struct comm_transfer out[2], in[2];
	char *send_data[2], *receive_data[2];
	size_t send_nbytes[2], receive_nbytes[2];
	const int n_out = contiguous_spans(buffer, comm_rank(comm), n, send_data, send_nbytes);
	const int n_in = contiguous_spans(buffer, from, n, receive_data, receive_nbytes);
	int r = 0;

	for (int i = 0; i < n_in && r == 0; i++)
		r = comm_receive(comm, from, TAG, receive_data[i], receive_nbytes[i], 0, &in[i]);
	for (int i = 0; i < n_out && r == 0; i++)
		r = comm_send(comm, to, TAG, send_data[i], send_nbytes[i], &out[i]);
	for (int i = 0; i < n_in && r == 0; i++)
		r = comm_wait(comm, &in[i]);
	for (int i = 0; i < n_out && r == 0; i++)
		r = comm_wait(comm, &out[i]);
	return r;
}

/* sizes: of each rank; NULL: nbytes. */
static int gather_sized(struct comm *comm, const void *own_data, size_t nbytes, const size_t *sizes,
			void *gathered)
{
	const unsigned rank = comm_rank(comm), size = comm_size(comm);
	size_t *offsets = malloc((size + 1) * sizeof *offsets);
	const struct gather_buffer buffer = { gathered, offsets, size };
	int r = 0;

	if (!offsets)
		return fail(-ENOMEM, "no memory for the data of %u ranks", size);
	offsets[0] = 0;
	for (unsigned i = 0; i < size; i++)
		offsets[i + 1] = offsets[i] + (sizes ? sizes[i] : nbytes);
	if (nbytes > 0)
		memmove((char *)gathered + offsets[rank], own_data, nbytes);
	for (unsigned n = 1; n < size && r == 0; n *= 2)
		r = exchange_round(comm, &buffer, (rank + size - n) % size, (rank + n) % size,
				   n < size - n ? n : size - n);
	free(offsets);
	return r;
}

int comm_allgather(struct comm *comm, const void *own_data, size_t nbytes, void *ret_data)
{
	return gather_sized(comm, own_data, nbytes, NULL, ret_data);
}

int comm_allgatherv(struct comm *comm, const void *own_data, size_t nbytes, void **ret_data,
		    size_t *ret_sizes)
{
	size_t total = 0;
	void *gathered;
	int r = comm_allgather(comm, &nbytes, sizeof nbytes, ret_sizes);

	for (unsigned i = 0; i < comm_size(comm) && r == 0; i++)
		if (__builtin_add_overflow(total, ret_sizes[i], &total))
			r = fail(-EOVERFLOW, "the data of all ranks is too large");
	if (r < 0)
		return r;
	gathered = malloc(total + 1);
	if (!gathered)
		return fail(-ENOMEM, "no memory for %zu bytes of all ranks", total);
	r = gather_sized(comm, own_data, nbytes, ret_sizes, gathered);
	if (r < 0)
		free(gathered);
	else
		*ret_data = gathered;
	return r;
}

int comm_barrier(struct comm *comm)
{
	char empty = 0;

	return comm_allgather(comm, &empty, 0, &empty);
}
