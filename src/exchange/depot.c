/*
 * depot - the stored runs of all ranks, of which each merges a part (see depot.h)
 */
#include "src/exchange/depot.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/store/run_file.h"
#include "src/base/begins.h"
#include "src/base/messages.h"
#include "src/base/thread.h"
#include "src/exchange/near_store.h"
#include "src/ranks/tags.h"

enum {
	N_SERVERS = 8,           /* of which most wait for what is on its way */
	SERVED_NBYTES = 8 << 20, /* of all of them at once, but for a single answer */
	BLOCKS_AT_ONCE = 1 << 14,
	NAME_NBYTES = 96,
	ADVICE_NBYTES = 128,
};

enum wish {
	WISH_END,    /* of the own servers: nobody asks any more */
	WISH_ROWS,   /* of the runs: struct row, n of them */
	WISH_BLOCKS, /* of a run's index: from `first` on, n */
	WISH_BYTES,  /* of the spill: the extent */
	WISH_COUNTS, /* of that, for who is near: how much there is of ... */
	WISH_PLACES, /* ... struct memory_place, n of them, ... */
	WISH_FILES,  /* ... and of descriptors, n of them */
	N_WISHES
};

struct request {
	uint32_t wish, tag;
	uint64_t run, first, n;
	struct spill_extent extent;
};

/* Of a run, the range of the one who asks. */
struct row {
	uint64_t begin, end; /* items */
	uint64_t first_block, n_blocks;
	uint64_t first_item; /* of the first block */
};

/* A rank's runs, as another one reads them. */
struct far {
	struct depot *depot;
	unsigned rank;
	char name[NAME_NBYTES];
	char advice[ADVICE_NBYTES]; /* if it is kept: of damage, which will be there again */
	struct spill *spill;
	struct near_store *store; /* what of it is read where it is; NULL: nothing */
};

struct depot {
	struct ranks *ranks;
	const struct near *near;
	const struct job *job;
	const struct run_store *own;
	const uint64_t *cuts;
	struct far *far;      /* one of each rank */
	uint64_t *n_runs;     /* the same */
	struct run_store all; /* runs of other ranks, of which the parts are */
	pthread_t servers[N_SERVERS];
	unsigned n_servers;
	pthread_mutex_t lock;
	pthread_cond_t served;  /* one of them has less room than before */
	uint64_t served_nbytes; /* room of all of them; under the lock */
	atomic_uint next_tag;
	atomic_uint_least64_t received_nbytes;
};

/* --- who is asked --- */

/* What of a run is between two cuts. */
static struct row make_row(const struct depot *depot, unsigned rank, uint64_t run)
{
	const uint64_t *cut = &depot->cuts[rank * depot->own->n + run];
	const struct run_file *file = run_stored_file(depot->own->runs[run]);
	const struct run_block *blocks = run_file_blocks(file);
	struct row row = { .begin = cut[0], .end = cut[depot->own->n] };
	uint64_t last;

	if (row.begin >= row.end)
		return (struct row){ 0 };
	row.first_block = begins_find(blocks, sizeof *blocks,
				      offsetof(struct run_block, first_item),
				      run_file_n_blocks(file), row.begin);
	last = begins_find(blocks, sizeof *blocks, offsetof(struct run_block, first_item),
			   run_file_n_blocks(file), row.end - 1);
	row.n_blocks = last + 1 - row.first_block;
	row.first_item = blocks[row.first_block].first_item;
	return row;
}

/* May `from` ask for it, and is it here? */
static bool is_answerable(const struct depot *depot, unsigned from, const struct request *request)
{
	const struct run_store *own = depot->own;
	struct spill *spill = depot->job->spill;
	uint64_t n_blocks;

	if (request->tag < RANKS_TAG_ANSWERS || request->tag >= RANKS_TAG_LIMIT)
		return false;
	switch (request->wish) {
	case WISH_ROWS:
		return request->n == own->n;
	case WISH_BLOCKS:
		n_blocks = request->run < own->n ?
				   run_file_n_blocks(run_stored_file(own->runs[request->run])) :
				   0;
		return request->n <= BLOCKS_AT_ONCE && request->first <= n_blocks &&
		       request->n <= n_blocks - request->first;
	case WISH_BYTES:
		return spill_has(spill, request->extent);
	case WISH_COUNTS:
		return true;
	case WISH_PLACES:
		return near_has(depot->near, from) &&
		       request->n <= near_store_count(spill).n_places;
	case WISH_FILES:
		return near_has(depot->near, from) && request->n <= near_store_count(spill).n_files;
	default:
		return false;
	}
}

