/*
 * mapping - a part of a file as memory, guarded against what can become of the file
 *
 * A file that is read through a mapping can be cut by somebody else, or its disk can fail, and then
 * the processor cannot fetch what should be there: the kernel sends SIGBUS, which ends a process.
 * Here it does not. The front end's handler has zeros put in the place of the whole mapping, and
 * noted that it is damaged, and whoever looked goes on with the zeros. So whoever uses what was
 * seen must ask afterwards:
 *
 *	look at mapping.bytes  ->  mapping_is_damaged()?  ->  believe what was seen
 *
 * Where nobody handles the signal (file.h: `guards` of the calls), nothing is mapped.
 *
 * Bytes that somebody overwrites change in the mapping, too: what is looked at twice need not be
 * the same.
 *
 * The same can happen to what is written through a mapping, where the file has no space, and is
 * noticed in the same way.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/file/file.h"

/* That can be open at a time: the handler looks through all of them. */
enum { MAPPING_MAX_OPEN = 256 };

/* Of all mappings of a process, which lends it (file.h). Zeroed: no mapping is open. */
struct mapping_table {
	struct mapping_entry {
		atomic_bool in_use, is_damaged;
		atomic_uintptr_t begin, end; /* whole pages; begin == end: guards nothing */
	} entries[MAPPING_MAX_OPEN];
};

/*
 * For a handler of SIGBUS: is what is at the address in one of the mappings? Then it is zeros now,
 * and the thread can go on. Else false. Async-signal-safe.
 */
bool mapping_table_handle_fault(struct mapping_table *table, const void *address);

/* Plain data; zeroed: not open. */
struct mapping {
	const unsigned char *bytes;
	size_t nbytes;
	struct mapping_entry *entry;
};

/*
 * Map nbytes > 0 at `offset`, to be read only; the descriptor may be closed afterwards. Returns 0
 * or a negative errno, -ENOTSUP if there are no guards, -EMFILE if too many are open. Any
 * thread, as the rest.
 */
int mapping_open(const struct file *file, uint64_t offset, size_t nbytes,
		 struct mapping *ret_mapping);

/* The same, to be written; the file has to be open for reading and writing. */
int mapping_open_writable(const struct file *file, uint64_t offset, size_t nbytes,
			  struct mapping *ret_mapping);

/*
 * Write into one that is open for that. 0, or -EFAULT if the mapping is damaged: then anything may
 * be written of it.
 */
int mapping_write(const struct mapping *mapping, size_t offset, const void *data, size_t nbytes);

/* Nobody looks at it any more. One that is not open is fine. */
void mapping_close(struct mapping *mapping);

/*
 * The range will be looked at: what of it is in the page cache is made ready at once, which costs a
 * fraction of the page faults that it saves. A hint.
 */
void mapping_populate(const struct mapping *mapping, size_t offset, size_t nbytes);

/* Has a part of it turned out to be unreadable? Then any of its bytes may have been seen as 0. */
bool mapping_is_damaged(const struct mapping *mapping);
