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
static bool can_reserve(const struct output *output, uint64_t nbytes)
{
	return nbytes != OUTPUT_SIZE_UNKNOWN && !output->target.is_ordered &&
	       output->target.ends_at_base;
}

static int fail_no_room(const struct output *output, int r, uint64_t nbytes, uint64_t free_nbytes)
{
	char advice[SIZE_LIMIT_NBYTES];

	if (r == -EFBIG)
		return fail(r, "%s: %m: %" PRIu64 " bytes are needed%s", output->target.name,
			    nbytes, size_limit_advice(r, advice));
	return fail(r, "%s: %m: %" PRIu64 " bytes are needed, %" PRIu64 " are available",
		    output->target.name, nbytes, free_nbytes);
}

/*
 * In a file that has something already, which is gone, or behind which a part would stay, when
 * there is not enough space in the end: what can be known of that is looked at before.
 */
static int check_in_place(const struct output *output, uint64_t nbytes)
{
	const struct target *target = &output->target;
	const uint64_t end = target->base + nbytes;
	uint64_t more_nbytes, free_nbytes;
	int r;

	if (end <= target->end)
		return 0;
	more_nbytes = end - target->end;
	r = reservation_try_behind(&target->file, target->end, more_nbytes, &free_nbytes);
	return r < 0 ? fail_no_room(output, r, more_nbytes, free_nbytes) : 0;
}

int output_check_limit(const struct output *output, uint64_t nbytes)
{
	const int r = size_limit_check(output->target.base + nbytes);

	return r < 0 ? fail_no_room(output, r, nbytes, 0) : 0;
}

/* Reserve space ahead of the writers, or see at least whether there is some. */
int output_expect(struct output *output, uint64_t nbytes)
{
	uint64_t free_nbytes;
	int r;

	if (nbytes == OUTPUT_SIZE_UNKNOWN || !output->target.is_file)
		return 0;
	/* What is kept goes on from where it has come to, when the limit is higher. */
	r = output->is_kept ? 0 : output_check_limit(output, nbytes);
	if (r < 0)
		return r;
	if (!can_reserve(output, nbytes))
		return check_in_place(output, nbytes);
	if (output->cut)
		cut_back_reach(output->cut, output->target.base + nbytes);
	r = reservation_start(&output->reservation, &output->target.file, output->target.base,
			      nbytes, &free_nbytes);
	if (r == 0)
		return 0;
	file_truncate(&output->target.file, output->is_kept ? output->end : output->target.base);
	return fail_no_room(output, r, nbytes, free_nbytes);
}

void output_expect_late(struct output *output, uint64_t nbytes)
{
	uint64_t free_nbytes = reservation_free_nbytes(&output->target.file, 0);

	if (!can_reserve(output, nbytes) || free_nbytes < nbytes)
		return;
	if (output->cut)
		cut_back_reach(output->cut, output->target.base + nbytes);
	reservation_start(&output->reservation, &output->target.file, output->target.base, nbytes,
			  &free_nbytes);
}

uint64_t output_space_to_come(const struct output *output, const struct output_space_to_come *it)
{
	struct stat status;

	return fstat(output->target.file.fd, &status) == 0 && status.st_dev == it->device ?
		       it->nbytes :
		       0;
}

int output_check_room(const struct output *output, uint64_t nbytes,
		      const struct output_space_to_come *to_come)
{
	const uint64_t coming = output_space_to_come(output, to_come);
	const uint64_t free_nbytes = reservation_free_nbytes(&output->target.file,
							     nbytes > coming ? nbytes - coming : 0);

	if (output->target.is_ordered || nbytes <= coming || nbytes - coming <= free_nbytes ||
	    !reservation_is_real(&output->target.file))
		return 0;
	return fail(-ENOSPC,
		    "%s: %m: %" PRIu64 " bytes are needed for all part files, %" PRIu64
		    " are available",
		    output->target.name, nbytes, free_nbytes);
}

/* Room for what it takes, and three times as much for what its sort may store meanwhile. */
enum { AMPLE_TIMES = 4 };

bool output_has_ample_room(const struct output *output, uint64_t nbytes)
{
	return reservation_free_nbytes(&output->target.file, 0) / AMPLE_TIMES >= nbytes;
}
