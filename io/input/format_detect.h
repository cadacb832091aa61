/*
 * format_detect - is a file records, or something else that begins as its own kind does?
 *
 * Records have no header that could be recognised: any bytes may be records. But nobody means to
 * sort an archive, a database or a text as numbers, and an output that replaces it would be all
 * that is left. So the first bytes of every input, and of what it is compressed to, are compared
 * with a table of formats, and what is one of them is refused, with what to do instead.
 *
 * Numbers must not be taken for something else. A signature has four bytes at least, and what a
 * format says beside it (versions, flags, sizes, the other end of the file) is checked as far as
 * it can be seen. Text, which has no signature, is only recognised where nobody has said what a
 * record is. Of random data one file in 2^32 begins like one of the formats, or fewer.
 *
 * Zstandard is one of the formats, but not refused: its content is read. Nor is .npy, whose records
 * are behind a header.
 *
 * Who gives --skip-bytes knows of a header: only Zstandard is recognised then, and .npy, which is
 * refused if its header has another size than was given. --format=raw switches everything off.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum format_mode {
	FORMAT_AUTO,
	FORMAT_NPY, /* the same, and what is no .npy is refused (framing.h) */
	FORMAT_RAW, /* recognise nothing */
};

struct format_rules {
	enum format_mode mode;
	uint64_t skip_nbytes;   /* the header that the user knows of; 0: none */
	bool is_untyped;        /* nobody has said what a record is */
	bool accepts_manifests; /* of parts (part_manifest.h) */
	bool output_differs;    /* what is written is not as many records, or others */
	const char *checker;    /* the program that only looks; NULL: it is sorted */
};

enum { FORMAT_HEAD_NBYTES = 4096 };

#define FORMAT_SIZE_UNKNOWN UINT64_MAX

/* What can be seen of a file, or of its content. */
struct format_view {
	const unsigned char *head;
	size_t head_nbytes;   /* FORMAT_HEAD_NBYTES, or all bytes that there are */
	uint64_t nbytes;      /* FORMAT_SIZE_UNKNOWN: only known if it is all in the head */
	bool is_decompressed; /* of what is compressed by Zstandard, to which messages then refer */
	void *context;        /* of read_at */
	/* Any part within nbytes: 0 or a negative errno, without a message; NULL: cannot be had */
	int (*read_at)(void *context, uint64_t offset, void *buffer, size_t nbytes);
};

struct format;

/*
 * What is it? *ret_format is NULL if there is nothing to be said against records. Returns 0, or
 * what read_at returned.
 */
int format_detect(const struct format_view *view, const struct format_rules *rules,
		  const struct format **ret_format);

/* Is it compressed so that gsort can read it? */
bool format_is_zstandard(const struct format *format);

/* Is it a part manifest, which are to be read in its place? */
bool format_is_manifest(const struct format *format, const struct format_rules *rules);

/* Of a format with records behind a header, which are read: its size. Else 0. */
uint64_t format_header_nbytes(const struct format *format, const struct format_view *view,
			      const struct format_rules *rules);

/* For messages: "compressed by gzip", "a zip archive". */
const char *format_name(const struct format *format);

/*
 * Print that the file is of this format, and what to do. `name` is for messages, path NULL that of
 * standard input. Returns -EINVAL.
 */
int format_refuse(const struct format *format, const struct format_view *view,
		  const struct format_rules *rules, const char *name, const char *path);
