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
 * checkpoint_state.h says what the records mean.
 *
 * A sync thread appends records while the sort goes on. A record may only be written when the runs
 * that it speaks of are on stable storage, and what it replaces may only be given up when the
 * record itself is. The thread does this in the order of the requests, and together what has come
 * in meanwhile:
 *
 *	sync runs -> append records -> sync manifest -> give up what they replace
 *
 * No thread waits for it, except at the end of the sort.
 */
#pragma once

#include "io/file/file.h"
#include "io/spill/spill.h"

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

struct sync_thread;

/* A record to be made durable. The sync thread frees it. */
struct sync_request {
	struct sync_request *next;
	uint32_t type;
	void *payload; /* nbytes; freed with the request */
	size_t nbytes;
	/* The record is durable, or never will be: give up what is not needed, and the context. */
	void (*on_complete)(void *context, bool durable);
	void *context;
};

/*
 * Start the thread that appends to the manifest records of runs in the spill. Both must outlive
 * it. 0, or a negative errno after a message.
 */
int sync_thread_open(struct manifest *manifest, struct spill *spill,
		     struct sync_thread **ret_sync_thread);

/*
 * Queue the request, which belongs to the thread then, also on failure. 0, or the errno of an
 * earlier request that failed (reported). Thread-safe.
 */
int sync_thread_add(struct sync_thread *sync_thread, struct sync_request *request);

/*
 * End the thread: if `drain`, after all requests, else as soon as possible. NULL is fine. Returns
 * 0, or the errno of a request that failed (reported).
 */
int sync_thread_close(struct sync_thread *sync_thread, bool drain);
