/*
 * output.c - write, read back and commit an output (see output.h)
 *
 * All kinds of output come down to two questions. Is there an atomic file (the target is a regular
 * file with a name)? Is the target sequential (it has no offsets)? A regular file that the process
 * was given open, such as standard output, is neither. The null device is sequential, but the order
 * of its bytes does not matter.
 */
#include "io/output/output.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "io/codec/codec.h"
#include "io/codec/zst.h"
#include "io/file/path_identity.h"
#include "io/file/file.h"
#include "io/output/atomic_file.h"
#include "io/output/preallocate.h"
#include "io/output/undo.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/rendezvous.h"
#include "src/base/system_limits.h"
#include "src/base/thread.h"

enum { FIRST_NBYTES = 4096 }; /* remembered for output_first_bytes() */

struct output {
	/* The target: set when it is opened. */
	const char *name; /* for messages */
	struct file file;
	struct atomic_file *atomic_file; /* NULL: written in place */
	struct rendezvous *rendezvous;   /* a thread instead of a file; NULL: a file */
	bool is_sequential;
	bool is_null_device;
	bool is_regular;
	bool had_o_direct; /* the process was given it so, and it gets the flag back */
	uint64_t base;     /* the offset in the file where the output begins */
	uint64_t old_end;  /* the size of the file then; 0 for an atomic file */
	bool ends_at_base; /* the file had nothing beyond base */
	bool has_file_id;  /* the target exists */
	struct file_id file_id;

	bool is_complete;
	struct preallocation preallocation;
	struct undo_entry *truncation; /* in place: what a failure cuts; or NULL */
	struct undo_entry own_truncation;
	struct file_writer writer;
	struct prefault *prefault; /* of this output, and perhaps of others; or NULL */

	atomic_int error; /* the first failure, or 0; set under the lock */
	unsigned char first_bytes[FIRST_NBYTES];
	bool first_bytes_unknown; /* they belonged to the content of a segment */

	struct zst_writer *zst_writer; /* NULL: not compressed */
	struct zst_reader *zst_reader; /* of the compressed file; opened under the lock */
	struct codec_pool codec_contexts;

	pthread_mutex_t lock;
	pthread_cond_t turn; /* written_nbytes or error has changed */
	/* Protected by lock. */
	uint64_t written_nbytes;
	uint64_t written_end; /* the end of the last byte written */
};

size_t output_memory_nbytes(void)
{
	return sizeof(struct output);
}

/* --- the target: an inherited descriptor --- */

/* Use a duplicate, because closing it reports delayed errors. */
static int duplicate_fd(struct output *output, int fd, struct stat *ret_status)
{
	const int mode = fcntl(fd, F_GETFL);

	if (mode < 0 || (mode & O_ACCMODE) == O_RDONLY)
		return fail(-EBADF, "%s: is not open for writing: %m", output->name);
	output->file.fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (output->file.fd < 0 || fstat(output->file.fd, ret_status) < 0)
		return fail(-errno, "%s: %m", output->name);
	output->had_o_direct = file_clear_o_direct(&output->file);
	return 0;
}

/*
 * Open a descriptor that the process has inherited. One that exec() would close was opened by this
 * process, and is refused.
 */
static int open_inherited(struct output *output, const char *name, int fd, struct stat *ret_status)
{
	const int flags = fcntl(fd, F_GETFD);

	output->name = name;
	if (flags < 0 || flags & FD_CLOEXEC)
		return fail(-EBADF, "%s: is not open for writing: %m", name);
	return duplicate_fd(output, fd, ret_status);
}

/* Records begin at the position of the descriptor, if it has one. */
static void set_base_offset(struct output *output, const struct stat *status)
{
	off_t base;

	/* With O_APPEND the kernel ignores offsets. */
	base = S_ISREG(status->st_mode) ? lseek(output->file.fd, 0, SEEK_CUR) : -1;
	output->is_sequential = base < 0 || fcntl(output->file.fd, F_GETFL) & O_APPEND;
	output->base = base < 0              ? 0 :
		       output->is_sequential ? (uint64_t)status->st_size :
					       (uint64_t)base;
}

