/*
 * line_input.h - the lines of several inputs, one after the other
 *
 * Files, pipes and compressed files are read by the same module as records (io/input/input.h), one
 * input at a time: regular files by several threads, others by one. A last line without a delimiter
 * gets one. The first lines of each input may be headers, which are left out.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/file/file.h"
#include "src/base/stats.h"
#include "src/base/thread_pool.h"
#include "src/lines/line_keys.h"

struct line_input_params {
	const struct syscalls *calls;
	const char *const *paths;         /* n_paths; "-" is standard input */
	const struct endpoint *endpoints; /* of the paths; NULL: the paths name files */
	size_t n_paths;
	struct thread_pool *threads;
	struct stats *stats; /* NULL: none */
	unsigned char delimiter;
	uint64_t n_header_lines; /* of each input */
	bool keeps_header;       /* in line_input.header */
	bool reads_part_files;   /* a directory of part files stands for them */
	bool is_raw;             /* do not decompress inputs */
	uint64_t memory_nbytes;  /* limits the windows of compressed inputs, and the header */
};

/* The header may take this part of the memory. */
enum { LINE_HEADER_SHARE = 32 };

/* A regular file when its reading began. */
struct line_input_file {
	uint64_t text_begin; /* position of its first line */
	bool is_regular;
	struct file_id id;
	struct file_state state;
	/* When it has been read. */
	uint64_t n_lines; /* with the header; an added delimiter counts */
	bool has_skipped; /* some of its lines were not counted */
};

/* The lines that begin in a part of the text (line_input_take_share()). */
struct line_share {
	uint64_t end;      /* UINT64_MAX: all lines */
	uint64_t position; /* of the next byte that line_input_read() returns */
	bool is_complete;  /* nothing is left */
	/* The lines after those that begin in the share: how many to read, and those read. */
	unsigned n_more, n_more_read;
	bool has_last;      /* the last line that begins in the share was read */
	uint64_t lines_end; /* position after that line; until then UINT64_MAX */
	size_t file;        /* the part file of the line at `position` */
};

struct line_input {
	struct line_input_params params;
	/*
	 * The bytes of the lines of all inputs, decompressed and with their delimiters. One more
	 * for an indexed .zst file, whose last line may not end. UINT64_MAX: unknown, because
	 * unsized_path, the first such input, is a stream. Otherwise that is NULL.
	 */
	uint64_t total_nbytes;
	const char *unsized_path;
	/*
	 * NULL: no input is a directory of part files. The digests of the files are those of the
	 * lines of the share.
	 */
	struct part_inputs *part_inputs;
	struct line_share share;
	/*
	 * The header of the first input that is not empty, each line with its delimiter. It is
	 * complete when the first byte of text has been read.
	 */
	unsigned char *header;
	size_t n_header; /* its bytes */

	/* The rest is only for line_input.c. */
	unsigned char *tail; /* n_tail bytes: the beginning of a line that goes on */
	size_t n_tail, tail_capacity;
	struct line_input_file *files; /* of the paths before next_path */
	uint64_t text_position;        /* bytes of all inputs before the next byte to read */

	pthread_mutex_t lock; /* of changes of `input`, and of line_input_cancel() */
	bool is_cancelled;    /* protected by the lock */

	/* The current input: params.paths[next_path - 1]. */
	struct input *input; /* NULL: the next one is not open yet */
	size_t next_path;
	uint64_t position, nbytes; /* INPUT_SIZE_UNKNOWN: a stream */
	uint64_t n_header_left;
	bool has_skipped;              /* some of its lines were not counted */
	atomic_uint_least64_t n_lines; /* that were read */
	uint64_t n_lines_before;       /* of the inputs before it, and their added delimiters */
	bool ends_line;                /* nothing was read, or a delimiter last */
	bool keeps_header;             /* its header lines are those to keep */

	/* Of the current read. */
	unsigned char *slices;
	uint64_t slices_position;
	size_t slices_nbytes;
};

/*
 * Check that all files may be read; they are opened one by one later. The paths must outlive the
 * input. Returns 0 or a negative errno after a message.
 */
int line_input_open(const struct line_input_params *params, struct line_input **ret_input);
/* NULL is ignored. */
void line_input_close(struct line_input *input);

/*
 * Read the next nbytes of text; *ret_nbytes is smaller only at the end. The text need not end with
 * a whole line before that. Returns 0 or a negative errno after a message.
 */
int line_input_read(struct line_input *input, unsigned char *buffer, size_t nbytes,
		    size_t *ret_nbytes);

/*
 * Skip text, so that line_input_read() goes on at byte `position` of it, which it has not passed.
 * The sizes of all files must be known. Returns 0, or a negative errno after a message.
 */
int line_input_skip_to(struct line_input *input, uint64_t position);

/*
 * Limit line_input_read() to the lines that begin in [begin, end) of the text. The text may end
 * before. If there are such lines, n_more lines follow, unless the text ends. Before anything is
 * read, and with known sizes of all files. Returns 0 or a negative errno after a message.
 */
int line_input_take_share(struct line_input *input, uint64_t begin, uint64_t end, unsigned n_more);

/*
 * Let line_input_read() return -ECANCELED (not reported), also where it waits for a pipe. Called by
 * any thread.
 */
void line_input_cancel(struct line_input *input);

/*
 * Check that no file that was read has changed since. Returns 0, or -EBUSY after a message.
 */
int line_input_check_state(const struct line_input *input);

/*
 * Check that part files among the inputs are sorted by the keys. Returns 0 or a negative errno
 * after a message.
 */
int line_input_check_order(const struct line_input *input, const struct line_keys *keys);

/* The number of lines that were read so far, or more: headers and one line for each input. */
uint64_t line_input_n_lines(const struct line_input *input);

/* Return whether a file is one of the inputs, or a part file of one. */
bool line_input_has_file(const struct line_input *input, struct file_id id);

/*
 * For messages: the name of the input that was read last, and the line in which the next byte is:
 * "line 17", or "a line" if text was skipped.
 */
enum { LINE_LABEL_NBYTES = 32 };
const char *line_input_position(const struct line_input *input,
				char ret_line[static LINE_LABEL_NBYTES]);

/*
 * For messages: the input and the line, as line_input_position() names them, in which the last
 * nbytes of text that line_input_read() returned begin. A line begins there.
 */
const char *line_input_locate(const struct line_input *input, const unsigned char *bytes,
			      size_t nbytes, char ret_line[static LINE_LABEL_NBYTES]);

/* Report that this line has more than nbytes. Returns -E2BIG. */
int line_input_fail_long_line(const struct line_input *input, size_t nbytes);

/* For messages: the name of the input in which the next byte is, and its offset there. */
const char *line_input_offset(const struct line_input *input, uint64_t *ret_offset);
