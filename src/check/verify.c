/*
 * verify.c - order, duplicates and digest of a file (see verify.h)
 */
#include "src/check/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/int_math.h"
#include "src/base/thread.h"
#include "src/base/thread_pool.h"
#include "src/base/diagnostics.h"
#include "src/record/key_batch.h"
#include "src/record/key_prefix.h"
#include "src/record/record_hash.h"

/*
 * --- order of consecutive records ---
 *
 * Key-only records are encoded in batches that stay in the first-level cache, and neighbours are
 * compared without a branch. Only a batch that has a disorder is searched for it. Other records are
 * compared where they are, and hashed while they are in the cache.
 */

struct order_check_params {
	const struct layout *layout;
	/*
	 * The records are items of the layout, as in the output, instead of records of the input.
	 * The two may differ (layout_has_projection()).
	 */
	bool are_items;
	const void *previous; /* the record before the first, for comparison only; or NULL */
	const void *records;  /* n, any alignment */
	uint64_t n;
	bool strict; /* equal neighbours are disorders, too (-u) */
};

/* Return the size of a record, or of an item. */
static inline uint64_t order_record_nbytes(const struct layout *layout, bool are_items)
{
	return are_items ? layout->item_nbytes : layout->record_nbytes;
}

struct order_check_result {
	uint64_t n_disorders;
	uint64_t first_disorder; /* index of the first record out of order; n: none */
	uint64_t n_equal;        /* records with the same key as the one before */
	struct digest digest;    /* of the n records, or of the items' bodies */
	uint64_t counts_sum;     /* sum of the items' counts; n if they have none */
};

/* --- Key-only records --- */

enum { BATCH_RECORDS = 512 };

/* Elements of consecutive records, and of the record before them. */
union element_batch {
	uint32_t c4[1 + BATCH_RECORDS];
	uint64_t c8[1 + BATCH_RECORDS];
	uint128_t c16[1 + BATCH_RECORDS];
};

/* Disorders and equal neighbours among the n records of a batch. */
struct neighbour_counts {
	uint64_t n_descents, n_equal;
};

#define COUNT_NEIGHBOURS(codes)                                                                    \
	for (uint64_t i = 0; i < n; i++) {                                                         \
		result.n_descents += (codes)[i + 1] < (codes)[i];                                  \
		result.n_equal += (codes)[i + 1] == (codes)[i];                                    \
	}                                                                                          \
	break

static struct neighbour_counts count_neighbours(const union element_batch *batch,
						uint32_t element_nbytes, uint64_t n)
{
	struct neighbour_counts result = { 0 };

	switch (element_nbytes) {
	case 4:
		COUNT_NEIGHBOURS(batch->c4);
	case 8:
		COUNT_NEIGHBOURS(batch->c8);
	default:
		COUNT_NEIGHBOURS(batch->c16);
	}
	return result;
}

#undef COUNT_NEIGHBOURS

/* Index in the batch of the first record that is out of order. */
static uint64_t find_disorder(const union element_batch *batch, uint32_t element_nbytes,
			      bool strict)
{
	encoded_key_t previous = element_get(batch, element_nbytes, 0);

	for (uint64_t i = 0;; i++) {
		const encoded_key_t key = element_get(batch, element_nbytes, i + 1);

		if (key < previous || (strict && key == previous))
			return i;
		previous = key;
	}
}

/* Check the n records of a batch that begins at record `start`. */
static void check_batch(const struct order_check_params *params, const union element_batch *batch,
			uint64_t start, uint64_t n, struct order_check_result *result)
{
	const uint32_t element_nbytes = params->layout->element_nbytes;
	const struct neighbour_counts counts = count_neighbours(batch, element_nbytes, n);
	const uint64_t n_disorders = counts.n_descents + (params->strict ? counts.n_equal : 0);

	if (n_disorders && !result->n_disorders)
		result->first_disorder =
			start + find_disorder(batch, element_nbytes, params->strict);
	result->n_disorders += n_disorders;
	result->n_equal += counts.n_equal;
}

static void check_encoded_keys(const struct order_check_params *params,
			       struct order_check_result *result)
{
	const struct layout *layout = params->layout;
	const unsigned char *records = params->records;
	union element_batch batch;
	char *encoded_keys = (char *)&batch;
	uint64_t i = params->previous ? 0 : 1;

	key_batch_encode(layout, params->previous ? params->previous : records, 1, encoded_keys,
			 params->previous ? NULL : &result->digest);
	while (i < params->n) {
		const uint64_t n = params->n - i < BATCH_RECORDS ? params->n - i : BATCH_RECORDS;

		key_batch_encode(layout, records + i * layout->record_nbytes, n,
				 encoded_keys + layout->element_nbytes, &result->digest);
		check_batch(params, &batch, i, n, result);
		memcpy(encoded_keys, encoded_keys + n * layout->element_nbytes,
		       layout->element_nbytes);
		i += n;
	}
}

