/*
 * line_input.c - the lines of several inputs, one after the other (see line_input.h)
 */
#include "src/lines/line_input.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/input/input.h"
#include "io/input/part_inputs.h"
#include "src/base/array.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/thread.h"
#include "src/lines/line_scan.h"
#include "src/record/record_hash.h"

enum {
	SLICE_NBYTES = 2 << 20,        /* read by one task */
	HEADER_READ_NBYTES = 64 << 10, /* while header lines are left out */
	TAIL_READ_NBYTES = 64 << 10,   /* of the last line, after the end of a share */
	SKIP_NBYTES = 4096,            /* read at once where text is skipped */
	MAX_LENGTH_NBYTES = 1 << 30,   /* of a long header that is measured for a message */
};

/* Messages as those of GNU sort. */
static int check_access(const char *path)
{
	int r = 0;

	if (strcmp(path, "-") == 0)
		/* Otherwise the next file that is opened would be read as standard input. */
		r = fcntl(STDIN_FILENO, F_GETFD) < 0 ? -errno : 0;
	else if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) < 0)
		r = -errno;
	return r < 0 ? fail(r, "cannot read: %s: %m", *path ? path : "''") : 0;
}

/* Return whether a path names the input; otherwise it is a descriptor or a rendezvous. */
static bool is_path(const struct line_input_params *params, size_t i)
{
	return !params->endpoints || params->endpoints[i].kind == ENDPOINT_PATH;
}

static int stat_input(const struct line_input_params *params, size_t i, struct stat *ret_status)
{
	const char *path = params->paths[i];

	if (!is_path(params, i))
		return params->endpoints[i].kind == ENDPOINT_DESCRIPTOR ?
			       fstat(params->endpoints[i].fd, ret_status) :
			       -1;
	return strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, ret_status) : stat(path, ret_status);
}

static int open_path(const struct line_input_params *params, size_t i, enum format_mode format,
		     struct input **ret_input)
{
	const struct framing framing = { .record_nbytes = 1,
					 .format = params->is_raw ? FORMAT_RAW : format };

	return input_open_endpoints(params->calls, &params->paths[i],
				    params->endpoints ? &params->endpoints[i] : NULL, 1, &framing,
				    ret_input);
}

/* Find the bytes of the lines of an input; UINT64_MAX: unknown. */
static int measure_lines(const struct line_input_params *params, size_t i, uint64_t *ret_nbytes)
{
	unsigned char last = (unsigned char)~params->delimiter;
	struct stat status;
	struct input *input;
	uint64_t nbytes;
	int r;

	*ret_nbytes = UINT64_MAX;
	if (!is_path(params, i) || stat_input(params, i, &status) < 0 || !S_ISREG(status.st_mode))
		return 0;
	r = open_path(params, i, FORMAT_COMPRESSED, &input);
	if (r < 0)
		return r;
	nbytes = input_total_nbytes(input);
	if (nbytes != INPUT_SIZE_UNKNOWN && nbytes > 0 && !input_is_compressed(input))
		r = input_read_at(input, nbytes - 1, &last, 1);
	if (r == 0 && nbytes != INPUT_SIZE_UNKNOWN)
		*ret_nbytes = nbytes + (nbytes > 0 && last != params->delimiter);
	input_close(input);
	return r;
}

/* Add up the bytes of the lines of all inputs, unless one is unknown. */
static int add_sizes(struct line_input *input)
{
	const struct line_input_params *params = &input->params;

	for (size_t i = 0; i < params->n_paths; i++) {
		uint64_t nbytes;
		const int r = measure_lines(params, i, &nbytes);

		if (r < 0)
			return r;
		if (nbytes == UINT64_MAX) {
			input->total_nbytes = UINT64_MAX;
			input->unsized_path = params->paths[i];
			return 0;
		}
		input->total_nbytes += nbytes;
	}
	return 0;
}

