/*
 * line_sort - sort lines of text, with the engine for fixed-size records (see line_sort.h)
 */
#include "src/lines/line_sort.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/gsort.h"
#include "io/output/output.h"
#include "src/base/diagnostics.h"
#include "src/base/thread_pool.h"

enum {
	PREFIX_TEXT_NBYTES = 23,
	PREFIX_NBYTES = PREFIX_TEXT_NBYTES + 1,
	PREFIX_CONTINUES = PREFIX_TEXT_NBYTES + 1, /* the last byte: the key goes on */
	BATCH_N = 1 << 15,                         /* records passed at a time */
	MAX_GROUP_N = 4096,                        /* more ties are sorted by the engine */
	OUTPUT_NBYTES = 1 << 20,
	PREFETCH_N = 16,     /* lines fetched ahead of their turn */
	PENDING_N = 1 << 16, /* lines that are written together */
	N_TASKS = 16,        /* of threads that work on a batch */
};

/* What a sort of ties may take. */
#define TIES_MEMORY "16M"

/* A line, as the engine sorts it. */
struct line_record {
	unsigned char prefix[PREFIX_NBYTES];
	uint64_t offset;
};

/* A line in memory, without its delimiter. */
struct line_view {
	const unsigned char *bytes;
	size_t nbytes;
};

/* A stream of records in order: the engine's, one ahead. */
struct record_stream {
	struct gsort *sort;
	struct line_record *records; /* BATCH_N */
	size_t n, next;
};

/* Lines on their way to the output. */
struct line_writer {
	struct output *output;
	uint64_t *lines;  /* n_pending: their offsets in the text */
	uint64_t *starts; /* PENDING_N + 1: where each begins in the output; first its length */
	uint32_t n_pending;
	uint64_t offset; /* of the output: everything before it is written */
	uint64_t n_lines, limit;
};

/* The state of a sort. */
struct line_sort {
	const struct line_sort_params *params;
	const struct line_keys *keys;
	const struct syscalls *calls;
	struct line_text text;
	struct line_writer writer;
	struct line_key_buffer key, other_key; /* scratch for normalised keys */
	struct line_key_buffer task_keys[N_TASKS];
	struct thread_pool *threads;
	uint64_t *group, *merged; /* MAX_GROUP_N offsets: lines that tie */
	uint64_t last_offset;     /* the line that was written last */
	bool has_last;
};

/* --- Lines and keys --- */

static struct line_view view_line(const struct line_sort *sort, uint64_t offset)
{
	const unsigned char *end, *bytes = line_text_at(&sort->text, offset, &end);
	const unsigned char *delimiter =
		memchr(bytes, sort->keys->delimiter, (size_t)(end - bytes));

	return (struct line_view){ bytes, (size_t)((delimiter ? delimiter : end) - bytes) };
}

/* The bytes that are compared: of a plain line its own. */
static struct line_view view_key(const struct line_sort *sort, struct line_view line,
				 struct line_key_buffer *buffer)
{
	if (line_keys_are_plain(sort->keys))
		return line;
	line_keys_normalise(sort->keys, line.bytes, line.nbytes, buffer);
	return (struct line_view){ buffer->bytes, buffer->n };
}

static void make_prefix(const struct line_sort *sort, struct line_view key, size_t depth,
			unsigned char prefix[static PREFIX_NBYTES])
{
	const size_t rest = key.nbytes > depth ? key.nbytes - depth : 0;
	const size_t n = rest < PREFIX_TEXT_NBYTES ? rest : PREFIX_TEXT_NBYTES;

	memset(prefix, 0, PREFIX_NBYTES);
	if (n)
		memcpy(prefix, key.bytes + depth, n);
	prefix[PREFIX_TEXT_NBYTES] = (unsigned char)(rest > n ? PREFIX_CONTINUES : n);
	if (line_keys_are_plain(sort->keys) && line_keys_are_reversed(sort->keys))
		for (unsigned i = 0; i < PREFIX_NBYTES; i++)
			prefix[i] = (unsigned char)~prefix[i];
}

