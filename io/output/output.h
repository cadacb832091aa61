/*
 * output - a file that appears complete or not at all, or a pipe that is written in order
 *
 * A regular file is written beside its target and takes the target's name when it is complete:
 * until output_commit() an older file of that name, which may be an input, is untouched. Where the
 * system can, the new file has no name until then (O_TMPFILE), so nothing is left behind, whatever
 * kills the process; else it has a hidden one. A target that is a symbolic link stays one: the file
 * that it points to is replaced. A new file gets the permissions of the umask; a replacement those
 * of the old file, its access list included.
 *
 * What is no regular file (a pipe, a device, a terminal's other end, a rendezvous) or has no name
 * of ours (standard output) is written in place. Where writes at offsets are possible they are
 * used; else the output is ordered: a writer waits until everything before its offset is written.
 * Writers to an ordered output must therefore be able to proceed in order: whoever has the lowest
 * offset must not wait for one with a higher.
 *
 *	open -> write_at* -> [read_at*] -> commit      the file is there
 *	                               \-> abort       nothing happened
 *
 * All functions print their message. write_at, read_at and cancel may be called by any
 * number of threads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/codec/zst_writer.h"
#include "io/file/file.h"
#include "io/file/endpoint.h"
#include "io/output/file_writer.h"
#include "io/output/orphans.h"

struct output;

#define OUTPUT_SIZE_UNKNOWN UINT64_MAX

enum output_durability {
	/* The kernel writes it back when it likes. */
	OUTPUT_UNSYNCED,
	/*
	 * The data is on stable storage before it takes the target's name: due when the target is
	 * an input, which is then the only copy.
	 */
	OUTPUT_SYNC_DATA,
	/* The name too, before output_commit() returns. */
	OUTPUT_SYNC_ALL,
};

/*
 * path: NULL is standard output; /dev/fd/3 and its like are what the process was given open, and
 * written from where that stands. expected_nbytes: the size that it will have at most, whose space
 * is reserved ahead of what is written (preallocate.h), or OUTPUT_SIZE_UNKNOWN. Returns 0 and an
 * output to commit or abort, or a negative errno: a directory, no permission, no space for
 * expected_nbytes, or a terminal that was given open.
 */
int output_open(const struct syscalls *calls, const char *path, uint64_t expected_nbytes,
		struct output **ret_output);

/*
 * The same, to what is given in the place of a path, which is what messages call it.
 */
int output_open_endpoint(const struct syscalls *calls, const char *name, struct endpoint endpoint,
			 uint64_t expected_nbytes, struct output **ret_output);

/*
 * The same for a text, such as a report, of a size that is not known. What the process was
 * given open may be a terminal, and is written in order.
 */
int output_open_text(const struct syscalls *calls, const char *path, struct output **ret_output);

/*
 * Before anything is written to an output of unknown size: it will have so many bytes at most, as
 * if it had been opened so; what was told once stays so. And: could the file's disk hold so many?
 * As output_open().
 */
int output_set_expected_size(struct output *output, uint64_t nbytes);

/*
 * The same when much of what it needs is had already, and may still be given back: what is not free
 * now is not missing yet. Then, and where space cannot be reserved, it is written without.
 */
void output_update_expected_size(struct output *output, uint64_t nbytes);

int output_check_space(const struct output *output, uint64_t nbytes);

/* And may it have so many, by the process's limit on the size of files? */
int output_check_limit(const struct output *output, uint64_t nbytes);

/*
 * What only one of several machines should write to at a time: 1 MiB, or what the file system
 * prefers if that is more, but 16 MiB at most.
 */
uint64_t output_stripe_nbytes(const struct output *output);

/* What an output takes, beside what compresses it. */
size_t output_memory_nbytes(void);

