/*
 * guarded.h - buffers that end at an unmapped page
 *
 *	| no access | .......... data[nbytes] | no access |
 *	            ^ page                    ^ page
 *
 * Reading or writing one byte past the end raises SIGSEGV at that instruction. This also catches
 * vector code that reads a whole register at the end of an array, which sanitizers miss in
 * intrinsics and libraries. The page before the buffer is unmapped, too.
 *
 * The end is exact. The start is aligned as nbytes is, so n elements are aligned for their type.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The bytes of the pages that hold nbytes. */
static inline size_t guarded_n_pages(size_t nbytes, size_t page_nbytes)
{
	return (nbytes + page_nbytes - 1) / page_nbytes;
}

/*
 * Allocate a buffer of nbytes, filled with 0xa5, for guarded_free(). With 0 bytes it is a pointer
 * to an unmapped page. Exits if there is no memory.
 */
static inline void *guarded_alloc(size_t nbytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t n_pages = guarded_n_pages(nbytes, page);
	char *map = mmap(NULL, (n_pages + 2) * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *data;

	if (map == MAP_FAILED ||
	    (n_pages && mprotect(map + page, n_pages * page, PROT_READ | PROT_WRITE) != 0)) {
		perror("guarded_alloc");
		abort();
	}
	data = map + (n_pages + 1) * page - nbytes;
	return memset(data, 0xa5, nbytes);
}

/* Copy nbytes at `from` to a guarded buffer. */
static inline void *guarded_copy(const void *from, size_t nbytes)
{
	void *data = guarded_alloc(nbytes);

	return nbytes ? memcpy(data, from, nbytes) : data;
}

/* Free a buffer of guarded_alloc(nbytes) or guarded_copy(..., nbytes), or NULL. */
static inline void guarded_free(void *data, size_t nbytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t n_pages = guarded_n_pages(nbytes, page);

	if (data)
		munmap((char *)data + nbytes - (n_pages + 1) * page, (n_pages + 2) * page);
}