/* Can lines with this prefix differ in their keys? */
static bool prefix_continues(const struct line_sort *sort, const unsigned char *prefix)
{
	const unsigned char last = prefix[PREFIX_TEXT_NBYTES];
	const bool is_reversed = line_keys_are_plain(sort->keys) &&
				 line_keys_are_reversed(sort->keys);

	return (unsigned char)(is_reversed ? ~last : last) == PREFIX_CONTINUES;
}

static int compare_views(struct line_view a, struct line_view b)
{
	const size_t n = a.nbytes < b.nbytes ? a.nbytes : b.nbytes;
	const int order = n ? memcmp(a.bytes, b.bytes, n) : 0;

	return order ? order : (a.nbytes > b.nbytes) - (a.nbytes < b.nbytes);
}

/* Compare two lines by their keys, as memcmp() does. */
static int compare_lines(struct line_sort *sort, struct line_view a, struct line_view b)
{
	const int order =
		compare_views(view_key(sort, a, &sort->key), view_key(sort, b, &sort->other_key));

	return line_keys_are_plain(sort->keys) && line_keys_are_reversed(sort->keys) ? -order :
										       order;
}

static int check_memory(const struct line_sort *sort)
{
	bool has_failed = sort->key.has_failed || sort->other_key.has_failed;

	for (unsigned i = 0; i < N_TASKS; i++)
		has_failed |= sort->task_keys[i].has_failed;
	return has_failed ? fail(-ENOMEM, "no memory for the key of a line") : 0;
}

/* --- Output --- */

/* The share of task i in n lines. */
static uint32_t task_start(uint32_t i, uint32_t n)
{
	return (uint32_t)((uint64_t)n * i / N_TASKS);
}

static void prefetch_line(const struct line_sort *sort, uint64_t offset)
{
	const unsigned char *end;

	__builtin_prefetch(line_text_at(&sort->text, offset, &end));
}

/* Measure the lines of a task, with their delimiters. */
static int measure_lines(void *context, uint32_t task)
{
	struct line_sort *sort = context;
	struct line_writer *writer = &sort->writer;
	const uint32_t end = task_start(task + 1, writer->n_pending);

	for (uint32_t i = task_start(task, writer->n_pending); i < end; i++) {
		if (i + PREFETCH_N < end)
			prefetch_line(sort, writer->lines[i + PREFETCH_N]);
		writer->starts[i] = view_line(sort, writer->lines[i]).nbytes + 1;
	}
	return 0;
}

/* Write the lines of a task, which are measured. */
static int write_task_lines(void *context, uint32_t task)
{
	struct line_sort *sort = context;
	struct line_writer *writer = &sort->writer;
	const uint32_t end = task_start(task + 1, writer->n_pending);
	uint32_t i = task_start(task, writer->n_pending);
	uint64_t position = writer->starts[i];
	unsigned char *buffer = malloc(OUTPUT_NBYTES);
	size_t n = 0;
	int r = buffer ? 0 : fail(-ENOMEM, "no memory to write lines");

	for (; i < end && r == 0; i++) {
		const unsigned char *text_end;
		const unsigned char *line = line_text_at(&sort->text, writer->lines[i], &text_end);
		const size_t nbytes = (size_t)(writer->starts[i + 1] - writer->starts[i]) - 1;

		if (nbytes + 1 > OUTPUT_NBYTES - n) {
			r = output_write_at(writer->output, position, buffer, n);
			position += n;
			n = 0;
		}
		if (nbytes + 1 > OUTPUT_NBYTES) { /* too long for the buffer */
			if (r == 0)
				r = output_write_at(writer->output, position, line, nbytes);
			position += nbytes;
		} else {
			memcpy(buffer + n, line, nbytes);
			n += nbytes;
		}
		buffer[n++] = sort->keys->delimiter;
	}
	if (r == 0 && n)
		r = output_write_at(writer->output, position, buffer, n);
	if (r < 0)
		output_cancel(writer->output);
	free(buffer);
	return r;
}

