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
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "io/file/direct_io.h"
#include "io/input/input_stream.h"
#include "io/input/input_internal.h"
#include "src/base/int_math.h"
#include "src/base/rendezvous.h"
#include "src/base/diagnostics.h"

void input_stop(struct input *input, int r)
{
	int no_error = 0;

	atomic_compare_exchange_strong(&input->r, &no_error, r);
}

/* The last of the started sources that begins at or before `position`. */
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

void input_get_read_digests(const struct input *input, struct digest *ret_digests)
{
	for (size_t i = 0; i < input->n_sources; i++)
		ret_digests[i] = input->part_inputs ?
					 part_inputs_get_read_digest(input->part_inputs, i) :
					 (struct digest){ 0 };
}

int input_merge_read_digests(struct input *input, const struct digest *digests)
{
	int r = 0;

	for (size_t i = 0; i < input->n_sources && r == 0; i++)
		r = input->part_inputs ?
			    part_inputs_add_read_digest(input->part_inputs, i, digests[i]) :
			    0;
	return r;
}

/* --- regular files --- */

int input_read_at(struct input *input, uint64_t position, void *buffer, size_t nbytes)
{
	unsigned char *to = buffer;

	assert(!input_is_serial(input) && position + nbytes <= input->total_nbytes);
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

size_t input_claim(struct input *input, size_t nbytes, uint64_t *ret_position)
{
	uint64_t remaining;

	pthread_mutex_lock(&input->claim_lock);
	remaining = input->total_nbytes - input->excluded_end_nbytes - input->next;
	if (nbytes > remaining)
		nbytes = (size_t)remaining;
	*ret_position = input->next;
	input->next += nbytes;
	pthread_mutex_unlock(&input->claim_lock);
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

enum { MIN_PAGE_NBYTES = 4096 };

/* Have the system give the memory. */
static void touch_pages(void *buffer, size_t nbytes)
{
	volatile char *bytes = buffer;

	for (size_t i = 0; i < nbytes; i += MIN_PAGE_NBYTES)
		bytes[i] = 0;
}

static int read_serialized(struct input *input, void *buffer, size_t nbytes, uint64_t *ret_position,
			   size_t *ret_nbytes)
{
	int r;

	/* Of a buffer that a short input does not fill, no more is to be used than it needs. */
	if (atomic_load(&input->has_filled_buffer))
		touch_pages(buffer, nbytes);
	pthread_mutex_lock(&input->claim_lock);
	r = atomic_load(&input->r); /* of those who were in turn before us */
	if (r == 0)
		r = input_read_serial(input, buffer, nbytes, ret_position, ret_nbytes);
	if (r < 0)
		input_stop(input, r);
	else if (*ret_nbytes == nbytes)
		atomic_store(&input->has_filled_buffer, true);
	pthread_mutex_unlock(&input->claim_lock);
	return r;
}

int input_read(struct input *input, void *buffer, size_t nbytes, uint64_t *ret_position,
	       size_t *ret_nbytes)
{
	int r = atomic_load(&input->r);

	assert(nbytes % input->framing.record_nbytes == 0);
	if (r < 0)
		return r;
	if (input_is_serial(input))
		return read_serialized(input, buffer, nbytes, ret_position, ret_nbytes);
	r = read_parallel(input, buffer, nbytes, ret_position, ret_nbytes);
	if (r < 0)
		input_stop(input, r);
	return r;
}

void input_start_at(struct input *input, uint64_t position)
{
	assert(!input_is_serial(input) && position <= input->total_nbytes);
	pthread_mutex_lock(&input->claim_lock);
	input->next = position;
	pthread_mutex_unlock(&input->claim_lock);
}

void input_end_at(struct input *input, uint64_t position)
{
	assert(!input_is_serial(input) && position <= input->total_nbytes);
	pthread_mutex_lock(&input->claim_lock);
	input->excluded_end_nbytes = input->total_nbytes - position;
	pthread_mutex_unlock(&input->claim_lock);
}

/* What is looked at, at the beginning, in the middle, and at the end. */
#define SAMPLE_NBYTES (UINT64_C(4) << 20)

/* Of the source that `position` is in, as much as is in it. */
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

	assert(!input_is_serial(input) && position + nbytes <= input->total_nbytes);
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

void input_seek_end(const struct input *input)
{
	size_t i = 0;

	while (i < input->n_sources && input->sources[i].source.path)
		i++;
	if (i < input->n_sources)
		source_seek_end(&input->sources[i].source);
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

	input_stop(input, -ECANCELED);
	if (input->cancel_fd >= 0 && write(input->cancel_fd, &increment, sizeof increment) < 0)
		assert(errno == EAGAIN); /* it is readable already */
	for (size_t i = 0; i < input->n_sources; i++)
		if (input->sources[i].source.endpoint.kind == ENDPOINT_RENDEZVOUS)
			rendezvous_fail(input->sources[i].source.endpoint.rendezvous, -ECANCELED);
}
