/*
 * mapping - a part of a file as memory, guarded against what can become of the file (see mapping.h)
 *
 * What the handler needs is in a table of atomics that it can look through at any moment: it takes
 * no lock, and calls nothing but the system. A guard's range is set after its pages are mapped and
 * taken back before they are unmapped, so a fault in a range is always one of its mapping.
 *
 * All of a damaged mapping is replaced, not the one page: what was to be made of it is lost anyway,
 * and of a file that was cut there may be hundreds of thousands of pages to come.
 */
#include "io/file/mapping.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of Linux 5.14; older C libraries do not name it, older kernels refuse it. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

static struct mapping_entry *find_mapping_entry(struct mapping_table *table, uintptr_t address)
{
	for (int i = 0; i < MAPPING_MAX_OPEN; i++)
		if (address >= atomic_load(&table->entries[i].begin) &&
		    address < atomic_load(&table->entries[i].end))
			return &table->entries[i];
	return NULL;
}

/*
 * Noted first: whoever sees the zeros can also see the note. By the bare call, as the C library
 * does not promise that its own may be called from a signal.
 */
static bool replace_with_zeros(struct mapping_entry *entry)
{
	const uintptr_t begin = atomic_load(&entry->begin), end = atomic_load(&entry->end);

	atomic_store(&entry->is_damaged, true);
	return syscall(SYS_mmap, begin, end - begin, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != -1;
}

bool mapping_table_handle_fault(struct mapping_table *table, const void *address)
{
	struct mapping_entry *entry = find_mapping_entry(table, (uintptr_t)address);

	return entry && replace_with_zeros(entry);
}

static int acquire_mapping_entry(struct mapping_table *table, struct mapping_entry **ret_entry)
{
	if (!table)
		return -ENOTSUP;
	for (int i = 0; i < MAPPING_MAX_OPEN; i++) {
		struct mapping_entry *entry = &table->entries[i];

		if (atomic_exchange(&entry->in_use, true))
			continue;
		atomic_store(&entry->is_damaged, false);
		*ret_entry = entry;
		return 0;
	}
	return -EMFILE;
}

static void release_mapping_entry(struct mapping_entry *entry)
{
	atomic_store(&entry->in_use, false);
}

static int map_file_range(const struct file *file, int protection, uint64_t offset, size_t nbytes,
			  struct mapping *ret_mapping)
{
	const size_t n_before = offset % (uint64_t)sysconf(_SC_PAGESIZE);
	struct mapping_entry *entry;
	unsigned char *pages;
	int r = acquire_mapping_entry(file->calls->mappings, &entry);

	if (r < 0)
		return r;
	pages = mmap(NULL, n_before + nbytes, protection, MAP_SHARED, file->fd,
		     (off_t)(offset - n_before));
	if (pages == MAP_FAILED) {
		r = -errno;
		release_mapping_entry(entry);
		return r;
	}
	atomic_store(&entry->begin, (uintptr_t)pages);
	atomic_store(&entry->end, (uintptr_t)pages + n_before + nbytes);
	*ret_mapping = (struct mapping){ pages + n_before, nbytes, entry };
	return 0;
}

int mapping_open(const struct file *file, uint64_t offset, size_t nbytes,
		 struct mapping *ret_mapping)
{
	return map_file_range(file, PROT_READ, offset, nbytes, ret_mapping);
}

/* The page cache of a new file is filled as the mapping is: by large pages, if it is told so. */
int mapping_open_writable(const struct file *file, uint64_t offset, size_t nbytes,
			  struct mapping *ret_mapping)
{
	const int r = map_file_range(file, PROT_READ | PROT_WRITE, offset, nbytes, ret_mapping);

	if (r == 0)
		madvise((void *)atomic_load(&ret_mapping->entry->begin),
			ret_mapping->entry->end - ret_mapping->entry->begin, MADV_HUGEPAGE);
	return r;
}

void mapping_close(struct mapping *mapping)
{
	struct mapping_entry *entry = mapping->entry;
	uintptr_t begin, end;

	if (!entry)
		return;
	begin = atomic_load(&entry->begin);
	end = atomic_exchange(&entry->end, 0);
	atomic_store(&entry->begin, 0);
	munmap((void *)begin, end - begin);
	release_mapping_entry(entry);
	*mapping = (struct mapping){ 0 };
}

void mapping_populate(const struct mapping *mapping, size_t offset, size_t nbytes)
{
	const uintptr_t page_nbytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uintptr_t begin = (uintptr_t)mapping->bytes + offset;
	const uintptr_t first_page = begin - begin % page_nbytes;

	madvise((void *)first_page, begin + nbytes - first_page, MADV_POPULATE_READ);
}

bool mapping_is_damaged(const struct mapping *mapping)
{
	return mapping->entry && atomic_load(&mapping->entry->is_damaged);
}

int mapping_write(const struct mapping *mapping, size_t offset, const void *data, size_t nbytes)
{
	memcpy((unsigned char *)(uintptr_t)mapping->bytes + offset, data, nbytes);
	return mapping_is_damaged(mapping) ? -EFAULT : 0;
}
