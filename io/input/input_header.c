/*
 * input_header - what stands in front of the records, and what it says of them (see input.h)
 *
 * The first source that is looked at settles what all of them are: plain records, perhaps behind
 * bytes that are kept as they are, or those of a .npy file.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/input/input_internal.h"
#include "io/header/npy.h"
#include "src/base/diagnostics.h"

static int fail_memory(const struct placed_source *placed)
{
	return fail(-ENOMEM, "%s: no memory for a header of %" PRIu64 " bytes", placed->source.name,
		    placed->header_nbytes);
}

/* --- what all of them are --- */

/* The records of the first one are those of the input, if nobody has said something else. */
static int settle_npy(struct input *input, const struct placed_source *placed, struct npy *npy)
{
	struct framing *framing = &input->framing;
	const uint64_t nbytes = npy->fields.record_nbytes;

	if (framing->is_open || framing->is_typed)
		framing->record_nbytes = nbytes;
	if (framing->record_nbytes != nbytes)
		return fail_hint(-EINVAL, HINT_BEHIND_HEADER, npy->header_nbytes,
				 "%s: is a file of numpy whose records have %" PRIu64
				 " bytes, not %" PRIu64,
				 placed->source.name, nbytes, framing->record_nbytes);
	input->npy = npy;
	input->owns_npy = true;
	input->is_settled = true;
	return 0;
}

static int check_npy(const struct input *input, const struct placed_source *placed,
		     const struct npy *npy)
{
	if (!input->npy && placed == input->sources) /* another input was settled before */
		return fail(-EINVAL,
			    "%s: is a file of numpy, and another input is not: all inputs are, or "
			    "none",
			    placed->source.name);
	if (!input->npy)
		return fail(-EINVAL,
			    "%s: is a file of numpy, and what came before it is not: all inputs "
			    "are, or none",
			    placed->source.name);
	if (npy_is_alike(input->npy, npy))
		return 0;
	return fail(-EINVAL,
		    "%s: is a file of numpy of other items than the one before it: %.200s, (N%s), "
		    "and %.200s, (N%s)%s",
		    placed->source.name, npy->descr, npy->row, input->npy->descr, input->npy->row,
		    strcmp(npy->row, input->npy->row) == 0 ? "; astype() makes the same of both" :
							     "");
}

/* Takes the npy over, or frees it. */
static int agree(struct input *input, const struct placed_source *placed, struct npy *npy)
{
	int r;

	if (!input->is_settled)
		r = settle_npy(input, placed, npy);
	else
		r = check_npy(input, placed, npy);
	if (input->npy != npy) {
		npy_free(npy);
		free(npy);
	}
	return r;
}

static int parse(struct input *input, struct placed_source *placed, const unsigned char *header)
{
	struct npy *npy = calloc(1, sizeof *npy);
	int r;

	if (!npy)
		return fail_memory(placed);
	r = npy_parse(header, placed->header_nbytes, placed->source.name, npy);
	if (r < 0) {
		npy_free(npy);
		free(npy);
		return r;
	}
	placed->n_said = npy->n_records;
	placed->says_number = true;
	return agree(input, placed, npy);
}

/* It has nothing to say of its records. */
static int agree_to_records(struct input *input, const struct placed_source *placed)
{
	if (input->framing.format != FORMAT_NPY && !input->npy) {
		input->is_settled = true;
		return 0;
	}
	return fail(-EINVAL, "%s: is no file of numpy, as %s", placed->source.name,
		    input->npy ? "what came before it" : "it is said to be");
}

int input_take_header(struct input *input, struct placed_source *placed, input_read_header_fn *read)
{
	const bool is_first = placed == input->sources;
	unsigned char *header;
	int r;

	placed->says_number = false;
	placed->header_nbytes = placed->source.header_nbytes;
	if (!placed->header_nbytes) {
		placed->header_nbytes = input->framing.skip_nbytes;
		r = agree_to_records(input, placed);
		if (r < 0 || !placed->header_nbytes)
			return r;
	}
	if (placed->source.header_nbytes > NPY_MOST_HEADER_NBYTES)
		return fail(-EINVAL,
			    "%s: is a file of numpy with a header of %" PRIu64
			    " bytes, more than %d",
			    placed->source.name, placed->header_nbytes, NPY_MOST_HEADER_NBYTES);
	header = malloc(placed->header_nbytes);
	if (!header)
		return fail_memory(placed);
	r = read(input, placed, header, placed->header_nbytes);
	if (r == 0 && placed->source.header_nbytes)
		r = parse(input, placed, header);
	if (r == 0 && is_first) {
		free(input->header);
		input->header = header;
		return 0;
	}
	free(header);
	return r;
}

