/*
 * path_identity - which file a path leads to, whether it is there or not (see path_identity.h)
 */
#include "io/file/path_identity.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As many as the kernel follows. */
#define MAX_LINKS 40

/*
 * What the symbolic link `path` points to, as seen from where `path` is seen. 1 and a path to
 * free(), 0 if it is no link, or -ENOMEM.
 */
static int read_link(const char *path, char **ret_path)
{
	char link[PATH_MAX];
	const ssize_t n = readlink(path, link, sizeof link - 1);
	const char *slash = strrchr(path, '/');
	int length;

	if (n < 0)
		return 0;
	link[n] = '\0';
	length = slash && link[0] != '/' ? (int)(slash + 1 - path) : 0;
	return asprintf(ret_path, "%.*s%s", length, path, link) < 0 ? -ENOMEM : 1;
}

/* Follow links as long as `stops` lets it and there are any. */
static int follow(const char *path, bool (*stops)(const char *path), char **ret_path)
{
	char *current = strdup(path);
	int r = current ? 1 : -ENOMEM;

	for (int i = 0; r > 0 && i <= MAX_LINKS; i++) {
		char *next;

		r = stops && stops(current) ? 0 : read_link(current, &next);
		if (r > 0) {
			free(current);
			current = next;
		}
	}
	if (r == 0) {
		*ret_path = current;
		return 0;
	}
	free(current);
	return r < 0 ? r : -ELOOP;
}

int place_follow_links(const char *path, char **ret_path)
{
	return follow(path, NULL, ret_path);
}

/* The number at the end of /proc/self/fd/3, -1 of anything else. */
static int descriptor_of(const char *path)
{
	static const char *const directories[] = { "/proc/self/fd/", "/dev/fd/" };

	for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) {
		const size_t n = strlen(directories[i]);
		char *end;
		long fd;

		if (strncmp(path, directories[i], n) != 0 || path[n] < '0' || path[n] > '9')
			continue;
		fd = strtol(path + n, &end, 10);
		return *end || fd > INT_MAX ? -1 : (int)fd;
	}
	return -1;
}

static bool is_descriptor(const char *path)
{
	return descriptor_of(path) >= 0;
}

int place_descriptor(const char *path)
{
	int fd = descriptor_of(path);
	char *end;

	if (fd >= 0 || follow(path, is_descriptor, &end) < 0)
		return fd;
	fd = descriptor_of(end);
	free(end);
	return fd;
}

static struct place place_of(const struct stat *status)
{
	return (struct place){ .exists = true,
			       .mode = status->st_mode,
			       .identity = file_identity_of(status) };
}

int place_of_descriptor(int fd, struct place *ret_place)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return -errno;
	*ret_place = place_of(&status);
	return 0;
}

/* "a/./b//c/../d" becomes "a/b/d": in what is not there yet there are no links. */
static void tidy(char *path)
{
	const char *at = path;
	size_t n = 0; /* of what is kept, which is less than what was read */

	while (*at) {
		const size_t length = strcspn(at, "/");

		if (length == 2 && at[0] == '.' && at[1] == '.') {
			while (n && path[--n] != '/')
				;
		} else if (length > 1 || (length == 1 && *at != '.')) {
			if (n)
				path[n++] = '/';
			memmove(path + n, at, length);
			n += length;
		}
		at += length;
		at += strspn(at, "/");
	}
	path[n] = '\0';
}

/* The directory in the first n bytes of the path, which end with a slash or are none. */
static int examine_directory(const char *path, size_t n, struct stat *ret_status)
{
	char *directory = n ? strndup(path, n) : strdup(".");
	int r;

	if (!directory)
		return -ENOMEM;
	r = stat(directory, ret_status) < 0 ? -errno : 0;
	free(directory);
	return r;
}

/* The nearest directory of the path that is there; *ret_length of the path lead to it. */
static int find_directory(const char *path, struct stat *ret_status, size_t *ret_length)
{
	size_t n = strlen(path);
	int r;

	do {
		while (n && path[n - 1] == '/')
			n--;
		while (n && path[n - 1] != '/')
			n--;
		r = examine_directory(path, n, ret_status);
	} while (r == -ENOENT && n);
	*ret_length = n;
	return r;
}

static int place_of_missing(const char *path, struct place *ret_place)
{
	struct stat status;
	size_t length;
	char *end, *rest;
	int r = place_follow_links(path, &end);

	if (r < 0)
		return r;
	r = find_directory(end, &status, &length);
	rest = r == 0 ? strdup(end + length) : NULL;
	free(end);
	if (r < 0)
		return r;
	if (!rest)
		return -ENOMEM;
	tidy(rest);
	*ret_place = (struct place){ .identity = file_identity_of(&status), .rest = rest };
	return 0;
}

int place_of_path(const char *path, struct place *ret_place)
{
	struct stat status;

	if (stat(path, &status) < 0)
		return errno == ENOENT ? place_of_missing(path, ret_place) : -errno;
	*ret_place = place_of(&status);
	return 0;
}

bool place_is_same(const struct place *a, const struct place *b)
{
	if (a->exists != b->exists || !file_identity_equal(a->identity, b->identity))
		return false;
	return a->exists || strcmp(a->rest, b->rest) == 0;
}

void place_free(struct place *place)
{
	free(place->rest);
	place->rest = NULL;
}
