/*
 * input_stream - inputs with a pipe among them (see input_stream.h)
 */
#include "io/input/input_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/diagnostics.h"

int input_make_tail(struct placed_source *placed, size_t nbytes)
{
	placed->tail = malloc(nbytes);
	if (!placed->tail)
		return fail(-ENOMEM, "%s: no memory for the last %zu bytes", placed->source.name,
			    nbytes);
	placed->tail_nbytes = nbytes;
	return 0;
}

/* Read nbytes of the current source. The end of the input is told by *ret_nbytes. */
static int read_current(struct input *input, void *buffer, size_t nbytes, size_t *ret_nbytes)
{
	return source_read_next(&input->sources[input->current].source, input->cancel_fd, buffer,
				nbytes, ret_nbytes);
}

static int read_header(struct input *input, struct placed_source *placed, void *buffer,
		       size_t nbytes)
{
	size_t n;
	const int r = read_current(input, buffer, nbytes, &n);

	if (r < 0)
		return r;
	return n == nbytes ? 0 :
			     framing_fail_short(&input->framing, placed->source.name, nbytes, n);
}

/* Open a source and start it, if that was not done ahead. */
static int start(struct input *input, struct source *source)
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
	struct placed_source *placed = &input->sources[input->current];
	int r;

	if (atomic_load(&input->n_started) > input->current)
		return 0;
	r = start(input, &placed->source);
	if (r < 0)
		return r;
	placed->position = input->next;
	atomic_store(&input->n_started, input->current + 1);
	return input_take_header(input, placed, read_header);
}

/* Without opening anything, and without asking somebody to type. */
static bool is_at_hand(const struct source *source)
{
	return source->zst_end || source->given.kind == GIVEN_HANDOVER ||
	       (!source->path && !isatty(source->given.fd));
}

int input_look_ahead(struct input *input, bool may_open)
{
	for (size_t i = 0; i < input->n_sources; i++) {
		struct source *source = &input->sources[i].source;

		if (source->is_stream) {
			if (!may_open && !is_at_hand(source))
				return 0;
			/* The first of all says what is in all of them. */
			return i == 0 ? start_current(input) : start(input, source);
		}
	}
	return 0;
}

/* How many of the nbytes that a source turned out to have behind its header are records? */
static int measure_current(const struct input *input, uint64_t nbytes, uint64_t *ret_records_nbytes)
{
	const struct placed_source *placed = &input->sources[input->current];
	const struct source *source = &placed->source;
	int r;

	if (source->is_stream) {
		r = source_check_end(source);
		if (r == 0)
			r = input_check_count(input, placed, nbytes);
		if (r < 0)
			return r;
		return input_measure(input, placed, placed->header_nbytes + nbytes,
				     ret_records_nbytes);
	}
	if (nbytes != source->nbytes + source->n_after)
		return source_fail_changed(source, nbytes);
	*ret_records_nbytes = source->nbytes;
	return 0;
}

/*
 * The current source has come to its end, which is also `end` of what was read. *ret_tail_nbytes of
 * that are no records.
 */
static int finish_current(struct input *input, const unsigned char *end, size_t *ret_tail_nbytes)
{
	struct placed_source *placed = &input->sources[input->current];
	const uint64_t nbytes = input->next - placed->position;
	uint64_t records_nbytes;
	size_t tail_nbytes = 0;
	int r = measure_current(input, nbytes, &records_nbytes);

	if (r == 0)
		tail_nbytes = (size_t)(nbytes - records_nbytes);
	if (tail_nbytes >= input->framing.record_nbytes) /* which have been given out as records */
		r = fail(-EINVAL,
			 "%s: ends with %zu bytes that are no record, which shows too late where "
			 "inputs are read in their order: a pipe, or what is compressed without an "
			 "index, is among them",
			 placed->source.name, tail_nbytes);
	else if (tail_nbytes && placed->source.is_stream &&
		 input->framing.partial == PARTIAL_KEEP) {
		r = input_make_tail(placed, tail_nbytes);
		if (r == 0)
			memcpy(placed->tail, end - tail_nbytes, tail_nbytes);
	}
	source_release(&input->table, &placed->source);
	input->current++;
	input->next -= tail_nbytes;
	*ret_tail_nbytes = tail_nbytes;
	return r;
}

int input_read_serial(struct input *input, void *buffer, size_t nbytes, uint64_t *ret_position,
		      size_t *ret_nbytes)
{
	unsigned char *const to = buffer;
	const uint64_t position = input->next;
	size_t filled = 0;

	while (filled < nbytes && input->current < input->n_sources) {
		const size_t wanted = nbytes - filled;
		size_t n, tail_nbytes = 0;
		int r = start_current(input);

		if (r == 0)
			r = read_current(input, to + filled, wanted, &n);
		if (r < 0)
			return r;
		filled += n;
		input->next += n;
		if (n < wanted)
			r = finish_current(input, to + filled, &tail_nbytes);
		if (r < 0)
			return r;
		filled -= tail_nbytes;
	}
	*ret_position = position;
	*ret_nbytes = filled;
	return 0;
}
