/*
 * temp_space_check - does what is to be spilled fit? (see temp_space_check.h)
 */
#include "src/plan/temp_space_check.h"

#include <errno.h>

#include "io/file/file.h"
#include "src/base/diagnostics.h"
#include "src/base/size.h"
#include "src/plan/job.h"
#include "src/plan/sort_spec.h"

/* Bytes that can be stored, with those that are: if that is not enough, not only for a moment. */
static int get_available_nbytes(const struct job *job, uint64_t *ret_nbytes)
{
	struct free_space_poll poll = { 0 };
	int r;

	do {
		r = spill_free_nbytes(job->spill, ret_nbytes);
		*ret_nbytes += r < 0 ? 0 : spill_used_nbytes(job->spill);
	} while (r == 0 && free_space_should_retry(&poll, *ret_nbytes, job->plan.temp_nbytes));
	return r;
}

static int fail_no_temp_space(const struct job *job, const struct sort_spec *spec,
			      uint64_t available_nbytes, const char *reason)
{
	const uint64_t needed_nbytes = job->plan.temp_nbytes;
	char needed[32], available[32], missing[32];
	const bool is_limited = spec->temp_limit_nbytes < needed_nbytes;
	const char *other_dirs = spec->n_temp_dirs > 1 ? " and the other directories" : "";

	size_format_up(needed_nbytes, needed);
	size_format_down(available_nbytes, available);
	size_format_up(needed_nbytes - available_nbytes, missing);
	if (is_limited)
		return fail(-ENOSPC,
			    "%s of temporary space are needed%s, and the limit leaves %s; use a "
			    "larger -S or --temp-limit",
			    needed, reason, available);
	return fail(-ENOSPC,
		    "%s%s: %m: %s of temporary space are needed%s, %s are available, %s are "
		    "missing; use a larger -S%s",
		    spec->temp_dirs[0], other_dirs, needed, reason, available, missing,
		    spec->checkpoint_path ? ", or --checkpoint in another directory" :
					    " or another -T");
}

/* Is nothing left out of what is spilled? */
static bool spills_all_records(const struct job *job)
{
	return !job->unique && job->limit == UINT64_MAX;
}

int temp_space_check(struct job *job, const struct sort_spec *spec)
{
	const bool is_uncompressed = spec->compression.mode == COMPRESS_NONE;
	const uint64_t needed_nbytes = job->plan.temp_nbytes;
	uint64_t available_nbytes;
	int r = needed_nbytes ? get_available_nbytes(job, &available_nbytes) : 0;

	if (r < 0 || needed_nbytes == 0 || needed_nbytes <= available_nbytes)
		return r;
	if (is_uncompressed && spills_all_records(job))
		return fail_no_temp_space(job, spec, available_nbytes, "");
	job->temp_space = (struct temp_space){ .spec = spec, .needs_compression = true };
	compression_always_encode(job->compression);
	return 0;
}

int temp_space_recheck(const struct job *job)
{
	struct compression_totals totals;
	uint64_t available_nbytes;
	int r;

	if (!job->temp_space.needs_compression || !spills_all_records(job))
		return 0;
	totals = compression_totals(job->compression);
	if (totals.stored_nbytes < totals.items_nbytes - totals.items_nbytes / 16)
		return 0;
	r = get_available_nbytes(job, &available_nbytes);
	if (r < 0 || job->plan.temp_nbytes <= available_nbytes)
		return r;
	return fail_no_temp_space(job, job->temp_space.spec, available_nbytes,
				  ", since what is spilled does not shrink");
}
