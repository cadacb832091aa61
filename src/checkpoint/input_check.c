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
enum { PIECE_NBYTES = 256 << 10, MOST_THREADS = 8 };

/* Of what all runs hold; and what takes no time to speak of. */
enum { BUDGET_PART = 32 };
static const uint64_t least_budget_nbytes = UINT64_C(64) << 20;

uint64_t run_origins_budget(uint64_t nbytes)
{
	const uint64_t part = nbytes / BUDGET_PART;

	return part > least_budget_nbytes ? part : least_budget_nbytes;
}

/* The records of one run, being read. */
struct reading {
	const struct run_origins *origins;
	uint64_t first, n_records;
	uint64_t piece_records;

	_Atomic uint64_t next; /* of them */
	atomic_int r;          /* the first failure, or 0 */

	pthread_mutex_t lock;
	struct digest found; /* under the lock */
};

/* Records, and the items that are made of them if these are not the same. */
struct room {
	unsigned char *records, *items;
};

static struct digest digest_records(const struct layout *layout, const struct room *room,
				    uint64_t n, uint64_t position)
{
	struct digest digest = { 0 };

	if (!layout_is_plain(layout)) {
		layout_make_items(layout, room->records, n, position, room->items, &digest);
		return digest;
	}
	for (uint64_t i = 0; i < n; i++)
		digest.sum += digest_record(room->records + i * layout->record_nbytes,
					    layout->record_nbytes);
	digest.n_records = n;
	return digest;
}

/* 1, 0 when nothing is left to be done, or a negative errno after a message. */
static int read_piece(struct reading *reading, const struct room *room)
{
	const struct run_origins *origins = reading->origins;
	const uint64_t record_nbytes = origins->layout->record_nbytes;
	const uint64_t at = atomic_fetch_add(&reading->next, reading->piece_records);
	struct span span = stats_begin(STAGE_VERIFY, at / reading->piece_records);
	struct digest digest;
	uint64_t n;
	int r;

	if (at >= reading->n_records || atomic_load(&reading->r) < 0)
		return 0;
	n = reading->n_records - at;
	if (n > reading->piece_records)
		n = reading->piece_records;
	r = input_read_at(origins->input, (reading->first + at) * record_nbytes, room->records,
			  n * record_nbytes);
	if (r < 0)
		return r;
	digest = digest_records(origins->layout, room, n, reading->first + at);
	pthread_mutex_lock(&reading->lock);
	digest_add(&reading->found, digest);
	pthread_mutex_unlock(&reading->lock);
	stats_end(origins->stats, span, n * record_nbytes);
	return 1;
}

static void read_pieces(void *context)
{
	struct reading *reading = context;
	const struct layout *layout = reading->origins->layout;
	const struct room room = { malloc(reading->piece_records * layout->record_nbytes),
				   malloc(reading->piece_records * layout->item_nbytes) };
	int r = room.records && room.items ? 1 : fail(-ENOMEM, "no memory to read inputs again");

	while (r > 0)
		r = read_piece(reading, &room);
	if (r < 0)
		atomic_store(&reading->r, r);
	free(room.records);
	free(room.items);
}

static int check_run(const struct run_origins *origins, uint64_t first, const struct ledger *origin)
{
	const uint64_t at_once = PIECE_NBYTES / origins->layout->record_nbytes;
	struct reading reading = { .origins = origins,
				   .first = first,
				   .n_records = origin->read.n_records,
				   .piece_records = at_once ? at_once : 1,
				   .lock = PTHREAD_MUTEX_INITIALIZER };

	crew_share(origins->n_threads < MOST_THREADS ? origins->n_threads : MOST_THREADS,
		   read_pieces, &reading);
	pthread_mutex_destroy(&reading.lock);
	if (atomic_load(&reading.r) < 0)
		return atomic_load(&reading.r);
	return digest_equal(reading.found, origin->read) ? 0 : -EBADMSG;
}

static uint64_t count_records(const struct run_origins *origins)
{
	uint64_t n = 0;

	for (size_t i = 0; i < origins->n_runs; i++)
		n += origins->runs[i].run.origin.read.n_records;
	return n;
}

int run_origins_check(const struct run_origins *origins, size_t *ret_bad)
{
	const uint64_t record_nbytes = origins->layout->record_nbytes;
	const uint64_t n_records = count_records(origins);
	uint64_t end = origins->first_record + n_records;
	uint64_t left_nbytes = run_origins_budget(n_records * record_nbytes);
	int r = 0;

	for (size_t i = origins->n_runs; i > 0 && r == 0; i--) {
		const struct ledger *origin = &origins->runs[i - 1].run.origin;
		const uint64_t nbytes = origin->read.n_records * record_nbytes;
		bool is_read;

		end -= origin->read.n_records;
		is_read = nbytes <= left_nbytes;
		if (input_is_cached(origins->input, end * record_nbytes, nbytes))
			is_read = true;
		else if (is_read)
			left_nbytes -= nbytes;
		if (is_read)
			r = check_run(origins, end, origin);
		*ret_bad = i - 1;
	}
	return r;
}
