/*
 * sort_output_stripe_owners - no two ranks write to one stripe of a file (see
 * sort_output_internal.h)
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
struct stripe_bytes {
	uint64_t file, offset, nbytes;
	char data[];
};

/* What somebody else writes. */
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

/* In whose range the record is: the last of those that begin there or before it. */
static unsigned find_record_rank(const struct sort_output *out, uint64_t record)
{
	unsigned low = 0, high = comm_size(out->spec->comm);

	while (high - low > 1) {
		const unsigned middle = low + (high - low) / 2;

		*(out->rank_begin[middle] <= record ? &low : &high) = middle;
	}
	return low;
}

/* Who writes what is at `offset` of a file, and up to where. */
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

/* *ret_n: how many edges come to this rank. */
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

/* Is it one, of nbytes with its header, of a stripe that this rank writes? */
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
			    "internal error: what rank %u on %s has sent is not of a stripe that "
			    "this rank writes; the output was not written",
			    from, comm_host(out->spec->comm, from));
	if (out->is_collective_zst)
		return sort_output_accept_foreign(out, (uint32_t)stripe->file, stripe->offset,
						  stripe->data, stripe->nbytes);
	atomic_fetch_add(&out->files[stripe->file].foreign_nbytes, stripe->nbytes);
	return output_write_at(out->outputs[stripe->file], stripe->offset, stripe->data,
			       stripe->nbytes);
}

/* What is stored of frames is cut at stripes of the file, which may be longer than a frame. */
static size_t max_stripe_message_nbytes(const struct sort_output *out)
{
	return sizeof(struct stripe_bytes) +
	       (out->has_all_frames ? out->file_stripe_nbytes : out->stripe_nbytes);
}

/* One after the other, in any order. */
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

/* Whose records they are looks at them next, maybe on another machine. */
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
			 fail(-ENOMEM, "no memory for what other ranks have begun");

	free(buffer);
	return r < 0 ? r : sync_foreign_stripes(out);
}

/* Twice where outputs are compressed: when they are counted, all have those of the first time. */
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
