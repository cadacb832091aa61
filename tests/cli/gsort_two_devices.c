/*
 * gsort_two_devices - gsort on two simulated devices: the CPU's, with separate memories
 *
 * With GSORT_TEST_PEER_ACCESS in the environment, a device may read the other's memory.
 * --backend=cpu is the real CPU back end.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/separate_memory_backend.h"

enum { N_DEVICES = 2 };

static struct backend apart;
/* Without indirect layouts, which refer to host memory. */
static const struct backend_layout_ops *kinds[N_LAYOUT_KINDS];

static void describe_device(const struct device *device, struct device_info *ret_info)
{
	separate_memory_backend.get_info(device, ret_info);
	strcpy(ret_info->name, "a device apart");
	ret_info->unified = false;
	ret_info->memory_nbytes = 1 << 20;
}

int __real_backend_choose(enum backend_choice choice, uint64_t input_nbytes, unsigned n_threads,
			  const struct backend **ret_backend);
int __wrap_backend_choose(enum backend_choice choice, uint64_t input_nbytes, unsigned n_threads,
			  const struct backend **ret_backend);
int __wrap_backend_choose(enum backend_choice choice, uint64_t input_nbytes, unsigned n_threads,
			  const struct backend **ret_backend)
{
	if (choice == BACKEND_CPU)
		return __real_backend_choose(choice, input_nbytes, n_threads, ret_backend);
	separate_memory_set_devices(N_DEVICES, getenv("GSORT_TEST_PEER_ACCESS"));
	apart = separate_memory_backend;
	apart.get_info = describe_device;
	memcpy(kinds, apart.ops_by_layout, sizeof kinds);
	kinds[LAYOUT_INDIRECT] = NULL;
	apart.ops_by_layout = kinds;
	*ret_backend = &apart;
	return 0;
}
