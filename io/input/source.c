/*
 * source - one of the files of an input (see source.h)
 *
 * In this order: the table; descriptors; detection of the format; probing; reads at an offset;
 * reads of streams; checks that the file has not changed.
 */
#include "io/input/source.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config.h"
#include "io/file/direct_io.h"
#include "io/input/part_manifest.h"
#include "src/base/diagnostics.h"
#include "src/base/rendezvous.h"
#include "src/base/thread.h"

/* The first bytes of a stream's content, read to detect its format. */
struct source_head {
	size_t begin, end; /* those not consumed yet */
	unsigned char bytes[FORMAT_HEAD_NBYTES];
};

/* --- the table --- */

/*
 * Return how many released files may stay open. A sixth of the limit on descriptors leaves enough
 * for outputs, locks and temporary files.
 */
static size_t max_idle_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > 1024)
		return 256;
	return limit.rlim_cur / 6;
}

/* A larger part of the memory would evict a good part of the page cache. */
enum { LARGE_FILE_MEMORY_DIVISOR = 16 };

static uint64_t large_file_threshold(void)
{
	const long n_pages = sysconf(_SC_PHYS_PAGES), page_nbytes = sysconf(_SC_PAGESIZE);

	return n_pages > 0 ? (uint64_t)n_pages * (uint64_t)page_nbytes / LARGE_FILE_MEMORY_DIVISOR :
			     UINT64_MAX;
}

void source_table_init(struct source_table *table, const struct syscalls *calls,
		       const struct format_rules *rules)
{
	table->calls = calls;
	table->rules = *rules;
	table->max_idle = max_idle_files();
	table->large_nbytes = large_file_threshold();
	table->max_window_nbytes = ZSTD_MAX_WINDOW_NBYTES;
	table->n_open = 0;
	table->queue = NULL;
	pthread_mutex_init(&table->lock, NULL);
	codec_pool_init(&table->codec_pool, 0);
}

void source_table_destroy(struct source_table *table)
{
	io_queue_close(table->queue);
	assert(table->n_open == 0);
	pthread_mutex_destroy(&table->lock);
	codec_pool_destroy(&table->codec_pool);
}

void source_prepare(struct source *source, const char *path, struct endpoint endpoint)
{
	const bool is_stdin = endpoint.kind == ENDPOINT_PATH && strcmp(path, "-") == 0;

	if (is_stdin)
		endpoint = (struct endpoint){ .kind = ENDPOINT_DESCRIPTOR, .fd = STDIN_FILENO };
	*source = (struct source){
		.name = is_stdin ? "standard input" :
			*path    ? path :
				   "''",
		.path = endpoint.kind == ENDPOINT_PATH ? path : NULL,
		.endpoint = endpoint,
		.file = { .fd = -1 },
		.direct_file = { .fd = -1 },
	};
}

bool source_has_same_descriptor(const struct source *source, const struct source *other)
{
	return source->endpoint.kind == ENDPOINT_DESCRIPTOR &&
	       other->endpoint.kind == ENDPOINT_DESCRIPTOR &&
	       source->endpoint.fd == other->endpoint.fd;
}

/* Return where the file ends, as it was probed. */
static uint64_t source_end(const struct source *source)
{
	return source->compressed_end ? source->compressed_end :
					source->base + source->nbytes + source->trailing_nbytes;
}

/* --- dropping pages after small reads (these functions require the table's lock) --- */

/*
 * Pages that the kernel has read ahead look like pages that were cached before. So the cache is
 * checked a range ahead: when a range of the file is entered, the next one is checked. An uncached
 * range is dropped while it is read, always from its beginning, because the kernel drops huge pages
 * only as a whole. If the file is read in another order, some pages may stay.
 */
enum {
	DROP_RANGE_NBYTES = 64 << 20, /* some kernels read half of that ahead */
	DROP_STEP_NBYTES = 2 << 20,   /* a huge page */
};

static bool is_uncached(const struct source *source, uint64_t begin)
{
	const uint64_t end = source_end(source), remaining = begin < end ? end - begin : 0;

	return remaining &&
	       !direct_is_cached(&source->file, begin,
				 remaining < DROP_RANGE_NBYTES ? remaining : DROP_RANGE_NBYTES);
}

