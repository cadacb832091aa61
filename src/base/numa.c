/*
 * numa - the parts of a machine's memory (see numa.h)
 */
#include "src/base/numa.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LINE_NBYTES = 4096, MOST_NODES = 64 };

/* Of mbind(2): from there, or elsewhere if that is full. */
enum { PREFERRED = 1 };

/* The line of a small file below the tree; false if there is none. */
static bool read_line(const char *sysfs, const char *path, char line[static LINE_NBYTES])
{
	char whole[LINE_NBYTES];
	FILE *file;
	bool is_read;

	if ((size_t)snprintf(whole, sizeof whole, "%s/%s", sysfs, path) >= sizeof whole)
		return false;
	file = fopen(whole, "re");
	if (!file)
		return false;
	is_read = fgets(line, LINE_NBYTES, file);
	fclose(file);
	return is_read;
}

/* "0-3,8": the next from *at on, which is left behind it. False: there are no more. */
static bool next_numbers(const char **at, unsigned long *ret_first, unsigned long *ret_last)
{
	char *end;

	*ret_first = *ret_last = strtoul(*at, &end, 10);
	if (end == *at)
		return false;
	if (*end == '-')
		*ret_last = strtoul(end + 1, &end, 10);
	*at = *end == ',' ? end + 1 : end;
	return true;
}

static bool has_several_nodes(const char *sysfs)
{
	char line[LINE_NBYTES];
	const char *at = line;
	unsigned long first, last, n = 0;

	if (!read_line(sysfs, "devices/system/node/online", line))
		return false;
	while (next_numbers(&at, &first, &last))
		n += last >= first ? last - first + 1 : 0;
	return n > 1;
}

int nodes_of_pci(const char *sysfs, const char *bus_id)
{
	char path[128], line[LINE_NBYTES];
	long node;

	snprintf(path, sizeof path, "bus/pci/devices/%s/numa_node", bus_id);
	if (!has_several_nodes(sysfs) || !read_line(sysfs, path, line))
		return NODE_ANY;
	node = strtol(line, NULL, 10);
	return node >= 0 && node < MOST_NODES ? (int)node + 1 : NODE_ANY;
}

void nodes_prefer(void *memory, size_t nbytes, int node)
{
	const uint64_t mask = node == NODE_ANY ? 0 : UINT64_C(1) << (node - 1);

	if (mask)
		(void)syscall(SYS_mbind, memory, nbytes, PREFERRED, &mask, MOST_NODES + 1UL, 0UL);
}

static bool find_processors(const char *sysfs, int node, cpu_set_t *ret_set)
{
	char path[64], line[LINE_NBYTES];
	const char *at = line;
	unsigned long first, last;

	CPU_ZERO(ret_set);
	snprintf(path, sizeof path, "devices/system/node/node%d/cpulist", node - 1);
	if (node == NODE_ANY || !read_line(sysfs, path, line))
		return false;
	while (next_numbers(&at, &first, &last))
		for (; first <= last && first < CPU_SETSIZE; first++)
			CPU_SET(first, ret_set);
	return true;
}

struct nodes_stay nodes_enter(const char *sysfs, int node)
{
	struct nodes_stay stay = { .is_bound = false };
	cpu_set_t wanted;

	if (!find_processors(sysfs, node, &wanted) ||
	    sched_getaffinity(0, sizeof stay.before, &stay.before) < 0)
		return stay;
	CPU_AND(&wanted, &wanted, &stay.before);
	stay.is_bound = CPU_COUNT(&wanted) > 0 && sched_setaffinity(0, sizeof wanted, &wanted) == 0;
	return stay;
}

void nodes_leave(const struct nodes_stay *stay)
{
	if (stay->is_bound)
		(void)sched_setaffinity(0, sizeof stay->before, &stay->before);
}
