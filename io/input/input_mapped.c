/*
 * input_mapped - the records of an input where they lie in the page cache (see input_mapped.h)
 */
#include "io/input/input_mapped.h"

#include <errno.h>

#include "io/file/direct_io.h"
#include "io/input/input_internal.h"
#include "src/base/diagnostics.h"

/* --- opening --- */

/* The source is held. 1, or 0 if it should be read. */
static int map_acquired_source(const struct source *source, struct mapping *mapping)
{
	if (!direct_is_cached(&source->file, source->base, source->nbytes))
		return 0;
	return mapping_open(&source->file, source->base, source->nbytes, mapping) == 0;
}

static int map_source(struct source_table *table, struct input_source *entry)
{
	struct source *source = &entry->source;
	int r;

	if (source->zst_reader)
		return 0;
	if (source->nbytes == 0)
		return 1;
	r = source_acquire(table, source);
	if (r < 0)
		return r;
	r = map_acquired_source(source, &entry->mapping);
	source_release(table, source);
	return r;
}

int input_map(struct input *input)
{
	int r = input->total_nbytes != INPUT_SIZE_UNKNOWN && input->n_sources <= INPUT_MAX_MAPPED;

	for (size_t i = 0; i < input->n_sources && r > 0; i++)
		r = map_source(&input->table, &input->sources[i]);
	if (r <= 0)
		input_unmap(input);
	return r;
}

void input_unmap(struct input *input)
{
	for (size_t i = 0; i < input->n_sources; i++)
		mapping_close(&input->sources[i].mapping);
}

const void *input_mapped_file(const struct input *input, size_t i)
{
	return input->sources[i].mapping.bytes;
}

/* --- looking at it --- */

static int check_source_size(struct input *input, struct source *source)
{
	int r = source_acquire(&input->table, source);

	if (r < 0)
		return r;
	r = source_check_size(source);
	source_release(&input->table, source);
	return r;
}

/* The part of the stream from `begin` to `end` that is in the source. */
static int prepare_mapped_range(struct input *input, struct input_source *entry, uint64_t begin,
				uint64_t end)
{
	struct source *source = &entry->source;
	const uint64_t source_end = entry->position + source->nbytes;

	begin = begin < entry->position ? entry->position : begin;
	end = end > source_end ? source_end : end;
	if (begin >= end)
		return 0;
	mapping_populate(&entry->mapping, begin - entry->position, end - begin);
	return end == source_end ? check_source_size(input, source) : 0;
}

int input_claim_mapped(struct input *input, size_t nbytes, uint64_t *ret_position,
		       size_t *ret_nbytes)
{
	uint64_t position;
	int r = atomic_load(&input->r);

	if (r < 0)
		return r;
	nbytes = input_claim(input, nbytes, &position);
	for (size_t i = 0; i < input->n_sources && r == 0; i++)
		r = prepare_mapped_range(input, &input->sources[i], position, position + nbytes);
	if (r < 0) {
		input_stop(input, r);
		return r;
	}
	*ret_position = position;
	*ret_nbytes = nbytes;
	return 0;
}

/* What has become of the file? */
static int fail_damaged_source(struct input *input, struct source *source)
{
	const int r = check_source_size(input, source);

	return r < 0 ? r :
		       fail(-EIO, "%s: a part of it could not be read, or was cut off meanwhile",
			    source->name);
}

int input_check_mapped(struct input *input)
{
	for (size_t i = 0; i < input->n_sources; i++)
		if (mapping_is_damaged(&input->sources[i].mapping))
			return fail_damaged_source(input, &input->sources[i].source);
	return 0;
}
