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

static int read_header(struct input *input, struct input_source *entry, void *buffer, size_t nbytes)
{
	struct source *source = &entry->source;

	if (source->nbytes < nbytes)
		return framing_fail_short(&input->framing, source->name, nbytes, source->nbytes);
	return source_read_at(&input->table, source, 0, buffer, nbytes);
}

int input_measure(const struct input *input, const struct input_source *entry, uint64_t nbytes,
		  uint64_t *ret_records_nbytes)
{
	const uint64_t header_nbytes = entry->header_nbytes;
	bool is_counted = false;
	int r = 0;

	if (nbytes >= header_nbytes)
		r = part_inputs_measure(input->part_inputs, (size_t)(entry - input->sources),
					nbytes - header_nbytes, &input->framing, ret_records_nbytes,
					&is_counted);
	return r < 0 || is_counted ? r :
				     framing_measure(&input->framing, entry->source.name,
						     header_nbytes, nbytes, ret_records_nbytes);
}

/* Find the records of a regular source, and keep what else of it is wanted. */
static int frame_regular_source(struct input *input, struct input_source *entry)
{
	const struct framing *framing = &input->framing;
	struct source *source = &entry->source;
	uint64_t nbytes, end, trailing_nbytes;
	int r = input_parse_header(input, entry, read_header);

	if (r == 0)
		r = input_check_count(input, entry, source->nbytes - entry->header_nbytes);
	if (r == 0)
		r = input_measure(input, entry, source->nbytes, &nbytes);
	if (r < 0)
		return r;
	end = entry->header_nbytes + nbytes;
	trailing_nbytes = source->nbytes - end;
	if (trailing_nbytes && framing->partial == PARTIAL_KEEP) {
		/* Those that have no room are only counted. */
		input->state_nbytes += trailing_nbytes;
		if (!input_names_fit(framing->memory_nbytes, 0, input->state_nbytes))
			return 0;
		r = input_allocate_trailer(entry, trailing_nbytes);
		if (r == 0)
			r = source_read_at(&input->table, source, end, entry->trailer,
					   trailing_nbytes);
	}
	source_narrow(source, entry->header_nbytes, nbytes);
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
static bool is_repeated_descriptor(struct input *input, size_t i)
{
	struct source *source = &input->sources[i].source;

	for (size_t j = 0; source->endpoint.kind == ENDPOINT_DESCRIPTOR && j < i; j++) {
		const struct source *other = &input->sources[j].source;

		if (!source_has_same_descriptor(source, other))
			continue;
		source->identity = other->identity;
		return true;
	}
	return false;
}

/* Are its ends those that the list says? */
static int check_part_keys(struct input *input, size_t i)
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
			r = part_inputs_check_key(input->part_inputs, i, record, is_last);
	}
	free(record);
	return r;
}

/* Find out what the sources contribute. total_nbytes is the sum over those with a size. */
static int probe_sources(struct input *input, bool *ret_has_streams, bool *ret_has_manifests)
{
	bool has_streams = false;

	for (size_t i = 0; i < input->n_sources; i++) {
		struct source *source = &input->sources[i].source;
		int r;

		input->sources[i].position = input->total_nbytes;
		if (is_repeated_descriptor(input, i))
			continue;
		r = source_probe(&input->table, source);
		if (r == 0 && source->is_manifest) {
			*ret_has_manifests = true;
			continue;
		}
		if (r == 0 && input->part_inputs)
			r = part_inputs_check_size(input->part_inputs, i, source);
		if (r == 0 && !source->is_stream)
			r = frame_regular_source(input, &input->sources[i]);
		if (r == 0 && source->manifest)
			r = check_part_keys(input, i);
		if (r == 0)
			r = add_to_total(input, source);
		if (r < 0)
			return r;
		has_streams |= source->is_stream;
	}
	*ret_has_streams = has_streams;
	return input_check_state_memory(input);
}

static int make_serial(struct input *input)
{
	input->total_nbytes = INPUT_SIZE_UNKNOWN;
	input->cancel_fd = eventfd(0, EFD_CLOEXEC);
	return input->cancel_fd < 0 ? fail(-errno, "cannot wait for pipes: eventfd: %m") : 0;
}

static struct input *create_input(const struct syscalls *calls, const char *const *paths,
				  const struct endpoint *endpoints, size_t n,
				  const struct framing *framing)
{
	struct input *input = calloc(1, sizeof *input + n * sizeof *input->sources);
	const struct format_rules rules = framing_rules(framing);

	if (!input)
		return NULL;
	input->framing = *framing;
	input->n_sources = n;
	input->cancel_fd = -1;
	input->npy = (struct npy *)framing->npy;
	input->is_resolved = framing->is_resolved;
	pthread_mutex_init(&input->claim_lock, NULL);
	source_table_init(&input->table, calls, &rules);
	for (size_t i = 0; i < n; i++) {
		input->state_nbytes +=
			sizeof *input->sources + sizeof(char *) + strlen(paths[i]) + 1;
		source_prepare(&input->sources[i].source, paths[i],
			       endpoints ? endpoints[i] :
					   (struct endpoint){ .kind = ENDPOINT_PATH });
	}
	return input;
}

