/*
 * format_detect - tells records from files of other formats (see format_detect.h)
 */
#include "io/input/format_detect.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "io/header/npy.h"
#include "io/input/part_manifest.h"
#include "src/base/diagnostics.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they are");

/* --- what is visible --- */

static bool is_fully_visible(const struct format_view *view)
{
	return view->head_nbytes < FORMAT_HEAD_NBYTES || view->nbytes == view->head_nbytes;
}

static bool can_read_view(const struct format_view *view, uint64_t offset, size_t nbytes)
{
	return offset + nbytes <= view->head_nbytes ||
	       (view->read_at && view->nbytes != FORMAT_SIZE_UNKNOWN);
}

/* Read existing bytes, after can_read_view(). */
static int read_view(const struct format_view *view, uint64_t offset, void *buffer, size_t nbytes)
{
	if (offset + nbytes > view->head_nbytes)
		return view->read_at(view->context, offset, buffer, nbytes);
	memcpy(buffer, view->head + offset, nbytes);
	return 0;
}

static uint64_t load_le(const unsigned char *from, size_t nbytes)
{
	uint64_t value = 0;

	memcpy(&value, from, nbytes);
	return value;
}

/* --- detection of single formats, after their magic numbers --- */

/* No program writes more skippable frames before content. */
enum { MAX_SKIPPABLE_FRAMES = 1024 };

/*
 * Skippable frames alone are not compressed data. If what follows them is not visible, they are
 * taken for compressed data, and the decoder reports the error in the end (decoder.h).
 */
static int detect_zstandard(const struct format_view *view, const struct format_rules *rules)
{
	const uint64_t nbytes = is_fully_visible(view) ? view->head_nbytes : view->nbytes;
	uint64_t offset = 0, frame_nbytes;

	(void)rules;
	for (unsigned i = 0; i < MAX_SKIPPABLE_FRAMES; i++) {
		const uint64_t remaining = nbytes - offset;
		const size_t n = remaining < ZSTD_FRAME_PREFIX_NBYTES ? remaining :
									ZSTD_FRAME_PREFIX_NBYTES;
		unsigned char begin[ZSTD_FRAME_PREFIX_NBYTES];
		enum zstd_frame_kind kind;
		int r;

		if (!can_read_view(view, offset, n))
			return 1;
		r = read_view(view, offset, begin, n);
		if (r < 0)
			return r;
		kind = zstd_frame_detect(begin, n, &frame_nbytes);
		if (kind != ZSTD_FRAME_SKIPPABLE)
			return kind == ZSTD_FRAME_CONTENT;
		if (frame_nbytes > remaining)
			return 0;
		offset += frame_nbytes;
	}
	return 1;
}

/* Few values are defined for extra flags, the system, and the type of the first block. */
static int detect_gzip(const struct format_view *view, const struct format_rules *rules)
{
	enum { FLAGS = 3, EXTRA_FLAGS = 8, SYSTEM = 9, HEADER_NBYTES = 10, TRAILER_NBYTES = 8 };
	const unsigned char *head = view->head;

	(void)rules;
	if (view->head_nbytes < HEADER_NBYTES + TRAILER_NBYTES ||
	    (head[SYSTEM] > 13 && head[SYSTEM] != 255) ||
	    (head[EXTRA_FLAGS] != 0 && head[EXTRA_FLAGS] != 2 && head[EXTRA_FLAGS] != 4))
		return 0;
	return head[FLAGS] || (head[HEADER_NBYTES] & 6) != 6;
}

/* Detect the block size, and the number that begins a block or the end of the file. */
static int detect_bzip2(const struct format_view *view, const struct format_rules *rules)
{
	(void)rules;
	return view->head_nbytes >= 10 && view->head[3] >= '1' && view->head[3] <= '9' &&
	       (memcmp(view->head + 4, "\x31\x41\x59\x26\x53\x59", 6) == 0 ||
		memcmp(view->head + 4, "\x17\x72\x45\x38\x50\x90", 6) == 0);
}

/* Detect a member with a name, of a known version; or the end of an empty archive. */
static int detect_zip(const struct format_view *view, const struct format_rules *rules)
{
	enum { VERSION = 4, MAX_VERSION = 63, NAME_NBYTES = 26, NAME = 30, EMPTY_NBYTES = 22 };
	const unsigned char *head = view->head;

	(void)rules;
	if (view->head_nbytes == EMPTY_NBYTES && memcmp(head, "PK\5\6", 4) == 0)
		return load_le(head + 4, 8) == 0;
	return view->head_nbytes > NAME && memcmp(head, "PK\3\4", 4) == 0 &&
	       head[VERSION] <= MAX_VERSION && head[NAME] != '\0' &&
	       load_le(head + NAME_NBYTES, 2) > 0;
}

