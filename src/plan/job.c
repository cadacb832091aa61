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
static const char *worker_name(const struct job *job, uint32_t worker, char name[NAME_NBYTES])
{
	const struct worker *named = &job->workers[worker];
	struct device_info info;

	device_describe(named->device, &info);
	if (job->n_workers > 1)
		snprintf(name, NAME_NBYTES, "%s (%u)", info.name, named->number);
	else
		snprintf(name, NAME_NBYTES, "%s", info.name);
	return name;
}

static enum hint hint_of_memory(const struct job *job, enum memory kind)
{
	return kind == MEMORY_DEVICE && !job->info.unified ? HINT_LESS_DEVICE_MEMORY :
							     HINT_LESS_MEMORY;
}

int job_fail_device(const struct job *job, uint32_t worker, int r, const char *what)
{
	const enum hint hint = r == -ENOMEM ? hint_of_memory(job, MEMORY_DEVICE) : HINT_NONE;
	char name[NAME_NBYTES];

	return fail_hint(r, hint, 0, "%s: %s: %m", worker_name(job, worker, name), what);
}

int job_fail_memory(const struct job *job, uint32_t worker, int r, enum memory kind,
		    const char *what, uint64_t nbytes)
{
	char name[NAME_NBYTES];

	return fail_hint(r, hint_of_memory(job, kind), 0,
			 "%s: no %smemory for %s of %" PRIu64 " bytes: %m",
			 worker_name(job, worker, name), kind == MEMORY_HOST ? "host " : "", what,
			 nbytes);
}
