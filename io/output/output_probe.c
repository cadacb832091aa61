/*
 * output_probe.c - find out about an output without writing it (see output.h)
 */
#include "io/output/output.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

bool output_is_special_file(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

int output_try(const struct syscalls *calls, const char *path)
{
	struct output *output;
	int r;

	if (output_is_special_file(path))
		return 0;
	r = output_open(calls, path, 0, &output);
	if (r == 0)
		output_abort(output);
	return r;
}

bool output_find_free_space(const char *path, uint64_t *ret_nbytes)
{
	size_t length = strlen(path);
	struct statvfs space;
	char *directory;
	bool is_known;

	while (length > 1 && path[length - 1] == '/') /* of the directory of part files */
		length--;
	while (length > 0 && path[length - 1] != '/')
		length--;
	directory = length ? strndup(path, length) : strdup(".");
	is_known = directory && statvfs(directory, &space) == 0;
	if (is_known)
		*ret_nbytes = (uint64_t)space.f_bavail * space.f_frsize;
	free(directory);
	return is_known;
}
