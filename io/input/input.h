/*
 * input - several files and pipes as one stream of whole records
 *
 * Positions are offsets in the concatenation of the records of all inputs, in the given order. If
 * all inputs are regular files, the position of every part is known: a reader claims the next part
 * under a lock and reads it without the lock, so several threads read at the same time. If an input
 * is a stream (a pipe, a terminal, a device, ...), reads are serialised. There is no other
 * difference.
 *
 * Compressed inputs contribute their content. A compressed file without an index of its frames is a
 * stream.
 *
 * Regular files are probed when the input is opened: a file that is missing, unreadable, a
 * directory, of another format, or framed wrongly is reported then. Streams are probed when they
 * are started. A short read detects a file that has shrunk. The reader of the last byte of a file
 * checks that the file has not grown.
 *
 * All functions report their errors. All but open and close are thread-safe, except where it says
 * "before the first read".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/file/file.h"
#include "io/input/format_detect.h"
#include "io/header/npy.h"
#include "src/record/digest.h"

struct schema;
struct endpoint;
struct input;

/* --- opening --- */

/* The memory that an input may allocate in addition to the memory limit: PLAN_OVERHEAD_NBYTES. */
enum { INPUT_OVERHEAD_NBYTES = 24 << 20 };

/*
 * Return whether n names of text_nbytes, and the memory that an input allocates for each name, fit
 * into memory_nbytes and INPUT_OVERHEAD_NBYTES. memory_nbytes 0: no limit.
 */
bool input_names_fit(uint64_t memory_nbytes, size_t n, uint64_t text_nbytes);
/* Return 0, or -E2BIG if they do not fit. */
int input_check_names(uint64_t memory_nbytes, size_t n, uint64_t text_nbytes);

#define INPUT_SIZE_UNKNOWN UINT64_MAX

/*
 * Open n paths, and endpoints that replace some of them (or NULL), as one stream of records. The
 * path "-" is standard input, from its current position if it is a file. n == 0 is an empty stream.
 * Headers and trailers are no part of the stream; the header of the first input and the trailers to
 * keep are stored. The paths must outlive the input. Returns 0 and an input to input_close(), or a
 * negative errno: -EFBIG if the records of all files have too many bytes for positions.
 */
int input_open_endpoints(const struct syscalls *calls, const char *const *paths,
			 const struct endpoint *endpoints, size_t n, const struct framing *framing,
			 struct input **ret_input);

/* Close an input without readers. NULL is ignored. */
void input_close(struct input *input);

/*
 * Wait for the first bytes of the first stream among the inputs, so that its format is known. Only
 * the first, since the writers of the others may wait for it to be read. may_open false: do nothing
 * if the stream must be opened, which waits for a writer, or is a terminal. Before the first read,
 * by one thread.
 */
int input_probe_pipe(struct input *input, bool may_open);

/*
 * Take over the i-th path of `from` if it is a stream that input_probe_pipe() has probed, because
 * its first bytes cannot be read again. No record of `from` may have been read. *ret_to is an input
 * of that path only, or NULL if the path was not probed and can be opened again.
 */
int input_transfer_pipe(struct input *from, size_t i, struct input **ret_to);

/* --- memory --- */

/*
 * Limit the windows of compressed streams to a part of the memory limit, but at least to the 8 MiB
 * that all streams may have. Frames with a larger window are refused. allows_planned: not if
 * input_memory_nbytes() includes it; then call this after the pipe was probed, otherwise before.
 * The initial limit is that of zstd, 2 GiB.
 */
void input_limit_windows(struct input *input, uint64_t memory_nbytes, bool allows_planned);

/* Get and set that limit itself, to copy it to another input. */
void input_set_max_window(struct input *input, uint64_t nbytes);
uint64_t input_max_window_nbytes(const struct input *input);

/* Limit the memory for cached frames of indexed compressed files. Before the first read. */
void input_set_frame_cache(struct input *input, uint64_t nbytes);

/*
 * Return the memory that the input needs in addition to the buffers of its readers: names,
 * trailers, decompression. in_order: it is read by input_read() only.
 */
uint64_t input_memory_nbytes(const struct input *input, unsigned n_readers, bool in_order);

/*
 * Check whether the memory limit suffices to read the input in order with *n_threads, which need
 * thread_nbytes each, and reduce their number if necessary. Returns 0, or -E2BIG if the limit is
 * too small for one thread.
 */
int input_check_reading_memory(const struct input *input, uint64_t memory_nbytes,
			       uint64_t thread_nbytes, unsigned *n_threads);

/* --- reading --- */

/* Return the size of the stream; INPUT_SIZE_UNKNOWN if one of the inputs is a stream. */
uint64_t input_total_nbytes(const struct input *input);

/* Return the name of the first stream among the inputs; NULL: there is none. */
const char *input_stream_name(const struct input *input);

/*
 * Claim and read the next nbytes (a multiple of the record size) of the stream. *ret_nbytes is
 * smaller only at the end of the stream, and then 0. *ret_position is the position of the part. So
 * if all readers read nbytes, positions are multiples of nbytes. Each byte is read by one caller.
 * After an error all calls return that error.
 */
int input_read(struct input *input, void *buffer, size_t nbytes, uint64_t *ret_position,
	       size_t *ret_nbytes);

/*
 * Read exactly nbytes at `position`, all within the stream, whose size is known. Does not affect
 * input_read().
 */
int input_read_at(struct input *input, uint64_t position, void *buffer, size_t nbytes);

/*
 * Let input_read() begin or end at `position`, a multiple of the record size. The total size must
 * be known. Before the first read.
 */
void input_start_at(struct input *input, uint64_t position);
void input_end_at(struct input *input, uint64_t position);

