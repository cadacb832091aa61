/*
 * line_rank_output.c - the output of several ranks (see line_sort_internal.h)
 *
 * The lines of a rank, its partition, follow those of the rank before it. With part files they are
 * in several files, of which other ranks write the beginning of the first and the end of the last:
 *
 *	part files   |     0     |     1     |     2     |     3     |
 *	partitions   0000000000000001111111111111111111111111222222222
 *
 * Each stripe of a file is written by one rank (file_set.h).
 *
 * Rank 0 creates the files and commits them. If they are compressed, it makes the frames of the
 * header and of empty files.
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

/* What ranks tell each other; the header is that of rank 0. */
struct rank_share {
	struct line_extent extent;
	uint64_t header_nbytes;
};

static bool is_first(const struct line_sort *sort)
{
	return comm_rank(sort->spec->comm) == 0;
}

/* --- Places --- */

/* Return the bytes of a rank in the first or the last file that it shares with others. */
static uint64_t shared_nbytes(const struct rank_share *share, uint32_t file)
{
	const struct line_extent *extent = &share->extent;

	if (extent->nbytes == 0)
		return 0;
	if (file == extent->first)
		return extent->first_nbytes;
	return file == extent->last ? extent->last_nbytes : 0;
}

/* Return where the lines of a rank begin in the first of its files, or in another one. */
static uint64_t begin_offset(const struct rank_share *shares, unsigned rank, uint32_t file)
{
	uint64_t offset = shares[0].header_nbytes;

	for (unsigned i = 0; i < rank; i++)
		offset += shared_nbytes(&shares[i], file);
	return offset;
}

/* Return where the lines of a rank begin; if there are none, where the next ones do. */
static struct file_position locate_rank(const void *context, unsigned rank)
{
	const struct line_sort *sort = context;
	const struct rank_share *shares = sort->rank_shares;

	for (; rank < comm_size(sort->spec->comm); rank++) {
		const uint64_t first = shares[rank].extent.first;

		if (shares[rank].extent.nbytes > 0)
			return (struct file_position){ first, begin_offset(shares, rank,
									   (uint32_t)first) };
	}
	return (struct file_position){ UINT64_MAX, 0 };
}

static int gather_shares(struct line_sort *sort, const struct line_extent *extent)
{
	struct comm *comm = sort->spec->comm;
	const struct rank_share own = { .extent = *extent, .header_nbytes = sort->input->n_header };

	sort->rank_shares = calloc(comm_size(comm), sizeof *sort->rank_shares);
	if (!sort->rank_shares)
		return fail(-ENOMEM, "no memory for %u ranks", comm_size(comm));
	return comm_allgather(comm, &own, sizeof own, sort->rank_shares);
}

/* Collective: agree on stripes and compression. */
static int agree_stripe_and_compression(struct line_sort *sort)
{
	const int r = file_set_agree_stripe(&sort->set);

	return r == 0 && sort->spec->zstd_level ?
		       file_set_compress(&sort->set, sort->n_compressors, sort->job.spill) :
		       r;
}

/* Return where the lines of all ranks end in the single file. */
static uint64_t output_end(const struct line_sort *sort)
{
	return begin_offset(sort->rank_shares, comm_size(sort->spec->comm), 0);
}

static int begin_file(struct line_sort *sort)
{
	const struct line_input *input = sort->input;
	int r = 0;

	if (!sort->spec->zstd_level && !is_first(sort))
		return output_check_limit(sort->output, output_end(sort));
	if (!sort->spec->zstd_level && !sort->has_output_size)
		r = output_set_expected_size(sort->output, output_end(sort));
	if (r < 0 || !is_first(sort) || input->n_header == 0)
		return r;
	return file_set_write(&sort->set, 0, 0, input->header, input->n_header);
}

int line_ranks_place_partition(struct line_sort *sort, const struct line_extent *extent)
{
	const unsigned rank = comm_rank(sort->spec->comm);
	const struct rank_share *shares;
	int r = gather_shares(sort, extent);

	shares = sort->rank_shares;
	if (r == 0)
		r = agree_stripe_and_compression(sort);
	if (r == 0)
		r = file_set_place_ranks(&sort->set, shares[0].header_nbytes, locate_rank, sort);
	if (r < 0)
		return r;
	sort->offset = begin_offset(shares, rank, (uint32_t)shares[rank].extent.first);
	return sort->parts ? line_part_files_place(sort, sort->offset) : begin_file(sort);
}

/* --- The end --- */

/* Check that the single file has all bytes of this rank. *ret_nbytes: of all ranks. */
static int finish_file(struct line_sort *sort, uint64_t *ret_nbytes)
{
	const uint64_t end = begin_offset(sort->rank_shares, comm_rank(sort->spec->comm) + 1, 0);

	if (sort->offset != end)
		return fail(-EIO,
			    "internal error: the partition of this rank ends at %" PRIu64
			    ", not at %" PRIu64,
			    sort->offset, end);
	*ret_nbytes = output_end(sort);
	file_set_record_remote_writes(&sort->set, 0, end, *ret_nbytes);
	return 0;
}

int line_rank_output_finish(struct line_sort *sort)
{
	struct file_set *files = &sort->set;
	uint64_t *nbytes = calloc(files->n, sizeof *nbytes);
	int r = nbytes ? file_set_exchange(files) :
			 fail(-ENOMEM, "no memory for the sizes of %u files", files->n);

	if (r == 0)
		r = sort->parts ? line_part_files_finish(sort, nbytes) : finish_file(sort, nbytes);
	if (r == 0 && sort->spec->zstd_level)
		r = file_set_write_frames(files, nbytes);
	free(nbytes);
	return r;
}
