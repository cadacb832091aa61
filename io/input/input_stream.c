/*
 * input_stream - inputs with a pipe among them (see input_stream.h)
 */
#include "io/input/input_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/diagnostics.h"

int input_allocate_trailer(struct input_source *entry, size_t nbytes)
{
	entry->trailer = malloc(nbytes);
	if (!entry->trailer)
		return fail(-ENOMEM, "%s: no memory for the last %zu bytes", entry->source.name,
			    nbytes);
	entry->trailer_nbytes = nbytes;
	return 0;
}

/* Read nbytes of the current source. The end of the input is told by *ret_nbytes. */
static int read_current(struct input *input, void *buffer, size_t nbytes, size_t *ret_nbytes)
{
	return source_read_next(&input->sources[input->current].source, input->cancel_fd, buffer,
				nbytes, ret_nbytes);
}

static int read_header(struct input *input, struct input_source *entry, void *buffer, size_t nbytes)
{
	size_t n;
	const int r = read_current(input, buffer, nbytes, &n);

	if (r < 0)
		return r;
	return n == nbytes ? 0 : framing_fail_short(&input->framing, entry->source.name, nbytes, n);
}

/* Open a source and start it, if that was not done ahead. */
static int start_source(struct input *input, struct source *source)
{
	int r;

	if (source->is_started)
		return 0;
	r = source_acquire(&input->table, source);
	return r < 0 ? r : source_start(&input->table, source, input->cancel_fd);
}

/* Make the current source ready to be read, if it is not. */
static int start_current(struct input *input)
{
	struct input_source *entry = &input->sources[input->current];
	int r;

	if (atomic_load(&input->n_started) > input->current)
		return 0;
	r = start_source(input, &entry->source);
	if (r < 0)
		return r;
	entry->position = input->next;
	atomic_store(&input->n_started, input->current + 1);
	return input_parse_header(input, entry, read_header);
}

/* Without opening anything, and without asking somebody to type. */
static bool can_probe_without_waiting(const struct source *source)
{
	return source->zst_end || source->endpoint.kind == ENDPOINT_RENDEZVOUS ||
	       (!source->path && !isatty(source->endpoint.fd));
}

int input_probe_pipe(struct input *input, bool may_open)
{
	for (size_t i = 0; i < input->n_sources; i++) {
		struct source *source = &input->sources[i].source;

		if (source->is_stream) {
			if (!may_open && !can_probe_without_waiting(source))
				return 0;
			/* The first of all says what is in all of them. */
			return i == 0 ? start_current(input) : start_source(input, source);
		}
	}
	return 0;
}

/* How many of the nbytes that a source turned out to have behind its header are records? */
static int measure_current(const struct input *input, uint64_t nbytes, uint64_t *ret_records_nbytes)
{
	const struct input_source *entry = &input->sources[input->current];
	const struct source *source = &entry->source;
	int r;

	if (source->is_stream) {
		r = source_check_end(source);
		if (r == 0)
			r = input_check_count(input, entry, nbytes);
		if (r < 0)
			return r;
		return input_measure(input, entry, entry->header_nbytes + nbytes,
				     ret_records_nbytes);
	}
	if (nbytes != source->nbytes + source->trailing_nbytes)
		return source_fail_changed(source, nbytes);
	*ret_records_nbytes = source->nbytes;
	return 0;
}

/*
 * The current source has come to its end, which is also `end` of what was read.
 * *ret_trailer_nbytes of that are no records.
 */
static int finish_current(struct input *input, const unsigned char *end, size_t *ret_trailer_nbytes)
{
	struct input_source *entry = &input->sources[input->current];
	const uint64_t nbytes = input->next - entry->position;
	uint64_t records_nbytes;
	size_t trailer_nbytes = 0;
	int r = measure_current(input, nbytes, &records_nbytes);

	if (r == 0)
		trailer_nbytes = (size_t)(nbytes - records_nbytes);
	if (trailer_nbytes >=
	    input->framing.record_nbytes) /* which have been given out as records */
		r = fail(-EINVAL,
			 "%s: ends with %zu bytes that are no record, which shows too late where "
			 "inputs are read in their order: a pipe, or what is compressed without an "
			 "index, is among them",
			 entry->source.name, trailer_nbytes);
	else if (trailer_nbytes && entry->source.is_stream &&
		 input->framing.partial == PARTIAL_KEEP) {
		input->state_nbytes += trailer_nbytes;
		r = input_check_state_memory(input);
		if (r == 0)
			r = input_allocate_trailer(entry, trailer_nbytes);
		if (r == 0)
			memcpy(entry->trailer, end - trailer_nbytes, trailer_nbytes);
	}
	source_release(&input->table, &entry->source);
	input->current++;
	input->next -= trailer_nbytes;
	*ret_trailer_nbytes = trailer_nbytes;
	return r;
}

int input_read_serial(struct input *input, void *buffer, size_t nbytes, uint64_t *ret_position,
		      size_t *ret_nbytes)
{
	unsigned char *const to = buffer;
	const uint64_t position = input->next;
	size_t n_filled = 0;

	while (n_filled < nbytes && input->current < input->n_sources) {
		const size_t n_wanted = nbytes - n_filled;
		size_t n, trailer_nbytes = 0;
		int r = start_current(input);

		if (r == 0)
			r = read_current(input, to + n_filled, n_wanted, &n);
		if (r < 0)
			return r;
		n_filled += n;
		input->next += n;
		if (n < n_wanted)
			r = finish_current(input, to + n_filled, &trailer_nbytes);
		if (r < 0)
			return r;
		n_filled -= trailer_nbytes;
	}
	*ret_position = position;
	*ret_nbytes = n_filled;
	return 0;
}
