/*
 * peak_space_hooks - measure the peak space of the files of a command, from inside (see
 * peak_space.c)
 *
 * Many calls allocate space, but few release it: fallocate() (holes), ftruncate() and close().
 * Between two of these calls the space only grows. So the space is measured before each of them,
 * under a lock that keeps other threads from releasing space. No peak is missed, and a sum over
 * several files is never too large. The library is preloaded and writes the peak in KiB to the
 * descriptor PEAK_SPACE_FD.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILES = 256 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long long peak_kib; /* under the lock */

/* Return whether the file was counted in this sample. If not, count it. */
static int is_counted(const struct stat *file, struct stat *counted, size_t *n_counted)
{
	for (size_t i = 0; i < *n_counted; i++)
		if (counted[i].st_dev == file->st_dev && counted[i].st_ino == file->st_ino)
			return 1;
	if (*n_counted < MAX_FILES)
		counted[(*n_counted)++] = *file;
	return 0;
}

/* Call with the lock held. */
static void sample_space(void)
{
	static struct stat counted[MAX_FILES];
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;
	long long n_blocks = 0;
	size_t n_counted = 0;

	while (directory && (entry = readdir(directory))) {
		struct stat file;

		if (fstatat(dirfd(directory), entry->d_name, &file, 0) == 0 &&
		    S_ISREG(file.st_mode) && !is_counted(&file, counted, &n_counted))
			n_blocks += file.st_blocks;
	}
	if (directory)
		closedir(directory);
	if (n_blocks / 2 > peak_kib)
		peak_kib = n_blocks / 2;
}

static void *next(const char *name, const char *otherwise)
{
	void *function = dlsym(RTLD_NEXT, name);

	return function ? function : dlsym(RTLD_NEXT, otherwise);
}

int fallocate(int fd, int mode, off_t offset, off_t nbytes)
{
	int (*real)(int, int, off_t, off_t) = next("fallocate64", "fallocate");
	int r;

	if (!(mode & FALLOC_FL_PUNCH_HOLE))
		return real(fd, mode, offset, nbytes);
	pthread_mutex_lock(&lock);
	sample_space();
	r = real(fd, mode, offset, nbytes);
	pthread_mutex_unlock(&lock);
	return r;
}

int ftruncate(int fd, off_t nbytes)
{
	int (*real)(int, off_t) = next("ftruncate64", "ftruncate");
	int r;

	pthread_mutex_lock(&lock);
	sample_space();
	r = real(fd, nbytes);
	pthread_mutex_unlock(&lock);
	return r;
}

int close(int fd)
{
	int (*real)(int) = next("close", "close");
	struct stat file;
	int r;

	if (fstat(fd, &file) < 0 || !S_ISREG(file.st_mode))
		return real(fd);
	pthread_mutex_lock(&lock);
	sample_space();
	r = real(fd);
	pthread_mutex_unlock(&lock);
	return r;
}

__attribute__((destructor)) static void write_peak(void)
{
	const char *fd = getenv("PEAK_SPACE_FD");

	pthread_mutex_lock(&lock);
	sample_space();
	if (fd)
		dprintf(atoi(fd), "%lld\n", peak_kib);
	pthread_mutex_unlock(&lock);
}
