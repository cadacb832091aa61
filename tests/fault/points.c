/*
 * points - every place where the system can fail gsort, and a way to make it (see points.h)
 */
#include "tests/fault/points.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

struct io_uring;
struct statvfs64;

const char *const point_names[N_POINTS] = {
	[POINT_OPEN] = "open",
	[POINT_CLOSE] = "close",
	[POINT_EXAMINE] = "examine",
	[POINT_READ] = "read",
	[POINT_READ_BACK] = "read-back",
	[POINT_READ_TEMPORARY] = "read-temporary",
	[POINT_WRITE] = "write",
	[POINT_WRITE_TEMPORARY] = "write-temporary",
	[POINT_PREALLOCATE] = "preallocate",
	[POINT_PUNCH] = "punch",
	[POINT_TRUNCATE] = "truncate",
	[POINT_SYNC] = "sync",
	[POINT_LINK] = "link",
	[POINT_RENAME] = "rename",
	[POINT_PERMISSIONS] = "permissions",
	[POINT_STREAM] = "stream",
	[POINT_EVENT] = "event",
	[POINT_ALLOCATION] = "allocation",
	[POINT_THREAD] = "thread",
	[POINT_DEVICE_OPEN] = "device-open",
	[POINT_DEVICE_ALLOCATION] = "device-allocation",
	[POINT_DEVICE_LANE] = "device-lane",
	[POINT_DEVICE_COPY] = "device-copy",
	[POINT_DEVICE_SORT] = "device-sort",
	[POINT_DEVICE_CUT] = "device-cut",
	[POINT_DEVICE_MERGE] = "device-merge",
	[POINT_DEVICE_WAIT] = "device-wait",
};

enum { MOST_FILES = 1024 };

/* What a descriptor leads to. */
enum role { ROLE_OTHER, ROLE_OUTPUT, ROLE_TEMPORARY };

static struct {
	/* Set while nothing is armed. */
	struct fault fault;
	const char *temporary;

	atomic_bool armed;
	atomic_uint n_passed[N_POINTS];
	atomic_uint n_faults;
	atomic_bool device_is_lost;
	atomic_int n_threads, n_mappings, n_device;
	_Atomic(unsigned char) roles[MOST_FILES];
} points;

static _Thread_local bool exempt;

void points_arm(const struct fault *fault)
{
	static const struct fault none = { .effect = EFFECT_NONE };

	points.fault = fault ? *fault : none;
	for (int i = 0; i < N_POINTS; i++)
		atomic_store(&points.n_passed[i], 0);
	atomic_store(&points.n_faults, 0);
	atomic_store(&points.device_is_lost, false);
	atomic_store(&points.n_threads, 0);
	atomic_store(&points.n_mappings, 0);
	atomic_store(&points.n_device, 0);
	atomic_store(&points.armed, true);
}

void points_disarm(void)
{
	atomic_store(&points.armed, false);
}

unsigned points_passed(enum point point)
{
	return atomic_load(&points.n_passed[point]);
}

unsigned points_n_faults(void)
{
	return atomic_load(&points.n_faults);
}

struct points_balance points_balance(void)
{
	return (struct points_balance){ .n_threads = atomic_load(&points.n_threads),
					.n_mappings = atomic_load(&points.n_mappings),
					.n_device = atomic_load(&points.n_device) };
}

void points_exempt_thread(void)
{
	exempt = true;
}

void points_set_temporary(const char *prefix)
{
	points.temporary = prefix;
}

void points_device_gave(int n)
{
	atomic_fetch_add(&points.n_device, n);
}

static bool counting(void)
{
	return !exempt && atomic_load(&points.armed);
}

/* Is it this call's turn, the nth that passes the point? */
static bool is_turn(enum point point, unsigned n)
{
	const struct fault *fault = &points.fault;

	if (fault->effect == EFFECT_NONE)
		return false;
	if (point >= POINT_FIRST_DEVICE_CALL && atomic_load(&points.device_is_lost))
		return true;
	return point == fault->point && n >= fault->nth && n - fault->nth < fault->n_times;
}

