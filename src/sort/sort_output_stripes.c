/*
 * sort_output_stripes.c - every stripe of a file is written by one rank (see
 * sort_output_internal.h)
 *
 *	stripes      |           |           |           |
 *	partitions   0000000000000000011111111111112222222
 *	written by   000000000000000000000000111111111111222
 *
 * The writer of a stripe is the rank in whose partition it begins. If two hosts cache the same page
 * of a file, a host that changes part of it may write the whole page (NFS); two writers of a stripe
 * wait for each other (Lustre). So a rank keeps its bytes of the stripe in which its partition
 * begins, and sends them to the writer when all ranks have merged. The page that contains a header
 * and the first records is written by rank 0.
 *
 * If the ranks compress the output, a stripe of the content is a frame:
 *
 *	frames       |     0     |     1     |     2     |     3     | 4 |
 *	partitions   000000000000000000111111111111111111111222222222222222
 *	compressed   000000000000000000000000111111111111111111111111222222
 *	file         [0][1 ][2][ 3 ][4][ index ]
 *
 * Each rank compresses the frames that begin in its partition, so that the file is the same as that
 * of one process. The offsets of its frames are known when all ranks have compressed theirs; until
 * then the frames are spilled. Then all ranks learn the sizes of all frames, and each writes its
 * own. The last rank that has any also writes the index. Stripes of the compressed file have one
 * writer as well: the rank whose bytes begin the stripe.
 */
#include "src/sort/sort_output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/comm/comm.h"
#include "src/comm/tags.h"

/* --- frames --- */

/* Content of another rank; arrives in any order. */
struct buffered_content {
	struct buffered_content *next; /* at a higher offset */
	uint64_t offset;
	size_t nbytes;
	char data[];
};

/* A frame as it is sent to other ranks. */
struct frame_sizes {
	uint32_t stored_nbytes, content_nbytes;
};

struct collective_zst {
	struct comm *comm;
	struct spill *spill;
	struct spill_extent *extents; /* n, of the own frames in order */
	size_t n, n_allocated;
	struct buffered_content *buffered; /* sorted content that follows the own */

	/* Set by collective_zst_merge_index(). */
	unsigned last_rank;     /* the last rank that has any frame */
	uint64_t *rank_offsets; /* offset of each rank's frames; UINT64_MAX after last_rank */
};

static int fail_memory(void)
{
	return fail(-ENOMEM, "no memory for an index of compressed frames");
}

int collective_zst_open(struct comm *comm, struct spill *spill, struct collective_zst **ret_zst)
{
	struct collective_zst *zst = calloc(1, sizeof *zst);

	if (!zst)
		return fail_memory();
	zst->comm = comm;
	zst->spill = spill;
	*ret_zst = zst;
	return 0;
}

void collective_zst_close(struct collective_zst *zst)
{
	if (!zst)
		return;
	while (zst->buffered) {
		struct buffered_content *buffered = zst->buffered;

		zst->buffered = buffered->next;
		free(buffered);
	}
	free(zst->extents);
	free(zst->rank_offsets);
	free(zst);
}

/* --- content --- */

/* Frames arrive in order. */
static int spill_frame(void *context, uint64_t offset, const void *data, size_t nbytes)
{
	struct collective_zst *zst = context;
	int r;

	(void)offset;
	if (zst->n == zst->n_allocated) {
		const size_t n = zst->n ? 2 * zst->n : 64;
		struct spill_extent *extents = reallocarray(zst->extents, n, sizeof *extents);

		if (!extents)
			return fail_memory();
		zst->extents = extents;
		zst->n_allocated = n;
	}
	r = spill_write(zst->spill, data, nbytes, &zst->extents[zst->n]);
	zst->n += r == 0;
	return r;
}

struct zst_sink collective_zst_sink(struct collective_zst *zst)
{
	return (struct zst_sink){ .context = zst, .in_order = true, .write = spill_frame };
}

int collective_zst_buffer_content(struct collective_zst *zst, uint64_t offset, const void *data,
				  size_t nbytes)
{
	struct buffered_content *buffered = malloc(sizeof *buffered + nbytes),
				**link = &zst->buffered;

	if (!buffered)
		return fail(-ENOMEM, "no memory for %zu bytes of another rank", nbytes);
	while (*link && (*link)->offset < offset)
		link = &(*link)->next;
	*buffered = (struct buffered_content){ .next = *link, .offset = offset, .nbytes = nbytes };
	memcpy(buffered->data, data, nbytes);
	*link = buffered;
	return 0;
}

