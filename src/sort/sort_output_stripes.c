/*
 * sort_output_stripes - no two ranks write to one stripe of a file (see sort_output_internal.h)
 *
 *	stripes   |           |           |           |
 *	ranks     0000000000000000011111111111112222222
 *	written   000000000000000000000000111111111111222	by whose range a stripe begins in
 *
 * Where the page of a file is in the caches of two machines, one that writes a part of it may write
 * all of it (NFS), and two that write to one stripe wait for each other (Lustre). So what a rank
 * has of the stripe that its range begins in, less than one, it keeps, and in the end sends to the
 * rank that writes the rest. The page with a header in front of the records is the first rank's.
 *
 * Of what is compressed a stripe is a frame, and where that is in the file has edges again, of
 * stored bytes (src/exchange/collective_zst.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/comm/comm.h"
#include "src/comm/tags.h"
#include "src/sort/sort_output_internal.h"

/* As it is sent. */
struct edge {
	uint64_t file, offset, nbytes;
	char data[];
};

/* What somebody else writes. */
struct kept_edge {
	struct kept_edge *next;
	unsigned owner;
	struct ranks_transfer transfer;
	struct edge edge;
};

int result_agree_stripe(struct result *result)
{
	if (!result->is_joined)
		result->stripe_nbytes = output_stripe_nbytes(result->outputs[0]);
	return ranks_broadcast(result->spec->ranks, &result->stripe_nbytes,
			       sizeof result->stripe_nbytes, 0);
}

/* In whose range the record is: the last of those that begin there or before it. */
static unsigned rank_of(const struct result *result, uint64_t record)
{
	unsigned low = 0, high = ranks_size(result->spec->ranks);

	while (high - low > 1) {
		const unsigned middle = low + (high - low) / 2;

		*(result->begins[middle] <= record ? &low : &high) = middle;
	}
	return low;
}

/* Who writes what is at `offset` of a file, and up to where. */
static unsigned owner_of(const struct result *result, uint32_t i, uint64_t offset,
			 uint64_t *ret_end)
{
	const uint64_t header_nbytes = result->spec->header_nbytes;
	const uint64_t first_nbytes =
		round_up(header_nbytes, result->is_framed ? result->stripe_nbytes :
							    (uint64_t)sysconf(_SC_PAGESIZE));
	const uint64_t begin = offset - offset % result->stripe_nbytes;
	uint64_t record = result->files[i].begin;

	if (offset < first_nbytes) {
		*ret_end = first_nbytes;
		return 0;
	}
	if (begin > header_nbytes)
		record += (begin - header_nbytes) / result->job->layout->output_nbytes;
	*ret_end = begin + result->stripe_nbytes;
	return rank_of(result, record);
}

int result_keep_for(struct result *result, uint32_t i, unsigned owner, uint64_t offset,
		    const void *data, size_t nbytes)
{
	struct kept_edge *kept = malloc(sizeof *kept + nbytes);

	if (!kept)
		return fail(-ENOMEM, "no memory for %zu bytes that another rank writes", nbytes);
	*kept = (struct kept_edge){ .owner = owner, .edge = { i, offset, nbytes } };
	memcpy(kept->edge.data, data, nbytes);
	pthread_mutex_lock(&result->lock);
	kept->next = result->kept;
	result->kept = kept;
	pthread_mutex_unlock(&result->lock);
	return 0;
}

uint64_t result_find_end(const struct result *result, uint32_t i)
{
	const struct result_file *file = &result->files[i];
	const uint64_t n = result_count_own(result, file);
	const uint64_t before = n > 0 && result->begin > file->begin ? result->begin - file->begin :
								       0;

	return result->spec->header_nbytes + (before + n) * result->job->layout->output_nbytes;
}

uint64_t result_find_begin(const struct result *result, uint32_t i)
{
	const struct result_file *file = &result->files[i];
	const uint64_t item_nbytes = result->job->layout->output_nbytes;
	const unsigned rank = ranks_rank(result->spec->ranks);
	const uint64_t own_end = result_find_end(result, i);
	uint64_t begin = 0, end;

	if (result->begin > file->begin)
		begin = own_end - result_count_own(result, file) * item_nbytes;
	while (begin < own_end && owner_of(result, i, begin, &end) != rank)
		begin = end;
	return begin;
}

int result_keep_edge(struct result *result, uint32_t i, uint64_t offset, const void *data,
		     size_t nbytes, size_t *ret_kept)
{
	const unsigned rank = result->begins ? ranks_rank(result->spec->ranks) : 0;
	size_t at = 0;
	int r = 0;

	while (result->begins && at < nbytes && r == 0) {
		uint64_t end;
		const unsigned owner = owner_of(result, i, offset + at, &end);
		const uint64_t n = end - offset - at < nbytes - at ? end - offset - at :
								     nbytes - at;

		if (owner == rank)
			break;
		r = result_keep_for(result, i, owner, offset + at, (const char *)data + at, n);
		at += n;
	}
	*ret_kept = at;
	return r;
}

