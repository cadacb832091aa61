/*
 * source_check - is a source still what it was, and has all of it been read? (see source.h)
 */
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "io/input/source_internal.h"
#include "src/base/diagnostics.h"

uint64_t source_end(const struct source *source)
{
	return source->zst_end ? source->zst_end :
				 source->base + source->nbytes + source->trailing_nbytes;
}

static int fail_changed(const struct source *source, uint64_t old_nbytes, uint64_t new_nbytes)
{
	return fail(-EBUSY,
		    "%s: changed while it was read: %" PRIu64 " bytes at first, %" PRIu64 " now",
		    source->name, old_nbytes, new_nbytes);
}

int source_fail_changed(const struct source *source, uint64_t new_nbytes)
{
	return fail_changed(source, source->base + source->nbytes + source->trailing_nbytes,
			    source->base + new_nbytes);
}

int source_check_size(const struct source *source)
{
	uint64_t nbytes;
	const int r = file_size(&source->file, &nbytes);

	if (r < 0)
		return fail(r, "%s: cannot look at its size: %m", source->name);
	return nbytes == source_end(source) ? 0 : fail_changed(source, source_end(source), nbytes);
}

/* The file as it is now; false: its name is gone, or another file's. */
static bool restat_source(const struct source *source, struct stat *ret_status)
{
	const int r = source->path ? stat(source->path, ret_status) :
				     fstat(source->endpoint.fd, ret_status);

	return r == 0 && file_id_equal(file_id_from_stat(ret_status), source->identity);
}

int source_check_state(const struct source *source)
{
	struct file_state new_state;
	struct stat status;

	if (!source->is_file || !restat_source(source, &status))
		return 0;
	new_state = file_state_from_stat(&status);
	if (file_state_is_unchanged(&source->state, &new_state))
		return 0;
	return fail(-EBUSY,
		    "%s: changed after it was read, so that what was read is not what is in it "
		    "now; do it again when nobody writes to it",
		    source->name);
}

int source_check_end(const struct source *source)
{
	off_t position;

	if (!source->zst_end)
		return 0;
	position = lseek(source->file.fd, 0, SEEK_CUR);
	if ((uint64_t)position != source->zst_end)
		return fail_changed(source, source->zst_end, (uint64_t)position);
	return source_check_size(source);
}

void source_seek_end(const struct source *source)
{
	const bool is_file = !source->is_stream || source->zst_end;

	if (!source->path && is_file)
		lseek(source->endpoint.fd, (off_t)source_end(source), SEEK_SET);
}
