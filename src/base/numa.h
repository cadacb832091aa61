/*
 * numa - the parts of a machine's memory (NUMA), each with processors and devices of its own
 *
 * What is copied between a device and memory of another node goes over one more link, which all
 * share. So memory that is for a device is best on the device's node, and so are the threads that
 * read and write it.
 *
 * Nodes are known by the kernel's number and one more; NUMA_NODE_ANY: it is not known, or there
 * is only one, and nothing is done. It is only about speed: what cannot be had is done without,
 * and nothing is said.
 */
#pragma once

#include <sched.h>
#include <stddef.h>

enum { NUMA_NODE_ANY = 0 };

/* Where the kernel tells of them. Tests have trees of their own. */
#define NUMA_SYSFS "/sys"

/* Of a device on the PCI bus, "0000:65:00.0". */
int numa_node_of_pci(const char *sysfs, const char *bus_id);

/* Pages of the memory that were not touched yet, which begins with one, come from there. */
void numa_prefer_node(void *memory, size_t nbytes, int node);

/*
 * The calling thread, and those that it starts, run on those of its processors that are the node's,
 * if there are any. numa_unbind_thread(): as before.
 */
struct numa_binding {
	cpu_set_t saved_cpus;
	int is_bound;
};
struct numa_binding numa_bind_thread(const char *sysfs, int node);
void numa_unbind_thread(const struct numa_binding *binding);
