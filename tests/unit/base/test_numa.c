/*
 * test_numa - the node of a device in a made-up tree, and threads that are bound to it
 */
#include "src/base/thread.h"

#include <sys/mman.h>

#include "tests/support/io_fixture.h"
#include "tests/support/unit_test.h"

static const char *make_tree(const char *online)
{
	write_text("sys/devices/system/node/online", online);
	write_text("sys/bus/pci/devices/0000:65:00.0/numa_node", "1\n");
	write_text("sys/bus/pci/devices/0000:66:00.0/numa_node", "-1\n");
	return fixture_path("sys");
}

DIRECTORY_TEST(pci_device_has_a_node)
{
	static const char *const several[] = { "0-1\n", "0,1\n", "0-3,8\n" };

	for (unsigned i = 0; i < sizeof several / sizeof several[0]; i++) {
		char sysfs[128];

		strcpy(sysfs, make_tree(several[i]));
		assert_int_equal(numa_node_of_pci(sysfs, "0000:65:00.0"), 2);
		assert_int_equal(numa_node_of_pci(sysfs, "0000:66:00.0"), NUMA_NODE_ANY);
		assert_int_equal(numa_node_of_pci(sysfs, "0000:67:00.0"), NUMA_NODE_ANY);
	}
}

DIRECTORY_TEST(single_node_is_not_used)
{
	char sysfs[128];

	strcpy(sysfs, make_tree("0\n"));
	assert_int_equal(numa_node_of_pci(sysfs, "0000:65:00.0"), NUMA_NODE_ANY);
	assert_int_equal(numa_node_of_pci(fixture_path("nowhere"), "0000:65:00.0"), NUMA_NODE_ANY);
}

static cpu_set_t processors(void)
{
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
	return set;
}

/* CPUs of node 1: the first that this thread may use, and one that no machine has. */
DIRECTORY_TEST(bound_thread_runs_on_node_cpus)
{
	const cpu_set_t before = processors();
	struct numa_binding binding;
	char list[64], sysfs[128];
	cpu_set_t there, after;
	int first = 0;

	while (!CPU_ISSET(first, &before))
		first++;
	snprintf(list, sizeof list, "%d,1022-1023\n", first);
	write_text("sys/devices/system/node/node1/cpulist", list);
	write_text("sys/devices/system/node/node2/cpulist", "1022-1023\n");
	strcpy(sysfs, fixture_path("sys"));

	binding = numa_bind_thread(sysfs, 2);
	there = processors();
	numa_unbind_thread(&binding);
	after = processors();
	assert_int_equal(CPU_COUNT(&there), 1);
	assert_true(CPU_ISSET(first, &there));
	assert_true(CPU_EQUAL(&before, &after));

	for (int i = 0; i < 3; i++) {
		static const int others[] = { NUMA_NODE_ANY, 1, 3 };

		binding = numa_bind_thread(sysfs, others[i]);
		there = processors();
		numa_unbind_thread(&binding);
		assert_true(CPU_EQUAL(&before, &there));
	}
}

/* The node of the memory is not checked. */
TEST(preferred_memory_is_memory)
{
	enum { NBYTES = 1 << 16 };
	char *memory =
		mmap(NULL, NBYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(memory != MAP_FAILED);
	numa_prefer_node(memory, NBYTES, NUMA_NODE_ANY);
	numa_prefer_node(memory, NBYTES / 2, 1);
	numa_prefer_node(memory + NBYTES / 2, NBYTES / 2, 64);
	memset(memory, 1, NBYTES);
	assert_int_equal(memory[NBYTES - 1], 1);
	munmap(memory, NBYTES);
}
