/*
 * file_writer - writing to places of a file, the fastest way (see file_writer.h)
 */
#include "io/output/file_writer.h"

#include <fcntl.h>

#include "io/file/direct_io.h"
#include "src/base/clock.h"

/* Less than that is not worth a direct transfer. */
enum { MIN_DIRECT_WRITE_NBYTES = 1 << 20 };

/* Nor this a mapping. */
enum { MIN_MMAP_WRITE_NBYTES = 64 << 10 };

/* What the ways of src/base/adaptive.h are here. */
static const enum adaptive_method io_cached = METHOD_DEFAULT, io_direct = METHOD_SECOND,
				  io_mmap = METHOD_THIRD;

void file_writer_init(struct file_writer *writer, const struct file *file,
		      const struct syscalls *calls)
{
	*writer = (struct file_writer){
		.file = file,
		.direct = { .calls = calls, .fd = -1 },
		.reopened = { .calls = calls, .fd = -1 },
	};
	mmap_writer_init(&writer->mmap_writer);
	adaptive_init(&writer->adaptive);
	adaptive_group_init(&writer->adaptive_group);
}

void file_writer_destroy(struct file_writer *writer)
{
	mmap_writer_destroy(&writer->mmap_writer);
	adaptive_destroy(&writer->adaptive);
	adaptive_group_destroy(&writer->adaptive_group);
	io_queue_close(writer->queue);
	file_close(&writer->direct);
	file_close(&writer->reopened);
}

/* Without a queue, too, transfers are as right. */
void file_writer_use_adaptive_io(struct file_writer *writer)
{
	if (file_reopen(writer->file, O_WRONLY | O_DIRECT, &writer->direct) == 0)
		io_queue_open(DIRECT_QUEUE_DEPTH, &writer->queue);
}

void file_writer_bypass_cache(struct file_writer *writer)
{
	writer->bypass_cache = true;
}

/* As `> file` is. */
static bool is_write_only(const struct file *file)
{
	return (fcntl(file->fd, F_GETFL) & O_ACCMODE) == O_WRONLY;
}

const struct file *file_writer_mmap_file(struct file_writer *writer)
{
	if (writer->reopened.fd < 0 && is_write_only(writer->file))
		file_reopen(writer->file, O_RDWR, &writer->reopened);
	writer->mmap_file = writer->reopened.fd < 0 ? writer->file : &writer->reopened;
	return writer->mmap_file;
}

void file_writer_set_n_writers(struct file_writer *writer, uint32_t n_writers)
{
	writer->has_several_writers = n_writers > 1;
	if (n_writers > 1)
		file_writer_mmap_file(writer);
}

void file_writer_set_shared(struct file_writer *writer)
{
	writer->is_shared = true;
	file_writer_mmap_file(writer);
	adaptive_group_set_default(&writer->adaptive_group, 1U << io_mmap);
}

void file_writer_set_prefaulted(struct file_writer *writer, bool is_prefaulted)
{
	writer->is_prefaulted = is_prefaulted;
	if (is_prefaulted)
		file_writer_mmap_file(writer);
	adaptive_group_set_default(&writer->adaptive_group, is_prefaulted ? 1U << io_mmap : 0);
}

bool file_writer_can_mmap(const struct file_writer *writer)
{
	return (writer->has_several_writers || writer->is_shared || writer->is_prefaulted) &&
	       !writer->bypass_cache && !atomic_load(&writer->mmap_failed);
}

uint32_t file_writer_direct_alignment(const struct file_writer *writer)
{
	return writer->direct.fd < 0 ? 0 : DIRECT_ALIGN_NBYTES;
}

struct file_writer_stats file_writer_get_stats(const struct file_writer *writer)
{
	return (struct file_writer_stats){
		.cached_nbytes = atomic_load(&writer->nbytes[io_cached]),
		.direct_nbytes = atomic_load(&writer->nbytes[io_direct]),
		.mmap_nbytes = atomic_load(&writer->nbytes[io_mmap]),
	};
}

