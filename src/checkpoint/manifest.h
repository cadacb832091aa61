/*
 * manifest.h - an append-only file of records with checksums
 *
 *	[ header | payload, padded ] [ header | payload, padded ] ...
 *
 * A record is valid once it is durable. An incomplete record at the end was left by a killed
 * process or a power failure; it is truncated. Damage before the end is an error. So a reader gets
 * the state at the time of some record, and all data that this state refers to is durable.
 *
 * checkpoint_state.h describes the records.
 *
 * The sync thread appends records while the sort continues. A record may be written only after its
 * runs are durable, and the runs that it replaces may be removed only after the record is durable.
 * So the thread processes the requests in order, all pending ones together:
 *
 *	sync runs -> append records -> sync manifest -> remove replaced runs
 *
 * Other threads wait for it only at the end of the sort.
 *
 * Functions that return an int return 0 or a negative errno (reported), unless stated otherwise.
 */
#pragma once

#include "io/file/file.h"
#include "io/spill/spill.h"

/* Payloads are aligned to this, in the file and in memory. */
enum { MANIFEST_ALIGN_NBYTES = 16 };

struct manifest_record {
	uint32_t type;
	const void *payload;
	size_t nbytes;
};

/* Returns 0, -EBADMSG without a message if the record is invalid, or another errno (reported). */
typedef int manifest_visitor(void *context, const struct manifest_record *record);

struct manifest {
	struct file file;
	const char *path; /* for messages; must outlive it */
	uint64_t begin;   /* of the first record; aligned */
	uint64_t end;     /* offset after the last record */
};

/*
 * Visit the records in nbytes of aligned memory, from `offset` on. *ret_end: the end of the last
 * record that was visited without error, also after a failure. Returns 0, -EBADMSG without a
 * message if the next record is damaged, or the error of the visitor.
 */
int manifest_parse(const void *bytes, size_t nbytes, uint64_t offset, manifest_visitor *visit,
		   void *context, uint64_t *ret_end);

/*
 * Visit all complete records, and set `end` to the end of the last one. Returns 0, -EBADMSG without
 * a message if the record at `end` is damaged, or another negative errno (reported).
 */
int manifest_read(struct manifest *manifest, manifest_visitor *visit, void *context);

/* Truncate the file at `end`, to drop an incomplete record before the first append. */
int manifest_truncate(const struct manifest *manifest);

/* Append a record. It is not durable before manifest_sync(). */
int manifest_append(struct manifest *manifest, const struct manifest_record *record);

/* Sync the manifest. */
int manifest_sync(const struct manifest *manifest);

struct sync_thread;

/* A record to be made durable. The sync thread frees it. */
struct sync_request {
	struct sync_request *next;
	uint32_t type;
	void *payload; /* nbytes; freed with the request */
	size_t nbytes;
	/*
	 * Called once the record is durable, or has failed or been dropped. Frees the context.
	 * NULL: nothing is called.
	 */
	void (*on_complete)(void *context, bool durable);
	void *context;
};

/* Start the thread, which appends records of runs in the spill. Both must outlive it. */
int sync_thread_open(struct manifest *manifest, struct spill *spill,
		     struct sync_thread **ret_sync_thread);

/*
 * Queue the request, which the thread owns from now on, also after a failure. Returns 0, or the
 * negative errno with which an earlier request has failed (reported then). Thread-safe.
 */
int sync_thread_add(struct sync_thread *sync_thread, struct sync_request *request);

/*
 * End the thread. drain: process all pending requests first; otherwise they are dropped. Returns 0,
 * or the negative errno with which a request has failed (reported then). NULL is ignored.
 */
int sync_thread_close(struct sync_thread *sync_thread, bool drain);
