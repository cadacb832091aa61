/*
 * input - several files and pipes as one stream of whole records
 *
 * Positions are bytes in the concatenation of all inputs, in the order given. When all of them are
 * regular files every part's place is known at once: a reader claims the next part under a lock and
 * reads it outside of it, so that several threads read at the same time. As soon as one input is a
 * pipe (or a terminal, a device, ...), reading is serial: claim and read are one step under the
 * lock. Callers see no difference, except in the speed.
 *
 * What is compressed (.zst) is its content. A compressed file without an index of its frames counts
 * as a pipe.
 *
 * Regular files are looked at when the input is opened, and what is wrong with them is said then:
 * missing, unreadable, a directory, of another format (format_detect.h), not framed as it should
 * be. Of a pipe the format shows when it is started. Later, a short read shows a file that has
 * shrunk; whoever reads a file's last byte looks at its size again and finds one that has grown.
 *
 * All functions print their message, and all but open and close may be called by any number of
 * threads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/file/file.h"
#include "io/input/framing.h"
#include "io/header/output_header.h"
#include "src/record/digest.h"

struct schema;
struct endpoint;
struct input;

/* What an input may take besides the memory that is given for it: PLAN_OVERHEAD_NBYTES. */
enum { INPUT_OVERHEAD_NBYTES = 24 << 20 };

/*
 * Do n names of text_nbytes, and what an input keeps for each, fit into memory_nbytes and
 * INPUT_OVERHEAD_NBYTES? 0: there is no limit.
 */
bool input_names_fit(uint64_t memory_nbytes, size_t n, uint64_t text_nbytes);
/* Return 0, or -E2BIG after a message if they do not fit. */
int input_check_names(uint64_t memory_nbytes, size_t n, uint64_t text_nbytes);

#define INPUT_SIZE_UNKNOWN UINT64_MAX

/*
 * The paths, n of them, as one stream of records; "-" is standard input (from its current position,
 * if it is a file). n == 0 is an empty stream. What of a file is no record is left out of the
 * stream: the header of the first and the tails that are kept can be asked for. The paths must
 * outlive the input. Returns 0 and an input to input_close(), or a negative errno: -EFBIG if the
 * records of all files together have more bytes than positions can count.
 */
int input_open_framed(const struct syscalls *calls, const char *const *paths, size_t n,
		      const struct framing *framing, struct input **ret_input);

/* The same; given: n of them, which stand in the place of paths or do not. */
int input_open_endpoints(const struct syscalls *calls, const char *const *paths,
			 const struct endpoint *endpoints, size_t n, const struct framing *framing,
			 struct input **ret_input);

/* The same, of files that are nothing but records. */
int input_open(const struct syscalls *calls, const char *const *paths, size_t n,
	       uint64_t record_nbytes, struct input **ret_input);

/* NULL is fine. No reader may be left. */
void input_close(struct input *input);

/*
 * Wait for the first bytes of the first pipe among the inputs: it then is known whether that is
 * compressed. One pipe only, since who fills the others may wait for us to read this one. may_open
 * false: only if that opens nothing, which waits for a writer, and asks nobody at a terminal to
 * write. Nothing must have been read; by one thread. Returns 0 or a negative errno after a message.
 */
int input_probe_pipe(struct input *input, bool may_open);

/*
 * Nothing has been read yet. Refuse compressed pipes whose frames ask for larger windows than that;
 * of files it is known before. Until then it is 128 MiB.
 */
void input_set_max_window(struct input *input, uint64_t nbytes);
uint64_t input_max_window_nbytes(const struct input *input);

/* Nothing has been read yet. Keep so much of compressed files that are read in little pieces. */
void input_set_frame_cache(struct input *input, uint64_t nbytes);

/*
 * What the input takes beside what it is read to: names, tails, compressed files; and of a pipe,
 * which may be compressed, as is only seen when it is read. in_order: it is read by input_read().
 */
uint64_t input_memory_nbytes(const struct input *input, unsigned n_readers, bool in_order);

/* The stream's size; INPUT_SIZE_UNKNOWN as soon as one of the inputs is no regular file. */
uint64_t input_total_nbytes(const struct input *input);

/*
 * Claim and read the next part of the stream: nbytes (a multiple of the record), or what is left of
 * it. *ret_nbytes is short only at the stream's end and 0 after it; *ret_position is the part's
 * place in the stream, so readers that all ask for the same nbytes get multiples of it. Every byte
 * is given to exactly one caller. After a failure nothing is given out any more: every later call
 * returns the same errno.
 */
int input_read(struct input *input, void *buffer, size_t nbytes, uint64_t *ret_position,
	       size_t *ret_nbytes);

/*
 * Read exactly the nbytes at `position`, which must be inside the stream; only when the total size
 * is known. Does not move what input_read() gives out.
 */
int input_read_at(struct input *input, uint64_t position, void *buffer, size_t nbytes);

/*
 * Nothing has been read yet: let input_read() begin at `position`, a whole number of records; only
 * when the total size is known.
 */
void input_start_at(struct input *input, uint64_t position);

/* And to end there, also a whole number of records. */
void input_end_at(struct input *input, uint64_t position);