/* Write the pending lines with all threads. */
static int flush_lines(struct line_sort *sort)
{
	struct line_writer *writer = &sort->writer;
	int r = thread_pool_run(sort->threads, measure_lines, sort, N_TASKS);

	for (uint32_t i = 0; i < writer->n_pending; i++) {
		const uint64_t nbytes = writer->starts[i];

		writer->starts[i] = writer->offset;
		writer->offset += nbytes;
	}
	writer->starts[writer->n_pending] = writer->offset;
	if (r == 0)
		r = thread_pool_run(sort->threads, write_task_lines, sort, N_TASKS);
	writer->n_pending = 0;
	return r;
}

static int queue_line(struct line_sort *sort, uint64_t offset)
{
	struct line_writer *writer = &sort->writer;

	writer->lines[writer->n_pending++] = offset;
	return writer->n_pending == PENDING_N ? flush_lines(sort) : 0;
}

/* Write a line. Returns 1, 0 if the limit is reached, or a negative errno after a message. */
static int write_line(struct line_sort *sort, uint64_t offset)
{
	int r;

	if (sort->writer.n_lines == sort->writer.limit)
		return 0;
	if (sort->keys->unique) {
		if (sort->has_last && compare_lines(sort, view_line(sort, sort->last_offset),
						    view_line(sort, offset)) == 0)
			return 1;
		sort->last_offset = offset;
		sort->has_last = true;
	}
	r = queue_line(sort, offset);
	sort->writer.n_lines++;
	return r < 0 ? r : 1;
}

/* --- The engine --- */

static void print_engine_message(void *context, enum gsort_severity severity, const char *text)
{
	(void)context;
	if (severity == GSORT_WARNING)
		warn("%s", text);
	else if (severity == GSORT_NOTICE)
		notice("%s", text);
}

static int fail_engine(const struct gsort *engine, int r)
{
	return fail(r, "%s", gsort_message(engine));
}

/* Open a sort of line records within `memory`, as of -S; NULL: that of ties. */
static int open_engine(const struct line_sort *sort, const char *memory, struct gsort **ret_engine)
{
	const struct line_sort_params *params = sort->params;
	struct gsort *engine;
	char key[16];
	int r = gsort_open(&engine);

	if (!memory)
		memory = TIES_MEMORY;
	if (r < 0)
		return fail(r, "no memory for a sort");
	snprintf(key, sizeof key, "0:b%u", (unsigned)PREFIX_NBYTES);
	r = gsort_set_message_callback(engine, print_engine_message, NULL);
	if (r == 0 && params->process)
		r = gsort_set_process(engine, params->process);
	if (r == 0)
		r = gsort_set_record_size(engine, sizeof(struct line_record));
	if (r == 0)
		r = gsort_add_key(engine, key);
	if (r == 0 && memory[0])
		r = gsort_set(engine, "buffer-size", memory);
	for (size_t i = 0; i < params->n_options && r == 0; i++)
		r = gsort_set(engine, params->options[i].name, params->options[i].value);
	if (r < 0) {
		fail_engine(engine, r);
		gsort_close(engine);
		return r;
	}
	*ret_engine = engine;
	return 0;
}

/* Pass n records. */
static int put_records(struct gsort *engine, const struct line_record *records, size_t n)
{
	const int r = gsort_put(engine, records, n * sizeof *records);

	return r < 0 ? fail_engine(engine, r) : 0;
}

/* A batch of lines that become records. */
struct line_batch {
	struct line_sort *sort;
	struct line_view lines[BATCH_N];
	struct line_record records[BATCH_N]; /* with their offsets */
	uint32_t n;
};

static int make_task_prefixes(void *context, uint32_t task)
{
	struct line_batch *batch = context;
	const struct line_sort *sort = batch->sort;
	const uint32_t end = task_start(task + 1, batch->n);

	for (uint32_t i = task_start(task, batch->n); i < end; i++)
		make_prefix(sort, view_key(sort, batch->lines[i], &batch->sort->task_keys[task]), 0,
			    batch->records[i].prefix);
	return 0;
}

