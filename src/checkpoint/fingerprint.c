/*
 * fingerprint.c - describe a sort (see fingerprint.h)
 */
#include "src/checkpoint/fingerprint.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "io/file/path_identity.h"
#include "src/base/diagnostics.h"
#include "src/comm/comm.h"

/* Increment it when the format of the manifest or of the runs changes. */
#define CHECKPOINT_FORMAT_VERSION 10

/* The beginning of the names of entries with the state of an input. */
static const char input_state_prefix[] = "state of input ";
static const char output_location_name[] = "location of the output";

static void __attribute__((format(printf, 3, 4)))
add_entry(FILE *stream, const char *name, const char *format, ...)
{
	va_list args;

	fprintf(stream, "%s%c", name, 0);
	va_start(args, format);
	vfprintf(stream, format, args);
	va_end(args);
	fputc(0, stream);
}

static const char *yes_or_no(bool value)
{
	return value ? "yes" : "no";
}

static const char *const partial_names[] = {
	[PARTIAL_ERROR] = "refused",
	[PARTIAL_KEEP] = "kept",
	[PARTIAL_DROP] = "dropped",
};

static const char *const format_names[] = {
	[FORMAT_AUTO] = "recognised",
	[FORMAT_NPY] = "npy",
	[FORMAT_RAW] = "raw",
};

static void add_keys(FILE *stream, const struct sort_spec *spec)
{
	add_entry(stream, "record size", "%" PRIu64, spec->record_nbytes);
	add_entry(stream, "number of keys", "%" PRIu32, spec->n_keys);
	for (uint32_t i = 0; i < spec->n_keys; i++) {
		const struct key *key = &spec->keys[i];

		add_entry(stream, "key", "%s%s", key_format(key).text,
			  key->nan_position == KEY_NAN_FIRST ? ", --nan=first" :
			  key->nan_position == KEY_NAN_LAST  ? ", --nan=last" :
							       "");
	}
}

static void add_spec(FILE *stream, const struct sort_spec *spec)
{
	add_entry(stream, "format", "%d, %s-endian", CHECKPOINT_FORMAT_VERSION,
		  __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? "little" : "big");
	add_entry(stream, "version", "%s", GSORT_VERSION);
	add_entry(stream, "mode", "%s", spec->lines ? spec->lines : "records");
	add_keys(stream, spec);
	add_entry(stream, "unique records", "%s", yes_or_no(spec->unique));
	add_entry(stream, "last of equal records", "%s", yes_or_no(spec->keep_last));
	add_entry(stream, "header", "%" PRIu64, spec->skip_nbytes);
	add_entry(stream, "partial records", "%s", partial_names[spec->partial]);
	add_entry(stream, "format of inputs", "%s", format_names[spec->format]);
	if (spec->limit == SORT_SPEC_UNLIMITED)
		add_entry(stream, "limit", "none");
	else
		add_entry(stream, "limit", "%" PRIu64, spec->limit);
	add_entry(stream, "counts", "%s", yes_or_no(spec->count));
	add_entry(stream, "keys only", "%s", yes_or_no(spec->keys_only));
	add_entry(stream, "argsort", "%s", yes_or_no(spec->argsort));
	add_entry(stream, "output", "%s", spec->output_path ? spec->output_path : "none");
	add_entry(stream, "number of part files", "%" PRIu32, spec->n_part_files);
	add_entry(stream, "split by keys", "%s", yes_or_no(spec->split_by_keys));
	add_entry(stream, "compressed output", "%d", spec->zstd_level);
	add_entry(stream, "number of inputs", "%zu", spec->n_inputs);
}

void fingerprint_format_file(struct file_id file, char text[static 80])
{
	snprintf(text, 80, "device %" PRIuMAX ", inode %" PRIuMAX ", ", (uintmax_t)file.device,
		 (uintmax_t)file.inode);
}

/* A shared file system has a different device number on each machine, so only the inode is used. */
static void format_file_identity(const struct sort_spec *spec, struct file_id file,
				 char text[static 80])
{
	if (spec->comm)
		snprintf(text, 80, "inode %" PRIuMAX ", ", (uintmax_t)file.inode);
	else
		fingerprint_format_file(file, text);
}

/*
 * Add the path and the state of an input. The modification time can be set (cp -p, rsync -t); the
 * change time cannot. Standard input that is a file begins at its current offset.
 */
static int add_input(FILE *stream, const struct sort_spec *spec, const char *path)
{
	const bool is_stdin = strcmp(path, "-") == 0;
	const off_t begin = is_stdin ? lseek(STDIN_FILENO, 0, SEEK_CUR) : 0;
	struct stat status;
	char file[80];

	if ((is_stdin ? fstat(STDIN_FILENO, &status) : stat(path, &status)) < 0)
		return fail(-errno, "%s: %m", path);
	format_file_identity(spec, file_id_from_stat(&status), file);
	add_entry(stream, "input", "%s", path);
	fprintf(stream, "%s%s%c", input_state_prefix, path, 0);
	fprintf(stream,
		"%s%" PRIdMAX " bytes from %" PRIdMAX ", modified %" PRIdMAX
		".%09ld, changed %" PRIdMAX ".%09ld%c",
		file, (intmax_t)status.st_size, (intmax_t)begin, (intmax_t)status.st_mtim.tv_sec,
		status.st_mtim.tv_nsec, (intmax_t)status.st_ctim.tv_sec, status.st_ctim.tv_nsec, 0);
	return 0;
}

