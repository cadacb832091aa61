/*
 * frame - what of the inputs is no record, around the records of the output (see frame.h)
 */
#include "src/frame.h"

uint64_t frame_nbytes(const struct input *input)
{
	uint64_t nbytes = input_framing(input)->skip_nbytes;

	for (size_t i = 0; i < input_n_files(input); i++)
		nbytes += input_tail(input, i).nbytes;
	return nbytes;
}

int frame_write_header(const struct frame *frame, struct output *output)
{
	const struct input *first = frame->merged ? merge_inputs_get(frame->merged, 0) :
						    frame->input;
	const uint64_t nbytes = input_framing(first)->skip_nbytes;

	return nbytes ? output_write_at(output, 0, input_header(first), nbytes) : 0;
}

static struct input_tail tail_of(const struct frame *frame, size_t i)
{
	return frame->merged ? input_tail(merge_inputs_get(frame->merged, i), 0) :
			       input_tail(frame->input, i);
}

int frame_write_tails(const struct frame *frame, struct output *output, uint64_t offset)
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