/* --- Other records --- */

/* What is looked at of a record. */
struct record_view {
	const struct key_fields *keys;
	struct key_prefix prefix;
	uint64_t nbytes;                   /* size of a record */
	uint64_t body_offset, body_nbytes; /* the part that is digested */
};

static void record_view_init(const struct layout *layout, bool are_items,
			     struct record_view *ret_view)
{
	*ret_view = (struct record_view){
		.keys = are_items ? &layout->item_keys : &layout->record_keys,
		.nbytes = order_record_nbytes(layout, are_items),
		.body_offset = are_items ? layout->body_offset : 0,
		.body_nbytes = are_items ? layout->body_nbytes : layout->record_nbytes,
	};
	key_prefix_make(ret_view->keys, ret_view->nbytes, &ret_view->prefix);
}

/* A record and the beginning of its key, which is made once and compared twice. */
struct keyed_record {
	const unsigned char *record;
	uint128_t prefix;
};

static struct keyed_record load_keyed_record(const struct record_view *view,
					     const unsigned char *record)
{
	return (struct keyed_record){ record, key_prefix_load(&view->prefix, record) };
}

static int compare_key_tails(const struct key_fields *keys, const unsigned char *a,
			     const unsigned char *b)
{
	const struct key_field *field = keys->fields;
	const uint32_t offset = field->offset + KEY_PREFIX_NBYTES;
	int order;

	if (!key_tail_is_bytes(keys))
		return key_tail_compare(keys, KEY_PREFIX_NBYTES, a, b);
	order = memcmp(a + offset, b + offset, field->nbytes - KEY_PREFIX_NBYTES);
	return field->descending ? -order : order;
}

static int compare_keyed_records(const struct record_view *view, const struct keyed_record *a,
				 const struct keyed_record *b)
{
	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	return view->keys->key_nbytes > KEY_PREFIX_NBYTES ?
		       compare_key_tails(view->keys, a->record, b->record) :
		       0;
}

static void check_records(const struct order_check_params *params,
			  struct order_check_result *result)
{
	const unsigned char *records = params->records;
	struct keyed_record previous = { 0 };
	struct record_view view;

	record_view_init(params->layout, params->are_items, &view);
	if (params->previous)
		previous = load_keyed_record(&view, params->previous);
	for (uint64_t i = 0; i < params->n; i++) {
		const struct keyed_record next =
			load_keyed_record(&view, records + i * view.nbytes);
		const int order = previous.record ? compare_keyed_records(&view, &previous, &next) :
						    -1;

		result->digest.sum += hash_bytes(next.record + view.body_offset, view.body_nbytes);
		result->n_equal += order == 0;
		if (order > 0 || (order == 0 && params->strict)) {
			if (!result->n_disorders++)
				result->first_disorder = i;
		}
		previous = next;
	}
	result->digest.n_records += params->n;
}

static void check_order(const struct order_check_params *params,
			struct order_check_result *ret_result)
{
	struct order_check_result result = { .first_disorder = params->n, .counts_sum = params->n };

	if (!layout_is_key_only(params->layout))
		check_records(params, &result);
	else if (params->n)
		check_encoded_keys(params, &result);
	if (params->are_items && params->layout->projection.has_count) {
		const unsigned char *item = params->records;

		result.counts_sum = 0;
		for (uint64_t i = 0; i < params->n; i++, item += params->layout->item_nbytes)
			result.counts_sum += layout_item_count(params->layout, item);
	}
	*ret_result = result;
}

/* --- files --- */

enum { MAX_THREADS = 64 };

/* Shared by the threads of a check. */
struct verify {
	/* Set before the threads start */
	const struct verify_options *options;
	bool are_items; /* see struct order_check_params */
	uint64_t record_nbytes;
	verify_read_fn *read_at;
	void *file;
	struct input *input; /* that is checked; NULL: an output */
	uint64_t begin, end; /* bounds of the range that is checked */
	uint64_t block_nbytes;

	_Atomic uint64_t first_disorder; /* a record number; UINT64_MAX: none */

	pthread_mutex_t lock;
	struct verify_result result; /* under the lock */
};

/* Consecutive records in memory. */
struct record_block {
	const unsigned char *records;
	uint64_t n;
	uint64_t number;   /* of the first record, from 1 */
	bool has_previous; /* the first record was in the block before; only for comparison */
};

