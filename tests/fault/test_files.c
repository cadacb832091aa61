/*
 * test_files.c - read, write and compare whole files in a test (see test_files.h)
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
#include <zlib.h>
#include <zstd.h>

int test_error_fd = STDERR_FILENO;

void require(bool condition, const char *what)
{
	if (condition)
		return;
	dprintf(test_error_fd, "%s: %s\n", what, strerror(errno));
	_exit(99);
}

void write_file(const char *path, const void *data, size_t nbytes)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	require(fd >= 0 && write(fd, data, nbytes) == (ssize_t)nbytes && close(fd) == 0, path);
}

struct byte_buffer read_file(const char *path)
{
	const int fd = open(path, O_RDONLY);
	struct byte_buffer bytes = { 0 };
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0)
		return bytes;
	bytes = (struct byte_buffer){ malloc((size_t)status.st_size + 1), (size_t)status.st_size };
	require(bytes.data && read(fd, bytes.data, bytes.nbytes) == (ssize_t)bytes.nbytes, path);
	close(fd);
	return bytes;
}

bool bytes_equal(struct byte_buffer actual, const void *data, size_t nbytes)
{
	return actual.nbytes == nbytes && actual.data && memcmp(actual.data, data, nbytes) == 0;
}

bool file_contains(const char *path, const void *data, size_t nbytes)
{
	static char piece[1 << 16];
	const char *expected = data;
	const int fd = open(path, O_RDONLY);
	bool is_equal = fd >= 0;
	size_t n_equal = 0;
	ssize_t n = 0;

	/* In pieces: up to three files are compared after each fault, and new memory takes time. */
	while (is_equal && (n = read(fd, piece, sizeof piece)) > 0) {
		is_equal = (size_t)n <= nbytes - n_equal &&
			   memcmp(piece, expected + n_equal, (size_t)n) == 0;
		n_equal += (size_t)n;
	}
	if (fd >= 0)
		close(fd);
	return is_equal && n == 0 && n_equal == nbytes;
}

bool zst_contains(const char *path, const void *data, size_t nbytes)
{
	const struct byte_buffer compressed = read_file(path);
	struct byte_buffer actual = { malloc(nbytes + 1), 0 };
	bool is_equal;

	require(actual.data != NULL, "memory");
	actual.nbytes =
		ZSTD_decompress(actual.data, nbytes + 1, compressed.data, compressed.nbytes);
	is_equal = compressed.data && !ZSTD_isError(actual.nbytes) &&
		   bytes_equal(actual, data, nbytes);
	free(actual.data);
	free(compressed.data);
	return is_equal;
}

void write_zst(const char *path, struct byte_buffer bytes)
{
	const size_t capacity = ZSTD_compressBound(bytes.nbytes);
	void *compressed = malloc(capacity);
	const size_t nbytes =
		compressed ? ZSTD_compress(compressed, capacity, bytes.data, bytes.nbytes, 1) : 0;

	require(compressed && !ZSTD_isError(nbytes), path);
	write_file(path, compressed, nbytes);
	free(compressed);
}

void write_gzip(const char *path, struct byte_buffer bytes)
{
	const size_t capacity = compressBound(bytes.nbytes) + 64;
	z_stream gzip = { .next_in = bytes.data, .avail_in = (uInt)bytes.nbytes };
	unsigned char *compressed = malloc(capacity);

	require(compressed && deflateInit2(&gzip, 1, Z_DEFLATED, MAX_WBITS + 16, 8, 0) == Z_OK,
		path);
	gzip.next_out = compressed;
	gzip.avail_out = (uInt)capacity;
	require(deflate(&gzip, Z_FINISH) == Z_STREAM_END, path);
	write_file(path, compressed, gzip.total_out);
	deflateEnd(&gzip);
	free(compressed);
}

unsigned count_directory_entries(const char *path, const char *known_names,
				 char unknown_name[static 256])
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	unsigned n = 0;

	require(directory != NULL, path);
	unknown_name[0] = '\0';
	while ((entry = readdir(directory))) {
		char word[300];

		n++;
		snprintf(word, sizeof word, " %s ", entry->d_name);
		if (!strstr(known_names, word))
			strcpy(unknown_name, entry->d_name);
	}
	closedir(directory);
	return n;
}