/* What has been recognised. */
struct input_content {
	size_t n_files;      /* and pipes */
	size_t n_compressed; /* of them, by Zstandard */
	size_t n_unprobed;   /* pipes, which nobody has looked at: nothing is known of those */
	bool is_npy;         /* of numpy, all of them that are known */
};
struct input_content input_content(const struct input *input);

/* Is any of the files compressed, and can be read anywhere? */
bool input_is_compressed(const struct input *input);

/*
 * Is that part of the stream in the page cache, as far as samples of it say? Not what is
 * compressed; only when the total size is known.
 */
bool input_is_cached(struct input *input, uint64_t position, uint64_t nbytes);

/*
 * The first nbytes will be read soon: let the kernel fetch them meanwhile, if it must. A hint.
 */
void input_prefetch(struct input *input, uint64_t nbytes);

/*
 * All has been read and done: if standard input is a file, or what else was given open, whoever
 * reads on from it finds its end.
 * A file is read at offsets, in any order or not at all (a mapping), which moves nothing.
 */
void input_seek_end(const struct input *input);

/*
 * Make input_read() return -ECANCELED, without a message, also where it waits for a pipe or a
 * rendezvous.
 */
void input_cancel(struct input *input);

/*
 * Nothing has been read yet, and both have pipes: let either be cancelled with the other. Returns
 * 0, or a negative errno after a message.
 */
int input_share_cancel(struct input *input, const struct input *other);

/*
 * Of `from` nothing was read, but that its i-th path may have been looked at (input_probe_pipe()):
 * then what was read for that is not in a pipe any more, nor ahead in a descriptor, and *ret_to, an
 * input of that path alone, goes on with it. NULL: it was not, and can be opened anew. Returns 0,
 * or a negative errno after a message.
 */
int input_transfer_pipe(struct input *from, size_t i, struct input **ret_to);

/*
 * The file and the record in it (from 0) that `position` falls in, for messages. With unknown total
 * size only for positions that have been read.
 */
void input_path_at(struct input *input, uint64_t position, const char **ret_path,
		   uint64_t *ret_record);

/* One file's share of the stream; only when the total size is known. */
struct input_extent {
	const char *path;
	uint64_t position;
	uint64_t nbytes;
};

size_t input_n_files(const struct input *input);
struct input_extent input_file_extent(const struct input *input, size_t i);

const struct framing *input_framing(const struct input *input);

/*
 * What stands in front of the records of an output, as `wish` says what these are: a copy of what
 * does in the first file, skip_nbytes, or the header of its format. Known once the stream has been
 * read, at once if the total size is known. Returns 0 or -ENOMEM after a message.
 */
int input_make_header(const struct input *input, const struct output_header_params *params,
		      struct output_header *ret_header);

/*
 * What the files say of their records themselves; the input's. NULL: nothing; they are plain
 * records. It is settled by the first file that is looked at: with the total size, or when a first
 * pipe was looked at (input_probe_pipe()). Then the record of the framing is the right one, too.
 */
const struct schema *input_fields(const struct input *input);
/* And what they are sorted by: n keys, the input's; NULL: they do not say. */
const struct key *input_keys(const struct input *input, uint32_t *ret_n);
bool input_is_resolved(const struct input *input);

/* As far as it is not known: they are plain records. Other inputs of this framing are the same. */
void input_resolve(struct input *input);

/* What is kept of the end of file i; known when that is. data is the input's. */
struct input_trailer {
	const void *data;
	size_t nbytes; /* 0: nothing */
};
struct input_trailer input_trailer(const struct input *input, size_t i);

/*
 * Everything has been read, and nobody else is at work: are the regular files what they were when
 * the input was opened? 0, or -EBUSY after a message.
 */
int input_check_state(const struct input *input);

/*
 * How much of that file is in front of where standard input stood when it was opened, and is not
 * read; 0 if it is not standard input.
 */
uint64_t input_start_offset(const struct input *input, struct file_id identity);

/*
 * What is a sorted sequence each: a file, or all parts of a list (part_manifest.h), which lie one
 * behind the other. Only when the total size is known.
 */
size_t input_n_groups(const struct input *input);
struct input_extent input_group_extent(const struct input *input, size_t i);

/*
 * Parts of lists are compared with what these say of them: whoever reads records, in whatever
 * order, says so, once for each and apart for each file: for as many bytes from `position` on as
 * input_verify_nbytes() says, UINT64_MAX where nobody wants to know. input_add_read_digest()
 * returns 0, or
 * -EIO after a message that names the part.
 */
uint64_t input_verify_nbytes(struct input *input, uint64_t position);
int input_add_read_digest(struct input *input, uint64_t position, struct digest digest);

/*
 * If several processes read parts of one input: of each file, n in all, what was read here, if it
 * is one of a list, else nothing; and n more of what others have read, which are noted. The latter
 * returns as input_add_read_digest().
 */
void input_get_read_digests(const struct input *input, struct digest *ret_digests);
int input_merge_read_digests(struct input *input, const struct digest *digests);

/* Is it a part manifest, or one of these? */
bool input_has_manifest_file(const struct input *input, struct file_id identity);

/* Is that file (an output, say) one of the inputs? By device and inode, so links do not hide it. */
bool input_has_file(const struct input *input, struct file_id identity);
