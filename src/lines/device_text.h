/*
 * device_text.h - sort the lines of a text in device memory
 *
 *	input --read--> buffer --upload--> text | starts, elements ...
 *	                                   text --gather--> window --download--> sink
 *	input --read--> lines --add keys--> buffer, if lines have keys
 *
 * The counterpart of line_block.h for a GPU. The text is read through two buffers in host memory
 * and is only in device memory, so a chunk can be larger than host memory. Lines are counted when
 * they are read: the text ends where device memory would not suffice to sort it. Device memory is
 * allocated for the text that is expected, and more if it does not suffice.
 *
 * If lines have keys, threads put the normalised key of each line before it, as a line of its own.
 * So the device compares bytes, finds keys where it finds lines, and holds both in one text.
 *
 * The output is divided into windows that are aligned in the file. Threads share them: each gathers
 * a window on the device, copies it to host memory, and writes it.
 */
#pragma once

#include "src/base/cancellation.h"
#include "src/device/backend.h"
#include "src/lines/line_block.h"
#include "src/lines/line_input.h"

struct device_text;

struct device_text_params {
	const struct backend *backend;           /* with line_ops */
	unsigned device_number, n_other_sharers; /* as in struct backend_config */
	const struct line_keys *keys;
	struct thread_pool *threads;
	uint32_t n_threads;
	uint64_t device_memory_nbytes;     /* 0: 90 % of the free memory */
	size_t host_memory_nbytes;         /* limit for buffers */
	bool keeps_equal;                  /* with -u, too: they are counted later */
	uint64_t input_nbytes;             /* UINT64_MAX: unknown */
	bool has_share;                    /* the input is the share of a rank */
	struct stats *stats;               /* NULL: none */
	struct cancellation *cancellation; /* NULL: never */
	/* As line_sort_fail_long_line(). */
	int (*fail_long_line)(const void *context, const char *path, const char *line,
			      size_t nbytes, size_t key_nbytes);
	const void *context;
};

/*
 * Returns 0, or a negative errno after a message; but -ENOMEM has none, so that the caller can sort
 * on the CPU.
 */
int device_text_open(const struct device_text_params *params, struct device_text **ret_text);
/* NULL is ignored. */
void device_text_close(struct device_text *text);

/* Get the device that sorts. */
void device_text_get_info(const struct device_text *text, struct device_info *ret_info);

/*
 * Read text until device memory is full, and sort its lines. The next call begins with the rest of
 * the text that was read. limit: the number of lines that are needed, from the first. *ret_at_end:
 * nothing is left. Returns 0 or a negative errno after a message.
 */
int device_text_sort(struct device_text *text, struct line_input *input, uint64_t limit,
		     bool *ret_at_end);

/* Return the lines that were sorted, and their bytes without keys. */
const struct sort_lines_result *device_text_result(const struct device_text *text);
uint64_t device_text_nbytes(const struct device_text *text);

/* Treat only the lines [first, first + n) as those that were sorted, until it is called again. */
int device_text_select(struct device_text *text, uint64_t first, uint64_t n);

/*
 * Write the sorted lines to the sink. ret_digest: of the lines; may be NULL. Returns 0; -EIO after
 * a message if lines are out of order, an internal error; or the error of the sink.
 */
int device_text_write(struct device_text *text, const struct line_sink *sink,
		      struct digest *ret_digest);
