/*
 * temp_space_check - does what is to be spilled fit? (see temp_space_check.h)
 */
#include "src/plan/temp_space_check.h"

#include <errno.h>

#include "io/file/free_space.h"
#include "src/base/diagnostics.h"
#include "src/base/size.h"
#include "src/plan/job.h"
#include "src/plan/sort_spec.h"

/* Bytes that can be stored, with those that are: if that is not enough, not only for a moment. */
static int find_available(const struct job *job, uint64_t *ret_nbytes)
{
	struct free_space_looks looks = { 0 };
	int r;

	do {
		r = spill_free_nbytes(job->spill, ret_nbytes);
		*ret_nbytes += r < 0 ? 0 : spill_used_nbytes(job->spill);
	} while (r == 0 && free_space_may_grow(&looks, *ret_nbytes, job->plan.temporary_nbytes));
	return r;
}

/* What makes more room, or needs less. */
static enum hint advise(const struct sort_spec *spec, bool is_limited)
{
	if (is_limited)
		return HINT_MEMORY_OR_HIGHER_LIMIT;
	return spec->checkpoint_path ? HINT_MEMORY_OR_CHECKPOINT : HINT_MEMORY_OR_TEMPORARY;
}

static int fail_missing(const struct job *job, const struct sort_spec *spec,
			uint64_t available_nbytes, const char *why)
{
	const uint64_t needed_nbytes = job->plan.temporary_nbytes;
	char needed[32], available[32], missing[32];
	const bool is_limited = spec->temp_limit_nbytes < needed_nbytes;
	const char *others = spec->n_temp_dirs > 1 ? " and the other directories" : "";

	size_format_up(needed_nbytes, needed);
	size_format_down(available_nbytes, available);
	size_format_up(needed_nbytes - available_nbytes, missing);
	if (is_limited)
		return fail_hint(-ENOSPC, advise(spec, true), 0,
				 "%s of temporary space are needed%s, and the limit leaves %s",
				 needed, why, available);
	return fail_hint(-ENOSPC, advise(spec, false), 0,
			 "%s%s: %m: %s of temporary space are needed%s, %s are available, %s are "
			 "missing",
			 spec->temp_dirs[0], others, needed, why, available, missing);
}

/* Is nothing left out of what is spilled? */
static bool is_spilled_whole(const struct job *job)
{
	return !job->unique && job->limit == UINT64_MAX;
}

int temporary_space_check(struct job *job, const struct sort_spec *spec)
{
	const bool is_raw = spec->compression.mode == COMPRESS_NONE;
	const uint64_t needed_nbytes = job->plan.temporary_nbytes;
	uint64_t available_nbytes;
	int r = needed_nbytes ? find_available(job, &available_nbytes) : 0;

	if (r < 0 || needed_nbytes == 0 || needed_nbytes <= available_nbytes)
		return r;
	if (is_raw && is_spilled_whole(job))
		return fail_missing(job, spec, available_nbytes, "");
	job->space = (struct temporary_space){ .spec = spec, .is_short = true };
	compression_save_space(job->compression);
	return 0;
}

int temporary_space_check_again(const struct job *job)
{
	struct compression_totals totals;
	uint64_t available_nbytes;
	int r;

	if (!job->space.is_short || !is_spilled_whole(job))
		return 0;
	totals = compression_totals(job->compression);
	if (totals.stored_nbytes < totals.items_nbytes - totals.items_nbytes / 16)
		return 0;
	r = find_available(job, &available_nbytes);
	if (r < 0 || job->plan.temporary_nbytes <= available_nbytes)
		return r;
	return fail_missing(job, job->space.spec, available_nbytes,
			    ", since what is spilled does not shrink");
}