/*
 * Check that the file ends with the size of the footer and the magic number again. If the end is
 * not visible, check the header of the first column: its first field is a small number.
 */
static int detect_parquet(const struct format_view *view, const struct format_rules *rules)
{
	enum { END_NBYTES = 8 };
	const uint64_t nbytes = is_fully_visible(view) ? view->head_nbytes : view->nbytes;
	unsigned char end[END_NBYTES];
	int r;

	(void)rules;
	if (view->head_nbytes < 4 + END_NBYTES)
		return 0;
	if (nbytes == FORMAT_SIZE_UNKNOWN || !can_read_view(view, nbytes - END_NBYTES, END_NBYTES))
		return view->head[4] == 0x15 && view->head[5] <= 6;
	r = read_view(view, nbytes - END_NBYTES, end, END_NBYTES);
	if (r < 0)
		return r;
	return memcmp(end + 4, "PAR1", 4) == 0 && load_le(end, 4) <= nbytes - 4 - END_NBYTES;
}

/* At the beginning, or after a user block of 512, 1024, ... bytes. */
static int detect_hdf5(const struct format_view *view, const struct format_rules *rules)
{
	static const char magic[8] = "\x89HDF\r\n\x1a\n";

	(void)rules;
	for (size_t offset = 0; offset + sizeof magic <= view->head_nbytes;
	     offset = offset ? 2 * offset : 512)
		if (memcmp(view->head + offset, magic, sizeof magic) == 0)
			return 1;
	return 0;
}

/*
 * With --skip-bytes, a .npy file is accepted as records if this is the size of its header, and the
 * type is given or is the default.
 */
static int detect_npy(const struct format_view *view, const struct format_rules *rules)
{
	static const char u64[] = "{'descr': '<u8', ";
	uint64_t header_nbytes;

	if (!npy_parse_prefix(view->head, view->head_nbytes, &header_nbytes))
		return npy_has_magic(view->head, view->head_nbytes) && rules->skip_nbytes == 0;
	return header_nbytes != rules->skip_nbytes || rules->output_differs ||
	       (rules->is_untyped && !memmem(view->head, view->head_nbytes, u64, sizeof u64 - 1));
}

static int detect_manifest(const struct format_view *view, const struct format_rules *rules)
{
	(void)rules;
	return part_manifest_detect(view->head, view->head_nbytes);
}

static bool is_text(unsigned char c)
{
	return (c >= ' ' && c <= '~') || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}

/* Return the bytes of a non-ASCII character of UTF-8; 0: it is none, or truncated. */
static size_t utf8_character_nbytes(const unsigned char *bytes, size_t n)
{
	const size_t nbytes = *bytes >= 0xc2 && *bytes <= 0xdf ? 2 :
			      (*bytes & 0xf0) == 0xe0          ? 3 :
			      *bytes >= 0xf0 && *bytes <= 0xf4 ? 4 :
								 n + 1;

	for (size_t i = 1; i < nbytes && i < n; i++)
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
	return nbytes <= n ? nbytes : 0;
}

/* Return whether the bytes are letters, digits and white space only. */
static bool are_words(const unsigned char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_text(bytes[i]) || (bytes[i] > ' ' && !isalnum(bytes[i])))
			return false;
	return true;
}

/*
 * Text consists of printable characters, ASCII or UTF-8. Keys of letters are numbers as well, so if
 * the size fits u64, text must contain a line end, and end with it if it is short. A single number
 * that consists of letters and digits is text, too, because nobody sorts one key. Of files with one
 * random number 1 in 40,000 is taken for text, with two 1 in 2^28. Small integers are no text: they
 * contain zero bytes.
 */
static int detect_text(const struct format_view *view, const struct format_rules *rules)
{
	enum { MIN_TEXT_NBYTES = 2, SHORT_TEXT_NBYTES = 64, MAX_CUT_NBYTES = 3 };
	const unsigned char *head = view->head;
	const bool is_whole_numbers = !is_fully_visible(view) || view->head_nbytes % 8 == 0;
	size_t n = 0, nbytes = 1;

	if (!rules->is_untyped || view->head_nbytes < MIN_TEXT_NBYTES)
		return 0;
	if (is_fully_visible(view) && view->head_nbytes == 8 && are_words(head, 8))
		return 1;
	if (is_whole_numbers &&
	    (!memchr(head, '\n', view->head_nbytes) ||
	     (view->head_nbytes < SHORT_TEXT_NBYTES && head[view->head_nbytes - 1] != '\n')))
		return 0;
	for (; n < view->head_nbytes && nbytes > 0; n += nbytes)
		nbytes = is_text(head[n]) ? 1 :
					    utf8_character_nbytes(head + n, view->head_nbytes - n);
	return n == view->head_nbytes ||
	       (!is_fully_visible(view) && view->head_nbytes - n <= MAX_CUT_NBYTES);
}

