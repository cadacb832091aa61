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

static void drop_foreign(struct file_set *set)
{
	while (set->foreign) {
		struct foreign_bytes *foreign = set->foreign;

		set->foreign = foreign->next;
		free(foreign);
	}
}

/* --- Opening --- */

static int create_single_file(struct file_set *set, uint64_t expected_nbytes,
			      const struct orphan_owner *owner)
{
	const struct sort_spec *spec = set->spec;

	return set->comm ?
		       output_open_shared(set->calls, spec->output_path, expected_nbytes, owner,
					  &set->outputs[0]) :
		       output_open_endpoint(set->calls, spec->output_path, spec->output_endpoint,
					    expected_nbytes, &set->outputs[0]);
}

/* Create the directory of part files and everything in it. Ranks share all but the manifest. */
static int create_part_files(struct file_set *set, const char *extension, uint64_t expected_nbytes,
			     const struct orphan_owner *owner)
{
	int r = part_files_open(set->calls, set->spec->output_path, set->n, extension, owner,
				&set->part_files);

	if (r == 0)
		r = part_files_open_outputs(set->part_files, set->comm, set->outputs);
	return r == 0 && expected_nbytes != OUTPUT_SIZE_UNKNOWN ?
		       output_check_space(set->outputs[0], expected_nbytes) :
		       r;
}

/* Note the names by which the other ranks open the files and their directory. */
static void note_names(struct file_set *set)
{
	for (uint32_t i = 0; i < set->n; i++) {
		memcpy(set->names[i].name, output_shared_name(set->outputs[i]),
		       sizeof set->names[i].name);
		set->names[i].preallocates = output_can_preallocate(set->outputs[i]);
	}
	if (set->part_files)
		memcpy(set->names[set->n].name, part_files_temp_name(set->part_files),
		       sizeof set->names->name);
}

/* Open the single file or the directory that rank 0 has created. */
static int join_created_files(struct file_set *set, const char *extension)
{
	const struct sort_spec *spec = set->spec;

	return spec->n_part_files ?
		       part_files_open_existing(set->calls, spec->output_path, set->n, extension,
						set->names[set->n].name, &set->part_files) :
		       output_open_shared_existing(set->calls, spec->output_path,
						   set->names[0].name, &set->outputs[0]);
}

/* Collective: let the other ranks open what rank 0 has created. */
static int share_files(struct file_set *set, const char *extension)
{
	const size_t n_names = set->n + (size_t)1;
	struct shared_name *names = calloc(n_names, sizeof *names);
	int r;

	set->names = names;
	if (!names)
		return fail(-ENOMEM, "no memory for the names of %u files", set->n);
	if (!set->is_joined)
		note_names(set);
	r = comm_broadcast(set->comm, names, n_names * sizeof *names);
	for (size_t i = 0; i < n_names; i++)
		names[i].name[TEMP_NAME_SIZE - 1] = '\0';
	if (r == 0 && set->is_joined)
		r = join_created_files(set, extension);
	/* If rank 0 fails later, it removes the file; by then all ranks have opened it. */
	return r < 0 ? r : comm_barrier(set->comm);
}

int file_set_open(const struct sort_spec *spec, const struct syscalls *calls, const char *extension,
		  uint64_t expected_nbytes, const struct checkpoint *checkpoint,
		  struct file_set *ret_set)
{
	const uint32_t n = spec->n_part_files ? spec->n_part_files : 1;
	struct orphan_owner owner = { 0 };
	int r = 0;

	*ret_set = (struct file_set){
		.spec = spec,
		.calls = calls,
		.n = n,
		.outputs = calloc(n + UINT64_C(1), sizeof(struct output *)),
		.comm = spec->comm,
		.is_joined = spec->comm && comm_rank(spec->comm) != 0,
		.files = spec->comm ? calloc(n, sizeof(struct shared_file)) : NULL,
	};
	pthread_mutex_init(&ret_set->lock, NULL);
	if (!ret_set->outputs || (spec->comm && !ret_set->files))
		return fail(-ENOMEM, "no memory for %" PRIu32 " outputs", n);
	if (checkpoint)
		checkpoint_get_orphan_owner(checkpoint, &owner);
	if (!ret_set->is_joined)
		r = spec->n_part_files ?
			    create_part_files(ret_set, extension, expected_nbytes, &owner) :
			    create_single_file(ret_set, expected_nbytes, &owner);
	return r == 0 && spec->comm ? share_files(ret_set, extension) : r;
}

