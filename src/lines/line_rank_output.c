/*
 * line_rank_output.c - the output of several ranks (see line_sort_internal.h)
 *
 * The lines of a rank, its partition, follow those of the rank before it. With part files they are
 * in several files, of which other ranks write the beginning of the first and the end of the last:
 *
 *	part files   |     0     |     1     |     2     |     3     |
 *	partitions   0000000000000001111111111111111111111111222222222
 *
 * A file is divided into stripes, each of which one rank writes (sort_output_ranks.c). A rank keeps
 * its bytes of the stripe in which its partition begins, the head. At the end it sends the head to
 * the rank in whose partition that stripe begins.
 *
 * Rank 0 creates the files and commits them.
 */
#include "src/lines/line_sort.h"
#include "src/lines/line_sort_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/comm/comm.h"

/* What ranks tell each other; header and stripe are those of rank 0. */
struct rank_share {
	struct line_extent extent;
	uint64_t header_nbytes, stripe_nbytes;
};

struct line_rank_output {
	struct rank_share *shares; /* of each rank */
	uint64_t header_nbytes, stripe_nbytes;
	unsigned char *head;
	uint64_t head_begin, head_end;
};

static bool is_first(const struct line_sort *sort)
{
	return comm_rank(sort->spec->comm) == 0;
}

int line_ranks_open_output(struct line_sort *sort)
{
	const struct sort_spec *spec = sort->spec;
	char name[TEMP_NAME_SIZE] = "";
	int r = 0;

	if (is_first(sort))
		r = output_open_shared(sort->calls, spec->output_path, OUTPUT_SIZE_UNKNOWN, true,
				       NULL, &sort->output);
	if (r < 0)
		return r;
	if (is_first(sort))
		memcpy(name, output_shared_name(sort->output), sizeof name);
	r = comm_broadcast(spec->comm, name, sizeof name, 0);
	name[sizeof name - 1] = '\0';
	if (r == 0 && !is_first(sort))
		r = output_open_shared_existing(sort->calls, spec->output_path, name,
						&sort->output);
	/* If rank 0 fails later, it removes the file; by then all ranks have opened it. */
	return r < 0 ? r : comm_barrier(spec->comm);
}

int line_ranks_number_lines(const struct line_sort *sort, uint64_t n, uint64_t *ret_n_before,
			    uint64_t *ret_n_all)
{
	struct comm *comm = sort->spec->comm;
	const unsigned n_ranks = comm_size(comm);
	uint64_t *counts = calloc(n_ranks, sizeof *counts);
	const int r = counts ? comm_allgather(comm, &n, sizeof n, counts) :
			       fail(-ENOMEM, "no memory for %u ranks", n_ranks);

	*ret_n_before = *ret_n_all = 0;
	for (unsigned i = 0; i < n_ranks && r == 0; i++) {
		if (i < comm_rank(comm))
			*ret_n_before += counts[i];
		*ret_n_all += counts[i];
	}
	free(counts);
	return r;
}

/* --- Places --- */

/* Return the bytes of a rank in the first or the last file that it shares with others. */
static uint64_t shared_nbytes(const struct line_rank_output *out, unsigned rank, uint32_t file)
{
	const struct line_extent *extent = &out->shares[rank].extent;

	if (extent->nbytes == 0)
		return 0;
	if (file == extent->first)
		return extent->first_nbytes;
	return file == extent->last ? extent->last_nbytes : 0;
}

/* Return where the lines of a rank begin in the first of its files, or in another one. */
static uint64_t begin_offset(const struct line_rank_output *out, unsigned rank, uint32_t file)
{
	uint64_t offset = out->header_nbytes;

	for (unsigned i = 0; i < rank; i++)
		offset += shared_nbytes(out, i, file);
	return offset;
}

