/*
 * framing - which bytes of an input are records
 *
 *	[ header ][ record ][ record ] ... [ record ][ trailer: an incomplete record ]
 *
 * The header has skip_nbytes, or belongs to a format that defines its records (.npy,
 * format_detect.h). In the latter case all inputs have that format and the same records, and no
 * trailers.
 */
#pragma once

#include <stdint.h>

#include "io/input/format_detect.h"

/* What to do with an incomplete last record. */
enum partial {
	PARTIAL_ERROR, /* refuse the file */
	PARTIAL_KEEP,  /* store it as the trailer */
	PARTIAL_DROP,
};

struct npy;

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
