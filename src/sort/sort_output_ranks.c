/*
 * sort_output_ranks.c - output files that several ranks write (see sort_output.h)
 *
 * Rank 0 creates each file under a temporary name and commits it in the end. Part files are in a
 * temporary directory, which rank 0 creates and renames. The other ranks join the files in which
 * they have records. Only rank 0 writes headers, trailers and the manifest: when all ranks have
 * merged, it learns the sizes and statistics of the others and continues as if it had written
 * everything.
 *
 * A file is divided into stripes of equal length. Each stripe is written by one rank:
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
 * If the ranks compress the output, a stripe of the content is a frame (collective_zst.c), and the
 * compressed file has stripes, too. A rank compresses one file after another. A file is finished
 * when the next one is begun, except the last one: its last frame may contain records of later
 * ranks. These are exchanged when all ranks have merged. Then every rank learns the frames of each
 * file. The frames of an empty file, and of a header before records, are made by rank 0.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/thread.h"
#include "src/comm/comm.h"
#include "src/sort/sort_output.h"

/* --- opened --- */

/* Note the names by which the other ranks join the files and their directory. */
static void note_shared_names(struct sort_output *out)
{
	for (uint32_t i = 0; i < out->n_files; i++) {
		memcpy(out->names[i].name, output_shared_name(out->outputs[i]),
		       sizeof out->names[i].name);
		out->names[i].preallocates = output_can_preallocate(out->outputs[i]);
	}
	if (out->part_files)
		memcpy(out->names[out->n_files].name, part_files_temp_name(out->part_files),
		       sizeof out->names->name);
}

static const char *shared_name(const struct sort_output *out, uint32_t i)
{
	struct shared_file_name *name = &out->names[i];

	name->name[sizeof name->name - 1] = '\0';
	return name->name;
}

int sort_output_share(struct sort_output *out, const char *part_extension)
{
	const struct sort_spec *spec = out->spec;
	const size_t n_names = out->n_files + (size_t)1;
	int r;

	out->names = calloc(n_names, sizeof *out->names);
	if (!out->names)
		return fail(-ENOMEM, "no memory for the names of %u files", out->n_files);
	if (!out->joined)
		note_shared_names(out);
	r = comm_broadcast(spec->comm, out->names, n_names * sizeof *out->names, 0);
	if (r == 0 && out->joined && sort_output_is_split(out))
		r = part_files_open_existing(out->job->io, spec->output_path, out->n_files,
					     part_extension, shared_name(out, out->n_files),
					     &out->part_files);
	else if (r == 0 && out->joined)
		r = output_open_shared_existing(out->job->io, spec->output_path,
						shared_name(out, 0), &out->outputs[0]);
	/* If rank 0 fails later, it removes the file; by then all ranks have opened it. */
	return r < 0 ? r : comm_barrier(spec->comm);
}

static int join_shared_part(struct sort_output *out, uint32_t i)
{
	return output_open_part_existing(part_files_directory(out->part_files),
					 part_files_path(out->part_files, i), shared_name(out, i),
					 &out->outputs[i]);
}

/*
 * All ranks have seen the directory. If a file is missing now, another rank has probably failed and
 * removed it, and its error should be reported instead of this one.
 */
static int join_part_or_fail(struct sort_output *out, uint32_t i)
{
	struct diagnostics *saved_messages = diagnostics_push(NULL);
	int r = join_shared_part(out, i);

	diagnostics_push(saved_messages);
	if (r == 0)
		return 0;
	r = r == -ENOENT ? comm_wait_remote_failure(out->spec->comm) : 0;
	return r < 0 ? r : join_shared_part(out, i);
}

