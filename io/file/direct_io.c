/*
 * direct_io - O_DIRECT reads and writes of unaligned ranges (see direct_io.h)
 */
#include "io/file/direct_io.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static uint64_t align_down(uint64_t value)
{
	return value - value % DIRECT_ALIGN_NBYTES;
}

static uint64_t align_up(uint64_t value)
{
	return align_down(value + DIRECT_ALIGN_NBYTES - 1);
}

/* Count the pages of a mapping that are in the page cache. */
static uint64_t count_cached_pages(char *mapping, uint64_t nbytes)
{
	unsigned char pages[1024];
	const uint64_t step_nbytes = sizeof pages * DIRECT_ALIGN_NBYTES;
	uint64_t n_cached = 0;

	for (uint64_t offset = 0; offset < nbytes; offset += step_nbytes) {
		const uint64_t n = nbytes - offset < step_nbytes ? nbytes - offset : step_nbytes;

		memset(pages, 1, sizeof pages);
		mincore(mapping + offset, n, pages);
		for (uint64_t i = 0; i < n / DIRECT_ALIGN_NBYTES; i++)
			n_cached += pages[i] & 1;
	}
	return n_cached;
}

/*
 * Uses mincore(), because preadv2() with RWF_NOWAIT starts read-ahead. For files of other users
 * mincore() reports all pages as present.
 */
bool direct_is_cached(const struct file *file, uint64_t offset, uint64_t nbytes)
{
	const uint64_t begin = align_down(offset);
	const uint64_t mapped_nbytes = align_up(offset + nbytes) - begin;
	char *mapping = mmap(NULL, mapped_nbytes, PROT_READ, MAP_SHARED, file->fd, (off_t)begin);
	uint64_t n_cached;

	if (mapping == MAP_FAILED)
		return true;
	n_cached = count_cached_pages(mapping, mapped_nbytes);
	munmap(mapping, mapped_nbytes);
	return 2 * n_cached >= mapped_nbytes / DIRECT_ALIGN_NBYTES;
}

/*
 * Split a transfer into at most 8 concurrent requests of at least 1 MiB. Fewer requests leave the
 * disk idle between two of them, smaller ones cost too much processor time.
 */
enum { MAX_REQUESTS = 8, MIN_REQUEST_NBYTES = 1 << 20 };

/* Transfer an aligned range to or from aligned memory. Without a queue: in one request. */
static int transfer_aligned(struct io_queue *queue, const struct file *file, bool is_write,
			    uint64_t offset, unsigned char *memory, size_t nbytes)
{
	const size_t even_nbytes = align_up(nbytes / MAX_REQUESTS + 1);
	const size_t request_nbytes = even_nbytes < MIN_REQUEST_NBYTES ? MIN_REQUEST_NBYTES :
									 even_nbytes;
	struct io_request requests[MAX_REQUESTS];
	size_t n = 0;
	int r = 0;

	if (!queue)
		return is_write ? file_write_at(file, offset, memory, nbytes) :
				  file_read_at(file, offset, memory, nbytes);
	for (size_t position = 0; position < nbytes; position += request_nbytes)
		requests[n++] = (struct io_request){
			.file = file,
			.is_write = is_write,
			.offset = offset + position,
			.buffer = memory + position,
			.nbytes = nbytes - position < request_nbytes ? nbytes - position :
								       request_nbytes,
		};
	io_queue_submit(queue, requests, n);
	for (size_t i = 0; i < n; i++) {
		const int wait_r = io_queue_wait(queue, &requests[i]);

		r = r < 0 ? r : wait_r;
	}
	return r;
}

/* Read bytes within one block. */
static int read_within_block(const struct file *direct, uint64_t offset, void *to, size_t nbytes)
{
	_Alignas(DIRECT_ALIGN_NBYTES) unsigned char block[DIRECT_ALIGN_NBYTES];
	const size_t in_block = offset % DIRECT_ALIGN_NBYTES;
	ssize_t n;

	/* Not file_read_at(), which would not return the size of the last, short block. */
	do
		n = direct->calls->pread(direct->fd, block, sizeof block,
					 (off_t)align_down(offset));
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno != EAGAIN)
		return -errno;
	if (n < (ssize_t)(in_block + nbytes))
		return -EINVAL;
	memcpy(to, block + in_block, nbytes);
	return 0;
}

static int read_unaligned(const struct file *direct, uint64_t offset, uint64_t end,
			  unsigned char *to)
{
	int r = 0;

	while (offset < end && r == 0) {
		const uint64_t next = align_down(offset) + DIRECT_ALIGN_NBYTES;
		const size_t n = (size_t)((next < end ? next : end) - offset);

		r = read_within_block(direct, offset, to, n);
		offset += n;
		to += n;
	}
	return r;
}

/*
 *	file	|   .  offset   | begin                 end |    . offset + nbytes
 *	memory	       buffer     target                            buffer + nbytes
 *	                        | aligned			where [begin, end) is read to
 */
int direct_read_at(struct io_queue *queue, const struct file *direct, uint64_t offset, void *buffer,
		   size_t nbytes)
{
	unsigned char *const to = buffer, *target, *aligned;
	const uint64_t begin = align_up(offset);
	uint64_t end = align_down(offset + nbytes);
	int r;

	if (begin >= end)
		return read_unaligned(direct, offset, offset + nbytes, to);
	target = to + (begin - offset);
	aligned = target - (uintptr_t)target % DIRECT_ALIGN_NBYTES;
	if (aligned < to)
		aligned += DIRECT_ALIGN_NBYTES;
	if (aligned + (end - begin) > to + nbytes)
		end -= DIRECT_ALIGN_NBYTES;
	r = transfer_aligned(queue, direct, false, begin, aligned, (size_t)(end - begin));
	if (r == 0 && aligned != target)
		memmove(target, aligned, (size_t)(end - begin));
	if (r == 0)
		r = read_unaligned(direct, offset, begin, to);
	if (r == 0)
		r = read_unaligned(direct, end, offset + nbytes, to + (end - offset));
	return r == -ENODATA ? -EINVAL : r;
}

int direct_write_at(struct io_queue *queue, const struct file *direct, const struct file *cached,
		    uint64_t offset, const void *data, size_t nbytes)
{
	const unsigned char *const from = data;
	const uint64_t begin = align_up(offset), end = align_down(offset + nbytes);
	int r;

	if (!direct_is_aligned(data, offset) || begin >= end)
		return file_write_at(cached, offset, data, nbytes);
	r = transfer_aligned(queue, direct, true, begin, (unsigned char *)from + (begin - offset),
			     (size_t)(end - begin));
	if (r == -EINVAL)
		return file_write_at(cached, offset, data, nbytes);
	if (r == 0)
		r = file_write_at(cached, offset, from, (size_t)(begin - offset));
	if (r == 0)
		r = file_write_at(cached, end, from + (end - offset),
				  (size_t)(offset + nbytes - end));
	return r;
}