/*
 * Return whether samples of that part of the stream are in the page cache. false for compressed
 * files. The total size must be known.
 */
bool input_is_cached(struct input *input, uint64_t position, uint64_t nbytes);

/* Let the kernel start to read the first nbytes into the page cache: a hint. */
void input_prefetch(struct input *input, uint64_t nbytes);

/*
 * Set standard input or another given descriptor, if it is a file, to its end, after everything was
 * read: files are read at offsets or mapped, which does not move the descriptor.
 */
void input_seek_end(const struct input *input);

/*
 * Make input_read() return -ECANCELED (not reported), also where it waits for a pipe or a channel.
 */
void input_cancel(struct input *input);

/* Let input_cancel() of either input cancel both, which have streams. Before the first read. */
int input_share_cancel(struct input *input, const struct input *other);

/*
 * Check, after everything was read, that the regular files have not changed since the input was
 * opened. No other thread may be at work. Returns 0 or -EBUSY.
 */
int input_check_state(const struct input *input);

/* --- mapped reading --- */

/*
 * A few regular files that are in the page cache can be mapped instead of read. Records can then be
 * accessed in any order and repeatedly. Files may be truncated or fail while they are mapped
 * (mapping.h), so call input_check_mapped() before results of what was seen are used.
 */

/* Inputs of more files are not mapped. */
enum { INPUT_MAX_MAPPED = 16 };

/*
 * Map all files. Returns 1; 0 if the input is to be read instead, because a file is a stream,
 * compressed, or not in the page cache, there are too many files, or the system refuses; or a
 * negative errno.
 */
int input_map(struct input *input);

/* Undo input_map(). */
void input_unmap(struct input *input);

/* Return the records of file i, of its extent's size; NULL if it has none. */
const void *input_mapped_file(const struct input *input, size_t i);

/* Like input_read() of a mapped input, but do not copy. The pages of the part are mapped. */
int input_claim_mapped(struct input *input, size_t nbytes, uint64_t *ret_position,
		       size_t *ret_nbytes);

/*
 * Check that all bytes that were read through the mappings were in the files. Returns 0, or a
 * negative errno if a file was truncated or cannot be read. Cheap.
 */
int input_check_mapped(struct input *input);

/* --- information --- */

struct input_content {
	size_t n_files;      /* files and streams */
	size_t n_compressed; /* of them, by Zstandard or gzip */
	size_t n_unprobed;   /* streams of unknown format */
	bool is_npy;         /* all that were probed */
};
struct input_content input_content(const struct input *input);

/* Return whether a file is compressed and has an index. */
bool input_is_compressed(const struct input *input);

size_t input_n_files(const struct input *input);

/* The part of the stream that a file contributes. The total size must be known. */
struct input_extent {
	const char *path;
	uint64_t position;
	uint64_t nbytes;
};
struct input_extent input_file_extent(const struct input *input, size_t i);

/*
 * Return the number and extents of the sorted sequences of a merge: files, or all part files of a
 * manifest (part_manifest.h), which are adjacent. The total size must be known.
 */
size_t input_n_groups(const struct input *input);
struct input_extent input_group_extent(const struct input *input, size_t i);

/*
 * Get the file and the number of the record in it (from 0) at `position`, for messages. If the
 * total size is unknown, the position must have been read.
 */
void input_path_at(struct input *input, uint64_t position, const char **ret_path,
		   uint64_t *ret_record);

/* Return whether a file, an output for example, is one of the inputs, by device and inode. */
bool input_has_file(const struct input *input, struct file_id identity);

/* Return whether a file is a part manifest of the input, or one of its part files. */
bool input_has_manifest_file(const struct input *input, struct file_id identity);

/*
 * Return the bytes of a file before the initial position of standard input, which are not read; 0
 * if the file is not standard input.
 */
uint64_t input_start_offset(const struct input *input, struct file_id identity);

/* --- headers and trailers --- */

const struct framing *input_framing(const struct input *input);

/*
 * Return the fields and keys that the files define, owned by the input; NULL: they are plain
 * records, or define no keys. Known after the first file was probed, or the first stream by
 * input_probe_pipe(). Then the record size of input_framing() is final as well.
 */
const struct schema *input_fields(const struct input *input);
const struct key *input_keys(const struct input *input, uint32_t *ret_n);
bool input_is_resolved(const struct input *input);

/*
 * Unless it is known otherwise, the input consists of plain records from now on. Inputs that are
 * opened with its framing must have the same format.
 */
void input_resolve(struct input *input);

/*
 * Make the header of an output of what `params` describes: a copy of the first input's header of
 * skip_nbytes, or a header of its format. Call it after everything was read, or when the total size
 * is known.
 */
int input_make_header(const struct input *input, const struct output_header_params *params,
		      struct output_header *ret_header);

/* The kept trailer of file i, owned by the input; after the file was read, if it is a stream. */
struct input_trailer {
	const void *data;
	size_t nbytes; /* 0: none */
};
struct input_trailer input_trailer(const struct input *input, size_t i);

/* --- digests of part files --- */

/*
 * Part files are compared with their manifest. Readers of records report the digest of what they
 * read, each record once, and separately for each file: of at most input_verify_nbytes() from
 * `position` on; UINT64_MAX: no digests are needed. input_add_read_digest() returns 0, or -EIO if a
 * part file differs from its manifest.
 */
uint64_t input_verify_nbytes(struct input *input, uint64_t position);
int input_add_read_digest(struct input *input, uint64_t position, struct digest digest);

/* Return the part files of the input; NULL: there are none. */
struct part_inputs *input_part_inputs(const struct input *input);
