/*
 * verify.c - order, duplicates and digest of a file
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

/* Shared by the threads of a check. */
struct verify {
	/* Set before the threads start */
	const struct verify_options *options;
	bool are_items; /* see order_check.h */
	uint64_t record_nbytes;
	verify_read_fn *read_at;
	void *file;
	struct input *input; /* that is checked; NULL: an output */
	uint64_t begin, end; /* of the range that is checked */
	uint64_t block_nbytes;

	_Atomic uint64_t next_block;
	_Atomic uint64_t first_disorder; /* a record number; UINT64_MAX: none */
	_Atomic int error;               /* the first, or 0 */

	pthread_mutex_t lock;
	struct verify_result result; /* under the lock; threads add their results when they end */
};

/* Consecutive records in memory. */
struct record_block {
	const unsigned char *records;
	uint64_t n;
	uint64_t number;   /* of the first record, from 1 */
	bool has_previous; /* the first record was in the block before; only for comparison */
};

static void record_disorder(struct verify *verify, uint64_t record)
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

static struct digest check_block_records(struct verify *verify, struct record_block block,
					 struct verify_result *result)
{
	const uint64_t n_previous = block.has_previous;
	const unsigned char *records = block.records + n_previous * verify->record_nbytes;
	struct order_check_result order_result;

	order_check(
		&(struct order_check_params){
			.layout = verify->options->layout,
			.are_items = verify->are_items,
			.previous = n_previous ? block.records : NULL,
			.records = records,
			.n = block.n - n_previous,
			.strict = verify->options->strict,
		},
		&order_result);
	digest_add(&result->digest, order_result.digest);
	if (verify->options->hash)
		result->hash_sum += sum_hashes(verify, records, block.n - n_previous);
	result->n_duplicates += order_result.n_equal;
	result->counts_sum += order_result.counts_sum;
	result->n_disorders += order_result.n_disorders;
	if (order_result.n_disorders)
		record_disorder(verify, block.number + n_previous + order_result.first_disorder);
	return order_result.digest;
}

/*
 * Check the records of a block. Those of several files whose digests are checked are taken file by
 * file. position: of the block in the input.
 */
static int check_block(struct verify *verify, struct record_block block, uint64_t position,
		       struct verify_result *result)
{
	const uint64_t record_nbytes = verify->record_nbytes;
	uint64_t remaining = block.n;
	int r = 0;

	if (!verify->input) {
		check_block_records(verify, block, result);
		return 0;
	}
	while (remaining > block.has_previous && r == 0) {
		const uint64_t n_previous = block.has_previous;
		const uint64_t begin = position + n_previous * record_nbytes;
		const uint64_t max_records =
			input_verify_nbytes(verify->input, begin) / record_nbytes;

		block.n = n_previous + (remaining - n_previous < max_records ?
						remaining - n_previous :
						max_records);
		r = input_add_read_digest(verify->input, begin,
					  check_block_records(verify, block, result));
		block.records += (block.n - 1) * record_nbytes;
		block.number += block.n - 1;
		block.has_previous = true;
		position += (block.n - 1) * record_nbytes;
		remaining -= block.n - 1;
	}
	return r;
}

static bool can_stop_at_first(const struct verify *verify, uint64_t position)
{
	return atomic_load(&verify->error) ||
	       (verify->options->stop_at_disorder &&
		atomic_load(&verify->first_disorder) <= position / verify->record_nbytes);
}

/*
 * Claim, read and check a block. Returns 1, 0 if there is nothing left to do, or a negative errno.
 */
static int check_next_block(struct verify *verify, unsigned char *buffer,
			    struct verify_result *result)
{
	const uint64_t record_nbytes = verify->record_nbytes;
	const uint64_t index = atomic_fetch_add(&verify->next_block, 1);
	const uint64_t position = verify->begin + index * verify->block_nbytes;
	const uint64_t begin = position ? position - record_nbytes : 0;
	struct span span = stats_begin(STAGE_VERIFY, index);
	uint64_t nbytes;
	int r;

	if (position >= verify->end || can_stop_at_first(verify, position))
		return 0;
	nbytes = verify->end - position < verify->block_nbytes ? verify->end - position :
								 verify->block_nbytes;
	nbytes += position - begin;
	r = cancellation_check(verify->options->cancellation);
	if (r == 0)
		r = verify->read_at(verify->file, begin, buffer, nbytes);
	if (r < 0)
		return r;
	r = check_block(verify,
			(struct record_block){ .records = buffer,
					       .n = nbytes / record_nbytes,
					       .number = begin / record_nbytes + 1,
					       .has_previous = position > 0 },
			begin, result);
	stats_end(verify->options->stats, span, nbytes);
	return r < 0 ? r : 1;
}