static void finish_drop_range(struct source *source)
{
	const struct source_drop_range *range = &source->drop_range;

	if (range->is_uncached)
		file_drop_cache(&source->file, range->begin, range->end - range->begin);
	source->drop_range = (struct source_drop_range){ 0 };
}

static void begin_small_read(struct source *source, uint64_t offset)
{
	const struct source_drop_range old_range = source->drop_range;
	const uint64_t begin = offset - offset % DROP_RANGE_NBYTES, end = begin + DROP_RANGE_NBYTES;
	bool uncached;

	if (old_range.end && begin == old_range.begin)
		return;
	uncached = old_range.end && begin == old_range.end ? old_range.next_is_uncached :
							     is_uncached(source, begin);
	finish_drop_range(source);
	source->drop_range =
		(struct source_drop_range){ .begin = begin,
					    .end = end,
					    .is_uncached = uncached,
					    .next_is_uncached = is_uncached(source, end) };
}

static void end_small_read(const struct source *source, uint64_t begin, uint64_t end)
{
	const struct source_drop_range *range = &source->drop_range;

	if (range->is_uncached && end > range->begin &&
	    begin / DROP_STEP_NBYTES != end / DROP_STEP_NBYTES)
		file_drop_cache(&source->file, range->begin,
				(end < range->end ? end : range->end) - range->begin);
}

/* --- descriptors (static functions require the table's lock) --- */

