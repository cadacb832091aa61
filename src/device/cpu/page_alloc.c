/*
 * page_alloc - memory in huge pages or in small ones (see page_alloc.h)
 */
#include "src/device/cpu/page_alloc.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/clock.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

enum { HUGE_PAGE_NBYTES = 2 << 20 };

static const enum way huge = WAY_USUAL, small = WAY_OTHER;

/*
 * What small pages cost afterwards: sorting 1 GiB of u64 took 2.03 s of processors' time in small
 * ones and 1.91 s in huge ones (docs/benchmarks.md).
 */
static const double small_ns_per_byte = 0.1;

void pages_init(struct pages *pages)
{
	ways_init(&pages->ways);
}

void pages_destroy(struct pages *pages)
{
	ways_destroy(&pages->ways);
}

static void *map(size_t nbytes)
{
	void *memory =
		mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* From a boundary of huge pages on; nbytes is a multiple of the system's pages. */
static void *map_aligned(size_t nbytes)
{
	char *memory = map(nbytes + HUGE_PAGE_NBYTES), *aligned;
	size_t n_before;

	if (!memory)
		return NULL;
	n_before = -(uintptr_t)memory % HUGE_PAGE_NBYTES;
	aligned = memory + n_before;
	if (n_before)
		munmap(memory, n_before);
	munmap(aligned + nbytes, HUGE_PAGE_NBYTES - n_before);
	return aligned;
}

/* Have the first pages, and note how long it took; a system that cannot has huge ones. */
static void time_first_pages(struct pages *pages, enum way way, void *memory)
{
	const uint64_t begin_ns = clock_now_ns();
	const double later_ns = way == small ? small_ns_per_byte * HUGE_PAGE_NBYTES : 0;

	if (madvise(memory, HUGE_PAGE_NBYTES, MADV_POPULATE_WRITE) == 0)
		ways_note(&pages->ways, way, HUGE_PAGE_NBYTES,
			      clock_now_ns() - begin_ns + (uint64_t)later_ns);
}

void *pages_map(struct pages *pages, size_t nbytes)
{
	const size_t page_nbytes = (size_t)sysconf(_SC_PAGESIZE);
	const size_t whole_nbytes = (nbytes + page_nbytes - 1) / page_nbytes * page_nbytes;
	enum way way;
	void *memory;

	if (nbytes < HUGE_PAGE_NBYTES)
		return map(nbytes);
	memory = map_aligned(whole_nbytes);
	if (!memory)
		return NULL;
	way = ways_choose(&pages->ways, WAYS_USUAL | WAYS_OTHER);
	madvise(memory, whole_nbytes, way == huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	time_first_pages(pages, way, memory);
	return memory;
}

void pages_unmap(void *memory, size_t nbytes)
{
	if (memory)
		munmap(memory, nbytes);
}
