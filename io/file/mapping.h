/*
 * mapping - parts of a file as memory, protected against SIGBUS
 *
 * If another process truncates a mapped file, or the disk fails, an access raises SIGBUS, which
 * would end the process. The front end's signal handler instead replaces the whole mapping by zeros
 * and marks it as damaged, and the thread continues. So code that reads mapped data must check
 * afterwards:
 *
 *	read mapping.bytes  ->  mapping_is_damaged()?  ->  if not, the data was valid
 *
 * A write through a mapping for which the file has no space is detected in the same way. Without a
 * handler (`mappings` of struct syscalls) nothing is mapped.
 *
 * A mapping also shows what other processes write to the file: two reads of the same byte may
 * differ.
 *
 * Functions are thread-safe, unless their comment says otherwise. Errors are not reported.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/file/file.h"

/* Maximum number of open mappings; the handler searches all of them. */
enum { MAPPING_MAX_OPEN = 256 };

/* The mappings of a process (struct syscalls). All zeros: none is open. */
struct mapping_table {
	struct mapping_entry {
		atomic_bool in_use, is_damaged;
		atomic_uintptr_t begin, end; /* whole pages; begin == end: none */
	} entries[MAPPING_MAX_OPEN];
};

/*
 * For the SIGBUS handler: if the address is in a mapping, replace the mapping by zeros. Returns
 * whether it was replaced, so that the thread can continue. Async-signal-safe.
 */
bool mapping_table_handle_fault(struct mapping_table *table, const void *address);

/* Plain data. All zeros: not open. */
struct mapping {
	const unsigned char *bytes;
	struct mapping_entry *entry;
};

/*
 * Map nbytes > 0 at `offset` for reading. The descriptor may be closed afterwards. Returns 0 or a
 * negative errno: -ENOTSUP without a table of mappings, -EMFILE if too many are open.
 */
int mapping_open(const struct file *file, uint64_t offset, size_t nbytes,
		 struct mapping *ret_mapping);

/* Like mapping_open(), but for writing. The file must be open for reading and writing. */
int mapping_open_writable(const struct file *file, uint64_t offset, size_t nbytes,
			  struct mapping *ret_mapping);

/* Close a mapping, which no thread may be using. Does nothing if it is not open. */
void mapping_close(struct mapping *mapping);

/*
 * Map the pages of the range that are in the page cache with one call, which is much cheaper than a
 * page fault for each. A hint.
 */
void mapping_populate(const struct mapping *mapping, size_t offset, size_t nbytes);

/* Return whether the mapping is damaged. Then any of its bytes may have been read as 0. */
bool mapping_is_damaged(const struct mapping *mapping);

/* --- writing --- */

/*
 * Writes a file through mappings of 4 MiB segments.
 *
 * Several threads that write far apart in one file are as fast as the memory this way, while the
 * kernel runs only one write() to a file at a time. This requires that a segment is mapped as a
 * whole, written from its beginning to its end, and unmapped once: then the kernel uses large
 * pages. Where two mappings meet within a segment it uses small ones, whose allocation is serial (8
 * writers: 1.4 instead of 13 GB/s). So a segment stays mapped until all of it is written, whichever
 * threads write it.
 */
enum { MMAP_SEGMENT_NBYTES = 4 << 20 };

/* Each writing thread uses one segment, or two while it proceeds to the next. */
enum { MMAP_WRITER_MAX_SEGMENTS = 32 };

struct mmap_writer {
	pthread_mutex_t lock;
	/* Protected by the lock, except for the mapped bytes. */
	struct mmap_segment {
		struct mapping mapping; /* not open: the entry is free */
		uint64_t offset;        /* in the file, a multiple of MMAP_SEGMENT_NBYTES */
		size_t n_written;
		unsigned n_users;
	} segments[MMAP_WRITER_MAX_SEGMENTS];
};

void mmap_writer_init(struct mmap_writer *writer);

/* Unmap all segments. No thread may be writing. */
void mmap_writer_destroy(struct mmap_writer *writer);

/*
 * Write nbytes at `offset`. Each byte must be written once. All calls must be for the same file,
 * open for reading and writing. Its size and allocated space must reach to the end of the last
 * segment; the file is not extended. Returns 0 or a negative errno; then any part may be written,
 * and the caller can repeat the write with file_write_at(), which also finds the cause.
 */
int mmap_writer_write_at(struct mmap_writer *writer, const struct file *file, uint64_t offset,
			 const void *data, size_t nbytes);