/* Pass a batch to the engine. */
static int put_batch(struct gsort *engine, struct line_batch *batch)
{
	int r = thread_pool_run(batch->sort->threads, make_task_prefixes, batch, N_TASKS);

	if (r == 0)
		r = put_records(engine, batch->records, batch->n);
	batch->n = 0;
	return r;
}

/* Pass the lines of a segment. */
static int put_segment(struct line_sort *sort, struct gsort *engine,
		       const struct line_segment *segment, struct line_batch *batch)
{
	const unsigned char *line = segment->bytes, *end = line + segment->nbytes;
	uint64_t n_skipped = sort->params->n_header_lines;
	int r = 0;

	while (line < end && r == 0) {
		const unsigned char *delimiter =
			memchr(line, sort->keys->delimiter, (size_t)(end - line));
		const unsigned char *line_end = delimiter ? delimiter : end;

		if (n_skipped > 0) {
			n_skipped--;
		} else {
			batch->lines[batch->n] =
				(struct line_view){ line, (size_t)(line_end - line) };
			batch->records[batch->n++].offset =
				segment->base + (uint64_t)(line - segment->bytes);
		}
		line = delimiter ? delimiter + 1 : end;
		if (batch->n == BATCH_N)
			r = put_batch(engine, batch);
	}
	return r;
}

static int put_text(struct line_sort *sort, struct gsort *engine)
{
	struct line_batch *batch = malloc(sizeof *batch);
	int r = batch ? 0 : fail(-ENOMEM, "no memory for %d lines", BATCH_N);

	if (batch) {
		batch->sort = sort;
		batch->n = 0;
	}
	for (size_t i = 0; i < sort->text.n_segments && r == 0; i++)
		r = put_segment(sort, engine, &sort->text.segments[i], batch);
	if (r == 0)
		r = put_batch(engine, batch);
	free(batch);
	if (r == 0)
		r = check_memory(sort);
	return r < 0 ? r : line_text_check(&sort->text);
}

/* Return the next record without taking it; NULL in *ret_record at the end. */
static int peek_record(struct record_stream *stream, const struct line_record **ret_record)
{
	if (stream->next == stream->n) {
		size_t nbytes;
		const int r = gsort_get(stream->sort, stream->records,
					BATCH_N * sizeof *stream->records, &nbytes);

		if (r < 0)
			return fail_engine(stream->sort, r);
		stream->n = nbytes / sizeof *stream->records;
		stream->next = 0;
	}
	*ret_record = stream->next < stream->n ? &stream->records[stream->next] : NULL;
	return 0;
}

/* --- Ties --- */

/* Merge the sorted halves [0, middle) and [middle, n) of a group. */
static void merge_halves(struct line_sort *sort, uint64_t *group, size_t middle, size_t n)
{
	size_t a = 0, b = middle, out = 0;

	while (a < middle && b < n)
		sort->merged[out++] = compare_lines(sort, view_line(sort, group[a]),
						    view_line(sort, group[b])) <= 0 ?
					      group[a++] :
					      group[b++];
	memcpy(sort->merged + out, group + a, (middle - a) * sizeof *group);
	memcpy(group, sort->merged, (out + middle - a) * sizeof *group);
}

/* Merge sort, stable. */
static void sort_group(struct line_sort *sort, uint64_t *group, size_t n)
{
	const size_t middle = n / 2;

	if (n < 2)
		return;
	sort_group(sort, group, middle);
	sort_group(sort, group + middle, n - middle);
	if (compare_lines(sort, view_line(sort, group[middle - 1]),
			  view_line(sort, group[middle])) > 0)
		merge_halves(sort, group, middle, n);
}

/* Write n lines that tie. Returns as write_line(). */
static int write_group(struct line_sort *sort, size_t n, bool continues)
{
	int r = 1;

	if (continues)
		sort_group(sort, sort->group, n);
	for (size_t i = 0; i < n && r > 0; i++)
		r = write_line(sort, sort->group[i]);
	return r;
}

static int write_sorted(struct line_sort *sort, struct gsort *engine);

/* Lines that tie, too many for memory: their offsets in a temporary file. */
struct tied_lines {
	struct file file;
	uint64_t n, n_written;
	size_t n_buffered; /* in sort->group */
	uint64_t first;    /* the offset of the first line */
	size_t n_shared;   /* bytes that all of their keys begin with */
	bool all_equal;
};

