/*
 * device_text.c - sort the lines of a text in device memory (see device_text.h)
 */
#include "src/lines/device_text.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "io/file/mapping.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/scratch.h"
#include "src/device/device.h"

enum {
	N_BUFFERS = 2,     /* one is read while the other is uploaded */
	BUFFERS_SHARE = 8, /* the buffers take an eighth of the host memory, so do the windows */
	MIN_BUFFER_NBYTES = 64 << 10,
	MAX_BUFFER_NBYTES = 64 << 20,
	MIN_WINDOW_NBYTES = 64 << 10,
	MAX_WINDOW_NBYTES = MMAP_SEGMENT_NBYTES,
	/* A buffer of the shortest lines takes a part of device memory. */
	MAX_NBYTES_PER_LINE_BYTE = 80,
};

/* Text on its way to the device. */
struct upload_buffer {
	unsigned char *bytes;
	struct device_event *uploaded;
	size_t nbytes;    /* read, but not taken into a chunk */
	uint64_t n_lines; /* at most */
	/* Where it begins: in this line of this input. NULL: nothing was read before. */
	const char *path;
	char line[LINE_LABEL_NBYTES];
};

/* What a thread needs to write a window. */
struct window_slot {
	atomic_bool is_used;
	struct device_queue *queue;
	struct device_event *done;
	unsigned char *device_bytes, *host_bytes; /* window_nbytes */
};

struct device_text {
	struct device_text_params params;
	struct device *device;
	struct device_queue *queue;
	struct device_event *copied;
	struct upload_buffer buffers[N_BUFFERS];
	struct window_slot *slots; /* n_threads */
	size_t buffer_nbytes, window_nbytes;

	/* Device memory: the text, then the memory of its sort. NULL before the first chunk. */
	unsigned char *memory;
	uint64_t memory_nbytes, max_memory_nbytes;
	uint64_t nbytes, n_lines; /* the text, with an incomplete line at its end; lines at most */
	uint64_t lines_end;       /* of the last whole line */
	unsigned next_buffer;
	bool is_at_end;
	struct sort_lines_result sorted;

	/* Of device_text_write(). */
	uint64_t *offsets; /* n_segments + 1 */
	uint64_t n_segments;
	const struct line_sink *sink;
	uint32_t n_windows, windows_per_part;
	struct digest *digests; /* n_windows */
	atomic_bool has_failed;
};

/* --- Device memory --- */

/* Return the memory to sort a text. */
static uint64_t needed_nbytes(const struct device_text *text, uint64_t nbytes, uint64_t n_lines)
{
	return round_up(nbytes, SCRATCH_ALIGNMENT) +
	       text->params.backend->line_ops->memory_nbytes(nbytes, n_lines);
}

/* Return the memory for the whole input, if its lines are like those of the text. */
static uint64_t expected_nbytes(const struct device_text *text, uint64_t nbytes, uint64_t n_lines)
{
	const uint64_t input_nbytes = text->params.input_nbytes;
	double factor = 2;

	if (input_nbytes != UINT64_MAX && input_nbytes > nbytes)
		factor = (double)input_nbytes / (double)nbytes;
	return (uint64_t)(factor * (double)needed_nbytes(text, nbytes, n_lines));
}

/* Replace the memory by a larger one; the text is copied. */
static int replace_memory(struct device_text *text, uint64_t nbytes)
{
	void *memory;
	int r = device_alloc(text->device, MEMORY_DEVICE, nbytes, &memory);

	if (r < 0)
		return r;
	if (text->nbytes > 0)
		r = device_queue_copy(text->queue, memory, text->memory, text->nbytes);
	if (r == 0)
		r = device_queue_synchronize(text->queue, text->copied);
	device_free(text->device, MEMORY_DEVICE, text->memory, text->memory_nbytes);
	text->memory = memory;
	text->memory_nbytes = nbytes;
	return r;
}

/*
 * Make sure that the memory suffices for a text. Returns 0, or -ENOMEM without a message: neither
 * the limit nor the free memory permits it.
 */
