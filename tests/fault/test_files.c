/*
 * test_files - whole files, read, written and compared by the test itself (see test_files.h)
 */
#include "tests/fault/test_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

int contents_complaints = STDERR_FILENO;

void must(bool holds, const char *what)
{
	if (holds)
		return;
	dprintf(contents_complaints, "%s: %s\n", what, strerror(errno));
	_exit(99);
}

void write_file(const char *path, const void *data, size_t nbytes)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	must(fd >= 0 && write(fd, data, nbytes) == (ssize_t)nbytes && close(fd) == 0, path);
}

struct bytes read_file(const char *path)
{
	const int fd = open(path, O_RDONLY);
	struct bytes bytes = { 0 };
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0)
		return bytes;
	bytes = (struct bytes){ malloc((size_t)status.st_size + 1), (size_t)status.st_size };
	must(bytes.data && read(fd, bytes.data, bytes.nbytes) == (ssize_t)bytes.nbytes, path);
	close(fd);
	return bytes;
}

bool bytes_hold(struct bytes found, const void *data, size_t nbytes)
{
	return found.nbytes == nbytes && found.data && memcmp(found.data, data, nbytes) == 0;
}

bool file_holds(const char *path, const void *data, size_t nbytes)
{
	const struct bytes found = read_file(path);
	const bool same = bytes_hold(found, data, nbytes);

	free(found.data);
	return same;
}

bool zst_holds(const char *path, const void *data, size_t nbytes)
{
	const struct bytes stored = read_file(path);
	struct bytes found = { malloc(nbytes + 1), 0 };
	bool same;

	must(found.data != NULL, "memory");
	found.nbytes = ZSTD_decompress(found.data, nbytes + 1, stored.data, stored.nbytes);
	same = stored.data && !ZSTD_isError(found.nbytes) && bytes_hold(found, data, nbytes);
	free(found.data);
	free(stored.data);
	return same;
}

void write_zst(const char *path, struct bytes bytes)
{
	const size_t capacity = ZSTD_compressBound(bytes.nbytes);
	void *stored = malloc(capacity);
	const size_t nbytes =
		stored ? ZSTD_compress(stored, capacity, bytes.data, bytes.nbytes, 1) : 0;

	must(stored && !ZSTD_isError(nbytes), path);
	write_file(path, stored, nbytes);
	free(stored);
}

unsigned count_names(const char *path, const char *known, char unknown[static 256])
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	unsigned n = 0;

	must(directory != NULL, path);
	unknown[0] = '\0';
	while ((entry = readdir(directory))) {
		char word[300];

		n++;
		snprintf(word, sizeof word, " %s ", entry->d_name);
		if (!strstr(known, word))
			strcpy(unknown, entry->d_name);
	}
	closedir(directory);
	return n;
}
