/*
 * report_file.c - a text file that appears when it is complete (see report_file.h)
 */
#include "src/report/report_file.h"

#include <errno.h>
#include <stdlib.h>

#include "io/file/file.h"
#include "io/output/output.h"
#include "src/base/diagnostics.h"

struct report_file {
	const char *path;
	FILE *stream; /* its buffer goes to the output */
	struct output *output;
	uint64_t nbytes; /* written to it */
	int error;       /* the first write error, or 0 */
};

/*
 * A cookie_write_function_t: returns how much was written, 0 after an error. Errors are reported by
 * the commit: until then the sort may report its own.
 */
static ssize_t write_text(void *cookie, const char *text, size_t nbytes)
{
	struct report_file *file = cookie;

	if (file->error == 0) {
		struct diagnostics *saved = diagnostics_push(NULL);

		file->error = output_write_at(file->output, file->nbytes, text, nbytes);
		diagnostics_push(saved);
	}
	if (file->error < 0) {
		errno = -file->error;
		return 0;
	}
	file->nbytes += nbytes;
	return (ssize_t)nbytes;
}

int report_file_open(const struct syscalls *calls, const char *path, struct report_file **ret_file)
{
	struct report_file *file = calloc(1, sizeof *file);
	int r;

	if (!file)
		return fail(-ENOMEM, "%s: %m", path);
	file->path = path;
	r = output_open_text(calls, path, &file->output);
	if (r < 0) {
		free(file);
		return r;
	}
	file->stream = fopencookie(file, "w", (cookie_io_functions_t){ .write = write_text });
	if (!file->stream) {
		output_abort(file->output);
		free(file);
		return fail(-ENOMEM, "%s: %m", path);
	}
	*ret_file = file;
	return 0;
}

FILE *report_file_stream(const struct report_file *file)
{
	return file->stream;
}

int report_file_commit(struct report_file *file, bool output_is_complete)
{
	char advice[SIZE_LIMIT_HINT_NBYTES];
	bool has_failed;
	int r, close_error;

	if (!file)
		return 0;
	has_failed = ferror(file->stream);
	close_error = fclose(file->stream);
	file->stream = NULL;
	r = file->error;
	if (r == 0 && (has_failed || close_error != 0))
		r = has_failed ? -EIO : -errno;
	if (r < 0) {
		r = fail(r, "%s: cannot write: %m%s%s", file->path, size_limit_hint(r, advice),
			 output_is_complete ? "; the output is complete" : "");
		report_file_abort(file);
		return r;
	}
	r = output_commit(file->output, OUTPUT_UNSYNCED);
	free(file);
	return r;
}

void report_file_abort(struct report_file *file)
{
	if (!file)
		return;
	file->error = file->error ? file->error : -ECANCELED; /* discards what is in the buffer */
	if (file->stream)
		fclose(file->stream);
	output_abort(file->output);
	free(file);
}
