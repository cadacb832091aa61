/*
 * wrap_page_cache.c - simulate a page cache that is cold, small or bypassed (see fault_points.h)
 */
#include <unistd.h>

#include "src/base/adaptive.h"
#include "src/plan/job.h"
#include "tests/fault/fault_points.h"

static bool is_cold, may_bypass;

void fault_points_set_page_cache(bool cold, bool bypass)
{
	is_cold = cold;
	may_bypass = bypass;
}

enum cache_policy __real_cache_policy_choose(const struct job *job, uint64_t nbytes);
enum cache_policy __wrap_cache_policy_choose(const struct job *job, uint64_t nbytes);
enum cache_policy __wrap_cache_policy_choose(const struct job *job, uint64_t nbytes)
{
	return may_bypass ? CACHE_ADAPTIVE : __real_cache_policy_choose(job, nbytes);
}

enum adaptive_method __real_adaptive_choose(struct adaptive *adaptive, unsigned possible);
enum adaptive_method __wrap_adaptive_choose(struct adaptive *adaptive, unsigned possible);
enum adaptive_method __wrap_adaptive_choose(struct adaptive *adaptive, unsigned possible)
{
	return may_bypass && possible & METHOD_MASK_SECOND ?
		       METHOD_SECOND :
		       __real_adaptive_choose(adaptive, possible);
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

/* Physical memory decides on the memory limit, so it must stay large. */
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
