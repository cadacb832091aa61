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
#include "src/lines/line_scan.h"

enum {
	N_BUFFERS = 2,     /* one is read while the other is uploaded */
	BUFFERS_SHARE = 8, /* the buffers take an eighth of the host memory, so do the windows */
	MIN_BUFFER_NBYTES = 64 << 10,
	MAX_BUFFER_NBYTES = 64 << 20,
	MIN_WINDOW_NBYTES = 64 << 10,
	MAX_WINDOW_NBYTES = MMAP_SEGMENT_NBYTES,
	/* A buffer of the shortest lines takes a part of device memory. */
	MAX_NBYTES_PER_LINE_BYTE = 80,
	/* Pieces of the lines that keys are added to. */
	PIECES_PER_THREAD = 8,
	MIN_PIECE_NBYTES = 4 << 10,
	/* A line may take so large a part of the host memory with its key. */
	LINE_SHARE = 4,
};

/* A text, or a part of it. */
struct text_size {
	uint64_t nbytes;      /* with keys */
	uint64_t line_nbytes; /* without them */
	uint64_t n_lines;     /* at most; exactly if they have keys */
};

/* Whole lines that one thread adds keys to, and the part of a buffer where it puts them. */
struct keyed_piece {
	const unsigned char *begin, *end; /* the lines */
	const unsigned char *rest;        /* [rest, end) did not fit */
	unsigned char *out;
	size_t capacity;
	struct text_size size; /* of what is there */
};

/* Text on its way to the device. */
struct upload_buffer {
	unsigned char *bytes;
	size_t capacity;
	struct device_event *uploaded;
	struct text_size size; /* read, but not taken into a chunk */
	/* Where it begins: in this line of this input. NULL: nothing was read before. */
	const char *path;
	char line[LINE_LABEL_NBYTES];
	struct keyed_piece *pieces; /* n_pieces of max_pieces, if lines have keys */
	uint32_t n_pieces;
};

/* Lines that were read, and have no keys yet. */
struct unkeyed_lines {
	unsigned char *bytes; /* LINE_SLACK_NBYTES more than the capacity */
	size_t nbytes, capacity;
	bool is_at_end;  /* the input is read to its end */
	double per_byte; /* bytes with keys for each byte, of recent lines */
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
	struct unkeyed_lines unkeyed;
	uint32_t max_pieces;
	struct window_slot *slots; /* n_threads */
	size_t buffer_nbytes, window_nbytes;

