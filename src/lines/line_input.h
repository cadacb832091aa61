/*
 * line_input.h - the lines of several inputs, one after the other
 *
 * Files, pipes and compressed files are read by the same module as records (io/input/input.h), one
 * input at a time: regular files by several threads, others by one. A last line without a delimiter
 * gets one. The first lines of each input may be headers, which are left out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/file/file.h"
#include "src/base/stats.h"
#include "src/base/thread_pool.h"
#include "src/lines/line_keys.h"

struct line_input;

struct line_input_params {
	const struct syscalls *calls;
	const char *const *paths;         /* n_paths; "-" is standard input */
	const struct endpoint *endpoints; /* of the paths; NULL: the paths name files */
	size_t n_paths;
	struct thread_pool *threads;
	struct stats *stats; /* NULL: none */
	unsigned char delimiter;
	uint64_t n_header_lines; /* of each input */
	bool reads_part_files;   /* a directory of part files stands for them */
	bool is_raw;             /* do not decompress inputs */
	uint64_t memory_nbytes;  /* limits the windows of compressed inputs */
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

/* After line_input_take_share(): the position in the text of the next byte of the share. */
uint64_t line_input_share_position(const struct line_input *input);

/* Return how many of the n_more lines were read, when everything is read. */
unsigned line_input_share_n_more(const struct line_input *input);

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

/*
 * Return the part files among the inputs; NULL: none. After line_input_take_share(), the digests of
 * the files are those of the lines of the share.
 */
struct part_inputs *line_input_part_inputs(const struct line_input *input);

/* Return whether a file is one of the inputs, or a part file of one. */
bool line_input_has_file(const struct line_input *input, struct file_id id);

/*
 * The bytes of the lines of all inputs, decompressed and with their delimiters; UINT64_MAX:
 * unknown, because one is a stream. One more for an indexed .zst file, whose last line may not end.
 */
uint64_t line_input_total_nbytes(const struct line_input *input);

/* Return the first input whose size is unknown; NULL: the sizes of all inputs are known. */
const char *line_input_unsized_path(const struct line_input *input);

/* The header of the first input that is not empty, each line with its delimiter. */
const unsigned char *line_input_header(const struct line_input *input, size_t *ret_nbytes);

/*
 * For messages: the name of the input that was read last, and the line in which the next byte is:
 * "line 17", or "a line" if text was skipped.
 */
enum { LINE_LABEL_NBYTES = 32 };
const char *line_input_position(const struct line_input *input,
				char ret_line[static LINE_LABEL_NBYTES]);

/* Report that this line has more than nbytes. Returns -E2BIG. */
int line_input_fail_long_line(const struct line_input *input, size_t nbytes);

/* For messages: the name of the input in which the next byte is, and its offset there. */
const char *line_input_offset(const struct line_input *input, uint64_t *ret_offset);
