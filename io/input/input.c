/*
 * input - several files and pipes as one stream of whole records (see input.h)
 *
 * There are two ways to read. If all inputs are regular files, a part is claimed by moving `next`,
 * and then read with pread() from the sources that it touches, without a lock. If one of them is a
 * stream, the claim lock is held while the current source is read to its end, then the next one.
 *
 * A pipe has a lock of its own, which the kernel holds while it copies. If the kernel must allocate
 * the pages that it copies to, the writer of the pipe waits for that as well, page by page. So
 * readers touch their buffers before it is their turn, while another one reads.
 */
#include "io/input/input.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/file/direct_io.h"
#include "io/header/npy.h"
#include "io/input/input_internal.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/rendezvous.h"
#include "src/base/thread.h"

/* Store the first error, which all later reads return. */
static void stop_reading(struct input *input, int r)
{
	int no_error = 0;

	atomic_compare_exchange_strong(&input->r, &no_error, r);
}

/* Find the last started source that begins at or before `position`. */
static size_t find_source(struct input *input, uint64_t position)
{
	return find_interval(input->sources, sizeof *input->sources,
			     offsetof(struct input_source, position),
			     atomic_load(&input->n_started), position);
}

void input_path_at(struct input *input, uint64_t position, const char **ret_path,
		   uint64_t *ret_record)
{
	const struct input_source *entry = &input->sources[find_source(input, position)];

	assert(atomic_load(&input->n_started) > 0);
	*ret_path = entry->source.name;
	*ret_record = (position - entry->position) / input->framing.record_nbytes;
}

/* --- digests of part files --- */

uint64_t input_verify_nbytes(struct input *input, uint64_t position)
{
	const struct input_source *entry;

	if (!input->part_inputs)
		return UINT64_MAX;
	entry = &input->sources[find_source(input, position)];
	return entry->source.is_stream ? UINT64_MAX :
					 entry->position + entry->source.nbytes - position;
}

int input_add_read_digest(struct input *input, uint64_t position, struct digest digest)
{
	return input->part_inputs ?
		       part_inputs_add_read_digest(input->part_inputs, find_source(input, position),
						   digest) :
		       0;
}

struct part_inputs *input_part_inputs(const struct input *input)
{
	return input->part_inputs;
}

/* --- reading regular files --- */

int input_read_at(struct input *input, uint64_t position, void *buffer, size_t nbytes)
{
	unsigned char *to = buffer;

	assert(!input->is_serial && position + nbytes <= input->total_nbytes);
	for (size_t i = find_source(input, position); nbytes > 0; i++) {
		struct source *source = &input->sources[i].source;
		const uint64_t offset = position - input->sources[i].position;
		const uint64_t remaining = source->nbytes - offset;
		const size_t n = remaining < nbytes ? (size_t)remaining : nbytes;
		const int r = n ? source_read_at(&input->table, source, offset, to, n) : 0;

		if (r < 0)
			return r;
		position += n;
		to += n;
		nbytes -= n;
	}
	return 0;
}

/* Claim the next nbytes, or the rest of the stream. Returns how many bytes were claimed. */
static size_t claim(struct input *input, size_t nbytes, uint64_t *ret_position)
{
	uint64_t remaining;

	SCOPED_LOCK(&input->claim_lock);
	remaining = input->total_nbytes - input->excluded_end_nbytes - input->next;
	if (nbytes > remaining)
		nbytes = (size_t)remaining;
	*ret_position = input->next;
	input->next += nbytes;
	return nbytes;
}

/* --- reading streams --- */

/* Read nbytes of the current source; *ret_nbytes is smaller at its end. */
static int read_current(struct input *input, void *buffer, size_t nbytes, size_t *ret_nbytes)
{
	return source_read_next(&input->sources[input->current].source, input->cancel_fd, buffer,
				nbytes, ret_nbytes);
}

static int read_stream_header(struct input *input, struct input_source *entry, void *buffer,
			      size_t nbytes)
{
	size_t n;
	const int r = read_current(input, buffer, nbytes, &n);

	if (r < 0)
		return r;
	return n == nbytes ? 0 : input_fail_short(input, entry, nbytes, n);
}