/*
 * All ranks have seen the directory. If a file is missing now, another rank has probably failed and
 * removed it, and its error should be reported instead of this one.
 */
int file_set_join_part(struct file_set *set, uint32_t i)
{
	struct diagnostics *saved_messages = diagnostics_push(NULL);
	const char *name = set->names[i].name;
	int r = part_files_join_output(set->part_files, i, name, &set->outputs[i]);

	diagnostics_push(saved_messages);
	if (r == 0)
		return 0;
	r = r == -ENOENT ? comm_wait_remote_failure(set->comm) : 0;
	return r < 0 ? r : part_files_join_output(set->part_files, i, name, &set->outputs[i]);
}

/* More files share a queue: each file that bypasses the cache has a descriptor and an I/O queue. */
enum { MAX_DIRECT_FILES = 32 };

void file_set_choose_io_mode(struct file_set *set, enum cache_policy policy)
{
	for (uint32_t i = 0; i < set->n && policy != CACHE_USE; i++)
		if (!set->outputs[i])
			continue;
		else if (set->n > MAX_DIRECT_FILES && policy == CACHE_BYPASS)
			output_use_writeback(set->outputs[i]);
		else if (set->n <= MAX_DIRECT_FILES && policy == CACHE_BYPASS)
			output_bypass_cache(set->outputs[i]);
		else if (set->n <= MAX_DIRECT_FILES)
			output_use_adaptive_io(set->outputs[i]);
}

void file_set_cancel(const struct file_set *set)
{
	for (uint32_t i = 0; i < set->n; i++)
		if (set->outputs[i])
			output_cancel(set->outputs[i]);
}

/* --- The end --- */

void file_set_add_io_stats(const struct file_set *set, struct file_writer_stats *total)
{
	for (uint32_t i = 0; i < set->n; i++)
		if (set->outputs[i])
			output_add_io_stats(set->outputs[i], total);
}

/* If the output replaces an input, it is the only copy of the data. */
static enum output_durability durability(const struct file_set *set)
{
	return set->spec->fsync    ? OUTPUT_SYNC_ALL :
	       set->replaces_input ? OUTPUT_SYNC_DATA :
				     OUTPUT_UNSYNCED;
}

static int complete_part(struct file_set *set, uint32_t i, struct manifest_part *part)
{
	struct stat status;
	int r = output_finalize(set->outputs[i], &status);

	if (r == 0)
		r = output_complete(set->outputs[i], durability(set));
	if (r < 0)
		return r;
	part->nbytes = (uint64_t)status.st_size;
	part->name = strdup(part_files_name(set->part_files, i));
	return part->name ? 0 : fail(-ENOMEM, "no memory for a part manifest");
}

static int complete_parts(struct file_set *set, struct part_manifest *manifest)
{
	struct output *output = set->outputs[set->n];
	char *text;
	int r = 0;

	for (uint32_t i = 0; i < set->n && r == 0; i++)
		r = complete_part(set, i, &manifest->parts[i]);
	if (r == 0)
		r = part_manifest_format(manifest, &text);
	if (r < 0)
		return r;
	r = output_write_at(output, 0, text, strlen(text));
	free(text);
	return r < 0 ? r : output_complete(output, durability(set));
}

int file_set_complete(struct file_set *set, struct part_manifest *manifest)
{
	return manifest ? complete_parts(set, manifest) :
			  output_complete(set->outputs[0], durability(set));
}

static int commit_file(struct file_set *set, struct checkpoint *checkpoint)
{
	struct output *output = set->outputs[0];
	/* Another start must not take the sorted records for its input. */
	const int r =
		checkpoint && set->replaces_input ? checkpoint_record_done(checkpoint, output) : 0;

	if (r < 0)
		return r;
	set->outputs[0] = NULL;
	return output_commit(output, durability(set));
}

