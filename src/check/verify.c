/*
 * verify - order, duplicates and digest of a file (see verify.h)
 */
#include "src/check/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/thread_pool.h"
#include "src/base/diagnostics.h"
#include "src/check/order_check.h"

enum { MAX_THREADS = 64 };

/* One check; its threads share it. */
struct verify {
	/* Fixed before the threads start. */
	const struct verify_options *options;
	bool are_items; /* see order_check.h */
	uint64_t record_nbytes;
	verify_read_fn *read_at;
	void *file;
	struct input *input; /* that it is; NULL: an output */
	uint64_t begin, end; /* of what is checked */
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

static void note_disorder(struct verify *verify, uint64_t record)
{
	uint64_t first = atomic_load(&verify->first_disorder);

	while (record < first &&
	       !atomic_compare_exchange_weak(&verify->first_disorder, &first, record))
		;
}

static uint128_t sum_hashes(const struct verify *verify, const unsigned char *records, uint64_t n)
{
	const uint64_t record_nbytes = verify->record_nbytes;
	uint128_t sum = 0;

	for (uint64_t i = 0; i < n; i++)
		sum += verify->options->hash(records + i * record_nbytes, record_nbytes);
	return sum;
}

static struct digest check_records(struct verify *verify, struct piece piece,
				   struct verify_result *result)
{
	const uint64_t n_done = piece.first_is_done;
	const unsigned char *records = piece.records + n_done * verify->record_nbytes;
	struct order_found found;

	order_check(
		&(struct order_op){
			.layout = verify->options->layout,
			.are_items = verify->are_items,
			.previous = n_done ? piece.records : NULL,
			.records = records,
			.n = piece.n - n_done,
			.strict = verify->options->strict,
		},
		&found);
	digest_add(&result->digest, found.digest);
	if (verify->options->hash)
		result->hash_sum += sum_hashes(verify, records, piece.n - n_done);
	result->n_duplicates += found.n_equal;
	result->n_counted += found.n_counted;
	result->n_disorders += found.n_disorders;
	if (found.n_disorders)
		note_disorder(verify, piece.number + n_done + found.first_disorder);
	return found.digest;
}

/*
 * Of an input of several files whose contents somebody knows, each file apart. position: of the
 * piece in the input.
 */
static int check_piece(struct verify *verify, struct piece piece, uint64_t position,
		       struct verify_result *result)
{
	const uint64_t record_nbytes = verify->record_nbytes;
	uint64_t left = piece.n;
	int r = 0;

