/*
 * file_writer.h - write to offsets of a file: cached, directly, or through a mapping
 *
 * Which method is the fastest is found by trying (adaptive.h), and depends on who else writes to
 * the file at the time. What a method cannot do, another one does: data that is short, or not
 * aligned like its offset, goes through the cache.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/file/file.h"
#include "io/file/mapping.h"
#include "src/base/adaptive.h"

struct file_writer {
	/* Constant from the first write on. */
	const struct file *file;
	/* Use direct I/O where possible; otherwise write through the cache, and back at once. */
	bool bypass_cache;
	struct file direct;     /* the file opened with O_DIRECT, or closed */
	struct io_queue *queue; /* for direct writes, or NULL */
	bool has_several_writers;
	bool prefers_mmap; /* mappings are presumed to be faster; false: write() is */
	bool is_shared;    /* with other processes */
	bool is_prefaulted;
	struct file reopened; /* for mappings, if the file is open for writing only */
	const struct file *mmap_file;

	struct adaptive cached_or_direct, cached_or_mmap;
	atomic_uint n_in_flight[N_METHODS]; /* of cached_or_direct */
	atomic_uint_least64_t nbytes[N_METHODS];
	struct mmap_writer mmap_writer;
	atomic_bool mmap_failed;
};

/* Initialise a writer. The file belongs to the caller, and need not be open yet. */
void file_writer_init(struct file_writer *writer, const struct file *file,
		      const struct syscalls *calls);
void file_writer_destroy(struct file_writer *writer);

/* --- before the first write --- */

/* Use direct I/O if it is faster than the cache. */
void file_writer_use_adaptive_io(struct file_writer *writer);

/*
 * n writers write at the same time. If there are several, mappings may be faster. They are
 * presumed to be if there are many writers. Otherwise write() is presumed to be faster.
 */
void file_writer_set_n_writers(struct file_writer *writer, uint32_t n_writers);

/*
 * Other processes of this host write to the file, too: their write() calls would wait for its one
 * inode. So mappings are presumed to be faster. The processes do not measure together.
 */
void file_writer_set_shared(struct file_writer *writer);

/*
 * The file's pages are prefaulted (preallocate.h), or no longer: mappings are presumed to be
 * faster, because write() would look up each page again. May also be called after the last write.
 */
void file_writer_set_prefaulted(struct file_writer *writer, bool is_prefaulted);

/*
 * Return whether data may be written through mappings, if the segments around it are preallocated.
 */
bool file_writer_can_mmap(const struct file_writer *writer);

/* Return the file, opened for reading and writing if possible. Owned by the writer. */
const struct file *file_writer_mmap_file(struct file_writer *writer);

/* Return the alignment of addresses and offsets for direct writes; 0: there are none. */
uint32_t file_writer_direct_alignment(const struct file_writer *writer);

/*
 * Write at an offset of the file. is_preallocated: the whole segments around the data have space,
 * and the file is long enough. Thread-safe. Errors are not reported.
 */
int file_writer_write_at(struct file_writer *writer, uint64_t offset, const void *data,
			 size_t nbytes, bool is_preallocated);

/* Bytes written by each method. */
struct file_writer_stats {
	uint64_t cached_nbytes, direct_nbytes, mmap_nbytes;
};
void file_writer_add_stats(const struct file_writer *writer, struct file_writer_stats *total);
