/*
 * fingerprint - what a checkpoint is of (see fingerprint.h)
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

/* To be raised when what a manifest or a run consists of changes. */
#define FORMAT_VERSION 7

/* How the names of entries begin that say which state an input is in. */
static const char input_state[] = "state of input ";
static const char output_place[] = "place of the output";

static void __attribute__((format(printf, 3, 4)))
add(FILE *stream, const char *name, const char *format, ...)
{
	va_list args;

	fprintf(stream, "%s%c", name, 0);
	va_start(args, format);
	vfprintf(stream, format, args);
	va_end(args);
	fputc(0, stream);
}

static const char *yes_or_no(bool is)
{
	return is ? "yes" : "no";
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

static void add_limit(FILE *stream, uint64_t limit)
{
	if (limit == SORT_SPEC_UNLIMITED)
		add(stream, "limit", "none");
	else
		add(stream, "limit", "%" PRIu64, limit);
}

static void add_keys(FILE *stream, const struct sort_spec *spec)
{
	add(stream, "record size", "%" PRIu64, spec->record_nbytes);
	add(stream, "number of keys", "%" PRIu32, spec->n_keys);
	for (uint32_t i = 0; i < spec->n_keys; i++) {
		const struct key *key = &spec->keys[i];
		char type[16];

		key_format_type(key, type);
		add(stream, "key", "%" PRIu64 ":%s%s", key->offset, type,
		    key->descending ? ":r" : "");
	}
}

static void add_spec(FILE *stream, const struct sort_spec *spec)
{
	add(stream, "format", "%d, %s-endian", FORMAT_VERSION,
	    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? "little" : "big");
	add(stream, "version", "%s", GSORT_VERSION);
	add_keys(stream, spec);
	add(stream, "unique records", "%s", yes_or_no(spec->unique));
	add(stream, "header", "%" PRIu64, spec->skip_nbytes);
	add(stream, "partial records", "%s", partial_names[spec->partial]);
	add(stream, "format of inputs", "%s", format_names[spec->format]);
	add_limit(stream, spec->limit);
	add(stream, "counts", "%s", yes_or_no(spec->count));
	add(stream, "keys only", "%s", yes_or_no(spec->keys_only));
	add(stream, "argsort", "%s", yes_or_no(spec->index));
	add(stream, "output", "%s", spec->output_path ? spec->output_path : "none");
	add(stream, "number of part files", "%" PRIu32, spec->n_part_files);
	add(stream, "split by keys", "%s", yes_or_no(spec->parts_at_keys));
	add(stream, "compressed output", "%d", spec->zstd_level);
	add(stream, "number of inputs", "%zu", spec->n_inputs);
}

/* What all else follows from: of ranks that do different things it is what is to be named. */
static void add_job(FILE *stream, const struct sort_spec *spec)
{
	add(stream, "job", "%s", spec->checks ? "check" : spec->merges ? "merge" : "sort");
}

/* What else all ranks must have been asked for, though a checkpoint goes on with it or without. */
static void add_shared(FILE *stream, const struct sort_spec *spec)
{
	add(stream, "checkpoint", "%s", yes_or_no(spec->checkpoint_path));
	add(stream, "verify", "%s", yes_or_no(spec->verify));
	add(stream, "fsync", "%s", yes_or_no(spec->fsync));
}

void description_format_file(struct file_identity file, char text[static 80])
{
	snprintf(text, 80, "device %" PRIuMAX ", inode %" PRIuMAX ", ", (uintmax_t)file.device,
		 (uintmax_t)file.inode);
}

/* To each machine a file system that it shares with others is another device. */
static void format_file(const struct sort_spec *spec, struct file_identity file,
			char text[static 80])
{
	if (spec->ranks)
		snprintf(text, 80, "inode %" PRIuMAX ", ", (uintmax_t)file.inode);
	else
		description_format_file(file, text);
}

/*
 * The time of modification can be set to what it was, as cp -p and rsync -t do; that of the change
 * cannot. Standard input that is a file begins where it stands.
 */
static int add_input(FILE *stream, const struct sort_spec *spec, const char *path)
{
	const bool is_stdin = strcmp(path, "-") == 0;
	const off_t begin = is_stdin ? lseek(STDIN_FILENO, 0, SEEK_CUR) : 0;
	struct stat status;
	char file[80];

	if ((is_stdin ? fstat(STDIN_FILENO, &status) : stat(path, &status)) < 0)
		return fail(-errno, "%s: %m", path);
	format_file(spec, file_identity_of(&status), file);
	add(stream, "input", "%s", path);
	fprintf(stream, "%s%s%c", input_state, path, 0);
	fprintf(stream,
		"%s%" PRIdMAX " bytes from %" PRIdMAX ", modified %" PRIdMAX
		".%09ld, changed %" PRIdMAX ".%09ld%c",
		file, (intmax_t)status.st_size, (intmax_t)begin, (intmax_t)status.st_mtim.tv_sec,
		status.st_mtim.tv_nsec, (intmax_t)status.st_ctim.tv_sec, status.st_ctim.tv_nsec, 0);
	return 0;
}

static int find_directory(const char *path, struct file_identity *ret_directory)
{
	char *copy = strdup(path);
	struct stat status;
	int r;

	if (!copy)
		return -ENOMEM;
	r = stat(dirname(copy), &status) < 0 ? -errno : 0;
	free(copy);
	if (r == 0)
		*ret_directory = file_identity_of(&status);
	return r;
}

/*
 * The output under construction lies beside the file that its name leads to. If a link is turned
 * elsewhere, it would be looked for where it is not, and stay, hidden, where it is.
 */
static int add_output_place(FILE *stream, const struct sort_spec *spec)
{
	const char *path = spec->output_path;
	struct file_identity directory;
	char text[80], *end;
	int r = place_follow_links(path, &end);

	if (r < 0)
		return fail(r, "%s: %m", path);
	r = find_directory(end, &directory);
	if (r == 0) {
		format_file(spec, directory, text);
		add(stream, output_place, "%sas %s", text, end);
	}
	free(end);
	return r < 0 ? fail(r, "%s: %m", path) : 0;
}

/* meeting: of ranks, to see whether all sort the same; else of the checkpoint of one. */
static int describe(const struct sort_spec *spec, bool meeting, FILE *stream)
{
	int r;

	if (spec->ranks)
		add_job(stream, spec);
	add_spec(stream, spec);
	if (spec->ranks)
		add(stream, "number of ranks", "%u", ranks_size(spec->ranks));
	if (spec->ranks && meeting)
		add_shared(stream, spec);
	r = spec->checks ? 0 : add_output_place(stream, spec);
	for (size_t i = 0; i < spec->n_inputs && r == 0; i++)
		r = add_input(stream, spec, spec->inputs[i]);
	if (spec->ranks && !meeting)
		add(stream, "rank", "%u", ranks_rank(spec->ranks));
	return r;
}

static int make(const struct sort_spec *spec, bool meeting, struct description *ret_description)
{
	struct description description = { 0 };
	FILE *stream = open_memstream(&description.text, &description.nbytes);
	int r;

	if (!stream)
		return fail_hint(-errno, HINT_ABOUT_CHECKPOINT, 0,
				 "no memory to describe the sort: %m");
	r = describe(spec, meeting, stream);
	if (fclose(stream) != 0 && r == 0)
		r = fail_hint(-errno, HINT_ABOUT_CHECKPOINT, 0,
			      "no memory to describe the sort: %m");
	if (r < 0)
		free(description.text);
	else
		*ret_description = description;
	return r;
}

int description_make(const struct sort_spec *spec, struct description *ret_description)
{
	return make(spec, false, ret_description);
}

int description_make_meeting(const struct sort_spec *spec, struct description *ret_description)
{
	return make(spec, true, ret_description);
}

/* The next text of the description; "" at its end. */
static const char *next_text(const struct description *description, size_t *at)
{
	const char *text = description->text + *at;
	const char *end = *at < description->nbytes ? memchr(text, 0, description->nbytes - *at) :
						      NULL;

	if (!end)
		return "";
	*at += (size_t)(end - text) + 1;
	return text;
}

/* Whose state it is; NULL: of none. */
static const char *input_of(const char *name)
{
	const size_t n = strlen(input_state);

	return strncmp(name, input_state, n) == 0 ? name + n : NULL;
}

static bool is_accepted(const char *name, const char *value, const char *accepted)
{
	return accepted && input_of(name) && strncmp(value, accepted, strlen(accepted)) == 0;
}

bool description_differs(const struct description *saved, const struct description *now,
			 const char *accepted, struct difference *ret_difference)
{
	size_t at_saved = 0, at_now = 0;

	while (at_now < now->nbytes) {
		const char *name = next_text(now, &at_now), *is = next_text(now, &at_now);
		const char *saved_name = next_text(saved, &at_saved);
		const char *was = next_text(saved, &at_saved);

		if (strcmp(name, saved_name) == 0 &&
		    (strcmp(is, was) == 0 || is_accepted(name, is, accepted)))
			continue;
		*ret_difference = (struct difference){ name, was, is, input_of(name),
						       strcmp(name, output_place) == 0 };
		return true;
	}
	return false;
}
