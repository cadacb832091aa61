/*
 * wrap_system.c - doubles of calls for memory, threads and streams (see fault_points.h)
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "tests/fault/wrapper.h"

/* Since Linux 5.14. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

WRAP_CALL(POINT_EVENTFD, int, -1, eventfd, (unsigned count, int flags), (count, flags))

/* --- Streams --- */

WRAP_CALL(POINT_STREAM, FILE *, NULL, fopen64, (const char *path, const char *mode), (path, mode))

int __real_fclose(FILE *stream);
int __wrap_fclose(FILE *stream);
int __wrap_fclose(FILE *stream)
{
	const int r = __real_fclose(stream);

	return fault_point_fails(POINT_STREAM) ? EOF : r;
}

/* --- Memory --- */

/* clang-format off */
WRAP_CALL(POINT_ALLOCATION, void *, NULL, malloc, (size_t nbytes), (nbytes))
WRAP_CALL(POINT_ALLOCATION, void *, NULL, calloc, (size_t n, size_t nbytes), (n, nbytes))
WRAP_CALL(POINT_ALLOCATION, void *, NULL, realloc, (void *memory, size_t nbytes), (memory, nbytes))
WRAP_CALL(POINT_ALLOCATION, void *, NULL, reallocarray, (void *memory, size_t n, size_t nbytes),
	(memory, n, nbytes))
WRAP_CALL(POINT_ALLOCATION, void *, NULL, aligned_alloc, (size_t alignment, size_t nbytes),
	(alignment, nbytes))
WRAP_CALL(POINT_ALLOCATION, char *, NULL, strdup, (const char *text), (text))
WRAP_CALL(POINT_ALLOCATION, FILE *, NULL, open_memstream, (char **ret_text, size_t *ret_nbytes),
	(ret_text, ret_nbytes))
WRAP_CALL(POINT_ALLOCATION, ZSTD_CCtx *, NULL, ZSTD_createCCtx, (void), ())
WRAP_CALL(POINT_ALLOCATION, ZSTD_DCtx *, NULL, ZSTD_createDCtx, (void), ())
WRAP_CALL(POINT_ALLOCATION, ZSTD_DStream *, NULL, ZSTD_createDStream, (void), ())
WRAP_CALL(POINT_ALLOCATION, int, Z_MEM_ERROR, inflateInit2_,
	(z_stream *stream, int bits, const char *version, int nbytes),
	(stream, bits, version, nbytes))
/* clang-format on */

int __wrap_asprintf(char **ret_text, const char *format, ...);
int __wrap_asprintf(char **ret_text, const char *format, ...)
{
	va_list arguments;
	int n;

	if (fault_point_fails_at(POINT_ALLOCATION, __builtin_return_address(0)))
		return -1;
	va_start(arguments, format);
	n = vasprintf(ret_text, format, arguments);
	va_end(arguments);
	return n;
}

/* Return the pages of a mapping. Parts of it may be unmapped, so pages are counted. */
static int count_pages(size_t nbytes)
{
	const size_t page_nbytes = (size_t)sysconf(_SC_PAGESIZE);

	return (int)((nbytes + page_nbytes - 1) / page_nbytes);
}

void *__real_mmap64(void *address, size_t nbytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *address, size_t nbytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *address, size_t nbytes, int protection, int flags, int fd, off_t offset)
{
	if (fault_point_fails_at(POINT_ALLOCATION, __builtin_return_address(0)))
		return (void *)-1;
	fault_points_count_resource(RESOURCE_MAPPED_PAGE, count_pages(nbytes));
	return __real_mmap64(address, nbytes, protection, flags, fd, offset);
}

int __real_munmap(void *address, size_t nbytes);
int __wrap_munmap(void *address, size_t nbytes);
int __wrap_munmap(void *address, size_t nbytes)
{
	fault_points_count_resource(RESOURCE_MAPPED_PAGE, -count_pages(nbytes));
	return __real_munmap(address, nbytes);
}

/* Populating pages for writing allocates memory. It is a hint and may fail. */
int __real_madvise(void *address, size_t nbytes, int advice);
int __wrap_madvise(void *address, size_t nbytes, int advice);
int __wrap_madvise(void *address, size_t nbytes, int advice)
{
	return advice == MADV_POPULATE_WRITE &&
			       fault_point_fails_at(POINT_ALLOCATION, __builtin_return_address(0)) ?
		       -1 :
		       __real_madvise(address, nbytes, advice);
}

/* --- Threads --- */

static _Thread_local bool in_thread_start; /* thread_start() is running, and counts the thread */

int __real_thread_start(void *(*run)(void *), void *argument, size_t stack_nbytes,
			pthread_t *ret_thread);
int __wrap_thread_start(void *(*run)(void *), void *argument, size_t stack_nbytes,
			pthread_t *ret_thread);
int __wrap_thread_start(void *(*run)(void *), void *argument, size_t stack_nbytes,
			pthread_t *ret_thread)
{
	int r;

	/* One place starts all groups of threads. Their functions distinguish them. */
	if (fault_point_fails_at(POINT_THREAD, (const void *)run))
		return -errno;
	in_thread_start = true;
	r = __real_thread_start(run, argument, stack_nbytes, ret_thread);
	in_thread_start = false;
	fault_points_count_resource(RESOURCE_THREAD, r == 0);
	return r;
}

/* Threads of the command line, which do not belong to a job. */
int __real_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
			  void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
			  void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
			  void *(*run)(void *), void *argument)
{
	int r;

	if (!in_thread_start && fault_point_fails_at(POINT_THREAD, __builtin_return_address(0)))
		return errno;
	r = __real_pthread_create(ret_thread, attributes, run, argument);
	if (!in_thread_start)
		fault_points_count_resource(RESOURCE_THREAD, r == 0);
	return r;
}

int __real_pthread_join(pthread_t thread, void **ret_value);
int __wrap_pthread_join(pthread_t thread, void **ret_value);
int __wrap_pthread_join(pthread_t thread, void **ret_value)
{
	const int r = __real_pthread_join(thread, ret_value);

	fault_points_count_resource(RESOURCE_THREAD, -(r == 0));
	return r;
}
