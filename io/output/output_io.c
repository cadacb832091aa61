/*
 * output_io - what is written to an output, and read back of it (see output.h)
 *
 * Writers come in any order. Where the target takes its bytes in order only, or they are
 * compressed, each waits for its turn.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "io/file/size_limit.h"
#include "io/output/output_internal.h"
#include "src/base/rendezvous.h"
#include "src/base/diagnostics.h"

/*
 * Wait until all before `offset` is written. Returns 0, or the failure that keeps it from ever
 * being.
 */
static int wait_for_turn(struct output *output, uint64_t offset)
{
	int r;

	pthread_mutex_lock(&output->lock);
	while ((r = atomic_load(&output->error)) == 0 && output->written_nbytes != offset) {
		assert(output->written_nbytes < offset);
		pthread_cond_wait(&output->turn, &output->lock);
	}
	pthread_mutex_unlock(&output->lock);
	return r;
}

/* Account for a write that returned r. */
static void record_write(struct output *output, int r, uint64_t offset, size_t nbytes)
{
	pthread_mutex_lock(&output->lock);
	if (r == 0) {
		output->written_nbytes += nbytes;
		if (output->written_end < offset + nbytes)
			output->written_end = offset + nbytes;
	} else if (atomic_load(&output->error) == 0) {
		atomic_store(&output->error, r);
	}
	pthread_cond_broadcast(&output->turn);
	pthread_mutex_unlock(&output->lock);
}

/* Is there space for the bytes, and all of the pieces that they would be mapped in? */
static bool preallocate_for_write(struct output *output, uint64_t offset, size_t nbytes)
{
	const uint64_t base = output->target.base,
		       total_nbytes = output->preallocation.total_nbytes;
	uint64_t begin = base + offset, end = begin + nbytes;

	if (!file_writer_can_mmap(&output->writer) || offset + nbytes > total_nbytes)
		return preallocate_range(&output->preallocation, offset, offset + nbytes);
	begin -= begin % MMAP_SEGMENT_NBYTES;
	end += -end % MMAP_SEGMENT_NBYTES;
	return preallocate_range(&output->preallocation, begin < base ? 0 : begin - base,
				 end - base < total_nbytes ? end - base : total_nbytes);
}

/* Bytes as they are to stand in the file, at `offset` from the base. */
static int write_to_target(void *context, uint64_t offset, const void *data, size_t nbytes)
{
	struct output *output = context;
	char advice[SIZE_LIMIT_HINT_NBYTES];
	bool is_preallocated;
	int r;

	if (output->target.rendezvous)
		return rendezvous_send(output->target.rendezvous, data, nbytes);
	if (output->target.is_ordered) {
		r = file_write_next(&output->target.file, data, nbytes);
	} else {
		if (output->truncate_entry)
			truncate_extend(output->truncate_entry,
					output->target.base + offset + nbytes);
		is_preallocated = preallocate_for_write(output, offset, nbytes);
		r = file_writer_write_at(&output->writer, output->target.base + offset, data,
					 nbytes, is_preallocated);
	}
	return r < 0 ? fail(r, "%s: write of %zu bytes at %" PRIu64 ": %m%s", output->target.name,
			    nbytes, output->target.base + offset, size_limit_hint(r, advice)) :
		       0;
}

static void save_first_bytes(struct output *output, uint64_t offset, const void *data,
			     size_t nbytes)
{
	const uint64_t available = offset < OUTPUT_FIRST_NBYTES ? OUTPUT_FIRST_NBYTES - offset : 0;

	if (available)
		memcpy(output->first_bytes + offset, data, nbytes < available ? nbytes : available);
}

int output_write_at(struct output *output, uint64_t offset, const void *data, size_t nbytes)
{
	int r = atomic_load(&output->error);

	if (r == 0 && output_is_ordered(output))
		r = wait_for_turn(output, offset);
	if (r < 0)
		return r;
	save_first_bytes(output, offset, data, nbytes);
	if (output->zst_writer)
		r = zst_writer_append(output->zst_writer, data, nbytes);
	else
		r = write_to_target(output, offset, data, nbytes);
	record_write(output, r, offset, nbytes);
	return r;
}

