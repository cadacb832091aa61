/*
 * file_set.c - open and commit files, and exchange bytes of ranks (see file_set.h)
 */
#include "src/sort/file_set.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/thread.h"
#include "src/checkpoint/checkpoint.h"
#include "src/comm/comm.h"

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

static void drop_foreign(struct file_set *files)
{
	while (files->foreign) {
		struct foreign_bytes *foreign = files->foreign;

		files->foreign = foreign->next;
		free(foreign);
	}
}

/* --- Opening --- */

static int create_single_file(struct file_set *files, uint64_t expected_nbytes,
			      const struct orphan_owner *owner)
{
	const struct sort_spec *spec = files->spec;

	return files->comm ?
		       output_open_shared(files->calls, spec->output_path, expected_nbytes, owner,
					  &files->outputs[0]) :
		       output_open_endpoint(files->calls, spec->output_path, spec->output_endpoint,
					    expected_nbytes, &files->outputs[0]);
}

/* Create the directory of part files and everything in it. Ranks share all but the manifest. */
static int create_part_files(struct file_set *files, const char *extension,
			     uint64_t expected_nbytes, const struct orphan_owner *owner)
{
	int r = part_files_open(files->calls, files->spec->output_path, files->n, extension, owner,
				&files->part_files);

	if (r == 0)
		r = part_files_open_outputs(files->part_files, files->comm, files->outputs);
	return r == 0 && expected_nbytes != OUTPUT_SIZE_UNKNOWN ?
		       output_check_space(files->outputs[0], expected_nbytes) :
		       r;
}

/* Note the names by which the other ranks open the files and their directory. */
static void note_names(struct file_set *files)
{
	for (uint32_t i = 0; i < files->n; i++) {
		memcpy(files->names[i].name, output_shared_name(files->outputs[i]),
		       sizeof files->names[i].name);
		files->names[i].preallocates = output_can_preallocate(files->outputs[i]);
	}
	if (files->part_files)
		memcpy(files->names[files->n].name, part_files_temp_name(files->part_files),
		       sizeof files->names->name);
}

/* Open the single file or the directory that rank 0 has created. */
static int join_created_files(struct file_set *files, const char *extension)
{
	const struct sort_spec *spec = files->spec;

	return spec->n_part_files ?
		       part_files_open_existing(files->calls, spec->output_path, files->n,
						extension, files->names[files->n].name,
						&files->part_files) :
		       output_open_shared_existing(files->calls, spec->output_path,
						   files->names[0].name, &files->outputs[0]);
}

/* Collective: let the other ranks open what rank 0 has created. */
static int share_files(struct file_set *files, const char *extension)
{
	const size_t n_names = files->n + (size_t)1;
	struct shared_name *names = calloc(n_names, sizeof *names);
	int r;

	files->names = names;
	if (!names)
		return fail(-ENOMEM, "no memory for the names of %u files", files->n);
	if (!files->is_joined)
		note_names(files);
	r = comm_broadcast(files->comm, names, n_names * sizeof *names);
	for (size_t i = 0; i < n_names; i++)
		names[i].name[TEMP_NAME_SIZE - 1] = '\0';
	if (r == 0 && files->is_joined)
		r = join_created_files(files, extension);
	/* If rank 0 fails later, it removes the file; by then all ranks have opened it. */
	return r < 0 ? r : comm_barrier(files->comm);
}

int file_set_open(const struct sort_spec *spec, const struct syscalls *calls, const char *extension,
		  uint64_t expected_nbytes, const struct checkpoint *checkpoint,
		  struct file_set *ret_files)
{
	const uint32_t n = spec->n_part_files ? spec->n_part_files : 1;
	struct orphan_owner owner = { 0 };
	int r = 0;

	*ret_files = (struct file_set){
		.spec = spec,
		.calls = calls,
		.n = n,
		.outputs = calloc(n + UINT64_C(1), sizeof(struct output *)),
		.comm = spec->comm,
		.is_joined = spec->comm && comm_rank(spec->comm) != 0,
		.files = spec->comm ? calloc(n, sizeof(struct set_file)) : NULL,
	};
	pthread_mutex_init(&ret_files->lock, NULL);
	if (!ret_files->outputs || (spec->comm && !ret_files->files))
		return fail(-ENOMEM, "no memory for %" PRIu32 " outputs", n);
	if (checkpoint)
		checkpoint_get_orphan_owner(checkpoint, &owner);
	if (!ret_files->is_joined)
		r = spec->n_part_files ?
			    create_part_files(ret_files, extension, expected_nbytes, &owner) :
			    create_single_file(ret_files, expected_nbytes, &owner);
	return r == 0 && spec->comm ? share_files(ret_files, extension) : r;
}