/* Checks for gaps, because a compressed output would wait for missing content for ever. */
int collective_zst_flush_content(struct collective_zst *zst, uint64_t end, struct output *output)
{
	int r = 0;

	while (zst->buffered && r == 0) {
		struct buffered_content *buffered = zst->buffered;

		r = buffered->offset == end ?
			    output_write_at(output, end, buffered->data, buffered->nbytes) :
			    fail(-EPROTO,
				 "internal error: received content at offset %" PRIu64
				 " in place of %" PRIu64 "; the output was not written",
				 buffered->offset, end);
		end += buffered->nbytes;
		zst->buffered = buffered->next;
		free(buffered);
	}
	return r;
}

/* --- places --- */

static struct frame_sizes *collect_frame_sizes(const struct zst_index *index)
{
	struct frame_sizes *sizes = calloc(index->n + 1, sizeof *sizes);

	for (size_t i = 0; sizes && i < index->n; i++)
		sizes[i] = (struct frame_sizes){ (uint32_t)zst_index_stored_nbytes(index, i),
						 (uint32_t)zst_index_content_nbytes(index, i) };
	return sizes;
}

/* sizes: the frames of all ranks, sizes_nbytes[i] bytes of rank i. */
static int locate_rank_frames(struct collective_zst *zst, unsigned n_ranks,
			      const struct frame_sizes *sizes, const size_t *sizes_nbytes,
			      struct zst_index *index)
{
	int r = 0;

	for (unsigned i = 0; i < n_ranks && r == 0; i++) {
		const size_t n = sizes_nbytes[i] / sizeof *sizes;

		zst->rank_offsets[i] = index->n ? index->frames[index->n].stored : 0;
		zst->last_rank = n ? i : zst->last_rank;
		for (size_t k = 0; k < n && r == 0; k++, sizes++)
			r = zst_index_add(index, sizes->stored_nbytes, sizes->content_nbytes);
	}
	for (unsigned i = zst->last_rank + 1; i < n_ranks; i++)
		zst->rank_offsets[i] = UINT64_MAX;
	return r < 0 ? fail_memory() : 0;
}

static int check_content_size(const struct zst_index *index, uint64_t expected_nbytes)
{
	const uint64_t content_nbytes = zst_index_total_nbytes(index);

	return content_nbytes == expected_nbytes ?
		       0 :
		       fail(-EIO,
			    "internal error: expected frames of %" PRIu64 " bytes, got %" PRIu64
			    "; the output was not written",
			    expected_nbytes, content_nbytes);
}

int collective_zst_merge_index(struct collective_zst *zst, const struct zst_index *own_index,
			       uint64_t content_nbytes, struct zst_index *ret_index)
{
	const unsigned n_ranks = comm_size(zst->comm);
	struct frame_sizes *own_sizes = collect_frame_sizes(own_index);
	size_t *sizes_nbytes = calloc(n_ranks, sizeof *sizes_nbytes);
	void *all_sizes = NULL;
	int r;

	zst->rank_offsets = calloc(n_ranks, sizeof *zst->rank_offsets);
	r = own_sizes && sizes_nbytes && zst->rank_offsets ? 0 : fail_memory();
	if (r == 0)
		r = comm_allgatherv(zst->comm, own_sizes, own_index->n * sizeof *own_sizes,
				    &all_sizes, sizes_nbytes);
	if (r == 0)
		r = locate_rank_frames(zst, n_ranks, all_sizes, sizes_nbytes, ret_index);
	free(all_sizes);
	free(sizes_nbytes);
	free(own_sizes);
	return r < 0 ? r : check_content_size(ret_index, content_nbytes);
}

/* --- stored --- */

/* Return the rank whose bytes begin the stripe. */
static unsigned find_stripe_owner(const struct collective_zst *zst, uint64_t begin)
{
	unsigned low = 0, high = zst->last_rank + 1;

	while (high - low > 1) {
		const unsigned middle = low + (high - low) / 2;

		*(zst->rank_offsets[middle] <= begin ? &low : &high) = middle;
	}
	return low;
}