/*
 * An output that other processes write to as well, on this machine or others: a regular file that
 * has a hidden name from the start, output_shared_name(), by which they join. Who has opened it
 * gives it its name, when what the others have written is noted: how much that is, and where the
 * last of it ends. Those who have joined output_close_shared() it before that, which closes and
 * frees it: 0, or a negative errno after a message if the file system says only then that
 * something was not written. If that fails, or they output_abort() it, or are ended, it goes for
 * all, as it cannot be completed any more.
 * tells: of what was left in that directory, which the first of several outputs does; what is the
 * owner's (NULL: there is none) it removes. As above; *ret_output may be set on failure, too, and
 * is then to be aborted.
 */
int output_open_shared(const struct syscalls *calls, const char *path, uint64_t expected_nbytes,
		       bool report_orphans, const struct orphan_owner *owner,
		       struct output **ret_output);
int output_open_shared_existing(const struct syscalls *calls, const char *path, const char *name,
				struct output **ret_output);
int output_close_shared(struct output *output);

/*
 * A file that is written for a directory which has not got its name yet (part_files.h): a new one
 * in `directory`, which must stay open as long. `path` is what messages call it, and its end is
 * the file's name. is_shared: as of output_open_shared(), and the second as
 * output_open_shared_existing(). Orphans beside it are not reported.
 */
int output_open_part(const struct file *directory, const char *path, bool is_shared,
		     struct output **ret_output);
int output_open_part_existing(const struct file *directory, const char *path, const char *name,
			      struct output **ret_output);

/*
 * Does the file system reserve what it is asked for, of an output that is shared, and of which
 * nothing is written? Who has opened it tells those who join. Then, if all are processes of this
 * machine, and before anything is written, each of them that is to write may say how many bytes it
 * will have: then its space is reserved by all of them, each where it writes, and it is written
 * through mappings, as of those who write() to one file each waits for all others.
 */
bool output_can_preallocate(const struct output *output);
void output_enable_shared_mmap(struct output *output, uint64_t nbytes);

const char *output_shared_name(const struct output *output);
void output_record_remote_writes(struct output *output, uint64_t nbytes, uint64_t end);

/*
 * What is written from now on is content, which goes to the file compressed: a .zst file with an
 * index of its frames, made by n_threads. Due before the first write; the size must not have been
 * given. Offsets and sizes are of the content, the writers proceed in order (see above), and
 * reading back waits for everything to be written. Returns 0 or a negative errno after a message;
 * the output stays open.
 */
int output_compress(struct output *output, int level, unsigned n_threads);

/*
 * What is written from now on is a part of the content that several processes compress into one
 * file: that which begins at `begin`, a whole number of frames (zst_writer.h). Its frames go to the
 * sink, since nobody knows yet where in the file they belong. When all of it is written
 * output_end_segment() waits for them; their index is the caller's, and what is written then goes
 * to the file as it is, at any offset. may_be_none: of no content there is no frame. Otherwise as
 * above.
 */
int output_begin_segment(struct output *output, int level, unsigned n_threads, uint64_t begin,
			 const struct zst_sink *sink);
int output_end_segment(struct output *output, bool allow_empty, struct zst_index *ret_index);

/*
 * After that, when the file is there: what output_read_at() reads is the content of all processes,
 * of which this is the index; it is the output's, also on failure. 0, or -ENOMEM after a message.
 */
int output_set_zst_index(struct output *output, struct zst_index index);

/*
 * Before anything is written: it will be more than the page cache holds. What can be written
 * directly then is (direct_io.h), and the rest goes to the disk at once (file_start_writeback()).
 */
void output_bypass_cache(struct output *output);

/* Or only the latter, where nothing else is to be opened for it. */
void output_use_writeback(struct output *output);

/* Or it will be much, and goes through the cache or past it, whichever is faster (adaptive.h). */
void output_use_adaptive_io(struct output *output);

/*
 * Before anything is written: each of n writers goes on from a place of its own, which are all far
 * from each other. If that is more than one, what is reserved may also be written through mappings
 * (mmap_writer.h), where that is faster.
 */
