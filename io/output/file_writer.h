/*
 * file_writer - writing to places of a file: through the page cache, past it, or through a mapping
 *
 * Which of these is the fastest shows only when they are tried (adaptive.h), and depends on who
 * else writes to the file at the time. What a way cannot do another one does: what does not lie
 * as its place in the file does, or is short, goes through the cache.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/file/file.h"
#include "io/file/io_queue.h"
#include "io/file/mmap_writer.h"
#include "src/base/adaptive.h"

struct file_writer {
	/* Constant once anything is written. */
	const struct file *file;
	bool bypass_cache;        /* as far as it can */
	struct file direct;       /* the file, open with O_DIRECT, if it is to be written so */
	struct io_queue *queue;   /* of direct writes; NULL if there is none */
	bool has_several_writers; /* among writers far from each other */
	bool is_shared;           /* with other processes */
	bool is_prefaulted;       /* its pages are, or will be when it is their turn */
	struct file reopened;     /* open to be mapped, where it is open for writing only */
	const struct file *mmap_file;

	struct adaptive adaptive;             /* where several would do, */
	struct adaptive_group adaptive_group; /* or mappings among them */
	atomic_uint
		n_in_flight[N_METHODS]; /* writes under way; counted where there are several ways */
	atomic_uint_least64_t nbytes[N_METHODS]; /* written */
	struct mmap_writer mmap_writer;
	atomic_bool mmap_failed;
};

/* The file need not be open yet, and is the caller's. */
void file_writer_init(struct file_writer *writer, const struct file *file,
		      const struct syscalls *calls);
void file_writer_destroy(struct file_writer *writer);

/* Before anything is written: */

/* It may go past the cache, if that is faster; */
void file_writer_use_adaptive_io(struct file_writer *writer);

/* it goes past the cache wherever it may, and else to the disk at once; */
void file_writer_bypass_cache(struct file_writer *writer);

/* writers go on from n places far from each other: mappings may be faster, if there are several. */
void file_writer_set_n_writers(struct file_writer *writer, uint32_t n_writers);

/*
 * other processes of this machine write to it, too: with write() they would all wait for its one
 * inode. So mappings are presumed to be faster; processes cannot find out together.
 */
void file_writer_set_shared(struct file_writer *writer);

/*
 * its pages are made ready while there is nothing to write yet: mappings are faster, then, as a
 * write() would look for each page again. Or not any more, also when all is written.
 */
void file_writer_set_prefaulted(struct file_writer *writer, bool is_prefaulted);

/* May what is written be mapped, if it is reserved as far as whole pieces reach? */
bool file_writer_can_mmap(const struct file_writer *writer);

/* The file, open for what mappings need: what may not be read is not mapped. The writer's. */
const struct file *file_writer_mmap_file(struct file_writer *writer);

/* 0, or the alignment of memory and place that makes writes past the cache possible. */
uint32_t file_writer_direct_alignment(const struct file_writer *writer);

/*
 * Write at `offset` of the file; is_preallocated: there is space for all of it, and the file is
 * as long as it has to be. By any number of threads. 0, or a negative errno without a message.
 */
int file_writer_write_at(struct file_writer *writer, uint64_t offset, const void *data,
			 size_t nbytes, bool is_preallocated);

/* Bytes that have been written in each way. */
struct file_writer_stats {
	uint64_t cached_nbytes, direct_nbytes, mmap_nbytes;
};
struct file_writer_stats file_writer_get_stats(const struct file_writer *writer);