/* Return whether a path is a part manifest, or a directory that has one. */
static bool is_manifest(const char *path)
{
	enum { HEAD_NBYTES = 256 };
	char head[HEAD_NBYTES];
	struct stat status;
	ssize_t n;
	int fd;

	if (strcmp(path, "-") == 0 || stat(path, &status) < 0)
		return false;
	if (S_ISDIR(status.st_mode)) {
		char name[PATH_MAX];

		/* Other directories are refused when they are read. */
		return snprintf(name, sizeof name, "%s/%s", path, PART_MANIFEST_NAME) <
			       (int)sizeof name &&
		       access(name, F_OK) == 0;
	}
	if (!S_ISREG(status.st_mode))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : pread(fd, head, sizeof head, 0);
	if (fd >= 0)
		close(fd);
	return n > 0 && part_manifest_detect(head, (size_t)n);
}

/* Replace directories of part files by the files. */
static int open_part_files(struct line_input *input)
{
	struct line_input_params *params = &input->params;
	bool *are_manifests = calloc(params->n_paths, sizeof *are_manifests), has_manifests = false;
	int r = 0;

	if (!are_manifests)
		return fail(-ENOMEM, "no memory for %zu inputs", params->n_paths);
	for (size_t i = 0; i < params->n_paths && params->reads_part_files; i++) {
		are_manifests[i] = is_path(params, i) && is_manifest(params->paths[i]);
		has_manifests |= are_manifests[i];
	}
	if (has_manifests)
		r = part_inputs_open(params->calls, params->paths, params->endpoints, are_manifests,
				     params->n_paths, true, &input->part_inputs);
	free(are_manifests);
	if (input->part_inputs) {
		params->paths = (const char *const *)input->part_inputs->paths;
		params->endpoints = input->part_inputs->endpoints;
		params->n_paths = input->part_inputs->n_files;
	}
	return r;
}

/* Compare the sizes of part files with their manifests. */
static int check_part_sizes(const struct part_inputs *part_inputs)
{
	for (size_t i = 0; part_inputs && i < part_inputs->n_files; i++) {
		const struct part_input_file *file = &part_inputs->files[i];
		const char *path = part_inputs->paths[i];
		struct stat status;
		const int r = file->part ? check_access(path) : 0;

		if (r < 0)
			return r;
		if (!file->part || stat(path, &status) < 0 ||
		    (uint64_t)status.st_size == file->part->nbytes)
			continue;
		return fail(-EIO, "%s: has %llu bytes, not %llu as listed in %s", path,
			    (unsigned long long)status.st_size,
			    (unsigned long long)file->part->nbytes, file->group->path);
	}
	return 0;
}

int line_input_open(const struct line_input_params *params, struct line_input **ret_input)
{
	struct line_input *input;
	int r = 0;

	for (size_t i = 0; i < params->n_paths && r == 0; i++)
		r = is_path(params, i) ? check_access(params->paths[i]) : 0;
	if (r < 0)
		return r;
	input = calloc(1, sizeof *input);
	if (!input)
		return fail(-ENOMEM, "no memory for %zu inputs", params->n_paths);
	input->params = *params;
	input->share.end = input->share.lines_end = UINT64_MAX;
	pthread_mutex_init(&input->lock, NULL);
	r = open_part_files(input);
	if (r == 0)
		r = check_part_sizes(input->part_inputs);
	if (r == 0)
		r = add_sizes(input);
	if (r == 0)
		input->files = calloc(input->params.n_paths, sizeof *input->files);
	if (r == 0 && !input->files)
		r = fail(-ENOMEM, "no memory for %zu inputs", input->params.n_paths);
	if (r < 0)
		line_input_close(input);
	else
		*ret_input = input;
	return r;
}

void line_input_close(struct line_input *input)
{
	if (!input)
		return;
	input_close(input->input);
	pthread_mutex_destroy(&input->lock);
	part_inputs_close(input->part_inputs);
	free(input->files);
	free(input->tail);
	free(input->header);
	free(input);
}

void line_input_cancel(struct line_input *input)
{
	SCOPED_LOCK(&input->lock);
	input->is_cancelled = true;
	if (input->input)
		input_cancel(input->input);
}

/* Set or clear the current input. Returns 0, or -ECANCELED (not reported). */
static int set_current(struct line_input *input, struct input *current)
{
	SCOPED_LOCK(&input->lock);
	input->input = current;
	return input->is_cancelled && current ? -ECANCELED : 0;
}