	/* Device memory: the text, then the memory of its sort. NULL before the first chunk. */
	unsigned char *memory;
	uint64_t memory_nbytes, max_memory_nbytes;
	struct text_size size; /* with an incomplete line at its end */
	uint64_t lines_end;    /* the end of the last whole line */
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

static bool has_keys(const struct device_text *text)
{
	return !line_keys_are_plain(text->params.keys);
}

/* Return the memory to sort a text. */
static uint64_t needed_nbytes(const struct device_text *text, const struct text_size *size)
{
	return round_up(size->nbytes, SCRATCH_ALIGNMENT) +
	       text->params.backend->line_ops->memory_nbytes(size->nbytes, size->n_lines,
							     has_keys(text));
}

/* Return the memory for the whole input, if its lines are like those of the text. */
static uint64_t expected_nbytes(const struct device_text *text, const struct text_size *size)
{
	const uint64_t input_nbytes = text->params.input_nbytes;
	double factor = 2;

	if (input_nbytes != UINT64_MAX && input_nbytes > size->line_nbytes)
		factor = (double)input_nbytes / (double)size->line_nbytes;
	return (uint64_t)(factor * (double)needed_nbytes(text, size));
}

static void add_size(struct text_size *to, const struct text_size *more)
{
	to->nbytes += more->nbytes;
	to->line_nbytes += more->line_nbytes;
	to->n_lines += more->n_lines;
}

/* Replace the memory by a larger one; the text is copied. */
static int replace_memory(struct device_text *text, uint64_t nbytes)
{
	void *memory;
	int r = device_alloc(text->device, MEMORY_DEVICE, nbytes, &memory);

	if (r < 0)
		return r;
	if (text->size.nbytes > 0)
		r = device_queue_copy(text->queue, memory, text->memory, text->size.nbytes);
	if (r == 0)
		r = device_queue_synchronize(text->queue, text->copied);
	device_free(text->device, MEMORY_DEVICE, text->memory, text->memory_nbytes);
	text->memory = memory;
	text->memory_nbytes = nbytes;
	return r;
}

/*
 * Make sure that the memory suffices for the text with one more buffer. Returns 0, or -ENOMEM
 * without a message: neither the limit nor the free memory permits it.
 */
static int reserve_memory(struct device_text *text, const struct upload_buffer *buffer)
{
	struct text_size size = text->size;
	uint64_t needed;
	/* Both exist while the text is copied. */
	const uint64_t max_nbytes = text->max_memory_nbytes - text->memory_nbytes;
	uint64_t wanted;
	int r;

	add_size(&size, &buffer->size);
	if (size.n_lines >= UINT32_MAX)
		return -ENOMEM;
	needed = needed_nbytes(text, &size);
	if (needed <= text->memory_nbytes)
		return 0;
	/* A fifth more, because not all lines are alike. */
	wanted = expected_nbytes(text, &size) / 5 * 6;
	if (wanted > max_nbytes)
		wanted = max_nbytes / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
	if (wanted < needed)
		return -ENOMEM;
	r = replace_memory(text, round_up(wanted, SCRATCH_ALIGNMENT));
	/* Others may have taken memory since the limit was set. */
	return r == -ENOMEM ? replace_memory(text, round_up(needed, SCRATCH_ALIGNMENT)) : r;
}

/* --- Lines with keys --- */

/* Replace an empty buffer by one of another size. */
static int resize_buffer(struct device_text *text, struct upload_buffer *buffer, size_t nbytes)
{
	void *bytes;
	int r;

	device_free(text->device, MEMORY_HOST, buffer->bytes, buffer->capacity);
	buffer->bytes = NULL;
	r = device_alloc(text->device, MEMORY_HOST, nbytes, &bytes);
	if (r == 0)
		buffer->bytes = bytes;
	buffer->capacity = nbytes;
	return r;
}

/*
 * Two bytes of a key are replaced by two bytes each: the delimiter, and a neighbour of it. So no
 * key contains a delimiter, and the order of keys is the same.
 *
 *	08   09      0a      0b			with '\n'
 *	08   09 01   09 02   0b
 */
static unsigned char escape_byte(unsigned char delimiter)
{
	return delimiter > 0 ? (unsigned char)(delimiter - 1) : 1;
}

/* Return the size of a key when it is escaped. */
static size_t escaped_nbytes(const struct line_key_buffer *key, unsigned char delimiter)
{
	const unsigned char escape = escape_byte(delimiter);
	size_t n = key->n;

	for (size_t i = 0; i < key->n; i++)
		n += key->bytes[i] == delimiter || key->bytes[i] == escape;
	return n;
}

/* Write an escaped key. Returns its end. */
static unsigned char *put_escaped(const struct line_key_buffer *key, unsigned char delimiter,
				  unsigned char *out)
{
	const unsigned char escape = escape_byte(delimiter);

	for (size_t i = 0; i < key->n; i++) {
		const unsigned char byte = key->bytes[i];
		const bool is_escaped = byte == delimiter || byte == escape;

		*out++ = is_escaped ? escape : byte;
		if (is_escaped)
			*out++ = byte == (delimiter > escape ? delimiter : escape) ? 2 : 1;
	}
	return out;
}

/* Add a line with its key to the piece. Returns false if it does not fit. */
static bool put_line(struct keyed_piece *piece, const struct line_key_buffer *key,
		     unsigned char delimiter, struct line_view line)
{
	const size_t key_nbytes = escaped_nbytes(key, delimiter);
	const size_t nbytes = key_nbytes + 1 + line.nbytes + 1;
	unsigned char *out = piece->out + piece->size.nbytes;

	if (nbytes > piece->capacity - piece->size.nbytes)
		return false;
	if (key_nbytes > key->n)
		out = put_escaped(key, delimiter, out);
	else
		out = mempcpy(out, key->bytes, key->n);
	*out++ = delimiter;
	memcpy(out, line.bytes, line.nbytes + 1);
	add_size(&piece->size, &(struct text_size){ nbytes, line.nbytes + 1, 1 });
	return true;
}

/* Add keys to the lines of a piece, as far as they fit. */
static int add_keys(void *context, uint32_t task)
{
	const struct device_text *text = context;
	const struct line_keys *keys = text->params.keys;
	struct keyed_piece *shared = &text->buffers[text->next_buffer].pieces[task];
	struct keyed_piece piece = *shared; /* other threads share the cache line */
	const struct span span = stats_begin(STAGE_ENCODE, task);
	struct line_scan scan = line_scan_start(piece.begin, keys->delimiter);
	struct line_key_buffer key = { 0 };

	while (piece.rest < piece.end) {
		const unsigned char *end = line_scan_next(&scan);
		const struct line_view line = { piece.rest, (size_t)(end - piece.rest) };

		line_keys_normalise(keys, line.bytes, line.nbytes, &key);
		if (key.has_failed || !put_line(&piece, &key, keys->delimiter, line))
			break;
		piece.rest = end + 1;
	}
	*shared = piece;
	stats_end(text->params.stats, span, piece.size.line_nbytes);
	return line_key_buffer_finish(&key);
}

/* Divide the lines up to `end` into pieces, and the buffer in proportion. */
static void divide_lines(const struct device_text *text, struct upload_buffer *buffer,
			 const unsigned char *end)
{
	const unsigned char *begin = text->unkeyed.bytes;
	const size_t nbytes = (size_t)(end - begin);
	const size_t piece_nbytes = u64_max(MIN_PIECE_NBYTES, nbytes / text->max_pieces + 1);
	const double factor = (double)buffer->capacity / (double)nbytes;
	unsigned char *out = buffer->bytes;

	buffer->n_pieces = 0;
	while (begin < end) {
		struct keyed_piece *piece = &buffer->pieces[buffer->n_pieces++];

		*piece = (struct keyed_piece){ begin, end, begin, .out = out };
		if ((size_t)(end - begin) > piece_nbytes)
			piece->end =
				line_end(begin + piece_nbytes - 1, text->params.keys->delimiter) +
				1;
		begin = piece->end;
		piece->capacity = (size_t)(factor * (double)(begin - text->unkeyed.bytes)) -
				  (size_t)(out - buffer->bytes);
		out += piece->capacity;
	}
}

/* Take the lines that have keys now into account. */
static void count_keyed(struct device_text *text, struct upload_buffer *buffer)
{
	struct unkeyed_lines *unkeyed = &text->unkeyed;
	double per_byte = 0;
	uint32_t n = 0;

	while (n < buffer->n_pieces) {
		const struct keyed_piece *piece = &buffer->pieces[n++];
		const struct text_size *size = &piece->size;

		add_size(&buffer->size, size);
		if (size->n_lines && (double)size->nbytes / (double)size->line_nbytes > per_byte)
			per_byte = (double)size->nbytes / (double)size->line_nbytes;
		/* The lines that follow keep their order. */
		if (piece->rest < piece->end)
			break;
	}
	buffer->n_pieces = n;
	if (per_byte > 0) /* a tenth more, because not all lines are alike */
		unkeyed->per_byte = 1.1 * per_byte;
	unkeyed->nbytes -= buffer->size.line_nbytes;
	memmove(unkeyed->bytes, unkeyed->bytes + buffer->size.line_nbytes, unkeyed->nbytes);
	text->is_at_end = unkeyed->is_at_end && unkeyed->nbytes == 0;
}

/* The first of the lines does not fit in memory with its key. */
static int fail_first_line(const struct device_text *text, const struct line_input *input,
			   size_t nbytes)
{
	const struct device_text_params *params = &text->params;
	const struct unkeyed_lines *unkeyed = &text->unkeyed;
	struct line_key_buffer key = { 0 };
	char line[LINE_LABEL_NBYTES];
	const char *path = line_input_locate(input, unkeyed->bytes, unkeyed->nbytes, line);
	size_t key_nbytes;
	int r;

	line_keys_normalise(params->keys, unkeyed->bytes, nbytes, &key);
	key_nbytes = escaped_nbytes(&key, params->keys->delimiter) + 1;
	r = line_key_buffer_finish(&key);
	return r < 0 ? r : params->fail_long_line(params->context, path, line, nbytes, key_nbytes);
}

/* Add keys to lines up to `end`, at least to the first one. */
static int fill_pieces(struct device_text *text, struct upload_buffer *buffer,
		       const struct line_input *input, const unsigned char *end)
{
	const unsigned char *first_end =
		line_end(text->unkeyed.bytes, text->params.keys->delimiter) + 1;
	const size_t max_nbytes = text->params.host_memory_nbytes / LINE_SHARE;
	int r;

	for (;;) {
		divide_lines(text, buffer, end);
		r = thread_pool_run(text->params.threads, add_keys, text, buffer->n_pieces);
		if (r < 0 || buffer->pieces[0].size.n_lines > 0)
			break;
		/* The first line does not fit: try without others, then in a larger buffer. */
		if (end == first_end && buffer->capacity >= max_nbytes)
			return fail_first_line(text, input,
					       (size_t)(end - text->unkeyed.bytes - 1));
		if (end == first_end)
			r = resize_buffer(text, buffer, u64_min(2 * buffer->capacity, max_nbytes));
		if (r < 0)
			return r == -ENOMEM ? fail(r, "no memory for a line and its key") : r;
		end = first_end;
	}
	if (r == 0)
		count_keyed(text, buffer);
	return r;
}

/* Read lines without keys, until there are nbytes of them. */
static int read_unkeyed(struct device_text *text, struct line_input *input, size_t nbytes)
{
	struct unkeyed_lines *unkeyed = &text->unkeyed;
	size_t n_read, n_wanted;
	int r;

	if (unkeyed->is_at_end || unkeyed->nbytes >= nbytes)
		return 0;
	if (nbytes > unkeyed->capacity) {
		unsigned char *grown = realloc(unkeyed->bytes, nbytes + LINE_SLACK_NBYTES);

		if (!grown)
			return fail(-ENOMEM, "no memory for %zu bytes of lines", nbytes);
		unkeyed->bytes = grown;
		unkeyed->capacity = nbytes;
	}
	n_wanted = nbytes - unkeyed->nbytes;
	r = line_input_read(input, unkeyed->bytes + unkeyed->nbytes, n_wanted, &n_read);
	unkeyed->nbytes += n_read;
	unkeyed->is_at_end = n_read < n_wanted;
	return r;
}

/* Read lines, and fill a buffer with lines and keys. */
static int read_keyed_lines(struct device_text *text, struct upload_buffer *buffer,
			    struct line_input *input)
{
	struct unkeyed_lines *unkeyed = &text->unkeyed;
	const unsigned char delimiter = text->params.keys->delimiter;
	const size_t max_nbytes = text->params.host_memory_nbytes / LINE_SHARE;
	size_t wanted =
		u64_max((uint64_t)((double)buffer->capacity / unkeyed->per_byte), MIN_PIECE_NBYTES);