static int reserve_memory(struct device_text *text, uint64_t nbytes, uint64_t n_lines)
{
	const uint64_t needed = needed_nbytes(text, nbytes, n_lines);
	/* Both exist while the text is copied. */
	const uint64_t max_nbytes = text->max_memory_nbytes - text->memory_nbytes;
	/* A fifth more, because not all lines are alike. */
	uint64_t wanted = expected_nbytes(text, nbytes, n_lines) / 5 * 6;
	int r;

	if (n_lines >= UINT32_MAX)
		return -ENOMEM;
	if (needed <= text->memory_nbytes)
		return 0;
	if (wanted > max_nbytes)
		wanted = max_nbytes / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
	if (wanted < needed)
		return -ENOMEM;
	r = replace_memory(text, round_up(wanted, SCRATCH_ALIGNMENT));
	/* Others may have taken memory since the limit was set. */
	return r == -ENOMEM ? replace_memory(text, round_up(needed, SCRATCH_ALIGNMENT)) : r;
}

/* --- Reading --- */

/* Read the next part of the input into a buffer that is empty. */
static int fill_buffer(struct device_text *text, struct upload_buffer *buffer,
		       struct line_input *input)
{
	const uint64_t n_before = line_input_n_lines(input);
	int r;

	if (buffer->nbytes > 0 || text->is_at_end)
		return 0;
	buffer->path = text->nbytes > 0 ? line_input_position(input, buffer->line) : NULL;
	r = device_event_wait(buffer->uploaded);
	if (r == 0)
		r = line_input_read(input, buffer->bytes, text->buffer_nbytes, &buffer->nbytes);
	buffer->n_lines = line_input_n_lines(input) - n_before;
	text->is_at_end = buffer->nbytes < text->buffer_nbytes;
	return r;
}

/* Add the bytes of a buffer to the text. */
static int upload_buffer(struct device_text *text, struct upload_buffer *buffer)
{
	const unsigned char *last =
		memrchr(buffer->bytes, text->params.keys->delimiter, buffer->nbytes);
	int r = device_queue_copy(text->queue, text->memory + text->nbytes, buffer->bytes,
				  buffer->nbytes);

	if (last)
		text->lines_end = text->nbytes + (uint64_t)(last + 1 - buffer->bytes);
	text->nbytes += buffer->nbytes;
	text->n_lines += buffer->n_lines;
	buffer->nbytes = 0;
	text->next_buffer = (text->next_buffer + 1) % N_BUFFERS;
	return r < 0 ? r : device_queue_record(text->queue, buffer->uploaded);
}

/*
 * Move the incomplete line at the end of the text to its beginning. In steps through the memory of
 * a window, because the two may overlap.
 */
static int keep_incomplete_line(struct device_text *text)
{
	const uint64_t nbytes = text->nbytes - text->lines_end;
	int r = 0;

	for (uint64_t at = 0, n; at < nbytes && text->lines_end > 0 && r == 0; at += n) {
		unsigned char *step = text->slots[0].device_bytes;

		n = nbytes - at < text->window_nbytes ? nbytes - at : text->window_nbytes;
		r = device_queue_copy(text->queue, step, text->memory + text->lines_end + at, n);
		if (r == 0)
			r = device_queue_copy(text->queue, text->memory + at, step, n);
	}
	text->nbytes = nbytes;
	text->n_lines = 1;
	text->lines_end = 0;
	return r;
}

/* There is no memory for the first lines of a chunk, which go on in the buffer. */
static int fail_memory(const struct device_text *text, const struct upload_buffer *buffer)
{
	return text->nbytes > 0 && buffer->path ?
		       fail(-E2BIG,
			    "%s: %s has more than %llu bytes, too many for the memory of the GPU; "
			    "use --backend=cpu",
			    buffer->path, buffer->line, (unsigned long long)text->nbytes) :
		       fail(-ENOMEM,
			    "GPU: too little free memory to sort lines; use --backend=cpu");
}