int line_input_check_state(const struct line_input *input)
{
	for (size_t i = 0; i < input->next_path; i++) {
		const struct line_input_file *file = &input->files[i];
		const char *path = input->params.paths[i];
		struct file_state state;
		struct stat status;

		if (!file->is_regular || stat_input(&input->params, i, &status) < 0 ||
		    !file_id_equal(file_id_from_stat(&status), file->id))
			continue;
		state = file_state_from_stat(&status);
		if (!file_state_is_unchanged(&file->state, &state))
			return fail(-EBUSY,
				    "%s: changed after it was read; retry when no process writes "
				    "to it",
				    path);
	}
	return 0;
}

/* Keep the beginning of a line that goes on in the next read. */
static int keep_tail(struct line_input *input, const unsigned char *bytes, size_t n)
{
	if (!array_reserve(&input->tail, &input->tail_capacity, input->n_tail + n, 1))
		return fail(-ENOMEM, "no memory for a line of %zu bytes", input->n_tail + n);
	memcpy(input->tail + input->n_tail, bytes, n);
	input->n_tail += n;
	return 0;
}

/* If it is a part file, add lines to the digest of path i. */
static int digest_lines(struct line_input *input, size_t i, const unsigned char *bytes, size_t n)
{
	struct part_inputs *part_inputs = input->part_inputs;
	const unsigned char *end = bytes + n, *found;
	struct digest *digest;
	int r;

	if (!part_inputs || !part_inputs->files[i].part)
		return 0;
	digest = &part_inputs->files[i].read_digest;
	while ((found = memchr(bytes, input->params.delimiter, (size_t)(end - bytes)))) {
		const size_t nbytes = (size_t)(found - bytes);

		r = input->n_tail ? keep_tail(input, bytes, nbytes) : 0;
		if (r < 0)
			return r;
		digest->sum += input->n_tail ? hash_bytes(input->tail, input->n_tail) :
					       hash_bytes(bytes, nbytes);
		digest->n_records++;
		input->n_tail = 0;
		bytes = found + 1;
	}
	return bytes < end ? keep_tail(input, bytes, (size_t)(end - bytes)) : 0;
}

static int open_next(struct line_input *input)
{
	struct line_input_file *file = &input->files[input->next_path];
	struct input *opened;
	struct stat status;
	int r;

	*file = (struct line_input_file){ .text_begin = input->text_position };
	if (stat_input(&input->params, input->next_path, &status) == 0 && S_ISREG(status.st_mode)) {
		file->is_regular = true;
		file->id = file_id_from_stat(&status);
		file->state = file_state_from_stat(&status);
	}
	r = open_path(&input->params, input->next_path, FORMAT_LINES, &opened);
	if (r < 0)
		return r;
	input->next_path++;
	r = set_current(input, opened);
	if (r < 0)
		return r;
	input_limit_windows(input->input, input->params.memory_nbytes, false);
	r = input_probe_pipe(input->input, true);
	if (r < 0)
		return r;
	input->position = 0;
	input->nbytes = input_total_nbytes(input->input);
	input->n_header_left = input->params.n_header_lines;
	input->keeps_header = input->params.keeps_header && input->n_header_left > 0 &&
			      input->n_header == 0;
	input->n_lines_before += atomic_exchange(&input->n_lines, 0) + 1;
	input->ends_line = true;
	input->has_skipped = false;
	return 0;
}

static int close_current(struct line_input *input)
{
	struct line_input_file *file = &input->files[input->next_path - 1];
	struct input *current = input->input;
	const int r = input_check_state(current);

	file->n_lines += atomic_load(&input->n_lines);
	file->has_skipped = input->has_skipped;
	input_seek_end(current);
	set_current(input, NULL);
	input_close(current);
	return r;
}

static int read_slice(void *context, uint32_t task)
{
	struct line_input *input = context;
	const size_t begin = (size_t)task * SLICE_NBYTES;
	const size_t rest = input->slices_nbytes - begin;
	const size_t nbytes = rest < SLICE_NBYTES ? rest : SLICE_NBYTES;
	const struct span span = stats_begin(STAGE_READ, task);
	const int r = input_read_at(input->input, input->slices_position + begin,
				    input->slices + begin, nbytes);

	stats_end(input->params.stats, span, r == 0 ? nbytes : 0);
	if (r == 0)
		atomic_fetch_add(&input->n_lines, line_count(input->slices + begin, nbytes,
							     input->params.delimiter));
	return r;
}