/* --- the target: a path --- */

/* A rename would replace a file that this user may not write. */
static int check_access(const char *path)
{
	if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0)
		return 0;
	if (errno == EPERM) /* EACCES would be a matter of permissions */
		return fail(-EPERM,
			    "%s: is immutable (chattr +i) and cannot be replaced; use chattr -i",
			    path);
	return fail(-errno, "%s: %m: the existing file may not be written", path);
}

static int open_missing(struct output *output, const char *path,
			const struct atomic_file_params *params, struct stat *ret_status)
{
	if (!params->directory && *path && path[strlen(path) - 1] == '/')
		return fail(-EISDIR, "%s: is the name of a directory, because it ends in a slash",
			    path);
	memset(ret_status, 0, sizeof *ret_status);
	return atomic_file_open(output->file.calls, path, NULL, params, &output->file,
				&output->atomic_file);
}

/* A special file that is shared is not opened: a pipe that is closed again ends for its reader. */
static int open_path(struct output *output, const char *path,
		     const struct atomic_file_params *params, struct stat *ret_status)
{
	int r;

	output->name = path;
	if (params->directory || stat(path, ret_status) < 0) {
		if (!params->directory && errno != ENOENT)
			return fail(-errno, "%s: %m", path);
		return open_missing(output, path, params, ret_status);
	}
	if (S_ISDIR(ret_status->st_mode))
		return fail(-EISDIR, "%s: %m", path);
	if (!S_ISREG(ret_status->st_mode)) {
		if (params->kind != ATOMIC_PRIVATE)
			return 0;
		output->is_sequential = true;
		r = file_open(output->file.calls, AT_FDCWD, path, O_WRONLY, 0, &output->file);
		return r < 0 ? fail(r, "%s: cannot open: %m", path) : 0;
	}
	r = check_access(path);
	return r < 0 ? r :
		       atomic_file_open(output->file.calls, path, ret_status, params, &output->file,
					&output->atomic_file);
}

static void describe_target(struct output *output, const struct stat *status)
{
	const bool is_regular = S_ISREG(status->st_mode);

	output->is_null_device = output->is_sequential && S_ISCHR(status->st_mode) &&
				 status->st_rdev == makedev(1, 3);
	output->is_regular = output->atomic_file || is_regular;
	output->old_end = is_regular && !output->atomic_file ? (uint64_t)status->st_size : 0;
	output->ends_at_base = output->atomic_file || output->base == (uint64_t)status->st_size;
	output->has_file_id = is_regular || S_ISBLK(status->st_mode);
	output->file_id = file_id_from_stat(status);
}

/* --- open and close --- */

static struct output *alloc_output(const struct syscalls *calls, const char *name)
{
	struct output *output = calloc(1, sizeof *output);

	if (!output) {
		fail(-ENOMEM, "%s: no memory for an output", name);
		return NULL;
	}
	output->name = name;
	output->file = (struct file){ .calls = calls, .fd = -1 };
	file_writer_init(&output->writer, &output->file, calls);
	pthread_mutex_init(&output->lock, NULL);
	pthread_cond_init(&output->turn, NULL);
	codec_pool_init(&output->codec_contexts, 0);
	preallocate_init(&output->preallocation);
	return output;
}

static int close_target(struct output *output)
{
	if (output->had_o_direct)
		file_restore_o_direct(&output->file);
	output->had_o_direct = false;
	return file_close(&output->file);
}

static void free_output(struct output *output)
{
	zst_writer_close(output->zst_writer);
	zst_reader_close(output->zst_reader);
	codec_pool_destroy(&output->codec_contexts);
	preallocate_destroy(&output->preallocation);
	file_writer_destroy(&output->writer);
	close_target(output);
	pthread_cond_destroy(&output->turn);
	pthread_mutex_destroy(&output->lock);
	free(output);
}

/* r: the result of opening. Hand the output to the caller, or abort it. */
static int finish_open(struct output *output, int r, struct output **ret_output)
{
	if (r < 0)
		output_abort(output);
	else
		*ret_output = output;
	return r;
}