static int flush_tied_lines(struct line_sort *sort, struct tied_lines *lines)
{
	int r = file_write_at(&lines->file, lines->n_written * sizeof *sort->group, sort->group,
			      lines->n_buffered * sizeof *sort->group);

	lines->n_written += lines->n_buffered;
	lines->n_buffered = 0;
	return r < 0 ? fail(r, "temporary file: cannot write: %m") : 0;
}

/* Shorten what all keys share by what a line shares with the first one. */
static void share_with_first(struct line_sort *sort, struct tied_lines *lines, uint64_t offset)
{
	const struct line_view first = view_key(sort, view_line(sort, lines->first), &sort->key);
	const struct line_view key = view_key(sort, view_line(sort, offset), &sort->other_key);
	const size_t n = first.nbytes < key.nbytes ? first.nbytes : key.nbytes;
	size_t i = 0;

	if (lines->n_shared > n)
		lines->n_shared = n;
	while (i < lines->n_shared && first.bytes[i] == key.bytes[i])
		i++;
	lines->n_shared = i;
	lines->all_equal &= first.nbytes == key.nbytes && i == n;
}

/* Take the lines in sort->group, and those that follow in the stream with the same prefix. */
static int collect_tied_lines(struct line_sort *sort, struct record_stream *stream,
			      const unsigned char *prefix, struct tied_lines *lines)
{
	const struct line_record *record = NULL;
	int r = 0;

	for (size_t i = 0; i < lines->n_buffered; i++)
		share_with_first(sort, lines, sort->group[i]);
	while (r == 0) {
		if (lines->n_buffered == MAX_GROUP_N)
			r = flush_tied_lines(sort, lines);
		if (r == 0)
			r = peek_record(stream, &record);
		if (r < 0 || !record || memcmp(record->prefix, prefix, PREFIX_NBYTES) != 0)
			break;
		share_with_first(sort, lines, record->offset);
		sort->group[lines->n_buffered++] = record->offset;
		lines->n++;
		stream->next++;
	}
	return r < 0 ? r : flush_tied_lines(sort, lines);
}

/* Read the offsets back and pass them to `take`, until it returns <= 0. */
static int replay_tied_lines(struct line_sort *sort, struct tied_lines *lines,
			     int (*take)(struct line_sort *sort, uint64_t offset, void *context),
			     void *context)
{
	uint64_t *offsets = malloc(MAX_GROUP_N * sizeof *offsets);
	int r = offsets ? 1 : fail(-ENOMEM, "no memory for %d lines", MAX_GROUP_N);

	for (uint64_t begin = 0; begin < lines->n && r > 0; begin += MAX_GROUP_N) {
		const uint64_t rest = lines->n - begin;
		const size_t n = rest < MAX_GROUP_N ? (size_t)rest : MAX_GROUP_N;

		r = file_read_at(&lines->file, begin * sizeof *offsets, offsets,
				 n * sizeof *offsets);
		r = r < 0 ? fail(r, "temporary file: cannot read: %m") : 1;
		for (size_t i = 0; i < n && r > 0; i++)
			r = take(sort, offsets[i], context);
	}
	free(offsets);
	return r;
}

static int write_tied_line(struct line_sort *sort, uint64_t offset, void *context)
{
	(void)context;
	return write_line(sort, offset);
}

struct subsort {
	struct gsort *engine;
	size_t depth;
};

static int put_tied_line(struct line_sort *sort, uint64_t offset, void *context)
{
	const struct subsort *subsort = context;
	struct line_record record = { .offset = offset };
	int r;

	make_prefix(sort, view_key(sort, view_line(sort, offset), &sort->key), subsort->depth,
		    record.prefix);
	r = put_records(subsort->engine, &record, 1);
	return r < 0 ? r : 1;
}

