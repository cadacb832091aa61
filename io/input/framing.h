/*
 * framing - which bytes of a file are records
 *
 *	[ header ][ record ][ record ] ... [ record ][ tail: part of a record ]
 *
 * The header has skip_nbytes, or is that of a format that says itself what its records are (.npy,
 * format_detect.h); then all inputs are of that format, with the same records, and have no tails.
 */
#pragma once

#include <stdint.h>

#include "io/input/format_detect.h"

/* What becomes of the tail of a file. */
enum partial {
	PARTIAL_ERROR, /* the file is refused */
	PARTIAL_KEEP,  /* it is no record, but kept apart */
	PARTIAL_DROP,
};

struct npy;

struct framing {
	uint64_t record_nbytes; /* if is_size_inferred: unless a header says something else */
	uint64_t skip_nbytes;
	uint64_t memory_nbytes; /* limit for names and kept tails (input_check_names()); 0: none */
	enum partial partial;
	/* What else a file may be, and whether that would be a mistake (format_detect.h). */
	enum format_mode format;
	bool is_untyped;       /* nobody has said what a record is, */
	bool is_size_inferred; /* or how many bytes it has; */
	bool has_type;         /* one type was said, which may be that of columns */
	bool output_differs;   /* the output is not as many records as the first input, or others */
	bool accepts_manifests; /* a part manifest stands for these: inputs are sorted */
	const char *checker;    /* for what a message advises */
	/* What another input has found out: what all have to be; npy NULL: plain records. */
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

/*
 * How many bytes of a file of nbytes, header_nbytes of them in front, are records? Returns 0, or
 * -EINVAL after a message when the file is shorter than the header, or has a tail that it must not
 * have.
 */
int framing_measure(const struct framing *framing, const char *name, uint64_t header_nbytes,
		    uint64_t nbytes, uint64_t *ret_records_nbytes);

/* Print that the file `name` has no more than nbytes, less than its header. -EINVAL. */
int framing_fail_short(const struct framing *framing, const char *name, uint64_t header_nbytes,
		       uint64_t nbytes);
