/*
 * source - one of the files that an input is made of, and the descriptors of all of them
 *
 * A source is looked at once, which says what it contributes, and read later. Its descriptor is
 * held from acquire to release; in between it stays open, but not too many do: a source that nobody
 * holds may be closed, and is opened again by name, which is an error if the name then leads to
 * another file. A stream (what is no regular file) is opened when it is first acquired, not before,
 * since the open of a FIFO waits for its writer; and closed with the release.
 *
 * All functions print their message, but may be used by several threads only where it says so.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/file.h"

struct source {
	/* Set by source_prepare(). */
	const char *name; /* for messages */
	const char *path; /* NULL: standard input */

	/* Set by source_examine(). */
	bool is_stream; /* has an end that shows only when it is reached */
	struct file_identity identity;
	uint64_t base;    /* where in the file it starts: standard input may have been read from */
	uint64_t nbytes;  /* from there; 0 for a stream */
	uint64_t n_after; /* bytes behind them, which are not read here */

	/* Under the table's lock; constant while it is held. */
	struct file file;
	unsigned n_holders;
};

/* The open ones. */
struct source_table {
	/* Set at creation. */
	const struct io_engine *engine;
	size_t max_idle; /* with more than this open, those that nobody holds are closed */

	pthread_mutex_t lock;
	size_t n_open;
};

void source_table_init(struct source_table *table, const struct io_engine *engine);
void source_table_destroy(struct source_table *table);

/* path: "-" is standard input; must outlive the source. */
void source_prepare(struct source *source, const char *path);

/*
 * What does it contribute? 0, or the errno of what cannot be read: missing, no permission, a
 * directory.
 */
int source_examine(struct source_table *table, struct source *source);

/* Open, and stay open until released as often. Thread-safe. */
int source_acquire(struct source_table *table, struct source *source);
void source_release(struct source_table *table, struct source *source);

/* Close it if it is open. Nobody holds it. */
void source_close(struct source_table *table, struct source *source);

/*
 * Read exactly nbytes at `offset` of what a regular source contributes, all within it. -EBUSY if it
 * has shrunk, or is not as large as it was when its last byte is read. Thread-safe.
 */
int source_read_at(struct source_table *table, struct source *source, uint64_t offset, void *buffer,
		   size_t nbytes);

/*
 * Of the bytes that a regular source contributes, leave out skip_nbytes in front, and all but
 * nbytes of the others.
 */
void source_narrow(struct source *source, uint64_t skip_nbytes, uint64_t nbytes);

/* The failure of a regular source that turned out to have now_nbytes from its base on. */
int source_fail_changed(const struct source *source, uint64_t now_nbytes);