/* Pass each stripe to its writer. */
static int write_stripes(struct collective_zst *zst, const struct stripe_sink *sink,
			 uint64_t offset, const void *data, size_t nbytes)
{
	const char *from = data;
	int r = 0;

	while (nbytes > 0 && r == 0) {
		const uint64_t begin = offset - offset % sink->stripe_nbytes;
		const uint64_t remaining = begin + sink->stripe_nbytes - offset;
		const size_t n = remaining < nbytes ? (size_t)remaining : nbytes;

		r = sink->write(sink->context, find_stripe_owner(zst, begin), offset, from, n);
		offset += n;
		from += n;
		nbytes -= n;
	}
	return r;
}

static int write_spilled_frame(struct collective_zst *zst, const struct stripe_sink *sink,
			       struct spill_extent extent, uint64_t offset, void *buffer)
{
	int r = spill_read(zst->spill, extent, buffer);

	if (r < 0)
		return fail(r, "%s: cannot read a compressed frame of %" PRIu64 " bytes: %m",
			    spill_directory(zst->spill, extent.file), extent.nbytes);
	r = write_stripes(zst, sink, offset, buffer, extent.nbytes);
	spill_discard(zst->spill, extent);
	return r;
}

static int write_own_frames(struct collective_zst *zst, const struct stripe_sink *sink)
{
	uint64_t offset = zst->rank_offsets[comm_rank(zst->comm)], max_nbytes = 0;
	void *buffer;
	int r = 0;

	for (size_t i = 0; i < zst->n; i++)
		max_nbytes = zst->extents[i].nbytes > max_nbytes ? zst->extents[i].nbytes :
								   max_nbytes;
	buffer = malloc(max_nbytes + 1);
	if (!buffer)
		return fail_memory();
	for (size_t i = 0; i < zst->n && r == 0; i++) {
		r = write_spilled_frame(zst, sink, zst->extents[i], offset, buffer);
		offset += zst->extents[i].nbytes;
	}
	free(buffer);
	return r;
}

int collective_zst_write(struct collective_zst *zst, const struct zst_index *index,
			 const struct stripe_sink *sink, uint64_t *ret_nbytes)
{
	const uint64_t frames_nbytes = index->frames[index->n].stored;
	unsigned char *table;
	size_t nbytes;
	int r = zst_index_format(index, &table, &nbytes);

	if (r < 0)
		return fail_memory();
	r = write_own_frames(zst, sink);
	if (r == 0 && comm_rank(zst->comm) == zst->last_rank)
		r = write_stripes(zst, sink, frames_nbytes, table, nbytes);
	free(table);
	*ret_nbytes = frames_nbytes + nbytes;
	return r;
}

/* --- stripes --- */

/* Bytes of a stripe as they are sent. */
struct stripe_bytes {
	uint64_t file, offset, nbytes;
	char data[];
};

/* Bytes that another rank writes. */
struct foreign_bytes {
	struct foreign_bytes *next;
	unsigned owner;
	struct comm_transfer transfer;
	struct stripe_bytes bytes;
};

int sort_output_agree_stripe(struct sort_output *out)
{
	if (!out->joined)
		out->stripe_nbytes = output_stripe_nbytes(out->outputs[0]);
	return comm_broadcast(out->spec->comm, &out->stripe_nbytes, sizeof out->stripe_nbytes, 0);
}

/* Return the rank in whose partition the record is. */
static unsigned find_record_rank(const struct sort_output *out, uint64_t record)
{
	unsigned low = 0, high = comm_size(out->spec->comm);

	while (high - low > 1) {
		const unsigned middle = low + (high - low) / 2;

		*(out->rank_begin[middle] <= record ? &low : &high) = middle;
	}
	return low;
}

