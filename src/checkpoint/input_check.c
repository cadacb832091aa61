/*
 * input_check - do the inputs still hold what stored runs were made of? (see input_check.h)
 */
#include "src/checkpoint/input_check.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "src/base/thread_pool.h"
#include "src/base/diagnostics.h"

/* What a thread reads at once, and how many there are: they have memory beside the plan's. */
enum { CHECK_BATCH_NBYTES = 256 << 10, MAX_CHECK_THREADS = 8 };

/* Of what all runs hold; and what takes no time to speak of. */
enum { BUDGET_DIVISOR = 32 };
static const uint64_t min_budget_nbytes = UINT64_C(64) << 20;

uint64_t input_check_budget(uint64_t nbytes)
{
	const uint64_t fraction_nbytes = nbytes / BUDGET_DIVISOR;

	return fraction_nbytes > min_budget_nbytes ? fraction_nbytes : min_budget_nbytes;
}

/* The records of one run, being read. */
struct run_verification {
	const struct input_check *check;
	uint64_t first_record, n_records;
	uint64_t batch_records;

	_Atomic uint64_t next_record; /* of them */
	atomic_int error;             /* the first failure, or 0 */

	pthread_mutex_t lock;
	struct digest digest; /* under the lock */
};

/* Records, and the items that are made of them if these are not the same. */
struct record_buffers {
	unsigned char *records, *items;
};

static struct digest digest_records(const struct layout *layout,
				    const struct record_buffers *buffers, uint64_t n,
				    uint64_t position)
{
	struct digest digest = { 0 };

	if (!layout_is_key_only(layout)) {
		layout_project_records(layout, buffers->records, n, position, buffers->items,
				       &digest);
		return digest;
	}
	for (uint64_t i = 0; i < n; i++)
		digest.sum += digest_record(buffers->records + i * layout->record_nbytes,
					    layout->record_nbytes);
	digest.n_records = n;
	return digest;
}

/* 1, 0 when nothing is left to be done, or a negative errno after a message. */
static int verify_batch(struct run_verification *verification, const struct record_buffers *buffers)
{
	const struct input_check *check = verification->check;
	const uint64_t record_nbytes = check->layout->record_nbytes;
	const uint64_t offset =
		atomic_fetch_add(&verification->next_record, verification->batch_records);
	struct span span = stats_begin(STAGE_VERIFY, offset / verification->batch_records);
	struct digest digest;
	uint64_t n;
	int r;

	if (offset >= verification->n_records || atomic_load(&verification->error) < 0)
		return 0;
	n = verification->n_records - offset;
	if (n > verification->batch_records)
		n = verification->batch_records;
	r = input_read_at(check->input, (verification->first_record + offset) * record_nbytes,
			  buffers->records, n * record_nbytes);
	if (r < 0)
		return r;
	digest = digest_records(check->layout, buffers, n, verification->first_record + offset);
	pthread_mutex_lock(&verification->lock);
	digest_add(&verification->digest, digest);
	pthread_mutex_unlock(&verification->lock);
	stats_end(check->stats, span, n * record_nbytes);
	return 1;
}

static void verify_batches(void *context)
{
	struct run_verification *verification = context;
	const struct layout *layout = verification->check->layout;
	const struct record_buffers buffers = {
		malloc(verification->batch_records * layout->record_nbytes),
		malloc(verification->batch_records * layout->item_nbytes)
	};
	int r = buffers.records && buffers.items ? 1 :
						   fail(-ENOMEM, "no memory to read inputs again");

	while (r > 0)
		r = verify_batch(verification, &buffers);
	if (r < 0)
		atomic_store(&verification->error, r);
	free(buffers.records);
	free(buffers.items);
}

static int verify_run_input(const struct input_check *check, uint64_t first_record,
			    const struct record_totals *origin)
{
	const uint64_t batch_records = CHECK_BATCH_NBYTES / check->layout->record_nbytes;
	struct run_verification verification = { .check = check,
						 .first_record = first_record,
						 .n_records = origin->read.n_records,
						 .batch_records = batch_records ? batch_records : 1,
						 .lock = PTHREAD_MUTEX_INITIALIZER };

	threads_run(check->n_threads < MAX_CHECK_THREADS ? check->n_threads : MAX_CHECK_THREADS,
		    verify_batches, &verification);
	pthread_mutex_destroy(&verification.lock);
	if (atomic_load(&verification.error) < 0)
		return atomic_load(&verification.error);
	return digest_equal(verification.digest, origin->read) ? 0 : -EBADMSG;
}

static uint64_t count_records(const struct input_check *check)
{
	uint64_t n = 0;

	for (size_t i = 0; i < check->n_runs; i++)
		n += check->runs[i].run.origin.read.n_records;
	return n;
}

int input_check_run(const struct input_check *check, size_t *ret_bad)
{
	const uint64_t record_nbytes = check->layout->record_nbytes;
	const uint64_t n_records = count_records(check);
	uint64_t end = check->first_record + n_records;
	uint64_t remaining_nbytes = input_check_budget(n_records * record_nbytes);
	int r = 0;

	for (size_t i = check->n_runs; i > 0 && r == 0; i--) {
		const struct record_totals *origin = &check->runs[i - 1].run.origin;
		const uint64_t nbytes = origin->read.n_records * record_nbytes;
		bool is_read;

		end -= origin->read.n_records;
		is_read = nbytes <= remaining_nbytes;
		if (input_is_cached(check->input, end * record_nbytes, nbytes))
			is_read = true;
		else if (is_read)
			remaining_nbytes -= nbytes;
		if (is_read)
			r = verify_run_input(check, end, origin);
		*ret_bad = i - 1;
	}
	return r;
}