static int open_source(struct source_table *table, struct source *source)
{
	struct file file = { .calls = table->calls, .fd = source->endpoint.fd };
	struct stat status;
	int r = 0;

	if (source->path)
		r = file_open(table->calls, AT_FDCWD, source->path, O_RDONLY, 0, &file);
	if (r < 0)
		return fail(r, "%s: cannot open: %m", source->name);
	if (fstat(file.fd, &status) < 0)
		r = fail(-errno, "%s: %m", source->name);
	else if (!file_id_equal(file_id_from_stat(&status), source->identity))
		r = fail(-EBUSY, "%s: was replaced by another file while it was read",
			 source->name);
	/* Handle what the opener may have set: packets of a pipe, O_DIRECT of a file. */
	if (r == 0 && (r = file_alloc_pipe_buffer(&file)) < 0)
		fail(r, "%s: no memory for the buffer of a pipe", source->name);
	if (r < 0) {
		if (source->path)
			file_close(&file);
		return r;
	}
	source->had_o_direct = file_clear_o_direct(&file);
	/* Hints, which may fail. */
	posix_fadvise(file.fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	file_enlarge_pipe(&file);
	source->file = file;
	source->is_large = S_ISREG(status.st_mode) &&
			   (uint64_t)status.st_size >= table->large_nbytes;
	/* Without O_DIRECT the file is read through the cache. */
	if (source->is_large &&
	    file_reopen(&file, O_RDONLY | O_DIRECT, &source->direct_file) == 0 && !table->queue)
		io_queue_open(&table->queue);
	table->n_open++;
	return 0;
}

static void close_source(struct source_table *table, struct source *source)
{
	finish_drop_range(source);
	if (source->had_o_direct)
		file_restore_o_direct(&source->file);
	source->had_o_direct = false;
	if (source->path)
		file_close(&source->file);
	file_free_pipe_buffer(&source->file);
	source->file.fd = -1;
	decoder_close(source->decoder);
	source->decoder = NULL;
	free(source->head);
	source->head = NULL;
	source->is_started = false;
	file_close(&source->direct_file);
	table->n_open--;
}

int source_acquire(struct source_table *table, struct source *source)
{
	int r = 0;

	SCOPED_LOCK(&table->lock);
	if (source->file.fd < 0 && source->endpoint.kind != ENDPOINT_RENDEZVOUS)
		r = open_source(table, source);
	if (r == 0)
		source->n_users++;
	return r;
}

void source_release(struct source_table *table, struct source *source)
{
	SCOPED_LOCK(&table->lock);
	assert(source->n_users > 0);
	source->n_users--;
	if (source->n_users == 0 && source->file.fd >= 0 &&
	    (source->is_stream || table->n_open > table->max_idle))
		close_source(table, source);
}

void source_move(struct source_table *table, struct source *source, struct source_table *to_table,
		 struct source *to)
{
	assert(source->is_started && source->n_users == 1 && !to->is_started);
	source_close(to_table, to);
	*to = *source;
	source->file.fd = source->direct_file.fd = -1;
	source->file.pipe_buffer = NULL;
	source->had_o_direct = false;
	source->decoder = NULL;
	source->zst_reader = NULL;
	source->head = NULL;
	source->is_started = false;
	source->n_users = 0;
	if (to->file.fd >= 0) {
		table->n_open--;
		to_table->n_open++;
	}
}

void source_close(struct source_table *table, struct source *source)
{
	if (source->file.fd >= 0)
		close_source(table, source);
	zst_reader_close(source->zst_reader);
	source->zst_reader = NULL;
}

/* --- format detection --- */

/*
 * A part file may begin with any record, so that its format cannot be detected. Its manifest says
 * what it is.
 */
static struct format_rules effective_rules(const struct source_table *table,
					   const struct source *source, bool is_decompressed)
{
	struct format_rules rules = table->rules;

	if (!source->manifest)
		return rules;
	rules.accepts_manifests = false;
	if (is_decompressed || !source->manifest->is_zstd)
		rules.mode = source->manifest->content == PART_CONTENT_NPY ? FORMAT_AUTO :
									     FORMAT_RAW;
	return rules;
}

/*
 * Detect the format of what is viewed. Returns 1 if it is compressed, and sets `compression`; 0 if
 * it is records, perhaps after a header, or a manifest, or a file that becomes shorter, which the
 * next read detects; or a negative errno.
 */
static int detect_format(const struct source_table *table, struct source *source,
			 const struct format_view *view)
{
	const bool is_decompressed = view->compression != DECODER_NONE;
	const struct format_rules rules = effective_rules(table, source, is_decompressed);
	const struct format *format;
	const int r = format_detect(view, &rules, &format);

	if (r == -ENODATA)
		return 0;
	if (r < 0)
		return fail(r, "%s: read: %m", source->name);
	if (!format)
		return 0;
	if (format->compression != DECODER_NONE && !is_decompressed) {
		source->compression = format->compression;
		return 1;
	}
	if (rules.mode == FORMAT_LINES) {
		warn("%s: is %s; decompress it first, or its compressed bytes are read as lines",
		     source->name, format->name);
		return 0;
	}
	if (format_is_manifest(format, &rules) && source->path && !source->is_stream &&
	    !is_decompressed) {
		source->is_manifest = true;
		return 0;
	}
	source->header_nbytes = format_header_nbytes(format, view, &rules);
	if (source->header_nbytes)
		return 0;
	return format_refuse(format, view, &rules, source->name, source->path);
}

static int read_for_detection(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
	const struct source *source = context;

	return file_read_at(&source->file, source->base + offset, buffer, nbytes);
}

/* Detect the format of an open regular file, from its base on. Returns like detect_format(). */
static int detect_file_format(const struct source_table *table, struct source *source)
{
	unsigned char head[FORMAT_HEAD_NBYTES];
	const struct format_view view = {
		.head = head,
		.head_nbytes = source->nbytes < sizeof head ? (size_t)source->nbytes : sizeof head,
		.nbytes = source->nbytes,
		.context = source,
		.read_at = read_for_detection,
	};
	int r;

	if (effective_rules(table, source, false).mode == FORMAT_RAW || view.head_nbytes == 0)
		return 0;
	r = file_read_at(&source->file, source->base, head, view.head_nbytes);
	if (r == -ENODATA)
		return 0;
	return r < 0 ? fail(r, "%s: read: %m", source->name) : detect_format(table, source, &view);
}

/* Detect the format of the content of an indexed .zst file. Returns 0 or a negative errno. */
static int detect_indexed_format(const struct source_table *table, struct source *source)
{
	const uint64_t nbytes = source->compressed_end - source->base;
	const size_t n = nbytes < ZSTD_PREVIEW_NBYTES ? (size_t)nbytes : ZSTD_PREVIEW_NBYTES;
	unsigned char head[FORMAT_HEAD_NBYTES], *stored = malloc(n);
	struct format_view view = { .head = head,
				    .nbytes = FORMAT_SIZE_UNKNOWN,
				    .compression = DECODER_ZSTD };
	int r;

	if (!stored)
		return fail(-ENOMEM, "%s: decompression: %m", source->name);
	r = file_read_at(&source->file, source->base, stored, n);
	if (r == 0)
		view.head_nbytes = zstd_preview(stored, n, head, sizeof head);
	free(stored);
	if (r < 0 && r != -ENODATA)
		return fail(r, "%s: read: %m", source->name);
	return detect_format(table, source, &view);
}

/* Detect the format of a stream, or of its content, by its head. Returns like detect_format(). */
static int detect_stream_format(const struct source_table *table, struct source *source,
				enum decoder_format compression)
{
	const struct format_view view = { .head = source->head->bytes,
					  .head_nbytes = source->head->end,
					  .nbytes = FORMAT_SIZE_UNKNOWN,
					  .compression = compression };

	return detect_format(table, source, &view);
}

/* --- probing --- */

/*
 * Regular files that the kernel generates (/proc) report a size of 0, but have content. Returns 1
 * for such a file, 0 for others, or a negative errno if it cannot be read.
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

/* Return the window to plan for if a frame asks for window_nbytes; 0: unknown or refused. */
static uint64_t planned_window_nbytes(uint64_t window_nbytes)
{
	return window_nbytes == 0                         ? 0 :
	       window_nbytes > ZSTD_MAX_WINDOW_NBYTES     ? 0 :
	       window_nbytes > ZSTD_DEFAULT_WINDOW_NBYTES ? window_nbytes :
							    ZSTD_DEFAULT_WINDOW_NBYTES;
}

/* A compressed file without an index is a stream. Record the window that its first frame needs. */
static void make_compressed_stream(struct source *source)
{
	unsigned char header[ZSTD_FRAME_HEADER_NBYTES];

	if (source->compression == DECODER_GZIP)
		source->window_nbytes = GZIP_WINDOW_NBYTES;
	else if (source->nbytes >= sizeof header &&
		 file_read_at(&source->file, source->base, header, sizeof header) == 0)
		source->window_nbytes =
			planned_window_nbytes(zstd_window_nbytes(header, sizeof header));
	source->is_stream = true;
	source->nbytes = 0;
}

/* The most that zstd adds to a frame that does not shrink. */
enum { MAX_ZSTD_OVERHEAD_NBYTES = 1 << 20 };

/* Find the content of a compressed file: it has a size if it has a usable index. */
static int probe_compressed_file(struct source_table *table, struct source *source)
{
	struct zst_index index = { 0 };
	uint64_t content_nbytes;
	int r = -ENODATA;

	if (source->compression == DECODER_ZSTD)
		r = zst_index_read(&source->file, source->base, source->nbytes, &index);
	if (r < 0 && r != -ENODATA)
		return fail(r, "%s: cannot read the index of frames: %m", source->name);
	source->compressed_end = source->base + source->nbytes;
	if (r < 0 || zst_index_max_content_nbytes(&index) > ZST_READER_MAX_FRAME_NBYTES ||
	    zst_index_max_stored_nbytes(&index) >
		    ZST_READER_MAX_FRAME_NBYTES + MAX_ZSTD_OVERHEAD_NBYTES) {
		zst_index_free(&index);
		make_compressed_stream(source);
		return 0;
	}
	content_nbytes = zst_index_total_nbytes(&index);
	r = detect_indexed_format(table, source);
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

/* Probe an open regular file. */
static int probe_file(struct source_table *table, struct source *source, const struct stat *status)
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
	r = detect_file_format(table, source);
	return r > 0 ? probe_compressed_file(table, source) : r;
}

static bool is_message_socket(const struct source *source, const struct stat *status)
{
	int type;
	socklen_t nbytes = sizeof type;

	return !source->path && S_ISSOCK(status->st_mode) &&
	       getsockopt(source->endpoint.fd, SOL_SOCKET, SO_TYPE, &type, &nbytes) == 0 &&
	       type != SOCK_STREAM;
}

/* Only a directory of part files can be an input. */
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
			    "%s: message sockets are not supported; use a stream socket or a pipe",
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
	r = probe_file(table, source, &status);
	source_release(table, source);
	return r;
}

