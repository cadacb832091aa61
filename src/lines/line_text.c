/*
 * line_text - the inputs of a sort of lines, as memory (see line_sort.h)
 */
#include "src/lines/line_sort.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/diagnostics.h"

enum { MAX_MAPPED_FILES = 64, COPY_NBYTES = 1 << 20 };

int line_text_open_temporary(const struct syscalls *calls, const char *directory,
			     struct file *ret_file)
{
	char name[FILE_UNIQUE_NAME_SIZE];
	struct file parent;
	int r = file_open(calls, AT_FDCWD, directory, O_RDWR | O_TMPFILE | O_EXCL, 0600, ret_file);

	if (r != -EOPNOTSUPP && r != -EISDIR && r != -EINVAL)
		return r < 0 ? fail(r, "%s: cannot create a temporary file: %m", directory) : 0;
	r = file_open(calls, AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0, &parent);
	if (r < 0)
		return fail(r, "%s: cannot open: %m", directory);
	file_unique_name(name);
	r = file_open(calls, parent.fd, name, O_RDWR | O_CREAT | O_EXCL, 0600, ret_file);
	if (r == 0)
		file_remove(calls, parent.fd, name, 0);
	file_close(&parent);
	return r < 0 ? fail(r, "%s: cannot create a temporary file: %m", directory) : 0;
}

/* Copy an input to the spool. */
static int spool_input(struct line_text *text, const struct file *file, const char *name,
		       uint64_t *ret_nbytes)
{
	char *buffer = malloc(COPY_NBYTES);
	size_t n = COPY_NBYTES;
	int r = 0;

	*ret_nbytes = 0;
	if (!buffer)
		return fail(-ENOMEM, "no memory to read %s", name);
	while (r == 0 && n == COPY_NBYTES) {
		r = file_read_next(file, buffer, COPY_NBYTES, -1, &n);
		if (r < 0) {
			fail(r, "%s: cannot read: %m", name);
			break;
		}
		r = file_write_at(&text->spool, text->spool_nbytes, buffer, n);
		if (r < 0)
			fail(r, "temporary file: cannot write: %m");
		text->spool_nbytes += n;
		*ret_nbytes += n;
	}
	free(buffer);
	return r;
}

/* Map the rest of a regular file. Returns 1; 0 if it cannot be mapped; or a negative errno. */
static int map_input(struct line_text *text, const struct file *file, struct line_segment *segment)
{
	struct mapping *mapping = &text->mappings[text->n_mappings];
	off_t start = 0;
	uint64_t nbytes;
	struct stat status;
	int r;

	if (fstat(file->fd, &status) < 0 || !S_ISREG(status.st_mode))
		return 0;
	if (strcmp(segment->name, "-") == 0)
		start = lseek(file->fd, 0, SEEK_CUR);
	nbytes = start >= 0 && status.st_size > start ? (uint64_t)(status.st_size - start) : 0;
	if (nbytes == 0)
		return start >= 0;
	if (text->n_mappings == MAX_MAPPED_FILES)
		return 0;
	/* A mapping begins at a page; the file is mapped from its beginning. */
	r = mapping_open(file, 0, (size_t)status.st_size, mapping);
	if (r < 0)
		return r == -ENOMEM ? fail(r, "%s: cannot map: %m", segment->name) : 0;
	text->n_mappings++;
	segment->bytes = mapping->bytes + start;
	segment->nbytes = nbytes;
	return 1;
}

static int open_input(const struct syscalls *calls, const char *directory, struct line_text *text,
		      struct line_segment *segment)
{
	const bool is_stdin = strcmp(segment->name, "-") == 0;
	struct file file = { .calls = calls, .fd = STDIN_FILENO };
	int r = is_stdin ? 0 : file_open(calls, AT_FDCWD, segment->name, O_RDONLY, 0, &file);

	/* Otherwise the next file that is opened would be read as standard input. */
	if (is_stdin && fcntl(STDIN_FILENO, F_GETFD) < 0)
		r = -errno;
	if (r < 0)
		return fail(r, "cannot read: %s: %m", segment->name);
	r = map_input(text, &file, segment);
	if (r == 0 && text->spool.fd < 0)
		r = line_text_open_temporary(calls, directory, &text->spool);
	if (r == 0)
		r = spool_input(text, &file, segment->name, &segment->nbytes);
	if (!is_stdin)
		file_close(&file);
	return r < 0 ? r : 0;
}

/* Map the spool, and let its segments, which have no bytes yet, refer to it. */
static int map_spool(struct line_text *text)
{
	struct mapping *mapping = &text->mappings[text->n_mappings];
	const unsigned char *bytes;
	int r;

	if (text->spool_nbytes == 0)
		return 0;
	r = mapping_open(&text->spool, 0, text->spool_nbytes, mapping);
	if (r < 0)
		return fail(r, "temporary file: cannot map: %m");
	text->n_mappings++;
	bytes = mapping->bytes;
	for (size_t i = 0; i < text->n_segments; i++) {
		struct line_segment *segment = &text->segments[i];

		if (segment->bytes || segment->nbytes == 0)
			continue;
		segment->bytes = bytes;
		bytes += segment->nbytes;
	}
	return 0;
}

int line_text_open(const struct syscalls *calls, const char *const *paths, size_t n,
		   const char *directory, struct line_text *ret_text)
{
	struct line_text *text = ret_text;
	uint64_t base = 0;
	int r = 0;

	*text = (struct line_text){ .spool = { .calls = calls, .fd = -1 } };
	text->segments = calloc(n + 1, sizeof *text->segments);
	text->mappings = calloc(MAX_MAPPED_FILES + 1, sizeof *text->mappings);
	if (!text->segments || !text->mappings)
		return fail(-ENOMEM, "no memory for %zu inputs", n);
	for (size_t i = 0; i < n && r == 0; i++) {
		text->segments[i].name = paths[i];
		text->n_segments++;
		r = open_input(calls, directory, text, &text->segments[i]);
	}
	if (r == 0)
		r = map_spool(text);
	for (size_t i = 0; i < n; i++) {
		text->segments[i].base = base;
		base += text->segments[i].nbytes + 1;
		text->nbytes += text->segments[i].nbytes;
	}
	return r;
}

void line_text_close(struct line_text *text)
{
	for (size_t i = 0; i < text->n_mappings; i++)
		mapping_close(&text->mappings[i]);
	if (text->spool.fd >= 0)
		file_close(&text->spool);
	free(text->mappings);
	free(text->segments);
}

const unsigned char *line_text_at(const struct line_text *text, uint64_t offset,
				  const unsigned char **ret_end)
{
	size_t lo = 0, hi = text->n_segments;
	const struct line_segment *segment;

	while (hi - lo > 1) {
		const size_t middle = lo + (hi - lo) / 2;

		if (text->segments[middle].base <= offset)
			lo = middle;
		else
			hi = middle;
	}
	segment = &text->segments[lo];
	*ret_end = segment->bytes + segment->nbytes;
	return segment->bytes + (offset - segment->base);
}

int line_text_check(const struct line_text *text)
{
	for (size_t i = 0; i < text->n_mappings; i++)
		if (mapping_is_damaged(&text->mappings[i]))
			return fail(-EIO, "an input was truncated or cannot be read");
	return 0;
}
