/*
 * page_alloc - allocate memory in huge or small pages, whichever is faster
 *
 * Huge pages cost fewer faults and fewer TLB misses, and are usually better. But a virtual machine
 * gives large free blocks back to its host, and gets them back page by page when they are touched,
 * while small pages come from memory that was used recently. On such machines, huge pages were seen
 * to take as long as the whole sort. So the first 2 MiB of each allocation are timed with both
 * (src/base/adaptive.h).
 */
#pragma once

#include <stddef.h>

#include "src/base/adaptive.h"

struct page_alloc {
	struct adaptive adaptive;
};

void page_alloc_init(struct page_alloc *allocator);
void page_alloc_destroy(struct page_alloc *allocator);

/* Allocate nbytes > 0 of zeroed memory, or return NULL. Thread-safe. */
void *page_alloc_map(struct page_alloc *allocator, size_t nbytes);

/* NULL is ignored. */
void page_alloc_unmap(void *memory, size_t nbytes);
