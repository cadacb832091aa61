/*
 * output_framing - what of the inputs is no record, around the records of the output (see
 * output_framing.h)
 */
#include "src/sort/output_framing.h"

#include <errno.h>
#include <string.h>

#include "src/base/diagnostics.h"

uint64_t output_framing_nbytes(const struct input *input, uint64_t header_nbytes)
{
	uint64_t nbytes = header_nbytes;

	for (size_t i = 0; i < input_n_files(input); i++)
		nbytes += input_trailer(input, i).nbytes;
	return nbytes;
}

int output_framing_make_header(const struct sort_spec *spec, const struct layout *layout,
			       const struct input *input, struct output_header *ret_header)
{
	const struct output_header_params params = {
		.keys = spec->keys,
		.n_keys = spec->n_keys,
		.count = spec->count,
		.count_is_be = layout->projection.count_is_big_endian,
		.keys_only = spec->keys_only,
		.index = spec->argsort,
	};

	if (spec->omit_header) {
		*ret_header = (struct output_header){ 0 };
		return 0;
	}
	return input_make_header(input, &params, ret_header);
}

bool output_framing_needs_count(const struct sort_spec *spec, const struct output_header *header,
				bool is_ordered)
{
	return output_header_has_count(header) && spec->unique && is_ordered;
}

/* Is the number of records put in when it is known for sure? It can be, if the order is free. */
static bool writes_count_at_end(const struct output_framing *framing, const struct output *output)
{
	return output_header_has_count(framing->header) && !output_is_ordered(output);
}

static int write_header(const struct output_framing *framing, struct output *output, uint64_t n)
{
	struct output_header *header = framing->header;

	output_header_set_count(header, n);
	return header->nbytes ? output_write_at(output, 0, header->bytes, header->nbytes) : 0;
}

int output_framing_prepare(const struct output_framing *framing)
{
	const struct input *first =
		framing->merge_inputs ? input_runs_get(framing->merge_inputs, 0) : framing->input;
	struct output_header header;
	const int r = output_framing_make_header(framing->spec, framing->layout, first, &header);

	if (r < 0)
		return r;
	output_header_free(framing->header);
	*framing->header = header;
	return 0;
}

int output_framing_begin(const struct output_framing *framing, struct output *output,
			 uint64_t n_expected)
{
	return writes_count_at_end(framing, output) ? 0 : write_header(framing, output, n_expected);
}

/* Inputs that were opened each by itself, or the one of all; and the files of all of them. */
static size_t n_framing_inputs(const struct output_framing *framing)
{
	return framing->merge_inputs ? input_runs_count(framing->merge_inputs) : 1;
}

static const struct input *framing_input(const struct output_framing *framing, size_t i)
{
	return framing->merge_inputs ? input_runs_get(framing->merge_inputs, i) : framing->input;
}

/* What is kept of the end of each file, in their order: the next of them. */
struct trailer_iterator {
	const struct output_framing *framing;
	size_t input, file;
};

static bool next_trailer(struct trailer_iterator *trailers, struct input_trailer *ret_trailer)
{
	const struct output_framing *framing = trailers->framing;

	while (trailers->input < n_framing_inputs(framing) &&
	       trailers->file == input_n_files(framing_input(framing, trailers->input))) {
		trailers->input++;
		trailers->file = 0;
	}
	if (trailers->input == n_framing_inputs(framing))
		return false;
	*ret_trailer = input_trailer(framing_input(framing, trailers->input), trailers->file++);
	return true;
}

int output_framing_finish(const struct output_framing *framing, struct output *output, uint64_t n,
			  bool is_last)
{
	uint64_t offset = framing->header->nbytes + n * framing->layout->output_nbytes;
	struct trailer_iterator trailers = { .framing = framing };
	struct input_trailer trailer;
	int r = writes_count_at_end(framing, output) ? write_header(framing, output, n) : 0;

	while (is_last && r == 0 && next_trailer(&trailers, &trailer)) {
		if (trailer.nbytes)
			r = output_write_at(output, offset, trailer.data, trailer.nbytes);
		offset += trailer.nbytes;
	}
	return r;
}

/* Read the nbytes at `offset` back: are they the same? */
static int verify_bytes(struct output *output, uint64_t offset, const void *bytes, uint64_t nbytes,
			bool *ret_is_same)
{
	const unsigned char *expected = bytes;
	unsigned char actual[4096];
	uint64_t done = 0;

	for (*ret_is_same = true; done < nbytes && *ret_is_same; done += sizeof actual) {
		const uint64_t remaining = nbytes - done;
		const size_t n = remaining < sizeof actual ? (size_t)remaining : sizeof actual;
		const int r = output_read_at(output, offset + done, actual, n);

		if (r < 0)
			return r;
		*ret_is_same = memcmp(actual, expected + done, n) == 0;
	}
	return 0;
}

int output_framing_verify(const struct output_framing *framing, struct output *output, uint64_t n,
			  bool is_last, bool *ret_is_same)
{
	uint64_t offset = framing->header->nbytes + n * framing->layout->output_nbytes;
	struct trailer_iterator trailers = { .framing = framing };
	struct input_trailer trailer;
	int r;

	output_header_set_count(framing->header, n);
	r = verify_bytes(output, 0, framing->header->bytes, framing->header->nbytes, ret_is_same);
	while (is_last && r == 0 && *ret_is_same && next_trailer(&trailers, &trailer)) {
		r = verify_bytes(output, offset, trailer.data, trailer.nbytes, ret_is_same);
		offset += trailer.nbytes;
	}
	return r;
}
