/*
 * output_shared - an output that other processes write to as well (see output.h)
 */
#include <errno.h>
#include <sys/stat.h>

#include "io/output/output_internal.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"

static int open_shared(const struct syscalls *calls, const char *path, const struct target_way *way,
		       struct output **ret_output)
{
	struct output *output = output_make(calls, path);
	int r;

	if (!output)
		return -ENOMEM;
	r = target_open(calls, path, way, &output->target);
	if (r == 0 && !output->target.replacement)
		r = fail(-EINVAL, "%s: is no regular file, which several ranks could write to",
			 path);
	if (r < 0) {
		output_abort(output);
		return r;
	}
	*ret_output = output;
	return 0;
}

int output_open_shared(const struct syscalls *calls, const char *path, uint64_t expected_nbytes,
		       bool tells, const struct leftovers_owner *owner, struct output **ret_output)
{
	struct target_way way = { .kind = TARGET_SHARED, .is_silent = !tells };
	int r;

	if (owner)
		way.owner = *owner;
	r = open_shared(calls, path, &way, ret_output);
	if (r == 0)
		r = output_expect(*ret_output, expected_nbytes);
	return r;
}

int output_join(const struct syscalls *calls, const char *path, const char *name,
		struct output **ret_output)
{
	const struct target_way way = { .kind = TARGET_JOINED, .name = name };

	return open_shared(calls, path, &way, ret_output);
}

bool output_reserves(const struct output *output)
{
	return output->reservation.steps ? output->reservation.is_real :
					   reservation_is_real(&output->target.file);
}

void output_share(struct output *output, uint64_t nbytes)
{
	reservation_join(&output->reservation, &output->target.file, output->target.base, nbytes);
	file_writer_share(&output->writer);
}

const char *output_shared_name(const struct output *output)
{
	return replacement_hidden_name(output->target.replacement);
}

uint64_t output_stripe_nbytes(const struct output *output)
{
	const uint64_t least = 1 << 20, most = 16 << 20;
	struct stat status;
	uint64_t nbytes;

	if (fstat(output->target.file.fd, &status) < 0 || status.st_blksize < 0)
		return least;
	nbytes = (uint64_t)status.st_blksize;
	if (nbytes < least) /* whole ones of it */
		nbytes = nbytes ? round_up(least, nbytes) : least;
	return nbytes < most ? nbytes : most;
}

void output_note_others(struct output *output, uint64_t nbytes, uint64_t end)
{
	pthread_mutex_lock(&output->lock);
	output->written_nbytes += nbytes;
	if (output->end < end)
		output->end = end;
	pthread_mutex_unlock(&output->lock);
}

int output_leave(struct output *output)
{
	/* What a file system of several machines could not write it may say only now. */
	const int r = target_close(&output->target);

	if (r < 0) {
		fail(r, "%s: close: %m", output->target.name);
		output_abort(output);
		return r;
	}
	replacement_leave(output->target.replacement);
	output_free(output);
	return 0;
}
