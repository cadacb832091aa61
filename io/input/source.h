/*
 * source - one of the files of an input
 *
 * A source is probed once, which says what it contributes, and read later. Its descriptor is
 * acquired and released. Released sources stay open, but only a limited number of them: others are
 * closed, and opened again by name, which fails if the name then refers to another file. A stream
 * (anything that is no regular file) is opened when it is first acquired, because open() of a FIFO
 * waits for its writer, and closed when it is released.
 *
 * A compressed source contributes its content. A Zstandard file with an index of its frames
 * (zst.h) has a size and can be read at any offset; other compressed files are streams. Other
 * formats (format_detect.h) are refused, compressed or not.
 *
 * Reading a large file must not evict other data from the page cache. Large reads of what is not
 * cached bypass the cache (direct_io.h). Small reads, of inputs of -m and of chunks in little
 * memory, use the kernel's read-ahead and drop the pages afterwards. What was cached before stays.
 *
 * All functions report their errors. They are not thread-safe unless they say so.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/codec/codec.h"
#include "io/codec/decoder.h"
#include "io/codec/zst.h"
#include "io/file/file.h"
#include "io/input/format_detect.h"

struct part_manifest;
struct source_head;

/* The range of a file whose pages are dropped after small reads. */
struct source_drop_range {
	uint64_t begin, end; /* in the file; 0: none */
	bool is_uncached, next_is_uncached;
};

struct source {
	/* Set by source_prepare(). */
	const char *name;         /* for messages */
	const char *path;         /* NULL: see `endpoint` */
	struct endpoint endpoint; /* a descriptor, standard input for example, or a channel */

	/* The manifest that lists this file and describes it, or NULL. Set before probing. */
	const struct part_manifest *manifest;

	/* Set by source_probe(). */
	bool is_manifest; /* then nothing else is known */
	bool is_stream;   /* the end is known only when it is reached */
	struct file_id identity;
	bool is_file;             /* regular, and the system knows its size */
	struct file_state state;  /* of a file */
	uint64_t start_offset;    /* the initial position of the endpoint's descriptor */
	uint64_t base;            /* offset in the file of what the source contributes */
	uint64_t nbytes;          /* size of what it contributes; 0 for a stream */
	uint64_t trailing_nbytes; /* bytes after that, which are not read */
	uint64_t header_nbytes;   /* of a header that the format defines; 0: none */
	enum decoder_format compression;
	uint64_t compressed_end;       /* end of a compressed file; 0: it is none */
	struct zst_reader *zst_reader; /* if indexed; then base, nbytes are of the content */
	uint64_t window_nbytes;        /* of a compressed stream, as planned for; 0: unknown */

	/* Used by the reader of a stream, from source_start() to the last release. */
	struct decoder *decoder;  /* if it is compressed */
	struct source_head *head; /* what was read to detect the format, or NULL */
	bool had_o_direct;        /* of the endpoint's descriptor, to be restored */
	bool is_started;
	bool has_ended; /* not to be read again: a terminal would wait for more */

	/* Protected by the table's lock; constant while the source is acquired. */
	struct file file;
	bool is_large;
	struct file direct_file; /* of a large file, with O_DIRECT if the file system supports it */
	unsigned n_users;
	struct source_drop_range drop_range;
};

/* The open sources of an input. */
struct source_table {
	/* Constant. */
	const struct syscalls *calls;
	struct format_rules rules;
	size_t max_idle;       /* with more open files, released ones are closed */
	uint64_t large_nbytes; /* size from which on the page cache is spared */

	uint64_t max_window_nbytes; /* of compressed streams */
	pthread_mutex_t lock;
	/* Protected by the lock. */
	size_t n_open;
	struct io_queue *queue; /* of direct reads; NULL before the first large source, or failed */

	struct codec_pool codec_pool;
};

void source_table_init(struct source_table *table, const struct syscalls *calls,
		       const struct format_rules *rules);
void source_table_destroy(struct source_table *table);

/* Initialise a source. The path "-" is standard input. Both must outlive the source. */
void source_prepare(struct source *source, const char *path, struct endpoint endpoint);

/* Return whether both are read from the same descriptor. */
bool source_has_same_descriptor(const struct source *source, const struct source *other);

/*
 * Find out what a source contributes. Returns 0 or a negative errno: the file is missing, not
 * readable, a directory, of another format, ...
 */
int source_probe(struct source_table *table, struct source *source);

/* Open a source, and keep it open until it is released as often. Thread-safe. */
int source_acquire(struct source_table *table, struct source *source);
void source_release(struct source_table *table, struct source *source);

/* Close a source without users, and free what belongs to it. */
void source_close(struct source_table *table, struct source *source);

/*
 * Move a started stream to another source of the same path, in another table. `source` is then as
 * if it had not been started. It must have no other users.
 */
void source_move(struct source_table *table, struct source *source, struct source_table *to_table,
		 struct source *to);

/*
 * Read exactly nbytes at `offset` of what a source with a size contributes, all within it. Returns
 * -EBUSY if the file has shrunk, or has another size when its last byte is read. Thread-safe.
 */
int source_read_at(struct source_table *table, struct source *source, uint64_t offset, void *buffer,
		   size_t nbytes);

/*
 * Start reading an acquired source in order. Waits for the first bytes of a stream, to detect its
 * format. Returns -EINVAL if that is refused. cancel_fd is that of file_read_next(); -ECANCELED is
 * not reported.
 */
int source_start(const struct source_table *table, struct source *source, int cancel_fd);

/* Read the next nbytes of a started source; *ret_nbytes is smaller only at its end. */
int source_read_next(struct source *source, int cancel_fd, void *buffer, size_t nbytes,
		     size_t *ret_nbytes);

/*
 * Limit the windows of compressed streams. Windows that are planned for are allowed anyway. Applies
 * to frames that have not begun yet.
 */
void source_set_max_window(struct source *source, uint64_t nbytes);

/* Return the largest window that a stream may need; 0: it is not compressed. */
uint64_t source_stream_window_nbytes(const struct source_table *table, const struct source *source);

/* Let a source contribute only nbytes, after its first skip_nbytes. */
void source_narrow(struct source *source, uint64_t skip_nbytes, uint64_t nbytes);

/*
 * Check, after everything was read, that a file has not changed. Returns 0 or -EBUSY. A removed or
 * replaced name does not affect what was read.
 */
int source_check_state(const struct source *source);

/* Report that a source now has new_nbytes from its base on. Returns -EBUSY. */
int source_fail_changed(const struct source *source, uint64_t new_nbytes);

/* Check that the size of an acquired file has not changed. Returns 0 or -EBUSY. */
int source_check_size(const struct source *source);

/*
 * Check, at the end of a stream of a compressed file, that this is the end of the file, which has
 * not changed. Returns 0 or -EBUSY.
 */
int source_check_end(const struct source *source);

/*
 * If an endpoint is a file, set the offset of its descriptor to the end of the bytes that were
 * read.
 */
void source_seek_end(const struct source *source);
