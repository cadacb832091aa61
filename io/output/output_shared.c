/*
 * output_shared - an output that other processes write to as well (see output.h)
 */
#include <errno.h>
#include <sys/stat.h>

#include "io/output/output_internal.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"

static int open_shared_target(const struct syscalls *calls, const char *path,
			      const struct target_params *params, struct output **ret_output)
{
	struct output *output = output_alloc(calls, path);
	int r;

	if (!output)
		return -ENOMEM;
	r = target_open(calls, path, params, &output->target);
	if (r == 0 && !output->target.atomic_file)
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
		       bool report_orphans, const struct orphan_owner *owner,
		       struct output **ret_output)
{
	struct target_params params = { .kind = TARGET_SHARED, .is_silent = !report_orphans };
	int r;

	if (owner)
		params.owner = *owner;
	r = open_shared_target(calls, path, &params, ret_output);
	if (r == 0)
		r = output_set_expected_size(*ret_output, expected_nbytes);
	return r;
}

int output_open_shared_existing(const struct syscalls *calls, const char *path, const char *name,
				struct output **ret_output)
{
	const struct target_params params = { .kind = TARGET_SHARED_EXISTING, .name = name };

	return open_shared_target(calls, path, &params, ret_output);
}

int output_open_part(const struct file *directory, const char *path, bool is_shared,
		     struct output **ret_output)
{
	const struct target_params params = { .kind = is_shared ? TARGET_SHARED : TARGET_PRIVATE,
					      .is_silent = true,
					      .directory = directory };

	return open_shared_target(directory->calls, path, &params, ret_output);
}

int output_open_part_existing(const struct file *directory, const char *path, const char *name,
			      struct output **ret_output)
{
	const struct target_params params = { .kind = TARGET_SHARED_EXISTING,
					      .name = name,
					      .directory = directory };

	return open_shared_target(directory->calls, path, &params, ret_output);
}

bool output_can_preallocate(const struct output *output)
{
	return output->preallocation.step_is_allocated ?
		       output->preallocation.is_supported :
		       preallocate_is_supported(&output->target.file);
}

void output_enable_shared_mmap(struct output *output, uint64_t nbytes)
{
	preallocate_start_shared(&output->preallocation, &output->target.file, output->target.base,
				 nbytes);
	file_writer_set_shared(&output->writer);
}

const char *output_shared_name(const struct output *output)
{
	return atomic_file_temp_name(output->target.atomic_file);
}

uint64_t output_stripe_nbytes(const struct output *output)
{
	const uint64_t min_nbytes = 1 << 20, max_nbytes = 16 << 20;
	struct stat status;
	uint64_t nbytes;

	if (fstat(output->target.file.fd, &status) < 0 || status.st_blksize < 0)
		return min_nbytes;
	nbytes = (uint64_t)status.st_blksize;
	if (nbytes < min_nbytes) /* whole ones of it */
		nbytes = nbytes ? round_up(min_nbytes, nbytes) : min_nbytes;
	return nbytes < max_nbytes ? nbytes : max_nbytes;
}

void output_record_remote_writes(struct output *output, uint64_t nbytes, uint64_t end)
{
	pthread_mutex_lock(&output->lock);
	output->written_nbytes += nbytes;
	if (output->written_end < end)
		output->written_end = end;
	pthread_mutex_unlock(&output->lock);
}

int output_close_shared(struct output *output)
{
	/* What a file system of several machines could not write it may say only now. */
	const int r = target_close(&output->target);

	if (r < 0) {
		fail(r, "%s: close: %m", output->target.name);
		output_abort(output);
		return r;
	}
	atomic_file_close(output->target.atomic_file);
	output_free(output);
	return 0;
}
