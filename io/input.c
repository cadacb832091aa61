/*
 * input - several files and pipes as one stream of whole records (see input.h)
 *
 * There are two ways through this file. With regular files only, a part is claimed by moving `next`
 * and then read with pread(), through the sources that it touches. With a pipe among the inputs,
 * the claim lock is held while the current source is read to its end, then the next one.
 */
#include "io/input.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "io/source.h"
#include "src/status.h"

/* A source and its place in the stream. */
struct placed_source {
	struct source source;
	uint64_t position; /* known once it is started */
};

struct input {
	/* Set at creation. */
	uint64_t record_nbytes;
	uint64_t total_nbytes;
	size_t n_sources;
	int cancel_fd; /* readable once input_cancel() was called; -1 without streams */

	atomic_int r; /* the first failure, or 0 */

	pthread_mutex_t claim;
	/* Under the claim lock. */
	uint64_t next;  /* position that is given out next */
	size_t current; /* the source being read, in a serial input */

	/*
	 * Sources whose position is known: all, or in a serial input the current one and those
	 * before it. Changed under the claim lock, after the position.
	 */
	atomic_size_t n_started;

	struct source_table table;
	struct placed_source sources[];
};

static bool is_serial(const struct input *input)
{
	return input->total_nbytes == INPUT_SIZE_UNKNOWN;
}

/* Remember the first failure; every later reader gets it. */
static void stop(struct input *input, int r)
{
	int none = 0;

	atomic_compare_exchange_strong(&input->r, &none, r);
}

/* --- opening --- */

static int check_whole_records(const struct input *input, const struct source *source,
			       uint64_t nbytes)
{
	const uint64_t remainder = nbytes % input->record_nbytes;

	if (remainder == 0)
		return 0;
	return fail(-EINVAL,
		    "%s: %" PRIu64 " bytes are not a whole number of records of %" PRIu64
		    " bytes: %" PRIu64 " left over",
		    source->name, nbytes, input->record_nbytes, remainder);
}