/* Read up to nbytes of a stream; fewer only at its end. */
static int read_stream(struct line_input *input, unsigned char *buffer, size_t nbytes,
		       size_t *ret_nbytes)
{
	*ret_nbytes = 0;
	while (*ret_nbytes < nbytes) {
		const size_t rest = nbytes - *ret_nbytes;
		const size_t n = rest < SLICE_NBYTES ? rest : SLICE_NBYTES;
		const struct span span = stats_begin(STAGE_READ, 0);
		uint64_t position;
		size_t n_read;
		const int r = input_read(input->input, buffer + *ret_nbytes, n, &position, &n_read);

		if (r < 0)
			return r;
		stats_end(input->params.stats, span, n_read);
		*ret_nbytes += n_read;
		if (n_read < n)
			break;
	}
	atomic_fetch_add(&input->n_lines, line_count(buffer, *ret_nbytes, input->params.delimiter));
	return 0;
}

/* Read up to nbytes of the current input; fewer only at its end. */
static int read_current(struct line_input *input, unsigned char *buffer, size_t nbytes,
			size_t *ret_nbytes)
{
	if (input->nbytes == INPUT_SIZE_UNKNOWN)
		return read_stream(input, buffer, nbytes, ret_nbytes);
	if (nbytes > input->nbytes - input->position)
		nbytes = (size_t)(input->nbytes - input->position);
	*ret_nbytes = nbytes;
	if (nbytes == 0)
		return 0;
	/* Several threads read a file. */
	input->slices = buffer;
	input->slices_position = input->position;
	input->slices_nbytes = nbytes;
	input->position += nbytes;
	return thread_pool_run(input->params.threads, read_slice, input,
			       (uint32_t)divide_up(nbytes, SLICE_NBYTES));
}

static bool has_long_header(const struct line_input *input)
{
	return input->n_header > input->params.memory_nbytes / LINE_HEADER_SHARE;
}

/* The header is complete, or longer than any that is measured: check that it fits in memory. */
static int check_header(const struct line_input *input)
{
	const char *path = input->params.paths[input->next_path - 1];

	if (!has_long_header(input))
		return 0;
	if (input->n_header >= MAX_LENGTH_NBYTES)
		return fail(-E2BIG,
			    "%s: the header has more than %zu bytes, too many for the memory; use "
			    "a larger -S",
			    path, input->n_header);
	return fail(-E2BIG,
		    "%s: the header has %zu bytes, too many for the memory; use -S %" PRIu64
		    "M or more",
		    path, input->n_header,
		    divide_up(input->n_header * (uint64_t)LINE_HEADER_SHARE, 1 << 20));
}

/* Keep bytes of the header, or measure it if it does not fit in memory. */
static int add_header(struct line_input *input, const unsigned char *bytes, size_t n)
{
	unsigned char *grown;

	input->n_header += n;
	if (has_long_header(input)) {
		free(input->header);
		input->header = NULL;
		return input->n_header >= MAX_LENGTH_NBYTES ? check_header(input) : 0;
	}
	grown = realloc(input->header, input->n_header + 1);
	if (!grown)
		return fail(-ENOMEM, "no memory for a header");
	memcpy(grown + input->n_header - n, bytes, n);
	input->header = grown;
	return 0;
}

/* Leave out header lines at the beginning of n bytes. */
static int remove_header(struct line_input *input, unsigned char *buffer, size_t *n)
{
	const unsigned char *p = buffer, *end = buffer + *n;
	int r = 0;

	while (p < end && input->n_header_left > 0) {
		const unsigned char *found = memchr(p, input->params.delimiter, (size_t)(end - p));

		p = found ? found + 1 : end;
		input->n_header_left -= found != NULL;
	}
	if (input->keeps_header && p > buffer)
		r = add_header(input, buffer, (size_t)(p - buffer));
	if (r == 0 && input->keeps_header && input->n_header_left == 0)
		r = check_header(input);
	*n = (size_t)(end - p);
	memmove(buffer, p, *n);
	return r;
}