int output_open(const struct syscalls *calls, const char *path, uint64_t expected_nbytes,
		struct output **ret_output)
{
	return output_open_endpoint(calls, path, (struct endpoint){ .kind = ENDPOINT_PATH },
				    expected_nbytes, ret_output);
}

static int open_records(struct output *output, const char *path,
			const struct atomic_file_params *params)
{
	const int fd = params->directory ? -1 : path ? path_to_descriptor(path) : STDOUT_FILENO;
	struct stat status;
	int r;

	if (fd >= 0) {
		r = open_inherited(output, fd == STDOUT_FILENO ? "standard output" : path, fd,
				   &status);
		if (r == 0)
			set_base_offset(output, &status);
	} else {
		r = open_path(output, path, params, &status);
	}
	if (r == 0)
		describe_target(output, &status);
	return r;
}

static int open_endpoint(struct output *output, struct endpoint endpoint)
{
	struct stat status;
	int r;

	if (endpoint.kind == ENDPOINT_RENDEZVOUS) {
		output->rendezvous = endpoint.rendezvous;
		output->is_sequential = true;
		return 0;
	}
	r = duplicate_fd(output, endpoint.fd, &status);
	if (r < 0)
		return r;
	set_base_offset(output, &status);
	describe_target(output, &status);
	return 0;
}

int output_open_endpoint(const struct syscalls *calls, const char *name, struct endpoint endpoint,
			 uint64_t expected_nbytes, struct output **ret_output)
{
	static const struct atomic_file_params private_params = { .kind = ATOMIC_PRIVATE };
	struct output *output = alloc_output(calls, name);
	int r;

	if (!output)
		return -ENOMEM;
	r = endpoint.kind == ENDPOINT_PATH ? open_records(output, name, &private_params) :
					     open_endpoint(output, endpoint);
	if (r == 0 && output->is_sequential)
		file_enlarge_pipe(&output->file);
	if (r == 0) {
		/* A failure or a signal removes what was written after the end of the file. */
		if (!output->atomic_file && !output->is_sequential && output->ends_at_base)
			output->truncation = undo_add_truncation(calls->undo, output->file.fd,
								 output->base,
								 &output->own_truncation);
		r = output_set_expected_size(output, expected_nbytes);
	}
	return finish_open(output, r, ret_output);
}

int output_open_text(const struct syscalls *calls, const char *path, struct output **ret_output)
{
	/* The records' output, if it is a file, reports orphans. */
	static const struct atomic_file_params params = { .kind = ATOMIC_PRIVATE,
							  .is_silent = true };
	const int fd = path_to_descriptor(path);
	struct output *output = alloc_output(calls, path);
	struct stat status;
	int r;

	if (!output)
		return -ENOMEM;
	if (fd >= 0) { /* other processes may share the descriptor: write at its position */
		output->is_sequential = true;
		r = open_inherited(output, path, fd, &status);
	} else {
		r = open_path(output, path, &params, &status);
	}
	if (r == 0)
		describe_target(output, &status);
	return finish_open(output, r, ret_output);
}

/* --- outputs that several processes write --- */

static int open_atomic(const struct syscalls *calls, const char *path,
		       const struct atomic_file_params *params, struct output **ret_output)
{
	struct output *output = alloc_output(calls, path);
	int r;

	if (!output)
		return -ENOMEM;
	r = open_records(output, path, params);
	if (r == 0 && !output->atomic_file)
		r = fail(-EINVAL, "%s: is not a regular file; several ranks cannot write to it",
			 path);
	return finish_open(output, r, ret_output);
}

int output_open_shared(const struct syscalls *calls, const char *path, uint64_t expected_nbytes,
		       const struct orphan_owner *owner, struct output **ret_output)
{
	struct atomic_file_params params = { .kind = ATOMIC_SHARED };
	int r;

	if (owner)
		params.owner = *owner;
	r = open_atomic(calls, path, &params, ret_output);
	if (r == 0)
		r = output_set_expected_size(*ret_output, expected_nbytes);
	return r;
}

