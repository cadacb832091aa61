/*
 * file_writer.c - write to offsets of a file, by the fastest method (see file_writer.h)
 */
#include "io/output/file_writer.h"

#include <fcntl.h>

#include "io/file/direct_io.h"
#include "src/base/clock.h"

/* Shorter writes are not worth a direct transfer, or a mapping. */
enum { MIN_DIRECT_WRITE_NBYTES = 1 << 20, MIN_MMAP_WRITE_NBYTES = 64 << 10 };

/* From this number on, writers wait for each other's write() longer than for page faults. */
enum { MIN_MMAP_WRITERS = 4 };

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
	adaptive_init(&writer->cached_or_direct, ADAPTIVE_SINGLE);
	adaptive_init(&writer->cached_or_mmap, ADAPTIVE_TURNS);
}

void file_writer_destroy(struct file_writer *writer)
{
	mmap_writer_destroy(&writer->mmap_writer);
	adaptive_destroy(&writer->cached_or_direct);
	adaptive_destroy(&writer->cached_or_mmap);
	io_queue_close(writer->queue);
	file_close(&writer->direct);
	file_close(&writer->reopened);
}

/* The queue is optional. */
void file_writer_use_adaptive_io(struct file_writer *writer)
{
	if (file_reopen(writer->file, O_WRONLY | O_DIRECT, &writer->direct) == 0)
		io_queue_open(&writer->queue);
}

/* `> file` opens it so. */
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

static void presume_method(struct file_writer *writer)
{
	const bool is_faster = writer->prefers_mmap || writer->is_shared || writer->is_prefaulted;

	adaptive_presume(&writer->cached_or_mmap, 1U << (is_faster ? io_mmap : io_cached));
}

void file_writer_set_n_writers(struct file_writer *writer, uint32_t n_writers)
{
	writer->has_several_writers = n_writers > 1;
	writer->prefers_mmap = n_writers >= MIN_MMAP_WRITERS;
	if (n_writers > 1)
		file_writer_mmap_file(writer);
	presume_method(writer);
}

void file_writer_set_shared(struct file_writer *writer)
{
	writer->is_shared = true;
	file_writer_mmap_file(writer);
	presume_method(writer);
}

void file_writer_set_prefaulted(struct file_writer *writer, bool is_prefaulted)
{
	writer->is_prefaulted = is_prefaulted;
	if (is_prefaulted)
		file_writer_mmap_file(writer);
	presume_method(writer);
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

void file_writer_add_stats(const struct file_writer *writer, struct file_writer_stats *total)
{
	total->cached_nbytes += atomic_load(&writer->nbytes[io_cached]);
	total->direct_nbytes += atomic_load(&writer->nbytes[io_direct]);
	total->mmap_nbytes += atomic_load(&writer->nbytes[io_mmap]);
}

static int write_by_method(struct file_writer *writer, enum adaptive_method method, uint64_t offset,
			   const void *data, size_t nbytes)
{
	atomic_fetch_add(&writer->nbytes[method], nbytes);
	if (method == io_direct)
		return direct_write_at(writer->queue, &writer->direct, writer->file, offset, data,
				       nbytes);
	if (method == io_cached)
		return file_write_at(writer->file, offset, data, nbytes);
	if (mmap_writer_write_at(&writer->mmap_writer, writer->mmap_file, offset, data, nbytes) ==
	    0)
		return 0;
	/* Use the cache instead; a real problem of the file is reported by that. */
	atomic_fetch_sub(&writer->nbytes[io_mmap], nbytes);
	atomic_store(&writer->mmap_failed, true);
	return write_by_method(writer, io_cached, offset, data, nbytes);
}

/*
 * Write by the fastest of the candidates. Writes to one file wait for each other, and direct writes
 * for the disk. So the time of a write is divided by the number of writes in flight.
 */
static int write_adaptive(struct file_writer *writer, struct adaptive *adaptive,
			  unsigned candidates, uint64_t offset, const void *data, size_t nbytes)
{
	const uint64_t begin_ns = clock_now_ns();
	const enum adaptive_method method = adaptive_choose(adaptive, candidates);
	uint64_t end_ns;
	unsigned n_in_flight;
	int r;

	atomic_fetch_add(&writer->n_in_flight[method], 1);
	r = write_by_method(writer, method, offset, data, nbytes);
	n_in_flight = atomic_fetch_sub(&writer->n_in_flight[method], 1);
	end_ns = clock_now_ns();
	adaptive_record(adaptive, method, nbytes, end_ns - (end_ns - begin_ns) / n_in_flight,
			end_ns);
	return r;
}

int file_writer_write_at(struct file_writer *writer, uint64_t offset, const void *data,
			 size_t nbytes, bool is_preallocated)
{
	const bool can_be_direct = writer->direct.fd >= 0 && nbytes >= MIN_DIRECT_WRITE_NBYTES &&
				   direct_is_aligned(data, offset);
	int r;

	if (can_be_direct && writer->bypass_cache)
		return write_by_method(writer, io_direct, offset, data, nbytes);
	if (is_preallocated && nbytes >= MIN_MMAP_WRITE_NBYTES && file_writer_can_mmap(writer))
		return write_adaptive(writer, &writer->cached_or_mmap,
				      METHOD_MASK_DEFAULT | METHOD_MASK_THIRD, offset, data,
				      nbytes);
	if (can_be_direct)
		return write_adaptive(writer, &writer->cached_or_direct,
				      METHOD_MASK_DEFAULT | METHOD_MASK_SECOND, offset, data,
				      nbytes);
	r = write_by_method(writer, io_cached, offset, data, nbytes);
	if (r == 0 && writer->bypass_cache)
		file_start_writeback(writer->file, offset, nbytes);
	return r;
}
