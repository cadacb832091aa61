/*
 * input_open - open all sources, and find out which of their bytes are records (see input.h)
 */
#include "io/input/input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "io/input/input_mapped.h"
#include "io/input/input_stream.h"
#include "io/input/input_internal.h"
#include "io/header/npy.h"
#include "src/base/diagnostics.h"

static int read_header(struct input *input, struct placed_source *placed, void *buffer,
		       size_t nbytes)
{
	struct source *source = &placed->source;

	if (source->nbytes < nbytes)
		return framing_fail_short(&input->framing, source->name, nbytes, source->nbytes);
	return source_read_at(&input->table, source, 0, buffer, nbytes);
}

int input_measure(const struct input *input, const struct placed_source *placed, uint64_t nbytes,
		  uint64_t *ret_records_nbytes)
{
	const uint64_t header_nbytes = placed->header_nbytes;
	bool is_counted = false;
	int r = 0;

	if (nbytes >= header_nbytes)
		r = input_lists_measure(input->lists, (size_t)(placed - input->sources),
					nbytes - header_nbytes, &input->framing, ret_records_nbytes,
					&is_counted);
	return r < 0 || is_counted ? r :
				     framing_measure(&input->framing, placed->source.name,
						     header_nbytes, nbytes, ret_records_nbytes);
}

/* Find the records of a regular source, and keep what else of it is wanted. */
static int frame_regular(struct input *input, struct placed_source *placed)
{
	const struct framing *framing = &input->framing;
	struct source *source = &placed->source;
	uint64_t nbytes, end, n_after;
	int r = input_take_header(input, placed, read_header);

	if (r == 0)
		r = input_check_count(input, placed, source->nbytes - placed->header_nbytes);
	if (r == 0)
		r = input_measure(input, placed, source->nbytes, &nbytes);
	if (r < 0)
		return r;
	end = placed->header_nbytes + nbytes;
	n_after = source->nbytes - end;
	if (n_after && framing->partial == PARTIAL_KEEP) {
		r = input_make_tail(placed, n_after);
		if (r == 0)
			r = source_read_at(&input->table, source, end, placed->tail, n_after);
	}
	source_narrow(source, placed->header_nbytes, nbytes);
	return r;
}

/* Positions in the stream are numbers of 64 bits, and the highest says that a size is unknown. */
static int add_to_total(struct input *input, const struct source *source)
{
	uint64_t sum;

	if (__builtin_add_overflow(input->total_nbytes, source->nbytes, &sum) ||
	    sum == INPUT_SIZE_UNKNOWN)
		return fail(-EFBIG,
			    "%s: %" PRIu64 " bytes, after %" PRIu64
			    " of the inputs before it, are too many: all inputs together can have "
			    "at most 2^64 - 2",
			    source->name, source->nbytes, input->total_nbytes);
	input->total_nbytes = sum;
	return 0;
}

/*
 * A descriptor that is given again has nothing left to read, as standard input has to every other
 * program.
 */
static bool is_given_again(struct input *input, size_t i)
{
	struct source *source = &input->sources[i].source;

	for (size_t j = 0; source->given.kind == GIVEN_DESCRIPTOR && j < i; j++) {
		const struct source *other = &input->sources[j].source;

		if (!source_is_given_again(source, other))
			continue;
		source->identity = other->identity;
		return true;
	}
	return false;
}

/* Are its ends those that the list says? */
static int check_part(struct input *input, size_t i)
{
	const uint64_t record_nbytes = input->framing.record_nbytes;
	struct source *source = &input->sources[i].source;
	unsigned char *record = malloc(record_nbytes);
	int r = record ? 0 : fail(-ENOMEM, "%s: no memory for a record", source->name);

	for (int is_last = 0; is_last < 2 && source->nbytes && r == 0; is_last++) {
		r = source_read_at(&input->table, source,
				   is_last ? source->nbytes - record_nbytes : 0, record,
				   record_nbytes);
		if (r == 0)
			r = input_lists_check_key(input->lists, i, record, is_last);
	}
	free(record);
	return r;
}

/* Find out what the sources contribute. total_nbytes is the sum over those with a size. */
static int examine_sources(struct input *input, bool *ret_streams, bool *ret_lists)
{
	bool streams = false;

	for (size_t i = 0; i < input->n_sources; i++) {
		struct source *source = &input->sources[i].source;
		int r;

		input->sources[i].position = input->total_nbytes;
		if (is_given_again(input, i))
			continue;
		r = source_examine(&input->table, source);
		if (r == 0 && source->is_list) {
			*ret_lists = true;
			continue;
		}
		if (r == 0 && input->lists)
			r = input_lists_check(input->lists, i, source);
		if (r == 0 && !source->is_stream)
			r = frame_regular(input, &input->sources[i]);
		if (r == 0 && source->list)
			r = check_part(input, i);
		if (r == 0)
			r = add_to_total(input, source);
		if (r < 0)
			return r;
		streams |= source->is_stream;
	}
	*ret_streams = streams;
	return 0;
}

static int make_serial(struct input *input)
{
	input->total_nbytes = INPUT_SIZE_UNKNOWN;
	input->cancel_fd = eventfd(0, EFD_CLOEXEC);
	return input->cancel_fd < 0 ? fail(-errno, "cannot wait for pipes: eventfd: %m") : 0;
}

