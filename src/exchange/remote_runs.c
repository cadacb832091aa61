/*
 * remote_runs - the stored runs of all ranks, of which each merges a part (see remote_runs.h)
 */
#include "src/exchange/remote_runs.h"

#include <errno.h>
#include <stdlib.h>

#include "io/spill/run_file.h"
#include "src/base/interval_search.h"
#include "src/base/diagnostics.h"
#include "src/exchange/remote_runs_internal.h"

struct row depot_make_row(const struct depot *depot, unsigned rank, uint64_t run)
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

size_t depot_answer_nbytes(const struct request *request)
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

int depot_take_part(struct depot *depot, struct run *run, uint64_t begin, uint64_t end,
		    struct run_store *store)
{
	struct run *part;
	int r = run_open_part(depot->job->layout, run, begin, end, &part);

	return r < 0 ? r : run_store_add(store, part);
}

static int take_own(struct depot *depot, struct run_store *store)
{
	int r = 0;

	for (size_t i = 0; i < depot->own->n && r == 0; i++) {
		const struct row row = depot_make_row(depot, ranks_rank(depot->ranks), i);

		if (row.begin < row.end)
			r = depot_take_part(depot, depot->own->runs[i], row.begin, row.end, store);
	}
	return r;
}

int depot_take(struct depot *depot, struct run_store *store)
{
	const unsigned n = ranks_size(depot->ranks), own = ranks_rank(depot->ranks);
	int r = 0;

	for (unsigned i = 0; i < n && r == 0; i++)
		r = i == own ? take_own(depot, store) : depot_take_far(&depot->far[i], store);
	return r;
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
		r = depot_open_far(depot, i);
	if (r == 0)
		r = ranks_gather_all(ranks, &n_own, sizeof n_own, depot->n_runs);
	return r < 0 ? r : depot_start_servers(depot);
}

int depot_finish(struct depot *depot)
{
	int r = ranks_barrier(depot->ranks);

	if (r == 0)
		r = depot_tell_servers(depot);
	if (r == 0)
		depot_join_servers(depot);
	return r;
}

void depot_close(struct depot *depot)
{
	if (!depot)
		return;
	depot_join_servers(depot);
	run_store_free(&depot->all);
	for (unsigned i = 0; depot->far && i < ranks_size(depot->ranks); i++)
		depot_close_far(&depot->far[i]);
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
