/*
 * files0.c - lists of file names (see files0.h)
 */
#include "src/options/files0.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/input/input.h"
#include "src/base/diagnostics.h"

/* The maximum length of a list. A device that never ends must not fill the memory. */
enum { FILES0_MAX_NBYTES = 256 << 20 };

/*
 * The minimum room for a read. A pipe may be in packet mode, and must not be read in shorter pieces
 * (file.h).
 */
enum { FILES0_MIN_READ_NBYTES = 64 << 10 };

static size_t count_ends(const char *text, size_t nbytes)
{
	size_t n = 0;

	for (size_t i = 0; i < nbytes; i++)
		n += text[i] == '\0';
	return n;
}

/*
 * Read the whole file, and append a NUL. getdelim() would copy each name once more. Names beyond
 * memory_nbytes are counted, but not kept.
 */
static int read_name_list(int fd, const char *path, uint64_t memory_nbytes, char **ret_text,
			  size_t *ret_nbytes)
{
	size_t nbytes = 0, capacity = 0, n_names = 0, n_read = 0;
	char *text = NULL;
	ssize_t n;

	do {
		char *new_text = text;

		if (!input_names_fit(memory_nbytes, n_names, n_read))
			nbytes = 0;
		if (capacity - nbytes <= FILES0_MIN_READ_NBYTES) {
			capacity = capacity ? 2 * capacity : 2 * FILES0_MIN_READ_NBYTES;
			new_text = realloc(text, capacity);
		}
		if (!new_text) {
			free(text);
			return fail(-ENOMEM, "%s: %m", path);
		}
		text = new_text;
		do {
			n = read(fd, text + nbytes, capacity - nbytes - 1);
		} while (n < 0 && errno == EINTR);
		n_names += n > 0 ? count_ends(text + nbytes, (size_t)n) : 0;
		n_read += n > 0 ? (size_t)n : 0;
		nbytes += n > 0 ? (size_t)n : 0;
	} while (n > 0 && n_read < FILES0_MAX_NBYTES);
	if (n < 0) {
		const int r = fail(-errno, "%s: read of file names: %m", path);

		free(text);
		return r;
	}
	if (n > 0) {
		free(text);
		return fail(-EFBIG, "%s: longer than %d MiB; not a list of file names", path,
			    FILES0_MAX_NBYTES >> 20);
	}
	if (!input_names_fit(memory_nbytes, n_names, n_read)) {
		free(text);
		return input_check_names(memory_nbytes, n_names, n_read);
	}
	text[nbytes] = '\0';
	*ret_text = text;
	*ret_nbytes = nbytes;
	return 0;
}

static size_t count_names(const char *text, size_t nbytes)
{
	size_t n = 0;

	for (size_t offset = 0; offset < nbytes; offset += strlen(text + offset) + 1)
		n++;
	return n;
}

static int split_names(const char *path, const char *text, const char **names, size_t n)
{
	for (size_t i = 0; i < n; i++, text += strlen(text) + 1) {
		if (!*text)
			return fail(-EINVAL, "%s: file name %zu is empty", path, i + 1);
		if (!strcmp(path, "-") && !strcmp(text, "-"))
			return fail(-EINVAL,
				    "--files0-from: file name %zu is '-', but the list itself is "
				    "standard input",
				    i + 1);
		names[i] = text;
	}
	return 0;
}

/*
 * Return whether the text is lines, as "find" without -print0 and "ls" write them. A single name
 * may contain newlines if it exists.
 */
static bool is_newline_separated(const char *text, size_t nbytes)
{
	return strlen(text) == nbytes && strchr(text, '\n') && access(text, F_OK) < 0;
}

int files0_read(const char *path, uint64_t memory_nbytes, const char ***ret_paths, size_t *ret_n,
		char **ret_text)
{
	const bool is_stdin = strcmp(path, "-") == 0;
	const int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	const char **names = NULL;
	char *text = NULL;
	size_t nbytes = 0, n;
	int r;

	if (fd < 0)
		return fail(-errno, "%s: cannot open this list of file names: %m", path);
	r = read_name_list(fd, path, memory_nbytes, &text, &nbytes);
	if (r < 0)
		goto out;
	n = count_names(text, nbytes);
	if (n == 0) {
		r = fail(-EINVAL, "--files0-from: %s: contains no file names", path);
		goto out;
	}
	if (is_newline_separated(text, nbytes)) {
		r = fail(-EINVAL,
			 "--files0-from: %s: names end with newlines, not NULs; use find -print0 "
			 "or tr '\\n' '\\0'",
			 path);
		goto out;
	}
	names = calloc(n, sizeof *names);
	r = names ? split_names(path, text, names, n) : fail(-ENOMEM, "%s: %m", path);
	if (r < 0)
		goto out;
	*ret_paths = names;
	*ret_n = n;
	*ret_text = text;
out:
	if (!is_stdin)
		close(fd);
	if (r < 0) {
		free(names);
		free(text);
	}
	return r;
}