enum effect point_pass(enum point point)
{
	const struct fault *fault = &points.fault;

	if (!counting() || !is_turn(point, atomic_fetch_add(&points.n_passed[point], 1) + 1))
		return EFFECT_NONE;
	atomic_fetch_add(&points.n_faults, 1);
	if (point >= POINT_FIRST_DEVICE_CALL && fault->n_times == FOR_GOOD)
		atomic_store(&points.device_is_lost, true);
	if (fault->effect == EFFECT_FAIL)
		errno = fault->error;
	return fault->effect;
}

/* Does the call fail? With errno set. */
static bool fails(enum point point)
{
	return point_pass(point) == EFFECT_FAIL;
}

/* --- Files --- */

static enum role role_of(int fd)
{
	return fd >= 0 && fd < MOST_FILES ? atomic_load(&points.roles[fd]) : ROLE_OTHER;
}

/* A nameless file beside a target, or a hidden name there, is opened by its directory. */
static enum role role_by_path(int directory, const char *path, int flags)
{
	int fd;

	if (sscanf(path, "/proc/self/fd/%d", &fd) == 1)
		return role_of(fd);
	if (points.temporary && strncmp(path, points.temporary, strlen(points.temporary)) == 0)
		return ROLE_TEMPORARY;
	return directory != AT_FDCWD && (flags & O_ACCMODE) == O_RDWR ? ROLE_OUTPUT : ROLE_OTHER;
}

int __real_openat64(int directory, const char *path, int flags, mode_t mode);
int __wrap_openat64(int directory, const char *path, int flags, mode_t mode);
int __wrap_openat64(int directory, const char *path, int flags, mode_t mode)
{
	const enum role role = role_by_path(directory, path, flags);
	int fd;

	if (fails(POINT_OPEN))
		return -1;
	fd = __real_openat64(directory, path, flags, mode);
	if (fd >= 0 && fd < MOST_FILES)
		atomic_store(&points.roles[fd], role);
	return fd;
}

/* Linux closes even when it reports an error. */
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	int r;

	if (fd >= 0 && fd < MOST_FILES)
		atomic_store(&points.roles[fd], ROLE_OTHER);
	r = __real_close(fd);
	return fails(POINT_CLOSE) ? -1 : r;
}

static enum point read_point(int fd)
{
	static const enum point by_role[] = { POINT_READ, POINT_READ_BACK, POINT_READ_TEMPORARY };

	return by_role[role_of(fd)];
}

static enum point write_point(int fd)
{
	return role_of(fd) == ROLE_TEMPORARY ? POINT_WRITE_TEMPORARY : POINT_WRITE;
}

ssize_t __real_read(int fd, void *buffer, size_t nbytes);
ssize_t __wrap_read(int fd, void *buffer, size_t nbytes);
ssize_t __wrap_read(int fd, void *buffer, size_t nbytes)
{
	switch (point_pass(read_point(fd))) {
	case EFFECT_FAIL:
		return -1;
	case EFFECT_END:
		return 0;
	case EFFECT_SHORT:
		return __real_read(fd, buffer, (nbytes + 1) / 2);
	default:
		return __real_read(fd, buffer, nbytes);
	}
}

ssize_t __real_pread64(int fd, void *buffer, size_t nbytes, off_t offset);
ssize_t __real_pwrite64(int fd, const void *data, size_t nbytes, off_t offset);
int __real_ftruncate64(int fd, off_t nbytes);

/* Which byte of a transfer the fault is about. */
static size_t fault_position(size_t nbytes)
{
	const size_t position = points.fault.position;

	return nbytes == 0 ? 0 : position == POSITION_LAST ? nbytes - 1 : position % nbytes;
}

static void damage(int fd, off_t offset)
{
	unsigned char byte;

	if (__real_pread64(fd, &byte, 1, offset) != 1)
		return;
	byte ^= 0x10;
	if (__real_pwrite64(fd, &byte, 1, offset) != 1)
		abort();
}

