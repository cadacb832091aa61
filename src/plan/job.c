/*
 * job.c - failures of devices, and where the files of a sort go: temporary space and page cache
 *
 * Temporary space. A sort that must fail should fail before it starts. If its runs contain all
 * records, uncompressed, they must fit in the temporary directories and --temp-limit. If compressed
 * runs may fit, the sort starts and compresses all runs. It checks again when the first run is
 * stored: if that run did not shrink, the others will not either. After that, the spill reports a
 * full disk.
 */
#include "src/plan/job.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "io/file/file.h"
#include "src/base/diagnostics.h"
#include "src/base/size.h"
#include "src/base/system_limits.h"
#include "src/comm/comm.h"

enum { NAME_NBYTES = sizeof(struct device_info) };

/* Return `name`, set to the name that users know, with the device's number if there are several. */
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

static const char *memory_hint(const struct job *job, enum memory_kind kind)
{
	return kind == MEMORY_DEVICE && !job->device_info.unified ?
		       "; try a smaller --device-memory, or --backend=cpu" :
		       "; try a smaller -S";
}

int job_fail_device(const struct job *job, uint32_t device_index, int r, const char *what)
{
	const char *hint = r == -ENOMEM ? memory_hint(job, MEMORY_DEVICE) : "";
	char name[NAME_NBYTES];

	return fail(r, "%s: %s: %m%s", job_device_name(job, device_index, name), what, hint);
}

int job_fail_window_memory(const struct job *job, int r, enum memory_kind kind, uint64_t nbytes)
{
	char name[NAME_NBYTES];

	return fail(r, "%s: no %smemory for windows of %" PRIu64 " bytes: %m%s",
		    job_device_name(job, job->merge_device, name),
		    kind == MEMORY_HOST ? "host " : "", nbytes, memory_hint(job, kind));
}

static void get_volumes(void *context, struct stats_volumes *ret_volumes)
{
	const struct job *job = context;

	comm_get_volumes(job->comm, ret_volumes);
	spill_get_volumes(job->spill, ret_volumes);
}

void job_set_volume_source(struct job *job)
{
	stats_set_volume_source(job->stats, get_volumes, job);
}

/* --- Temporary space --- */

/*
 * Get the space for runs, including what is used. If it is not enough, look again for a while: it
 * may be short only for a moment.
 */
static int get_temp_space(const struct temp_space_demand *demand, uint64_t *ret_nbytes)
{
	struct free_space_poll poll = { 0 };
	int r;

	do {
		r = spill_free_nbytes(demand->spill, ret_nbytes);
		*ret_nbytes += r < 0 ? 0 : spill_used_nbytes(demand->spill);
	} while (r == 0 && free_space_should_retry(&poll, *ret_nbytes, demand->needed_nbytes));
	return r;
}

/* Report that less is available than needed. */
static int fail_temp_space(const struct temp_space_demand *demand, uint64_t available_nbytes,
			   const char *reason)
{
	const uint64_t needed_nbytes = demand->needed_nbytes;
	const struct number_text needed = size_format_up(needed_nbytes),
				 available = size_format_down(available_nbytes);
	const char *other_dirs = demand->n_directories > 1 ? " and the other directories" : "";

	if (demand->limit_nbytes < needed_nbytes)
		return fail(-ENOSPC,
			    "%s of temporary space needed%s, but --temp-limit leaves %s; use a "
			    "larger -S or --temp-limit",
			    needed.text, reason, available.text);
	return fail(-ENOSPC,
		    "%s%s: %m: %s of temporary space needed%s, %s available, %s missing; use a "
		    "larger -S%s",
		    demand->directories[0], other_dirs, needed.text, reason, available.text,
		    size_format_up(needed_nbytes - available_nbytes).text,
		    demand->has_checkpoint ? ", or --checkpoint in another directory" :
					     " or another -T");
}