/* Find the head of a rank in its first file. Returns its size. */
static size_t find_head(const struct line_rank_output *out, unsigned rank, uint64_t *ret_begin)
{
	const struct line_extent *extent = &out->shares[rank].extent;
	const uint64_t begin = begin_offset(out, rank, (uint32_t)extent->first);

	*ret_begin = begin;
	if (rank == 0 || extent->nbytes == 0)
		return 0;
	return (size_t)u64_min(round_up(begin, out->stripe_nbytes) - begin, extent->first_nbytes);
}

/* Return the rank in whose partition the stripe of a head begins; in a header: rank 0. */
static unsigned find_head_writer(const struct line_rank_output *out, unsigned rank, uint64_t begin)
{
	const uint32_t file = (uint32_t)out->shares[rank].extent.first;
	const uint64_t stripe = begin / out->stripe_nbytes * out->stripe_nbytes;

	while (rank > 0) {
		const uint64_t nbytes = shared_nbytes(out, rank, file);

		begin = begin_offset(out, rank, file);
		if (begin <= stripe && stripe < begin + nbytes)
			break;
		rank--;
	}
	return rank;
}

static int gather_shares(struct line_sort *sort, const struct line_extent *extent,
			 uint64_t header_nbytes)
{
	struct line_rank_output *out = sort->rank_output;
	struct comm *comm = sort->spec->comm;
	const struct rank_share own = {
		.extent = *extent,
		.header_nbytes = header_nbytes,
		.stripe_nbytes = is_first(sort) ? output_stripe_nbytes(sort->output) : 0
	};
	int r;

	out->shares = calloc(comm_size(comm), sizeof *out->shares);
	if (!out->shares)
		return fail(-ENOMEM, "no memory for %u ranks", comm_size(comm));
	r = comm_allgather(comm, &own, sizeof own, out->shares);
	out->header_nbytes = out->shares[0].header_nbytes;
	out->stripe_nbytes = out->shares[0].stripe_nbytes;
	return r;
}

/* Return where the lines of all ranks end in the single file. */
static uint64_t output_end(const struct line_sort *sort)
{
	return begin_offset(sort->rank_output, comm_size(sort->spec->comm), 0);
}

static int begin_file(struct line_sort *sort, const unsigned char *header)
{
	const struct line_rank_output *out = sort->rank_output;
	int r = 0;

	if (!is_first(sort))
		return output_check_limit(sort->output, output_end(sort));
	if (!sort->has_output_size)
		r = output_set_expected_size(sort->output, output_end(sort));
	if (r == 0 && out->header_nbytes > 0)
		r = output_write_at(sort->output, 0, header, (size_t)out->header_nbytes);
	return r;
}

int line_ranks_place_partition(struct line_sort *sort, const struct line_extent *extent)
{
	struct line_rank_output *out = calloc(1, sizeof *out);
	const unsigned rank = comm_rank(sort->spec->comm);
	const unsigned char *header;
	size_t header_nbytes;
	int r;

	sort->rank_output = out;
	if (!out)
		return fail(-ENOMEM, "no memory for the places of partitions");
	header = line_input_header(sort->input, &header_nbytes);
	r = gather_shares(sort, extent, header_nbytes);
	if (r < 0)
		return r;
	sort->offset = begin_offset(out, rank, (uint32_t)extent->first);
	out->head_end = find_head(out, rank, &out->head_begin);
	out->head = malloc(out->head_end + 1);
	out->head_end += out->head_begin;
	if (!out->head)
		return fail(-ENOMEM, "no memory for the beginning of a partition");
	if (!sort->parts)
		return begin_file(sort, header);
	line_part_files_place(sort, sort->offset);
	return 0;
}

