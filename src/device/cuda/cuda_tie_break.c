/*
 * cuda_tie_break - break ties of elements by the rest of the keys (see cuda_tie_break.h)
 */
#include "src/device/cuda/cuda_tie_break.h"

/* The list of a round. */
struct tie_round {
	const void *list; /* n elements; in the first round, all of them */
	const uint32_t *positions;
	uint64_t n;
	uint32_t key_offset;   /* tied keys are equal up to this byte */
	unsigned buffer_index; /* the buffer and positions of the next list */
};

/* Read the results that are known so far. */
static int read_partial_result(struct cuda_record_op *record_op,
			       const struct record_op_result **ret_result)
{
	const void *result;
	int r = cuda_operation_peek(&record_op->operation,
				    offsetof(struct record_op_result, input_digest), &result);

	*ret_result = result;
	return r;
}

static int count_ties(struct cuda_record_op *record_op, const struct tie_round *round,
		      uint32_t *ret_n)
{
	const struct record_op_result *result;
	int r = cuda_status(launch_count_ties(round->list, round->n, record_op->areas.ties,
					      &record_op->result->ties, record_op->stream),
			    "ties");

	if (r == 0)
		r = read_partial_result(record_op, &result);
	if (r == 0)
		*ret_n = result->ties.n_elements;
	return r;
}

/* If the whole list ties, continue where the keys differ. */
static int skip_common_prefix(struct cuda_record_op *record_op, struct tie_round *round)
{
	const struct record_op_result *result;
	int r = cuda_status(launch_find_common_prefix(
				    &record_op->items, round->list, round->n, round->key_offset,
				    &record_op->result->common_nbytes, record_op->stream),
			    "break ties");

	if (r == 0)
		r = read_partial_result(record_op, &result);
	if (r == 0)
		round->key_offset = result->common_nbytes;
	return r;
}

/* Break n_ties ties of the list; they become the list of the next round. */
static int break_round_ties(struct cuda_record_op *record_op, struct tie_round *round,
			    uint32_t n_ties)
{
	struct record_op_scratch *areas = &record_op->areas;
	const struct tie_break_task task = {
		.items = &record_op->items,
		.elements = areas->elements,
		.list = round->list,
		.positions = round->positions,
		.n = round->n,
		.ties_scratch = areas->ties,
		.n_ties = n_ties,
		.at = round->key_offset,
		.next = areas->buffers[round->buffer_index],
		.next_positions = areas->positions[round->buffer_index],
		.sort_scratch = areas->buffers[round->buffer_index ^ 1]
	};

	*round = (struct tie_round){ .list = task.next,
				     .positions = task.next_positions,
				     .n = n_ties,
				     .key_offset = round->key_offset + 8,
				     .buffer_index = round->buffer_index ^ 1 };
	return cuda_status(launch_break_ties(&task, record_op->stream), "break ties");
}

int cuda_break_ties(struct cuda_record_op *record_op)
{
	struct tie_round round = { .list = record_op->areas.elements,
				   .n = record_op->n,
				   .key_offset = layout_prefix_nbytes(record_op->layout) };
	uint32_t n_ties = 0;
	int r = 0;

	if (record_op->use_pairs || !layout_needs_refining(record_op->layout))
		return 0;
	while (r == 0 && round.key_offset < record_op->items.keys.key_nbytes) {
		r = count_ties(record_op, &round, &n_ties);
		if (r < 0 || n_ties == 0)
			break;
		if (n_ties == round.n)
			r = skip_common_prefix(record_op, &round);
		if (r == 0 && round.key_offset < record_op->items.keys.key_nbytes)
			r = break_round_ties(record_op, &round, n_ties);
	}
	return r;
}