/*
 * All ranks have seen the directory. If a file is missing now, another rank has probably failed and
 * removed it, and its error should be reported instead of this one.
 */
int file_set_join_part(struct file_set *files, uint32_t i)
{
	struct diagnostics *saved_messages = diagnostics_push(NULL);
	const char *name = files->names[i].name;
	int r = part_files_join_output(files->part_files, i, name, &files->outputs[i]);

	diagnostics_push(saved_messages);
	if (r == 0)
		return 0;
	r = r == -ENOENT ? comm_wait_remote_failure(files->comm) : 0;
	return r < 0 ? r : part_files_join_output(files->part_files, i, name, &files->outputs[i]);
}

void file_set_cancel(const struct file_set *files)
{
	for (uint32_t i = 0; i < files->n; i++)
		if (files->outputs[i])
			output_cancel(files->outputs[i]);
}

/* --- The end --- */

void file_set_add_io_stats(const struct file_set *files, struct file_writer_stats *total)
{
	for (uint32_t i = 0; i < files->n; i++)
		if (files->outputs[i])
			output_add_io_stats(files->outputs[i], total);
}

int file_set_commit_file(struct file_set *files, enum output_durability durability,
			 struct checkpoint *checkpoint)
{
	struct output *output = files->outputs[0];
	int r = output_complete(output, durability);

	/* Another start must not take the sorted records for its input. */
	if (r == 0 && checkpoint)
		r = checkpoint_record_done(checkpoint, output);
	if (r < 0)
		return r;
	files->outputs[0] = NULL;
	return output_commit(output, durability);
}

static int complete_part(struct file_set *files, uint32_t i, enum output_durability durability,
			 struct manifest_part *part)
{
	struct stat status;
	int r = output_finalize(files->outputs[i], &status);

	if (r == 0)
		r = output_complete(files->outputs[i], durability);
	if (r < 0)
		return r;
	part->nbytes = (uint64_t)status.st_size;
	part->name = strdup(part_files_name(files->part_files, i));
	return part->name ? 0 : fail(-ENOMEM, "no memory for a part manifest");
}

int file_set_complete_parts(struct file_set *files, struct part_manifest *manifest,
			    enum output_durability durability)
{
	struct output *output = files->outputs[files->n];
	char *text;
	int r = 0;

	for (uint32_t i = 0; i < files->n && r == 0; i++)
		r = complete_part(files, i, durability, &manifest->parts[i]);
	if (r == 0)
		r = part_manifest_format(manifest, &text);
	if (r < 0)
		return r;
	r = output_write_at(output, 0, text, strlen(text));
	free(text);
	return r < 0 ? r : output_complete(output, durability);
}

int file_set_commit_parts(struct file_set *files, enum output_durability durability)
{
	return part_files_commit(files->part_files, files->outputs, durability != OUTPUT_UNSYNCED);
}

static int close_joined_file(struct file_set *files, uint32_t i, bool is_synced)
{
	struct output *output = files->outputs[i];
	const int r = output && is_synced ? output_sync(output) : 0;

	if (!output || r < 0)
		return r;
	files->outputs[i] = NULL;
	return output_close_shared(output);
}

/* Network file systems require that a file is closed before another host completes it. */
int file_set_close_joined(struct file_set *files, bool is_synced)
{
	int r = 0;

	for (uint32_t i = 0; i < files->n && r == 0 && files->is_joined; i++)
		r = close_joined_file(files, i, is_synced);
	if (r < 0)
		return r;
	if (files->is_joined) { /* it belongs to rank 0 now */
		part_files_close(files->part_files, true);
		files->part_files = NULL;
	}
	return comm_barrier(files->comm);
}

void file_set_abort(struct file_set *files, bool is_committed)
{
	for (uint32_t i = 0; files->outputs && i <= files->n; i++)
		output_abort(files->outputs[i]);
	free(files->outputs);
	files->outputs = NULL;
	part_files_close(files->part_files, is_committed);
	files->part_files = NULL;
}

