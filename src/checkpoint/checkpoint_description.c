/*
 * checkpoint_description - what a checkpoint is of (see checkpoint_description.h)
 */
#include "src/checkpoint/checkpoint_description.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config.h"
#include "src/base/status.h"

/* To be raised when what a manifest or a run consists of changes. */
#define FORMAT_VERSION 1

/* How the names of entries begin that say which state an input is in. */
static const char input_state[] = "state of ";

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

static void add_keys(FILE *stream, const struct record_options *record)
{
	add(stream, "record size", "%" PRIu64, record->record_nbytes);
	add(stream, "number of keys", "%" PRIu32, record->n_keys);
	for (uint32_t i = 0; i < record->n_keys; i++) {
		const struct key *key = &record->keys[i];
		char type[16];

		key_format_type(key, type);
		add(stream, "key", "%" PRIu64 ":%s%s", key->offset, type,
		    key->descending ? ":r" : "");
	}
}

static void add_options(FILE *stream, const struct options *options)
{
	add(stream, "format", "%d, %s-endian", FORMAT_VERSION,
	    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? "little" : "big");
	add(stream, "version", "%s", GSORT_VERSION);
	add_keys(stream, &options->record);
	add(stream, "-u", "%d", options->unique);
	add(stream, "--skip-bytes", "%" PRIu64, options->skip_nbytes);
	add(stream, "--partial", "%d", options->partial);
	add(stream, "--limit", "%" PRIu64, options->limit);
	add(stream, "--count", "%d", options->count);
	add(stream, "--keys-only", "%d", options->keys_only);
	add(stream, "--index", "%d", options->index);
	add(stream, "output", "%s", options->output_path);
	add(stream, "number of inputs", "%zu", options->n_inputs);
}

static int add_input(FILE *stream, const char *path)
{
	struct stat status;
	char name[64];

	if ((strcmp(path, "-") == 0 ? fstat(0, &status) : stat(path, &status)) < 0)
		return fail(-errno, "%s: %m", path);
	add(stream, "input", "%s", path);
	snprintf(name, sizeof name, "%sinput", input_state);
	add(stream, name,
	    "%s: device %" PRIuMAX ", inode %" PRIuMAX ", %" PRIdMAX " bytes, of %" PRIdMAX
	    ".%09ld",
	    path, (uintmax_t)status.st_dev, (uintmax_t)status.st_ino, (intmax_t)status.st_size,
	    (intmax_t)status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
	return 0;
}

int description_make(const struct options *options, struct description *ret_description)
{
	struct description description = { 0 };
	FILE *stream = open_memstream(&description.text, &description.nbytes);
	int r = 0;

	if (!stream)
		return fail(-errno, "--checkpoint: %m");
	add_options(stream, options);
	for (size_t i = 0; i < options->n_inputs && r == 0; i++)
		r = add_input(stream, options->inputs[i]);
	if (fclose(stream) != 0 && r == 0)
		r = fail(-errno, "--checkpoint: %m");
	if (r < 0)
		free(description.text);
	else
		*ret_description = description;
	return r;
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

int description_compare(const char *directory, const struct description *saved,
			const struct description *now, bool but_inputs)
{
	size_t at_saved = 0, at_now = 0;

	while (at_now < now->nbytes) {
		const char *name = next_text(now, &at_now), *value = next_text(now, &at_now);
		const char *saved_name = next_text(saved, &at_saved);
		const char *saved_value = next_text(saved, &at_saved);

		if (but_inputs && strncmp(name, input_state, strlen(input_state)) == 0)
			continue;
		if (strcmp(name, saved_name) == 0 && strcmp(value, saved_value) == 0)
			continue;
		return fail(-EINVAL,
			    "%s: the checkpoint is of another sort: %s was '%s' and is '%s' now; "
			    "remove the directory to start again",
			    directory, name, saved_value, value);
	}
	return 0;
}
