/*
 * mapping - parts of a file as memory, protected against SIGBUS (see mapping.h)
 *
 * The handler can run at any moment, so it takes no lock: it searches a table of atomics and only
 * makes system calls. The range of an entry is set after its pages are mapped and cleared before
 * they are unmapped. So a fault in the range of an entry always belongs to its mapping.
 *
 * A damaged mapping is replaced as a whole, not page by page: its data is lost anyway, and a
 * truncated file could cause hundreds of thousands of faults.
 */
#include "io/file/mapping.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Since Linux 5.14. Older C libraries lack the name, older kernels refuse it. */
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
 * Set is_damaged first: a thread that sees the zeros must also see it. The C library does not
 * promise that mmap() is async-signal-safe, so make the system call directly.
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
	*ret_mapping = (struct mapping){ pages + n_before, entry };
	return 0;
}

int mapping_open(const struct file *file, uint64_t offset, size_t nbytes,
		 struct mapping *ret_mapping)
{
	return map_file_range(file, PROT_READ, offset, nbytes, ret_mapping);
}

/* The advice makes the kernel fill the page cache of a new file with large pages. */
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

/* --- writing --- */

/* Returns -EFAULT if the mapping is damaged: then any part may be written. */
static int write_to_mapping(const struct mapping *mapping, size_t offset, const void *data,
			    size_t nbytes)
{
	memcpy((unsigned char *)(uintptr_t)mapping->bytes + offset, data, nbytes);
	return mapping_is_damaged(mapping) ? -EFAULT : 0;
}

void mmap_writer_init(struct mmap_writer *writer)
{
	*writer = (struct mmap_writer){ 0 };
	pthread_mutex_init(&writer->lock, NULL);
}

void mmap_writer_destroy(struct mmap_writer *writer)
{
	for (int i = 0; i < MMAP_WRITER_MAX_SEGMENTS; i++)
		mapping_close(&writer->segments[i].mapping);
	pthread_mutex_destroy(&writer->lock);
}

/* Find the segment at `offset`, or NULL. Requires the lock. */
static struct mmap_segment *find_segment(struct mmap_writer *writer, uint64_t offset)
{
	for (int i = 0; i < MMAP_WRITER_MAX_SEGMENTS; i++)
		if (writer->segments[i].mapping.bytes && writer->segments[i].offset == offset)
			return &writer->segments[i];
	return NULL;
}

/*
 * Return a free entry, or NULL. If none is free, unmap the segment without users that has the most
 * bytes written; a later write maps it again. Requires the lock.
 */
static struct mmap_segment *evict_segment(struct mmap_writer *writer)
{
	struct mmap_segment *fullest = NULL;

	for (int i = 0; i < MMAP_WRITER_MAX_SEGMENTS; i++) {
		struct mmap_segment *segment = &writer->segments[i];

		if (!segment->mapping.bytes)
			return segment;
		if (segment->n_users == 0 && (!fullest || segment->n_written > fullest->n_written))
			fullest = segment;
	}
	if (fullest)
		mapping_close(&fullest->mapping);
	return fullest;
}

/* Map the segment at `offset` if it is not mapped, and register as its user. */
static int acquire_segment(struct mmap_writer *writer, const struct file *file, uint64_t offset,
			   struct mmap_segment **ret_segment)
{
	struct mmap_segment *segment;
	int r = 0;

	pthread_mutex_lock(&writer->lock);
	segment = find_segment(writer, offset);
	if (!segment) {
		segment = evict_segment(writer);
		r = segment ? 0 : -EMFILE;
		if (r == 0) {
			*segment = (struct mmap_segment){ .offset = offset };
			r = mapping_open_writable(file, offset, MMAP_SEGMENT_NBYTES,
						  &segment->mapping);
		}
	}
	if (r == 0)
		segment->n_users++;
	pthread_mutex_unlock(&writer->lock);
	*ret_segment = segment;
	return r;
}

/*
 * Unregister as a user. The last user unmaps a complete or damaged segment, after releasing the
 * lock.
 */
static void release_segment(struct mmap_writer *writer, struct mmap_segment *segment, size_t nbytes)
{
	struct mapping retired = { 0 };

	pthread_mutex_lock(&writer->lock);
	segment->n_written += nbytes;
	if (--segment->n_users == 0 &&
	    (segment->n_written >= MMAP_SEGMENT_NBYTES || mapping_is_damaged(&segment->mapping))) {
		retired = segment->mapping;
		segment->mapping = (struct mapping){ 0 };
	}
	pthread_mutex_unlock(&writer->lock);
	mapping_close(&retired);
}

static int write_to_segment(struct mmap_writer *writer, const struct file *file, uint64_t offset,
			    const void *data, size_t nbytes)
{
	const size_t segment_offset = offset % MMAP_SEGMENT_NBYTES;
	struct mmap_segment *segment;
	int r = acquire_segment(writer, file, offset - segment_offset, &segment);

	if (r < 0)
		return r;
	r = write_to_mapping(&segment->mapping, segment_offset, data, nbytes);
	release_segment(writer, segment, nbytes);
	return r;
}

int mmap_writer_write_at(struct mmap_writer *writer, const struct file *file, uint64_t offset,
			 const void *data, size_t nbytes)
{
	const char *bytes = data;
	int r = 0;

	while (r == 0 && nbytes > 0) {
		const size_t n_remaining = MMAP_SEGMENT_NBYTES - offset % MMAP_SEGMENT_NBYTES;
		const size_t n = nbytes < n_remaining ? nbytes : n_remaining;

		r = write_to_segment(writer, file, offset, bytes, n);
		offset += n;
		bytes += n;
		nbytes -= n;
	}
	return r;
}