void file_set_close(struct file_set *files)
{
	if (!files->spec)
		return;
	drop_foreign(files);
	for (uint32_t i = 0; files->files && i < files->n; i++) {
		collective_zst_close(files->files[i].zst);
		zst_index_free(&files->files[i].index);
	}
	pthread_mutex_destroy(&files->lock);
	free(files->rank_begin);
	free(files->names);
	free(files->files);
	*files = (struct file_set){ 0 };
}

/* --- Stripes --- */

int file_set_agree_stripe(struct file_set *files)
{
	if (comm_rank(files->comm) == 0)
		files->stripe_nbytes = output_stripe_nbytes(files->outputs[0]);
	return comm_broadcast(files->comm, &files->stripe_nbytes, sizeof files->stripe_nbytes);
}

int file_set_compress(struct file_set *files, struct spill *spill)
{
	int r = 0;

	files->stored_stripe_nbytes = files->stripe_nbytes;
	files->stripe_nbytes = ZST_WRITER_FRAME_NBYTES;
	files->is_compressed = true;
	for (uint32_t i = 0; i < files->n && r == 0; i++)
		r = collective_zst_open(files->comm, spill, &files->files[i].zst);
	return r;
}

bool file_set_have_one_host(const struct file_set *files)
{
	for (unsigned i = 1; i < comm_size(files->comm); i++)
		if (strcmp(comm_host(files->comm, i), comm_host(files->comm, 0)) != 0)
			return false;
	return true;
}

void file_set_place_ranks(struct file_set *files, struct file_position *begin,
			  uint64_t header_nbytes)
{
	files->rank_begin = begin;
	files->header_nbytes = header_nbytes;
}

/* Return the last rank whose content begins at or before this byte. Empty ranks precede it. */
static unsigned find_content_rank(const struct file_set *files, uint64_t file, uint64_t offset)
{
	unsigned lo = 0, hi = comm_size(files->comm);

	while (hi - lo > 1) {
		const unsigned i = lo + (hi - lo) / 2;
		const struct file_position begin = files->rank_begin[i];

		if (begin.file < file || (begin.file == file && begin.offset <= offset))
			lo = i;
		else
			hi = i;
	}
	return lo;
}

/* Return the rank that writes a byte. *ret_end: where its stripe ends. */
static unsigned find_byte_owner(const struct file_set *files, uint32_t i, uint64_t offset,
				uint64_t *ret_end)
{
	const uint64_t first_nbytes = round_up(
		files->header_nbytes,
		files->is_compressed ? files->stripe_nbytes : (uint64_t)sysconf(_SC_PAGESIZE));
	const uint64_t begin = offset - offset % files->stripe_nbytes;

	if (offset < first_nbytes) {
		*ret_end = first_nbytes;
		return 0;
	}
	*ret_end = begin + files->stripe_nbytes;
	return find_content_rank(files, i, u64_max(begin, files->header_nbytes));
}

/* Return where the stripes of this rank begin in a file, at most at the end of its content. */
static uint64_t own_stripes_begin(const struct file_set *files, uint32_t i, uint64_t content_end)
{
	const unsigned rank = comm_rank(files->comm);
	const struct file_position content = files->rank_begin[rank];
	uint64_t begin = 0, end;

	if (content.file == i && content.offset > files->header_nbytes)
		begin = content.offset;
	while (begin < content_end && find_byte_owner(files, i, begin, &end) != rank)
		begin = end;
	return begin;
}

static int keep(struct file_set *files, unsigned owner, uint32_t i, uint64_t offset,
		const void *data, size_t nbytes)
{
	struct foreign_bytes *foreign = malloc(sizeof *foreign + nbytes);

	if (!foreign)
		return fail(-ENOMEM, "no memory for %zu bytes that another rank writes", nbytes);
	*foreign = (struct foreign_bytes){ .owner = owner, .bytes = { i, offset, nbytes } };
	memcpy(foreign->bytes.data, data, nbytes);
	SCOPED_LOCK(&files->lock);
	foreign->next = files->foreign;
	files->foreign = foreign;
	return 0;
}

int file_set_keep_foreign(struct file_set *files, uint32_t i, uint64_t offset, const void *data,
			  size_t nbytes, size_t *ret_n_foreign)
{
	size_t done = 0;
	int r = 0;

	while (files->rank_begin && done < nbytes && r == 0) {
		uint64_t end;
		const unsigned owner = find_byte_owner(files, i, offset + done, &end);
		const size_t n = u64_min(end - offset - done, nbytes - done);

		if (owner == comm_rank(files->comm))
			break;
		r = keep(files, owner, i, offset + done, (const char *)data + done, n);
		done += n;
	}
	*ret_n_foreign = done;
	return r;
}