int input_check_count(const struct input *input, const struct placed_source *placed,
		      uint64_t nbytes)
{
	const uint64_t record_nbytes = input->framing.record_nbytes;
	uint64_t wanted;
	bool is_more;

	if (!placed->says_number)
		return 0;
	is_more = __builtin_mul_overflow(placed->n_said, record_nbytes, &wanted) || wanted > nbytes;
	if (!is_more && wanted == nbytes)
		return 0;
	return fail(-EINVAL,
		    "%s: %" PRIu64 " bytes behind the header, which says that there are %" PRIu64
		    " records of %" PRIu64 " bytes: it is %s",
		    placed->source.name, nbytes, placed->n_said, record_nbytes,
		    is_more ? "cut off, or was not written to its end" :
			      "followed by something else, or several files are in it");
}

/* --- part manifests --- */

void input_take_lists(struct input *input, struct input_lists *lists)
{
	input->lists = lists;
	for (size_t i = 0; i < lists->n_files; i++)
		if (lists->files[i].part)
			input->sources[i].source.list = &lists->files[i].group->list;
}

static int check_list(const struct input *input, const struct input_group *group)
{
	const struct parts_list *list = &group->list;
	const struct framing *framing = &input->framing;

	if (list->record_nbytes != framing->record_nbytes)
		return fail(-EINVAL,
			    "%s: the records of its part files have %" PRIu64
			    " bytes, not %" PRIu64,
			    group->path, list->record_nbytes, framing->record_nbytes);
	if (list->content == PARTS_NPY || list->header_nbytes == framing->skip_nbytes)
		return 0;
	return fail_hint(-EINVAL, HINT_SHORTER_HEADER, 0,
			 "%s: its part files begin with a header of %" PRIu64
			 " bytes, not %" PRIu64,
			 group->path, list->header_nbytes, framing->skip_nbytes);
}

int input_check_lists(struct input *input)
{
	const struct input_lists *lists = input->lists;
	const struct input_group *first = input_lists_first(lists);
	int r = 0;

	if (input->framing.is_open)
		input->framing.record_nbytes = first->list.record_nbytes;
	for (size_t i = 0; i < lists->n_groups && r == 0; i++)
		if (lists->groups[i].is_list)
			r = check_list(input, &lists->groups[i]);
	return r;
}

/* --- for others --- */

void input_settle(struct input *input)
{
	input->is_settled = true;
	input->framing.is_settled = true;
	input->framing.npy = input->npy;
}

bool input_is_settled(const struct input *input)
{
	return input->is_settled;
}

const struct fields *input_fields(const struct input *input)
{
	return input->npy ? &input->npy->fields : input->lists ? &input->lists->fields : NULL;
}

const struct key *input_keys(const struct input *input, uint32_t *ret_n)
{
	const struct parts_list *list = input->lists ? &input_lists_first(input->lists)->list :
						       NULL;

	*ret_n = list ? list->n_keys : 0;
	return list ? list->keys : NULL;
}

int input_make_header(const struct input *input, const struct header_wish *wish,
		      struct header *ret_header)
{
	const uint64_t nbytes = input->framing.skip_nbytes;

	if (input->npy)
		return npy_make_header(input->npy, wish, ret_header);
	*ret_header = (struct header){ .bytes = calloc(nbytes + 1, 1), .nbytes = nbytes };
	if (!ret_header->bytes)
		return fail(-ENOMEM, "no memory for a header of %" PRIu64 " bytes", nbytes);
	if (input->header) /* else it is yet to be read, and this is its size */
		memcpy(ret_header->bytes, input->header, nbytes);
	return 0;
}
