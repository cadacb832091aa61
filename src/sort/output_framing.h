/*
 * output_framing - what of the inputs is no record, around the records of the output
 *
 *	[ header ][ records ][ tails that are kept, in the order of the inputs ]
 *
 * The header is that of the first input, or one that says how many records there are. An output
 * that is written in order begins with it; then their number must be known before them.
 */
#pragma once

#include "io/output/output.h"
#include "src/plan/sort_spec.h"
#include "src/run/input_runs.h"

/* The inputs, and the output. */
struct output_framing {
	const struct sort_spec *spec; /* complete */
	const struct layout *layout;
	struct input *input;
	const struct input_runs *merge_inputs; /* read instead of `input`, or NULL */
	struct output_header *header;          /* of the output, as far as it is known */
};

/* What it will take of the output; only if the total size of `input` is known. */
uint64_t output_framing_nbytes(const struct input *input, uint64_t header_nbytes);

/*
 * The header of an output of the spec, which is complete, as far as it is known: in the end once
 * the inputs have been read. -ENOMEM after a message.
 */
int output_framing_make_header(const struct sort_spec *spec, const struct layout *layout,
			       const struct input *input, struct output_header *ret_header);

/*
 * Must it be known how many records there are before they are merged? If -u drops some of them, and
 * the output, which begins with their number, is written in order (is_ordered).
 */
bool output_framing_needs_count(const struct sort_spec *spec, const struct output_header *header,
				bool is_ordered);

/* All inputs have been read, or can be: make the header. 0, or -ENOMEM after a message. */
int output_framing_prepare(const struct output_framing *framing);

/*
 * Write what is in front of the records of an output, or make room for it; and, when n of them are
 * there, the rest: tails, if it is the last output. n_expected: the number of records, if it
 * is written in order. Both return 0 or a negative errno after a message.
 */
int output_framing_begin(const struct output_framing *framing, struct output *output,
			 uint64_t n_expected);
int output_framing_finish(const struct output_framing *framing, struct output *output, uint64_t n,
			  bool is_last);

/*
 * Read both back: are they what was written? Returns 0 and *ret_is_same; -ESPIPE without a
 * message if the output cannot be read, or another negative errno after one.
 */
int output_framing_verify(const struct output_framing *framing, struct output *output, uint64_t n,
			  bool is_last, bool *ret_is_same);