/* At the end of an input that is only a header: complete the header. */
static int finish_header(struct line_input *input)
{
	if (!input->keeps_header || input->n_header_left == 0 || input->n_header == 0)
		return 0;
	if (!input->ends_line) {
		input->n_header++;
		if (!has_long_header(input))
			input->header[input->n_header - 1] = input->params.delimiter;
	}
	return check_header(input);
}

/* Read a part of the current input, or go to the next. */
static int read_some(struct line_input *input, unsigned char *buffer, size_t nbytes,
		     size_t *ret_nbytes)
{
	struct part_inputs *part_inputs = input->part_inputs;
	size_t n = nbytes, n_read, i;
	int r = input->input ? 0 : open_next(input);

	*ret_nbytes = 0;
	if (r < 0)
		return r;
	if (input->n_header_left > 0 && n > HEADER_READ_NBYTES)
		n = HEADER_READ_NBYTES;
	r = read_current(input, buffer, n, &n_read);
	if (r < 0)
		return r;
	*ret_nbytes = n_read;
	i = input->next_path - 1;
	if (input->share.end == UINT64_MAX)
		r = digest_lines(input, i, buffer, n_read);
	if (r < 0)
		return r;
	if (n_read > 0)
		input->ends_line = buffer[n_read - 1] == input->params.delimiter;
	if (input->n_header_left > 0)
		r = remove_header(input, buffer, ret_nbytes);
	if (n_read == n || r < 0)
		return r;
	/* The end of the input. */
	if (part_inputs && input->share.end == UINT64_MAX)
		r = part_inputs_check_digest(part_inputs, i, part_inputs->files[i].read_digest);
	if (r < 0)
		return r;
	if (!input->ends_line && input->n_header_left == 0) { /* the last line needs a delimiter */
		buffer[(*ret_nbytes)++] = input->params.delimiter;
		input->files[i].n_lines = 1;
		input->ends_line = true;
	}
	r = finish_header(input);
	return r < 0 ? r : close_current(input);
}

/* Read up to nbytes of the text of all inputs; fewer only at its end. */
static int read_text(struct line_input *input, unsigned char *buffer, size_t nbytes,
		     size_t *ret_nbytes)
{
	int r = 0;

	*ret_nbytes = 0;
	while (r == 0 && *ret_nbytes < nbytes &&
	       (input->input || input->next_path < input->params.n_paths)) {
		size_t n;

		r = read_some(input, buffer + *ret_nbytes, nbytes - *ret_nbytes, &n);
		*ret_nbytes += n;
		input->text_position += n;
	}
	return r;
}

/* Skip bytes of the current file, up to its last one, which tells whether its last line ends. */
static uint64_t skip_in_file(struct line_input *input, uint64_t nbytes)
{
	uint64_t n = 0;

	if (!input->input || input->n_header_left > 0 || input->position + 1 >= input->nbytes)
		return 0;
	n = u64_min(nbytes, input->nbytes - 1 - input->position);
	input->position += n;
	input->text_position += n;
	input->has_skipped = true;
	return n;
}

/* Skip text up to `position`, or up to its end. */
static int skip_text(struct line_input *input, uint64_t position)
{
	unsigned char scratch[SKIP_NBYTES];
	int r = 0;

	while (r == 0 && input->text_position < position) {
		const uint64_t nbytes = position - input->text_position;
		size_t n;

		if (skip_in_file(input, nbytes) > 0)
			continue;
		r = read_text(input, scratch, u64_min(nbytes, sizeof scratch), &n);
		if (r == 0 && n == 0)
			break;
	}
	return r;
}

int line_input_skip_to(struct line_input *input, uint64_t position)
{
	const int r = skip_text(input, position);

	input->share.position = position;
	input->share.is_complete = position >= input->share.end;
	if (r < 0 || input->text_position >= position)
		return r;
	return fail(-EBUSY, "the inputs have less than %" PRIu64 " bytes of text", position);
}

/* --- A share of the text --- */

/* Skip the rest of a line. */
static int skip_line(struct line_input *input)
{
	const unsigned char delimiter = input->params.delimiter, *found;
	unsigned char text[SKIP_NBYTES];
	size_t n;

	for (;;) {
		int r = read_text(input, text, 1, &n);

		if (r < 0 || n == 0 || text[0] == delimiter)
			return r;
		/* The line goes on in this file. */
		n = u64_min(input->nbytes - input->position, sizeof text);
		r = input_read_at(input->input, input->position, text, n);
		if (r < 0)
			return r;
		found = memchr(text, delimiter, n);
		skip_in_file(input, found ? (size_t)(found - text) : n);
	}
}