/* Read text until the next buffer would not fit, or to the end of the input. */
static int read_text(struct device_text *text, struct line_input *input)
{
	int r = keep_incomplete_line(text);

	while (r == 0) {
		struct upload_buffer *buffer = &text->buffers[text->next_buffer];

		r = fill_buffer(text, buffer, input);
		if (r < 0 || buffer->nbytes == 0)
			break;
		r = reserve_memory(text, text->nbytes + buffer->nbytes,
				   text->n_lines + buffer->n_lines);
		if (r == -ENOMEM && text->lines_end > 0)
			return 0;
		if (r == -ENOMEM)
			return fail_memory(text, buffer);
		if (r == 0)
			r = upload_buffer(text, buffer);
	}
	return r;
}

/* --- Sorting --- */

int device_text_sort(struct device_text *text, struct line_input *input, uint64_t limit,
		     bool *ret_at_end)
{
	struct sort_lines_op op = { .delimiter = text->params.keys->delimiter,
				    .descending = line_keys_are_reversed(text->params.keys),
				    .unique = text->params.keys->unique,
				    .limit = limit,
				    .ret = &text->sorted };
	int r = read_text(text, input);

	*ret_at_end = text->is_at_end && text->buffers[text->next_buffer].nbytes == 0;
	if (r < 0)
		return r;
	if (text->lines_end == 0) { /* the inputs are empty */
		text->sorted = (struct sort_lines_result){ 0 };
		return 0;
	}
	op.text = text->memory;
	op.nbytes = text->lines_end;
	op.max_n = text->n_lines;
	op.memory = text->memory + round_up(text->nbytes, SCRATCH_ALIGNMENT);
	r = text->params.backend->line_ops->sort(text->queue, &op);
	return r < 0 ? r : device_queue_synchronize(text->queue, text->copied);
}

const struct sort_lines_result *device_text_result(const struct device_text *text)
{
	return &text->sorted;
}

/* --- Writing --- */

/* Copy the offsets of the segments to the host, and append the end of the last one. */
static int get_offsets(struct device_text *text)
{
	const struct device_lines *lines = &text->sorted.lines;
	const uint64_t n = (lines->n + BACKEND_LINE_SEGMENT - 1) / BACKEND_LINE_SEGMENT;
	uint64_t *grown = reallocarray(text->offsets, n + 1, sizeof *grown);
	int r;

	if (!grown)
		return fail(-ENOMEM, "no memory for the offsets of lines");
	text->offsets = grown;
	text->n_segments = n;
	grown[n] = lines->output_nbytes;
	if (n == 0)
		return 0;
	r = device_queue_copy(text->queue, grown, lines->offsets, n * sizeof *grown);
	return r < 0 ? r : device_queue_synchronize(text->queue, text->copied);
}

/* Return the number of windows; in the file, all but the first begin at multiples of their size. */
static uint32_t count_windows(const struct device_text *text)
{
	const uint64_t nbytes = text->sorted.lines.output_nbytes;
	const uint64_t end = text->sink->begin % text->window_nbytes + nbytes;

	return nbytes == 0 ? 0 : (uint32_t)((end + text->window_nbytes - 1) / text->window_nbytes);
}

/* Return what to gather for a window. */
static struct gather_lines_op describe_window(const struct device_text *text, uint32_t window)
{
	const uint64_t before = text->sink->begin % text->window_nbytes;
	const uint64_t end = (uint64_t)(window + 1) * text->window_nbytes - before;
	struct gather_lines_op op = { .lines = &text->sorted.lines, .end = end };
	uint64_t i;

	if (window > 0)
		op.begin = end - text->window_nbytes;
	if (op.end > text->sorted.lines.output_nbytes)
		op.end = text->sorted.lines.output_nbytes;
	i = find_interval(text->offsets, sizeof *text->offsets, 0, text->n_segments, op.begin);
	op.first_segment = i;
	for (; i < text->n_segments && text->offsets[i] < op.end; i++)
		if (text->offsets[i + 1] - text->offsets[i] > op.longest_nbytes)
			op.longest_nbytes = text->offsets[i + 1] - text->offsets[i];
	op.n_segments = (uint32_t)(i - op.first_segment);
	return op;
}