int output_open_shared_existing(const struct syscalls *calls, const char *path, const char *name,
				struct output **ret_output)
{
	const struct atomic_file_params params = { .kind = ATOMIC_SHARED_EXISTING, .name = name };

	return open_atomic(calls, path, &params, ret_output);
}

int output_open_part(const struct file *directory, const char *path, bool is_shared,
		     const char *name, struct output **ret_output)
{
	const struct atomic_file_params params = { .kind = name      ? ATOMIC_SHARED_EXISTING :
							   is_shared ? ATOMIC_SHARED :
								       ATOMIC_PRIVATE,
						   .name = name,
						   .is_silent = !name,
						   .directory = directory };

	return open_atomic(directory->calls, path, &params, ret_output);
}

bool output_can_preallocate(const struct output *output)
{
	return output->preallocation.step_is_allocated ? output->preallocation.is_supported :
							 preallocate_is_supported(&output->file);
}

void output_enable_shared_mmap(struct output *output, uint64_t nbytes)
{
	preallocate_start_shared(&output->preallocation, &output->file, output->base, nbytes);
	file_writer_set_shared(&output->writer);
}

const char *output_shared_name(const struct output *output)
{
	return atomic_file_temp_name(output->atomic_file);
}

uint64_t output_stripe_nbytes(const struct output *output)
{
	const uint64_t min_nbytes = 1 << 20, max_nbytes = 16 << 20;
	struct stat status;
	uint64_t nbytes;

	if (fstat(output->file.fd, &status) < 0 || status.st_blksize < 0)
		return min_nbytes;
	nbytes = (uint64_t)status.st_blksize;
	if (nbytes < min_nbytes) /* a multiple of the block size */
		nbytes = nbytes ? round_up(min_nbytes, nbytes) : min_nbytes;
	return nbytes < max_nbytes ? nbytes : max_nbytes;
}

void output_record_remote_writes(struct output *output, uint64_t nbytes, uint64_t end)
{
	SCOPED_LOCK(&output->lock);
	output->written_nbytes += nbytes;
	if (output->written_end < end)
		output->written_end = end;
}

int output_close_shared(struct output *output)
{
	/* A distributed file system may report only now that something was not written. */
	const int r = close_target(output);

	if (r < 0) {
		fail(r, "%s: close: %m", output->name);
		output_abort(output);
		return r;
	}
	atomic_file_close(output->atomic_file);
	free_output(output);
	return 0;
}

/* --- properties --- */

const char *output_name(const struct output *output)
{
	return output->name;
}

bool output_target_file_id(const struct output *output, struct file_id *ret_file_id)
{
	if (output->has_file_id)
		*ret_file_id = output->file_id;
	return output->has_file_id;
}

int output_refuse_terminal(const struct output *output)
{
	return !output->rendezvous && isatty(output->file.fd) ?
		       fail(-ENOTTY, "%s: is a terminal; write binary records to a file with -o",
			    output->name) :
		       0;
}

bool output_is_atomic(const struct output *output)
{
	return output->atomic_file != NULL;
}

int output_refuse_input(const struct output *output)
{
	return output_is_atomic(output) ?
		       0 :
		       fail(-EINVAL, "%s: is both an input and the output; name a file with -o",
			    output->name);
}

bool output_is_ordered(const struct output *output)
{
	return (output->is_sequential && !output->is_null_device) || output->zst_writer;
}

/* --- space --- */

/* Preallocation must not make the file longer than the output. */
static bool can_preallocate(const struct output *output, uint64_t nbytes)
{
	return nbytes != OUTPUT_SIZE_UNKNOWN && !output->is_sequential && output->ends_at_base;
}

static int fail_no_space(const struct output *output, int r, uint64_t nbytes, uint64_t free_nbytes)
{
	if (r == -EFBIG)
		return fail(r, "%s: %m: %" PRIu64 " bytes are needed%s", output->name, nbytes,
			    size_limit_hint(r).text);
	return fail(r, "%s: %m: %" PRIu64 " bytes are needed, %" PRIu64 " are available",
		    output->name, nbytes, free_nbytes);
}

