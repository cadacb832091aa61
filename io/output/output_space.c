/*
 * output_space - space for an output, asked for before it is written (see output.h)
 */
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "io/file/size_limit.h"
#include "io/output/output_internal.h"
#include "src/base/diagnostics.h"

/* Only if the file then ends where the output does. */
static bool can_preallocate(const struct output *output, uint64_t nbytes)
{
	return nbytes != OUTPUT_SIZE_UNKNOWN && !output->target.is_ordered &&
	       output->target.ends_at_base;
}

static int fail_no_space(const struct output *output, int r, uint64_t nbytes, uint64_t free_nbytes)
{
	char advice[SIZE_LIMIT_HINT_NBYTES];

	if (r == -EFBIG)
		return fail(r, "%s: %m: %" PRIu64 " bytes are needed%s", output->target.name,
			    nbytes, size_limit_hint(r, advice));
	return fail(r, "%s: %m: %" PRIu64 " bytes are needed, %" PRIu64 " are available",
		    output->target.name, nbytes, free_nbytes);
}

/*
 * In a file that has something already, which is gone, or behind which a part would stay, when
 * there is not enough space in the end: what can be known of that is looked at before.
 */
static int check_space_in_place(const struct output *output, uint64_t nbytes)
{
	const struct target *target = &output->target;
	const uint64_t end = target->base + nbytes;
	uint64_t growth_nbytes, free_nbytes;
	int r;

	if (end <= target->old_end)
		return 0;
	growth_nbytes = end - target->old_end;
	r = preallocate_check_growth(&target->file, target->old_end, growth_nbytes, &free_nbytes);
	return r < 0 ? fail_no_space(output, r, growth_nbytes, free_nbytes) : 0;
}

int output_check_limit(const struct output *output, uint64_t nbytes)
{
	const int r = size_limit_check(output->target.base + nbytes);

	return r < 0 ? fail_no_space(output, r, nbytes, 0) : 0;
}

/* Reserve space ahead of the writers, or see at least whether there is some. */
int output_set_expected_size(struct output *output, uint64_t nbytes)
{
	uint64_t free_nbytes;
	int r;

	if (nbytes == OUTPUT_SIZE_UNKNOWN || !output->target.is_regular)
		return 0;
	r = output_check_limit(output, nbytes);
	if (r < 0)
		return r;
	if (!can_preallocate(output, nbytes))
		return check_space_in_place(output, nbytes);
	if (output->truncate_entry)
		truncate_extend(output->truncate_entry, output->target.base + nbytes);
	r = preallocate_start(&output->preallocation, &output->target.file, output->target.base,
			      nbytes, &free_nbytes);
	if (r == 0)
		return 0;
	file_truncate(&output->target.file, output->target.base);
	return fail_no_space(output, r, nbytes, free_nbytes);
}

void output_update_expected_size(struct output *output, uint64_t nbytes)
{
	uint64_t free_nbytes = preallocate_free_space(&output->target.file, 0);

	if (!can_preallocate(output, nbytes) || free_nbytes < nbytes)
		return;
	if (output->truncate_entry)
		truncate_extend(output->truncate_entry, output->target.base + nbytes);
	preallocate_start(&output->preallocation, &output->target.file, output->target.base, nbytes,
			  &free_nbytes);
}

int output_check_space(const struct output *output, uint64_t nbytes)
{
	const uint64_t free_nbytes = preallocate_free_space(&output->target.file, nbytes);

	if (output->target.is_ordered || nbytes <= free_nbytes ||
	    !preallocate_is_supported(&output->target.file))
		return 0;
	return fail(-ENOSPC,
		    "%s: %m: %" PRIu64 " bytes are needed for all part files, %" PRIu64
		    " are available",
		    output->target.name, nbytes, free_nbytes);
}

/* Room for what it takes, and three times as much for what its sort may store meanwhile. */
enum { AMPLE_SPACE_FACTOR = 4 };

bool output_has_ample_space(const struct output *output, uint64_t nbytes)
{
	return preallocate_free_space(&output->target.file, 0) / AMPLE_SPACE_FACTOR >= nbytes;
}
