/*
 * source_read - reading a regular source anywhere, sparing the page cache (see source.h)
 */
#include <errno.h>
#include <inttypes.h>

#include "io/file/direct_io.h"
#include "io/input/source_internal.h"
#include "src/base/diagnostics.h"

/* With less than this the kernel's read-ahead is better than asking for no more than is wanted. */
enum { MIN_BYPASS_NBYTES = (1 << 20) + 1 };

/* Like file_read_at(), for a little of a large source: with what the kernel reads ahead. */
static int read_with_readahead(struct source_table *table, struct source *source,
			       uint64_t file_offset, void *buffer, size_t nbytes)
{
	int r;

	pthread_mutex_lock(&table->lock);
	dropbehind_begin_read(&source->dropbehind, &source->file, source_end(source), file_offset);
	pthread_mutex_unlock(&table->lock);
	r = file_read_at(&source->file, file_offset, buffer, nbytes);
	pthread_mutex_lock(&table->lock);
	dropbehind_end_read(&source->dropbehind, &source->file, file_offset, file_offset + nbytes);
	pthread_mutex_unlock(&table->lock);
	return r;
}

/* Like file_read_at(), and leaves the page cache as it is if the source is large. */
static int read_preserving_cache(struct source_table *table, struct source *source,
				 uint64_t file_offset, void *buffer, size_t nbytes)
{
	int r;

	if (source->is_large && nbytes < MIN_BYPASS_NBYTES)
		return read_with_readahead(table, source, file_offset, buffer, nbytes);
	if (!source->is_large || direct_is_cached(&source->file, file_offset, nbytes))
		return file_read_at(&source->file, file_offset, buffer, nbytes);
	if (source->direct_file.fd >= 0) {
		r = direct_read_at(table->queue, &source->direct_file, file_offset, buffer, nbytes);
		if (r != -EINVAL)
			return r;
	}
	r = file_read_at(&source->file, file_offset, buffer, nbytes);
	file_drop_cache(&source->file, file_offset, nbytes);
	return r;
}

/* The bytes of the file at `file_offset`; -ENODATA without a message if it ends before. */
static int read_uncompressed(struct source_table *table, struct source *source,
			     uint64_t file_offset, void *buffer, size_t nbytes)
{
	const int r = read_preserving_cache(table, source, file_offset, buffer, nbytes);

	if (r < 0 && r != -ENODATA)
		return fail(r, "%s: read of %zu bytes at %" PRIu64 ": %m", source->name, nbytes,
			    file_offset);
	return r;
}

static int read_acquired_source(struct source_table *table, struct source *source, uint64_t offset,
				void *buffer, size_t nbytes)
{
	const uint64_t file_offset = source->base + offset;
	const bool reaches_end = offset + nbytes == source->nbytes;
	int r, size_r = 0;

	if (source->zst_reader)
		r = zst_reader_read_at(source->zst_reader, &source->file, file_offset, buffer,
				       nbytes);
	else
		r = read_uncompressed(table, source, file_offset, buffer, nbytes);
	if (r < 0 && r != -ENODATA)
		return r;
	if (r < 0 || reaches_end)
		size_r = source_check_size(source);
	if (size_r < 0)
		return size_r;
	return r < 0 ? fail(r, "%s: read of %zu bytes at %" PRIu64 " ends before the file does",
			    source->name, nbytes, file_offset) :
		       0;
}

int source_read_at(struct source_table *table, struct source *source, uint64_t offset, void *buffer,
		   size_t nbytes)
{
	int r = source_acquire(table, source);

	if (r < 0)
		return r;
	r = read_acquired_source(table, source, offset, buffer, nbytes);
	source_release(table, source);
	return r;
}
