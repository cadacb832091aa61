/*
 * format_signatures - how files of other formats are told from records (see format_signatures.h)
 */
#include "io/input/format_signatures.h"

#include <string.h>

#include "io/codec/zst_frame.h"
#include "io/header/npy.h"
#include "io/input/part_manifest.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they are");

/* --- what is seen --- */

static bool is_fully_visible(const struct format_view *view)
{
	return view->head_nbytes < FORMAT_HEAD_NBYTES || view->nbytes == view->head_nbytes;
}

static bool has_prefix(const struct format_view *view, const void *prefix, size_t n)
{
	return view->head_nbytes >= n && memcmp(view->head, prefix, n) == 0;
}

#define HAS_PREFIX(view, signature) has_prefix((view), (signature), sizeof(signature) - 1)

static bool can_read_view(const struct format_view *view, uint64_t offset, size_t nbytes)
{
	return offset + nbytes <= view->head_nbytes ||
	       (view->read_at && view->nbytes != FORMAT_SIZE_UNKNOWN);
}

/* Bytes that can be seen, and are there. */
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

/* --- the formats --- */

/* No program writes more in front of content than this. */
enum { MAX_SKIPPABLE_FRAMES = 1024 };

/*
 * Skippable frames alone are no compressed data. If it cannot be seen what follows them, it may be,
 * and if it is not, the stream of it says so in the end (zst_stream.h).
 */
int format_detect_zstandard(const struct format_view *view, const struct format_rules *rules)
{
	const uint64_t nbytes = is_fully_visible(view) ? view->head_nbytes : view->nbytes;
	uint64_t offset = 0, frame_nbytes;

	(void)rules;
	for (unsigned i = 0; i < MAX_SKIPPABLE_FRAMES; i++) {
		const uint64_t remaining = nbytes - offset;
		const size_t n = remaining < ZST_FRAME_PREFIX_NBYTES ? remaining :
								       ZST_FRAME_PREFIX_NBYTES;
		unsigned char begin[ZST_FRAME_PREFIX_NBYTES];
		enum zst_frame_kind kind;
		int r;

		if (!can_read_view(view, offset, n))
			return 1;
		r = read_view(view, offset, begin, n);
		if (r < 0)
			return r;
		kind = zst_frame_detect(begin, n, &frame_nbytes);
		if (kind != ZST_FRAME_SKIPPABLE)
			return kind == ZST_FRAME_CONTENT;
		if (frame_nbytes > remaining)
			return 0;
		offset += frame_nbytes;
	}
	return 1;
}

/* Method, flags, and what wrote it: all have few values. The first block has one of three types. */
int format_detect_gzip(const struct format_view *view, const struct format_rules *rules)
{
	enum { FLAGS = 3, EXTRA_FLAGS = 8, SYSTEM = 9, HEADER_NBYTES = 10 };
	const unsigned char *head = view->head;

	(void)rules;
	if (!HAS_PREFIX(view, "\x1f\x8b\x08") || view->head_nbytes < HEADER_NBYTES + 8)
		return 0;
	if (head[FLAGS] & 0xe0 || (head[SYSTEM] > 13 && head[SYSTEM] != 255) ||
	    (head[EXTRA_FLAGS] != 0 && head[EXTRA_FLAGS] != 2 && head[EXTRA_FLAGS] != 4))
		return 0;
	return head[FLAGS] || (head[HEADER_NBYTES] & 6) != 6;
}

/* The kind of check: none, CRC-32, CRC-64 or SHA-256, or one that is not used yet. */
int format_detect_xz(const struct format_view *view, const struct format_rules *rules)
{
	(void)rules;
	return HAS_PREFIX(view, "\xfd\x37zXZ\0\0") && view->head_nbytes > 7 && view->head[7] <= 15;
}

/* The size of blocks, and the number that each of them, or the end, begins with. */
int format_detect_bzip2(const struct format_view *view, const struct format_rules *rules)
{
	(void)rules;
	return HAS_PREFIX(view, "BZh") && view->head_nbytes >= 10 && view->head[3] >= '1' &&
	       view->head[3] <= '9' &&
	       (memcmp(view->head + 4, "\x31\x41\x59\x26\x53\x59", 6) == 0 ||
		memcmp(view->head + 4, "\x17\x72\x45\x38\x50\x90", 6) == 0);
}

/* Version 1, no reserved bit, blocks of 64 KiB to 4 MiB. */
int format_detect_lz4(const struct format_view *view, const struct format_rules *rules)
{
	(void)rules;
	return HAS_PREFIX(view, "\x04\x22\x4d\x18") && view->head_nbytes >= 7 &&
	       (view->head[4] & 0xc2) == 0x40 && (view->head[5] & 0x8f) == 0 &&
	       view->head[5] >= 0x40;
}

static bool is_printable(unsigned char c)
{
	return c >= ' ' && c <= '~';
}

static bool is_text(unsigned char c)
{
	return is_printable(c) || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}