/*
 * Check the space for an output that overwrites a file or is inserted before its end. If space ran
 * out in the middle, the old contents would be lost, so what can be known is checked before.
 */
static int check_space_in_place(const struct output *output, uint64_t nbytes)
{
	const uint64_t end = output->base + nbytes;
	uint64_t growth_nbytes, free_nbytes;
	int r;

	if (end <= output->old_end)
		return 0;
	growth_nbytes = end - output->old_end;
	r = preallocate_check_growth(&output->file, output->old_end, growth_nbytes, &free_nbytes);
	return r < 0 ? fail_no_space(output, r, growth_nbytes, free_nbytes) : 0;
}

int output_check_limit(const struct output *output, uint64_t nbytes)
{
	const int r = size_limit_check(output->base + nbytes);

	return r < 0 ? fail_no_space(output, r, nbytes, 0) : 0;
}

static int start_preallocation(struct output *output, uint64_t nbytes, uint64_t *ret_free_nbytes)
{
	if (output->truncation)
		undo_extend_truncation(output->truncation, output->base + nbytes);
	return preallocate_start(&output->preallocation, &output->file, output->base, nbytes,
				 ret_free_nbytes);
}

int output_set_expected_size(struct output *output, uint64_t nbytes)
{
	uint64_t free_nbytes;
	int r;

	if (nbytes == OUTPUT_SIZE_UNKNOWN || !output->is_regular)
		return 0;
	r = output_check_limit(output, nbytes);
	if (r < 0)
		return r;
	if (!can_preallocate(output, nbytes))
		return check_space_in_place(output, nbytes);
	r = start_preallocation(output, nbytes, &free_nbytes);
	if (r == 0)
		return 0;
	file_truncate(&output->file, output->base);
	return fail_no_space(output, r, nbytes, free_nbytes);
}

void output_update_expected_size(struct output *output, uint64_t nbytes)
{
	uint64_t free_nbytes = preallocate_free_space(&output->file, 0);

	if (can_preallocate(output, nbytes) && free_nbytes >= nbytes)
		start_preallocation(output, nbytes, &free_nbytes);
}

int output_check_space(const struct output *output, uint64_t nbytes)
{
	const uint64_t free_nbytes = preallocate_free_space(&output->file, nbytes);

	if (output->is_sequential || nbytes <= free_nbytes ||
	    !preallocate_is_supported(&output->file))
		return 0;
	return fail(-ENOSPC,
		    "%s: %m: %" PRIu64 " bytes are needed for all part files, %" PRIu64
		    " are available",
		    output->name, nbytes, free_nbytes);
}

/* --- how the bytes are transferred --- */

void output_use_adaptive_io(struct output *output)
{
	if (!output_is_ordered(output) && !output->is_null_device)
		file_writer_use_adaptive_io(&output->writer);
}

void output_use_writeback(struct output *output)
{
	output_stop_prefault(output);
	output->writer.bypass_cache = true;
}

void output_bypass_cache(struct output *output)
{
	output_use_writeback(output);
	output_use_adaptive_io(output);
}

void output_set_n_writers(struct output *output, uint32_t n_writers)
{
	/* Mappings need an open for reading, which makes this process the reader of a pipe. */
	if (!output_is_ordered(output))
		file_writer_set_n_writers(&output->writer, n_writers);
}

unsigned output_n_prefault_threads(const struct output *output, uint64_t nbytes, unsigned n_cpus)
{
	enum {
		CPU_DIVISOR = 4,  /* the other CPUs are about to read */
		SPACE_FACTOR = 4, /* the output, and three times as much for temporary data */
	};
	/* A smaller file is written before prefaulting pays. */
	static const uint64_t min_nbytes = UINT64_C(512) << 20;

	if (nbytes < min_nbytes || nbytes / 4 * 5 > memory_free_nbytes("") ||
	    nbytes > preallocate_free_space(&output->file, 0) / SPACE_FACTOR)
		return 0;
	return n_cpus / CPU_DIVISOR;
}