/* Sort the lines by their keys behind what all of these share, and write them. */
static int sort_tied_lines(struct line_sort *sort, struct tied_lines *lines)
{
	struct subsort subsort = { .depth = lines->n_shared };
	int r = open_engine(sort, NULL, &subsort.engine);

	if (r < 0)
		return r;
	r = replay_tied_lines(sort, lines, put_tied_line, &subsort);
	if (r > 0) {
		r = gsort_finish(subsort.engine);
		if (r < 0)
			fail_engine(subsort.engine, r);
		else
			r = write_sorted(sort, subsort.engine);
	}
	gsort_close(subsort.engine);
	return r;
}

/*
 * Sort the n lines in sort->group, and those that follow in the stream with the same prefix, by the
 * rest of their keys, and write them. Returns as write_line().
 */
static int write_large_group(struct line_sort *sort, struct record_stream *stream,
			     const unsigned char *prefix, size_t n)
{
	struct tied_lines lines = { .n = n,
				    .n_buffered = n,
				    .first = sort->group[0],
				    .n_shared = SIZE_MAX,
				    .all_equal = true };
	int r = line_text_open_temporary(sort->calls, sort->params->temp_directory, &lines.file);

	if (r < 0)
		return r;
	r = collect_tied_lines(sort, stream, prefix, &lines);
	if (r == 0)
		r = lines.all_equal ? replay_tied_lines(sort, &lines, write_tied_line, NULL) :
				      sort_tied_lines(sort, &lines);
	file_close(&lines.file);
	return r;
}

/* Write the lines of one prefix. Returns as write_line(). */
static int write_next_group(struct line_sort *sort, struct record_stream *stream)
{
	const struct line_record *record = &stream->records[stream->next];
	unsigned char prefix[PREFIX_NBYTES];
	const bool continues = prefix_continues(sort, record->prefix);
	size_t n = 0;
	int r = 0;

	memcpy(prefix, record->prefix, sizeof prefix);
	while (record && memcmp(record->prefix, prefix, sizeof prefix) == 0) {
		if (n == MAX_GROUP_N && continues)
			return write_large_group(sort, stream, prefix, n);
		if (n == MAX_GROUP_N) { /* equal keys need no order */
			r = write_group(sort, n, false);
			if (r <= 0)
				return r;
			n = 0;
		}
		sort->group[n++] = record->offset;
		stream->next++;
		r = peek_record(stream, &record);
		if (r < 0)
			return r;
	}
	return write_group(sort, n, continues);
}

/* Write the lines that the engine returns. Returns as write_line(). */
static int write_sorted(struct line_sort *sort, struct gsort *engine)
{
	struct record_stream stream = { .sort = engine };
	const struct line_record *record;
	int r = 1;

	stream.records = malloc(BATCH_N * sizeof *stream.records);
	if (!stream.records)
		return fail(-ENOMEM, "no memory for %d lines", BATCH_N);
	while (r > 0) {
		r = peek_record(&stream, &record);
		if (r < 0)
			break;
		r = 1;
		if (!record)
			break;
		r = write_next_group(sort, &stream);
	}
	free(stream.records);
	return r;
}

/* --- A whole sort --- */

static int write_header(struct line_sort *sort)
{
	const struct line_segment *first = sort->text.segments;
	uint64_t offset = first->base;
	int r = 0;

	for (uint64_t i = 0; i < sort->params->n_header_lines && r == 0; i++) {
		struct line_view line;

		if (sort->text.n_segments == 0 || offset - first->base >= first->nbytes)
			break;
		line = view_line(sort, offset);
		r = queue_line(sort, offset);
		offset += line.nbytes + 1;
	}
	return r;
}

static int sort_text(struct line_sort *sort)
{
	struct gsort *engine;
	int r = open_engine(sort, sort->params->memory ? sort->params->memory : "", &engine);

	if (r < 0)
		return r;
	r = put_text(sort, engine);
	if (r == 0) {
		r = gsort_finish(engine);
		if (r < 0)
			fail_engine(engine, r);
	}
	if (r == 0)
		r = write_header(sort);
	if (r == 0)
		r = write_sorted(sort, engine);
	gsort_close(engine);
	if (r >= 0)
		r = flush_lines(sort);
	if (r == 0)
		r = check_memory(sort);
	return r < 0 ? r : line_text_check(&sort->text);
}

