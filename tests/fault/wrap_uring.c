/*
 * wrap_uring - rings that can fail, and the page cache that makes gsort use them: see fault_points.h
 *
 * What rings transfer does not pass the points of other transfers, so there are none but in modes
 * that are about them.
 */
#include <errno.h>
#include <unistd.h>

#include "config.h"
#include "io/file/direct_io.h"
#include "src/base/adaptive.h"
#include "src/plan/cache_policy.h"
#include "tests/fault/fault_points.h"

#if HAVE_URING
#include <liburing.h>
#endif

static bool is_cold, may_be_passed;

void points_set_page_cache(bool cold, bool may_pass)
{
	is_cold = cold;
	may_be_passed = may_pass;
}

enum page_cache_use __real_page_cache_use(const struct job *job, uint64_t nbytes);
enum page_cache_use __wrap_page_cache_use(const struct job *job, uint64_t nbytes);
enum page_cache_use __wrap_page_cache_use(const struct job *job, uint64_t nbytes)
{
	return may_be_passed ? PAGE_CACHE_MAY_HOLD : __real_page_cache_use(job, nbytes);
}

enum way __real_ways_choose(struct ways *ways, unsigned possible);
enum way __wrap_ways_choose(struct ways *ways, unsigned possible);
enum way __wrap_ways_choose(struct ways *ways, unsigned possible)
{
	return may_be_passed && possible & WAYS_OTHER ? WAY_OTHER :
							__real_ways_choose(ways, possible);
}

bool __wrap_direct_is_cached(const struct file *file, uint64_t offset, uint64_t nbytes);
bool __wrap_direct_is_cached(const struct file *file, uint64_t offset, uint64_t nbytes)
{
	(void)file, (void)offset, (void)nbytes;
	return !is_cold;
}

uint64_t __real_memory_available_nbytes(const char *root);
uint64_t __wrap_memory_available_nbytes(const char *root);
uint64_t __wrap_memory_available_nbytes(const char *root)
{
	return is_cold ? 0 : __real_memory_available_nbytes(root);
}

/* What sources are large beside is another question than what there is a plan for. */
uint64_t __real_memory_physical_nbytes(void);
uint64_t __wrap_memory_physical_nbytes(void);
uint64_t __wrap_memory_physical_nbytes(void)
{
	return is_cold ? UINT64_MAX : __real_memory_physical_nbytes();
}

long __real_sysconf(int name);
long __wrap_sysconf(int name);
long __wrap_sysconf(int name)
{
	return is_cold && name == _SC_PHYS_PAGES ? 1 : __real_sysconf(name);
}

#if HAVE_URING

int __real_uring_init(unsigned n_entries, struct io_uring *ring);
int __wrap_uring_init(unsigned n_entries, struct io_uring *ring);
int __wrap_uring_init(unsigned n_entries, struct io_uring *ring)
{
	return is_cold ? __real_uring_init(n_entries, ring) : -ENOSYS;
}

int __real_uring_submit(struct io_uring *ring);
int __wrap_uring_submit(struct io_uring *ring);
int __wrap_uring_submit(struct io_uring *ring)
{
	return point_fails(POINT_SUBMIT) ? -errno : __real_uring_submit(ring);
}

int __real_uring_take(struct io_uring *ring, bool waits, void **ret_owner, int *ret_moved);
int __wrap_uring_take(struct io_uring *ring, bool waits, void **ret_owner, int *ret_moved);
int __wrap_uring_take(struct io_uring *ring, bool waits, void **ret_owner, int *ret_moved)
{
	const int r = __real_uring_take(ring, waits, ret_owner, ret_moved);

	if (r < 0)
		return r;
	switch (point_pass(POINT_COMPLETE)) {
	case EFFECT_FAIL:
		*ret_moved = -errno;
		break;
	case EFFECT_END:
		*ret_moved = 0;
		break;
	case EFFECT_SHORT:
		*ret_moved = *ret_moved > 0 ? (*ret_moved + 1) / 2 : *ret_moved;
		break;
	default:
		break;
	}
	return 0;
}

bool points_have_rings(void)
{
	struct io_uring ring;

	if (__real_uring_init(1, &ring) < 0)
		return false;
	io_uring_queue_exit(&ring);
	return true;
}

#else

bool points_have_rings(void)
{
	return false;
}

#endif
