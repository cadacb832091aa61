/*
 * input - several files and pipes as one stream of whole records (see input.h)
 *
 * There are two ways to read. With regular files only, a part is claimed by moving `next` and then
 * read with pread(), through the sources that it touches. With a pipe among the inputs, the claim
 * lock is held while the current source is read to its end, then the next one (input_stream.c).
 *
 * A pipe has a lock of its own, which the kernel holds while it copies. If the memory that it
 * copies to has yet to be had from the system, whoever writes to the pipe waits for that too, page
 * after page. So readers have their memory before it is their turn, while another one reads.
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
#include <unistd.h>

#include "io/codec/zst_stream.h"
#include "io/file/direct.h"
#include "io/input/input_mapped.h"
#include "io/input/input_stream.h"
#include "io/input/inside.h"
#include "io/input/npy.h"
#include "src/base/handover.h"
#include "src/base/messages.h"

static bool is_serial(const struct input *input)
{
	return input->total_nbytes == INPUT_SIZE_UNKNOWN;
}

void input_stop(struct input *input, int r)
{
	int none = 0;

	atomic_compare_exchange_strong(&input->r, &none, r);
}

/* --- opening --- */

static int read_header(struct input *input, struct placed_source *placed, void *buffer,
		       size_t nbytes)
{
	struct source *source = &placed->source;

	if (source->nbytes < nbytes)
		return framing_fail_short(&input->framing, source->name, nbytes, source->nbytes);
	return source_read_at(&input->table, source, 0, buffer, nbytes);
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
		r = framing_measure(framing, source->name, placed->header_nbytes, source->nbytes,
				    &nbytes);
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

/* The same with parts in the place of lists, which some sources of `input` are. */
static int open_parts(const struct input *input, const char *const *paths,
		      const struct given *given, const struct framing *framing,
		      struct input **ret_input)
{
	const struct syscalls *calls = input->table.calls;
	bool *are_lists = calloc(input->n_sources, sizeof *are_lists), again = false;
	struct input_lists *lists = NULL;
	struct input *parts = NULL;
	int r = are_lists ? 0 : fail(-ENOMEM, "list of inputs: %m");

	for (size_t i = 0; i < input->n_sources && r == 0; i++)
		are_lists[i] = input->sources[i].source.is_list;
	if (r == 0)
		r = input_lists_open(calls, paths, given, are_lists, input->n_sources, &lists);
	free(are_lists);
	if (r == 0)
		parts = make_input(calls, (const char *const *)lists->paths, lists->given,
				   lists->n_files, framing);
	if (r == 0 && !parts) {
		input_lists_close(lists);
		r = fail(-ENOMEM, "list of inputs: %m");
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

int input_open_given(const struct syscalls *calls, const char *const *paths,
		     const struct given *given, size_t n, const struct framing *framing,
		     struct input **ret_input)
{
	struct input *input = make_input(calls, paths, given, n, framing), *parts = NULL;
	bool lists = false;
	int r;

	if (!input)
		return fail(-ENOMEM, "list of inputs: %m");
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

void input_limit_windows(struct input *input, uint64_t nbytes)
{
	input->table.most_window_nbytes = nbytes;
}

uint64_t input_most_window_nbytes(const struct input *input)
{
	return input->table.most_window_nbytes;
}

void input_keep_frames(struct input *input, uint64_t nbytes)
{
	uint64_t frames_nbytes = 0;

	for (size_t i = 0; i < input->n_sources; i++)
		if (input->sources[i].source.zst_reader)
			frames_nbytes +=
				zst_reader_frame_nbytes(input->sources[i].source.zst_reader);
	for (size_t i = 0; i < input->n_sources && frames_nbytes; i++)
		if (input->sources[i].source.zst_reader)
			zst_reader_keep(input->sources[i].source.zst_reader,
					(size_t)(nbytes / frames_nbytes));
}

/* Of streams, which are read one after the other; 0 if none of them is compressed. */
static uint64_t stream_nbytes(const struct input *input)
{
	uint64_t most_nbytes = 0;

	for (size_t i = 0; i < input->n_sources; i++) {
		const struct source *source = &input->sources[i].source;
		const uint64_t window_nbytes = source->window_nbytes ?
						       source->window_nbytes :
						       input->table.most_window_nbytes;

		if (source_may_be_compressed(source) && window_nbytes > most_nbytes)
			most_nbytes = window_nbytes;
	}
	return most_nbytes ? zst_stream_memory_nbytes(most_nbytes) : 0;
}

struct input_content input_content(const struct input *input)
{
	struct input_content content = { .n_files = input->n_sources, .is_npy = input->npy };

	for (size_t i = 0; i < input->n_sources; i++) {
		const struct source *source = &input->sources[i].source;

		content.n_compressed += source->zst_end || source->zst_stream;
		content.n_unseen += source->is_stream && !source->zst_end && !source->is_started;
	}
	return content;
}

bool input_is_compressed(const struct input *input)
{
	for (size_t i = 0; i < input->n_sources; i++)
		if (input->sources[i].source.zst_reader)
			return true;
	return false;
}

/* What a source takes as long as there is an input. */
static uint64_t source_nbytes(const struct placed_source *placed)
{
	const struct zst_reader *reader = placed->source.zst_reader;

	/* The name is in an argument or a list of names, and in a list of pointers. */
	return sizeof *placed + sizeof(char *) + strlen(placed->source.name) + 1 +
	       placed->tail_nbytes + (reader ? zst_reader_index_nbytes(reader) : 0);
}

uint64_t input_memory_nbytes(const struct input *input, unsigned n_readers, bool in_order)
{
	uint64_t nbytes = stream_nbytes(input);
	uint64_t kept_nbytes = 0, reader_nbytes = 0, frame_nbytes = 0;

	for (size_t i = 0; i < input->n_sources; i++) {
		const struct zst_reader *reader = input->sources[i].source.zst_reader;

		nbytes += source_nbytes(&input->sources[i]);
		if (!reader)
			continue;
		kept_nbytes += zst_reader_memory_nbytes(reader);
		if (zst_reader_thread_nbytes(reader) > reader_nbytes)
			reader_nbytes = zst_reader_thread_nbytes(reader);
		if (zst_reader_frame_nbytes(reader) > frame_nbytes)
			frame_nbytes = zst_reader_frame_nbytes(reader);
	}
	/* Each reader is at both ends of its part, and what has been given out is not kept. */
	if (in_order && kept_nbytes > 2 * n_readers * frame_nbytes)
		kept_nbytes = 2 * n_readers * frame_nbytes;
	return nbytes + kept_nbytes + n_readers * reader_nbytes;
}

uint64_t input_total_nbytes(const struct input *input)
{
	return input->total_nbytes;
}

size_t input_n_files(const struct input *input)
{
	return input->n_sources;
}

struct input_extent input_file_extent(const struct input *input, size_t i)
{
	const struct placed_source *placed = &input->sources[i];

	assert(!is_serial(input) && i < input->n_sources);
	return (struct input_extent){ .path = placed->source.name,
				      .position = placed->position,
				      .nbytes = placed->source.nbytes };
}

const struct framing *input_framing(const struct input *input)
{
	return &input->framing;
}

struct input_tail input_tail(const struct input *input, size_t i)
{
	assert(i < input->n_sources);
	return (struct input_tail){ input->sources[i].tail, input->sources[i].tail_nbytes };
}

bool input_has_listed_file(const struct input *input, struct file_identity identity)
{
	for (size_t i = 0; i < input->n_sources; i++)
		if (input->sources[i].source.list &&
		    file_identity_equal(input->sources[i].source.identity, identity))
			return true;
	return false;
}

size_t input_n_groups(const struct input *input)
{
	return input->lists ? input->lists->n_groups : input->n_sources;
}

struct input_extent input_group_extent(const struct input *input, size_t i)
{
	const struct input_group *group;
	struct input_extent extent;

	if (!input->lists)
		return input_file_extent(input, i);
	group = &input->lists->groups[i];
	extent = input_file_extent(input, group->first);
	for (size_t file = 1; file < group->n; file++)
		extent.nbytes += input_file_extent(input, group->first + file).nbytes;
	if (group->is_list)
		extent.path = group->path;
	return extent;
}

bool input_has_file(const struct input *input, struct file_identity identity)
{
	for (size_t i = 0; i < input->n_sources; i++)
		if (file_identity_equal(input->sources[i].source.identity, identity))
			return true;
	return false;
}

int input_check_state(const struct input *input)
{
	int r = 0;

	for (size_t i = 0; i < input->n_sources && r == 0; i++)
		r = source_check_state(&input->sources[i].source);
	return r;
}

uint64_t input_nbytes_before(const struct input *input, struct file_identity identity)
{
	for (size_t i = 0; i < input->n_sources; i++) {
		const struct source *source = &input->sources[i].source;

		if (source->n_before && file_identity_equal(source->identity, identity))
			return source->n_before;
	}
	return 0;
}

/* The last of the started sources that begins at or before `position`. */
static size_t find_source(struct input *input, uint64_t position)
{
	size_t lo = 0, hi = atomic_load(&input->n_started);

	while (hi - lo > 1) {
		const size_t i = lo + (hi - lo) / 2;

		if (input->sources[i].position <= position)
			lo = i;
		else
			hi = i;
	}
	return lo;
}

void input_path_at(struct input *input, uint64_t position, const char **ret_path,
		   uint64_t *ret_record)
{
	const struct placed_source *placed = &input->sources[find_source(input, position)];

	assert(atomic_load(&input->n_started) > 0);
	*ret_path = placed->source.name;
	*ret_record = (position - placed->position) / input->framing.record_nbytes;
}

uint64_t input_check_nbytes(struct input *input, uint64_t position)
{
	const struct placed_source *placed;

	if (!input->lists)
		return UINT64_MAX;
	placed = &input->sources[find_source(input, position)];
	return placed->source.is_stream ? UINT64_MAX :
					  placed->position + placed->source.nbytes - position;
}

int input_note_read(struct input *input, uint64_t position, struct digest digest)
{
	return input->lists ? input_lists_note(input->lists, find_source(input, position), digest) :
			      0;
}

/* --- regular files --- */

int input_read_at(struct input *input, uint64_t position, void *buffer, size_t nbytes)
{
	unsigned char *to = buffer;

	assert(!is_serial(input) && position + nbytes <= input->total_nbytes);
	for (size_t i = find_source(input, position); nbytes > 0; i++) {
		struct source *source = &input->sources[i].source;
		const uint64_t offset = position - input->sources[i].position;
		const uint64_t left = source->nbytes - offset;
		const size_t n = left < nbytes ? (size_t)left : nbytes;
		const int r = n ? source_read_at(&input->table, source, offset, to, n) : 0;

		if (r < 0)
			return r;
		position += n;
		to += n;
		nbytes -= n;
	}
	return 0;
}

size_t input_claim(struct input *input, size_t nbytes, uint64_t *ret_position)
{
	uint64_t left;

	pthread_mutex_lock(&input->claim);
	left = input->total_nbytes - input->next;
	if (nbytes > left)
		nbytes = (size_t)left;
	*ret_position = input->next;
	input->next += nbytes;
	pthread_mutex_unlock(&input->claim);
	return nbytes;
}

static int read_parallel(struct input *input, void *buffer, size_t nbytes, uint64_t *ret_position,
			 size_t *ret_nbytes)
{
	uint64_t position;
	int r;

	nbytes = input_claim(input, nbytes, &position);
	r = input_read_at(input, position, buffer, nbytes);
	if (r < 0)
		return r;
	*ret_position = position;
	*ret_nbytes = nbytes;
	return 0;
}

/* --- both --- */

enum { LEAST_PAGE_NBYTES = 4096 };

/* Have the system give the memory. */
static void touch(void *buffer, size_t nbytes)
{
	volatile char *bytes = buffer;

	for (size_t i = 0; i < nbytes; i += LEAST_PAGE_NBYTES)
		bytes[i] = 0;
}

static int read_in_turn(struct input *input, void *buffer, size_t nbytes, uint64_t *ret_position,
			size_t *ret_nbytes)
{
	int r;

	/* Of a buffer that a short input does not fill, no more is to be used than it needs. */
	if (atomic_load(&input->is_long))
		touch(buffer, nbytes);
	pthread_mutex_lock(&input->claim);
	r = atomic_load(&input->r); /* of those who were in turn before us */
	if (r == 0)
		r = input_read_serial(input, buffer, nbytes, ret_position, ret_nbytes);
	if (r < 0)
		input_stop(input, r);
	else if (*ret_nbytes == nbytes)
		atomic_store(&input->is_long, true);
	pthread_mutex_unlock(&input->claim);
	return r;
}

int input_read(struct input *input, void *buffer, size_t nbytes, uint64_t *ret_position,
	       size_t *ret_nbytes)
{
	int r = atomic_load(&input->r);

	assert(nbytes % input->framing.record_nbytes == 0);
	if (r < 0)
		return r;
	if (is_serial(input))
		return read_in_turn(input, buffer, nbytes, ret_position, ret_nbytes);
	r = read_parallel(input, buffer, nbytes, ret_position, ret_nbytes);
	if (r < 0)
		input_stop(input, r);
	return r;
}

void input_start_at(struct input *input, uint64_t position)
{
	assert(!is_serial(input) && position <= input->total_nbytes);
	pthread_mutex_lock(&input->claim);
	input->next = position;
	pthread_mutex_unlock(&input->claim);
}

/* What is looked at, at the beginning, in the middle, and at the end. */
#define SAMPLE_NBYTES (UINT64_C(4) << 20)

/* Of the source that `position` is in, as much as is in it. */
static bool is_sample_cached(struct input *input, uint64_t position, uint64_t nbytes)
{
	struct placed_source *placed = &input->sources[find_source(input, position)];
	struct source *source = &placed->source;
	const uint64_t offset = position - placed->position;
	const uint64_t left = source->nbytes - offset;
	bool is_cached;

	if (source->zst_reader || left == 0 || source_acquire(&input->table, source) < 0)
		return false;
	is_cached = direct_is_cached(&source->file, source->base + offset,
				     left < nbytes ? left : nbytes);
	source_release(&input->table, source);
	return is_cached;
}

bool input_is_cached(struct input *input, uint64_t position, uint64_t nbytes)
{
	const uint64_t sample_nbytes = nbytes < SAMPLE_NBYTES ? nbytes : SAMPLE_NBYTES;
	const uint64_t last = nbytes - sample_nbytes;

	assert(!is_serial(input) && position + nbytes <= input->total_nbytes);
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

void input_pass(const struct input *input)
{
	size_t i = 0;

	while (i < input->n_sources && input->sources[i].source.path)
		i++;
	if (i < input->n_sources)
		source_pass(&input->sources[i].source);
}

int input_cancel_together(struct input *input, const struct input *other)
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
	const uint64_t one = 1;

	input_stop(input, -ECANCELED);
	if (input->cancel_fd >= 0 && write(input->cancel_fd, &one, sizeof one) < 0)
		assert(errno == EAGAIN); /* it is readable already */
	for (size_t i = 0; i < input->n_sources; i++)
		if (input->sources[i].source.given.kind == GIVEN_HANDOVER)
			handover_fail(input->sources[i].source.given.handover, -ECANCELED);
}
