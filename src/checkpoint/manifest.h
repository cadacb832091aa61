/*
 * manifest - a file of records that only grows, each with checksums
 *
 *	[ head | payload, padded ] [ head | payload, padded ] ...
 *
 * A record counts once it is on stable storage. What a process that was killed, or a machine that
 * lost its power, has left unfinished at the end is no record and is cut off; damage anywhere
 * before it is an error. So whoever reads a manifest knows a state that was true once, and that
 * everything that was made durable before that state is there.
 *
 * What the records say is the business of manifest_records.h.
 */
#pragma once

#include "io/file/file.h"

/* Payloads start at multiples of this, in the file and where they are visited. */
enum { MANIFEST_ALIGN_NBYTES = 16 };

struct manifest_record {
	uint32_t type;
	const void *payload;
	size_t nbytes;
};

/*
 * Returns 0, or what ends the reading: -EBADMSG if the record makes no sense, or another negative
 * errno after a message.
 */
typedef int manifest_visitor(void *context, const struct manifest_record *record);

/* Plain data; a closed one has a closed file. */
struct manifest {
	struct file file;
	const char *path; /* for messages; must outlive it */
	uint64_t begin;   /* of the first record: a multiple of the alignment */
	uint64_t end;     /* where the next record goes */
};

/*
 * Visit the records in the nbytes at `bytes`, aligned as payloads are. *ret_end: where the last
 * complete one ends. Returns 0, -EBADMSG without a message if the one there is damaged, or what the
 * visitor has returned.
 */
int manifest_parse(const void *bytes, size_t nbytes, manifest_visitor *visit, void *context,
		   uint64_t *ret_end);

/*
 * Visit all records, up to what is unfinished behind them. Returns 0, -EBADMSG without a message if
 * the one at `end` is damaged, or another negative errno after a message.
 */
int manifest_read(struct manifest *manifest, manifest_visitor *visit, void *context);

/* Cut that off, before anything is appended. 0, or a negative errno after a message. */
int manifest_truncate(const struct manifest *manifest);

/* Append a record; it is not durable yet. Returns 0, or a negative errno after a message. */
int manifest_append(struct manifest *manifest, const struct manifest_record *record);

/* Make all records durable. Returns 0, or a negative errno after a message. */
int manifest_sync(const struct manifest *manifest);