int file_set_commit(struct file_set *set, struct checkpoint *checkpoint)
{
	const int r = set->part_files ?
			      part_files_commit(set->part_files, set->outputs, set->spec->fsync) :
			      commit_file(set, checkpoint);

	set->is_committed = r == 0;
	return r;
}

static int close_joined_file(struct file_set *set, uint32_t i)
{
	struct output *output = set->outputs[i];
	const int r = output && durability(set) != OUTPUT_UNSYNCED ? output_sync(output) : 0;

	if (!output || r < 0)
		return r;
	set->outputs[i] = NULL;
	return output_close_shared(output);
}

/* Network file systems require that a file is closed before another host completes it. */
int file_set_close_joined(struct file_set *set)
{
	int r = 0;

	for (uint32_t i = 0; i < set->n && r == 0 && set->is_joined; i++)
		r = close_joined_file(set, i);
	if (r < 0)
		return r;
	if (set->is_joined) { /* it belongs to rank 0 now */
		part_files_close(set->part_files, true);
		set->part_files = NULL;
	}
	return comm_barrier(set->comm);
}

void file_set_abort(struct file_set *set)
{
	for (uint32_t i = 0; set->outputs && i <= set->n; i++)
		output_abort(set->outputs[i]);
	free(set->outputs);
	set->outputs = NULL;
	part_files_close(set->part_files, set->is_committed);
	set->part_files = NULL;
}

void file_set_close(struct file_set *set)
{
	if (!set->spec)
		return;
	drop_foreign(set);
	for (uint32_t i = 0; set->files && i < set->n; i++) {
		collective_zst_close(set->files[i].zst);
		zst_index_free(&set->files[i].index);
	}
	pthread_mutex_destroy(&set->lock);
	free(set->rank_begin);
	free(set->names);
	free(set->files);
	*set = (struct file_set){ 0 };
}

/* --- Stripes --- */

int file_set_agree_stripe(struct file_set *set)
{
	if (comm_rank(set->comm) == 0)
		set->stripe_nbytes = output_stripe_nbytes(set->outputs[0]);
	return comm_broadcast(set->comm, &set->stripe_nbytes, sizeof set->stripe_nbytes);
}

int file_set_compress(struct file_set *set, unsigned n, struct spill *spill)
{
	int r = 0;

	set->stored_stripe_nbytes = set->stripe_nbytes;
	set->stripe_nbytes = ZST_WRITER_FRAME_NBYTES;
	set->is_compressed = true;
	set->n_compressors = n;
	for (uint32_t i = 0; i < set->n && r == 0; i++)
		r = collective_zst_open(set, i, spill, &set->files[i].zst);
	return r;
}

bool file_set_have_one_host(const struct file_set *set)
{
	for (unsigned i = 1; i < comm_size(set->comm); i++)
		if (strcmp(comm_host(set->comm, i), comm_host(set->comm, 0)) != 0)
			return false;
	return true;
}

int file_set_place_ranks(struct file_set *set, uint64_t header_nbytes, locate_rank_fn *locate_rank,
			 const void *context)
{
	const unsigned n = comm_size(set->comm);
	struct file_position *begin = calloc(n, sizeof *begin);

	if (!begin)
		return fail(-ENOMEM, "no memory for %u ranks", n);
	for (unsigned i = 0; i < n; i++)
		begin[i] = locate_rank(context, i);
	set->rank_begin = begin;
	set->header_nbytes = header_nbytes;
	return 0;
}

/* Return the last rank whose content begins at or before this byte. Empty ranks precede it. */
static unsigned find_content_rank(const struct file_set *set, uint64_t file, uint64_t offset)
{
	unsigned lo = 0, hi = comm_size(set->comm);

	while (hi - lo > 1) {
		const unsigned i = lo + (hi - lo) / 2;
		const struct file_position begin = set->rank_begin[i];

		if (begin.file < file || (begin.file == file && begin.offset <= offset))
			lo = i;
		else
			hi = i;
	}
	return lo;
}