	for (;;) {
		const unsigned char *last;
		size_t n;
		int r = read_unkeyed(text, input, wanted);

		text->is_at_end = unkeyed->is_at_end && unkeyed->nbytes == 0;
		if (r < 0 || text->is_at_end)
			return r;
		n = u64_min(wanted, unkeyed->nbytes);
		last = memrchr(unkeyed->bytes, delimiter, n);
		if (!last)
			last = memchr(unkeyed->bytes + n, delimiter, unkeyed->nbytes - n);
		if (last)
			return fill_pieces(text, buffer, input, last + 1);
		if (unkeyed->nbytes >= max_nbytes)
			return line_input_fail_long_line(input, max_nbytes);
		wanted = u64_min(2 * unkeyed->nbytes, max_nbytes);
	}
}

/* --- Reading --- */

/* Read the next part of the input into a buffer, without keys. */
static int read_lines(struct device_text *text, struct upload_buffer *buffer,
		      struct line_input *input)
{
	const uint64_t n_before = line_input_n_lines(input);
	uint64_t n_lines;
	size_t nbytes;
	int r;

	buffer->path = text->size.nbytes > 0 ? line_input_position(input, buffer->line) : NULL;
	r = line_input_read(input, buffer->bytes, buffer->capacity, &nbytes);
	text->is_at_end = nbytes < buffer->capacity;
	/* The input also counts the lines around a share. */
	n_lines = text->params.has_share ?
			  line_count(buffer->bytes, nbytes, text->params.keys->delimiter) :
			  line_input_n_lines(input) - n_before;
	buffer->size =
		(struct text_size){ .nbytes = nbytes, .line_nbytes = nbytes, .n_lines = n_lines };
	return r;
}

/* Read the next part of the input into a buffer that is empty. */
static int fill_buffer(struct device_text *text, struct upload_buffer *buffer,
		       struct line_input *input)
{
	int r;

