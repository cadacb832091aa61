/*
 * output_framing - what of the inputs is no record, around the records of the output (see output_framing.h)
 */
#include "src/sort/output_framing.h"

#include <errno.h>
#include <string.h>

#include "src/base/diagnostics.h"

uint64_t around_nbytes(const struct input *input, uint64_t header_nbytes)
{
	uint64_t nbytes = header_nbytes;

	for (size_t i = 0; i < input_n_files(input); i++)
		nbytes += input_tail(input, i).nbytes;
	return nbytes;
}

int around_make_header(const struct sort_spec *spec, const struct layout *layout,
		       const struct input *input, struct header *ret_header)
{
	const struct header_wish wish = {
		.keys = spec->keys,
		.n_keys = spec->n_keys,
		.count = spec->count,
		.count_is_be = layout->intake.count_is_be,
		.keys_only = spec->keys_only,
		.index = spec->index,
	};

	if (spec->records_only) {
		*ret_header = (struct header){ 0 };
		return 0;
	}
	return input_make_header(input, &wish, ret_header);
}

bool around_counts_first(const struct sort_spec *spec, const struct header *header, bool is_ordered)
{
	return header_counts(header) && spec->unique && is_ordered;
}

/* Is the number of records put in when it is known for sure? It can be, if the order is free. */
static bool is_late(const struct around *frame, const struct output *output)
{
	return header_counts(frame->header) && !output_is_ordered(output);
}

static int write_header(const struct around *frame, struct output *output, uint64_t n)
{
	struct header *header = frame->header;

	header_set_count(header, n);
	return header->nbytes ? output_write_at(output, 0, header->bytes, header->nbytes) : 0;
}

int around_prepare(const struct around *frame)
{
	const struct input *first = frame->merged ? input_runs_get(frame->merged, 0) : frame->input;
	struct header header;
	const int r = around_make_header(frame->spec, frame->layout, first, &header);

	if (r < 0)
		return r;
	header_free(frame->header);
	*frame->header = header;
	return 0;
}

int around_begin(const struct around *frame, struct output *output, uint64_t n_due)
{
	return is_late(frame, output) ? 0 : write_header(frame, output, n_due);
}

/* Inputs that were opened each by itself, or the one of all; and the files of all of them. */
static size_t n_inputs(const struct around *frame)
{
	return frame->merged ? input_runs_n(frame->merged) : 1;
}

static const struct input *input_at(const struct around *frame, size_t i)
{
	return frame->merged ? input_runs_get(frame->merged, i) : frame->input;
}

/* What is kept of the end of each file, in their order: the next of them. */
struct tails {
	const struct around *frame;
	size_t input, file;
};

static bool next_tail(struct tails *tails, struct input_tail *ret_tail)
{
	const struct around *frame = tails->frame;

	while (tails->input < n_inputs(frame) &&
	       tails->file == input_n_files(input_at(frame, tails->input))) {
		tails->input++;
		tails->file = 0;
	}
	if (tails->input == n_inputs(frame))
		return false;
	*ret_tail = input_tail(input_at(frame, tails->input), tails->file++);
	return true;
}

int around_finish(const struct around *frame, struct output *output, uint64_t n, bool is_last)
{
	uint64_t offset = frame->header->nbytes + n * frame->layout->output_nbytes;
	struct tails tails = { .frame = frame };
	struct input_tail tail;
	int r = is_late(frame, output) ? write_header(frame, output, n) : 0;

	while (is_last && r == 0 && next_tail(&tails, &tail)) {
		if (tail.nbytes)
			r = output_write_at(output, offset, tail.data, tail.nbytes);
		offset += tail.nbytes;
	}
	return r;
}

/* Read the nbytes at `offset` back: are they the same? */
static int verify_bytes(struct output *output, uint64_t offset, const void *bytes, uint64_t nbytes,
			bool *ret_same)
{
	const unsigned char *expected = bytes;
	unsigned char found[4096];
	uint64_t done = 0;

	for (*ret_same = true; done < nbytes && *ret_same; done += sizeof found) {
		const uint64_t left = nbytes - done;
		const size_t n = left < sizeof found ? (size_t)left : sizeof found;
		const int r = output_read_at(output, offset + done, found, n);

		if (r < 0)
			return r;
		*ret_same = memcmp(found, expected + done, n) == 0;
	}
	return 0;
}

int around_verify(const struct around *frame, struct output *output, uint64_t n, bool is_last,
		  bool *ret_same)
{
	uint64_t offset = frame->header->nbytes + n * frame->layout->output_nbytes;
	struct tails tails = { .frame = frame };
	struct input_tail tail;
	int r;

	header_set_count(frame->header, n);
	r = verify_bytes(output, 0, frame->header->bytes, frame->header->nbytes, ret_same);
	while (is_last && r == 0 && *ret_same && next_tail(&tails, &tail)) {
		r = verify_bytes(output, offset, tail.data, tail.nbytes, ret_same);
		offset += tail.nbytes;
	}
	return r;
}