static size_t answer_nbytes(const struct request *request)
{
	switch (request->wish) {
	case WISH_ROWS:
		return request->n * sizeof(struct row);
	case WISH_BLOCKS:
		return request->n * sizeof(struct run_block);
	case WISH_BYTES:
		return request->extent.nbytes;
	case WISH_COUNTS:
		return sizeof(struct near_store_counts);
	case WISH_PLACES:
		return request->n * sizeof(struct memory_place);
	case WISH_FILES:
		return request->n * sizeof(int64_t);
	default:
		return 0;
	}
}

static int read_bytes(const struct depot *depot, const struct request *request, void *answer)
{
	const struct spill_extent extent = request->extent;
	const int r = spill_read(depot->job->spill, extent, answer);

	return r < 0 ? fail_hint(r, HINT_OTHER_TEMPORARY, 0,
				 "temporary file in %s: %" PRIu64 " bytes at %" PRIu64
				 ", which another rank needs, cannot be read: %m; check the disk",
				 spill_directory(depot->job->spill, extent.file), extent.nbytes,
				 extent.offset) :
		       0;
}

static int make_answer(const struct depot *depot, unsigned from, const struct request *request,
		       void *answer)
{
	struct row *rows = answer;

	switch (request->wish) {
	case WISH_ROWS:
		for (uint64_t i = 0; i < request->n; i++)
			rows[i] = make_row(depot, from, i);
		return 0;
	case WISH_BLOCKS:
		memcpy(answer,
		       run_file_blocks(run_stored_file(depot->own->runs[request->run])) +
			       request->first,
		       answer_nbytes(request));
		return 0;
	case WISH_BYTES:
		return read_bytes(depot, request, answer);
	case WISH_COUNTS:
		*(struct near_store_counts *)answer = near_store_count(depot->job->spill);
		return 0;
	case WISH_PLACES:
		spill_get_places(depot->job->spill, request->n, answer);
		return 0;
	case WISH_FILES:
		near_store_get_files(depot->job->spill, request->n, answer);
		return 0;
	default:
		return 0;
	}
}

/* Memory of a server, for an answer. */
struct room {
	void *bytes;
	size_t nbytes;
};

/* Until others have less, unless nobody has any: whose answer is on its way gives it back. */
static int make_room(struct depot *depot, size_t nbytes, struct room *ret_room)
{
	pthread_mutex_lock(&depot->lock);
	while (depot->served_nbytes > 0 && depot->served_nbytes + nbytes > SERVED_NBYTES)
		pthread_cond_wait(&depot->served, &depot->lock);
	depot->served_nbytes += nbytes;
	pthread_mutex_unlock(&depot->lock);
	*ret_room = (struct room){ malloc(nbytes + 1), nbytes }; /* nothing is an answer, too */
	return ret_room->bytes ? 0 : fail(-ENOMEM, "no memory for what another rank needs");
}

static void leave_room(struct depot *depot, struct room *room)
{
	free(room->bytes);
	pthread_mutex_lock(&depot->lock);
	depot->served_nbytes -= room->nbytes;
	pthread_cond_broadcast(&depot->served);
	pthread_mutex_unlock(&depot->lock);
}

/* Of what another rank asks for. 0, or a negative errno after a message. */
static int prepare(struct depot *depot, unsigned from, const struct request *request,
		   struct room *ret_room)
{
	int r;

	if (!is_answerable(depot, from, request))
		return fail(
			-EPROTO,
			"internal error: rank %u on %s asks for what is not here; the output was "
			"not written",
			from, ranks_host(depot->ranks, from));
	r = make_room(depot, answer_nbytes(request), ret_room);
	return r < 0 ? r : make_answer(depot, from, request, ret_room->bytes);
}

static int hear(struct depot *depot, struct request *ret_request, unsigned *ret_from)
{
	struct ranks_transfer transfer;
	int r = ranks_receive(depot->ranks, RANKS_ANY, RANKS_TAG_REQUESTS, ret_request,
			      sizeof *ret_request, &transfer);

	if (r == 0)
		r = ranks_wait(depot->ranks, &transfer);
	*ret_from = transfer.from;
	return r;
}