/* Return the rank that writes the byte at `offset` of a file. *ret_end: where its stripe ends. */
static unsigned find_byte_owner(const struct sort_output *out, uint32_t i, uint64_t offset,
				uint64_t *ret_end)
{
	const uint64_t header_nbytes = out->spec->header_nbytes;
	const uint64_t first_nbytes =
		round_up(header_nbytes, out->is_collective_zst ? out->stripe_nbytes :
								 (uint64_t)sysconf(_SC_PAGESIZE));
	const uint64_t begin = offset - offset % out->stripe_nbytes;
	uint64_t record = out->files[i].begin;

	if (offset < first_nbytes) {
		*ret_end = first_nbytes;
		return 0;
	}
	if (begin > header_nbytes)
		record += (begin - header_nbytes) / out->job->layout->output_nbytes;
	*ret_end = begin + out->stripe_nbytes;
	return find_record_rank(out, record);
}

int sort_output_keep_for_rank(struct sort_output *out, uint32_t i, unsigned owner, uint64_t offset,
			      const void *data, size_t nbytes)
{
	struct foreign_bytes *foreign = malloc(sizeof *foreign + nbytes);

	if (!foreign)
		return fail(-ENOMEM, "no memory for %zu bytes that another rank writes", nbytes);
	*foreign = (struct foreign_bytes){ .owner = owner, .bytes = { i, offset, nbytes } };
	memcpy(foreign->bytes.data, data, nbytes);
	pthread_mutex_lock(&out->lock);
	foreign->next = out->foreign;
	out->foreign = foreign;
	pthread_mutex_unlock(&out->lock);
	return 0;
}

uint64_t sort_output_local_end(const struct sort_output *out, uint32_t i)
{
	const struct output_file *file = &out->files[i];
	const uint64_t n = sort_output_count_local(out, file);
	const uint64_t n_before = n > 0 && out->begin > file->begin ? out->begin - file->begin : 0;

	return out->spec->header_nbytes + (n_before + n) * out->job->layout->output_nbytes;
}

uint64_t sort_output_local_begin(const struct sort_output *out, uint32_t i)
{
	const struct output_file *file = &out->files[i];
	const uint64_t item_nbytes = out->job->layout->output_nbytes;
	const unsigned rank = comm_rank(out->spec->comm);
	const uint64_t local_end = sort_output_local_end(out, i);
	uint64_t begin = 0, end;

	if (out->begin > file->begin)
		begin = local_end - sort_output_count_local(out, file) * item_nbytes;
	while (begin < local_end && find_byte_owner(out, i, begin, &end) != rank)
		begin = end;
	return begin;
}

int sort_output_keep_foreign(struct sort_output *out, uint32_t i, uint64_t offset, const void *data,
			     size_t nbytes, size_t *ret_n_foreign)
{
	const unsigned rank = out->rank_begin ? comm_rank(out->spec->comm) : 0;
	size_t done = 0;
	int r = 0;

	while (out->rank_begin && done < nbytes && r == 0) {
		uint64_t end;
		const unsigned owner = find_byte_owner(out, i, offset + done, &end);
		const uint64_t n = end - offset - done < nbytes - done ? end - offset - done :
									 nbytes - done;

		if (owner == rank)
			break;
		r = sort_output_keep_for_rank(out, i, owner, offset + done,
					      (const char *)data + done, n);
		done += n;
	}
	*ret_n_foreign = done;
	return r;
}

/* Set *ret_n to the number of messages for this rank. */
static int count_incoming_stripes(const struct sort_output *out, uint64_t *ret_n)
{
	struct comm *comm = out->spec->comm;
	uint64_t *counts = calloc(comm_size(comm), sizeof *counts);
	int r;

	if (!counts)
		return fail(-ENOMEM, "no memory for %u ranks", comm_size(comm));
	for (const struct foreign_bytes *foreign = out->foreign; foreign; foreign = foreign->next)
		counts[foreign->owner]++;
	r = comm_allreduce_sum(comm, counts, comm_size(comm));
	*ret_n = counts[comm_rank(comm)];
	free(counts);
	return r;
}

/* Check that a message contains bytes of a stripe that this rank writes. */
static bool is_valid_stripe(const struct sort_output *out, const struct stripe_bytes *stripe,
			    size_t nbytes)
{
	uint64_t end;

	if (nbytes < sizeof *stripe || stripe->nbytes != nbytes - sizeof *stripe ||
	    stripe->file >= out->n_files || !out->outputs[stripe->file] ||
	    stripe->offset > UINT64_MAX - stripe->nbytes)
		return false;
	return out->has_all_frames || (find_byte_owner(out, (uint32_t)stripe->file, stripe->offset,
						       &end) == comm_rank(out->spec->comm) &&
				       stripe->offset + stripe->nbytes <= end);
}