void output_set_n_writers(struct output *output, uint32_t n_writers);

/*
 * Before anything is written: n > 0 outputs of known sizes, to which n_writers will write as if
 * they were one behind the other, are made ready (prefault.h) by threads of their own, from now
 * on, also while others are at it already, until one of them is stopped or complete. They are then
 * written through mappings, until another way is tried in its turn. It stops, too, when one of them
 * is to pass the cache by. To stop, before anything is written or behind all, NULL is fine. Where
 * not all can be, nothing happens.
 */
void output_start_prefault(struct output *const *outputs, uint32_t n, uint32_t n_writers,
			   unsigned n_threads);
void output_stop_prefault(struct output *output);

/*
 * Has the disk room for so many bytes, and several times as many? Due before outputs are made
 * ready: space is reserved for them that others of this process might need.
 */
bool output_has_ample_space(const struct output *output, uint64_t nbytes);

/* How many bytes went which way. */
struct file_writer_stats output_get_io_stats(const struct output *output);

/*
 * After that: 0, or the alignment that makes direct writes possible. Then data whose address is
 * that of its place in the file, *ret_base + offset, modulo the alignment, is written directly, if
 * it is long.
 */
uint32_t output_direct_alignment(const struct output *output, uint64_t *ret_base);

/* What messages call it: its path, or "standard output". */
const char *output_name(const struct output *output);

/* The existing file that is replaced or written in place; false if there is none. */
bool output_target_file_id(const struct output *output, struct file_id *ret_file_id);

/* Is the target untouched until output_commit()? If not, it must not be one of the inputs. */
bool output_is_atomic(const struct output *output);

/* Must the writers proceed in order (see above)? */
bool output_is_ordered(const struct output *output);

/*
 * Write at `offset` (from 0 where the output starts). Ranges must not overlap, and together must
 * leave no gap. Once a write has failed, all others return its errno.
 */
int output_write_at(struct output *output, uint64_t offset, const void *data, size_t nbytes);

/*
 * Read back what was written, once everything is; -ESPIPE without a message if this output cannot
 * be read.
 */
int output_read_at(struct output *output, uint64_t offset, void *buffer, size_t nbytes);

/*
 * Once everything is written: at most nbytes of what the file begins with. Returns how many these
 * are: 0 if it is compressed, or went on where something else was before, or they are not known.
 */
size_t output_first_bytes(const struct output *output, void *buffer, size_t nbytes);

/* Writers that wait for their turn, and all later writes, return -ECANCELED. */
void output_cancel(struct output *output);

/*
 * Everything is written: wait for it, and cut what was reserved in excess. *ret_status: the file,
 * whose bytes and time of modification output_commit() leaves as they are then. If the new file has
 * a name meanwhile, others can write to it: from now on that is found by its times, here, by
 * output_complete() and by output_commit(), which then fail with -EBUSY.
 */
int output_finalize(struct output *output, struct stat *ret_status);

/*
 * Everything is written: cut what was reserved in excess, and bring it to stable storage, if that
 * is asked for. What output_commit() then does takes no time, in which others could do something.
 */
int output_complete(struct output *output, enum output_durability durability);

/*
 * Everything is written: output_complete(), close, and put it under its name. A gap between writes
 * is an internal error. -EBUSY if the name leads to another file than when the output was opened,
 * or the file has changed since; a name that leads to nothing is fine. Frees the output whether it
 * succeeds or not; on failure the target is as it was. No writer may be left.
 */
int output_commit(struct output *output, enum output_durability durability);

/*
 * Is what has the output's name still what was there at first, if anything was? 0, or -EBUSY after
 * a message, as output_commit() would fail.
 */
int output_check_target(const struct output *output);

/* Bring what is written to stable storage. */
int output_sync(struct output *output);

/* Leave the target as it was, and give all space back. NULL is fine. No writer may be left. */
void output_abort(struct output *output);
