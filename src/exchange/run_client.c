/*
 * run_client - what is stored by another rank, as runs of this one (see remote_runs.h)
 *
 * A run is a run file in a spill that is elsewhere: its index is asked for once, and its blocks
 * when the merge wants them. Of a rank that is near they are read where they are (peer_spill.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "io/spill/run_file.h"
#include "src/base/diagnostics.h"
#include "src/exchange/remote_runs_internal.h"
#include "src/comm/tags.h"

/* Given to an answer by who asks: unlike that of any other that may be under way. */
static uint32_t take_tag(struct depot *depot)
{
	const unsigned n = atomic_fetch_add(&depot->next_tag, 1);

	return RANKS_TAG_ANSWERS + n % (RANKS_TAG_LIMIT - RANKS_TAG_ANSWERS);
}

static int ask(struct depot *depot, unsigned rank, struct request request, void *ret_answer)
{
	const size_t nbytes = depot_answer_nbytes(&request);
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
		aligned_alloc(_Alignof(struct run_block), DEPOT_BLOCKS_AT_ONCE * sizeof *blocks);
	int r = blocks ? 0 :
			 fail_hint(-ENOMEM, HINT_LESS_MEMORY, 0,
				   "no memory for the index of a run of rank %u", far->rank);

	for (uint64_t i = 0; i < row->n_blocks && r == 0; i += DEPOT_BLOCKS_AT_ONCE) {
		const uint64_t left = row->n_blocks - i;
		const uint64_t n = left < DEPOT_BLOCKS_AT_ONCE ? left : DEPOT_BLOCKS_AT_ONCE;

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
		       depot_take_part(far->depot, run, row->begin - row->first_item,
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

int depot_take_far(struct far *far, struct run_store *store)
{
	const int r = open_near_store(far);

	return r < 0 ? r : take_runs(far, store);
}

int depot_open_far(struct depot *depot, unsigned rank)
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

void depot_close_far(struct far *far)
{
	spill_close(far->spill);
	near_store_close(far->store);
}