/* --- messages --- */

static uint64_t npy_header_nbytes(const struct format_view *view)
{
	uint64_t nbytes = 0;

	npy_parse_prefix(view->head, view->head_nbytes, &nbytes);
	return nbytes;
}

static int refuse_unreadable_npy(const struct format_view *view, const char *name)
{
	const unsigned char *version = view->head + 6;

	if (view->head_nbytes < 8 || (version[0] >= 1 && version[0] <= 3 && version[1] == 0))
		return fail(-EINVAL,
			    "%s: is a truncated .npy file: it ends within its header, after %zu "
			    "bytes",
			    name, view->head_nbytes);
	return fail(-EINVAL,
		    "%s: is a .npy file of version %u.%u, not 1.0, 2.0 or 3.0; convert it with "
		    "numpy.load() and numpy.save()",
		    name, version[0], version[1]);
}

static int refuse_npy(const struct format_view *view, const struct format_rules *rules,
		      const char *name)
{
	uint64_t nbytes;

	if (!npy_parse_prefix(view->head, view->head_nbytes, &nbytes))
		return refuse_unreadable_npy(view, name);
	if (nbytes != rules->skip_nbytes)
		return fail(-EINVAL,
			    "%s: is a .npy file with a header of %" PRIu64 " bytes, not %" PRIu64
			    "; omit --skip-bytes to read the header",
			    name, nbytes, rules->skip_nbytes);
	if (rules->output_differs)
		return fail(
			-EINVAL,
			"%s: .npy header does not fit the output; omit --skip-bytes to read the "
			"header",
			name);
	return fail(-EINVAL,
		    "%s: is a .npy file; omit --skip-bytes to read the header, or use -t for the "
		    "data after it",
		    name);
}

/* A manifest that is compressed, or read from a pipe, has no directory of part files. */
static int refuse_manifest(const struct format_view *view, const struct format_rules *rules,
			   const char *name)
{
	(void)view;
	if (rules->accepts_manifests)
		return fail(-EINVAL, "%s: is a part manifest, but not a regular file", name);
	return fail(-EINVAL,
		    "%s: is a part manifest of sorted files; " GSORT_PROGRAM
		    " -m merges them, and -c checks them",
		    name);
}

static int refuse_text(const struct format_view *view, const struct format_rules *rules,
		       const char *name)
{
	(void)view;
	if (rules->mode == FORMAT_NPY)
		return fail(-EINVAL, "%s: is text, not a .npy file", name);
	return fail(-EINVAL,
		    "%s: is text; " GSORT_PROGRAM " --lines sorts lines; to read it as records "
		    "use -t, -R or --format=raw",
		    name);
}

/* --- the table --- */

#define MAGIC(bytes) .magic = (bytes), .magic_nbytes = sizeof(bytes) - 1

/* The first format that matches counts. */
static const struct format formats[] = {
	{ .name = "compressed by Zstandard",
	  .detect = detect_zstandard,
	  .compression = DECODER_ZSTD,
	  .filter = "zstd -dc" },
	{ .name = "compressed by gzip", /* deflate, no reserved flag */
	  MAGIC("\x1f\x8b\x08\0"),
	  .mask = "\xff\xff\xff\xe0",
	  .detect = detect_gzip,
	  .compression = DECODER_GZIP,
	  .filter = "gzip -dc" },
	{ .name = "compressed by xz", /* one of 16 kinds of checksums */
	  MAGIC("\xfd\x37zXZ\0\0\0"),
	  .mask = "\xff\xff\xff\xff\xff\xff\xff\xf0",
	  .filter = "xz -dc" },
	{ .name = "compressed by bzip2",
	  MAGIC("BZh"),
	  .detect = detect_bzip2,
	  .filter = "bzip2 -dc" },
	{ .name = "compressed by lz4", /* version 1, no reserved flag, blocks of 64 KiB to 4 MiB */
	  MAGIC("\x04\x22\x4d\x18\x40\x40\0"),
	  .mask = "\xff\xff\xff\xff\xc2\xcf\0",
	  .filter = "lz4 -dc" },
	{ .name = "a zip archive",
	  MAGIC("PK"),
	  .detect = detect_zip,
	  .hint = "use unzip -p FILE MEMBER to extract a member" },
	{ .name = "a 7z archive",
	  MAGIC("7z\xbc\xaf\x27\x1c\0"),
	  .hint = "use 7z e -so to extract its content" },
	{ .name = "a Parquet file",
	  MAGIC("PAR1"),
	  .detect = detect_parquet,
	  .hint = "export a column as plain numbers first" },
	{ .name = "an Arrow file",
	  MAGIC("ARROW1\0\0"),
	  .hint = "export a column as plain numbers first" },
	{ .name = "a SQLite database",
	  MAGIC("SQLite format 3\0"),
	  .hint = "use ORDER BY, or export a column as plain numbers first" },
	{ .name = "an HDF5 file",
	  .detect = detect_hdf5,
	  .hint = "use h5dump -b LE -d DATASET -o NUMBERS to export a dataset as plain numbers" },
	{ .name = "a .npy file",
	  .detect = detect_npy,
	  .header_nbytes = npy_header_nbytes,
	  .refuse = refuse_npy },
	{ .name = "a part manifest", .detect = detect_manifest, .refuse = refuse_manifest },
	{ .name = "text", .detect = detect_text, .refuse = refuse_text },
};

