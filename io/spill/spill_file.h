/*
 * spill_file - temporary data in one directory: a file without a name
 *
 * Part of spill.c, which calls this under its lock where nothing else is said, and hands out the
 * offsets.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "io/file/file.h"
#include "io/file/io_queue.h"

struct spill_file {
	/* Set at creation. */
	const char *directory;

	/* Constant once anything is stored. */
	bool bypass_cache;       /* wherever the file system lets us */
	bool skip_preallocation; /* no space is had before it is written */
	struct file file;
	struct file direct; /* the same past the page cache; closed if that is not wanted */

	uint64_t end;              /* of the last extent */
	uint64_t in_flight_nbytes; /* being written now */
	uint64_t written_nbytes;   /* ever */
	uint64_t busy_ns;          /* that it took */
	int full_error;            /* since the last discard: why, a negative errno; 0: it is not */
	uint64_t known_free_nbytes; /* that there was when that was looked at last ... */
	uint64_t recheck_nbytes;    /* ... which is done again when so much has been discarded */
};

/* It is not created yet. The directory's name must outlive it. */
void spill_file_init(struct spill_file *f, const struct syscalls *calls, const char *directory);

/* Before anything is stored: it is to be written past the cache, if the file system lets us. */
void spill_file_bypass_cache(struct spill_file *f);

/* Create it. 0, or a negative errno without a message. */
int spill_file_open(struct spill_file *f);
void spill_file_close(struct spill_file *f);

/* The time that will have been spent on writing, with nbytes more, by what was measured so far. */
double spill_file_expected_ns(const struct spill_file *f, uint64_t nbytes);

/*
 * Without the lock, by any number of threads. queue: for transfers past the cache; NULL is fine. 0,
 * or a negative errno without a message.
 */
int spill_file_write(const struct spill_file *f, struct io_queue *queue, uint64_t offset,
		     const void *data, uint64_t nbytes);
int spill_file_read(const struct spill_file *f, struct io_queue *queue, uint64_t offset,
		    void *buffer, uint64_t nbytes);
