/*
 * guarded - buffers that end at an unmapped page
 *
 *	| no access | .......... data[nbytes] | no access |
 *	            ^ page                    ^ page
 *
 * One byte too far, written or only read, is a SIGSEGV at the instruction that did it. Vector
 * code that reads a whole register at an array's end, which a sanitizer does not see when it is
 * written in intrinsics or lives in a library, is caught as well. The page before the buffer is
 * unmapped too, so that a step before the first page is seen.
 *
 * The end is exact, the start is aligned as nbytes is: a buffer of n elements is aligned for them.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Pages that hold nbytes. */
static inline size_t guarded_n_pages(size_t nbytes, size_t page_nbytes)
{
	return (nbytes + page_nbytes - 1) / page_nbytes;
}

/*
 * A buffer of nbytes (0 is fine: a pointer to an unmapped page), filled with 0xa5. Ends the program
 * when there is no memory: a test has no use for less. Give it back with guarded_free().
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

/* A guarded copy of nbytes at `from`. */
static inline void *guarded_copy(const void *from, size_t nbytes)
{
	void *data = guarded_alloc(nbytes);

	return nbytes ? memcpy(data, from, nbytes) : data;
}

/* data: from guarded_alloc(nbytes) or guarded_copy(..., nbytes), or NULL. */
static inline void guarded_free(void *data, size_t nbytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t n_pages = guarded_n_pages(nbytes, page);

	if (data)
		munmap((char *)data + nbytes - (n_pages + 1) * page, (n_pages + 2) * page);
}
