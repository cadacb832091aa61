/*
 * cuda_lines.c - operations on lines of text on a GPU
 *
 *	text --find--> starts --make--> elements --sort--> ties --list--> order --measure--> offsets
 *
 * An element has a prefix of what the line is compared by, and the number of the line
 * (kernels/lines/lines.cuh). Ties are broken like those of records with long keys. The gather needs
 * the starts of all lines and keys, the order of the lines, and the offset of each segment in the
 * output.
 */
#include <errno.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/base/scratch.h"
#include "src/device/cuda/cuda_queue.h"

/* The parts of the memory of a sort. */
struct line_op_memory {
	uint64_t *starts, *offsets;
	uint32_t *order;
	void *find_scratch, *elements, *ties;
	void *buffers[2];
	uint32_t *positions[2];
};

/* Results of the kernels for the host. */
struct line_op_result {
	struct cuda_tie_result ties; /* first, because the host reads it between rounds */
	uint64_t n_found, n_kept, output_nbytes;
	struct kernel_line_totals totals;
	struct digest dropped;
};

struct line_op {
	struct cuda_operation operation;
	const struct sort_lines_op *op;
	struct line_op_memory memory;
	struct line_op_result *result; /* on the device */
	cudaStream_t stream;
	struct kernel_lines lines;
	uint64_t n, n_ordered;
};

enum { TIE_ELEMENT_NBYTES = 16 };

/* Return the number of lines of the text, including keys, for n lines to sort. */
static uint64_t text_n_lines(uint64_t n, bool has_keys)
{
	return has_keys ? 2 * n : n;
}

/* Divide the memory of a sort; return its size. memory == NULL: only compute the size. */
static size_t divide_memory(char *memory, uint64_t nbytes, uint64_t n, bool has_keys,
			    struct line_op_memory *ret_memory)
{
	const size_t sort_nbytes = kernel_sort_scratch_nbytes(n, TIE_ELEMENT_NBYTES);
	struct line_op_memory *parts = ret_memory;
	size_t size = 0;

	parts->starts = scratch_allocate(memory, &size,
					 (text_n_lines(n, has_keys) + 1) * sizeof *parts->starts);
	parts->order = scratch_allocate(memory, &size, n * sizeof *parts->order);
	parts->offsets =
		scratch_allocate(memory, &size, (n / LINE_SEGMENT + 1) * sizeof *parts->offsets);
	parts->find_scratch =
		scratch_allocate(memory, &size, kernel_find_lines_scratch_nbytes(nbytes));
	parts->elements = scratch_allocate(memory, &size, n * TIE_ELEMENT_NBYTES);
	parts->ties = scratch_allocate(memory, &size, kernel_ties_scratch_nbytes(n));
	for (unsigned i = 0; i < 2; i++) {
		parts->buffers[i] = scratch_allocate(memory, &size, sort_nbytes);
		parts->positions[i] =
			scratch_allocate(memory, &size, n * sizeof *parts->positions[i]);
	}
	return size;
}

static size_t memory_nbytes(uint64_t nbytes, uint64_t max_n, bool has_keys)
{
	struct line_op_memory memory;

	return divide_memory(NULL, nbytes, max_n, has_keys, &memory);
}

/* Wait for the queued kernels and read one number of the result. */
static int read_number(struct line_op *line_op, const uint64_t *number, uint64_t *ret_number)
{
	const void *result;
	int r = cuda_operation_peek(&line_op->operation, sizeof *line_op->result, &result);

	if (r == 0)
		*ret_number = *(const uint64_t *)(const void *)((const char *)result +
								((const char *)number -
								 (const char *)line_op->result));
	return r;
}

static struct kernel_lines make_kernel_lines(const void *text, const void *starts,
					     struct device_line_order order)
{
	return (struct kernel_lines){ .text = text,
				      .starts = starts,
				      .descending = order.descending,
				      .has_keys = order.has_keys,
				      .keys_decide = order.keys_decide };
}

static int find_lines(struct line_op *line_op)
{
	const struct sort_lines_op *op = line_op->op;
	const bool has_keys = op->order_by.has_keys;
	const struct find_lines_task task = { .text = op->text,
					      .nbytes = op->nbytes,
					      .delimiter = op->delimiter,
					      .starts = line_op->memory.starts,
					      .n = &line_op->result->n_found,
					      .scratch = line_op->memory.find_scratch,
					      .max_n = text_n_lines(op->max_n, has_keys) };
	uint64_t n_found = 0;
	int r = cuda_status(launch_find_lines(&task, line_op->stream), "lines");

	if (r == 0)
		r = read_number(line_op, &line_op->result->n_found, &n_found);
	line_op->n = has_keys ? n_found / 2 : n_found;
	if (r == 0 && (n_found > task.max_n || n_found != text_n_lines(line_op->n, has_keys)))
		r = fail(-EIO, "internal error: number of lines differs from the count");
	return r;
}

static int sort_elements(struct line_op *line_op)
{
	const struct line_op_memory *memory = &line_op->memory;
	const struct cuda_ties ties = {
		.keys = { .lines = &line_op->lines },
		.operation = &line_op->operation,
		.result = &line_op->result->ties,
		.elements = memory->elements,
		.n = line_op->n,
		.buffers = { memory->buffers[0], memory->buffers[1] },
		.positions = { memory->positions[0], memory->positions[1] },
		.scratch = memory->ties,
	};
	int r = launch_make_line_elements(&line_op->lines, line_op->n, memory->elements,
					  &line_op->result->totals, line_op->stream);

	if (!r)
		r = launch_sort(memory->elements, line_op->n, TIE_ELEMENT_NBYTES,
				memory->buffers[0], line_op->stream);
	r = cuda_status(r, "sort");
	return r < 0 ? r : cuda_ties_break(&ties, LINE_ELEMENT_NBYTES, UINT64_MAX);
}

