/*
 * cuda_tie_break - elements in the order of whole keys (see cuda_tie_break.h)
 */
#include "src/device/cuda/cuda_tie_break.h"

/* The list of a round. */
struct round {
	const void *list; /* n; the elements at first */
	const uint32_t *places;
	uint64_t n;
	uint32_t at;   /* keys agree up to there where the list ties */
	unsigned turn; /* which buffer and places the next list is made in */
};

/* What of the findings is known so far, on the host. */
static int look_at_findings(struct work *work, const struct findings **ret_found)
{
	const void *found;
	int r = cuda_operation_peek(&work->operation, offsetof(struct findings, read), &found);

	*ret_found = found;
	return r;
}

static int count_ties(struct work *work, const struct round *round, uint32_t *ret_n)
{
	const struct findings *found;
	int r = cuda_status(launch_count_ties(round->list, round->n, work->room.ties,
					      &work->found->ties, work->stream),
			    "ties");

	if (r == 0)
		r = look_at_findings(work, &found);
	if (r == 0)
		*ret_n = found->ties.n_elements;
	return r;
}

/* Go on where keys differ: all of the list ties. */
static int skip_what_agrees(struct work *work, struct round *round)
{
	const struct findings *found;
	int r = cuda_status(launch_find_reach(&work->items, round->list, round->n, round->at,
					      &work->found->reach, work->stream),
			    "refine");

	if (r == 0)
		r = look_at_findings(work, &found);
	if (r == 0)
		round->at = found->reach;
	return r;
}

/* Refine n_ties of the list; they become the list. */
static int refine_once(struct work *work, struct round *round, uint32_t n_ties)
{
	struct room *room = &work->room;
	const struct refine_task task = { .items = &work->items,
					  .elements = room->elements,
					  .list = round->list,
					  .places = round->places,
					  .n = round->n,
					  .ties_scratch = room->ties,
					  .n_ties = n_ties,
					  .at = round->at,
					  .next = room->buffers[round->turn],
					  .next_places = room->places[round->turn],
					  .sort_scratch = room->buffers[round->turn ^ 1] };

	*round = (struct round){ .list = task.next,
				 .places = task.next_places,
				 .n = n_ties,
				 .at = round->at + 8,
				 .turn = round->turn ^ 1 };
	return cuda_status(launch_refine(&task, work->stream), "refine");
}

int cuda_refine(struct work *work)
{
	struct round round = { .list = work->room.elements,
			       .n = work->n,
			       .at = layout_prefix_nbytes(work->layout) };
	uint32_t n_ties = 0;
	int r = 0;

	if (work->as_pairs || !layout_needs_refining(work->layout))
		return 0;
	while (r == 0 && round.at < work->items.keys.key_nbytes) {
		r = count_ties(work, &round, &n_ties);
		if (r < 0 || n_ties == 0)
			break;
		if (n_ties == round.n)
			r = skip_what_agrees(work, &round);
		if (r == 0 && round.at < work->items.keys.key_nbytes)
			r = refine_once(work, &round, n_ties);
	}
	return r;
}
