/*
 * job - which device it was that failed (see job.h)
 */
#include "src/plan/job.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "src/base/diagnostics.h"
#include "src/device/device.h"

enum { NAME_NBYTES = sizeof(struct device_info) };

/* As a person knows it, and which of several. Returns `name`. */
static const char *job_device_name(const struct job *job, uint32_t device_index,
				   char name[NAME_NBYTES])
{
	const struct sort_device *device = &job->devices[device_index];
	struct device_info info;

	device_get_info(device->device, &info);
	if (job->n_devices > 1)
		snprintf(name, NAME_NBYTES, "%s (%u)", info.name, device->ordinal);
	else
		snprintf(name, NAME_NBYTES, "%s", info.name);
	return name;
}

static enum hint memory_hint(const struct job *job, enum memory_kind kind)
{
	return kind == MEMORY_DEVICE && !job->device_info.unified ? HINT_LESS_DEVICE_MEMORY :
								    HINT_LESS_MEMORY;
}

int job_fail_device(const struct job *job, uint32_t device_index, int r, const char *what)
{
	const enum hint hint = r == -ENOMEM ? memory_hint(job, MEMORY_DEVICE) : HINT_NONE;
	char name[NAME_NBYTES];

	return fail_hint(r, hint, 0, "%s: %s: %m", job_device_name(job, device_index, name), what);
}

int job_fail_memory(const struct job *job, uint32_t device_index, int r, enum memory_kind kind,
		    const char *what, uint64_t nbytes)
{
	char name[NAME_NBYTES];

	return fail_hint(r, memory_hint(job, kind), 0,
			 "%s: no %smemory for %s of %" PRIu64 " bytes: %m",
			 job_device_name(job, device_index, name),
			 kind == MEMORY_HOST ? "host " : "", what, nbytes);
}