static bool can_write_direct(const struct file_writer *writer, uint64_t offset, const void *data,
			     size_t nbytes)
{
	return writer->direct.fd >= 0 && nbytes >= MIN_DIRECT_WRITE_NBYTES &&
	       direct_is_aligned(data, offset);
}

/* is_preallocated: all of what is to be written. */
static bool can_write_mmap(const struct file_writer *writer, size_t nbytes, bool is_preallocated)
{
	return is_preallocated && nbytes >= MIN_MMAP_WRITE_NBYTES && file_writer_can_mmap(writer);
}

static int write_by_method(struct file_writer *writer, enum adaptive_method method, uint64_t offset,
			   const void *data, size_t nbytes);

/* What cannot be mapped is written, and if something is wrong with the file, that tells. */
static int write_mmap(struct file_writer *writer, uint64_t offset, const void *data, size_t nbytes)
{
	if (mmap_writer_write_at(&writer->mmap_writer, writer->mmap_file, offset, data, nbytes) ==
	    0)
		return 0;
	atomic_fetch_sub(&writer->nbytes[io_mmap], nbytes);
	atomic_store(&writer->mmap_failed, true);
	return write_by_method(writer, io_cached, offset, data, nbytes);
}

static int write_by_method(struct file_writer *writer, enum adaptive_method method, uint64_t offset,
			   const void *data, size_t nbytes)
{
	atomic_fetch_add(&writer->nbytes[method], nbytes);
	if (method == io_direct)
		return direct_write_at(writer->queue, &writer->direct, writer->file, offset, data,
				       nbytes);
	if (method == io_mmap)
		return write_mmap(writer, offset, data, nbytes);
	return file_write_at(writer->file, offset, data, nbytes);
}

/*
 * Write it the way that is the fastest of some, and note how long that took. Writes into one file
 * wait for each other, past the cache for the disk: what several have taken at once, one alone
 * would have taken a part of.
 */
static int write_adaptive(struct file_writer *writer, unsigned candidates, uint64_t offset,
			  const void *data, size_t nbytes)
{
	const uint64_t begin_ns = clock_now_ns();
	const enum adaptive_method method = adaptive_choose(&writer->adaptive, candidates);
	int r;

	atomic_fetch_add(&writer->n_in_flight[method], 1);
	r = write_by_method(writer, method, offset, data, nbytes);
	adaptive_record(&writer->adaptive, method, nbytes,
			(clock_now_ns() - begin_ns) /
				atomic_fetch_sub(&writer->n_in_flight[method], 1));
	return r;
}

/* Write it the way that all go now: mapped or not, whichever is the fastest if all do it. */
static int write_adaptive_group(struct file_writer *writer, uint64_t offset, const void *data,
				size_t nbytes)
{
	const enum adaptive_method method = adaptive_group_choose(
		&writer->adaptive_group, METHOD_MASK_DEFAULT | METHOD_MASK_THIRD, clock_now_ns());
	const int r = write_by_method(writer, method, offset, data, nbytes);

	adaptive_group_record(&writer->adaptive_group, method, nbytes, clock_now_ns());
	return r;
}

int file_writer_write_at(struct file_writer *writer, uint64_t offset, const void *data,
			 size_t nbytes, bool is_preallocated)
{
	const bool can_be_direct = can_write_direct(writer, offset, data, nbytes);
	unsigned candidates = METHOD_MASK_DEFAULT;
	int r;

	if (can_be_direct && writer->bypass_cache)
		return write_by_method(writer, io_direct, offset, data, nbytes);
	if (can_write_mmap(writer, nbytes, is_preallocated))
		return write_adaptive_group(writer, offset, data, nbytes);
	if (can_be_direct)
		candidates |= METHOD_MASK_SECOND;
	if (candidates != METHOD_MASK_DEFAULT)
		return write_adaptive(writer, candidates, offset, data, nbytes);
	r = write_by_method(writer, io_cached, offset, data, nbytes);
	if (r == 0 && writer->bypass_cache)
		file_start_writeback(writer->file, offset, nbytes);
	return r;
}
