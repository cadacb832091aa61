/*
 * line_rank_output.c - the output of several ranks (see line_sort_internal.h)
 *
 * The lines of a rank, its partition, follow those of the rank before it. With part files they are
 * in several files, of which other ranks write the beginning of the first and the end of the last:
 *
 *	part files   |     0     |     1     |     2     |     3     |
 *	partitions   0000000000000001111111111111111111111111222222222
 *
 * Each stripe of a file is written by one rank (file_set.h). So a rank keeps the head, its
 * bytes of the stripe in which its partition begins, for the rank in whose partition that stripe
 * begins. The heads that a rank gets are in its last file.
 *
 * Rank 0 creates the files and commits them. If they are compressed, it makes the frames of the
 * header and of empty files.
 */
#include "src/lines/line_sort.h"
#include "src/lines/line_sort_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/thread.h"
#include "src/comm/comm.h"

/* What ranks tell each other; the header is that of rank 0. */
struct rank_share {
	struct line_extent extent;
	uint64_t header_nbytes;
};

struct line_rank_output {
	struct rank_share *shares; /* of each rank */
	uint64_t header_nbytes;
	uint64_t head_end; /* where the head ends; 0: there is none */
	unsigned head_writer;

	pthread_mutex_t lock; /* of the next two members: several threads write */
	bool is_compressing;  /* the file `compressed` */
	uint32_t compressed;
};