/* Open and start a source, unless it was started ahead. */
static int start_source(struct input *input, struct source *source)
{
	int r;

	if (source->is_started)
		return 0;
	r = source_acquire(&input->table, source);
	return r < 0 ? r : source_start(&input->table, source, input->cancel_fd);
}

/* Start the current source and read its header, unless this was done. */
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
	return input_parse_header(input, entry, read_stream_header);
}

/* Return whether a stream can be probed without opening it, or waiting for a person to type. */
static bool can_probe_without_waiting(const struct source *source)
{
	return source->compressed_end || source->endpoint.kind == ENDPOINT_RENDEZVOUS ||
	       (!source->path && !isatty(source->endpoint.fd));
}

int input_probe_pipe(struct input *input, bool may_open)
{
	for (size_t i = 0; i < input->n_sources; i++) {
		struct source *source = &input->sources[i].source;

		if (source->is_stream) {
			if (!may_open && !can_probe_without_waiting(source))
				return 0;
			/* The first source defines the format of all. */
			return i == 0 ? start_current(input) : start_source(input, source);
		}
	}
	return 0;
}

/* Determine how many of the nbytes after the header of the current source are records. */
static int measure_current(const struct input *input, uint64_t nbytes, uint64_t *ret_records_nbytes)
{
	const struct input_source *entry = &input->sources[input->current];
	const struct source *source = &entry->source;
	int r;

	if (source->is_stream) {
		r = source_check_end(source);
		if (r == 0)
			r = input_check_count(input, entry, nbytes);
		return r < 0 ? r :
			       input_measure(input, entry, entry->header_nbytes + nbytes,
					     ret_records_nbytes);
	}
	if (nbytes != source->nbytes + source->trailing_nbytes)
		return source_fail_changed(source, nbytes);
	*ret_records_nbytes = source->nbytes;
	return 0;
}

static int allocate_trailer(struct input_source *entry, size_t nbytes)
{
	entry->trailer = malloc(nbytes);
	if (!entry->trailer)
		return fail(-ENOMEM, "%s: no memory for the last %zu bytes", entry->source.name,
			    nbytes);
	entry->trailer_nbytes = nbytes;
	return 0;
}

/*
 * Finish the current source. At its end the buffer is filled up to `end`. *ret_trailer_nbytes: the
 * size of the incomplete record at the end.
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
	/* Whole records have been returned already. */
	if (trailer_nbytes >= input->framing.record_nbytes)
		r = fail(-EINVAL,
			 "%s: %zu bytes after the last record; such part files cannot be read "
			 "with a pipe or a compressed file without an index",
			 entry->source.name, trailer_nbytes);
	else if (trailer_nbytes && entry->source.is_stream &&
		 input->framing.partial == PARTIAL_KEEP) {
		input->state_nbytes += trailer_nbytes;
		r = input_check_state_memory(input);
		if (r == 0)
			r = allocate_trailer(entry, trailer_nbytes);
		if (r == 0)
			memcpy(entry->trailer, end - trailer_nbytes, trailer_nbytes);
	}
	source_release(&input->table, &entry->source);
	input->current++;
	input->next -= trailer_nbytes;
	*ret_trailer_nbytes = trailer_nbytes;
	return r;
}