uint64_t format_header_nbytes(const struct format *format, const struct format_view *view,
			      const struct format_rules *rules)
{
	return format->header_nbytes && rules->skip_nbytes == 0 ? format->header_nbytes(view) : 0;
}

bool format_is_manifest(const struct format *format, const struct format_rules *rules)
{
	return rules->accepts_manifests && format->detect == detect_manifest;
}

/* Formats that are read are detected with --skip-bytes, too. */
static bool is_format_enabled(const struct format *format, const struct format_view *view,
			      const struct format_rules *rules)
{
	if (rules->mode == FORMAT_COMPRESSED)
		return format->compression != DECODER_NONE && view->compression == DECODER_NONE;
	if (rules->mode == FORMAT_LINES)
		return format->filter && view->compression == DECODER_NONE;
	return rules->skip_nbytes == 0 || format->header_nbytes ||
	       format->detect == detect_manifest ||
	       (format->compression != DECODER_NONE && view->compression == DECODER_NONE);
}

static bool has_magic(const struct format *format, const struct format_view *view)
{
	if (view->head_nbytes < format->magic_nbytes)
		return false;
	for (size_t i = 0; i < format->magic_nbytes; i++) {
		const unsigned char mask = format->mask ? (unsigned char)format->mask[i] : 0xff;

		if ((view->head[i] & mask) != (unsigned char)format->magic[i])
			return false;
	}
	return true;
}

int format_detect(const struct format_view *view, const struct format_rules *rules,
		  const struct format **ret_format)
{
	*ret_format = NULL;
	if (rules->mode == FORMAT_RAW)
		return 0;
	for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
		const struct format *format = &formats[i];
		int r;

		if (!is_format_enabled(format, view, rules) || !has_magic(format, view))
			continue;
		r = format->detect ? format->detect(view, rules) : 1;
		if (r > 0)
			*ret_format = format;
		if (r != 0)
			return r < 0 ? r : 0;
	}
	return 0;
}

enum { SHELL_WORD_NBYTES = 160 };

/* Quote the path for the shell; "FILE" stands for a path that would need escapes. */
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

/* "zstd -dc FILE | gzip -dc | gsort ..." */
static int refuse_filtered(const struct format *format, const struct format_view *view,
			   const struct format_rules *rules, const char *name, const char *path)
{
	char word[SHELL_WORD_NBYTES];
	const char *const file = path ? shell_quote_path(path, word) : "";
	const char *const space = path ? " " : "";
	const char *const consumer = rules->checker ? rules->checker : GSORT_PROGRAM;

	for (size_t i = 0; view->compression != DECODER_NONE; i++)
		if (formats[i].compression == view->compression)
			return fail(-EINVAL,
				    "%s: its content is %s; use %s%s%s | %s | %s ..., or "
				    "--format=raw to read it as records",
				    name, format->name, formats[i].filter, space, file,
				    format->filter, consumer);
	return fail(-EINVAL,
		    "%s: is %s; use %s%s%s | %s ..., or --format=raw to read it as records", name,
		    format->name, format->filter, space, file, consumer);
}

int format_refuse(const struct format *format, const struct format_view *view,
		  const struct format_rules *rules, const char *name, const char *path)
{
	if (format->refuse)
		return format->refuse(view, rules, name);
	if (format->filter)
		return refuse_filtered(format, view, rules, name, path);
	return fail(-EINVAL,
		    "%s: is %s, not records; %s, or use --format=raw to read it as records", name,
		    format->name, format->hint);
}
