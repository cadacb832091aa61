/*
 * page_alloc - allocate memory in huge or small pages, whichever is faster (see page_alloc.h)
 */
#include "src/device/cpu/page_alloc.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/clock.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

enum {
	HUGE_PAGE_NBYTES = 2 << 20,
	/* The first parts of a large allocation are timed, so that one allocation tries both. */
	PART_NBYTES = 64 << 20,
	MAX_TIMED_PARTS = 8,
};

static const enum adaptive_method huge_pages = METHOD_DEFAULT, small_pages = METHOD_SECOND;

/*
 * The later cost of small pages: sorting 1 GiB of u64 took 2.03 s of CPU time with small pages, and
 * 1.91 s with huge ones (docs/performance-log.md).
 */
static const double small_page_ns_per_byte = 0.1;

void page_alloc_init(struct page_alloc *allocator)
{
	adaptive_init(&allocator->adaptive, ADAPTIVE_SINGLE);
}

void page_alloc_destroy(struct page_alloc *allocator)
{
	adaptive_destroy(&allocator->adaptive);
}

static void *map_pages(size_t nbytes)
{
	void *memory =
		mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* Map memory that begins at a huge page boundary; nbytes is a multiple of the page size. */
static void *map_aligned_pages(size_t nbytes)
{
	char *memory = map_pages(nbytes + HUGE_PAGE_NBYTES), *aligned;
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

/* Populate the first pages and record the time. If the kernel cannot, huge pages are used. */
static void time_first_pages(struct page_alloc *allocator, enum adaptive_method method,
			     void *memory)
{
	const uint64_t begin_ns = clock_now_ns();
	const double later_cost_ns =
		method == small_pages ? small_page_ns_per_byte * HUGE_PAGE_NBYTES : 0;

	if (madvise(memory, HUGE_PAGE_NBYTES, MADV_POPULATE_WRITE) == 0)
		adaptive_record(&allocator->adaptive, method, HUGE_PAGE_NBYTES, begin_ns,
				clock_now_ns() + (uint64_t)later_cost_ns);
}

/* Choose the pages of a part of an allocation. */
static void choose_pages(struct page_alloc *allocator, void *memory, size_t nbytes)
{
	const enum adaptive_method method =
		adaptive_choose(&allocator->adaptive, METHOD_MASK_DEFAULT | METHOD_MASK_SECOND);

	madvise(memory, nbytes, method == huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	if (nbytes >= HUGE_PAGE_NBYTES)
		time_first_pages(allocator, method, memory);
}

void *page_alloc_map(struct page_alloc *allocator, size_t nbytes)
{
	const size_t page_nbytes = (size_t)sysconf(_SC_PAGESIZE);
	const size_t whole_nbytes = (nbytes + page_nbytes - 1) / page_nbytes * page_nbytes;
	size_t offset = 0;
	char *memory;

	if (nbytes < HUGE_PAGE_NBYTES)
		return map_pages(nbytes);
	memory = map_aligned_pages(whole_nbytes);
	if (!memory)
		return NULL;
	for (int i = 0; i < MAX_TIMED_PARTS && whole_nbytes - offset > PART_NBYTES; i++) {
		choose_pages(allocator, memory + offset, PART_NBYTES);
		offset += PART_NBYTES;
	}
	choose_pages(allocator, memory + offset, whole_nbytes - offset);
	return memory;
}

void page_alloc_unmap(void *memory, size_t nbytes)
{
	if (memory)
		munmap(memory, nbytes);
}