/* Set *ret_n to the number of messages for this rank. */
static int count_incoming_stripes(const struct file_set *files, uint64_t *ret_n)
{
	struct comm *comm = files->comm;
	uint64_t *counts = calloc(comm_size(comm), sizeof *counts);
	int r;

	if (!counts)
		return fail(-ENOMEM, "no memory for %u ranks", comm_size(comm));
	for (const struct foreign_bytes *foreign = files->foreign; foreign; foreign = foreign->next)
		counts[foreign->owner]++;
	r = comm_allreduce_sum(comm, counts, comm_size(comm));
	*ret_n = counts[comm_rank(comm)];
	free(counts);
	return r;
}

/* Write compressed bytes of any rank. */
static int write_stored(struct file_set *files, uint32_t i, uint64_t offset, const void *data,
			size_t nbytes)
{
	files->files[i].stored_nbytes += nbytes;
	return output_write_at(files->outputs[i], offset, data, nbytes);
}

static int write_foreign(struct file_set *files, const struct stripe_bytes *stripe)
{
	const uint32_t i = (uint32_t)stripe->file;

	if (files->has_all_frames)
		return write_stored(files, i, stripe->offset, stripe->data, stripe->nbytes);
	if (files->is_compressed)
		return collective_zst_buffer_content(files->files[i].zst, stripe->offset,
						     stripe->data, stripe->nbytes);
	files->files[i].foreign_nbytes += stripe->nbytes;
	return output_write_at(files->outputs[i], stripe->offset, stripe->data, stripe->nbytes);
}

/* Return whether another rank may have sent these bytes. Any rank can write compressed bytes. */
static bool is_valid_stripe(const struct file_set *files, const struct stripe_bytes *stripe,
			    size_t nbytes)
{
	const uint32_t i = (uint32_t)stripe->file;
	uint64_t end;

	if (nbytes < sizeof *stripe || stripe->nbytes != nbytes - sizeof *stripe ||
	    stripe->file >= files->n || !files->outputs[i] ||
	    stripe->offset > UINT64_MAX - stripe->nbytes)
		return false;
	return files->has_all_frames ||
	       (find_byte_owner(files, i, stripe->offset, &end) == comm_rank(files->comm) &&
		stripe->offset + stripe->nbytes <= end);
}

/* Compressed frames are cut at the stripes of the file, which may be longer than a frame. */
static size_t max_message_nbytes(const struct file_set *files)
{
	return sizeof(struct stripe_bytes) +
	       (files->has_all_frames ? files->stored_stripe_nbytes : files->stripe_nbytes);
}

/* Receive n messages in any order. */
static int receive_each_stripe(struct file_set *files, uint64_t n, struct stripe_bytes *buffer)
{
	int r = 0;

	for (; n > 0 && r == 0; n--) {
		struct comm_transfer transfer;

		r = comm_receive(files->comm, COMM_ANY_RANK, COMM_TAG_STRIPES, buffer,
				 max_message_nbytes(files), COMM_MAY_BE_SHORTER, &transfer);
		if (r == 0)
			r = comm_wait(files->comm, &transfer);
		if (r < 0)
			return r;
		if (!is_valid_stripe(files, buffer, transfer.nbytes))
			return fail(-EPROTO,
				    "internal error: rank %u on %s sent bytes of a stripe of "
				    "another rank; the output was not written",
				    transfer.from, comm_host(files->comm, transfer.from));
		r = write_foreign(files, buffer);
	}
	return r;
}

static int send_foreign(struct file_set *files)
{
	int r = 0;

	for (struct foreign_bytes *foreign = files->foreign; foreign && r == 0;
	     foreign = foreign->next)
		r = comm_send(files->comm, foreign->owner, COMM_TAG_STRIPES, &foreign->bytes,
			      sizeof foreign->bytes + foreign->bytes.nbytes, &foreign->transfer);
	return r;
}

static int receive_stripes(struct file_set *files, uint64_t n)
{
	struct stripe_bytes *buffer = malloc(max_message_nbytes(files));
	const int r = buffer ? receive_each_stripe(files, n, buffer) :
			       fail(-ENOMEM, "no memory for stripes of other ranks");

	free(buffer);
	return r;
}

