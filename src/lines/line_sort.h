/*
 * line_sort - sort lines of text, with the engine for fixed-size records
 *
 *	text -> [ key prefix | offset of the line ] -> sort of records -> ties -> text in order
 *
 * The engine sorts records of 32 bytes: the beginning of the line's normalised key (line_keys.h),
 * and where the line is. So it keeps the memory limit, spills, merges and uses the GPU as for any
 * records, and needs to know nothing of lines. Lines whose prefixes are equal come out in the order
 * of the input. They are put in order by the rest of their keys: few in memory, many by a sort of
 * their own, of the bytes behind those that all of them share.
 *
 * The prefix:
 *
 *	byte 0 ... 22    bytes of the key from `depth` on, padded with zeros
 *	byte 23          how many there are: 0 to 23; 24 if the key goes on
 *
 * Two lines whose prefixes are equal have equal keys if the last byte is below 24.
 */
#pragma once

#include "io/file/file.h"
#include "io/file/mapping.h"
#include "src/lines/line_keys.h"

/*
 * --- The text ---
 *
 * Regular files are mapped. Everything else (pipes, devices) is copied to a temporary file without
 * a name, which is mapped as well; so are files of which there are more than MAX_MAPPED_FILES. A
 * line is named by its offset in the concatenation of all inputs, in which one byte separates them.
 */

/* A part of the text: an input. */
struct line_segment {
	const char *name;
	const unsigned char *bytes;
	uint64_t nbytes;
	uint64_t base; /* offset of its first byte */
};

struct line_text {
	struct line_segment *segments; /* n_segments, in the order of the inputs */
	size_t n_segments;
	uint64_t nbytes; /* of all segments */
	struct mapping *mappings;
	size_t n_mappings;
	struct file spool; /* what cannot be mapped is copied to it */
	uint64_t spool_nbytes;
};

/* Create a temporary file without a name. Returns 0 or a negative errno after a message. */
int line_text_open_temporary(const struct syscalls *calls, const char *directory,
			     struct file *ret_file);

/*
 * Open n inputs; "-" is standard input. Temporary space is in `directory`. Returns 0 or a negative
 * errno after a message; line_text_close() is due in both cases.
 */
int line_text_open(const struct syscalls *calls, const char *const *paths, size_t n,
		   const char *directory, struct line_text *ret_text);
void line_text_close(struct line_text *text);

/* Return the address of an offset, and the end of its segment. */
const unsigned char *line_text_at(const struct line_text *text, uint64_t offset,
				  const unsigned char **ret_end);

/*
 * Return 0 if everything that was read was in the files, else -EIO after a message: an input was
 * truncated, or its disk failed.
 */
int line_text_check(const struct line_text *text);

/* --- Sorting and checking --- */

/* An option of the engine: a name and a value of gsort_set(). */
struct line_engine_option {
	const char *name, *value;
};

struct line_sort_params {
	const struct line_keys *keys;
	const char *const *inputs; /* n_inputs; "-" is standard input */
	size_t n_inputs;
	const char *output; /* NULL: standard output */
	const char *temp_directory;
	const struct line_engine_option *options; /* n_options */
	size_t n_options;
	const char *memory;      /* limit for records, as of -S; NULL: the engine's default */
	unsigned n_threads;      /* for keys and output, at least 1; the engine has its own */
	uint64_t limit;          /* write at most so many lines; UINT64_MAX: all */
	uint64_t n_header_lines; /* of each input; those of the first are written first */
	struct gsort_process *process;
};

/* Sort the inputs into the output. Returns 0 or a negative errno after a message. */
int line_sort_run(const struct syscalls *calls, const struct line_sort_params *params);

/* A line that is out of order. */
struct line_disorder {
	const char *path;
	uint64_t number; /* from 1; 0: there is no disorder */
	unsigned char *line;
	size_t nbytes;
};

/*
 * Find the first line that is out of order; with keys->unique, or equal to the line before. The
 * caller frees ret_disorder->line. Returns 0 or a negative errno after a message.
 */
int line_sort_check(const struct syscalls *calls, const struct line_sort_params *params,
		    struct line_disorder *ret_disorder);
