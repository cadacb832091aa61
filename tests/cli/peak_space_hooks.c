/*
 * peak_space_hooks - inside of the command that peak_space runs: what space its files take at most
 *
 * Space is taken by many calls, and given back by few: fallocate() (holes), ftruncate() and
 * close(). Between two of these it only grows, so it is looked at in front of each, while no other
 * thread can give any back: no peak is missed, and what is added up over several files has never
 * been more than there was at the end. Preloaded; PEAK_SPACE_FD is where the peak goes, in KiB.
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

/* Has the file been counted in this sample? If not, it has now. */
static int is_counted(const struct stat *file, struct stat *counted, size_t *n_counted)
{
	for (size_t i = 0; i < *n_counted; i++)
		if (counted[i].st_dev == file->st_dev && counted[i].st_ino == file->st_ino)
			return 1;
	if (*n_counted < MAX_FILES)
		counted[(*n_counted)++] = *file;
	return 0;
}

/* Under the lock */
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
