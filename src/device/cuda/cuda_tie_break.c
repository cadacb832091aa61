/*
 * cuda_tie_break.c - break the ties of sorted elements (see cuda_tie_break.h)
 */
#include "src/device/cuda/cuda_tie_break.h"

/* The list of a round. */
struct tie_round {
	const void *list; /* n elements; in the first round, all of them */
	const uint32_t *positions;
	uint64_t n;
	uint64_t key_offset;   /* tied keys are equal up to this byte */
	unsigned buffer_index; /* the buffer and positions of the next list */
};

/* Read the results that are known so far. */
static int read_result(const struct cuda_ties *ties, const struct cuda_tie_result **ret_result)
{
	const void *result;
	int r = cuda_operation_peek(ties->operation, sizeof **ret_result, &result);

	*ret_result = result;
	return r;
}

static cudaStream_t stream_of(const struct cuda_ties *ties)
{
	return ties->operation->queue->stream;
}

static int count_ties(const struct cuda_ties *ties, const struct tie_round *round, uint32_t *ret_n)
{
	const struct cuda_tie_result *result;
	int r = cuda_status(launch_count_ties(ties->keys, round->list, round->n, ties->scratch,
					      &ties->result->counts, stream_of(ties)),
			    "ties");

	if (r == 0)
		r = read_result(ties, &result);
	if (r == 0)
		*ret_n = result->counts.n_elements;
	return r;
}

/* If the whole list ties, continue where the keys differ. */
static int skip_common_prefix(const struct cuda_ties *ties, struct tie_round *round)
{
	const struct cuda_tie_result *result;
	int r = cuda_status(
		launch_find_common_prefix(ties->keys, round->list, round->n, round->key_offset,
					  &ties->result->common_nbytes, stream_of(ties)),
		"break ties");

	if (r == 0)
		r = read_result(ties, &result);
	if (r == 0)
		round->key_offset = result->common_nbytes;
	return r;
}

/* Break n_ties ties of the list; they become the list of the next round. */
static int break_round_ties(const struct cuda_ties *ties, struct tie_round *round, uint32_t n_ties)
{
	const struct tie_break_task task = { .elements = ties->elements,
					     .list = round->list,
					     .positions = round->positions,
					     .n = round->n,
					     .ties_scratch = ties->scratch,
					     .n_ties = n_ties,
					     .at = round->key_offset,
					     .next = ties->buffers[round->buffer_index],
					     .next_positions = ties->positions[round->buffer_index],
					     .sort_scratch =
						     ties->buffers[round->buffer_index ^ 1] };

	*round = (struct tie_round){ .list = task.next,
				     .positions = task.next_positions,
				     .n = n_ties,
				     .key_offset = round->key_offset +
						   (ties->keys.lines ? LINE_WORD_NBYTES :
								       ITEM_TIE_WORD_NBYTES),
				     .buffer_index = round->buffer_index ^ 1 };
	return cuda_status(launch_break_ties(ties->keys, &task, stream_of(ties)), "break ties");
}

int cuda_ties_break(const struct cuda_ties *ties, uint64_t key_offset, uint64_t key_nbytes)
{
	struct tie_round round = { .list = ties->elements, .n = ties->n, .key_offset = key_offset };
	uint32_t n_ties = 0;
	int r = 0;

	while (r == 0 && round.key_offset < key_nbytes) {
		r = count_ties(ties, &round, &n_ties);
		if (r < 0 || n_ties == 0)
			break;
		if (n_ties == round.n)
			r = skip_common_prefix(ties, &round);
		if (r == 0 && round.key_offset < key_nbytes)
			r = break_round_ties(ties, &round, n_ties);
	}
	return r;
}
