/*
 * input_info - information about an input, and the memory to read it (see input.h)
 */
#include "io/input/input.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "io/codec/decoder.h"
#include "io/input/input_internal.h"
#include "src/base/diagnostics.h"
#include "src/base/size.h"

void input_set_max_window(struct input *input, uint64_t nbytes)
{
	input->table.max_window_nbytes = nbytes;
	for (size_t i = 0; i < input->n_sources; i++)
		source_set_max_window(&input->sources[i].source, nbytes);
}

void input_limit_windows(struct input *input, uint64_t memory_nbytes, bool allows_planned)
{
	const uint64_t nbytes = memory_nbytes / DECODER_UNPLANNED_WINDOW_DIVISOR;

	for (size_t i = 0; i < input->n_sources && !allows_planned; i++)
		input->sources[i].source.window_nbytes = 0;
	input_set_max_window(input, nbytes < ZSTD_DEFAULT_WINDOW_NBYTES ?
					    ZSTD_DEFAULT_WINDOW_NBYTES :
				    nbytes < ZSTD_MAX_WINDOW_NBYTES ? nbytes :
								      ZSTD_MAX_WINDOW_NBYTES);
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

/* Report that `what` needs nbytes, more than the memory limit and the overhead. Returns -E2BIG. */
static int fail_memory(uint64_t memory_nbytes, uint64_t nbytes, uint64_t sufficient_mib,
		       const char *what)
{
	return fail(-E2BIG,
		    "%s of memory, plus %d MiB for small allocations, is too little: %s needed for "
		    "%s; use -S of at least %" PRIu64 "M",
		    size_format_down(memory_nbytes).text, INPUT_OVERHEAD_NBYTES >> 20,
		    size_format_up(nbytes).text, what, sufficient_mib);
}

/* Return the memory limit, rounded up to MiB, that suffices for nbytes. */
static uint64_t sufficient_mib(uint64_t nbytes)
{
	return ((nbytes - INPUT_OVERHEAD_NBYTES - 1) >> 20) + 1;
}

/* Check that nbytes fit in the limit. The hint has another MiB, which a sort needs. */
static int check_memory(uint64_t memory_nbytes, uint64_t nbytes)
{
	return fits(memory_nbytes, nbytes) ?
		       0 :
		       fail_memory(memory_nbytes, nbytes, sufficient_mib(nbytes) + 1,
				   "the names and trailers of inputs");
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
				zst_reader_memory(input->sources[i].source.zst_reader).frame_nbytes;
	for (size_t i = 0; i < input->n_sources && frames_nbytes; i++)
		if (input->sources[i].source.zst_reader)
			zst_reader_set_frame_cache(input->sources[i].source.zst_reader,
						   (size_t)(nbytes / frames_nbytes));
}

/* Return the memory for streams, which are read one after the other; 0: none is compressed. */
static uint64_t stream_memory_nbytes(const struct input *input)
{
	uint64_t max_window_nbytes = 0;

	for (size_t i = 0; i < input->n_sources; i++) {
		const uint64_t window_nbytes =
			source_stream_window_nbytes(&input->table, &input->sources[i].source);

		if (window_nbytes > max_window_nbytes)
			max_window_nbytes = window_nbytes;
	}
	return max_window_nbytes ? decoder_memory_nbytes(max_window_nbytes) : 0;
}

struct input_content input_content(const struct input *input)
{
	struct input_content content = { .n_files = input->n_sources, .is_npy = input->npy };

	for (size_t i = 0; i < input->n_sources; i++) {
		const struct source *source = &input->sources[i].source;

		content.n_compressed += source->compression != DECODER_NONE;
		content.n_unprobed += source->is_stream && !source->compressed_end &&
				      !source->is_started;
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

uint64_t input_memory_nbytes(const struct input *input, unsigned n_readers, bool in_order)
{
	uint64_t nbytes = stream_memory_nbytes(input);
	uint64_t cache_nbytes = 0, thread_nbytes = 0, frame_nbytes = 0;

	for (size_t i = 0; i < input->n_sources; i++) {
		const struct input_source *entry = &input->sources[i];
		const struct zst_reader *reader = entry->source.zst_reader;
		const struct zst_reader_memory memory = reader ? zst_reader_memory(reader) :
								 (struct zst_reader_memory){ 0 };

		/* The name is a command line argument or in a list, and in an array of pointers. */
		nbytes += sizeof *entry + sizeof(char *) + strlen(entry->source.name) + 1 +
			  entry->trailer_nbytes + memory.index_nbytes;
		cache_nbytes += memory.cache_nbytes;
		if (memory.thread_nbytes > thread_nbytes)
			thread_nbytes = memory.thread_nbytes;
		if (memory.frame_nbytes > frame_nbytes)
			frame_nbytes = memory.frame_nbytes;
	}
	/* Each reader needs cached frames at both ends of its part; consumed ones are not kept. */
	if (in_order && cache_nbytes > 2 * n_readers * frame_nbytes)
		cache_nbytes = 2 * n_readers * frame_nbytes;
	return nbytes + cache_nbytes + n_readers * thread_nbytes;
}

int input_check_reading_memory(const struct input *input, uint64_t memory_nbytes,
			       uint64_t thread_nbytes, unsigned *n_threads)
{
	for (;; (*n_threads)--) {
		const uint64_t nbytes =
			input_memory_nbytes(input, *n_threads, true) + *n_threads * thread_nbytes;

		if (nbytes <= memory_nbytes + INPUT_OVERHEAD_NBYTES)
			return 0;
		if (*n_threads == 1)
			return fail_memory(memory_nbytes, nbytes, sufficient_mib(nbytes),
					   "reading the inputs");
	}
}

uint64_t input_total_nbytes(const struct input *input)
{
	return input->total_nbytes;
}

const char *input_stream_name(const struct input *input)
{
	for (size_t i = 0; i < input->n_sources; i++)
		if (input->sources[i].source.is_stream)
			return input->sources[i].source.name;
	return NULL;
}

size_t input_n_files(const struct input *input)
{
	return input->n_sources;
}

struct input_extent input_file_extent(const struct input *input, size_t i)
{
	const struct input_source *entry = &input->sources[i];

	assert(!input->is_serial && i < input->n_sources);
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

bool input_has_manifest_file(const struct input *input, struct file_id identity)
{
	const struct part_inputs *part_inputs = input->part_inputs;

	for (size_t i = 0; part_inputs && i < part_inputs->n_groups; i++)
		if (part_inputs->groups[i].is_manifest &&
		    file_id_equal(part_inputs->groups[i].identity, identity))
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

uint64_t input_start_offset(const struct input *input, struct file_id identity)
{
	for (size_t i = 0; i < input->n_sources; i++) {
		const struct source *source = &input->sources[i].source;

		if (source->start_offset && file_id_equal(source->identity, identity))
			return source->start_offset;
	}
	return 0;
}
