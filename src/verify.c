/*
 * verify - order, duplicates and digest of a file (see verify.h)
 *
 * Records are encoded in batches that stay in the first-level cache, and neighbours are compared as
 * codes without a branch; only a batch that has a disorder is looked at again to find where.
 */
#include "src/verify.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "src/cpu/encode.h"
#include "src/status.h"

enum { BATCH_RECORDS = 512, MAX_THREADS = 64 };

/* Codes of consecutive records; the first is the one before the batch. */
union batch {
	uint32_t c4[1 + BATCH_RECORDS];
	uint64_t c8[1 + BATCH_RECORDS];
	uint128_t c16[1 + BATCH_RECORDS];
};

/* One check; its threads share it. */
struct verify {
	/* Fixed before the threads start. */
	const struct verify_options *options;
	int (*read_at)(void *file, uint64_t position, void *buffer, size_t nbytes);
	void *file;
	uint64_t nbytes;
	uint64_t piece_nbytes;

	_Atomic uint64_t next_piece;
	_Atomic uint64_t first_disorder; /* as in the result, but UINT64_MAX: none */
	_Atomic int error;               /* the first */

	pthread_mutex_t lock;
	struct verify_result result; /* under the lock; threads add theirs at their end */
};

/* Some consecutive records in memory. */
struct piece {
	const unsigned char *records;
	uint64_t n;
	uint64_t number;    /* of the first, from 1 */
	bool first_is_done; /* the first was in the piece before, too: only compared with */
};

/* Records to codes, and their digest added to *digest if that is not NULL. */
static void encode(const struct layout *layout, const unsigned char *records, uint64_t n,
		   void *codes, struct digest *digest)
{
	const struct encode_op op = {
		.layout = layout,
		.records = records,
		.elements = codes,
		.n = n,
		.ret_digest = digest,
	};

	cpu_encode(&op);
}

/* Descents and equal neighbours among the n records of a batch. */
struct neighbours {
	uint64_t n_descents, n_equal;
};

#define COUNT_NEIGHBOURS(codes)                                                                    \
	for (uint64_t i = 0; i < n; i++) {                                                         \
		found.n_descents += (codes)[i + 1] < (codes)[i];                                   \
		found.n_equal += (codes)[i + 1] == (codes)[i];                                     \
	}                                                                                          \
	break

static struct neighbours count_neighbours(const union batch *batch, uint32_t element_nbytes,
					  uint64_t n)
{
	struct neighbours found = { 0 };

	switch (element_nbytes) {
	case 4:
		COUNT_NEIGHBOURS(batch->c4);
	case 8:
		COUNT_NEIGHBOURS(batch->c8);
	default:
		COUNT_NEIGHBOURS(batch->c16);
	}
	return found;
}

#undef COUNT_NEIGHBOURS

/* The first record of the batch, from 0, that is not in order with the one before it. */
static uint64_t find_disorder(const union batch *batch, uint32_t element_nbytes, bool strict)
{
	code_t previous = element_get(batch, element_nbytes, 0);

	for (uint64_t i = 0;; i++) {
		const code_t code = element_get(batch, element_nbytes, i + 1);

		if (code < previous || (strict && code == previous))
			return i;
		previous = code;
	}
}

static void note_disorder(struct verify *verify, uint64_t record)
{
	uint64_t first = atomic_load(&verify->first_disorder);

	while (record < first &&
	       !atomic_compare_exchange_weak(&verify->first_disorder, &first, record))
		;
}

static void check_batch(struct verify *verify, const union batch *batch, uint64_t n,
			uint64_t number, struct verify_result *result)
{
	const uint32_t element_nbytes = verify->options->layout->element_nbytes;
	const bool strict = verify->options->strict;
	const struct neighbours found = count_neighbours(batch, element_nbytes, n);
	const uint64_t n_disorders = found.n_descents + (strict ? found.n_equal : 0);

	result->n_duplicates += found.n_equal;
	result->n_disorders += n_disorders;
	if (n_disorders)
		note_disorder(verify, number + find_disorder(batch, element_nbytes, strict));
}

/*
 * Compare all neighbours within the piece, its first record serving as the one before the second.
 */