int sort_output_open_shared_parts(struct sort_output *out)
{
	int r = 0;

	for (uint32_t i = 0; i < out->n_files && r == 0; i++) {
		const struct output_file *file = &out->files[i];

		if (file->begin >= out->end || file->end <= out->begin || file->begin == file->end)
			continue;
		r = join_part_or_fail(out, i);
	}
	if (r == 0)
		sort_output_choose_io_mode(out, out->cache_policy);
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
	return (unsigned)find_interval(out->rank_begin, sizeof *out->rank_begin, 0,
				       comm_size(out->spec->comm), record);
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

/* Keep bytes that rank `owner` writes. */
static int keep_for_rank(struct sort_output *out, uint32_t i, unsigned owner, uint64_t offset,
			 const void *data, size_t nbytes)
{
	struct foreign_bytes *foreign = malloc(sizeof *foreign + nbytes);

	if (!foreign)
		return fail(-ENOMEM, "no memory for %zu bytes that another rank writes", nbytes);
	*foreign = (struct foreign_bytes){ .owner = owner, .bytes = { i, offset, nbytes } };
	memcpy(foreign->bytes.data, data, nbytes);
	SCOPED_LOCK(&out->lock);
	foreign->next = out->foreign;
	out->foreign = foreign;
	return 0;
}

/* Return the offset in file i where the records of this rank end. */
static uint64_t local_end_offset(const struct sort_output *out, uint32_t i)
{
	const struct output_file *file = &out->files[i];
	const uint64_t n = sort_output_count_local(out, file);
	const uint64_t n_before = n > 0 && out->begin > file->begin ? out->begin - file->begin : 0;

	return out->spec->header_nbytes + (n_before + n) * out->job->layout->output_nbytes;
}

/* Return the offset in file i where the stripes of this rank begin. */
static uint64_t local_begin_offset(const struct sort_output *out, uint32_t i)
{
	const struct output_file *file = &out->files[i];
	const uint64_t item_nbytes = out->job->layout->output_nbytes;
	const unsigned rank = comm_rank(out->spec->comm);
	const uint64_t local_end = local_end_offset(out, i);
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
		r = keep_for_rank(out, i, owner, offset + done, (const char *)data + done, n);
		done += n;
	}
	*ret_n_foreign = done;
	return r;
}

/* --- written --- */

/* Return whether all ranks are on the same host. */
static bool is_single_host(const struct comm *comm)
{
	for (unsigned i = 1; i < comm_size(comm); i++)
		if (strcmp(comm_host(comm, i), comm_host(comm, 0)) != 0)
			return false;
	return true;
}

/* The effect of a mapping on the page cache of another host is unknown. */
int sort_output_set_shared_size(struct sort_output *out, uint32_t i, uint64_t nbytes)
{
	const struct output_file *file = &out->files[i];
	const int r = output_check_limit(out->outputs[i], nbytes);

	if (r < 0 || !out->names[i].preallocates)
		return r;
	if (sort_output_is_split(out) &&
	    sort_output_count_local(out, file) == file->end - file->begin)
		output_update_expected_size(out->outputs[i], nbytes);
	else if (is_single_host(out->spec->comm))
		output_enable_shared_mmap(out->outputs[i], nbytes);
	return 0;
}

/* Account for writes of other ranks to a file with n records, n_local of them of this rank. */
static void record_other_writers(struct sort_output *out, uint32_t i, uint64_t n, uint64_t n_local)
{
	const uint64_t item_nbytes = out->job->layout->output_nbytes;
	const uint64_t foreign_nbytes = atomic_load(&out->files[i].foreign_nbytes);

	if (n > n_local)
		output_record_remote_writes(out->outputs[i],
					    (n - n_local) * item_nbytes - foreign_nbytes,
					    out->spec->header_nbytes + n * item_nbytes);
}

/* --- compressed --- */

int sort_output_open_zst(struct sort_output *out)
{
	int r = 0;

	out->file_stripe_nbytes = out->stripe_nbytes;
	out->stripe_nbytes = ZST_WRITER_FRAME_NBYTES;
	out->is_collective_zst = true;
	for (uint32_t i = 0; i < out->n_files && r == 0; i++)
		r = collective_zst_open(out->spec->comm, out->job->spill, &out->files[i].zst);
	return r;
}

void sort_output_close_zst(struct sort_output *out)
{
	for (uint32_t i = 0; out->files && i < out->n_files; i++) {
		collective_zst_close(out->files[i].zst);
		zst_index_free(&out->files[i].index);
	}
}

int sort_output_begin_zst(struct sort_output *out, uint32_t i)
{
	const struct zst_sink sink = collective_zst_sink(out->files[i].zst);

	return output_begin_segment(out->outputs[i], out->spec->zstd_level,
				    spec_n_compressors(out->spec), local_begin_offset(out, i),
				    &sink);
}

