/*
 * mmap_writer - a file that is written through mappings (see mmap_writer.h)
 */
#include "io/file/mmap_writer.h"

#include <errno.h>

void mmap_writer_init(struct mmap_writer *writer)
{
	*writer = (struct mmap_writer){ 0 };
	pthread_mutex_init(&writer->lock, NULL);
}

void mmap_writer_destroy(struct mmap_writer *writer)
{
	for (int i = 0; i < MMAP_WRITER_MAX_SEGMENTS; i++)
		mapping_close(&writer->segments[i].mapping);
	pthread_mutex_destroy(&writer->lock);
}

/* Under the lock: the piece at `offset`, or NULL. */
static struct mmap_segment *find_segment(struct mmap_writer *writer, uint64_t offset)
{
	for (int i = 0; i < MMAP_WRITER_MAX_SEGMENTS; i++)
		if (writer->segments[i].mapping.bytes && writer->segments[i].offset == offset)
			return &writer->segments[i];
	return NULL;
}

/*
 * Under the lock: room for another one, or NULL. Where none is free, the one goes that nobody is at
 * and of which the most is written; what is missing will be mapped again.
 */
static struct mmap_segment *evict_segment(struct mmap_writer *writer)
{
	struct mmap_segment *fullest = NULL;

	for (int i = 0; i < MMAP_WRITER_MAX_SEGMENTS; i++) {
		struct mmap_segment *segment = &writer->segments[i];

		if (!segment->mapping.bytes)
			return segment;
		if (segment->n_users == 0 && (!fullest || segment->n_written > fullest->n_written))
			fullest = segment;
	}
	if (fullest)
		mapping_close(&fullest->mapping);
	return fullest;
}

/* Take part in the piece at `offset`. */
static int acquire_segment(struct mmap_writer *writer, const struct file *file, uint64_t offset,
			   struct mmap_segment **ret_segment)
{
	struct mmap_segment *segment;
	int r = 0;

	pthread_mutex_lock(&writer->lock);
	segment = find_segment(writer, offset);
	if (!segment) {
		segment = evict_segment(writer);
		r = segment ? 0 : -EMFILE;
		if (r == 0) {
			*segment = (struct mmap_segment){ .offset = offset };
			r = mapping_open_writable(file, offset, MMAP_SEGMENT_NBYTES,
						  &segment->mapping);
		}
	}
	if (r == 0)
		segment->n_users++;
	pthread_mutex_unlock(&writer->lock);
	*ret_segment = segment;
	return r;
}

/*
 * Done with it. A whole piece, or one that is damaged, is let go by its last user; the system is
 * asked to outside of the lock.
 */
static void release_segment(struct mmap_writer *writer, struct mmap_segment *segment, size_t nbytes)
{
	struct mapping retired = { 0 };

	pthread_mutex_lock(&writer->lock);
	segment->n_written += nbytes;
	if (--segment->n_users == 0 &&
	    (segment->n_written >= MMAP_SEGMENT_NBYTES || mapping_is_damaged(&segment->mapping))) {
		retired = segment->mapping;
		segment->mapping = (struct mapping){ 0 };
	}
	pthread_mutex_unlock(&writer->lock);
	mapping_close(&retired);
}

static int write_to_segment(struct mmap_writer *writer, const struct file *file, uint64_t offset,
			    const void *data, size_t nbytes)
{
	const size_t segment_offset = offset % MMAP_SEGMENT_NBYTES;
	struct mmap_segment *segment;
	int r = acquire_segment(writer, file, offset - segment_offset, &segment);

	if (r < 0)
		return r;
	r = mapping_write(&segment->mapping, segment_offset, data, nbytes);
	release_segment(writer, segment, nbytes);
	return r;
}

int mmap_writer_write_at(struct mmap_writer *writer, const struct file *file, uint64_t offset,
			 const void *data, size_t nbytes)
{
	const char *bytes = data;
	int r = 0;

	while (r == 0 && nbytes > 0) {
		const size_t n_remaining = MMAP_SEGMENT_NBYTES - offset % MMAP_SEGMENT_NBYTES;
		const size_t n = nbytes < n_remaining ? nbytes : n_remaining;

		r = write_to_segment(writer, file, offset, bytes, n);
		offset += n;
		bytes += n;
		nbytes -= n;
	}
	return r;
}
