/*
 * spill.h - temporary space: host memory, then unnamed files in one or more directories
 *
 * Data is stored in extents. They go to a part of the host's memory that is set aside for them
 * (memory_tier.h; a back end with its own memory leaves the host's free), and when that is full, to
 * files.
 *
 * An extent lies in one file and is written as a whole. It owns the space up to the next multiple
 * of SPILL_ALIGN_NBYTES, which is what is counted. A file is created for its first extent, with
 * mode 0600 and no name (O_TMPFILE), or its name is removed at once, so that nothing is left
 * however the process ends. Extents are never moved, and offsets are not reused: the space of
 * discarded extents is released by punching holes in the background (hole_punch.h).
 *
 * An extent goes to the file that will have spent the least time on writing with it, as measured so
 * far. So directories get data in proportion to their speed, and a file that is being written is
 * avoided. A full directory is skipped until some of its space is released.
 *
 * All functions report their errors and are thread-safe, unless noted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/file/file.h"
#include "src/base/stats.h"

struct memory_tier; /* memory_tier.h */
struct spill;

#define SPILL_UNLIMITED UINT64_MAX

/* Extents begin at multiples of this, and space is released in such pages. */
#define SPILL_ALIGN_NBYTES 4096

struct spill_extent {
	uint64_t offset; /* in the file, or in memory */
	uint64_t nbytes;
	uint32_t file; /* the number of the file; the number after the last file means memory */
};

/*
 * Open a spill in n >= 1 directories, whose names must outlive it; they are not accessed before
 * something is stored. limit_nbytes: the maximum that is stored in files at any time.
 * memory_nbytes: the maximum that is stored in memory, which does not count against the limit.
 * Returns 0 or -ENOMEM.
 */
int spill_open(const struct syscalls *calls, const char *const *directories, size_t n,
	       uint64_t limit_nbytes, uint64_t memory_nbytes, struct spill **ret_spill);

/*
 * Open a spill in a named file that is kept when the spill is closed, for runs that outlive the
 * process. On success the spill owns the file, whose contents lie before end_nbytes and take
 * used_nbytes. *directory: its directory. Otherwise like spill_open().
 */
int spill_open_persistent(const struct file *file, const char *const *directory,
			  uint64_t end_nbytes, uint64_t used_nbytes, uint64_t limit_nbytes,
			  struct spill **ret_spill);

/*
 * Open the spill of another process, to be read only. read: read an extent, or a part of one; 0 or
 * a negative errno, reported; called by any thread. name: instead of a directory, for messages;
 * must outlive the spill. Returns 0 or -ENOMEM.
 */
struct spill_remote {
	int (*read)(void *context, struct spill_extent extent, void *buffer);
	void *context;
	const char *name;
};
int spill_open_remote(const struct spill_remote *remote, struct spill **ret_spill);

/* Release everything; keep a persistent file. NULL is ignored. */
void spill_close(struct spill *spill);

/* --- before anything is stored --- */

/* Use direct I/O where the file system permits it: the page cache cannot hold the data. */
void spill_bypass_cache(struct spill *spill);
bool spill_bypasses_cache(const struct spill *spill);

/*
 * Prepare for n > 1 threads that write at the same time. A file has one lock for writes, so there
 * are as many files as threads. They are divided among the directories, each of which gets at least
 * one and at most SPILL_MAX_FILES_PER_DIRECTORY. A persistent spill stays one file.
 */
enum { SPILL_MAX_FILES_PER_DIRECTORY = 8 };
void spill_set_n_writers(struct spill *spill, uint32_t n);

/*
 * Store part of a large spill through the cache and part by direct I/O, in proportion to their
 * speed, in two files per directory. A persistent spill stays one file.
 */
void spill_use_adaptive_io(struct spill *spill);

/*
 * Do not preallocate, because the data will be removed soon. Preallocated space is discarded on the
 * disk even if the data has not reached it, which took ext4 two seconds behind the writes of a
 * large output. Call it after the functions above.
 */
void spill_disable_preallocation(struct spill *spill);

/*
 * Set the hint of messages about damaged data. It must outlive the spill. NULL: the default hint.
 */
void spill_set_damage_hint(struct spill *spill, const char *hint);

/* Return the hint that was set, or NULL. */
const char *spill_damage_hint(const struct spill *spill);

/* --- store, read, discard --- */

/*
 * Store nbytes. Returns 0, -ENOSPC if all directories are full or the limit would be exceeded, or
 * the error of creating or writing a file.
 */
int spill_write(struct spill *spill, const void *data, size_t nbytes,
		struct spill_extent *ret_extent);

/*
 * Read an extent, part of one, or several adjacent ones. Returns 0, -ENODATA if the file ends
 * before, or another negative errno, not reported, because the caller knows what should be there;
 * or -ECANCELED, reported.
 */
int spill_read(struct spill *spill, struct spill_extent extent, void *buffer);

/*
 * Release an extent, pages of one, or several adjacent ones, each once. A partial last page is
 * released as a whole. Where the file system cannot punch holes, the space stays in use.
 */
void spill_discard(struct spill *spill, struct spill_extent extent);

/*
 * Let spill_discard() do nothing from now on, because spill_close() releases all space. A file that
 * is closed drops its dirty pages; to punch a hole, ext4 writes them first. No other thread may use
 * the spill. NULL, and a spill that outlives the process, are ignored.
 */
void spill_begin_close(struct spill *spill);

/* Bring what is stored in files to stable storage. */
int spill_sync(struct spill *spill);

/* Return whether the extent lies in space that was written. It may have been discarded. */
bool spill_contains(struct spill *spill, struct spill_extent extent);

/* Record that data at an offset of a file was damaged, and get the last such offset, if any. */
void spill_record_damage(struct spill *spill, uint64_t offset);
bool spill_get_damage(const struct spill *spill, uint64_t *ret_offset);

/* --- properties and counters --- */

bool spill_is_persistent(const struct spill *spill);

/*
 * Return the space that may be discarded and not yet released, for a spill of that peak size; at
 * times it is twice as much.
 */
uint64_t spill_backlog_nbytes(uint64_t peak_nbytes);

/* Return the tier of extents in memory. */
struct memory_tier *spill_memory(const struct spill *spill);

/*
 * Return, for a process that reads the files of this one when everything is stored, the number of
 * files, and the descriptor of a file, or -1 if it holds nothing.
 */
uint32_t spill_n_files(const struct spill *spill);
int spill_descriptor(struct spill *spill, uint32_t file);

/* Return the directory of a file, or "memory", for messages. */
const char *spill_directory(const struct spill *spill, uint32_t file);

/* Return the space used in files, after waiting until discarded space is released. */
uint64_t spill_used_nbytes(struct spill *spill);

/* Return the maximum of the space used in files so far. */
uint64_t spill_peak_nbytes(struct spill *spill);

/* Set the volumes of temporary files. NULL is ignored. */
void spill_get_volumes(struct spill *spill, struct stats_volumes *ret_volumes);

/*
 * Get how much more could be stored: the free space of all directories (each file system counted
 * once), at most the limit, and free memory. The message of an error names the directory.
 */
int spill_free_nbytes(struct spill *spill, uint64_t *ret_nbytes);