static int answer(struct depot *depot, unsigned to, const struct request *request,
		  const struct room *room)
{
	struct ranks_transfer transfer;
	int r = ranks_send(depot->ranks, to, request->tag, room->bytes, answer_nbytes(request),
			   &transfer);

	return r < 0 ? r : ranks_wait(depot->ranks, &transfer);
}

/* Said by this rank itself. */
static bool is_end(const struct depot *depot, unsigned from, const struct request *request)
{
	return request->wish == WISH_END && from == ranks_rank(depot->ranks);
}

/*
 * A server: one request after the other, until it is told that there will be none, or nobody can
 * ask any more. What it cannot read ends all, who wait for it.
 */
static void *serve(void *context)
{
	struct depot *depot = context;
	struct request request;
	unsigned from;
	int r = 0;

	while (r == 0 && hear(depot, &request, &from) == 0 && !is_end(depot, from, &request)) {
		struct room room = { 0 };

		if (prepare(depot, from, &request, &room) < 0)
			ranks_abort(depot->ranks, 2);
		r = answer(depot, from, &request, &room);
		leave_room(depot, &room);
	}
	return NULL;
}

/* --- who asks --- */

/* Given to an answer by who asks: unlike that of any other that may be under way. */
static uint32_t take_tag(struct depot *depot)
{
	const unsigned n = atomic_fetch_add(&depot->next_tag, 1);

	return RANKS_TAG_ANSWERS + n % (RANKS_TAG_LIMIT - RANKS_TAG_ANSWERS);
}

static int ask(struct depot *depot, unsigned rank, struct request request, void *ret_answer)
{
	const size_t nbytes = answer_nbytes(&request);
	struct ranks_transfer asking, answering;
	int r;

	request.tag = take_tag(depot);
	r = ranks_receive(depot->ranks, rank, request.tag, ret_answer, nbytes, &answering);
	if (r < 0)
		return r;
	r = ranks_send(depot->ranks, rank, RANKS_TAG_REQUESTS, &request, sizeof request, &asking);
	if (r == 0)
		r = ranks_wait(depot->ranks, &answering);
	if (r == 0) /* done by then, so nobody is woken twice */
		r = ranks_wait(depot->ranks, &asking);
	if (r == 0)
		atomic_fetch_add(&depot->received_nbytes, nbytes);
	return r;
}

/* As spill_read(). What has failed was said, and is no matter of a disk. */
static int read_far(void *context, struct spill_extent extent, void *buffer)
{
	const struct far *far = context;
	const struct request request = { .wish = WISH_BYTES, .extent = extent };
	int r;

	if (!near_store_has(far->store, extent))
		return ask(far->depot, far->rank, request, buffer) < 0 ? -ECANCELED : 0;
	r = near_store_read(far->store, extent, buffer);
	if (r == 0)
		atomic_fetch_add(&far->depot->received_nbytes, extent.nbytes);
	return r < 0 ? -ECANCELED : 0;
}

static int fail_index(const struct far *far)
{
	return fail(-EPROTO,
		    "internal error: what rank %u on %s has told of its runs cannot be; the output "
		    "was not written",
		    far->rank, ranks_host(far->depot->ranks, far->rank));
}

/* As run files store them: who reads one relies on that. */
static bool are_blocks(const struct run_block *blocks, uint64_t n, uint64_t item_nbytes)
{
	for (uint64_t i = 0; i < n; i++)
		if (!run_block_is_valid(&blocks[i], item_nbytes))
			return false;
	return true;
}

/* The blocks of a row, into the index of a file. */
static int fetch_blocks(struct far *far, uint64_t run, const struct row *row, struct run_file *file)
{
	struct run_block *blocks =
		aligned_alloc(_Alignof(struct run_block), BLOCKS_AT_ONCE * sizeof *blocks);
	int r = blocks ? 0 :
			 fail_hint(-ENOMEM, HINT_LESS_MEMORY, 0,
				   "no memory for the index of a run of rank %u", far->rank);

	for (uint64_t i = 0; i < row->n_blocks && r == 0; i += BLOCKS_AT_ONCE) {
		const uint64_t left = row->n_blocks - i;
		const uint64_t n = left < BLOCKS_AT_ONCE ? left : BLOCKS_AT_ONCE;

		r = ask(far->depot, far->rank,
			(struct request){ .wish = WISH_BLOCKS,
					  .run = run,
					  .first = row->first_block + i,
					  .n = n },
			blocks);
		if (r == 0 && !are_blocks(blocks, n, run_file_item_nbytes(file)))
			r = fail_index(far);
		for (uint64_t j = 0; j < n && r == 0; j++)
			blocks[j].discarded = false;
		if (r == 0)
			r = run_file_restore(file, blocks, n);
	}
	free(blocks);
	return r < 0 ? r : run_file_finish(file);
}