/* Return the rank that writes a byte. *ret_end: where its stripe ends. */
static unsigned find_byte_owner(const struct file_set *set, uint32_t i, uint64_t offset,
				uint64_t *ret_end)
{
	const uint64_t first_nbytes =
		round_up(set->header_nbytes,
			 set->is_compressed ? set->stripe_nbytes : (uint64_t)sysconf(_SC_PAGESIZE));
	const uint64_t begin = offset - offset % set->stripe_nbytes;

	if (offset < first_nbytes) {
		*ret_end = first_nbytes;
		return 0;
	}
	*ret_end = begin + set->stripe_nbytes;
	return find_content_rank(set, i, u64_max(begin, set->header_nbytes));
}

/*
 * Return where the content of this rank ends in a file, and that of another one follows. If it
 * has none there: after the header. UINT64_MAX: no other follows.
 */
static uint64_t content_end(const struct file_set *set, uint32_t i)
{
	const unsigned rank = comm_rank(set->comm);
	const struct file_position *begin = &set->rank_begin[rank];

	if (begin->file > i)
		return set->header_nbytes;
	if (rank + 1 == comm_size(set->comm) || begin[1].file > i)
		return UINT64_MAX;
	return begin[1].file == i ? begin[1].offset : set->header_nbytes;
}

/* Return where the stripes of this rank begin in a file, at most at the end of its content. */
static uint64_t own_stripes_begin(const struct file_set *set, uint32_t i)
{
	const unsigned rank = comm_rank(set->comm);
	const struct file_position content = set->rank_begin[rank];
	const uint64_t last = content_end(set, i);
	uint64_t begin = 0, end;

	if (content.file == i && content.offset > set->header_nbytes)
		begin = content.offset;
	while (begin < last && find_byte_owner(set, i, begin, &end) != rank)
		begin = end;
	return begin;
}

static int keep(struct file_set *set, unsigned owner, uint32_t i, uint64_t offset, const void *data,
		size_t nbytes)
{
	struct foreign_bytes *foreign = malloc(sizeof *foreign + nbytes);

	if (!foreign)
		return fail(-ENOMEM, "no memory for %zu bytes that another rank writes", nbytes);
	*foreign = (struct foreign_bytes){ .owner = owner, .bytes = { i, offset, nbytes } };
	memcpy(foreign->bytes.data, data, nbytes);
	SCOPED_LOCK(&set->lock);
	foreign->next = set->foreign;
	set->foreign = foreign;
	return 0;
}

/* Keep the first *ret_n_foreign bytes of a write that are in the stripe of another rank. */
static int keep_foreign(struct file_set *set, uint32_t i, uint64_t offset, const void *data,
			size_t nbytes, size_t *ret_n_foreign)
{
	size_t done = 0;
	int r = 0;

	while (set->rank_begin && done < nbytes && r == 0) {
		uint64_t end;
		const unsigned owner = find_byte_owner(set, i, offset + done, &end);
		const size_t n = u64_min(end - offset - done, nbytes - done);

		if (owner == comm_rank(set->comm))
			break;
		r = keep(set, owner, i, offset + done, (const char *)data + done, n);
		done += n;
	}
	*ret_n_foreign = done;
	return r;
}

static int begin_frames(struct file_set *set, uint32_t i)
{
	struct shared_file *file = &set->files[i];
	const struct zst_sink sink = collective_zst_sink(file->zst);
	int r;

	SCOPED_LOCK(&set->lock);
	if (file->is_begun)
		return 0;
	r = output_begin_segment(set->outputs[i], set->spec->zstd_level, set->n_compressors,
				 own_stripes_begin(set, i), &sink);
	file->is_begun = file->is_compressing = r == 0;
	return r;
}

int file_set_write(struct file_set *set, uint32_t i, uint64_t offset, const void *data,
		   size_t nbytes)
{
	size_t n;
	int r = keep_foreign(set, i, offset, data, nbytes, &n);

	if (r < 0 || n == nbytes)
		return r;
	r = set->is_compressed ? begin_frames(set, i) : 0;
	return r < 0 ? r :
		       output_write_at(set->outputs[i], offset + n, (const char *)data + n,
				       nbytes - n);
}