int sort_output_end_zst(struct sort_output *out, uint32_t i, bool may_be_empty)
{
	struct output_file *file = &out->files[i];
	const int r = output_end_segment(out->outputs[i], may_be_empty, &file->index);

	file->is_finished = r == 0;
	return r;
}

/* Accept content or stored bytes of another rank. */
static int accept_foreign(struct sort_output *out, uint32_t i, uint64_t offset, const void *data,
			  size_t nbytes)
{
	struct output_file *file = &out->files[i];

	if (!out->has_all_frames)
		return collective_zst_buffer_content(file->zst, offset, data, nbytes);
	file->stored_nbytes += nbytes;
	return output_write_at(out->outputs[i], offset, data, nbytes);
}

/* --- bytes of other ranks --- */

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
		return accept_foreign(out, (uint32_t)stripe->file, stripe->offset, stripe->data,
				      stripe->nbytes);
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

/* The rank that verifies these records may be on another host. */
static int sync_foreign_stripes(struct sort_output *out)
{
	int r = 0;

	if (!out->spec->verify || out->is_collective_zst || is_single_host(out->spec->comm))
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
 * Collective: send the kept bytes to the ranks that write them. Called twice if the output is
 * compressed. The second call begins with a collective, so no message of the first arrives in it.
 */
static int exchange_foreign(struct sort_output *out)
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

/* --- compressed files --- */

/* Return the number of records that all ranks have written to the file. */
static uint64_t n_file_records(const struct sort_output *out, uint32_t i, uint64_t n_total)
{
	return sort_output_is_split(out) ? out->part_stats.stats[i].digest.n_records : n_total;
}

/* Return the size of the file's content, of all ranks. */
static uint64_t content_nbytes(const struct sort_output *out, uint32_t i, uint64_t n_total)
{
	return out->spec->header_nbytes +
	       n_file_records(out, i, n_total) * out->job->layout->output_nbytes;
}

/*
 * Called when the content of other ranks has arrived. Rank 0 makes a frame even if there is no
 * content.
 */
static int end_local_zst(struct sort_output *out, uint32_t i, bool is_empty)
{
	int r;

	if (!out->outputs[i] || out->files[i].is_finished)
		return 0;
	r = sort_output_begin_file(out, i);
	if (r == 0)
		r = collective_zst_flush_content(out->files[i].zst, local_end_offset(out, i),
						 out->outputs[i]);
	return r < 0 ? r : sort_output_end_zst(out, i, out->joined || !is_empty);
}

/* Replace the own index by that of all ranks. */
static int sync_zst_index(struct sort_output *out, uint32_t i, uint64_t nbytes)
{
	struct output_file *file = &out->files[i];
	struct zst_index global_index = { 0 };
	const int r = collective_zst_merge_index(file->zst, &file->index, nbytes, &global_index);

	zst_index_free(&file->index);
	file->index = global_index;
	return r;
}

static int sync_zst_indexes(struct sort_output *out, uint64_t n_total)
{
	int r = 0;

	for (uint32_t i = 0; i < out->n_files && r == 0; i++)
		r = end_local_zst(out, i, content_nbytes(out, i, n_total) == 0);
	for (uint32_t i = 0; i < out->n_files && r == 0; i++)
		r = sync_zst_index(out, i, content_nbytes(out, i, n_total));
	out->has_all_frames = true;
	return r;
}

struct zst_file_ref {
	struct sort_output *result;
	uint32_t i;
};

static int write_zst_stripe(void *context, unsigned owner, uint64_t offset, const void *data,
			    size_t nbytes)
{
	const struct zst_file_ref *file = context;

	return owner == comm_rank(file->result->spec->comm) ?
		       accept_foreign(file->result, file->i, offset, data, nbytes) :
		       keep_for_rank(file->result, file->i, owner, offset, data, nbytes);
}

static int write_zst_file(struct sort_output *out, uint32_t i, uint64_t *ret_nbytes)
{
	struct zst_file_ref file = { out, i };
	const struct stripe_sink sink = { .stripe_nbytes = out->file_stripe_nbytes,
					  .context = &file,
					  .write = write_zst_stripe };

	return collective_zst_write(out->files[i].zst, &out->files[i].index, &sink, ret_nbytes);
}

/*
 * Check that every byte was written. Rank 0, which owns the files, accounts for the writes of
 * others.
 */
static int check_zst_sizes(struct sort_output *out, const uint64_t *expected_nbytes,
			   uint64_t *nbytes)
{
	int r;

	for (uint32_t i = 0; i < out->n_files; i++)
		nbytes[i] = out->files[i].stored_nbytes;
	r = comm_allreduce_sum(out->spec->comm, nbytes, out->n_files);
	for (uint32_t i = 0; i < out->n_files && r == 0; i++) {
		if (nbytes[i] != expected_nbytes[i])
			r = fail(-EIO,
				 "internal error: wrote %" PRIu64 " of %" PRIu64
				 " compressed bytes; the output was not committed",
				 nbytes[i], expected_nbytes[i]);
		else if (!out->joined)
			output_record_remote_writes(
				out->outputs[i], expected_nbytes[i] - out->files[i].stored_nbytes,
				expected_nbytes[i]);
	}
	return r;
}

static int write_zst_files(struct sort_output *out)
{
	uint64_t *expected_nbytes = calloc(2 * (size_t)out->n_files, sizeof *expected_nbytes);
	int r = expected_nbytes ? 0 : fail(-ENOMEM, "no memory for %u outputs", out->n_files);

	for (uint32_t i = 0; i < out->n_files && r == 0; i++)
		r = write_zst_file(out, i, &expected_nbytes[i]);
	if (r == 0)
		r = exchange_foreign(out);
	if (r == 0)
		r = check_zst_sizes(out, expected_nbytes, expected_nbytes + out->n_files);
	free(expected_nbytes);
	return r;
}

/* The part to be read back may begin in a frame that another host has written. */
static int prepare_zst_readback(struct sort_output *out, uint32_t i)
{
	const struct zst_index global_index = out->files[i].index;
	int r = 0;

	if (!out->outputs[i])
		return 0;
	if (!is_single_host(out->spec->comm))
		r = output_sync(out->outputs[i]);
	if (r < 0)
		return r;
	out->files[i].index = (struct zst_index){ 0 };
	return output_set_zst_index(out->outputs[i], global_index);
}

static int sync_zst(struct sort_output *out, uint64_t n_total)
{
	int r = sync_zst_indexes(out, n_total);

	if (r == 0)
		r = write_zst_files(out);
	for (uint32_t i = 0; i < out->n_files && r == 0 && out->spec->verify; i++)
		r = prepare_zst_readback(out, i);
	return r;
}

/* --- together --- */

int sort_output_sync_ranks(struct sort_output *out, uint64_t n_total)
{
	int r = exchange_foreign(out);

	if (r == 0 && sort_output_is_split(out))
		r = part_stats_gather(out);
	if (r == 0 && out->is_collective_zst)
		r = sync_zst(out, n_total);

	for (uint32_t i = 0; i < out->n_files && r == 0 && !out->joined; i++) {
		struct output_file *file = &out->files[i];
		const uint64_t n = n_file_records(out, i, n_total);

		if (!out->is_collective_zst)
			record_other_writers(out, i, n, atomic_load(&file->n_records));
		atomic_store(&file->n_records, n);
	}
	return r;
}

/* --- the end --- */

/* Close the file, as network file systems require. */
static int close_shared_file(struct sort_output *out, uint32_t i)
{
	struct output *output = out->outputs[i];
	const int r = out->spec->fsync || out->replaces_input ? output_sync(output) : 0;

	if (r < 0)
		return r;
	out->outputs[i] = NULL;
	return output_close_shared(output);
}

int sort_output_close_shared(struct sort_output *out)
{
	int r = input_check_state(
		out->job->input); /* no rank can remove them once they are closed */

	cancellation_clear_wakeup(out->spec->cancellation);
	sort_output_add_io_stats(out);
	for (uint32_t i = 0; i < out->n_files && r == 0; i++)
		r = out->outputs[i] ? close_shared_file(out, i) : 0;
	out->is_committed = r == 0;
	return r;
}
