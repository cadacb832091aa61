/*
 * input_info - what is known of an input, and what it takes to read it (see input.h)
 */
#include "io/input/input.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "io/codec/zst_stream.h"
#include "io/input/input_stream.h"
#include "io/input/input_internal.h"
#include "src/base/diagnostics.h"
#include "src/base/size.h"

void input_set_max_window(struct input *input, uint64_t nbytes)
{
	input->table.max_window_nbytes = nbytes;
}

uint64_t input_max_window_nbytes(const struct input *input)
{
	return input->table.max_window_nbytes;
}

static uint64_t names_nbytes(size_t n, uint64_t text_nbytes)
{
	return n * (sizeof(struct input_source) + sizeof(char *)) + text_nbytes;
}

static bool fits(uint64_t memory_nbytes, uint64_t nbytes)
{
	return memory_nbytes == 0 || nbytes <= INPUT_OVERHEAD_NBYTES ||
	       nbytes - INPUT_OVERHEAD_NBYTES <= memory_nbytes;
}

/* A sort takes a MiB besides. */
static int check_memory(uint64_t memory_nbytes, uint64_t nbytes)
{
	char available[32], needed[32];

	if (fits(memory_nbytes, nbytes))
		return 0;
	size_format_down(memory_nbytes, available);
	size_format_up(nbytes, needed);
	return fail(
		-E2BIG,
		"%s of memory, and %d MiB besides, are too little: this would take %s for inputs "
		"and their tails; it needs -S of at least %" PRIu64 "M",
		available, INPUT_OVERHEAD_NBYTES >> 20, needed,
		((nbytes - INPUT_OVERHEAD_NBYTES - 1) >> 20) + 2);
}

bool input_names_fit(uint64_t memory_nbytes, size_t n, uint64_t text_nbytes)
{
	return fits(memory_nbytes, names_nbytes(n, text_nbytes));
}

int input_check_names(uint64_t memory_nbytes, size_t n, uint64_t text_nbytes)
{
	return check_memory(memory_nbytes, names_nbytes(n, text_nbytes));
}

int input_check_state_memory(const struct input *input)
{
	return check_memory(input->framing.memory_nbytes, input->state_nbytes);
}

void input_set_frame_cache(struct input *input, uint64_t nbytes)
{
	uint64_t frames_nbytes = 0;

	for (size_t i = 0; i < input->n_sources; i++)
		if (input->sources[i].source.zst_reader)
			frames_nbytes +=
				zst_reader_frame_nbytes(input->sources[i].source.zst_reader);
	for (size_t i = 0; i < input->n_sources && frames_nbytes; i++)
		if (input->sources[i].source.zst_reader)
			zst_reader_set_frame_cache(input->sources[i].source.zst_reader,
						   (size_t)(nbytes / frames_nbytes));
}

/* Of streams, which are read one after the other; 0 if none of them is compressed. */
static uint64_t stream_memory_nbytes(const struct input *input)
{
	uint64_t max_window_nbytes = 0;

	for (size_t i = 0; i < input->n_sources; i++) {
		const struct source *source = &input->sources[i].source;
		const uint64_t window_nbytes = source->window_nbytes ?
						       source->window_nbytes :
						       input->table.max_window_nbytes;

		if (source_may_be_compressed(source) && window_nbytes > max_window_nbytes)
			max_window_nbytes = window_nbytes;
	}
	return max_window_nbytes ? zst_stream_memory_nbytes(max_window_nbytes) : 0;
}

struct input_content input_content(const struct input *input)
{
	struct input_content content = { .n_files = input->n_sources, .is_npy = input->npy };

	for (size_t i = 0; i < input->n_sources; i++) {
		const struct source *source = &input->sources[i].source;

		content.n_compressed += source->zst_end || source->zst_stream;
		content.n_unprobed += source->is_stream && !source->zst_end && !source->is_started;
	}
	return content;
}

bool input_is_compressed(const struct input *input)
{
	for (size_t i = 0; i < input->n_sources; i++)
		if (input->sources[i].source.zst_reader)
			return true;
	return false;
}

