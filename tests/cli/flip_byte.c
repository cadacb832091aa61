/*
 * flip_byte - replace a byte of a file by its complement, and back, repeatedly
 *
 * usage: flip_byte FILE OFFSET < PIPE
 *
 * Writes through a mapping, some ten million times a second, until standard input ends. Then
 * restores the byte.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { POLL_INTERVAL_N = 1000 };

static int is_input_open(void)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };

	return poll(&in, 1, 0) == 0;
}

int main(int argc, char **argv)
{
	const size_t offset = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
	const int fd = argc == 3 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
	volatile unsigned char *bytes;

	if (fd < 0) {
		fprintf(stderr, "usage: flip_byte FILE OFFSET < PIPE\n");
		return 2;
	}
	bytes = mmap(NULL, offset + 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED) {
		perror(argv[1]);
		return 2;
	}
	while (is_input_open())
		for (unsigned i = 0; i < 2 * POLL_INTERVAL_N; i++)
			bytes[offset] = (unsigned char)~bytes[offset];
	return 0;
}
