/*
 * capture_output - what was written to a file or to a descriptor, as text
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CAPTURED_NBYTES = 1 << 16 };

/* The text of the file at `path`, in `text`; "" if it cannot be read. */
static inline const char *read_text_file(const char *path, char text[static CAPTURED_NBYTES])
{
	FILE *file = fopen(path, "re");
	size_t nbytes = 0;

	if (file) {
		nbytes = fread(text, 1, CAPTURED_NBYTES - 1, file);
		fclose(file);
	}
	text[nbytes] = '\0';
	return text;
}

/* Makes an empty file and puts its name, "/tmp/gsort-test.XXXXXX", into `path`. */
static inline void make_temp_file(char path[static 32])
{
	int fd;

	strcpy(path, "/tmp/gsort-test.XXXXXX");
	fd = mkstemp(path);
	if (fd < 0) {
		perror(path);
		abort();
	}
	close(fd);
}