/* There are as many slots as threads. */
static struct window_slot *take_slot(struct device_text *text)
{
	for (uint32_t i = 0;; i = (i + 1) % text->params.n_threads)
		if (!atomic_exchange(&text->slots[i].is_used, true))
			return &text->slots[i];
}

/* Gather a window and copy it to the slot's host memory. */
static int gather_window(struct device_text *text, struct window_slot *slot,
			 const struct gather_lines_op *op)
{
	int r = text->params.backend->line_ops->gather(slot->queue, op);

	if (r == 0)
		r = device_queue_copy(slot->queue, slot->host_bytes, slot->device_bytes,
				      op->end - op->begin);
	if (r == 0)
		r = device_queue_synchronize(slot->queue, slot->done);
	if (r == 0 && op->ret->n_disorders > 0)
		r = fail(-EIO, "internal error: lines are out of order");
	return r;
}

static int write_window(struct device_text *text, struct window_slot *slot, uint32_t window)
{
	const struct line_sink *sink = text->sink;
	struct gather_lines_op op = describe_window(text, window);
	struct gather_lines_result result = { 0 };
	int r;

	op.out = slot->device_bytes;
	op.ret = &result;
	r = gather_window(text, slot, &op);
	text->digests[window] = result.digest;
	for (size_t at = 0, n, nbytes = op.end - op.begin; at < nbytes && r == 0; at += n) {
		n = nbytes - at < sink->max_nbytes ? nbytes - at : sink->max_nbytes;
		r = sink->write(sink->context, op.begin + at, slot->host_bytes + at, n);
	}
	return r;
}

/* Write the windows of a part of the output, one after the other. */
static int write_part(void *context, uint32_t task)
{
	struct device_text *text = context;
	struct window_slot *slot = take_slot(text);
	const uint32_t first = task * text->windows_per_part;
	int r = 0;

	for (uint32_t i = first; i < text->n_windows && i < first + text->windows_per_part &&
				 r == 0 && !atomic_load(&text->has_failed);
	     i++) {
		r = cancellation_check(text->params.cancellation);
		if (r == 0)
			r = write_window(text, slot, i);
	}
	if (r < 0) /* other threads need not go on */
		atomic_store(&text->has_failed, true);
	atomic_store(&slot->is_used, false);
	return r;
}

int device_text_write(struct device_text *text, const struct line_sink *sink,
		      struct digest *ret_digest)
{
	int r = get_offsets(text);
	uint32_t n;

	*ret_digest = (struct digest){ 0 };
	if (r < 0)
		return r;
	text->sink = sink;
	text->n_windows = n = count_windows(text);
	text->windows_per_part = sink->n_writers ? (n + sink->n_writers - 1) / sink->n_writers : 1;
	text->digests = calloc(n + 1, sizeof *text->digests);
	if (!text->digests)
		return fail(-ENOMEM, "no memory for %u windows", n);
	if (n > 0)
		r = thread_pool_run(text->params.threads, write_part, text,
				    (n + text->windows_per_part - 1) / text->windows_per_part);
	for (uint32_t i = 0; i < n && r == 0; i++)
		digest_add(ret_digest, text->digests[i]);
	free(text->digests);
	return r;
}

/* --- Opening --- */

static int open_slot(struct device_text *text, struct window_slot *slot)
{
	void *device_bytes, *host_bytes;
	int r = device_queue_open(text->device, QUEUE_PRIORITY_NORMAL, &slot->queue);

	if (r == 0)
		r = device_event_open(text->device, &slot->done);
	if (r == 0)
		r = device_alloc(text->device, MEMORY_DEVICE, text->window_nbytes, &device_bytes);
	if (r < 0)
		return r;
	slot->device_bytes = device_bytes;
	r = device_alloc(text->device, MEMORY_HOST, text->window_nbytes, &host_bytes);
	if (r == 0)
		slot->host_bytes = host_bytes;
	return r;
}