void source_narrow(struct source *source, uint64_t skip_nbytes, uint64_t nbytes)
{
	source->trailing_nbytes += source->nbytes - skip_nbytes - nbytes;
	source->base += skip_nbytes;
	source->nbytes = nbytes;
}

/* --- reading at an offset --- */

/* Smaller reads of a large file use the kernel's read-ahead. */
enum { MIN_BYPASS_NBYTES = (1 << 20) + 1 };

static int read_with_readahead(struct source_table *table, struct source *source,
			       uint64_t file_offset, void *buffer, size_t nbytes)
{
	int r;

	pthread_mutex_lock(&table->lock);
	begin_small_read(source, file_offset);
	pthread_mutex_unlock(&table->lock);
	r = file_read_at(&source->file, file_offset, buffer, nbytes);
	pthread_mutex_lock(&table->lock);
	end_small_read(source, file_offset, file_offset + nbytes);
	pthread_mutex_unlock(&table->lock);
	return r;
}

/* Like file_read_at(), but leave the page cache unchanged if the source is large. */
static int read_preserving_cache(struct source_table *table, struct source *source,
				 uint64_t file_offset, void *buffer, size_t nbytes)
{
	int r;

	if (source->is_large && nbytes < MIN_BYPASS_NBYTES)
		return read_with_readahead(table, source, file_offset, buffer, nbytes);
	if (!source->is_large || direct_is_cached(&source->file, file_offset, nbytes))
		return file_read_at(&source->file, file_offset, buffer, nbytes);
	if (source->direct_file.fd >= 0) {
		r = direct_read_at(table->queue, &source->direct_file, file_offset, buffer, nbytes);
		if (r != -EINVAL)
			return r;
	}
	r = file_read_at(&source->file, file_offset, buffer, nbytes);
	file_drop_cache(&source->file, file_offset, nbytes);
	return r;
}

