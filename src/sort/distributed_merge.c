/*
 * distributed_merge - of a merge by several ranks, what of the inputs is one's (see distributed_sort.h)
 *
 * All ranks see all inputs, so nothing is exchanged but where ranges begin. That each finds by
 * itself, as a process does that merges one part of many (src/run/multiseq_partition.h), and tells it to the rank
 * before, whose range ends there. So every record of the inputs is in one range, whatever they are
 * like; and of inputs that are not in order some range ends before it begins, or a record shows it
 * when it is read, be it the first of a range.
 */
#include <errno.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/merge/splitters.h"
#include "src/comm/comm.h"
#include "src/comm/tags.h"
#include "src/run/multiseq_partition.h"
#include "src/sort/distributed_sort.h"

static int fail_memory(const struct sort *sort)
{
	return fail(-ENOMEM, "no memory for a merge of %zu runs", sort->whole.n);
}

/* Of what is within the limit each rank has as much. With -u no key may be in two ranges. */
static int find_begins(const struct sort *sort, uint64_t *ret_begins)
{
	const struct job *job = &sort->job;
	const struct run_store *whole = &sort->whole;
	const struct ranks *ranks = sort->spec->ranks;
	const uint64_t n_all = runs_n_items(whole->runs, whole->n);
	const uint64_t n = n_all < job->limit ? n_all : job->limit;
	const uint64_t n_before = (uint64_t)((uint128_t)n * ranks_rank(ranks) / ranks_size(ranks));

	return job->unique ?
		       rank_cut_at_key(job->layout, whole->runs, (uint32_t)whole->n, n_before,
				       ret_begins) :
		       rank_cut(job->layout, whole->runs, (uint32_t)whole->n, n_before, ret_begins);
}

static int hear_ends(struct ranks *ranks, size_t nbytes, uint64_t *ret_ends)
{
	struct ranks_transfer hearing;
	int r = ranks_receive(ranks, ranks_rank(ranks) + 1, RANKS_TAG_BEGINS, ret_ends, nbytes,
			      &hearing);

	return r < 0 ? r : ranks_wait(ranks, &hearing);
}

/* Tell the rank before where the own range begins; where it ends says the next one, or nobody. */
static int find_ends(const struct sort *sort, const uint64_t *begins, uint64_t *ret_ends)
{
	struct ranks *ranks = sort->spec->ranks;
	const unsigned rank = ranks_rank(ranks);
	const size_t n_runs = sort->whole.n, nbytes = n_runs * sizeof *begins;
	struct ranks_transfer telling;
	int r = 0;

	if (rank > 0)
		r = ranks_send(ranks, rank - 1, RANKS_TAG_BEGINS, begins, nbytes, &telling);
	if (r == 0 && rank + 1 < ranks_size(ranks))
		r = hear_ends(ranks, nbytes, ret_ends);
	else
		for (size_t i = 0; i < n_runs; i++)
			ret_ends[i] = run_n_items(sort->whole.runs[i]);
	if (r == 0 && rank > 0)
		r = ranks_wait(ranks, &telling);
	return r;
}

/* All cut alike, as their blocks are. */
static int place_parts(struct sort *sort)
{
	const struct run_store *whole = &sort->whole;
	const uint32_t n = sort->spec->n_part_files;
	uint64_t *cuts = calloc((n + (size_t)1) * whole->n + 1, sizeof *cuts);
	int r = cuts ? 0 : fail_memory(sort);

	if (r == 0 && whole->n > 0)
		r = splitters_cut(&sort->job, whole->runs, (uint32_t)whole->n, n, true, NULL, cuts);
	if (r == 0)
		r = share_place_parts(sort, cuts);
	free(cuts);
	return r;
}

int share_cut_inputs(struct sort *sort)
{
	uint64_t *begins, *ends;
	int r;

	sort->whole = sort->store;
	sort->store = (struct run_store){ 0 };
	begins = calloc(sort->whole.n + 1, 2 * sizeof *begins);
	if (!begins)
		return fail_memory(sort);
	ends = begins + sort->whole.n;
	r = sort->whole.n > 0 ? find_begins(sort, begins) : 0;
	if (r == 0)
		r = find_ends(sort, begins, ends);
	if (r == 0 && sort->spec->parts_at_keys && !sort->job.unique)
		r = place_parts(sort);
	if (r == 0)
		r = runs_take_parts(sort, begins, ends);
	free(begins);
	return r;
}

/* Digests of all files. NULL after a message. */
static struct digest *allocate_digests(const struct input *input)
{
	struct digest *digests = calloc(input_n_files(input) + 1, sizeof *digests);

	if (!digests)
		fail(-ENOMEM, "no memory for digests of %zu files", input_n_files(input));
	return digests;
}

/* What others have read is what all have, less what is known of here. */
static int note_others(struct input *input, struct digest *all)
{
	const size_t n = input_n_files(input);
	struct digest *own = allocate_digests(input);
	int r;

	if (!own)
		return -ENOMEM;
	input_tell_read(input, own);
	for (size_t i = 0; i < n; i++) {
		all[i].n_records -= own[i].n_records;
		all[i].sum -= own[i].sum;
	}
	r = input_note_others(input, all);
	free(own);
	return r;
}

int share_check_lists(struct ranks *ranks, struct input *input)
{
	struct digest *all = allocate_digests(input);
	int r;

	_Static_assert(sizeof *all == 2 * sizeof(uint64_t), "a digest is two sums");
	if (!all)
		return -ENOMEM;
	input_tell_read(input, all);
	r = ranks_sum(ranks, (uint64_t *)all, 2 * input_n_files(input));
	if (r == 0)
		r = share_agree_with_first(ranks,
					   ranks_rank(ranks) == 0 ? note_others(input, all) : 0);
	free(all);
	return r;
}