static int open_sources(struct input *input, bool *ret_has_manifests)
{
	bool has_streams = false;
	int r = probe_sources(input, &has_streams, ret_has_manifests);

	if (r == 0 && has_streams)
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
static int open_part_inputs(const struct input *input, const char *const *paths,
			    const struct endpoint *endpoints, const struct framing *framing,
			    struct input **ret_input)
{
	const struct syscalls *calls = input->table.calls;
	bool *are_manifests = calloc(input->n_sources, sizeof *are_manifests),
	     has_manifests = false;
	struct part_inputs *part_inputs = NULL;
	struct input *part_input = NULL;
	int r = are_manifests ? 0 : fail_inputs(input->n_sources);

	for (size_t i = 0; i < input->n_sources && r == 0; i++)
		are_manifests[i] = input->sources[i].source.is_manifest;
	if (r == 0)
		r = part_inputs_open(calls, paths, endpoints, are_manifests, input->n_sources,
				     &part_inputs);
	free(are_manifests);
	if (r == 0)
		part_input = create_input(calls, (const char *const *)part_inputs->paths,
					  part_inputs->endpoints, part_inputs->n_files, framing);
	if (r == 0 && !part_input) {
		r = fail_inputs(part_inputs->n_files);
		part_inputs_close(part_inputs);
	}
	if (r < 0)
		return r;
	input_set_part_inputs(part_input, part_inputs);
	r = input_check_manifests(part_input);
	if (r == 0)
		r = open_sources(part_input, &has_manifests);
	if (r < 0) {
		input_close(part_input);
		return r;
	}
	*ret_input = part_input;
	return 0;
}

/* It is not examined again: what is read of a descriptor is not there any more. */
static void move_source(struct input *from, struct input_source *entry, struct input *to)
{
	const bool is_first = entry == &from->sources[0];

	source_move(&from->table, &entry->source, &to->table, &to->sources[0].source);
	if (!is_first) /* whose header has been read */
		return;
	to->sources[0].header_nbytes = entry->header_nbytes;
	to->sources[0].declared_n_records = entry->declared_n_records;
	to->sources[0].declares_n_records = entry->declares_n_records;
	to->header = from->header;
	from->header = NULL;
	atomic_store(&to->n_started, 1);
}

int input_transfer_pipe(struct input *from, size_t i, struct input **ret_to)
{
	struct input_source *entry = &from->sources[i];
	struct input *to;
	int r;

	*ret_to = NULL;
	if (from->part_inputs || !entry->source.is_started)
		return 0;
	to = create_input(from->table.calls, &entry->source.name, NULL, 1, &from->framing);
	if (!to)
		return fail_inputs(1);
	r = make_serial(to);
	if (r < 0) {
		input_close(to);
		return r;
	}
	move_source(from, entry, to);
	*ret_to = to;
	return 0;
}

int input_open_endpoints(const struct syscalls *calls, const char *const *paths,
			 const struct endpoint *endpoints, size_t n, const struct framing *framing,
			 struct input **ret_input)
{
	struct input *input, *part_input = NULL;
	uint64_t text_nbytes = 0;
	bool has_manifests = false;
	int r;

	for (size_t i = 0; i < n; i++)
		text_nbytes += strlen(paths[i]) + 1;
	r = input_check_names(framing->memory_nbytes, n, text_nbytes);
	if (r < 0)
		return r;
	input = create_input(calls, paths, endpoints, n, framing);
	if (!input)
		return fail_inputs(n);
	r = open_sources(input, &has_manifests);
	if (r == 0 && has_manifests)
		r = open_part_inputs(input, paths, endpoints, framing, &part_input);
	if (r < 0 || part_input)
		input_close(input);
	if (r < 0)
		return r;
	*ret_input = part_input ? part_input : input;
	return 0;
}

int input_open_framed(const struct syscalls *calls, const char *const *paths, size_t n,
		      const struct framing *framing, struct input **ret_input)
{
	return input_open_endpoints(calls, paths, NULL, n, framing, ret_input);
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
		free(input->sources[i].trailer);
	}
	source_table_destroy(&input->table);
	if (input->cancel_fd >= 0)
		close(input->cancel_fd);
	pthread_mutex_destroy(&input->claim_lock);
	free(input->header);
	part_inputs_close(input->part_inputs);
	if (input->owns_npy) {
		npy_free(input->npy);
		free(input->npy);
	}
	free(input);
}