/* Read the next nbytes. Requires the claim lock. */
static int read_serial(struct input *input, void *buffer, size_t nbytes, uint64_t *ret_position,
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

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

enum { MIN_PAGE_NBYTES = 4096 };

/* Allocate the pages of the buffer; a single call takes a quarter less time than their faults. */
static void touch_pages(void *buffer, size_t nbytes)
{
	volatile char *bytes = buffer;
	const size_t page_nbytes = (size_t)sysconf(_SC_PAGESIZE);
	const uintptr_t begin = (uintptr_t)buffer / page_nbytes * page_nbytes;

	if (madvise((void *)begin, (uintptr_t)buffer + nbytes - begin, MADV_POPULATE_WRITE) == 0)
		return;
	for (size_t i = 0; i < nbytes; i += MIN_PAGE_NBYTES)
		bytes[i] = 0;
}

static int read_serialized(struct input *input, void *buffer, size_t nbytes, uint64_t *ret_position,
			   size_t *ret_nbytes)
{
	int r;

	/* A short input must not use more of a buffer than it fills. */
	if (atomic_load(&input->has_filled_buffer))
		touch_pages(buffer, nbytes);
	SCOPED_LOCK(&input->claim_lock);
	r = atomic_load(&input->r); /* of earlier readers */
	if (r == 0)
		r = read_serial(input, buffer, nbytes, ret_position, ret_nbytes);
	if (r < 0)
		stop_reading(input, r);
	else if (*ret_nbytes == nbytes)
		atomic_store(&input->has_filled_buffer, true);
	return r;
}

/* --- reading in order --- */

int input_read(struct input *input, void *buffer, size_t nbytes, uint64_t *ret_position,
	       size_t *ret_nbytes)
{
	int r = atomic_load(&input->r);

	assert(nbytes % input->framing.record_nbytes == 0);
	if (r < 0)
		return r;
	if (input->is_serial)
		return read_serialized(input, buffer, nbytes, ret_position, ret_nbytes);
	*ret_nbytes = claim(input, nbytes, ret_position);
	r = input_read_at(input, *ret_position, buffer, *ret_nbytes);
	if (r < 0)
		stop_reading(input, r);
	return r;
}

void input_start_at(struct input *input, uint64_t position)
{
	assert(!input->is_serial && position <= input->total_nbytes);
	SCOPED_LOCK(&input->claim_lock);
	input->next = position;
}

void input_end_at(struct input *input, uint64_t position)
{
	assert(!input->is_serial && position <= input->total_nbytes);
	SCOPED_LOCK(&input->claim_lock);
	input->excluded_end_nbytes = input->total_nbytes - position;
}

int input_share_cancel(struct input *input, const struct input *other)
{
	const int fd = fcntl(other->cancel_fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	if (fd < 0)
		return fail(-errno, "cannot wait for pipes: eventfd: %m");
	close(input->cancel_fd);
	input->cancel_fd = fd;
	return 0;
}

void input_cancel(struct input *input)
{
	const uint64_t increment = 1;

	stop_reading(input, -ECANCELED);
	if (input->cancel_fd >= 0 && write(input->cancel_fd, &increment, sizeof increment) < 0)
		assert(errno == EAGAIN); /* it is readable already */
	for (size_t i = 0; i < input->n_sources; i++)
		if (input->sources[i].source.endpoint.kind == ENDPOINT_RENDEZVOUS)
			rendezvous_fail(input->sources[i].source.endpoint.rendezvous, -ECANCELED);
}

/* --- the page cache --- */

/* The size of samples, at the beginning, in the middle, and at the end. */
#define SAMPLE_NBYTES (UINT64_C(4) << 20)

/* Check a sample at `position`, as far as its source reaches. */
static bool is_sample_cached(struct input *input, uint64_t position, uint64_t nbytes)
{
	struct input_source *entry = &input->sources[find_source(input, position)];
	struct source *source = &entry->source;
	const uint64_t offset = position - entry->position;
	const uint64_t remaining = source->nbytes - offset;
	bool is_cached;

	if (source->zst_reader || remaining == 0 || source_acquire(&input->table, source) < 0)
		return false;
	is_cached = direct_is_cached(&source->file, source->base + offset,
				     remaining < nbytes ? remaining : nbytes);
	source_release(&input->table, source);
	return is_cached;
}

bool input_is_cached(struct input *input, uint64_t position, uint64_t nbytes)
{
	const uint64_t sample_nbytes = nbytes < SAMPLE_NBYTES ? nbytes : SAMPLE_NBYTES;
	const uint64_t last = nbytes - sample_nbytes;

	assert(!input->is_serial && position + nbytes <= input->total_nbytes);
	return nbytes == 0 || (is_sample_cached(input, position, sample_nbytes) &&
			       is_sample_cached(input, position + last / 2, sample_nbytes) &&
			       is_sample_cached(input, position + last, sample_nbytes));
}

void input_prefetch(struct input *input, uint64_t nbytes)
{
	for (size_t i = 0; i < input->n_sources && nbytes; i++) {
		struct source *source = &input->sources[i].source;
		const uint64_t n = source->nbytes < nbytes ? source->nbytes : nbytes;

		if (source->is_stream || source->zst_reader ||
		    source_acquire(&input->table, source) < 0)
			return;
		posix_fadvise(source->file.fd, (off_t)source->base, (off_t)n, POSIX_FADV_WILLNEED);
		source_release(&input->table, source);
		nbytes -= n;
	}
}

/* --- after reading --- */

void input_seek_end(const struct input *input)
{
	size_t i = 0;

	while (i < input->n_sources && input->sources[i].source.path)
		i++;
	if (i < input->n_sources)
		source_seek_end(&input->sources[i].source);
}

int input_check_state(const struct input *input)
{
	int r = 0;

	for (size_t i = 0; i < input->n_sources && r == 0; i++)
		r = source_check_state(&input->sources[i].source);
	return r;
}

/* --- mapped reading --- */

static int map_source(struct source_table *table, struct input_source *entry)
{
	struct source *source = &entry->source;
	int r;

	if (source->zst_reader)
		return 0;
	if (source->nbytes == 0)
		return 1;
	r = source_acquire(table, source);
	if (r < 0)
		return r;
	r = direct_is_cached(&source->file, source->base, source->nbytes) &&
	    mapping_open(&source->file, source->base, source->nbytes, &entry->mapping) == 0;
	source_release(table, source);
	return r;
}

void input_unmap(struct input *input)
{
	for (size_t i = 0; i < input->n_sources; i++)
		mapping_close(&input->sources[i].mapping);
}

int input_map(struct input *input)
{
	int r = input->total_nbytes != INPUT_SIZE_UNKNOWN && input->n_sources <= INPUT_MAX_MAPPED;

	for (size_t i = 0; i < input->n_sources && r > 0; i++)
		r = map_source(&input->table, &input->sources[i]);
	if (r <= 0)
		input_unmap(input);
	return r;
}

const void *input_mapped_file(const struct input *input, size_t i)
{
	return input->sources[i].mapping.bytes;
}

static int check_source_size(struct input *input, struct source *source)
{
	int r = source_acquire(&input->table, source);

	if (r < 0)
		return r;
	r = source_check_size(source);
	source_release(&input->table, source);
	return r;
}

/* Map the pages of the source within [begin, end) of the stream. */
static int prepare_mapped_range(struct input *input, struct input_source *entry, uint64_t begin,
				uint64_t end)
{
	struct source *source = &entry->source;
	const uint64_t source_end = entry->position + source->nbytes;

	begin = begin < entry->position ? entry->position : begin;
	end = end > source_end ? source_end : end;
	if (begin >= end)
		return 0;
	mapping_populate(&entry->mapping, begin - entry->position, end - begin);
	return end == source_end ? check_source_size(input, source) : 0;
}

int input_claim_mapped(struct input *input, size_t nbytes, uint64_t *ret_position,
		       size_t *ret_nbytes)
{
	uint64_t position;
	int r = atomic_load(&input->r);

	if (r < 0)
		return r;
	nbytes = claim(input, nbytes, &position);
	for (size_t i = 0; i < input->n_sources && r == 0; i++)
		r = prepare_mapped_range(input, &input->sources[i], position, position + nbytes);
	if (r < 0) {
		stop_reading(input, r);
		return r;
	}
	*ret_position = position;
	*ret_nbytes = nbytes;
	return 0;
}

int input_check_mapped(struct input *input)
{
	for (size_t i = 0; i < input->n_sources; i++) {
		struct source *source = &input->sources[i].source;
		int r;

		if (!mapping_is_damaged(&input->sources[i].mapping))
			continue;
		r = check_source_size(input, source);
		return r < 0 ? r :
			       fail(-EIO, "%s: cannot read a part of it, or it was truncated",
				    source->name);
	}
	return 0;
}

/* --- opening: probe all sources, and find their records --- */

static int read_file_header(struct input *input, struct input_source *entry, void *buffer,
			    size_t nbytes)
{
	struct source *source = &entry->source;

	if (source->nbytes < nbytes)
		return input_fail_short(input, entry, nbytes, source->nbytes);
	return source_read_at(&input->table, source, 0, buffer, nbytes);
}

/* Find the records of a source with a size, and store its header and trailer. */
static int frame_regular_source(struct input *input, struct input_source *entry)
{
	const struct framing *framing = &input->framing;
	struct source *source = &entry->source;
	uint64_t nbytes, end, trailing_nbytes;
	int r = input_parse_header(input, entry, read_file_header);

	if (r == 0)
		r = input_check_count(input, entry, source->nbytes - entry->header_nbytes);
	if (r == 0)
		r = input_measure(input, entry, source->nbytes, &nbytes);
	if (r < 0)
		return r;
	end = entry->header_nbytes + nbytes;
	trailing_nbytes = source->nbytes - end;
	if (trailing_nbytes && framing->partial == PARTIAL_KEEP) {
		/* If trailers do not fit, only count them: open fails when all are counted. */
		input->state_nbytes += trailing_nbytes;
		if (!input_names_fit(framing->memory_nbytes, 0, input->state_nbytes))
			return 0;
		r = allocate_trailer(entry, trailing_nbytes);
		if (r == 0)
			r = source_read_at(&input->table, source, end, entry->trailer,
					   trailing_nbytes);
	}
	source_narrow(source, entry->header_nbytes, nbytes);
	return r;
}

/* If a descriptor is given again, nothing is left to read, as in other programs. */
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

/* Check the first and the last key of a part file against its manifest. */
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

/* Check a probed source, and add its records to the total. */
static int measure_source(struct input *input, size_t i)
{
	struct source *source = &input->sources[i].source;
	uint64_t sum;
	int r = input->part_inputs ? part_inputs_check_size(input->part_inputs, i, source) : 0;

	if (r == 0 && !source->is_stream)
		r = frame_regular_source(input, &input->sources[i]);
	if (r == 0 && source->manifest)
		r = check_part_keys(input, i);
	if (r < 0)
		return r;
	/* Positions have 64 bits, and the largest one means that a size is unknown. */
	if (__builtin_add_overflow(input->total_nbytes, source->nbytes, &sum) ||
	    sum == INPUT_SIZE_UNKNOWN)
		return fail(-EFBIG,
			    "%s: %" PRIu64 " bytes and the %" PRIu64
			    " bytes of earlier inputs exceed the limit of 2^64 - 2 bytes",
			    source->name, source->nbytes, input->total_nbytes);
	input->total_nbytes = sum;
	return 0;
}

static int make_serial(struct input *input)
{
	input->is_serial = true;
	input->total_nbytes = INPUT_SIZE_UNKNOWN;
	input->cancel_fd = eventfd(0, EFD_CLOEXEC);
	return input->cancel_fd < 0 ? fail(-errno, "cannot wait for pipes: eventfd: %m") : 0;
}

/* Probe all sources. total_nbytes becomes the sum over those with a size. */
static int open_sources(struct input *input, bool *ret_has_manifests)
{
	bool has_streams = false;
	int r;

	for (size_t i = 0; i < input->n_sources; i++) {
		struct source *source = &input->sources[i].source;

		input->sources[i].position = input->total_nbytes;
		if (is_repeated_descriptor(input, i))
			continue;
		r = source_probe(&input->table, source);
		if (r < 0)
			return r;
		if (source->is_manifest) {
			*ret_has_manifests = true;
			continue;
		}
		r = measure_source(input, i);
		if (r < 0)
			return r;
		has_streams |= source->is_stream;
	}
	r = input_check_state_memory(input);
	if (r == 0 && has_streams)
		return make_serial(input);
	atomic_store(&input->n_started, input->n_sources);
	return r;
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

static int fail_inputs(size_t n)
{
	return fail(-ENOMEM, "no memory for the names of %zu inputs", n);
}

/* Open an input in which manifests, which some sources of `input` are, become their part files. */
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
				     false, &part_inputs);
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

/* The source is not probed again, because what was read from it is gone. */
static void move_source(struct input *from, struct input_source *entry, struct input *to)
{
	const bool has_header = entry == &from->sources[0]; /* it has been read */

	source_move(&from->table, &entry->source, &to->table, &to->sources[0].source);
	if (!has_header)
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
