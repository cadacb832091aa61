/*
 * format_detect - is a file records, or something else? (see format_detect.h)
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "io/input/format_signatures.h"
#include "config.h"
#include "io/header/npy.h"
#include "src/base/diagnostics.h"

/* Of a path as a word of the shell's. */
enum { SHELL_WORD_NBYTES = 160 };

struct format {
	const char *name;
	const char *filter; /* the command that writes what is to be sorted; NULL: */
	const char *advice; /* what else to do */
	/* Before the records, which are read: recognised despite --skip-bytes. NULL: none */
	uint64_t (*header_nbytes)(const struct format_view *view);
	format_detect_fn *detect;
	/* If filter and advice do not say it; as format_refuse(). */
	int (*refuse)(const struct format_view *view, const struct format_rules *rules,
		      const char *name, const char *path);
};

/* --- what to do instead --- */

/* The path as a word of the shell's; "FILE" if it is one that would have to be spelled out. */
static const char *shell_quote_path(const char *path, char text[static SHELL_WORD_NBYTES])
{
	static const char safe_characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					      "0123456789_./+,:@%=-";
	const size_t n = strlen(path);

	if (n > SHELL_WORD_NBYTES - 3 || *path == '-')
		return "FILE";
	if (path[strspn(path, safe_characters)] == '\0')
		return path;
	for (const char *p = path; *p; p++)
		if ((unsigned char)*p < ' ' || *p == '\'' || *p == 0x7f)
			return "FILE";
	snprintf(text, SHELL_WORD_NBYTES, "'%s'", path);
	return text;
}

/* What is to be done with records, and what that does. */
static const char *consumer_command(const struct format_rules *rules)
{
	return rules->checker ? rules->checker : GSORT_PROGRAM;
}

static const char *consumer_verb(const struct format_rules *rules)
{
	return rules->checker ? "checks" : "sorts";
}

/* "zstd -dc FILE | gzip -dc | gsort ..." */
static int refuse_filtered(const struct format *format, const struct format_view *view,
			   const struct format_rules *rules, const char *name, const char *path)
{
	char word[SHELL_WORD_NBYTES];
	const char *const file = path ? shell_quote_path(path, word) : "";
	const char *const space = path ? " " : "";

	if (view->is_decompressed)
		return fail(
			-EINVAL,
			"%s: what is in it is %s: zstd -dc%s%s | %s | %s ... %s what is in that; "
			"--format=raw takes its bytes for records",
			name, format->name, space, file, format->filter, consumer_command(rules),
			consumer_verb(rules));
	return fail(-EINVAL,
		    "%s: is %s: %s%s%s | %s ... %s what is in it; --format=raw takes its bytes for "
		    "records",
		    name, format->name, format->filter, space, file, consumer_command(rules),
		    consumer_verb(rules));
}

/* It begins as one does, and does not go on so. */
static int refuse_broken_npy(const struct format_view *view, const char *name)
{
	const unsigned char *version = view->head + 6;

	if (view->head_nbytes < 8 || (version[0] >= 1 && version[0] <= 3 && version[1] == 0))
		return fail(-EINVAL,
			    "%s: is a file of numpy that ends within its header, after %zu bytes: "
			    "it is cut off",
			    name, view->head_nbytes);
	return fail(-EINVAL,
		    "%s: is a file of numpy in version %u.%u of its format, and not 1.0, 2.0 or "
		    "3.0: numpy.save() of what numpy.load() finds in it writes one of these",
		    name, version[0], version[1]);
}

/* Who knows of the header need not. */
static int refuse_npy(const struct format_view *view, const struct format_rules *rules,
		      const char *name, const char *path)
{
	uint64_t nbytes;

	(void)path;
	if (!npy_parse_prefix(view->head, view->head_nbytes, &nbytes))
		return refuse_broken_npy(view, name);
	if (nbytes != rules->skip_nbytes)
		return fail(-EINVAL,
			    "%s: is a file of numpy with a header of %" PRIu64
			    " bytes, not %" PRIu64 ": omit --skip-bytes to read the header",
			    name, nbytes, rules->skip_nbytes);
	if (rules->output_differs)
		return fail(-EINVAL,
			    "%s: is a file of numpy, whose header would not fit what is written "
			    "behind it: omit --skip-bytes to read the header",
			    name);
	return fail(
		-EINVAL,
		"%s: is a file of numpy: omit --skip-bytes to read the header, or use -t for the "
		"data after it",
		name);
}

