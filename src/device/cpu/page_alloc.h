/*
 * page_alloc - memory in huge pages or in small ones, whichever are had faster
 *
 * Huge pages cost fewer faults and fewer misses of the TLB, and as a rule are the better ones. But
 * a virtual machine gives large free blocks back to its host, and has to get them from there again,
 * page by page, when they are touched; small pages come from what was in use lately. There huge
 * pages were seen to take as long as the whole sort. So both are tried, and timed, with the first
 * 2 MiB of each piece of memory (src/base/adaptive.h).
 */
#pragma once

#include <stddef.h>

#include "src/base/adaptive.h"

struct page_alloc {
	struct adaptive adaptive;
};

void page_alloc_init(struct page_alloc *allocator);
void page_alloc_destroy(struct page_alloc *allocator);

/* nbytes > 0 of zeroed memory, or NULL. Thread-safe. */
void *page_alloc_map(struct page_alloc *allocator, size_t nbytes);

/* NULL is fine. */
void page_alloc_unmap(void *memory, size_t nbytes);