static int parent_directory_identity(const char *path, struct file_id *ret_directory)
{
	char *copy = strdup(path);
	struct stat status;
	int r;

	if (!copy)
		return -ENOMEM;
	r = stat(dirname(copy), &status) < 0 ? -errno : 0;
	free(copy);
	if (r == 0)
		*ret_directory = file_id_from_stat(&status);
	return r;
}

/*
 * Add the directory of the file that the output path resolves to, which has the temporary output.
 * If a symbolic link on the path changed, orphans there would not be found.
 */
static int add_output_location(FILE *stream, const struct sort_spec *spec)
{
	const char *path = spec->output_path;
	struct file_id directory;
	char text[80], *resolved_path;
	int r = path_follow_links(path, &resolved_path);

	if (r < 0)
		return fail(r, "%s: %m", path);
	r = parent_directory_identity(resolved_path, &directory);
	if (r == 0) {
		format_file_identity(spec, directory, text);
		add_entry(stream, output_location_name, "%sas %s", text, resolved_path);
	}
	free(resolved_path);
	return r < 0 ? fail(r, "%s: %m", path) : 0;
}

/* is_collective: for comparing ranks; otherwise for the checkpoint of this rank. */
static int write_fingerprint(const struct sort_spec *spec, bool is_collective, FILE *stream)
{
	int r;

	if (spec->comm) /* first, because it explains the other differences between ranks */
		add_entry(stream, "job", "%s",
			  spec->check_only   ? "check" :
			  spec->merge_inputs ? "merge" :
					       "sort");
	add_spec(stream, spec);
	if (spec->comm)
		add_entry(stream, "number of ranks", "%u", comm_size(spec->comm));
	if (spec->comm && is_collective) {
		/* These must be equal on all ranks, but may change when a checkpoint is resumed. */
		add_entry(stream, "checkpoint", "%s", yes_or_no(spec->checkpoint_path));
		add_entry(stream, "verify", "%s", yes_or_no(spec->verify));
		add_entry(stream, "fsync", "%s", yes_or_no(spec->fsync));
	}
	r = spec->check_only ? 0 : add_output_location(stream, spec);
	for (size_t i = 0; i < spec->n_inputs && r == 0; i++)
		r = add_input(stream, spec, spec->inputs[i]);
	if (spec->comm && !is_collective)
		add_entry(stream, "rank", "%u", comm_rank(spec->comm));
	return r;
}

int fingerprint_create(const struct sort_spec *spec, bool is_collective,
		       struct fingerprint *ret_fingerprint)
{
	struct fingerprint fingerprint = { 0 };
	FILE *stream = open_memstream(&fingerprint.text, &fingerprint.nbytes);
	int r;

	if (!stream)
		return fail(-errno, "--checkpoint: no memory to describe the sort: %m");
	r = write_fingerprint(spec, is_collective, stream);
	if (fclose(stream) != 0 && r == 0)
		r = fail(-errno, "--checkpoint: no memory to describe the sort: %m");
	if (r < 0)
		free(fingerprint.text);
	else
		*ret_fingerprint = fingerprint;
	return r;
}

/* Return the next string, or "" at the end. */
static const char *next_entry_text(const struct fingerprint *fingerprint, size_t *position)
{
	const char *text = fingerprint->text + *position;
	const char *end = *position < fingerprint->nbytes ?
				  memchr(text, 0, fingerprint->nbytes - *position) :
				  NULL;

	if (!end)
		return "";
	*position += (size_t)(end - text) + 1;
	return text;
}

/* Return the path of the input if the entry is the state of an input, else NULL. */
static const char *input_path_of_entry(const char *name)
{
	const size_t n = strlen(input_state_prefix);

	return strncmp(name, input_state_prefix, n) == 0 ? name + n : NULL;
}

bool fingerprint_differs(const struct fingerprint *saved, const struct fingerprint *current,
			 const char *accepted, struct fingerprint_difference *ret_difference)
{
	size_t saved_position = 0, current_position = 0;

	while (current_position < current->nbytes) {
		const char *name = next_entry_text(current, &current_position),
			   *value = next_entry_text(current, &current_position);
		const char *saved_name = next_entry_text(saved, &saved_position);
		const char *saved_value = next_entry_text(saved, &saved_position);
		const bool is_accepted = accepted && input_path_of_entry(name) &&
					 strncmp(value, accepted, strlen(accepted)) == 0;

		if (strcmp(name, saved_name) == 0 &&
		    (strcmp(value, saved_value) == 0 || is_accepted))
			continue;
		*ret_difference =
			(struct fingerprint_difference){ name, saved_value, value,
							 input_path_of_entry(name),
							 strcmp(name, output_location_name) == 0 };
		return true;
	}
	return false;
}
