/*
 * test_system_limits - the lowest limit decides
 *
 * Each test makes a tree of files like /proc and /sys in a directory of its own.
 */
#include "src/base/system_limits.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/support/unit_test.h"

#define MIB (UINT64_C(1) << 20)

static char root[64];

static int make_root(void **state)
{
	(void)state;
	strcpy(root, "/tmp/test_memory_limit.XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static int remove_root(void **state)
{
	(void)state;
	return nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* Write a file of the tree, and make its directories. */
static void write_root_file(const char *path, const char *text)
{
	char full[512];
	FILE *file;

	snprintf(full, sizeof full, "%s%s", root, path);
	for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(full, 0700);
		*slash = '/';
	}
	file = fopen(full, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void write_meminfo(void)
{
	write_root_file("/proc/meminfo",
			"MemTotal:        8000000 kB\nMemFree:         1000000 kB\n"
			"MemAvailable:    4194304 kB\nBuffers:               4 kB\n");
}

static void assert_available(uint64_t nbytes)
{
	assert_int_equal(memory_available_nbytes(root), nbytes);
}

#define LIMIT_TEST(claim) TEST_WITH(claim, make_root, remove_root)

LIMIT_TEST(without_limits_free_memory_decides)
{
	write_meminfo();
	write_root_file("/proc/self/cgroup", "0::/\n");
	write_root_file(
		"/proc/self/limits",
		"Limit                     Soft Limit           Hard Limit           Units\n"
		"Max data size             unlimited            unlimited            bytes\n"
		"Max address space         unlimited            unlimited            bytes\n");
	assert_available(4096 * MIB);
	assert_true(memory_allowed_nbytes(root) == UINT64_MAX);
	assert_int_equal(memory_free_nbytes(root), UINT64_C(1000000) << 10);
}

LIMIT_TEST(nothing_known_is_little_memory)
{
	assert_available(64 * MIB);
	assert_int_equal(memory_free_nbytes(root), 0);
}

LIMIT_TEST(cgroup_v2_limit_less_usage_decides)
{
	write_meminfo();
	write_root_file("/proc/self/cgroup", "0::/user.slice/job\n");
	write_root_file("/sys/fs/cgroup/user.slice/job/memory.max", "314572800\n");
	write_root_file("/sys/fs/cgroup/user.slice/job/memory.current", "104857600\n");
	assert_available(200 * MIB);
	assert_int_equal(memory_allowed_nbytes(root), 200 * MIB);
	assert_int_equal(memory_free_nbytes(root), 200 * MIB);
}

LIMIT_TEST(group_above_limits_too)
{
	write_meminfo();
	write_root_file("/proc/self/cgroup", "0::/a/b/c\n");
	write_root_file("/sys/fs/cgroup/a/b/c/memory.max", "max\n");
	write_root_file("/sys/fs/cgroup/a/b/memory.max", "1073741824\n");
	write_root_file("/sys/fs/cgroup/a/memory.max", "536870912\n");
	write_root_file("/sys/fs/cgroup/a/memory.current", "0\n");
	assert_available(512 * MIB);
}

LIMIT_TEST(container_root_limits_apply)
{
	write_meminfo();
	write_root_file("/proc/self/cgroup", "0::/system.slice/docker-1234.scope\n");
	write_root_file("/sys/fs/cgroup/memory.max", "104857600\n");
	write_root_file("/sys/fs/cgroup/memory.current", "4194304\n");
	assert_available(96 * MIB);
}

LIMIT_TEST(reclaimable_page_cache_is_free)
{
	write_meminfo();
	write_root_file("/proc/self/cgroup", "0::/job\n");
	write_root_file("/sys/fs/cgroup/job/memory.max", "314572800\n");
	write_root_file("/sys/fs/cgroup/job/memory.current", "304087040\n");
	write_root_file("/sys/fs/cgroup/job/memory.stat", "anon 10\nfile 209715200\nactive_file 1\n"
							  "inactive_file 199229440\n");
	assert_available(200 * MIB);
}

LIMIT_TEST(throttling_limit_counts)
{
	write_meminfo();
	write_root_file("/proc/self/cgroup", "0::/job\n");
	write_root_file("/sys/fs/cgroup/job/memory.max", "max\n");
	write_root_file("/sys/fs/cgroup/job/memory.high", "209715200\n");
	assert_available(200 * MIB);
	write_root_file("/sys/fs/cgroup/job/memory.high", "99614720\n");
	assert_available(95 * MIB);
}

LIMIT_TEST(overdrawn_group_leaves_nothing)
{
	write_meminfo();
	write_root_file("/proc/self/cgroup", "0::/job\n");
	write_root_file("/sys/fs/cgroup/job/memory.max", "1048576\n");
	write_root_file("/sys/fs/cgroup/job/memory.current", "2097152\n");
	assert_available(0);
}

LIMIT_TEST(cgroup_v1_limit_less_usage_decides)
{
	write_meminfo();
	write_root_file("/proc/self/cgroup",
			"12:cpu,cpuacct:/elsewhere\n11:memory:/job\n1:name=systemd:/x\n0::/y\n");
	write_root_file("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "314572800\n");
	write_root_file("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "314572800\n");
	write_root_file("/sys/fs/cgroup/memory/job/memory.stat",
			"inactive_file 1\ntotal_inactive_file 104857600\n");
	write_root_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	assert_available(100 * MIB);
}

LIMIT_TEST(cgroup_v1_without_limit_limits_nothing)
{
	write_root_file("/proc/self/cgroup", "11:memory:/\n");
	write_root_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	write_root_file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "104857600\n");
	assert_true(memory_allowed_nbytes(root) == UINT64_MAX);
}

LIMIT_TEST(groups_that_are_not_ours_limit_nothing)
{
	write_meminfo();
	write_root_file("/proc/self/cgroup", "12:cpu:/job\n0::/job\n");
	write_root_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "104857600\n");
	write_root_file("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "104857600\n");
	assert_available(4096 * MIB);
}

/* Relies on AddressSanitizer to detect an overflow. */
LIMIT_TEST(long_text_is_truncated)
{
	char *text = malloc(100001);

	assert_non_null(text);
	memset(text, 'x', 100000);
	text[100000] = '\0';
	memcpy(text, "0::/job\n", 8);
	write_meminfo();
	write_root_file("/proc/self/cgroup", text);
	write_root_file("/sys/fs/cgroup/job/memory.max", "104857600\n");
	assert_available(100 * MIB);
	free(text);
}

LIMIT_TEST(address_space_and_data_rlimits_decide)
{
	write_meminfo();
	write_root_file("/proc/self/status", "VmSize:\t   102400 kB\nVmData:\t     1024 kB\n");
	write_root_file(
		"/proc/self/limits",
		"Max data size             unlimited            unlimited            bytes\n"
		"Max address space         209715200            unlimited            bytes\n");
	assert_available(100 * MIB);
	write_root_file(
		"/proc/self/limits",
		"Max data size             34603008             34603008             bytes\n"
		"Max address space         209715200            unlimited            bytes\n");
	assert_available(32 * MIB);
}

LIMIT_TEST(real_rlimit_is_seen)
{
	const struct rlimit limit = { .rlim_cur = 1 << 20, .rlim_max = RLIM_INFINITY };
	struct rlimit before;

	assert_true(memory_available_nbytes("") > 0);
	assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_DATA, &limit), 0);
	assert_true(memory_available_nbytes("") <= 1 << 20);
	assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
}

LIMIT_TEST(cpus_are_those_of_the_affinity)
{
	write_root_file("/proc/self/status",
			"Cpus_allowed:\t3,f000000f\nCpus_allowed_list:\t0-3,28-33\n");
	assert_int_equal(cpus_available(root), 10);
}

LIMIT_TEST(cpu_quota_limits_and_is_rounded_up)
{
	write_root_file("/proc/self/status", "Cpus_allowed:\tff\n");
	write_root_file("/proc/self/cgroup", "0::/job\n");
	write_root_file("/sys/fs/cgroup/job/cpu.max", "max 100000\n");
	assert_int_equal(cpus_available(root), 8);
	write_root_file("/sys/fs/cgroup/job/cpu.max", "250000 100000\n");
	assert_int_equal(cpus_available(root), 3);
	write_root_file("/sys/fs/cgroup/job/cpu.max", "1000 100000\n");
	assert_int_equal(cpus_available(root), 1);
}

LIMIT_TEST(cpu_quota_of_cgroup_v1_limits)
{
	write_root_file("/proc/self/status", "Cpus_allowed:\tff\n");
	write_root_file("/proc/self/cgroup", "4:cpuset:/other\n3:cpu,cpuacct:/job\n");
	write_root_file("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
	write_root_file("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
	assert_int_equal(cpus_available(root), 8);
	write_root_file("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "200000\n");
	assert_int_equal(cpus_available(root), 2);
}

LIMIT_TEST(there_is_always_one_cpu)
{
	assert_int_equal(cpus_available(root), 1);
	assert_true(cpus_available("") >= 1);
}