/* What a source takes as long as there is an input. */
static uint64_t source_memory_nbytes(const struct input_source *entry)
{
	const struct zst_reader *reader = entry->source.zst_reader;

	/* The name is in an argument or a list of names, and in a list of pointers. */
	return sizeof *entry + sizeof(char *) + strlen(entry->source.name) + 1 +
	       entry->trailer_nbytes + (reader ? zst_reader_index_nbytes(reader) : 0);
}

uint64_t input_memory_nbytes(const struct input *input, unsigned n_readers, bool in_order)
{
	uint64_t nbytes = stream_memory_nbytes(input);
	uint64_t cached_nbytes = 0, reader_nbytes = 0, frame_nbytes = 0;

	for (size_t i = 0; i < input->n_sources; i++) {
		const struct zst_reader *reader = input->sources[i].source.zst_reader;

		nbytes += source_memory_nbytes(&input->sources[i]);
		if (!reader)
			continue;
		cached_nbytes += zst_reader_memory_nbytes(reader);
		if (zst_reader_thread_nbytes(reader) > reader_nbytes)
			reader_nbytes = zst_reader_thread_nbytes(reader);
		if (zst_reader_frame_nbytes(reader) > frame_nbytes)
			frame_nbytes = zst_reader_frame_nbytes(reader);
	}
	/* Each reader is at both ends of its part, and what has been given out is not kept. */
	if (in_order && cached_nbytes > 2 * n_readers * frame_nbytes)
		cached_nbytes = 2 * n_readers * frame_nbytes;
	return nbytes + cached_nbytes + n_readers * reader_nbytes;
}

uint64_t input_total_nbytes(const struct input *input)
{
	return input->total_nbytes;
}

size_t input_n_files(const struct input *input)
{
	return input->n_sources;
}

struct input_extent input_file_extent(const struct input *input, size_t i)
{
	const struct input_source *entry = &input->sources[i];

	assert(!input_is_serial(input) && i < input->n_sources);
	return (struct input_extent){ .path = entry->source.name,
				      .position = entry->position,
				      .nbytes = entry->source.nbytes };
}

const struct framing *input_framing(const struct input *input)
{
	return &input->framing;
}

struct input_trailer input_trailer(const struct input *input, size_t i)
{
	assert(i < input->n_sources);
	return (struct input_trailer){ input->sources[i].trailer,
				       input->sources[i].trailer_nbytes };
}

static bool has_manifest(const struct part_inputs *part_inputs, struct file_id identity)
{
	for (size_t i = 0; part_inputs && i < part_inputs->n_groups; i++)
		if (part_inputs->groups[i].is_manifest &&
		    file_id_equal(part_inputs->groups[i].identity, identity))
			return true;
	return false;
}

bool input_has_manifest_file(const struct input *input, struct file_id identity)
{
	if (has_manifest(input->part_inputs, identity))
		return true;
	for (size_t i = 0; i < input->n_sources; i++)
		if (input->sources[i].source.manifest &&
		    file_id_equal(input->sources[i].source.identity, identity))
			return true;
	return false;
}

size_t input_n_groups(const struct input *input)
{
	return input->part_inputs ? input->part_inputs->n_groups : input->n_sources;
}

struct input_extent input_group_extent(const struct input *input, size_t i)
{
	const struct input_group *group;
	struct input_extent extent;

	if (!input->part_inputs)
		return input_file_extent(input, i);
	group = &input->part_inputs->groups[i];
	extent = input_file_extent(input, group->first);
	for (size_t file = 1; file < group->n; file++)
		extent.nbytes += input_file_extent(input, group->first + file).nbytes;
	if (group->is_manifest)
		extent.path = group->path;
	return extent;
}

bool input_has_file(const struct input *input, struct file_id identity)
{
	for (size_t i = 0; i < input->n_sources; i++)
		if (file_id_equal(input->sources[i].source.identity, identity))
			return true;
	return false;
}

int input_check_state(const struct input *input)
{
	int r = 0;

	for (size_t i = 0; i < input->n_sources && r == 0; i++)
		r = source_check_state(&input->sources[i].source);
	return r;
}

uint64_t input_start_offset(const struct input *input, struct file_id identity)
{
	for (size_t i = 0; i < input->n_sources; i++) {
		const struct source *source = &input->sources[i].source;

		if (source->start_offset && file_id_equal(source->identity, identity))
			return source->start_offset;
	}
	return 0;
}
