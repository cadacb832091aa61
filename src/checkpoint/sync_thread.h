/*
 * sync_thread - makes records of a checkpoint durable while the sort goes on
 *
 * A record may only be written when what it speaks of is on stable storage, and what it makes
 * superfluous may only be given up when the record itself is. Both are waiting for disks; so a
 * thread does it, in the order in which it is asked to. What has come together in the meantime is
 * done at once:
 *
 *	sync runs, sync output -> append records -> sync manifest -> give up what they replace
 *
 * Nobody waits for it but the process that ends with an error.
 */
#pragma once

#include "io/output/output.h"
#include "io/spill/spill.h"
#include "src/checkpoint/manifest_records.h"

struct sync_thread;

/* Something to be made durable. Freed by the saver. */
struct sync_request {
	struct sync_request *next;
	enum checkpoint_record type;
	bool needs_runs, needs_output; /* what must be durable before */
	void *payload;                 /* nbytes; freed by the saver */
	size_t nbytes;
	/* It is durable, or never will be: give up what is not needed any more, and the context. */
	void (*on_complete)(void *context, bool durable);
	void *context;
};

/* What the records are appended to and speak of; all must outlive the saver. 0 or an errno. */
int sync_thread_open(struct manifest *manifest, struct spill *spill, struct output *output,
		     struct sync_thread **ret_sync_thread);

/*
 * Take over `save`, also on failure: the errno of what could not be saved before (the message is
 * printed). Thread-safe.
 */
int sync_thread_add(struct sync_thread *sync_thread, struct sync_request *request);

/*
 * End it, after what it was asked to if `drain`, else as soon as possible. NULL is fine. Returns 0,
 * or the errno of what could not be saved or brought to stable storage (the message is printed).
 */
int sync_thread_close(struct sync_thread *sync_thread, bool drain);
