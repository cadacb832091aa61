/*
 * file_writer - writing to places of a file, the fastest way (see file_writer.h)
 */
#include "io/output/file_writer.h"

#include <fcntl.h>

#include "io/file/direct_io.h"
#include "src/base/clock.h"

/* Less than that is not worth a direct transfer. */
enum { LEAST_DIRECT_NBYTES = 1 << 20 };

/* Nor this a mapping. */
enum { LEAST_MAPPED_NBYTES = 64 << 10 };

/* What the ways of src/base/adaptive.h are here. */
static const enum way through_cache = WAY_USUAL, past_cache = WAY_OTHER, mapped = WAY_THIRD;

void file_writer_init(struct file_writer *writer, const struct file *file,
		      const struct syscalls *calls)
{
	*writer = (struct file_writer){
		.file = file,
		.direct = { .calls = calls, .fd = -1 },
		.again = { .calls = calls, .fd = -1 },
	};
	mapped_pieces_init(&writer->pieces);
	ways_init(&writer->ways);
	ways_together_init(&writer->together);
}

void file_writer_destroy(struct file_writer *writer)
{
	mapped_pieces_destroy(&writer->pieces);
	ways_destroy(&writer->ways);
	ways_together_destroy(&writer->together);
	io_queue_close(writer->queue);
	file_close(&writer->direct);
	file_close(&writer->again);
}

/* Without a queue, too, transfers are as right. */
void file_writer_try_both_ways(struct file_writer *writer)
{
	if (file_reopen(writer->file, O_WRONLY | O_DIRECT, &writer->direct) == 0)
		io_queue_open(DIRECT_DEPTH, &writer->queue);
}

void file_writer_pass_by_cache(struct file_writer *writer)
{
	writer->passes_by_cache = true;
}

/* As `> file` is. */
static bool is_only_for_writing(const struct file *file)
{
	return (fcntl(file->fd, F_GETFL) & O_ACCMODE) == O_WRONLY;
}

const struct file *file_writer_to_map(struct file_writer *writer)
{
	if (writer->again.fd < 0 && is_only_for_writing(writer->file))
		file_reopen(writer->file, O_RDWR, &writer->again);
	writer->to_map = writer->again.fd < 0 ? writer->file : &writer->again;
	return writer->to_map;
}

void file_writer_divide(struct file_writer *writer, uint32_t n)
{
	writer->is_divided = n > 1;
	if (n > 1)
		file_writer_to_map(writer);
}

void file_writer_share(struct file_writer *writer)
{
	writer->is_shared = true;
	file_writer_to_map(writer);
	ways_together_presume(&writer->together, 1U << mapped);
}

void file_writer_expect_ready(struct file_writer *writer, bool is_ready)
{
	writer->is_ready = is_ready;
	if (is_ready)
		file_writer_to_map(writer);
	ways_together_presume(&writer->together, is_ready ? 1U << mapped : 0);
}

bool file_writer_may_map(const struct file_writer *writer)
{
	return (writer->is_divided || writer->is_shared || writer->is_ready) &&
	       !writer->passes_by_cache && !atomic_load(&writer->cannot_map);
}

uint32_t file_writer_alignment(const struct file_writer *writer)
{
	return writer->direct.fd < 0 ? 0 : DIRECT_ALIGN_NBYTES;
}

struct file_writer_ways file_writer_ways(const struct file_writer *writer)
{
	return (struct file_writer_ways){
		.cached_nbytes = atomic_load(&writer->nbytes[through_cache]),
		.direct_nbytes = atomic_load(&writer->nbytes[past_cache]),
		.mapped_nbytes = atomic_load(&writer->nbytes[mapped]),
	};
}

static bool can_pass_by_cache(const struct file_writer *writer, uint64_t offset, const void *data,
			      size_t nbytes)
{
	return writer->direct.fd >= 0 && nbytes >= LEAST_DIRECT_NBYTES &&
	       direct_lies_alike(data, offset);
}

/* is_reserved: all of what is to be written. */
static bool can_be_mapped(const struct file_writer *writer, size_t nbytes, bool is_reserved)
{
	return is_reserved && nbytes >= LEAST_MAPPED_NBYTES && file_writer_may_map(writer);
}

static int write_one_way(struct file_writer *writer, enum way way, uint64_t offset,
			 const void *data, size_t nbytes);

/* What cannot be mapped is written, and if something is wrong with the file, that tells. */
static int write_mapped(struct file_writer *writer, uint64_t offset, const void *data,
			size_t nbytes)
{
	if (mapped_pieces_write_at(&writer->pieces, writer->to_map, offset, data, nbytes) == 0)
		return 0;
	atomic_fetch_sub(&writer->nbytes[mapped], nbytes);
	atomic_store(&writer->cannot_map, true);
	return write_one_way(writer, through_cache, offset, data, nbytes);
}

static int write_one_way(struct file_writer *writer, enum way way, uint64_t offset,
			 const void *data, size_t nbytes)
{
	atomic_fetch_add(&writer->nbytes[way], nbytes);
	if (way == past_cache)
		return direct_write_at(writer->queue, &writer->direct, writer->file, offset, data,
				       nbytes);
	if (way == mapped)
		return write_mapped(writer, offset, data, nbytes);
	return file_write_at(writer->file, offset, data, nbytes);
}

/*
 * Write it the way that is the fastest of some, and note how long that took. Writes into one file
 * wait for each other, past the cache for the disk: what several have taken at once, one alone
 * would have taken a part of.
 */
static int write_fastest(struct file_writer *writer, unsigned possible, uint64_t offset,
			 const void *data, size_t nbytes)
{
	const uint64_t begin_ns = clock_now_ns();
	const enum way way = ways_choose(&writer->ways, possible);
	int r;

	atomic_fetch_add(&writer->n_writing[way], 1);
	r = write_one_way(writer, way, offset, data, nbytes);
	ways_note(&writer->ways, way, nbytes,
		  (clock_now_ns() - begin_ns) / atomic_fetch_sub(&writer->n_writing[way], 1));
	return r;
}

/* Write it the way that all go now: mapped or not, whichever is the fastest if all do it. */
static int write_together(struct file_writer *writer, uint64_t offset, const void *data,
			  size_t nbytes)
{
	const enum way way =
		ways_together_choose(&writer->together, WAYS_USUAL | WAYS_THIRD, clock_now_ns());
	const int r = write_one_way(writer, way, offset, data, nbytes);

	ways_together_note(&writer->together, way, nbytes, clock_now_ns());
	return r;
}

int file_writer_write_at(struct file_writer *writer, uint64_t offset, const void *data,
			 size_t nbytes, bool is_reserved)
{
	const bool passes = can_pass_by_cache(writer, offset, data, nbytes);
	unsigned possible = WAYS_USUAL;
	int r;

	if (passes && writer->passes_by_cache)
		return write_one_way(writer, past_cache, offset, data, nbytes);
	if (can_be_mapped(writer, nbytes, is_reserved))
		return write_together(writer, offset, data, nbytes);
	if (passes)
		possible |= WAYS_OTHER;
	if (possible != WAYS_USUAL)
		return write_fastest(writer, possible, offset, data, nbytes);
	r = write_one_way(writer, through_cache, offset, data, nbytes);
	if (r == 0 && writer->passes_by_cache)
		file_write_behind(writer->file, offset, nbytes);
	return r;
}
