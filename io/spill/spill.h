/*
 * spill - the temporary space: host memory, then one nameless file in each of several directories
 *
 * Data is stored in extents. While it lasts they go to a part of the host's memory set aside for
 * them (memory_tier.h; a back end with memory of its own leaves the host's free); what it has no
 * room for goes to the files.
 *
 * An extent lies in one file, written and read as a whole. It owns the space up to the next
 * multiple of SPILL_ALIGN_NBYTES, and that is what is counted. A file is created when the first
 * extent goes to it, mode 0600, and has no name (O_TMPFILE) or loses it at once, so that nothing is
 * left however the process ends. Extents are never moved; their space is given back by punching
 * holes, in the background (hole_punch.h), so a file grows sparsely and its offsets are not reused.
 *
 * An extent goes to the directory that will have spent the least time on writing with it, by what
 * was measured so far: so directories get data in proportion to their speed. One without space is
 * passed over until something in it is given back.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/file/file.h"

struct extent_address; /* memory_tier.h */
struct spill;

#define SPILL_UNLIMITED UINT64_MAX

/* Extents start at multiples of this, and are given back in such pages. */
#define SPILL_ALIGN_NBYTES 4096

struct spill_extent {
	uint64_t offset; /* in its file, or in memory */
	uint64_t nbytes;
	uint32_t file; /* which directory, in the order given; the one after the last is memory */
};

/*
 * directories: n of them (at least 1), which must outlive the spill; they are not touched until
 * something is stored. limit_nbytes: the most that may be stored in files at any time.
 * memory_nbytes: the most that may be stored in memory, which does not count against the limit; 0:
 * none is used. Returns 0, or -ENOMEM after a message.
 */
int spill_open(const struct syscalls *calls, const char *const *directories, size_t n,
	       uint64_t limit_nbytes, uint64_t memory_nbytes, struct spill **ret_spill);

/*
 * A spill in one file with a name, which stays when the spill is closed: for runs that outlive the
 * process. The file, in `directory`, is the spill's on success; what it holds lies before
 * end_nbytes, and takes used_nbytes. Otherwise as above.
 */
int spill_open_persistent(const struct file *file, const char *const *directory,
			  uint64_t end_nbytes, uint64_t used_nbytes, uint64_t limit_nbytes,
			  struct spill **ret_spill);

/*
 * What somebody else has stored, in a spill of another process, to be read only: extents are
 * theirs. read: an extent, or a part of one; 0, or a negative errno after a message; by any thread.
 * name: in the place of a directory, for messages; must outlive the spill. 0, or -ENOMEM after a
 * message.
 */
struct spill_remote {
	int (*read)(void *context, struct spill_extent extent, void *buffer);
	void *context;
	const char *name;
};
int spill_open_remote(const struct spill_remote *remote, struct spill **ret_spill);

/* From now on so much may be stored in memory, and no less than before. Thread-safe. */
void spill_raise_memory_limit(struct spill *spill, uint64_t nbytes);

/*
 * Before anything is stored: more will be than the page cache can hold, so it is to be passed by
 * wherever the file system lets us (direct_io.h).
 */
void spill_bypass_cache(struct spill *spill);

/*
 * Before anything is stored, and after the ways to do so are told: it will be removed at once. So
 * the file system is not asked for space in advance, and what never came to the disk need not be
 * discarded there: behind the writes of a large output that took ext4 two seconds.
 */
void spill_disable_preallocation(struct spill *spill);

/*
 * Before anything is stored: it will be much, so part of it goes through the cache and part past
 * it, in proportion to how fast each is. A spill that is kept is one file, and stays so.
 */
void spill_use_adaptive_io(struct spill *spill);

/* Does what is stored stay when the spill is closed? */
bool spill_is_persistent(const struct spill *spill);

/*
 * What is to be done when something that was stored is not what is read: the end of a sentence;
 * must outlive the spill. NULL if nobody has said so.
 */
void spill_set_advice(struct spill *spill, const char *advice);
const char *spill_advice(const struct spill *spill);

/*
 * What was stored at the offset in one of its files is not what was read; and where was that last
 * noted? false: nowhere. Thread-safe.
 */
void spill_record_damage(struct spill *spill, uint64_t offset);
bool spill_get_damage(const struct spill *spill, uint64_t *ret_offset);

/* Is something stored there, not asked how much of it was given back? Thread-safe. */
bool spill_contains(struct spill *spill, struct spill_extent extent);

/* Bring what is stored in files to stable storage. 0, or a negative errno after a message. */
int spill_sync(struct spill *spill);

/* Gives everything back, unless it is kept. NULL is fine. */
void spill_close(struct spill *spill);

/*
 * Store nbytes. Thread-safe. Prints its message: -ENOSPC when all directories are full or the limit
 * would be passed, else what opening or writing returned.
 */
int spill_write(struct spill *spill, const void *data, size_t nbytes,
		struct spill_extent *ret_extent);

/*
 * Read an extent, or any part of one, or several that are adjacent. Thread-safe. Returns 0,
 * -ENODATA when the file ends before, or another negative errno; without a message, since the
 * caller knows what should be there; -ECANCELED after one.
 */
int spill_read(struct spill *spill, struct spill_extent extent, void *buffer);

/*
 * Give back an extent, or pages of one, or of several that are neighbours; each once. A last page
 * that is not full is given back whole. Thread-safe. Where the file system cannot punch holes they
 * stay in use, and are counted so.
 */
void spill_discard(struct spill *spill, struct spill_extent extent);

/*
 * So much that was given back may still be taken, and at times twice that, where so much has been
 * stored.
 */
uint64_t spill_backlog_nbytes(uint64_t peak_nbytes);

/*
 * For a process that reads the memory and the files of this one: how many extents have been stored
 * in memory, the first n of these places, how many files there are, and the descriptor of one, or
 * -1 as long as nothing is in it. Thread-safe once all is stored.
 */
size_t spill_n_memory_extents(const struct spill *spill);
void spill_get_memory_addresses(const struct spill *spill, size_t n,
				struct extent_address *ret_addresses);
uint32_t spill_n_files(const struct spill *spill);
int spill_descriptor(const struct spill *spill, uint32_t file);

/* The directory of an extent, or "memory", for messages. */
const char *spill_directory(const struct spill *spill, uint32_t file);

/*
 * Bytes taken in files now (once all that was discarded is given back, which this waits for), the
 * most that were, and the most memory taken. Thread-safe.
 */
uint64_t spill_used_nbytes(struct spill *spill);
uint64_t spill_peak_nbytes(struct spill *spill);
uint64_t spill_memory_peak_nbytes(struct spill *spill);

/* Bytes that went to its files and came from them. Thread-safe. */
struct spill_traffic {
	uint64_t written_nbytes, read_nbytes;
};
struct spill_traffic spill_traffic(const struct spill *spill);

/* Memory that is taken now. Thread-safe. */
uint64_t spill_memory_nbytes(struct spill *spill);

/* The same as the first, without waiting: what is being given back may count. */
uint64_t spill_used_nbytes_nowait(struct spill *spill);

/*
 * What could be stored more: the limit and the free space of all directories (those on the same
 * file system counted once), and what is left of the memory. Returns 0, or a negative errno with a
 * message that names the directory.
 */
int spill_free_nbytes(struct spill *spill, uint64_t *ret_nbytes);