	if (buffer->size.nbytes > 0 || text->is_at_end)
		return 0;
	r = device_event_wait(buffer->uploaded);
	if (r < 0)
		return r;
	return has_keys(text) ? read_keyed_lines(text, buffer, input) :
				read_lines(text, buffer, input);
}

/* Copy lines with keys to the text. */
static int upload_pieces(struct device_text *text, const struct upload_buffer *buffer)
{
	uint64_t to = text->size.nbytes;
	int r = 0;

	for (uint32_t i = 0; i < buffer->n_pieces && r == 0; i++) {
		const struct keyed_piece *piece = &buffer->pieces[i];

		r = device_queue_copy(text->queue, text->memory + to, piece->out,
				      piece->size.nbytes);
		to += piece->size.nbytes;
	}
	text->lines_end = to;
	return r;
}

/* Copy lines without keys to the text. */
static int upload_lines(struct device_text *text, const struct upload_buffer *buffer)
{
	const unsigned char *last =
		memrchr(buffer->bytes, text->params.keys->delimiter, buffer->size.nbytes);

	if (last)
		text->lines_end = text->size.nbytes + (uint64_t)(last + 1 - buffer->bytes);
	return device_queue_copy(text->queue, text->memory + text->size.nbytes, buffer->bytes,
				 buffer->size.nbytes);
}

/* Add the bytes of a buffer to the text. */
static int upload_buffer(struct device_text *text, struct upload_buffer *buffer)
{
	const int r = has_keys(text) ? upload_pieces(text, buffer) : upload_lines(text, buffer);

	add_size(&text->size, &buffer->size);
	buffer->size = (struct text_size){ 0 };
	text->next_buffer = (text->next_buffer + 1) % N_BUFFERS;
	return r < 0 ? r : device_queue_record(text->queue, buffer->uploaded);
}

/*
 * Move the incomplete line at the end of the text to its beginning. In steps through the memory of
 * a window, because the two may overlap.
 */
static int keep_incomplete_line(struct device_text *text)
{
	const uint64_t nbytes = text->size.nbytes - text->lines_end;
	int r = 0;

	for (uint64_t at = 0, n; at < nbytes && text->lines_end > 0 && r == 0; at += n) {
		unsigned char *step = text->slots[0].device_bytes;

		n = nbytes - at < text->window_nbytes ? nbytes - at : text->window_nbytes;
		r = device_queue_copy(text->queue, step, text->memory + text->lines_end + at, n);
		if (r == 0)
			r = device_queue_copy(text->queue, text->memory + at, step, n);
	}
	text->size = (struct text_size){ .nbytes = nbytes, .line_nbytes = nbytes, .n_lines = 1 };
	text->lines_end = 0;
	return r;
}

/* There is no memory for the first lines of a chunk, which go on in the buffer. */
static int fail_memory(const struct device_text *text, const struct upload_buffer *buffer)
{
	return text->size.nbytes > 0 && buffer->path ?
		       fail(-E2BIG,
			    "%s: %s has more than %llu bytes, too many for the memory of the GPU; "
			    "use --backend=cpu",
			    buffer->path, buffer->line, (unsigned long long)text->size.nbytes) :
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
		if (r < 0 || buffer->size.nbytes == 0)
			break;
		r = reserve_memory(text, buffer);
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

static struct device_line_order order_of(const struct line_keys *keys)
{
	const bool has_keys = !line_keys_are_plain(keys);
	const bool keys_decide = has_keys && !line_keys_have_last_resort(keys);

	return (struct device_line_order){ .has_keys = has_keys,
					   .keys_decide = keys_decide,
					   .descending = line_keys_are_reversed(keys) &&
							 !keys_decide };
}

int device_text_sort(struct device_text *text, struct line_input *input, uint64_t limit,
		     bool *ret_at_end)
{
	const struct line_keys *keys = text->params.keys;
	struct sort_lines_op op = { .delimiter = keys->delimiter,
				    .order_by = order_of(keys),
				    .unique = keys->unique && !text->params.keeps_equal,
				    .limit = limit,
				    .ret = &text->sorted };
	int r = read_text(text, input);

	*ret_at_end = text->is_at_end && text->buffers[text->next_buffer].size.nbytes == 0;
	if (r < 0)
		return r;
	if (text->lines_end == 0) { /* the inputs are empty */
		text->sorted = (struct sort_lines_result){ 0 };
		return 0;
	}
	op.text = text->memory;
	op.nbytes = text->lines_end;
	op.max_n = text->size.n_lines;
	op.memory = text->memory + round_up(text->size.nbytes, SCRATCH_ALIGNMENT);
	r = text->params.backend->line_ops->sort(text->queue, &op);
	return r < 0 ? r : device_queue_synchronize(text->queue, text->copied);
}

const struct sort_lines_result *device_text_result(const struct device_text *text)
{
	return &text->sorted;
}

uint64_t device_text_nbytes(const struct device_text *text)
{
	return has_keys(text) ? text->size.line_nbytes : text->lines_end;
}

int device_text_select(struct device_text *text, uint64_t first, uint64_t n)
{
	return text->params.backend->line_ops->select(text->queue, &text->sorted.lines, first, n);
}

/* --- Writing --- */

/* Copy the offsets of the segments to the host, and append the end of the last one. */
static int get_offsets(struct device_text *text)
{
	const struct device_lines *lines = &text->sorted.lines;
	/* Without lines, there was no sort, and the size of segments is not known. */
	const uint64_t n = lines->n ? (lines->n - 1) / lines->segment_n + 1 : 0;
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

	if (ret_digest)
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
	for (uint32_t i = 0; ret_digest && i < n; i++)
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
	int r = device_event_open(text->device, &buffer->uploaded);

	if (r == 0)
		r = resize_buffer(text, buffer, text->buffer_nbytes);
	if (r == 0 && has_keys(text)) {
		buffer->pieces = calloc(text->max_pieces, sizeof *buffer->pieces);
		r = buffer->pieces ? 0 : -ENOMEM;
	}
	return r;
}

/* Divide device memory and host memory among the threads: sizes of windows and buffers. */
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
					       .number = params->device_number,
					       .n_other_sharers = params->n_other_sharers,
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
	text->max_pieces = PIECES_PER_THREAD * params->n_threads;
	text->unkeyed.per_byte = 4; /* only the first buffer is divided by this */
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
				    text->buffers[i].capacity);
			free(text->buffers[i].pieces);
		}
		device_free(text->device, MEMORY_DEVICE, text->memory, text->memory_nbytes);
		device_close(text->device);
	}
	free(text->unkeyed.bytes);
	free(text->slots);
	free(text->offsets);
	free(text);
}