int output_compress(struct output *output, int level, unsigned n_threads)
{
	const struct zst_sink sink = { .context = output,
				       .in_order = output->target.is_ordered,
				       .write = write_to_target };

	assert(output->written_nbytes == 0 && output->preallocation.total_nbytes == 0);
	return zst_writer_open(output->target.name, &sink, level, n_threads, &output->zst_writer);
}

int output_begin_segment(struct output *output, int level, unsigned n_threads, uint64_t begin,
			 const struct zst_sink *sink)
{
	int r;

	assert(output->written_nbytes == 0 && output->preallocation.total_nbytes == 0);
	r = zst_writer_open(output->target.name, sink, level, n_threads, &output->zst_writer);
	if (r == 0)
		output->written_nbytes = output->written_end = begin;
	return r;
}

int output_end_segment(struct output *output, bool allow_empty, struct zst_index *ret_index)
{
	int r = atomic_load(&output->error);

	if (r == 0)
		r = zst_writer_finish_frames(output->zst_writer, allow_empty);
	if (r < 0)
		return r;
	*ret_index = zst_writer_detach_index(output->zst_writer);
	zst_writer_close(output->zst_writer);
	output->zst_writer = NULL;
	output->written_nbytes = output->written_end = 0;
	output->first_bytes_unknown = true; /* it was content */
	return 0;
}

int output_set_zst_index(struct output *output, struct zst_index index)
{
	return zst_reader_open(output->target.name, index, output->target.base,
			       &output->codec_contexts, &output->zst_reader);
}

/* What was compressed is complete in the file; then it can be read. Under the lock. */
static int finish_compression(struct output *output)
{
	int r;

	if (output->zst_reader)
		return 0;
	r = zst_writer_finish(output->zst_writer);
	if (r < 0)
		return r;
	return zst_reader_open(output->target.name, zst_writer_detach_index(output->zst_writer),
			       output->target.base, &output->codec_contexts, &output->zst_reader);
}

int output_finish_writes(struct output *output)
{
	int r;

	pthread_mutex_lock(&output->lock);
	r = atomic_load(&output->error);
	if (r == 0 && output->zst_writer)
		r = finish_compression(output);
	atomic_store(&output->error, r);
	pthread_mutex_unlock(&output->lock);
	return r;
}

int output_read_at(struct output *output, uint64_t offset, void *buffer, size_t nbytes)
{
	int r;

	if (output->target.is_ordered)
		return -ESPIPE;
	r = output_finish_writes(output);
	if (r < 0)
		return r;
	if (output->zst_reader)
		return zst_reader_read_at(output->zst_reader, &output->target.file, offset, buffer,
					  nbytes);
	r = file_read_at(&output->target.file, output->target.base + offset, buffer, nbytes);
	if (r == -EBADF) /* `> file` is open for writing only */
		return -ESPIPE;
	if (r == -ENODATA)
		return fail(r,
			    "%s: ends before byte %" PRIu64
			    ", which was written: somebody else has cut it",
			    output->target.name, output->target.base + offset + nbytes);
	return r < 0 ? fail(r, "%s: read of %zu bytes at %" PRIu64 ": %m", output->target.name,
			    nbytes, output->target.base + offset) :
		       0;
}

size_t output_first_bytes(const struct output *output, void *buffer, size_t nbytes)
{
	size_t n = nbytes < OUTPUT_FIRST_NBYTES ? nbytes : OUTPUT_FIRST_NBYTES;

	n = output->written_end < n ? (size_t)output->written_end : n;
	if (output->zst_writer || output->target.base > 0 || output->first_bytes_unknown)
		return 0;
	memcpy(buffer, output->first_bytes, n);
	return n;
}

void output_cancel(struct output *output)
{
	if (output->target.rendezvous)
		rendezvous_fail(output->target.rendezvous, -ECANCELED);
	record_write(output, -ECANCELED, 0, 0);
}
