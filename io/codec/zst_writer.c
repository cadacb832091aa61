/*
 * zst_writer - writes a .zst file (see zst.h)
 *
 * Frames are numbered when they are queued, and dequeued and assigned their offsets in this order.
 * So of all frames that wait for an offset, the first one has been compressed or is being
 * compressed by a thread: there is no deadlock, however few buffers there are.
 */
#include "io/codec/zst.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "io/codec/codec.h"
#include "src/base/diagnostics.h"
#include "src/base/thread.h"
#include "src/base/thread_pool.h"

enum { FRAME_NBYTES = ZST_WRITER_FRAME_NBYTES, MAX_THREADS = 64 };

/* In addition to those being compressed: one to fill, and one in the queue. */
enum { EXTRA_BUFFERS = 2, MAX_BUFFERS = MAX_THREADS + EXTRA_BUFFERS };

struct frame_buffer {
	uint64_t frame; /* number */
	size_t nbytes;  /* of content */
	unsigned char content[FRAME_NBYTES];
};

struct zst_writer {
	/* Constant. */
	const char *name;
	struct zst_sink sink;
	int level;
	struct frame_buffer *buffers[MAX_BUFFERS];
	size_t n_buffers;

	struct frame_buffer *filling; /* by append(); NULL or not full */
	uint64_t n_frames;            /* queued */
	struct bounded_queue *free_buffers, *full_buffers;
	struct thread_group threads;

	pthread_mutex_t lock;
	pthread_cond_t changed; /* any of the following members */
	/* Protected by the lock. */
	int r;               /* the first error, or 0 */
	uint64_t n_assigned; /* number of frames that have an offset, from the first */
	uint64_t stored_nbytes;
	struct zst_index index;
};

/* The state of a thread. */
struct frame_compressor {
	struct zst_writer *writer;
	ZSTD_CCtx *cctx;
	unsigned char *stored;
	size_t capacity;
};

static void writer_fail(struct zst_writer *writer, int r)
{
	pthread_mutex_lock(&writer->lock);
	if (writer->r == 0)
		writer->r = r;
	pthread_cond_broadcast(&writer->changed);
	pthread_mutex_unlock(&writer->lock);
	bounded_queue_fail(writer->free_buffers, r);
	bounded_queue_fail(writer->full_buffers, r);
}

/* Wait for the frame's turn, and assign its offset. */
static int assign_frame_offset(struct zst_writer *writer, uint64_t frame, size_t stored_nbytes,
			       size_t content_nbytes, uint64_t *ret_offset)
{
	int r;

	pthread_mutex_lock(&writer->lock);
	while (writer->n_assigned != frame && writer->r == 0)
		pthread_cond_wait(&writer->changed, &writer->lock);
	r = writer->r;
	if (r == 0)
		r = zst_index_add(&writer->index, (uint32_t)stored_nbytes,
				  (uint32_t)content_nbytes);
	if (r == 0) {
		*ret_offset = writer->stored_nbytes;
		writer->stored_nbytes += stored_nbytes;
	}
	pthread_mutex_unlock(&writer->lock);
	return r == -ENOMEM ? fail(r, "%s: index of frames: %m", writer->name) : r;
}

/* Let the next frame proceed. */
static void advance_write_turn(struct zst_writer *writer)
{
	SCOPED_LOCK(&writer->lock);
	writer->n_assigned++;
	pthread_cond_broadcast(&writer->changed);
}

/* Compress and release a buffer, and write the frame. */
static int compress_frame(struct frame_compressor *compressor, struct frame_buffer *buffer)
{
	struct zst_writer *writer = compressor->writer;
	const struct zst_sink *sink = &writer->sink;
	const uint64_t frame = buffer->frame;
	const size_t content_nbytes = buffer->nbytes;
	const size_t nbytes = ZSTD_compress2(compressor->cctx, compressor->stored,
					     compressor->capacity, buffer->content, content_nbytes);
	uint64_t offset = 0;
	int r;

	(void)bounded_queue_push(writer->free_buffers, buffer);
	if (ZSTD_isError(nbytes))
		return fail(-ENOMEM, "%s: compression: %s", writer->name,
			    ZSTD_getErrorName(nbytes));
	r = assign_frame_offset(writer, frame, nbytes, content_nbytes, &offset);
	if (r == 0 && !sink->in_order)
		advance_write_turn(writer);
	if (r == 0)
		r = sink->write(sink->context, offset, compressor->stored, nbytes);
	if (r == 0 && sink->in_order)
		advance_write_turn(writer);
	return r;
}

static int frame_compressor_open(struct frame_compressor *compressor)
{
	compressor->capacity = ZSTD_compressBound(FRAME_NBYTES);
	compressor->stored = malloc(compressor->capacity);
	compressor->cctx = ZSTD_createCCtx();
	if (!compressor->stored || !compressor->cctx)
		return fail(-ENOMEM, "%s: compression: %m", compressor->writer->name);
	ZSTD_CCtx_setParameter(compressor->cctx, ZSTD_c_compressionLevel,
			       compressor->writer->level);
	ZSTD_CCtx_setParameter(compressor->cctx, ZSTD_c_checksumFlag, 1);
	return 0;
}

static void *frame_compressor_main(void *argument)
{
	struct frame_compressor compressor = { .writer = argument };
	struct bounded_queue *full_buffers = compressor.writer->full_buffers;
	void *buffer;
	int r = frame_compressor_open(&compressor);

	while (r == 0 && bounded_queue_pop(full_buffers, &buffer) == 0)
		r = compress_frame(&compressor, buffer);
	if (r < 0)
		writer_fail(compressor.writer, r);
	ZSTD_freeCCtx(compressor.cctx);
	free(compressor.stored);
	return NULL;
}