int line_input_take_share(struct line_input *input, uint64_t begin, uint64_t end, unsigned n_more)
{
	struct line_share *share = &input->share;
	int r = 0;

	share->end = end;
	/* A line begins at `begin` if the byte before it ends one. */
	if (begin > 0 && begin < end)
		r = skip_text(input, begin - 1);
	if (r == 0 && begin > 0 && begin < end)
		r = skip_line(input);
	share->n_more = n_more;
	share->position = input->text_position;
	share->is_complete = begin >= end || share->position >= end;
	return r;
}

/*
 * Text from `from` on is at or after the last byte of the share. Its last line ends there, and the
 * lines after it. Reduce *nbytes of the buffer to them.
 */
static void end_share(struct line_share *share, unsigned char delimiter, const unsigned char *from,
		      const unsigned char *buffer, size_t *nbytes)
{
	const unsigned char *found;

	while ((found = memchr(from, delimiter, (size_t)(buffer + *nbytes - from)))) {
		from = found + 1;
		share->n_more_read += share->has_last;
		if (!share->has_last)
			share->lines_end = share->position + (uint64_t)(from - buffer);
		share->has_last = true;
		if (share->n_more_read < share->n_more)
			continue;
		*nbytes = (size_t)(from - buffer);
		share->is_complete = true;
		return;
	}
}

/* Add lines that begin in the share to the digests of their part files. */
static int digest_share(struct line_input *input, const unsigned char *bytes, size_t nbytes)
{
	struct line_share *share = &input->share;
	uint64_t position = share->position;
	const uint64_t end = u64_min(position + nbytes, share->lines_end);
	int r = 0;

	while (position < end && r == 0) {
		uint64_t file_end = end;

		while (share->file + 1 < input->next_path &&
		       input->files[share->file + 1].text_begin <= position)
			share->file++;
		if (share->file + 1 < input->next_path)
			file_end = u64_min(end, input->files[share->file + 1].text_begin);
		r = digest_lines(input, share->file, bytes, file_end - position);
		bytes += file_end - position;
		position = file_end;
	}
	return r;
}

/* Read up to nbytes of the share; fewer before its end and at the end of its last line. */
static int read_share_part(struct line_input *input, unsigned char *buffer, size_t nbytes,
			   size_t *ret_nbytes)
{
	struct line_share *share = &input->share;
	const uint64_t n_left = share->end - u64_min(share->position, share->end);
	const size_t wanted = u64_min(nbytes, n_left ? n_left : TAIL_READ_NBYTES);
	int r = read_text(input, buffer, wanted, ret_nbytes);

	if (r < 0)
		return r;
	share->is_complete = *ret_nbytes < wanted;
	if (*ret_nbytes >= n_left)
		end_share(share, input->params.delimiter, buffer + (n_left ? n_left - 1 : 0),
			  buffer, ret_nbytes);
	r = digest_share(input, buffer, *ret_nbytes);
	share->position += *ret_nbytes;
	return r;
}

int line_input_read(struct line_input *input, unsigned char *buffer, size_t nbytes,
		    size_t *ret_nbytes)
{
	int r = 0;

	if (input->share.end == UINT64_MAX)
		return read_text(input, buffer, nbytes, ret_nbytes);
	*ret_nbytes = 0;
	while (r == 0 && *ret_nbytes < nbytes && !input->share.is_complete) {
		size_t n = 0;

		r = read_share_part(input, buffer + *ret_nbytes, nbytes - *ret_nbytes, &n);
		*ret_nbytes += n;
	}
	return r;
}

/* Remove an option of one letter at the end of an order, such as " -u". */
static bool cut_option(char *order, const char *option)
{
	const size_t n = strlen(order), n_option = strlen(option);

	if (n < n_option || strcmp(order + n - n_option, option) != 0)
		return false;
	order[n - n_option] = '\0';
	return true;
}