/* List the sorted lines, and compute their offsets. */
static int make_order(struct line_op *line_op)
{
	const struct order_lines_task task = { .lines = line_op->lines,
					       .elements = line_op->memory.elements,
					       .n = line_op->n,
					       .unique = line_op->op->unique,
					       .order = line_op->memory.order,
					       .n_kept = &line_op->result->n_kept,
					       .dropped = &line_op->result->dropped,
					       .scratch = line_op->memory.ties };
	int r = cuda_status(launch_order_lines(&task, line_op->stream), "order of lines");

	if (r == 0)
		r = read_number(line_op, &line_op->result->n_kept, &line_op->n_ordered);
	if (r < 0)
		return r;
	if (line_op->n_ordered > line_op->op->limit)
		line_op->n_ordered = line_op->op->limit;
	return cuda_status(launch_measure_lines(&line_op->lines, task.order, line_op->n_ordered,
						line_op->memory.offsets,
						&line_op->result->output_nbytes, line_op->stream),
			   "order of lines");
}

static int set_result(struct line_op *line_op)
{
	struct sort_lines_result *ret = line_op->op->ret;
	const struct line_op_result *result;
	const void *peeked;
	int r = cuda_operation_peek(&line_op->operation, sizeof *result, &peeked);

	if (r < 0)
		return r;
	result = peeked;
	*ret = (struct sort_lines_result){
		.lines = { .text = line_op->op->text,
			   .starts = line_op->memory.starts,
			   .order = line_op->memory.order,
			   .offsets = line_op->memory.offsets,
			   .segment_n = LINE_SEGMENT,
			   .order_by = line_op->op->order_by,
			   .n = line_op->n_ordered,
			   .output_nbytes = result->output_nbytes },
		.digest = result->totals.digest,
		.dropped = result->dropped,
		.longest_nbytes = result->totals.longest_nbytes,
	};
	return 0;
}

static int sort_lines(struct device_queue *queue, const struct sort_lines_op *op)
{
	struct line_op line_op = {
		.operation = { .stage = STAGE_SORT,
			       .nbytes = op->nbytes,
			       .result_nbytes = sizeof *line_op.result },
		.op = op,
	};
	int r = cuda_operation_begin(&line_op.operation, queue);

	if (r < 0)
		return r;
	line_op.stream = line_op.operation.stream;
	line_op.result = line_op.operation.result;
	divide_memory(op->memory, op->nbytes, op->max_n, op->order_by.has_keys, &line_op.memory);
	line_op.lines = make_kernel_lines(op->text, line_op.memory.starts, op->order_by);
	r = find_lines(&line_op);
	if (r == 0)
		r = sort_elements(&line_op);
	if (r == 0)
		r = make_order(&line_op);
	if (r == 0)
		r = set_result(&line_op);
	return cuda_operation_end(&line_op.operation, r);
}

static int select_lines(struct device_queue *queue, struct device_lines *lines, uint64_t first_line,
			uint64_t n)
{
	const struct kernel_lines kernel_lines =
		make_kernel_lines(lines->text, lines->starts, lines->order_by);
	const uint32_t *order = (const uint32_t *)lines->order + first_line;
	struct cuda_operation operation = { .stage = STAGE_SORT,
					    .result_nbytes = sizeof lines->output_nbytes };
	const void *result;
	int r = cuda_operation_begin(&operation, queue);

	if (r < 0)
		return r;
	r = cuda_status(launch_measure_lines(&kernel_lines, order, n, (uint64_t *)lines->offsets,
					     operation.result, operation.stream),
			"order of lines");
	if (r == 0)
		r = cuda_operation_peek(&operation, sizeof lines->output_nbytes, &result);
	if (r == 0) {
		memcpy(&lines->output_nbytes, result, sizeof lines->output_nbytes);
		lines->first_line = first_line;
		lines->n = n;
	}
	return cuda_operation_end(&operation, r);
}

static void deliver_gathered(const struct result_delivery *delivery)
{
	*(struct gather_lines_result *)delivery->to[0] =
		*(const struct gather_lines_result *)delivery->from;
}

static int gather_lines(struct device_queue *queue, const struct gather_lines_op *op)
{
	const struct device_lines *lines = op->lines;
	struct gather_lines_task task = {
		.lines = make_kernel_lines(lines->text, lines->starts, lines->order_by),
		.order = lines->order,
		.first_line = lines->first_line,
		.n = lines->n,
		.offsets = lines->offsets,
		.first_segment = op->first_segment,
		.n_segments = op->n_segments,
		.longest_nbytes = op->longest_nbytes,
		.begin = op->begin,
		.end = op->end,
		.out = op->out,
	};
	struct gather_lines_result *result;
	struct cuda_operation operation = {
		.stage = STAGE_DECODE,
		.nbytes = op->end - op->begin,
		.result_nbytes = sizeof *result,
		.delivery = { .deliver = deliver_gathered, .to = { op->ret } },
	};
	int r = cuda_operation_begin(&operation, queue);

	if (r < 0)
		return r;
	result = operation.result;
	task.digest = &result->digest;
	task.n_disorders = &result->n_disorders;
	r = cuda_status(launch_gather_lines(&task, operation.stream), "gather");
	return cuda_operation_end(&operation, r);
}

const struct backend_line_ops cuda_line_ops = {
	.memory_nbytes = memory_nbytes,
	.sort = sort_lines,
	.select = select_lines,
	.gather = gather_lines,
};