static bool is_first(const struct line_sort *sort)
{
	return comm_rank(sort->spec->comm) == 0;
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
static uint64_t find_head(const struct line_sort *sort, unsigned rank, uint64_t *ret_begin)
{
	const struct line_rank_output *out = sort->rank_output;
	const struct line_extent *extent = &out->shares[rank].extent;
	const uint64_t begin = begin_offset(out, rank, (uint32_t)extent->first);

	*ret_begin = begin;
	if (rank == 0 || extent->nbytes == 0)
		return 0;
	return u64_min(round_up(begin, sort->set.stripe_nbytes) - begin, extent->first_nbytes);
}

/* Return the rank in whose partition the stripe of a head begins; in a header: rank 0. */
static unsigned find_head_writer(const struct line_sort *sort, unsigned rank, uint64_t begin)
{
	const struct line_rank_output *out = sort->rank_output;
	const uint32_t file = (uint32_t)out->shares[rank].extent.first;
	const uint64_t stripe = begin - begin % sort->set.stripe_nbytes;

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
	const struct rank_share own = { .extent = *extent, .header_nbytes = header_nbytes };
	int r;

	out->shares = calloc(comm_size(comm), sizeof *out->shares);
	if (!out->shares)
		return fail(-ENOMEM, "no memory for %u ranks", comm_size(comm));
	r = comm_allgather(comm, &own, sizeof own, out->shares);
	out->header_nbytes = out->shares[0].header_nbytes;
	return r;
}

/* Collective: agree on stripes and compression. */
static int agree_stripe_and_compression(struct line_sort *sort)
{
	const int r = file_set_agree_stripe(&sort->set);

	return r == 0 && sort->spec->zstd_level ? file_set_compress(&sort->set, sort->spill) : r;
}

/* Stop compressing a file, in which the content of this rank ends at an offset. */
static int end_frames(struct line_sort *sort, uint64_t content_end, bool may_be_empty)
{
	struct line_rank_output *out = sort->rank_output;

	if (!out->is_compressing)
		return 0;
	out->is_compressing = false;
	return file_set_end_frames(&sort->set, out->compressed, content_end, may_be_empty);
}

/* If the files are compressed, begin with one of them. Earlier files have all lines. */
static int begin_frames(struct line_sort *sort, uint32_t file)
{
	struct line_rank_output *out = sort->rank_output;
	const struct line_extent *extent = &out->shares[comm_rank(sort->spec->comm)].extent;
	int r;

	if (!sort->spec->zstd_level)
		return 0;
	SCOPED_LOCK(&out->lock);
	if (out->is_compressing && out->compressed == file)
		return 0;
	r = end_frames(sort, 0, true);
	if (r == 0)
		r = file_set_begin_frames(&sort->set, file, sort->spec->zstd_level,
					  sort->n_compressors,
					  file == extent->first ? out->head_end : 0);
	out->is_compressing = r == 0;
	out->compressed = file;
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

	if (!sort->spec->zstd_level && !is_first(sort))
		return output_check_limit(sort->output, output_end(sort));
	if (!sort->spec->zstd_level && !sort->has_output_size)
		r = output_set_expected_size(sort->output, output_end(sort));
	if (r < 0 || !is_first(sort) || out->header_nbytes == 0)
		return r;
	r = begin_frames(sort, 0);
	return r < 0 ? r : output_write_at(sort->output, 0, header, (size_t)out->header_nbytes);
}

int line_ranks_place_partition(struct line_sort *sort, const struct line_extent *extent)
{
	struct line_rank_output *out = calloc(1, sizeof *out);
	const unsigned rank = comm_rank(sort->spec->comm);
	const unsigned char *header;
	uint64_t begin, head_nbytes;
	size_t header_nbytes;
	int r;

	sort->rank_output = out;
	if (!out)
		return fail(-ENOMEM, "no memory for the places of partitions");
	pthread_mutex_init(&out->lock, NULL);
	header = line_input_header(sort->input, &header_nbytes);
	r = gather_shares(sort, extent, header_nbytes);
	if (r == 0)
		r = agree_stripe_and_compression(sort);
	if (r < 0)
		return r;
	head_nbytes = find_head(sort, rank, &begin);
	out->head_end = rank > 0 ? begin + head_nbytes : 0;
	out->head_writer = find_head_writer(sort, rank, begin);
	sort->offset = begin;
	return sort->parts ? line_part_files_place(sort, begin) : begin_file(sort, header);
}

int line_ranks_write(struct line_sort *sort, uint64_t offset, const void *bytes, size_t nbytes)
{
	struct line_rank_output *out = sort->rank_output;
	const uint32_t file = line_output_current_file(sort);
	const bool is_first_file = file == out->shares[comm_rank(sort->spec->comm)].extent.first;
	size_t n = 0;
	int r = 0;

	if (is_first_file && offset < out->head_end) {
		n = u64_min(nbytes, out->head_end - offset);
		r = file_set_keep(&sort->set, out->head_writer, file, offset, bytes, n);
	}
	if (r < 0 || n == nbytes)
		return r;
	r = begin_frames(sort, file);
	return r < 0 ? r :
		       output_write_at(sort->output, offset + n, (const char *)bytes + n,
				       nbytes - n);
}

/* --- The end --- */

/* Return whether these bytes are of a head that this rank writes. */
static bool is_own_stripe(void *context, unsigned from, uint64_t file, uint64_t offset,
			  uint64_t nbytes)
{
	const struct line_sort *sort = context;
	const struct line_rank_output *out = sort->rank_output;
	uint64_t begin;
	const uint64_t end = find_head(sort, from, &begin) + begin;

	return file == out->shares[from].extent.first && offset >= begin && offset <= end &&
	       nbytes <= end - offset &&
	       find_head_writer(sort, from, begin) == comm_rank(sort->spec->comm);
}

/* Check that the single file has all bytes of this rank. *ret_nbytes: of all ranks. */
static int finish_file(struct line_sort *sort, uint64_t *ret_nbytes)
{
	const struct line_rank_output *out = sort->rank_output;
	const uint64_t end = begin_offset(out, comm_rank(sort->spec->comm) + 1, 0);

	if (sort->offset != end)
		return fail(-EIO,
			    "internal error: the partition of this rank ends at %" PRIu64
			    ", not at %" PRIu64,
			    sort->offset, end);
	*ret_nbytes = output_end(sort);
	if (is_first(sort) && *ret_nbytes > end && !sort->spec->zstd_level)
		output_record_remote_writes(sort->output,
					    *ret_nbytes - end - sort->set.files[0].foreign_nbytes,
					    *ret_nbytes);
	return 0;
}

/* Compress the heads of other ranks and, on rank 0, files of no content. Then write the frames. */
static int write_frames(struct line_sort *sort, const uint64_t *nbytes)
{
	struct line_rank_output *out = sort->rank_output;
	const unsigned rank = comm_rank(sort->spec->comm);
	int r = end_frames(sort, begin_offset(out, rank + 1, out->compressed), true);

	for (uint32_t i = 0; i < sort->set.n && r == 0 && is_first(sort); i++)
		if (nbytes[i] == 0) {
			r = begin_frames(sort, i);
			if (r == 0)
				r = end_frames(sort, 0, false);
		}
	return r < 0 ? r : file_set_write_frames(&sort->set, nbytes);
}

int line_rank_output_finish(struct line_sort *sort)
{
	struct file_set *files = &sort->set;
	uint64_t *nbytes = calloc(files->n, sizeof *nbytes);
	int r = nbytes ? file_set_exchange(files, is_own_stripe, sort) :
			 fail(-ENOMEM, "no memory for the sizes of %u files", files->n);

	if (r == 0)
		r = sort->parts ? line_part_files_finish(sort, nbytes) : finish_file(sort, nbytes);
	if (r == 0 && sort->spec->zstd_level)
		r = write_frames(sort, nbytes);
	free(nbytes);
	return r;
}

void line_rank_output_close(struct line_rank_output *out)
{
	if (!out)
		return;
	pthread_mutex_destroy(&out->lock);
	free(out->shares);
	free(out);
}
