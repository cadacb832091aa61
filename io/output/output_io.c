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
	while ((r = atomic_load(&output->r)) == 0 && output->written_nbytes != offset) {
		assert(output->written_nbytes < offset);
		pthread_cond_wait(&output->turn, &output->lock);
	}
	pthread_mutex_unlock(&output->lock);
	return r;
}

/* Account for a write that returned r. */
static void note_write(struct output *output, int r, uint64_t offset, size_t nbytes)
{
	pthread_mutex_lock(&output->lock);
	if (r == 0) {
		output->written_nbytes += nbytes;
		if (output->end < offset + nbytes)
			output->end = offset + nbytes;
	} else if (atomic_load(&output->r) == 0) {
		atomic_store(&output->r, r);
	}
	pthread_cond_broadcast(&output->turn);
	pthread_mutex_unlock(&output->lock);
}

/* Is there space for the bytes, and all of the pieces that they would be mapped in? */
static bool reserve(struct output *output, uint64_t offset, size_t nbytes)
{
	const uint64_t base = output->target.base, total = output->reservation.total_nbytes;
	uint64_t begin = base + offset, end = begin + nbytes;

	if (!file_writer_may_map(&output->writer) || offset + nbytes > total)
		return reservation_reach(&output->reservation, offset, offset + nbytes);
	begin -= begin % MAPPED_PIECE_NBYTES;
	end += -end % MAPPED_PIECE_NBYTES;
	return reservation_reach(&output->reservation, begin < base ? 0 : begin - base,
				 end - base < total ? end - base : total);
}

/* Bytes as they are to stand in the file, at `offset` from the base. */
static int write_stored(void *context, uint64_t offset, const void *data, size_t nbytes)
{
	struct output *output = context;
	char advice[SIZE_LIMIT_NBYTES];
	bool reserved;
	int r;

	if (output->target.handover)
		return handover_send(output->target.handover, data, nbytes);
	if (output->target.is_ordered) {
		r = file_write_next(&output->target.file, data, nbytes);
	} else {
		if (output->cut)
			cut_back_reach(output->cut, output->target.base + offset + nbytes);
		reserved = reserve(output, offset, nbytes);
		r = file_writer_write_at(&output->writer, output->target.base + offset, data,
					 nbytes, reserved);
	}
	return r < 0 ? fail(r, "%s: write of %zu bytes at %" PRIu64 ": %m%s", output->target.name,
			    nbytes, output->target.base + offset, size_limit_advice(r, advice)) :
		       0;
}

static void remember(struct output *output, uint64_t offset, const void *data, size_t nbytes)
{
	const uint64_t room = offset < OUTPUT_FIRST_NBYTES ? OUTPUT_FIRST_NBYTES - offset : 0;

	if (room)
		memcpy(output->first + offset, data, nbytes < room ? nbytes : room);
}

int output_write_at(struct output *output, uint64_t offset, const void *data, size_t nbytes)
{
	int r = atomic_load(&output->r);

	if (r == 0 && output_is_ordered(output))
		r = wait_for_turn(output, offset);
	if (r < 0)
		return r;
	remember(output, offset, data, nbytes);
	if (output->zst_writer)
		r = zst_writer_append(output->zst_writer, data, nbytes);
	else
		r = write_stored(output, offset, data, nbytes);
	note_write(output, r, offset, nbytes);
	return r;
}

int output_compress(struct output *output, int level, unsigned n_threads)
{
	const struct zst_sink sink = { .context = output,
				       .in_order = output->target.is_ordered,
				       .write = write_stored };

	assert(output->written_nbytes == 0 && output->reservation.total_nbytes == 0 &&
	       !output->is_kept);
	return zst_writer_open(output->target.name, &sink, level, n_threads, &output->zst_writer);
}

int output_compress_share(struct output *output, int level, unsigned n_threads, uint64_t begin,
			  const struct zst_sink *sink)
{
	int r;

	assert(output->written_nbytes == 0 && output->reservation.total_nbytes == 0 &&
	       !output->is_kept);
	r = zst_writer_open(output->target.name, sink, level, n_threads, &output->zst_writer);
	if (r == 0)
		output->written_nbytes = output->end = begin;
	return r;
}

int output_end_share(struct output *output, bool may_be_none, struct zst_index *ret_index)
{
	int r = atomic_load(&output->r);

	if (r == 0)
		r = zst_writer_finish_frames(output->zst_writer, may_be_none);
	if (r < 0)
		return r;
	*ret_index = zst_writer_take_index(output->zst_writer);
	zst_writer_close(output->zst_writer);
	output->zst_writer = NULL;
	output->written_nbytes = output->end = 0;
	output->first_is_lost = true; /* it was content */
	return 0;
}

int output_read_compressed(struct output *output, struct zst_index index)
{
	return zst_reader_open(output->target.name, index, output->target.base, &output->contexts,
			       &output->zst_reader);
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
	return zst_reader_open(output->target.name, zst_writer_take_index(output->zst_writer),
			       output->target.base, &output->contexts, &output->zst_reader);
}

int output_finish_writes(struct output *output)
{
	int r;

	pthread_mutex_lock(&output->lock);
	r = atomic_load(&output->r);
	if (r == 0 && output->zst_writer)
		r = finish_compression(output);
	atomic_store(&output->r, r);
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

	n = output->end < n ? (size_t)output->end : n;
	if (output->zst_writer || output->target.base > 0 || output->first_is_lost)
		return 0;
	memcpy(buffer, output->first, n);
	return n;
}

void output_cancel(struct output *output)
{
	if (output->target.handover)
		handover_fail(output->target.handover, -ECANCELED);
	note_write(output, -ECANCELED, 0, 0);
}