/* The run of another rank, as far as it is in the blocks of the row. */
static int open_far_run(struct far *far, uint64_t number, const struct row *row,
			struct run **ret_run)
{
	const struct job *job = far->depot->job;
	const struct layout *layout = job->layout;
	struct run_file *file;
	int r = run_file_open(far->spill, job->compression, (uint32_t)layout->item_nbytes,
			      run_file_block_n_items(job->plan.block_nbytes,
						     (uint32_t)layout->resident_nbytes),
			      &file);

	if (r < 0)
		return r;
	r = fetch_blocks(far, number, row, file);
	if (r == 0 &&
	    (row->first_item > row->begin || run_file_n_items(file) < row->end - row->first_item))
		r = fail_index(far);
	if (r < 0) {
		run_file_close(file);
		return r;
	}
	return run_open_stored(file, STORED_ITEMS, ret_run);
}

static int take_part(struct depot *depot, struct run *run, uint64_t begin, uint64_t end,
		     struct run_store *store)
{
	struct run *part;
	int r = run_open_part(depot->job->layout, run, begin, end, &part);

	return r < 0 ? r : run_store_add(store, part);
}

static int take_far_run(struct far *far, uint64_t number, const struct row *row,
			struct run_store *store)
{
	struct run *run;
	int r;

	if (row->begin >= row->end)
		return 0;
	r = open_far_run(far, number, row, &run);
	if (r == 0)
		r = run_store_add(&far->depot->all, run);
	return r < 0 ? r :
		       take_part(far->depot, run, row->begin - row->first_item,
				 row->end - row->first_item, store);
}

/* With room for what it has: places, and behind them descriptors. */
static int ask_for_store(struct far *far, struct near_store_counts counts, void *room)
{
	struct memory_place *places = room;
	int64_t *descriptors = (int64_t *)(places + counts.n_places);
	int r = ask(far->depot, far->rank,
		    (struct request){ .wish = WISH_PLACES, .n = counts.n_places }, places);

	if (r == 0)
		r = ask(far->depot, far->rank,
			(struct request){ .wish = WISH_FILES, .n = counts.n_files }, descriptors);
	return r < 0 ? r :
		       near_store_open(far->depot->near, far->rank, counts, places, descriptors,
				       &far->store);
}

/* If it is near: where it has what it has stored. */
static int open_near_store(struct far *far)
{
	struct near_store_counts counts;
	void *room;
	int r;

	if (!near_has(far->depot->near, far->rank))
		return 0;
	r = ask(far->depot, far->rank, (struct request){ .wish = WISH_COUNTS }, &counts);
	if (r < 0)
		return r;
	room = counts.n_places < UINT32_MAX && counts.n_files < UINT16_MAX ?
		       malloc(counts.n_places * sizeof(struct memory_place) +
			      counts.n_files * sizeof(int64_t) + 1) :
		       NULL;
	r = room ? ask_for_store(far, counts, room) :
		   fail(-ENOMEM, "no memory for what rank %u has stored", far->rank);
	free(room);
	return r;
}

static int take_runs(struct far *far, struct run_store *store)
{
	const uint64_t n = far->depot->n_runs[far->rank];
	struct row *rows = calloc(n + 1, sizeof *rows);
	int r = rows ? ask(far->depot, far->rank, (struct request){ .wish = WISH_ROWS, .n = n },
			   rows) :
		       fail(-ENOMEM, "no memory for a merge of %" PRIu64 " runs", n);

	for (uint64_t i = 0; i < n && r == 0; i++)
		r = take_far_run(far, i, &rows[i], store);
	free(rows);
	return r;
}

static int take_far(struct far *far, struct run_store *store)
{
	const int r = open_near_store(far);

	return r < 0 ? r : take_runs(far, store);
}

static int take_own(struct depot *depot, struct run_store *store)
{
	int r = 0;

	for (size_t i = 0; i < depot->own->n && r == 0; i++) {
		const struct row row = make_row(depot, ranks_rank(depot->ranks), i);

		if (row.begin < row.end)
			r = take_part(depot, depot->own->runs[i], row.begin, row.end, store);
	}
	return r;
}