static void check_piece(struct verify *verify, struct piece piece, struct verify_result *result)
{
	const struct layout *layout = verify->options->layout;
	union batch batch;

	encode(layout, piece.records, 1, &batch, piece.first_is_done ? NULL : &result->digest);
	for (uint64_t i = 1; i < piece.n;) {
		const uint64_t n = piece.n - i < BATCH_RECORDS ? piece.n - i : BATCH_RECORDS;
		char *codes = (char *)&batch;

		encode(layout, piece.records + i * layout->record_nbytes, n,
		       codes + layout->element_nbytes, &result->digest);
		check_batch(verify, &batch, n, piece.number + i, result);
		memcpy(codes, codes + n * layout->element_nbytes, layout->element_nbytes);
		i += n;
	}
}

static bool is_decided(const struct verify *verify, uint64_t position)
{
	return atomic_load(&verify->error) ||
	       (verify->options->stop_at_disorder &&
		atomic_load(&verify->first_disorder) <=
			position / verify->options->layout->record_nbytes);
}

/*
 * Read and check the next piece. Returns 1, or 0 when there is nothing left to do, or a negative
 * errno.
 */
static int do_next_piece(struct verify *verify, unsigned char *buffer, struct verify_result *result)
{
	const uint64_t record_nbytes = verify->options->layout->record_nbytes;
	const uint64_t index = atomic_fetch_add(&verify->next_piece, 1);
	const uint64_t position = index * verify->piece_nbytes;
	const uint64_t begin = position ? position - record_nbytes : 0;
	struct span span = stats_begin(STAGE_VERIFY, index);
	uint64_t nbytes;
	int r;

	if (position >= verify->nbytes || is_decided(verify, position))
		return 0;
	nbytes = verify->nbytes - position < verify->piece_nbytes ? verify->nbytes - position :
								    verify->piece_nbytes;
	nbytes += position - begin;
	r = verify->read_at(verify->file, begin, buffer, nbytes);
	if (r < 0)
		return r;
	check_piece(verify,
		    (struct piece){ .records = buffer,
				    .n = nbytes / record_nbytes,
				    .number = begin / record_nbytes + 1,
				    .first_is_done = position > 0 },
		    result);
	stats_end(verify->options->stats, span, nbytes);
	return 1;
}

/* A thread's findings into the common result. */
static void finish(struct verify *verify, const struct verify_result *result, int r)
{
	int none = 0;

	if (r < 0)
		atomic_compare_exchange_strong(&verify->error, &none, r);
	pthread_mutex_lock(&verify->lock);
	digest_add(&verify->result.digest, result->digest);
	verify->result.n_disorders += result->n_disorders;
	verify->result.n_duplicates += result->n_duplicates;
	pthread_mutex_unlock(&verify->lock);
}

static void *allocate_buffer(void)
{
	void *buffer = malloc(VERIFY_THREAD_NBYTES);

	if (!buffer)
		fail(-ENOMEM, "no memory for a buffer of %d bytes: %m", VERIFY_THREAD_NBYTES);
	return buffer;
}

/* A thread: pieces until there are none. */
static void *work(void *arg)
{
	struct verify *verify = arg;
	struct verify_result result = { 0 };
	unsigned char *buffer = allocate_buffer();
	int r = buffer ? 1 : -ENOMEM;

	while (r > 0)
		r = do_next_piece(verify, buffer, &result);
	free(buffer);
	finish(verify, &result, r);
	return NULL;
}

/* The calling thread works too. Threads that cannot be had are done without. */
static void work_in_threads(struct verify *verify)
{
	const uint64_t n_pieces = verify->nbytes / verify->piece_nbytes + 1;
	pthread_t threads[MAX_THREADS];
	unsigned n_wanted = verify->options->n_threads;
	unsigned n_started = 0;

	if (n_wanted > MAX_THREADS)
		n_wanted = MAX_THREADS;
	if (n_wanted > n_pieces)
		n_wanted = (unsigned)n_pieces;
	while (n_started + 1 < n_wanted &&
	       pthread_create(&threads[n_started], NULL, work, verify) == 0)
		n_started++;
	work(verify);
	while (n_started)
		pthread_join(threads[--n_started], NULL);
}