/* Set *ret_n to the number of messages for this rank. */
static int count_incoming_stripes(const struct file_set *set, uint64_t *ret_n)
{
	struct comm *comm = set->comm;
	uint64_t *counts = calloc(comm_size(comm), sizeof *counts);
	int r;

	if (!counts)
		return fail(-ENOMEM, "no memory for %u ranks", comm_size(comm));
	for (const struct foreign_bytes *foreign = set->foreign; foreign; foreign = foreign->next)
		counts[foreign->owner]++;
	r = comm_allreduce_sum(comm, counts, comm_size(comm));
	*ret_n = counts[comm_rank(comm)];
	free(counts);
	return r;
}

int file_set_write_stored(struct file_set *set, uint32_t i, unsigned owner, uint64_t offset,
			  const void *data, size_t nbytes)
{
	if (owner != comm_rank(set->comm))
		return keep(set, owner, i, offset, data, nbytes);
	set->files[i].stored_nbytes += nbytes;
	return output_write_at(set->outputs[i], offset, data, nbytes);
}

static int write_foreign(struct file_set *set, const struct stripe_bytes *stripe)
{
	const uint32_t i = (uint32_t)stripe->file;

	if (set->has_all_frames)
		return file_set_write_stored(set, i, comm_rank(set->comm), stripe->offset,
					     stripe->data, stripe->nbytes);
	if (set->is_compressed)
		return collective_zst_buffer_content(set->files[i].zst, stripe->offset,
						     stripe->data, stripe->nbytes);
	set->files[i].foreign_nbytes += stripe->nbytes;
	return output_write_at(set->outputs[i], stripe->offset, stripe->data, stripe->nbytes);
}

/* Return whether another rank may have sent these bytes. Any rank can write compressed bytes. */
static bool is_valid_stripe(const struct file_set *set, const struct stripe_bytes *stripe,
			    size_t nbytes)
{
	const uint32_t i = (uint32_t)stripe->file;
	uint64_t end;

	if (nbytes < sizeof *stripe || stripe->nbytes != nbytes - sizeof *stripe ||
	    stripe->file >= set->n || !set->outputs[i] ||
	    stripe->offset > UINT64_MAX - stripe->nbytes)
		return false;
	return set->has_all_frames ||
	       (find_byte_owner(set, i, stripe->offset, &end) == comm_rank(set->comm) &&
		stripe->offset + stripe->nbytes <= end);
}

/* Compressed frames are cut at the stripes of the file, which may be longer than a frame. */
static size_t max_message_nbytes(const struct file_set *set)
{
	return sizeof(struct stripe_bytes) +
	       (set->has_all_frames ? set->stored_stripe_nbytes : set->stripe_nbytes);
}

/* Receive n messages in any order. */
static int receive_each_stripe(struct file_set *set, uint64_t n, struct stripe_bytes *buffer)
{
	int r = 0;

	for (; n > 0 && r == 0; n--) {
		struct comm_transfer transfer;

		r = comm_receive(set->comm, COMM_ANY_RANK, COMM_TAG_STRIPES, buffer,
				 max_message_nbytes(set), COMM_MAY_BE_SHORTER, &transfer);
		if (r == 0)
			r = comm_wait(set->comm, &transfer);
		if (r < 0)
			return r;
		if (!is_valid_stripe(set, buffer, transfer.nbytes))
			return fail(-EPROTO,
				    "internal error: rank %u on %s sent bytes of a stripe of "
				    "another rank; the output was not written",
				    transfer.from, comm_host(set->comm, transfer.from));
		r = write_foreign(set, buffer);
	}
	return r;
}

static int send_foreign(struct file_set *set)
{
	int r = 0;

	for (struct foreign_bytes *foreign = set->foreign; foreign && r == 0;
	     foreign = foreign->next)
		r = comm_send(set->comm, foreign->owner, COMM_TAG_STRIPES, &foreign->bytes,
			      sizeof foreign->bytes + foreign->bytes.nbytes, &foreign->transfer);
	return r;
}