int depot_take(struct depot *depot, struct run_store *store)
{
	const unsigned n = ranks_size(depot->ranks), own = ranks_rank(depot->ranks);
	int r = 0;

	for (unsigned i = 0; i < n && r == 0; i++)
		r = i == own ? take_own(depot, store) : take_far(&depot->far[i], store);
	return r;
}

/* --- opened and closed --- */

static int open_far(struct depot *depot, unsigned rank)
{
	struct far *far = &depot->far[rank];
	struct spill_elsewhere where = { .read = read_far, .context = far, .name = far->name };
	int r;

	far->depot = depot;
	far->rank = rank;
	snprintf(far->name, sizeof far->name, "the temporary space of rank %u", rank);
	r = spill_open_elsewhere(&where, &far->spill);
	if (r == 0 && spill_is_kept(depot->job->spill)) {
		snprintf(far->advice, sizeof far->advice,
			 "to have that rank's part sorted again, remove what rank-%04u of the "
			 "checkpoint holds",
			 rank);
		spill_set_advice(far->spill, far->advice);
	}
	return r;
}

static int start_servers(struct depot *depot)
{
	char limits[THREAD_LIMITS_NBYTES];
	int r = 0;

	for (; depot->n_servers < N_SERVERS && r == 0; depot->n_servers += r == 0)
		r = thread_start(serve, depot, 0, &depot->servers[depot->n_servers]);
	return r < 0 ? fail_hint(r, HINT_LESS_MEMORY_OR_THREADS, 0,
				 "cannot start a thread that serves other ranks: %m%s",
				 thread_limits(r, limits)) :
		       0;
}

int depot_open(struct ranks *ranks, const struct near *near, const struct job *job,
	       const struct run_store *own, const uint64_t *cuts, struct depot **ret_depot)
{
	const unsigned n = ranks_size(ranks);
	const uint64_t n_own = own->n;
	struct depot *depot = calloc(1, sizeof *depot);
	int r = 0;

	*ret_depot = depot;
	if (!depot)
		return fail(-ENOMEM, "no memory for the runs of %u ranks", n);
	depot->ranks = ranks;
	depot->near = near;
	depot->job = job;
	depot->own = own;
	depot->cuts = cuts;
	pthread_mutex_init(&depot->lock, NULL);
	pthread_cond_init(&depot->served, NULL);
	depot->far = calloc(n, sizeof *depot->far);
	depot->n_runs = calloc(n, sizeof *depot->n_runs);
	if (!depot->far || !depot->n_runs)
		return fail(-ENOMEM, "no memory for the runs of %u ranks", n);
	for (unsigned i = 0; i < n && r == 0; i++)
		r = open_far(depot, i);
	if (r == 0)
		r = ranks_gather_all(ranks, &n_own, sizeof n_own, depot->n_runs);
	return r < 0 ? r : start_servers(depot);
}

/* They take what comes in turn, so each is told. */
static int tell_servers(const struct depot *depot)
{
	const struct request end = { .wish = WISH_END };
	int r = 0;

	for (unsigned i = 0; i < depot->n_servers && r == 0; i++) {
		struct ranks_transfer transfer;

		r = ranks_send(depot->ranks, ranks_rank(depot->ranks), RANKS_TAG_REQUESTS, &end,
			       sizeof end, &transfer);
		if (r == 0)
			r = ranks_wait(depot->ranks, &transfer);
	}
	return r;
}

static void join_servers(struct depot *depot)
{
	for (; depot->n_servers > 0; depot->n_servers--)
		pthread_join(depot->servers[depot->n_servers - 1], NULL);
}

int depot_finish(struct depot *depot)
{
	int r = ranks_barrier(depot->ranks);

	if (r == 0)
		r = tell_servers(depot);
	if (r == 0)
		join_servers(depot);
	return r;
}

void depot_close(struct depot *depot)
{
	if (!depot)
		return;
	join_servers(depot);
	run_store_free(&depot->all);
	for (unsigned i = 0; depot->far && i < ranks_size(depot->ranks); i++) {
		spill_close(depot->far[i].spill);
		near_store_close(depot->far[i].store);
	}
	free(depot->far);
	free(depot->n_runs);
	pthread_cond_destroy(&depot->served);
	pthread_mutex_destroy(&depot->lock);
	free(depot);
}

uint64_t depot_received_nbytes(const struct depot *depot)
{
	return atomic_load(&depot->received_nbytes);
}
