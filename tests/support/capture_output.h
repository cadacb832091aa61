/*
 * capture_output.h - read as text what was written to a file or a descriptor
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CAPTURED_NBYTES = 1 << 16 };

/* Read the file at `path` into `text`; "" if it cannot be read. */
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

/* Create an empty file and store its name, "/tmp/gsort-test.XXXXXX", in `path`. */
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