/*
 * Called twice if the files are compressed. The second call begins with a collective, so no message
 * of the first arrives in it.
 */
int file_set_exchange(struct file_set *files)
{
	uint64_t n = 0;
	int r = count_incoming_stripes(files, &n);

	if (r == 0)
		r = send_foreign(files);
	if (r == 0)
		r = receive_stripes(files, n);
	for (struct foreign_bytes *foreign = files->foreign; foreign && r == 0;
	     foreign = foreign->next)
		r = comm_wait(files->comm, &foreign->transfer);
	if (r == 0)
		drop_foreign(files);
	return r;
}

/* --- Frames --- */

int file_set_begin_frames(struct file_set *files, uint32_t i, int level, unsigned n_threads,
			  uint64_t content_end)
{
	const struct zst_sink sink = collective_zst_sink(files->files[i].zst);
	const uint64_t begin = own_stripes_begin(files, i, content_end);

	return output_begin_segment(files->outputs[i], level, n_threads, begin, &sink);
}

int file_set_end_frames(struct file_set *files, uint32_t i, uint64_t content_end, bool may_be_empty)
{
	struct set_file *file = &files->files[i];
	const int r = collective_zst_flush_content(file->zst, content_end, files->outputs[i]);

	return r < 0 ? r : output_end_segment(files->outputs[i], may_be_empty, &file->index);
}

/* Replace the own index by that of all ranks. */
static int sync_index(struct set_file *file, uint64_t content_nbytes)
{
	struct zst_index global_index = { 0 };
	const int r =
		collective_zst_merge_index(file->zst, &file->index, content_nbytes, &global_index);

	zst_index_free(&file->index);
	file->index = global_index;
	return r;
}

struct zst_file_ref {
	struct file_set *files;
	uint32_t i;
};

static int write_zst_stripe(void *context, unsigned owner, uint64_t offset, const void *data,
			    size_t nbytes)
{
	const struct zst_file_ref *file = context;

	return owner == comm_rank(file->files->comm) ?
		       write_stored(file->files, file->i, offset, data, nbytes) :
		       keep(file->files, owner, file->i, offset, data, nbytes);
}

static int write_zst_file(struct file_set *files, uint32_t i, uint64_t *ret_nbytes)
{
	struct zst_file_ref file = { files, i };
	const struct stripe_sink sink = { .stripe_nbytes = files->stored_stripe_nbytes,
					  .context = &file,
					  .write = write_zst_stripe };

	return collective_zst_write(files->files[i].zst, &files->files[i].index, &sink, ret_nbytes);
}

/*
 * Check that every byte was written. Rank 0, which owns the files, accounts for the writes of
 * others.
 */
static int check_stored_sizes(struct file_set *files, const uint64_t *expected_nbytes,
			      uint64_t *nbytes)
{
	int r;

	for (uint32_t i = 0; i < files->n; i++)
		nbytes[i] = files->files[i].stored_nbytes;
	r = comm_allreduce_sum(files->comm, nbytes, files->n);
	for (uint32_t i = 0; i < files->n && r == 0; i++) {
		if (nbytes[i] != expected_nbytes[i])
			r = fail(-EIO,
				 "internal error: wrote %" PRIu64 " of %" PRIu64
				 " compressed bytes; the output was not committed",
				 nbytes[i], expected_nbytes[i]);
		else if (comm_rank(files->comm) == 0)
			output_record_remote_writes(files->outputs[i],
						    expected_nbytes[i] -
							    files->files[i].stored_nbytes,
						    expected_nbytes[i]);
	}
	return r;
}

int file_set_write_frames(struct file_set *files, const uint64_t *content_nbytes)
{
	uint64_t *expected_nbytes = calloc(2 * (size_t)files->n, sizeof *expected_nbytes);
	int r = expected_nbytes ? 0 : fail(-ENOMEM, "no memory for %u outputs", files->n);

	for (uint32_t i = 0; i < files->n && r == 0; i++)
		r = sync_index(&files->files[i], content_nbytes[i]);
	files->has_all_frames = true;
	for (uint32_t i = 0; i < files->n && r == 0; i++)
		r = write_zst_file(files, i, &expected_nbytes[i]);
	if (r == 0)
		r = file_set_exchange(files);
	if (r == 0)
		r = check_stored_sizes(files, expected_nbytes, expected_nbytes + files->n);
	free(expected_nbytes);
	return r;
}