static int write_output(const struct syscalls *calls, struct line_sort *sort)
{
	struct line_writer *writer = &sort->writer;
	int r = output_open(calls, sort->params->output, OUTPUT_SIZE_UNKNOWN, &writer->output);

	if (r < 0)
		return r;
	r = sort_text(sort);
	if (r == 0)
		return output_commit(writer->output, OUTPUT_UNSYNCED);
	output_abort(writer->output);
	return r;
}

static int open_line_sort(const struct syscalls *calls, const struct line_sort_params *params,
			  struct line_sort *ret_sort)
{
	*ret_sort = (struct line_sort){
		.params = params,
		.keys = params->keys,
		.calls = calls,
		.writer = { .limit = params->limit,
			    .lines = malloc(PENDING_N * sizeof(uint64_t)),
			    .starts = malloc((PENDING_N + 1) * sizeof(uint64_t)) },
		.group = malloc(MAX_GROUP_N * sizeof(uint64_t)),
		.merged = malloc(MAX_GROUP_N * sizeof(uint64_t)),
	};
	if (!ret_sort->writer.lines || !ret_sort->writer.starts || !ret_sort->group ||
	    !ret_sort->merged || thread_pool_open(params->n_threads, &ret_sort->threads) < 0)
		return fail(-ENOMEM, "no memory for a sort of lines");
	return line_text_open(calls, params->inputs, params->n_inputs, params->temp_directory,
			      &ret_sort->text);
}

static void close_line_sort(struct line_sort *sort)
{
	line_text_close(&sort->text);
	line_key_buffer_free(&sort->key);
	line_key_buffer_free(&sort->other_key);
	for (unsigned i = 0; i < N_TASKS; i++)
		line_key_buffer_free(&sort->task_keys[i]);
	thread_pool_close(sort->threads);
	free(sort->writer.lines);
	free(sort->writer.starts);
	free(sort->group);
	free(sort->merged);
}

int line_sort_run(const struct syscalls *calls, const struct line_sort_params *params)
{
	struct line_sort sort;
	int r = open_line_sort(calls, params, &sort);

	if (r == 0)
		r = write_output(calls, &sort);
	close_line_sort(&sort);
	return r;
}

/* --- Checking the order --- */

static int report_disorder(const struct line_segment *segment, uint64_t number,
			   struct line_view line, struct line_disorder *ret_disorder)
{
	*ret_disorder = (struct line_disorder){ .path = segment->name,
						.number = number,
						.line = malloc(line.nbytes + 1),
						.nbytes = line.nbytes };
	if (!ret_disorder->line)
		return fail(-ENOMEM, "no memory for a line");
	if (line.nbytes)
		memcpy(ret_disorder->line, line.bytes, line.nbytes);
	return 0;
}

static int check_segment(struct line_sort *sort, const struct line_segment *segment,
			 struct line_disorder *ret_disorder)
{
	uint64_t position = 0, number = 0;
	struct line_view last = { 0 };

	for (; position < segment->nbytes; number++) {
		const struct line_view line = view_line(sort, segment->base + position);

		position += line.nbytes + 1;
		if (number < sort->params->n_header_lines)
			continue;
		if (number > sort->params->n_header_lines) {
			const int order = compare_lines(sort, last, line);

			if (order > 0 || (order == 0 && sort->keys->unique))
				return report_disorder(segment, number + 1, line, ret_disorder);
		}
		last = line;
	}
	return 0;
}

int line_sort_check(const struct syscalls *calls, const struct line_sort_params *params,
		    struct line_disorder *ret_disorder)
{
	struct line_sort sort;
	int r = open_line_sort(calls, params, &sort);

	*ret_disorder = (struct line_disorder){ 0 };
	if (r == 0 && sort.text.n_segments > 0)
		r = check_segment(&sort, &sort.text.segments[0], ret_disorder);
	if (r == 0)
		r = check_memory(&sort);
	if (r == 0)
		r = line_text_check(&sort.text);
	close_line_sort(&sort);
	return r;
}
