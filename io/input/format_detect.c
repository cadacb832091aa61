/*
 * format_detect - is a file records, or something else? (see format_detect.h)
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "io/input/format_signatures.h"
#include "io/header/npy.h"
#include "src/base/diagnostics.h"

/* Of a path as a word of the shell's. */
enum { WORD_NBYTES = 160 };

struct format {
	const char *name;
	const char *filter; /* the command that writes what is to be sorted; NULL: */
	const char *advice; /* what else to do */
	/* Before the records, which are read: recognised despite --skip-bytes. NULL: none */
	uint64_t (*header_nbytes)(const struct format_view *view);
	format_look_fn *look;
	/* If filter and advice do not say it; as format_refuse(). */
	int (*refuse)(const struct format_view *view, const struct format_rules *rules,
		      const char *name, const char *path);
};

/* --- what to do instead --- */

/* The path as a word of the shell's; "FILE" if it is one that would have to be spelled out. */
static const char *spell(const char *path, char text[static WORD_NBYTES])
{
	static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "0123456789_./+,:@%=-";
	const size_t n = strlen(path);

	if (n > WORD_NBYTES - 3 || *path == '-')
		return "FILE";
	if (path[strspn(path, harmless)] == '\0')
		return path;
	for (const char *at = path; *at; at++)
		if ((unsigned char)*at < ' ' || *at == '\'' || *at == 0x7f)
			return "FILE";
	snprintf(text, WORD_NBYTES, "'%s'", path);
	return text;
}

/* What is to be done with records, and what that does. */
static const char *command_of(const struct format_rules *rules)
{
	return rules->checker ? rules->checker : "gsort";
}

static const char *verb_of(const struct format_rules *rules)
{
	return rules->checker ? "checks" : "sorts";
}

/* "zstd -dc FILE | gzip -dc | gsort ..." */
static int refuse_filtered(const struct format *format, const struct format_view *view,
			   const struct format_rules *rules, const char *name, const char *path)
{
	char word[WORD_NBYTES];
	const char *const file = path ? spell(path, word) : "";
	const char *const space = path ? " " : "";

	if (view->is_content)
		return fail_hint(-EINVAL, HINT_TAKE_AS_RECORDS, 0,
				 "%s: what is in it is %s: zstd -dc%s%s | %s | %s ... %s what is "
				 "in that",
				 name, format->name, space, file, format->filter, command_of(rules),
				 verb_of(rules));
	return fail_hint(-EINVAL, HINT_TAKE_AS_RECORDS, 0,
			 "%s: is %s: %s%s%s | %s ... %s what is in it", name, format->name,
			 format->filter, space, file, command_of(rules), verb_of(rules));
}

/* It begins as one does, and does not go on so. */
static int refuse_broken_npy(const struct format_view *view, const char *name)
{
	const unsigned char *version = view->head + 6;

	if (view->n_head < 8 || (version[0] >= 1 && version[0] <= 3 && version[1] == 0))
		return fail(-EINVAL,
			    "%s: is a file of numpy that ends within its header, after %zu bytes: "
			    "it is cut off",
			    name, view->n_head);
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
	if (!npy_recognise(view->head, view->n_head, &nbytes))
		return refuse_broken_npy(view, name);
	if (nbytes != rules->skip_nbytes)
		return fail_hint(-EINVAL, HINT_NO_HEADER, 0,
				 "%s: is a file of numpy with a header of %" PRIu64
				 " bytes, not %" PRIu64,
				 name, nbytes, rules->skip_nbytes);
	if (rules->counts_anew)
		return fail_hint(-EINVAL, HINT_NO_HEADER, 0,
				 "%s: is a file of numpy, whose header would not fit what is "
				 "written behind it",
				 name);
	return fail_hint(-EINVAL, HINT_NO_HEADER_OR_SAY, 0, "%s: is a file of numpy", name);
}

/* What is compressed, or comes through a pipe, has no directory in which parts could be. */
static int refuse_list(const struct format_view *view, const struct format_rules *rules,
		       const char *name, const char *path)
{
	(void)view;
	(void)path;
	if (rules->takes_lists)
		return fail(
			-EINVAL,
			"%s: is a part manifest, which is no regular file: its part files cannot "
			"be found",
			name);
	return fail_hint(-EINVAL, HINT_MERGE_PARTS, 0, "%s: is a part manifest of sorted files",
			 name);
}

static int refuse_text(const struct format_view *view, const struct format_rules *rules,
		       const char *name, const char *path)
{
	(void)view;
	(void)path;
	if (rules->choice == FORMAT_NPY)
		return fail(-EINVAL, "%s: is text, and no file of numpy, as it is said to be",
			    name);
	return fail_hint(-EINVAL, HINT_SAY_RECORDS, 0, "%s: is text: sort(1) sorts its lines",
			 name);
}

/* The first that fits: signatures first, the longest of them where two begin alike. */
static const struct format formats[] = {
	{ .name = "compressed by Zstandard", .filter = "zstd -dc", .look = format_look_zstandard },
	{ .name = "compressed by gzip", .filter = "gzip -dc", .look = format_look_gzip },
	{ .name = "compressed by xz", .filter = "xz -dc", .look = format_look_xz },
	{ .name = "compressed by bzip2", .filter = "bzip2 -dc", .look = format_look_bzip2 },
	{ .name = "compressed by lz4", .filter = "lz4 -dc", .look = format_look_lz4 },
	{ .name = "a zip archive",
	  .advice = "unzip -p FILE MEMBER writes one of its members",
	  .look = format_look_zip },
	{ .name = "a 7z archive",
	  .advice = "7z e -so writes what is in it",
	  .look = format_look_7z },
	{ .name = "a Parquet file",
	  .advice = "its columns are encoded: write the one to be sorted as plain numbers first",
	  .look = format_look_parquet },
	{ .name = "an Arrow file",
	  .advice = "its columns are in parts: write the one to be sorted as plain numbers first",
	  .look = format_look_arrow },
	{ .name = "a SQLite database",
	  .advice = "ORDER BY sorts it, and what it selects can be written as plain numbers",
	  .look = format_look_sqlite },
	{ .name = "an HDF5 file",
	  .advice =
		  "h5dump -b LE -d DATASET -o NUMBERS writes one of its datasets as plain numbers",
	  .look = format_look_hdf5 },
	{ .name = "a file of numpy",
	  .header_nbytes = format_npy_header_nbytes,
	  .look = format_look_npy,
	  .refuse = refuse_npy },
	{ .name = "a part manifest", .look = format_look_list, .refuse = refuse_list },
	{ .name = "text", .look = format_look_text, .refuse = refuse_text },
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

bool format_is_list(const struct format *format, const struct format_rules *rules)
{
	return rules->takes_lists && format->look == format_look_list;
}

const char *format_name(const struct format *format)
{
	return format->name;
}

/* Is this one looked for? */
static bool is_asked_for(const struct format *format, const struct format_view *view,
			 const struct format_rules *rules)
{
	return rules->skip_nbytes == 0 || format->header_nbytes ||
	       format->look == format_look_list ||
	       (format_is_zstandard(format) && !view->is_content);
}

int format_recognise(const struct format_view *view, const struct format_rules *rules,
		     const struct format **ret_format)
{
	*ret_format = NULL;
	if (rules->choice == FORMAT_RAW)
		return 0;
	for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
		const int r =
			is_asked_for(&formats[i], view, rules) ? formats[i].look(view, rules) : 0;

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
	return fail_hint(-EINVAL, HINT_TAKE_AS_RECORDS, 0, "%s: is %s, not records: %s", name,
			 format->name, format->advice);
}
