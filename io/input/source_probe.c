/*
 * source_probe - what a source contributes (see source.h)
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config.h"
#include "io/input/part_manifest.h"
#include "io/input/source_internal.h"
#include "src/base/diagnostics.h"

/*
 * Files that the kernel makes up (/proc) are regular and say 0, but have something to read. 1, 0,
 * or a negative errno after a message: what cannot be read must not be taken for something else.
 */
static int has_unreported_bytes(const struct source *source)
{
	char byte;
	int r;

	if (source->nbytes > 0)
		return 0;
	r = file_read_at(&source->file, source->base, &byte, 1);
	if (r == -ENODATA)
		return 0;
	return r < 0 ? fail(r, "%s: read: %m", source->name) : 1;
}

/* What zstd adds to what does not shrink, at most, and a frame of it. */
enum { MAX_OVERHEAD_NBYTES = 1 << 20 };

/* Of a compressed file that is read as a stream. */
static void record_window(struct source *source)
{
	unsigned char header[ZST_HEADER_NBYTES];

	if (source->nbytes >= sizeof header &&
	    file_read_at(&source->file, source->base, header, sizeof header) == 0)
		source->window_nbytes = source_window_nbytes(header, sizeof header);
}

/* A compressed file: its content's size if it has an index that is of use, else a stream. */
static int measure_content(struct source_table *table, struct source *source)
{
	struct zst_index index = { 0 };
	uint64_t content_nbytes;
	int r = zst_index_read(&source->file, source->base, source->nbytes, &index);

	if (r < 0 && r != -ENODATA)
		return fail(r, "%s: cannot read its index of frames: %m", source->name);
	source->zst_end = source->base + source->nbytes;
	if (r < 0 || zst_index_max_content_nbytes(&index) > ZST_READER_MAX_FRAME_NBYTES ||
	    zst_index_max_stored_nbytes(&index) >
		    ZST_READER_MAX_FRAME_NBYTES + MAX_OVERHEAD_NBYTES) {
		zst_index_free(&index);
		record_window(source);
		source->is_stream = true;
		source->nbytes = 0;
		return 0;
	}
	content_nbytes = zst_index_total_nbytes(&index);
	r = source_detect_content(table, source);
	if (r < 0) {
		zst_index_free(&index);
		return r;
	}
	r = zst_reader_open(source->name, index, source->base, &table->codec_pool,
			    &source->zst_reader);
	if (r < 0)
		return r;
	source->base = 0;
	source->nbytes = content_nbytes;
	return 0;
}

/* The descriptor is open. */
static int measure_regular(struct source_table *table, struct source *source,
			   const struct stat *status)
{
	const off_t base = source->path ? 0 : lseek(source->endpoint.fd, 0, SEEK_CUR);
	int r;

	if (base < 0)
		return fail(-errno, "%s: cannot seek: %m", source->name);
	source->base = source->start_offset = (uint64_t)base;
	source->nbytes = base < status->st_size ? (uint64_t)(status->st_size - base) : 0;
	r = has_unreported_bytes(source);
	if (r < 0)
		return r;
	source->is_stream = r > 0;
	source->is_file = !source->is_stream;
	r = source_detect_file(table, source);
	return r > 0 ? measure_content(table, source) : r;
}

static bool is_message_socket(const struct source *source, const struct stat *status)
{
	int type;
	socklen_t nbytes = sizeof type;

	return !source->path && S_ISSOCK(status->st_mode) &&
	       getsockopt(source->endpoint.fd, SOL_SOCKET, SO_TYPE, &type, &nbytes) == 0 &&
	       type != SOCK_STREAM;
}

/* Only a directory of part files stands for records. */
static int probe_directory(const struct source_table *table, struct source *source)
{
	char *path;
	bool has_manifest;

	if (!source->path || source->manifest || table->rules.mode == FORMAT_RAW)
		return fail(-EISDIR, "%s: cannot read: %m", source->name);
	if (asprintf(&path, "%s/" PART_MANIFEST_NAME, source->path) < 0)
		return fail(-ENOMEM, "%s: %m", source->name);
	has_manifest = access(path, F_OK) == 0;
	free(path);
	if (!has_manifest)
		return fail(-EISDIR, "%s: cannot read: %m", source->name);
	source->is_manifest = true;
	return table->rules.accepts_manifests ?
		       0 :
		       fail(-EINVAL,
			    "%s: is a directory of sorted part files; " GSORT_PROGRAM
			    " -m merges them, and -c checks them",
			    source->name);
}

int source_probe(struct source_table *table, struct source *source)
{
	struct stat status;
	int r;

	if (source->endpoint.kind == ENDPOINT_RENDEZVOUS) {
		source->is_stream = true;
		return 0;
	}
	r = source->path ? stat(source->path, &status) : fstat(source->endpoint.fd, &status);
	if (r < 0)
		return fail(-errno, "%s: cannot open: %m", source->name);
	if (S_ISDIR(status.st_mode))
		return probe_directory(table, source);
	if (is_message_socket(source, &status))
		return fail(-ENOTSUP,
			    "%s: is a socket of messages, of which parts would be lost: give a "
			    "stream, or a pipe",
			    source->name);
	source->identity = file_id_from_stat(&status);
	source->state = file_state_from_stat(&status);
	if (!S_ISREG(status.st_mode)) {
		source->is_stream = true;
		if (source->path && access(source->path, R_OK) < 0)
			return fail(-errno, "%s: cannot open: %m", source->name);
		return 0;
	}
	r = source_acquire(table, source);
	if (r < 0)
		return r;
	r = measure_regular(table, source, &status);
	source_release(table, source);
	return r;
}

void source_narrow(struct source *source, uint64_t skip_nbytes, uint64_t nbytes)
{
	source->trailing_nbytes += source->nbytes - skip_nbytes - nbytes;
	source->base += skip_nbytes;
	source->nbytes = nbytes;
}
