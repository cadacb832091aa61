/*
 * around - what of the inputs is no record, around the records of the output (see around.h)
 */
#include "src/sort/around.h"

#include <string.h>

uint64_t around_nbytes(const struct input *input)
{
	uint64_t nbytes = input_framing(input)->skip_nbytes;

	for (size_t i = 0; i < input_n_files(input); i++)
		nbytes += input_tail(input, i).nbytes;
	return nbytes;
}

/* Everything before the records. */
static const void *header_of(const struct around *frame, uint64_t *ret_nbytes)
{
	const struct input *first = frame->merged ? input_runs_get(frame->merged, 0) : frame->input;

	*ret_nbytes = input_framing(first)->skip_nbytes;
	return input_header(first);
}

static struct input_tail tail_of(const struct around *frame, size_t i)
{
	return frame->merged ? input_tail(input_runs_get(frame->merged, i), 0) :
			       input_tail(frame->input, i);
}

int around_write_header(const struct around *frame, struct output *output)
{
	uint64_t nbytes;
	const void *header = header_of(frame, &nbytes);

	return nbytes ? output_write_at(output, 0, header, nbytes) : 0;
}

int around_write_tails(const struct around *frame, struct output *output, uint64_t offset)
{
	int r = 0;

	for (size_t i = 0; i < input_n_files(frame->input) && r == 0; i++) {
		const struct input_tail tail = tail_of(frame, i);

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

int around_verify(const struct around *frame, struct output *output, uint64_t tails_offset,
		  bool *ret_same)
{
	uint64_t nbytes;
	const void *header = header_of(frame, &nbytes);
	int r = verify_bytes(output, 0, header, nbytes, ret_same);

	for (size_t i = 0; i < input_n_files(frame->input) && r == 0 && *ret_same; i++) {
		const struct input_tail tail = tail_of(frame, i);

		r = verify_bytes(output, tails_offset, tail.data, tail.nbytes, ret_same);
		tails_offset += tail.nbytes;
	}
	return r;
}