/* A member with a name, of a version that there is; or the end of an archive of nothing. */
int format_detect_zip(const struct format_view *view, const struct format_rules *rules)
{
	enum { VERSION = 4, MAX_VERSION = 63, NAME_NBYTES = 26, NAME = 30, EMPTY_NBYTES = 22 };

	(void)rules;
	if (HAS_PREFIX(view, "PK\5\6"))
		return view->head_nbytes == EMPTY_NBYTES && load_le(view->head + 4, 8) == 0;
	return HAS_PREFIX(view, "PK\3\4") && view->head_nbytes > NAME &&
	       view->head[VERSION] <= MAX_VERSION && view->head[NAME] != '\0' &&
	       load_le(view->head + NAME_NBYTES, 2) > 0;
}

int format_detect_7z(const struct format_view *view, const struct format_rules *rules)
{
	(void)rules;
	return HAS_PREFIX(view, "7z\xbc\xaf\x27\x1c\0");
}

/*
 * "PAR1" at both ends, and before the second the size of what is in front of that. Where the end
 * cannot be seen, the first column's header follows: its first field is a small number.
 */
int format_detect_parquet(const struct format_view *view, const struct format_rules *rules)
{
	enum { END_NBYTES = 8 };
	const uint64_t nbytes = is_fully_visible(view) ? view->head_nbytes : view->nbytes;
	unsigned char end[END_NBYTES];
	int r;

	(void)rules;
	if (!HAS_PREFIX(view, "PAR1") || view->head_nbytes < 4 + END_NBYTES)
		return 0;
	if (nbytes == FORMAT_SIZE_UNKNOWN || !can_read_view(view, nbytes - END_NBYTES, END_NBYTES))
		return view->head[4] == 0x15 && view->head[5] <= 6;
	r = read_view(view, nbytes - END_NBYTES, end, END_NBYTES);
	if (r < 0)
		return r;
	return memcmp(end + 4, "PAR1", 4) == 0 && load_le(end, 4) <= nbytes - 4 - END_NBYTES;
}

int format_detect_arrow(const struct format_view *view, const struct format_rules *rules)
{
	(void)rules;
	return HAS_PREFIX(view, "ARROW1\0\0");
}

int format_detect_sqlite(const struct format_view *view, const struct format_rules *rules)
{
	(void)rules;
	return HAS_PREFIX(view, "SQLite format 3\0");
}

/* Behind nothing, or a block of somebody else's of 512 bytes, 1024, ... */
int format_detect_hdf5(const struct format_view *view, const struct format_rules *rules)
{
	static const char signature[8] = "\x89HDF\r\n\x1a\n";

	(void)rules;
	for (size_t offset = 0; offset + sizeof signature <= view->head_nbytes;
	     offset = offset ? 2 * offset : 512)
		if (memcmp(view->head + offset, signature, sizeof signature) == 0)
			return 1;
	return 0;
}

/* With --skip-bytes it is as it should be if that is the header, of numbers as they were named. */
int format_detect_npy(const struct format_view *view, const struct format_rules *rules)
{
	static const char u64[] = "{'descr': '<u8', ";
	uint64_t header_nbytes;

	if (!npy_parse_prefix(view->head, view->head_nbytes, &header_nbytes))
		return npy_has_magic(view->head, view->head_nbytes) && rules->skip_nbytes == 0;
	return header_nbytes != rules->skip_nbytes || rules->output_differs ||
	       (rules->is_untyped && !memmem(view->head, view->head_nbytes, u64, sizeof u64 - 1));
}

uint64_t format_npy_header_nbytes(const struct format_view *view)
{
	uint64_t nbytes = 0;

	npy_parse_prefix(view->head, view->head_nbytes, &nbytes);
	return nbytes;
}

int format_detect_manifest(const struct format_view *view, const struct format_rules *rules)
{
	(void)rules;
	return part_manifest_detect(view->head, view->head_nbytes);
}

/* The bytes of a character beyond ASCII that begins at `at`; 0: it is none, or cut off. */
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

/*
 * Printable characters, ASCII or UTF-8. Keys of letters are numbers, too: text of a whole number of
 * u64 must have a line end, and end with it if it is short. Of files with one random number 1 in
 * 200,000 is taken for text, with two 1 in 2^28. Small integers are no text: they have zero bytes.
 */
int format_detect_text(const struct format_view *view, const struct format_rules *rules)
{
	enum { MIN_TEXT_NBYTES = 4, SHORT_TEXT_NBYTES = 64, MAX_CUT_NBYTES = 3 };
	const unsigned char *head = view->head;
	const bool is_whole_numbers = !is_fully_visible(view) || view->head_nbytes % 8 == 0;
	size_t n = 0, nbytes = 1;

	if (!rules->is_untyped || view->head_nbytes < MIN_TEXT_NBYTES)
		return 0;
	if (is_whole_numbers &&
	    (!memchr(head, '\n', view->head_nbytes) ||
	     (view->head_nbytes < SHORT_TEXT_NBYTES && head[view->head_nbytes - 1] != '\n')))
		return 0;
	for (; n < view->head_nbytes && nbytes > 0; n += nbytes) {
		nbytes = is_text(head[n]) ? 1 :
					    utf8_character_nbytes(head + n, view->head_nbytes - n);
	}
	return n == view->head_nbytes ||
	       (!is_fully_visible(view) && view->head_nbytes - n <= MAX_CUT_NBYTES);
}