void output_start_prefault(struct output *const *outputs, uint32_t n, uint32_t n_writers,
			   unsigned n_threads)
{
	struct prefault_file *files = calloc(n, sizeof *files);
	struct prefault *prefault;
	uint32_t n_files = 0;

	for (; files && n_files < n; n_files++) {
		struct output *output = outputs[n_files];

		if (!output->preallocation.is_supported || output->prefault)
			break;
		files[n_files] = (struct prefault_file){ file_writer_mmap_file(&output->writer),
							 &output->preallocation };
	}
	if (n_files == n && prefault_start(files, n, n_writers, n_threads, &prefault) == 0)
		for (uint32_t i = 0; i < n; i++) {
			outputs[i]->prefault = prefault;
			file_writer_set_prefaulted(&outputs[i]->writer, true);
		}
	free(files);
}

void output_stop_prefault(struct output *output)
{
	if (!output || !output->prefault)
		return;
	prefault_stop(output->prefault);
	output->prefault = NULL;
	file_writer_set_prefaulted(&output->writer, false);
}

void output_add_io_stats(const struct output *output, struct file_writer_stats *total)
{
	file_writer_add_stats(&output->writer, total);
}

uint32_t output_direct_alignment(const struct output *output, uint64_t *ret_base)
{
	const uint32_t nbytes = file_writer_direct_alignment(&output->writer);

	if (nbytes)
		*ret_base = output->base;
	return nbytes;
}

/* --- write --- */

/* Wait until everything before `offset` is written. Returns 0, or the failure that prevents it. */
static int wait_for_turn(struct output *output, uint64_t offset)
{
	int r;

	SCOPED_LOCK(&output->lock);
	while ((r = atomic_load(&output->error)) == 0 && output->written_nbytes != offset) {
		assert(output->written_nbytes < offset);
		pthread_cond_wait(&output->turn, &output->lock);
	}
	return r;
}

/* r: the result of the write. */
static void record_write(struct output *output, int r, uint64_t offset, size_t nbytes)
{
	SCOPED_LOCK(&output->lock);
	if (r == 0) {
		output->written_nbytes += nbytes;
		if (output->written_end < offset + nbytes)
			output->written_end = offset + nbytes;
	} else if (atomic_load(&output->error) == 0) {
		atomic_store(&output->error, r);
	}
	pthread_cond_broadcast(&output->turn);
}

/* Allocate the bytes; if they may be mapped, the whole segments that contain them. */
static bool preallocate_for_write(struct output *output, uint64_t offset, size_t nbytes)
{
	const uint64_t base = output->base, total_nbytes = output->preallocation.total_nbytes;
	uint64_t begin = base + offset, end = begin + nbytes;

	if (!file_writer_can_mmap(&output->writer) || offset + nbytes > total_nbytes)
		return preallocate_range(&output->preallocation, offset, offset + nbytes);
	begin -= begin % MMAP_SEGMENT_NBYTES;
	end += -end % MMAP_SEGMENT_NBYTES;
	return preallocate_range(&output->preallocation, begin < base ? 0 : begin - base,
				 end - base < total_nbytes ? end - base : total_nbytes);
}

/* Write stored bytes, which are compressed or not. offset: from the base. */
static int write_to_target(void *context, uint64_t offset, const void *data, size_t nbytes)
{
	struct output *output = context;
	bool is_preallocated;
	int r;

	if (output->rendezvous)
		return rendezvous_send(output->rendezvous, data, nbytes);
	if (output->is_sequential) {
		r = file_write_next(&output->file, data, nbytes);
	} else {
		if (output->truncation)
			undo_extend_truncation(output->truncation, output->base + offset + nbytes);
		is_preallocated = preallocate_for_write(output, offset, nbytes);
		r = file_writer_write_at(&output->writer, output->base + offset, data, nbytes,
					 is_preallocated);
	}
	return r < 0 ? fail(r, "%s: write of %zu bytes at %" PRIu64 ": %m%s", output->name, nbytes,
			    output->base + offset, size_limit_hint(r).text) :
		       0;
}

