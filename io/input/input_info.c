/*
 * input_info - what is known of an input, and what it takes to read it (see input.h)
 */
#include "io/input/input.h"

#include <assert.h>
#include <string.h>

#include "io/codec/zst_stream.h"
#include "io/input/input_stream.h"
#include "io/input/input_internal.h"

void input_limit_windows(struct input *input, uint64_t nbytes)
{
	input->table.most_window_nbytes = nbytes;
}

uint64_t input_most_window_nbytes(const struct input *input)
{
	return input->table.most_window_nbytes;
}

void input_keep_frames(struct input *input, uint64_t nbytes)
{
	uint64_t frames_nbytes = 0;

	for (size_t i = 0; i < input->n_sources; i++)
		if (input->sources[i].source.zst_reader)
			frames_nbytes +=
				zst_reader_frame_nbytes(input->sources[i].source.zst_reader);
	for (size_t i = 0; i < input->n_sources && frames_nbytes; i++)
		if (input->sources[i].source.zst_reader)
			zst_reader_keep(input->sources[i].source.zst_reader,
					(size_t)(nbytes / frames_nbytes));
}

/* Of streams, which are read one after the other; 0 if none of them is compressed. */
static uint64_t stream_nbytes(const struct input *input)
{
	uint64_t most_nbytes = 0;

	for (size_t i = 0; i < input->n_sources; i++) {
		const struct source *source = &input->sources[i].source;
		const uint64_t window_nbytes = source->window_nbytes ?
						       source->window_nbytes :
						       input->table.most_window_nbytes;

		if (source_may_be_compressed(source) && window_nbytes > most_nbytes)
			most_nbytes = window_nbytes;
	}
	return most_nbytes ? zst_stream_memory_nbytes(most_nbytes) : 0;
}

struct input_content input_content(const struct input *input)
{
	struct input_content content = { .n_files = input->n_sources, .is_npy = input->npy };

	for (size_t i = 0; i < input->n_sources; i++) {
		const struct source *source = &input->sources[i].source;

		content.n_compressed += source->zst_end || source->zst_stream;
		content.n_unseen += source->is_stream && !source->zst_end && !source->is_started;
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
static uint64_t source_nbytes(const struct placed_source *placed)
{
	const struct zst_reader *reader = placed->source.zst_reader;

	/* The name is in an argument or a list of names, and in a list of pointers. */
	return sizeof *placed + sizeof(char *) + strlen(placed->source.name) + 1 +
	       placed->tail_nbytes + (reader ? zst_reader_index_nbytes(reader) : 0);
}

uint64_t input_memory_nbytes(const struct input *input, unsigned n_readers, bool in_order)
{
	uint64_t nbytes = stream_nbytes(input);
	uint64_t kept_nbytes = 0, reader_nbytes = 0, frame_nbytes = 0;

	for (size_t i = 0; i < input->n_sources; i++) {
		const struct zst_reader *reader = input->sources[i].source.zst_reader;

		nbytes += source_nbytes(&input->sources[i]);
		if (!reader)
			continue;
		kept_nbytes += zst_reader_memory_nbytes(reader);
		if (zst_reader_thread_nbytes(reader) > reader_nbytes)
			reader_nbytes = zst_reader_thread_nbytes(reader);
		if (zst_reader_frame_nbytes(reader) > frame_nbytes)
			frame_nbytes = zst_reader_frame_nbytes(reader);
	}
	/* Each reader is at both ends of its part, and what has been given out is not kept. */
	if (in_order && kept_nbytes > 2 * n_readers * frame_nbytes)
		kept_nbytes = 2 * n_readers * frame_nbytes;
	return nbytes + kept_nbytes + n_readers * reader_nbytes;
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
	const struct placed_source *placed = &input->sources[i];

	assert(!input_is_serial(input) && i < input->n_sources);
	return (struct input_extent){ .path = placed->source.name,
				      .position = placed->position,
				      .nbytes = placed->source.nbytes };
}

const struct framing *input_framing(const struct input *input)
{
	return &input->framing;
}

struct input_tail input_tail(const struct input *input, size_t i)
{
	assert(i < input->n_sources);
	return (struct input_tail){ input->sources[i].tail, input->sources[i].tail_nbytes };
}

static bool has_list(const struct input_lists *lists, struct file_identity identity)
{
	for (size_t i = 0; lists && i < lists->n_groups; i++)
		if (lists->groups[i].is_list &&
		    file_identity_equal(lists->groups[i].identity, identity))
			return true;
	return false;
}

bool input_has_listed_file(const struct input *input, struct file_identity identity)
{
	if (has_list(input->lists, identity))
		return true;
	for (size_t i = 0; i < input->n_sources; i++)
		if (input->sources[i].source.list &&
		    file_identity_equal(input->sources[i].source.identity, identity))
			return true;
	return false;
}

size_t input_n_groups(const struct input *input)
{
	return input->lists ? input->lists->n_groups : input->n_sources;
}

struct input_extent input_group_extent(const struct input *input, size_t i)
{
	const struct input_group *group;
	struct input_extent extent;

	if (!input->lists)
		return input_file_extent(input, i);
	group = &input->lists->groups[i];
	extent = input_file_extent(input, group->first);
	for (size_t file = 1; file < group->n; file++)
		extent.nbytes += input_file_extent(input, group->first + file).nbytes;
	if (group->is_list)
		extent.path = group->path;
	return extent;
}

bool input_has_file(const struct input *input, struct file_identity identity)
{
	for (size_t i = 0; i < input->n_sources; i++)
		if (file_identity_equal(input->sources[i].source.identity, identity))
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

uint64_t input_nbytes_before(const struct input *input, struct file_identity identity)
{
	for (size_t i = 0; i < input->n_sources; i++) {
		const struct source *source = &input->sources[i].source;

		if (source->n_before && file_identity_equal(source->identity, identity))
			return source->n_before;
	}
	return 0;
}