static struct digest check_block_records(struct verify *verify, struct record_block block,
					 struct verify_result *result)
{
	const uint64_t n_previous = block.has_previous;
	const unsigned char *records = block.records + n_previous * verify->record_nbytes;
	struct order_check_result order_result;

	check_order(
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
	for (uint64_t i = 0; verify->options->hash && i < block.n - n_previous; i++)
		result->hash_sum += verify->options->hash(records + i * verify->record_nbytes,
							  verify->record_nbytes);
	result->n_duplicates += order_result.n_equal;
	result->counts_sum += order_result.counts_sum;
	result->n_disorders += order_result.n_disorders;
	if (order_result.n_disorders) {
		const uint64_t record = block.number + n_previous + order_result.first_disorder;
		uint64_t first = atomic_load(&verify->first_disorder);

		while (record < first &&
		       !atomic_compare_exchange_weak(&verify->first_disorder, &first, record))
			;
	}
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
	return verify->options->stop_at_disorder &&
	       atomic_load(&verify->first_disorder) <= position / verify->record_nbytes;
}

static void add_result(struct verify *verify, const struct verify_result *result)
{
	SCOPED_LOCK(&verify->lock);
	digest_add(&verify->result.digest, result->digest);
	verify->result.n_disorders += result->n_disorders;
	verify->result.n_duplicates += result->n_duplicates;
	verify->result.counts_sum += result->counts_sum;
	verify->result.hash_sum += result->hash_sum;
}

/* Read and check a block, and the record before it. A process_block_fn. */
static int check_numbered_block(void *context, uint64_t index, void *buffer)
{
	struct verify *verify = context;
	const uint64_t record_nbytes = verify->record_nbytes;
	const uint64_t position = verify->begin + index * verify->block_nbytes;
	const uint64_t begin = position ? position - record_nbytes : 0;
	const uint64_t nbytes =
		u64_min(verify->end - position, verify->block_nbytes) + position - begin;
	const struct span span = stats_begin(STAGE_VERIFY, index);
	struct verify_result result = { 0 };
	int r;

	if (can_stop_at_first(verify, position))
		return 1;
	r = cancellation_check(verify->options->cancellation);
	if (r == 0)
		r = verify->read_at(verify->file, begin, buffer, nbytes);
	if (r == 0)
		r = check_block(verify,
				(struct record_block){ .records = buffer,
						       .n = nbytes / record_nbytes,
						       .number = begin / record_nbytes + 1,
						       .has_previous = position > 0 },
				begin, &result);
	if (r < 0)
		return r;
	add_result(verify, &result);
	stats_end(verify->options->stats, span, nbytes);
	return 0;
}

static int verify_in_threads(struct verify *verify)
{
	const unsigned n_threads = verify->options->n_threads;

	return threads_run_blocks(n_threads < MAX_THREADS ? n_threads : MAX_THREADS,
				  divide_up(verify->end - verify->begin, verify->block_nbytes),
				  VERIFY_THREAD_NBYTES, check_numbered_block, verify);
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

/* r: the result of the check. */
static int finish_verify(const struct verify *verify, int r, struct verify_result *ret_result)
{
	const uint64_t first_disorder = atomic_load(&verify->first_disorder);

	if (r < 0)
		return r;
	*ret_result = verify->result;
	ret_result->first_disorder = first_disorder == UINT64_MAX ? 0 : first_disorder;
	return 0;
}

/* A pipe cannot be read again: keep the last record of each block before the next one. */
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

static int verify_stream(struct verify *verify, struct input *input)
{
	unsigned char *buffer = malloc(VERIFY_THREAD_NBYTES);
	const int r = buffer ? check_stream(verify, input, buffer, &verify->result) :
			       fail(-ENOMEM, "no memory for a buffer of %d bytes: %m",
				    VERIFY_THREAD_NBYTES);

	free(buffer);
	return r;
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
	r = verify.end == INPUT_SIZE_UNKNOWN ? verify_stream(&verify, input) :
					       verify_in_threads(&verify);
	r = finish_verify(&verify, r, ret_result);
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
	return finish_verify(&verify, verify_in_threads(&verify), ret_result);
}

int verify_output(verify_read_fn *read_at, void *context, uint64_t nbytes,
		  const struct verify_options *options, struct verify_result *ret_result)
{
	struct verify verify;

	verify_init(&verify, options, true);
	verify.read_at = read_at;
	verify.file = context;
	verify.end = nbytes;
	return finish_verify(&verify, verify_in_threads(&verify), ret_result);
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
	check_order(&params, &order_result);
	digest_add(digest, order_result.digest);
	memcpy(edge->last, (const char *)records + (n - 1) * layout->record_nbytes,
	       layout->record_nbytes);
	edge->has_last = true;
	return order_result.first_disorder;
}