int output_write_at(struct output *output, uint64_t offset, const void *data, size_t nbytes)
{
	int r = atomic_load(&output->error);

	if (r == 0 && output_is_ordered(output))
		r = wait_for_turn(output, offset);
	if (r < 0)
		return r;
	if (offset < FIRST_NBYTES)
		memcpy(output->first_bytes + offset, data,
		       nbytes < FIRST_NBYTES - offset ? nbytes : FIRST_NBYTES - offset);
	if (output->zst_writer)
		r = zst_writer_append(output->zst_writer, data, nbytes);
	else
		r = write_to_target(output, offset, data, nbytes);
	record_write(output, r, offset, nbytes);
	return r;
}

void output_cancel(struct output *output)
{
	if (output->rendezvous)
		rendezvous_fail(output->rendezvous, -ECANCELED);
	record_write(output, -ECANCELED, 0, 0);
}

/* --- compressed outputs --- */

int output_compress(struct output *output, int level, unsigned n_threads)
{
	const struct zst_sink sink = { .context = output,
				       .in_order = output->is_sequential,
				       .write = write_to_target };

	assert(output->written_nbytes == 0 && output->preallocation.total_nbytes == 0);
	return zst_writer_open(output->name, &sink, level, n_threads, &output->zst_writer);
}

int output_begin_segment(struct output *output, int level, unsigned n_threads, uint64_t begin,
			 const struct zst_sink *sink)
{
	int r;

	assert(output->written_nbytes == 0 && output->preallocation.total_nbytes == 0);
	r = zst_writer_open(output->name, sink, level, n_threads, &output->zst_writer);
	if (r == 0)
		output->written_nbytes = output->written_end = begin;
	return r;
}

int output_end_segment(struct output *output, bool allow_empty, struct zst_index *ret_index)
{
	int r = atomic_load(&output->error);

	if (r == 0)
		r = zst_writer_finish_frames(output->zst_writer, allow_empty);
	if (r < 0)
		return r;
	*ret_index = zst_writer_detach_index(output->zst_writer);
	zst_writer_close(output->zst_writer);
	output->zst_writer = NULL;
	output->written_nbytes = output->written_end = 0;
	output->first_bytes_unknown = true;
	return 0;
}

int output_set_zst_index(struct output *output, struct zst_index index)
{
	return zst_reader_open(output->name, index, output->base, &output->codec_contexts,
			       &output->zst_reader);
}

/*
 * Wait until all content is in the file; then it can be read. Returns 0, or the first failure,
 * which stays.
 */
static int finish_writes(struct output *output)
{
	int r;

	SCOPED_LOCK(&output->lock);
	r = atomic_load(&output->error);
	if (r == 0 && output->zst_writer && !output->zst_reader) {
		r = zst_writer_finish(output->zst_writer);
		if (r == 0)
			r = output_set_zst_index(output,
						 zst_writer_detach_index(output->zst_writer));
	}
	atomic_store(&output->error, r);
	return r;
}

/* --- read back --- */

int output_read_at(struct output *output, uint64_t offset, void *buffer, size_t nbytes)
{
	int r;

	if (output->is_sequential)
		return -ESPIPE;
	r = finish_writes(output);
	if (r < 0)
		return r;
	if (output->zst_reader)
		return zst_reader_read_at(output->zst_reader, &output->file, offset, buffer,
					  nbytes);
	r = file_read_at(&output->file, output->base + offset, buffer, nbytes);
	if (r == -EBADF) /* `> file` is open for writing only */
		return -ESPIPE;
	if (r == -ENODATA)
		return fail(r, "%s: truncated by another process: ends before byte %" PRIu64,
			    output->name, output->base + offset + nbytes);
	return r < 0 ? fail(r, "%s: read of %zu bytes at %" PRIu64 ": %m", output->name, nbytes,
			    output->base + offset) :
		       0;
}

size_t output_first_bytes(const struct output *output, void *buffer, size_t nbytes)
{
	size_t n = nbytes < FIRST_NBYTES ? nbytes : FIRST_NBYTES;

	n = output->written_end < n ? (size_t)output->written_end : n;
	if (output->zst_writer || output->base > 0 || output->first_bytes_unknown)
		return 0;
	memcpy(buffer, output->first_bytes, n);
	return n;
}

