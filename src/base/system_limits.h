/*
 * system_limits.h - memory and CPUs that this process may use
 *
 * A process that exceeds the memory limit of its control group is killed, and one that reaches its
 * resource limit gets no more. So the default of -S respects all of them. What is available is the
 * minimum of
 *	- MemAvailable of /proc/meminfo: free, or reclaimable without swapping;
 *	- cgroup v2: memory.max (and memory.high, above which it would be throttled) less
 *	  memory.current, for the process's group and all its ancestors. Page cache that can be
 *	  dropped (inactive_file of memory.stat) does not count as used;
 *	- cgroup v1: memory.limit_in_bytes less memory.usage_in_bytes, likewise;
 *	- RLIMIT_AS and RLIMIT_DATA less what the process has mapped.
 *
 * A file that is missing or contains "max" limits nothing. `root` is prepended to all paths: ""
 * for the real files, else the tree of a test.
 */
#pragma once

#include <stdint.h>

/* Return how many bytes this process can still use; 64 MiB if that is unknown. */
uint64_t memory_available_nbytes(const char *root);

/*
 * Return how many bytes this process can still use before a control group or a resource limit stops
 * it; UINT64_MAX if there is no such limit. Unlike memory_available_nbytes() it ignores the memory
 * that is free at the moment.
 */
uint64_t memory_allowed_nbytes(const char *root);

/* Return how many of these are free without evicting page cache. */
uint64_t memory_free_nbytes(const char *root);

/* Return the resident set size of this process, mapped files included; 0 if unknown. */
uint64_t memory_resident_nbytes(void);

/* Return the peak resident set size of this process since exec(); 0 if unknown. */
uint64_t memory_peak_resident_nbytes(void);

/* Return the memory of the machine. */
uint64_t memory_physical_nbytes(void);

/*
 * Return how many CPUs this process may use, at least 1: the minimum of its affinity mask and the
 * quota of its control groups (cpu.max; v1: cpu.cfs_quota_us).
 */
unsigned cpus_available(const char *root);
