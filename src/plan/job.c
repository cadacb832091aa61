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

static const char *memory_advice(const struct job *job, enum memory_kind kind)
{
	return kind == MEMORY_DEVICE && !job->device_info.unified ?
		       "; try a smaller --device-memory, or --backend=cpu" :
		       "; try a smaller -S";
}

int job_fail_device(const struct job *job, uint32_t device_index, int r, const char *what)
{
	const char *advice = r == -ENOMEM ? memory_advice(job, MEMORY_DEVICE) : "";
	char name[NAME_NBYTES];

	return fail(r, "%s: %s: %m%s", job_device_name(job, device_index, name), what, advice);
}

int job_fail_memory(const struct job *job, uint32_t device_index, int r, enum memory_kind kind,
		    const char *what, uint64_t nbytes)
{
	char name[NAME_NBYTES];

	return fail(r, "%s: no %smemory for %s of %" PRIu64 " bytes: %m%s",
		    job_device_name(job, device_index, name), kind == MEMORY_HOST ? "host " : "",
		    what, nbytes, memory_advice(job, kind));
}
