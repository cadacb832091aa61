/*
 * gsort_two_devices - gsort on two devices that are imitated: the CPU's, with memories that must
 * not mix
 *
 * GSORT_TEST_PEER_ACCESS in the environment: one may read what the other has. --backend=cpu is the
 * CPU itself.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/separate_memory_backend.h"

enum { N_DEVICES = 2 };

static struct backend apart;
/* Without references: what refers to memory of the host is for processors. */
static const struct backend_kind *kinds[N_LAYOUT_KINDS];

static void describe(const struct device *device, struct device_info *ret_info)
{
	backend_owning.describe(device, ret_info);
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
	owned_memory_set(N_DEVICES, getenv("GSORT_TEST_PEER_ACCESS"));
	apart = backend_owning;
	apart.describe = describe;
	memcpy(kinds, apart.kinds, sizeof kinds);
	kinds[LAYOUT_REFERENCES] = NULL;
	apart.kinds = kinds;
	*ret_backend = &apart;
	return 0;
}
