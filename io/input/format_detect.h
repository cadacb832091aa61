/*
 * format_detect - tells records from files of other formats
 *
 * Records have no signature: any bytes may be records. But nobody wants to sort an archive, a
 * database or a text as numbers, perhaps in place. So the first bytes of every input, and of the
 * content of compressed ones, are compared with a table of formats. Inputs of these formats are
 * refused, with a hint what to do, except for:
 *
 * - Zstandard and gzip, whose content is read
 * - .npy, whose records are after a header
 * - part manifests, if the operation reads sorted inputs
 *
 * Numbers must not be taken for another format. A signature has at least three bytes, and
 * everything else that a format defines (versions, flags, sizes, the end of the file) is checked as
 * far as it is visible. Text, which has no signature, is detected only if the user has not said
 * what a record is. At most one of 2^32 random files is taken for another format.
 *
 * With --skip-bytes only Zstandard, gzip, part manifests and .npy are detected; .npy is refused if
 * its header has another size. --format=raw disables detection.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/codec/decoder.h"

enum format_mode {
	FORMAT_AUTO,
	FORMAT_NPY, /* like FORMAT_AUTO, but other files than .npy are refused (struct framing) */
	FORMAT_COMPRESSED, /* detect only Zstandard and gzip, whose content is not examined */
	FORMAT_LINES,      /* like FORMAT_COMPRESSED, but warn of other compressed files */
	FORMAT_RAW,        /* detect nothing */
};

struct format_rules {
	enum format_mode mode;
	uint64_t skip_nbytes;   /* of --skip-bytes, or 0 */
	bool is_untyped;        /* neither type nor size of records are given */
	bool accepts_manifests; /* part_manifest.h */
	bool output_differs;    /* other records, or another number of them, are written */
	const char *checker;    /* the command that checks the input, NULL: it is sorted */
};

enum { FORMAT_HEAD_NBYTES = 4096 };

#define FORMAT_SIZE_UNKNOWN UINT64_MAX

/* What is visible of a file, or of its content. */
struct format_view {
	const unsigned char *head;
	size_t head_nbytes;              /* FORMAT_HEAD_NBYTES, or the whole file */
	uint64_t nbytes;                 /* or FORMAT_SIZE_UNKNOWN */
	enum decoder_format compression; /* DECODER_NONE, or the view is of decompressed content */
	void *context;                   /* of read_at */
	/* Read any part within nbytes: 0 or a negative errno (not reported). NULL: not possible. */
	int (*read_at)(void *context, uint64_t offset, void *buffer, size_t nbytes);
};

struct format {
	const char *name; /* for messages: "compressed by gzip", "a zip archive" */
	/* The first bytes, with a mask, if not all of their bits are the same in all files. */
	const char *magic, *mask;
	size_t magic_nbytes;
	/* Check the rest. 1: it is this format; 0: it is not; or the error of read_at. Or NULL. */
	int (*detect)(const struct format_view *view, const struct format_rules *rules);

	enum decoder_format compression; /* gsort reads its content; else DECODER_NONE */
	const char *filter;              /* the command that writes the content; or NULL */
	const char *hint;                /* otherwise, what to do */
	/* The size of the header before records that gsort reads. NULL: it does not. */
	uint64_t (*header_nbytes)(const struct format_view *view);
	/* Report this format as format_refuse() does, if filter and hint do not suffice. */
	int (*refuse)(const struct format_view *view, const struct format_rules *rules,
		      const char *name);
};

/*
 * Detect the format; *ret_format is NULL for records. Returns 0, or the error of read_at (not
 * reported).
 */
int format_detect(const struct format_view *view, const struct format_rules *rules,
		  const struct format **ret_format);

/* Return whether the format is a part manifest, to be replaced by its part files. */
bool format_is_manifest(const struct format *format, const struct format_rules *rules);

/* Return the size of the header of a format whose records are read; else 0. */
uint64_t format_header_nbytes(const struct format *format, const struct format_view *view,
			      const struct format_rules *rules);

/*
 * Report that the input has this format, and what to do. `name` is for messages; `path` is NULL for
 * standard input. Returns -EINVAL.
 */
int format_refuse(const struct format *format, const struct format_view *view,
		  const struct format_rules *rules, const char *name, const char *path);

/*
 * --- framing: which bytes of an input are records ---
 *
 *	[ header ][ record ][ record ] ... [ record ][ trailer: an incomplete record ]
 *
 * The header has skip_nbytes, or belongs to a format that defines its records (.npy). In the latter
 * case all inputs have that format and the same records, and no trailers.
 */

/* What to do with an incomplete last record. */
enum partial {
	PARTIAL_ERROR, /* refuse the file */
	PARTIAL_KEEP,  /* store it as the trailer */
	PARTIAL_DROP,
};

struct framing {
	uint64_t record_nbytes; /* replaced by that of a .npy header if is_size_inferred */
	uint64_t skip_nbytes;
	uint64_t memory_nbytes; /* limit for names and trailers (input_check_names()); 0: none */
	enum partial partial;
	enum format_mode format;
	bool is_untyped;        /* neither type nor size of records are given */
	bool is_size_inferred;  /* the size of records is not given */
	bool has_type;          /* a single type is given, which may be that of columns */
	bool output_differs;    /* other records, or another number of them, are written */
	bool accepts_manifests; /* the inputs are sorted, so part manifests are read */
	const char *checker;    /* the command that checks the input, NULL: it is sorted */
	/* The format that another input has resolved, which is required; npy NULL: plain records */
	bool is_resolved;
	const struct npy *npy;
};

static inline struct format_rules framing_rules(const struct framing *framing)
{
	return (struct format_rules){ .mode = framing->format,
				      .skip_nbytes = framing->skip_nbytes,
				      .is_untyped = framing->is_untyped,
				      .accepts_manifests = framing->accepts_manifests,
				      .output_differs = framing->output_differs,
				      .checker = framing->checker };
}