/*
 * Return whether lines that were sorted in the order `stored` are in the order `wanted`, too. Both
 * are texts of line_keys_format(). The keys must be equal; without the last resort (-s), lines with
 * equal keys are in another order, unless there are none (-u).
 */
static bool order_implies(const char *stored, const char *wanted)
{
	char *a = strdup(stored), *b = strdup(wanted);
	bool implies = !a || !b;

	if (a && b) {
		/* These options are the last ones, in this order. */
		const bool is_unique = cut_option(a, " -u"), is_stable = cut_option(a, " -s");
		const bool wants_unique = cut_option(b, " -u"), wants_stable = cut_option(b, " -s");
		const bool has_last_resort = !wants_unique && !wants_stable;

		implies = strcmp(a, b) == 0 && (is_unique || !is_stable || !has_last_resort);
	}
	free(a);
	free(b);
	return implies;
}

int line_input_check_order(const struct line_input *input, const struct line_keys *keys)
{
	const struct part_inputs *part_inputs = input->part_inputs;
	char *order;
	int r;

	if (!part_inputs)
		return 0;
	order = line_keys_format(keys);
	r = order ? 0 : fail(-errno, "no memory to describe the order of lines: %m");
	for (size_t i = 0; i < part_inputs->n_groups && r == 0; i++) {
		const struct input_group *group = &part_inputs->groups[i];

		if (group->is_manifest && group->manifest.order &&
		    !order_implies(group->manifest.order, order))
			r = fail(-EINVAL, "%s: was sorted with '%s'; give the same options",
				 group->path, group->manifest.order);
	}
	free(order);
	return r;
}

uint64_t line_input_n_lines(const struct line_input *input)
{
	return input->n_lines_before + input->n_lines;
}

bool line_input_has_file(const struct line_input *input, struct file_id id)
{
	for (size_t i = 0; i < input->params.n_paths; i++) {
		struct stat status;

		if (stat_input(&input->params, i, &status) == 0 &&
		    file_id_equal(file_id_from_stat(&status), id))
			return true;
	}
	return false;
}

const char *line_input_position(const struct line_input *input,
				char ret_line[static LINE_LABEL_NBYTES])
{
	if (input->has_skipped)
		strcpy(ret_line, "a line");
	else
		snprintf(ret_line, LINE_LABEL_NBYTES, "line %" PRIuLEAST64, input->n_lines + 1);
	return input->params.paths[input->next_path - 1];
}

const char *line_input_locate(const struct line_input *input, const unsigned char *bytes,
			      size_t nbytes, char ret_line[static LINE_LABEL_NBYTES])
{
	const bool has_share = input->share.end != UINT64_MAX;
	const uint64_t position =
		(has_share ? input->share.position : input->text_position) - nbytes;
	size_t i = input->next_path - 1;
	uint64_t n_lines = atomic_load(&input->n_lines);
	bool has_skipped = input->has_skipped;

	while (i > 0 && input->files[i].text_begin > position)
		i--;
	if (i + 1 < input->next_path)
		nbytes = u64_min(nbytes, input->files[i + 1].text_begin - position);
	if (i + 1 < input->next_path || !input->input) { /* the file was read to its end */
		n_lines = input->files[i].n_lines;
		has_skipped = input->files[i].has_skipped;
	}
	/* The lines of a share are not the last ones that were read. */
	if (has_share || has_skipped)
		strcpy(ret_line, "a line");
	else
		snprintf(ret_line, LINE_LABEL_NBYTES, "line %" PRIu64,
			 n_lines - line_count(bytes, nbytes, input->params.delimiter) + 1);
	return input->params.paths[i];
}

const char *line_input_offset(const struct line_input *input, uint64_t *ret_offset)
{
	const bool is_at_end = !input->input || input->position == input->nbytes;

	*ret_offset = is_at_end ? 0 : input->position;
	return input->params
		.paths[input->next_path - !(is_at_end && input->next_path < input->params.n_paths)];
}

int line_input_fail_long_line(const struct line_input *input, size_t nbytes)
{
	char line[LINE_LABEL_NBYTES];
	const char *path = line_input_position(input, line);

	return fail(-E2BIG,
		    "%s: %s has more than %zu bytes, too many for the memory; use a larger -S",
		    path, line, nbytes);
}
