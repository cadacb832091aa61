/*
 * test_system_limits - the lowest limit decides
 *
 * Each test makes a tree of files like /proc and /sys in a directory of its own.
 */
#include "src/base/system_limits.h"

#include <sys/resource.h>

#include "tests/support/io_fixture.h"
#include "tests/support/unit_test.h"

#define MIB (UINT64_C(1) << 20)

static void write_meminfo(void)
{
	write_text("proc/meminfo", "MemTotal:        8000000 kB\nMemFree:         1000000 kB\n"
				   "MemAvailable:    4194304 kB\nBuffers:               4 kB\n");
}

static void assert_available(uint64_t nbytes)
{
	assert_int_equal(memory_available_nbytes(fixture_directory), nbytes);
}

DIRECTORY_TEST(without_limits_free_memory_decides)
{
	write_meminfo();
	write_text("proc/self/cgroup", "0::/\n");
	write_text("proc/self/limits",
		   "Limit                     Soft Limit           Hard Limit           Units\n"
		   "Max data size             unlimited            unlimited            bytes\n"
		   "Max address space         unlimited            unlimited            bytes\n");
	assert_available(4096 * MIB);
	assert_true(memory_allowed_nbytes(fixture_directory) == UINT64_MAX);
	assert_int_equal(memory_free_nbytes(fixture_directory), UINT64_C(1000000) << 10);
}

DIRECTORY_TEST(nothing_known_is_little_memory)
{
	assert_available(64 * MIB);
	assert_int_equal(memory_free_nbytes(fixture_directory), 0);
}

DIRECTORY_TEST(cgroup_v2_limit_less_usage_decides)
{
	write_meminfo();
	write_text("proc/self/cgroup", "0::/user.slice/job\n");
	write_text("sys/fs/cgroup/user.slice/job/memory.max", "314572800\n");
	write_text("sys/fs/cgroup/user.slice/job/memory.current", "104857600\n");
	assert_available(200 * MIB);
	assert_int_equal(memory_allowed_nbytes(fixture_directory), 200 * MIB);
	assert_int_equal(memory_free_nbytes(fixture_directory), 200 * MIB);
}

DIRECTORY_TEST(group_above_limits_too)
{
	write_meminfo();
	write_text("proc/self/cgroup", "0::/a/b/c\n");
	write_text("sys/fs/cgroup/a/b/c/memory.max", "max\n");
	write_text("sys/fs/cgroup/a/b/memory.max", "1073741824\n");
	write_text("sys/fs/cgroup/a/memory.max", "536870912\n");
	write_text("sys/fs/cgroup/a/memory.current", "0\n");
	assert_available(512 * MIB);
}

DIRECTORY_TEST(container_root_limits_apply)
{
	write_meminfo();
	write_text("proc/self/cgroup", "0::/system.slice/docker-1234.scope\n");
	write_text("sys/fs/cgroup/memory.max", "104857600\n");
	write_text("sys/fs/cgroup/memory.current", "4194304\n");
	assert_available(96 * MIB);
}

DIRECTORY_TEST(reclaimable_page_cache_is_free)
{
	write_meminfo();
	write_text("proc/self/cgroup", "0::/job\n");
	write_text("sys/fs/cgroup/job/memory.max", "314572800\n");
	write_text("sys/fs/cgroup/job/memory.current", "304087040\n");
	write_text("sys/fs/cgroup/job/memory.stat", "anon 10\nfile 209715200\nactive_file 1\n"
						    "inactive_file 199229440\n");
	assert_available(200 * MIB);
}

DIRECTORY_TEST(throttling_limit_counts)
{
	write_meminfo();
	write_text("proc/self/cgroup", "0::/job\n");
	write_text("sys/fs/cgroup/job/memory.max", "max\n");
	write_text("sys/fs/cgroup/job/memory.high", "209715200\n");
	assert_available(200 * MIB);
	write_text("sys/fs/cgroup/job/memory.high", "99614720\n");
	assert_available(95 * MIB);
}

DIRECTORY_TEST(overdrawn_group_leaves_nothing)
{
	write_meminfo();
	write_text("proc/self/cgroup", "0::/job\n");
	write_text("sys/fs/cgroup/job/memory.max", "1048576\n");
	write_text("sys/fs/cgroup/job/memory.current", "2097152\n");
	assert_available(0);
}