/* Find out what the sources contribute. total_nbytes is the sum over those with a size. */
static int examine_sources(struct input *input, bool *ret_streams)
{
	const struct source *standard_input = NULL;
	bool streams = false;

	for (size_t i = 0; i < input->n_sources; i++) {
		struct source *source = &input->sources[i].source;
		int r;

		input->sources[i].position = input->total_nbytes;
		if (!source->path && standard_input) {
			/* Given again it has nothing left to read, as to every other program. */
			source->identity = standard_input->identity;
			continue;
		}
		if (!source->path)
			standard_input = source;
		r = source_examine(&input->table, source);
		if (r == 0)
			r = check_whole_records(input, source, source->nbytes);
		if (r < 0)
			return r;
		streams |= source->is_stream;
		input->total_nbytes += source->nbytes;
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

int input_open(const struct io_engine *engine, const char *const *paths, size_t n,
	       uint64_t record_nbytes, struct input **ret_input)
{
	struct input *input = calloc(1, sizeof *input + n * sizeof *input->sources);
	bool streams;
	int r;

	if (!input)
		return fail(-ENOMEM, "list of inputs: %m");
	input->record_nbytes = record_nbytes;
	input->n_sources = n;
	input->cancel_fd = -1;
	pthread_mutex_init(&input->claim, NULL);
	source_table_init(&input->table, engine);
	for (size_t i = 0; i < n; i++)
		source_prepare(&input->sources[i].source, paths[i]);

	r = examine_sources(input, &streams);
	if (r == 0 && streams)
		r = make_serial(input);
	else
		atomic_store(&input->n_started, n);
	if (r < 0) {
		input_close(input);
		return r;
	}
	*ret_input = input;
	return 0;
}

void input_close(struct input *input)
{
	if (!input)
		return;
	for (size_t i = 0; i < input->n_sources; i++)
		source_close(&input->table, &input->sources[i].source);
	source_table_destroy(&input->table);
	if (input->cancel_fd >= 0)
		close(input->cancel_fd);
	pthread_mutex_destroy(&input->claim);
	free(input);
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

bool input_has_file(const struct input *input, struct file_identity identity)
{
	for (size_t i = 0; i < input->n_sources; i++)
		if (file_identity_equal(input->sources[i].source.identity, identity))
			return true;
	return false;
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
	*ret_record = (position - placed->position) / input->record_nbytes;
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

static int read_parallel(struct input *input, void *buffer, size_t nbytes, uint64_t *ret_position,
			 size_t *ret_nbytes)
{
	uint64_t position, left;
	int r;

	pthread_mutex_lock(&input->claim);
	position = input->next;
	left = input->total_nbytes - position;
	if (nbytes > left)
		nbytes = (size_t)left;
	input->next += nbytes;
	pthread_mutex_unlock(&input->claim);

	r = input_read_at(input, position, buffer, nbytes);
	if (r < 0)
		return r;
	*ret_position = position;
	*ret_nbytes = nbytes;
	return 0;
}

/* --- with streams --- */

/* Make the current source ready to be read, if it is not. */
static int start_current(struct input *input)
{
	struct placed_source *placed = &input->sources[input->current];
	int r;

	if (atomic_load(&input->n_started) > input->current)
		return 0;
	r = source_acquire(&input->table, &placed->source);
	if (r < 0)
		return r;
	placed->position = input->next;
	atomic_store(&input->n_started, input->current + 1);
	return 0;
}

/* The current source has come to its end. */
static int finish_current(struct input *input)
{
	struct placed_source *placed = &input->sources[input->current];
	struct source *source = &placed->source;
	const uint64_t nbytes = input->next - placed->position;
	int r = 0;

	if (source->is_stream)
		r = check_whole_records(input, source, nbytes);
	else if (nbytes != source->nbytes)
		r = source_fail_changed(source, nbytes);
	source_release(&input->table, source);
	input->current++;
	return r;
}

static int read_serial(struct input *input, void *buffer, size_t nbytes, uint64_t *ret_position,
		       size_t *ret_nbytes)
{
	unsigned char *const to = buffer;
	const uint64_t position = input->next;
	size_t filled = 0;

	while (filled < nbytes && input->current < input->n_sources) {
		struct source *source = &input->sources[input->current].source;
		const size_t wanted = nbytes - filled;
		size_t n;
		int r = start_current(input);

		if (r < 0)
			return r;
		r = file_read_next(&source->file, to + filled, wanted, input->cancel_fd, &n);
		if (r == -ECANCELED)
			return r;
		if (r < 0)
			return fail(r, "%s: read: %m", source->name);
		filled += n;
		input->next += n;
		if (n < wanted)
			r = finish_current(input);
		if (r < 0)
			return r;
	}
	*ret_position = position;
	*ret_nbytes = filled;
	return 0;
}

static int read_in_turn(struct input *input, void *buffer, size_t nbytes, uint64_t *ret_position,
			size_t *ret_nbytes)
{
	int r;

	pthread_mutex_lock(&input->claim);
	r = atomic_load(&input->r); /* of those who were in turn before us */
	if (r == 0)
		r = read_serial(input, buffer, nbytes, ret_position, ret_nbytes);
	if (r < 0)
		stop(input, r);
	pthread_mutex_unlock(&input->claim);
	return r;
}

int input_read(struct input *input, void *buffer, size_t nbytes, uint64_t *ret_position,
	       size_t *ret_nbytes)
{
	int r = atomic_load(&input->r);

	assert(nbytes % input->record_nbytes == 0);
	if (r < 0)
		return r;
	if (is_serial(input))
		return read_in_turn(input, buffer, nbytes, ret_position, ret_nbytes);
	r = read_parallel(input, buffer, nbytes, ret_position, ret_nbytes);
	if (r < 0)
		stop(input, r);
	return r;
}

void input_prefetch(struct input *input, uint64_t nbytes)
{
	for (size_t i = 0; i < input->n_sources && nbytes; i++) {
		struct source *source = &input->sources[i].source;
		const uint64_t n = source->nbytes < nbytes ? source->nbytes : nbytes;

		if (source->is_stream || source_acquire(&input->table, source) < 0)
			return;
		posix_fadvise(source->file.fd, (off_t)source->base, (off_t)n, POSIX_FADV_WILLNEED);
		source_release(&input->table, source);
		nbytes -= n;
	}
}

void input_cancel(struct input *input)
{
	const uint64_t one = 1;

	stop(input, -ECANCELED);
	if (input->cancel_fd >= 0 && write(input->cancel_fd, &one, sizeof one) < 0)
		assert(errno == EAGAIN); /* it is readable already */
}
