/*
 * source - one of the files that an input is made of (see source.h): its descriptor
 */
#include "io/input/source.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "io/file/direct_io.h"
#include "src/base/diagnostics.h"

/* A sixth of the descriptors, so that outputs, their locks and temporary files find some. */
static size_t max_idle_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > 1024)
		return 256;
	return limit.rlim_cur / 6;
}

/* More would push a good part of what others have in the page cache out of it. */
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
	table->max_window_nbytes = ZST_MAX_WINDOW_NBYTES;
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

/* --- under the table's lock --- */

/* However it was opened: in packets, or only for transfers of whole blocks. */
static int prepare_for_reading(struct source *source, struct file *file)
{
	int r = file_enable_packet_buffer(file);

	if (r < 0)
		return fail(r, "%s: no memory for a packet of a pipe", source->name);
	r = file_clear_o_direct(file, &source->had_o_direct);
	return r < 0 ? fail(r, "%s: is open with O_DIRECT, and cannot be had without: %m",
			    source->name) :
		       0;
}

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
		r = fail(-EBUSY, "%s: became another file while it was read", source->name);
	if (r == 0)
		r = prepare_for_reading(source, &file);
	if (r < 0) {
		if (source->path)
			file_close(&file);
		return r;
	}
	/* Hints, which may fail. */
	posix_fadvise(file.fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	file_enlarge_pipe(&file);
	source->file = file;
	source->is_large = S_ISREG(status.st_mode) &&
			   (uint64_t)status.st_size >= table->large_nbytes;
	/* Refused or not, it is read. */
	if (source->is_large &&
	    file_reopen(&file, O_RDONLY | O_DIRECT, &source->direct_file) == 0 && !table->queue)
		io_queue_open(DIRECT_QUEUE_DEPTH, &table->queue);
	table->n_open++;
	return 0;
}

static void close_source(struct source_table *table, struct source *source)
{
	dropbehind_finish(&source->dropbehind, &source->file);
	if (source->had_o_direct)
		file_restore_o_direct(&source->file);
	source->had_o_direct = false;
	if (source->path)
		file_close(&source->file);
	file_free_packet_buffer(&source->file);
	source->file.fd = -1;
	zst_stream_close(source->zst_stream);
	source->zst_stream = NULL;
	free(source->head);
	source->head = NULL;
	source->is_started = false;
	file_close(&source->direct_file);
	table->n_open--;
}

int source_acquire(struct source_table *table, struct source *source)
{
	int r = 0;

	pthread_mutex_lock(&table->lock);
	if (source->file.fd < 0 && source->endpoint.kind != ENDPOINT_RENDEZVOUS)
		r = open_source(table, source);
	if (r == 0)
		source->n_users++;
	pthread_mutex_unlock(&table->lock);
	return r;
}

void source_release(struct source_table *table, struct source *source)
{
	pthread_mutex_lock(&table->lock);
	assert(source->n_users > 0);
	source->n_users--;
	if (source->n_users == 0 && source->file.fd >= 0 &&
	    (source->is_stream || table->n_open > table->max_idle))
		close_source(table, source);
	pthread_mutex_unlock(&table->lock);
}

void source_move(struct source_table *table, struct source *source, struct source_table *to_table,
		 struct source *to)
{
	assert(source->is_started && source->n_users == 1 && !to->is_started);
	source_close(to_table, to);
	*to = *source;
	source->file.fd = source->direct_file.fd = -1;
	source->file.packet_buffer = NULL;
	source->had_o_direct = false;
	source->zst_stream = NULL;
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
