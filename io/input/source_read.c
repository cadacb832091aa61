/*
 * source_read - reading a regular source anywhere, sparing the page cache (see source.h)
 */
#include <errno.h>
#include <inttypes.h>

#include "io/file/direct_io.h"
#include "io/input/source_internal.h"
#include "src/base/diagnostics.h"

/* With less than this the kernel's read-ahead is better than asking for no more than is wanted. */
enum { LEAST_COLD_NBYTES = (1 << 20) + 1 };

/* Like file_read_at(), for a little of a large source: with what the kernel reads ahead. */
static int read_little(struct source_table *table, struct source *source, uint64_t in_file,
		       void *buffer, size_t nbytes)
{
	int r;

	pthread_mutex_lock(&table->lock);
	cold_range_enter(&source->cold_range, &source->file, source_end(source), in_file);
	pthread_mutex_unlock(&table->lock);
	r = file_read_at(&source->file, in_file, buffer, nbytes);
	pthread_mutex_lock(&table->lock);
	cold_range_pass(&source->cold_range, &source->file, in_file, in_file + nbytes);
	pthread_mutex_unlock(&table->lock);
	return r;
}

/* Like file_read_at(), and leaves the page cache as it is if the source is large. */
static int read_sparing(struct source_table *table, struct source *source, uint64_t in_file,
			void *buffer, size_t nbytes)
{
	int r;

	if (source->is_large && nbytes < LEAST_COLD_NBYTES)
		return read_little(table, source, in_file, buffer, nbytes);
	if (!source->is_large || direct_is_cached(&source->file, in_file, nbytes))
		return file_read_at(&source->file, in_file, buffer, nbytes);
	if (source->direct.fd >= 0) {
		r = direct_read_at(table->queue, &source->direct, in_file, buffer, nbytes);
		if (r != -EINVAL)
			return r;
	}
	r = file_read_at(&source->file, in_file, buffer, nbytes);
	file_forget(&source->file, in_file, nbytes);
	return r;
}

/* The bytes of the file at `in_file`; -ENODATA without a message if it ends before. */
static int read_plain(struct source_table *table, struct source *source, uint64_t in_file,
		      void *buffer, size_t nbytes)
{
	const int r = read_sparing(table, source, in_file, buffer, nbytes);

	if (r < 0 && r != -ENODATA)
		return fail(r, "%s: read of %zu bytes at %" PRIu64 ": %m", source->name, nbytes,
			    in_file);
	return r;
}

static int read_held(struct source_table *table, struct source *source, uint64_t offset,
		     void *buffer, size_t nbytes)
{
	const uint64_t at = source->base + offset;
	const bool reaches_end = offset + nbytes == source->nbytes;
	int r, checked = 0;

	if (source->zst_reader)
		r = zst_reader_read_at(source->zst_reader, &source->file, at, buffer, nbytes);
	else
		r = read_plain(table, source, at, buffer, nbytes);
	if (r < 0 && r != -ENODATA)
		return r;
	if (r < 0 || reaches_end)
		checked = source_check_size(source);
	if (checked < 0)
		return checked;
	return r < 0 ? fail(r, "%s: read of %zu bytes at %" PRIu64 " ends before the file does",
			    source->name, nbytes, at) :
		       0;
}

int source_read_at(struct source_table *table, struct source *source, uint64_t offset, void *buffer,
		   size_t nbytes)
{
	int r = source_acquire(table, source);

	if (r < 0)
		return r;
	r = read_held(table, source, offset, buffer, nbytes);
	source_release(table, source);
	return r;
}