ssize_t __wrap_pread64(int fd, void *buffer, size_t nbytes, off_t offset);
ssize_t __wrap_pread64(int fd, void *buffer, size_t nbytes, off_t offset)
{
	const off_t position = offset + (off_t)fault_position(nbytes);

	switch (point_pass(read_point(fd))) {
	case EFFECT_FAIL:
		return -1;
	case EFFECT_END:
		return 0;
	case EFFECT_SHORT:
		return __real_pread64(fd, buffer, (nbytes + 1) / 2, offset);
	case EFFECT_DAMAGE:
		damage(fd, position);
		break;
	case EFFECT_CUT:
		if (__real_ftruncate64(fd, position) < 0)
			abort();
		break;
	default:
		break;
	}
	return __real_pread64(fd, buffer, nbytes, offset);
}

ssize_t __real_write(int fd, const void *data, size_t nbytes);
void *__real_malloc(size_t nbytes);

/* At its position if offset is negative. */
static ssize_t write_at(int fd, const void *data, size_t nbytes, off_t offset)
{
	return offset < 0 ? __real_write(fd, data, nbytes) :
			    __real_pwrite64(fd, data, nbytes, offset);
}

static ssize_t write_altered(int fd, const void *data, size_t nbytes, off_t offset)
{
	unsigned char *copy = __real_malloc(nbytes);
	ssize_t n;

	if (!copy)
		abort();
	memcpy(copy, data, nbytes);
	copy[fault_position(nbytes)] ^= 0x10;
	n = write_at(fd, copy, nbytes, offset);
	free(copy);
	return n;
}

static ssize_t write_twin(int fd, const void *data, size_t nbytes, off_t offset)
{
	switch (point_pass(write_point(fd))) {
	case EFFECT_FAIL:
		return -1;
	case EFFECT_END:
		return 0;
	case EFFECT_SHORT:
		return write_at(fd, data, (nbytes + 1) / 2, offset);
	case EFFECT_LOSE:
		return (ssize_t)nbytes;
	case EFFECT_ALTER:
		return write_altered(fd, data, nbytes, offset);
	default:
		return write_at(fd, data, nbytes, offset);
	}
}

ssize_t __wrap_write(int fd, const void *data, size_t nbytes);
ssize_t __wrap_write(int fd, const void *data, size_t nbytes)
{
	return write_twin(fd, data, nbytes, -1);
}

ssize_t __wrap_pwrite64(int fd, const void *data, size_t nbytes, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t nbytes, off_t offset)
{
	return write_twin(fd, data, nbytes, offset);
}

int __real_fallocate64(int fd, int mode, off_t offset, off_t nbytes);
int __wrap_fallocate64(int fd, int mode, off_t offset, off_t nbytes);
int __wrap_fallocate64(int fd, int mode, off_t offset, off_t nbytes)
{
	return fails(mode & FALLOC_FL_PUNCH_HOLE ? POINT_PUNCH : POINT_PREALLOCATE) ?
		       -1 :
		       __real_fallocate64(fd, mode, offset, nbytes);
}

/* --- Calls that either happen or fail --- */

/* A twin of a function of the type, with parameters and arguments in parentheses. */
#define TWIN(point, type, failure, name, parameters, arguments)                                    \
	type __real_##name parameters;                                                             \
	type __wrap_##name parameters;                                                             \
	type __wrap_##name parameters                                                              \
	{                                                                                          \
		return fails(point) ? (failure) : __real_##name arguments;                         \
	}

/* clang-format off */
TWIN(POINT_EXAMINE, int, -1, stat64, (const char *path, struct stat64 *status), (path, status))
TWIN(POINT_EXAMINE, int, -1, fstat64, (int fd, struct stat64 *status), (fd, status))
TWIN(POINT_EXAMINE, int, -1, fstatat64,
	(int directory, const char *path, struct stat64 *status, int flags),
	(directory, path, status, flags))
TWIN(POINT_EXAMINE, int, -1, statvfs64, (const char *path, struct statvfs64 *status),
	(path, status))