static void verify_init(struct verify *verify, const struct verify_options *options)
{
	const uint64_t record_nbytes = options->layout->record_nbytes;

	*verify = (struct verify){
		.options = options,
		/* A piece and the record before it fill a buffer. */
		.piece_nbytes = (VERIFY_THREAD_NBYTES / record_nbytes - 1) * record_nbytes,
		.first_disorder = UINT64_MAX,
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
}

static int verify_result(struct verify *verify, struct verify_result *ret_result)
{
	const uint64_t first_disorder = atomic_load(&verify->first_disorder);
	const int r = atomic_load(&verify->error);

	if (r < 0)
		return r;
	*ret_result = verify->result;
	ret_result->first_disorder = first_disorder == UINT64_MAX ? 0 : first_disorder;
	return 0;
}

/* A pipe cannot be read twice: each piece's last record is kept in front of the next one. */
static int check_stream(struct verify *verify, struct input *input, unsigned char *buffer,
			struct verify_result *result)
{
	const uint64_t record_nbytes = verify->options->layout->record_nbytes;
	struct piece piece = { .records = buffer, .number = 1 };

	for (;;) {
		const uint64_t n_kept = piece.first_is_done;
		struct span span = stats_begin(STAGE_VERIFY, piece.number);
		uint64_t position;
		size_t nbytes;
		int r;

		r = input_read(input, buffer + n_kept * record_nbytes, verify->piece_nbytes,
			       &position, &nbytes);
		if (r < 0 || nbytes == 0)
			return r;
		piece.n = n_kept + nbytes / record_nbytes;
		check_piece(verify, piece, result);
		stats_end(verify->options->stats, span, nbytes);
		if (is_decided(verify, position + nbytes))
			return 0;
		memcpy(buffer, buffer + (piece.n - 1) * record_nbytes, record_nbytes);
		piece.number += piece.n - 1;
		piece.first_is_done = true;
	}
}

static void work_on_stream(struct verify *verify, struct input *input)
{
	struct verify_result result = { 0 };
	unsigned char *buffer = allocate_buffer();
	const int r = buffer ? check_stream(verify, input, buffer, &result) : -ENOMEM;

	free(buffer);
	finish(verify, &result, r);
}

static int read_input(void *file, uint64_t position, void *buffer, size_t nbytes)
{
	return input_read_at(file, position, buffer, nbytes);
}

static int read_output(void *file, uint64_t position, void *buffer, size_t nbytes)
{
	return output_read_at(file, position, buffer, nbytes);
}

int verify_input(struct input *input, const struct verify_options *options,
		 struct verify_result *ret_result)
{
	struct verify verify;

	verify_init(&verify, options);
	verify.read_at = read_input;
	verify.file = input;
	verify.nbytes = input_total_nbytes(input);
	if (verify.nbytes == INPUT_SIZE_UNKNOWN)
		work_on_stream(&verify, input);
	else
		work_in_threads(&verify);
	return verify_result(&verify, ret_result);
}

int verify_output(struct output *output, uint64_t nbytes, const struct verify_options *options,
		  struct verify_result *ret_result)
{
	struct verify verify;

	verify_init(&verify, options);
	verify.read_at = read_output;
	verify.file = output;
	verify.nbytes = nbytes;
	work_in_threads(&verify);
	return verify_result(&verify, ret_result);
}

uint64_t verify_records(const struct layout *layout, const void *records, uint64_t n,
			struct verify_edge *edge, struct digest *digest)
{
	const uint32_t element_nbytes = layout->element_nbytes;
	union batch batch;
	char *codes = (char *)&batch;
	uint64_t i = 0;

	if (n && !edge->has_last)
		edge->last = layout_encode(layout, records);
	memcpy(codes, &edge->last, element_nbytes);
	edge->has_last = edge->has_last || n;
	while (i < n) {
		const uint64_t n_batch = n - i < BATCH_RECORDS ? n - i : BATCH_RECORDS;

		encode(layout, (const unsigned char *)records + i * layout->record_nbytes, n_batch,
		       codes + element_nbytes, digest);
		if (count_neighbours(&batch, element_nbytes, n_batch).n_descents)
			return i + find_disorder(&batch, element_nbytes, false);
		memcpy(codes, codes + n_batch * element_nbytes, element_nbytes);
		i += n_batch;
	}
	edge->last = element_get(codes, element_nbytes, 0);
	return n;
}
