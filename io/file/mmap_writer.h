/*
 * mmap_writer - a file that is written through mappings, whole pieces of 4 MiB at a time
 *
 * Several writers that go on from places far apart are as fast so as the memory, where
 * file_write_at() is one at a time in a file. But only if a piece is mapped as a whole, touched
 * from its beginning to its end, and let go once: then the kernel has large pages for it. Where two
 * mappings meet within a piece it has single ones, and whoever makes one waits for the others (8
 * writers came to 1.4 GB/s in place of 13). So a piece stays mapped until all of it is written, by
 * however many writes, and whoever makes them.
 */
#pragma once

#include <pthread.h>

#include "io/file/mapping.h"

enum { MMAP_SEGMENT_NBYTES = 4 << 20 };

/* Of all writers together: each has one, or two while it goes from one to the next. */
enum { MMAP_WRITER_MAX_SEGMENTS = 32 };

struct mmap_writer {
	pthread_mutex_t lock;
	/* Under the lock, but for what is in the mappings. */
	struct mmap_segment {
		struct mapping mapping; /* not open: none */
		uint64_t offset;        /* in the file, a multiple of a piece's size */
		size_t n_written;
		unsigned n_users;
	} segments[MMAP_WRITER_MAX_SEGMENTS];
};

void mmap_writer_init(struct mmap_writer *writer);

/* Nobody writes any more. */
void mmap_writer_destroy(struct mmap_writer *writer);

/*
 * Write nbytes at `offset`, each byte once. The file is the same each time, open for reading and
 * writing, and has its space already, as far as whole pieces reach: nothing is extended. By any
 * number of threads. Returns 0, or a negative errno: then anything may be written of it, and it can
 * be tried by file_write_at(), which also tells what is the matter.
 */
int mmap_writer_write_at(struct mmap_writer *writer, const struct file *file, uint64_t offset,
			 const void *data, size_t nbytes);
