/*
 * io_fixture.c - a temporary directory, and system calls with faults (see io_fixture.h)
 */
#include "tests/support/io_fixture.h"

#include <ftw.h>

struct io_faults faults;

/* Return whether this transfer fails, with errno set. Otherwise *nbytes may be reduced. */
static bool faulty_transfer(size_t *nbytes)
{
	const unsigned n = atomic_fetch_add(&faults.n_transfers, 1) + 1;

	if (faults.transfer_errno) {
		errno = faults.transfer_errno;
		return true;
	}
	if (faults.interrupt_every && n % faults.interrupt_every == 0) {
		errno = EINTR;
		return true;
	}
	if (faults.max_transfer_nbytes && *nbytes > faults.max_transfer_nbytes)
		*nbytes = faults.max_transfer_nbytes;
	return false;
}

int faulty_openat(int directory, const char *path, int flags, mode_t mode)
{
	const bool is_tmpfile = (flags & O_TMPFILE) == O_TMPFILE;
	int fd;

	if (is_tmpfile && faults.rejects_tmpfile) {
		errno = EOPNOTSUPP;
		return -1;
	}
	if (flags & O_EXCL && !is_tmpfile && faults.create_errno) {
		errno = faults.create_errno;
		return -1;
	}
	if (flags & O_DIRECT && faults.rejects_direct) {
		errno = EINVAL;
		return -1;
	}
	fd = openat(directory, path, flags, mode);
	if (is_tmpfile)
		faults.tmpfile_fd = fd;
	if (faults.faulty_directory && strcmp(path, faults.faulty_directory) == 0)
		faults.faulty_fd = fd;
	return fd;
}

static ssize_t faulty_read(int fd, void *buffer, size_t nbytes)
{
	return faulty_transfer(&nbytes) ? -1 : read(fd, buffer, nbytes);
}

static ssize_t faulty_write(int fd, const void *data, size_t nbytes)
{
	return faulty_transfer(&nbytes) ? -1 : write(fd, data, nbytes);
}

static ssize_t faulty_pread(int fd, void *buffer, size_t nbytes, off_t offset)
{
	if (faults.failing_offset_errno && offset == faults.failing_offset) {
		errno = faults.failing_offset_errno;
		return -1;
	}
	return faulty_transfer(&nbytes) ? -1 : pread(fd, buffer, nbytes, offset);
}

static ssize_t faulty_pwrite(int fd, const void *data, size_t nbytes, off_t offset)
{
	if (fd == faults.faulty_fd) {
		usleep(faults.faulty_write_delay_us);
		if (faults.faulty_write_errno) {
			errno = faults.faulty_write_errno;
			return -1;
		}
	}
	return faulty_transfer(&nbytes) ? -1 : pwrite(fd, data, nbytes, offset);
}

static int faulty_fallocate(int fd, int mode, off_t offset, off_t nbytes)
{
	const bool is_punch = mode & FALLOC_FL_PUNCH_HOLE;

	if (is_punch && faults.on_punch)
		faults.on_punch();
	if (is_punch)
		atomic_fetch_add(&faults.n_punches, 1);
	else if ((uint64_t)nbytes > atomic_load(&faults.max_preallocated_nbytes))
		atomic_store(&faults.max_preallocated_nbytes, (uint64_t)nbytes);
	return FAULTY(is_punch ? faults.punch_errno : faults.preallocate_errno,
		      fallocate(fd, mode, offset, nbytes));
}

static int faulty_ftruncate(int fd, off_t nbytes)
{
	return FAULTY(faults.ftruncate_errno, ftruncate(fd, nbytes));
}

static int faulty_fsync(int fd)
{
	const bool is_first = atomic_fetch_add(&faults.n_syncs, 1) == 0;
	const int error = is_first && faults.first_fsync_errno ? faults.first_fsync_errno :
								 faults.fsync_errno;

	if (faults.on_fsync)
		faults.on_fsync();
	return FAULTY(error, fsync(fd));
}

/* Close also if it fails, as Linux does. */
static int faulty_close(int fd)
{
	const int r = close(fd);

	return FAULTY(faults.close_errno, r);
}

static int faulty_linkat(int from, const char *name, int to, const char *new_name, int flags)
{
	return FAULTY(faults.link_errno, linkat(from, name, to, new_name, flags));
}