TWIN(POINT_EXAMINE, int, -1, fstatvfs64, (int fd, struct statvfs64 *status), (fd, status))
TWIN(POINT_TRUNCATE, int, -1, ftruncate64, (int fd, off_t nbytes), (fd, nbytes))
TWIN(POINT_SYNC, int, -1, fsync, (int fd), (fd))
TWIN(POINT_LINK, int, -1, linkat, (int from, const char *name, int to, const char *as, int flags),
	(from, name, to, as, flags))
TWIN(POINT_RENAME, int, -1, renameat, (int from, const char *name, int to, const char *as),
	(from, name, to, as))
TWIN(POINT_PERMISSIONS, int, -1, fchmod, (int fd, mode_t mode), (fd, mode))
TWIN(POINT_EVENT, int, -1, eventfd, (unsigned count, int flags), (count, flags))
/* clang-format on */

/* A ring's transfers would pass the points by: there are none. */
int __wrap_io_uring_queue_init(unsigned n_entries, struct io_uring *ring, unsigned flags);
int __wrap_io_uring_queue_init(unsigned n_entries, struct io_uring *ring, unsigned flags)
{
	(void)n_entries, (void)ring, (void)flags;
	return -ENOSYS;
}

/* --- Streams --- */

TWIN(POINT_STREAM, FILE *, NULL, fopen64, (const char *path, const char *mode), (path, mode))

int __real_fclose(FILE *stream);
int __wrap_fclose(FILE *stream);
int __wrap_fclose(FILE *stream)
{
	const int r = __real_fclose(stream);

	return fails(POINT_STREAM) ? EOF : r;
}

/* --- Memory --- */

/* clang-format off */
TWIN(POINT_ALLOCATION, void *, NULL, malloc, (size_t nbytes), (nbytes))
TWIN(POINT_ALLOCATION, void *, NULL, calloc, (size_t n, size_t nbytes), (n, nbytes))
TWIN(POINT_ALLOCATION, void *, NULL, realloc, (void *memory, size_t nbytes), (memory, nbytes))
TWIN(POINT_ALLOCATION, void *, NULL, reallocarray, (void *memory, size_t n, size_t nbytes),
	(memory, n, nbytes))
TWIN(POINT_ALLOCATION, void *, NULL, aligned_alloc, (size_t alignment, size_t nbytes),
	(alignment, nbytes))
TWIN(POINT_ALLOCATION, char *, NULL, strdup, (const char *text), (text))
/* clang-format on */

int __wrap_asprintf(char **ret_text, const char *format, ...);
int __wrap_asprintf(char **ret_text, const char *format, ...)
{
	va_list arguments;
	int n;

	if (fails(POINT_ALLOCATION))
		return -1;
	va_start(arguments, format);
	n = vasprintf(ret_text, format, arguments);
	va_end(arguments);
	return n;
}

void *__real_mmap64(void *address, size_t nbytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *address, size_t nbytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *address, size_t nbytes, int protection, int flags, int fd, off_t offset)
{
	if (fails(POINT_ALLOCATION))
		return (void *)-1;
	if (counting())
		atomic_fetch_add(&points.n_mappings, 1);
	return __real_mmap64(address, nbytes, protection, flags, fd, offset);
}

int __real_munmap(void *address, size_t nbytes);
int __wrap_munmap(void *address, size_t nbytes);
int __wrap_munmap(void *address, size_t nbytes)
{
	if (counting())
		atomic_fetch_sub(&points.n_mappings, 1);
	return __real_munmap(address, nbytes);
}

/* --- Threads --- */

int __real_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
			  void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
			  void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
			  void *(*run)(void *), void *argument)
{
	int r;

	if (fails(POINT_THREAD))
		return errno;
	r = __real_pthread_create(ret_thread, attributes, run, argument);
	if (r == 0 && counting())
		atomic_fetch_add(&points.n_threads, 1);
	return r;
}

int __real_pthread_join(pthread_t thread, void **ret_value);
int __wrap_pthread_join(pthread_t thread, void **ret_value);
int __wrap_pthread_join(pthread_t thread, void **ret_value)
{
	const int r = __real_pthread_join(thread, ret_value);

	if (r == 0 && counting())
		atomic_fetch_sub(&points.n_threads, 1);
	return r;
}