static int read_acquired_source(struct source_table *table, struct source *source, uint64_t offset,
				void *buffer, size_t nbytes)
{
	const uint64_t file_offset = source->base + offset;
	const bool reaches_end = offset + nbytes == source->nbytes;
	int r, size_r = 0;

	if (source->zst_reader)
		r = zst_reader_read_at(source->zst_reader, &source->file, file_offset, buffer,
				       nbytes);
	else
		r = read_preserving_cache(table, source, file_offset, buffer, nbytes);
	if (r < 0 && r != -ENODATA)
		return source->zst_reader ? r :
					    fail(r, "%s: read of %zu bytes at %" PRIu64 ": %m",
						 source->name, nbytes, file_offset);
	if (r < 0 || reaches_end)
		size_r = source_check_size(source);
	if (size_r < 0)
		return size_r;
	return r < 0 ? fail(r,
			    "%s: read of %zu byte%s at %" PRIu64 " ends before the file does; "
			    "use a pipe: cat FILE | " GSORT_PROGRAM " ...",
			    source->name, nbytes, nbytes == 1 ? "" : "s", file_offset) :
		       0;
}

int source_read_at(struct source_table *table, struct source *source, uint64_t offset, void *buffer,
		   size_t nbytes)
{
	int r = source_acquire(table, source);

	if (r < 0)
		return r;
	r = read_acquired_source(table, source, offset, buffer, nbytes);
	source_release(table, source);
	return r;
}

/* --- reading streams --- */

/* Read what follows the head. */
static int read_after_head(struct source *source, int cancel_fd, void *buffer, size_t nbytes,
			   size_t *ret_nbytes)
{
	int r;

	if (source->decoder)
		return decoder_read(source->decoder, &source->file, cancel_fd, buffer, nbytes,
				    ret_nbytes);
	if (source->has_ended) {
		*ret_nbytes = 0;
		return 0;
	}
	if (source->endpoint.kind == ENDPOINT_RENDEZVOUS)
		return rendezvous_receive(source->endpoint.rendezvous, buffer, nbytes, ret_nbytes);
	r = file_read_next(&source->file, buffer, nbytes, cancel_fd, ret_nbytes);
	if (r < 0)
		return r != -ECANCELED ? fail(r, "%s: read: %m", source->name) : r;
	source->has_ended = source->is_stream && *ret_nbytes < nbytes;
	return 0;
}

static int read_head(struct source *source, int cancel_fd)
{
	struct source_head *head = source->head;

	head->begin = 0;
	return read_after_head(source, cancel_fd, head->bytes, sizeof head->bytes, &head->end);
}