/* If the runs may shrink, compress them instead of failing, and set *ret_needs_compression. */
static int check_temp_space(const struct temp_space_demand *demand, bool may_shrink,
			    bool *ret_needs_compression)
{
	uint64_t available_nbytes;
	int r = demand->needed_nbytes ? get_temp_space(demand, &available_nbytes) : 0;

	if (r < 0 || demand->needed_nbytes == 0 || demand->needed_nbytes <= available_nbytes)
		return r;
	if (!may_shrink)
		return fail_temp_space(demand, available_nbytes, "");
	*ret_needs_compression = true;
	compression_always_encode(demand->compression);
	return 0;
}

static int recheck_temp_space(const struct temp_space_demand *demand)
{
	const struct compression_totals totals = compression_totals(demand->compression);
	uint64_t available_nbytes;
	int r;

	if (totals.stored_nbytes < totals.items_nbytes - totals.items_nbytes / 16)
		return 0;
	r = get_temp_space(demand, &available_nbytes);
	if (r < 0 || demand->needed_nbytes <= available_nbytes)
		return r;
	return fail_temp_space(demand, available_nbytes, " (spilled data does not shrink)");
}

/* Return whether all records are spilled. -u and a limit drop some. */
static bool spills_all_records(const struct job *job)
{
	return !job->unique && job->limit == UINT64_MAX;
}

int job_check_temp_space(struct job *job, const struct sort_spec *spec)
{
	job->temp_space = (struct temp_space_demand){ .spill = job->spill,
						      .compression = job->compression,
						      .directories = spec->temp_dirs,
						      .n_directories = spec->n_temp_dirs,
						      .limit_nbytes = spec->temp_limit_nbytes,
						      .needed_nbytes = job->plan.temp_nbytes,
						      .has_checkpoint = spec->checkpoint_path };
	job->needs_compression = false;
	return check_temp_space(&job->temp_space,
				spec->compression.mode != COMPRESS_NONE || !spills_all_records(job),
				&job->needs_compression);
}

int job_recheck_temp_space(const struct job *job)
{
	return job->needs_compression && spills_all_records(job) ?
		       recheck_temp_space(&job->temp_space) :
		       0;
}

/* --- The page cache --- */

/* From this size on, measuring which method is faster pays. */
static const uint64_t min_adaptive_nbytes = UINT64_C(256) << 20;

enum cache_policy cache_policy_choose(const struct job *job, uint64_t nbytes)
{
	const unsigned n_jobs = job->n_jobs_on_host ? job->n_jobs_on_host : 1;
	const uint64_t available_nbytes = memory_available_nbytes("") / n_jobs;
	uint64_t planned_nbytes = job->plan.memory_nbytes;

	/*
	 * A small input does not fill a large memory. If the size was unknown, this is called after
	 * reading, and what the input takes is no longer available.
	 */
	if (job->plan.input_nbytes == PLAN_SIZE_UNKNOWN)
		planned_nbytes = 0;
	else if (job->plan.input_nbytes < planned_nbytes / 2)
		planned_nbytes = 2 * job->plan.input_nbytes;
	if (nbytes > 0 &&
	    (available_nbytes < planned_nbytes || nbytes > available_nbytes - planned_nbytes))
		return CACHE_BYPASS;
	/* With a GPU, the CPUs have nothing else to do than to copy to the cache. */
	return job->plan.sorts_on_cpu && nbytes >= min_adaptive_nbytes ? CACHE_ADAPTIVE : CACHE_USE;
}

/* With more threads than one file's lock serves, the cache is faster than a disk. */
void cache_policy_apply_to_spill(enum cache_policy policy, uint32_t n_writers, struct spill *spill)
{
	const bool copies_are_faster = n_writers > PLAN_MAX_FILE_WRITERS;

	if (copies_are_faster)
		spill_set_n_writers(spill, n_writers);
	switch (policy) {
	case CACHE_BYPASS:
		spill_bypass_cache(spill);
		break;
	case CACHE_ADAPTIVE:
		if (!copies_are_faster)
			spill_use_adaptive_io(spill);
		break;
	case CACHE_USE:
		break;
	}
}
