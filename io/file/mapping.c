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

static struct mapping_guard *find_guard(struct mapping_guards *guards, uintptr_t address)
{
	for (int i = 0; i < MAPPING_MOST; i++)
		if (address >= atomic_load(&guards->all[i].begin) &&
		    address < atomic_load(&guards->all[i].end))
			return &guards->all[i];
	return NULL;
}

/*
 * Noted first: whoever sees the zeros can also see the note. By the bare call, as the C library
 * does not promise that its own may be called from a signal.
 */
static bool replace_by_zeros(struct mapping_guard *guard)
{
	const uintptr_t begin = atomic_load(&guard->begin), end = atomic_load(&guard->end);

	atomic_store(&guard->is_damaged, true);
	return syscall(SYS_mmap, begin, end - begin, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != -1;
}

bool mapping_guards_catch(struct mapping_guards *guards, const void *address)
{
	struct mapping_guard *guard = find_guard(guards, (uintptr_t)address);

	return guard && replace_by_zeros(guard);
}

static int take_guard(struct mapping_guards *guards, struct mapping_guard **ret_guard)
{
	if (!guards)
		return -ENOTSUP;
	for (int i = 0; i < MAPPING_MOST; i++) {
		struct mapping_guard *guard = &guards->all[i];

		if (atomic_exchange(&guard->is_taken, true))
			continue;
		atomic_store(&guard->is_damaged, false);
		*ret_guard = guard;
		return 0;
	}
	return -EMFILE;
}

static void give_back_guard(struct mapping_guard *guard)
{
	atomic_store(&guard->is_taken, false);
}

static int map(const struct file *file, int protection, uint64_t offset, size_t nbytes,
	       struct mapping *ret_mapping)
{
	const size_t n_before = offset % (uint64_t)sysconf(_SC_PAGESIZE);
	struct mapping_guard *guard;
	unsigned char *pages;
	int r = take_guard(file->calls->guards, &guard);

	if (r < 0)
		return r;
	pages = mmap(NULL, n_before + nbytes, protection, MAP_SHARED, file->fd,
		     (off_t)(offset - n_before));
	if (pages == MAP_FAILED) {
		r = -errno;
		give_back_guard(guard);
		return r;
	}
	atomic_store(&guard->begin, (uintptr_t)pages);
	atomic_store(&guard->end, (uintptr_t)pages + n_before + nbytes);
	*ret_mapping = (struct mapping){ pages + n_before, nbytes, guard };
	return 0;
}

int mapping_open(const struct file *file, uint64_t offset, size_t nbytes,
		 struct mapping *ret_mapping)
{
	return map(file, PROT_READ, offset, nbytes, ret_mapping);
}

/* The page cache of a new file is filled as the mapping is: by large pages, if it is told so. */
int mapping_open_to_write(const struct file *file, uint64_t offset, size_t nbytes,
			  struct mapping *ret_mapping)
{
	const int r = map(file, PROT_READ | PROT_WRITE, offset, nbytes, ret_mapping);

	if (r == 0)
		madvise((void *)atomic_load(&ret_mapping->guard->begin),
			ret_mapping->guard->end - ret_mapping->guard->begin, MADV_HUGEPAGE);
	return r;
}

void mapping_close(struct mapping *mapping)
{
	struct mapping_guard *guard = mapping->guard;
	uintptr_t begin, end;

	if (!guard)
		return;
	begin = atomic_load(&guard->begin);
	end = atomic_exchange(&guard->end, 0);
	atomic_store(&guard->begin, 0);
	munmap((void *)begin, end - begin);
	give_back_guard(guard);
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
	return mapping->guard && atomic_load(&mapping->guard->is_damaged);
}

int mapping_write(const struct mapping *mapping, size_t offset, const void *data, size_t nbytes)
{
	memcpy((unsigned char *)(uintptr_t)mapping->bytes + offset, data, nbytes);
	return mapping_is_damaged(mapping) ? -EFAULT : 0;
}