/* --- complete, commit, abort --- */

int output_sync(struct output *output)
{
	const int r = file_sync(&output->file);

	if (r == -EINVAL && output->is_sequential) /* pipes have no storage */
		return 0;
	return r < 0 ? fail(r, "%s: cannot sync to stable storage: %m", output->name) : 0;
}

static int truncate_to_size(struct output *output)
{
	int r;

	if (output->written_nbytes != output->written_end)
		return fail(-EIO,
			    "%s: internal error: %" PRIu64 " of %" PRIu64 " bytes were not written",
			    output->name, output->written_end - output->written_nbytes,
			    output->written_end);
	if (output->written_end >= output->preallocation.extended_nbytes)
		return 0;
	r = file_truncate(&output->file, output->base + output->written_end);
	if (r < 0)
		return fail(r, "%s: cannot truncate to %" PRIu64 " bytes: %m", output->name,
			    output->written_end);
	/* Truncating again would change the time of modification. */
	output->preallocation.extended_nbytes = output->written_end;
	return 0;
}

static int finalize_file(struct output *output)
{
	int r;

	output_stop_prefault(output);
	r = finish_writes(output);
	if (r == 0)
		r = truncate_to_size(output);
	return r == 0 && output->atomic_file ?
		       atomic_file_mark_complete(output->atomic_file, &output->file) :
		       r;
}

int output_finalize(struct output *output, struct stat *ret_status)
{
	int r = finalize_file(output);

	if (r == 0 && fstat(output->file.fd, ret_status) < 0)
		r = fail(-errno, "%s: cannot find its size: %m", output->name);
	return r;
}

int output_complete(struct output *output, enum output_durability durability)
{
	int r;

	if (output->is_complete)
		return 0;
	r = finalize_file(output);
	if (r < 0)
		return r;
	output->is_complete = true;
	return durability == OUTPUT_UNSYNCED ? 0 : output_sync(output);
}

static uint64_t final_nbytes(const struct output *output)
{
	return output->zst_writer ? zst_writer_stored_nbytes(output->zst_writer) :
				    output->written_end;
}

static int close_in_place(struct output *output)
{
	const uint64_t nbytes = final_nbytes(output);
	int r;

	/* A process that shares the descriptor continues after this output. */
	if (!output->is_sequential)
		lseek(output->file.fd, (off_t)(output->base + nbytes), SEEK_SET);
	r = close_target(output);
	return r < 0 ? fail(r, "%s: close: %m", output->name) : 0;
}

static void remove_truncation(struct output *output)
{
	if (output->truncation)
		undo_remove(output->file.calls->undo, output->truncation);
	output->truncation = NULL;
}

int output_commit(struct output *output, enum output_durability durability)
{
	struct atomic_file *atomic_file = output->atomic_file;
	int r = output_complete(output, durability);

	if (r < 0) {
		output_abort(output);
		return r;
	}
	output->atomic_file = NULL;
	if (!atomic_file)
		undo_commit_begin(output->file.calls->undo);
	remove_truncation(output);
	if (atomic_file)
		r = atomic_file_commit(atomic_file, &output->file, final_nbytes(output),
				       durability == OUTPUT_SYNC_ALL);
	else
		r = close_in_place(output);
	free_output(output);
	return r;
}

/*
 * Return where to truncate a failed output in place. Records do not move the position of the
 * descriptor, but messages to a standard error that shares it do, and they stay.
 */
static uint64_t failed_end(const struct output *output)
{
	const off_t position = lseek(output->file.fd, 0, SEEK_CUR);

	return position > (off_t)output->base ? (uint64_t)position : output->base;
}

void output_abort(struct output *output)
{
	if (!output)
		return;
	output_stop_prefault(output);
	if (output->truncation && undo_is_growth_ours(output->truncation))
		file_truncate(&output->file, failed_end(output));
	remove_truncation(output);
	atomic_file_discard(output->atomic_file);
	free_output(output);
}