int line_ranks_write(struct line_sort *sort, uint64_t offset, const void *bytes, size_t nbytes)
{
	const struct line_rank_output *out = sort->rank_output;
	const unsigned rank = comm_rank(sort->spec->comm);
	const bool is_first_file = line_output_current_file(sort) == out->shares[rank].extent.first;
	size_t n = 0;

	if (is_first_file && offset < out->head_end)
		n = u64_min(nbytes, out->head_end - offset);
	if (n > 0)
		memcpy(out->head + (offset - out->head_begin), bytes, n);
	return n == nbytes ? 0 :
			     output_write_at(sort->output, offset + n, (const char *)bytes + n,
					     nbytes - n);
}

/* --- Heads --- */

/* Write the head of another rank. */
static int receive_head(struct line_sort *sort, unsigned rank, uint64_t begin, size_t nbytes)
{
	const uint32_t file = (uint32_t)sort->rank_output->shares[rank].extent.first;
	unsigned char *head = malloc(nbytes);
	int r = head ? comm_receive_wait(sort->spec->comm, rank, COMM_TAG_STRIPES, head, nbytes) :
		       fail(-ENOMEM, "no memory for the beginning of a partition");

	if (r == 0)
		r = output_write_at(line_output_file(sort, file), begin, head, nbytes);
	free(head);
	return r;
}

/*
 * Send the head to its writer, and write those of other ranks. They are in the last file of this
 * rank. *ret_nbytes: of the heads written.
 */
static int exchange_heads(struct line_sort *sort, uint64_t *ret_nbytes)
{
	const struct line_rank_output *out = sort->rank_output;
	struct comm *comm = sort->spec->comm;
	const unsigned rank = comm_rank(comm);
	const size_t own_nbytes = (size_t)(out->head_end - out->head_begin);
	struct comm_transfer transfer;
	int r = 0;

	*ret_nbytes = 0;
	if (own_nbytes > 0)
		r = comm_send(comm, find_head_writer(out, rank, out->head_begin), COMM_TAG_STRIPES,
			      out->head, own_nbytes, &transfer);
	for (unsigned i = rank + 1; i < comm_size(comm) && r == 0; i++) {
		uint64_t begin;
		const size_t nbytes = find_head(out, i, &begin);

		if (nbytes == 0 || find_head_writer(out, i, begin) != rank)
			continue;
		r = receive_head(sort, i, begin, nbytes);
		*ret_nbytes += nbytes;
	}
	return r == 0 && own_nbytes > 0 ? comm_wait(comm, &transfer) : r;
}

/* --- The end --- */

/* Check that the single file has all bytes of this rank, and note what other ranks have written. */
static int finish_file(struct line_sort *sort, uint64_t head_nbytes)
{
	const struct line_rank_output *out = sort->rank_output;
	const unsigned rank = comm_rank(sort->spec->comm);
	const uint64_t end = begin_offset(out, rank + 1, 0);

	if (sort->offset != end)
		return fail(-EIO,
			    "internal error: the partition of this rank ends at %" PRIu64
			    ", not at %" PRIu64,
			    sort->offset, end);
	if (is_first(sort) && output_end(sort) > end)
		output_record_remote_writes(sort->output, output_end(sort) - end - head_nbytes,
					    output_end(sort));
	return 0;
}

int line_rank_output_finish(struct line_sort *sort)
{
	uint64_t nbytes = 0;
	const int r = exchange_heads(sort, &nbytes);

	if (r < 0)
		return r;
	return sort->parts ? line_part_files_finish(sort, nbytes) : finish_file(sort, nbytes);
}

int line_ranks_close_output(struct line_sort *sort, bool is_synced)
{
	struct output *output = sort->output;
	int r = 0;

	if (!is_first(sort)) {
		r = is_synced ? output_sync(output) : 0;
		if (r < 0)
			return r;
		sort->output = NULL;
		r = output_close_shared(output);
	}
	return r < 0 ? r : comm_barrier(sort->spec->comm);
}

void line_rank_output_close(struct line_sort *sort)
{
	struct line_rank_output *out = sort->rank_output;

	if (!out)
		return;
	free(out->shares);
	free(out->head);
	free(out);
}