/* Add the results of a thread to those of all. */
static void merge_thread_result(struct verify *verify, const struct verify_result *result, int r)
{
	int no_error = 0;

	if (r < 0)
		atomic_compare_exchange_strong(&verify->error, &no_error, r);
	pthread_mutex_lock(&verify->lock);
	digest_add(&verify->result.digest, result->digest);
	verify->result.n_disorders += result->n_disorders;
	verify->result.n_duplicates += result->n_duplicates;
	verify->result.counts_sum += result->counts_sum;
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

/* A thread: check blocks until there are none. */
static void verify_thread_main(void *context)
{
	struct verify *verify = context;
	struct verify_result result = { 0 };
	unsigned char *buffer = allocate_buffer();
	int r = buffer ? 1 : -ENOMEM;

	while (r > 0)
		r = check_next_block(verify, buffer, &result);
	free(buffer);
	merge_thread_result(verify, &result, r);
}

static void verify_in_threads(struct verify *verify)
{
	const uint64_t n_blocks = (verify->end - verify->begin) / verify->block_nbytes + 1;
	unsigned n_threads = verify->options->n_threads;

	if (n_threads > MAX_THREADS)
		n_threads = MAX_THREADS;
	if (n_threads > n_blocks)
		n_threads = (unsigned)n_blocks;
	threads_run(n_threads, verify_thread_main, verify);
}

static void verify_init(struct verify *verify, const struct verify_options *options, bool are_items)
{
	const uint64_t record_nbytes = order_record_nbytes(options->layout, are_items);

	*verify = (struct verify){
		.options = options,
		.are_items = are_items,
		.record_nbytes = record_nbytes,
		/* A block and the record before it fill a buffer. */
		.block_nbytes = (VERIFY_THREAD_NBYTES / record_nbytes - 1) * record_nbytes,
		.first_disorder = UINT64_MAX,
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
}

static int verify_get_result(struct verify *verify, struct verify_result *ret_result)
{
	const uint64_t first_disorder = atomic_load(&verify->first_disorder);
	const int r = atomic_load(&verify->error);

	if (r < 0)
		return r;
	*ret_result = verify->result;
	ret_result->first_disorder = first_disorder == UINT64_MAX ? 0 : first_disorder;
	return 0;
}

/* A pipe cannot be read again: keep the last record of each block in front of the next one. */
static int check_stream(struct verify *verify, struct input *input, unsigned char *buffer,
			struct verify_result *result)
{
	const uint64_t record_nbytes = verify->record_nbytes;
	struct record_block block = { .records = buffer, .number = 1 };

	for (;;) {
		const uint64_t n_carried = block.has_previous;
		struct span span = stats_begin(STAGE_VERIFY, block.number);
		uint64_t position;
		size_t nbytes;
		int r;

		r = input_read(input, buffer + n_carried * record_nbytes, verify->block_nbytes,
			       &position, &nbytes);
		if (r < 0 || nbytes == 0)
			return r;
		block.n = n_carried + nbytes / record_nbytes;
		r = check_block(verify, block, position - n_carried * record_nbytes, result);
		if (r < 0)
			return r;
		stats_end(verify->options->stats, span, nbytes);
		if (can_stop_at_first(verify, position + nbytes))
			return 0;
		memcpy(buffer, buffer + (block.n - 1) * record_nbytes, record_nbytes);
		block.number += block.n - 1;
		block.has_previous = true;
	}
}

static void verify_stream(struct verify *verify, struct input *input)
{
	struct verify_result result = { 0 };
	unsigned char *buffer = allocate_buffer();
	const int r = buffer ? check_stream(verify, input, buffer, &result) : -ENOMEM;

	free(buffer);
	merge_thread_result(verify, &result, r);
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
		verify_stream(&verify, input);
	else
		verify_in_threads(&verify);
	r = verify_get_result(&verify, ret_result);
	if (r == 0)
		input_seek_end(input);
	return r;
}

int verify_input_range(struct input *input, struct verify_record_range range,
		       const struct verify_options *options, struct verify_result *ret_result)
{
	struct verify verify;

	verify_init(&verify, options, false);
	verify.read_at = read_input;
	verify.file = verify.input = input;
	verify.begin = range.begin * verify.record_nbytes;
	verify.end = range.end * verify.record_nbytes;
	verify_in_threads(&verify);
	return verify_get_result(&verify, ret_result);
}

int verify_output(verify_read_fn *read_at, void *context, uint64_t nbytes,
		  const struct verify_options *options, struct verify_result *ret_result)
{
	struct verify verify;

	verify_init(&verify, options, true);
	verify.read_at = read_at;
	verify.file = context;
	verify.end = nbytes;
	verify_in_threads(&verify);
	return verify_get_result(&verify, ret_result);
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
	const struct order_check_params params = {
		.layout = layout,
		.previous = edge->has_last ? edge->last : NULL,
		.records = records,
		.n = n,
	};
	struct order_check_result order_result;

	if (n == 0)
		return 0;
	order_check(&params, &order_result);
	digest_add(digest, order_result.digest);
	memcpy(edge->last, (const char *)records + (n - 1) * layout->record_nbytes,
	       layout->record_nbytes);
	edge->has_last = true;
	return order_result.first_disorder;
}