/* Replace the head of a compressed stream by the head of its content. */
static int start_decompression(const struct source_table *table, struct source *source,
			       int cancel_fd)
{
	uint64_t window_nbytes;
	int r = decoder_open(source->compression, source->name, source->head->bytes,
			     source->head->end, table->max_window_nbytes, &source->decoder);

	if (r < 0)
		return r;
	source_set_max_window(source, table->max_window_nbytes);
	r = read_head(source, cancel_fd);
	/* Before the plan is made, plan for the windows of the first frames. */
	window_nbytes = source->compression == DECODER_GZIP ?
				GZIP_WINDOW_NBYTES :
				planned_window_nbytes(decoder_window_nbytes(source->decoder));
	if (table->max_window_nbytes == ZSTD_MAX_WINDOW_NBYTES &&
	    window_nbytes > source->window_nbytes)
		source->window_nbytes = window_nbytes;
	return r < 0 ? r : detect_stream_format(table, source, source->compression);
}

int source_start(const struct source_table *table, struct source *source, int cancel_fd)
{
	int r;

	source->is_started = true;
	/* The format of other sources is known, or irrelevant. */
	if ((!source->is_stream && !source->compressed_end) || table->rules.mode == FORMAT_RAW ||
	    source->endpoint.kind == ENDPOINT_RENDEZVOUS)
		return 0;
	source->head = malloc(sizeof *source->head);
	if (!source->head)
		return fail(-ENOMEM, "%s: read: %m", source->name);
	r = read_head(source, cancel_fd);
	if (r < 0)
		return r;
	r = source->compressed_end ? 1 : detect_stream_format(table, source, DECODER_NONE);
	return r > 0 ? start_decompression(table, source, cancel_fd) : r;
}

static size_t consume_head(struct source *source, void *buffer, size_t nbytes)
{
	struct source_head *head = source->head;
	size_t n;

	if (!head)
		return 0;
	n = head->end - head->begin < nbytes ? head->end - head->begin : nbytes;
	memcpy(buffer, head->bytes + head->begin, n);
	head->begin += n;
	if (head->begin == head->end) {
		free(head);
		source->head = NULL;
	}
	return n;
}

int source_read_next(struct source *source, int cancel_fd, void *buffer, size_t nbytes,
		     size_t *ret_nbytes)
{
	const size_t n = consume_head(source, buffer, nbytes);
	const int r = read_after_head(source, cancel_fd, (unsigned char *)buffer + n, nbytes - n,
				      ret_nbytes);

	if (r == 0)
		*ret_nbytes += n;
	return r;
}

void source_set_max_window(struct source *source, uint64_t nbytes)
{
	if (source->decoder)
		decoder_set_max_window(source->decoder, nbytes > source->window_nbytes ?
								nbytes :
								source->window_nbytes);
}

uint64_t source_stream_window_nbytes(const struct source_table *table, const struct source *source)
{
	if (!source->is_stream || source->endpoint.kind == ENDPOINT_RENDEZVOUS ||
	    (source->is_started && !source->decoder))
		return 0;
	return source->window_nbytes ? source->window_nbytes : table->max_window_nbytes;
}

/* --- has the file changed? --- */

static int fail_changed(const struct source *source, uint64_t old_nbytes, uint64_t new_nbytes)
{
	return fail(-EBUSY,
		    "%s: changed while it was read: %" PRIu64 " bytes before, %" PRIu64 " now",
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
		return fail(r, "%s: cannot get its size: %m", source->name);
	return nbytes == source_end(source) ? 0 : fail_changed(source, source_end(source), nbytes);
}

int source_check_state(const struct source *source)
{
	struct file_state new_state;
	struct stat status;

	/* The name may be gone, or another file's. */
	if (!source->is_file ||
	    (source->path ? stat(source->path, &status) : fstat(source->endpoint.fd, &status)) <
		    0 ||
	    !file_id_equal(file_id_from_stat(&status), source->identity))
		return 0;
	new_state = file_state_from_stat(&status);
	if (file_state_is_unchanged(&source->state, &new_state))
		return 0;
	return fail(-EBUSY, "%s: changed after it was read; retry when no process writes to it",
		    source->name);
}

int source_check_end(const struct source *source)
{
	off_t position;

	if (!source->compressed_end)
		return 0;
	position = lseek(source->file.fd, 0, SEEK_CUR);
	if ((uint64_t)position != source->compressed_end)
		return fail_changed(source, source->compressed_end, (uint64_t)position);
	return source_check_size(source);
}

void source_seek_end(const struct source *source)
{
	const bool is_file = !source->is_stream || source->compressed_end;

	if (!source->path && is_file)
		lseek(source->endpoint.fd, (off_t)source_end(source), SEEK_SET);
}