/* *ret_n: how many edges come to this rank. */
static int count_edges(const struct result *result, uint64_t *ret_n)
{
	struct ranks *ranks = result->spec->ranks;
	uint64_t *counts = calloc(ranks_size(ranks), sizeof *counts);
	int r;

	if (!counts)
		return fail(-ENOMEM, "no memory for %u ranks", ranks_size(ranks));
	for (const struct kept_edge *kept = result->kept; kept; kept = kept->next)
		counts[kept->owner]++;
	r = ranks_sum(ranks, counts, ranks_size(ranks));
	*ret_n = counts[ranks_rank(ranks)];
	free(counts);
	return r;
}

/* Is it one, of nbytes with its header, of a stripe that this rank writes? */
static bool is_edge(const struct result *result, const struct edge *edge, size_t nbytes)
{
	uint64_t end;

	if (nbytes < sizeof *edge || edge->nbytes != nbytes - sizeof *edge ||
	    edge->file >= result->n_files || !result->outputs[edge->file] ||
	    edge->offset > UINT64_MAX - edge->nbytes)
		return false;
	return result->frames_are_made || (owner_of(result, (uint32_t)edge->file, edge->offset,
						    &end) == ranks_rank(result->spec->ranks) &&
					   edge->offset + edge->nbytes <= end);
}

static int write_edge(struct result *result, const struct edge *edge, unsigned from, size_t nbytes)
{
	if (!is_edge(result, edge, nbytes))
		return fail(-EPROTO,
			    "internal error: what rank %u on %s has sent is not of a stripe that "
			    "this rank writes; the output was not written",
			    from, ranks_host(result->spec->ranks, from));
	if (result->is_framed)
		return result_take_edge(result, (uint32_t)edge->file, edge->offset, edge->data,
					edge->nbytes);
	atomic_fetch_add(&result->files[edge->file].foreign_nbytes, edge->nbytes);
	return output_write_at(result->outputs[edge->file], edge->offset, edge->data, edge->nbytes);
}

/* What is stored of frames is cut at stripes of the file, which may be longer than a frame. */
static size_t most_edge_nbytes(const struct result *result)
{
	return sizeof(struct edge) +
	       (result->frames_are_made ? result->file_stripe_nbytes : result->stripe_nbytes);
}

/* One after the other, in any order. */
static int write_edges(struct result *result, uint64_t n, struct edge *room)
{
	int r = 0;

	for (; n > 0 && r == 0; n--) {
		struct ranks_transfer transfer;

		r = ranks_receive_up_to(result->spec->ranks, RANKS_ANY, RANKS_TAG_EDGES, room,
					most_edge_nbytes(result), &transfer);
		if (r == 0)
			r = ranks_wait(result->spec->ranks, &transfer);
		if (r == 0)
			r = write_edge(result, room, transfer.from, transfer.nbytes);
	}
	return r;
}

bool result_is_on_one_machine(const struct ranks *ranks)
{
	for (unsigned i = 1; i < ranks_size(ranks); i++)
		if (strcmp(ranks_host(ranks, i), ranks_host(ranks, 0)) != 0)
			return false;
	return true;
}

/* Whose records they are looks at them next, maybe on another machine. */
static int show_edges(struct result *result)
{
	int r = 0;

	if (!result->spec->verify || result->is_framed ||
	    result_is_on_one_machine(result->spec->ranks))
		return 0;
	for (uint32_t i = 0; i < result->n_files && r == 0; i++)
		if (atomic_load(&result->files[i].foreign_nbytes) > 0)
			r = output_sync(result->outputs[i]);
	return r;
}

static int send_edges(struct result *result)
{
	int r = 0;

	for (struct kept_edge *kept = result->kept; kept && r == 0; kept = kept->next)
		r = ranks_send(result->spec->ranks, kept->owner, RANKS_TAG_EDGES, &kept->edge,
			       sizeof kept->edge + kept->edge.nbytes, &kept->transfer);
	return r;
}

static int receive_edges(struct result *result, uint64_t n)
{
	struct edge *room = malloc(most_edge_nbytes(result));
	int r = room ? write_edges(result, n, room) :
		       fail(-ENOMEM, "no memory for what other ranks have begun");

	free(room);
	return r < 0 ? r : show_edges(result);
}

/* Twice where outputs are compressed: when they are counted, all have those of the first time. */
int result_pass_edges(struct result *result)
{
	uint64_t n = 0;
	int r = count_edges(result, &n);

	if (r == 0)
		r = send_edges(result);
	if (r == 0)
		r = receive_edges(result, n);
	for (struct kept_edge *kept = result->kept; kept && r == 0; kept = kept->next)
		r = ranks_wait(result->spec->ranks, &kept->transfer);
	if (r == 0)
		result_forget_edges(result);
	return r;
}

void result_forget_edges(struct result *result)
{
	while (result->kept) {
		struct kept_edge *kept = result->kept;

		result->kept = kept->next;
		free(kept);
	}
}