static struct input *make_input(const struct syscalls *calls, const char *const *paths,
				const struct given *given, size_t n, const struct framing *framing)
{
	struct input *input = calloc(1, sizeof *input + n * sizeof *input->sources);
	const struct format_rules rules = framing_rules(framing);

	if (!input)
		return NULL;
	input->framing = *framing;
	input->n_sources = n;
	input->cancel_fd = -1;
	input->npy = (struct npy *)framing->npy;
	input->is_settled = framing->is_settled;
	pthread_mutex_init(&input->claim, NULL);
	source_table_init(&input->table, calls, &rules);
	for (size_t i = 0; i < n; i++)
		source_prepare(&input->sources[i].source, paths[i],
			       given ? given[i] : (struct given){ .kind = GIVEN_PATH });
	return input;
}

static int open_sources(struct input *input, bool *ret_lists)
{
	bool streams = false;
	int r = examine_sources(input, &streams, ret_lists);

	if (r == 0 && streams)
		r = make_serial(input);
	else
		atomic_store(&input->n_started, input->n_sources);
	return r;
}

static int fail_inputs(size_t n)
{
	return fail(-ENOMEM, "no memory for the names of %zu inputs", n);
}

/* The same with parts in the place of lists, which some sources of `input` are. */
static int open_parts(const struct input *input, const char *const *paths,
		      const struct given *given, const struct framing *framing,
		      struct input **ret_input)
{
	const struct syscalls *calls = input->table.calls;
	bool *are_lists = calloc(input->n_sources, sizeof *are_lists), again = false;
	struct input_lists *lists = NULL;
	struct input *parts = NULL;
	int r = are_lists ? 0 : fail_inputs(input->n_sources);

	for (size_t i = 0; i < input->n_sources && r == 0; i++)
		are_lists[i] = input->sources[i].source.is_list;
	if (r == 0)
		r = input_lists_open(calls, paths, given, are_lists, input->n_sources, &lists);
	free(are_lists);
	if (r == 0)
		parts = make_input(calls, (const char *const *)lists->paths, lists->given,
				   lists->n_files, framing);
	if (r == 0 && !parts) {
		r = fail_inputs(lists->n_files);
		input_lists_close(lists);
	}
	if (r < 0)
		return r;
	input_take_lists(parts, lists);
	r = input_check_lists(parts);
	if (r == 0)
		r = open_sources(parts, &again);
	if (r < 0) {
		input_close(parts);
		return r;
	}
	*ret_input = parts;
	return 0;
}

/* It is not examined again: what is read of a descriptor is not there any more. */
static void move_source(struct input *from, struct placed_source *placed, struct input *to)
{
	const bool is_first = placed == &from->sources[0];

	source_move(&from->table, &placed->source, &to->table, &to->sources[0].source);
	if (!is_first) /* whose header has been read */
		return;
	to->sources[0].header_nbytes = placed->header_nbytes;
	to->sources[0].n_said = placed->n_said;
	to->sources[0].says_number = placed->says_number;
	to->header = from->header;
	from->header = NULL;
	atomic_store(&to->n_started, 1);
}

int input_hand_on(struct input *from, size_t i, struct input **ret_to)
{
	struct placed_source *placed = &from->sources[i];
	struct input *to;
	int r;

	*ret_to = NULL;
	if (from->lists || !placed->source.is_started)
		return 0;
	to = make_input(from->table.calls, &placed->source.name, NULL, 1, &from->framing);
	if (!to)
		return fail_inputs(1);
	r = make_serial(to);
	if (r < 0) {
		input_close(to);
		return r;
	}
	move_source(from, placed, to);
	*ret_to = to;
	return 0;
}

int input_open_given(const struct syscalls *calls, const char *const *paths,
		     const struct given *given, size_t n, const struct framing *framing,
		     struct input **ret_input)
{
	struct input *input = make_input(calls, paths, given, n, framing), *parts = NULL;
	bool lists = false;
	int r;

	if (!input)
		return fail_inputs(n);
	r = open_sources(input, &lists);
	if (r == 0 && lists)
		r = open_parts(input, paths, given, framing, &parts);
	if (r < 0 || parts)
		input_close(input);
	if (r < 0)
		return r;
	*ret_input = parts ? parts : input;
	return 0;
}

int input_open_framed(const struct syscalls *calls, const char *const *paths, size_t n,
		      const struct framing *framing, struct input **ret_input)
{
	return input_open_given(calls, paths, NULL, n, framing, ret_input);
}

int input_open(const struct syscalls *calls, const char *const *paths, size_t n,
	       uint64_t record_nbytes, struct input **ret_input)
{
	return input_open_framed(calls, paths, n,
				 &(struct framing){ .record_nbytes = record_nbytes }, ret_input);
}

void input_close(struct input *input)
{
	if (!input)
		return;
	input_unmap(input);
	for (size_t i = 0; i < input->n_sources; i++) {
		source_close(&input->table, &input->sources[i].source);
		free(input->sources[i].tail);
	}
	source_table_destroy(&input->table);
	if (input->cancel_fd >= 0)
		close(input->cancel_fd);
	pthread_mutex_destroy(&input->claim);
	free(input->header);
	input_lists_close(input->lists);
	if (input->owns_npy) {
		npy_free(input->npy);
		free(input->npy);
	}
	free(input);
}