static int open_buffer(struct device_text *text, struct upload_buffer *buffer)
{
	void *bytes;
	int r = device_event_open(text->device, &buffer->uploaded);

	if (r == 0)
		r = device_alloc(text->device, MEMORY_HOST, text->buffer_nbytes, &bytes);
	if (r == 0)
		buffer->bytes = bytes;
	return r;
}

/* Limit the memory, and what is needed besides it, so that all have a part of it. */
static int plan_memory(struct device_text *text)
{
	const size_t share = text->params.host_memory_nbytes / BUFFERS_SHARE;
	const uint32_t n_threads = text->params.n_threads;
	struct device_info info;
	uint64_t max_nbytes;

	device_get_info(text->device, &info);
	max_nbytes = info.memory_nbytes / 16 / n_threads;
	text->window_nbytes = u64_clamp(share / n_threads, MIN_WINDOW_NBYTES, MAX_WINDOW_NBYTES);
	if (text->window_nbytes > max_nbytes)
		text->window_nbytes = max_nbytes;
	text->window_nbytes = text->window_nbytes / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
	text->max_memory_nbytes = info.memory_nbytes - n_threads * text->window_nbytes;
	max_nbytes = text->max_memory_nbytes / MAX_NBYTES_PER_LINE_BYTE / 2;
	text->buffer_nbytes = u64_clamp(share / N_BUFFERS, MIN_BUFFER_NBYTES, MAX_BUFFER_NBYTES);
	if (text->buffer_nbytes > max_nbytes)
		text->buffer_nbytes = max_nbytes;
	return text->buffer_nbytes == 0 || text->window_nbytes == 0 ? -ENOMEM : 0;
}

static int open_text(struct device_text *text)
{
	const struct device_text_params *params = &text->params;
	const struct backend_config config = { .n_threads = params->n_threads,
					       .device_memory_nbytes = params->device_memory_nbytes,
					       .stats = params->stats };
	int r = device_open(params->backend, &config, &text->device);

	if (r == 0)
		r = plan_memory(text);
	if (r == 0)
		r = device_queue_open(text->device, QUEUE_PRIORITY_NORMAL, &text->queue);
	if (r == 0)
		r = device_event_open(text->device, &text->copied);
	for (unsigned i = 0; i < N_BUFFERS && r == 0; i++)
		r = open_buffer(text, &text->buffers[i]);
	if (r < 0)
		return r;
	text->slots = calloc(params->n_threads, sizeof *text->slots);
	if (!text->slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < params->n_threads && r == 0; i++)
		r = open_slot(text, &text->slots[i]);
	return r;
}

int device_text_open(const struct device_text_params *params, struct device_text **ret_text)
{
	struct device_text *text = calloc(1, sizeof *text);
	int r;

	if (!text)
		return -ENOMEM;
	text->params = *params;
	r = open_text(text);
	if (r < 0)
		device_text_close(text);
	else
		*ret_text = text;
	return r;
}

static void close_slot(struct device_text *text, struct window_slot *slot)
{
	device_queue_close(slot->queue);
	device_event_close(slot->done);
	device_free(text->device, MEMORY_DEVICE, slot->device_bytes, text->window_nbytes);
	device_free(text->device, MEMORY_HOST, slot->host_bytes, text->window_nbytes);
}

void device_text_get_info(const struct device_text *text, struct device_info *ret_info)
{
	device_get_info(text->device, ret_info);
}

void device_text_close(struct device_text *text)
{
	if (!text)
		return;
	if (text->device) {
		device_queue_close(text->queue);
		device_event_close(text->copied);
		for (uint32_t i = 0; text->slots && i < text->params.n_threads; i++)
			close_slot(text, &text->slots[i]);
		for (unsigned i = 0; i < N_BUFFERS; i++) {
			device_event_close(text->buffers[i].uploaded);
			device_free(text->device, MEMORY_HOST, text->buffers[i].bytes,
				    text->buffer_nbytes);
		}
		device_free(text->device, MEMORY_DEVICE, text->memory, text->memory_nbytes);
		device_close(text->device);
	}
	free(text->slots);
	free(text->offsets);
	free(text);
}