DIRECTORY_TEST(cgroup_v1_limit_less_usage_decides)
{
	write_meminfo();
	write_text("proc/self/cgroup",
		   "12:cpu,cpuacct:/elsewhere\n11:memory:/job\n1:name=systemd:/x\n0::/y\n");
	write_text("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "314572800\n");
	write_text("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "314572800\n");
	write_text("sys/fs/cgroup/memory/job/memory.stat",
		   "inactive_file 1\ntotal_inactive_file 104857600\n");
	write_text("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	assert_available(100 * MIB);
}

DIRECTORY_TEST(cgroup_v1_without_limit_limits_nothing)
{
	write_text("proc/self/cgroup", "11:memory:/\n");
	write_text("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	write_text("sys/fs/cgroup/memory/memory.usage_in_bytes", "104857600\n");
	assert_true(memory_allowed_nbytes(fixture_directory) == UINT64_MAX);
}

DIRECTORY_TEST(groups_that_are_not_ours_limit_nothing)
{
	write_meminfo();
	write_text("proc/self/cgroup", "12:cpu:/job\n0::/job\n");
	write_text("sys/fs/cgroup/memory/memory.limit_in_bytes", "104857600\n");
	write_text("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "104857600\n");
	assert_available(4096 * MIB);
}

/* Relies on AddressSanitizer to detect an overflow. */
DIRECTORY_TEST(long_text_is_truncated)
{
	char *text = malloc(100001);

	assert_non_null(text);
	memset(text, 'x', 100000);
	text[100000] = '\0';
	memcpy(text, "0::/job\n", 8);
	write_meminfo();
	write_text("proc/self/cgroup", text);
	write_text("sys/fs/cgroup/job/memory.max", "104857600\n");
	assert_available(100 * MIB);
	free(text);
}

DIRECTORY_TEST(address_space_and_data_rlimits_decide)
{
	write_meminfo();
	write_text("proc/self/status", "VmSize:\t   102400 kB\nVmData:\t     1024 kB\n");
	write_text("proc/self/limits",
		   "Max data size             unlimited            unlimited            bytes\n"
		   "Max address space         209715200            unlimited            bytes\n");
	assert_available(100 * MIB);
	write_text("proc/self/limits",
		   "Max data size             34603008             34603008             bytes\n"
		   "Max address space         209715200            unlimited            bytes\n");
	assert_available(32 * MIB);
}

DIRECTORY_TEST(real_rlimit_is_seen)
{
	const struct rlimit limit = { .rlim_cur = 1 << 20, .rlim_max = RLIM_INFINITY };
	struct rlimit before;

	assert_true(memory_available_nbytes("") > 0);
	assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_DATA, &limit), 0);
	assert_true(memory_available_nbytes("") <= 1 << 20);
	assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
}

DIRECTORY_TEST(cpus_are_those_of_the_affinity)
{
	write_text("proc/self/status",
		   "Cpus_allowed:\t3,f000000f\nCpus_allowed_list:\t0-3,28-33\n");
	assert_int_equal(cpus_available(fixture_directory), 10);
}

DIRECTORY_TEST(cpu_quota_limits_and_is_rounded_up)
{
	write_text("proc/self/status", "Cpus_allowed:\tff\n");
	write_text("proc/self/cgroup", "0::/job\n");
	write_text("sys/fs/cgroup/job/cpu.max", "max 100000\n");
	assert_int_equal(cpus_available(fixture_directory), 8);
	write_text("sys/fs/cgroup/job/cpu.max", "250000 100000\n");
	assert_int_equal(cpus_available(fixture_directory), 3);
	write_text("sys/fs/cgroup/job/cpu.max", "1000 100000\n");
	assert_int_equal(cpus_available(fixture_directory), 1);
}

DIRECTORY_TEST(cpu_quota_of_cgroup_v1_limits)
{
	write_text("proc/self/status", "Cpus_allowed:\tff\n");
	write_text("proc/self/cgroup", "4:cpuset:/other\n3:cpu,cpuacct:/job\n");
	write_text("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
	write_text("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
	assert_int_equal(cpus_available(fixture_directory), 8);
	write_text("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "200000\n");
	assert_int_equal(cpus_available(fixture_directory), 2);
}

DIRECTORY_TEST(there_is_always_one_cpu)
{
	assert_int_equal(cpus_available(fixture_directory), 1);
	assert_true(cpus_available("") >= 1);
}