static int faulty_renameat(int from, const char *name, int to, const char *new_name)
{
	return FAULTY(faults.rename_errno, renameat(from, name, to, new_name));
}

static int faulty_renameat2(int from, const char *name, int to, const char *new_name,
			    unsigned flags)
{
	return FAULTY(faults.rename_errno, renameat2(from, name, to, new_name, flags));
}

static int faulty_mkdirat(int directory, const char *name, mode_t mode)
{
	return FAULTY(faults.mkdir_errno, mkdirat(directory, name, mode));
}

static int faulty_unlinkat(int directory, const char *name, int flags)
{
	return FAULTY(faults.unlink_errno, unlinkat(directory, name, flags));
}

static int faulty_fsetxattr(int fd, const char *name, const void *value, size_t nbytes, int flags)
{
	return FAULTY(faults.setxattr_errno, fsetxattr(fd, name, value, nbytes, flags));
}

struct syscalls faulty_calls = {
	.openat = faulty_openat,
	.close = faulty_close,
	.read = faulty_read,
	.write = faulty_write,
	.pread = faulty_pread,
	.pwrite = faulty_pwrite,
	.fallocate = faulty_fallocate,
	.ftruncate = faulty_ftruncate,
	.fsync = faulty_fsync,
	.linkat = faulty_linkat,
	.renameat = faulty_renameat,
	.renameat2 = faulty_renameat2,
	.mkdirat = faulty_mkdirat,
	.unlinkat = faulty_unlinkat,
	.fsetxattr = faulty_fsetxattr,
};

char fixture_directory[64];

int fixture_start(void **state)
{
	(void)state;
	memset(&faults, 0, sizeof faults);
	faults.faulty_fd = -1;
	captured_messages_reset(true);
	if (process_setup() < 0)
		return -1;
	faulty_calls.mappings = &process_get()->guards;
	faulty_calls.undo = &process_get()->undo;
	strcpy(fixture_directory, "/tmp/gsort-test-XXXXXX");
	return mkdtemp(fixture_directory) ? 0 : -1;
}

const char *fixture_path(const char *name)
{
	static char paths[16][512];
	static unsigned i;
	char *path = paths[i++ % 16];

	snprintf(path, sizeof paths[0], "%s/%s", fixture_directory, name);
	return path;
}

unsigned count_directory_entries(void)
{
	DIR *directory = opendir(fixture_directory);
	unsigned n = 0;

	while (directory && readdir(directory))
		n++;
	closedir(directory);
	return n - 2;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	(void)status, (void)type;
	return walk->level > 0 ? remove(path) : 0;
}

void fixture_clear(void)
{
	nftw(fixture_directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

int fixture_finish(void **state)
{
	(void)state;
	fixture_clear();
	return rmdir(fixture_directory);
}

void write_file(const char *path, const void *data, size_t nbytes)
{
	FILE *file = fopen(path, "w");

	if (!file || fwrite(data, 1, nbytes, file) != nbytes || fclose(file) != 0) {
		perror(path);
		abort();
	}
}

void write_text(const char *name, const char *text)
{
	char path[512];

	snprintf(path, sizeof path, "%s", fixture_path(name));
	for (char *slash = path + strlen(fixture_directory) + 1; (slash = strchr(slash, '/'));
	     slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	write_file(path, text, strlen(text));
}

bool file_contains(const char *path, const void *data, size_t nbytes)
{
	char *contents = malloc(nbytes + 1);
	FILE *file = fopen(path, "r");
	bool is_equal;

	if (!file || !contents) {
		free(contents);
		return false;
	}
	is_equal = fread(contents, 1, nbytes + 1, file) == nbytes &&
		   memcmp(contents, data, nbytes) == 0;
	fclose(file);
	free(contents);
	return is_equal;
}

void fill_pattern(void *data, size_t nbytes, uint64_t seed)
{
	unsigned char *bytes = data;
	uint64_t x = seed * 2 + 1;

	/* The high half of x is random. Single bytes would take eight times as long. */
	for (size_t i = 0; i < nbytes; i += sizeof x) {
		uint64_t word;

		x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
		word = x ^ x >> 32;
		if (nbytes - i >= sizeof word)
			memcpy(bytes + i, &word, sizeof word);
		else
			memcpy(bytes + i, &word, nbytes - i);
	}
}