/* What is compressed, or comes through a pipe, has no directory in which parts could be. */
static int refuse_manifest(const struct format_view *view, const struct format_rules *rules,
			   const char *name, const char *path)
{
	(void)view;
	(void)path;
	if (rules->accepts_manifests)
		return fail(
			-EINVAL,
			"%s: is a part manifest, which is no regular file: its part files cannot "
			"be found",
			name);
	return fail(-EINVAL,
		    "%s: is a part manifest of sorted files; " GSORT_PROGRAM
		    " -m merges them, and -c checks them",
		    name);
}

static int refuse_text(const struct format_view *view, const struct format_rules *rules,
		       const char *name, const char *path)
{
	(void)view;
	(void)path;
	if (rules->mode == FORMAT_NPY)
		return fail(-EINVAL, "%s: is text, and no file of numpy, as it is said to be",
			    name);
	return fail(
		-EINVAL,
		"%s: is text: sort(1) sorts its lines; if it is records, say which by -t or -R, "
		"-t u64 for example, or by --format=raw",
		name);
}

/* The first that fits: signatures first, the longest of them where two begin alike. */
static const struct format formats[] = {
	{ .name = "compressed by Zstandard",
	  .filter = "zstd -dc",
	  .detect = format_detect_zstandard },
	{ .name = "compressed by gzip", .filter = "gzip -dc", .detect = format_detect_gzip },
	{ .name = "compressed by xz", .filter = "xz -dc", .detect = format_detect_xz },
	{ .name = "compressed by bzip2", .filter = "bzip2 -dc", .detect = format_detect_bzip2 },
	{ .name = "compressed by lz4", .filter = "lz4 -dc", .detect = format_detect_lz4 },
	{ .name = "a zip archive",
	  .advice = "unzip -p FILE MEMBER writes one of its members",
	  .detect = format_detect_zip },
	{ .name = "a 7z archive",
	  .advice = "7z e -so writes what is in it",
	  .detect = format_detect_7z },
	{ .name = "a Parquet file",
	  .advice = "its columns are encoded: write the one to be sorted as plain numbers first",
	  .detect = format_detect_parquet },
	{ .name = "an Arrow file",
	  .advice = "its columns are in parts: write the one to be sorted as plain numbers first",
	  .detect = format_detect_arrow },
	{ .name = "a SQLite database",
	  .advice = "ORDER BY sorts it, and what it selects can be written as plain numbers",
	  .detect = format_detect_sqlite },
	{ .name = "an HDF5 file",
	  .advice =
		  "h5dump -b LE -d DATASET -o NUMBERS writes one of its datasets as plain numbers",
	  .detect = format_detect_hdf5 },
	{ .name = "a file of numpy",
	  .header_nbytes = format_npy_header_nbytes,
	  .detect = format_detect_npy,
	  .refuse = refuse_npy },
	{ .name = "a part manifest", .detect = format_detect_manifest, .refuse = refuse_manifest },
	{ .name = "text", .detect = format_detect_text, .refuse = refuse_text },
};

bool format_is_zstandard(const struct format *format)
{
	return format == &formats[0];
}

uint64_t format_header_nbytes(const struct format *format, const struct format_view *view,
			      const struct format_rules *rules)
{
	return format->header_nbytes && rules->skip_nbytes == 0 ? format->header_nbytes(view) : 0;
}

bool format_is_manifest(const struct format *format, const struct format_rules *rules)
{
	return rules->accepts_manifests && format->detect == format_detect_manifest;
}

const char *format_name(const struct format *format)
{
	return format->name;
}

/* Is this one looked for? */
static bool is_format_enabled(const struct format *format, const struct format_view *view,
			      const struct format_rules *rules)
{
	return rules->skip_nbytes == 0 || format->header_nbytes ||
	       format->detect == format_detect_manifest ||
	       (format_is_zstandard(format) && !view->is_decompressed);
}

int format_detect(const struct format_view *view, const struct format_rules *rules,
		  const struct format **ret_format)
{
	*ret_format = NULL;
	if (rules->mode == FORMAT_RAW)
		return 0;
	for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
		const int r = is_format_enabled(&formats[i], view, rules) ?
				      formats[i].detect(view, rules) :
				      0;

		if (r > 0)
			*ret_format = &formats[i];
		if (r != 0)
			return r < 0 ? r : 0;
	}
	return 0;
}

int format_refuse(const struct format *format, const struct format_view *view,
		  const struct format_rules *rules, const char *name, const char *path)
{
	if (format->refuse)
		return format->refuse(view, rules, name, path);
	if (format->filter)
		return refuse_filtered(format, view, rules, name, path);
	return fail(-EINVAL, "%s: is %s, not records: %s; --format=raw takes its bytes for records",
		    name, format->name, format->advice);
}
