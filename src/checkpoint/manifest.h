/*
 * manifest.h - an append-only file of records with checksums
 *
 *	[ header | payload, padded ] [ header | payload, padded ] ...
 *
 * A record counts once it is durable. An incomplete record at the end was left by a killed process
 * or a power failure; it is truncated. Damage before it is an error. So a reader always gets a
 * state that was true once, and all data that was made durable before that state is there.
 *
 * checkpoint_state.h describes the records.
 *
 * The sync thread appends records while the sort goes on. A record may be written only after its
 * runs are durable, and the runs that it replaces may be removed only after the record is durable.
 * So the thread processes the requests in order, all pending ones together:
 *
 *	sync runs -> append records -> sync manifest -> remove replaced runs
 *
 * No thread waits for it, except at the end of the sort.
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

/* Returns 0, -EBADMSG if the record is invalid, or another negative errno after a message. */
typedef int manifest_visitor(void *context, const struct manifest_record *record);

struct manifest {
	struct file file;
	const char *path; /* for messages; must outlive it */
	uint64_t begin;   /* of the first record; aligned */
	uint64_t end;     /* offset after the last record */
};

/*
 * Visit the records in aligned memory, from `offset` on. *ret_end: the end of the last complete
 * one, also after a failure. Returns -EBADMSG without a message if the next record is damaged, or
 * the result of the visitor.
 */
int manifest_parse(const void *bytes, size_t nbytes, uint64_t offset, manifest_visitor *visit,
		   void *context, uint64_t *ret_end);

/*
 * Visit all complete records, and set `end`. Returns -EBADMSG without a message if the record there
 * is damaged.
 */
int manifest_read(struct manifest *manifest, manifest_visitor *visit, void *context);

/* Truncate the file at `end`, before anything is appended. */
int manifest_truncate(const struct manifest *manifest);

/* Append a record, without syncing. */
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
	 * Called when the record is durable or will never be: free what is not needed, and the
	 * context.
	 */
	void (*on_complete)(void *context, bool durable);
	void *context;
};

/* Start the thread, which appends records of runs in the spill. Both must outlive it. */
int sync_thread_open(struct manifest *manifest, struct spill *spill,
		     struct sync_thread **ret_sync_thread);

/*
 * Queue the request, which the thread owns from now on, also after a failure. Returns the errno of
 * an earlier request that has failed. Thread-safe.
 */
int sync_thread_add(struct sync_thread *sync_thread, struct sync_request *request);

/*
 * End the thread after all pending requests if `drain` is set, otherwise as soon as possible.
 * Returns the errno of a request that has failed. NULL is ignored.
 */
int sync_thread_close(struct sync_thread *sync_thread, bool drain);