	if (!verify->input) {
		check_records(verify, piece, result);
		return 0;
	}
	while (left > piece.first_is_done && r == 0) {
		const uint64_t n_done = piece.first_is_done;
		const uint64_t begin = position + n_done * record_nbytes;
		const uint64_t most = input_check_nbytes(verify->input, begin) / record_nbytes;

		piece.n = n_done + (left - n_done < most ? left - n_done : most);
		r = input_note_read(verify->input, begin, check_records(verify, piece, result));
		piece.records += (piece.n - 1) * record_nbytes;
		piece.number += piece.n - 1;
		piece.first_is_done = true;
		position += (piece.n - 1) * record_nbytes;
		left -= piece.n - 1;
	}
	return r;
}

static bool is_decided(const struct verify *verify, uint64_t position)
{
	return atomic_load(&verify->error) ||
	       (verify->options->stop_at_disorder &&
		atomic_load(&verify->first_disorder) <= position / verify->record_nbytes);
}

/*
 * Read and check the next piece. Returns 1, or 0 when there is nothing left to do, or a negative
 * errno.
 */
static int do_next_piece(struct verify *verify, unsigned char *buffer, struct verify_result *result)
{
	const uint64_t record_nbytes = verify->record_nbytes;
	const uint64_t index = atomic_fetch_add(&verify->next_piece, 1);
	const uint64_t position = verify->begin + index * verify->piece_nbytes;
	const uint64_t begin = position ? position - record_nbytes : 0;
	struct span span = stats_begin(STAGE_VERIFY, index);
	uint64_t nbytes;
	int r;

	if (position >= verify->end || is_decided(verify, position))
		return 0;
	nbytes = verify->end - position < verify->piece_nbytes ? verify->end - position :
								 verify->piece_nbytes;
	nbytes += position - begin;
	r = cancellation_check(verify->options->cancellation);
	if (r == 0)
		r = verify->read_at(verify->file, begin, buffer, nbytes);
	if (r < 0)
		return r;
	r = check_piece(verify,
			(struct piece){ .records = buffer,
					.n = nbytes / record_nbytes,
					.number = begin / record_nbytes + 1,
					.first_is_done = position > 0 },
			begin, result);
	stats_end(verify->options->stats, span, nbytes);
	return r < 0 ? r : 1;
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
	verify->result.n_counted += result->n_counted;
	verify->result.hash_sum += result->hash_sum;
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
static void work(void *context)
{
	struct verify *verify = context;
	struct verify_result result = { 0 };
	unsigned char *buffer = allocate_buffer();
	int r = buffer ? 1 : -ENOMEM;

	while (r > 0)
		r = do_next_piece(verify, buffer, &result);
	free(buffer);
	finish(verify, &result, r);
}

static void work_in_threads(struct verify *verify)
{
	const uint64_t n_pieces = (verify->end - verify->begin) / verify->piece_nbytes + 1;
	unsigned n_threads = verify->options->n_threads;

	if (n_threads > MAX_THREADS)
		n_threads = MAX_THREADS;
	if (n_threads > n_pieces)
		n_threads = (unsigned)n_pieces;
	crew_share(n_threads, work, verify);
}

static void verify_init(struct verify *verify, const struct verify_options *options, bool are_items)
{
	const uint64_t record_nbytes = order_record_nbytes(options->layout, are_items);

	*verify = (struct verify){
		.options = options,
		.are_items = are_items,
		.record_nbytes = record_nbytes,
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
	const uint64_t record_nbytes = verify->record_nbytes;
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
		r = check_piece(verify, piece, position - n_kept * record_nbytes, result);
		if (r < 0)
			return r;
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

int verify_input(struct input *input, const struct verify_options *options,
		 struct verify_result *ret_result)
{
	struct verify verify;
	int r;

	verify_init(&verify, options, false);
	verify.read_at = read_input;
	verify.file = verify.input = input;
	verify.end = input_total_nbytes(input);
	if (verify.end == INPUT_SIZE_UNKNOWN)
		work_on_stream(&verify, input);
	else
		work_in_threads(&verify);
	r = verify_result(&verify, ret_result);
	if (r == 0)
		input_pass(input);
	return r;
}

int verify_input_part(struct input *input, struct verify_part part,
		      const struct verify_options *options, struct verify_result *ret_result)
{
	struct verify verify;

	verify_init(&verify, options, false);
	verify.read_at = read_input;
	verify.file = verify.input = input;
	verify.begin = part.begin * verify.record_nbytes;
	verify.end = part.end * verify.record_nbytes;
	work_in_threads(&verify);
	return verify_result(&verify, ret_result);
}

int verify_written(verify_read_fn *read_at, void *context, uint64_t nbytes,
		   const struct verify_options *options, struct verify_result *ret_result)
{
	struct verify verify;

	verify_init(&verify, options, true);
	verify.read_at = read_at;
	verify.file = context;
	verify.end = nbytes;
	work_in_threads(&verify);
	return verify_result(&verify, ret_result);
}

int verify_edge_open(const struct layout *layout, struct verify_edge *ret_edge)
{
	void *last = malloc(layout->record_nbytes);

	if (!last)
		return fail(-ENOMEM, "no memory for a record of %" PRIu64 " bytes",
			    layout->record_nbytes);
	*ret_edge = (struct verify_edge){ .last = last };
	return 0;
}

void verify_edge_close(struct verify_edge *edge)
{
	free(edge->last);
	*edge = (struct verify_edge){ 0 };
}

uint64_t verify_records(const struct layout *layout, const void *records, uint64_t n,
			struct verify_edge *edge, struct digest *digest)
{
	const struct order_op op = {
		.layout = layout,
		.previous = edge->has_last ? edge->last : NULL,
		.records = records,
		.n = n,
	};
	struct order_found found;

	if (n == 0)
		return 0;
	order_check(&op, &found);
	digest_add(digest, found.digest);
	memcpy(edge->last, (const char *)records + (n - 1) * layout->record_nbytes,
	       layout->record_nbytes);
	edge->has_last = true;
	return found.first_disorder;
}
