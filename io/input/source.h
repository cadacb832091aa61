/*
 * source - one of the files that an input is made of, and the descriptors of all of them
 *
 * A source is looked at once, which says what it contributes, and read later. Its descriptor is
 * held from acquire to release; in between it stays open, but not too many do: a source that nobody
 * holds may be closed, and is opened again by name, which is an error if the name then leads to
 * another file. A stream (what is no regular file) is opened when it is first acquired, not before,
 * since the open of a FIFO waits for its writer; and closed with the release.
 *
 * What is compressed by Zstandard contributes its content. A file with an index of its frames
 * (zst_index.h) has a size and can be read anywhere; every other one is a stream. What is of
 * another format (format_detect.h), compressed or not, is refused.
 *
 * A large source is not left in the page cache by being read: parts that are not there yet are read
 * directly (direct_io.h), or, where little is read at a time (inputs of -m, chunks in little
 * memory), with what the kernel reads ahead, and are forgotten then (dropbehind.h). What is
 * there stays.
 *
 * All functions print their message, but may be used by several threads only where it says so.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/codec/codec_pool.h"
#include "io/codec/zst_index.h"
#include "io/codec/zst_reader.h"
#include "io/codec/zst_stream.h"
#include "io/file/dropbehind.h"
#include "io/file/file.h"
#include "io/file/file_change.h"
#include "io/file/endpoint.h"
#include "io/input/format_detect.h"

struct part_manifest;

struct source {
	/* Set by source_prepare(). */
	const char *name;         /* for messages */
	const char *path;         /* NULL: it is */
	struct endpoint endpoint; /* a descriptor, standard input say, or a rendezvous */

	/* NULL; else the list that it is a part of, which says what it is. To be set before: */
	const struct part_manifest *manifest;

	/* Set by source_probe(). */
	bool is_manifest; /* and nothing else is known of it */
	bool is_stream;   /* has an end that shows only when it is reached */
	struct file_id identity;
	bool is_file;            /* regular, of a size that the system knows; then: */
	struct file_state state; /* as it was at first */
	uint64_t start_offset;   /* where what is given stood */
	uint64_t base;   /* where in the file it starts: what is given may have been read from */
	uint64_t nbytes; /* from there; 0 for a stream */
	uint64_t trailing_nbytes; /* bytes behind them, which are not read here */
	uint64_t header_nbytes;   /* that it says of itself (format_detect.h); 0: nothing */
	/* Of a compressed file with an index; the three above are then of its content. NULL: not */
	struct zst_reader *zst_reader;
	uint64_t zst_end;       /* of a compressed file; 0: it is none */
	uint64_t window_nbytes; /* that its first frame asks for, if it is a stream; 0: not known */

	/* By who reads it in order: from source_start() to the last release. */
	struct zst_stream *zst_stream; /* if it is compressed */
	bool had_o_direct;             /* it was given with O_DIRECT, and gets it back */
	struct source_head *head;      /* what was read already; NULL: nothing */
	bool is_started;
	bool has_ended; /* a stream, which is not asked again: a terminal would wait for more */

	/* Under the table's lock; constant while it is held. */
	struct file file;
	bool is_large;
	struct file direct_file; /* past the page cache; closed if it is not large, or refused */
	unsigned n_users;
	struct dropbehind dropbehind; /* of a large one, where little is read at a time */
};

/* The open ones. */
struct source_table {
	/* Set at creation. */
	const struct syscalls *calls;
	struct format_rules rules;
	size_t max_idle;       /* with more than this open, those that nobody holds are closed */
	uint64_t large_nbytes; /* from here on what a source leaves in the page cache matters */
	uint64_t max_window_nbytes; /* of compressed streams that do not say it before */

	pthread_mutex_t lock;
	size_t n_open;
	struct io_queue *queue; /* of direct reads; NULL before the first large source, or failed */

	struct codec_pool codec_pool; /* has a lock of its own */
};

void source_table_init(struct source_table *table, const struct syscalls *calls,
		       const struct format_rules *rules);
void source_table_destroy(struct source_table *table);

/* path: "-" is standard input, if nothing else is given; both must outlive the source. */
void source_prepare(struct source *source, const char *path, struct endpoint endpoint);

/* Is it read from the same descriptor? */
bool source_has_same_descriptor(const struct source *source, const struct source *other);

/*
 * What does it contribute? 0, or the errno of what cannot be read: missing, no permission, a
 * directory, or another format.
 */
int source_probe(struct source_table *table, struct source *source);

/* Open, and stay open until released as often. Thread-safe. */
int source_acquire(struct source_table *table, struct source *source);
void source_release(struct source_table *table, struct source *source);

/* Close it if it is open, and what belongs to it. Nobody holds it. */
void source_close(struct source_table *table, struct source *source);

/*
 * What was started of one, in place of another of the same path, which was examined, and in another
 * table. It then is as if it had not been started. Nobody else holds it.
 */
void source_move(struct source_table *table, struct source *source, struct source_table *to_table,
		 struct source *to);

/*
 * Read exactly nbytes at `offset` of what a regular source contributes, all within it. -EBUSY if it
 * has shrunk, or is not as large as it was when its last byte is read. Thread-safe.
 */
int source_read_at(struct source_table *table, struct source *source, uint64_t offset, void *buffer,
		   size_t nbytes);

/*
 * The next nbytes that any source contributes, in order; fewer only at its end. It must be held,
 * and started once, before, which waits for the first bytes of a stream, to look at them, and
 * refuses it with -EINVAL if it is of another format. One thread at a time. cancel_fd: as
 * file_read_next(), -ECANCELED has no message.
 */
int source_start(const struct source_table *table, struct source *source, int cancel_fd);
int source_read_next(struct source *source, int cancel_fd, void *buffer, size_t nbytes,
		     size_t *ret_nbytes);

/* May it turn out to be compressed, or is it, a stream that is? */
bool source_may_be_compressed(const struct source *source);

/*
 * Of the bytes that a regular source contributes, leave out skip_nbytes in front, and all but
 * nbytes of the others.
 */
void source_narrow(struct source *source, uint64_t skip_nbytes, uint64_t nbytes);

/*
 * Everything has been read: is it what was read? 0, or -EBUSY after a message. A name that is gone,
 * or leads to another file, changes nothing of what was read. Nobody else is at work.
 */
int source_check_state(const struct source *source);

/* The failure of a regular source that turned out to have new_nbytes from its base on. */
int source_fail_changed(const struct source *source, uint64_t new_nbytes);

/*
 * Is the file of a regular source, which is held, as large as at first? 0, or -EBUSY after a
 * message.
 */
int source_check_size(const struct source *source);

/*
 * A stream has come to its end: if it is a compressed file, is that the file's end, as it was at
 * first? 0, or -EBUSY after a message.
 */
int source_check_end(const struct source *source);

/*
 * All of it has been read, wherever: let a descriptor that is given stand behind it, if it is a
 * file, as if it had been read from the front.
 */
void source_seek_end(const struct source *source);