static int write_stripe(struct sort_output *out, const struct stripe_bytes *stripe, unsigned from,
			size_t nbytes)
{
	if (!is_valid_stripe(out, stripe, nbytes))
		return fail(-EPROTO,
			    "internal error: rank %u on %s sent bytes of a stripe of another rank; "
			    "the output was not written",
			    from, comm_host(out->spec->comm, from));
	if (out->is_collective_zst)
		return sort_output_accept_foreign(out, (uint32_t)stripe->file, stripe->offset,
						  stripe->data, stripe->nbytes);
	atomic_fetch_add(&out->files[stripe->file].foreign_nbytes, stripe->nbytes);
	return output_write_at(out->outputs[stripe->file], stripe->offset, stripe->data,
			       stripe->nbytes);
}

/* Compressed frames are cut at the stripes of the file, which may be longer than a frame. */
static size_t max_stripe_message_nbytes(const struct sort_output *out)
{
	return sizeof(struct stripe_bytes) +
	       (out->has_all_frames ? out->file_stripe_nbytes : out->stripe_nbytes);
}

/* Receive n messages in any order. */
static int receive_each_stripe(struct sort_output *out, uint64_t n, struct stripe_bytes *buffer)
{
	int r = 0;

	for (; n > 0 && r == 0; n--) {
		struct comm_transfer transfer;

		r = comm_receive_up_to(out->spec->comm, COMM_ANY_RANK, COMM_TAG_STRIPES, buffer,
				       max_stripe_message_nbytes(out), &transfer);
		if (r == 0)
			r = comm_wait(out->spec->comm, &transfer);
		if (r == 0)
			r = write_stripe(out, buffer, transfer.from, transfer.nbytes);
	}
	return r;
}

bool sort_output_is_single_host(const struct comm *comm)
{
	for (unsigned i = 1; i < comm_size(comm); i++)
		if (strcmp(comm_host(comm, i), comm_host(comm, 0)) != 0)
			return false;
	return true;
}

/* The rank that verifies these records may be on another host. */
static int sync_foreign_stripes(struct sort_output *out)
{
	int r = 0;

	if (!out->spec->verify || out->is_collective_zst ||
	    sort_output_is_single_host(out->spec->comm))
		return 0;
	for (uint32_t i = 0; i < out->n_files && r == 0; i++)
		if (atomic_load(&out->files[i].foreign_nbytes) > 0)
			r = output_sync(out->outputs[i]);
	return r;
}

static int send_foreign_stripes(struct sort_output *out)
{
	int r = 0;

	for (struct foreign_bytes *foreign = out->foreign; foreign && r == 0;
	     foreign = foreign->next)
		r = comm_send(out->spec->comm, foreign->owner, COMM_TAG_STRIPES, &foreign->bytes,
			      sizeof foreign->bytes + foreign->bytes.nbytes, &foreign->transfer);
	return r;
}

static int receive_stripes(struct sort_output *out, uint64_t n)
{
	struct stripe_bytes *buffer = malloc(max_stripe_message_nbytes(out));
	int r = buffer ? receive_each_stripe(out, n, buffer) :
			 fail(-ENOMEM, "no memory for stripes of other ranks");

	free(buffer);
	return r < 0 ? r : sync_foreign_stripes(out);
}

/*
 * Called twice if the output is compressed. No message of the first call can arrive in the second:
 * its count is a collective.
 */
int sort_output_exchange_foreign(struct sort_output *out)
{
	uint64_t n = 0;
	int r = count_incoming_stripes(out, &n);

	if (r == 0)
		r = send_foreign_stripes(out);
	if (r == 0)
		r = receive_stripes(out, n);
	for (struct foreign_bytes *foreign = out->foreign; foreign && r == 0;
	     foreign = foreign->next)
		r = comm_wait(out->spec->comm, &foreign->transfer);
	if (r == 0)
		sort_output_drop_foreign(out);
	return r;
}

void sort_output_drop_foreign(struct sort_output *out)
{
	while (out->foreign) {
		struct foreign_bytes *foreign = out->foreign;

		out->foreign = foreign->next;
		free(foreign);
	}
}
