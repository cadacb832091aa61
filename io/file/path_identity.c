/*
 * path_identity - which file a path names (see path_identity.h)
 */
#include "io/file/path_identity.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The kernel follows as many symbolic links. */
#define MAX_LINKS 40

/*
 * Read the symbolic link `path`; a relative target is made relative to the directory of `path`.
 * Returns 1 and a path to free(), 0 if `path` is no link, or -ENOMEM.
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

/* Follow symbolic links until should_stop() returns true or the path is no link. */
static int follow_links(const char *path, bool (*should_stop)(const char *path), char **ret_path)
{
	char *current = strdup(path);
	int r = current ? 1 : -ENOMEM;

	for (int i = 0; r > 0 && i <= MAX_LINKS; i++) {
		char *next;

		r = should_stop && should_stop(current) ? 0 : read_link(current, &next);
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

int path_follow_links(const char *path, char **ret_path)
{
	return follow_links(path, NULL, ret_path);
}

/* Return N of /proc/self/fd/N and /dev/fd/N, -1 for other paths. */
static int parse_fd_path(const char *path)
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

static bool is_fd_path(const char *path)
{
	return parse_fd_path(path) >= 0;
}

int path_to_descriptor(const char *path)
{
	int fd = parse_fd_path(path);
	char *end;

	if (fd >= 0 || follow_links(path, is_fd_path, &end) < 0)
		return fd;
	fd = parse_fd_path(end);
	free(end);
	return fd;
}

static struct path_identity path_identity_from_stat(const struct stat *status)
{
	return (struct path_identity){ .exists = true,
				       .mode = status->st_mode,
				       .identity = file_id_from_stat(status) };
}

int path_identity_from_fd(int fd, struct path_identity *ret_identity)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return -errno;
	*ret_identity = path_identity_from_stat(&status);
	return 0;
}

/* Normalise "a/./b//c/../d" to "a/b/d". For missing paths, which contain no symbolic links. */
static void normalize_path(char *path)
{
	const char *component = path;
	size_t n = 0; /* length of the result; never ahead of the component */

	while (*component) {
		const size_t length = strcspn(component, "/");

		if (length == 2 && component[0] == '.' && component[1] == '.') {
			while (n && path[--n] != '/')
				;
		} else if (length > 1 || (length == 1 && *component != '.')) {
			if (n)
				path[n++] = '/';
			memmove(path + n, component, length);
			n += length;
		}
		component += length;
		component += strspn(component, "/");
	}
	path[n] = '\0';
}

/* stat() the directory in the first n bytes of the path, which end with a slash; n == 0: ".". */
static int stat_directory(const char *path, size_t n, struct stat *ret_status)
{
	char *directory = n ? strndup(path, n) : strdup(".");
	int r;

	if (!directory)
		return -ENOMEM;
	r = stat(directory, ret_status) < 0 ? -errno : 0;
	free(directory);
	return r;
}

/* Find the nearest existing directory of the path, in its first *ret_length bytes. */
static int find_existing_directory(const char *path, struct stat *ret_status, size_t *ret_length)
{
	size_t n = strlen(path);
	int r;

	do {
		while (n && path[n - 1] == '/')
			n--;
		while (n && path[n - 1] != '/')
			n--;
		r = stat_directory(path, n, ret_status);
	} while (r == -ENOENT && n);
	*ret_length = n;
	return r;
}

static int resolve_missing_path(const char *path, struct path_identity *ret_identity)
{
	struct stat status;
	size_t length;
	char *end, *missing_path;
	int r = path_follow_links(path, &end);

	if (r < 0)
		return r;
	r = find_existing_directory(end, &status, &length);
	missing_path = r == 0 ? strdup(end + length) : NULL;
	free(end);
	if (r < 0)
		return r;
	if (!missing_path)
		return -ENOMEM;
	normalize_path(missing_path);
	*ret_identity = (struct path_identity){ .identity = file_id_from_stat(&status),
						.missing_path = missing_path };
	return 0;
}

int path_identity_resolve(const char *path, struct path_identity *ret_identity)
{
	struct stat status;

	if (stat(path, &status) < 0)
		return errno == ENOENT ? resolve_missing_path(path, ret_identity) : -errno;
	*ret_identity = path_identity_from_stat(&status);
	return 0;
}

bool path_identity_equal(const struct path_identity *a, const struct path_identity *b)
{
	if (a->exists != b->exists || !file_id_equal(a->identity, b->identity))
		return false;
	return a->exists || strcmp(a->missing_path, b->missing_path) == 0;
}

void path_identity_free(struct path_identity *identity)
{
	free(identity->missing_path);
	identity->missing_path = NULL;
}
