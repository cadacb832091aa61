/*
 * framing - which bytes of a file are records
 *
 *	[ header: skip_nbytes ][ record ][ record ] ... [ record ][ tail: part of a record ]
 */
#pragma once

#include <stdint.h>

#include "io/input/format.h"

/* What becomes of the tail of a file. */
enum partial {
	PARTIAL_ERROR, /* the file is refused */
	PARTIAL_KEEP,  /* it is no record, but kept apart */
	PARTIAL_DROP,
};

struct framing {
	uint64_t record_nbytes;
	uint64_t skip_nbytes;
	enum partial partial;
	/* What else a file may be, and whether that would be a mistake (format.h). */
	enum format_choice format;
	bool is_untyped;     /* nobody has said what a record is */
	const char *checker; /* for what a message advises */
};

static inline struct format_rules framing_rules(const struct framing *framing)
{
	return (struct format_rules){ .choice = framing->format,
				      .skip_nbytes = framing->skip_nbytes,
				      .is_untyped = framing->is_untyped,
				      .checker = framing->checker };
}

/*
 * How many bytes of a file of nbytes, its header included, are records? Returns 0, or -EINVAL after
 * a message when the file is shorter than the header, or has a tail that it must not have.
 */
int framing_measure(const struct framing *framing, const char *name, uint64_t nbytes,
		    uint64_t *ret_records_nbytes);

/* Print that the file `name` has no more than nbytes, less than its header. -EINVAL. */
int framing_fail_short(const struct framing *framing, const char *name, uint64_t nbytes);
