/*
 * page_alloc - allocate memory in huge or small pages, whichever is faster
 *
 * Huge pages cause fewer page faults and TLB misses and are usually faster. But a virtual machine
 * may return large free blocks to its host, and then gets them back page by page when they are
 * touched, while small pages come from recently used memory. On such machines, allocating huge
 * pages was seen to take as long as the whole sort. So the first 2 MiB of each allocation are timed
 * (of large ones, of each 64 MiB), and the faster size is used (src/base/adaptive.h).
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

/* Free memory of page_alloc_map(); nbytes as allocated. NULL is ignored. */
void page_alloc_unmap(void *memory, size_t nbytes);