static int start_compression(struct zst_writer *writer, unsigned n_threads)
{
	int r;

	for (unsigned i = 0; i < n_threads + EXTRA_BUFFERS; i++) {
		struct frame_buffer *buffer = malloc(sizeof *buffer);

		if (!buffer)
			return fail(-ENOMEM, "%s: compression: %m", writer->name);
		writer->buffers[writer->n_buffers++] = buffer;
		(void)bounded_queue_push(writer->free_buffers, buffer);
	}
	r = thread_group_start(&writer->threads, n_threads, frame_compressor_main, writer, NULL);
	return r < 0 ? fail(r, "%s: cannot start a thread to compress it: %m%s", writer->name,
			    thread_format_limits(r).text) :
		       0;
}

size_t zst_writer_memory_nbytes(int level, unsigned n_threads)
{
	const unsigned n = n_threads < MAX_THREADS ? n_threads : MAX_THREADS;

	return (n + EXTRA_BUFFERS) * sizeof(struct frame_buffer) +
	       n * (ZSTD_compressBound(FRAME_NBYTES) + codec_context_nbytes(level, FRAME_NBYTES));
}

int zst_writer_open(const char *name, const struct zst_sink *sink, int level, unsigned n_threads,
		    struct zst_writer **ret_writer)
{
	struct zst_writer *writer = calloc(1, sizeof *writer);
	int r;

	if (!writer || bounded_queue_open(MAX_BUFFERS, &writer->free_buffers) < 0 ||
	    bounded_queue_open(MAX_BUFFERS, &writer->full_buffers) < 0) {
		if (writer)
			bounded_queue_close(writer->free_buffers);
		free(writer);
		return fail(-ENOMEM, "%s: compression: %m", name);
	}
	writer->name = name;
	writer->sink = *sink;
	writer->level = level;
	pthread_mutex_init(&writer->lock, NULL);
	pthread_cond_init(&writer->changed, NULL);
	r = start_compression(writer, n_threads < MAX_THREADS ? n_threads : MAX_THREADS);
	if (r < 0) {
		zst_writer_close(writer);
		return r;
	}
	*ret_writer = writer;
	return 0;
}

static void free_buffers(struct zst_writer *writer)
{
	while (writer->n_buffers)
		free(writer->buffers[--writer->n_buffers]);
}

void zst_writer_close(struct zst_writer *writer)
{
	if (!writer)
		return;
	writer_fail(writer, -ECANCELED);
	thread_group_join(&writer->threads);
	free_buffers(writer);
	bounded_queue_close(writer->free_buffers);
	bounded_queue_close(writer->full_buffers);
	zst_index_free(&writer->index);
	pthread_cond_destroy(&writer->changed);
	pthread_mutex_destroy(&writer->lock);
	free(writer);
}

/* Wait for a buffer to fill. */
static int acquire_frame_buffer(struct zst_writer *writer)
{
	void *buffer;
	const int r = bounded_queue_pop(writer->free_buffers, &buffer);

	if (r == 0) {
		writer->filling = buffer;
		writer->filling->nbytes = 0;
	}
	return r;
}

/* An error of the writer is returned by the next call. */
static void queue_frame_buffer(struct zst_writer *writer)
{
	writer->filling->frame = writer->n_frames++;
	(void)bounded_queue_push(writer->full_buffers, writer->filling);
	writer->filling = NULL;
}

int zst_writer_append(struct zst_writer *writer, const void *data, size_t nbytes)
{
	const unsigned char *from = data;

	while (nbytes > 0) {
		const int r = writer->filling ? 0 : acquire_frame_buffer(writer);
		struct frame_buffer *buffer = writer->filling;
		size_t n;

		if (r < 0)
			return r;
		n = FRAME_NBYTES - buffer->nbytes;
		if (n > nbytes)
			n = nbytes;
		memcpy(buffer->content + buffer->nbytes, from, n);
		buffer->nbytes += n;
		from += n;
		nbytes -= n;
		if (buffer->nbytes == FRAME_NBYTES)
			queue_frame_buffer(writer);
	}
	return 0;
}

int zst_writer_finish_frames(struct zst_writer *writer, bool may_be_empty)
{
	int r = 0;

	if (writer->n_frames == 0 && !writer->filling && !may_be_empty)
		r = acquire_frame_buffer(writer);
	if (r == 0 && writer->filling)
		queue_frame_buffer(writer);
	bounded_queue_finish(writer->full_buffers);
	thread_group_join(&writer->threads);
	free_buffers(writer);
	return writer->r;
}

/* Empty content is written as one frame: an index alone is no valid .zst file. */
int zst_writer_finish(struct zst_writer *writer)
{
	unsigned char *table;
	size_t nbytes;
	int r = zst_writer_finish_frames(writer, false);

	if (r < 0)
		return r;
	r = zst_index_format(&writer->index, &table, &nbytes);
	if (r < 0)
		return fail(r, "%s: index of frames: %m", writer->name);
	r = writer->sink.write(writer->sink.context, writer->stored_nbytes, table, nbytes);
	free(table);
	writer->stored_nbytes += nbytes;
	return r;
}

uint64_t zst_writer_stored_nbytes(const struct zst_writer *writer)
{
	return writer->stored_nbytes;
}

struct zst_index zst_writer_detach_index(struct zst_writer *writer)
{
	const struct zst_index index = writer->index;

	writer->index = (struct zst_index){ 0 };
	return index;
}
