/*
 * numa.h - place memory and threads on the NUMA node of a device
 *
 * A copy between a device and memory of another node crosses one more link, which all devices
 * share. So memory for a device, and the threads that read and write it, should be on the device's
 * node.
 *
 * A node is the kernel's number plus one. NUMA_NODE_ANY: unknown, or there is only one node. All of
 * this affects speed only, so failures are ignored without a message.
 */
#pragma once

#include <sched.h>
#include <stddef.h>

enum { NUMA_NODE_ANY = 0 };

/* The default of `sysfs`; tests pass a tree of their own. */
#define NUMA_SYSFS "/sys"

/* Return the node of a PCI device, given as "0000:65:00.0". */
int numa_node_of_pci(const char *sysfs, const char *bus_id);

/* Allocate untouched pages of the memory, which begins at a page, preferably on the node. */
void numa_prefer_node(void *memory, size_t nbytes, int node);

/*
 * Restrict the calling thread, and threads that it starts, to its CPUs that belong to the node, if
 * there are any. numa_unbind_thread() undoes this.
 */
struct numa_binding {
	cpu_set_t saved_cpus;
	int is_bound;
};
struct numa_binding numa_bind_thread(const char *sysfs, int node);
void numa_unbind_thread(const struct numa_binding *binding);