static int receive_stripes(struct file_set *set, uint64_t n)
{
	struct stripe_bytes *buffer = malloc(max_message_nbytes(set));
	const int r = buffer ? receive_each_stripe(set, n, buffer) :
			       fail(-ENOMEM, "no memory for stripes of other ranks");

	free(buffer);
	return r;
}

/*
 * Called twice if the files are compressed. The second call begins with a collective, so no message
 * of the first arrives in it.
 */
int file_set_exchange(struct file_set *set)
{
	uint64_t n = 0;
	int r = count_incoming_stripes(set, &n);

	if (r == 0)
		r = send_foreign(set);
	if (r == 0)
		r = receive_stripes(set, n);
	for (struct foreign_bytes *foreign = set->foreign; foreign && r == 0;
	     foreign = foreign->next)
		r = comm_wait(set->comm, &foreign->transfer);
	if (r == 0)
		drop_foreign(set);
	return r;
}

void file_set_record_remote_writes(struct file_set *set, uint32_t i, uint64_t own_nbytes,
				   uint64_t nbytes)
{
	const uint64_t written_nbytes = own_nbytes + set->files[i].foreign_nbytes;

	if (!set->is_joined && !set->is_compressed && nbytes > written_nbytes)
		output_record_remote_writes(set->outputs[i], nbytes - written_nbytes, nbytes);
}

/* --- Frames --- */

int file_set_end_frames(struct file_set *set, uint32_t i, bool may_be_empty)
{
	struct shared_file *file = &set->files[i];
	int r;

	if (!file->is_compressing)
		return 0;
	file->is_compressing = false;
	r = collective_zst_flush_content(file->zst, content_end(set, i), set->outputs[i]);
	return r < 0 ? r : output_end_segment(set->outputs[i], may_be_empty, &file->index);
}

/* Replace the own index by that of all ranks. */
static int sync_index(struct shared_file *file, uint64_t content_nbytes)
{
	struct zst_index global_index = { 0 };
	const int r =
		collective_zst_merge_index(file->zst, &file->index, content_nbytes, &global_index);

	zst_index_free(&file->index);
	file->index = global_index;
	return r;
}

/*
 * Check that every byte was written. Rank 0, which owns the files, accounts for the writes of
 * others.
 */
static int check_stored_sizes(struct file_set *set, const uint64_t *expected_nbytes,
			      uint64_t *nbytes)
{
	int r;

	for (uint32_t i = 0; i < set->n; i++)
		nbytes[i] = set->files[i].stored_nbytes;
	r = comm_allreduce_sum(set->comm, nbytes, set->n);
	for (uint32_t i = 0; i < set->n && r == 0; i++) {
		if (nbytes[i] != expected_nbytes[i])
			r = fail(-EIO,
				 "internal error: wrote %" PRIu64 " of %" PRIu64
				 " compressed bytes; the output was not committed",
				 nbytes[i], expected_nbytes[i]);
		else if (comm_rank(set->comm) == 0)
			output_record_remote_writes(
				set->outputs[i], expected_nbytes[i] - set->files[i].stored_nbytes,
				expected_nbytes[i]);
	}
	return r;
}

int file_set_write_frames(struct file_set *set, const uint64_t *content_nbytes)
{
	uint64_t *expected_nbytes = calloc(2 * (size_t)set->n, sizeof *expected_nbytes);
	int r = expected_nbytes ? 0 : fail(-ENOMEM, "no memory for %u outputs", set->n);

	for (uint32_t i = 0; i < set->n && r == 0; i++) {
		const bool is_empty = content_nbytes[i] == 0 && !set->is_joined;

		if (is_empty)
			r = begin_frames(set, i);
		if (r == 0)
			r = file_set_end_frames(set, i, !is_empty);
		if (r == 0)
			r = sync_index(&set->files[i], content_nbytes[i]);
	}
	set->has_all_frames = true;
	for (uint32_t i = 0; i < set->n && r == 0; i++)
		r = collective_zst_write(set->files[i].zst, &expected_nbytes[i]);
	if (r == 0)
		r = file_set_exchange(set);
	if (r == 0)
		r = check_stored_sizes(set, expected_nbytes, expected_nbytes + set->n);
	free(expected_nbytes);
	return r;
}
