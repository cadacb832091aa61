/*
 * system_limits - what memory and how many processors this process may use
 *
 * A process that takes more memory than its control group allows is killed, and one that
 * passes its rlimit gets no more; so the default of -S looks at all of them. What is available is
 * the least of
 *	- MemAvailable of /proc/meminfo: free, or reclaimable without swapping;
 *	- cgroup v2: memory.max (and memory.high, above which it would be throttled) less
 *	  memory.current, for the process's group and every group above it, not counting page
 *	  cache that can go (inactive_file of memory.stat) as used;
 *	- cgroup v1: memory.limit_in_bytes less memory.usage_in_bytes, likewise;
 *	- RLIMIT_AS and RLIMIT_DATA less what the process has mapped.
 *
 * A file that is missing, or says "max", limits nothing. All files are looked up below `root`, ""
 * for the real ones, so that tests can give made-up trees.
 */
#pragma once

#include <stdint.h>

/* Bytes that this process can still use. 64 MiB if nothing can be found out. */
uint64_t memory_available_nbytes(const char *root);

/* Of these, what nothing lies in that could be of use: page cache that would have to go. */
uint64_t memory_free_nbytes(const char *root);

/* What of this process is in memory now, mapped files included; 0 if that cannot be found out. */
uint64_t memory_resident_nbytes(void);

/* What the machine has. */
uint64_t memory_physical_nbytes(void);

/*
 * Processors this process may keep busy: its affinity and the cpu.max quota (v1: cfs), at least 1.
 */
unsigned cpus_available(const char *root);
