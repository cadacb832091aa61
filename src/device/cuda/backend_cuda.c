/*
 * backend_cuda - sort and merge on a GPU
 *
 * This is the table of backend.h. An operation calls a launch_*() of kernels/kernels.h with the
 * stream of a queue. cuda_device.c has the device and its memory; cuda_queue.c has queues, events,
 * and the transfer of results to the host. Only this folder calls CUDA.
 */
#include "src/device/backend.h"

#include "kernels/kernels.h"
#include "src/device/cuda/cuda_queue.h"

/* Return the stage of a copy, for the statistics: upload, download, or between devices. */
static enum stage copy_stage(const void *to, const void *from)
{
	struct cudaPointerAttributes a, b;

	if (cudaPointerGetAttributes(&a, to) != cudaSuccess ||
	    cudaPointerGetAttributes(&b, from) != cudaSuccess) {
		cudaGetLastError();
		return STAGE_UPLOAD;
	}
	if (a.type != cudaMemoryTypeDevice)
		return STAGE_DOWNLOAD;
	return b.type == cudaMemoryTypeDevice ? STAGE_FETCH : STAGE_UPLOAD;
}

static int copy(struct device_queue *queue, void *to, const void *from, size_t nbytes)
{
	struct cuda_operation operation = { 0 };
	int r = cuda_operation_begin(queue, copy_stage(to, from), nbytes, 0, &operation);

	if (r < 0)
		return cuda_operation_abort(&operation, r);
	return cuda_operation_submit(&operation,
				     cudaMemcpyAsync(to, from, nbytes, cudaMemcpyDefault,
						     operation.queue->stream),
				     "copy");
}

static struct kernel_key kernel_key_from(encoded_key_t key)
{
	return (struct kernel_key){ .lo = (uint64_t)key, .hi = (uint64_t)(key >> 64) };
}

static void deliver_digest(const struct pending_result *pending)
{
	digest_add(pending->to[0], *(const struct digest *)pending->from);
}

static int encode(struct device_queue *queue, const struct encode_op *op)
{
	struct encode_task task = { .records = op->records,
				    .elements = op->elements,
				    .n = op->n,
				    .encoding = op->layout->encoding };
	struct cuda_operation operation = { 0 };
	int r = cuda_operation_begin(queue, STAGE_ENCODE, op->n * op->layout->record_nbytes,
				     op->ret_digest ? sizeof(struct digest) : 0, &operation);

	if (r == 0)
		r = cuda_queue_scratch(operation.queue, kernel_record_scratch_nbytes(op->n),
				       &task.scratch);
	if (r < 0)
		return cuda_operation_abort(&operation, r);
	if (op->ret_digest) {
		task.digest = operation.result;
		operation.pending->to[0] = op->ret_digest;
		operation.pending->deliver = deliver_digest;
	}
	return cuda_operation_submit(&operation, launch_encode(&task, operation.queue->stream),
				     "encode");
}

static void deliver_decode_result(const struct pending_result *pending)
{
	const struct kernel_decode_result *result = pending->from;
	struct decode_result *ret = pending->to[0];

	*ret = (struct decode_result){
		.digest = result->digest,
		.n_disorders = result->n_disorders,
		.first = cuda_widen_key(result->first),
		.last = cuda_widen_key(result->last),
	};
}

static int decode(struct device_queue *queue, const struct decode_op *op)
{
	struct decode_task task = { .elements = op->elements,
				    .records = op->records,
				    .n = op->n,
				    .encoding = op->layout->encoding,
				    .strict = op->strict };
	struct cuda_operation operation = { 0 };
	int r = cuda_operation_begin(queue, STAGE_DECODE, op->n * op->layout->record_nbytes,
				     sizeof(struct kernel_decode_result), &operation);

	if (r == 0)
		r = cuda_queue_scratch(operation.queue, kernel_record_scratch_nbytes(op->n),
				       &task.scratch);
	if (r < 0)
		return cuda_operation_abort(&operation, r);
	task.result = operation.result;
	operation.pending->to[0] = op->ret;
	operation.pending->deliver = deliver_decode_result;
	return cuda_operation_submit(&operation, launch_decode(&task, operation.queue->stream),
				     "decode");
}

static int cuda_enqueue_sort(struct device_queue *queue, const struct sort_op *op)
{
	const uint32_t element_nbytes = op->layout->element_nbytes;
	struct cuda_operation operation = { 0 };
	int r = cuda_operation_begin(queue, STAGE_SORT, op->n * element_nbytes, 0, &operation);

	if (r < 0)
		return cuda_operation_abort(&operation, r);
	return cuda_operation_submit(&operation,
				     launch_sort(op->items, op->n, element_nbytes, op->scratch,
						 operation.queue->stream),
				     "sort");
}

static int cut_elements(struct device_queue *queue, const struct cut_op *op)
{
	const size_t nbytes = op->k * sizeof *op->ret_cuts;
	struct cuda_operation operation = { 0 };
	int r = cuda_operation_begin(queue, STAGE_CUT, 0, nbytes, &operation);

	if (r < 0)
		return cuda_operation_abort(&operation, r);
	operation.pending->to[0] = op->ret_cuts;
	operation.pending->n = nbytes;
	operation.pending->deliver = cuda_deliver_bytes;
	return cuda_operation_submit(
		&operation,
		launch_cut(cuda_slices(op->slices), op->k, op->layout->element_nbytes,
			   kernel_key_from(layout_get_key_prefix(op->layout, op->key)), op->slice,
			   operation.result, operation.queue->stream),
		"cut");
}

static int cuda_enqueue_merge(struct device_queue *queue, const struct merge_op *op)
{
	const uint32_t element_nbytes = op->layout->element_nbytes;
	const uint64_t n = slices_n(op->slices, op->k);
	struct cuda_operation operation = { 0 };
	int r = cuda_operation_begin(queue, STAGE_MERGE, n * element_nbytes, 0, &operation);

	if (r < 0)
		return cuda_operation_abort(&operation, r);
	return cuda_operation_submit(&operation,
				     launch_merge(cuda_slices(op->slices), op->k, element_nbytes,
						  op->out, op->scratch, operation.queue->stream),
				     "merge");
}

static void deliver_unique(const struct pending_result *pending)
{
	const struct kernel_unique_result *result = pending->from;

	*(struct sort_op_result *)pending->to[0] =
		(struct sort_op_result){ .n = result->n, .dropped = result->dropped };
}

static int unique_elements(struct device_queue *queue, const struct unique_op *op)
{
	struct unique_task task = { .elements = op->items,
				    .n = op->n,
				    .encoding = op->layout->encoding };
	struct cuda_operation operation = { 0 };
	int r = cuda_operation_begin(queue, STAGE_MERGE, op->n * op->layout->element_nbytes,
				     sizeof(struct kernel_unique_result), &operation);

	if (r == 0)
		r = cuda_queue_scratch(operation.queue, kernel_record_scratch_nbytes(op->n),
				       &task.scratch);
	if (r < 0)
		return cuda_operation_abort(&operation, r);
	task.result = operation.result;
	operation.pending->to[0] = op->ret;
	operation.pending->deliver = deliver_unique;
	return cuda_operation_submit(&operation, launch_unique(&task, operation.queue->stream),
				     "unique");
}

static int sort_elements(struct device_queue *queue, const struct sort_op *op)
{
	int r = cuda_enqueue_sort(queue, op);

	return r < 0 ? r :
		       device_queue_finish_elements(queue, op->layout, op->items, op->n, op->unique,
						    op->ret);
}

static int merge_elements(struct device_queue *queue, const struct merge_op *op)
{
	int r = cuda_enqueue_merge(queue, op);

	return r < 0 ? r :
		       device_queue_finish_elements(queue, op->layout, op->out,
						    slices_n(op->slices, op->k), op->unique,
						    op->ret);
}

/* Drop duplicates: merge the items, as one slice, into the buffer and copy the result back. */
static int unique_records(struct device_queue *queue, const struct unique_op *op)
{
	const struct slice slice = { op->items, op->n };
	int r = cuda_merge_records(queue, &(struct merge_op){ .layout = op->layout,
							      .slices = &slice,
							      .k = 1,
							      .out = op->buffer,
							      .unique = true,
							      .limit = UINT64_MAX,
							      .scratch = op->scratch,
							      .ret = op->ret });

	return r < 0 ? r : copy(queue, op->items, op->buffer, op->n * op->layout->item_nbytes);
}

static size_t elements_sort_scratch_nbytes(const struct layout *layout, uint64_t n)
{
	return kernel_sort_scratch_nbytes(n, layout->element_nbytes);
}

static size_t elements_merge_scratch_nbytes(const struct layout *layout, uint32_t k, uint64_t n)
{
	return kernel_merge_scratch_nbytes(k, n, layout->element_nbytes);
}

static size_t records_sort_scratch_nbytes(const struct layout *layout, uint64_t n)
{
	return cuda_records_scratch_nbytes(layout, 0, n);
}

static int sample_elements(struct device_queue *queue, const struct sample_op *op)
{
	const uint64_t n_keys = op->n / op->stride + (op->n % op->stride != 0);
	struct cuda_operation operation = { 0 };
	int r = cuda_operation_begin(queue, STAGE_CUT, 0, n_keys * sizeof(struct kernel_key),
				     &operation);

	if (r < 0)
		return cuda_operation_abort(&operation, r);
	operation.pending->to[0] = op->ret_keys;
	operation.pending->n = n_keys;
	operation.pending->deliver = cuda_deliver_keys;
	return cuda_operation_submit(&operation,
				     launch_sample(op->items, op->n, op->stride,
						   op->layout->element_nbytes, operation.result,
						   operation.queue->stream),
				     "sample");
}

static int pack(struct device_queue *queue, const struct pack_op *op)
{
	struct delta_pack_task task = { .elements = op->elements,
					.n = op->n,
					.element_nbytes = op->element_nbytes,
					.block_n = op->block_n,
					.packed = op->packed };
	const size_t nbytes = (op->n + op->block_n - 1) / op->block_n * sizeof(uint32_t);
	struct cuda_operation operation = { 0 };
	int r = cuda_operation_begin(queue, STAGE_PACK, op->n * op->element_nbytes, nbytes,
				     &operation);

	if (r == 0)
		r = cuda_queue_scratch(operation.queue,
				       kernel_delta_pack_scratch_nbytes(op->n, op->block_n),
				       &task.scratch);
	if (r < 0)
		return cuda_operation_abort(&operation, r);
	task.packed_nbytes = operation.result;
	operation.pending->to[0] = op->ret_nbytes;
	operation.pending->n = nbytes;
	operation.pending->deliver = nbytes ? cuda_deliver_bytes : NULL;
	return cuda_operation_submit(&operation, launch_delta_pack(&task, operation.queue->stream),
				     "pack");
}

_Static_assert(sizeof(struct packed_block) == sizeof(struct kernel_packed_block) &&
		       offsetof(struct packed_block, n) == offsetof(struct kernel_packed_block, n),
	       "blocks are handed to the kernels as they are");

static int unpack(struct device_queue *queue, const struct unpack_op *op)
{
	struct delta_unpack_task task = {
		.blocks = (const struct kernel_packed_block *)op->blocks,
		.n_blocks = op->n_blocks,
		.element_nbytes = op->element_nbytes,
	};
	const uint64_t n = packed_blocks_n(op->blocks, op->n_blocks);
	struct cuda_operation operation = { 0 };
	int r = cuda_operation_begin(queue, STAGE_UNPACK, n * op->element_nbytes,
				     sizeof *task.damaged, &operation);

	if (r == 0)
		r = cuda_queue_scratch(operation.queue, kernel_delta_unpack_nbytes(op->n_blocks),
				       &task.tables);
	if (r < 0)
		return cuda_operation_abort(&operation, r);
	task.damaged = operation.result;
	operation.pending->to[0] = op->ret_damaged;
	operation.pending->n = sizeof *task.damaged;
	operation.pending->deliver = cuda_deliver_bytes;
	return cuda_operation_submit(&operation,
				     launch_delta_unpack(&task, operation.queue->stream), "unpack");
}

static const struct backend_layout_ops cuda_key_only_ops = {
	.encode = encode,
	.decode = decode,
	.sort_scratch_nbytes = elements_sort_scratch_nbytes,
	.sort = sort_elements,
	.merge_scratch_nbytes = elements_merge_scratch_nbytes,
	.merge = merge_elements,
	.unique = unique_elements,
	.cut = cut_elements,
	.sample = sample_elements,
};

static const struct backend_layout_ops cuda_record_ops = {
	.sort_scratch_nbytes = records_sort_scratch_nbytes,
	.sort = cuda_sort_records,
	.merge_scratch_nbytes = cuda_records_scratch_nbytes,
	.merge = cuda_merge_records,
	.unique = unique_records,
	.cut = cuda_cut_items,
	.sample = cuda_sample_items,
};

/* Indirect layouts are not supported: they refer to host memory. */
static const struct backend_layout_ops *const cuda_ops_by_layout[N_LAYOUT_KINDS] = {
	[LAYOUT_KEY_ONLY] = &cuda_key_only_ops,
	[LAYOUT_RECORDS] = &cuda_record_ops,
};

const struct backend backend_cuda = {
	.name = "cuda",
	.ops_by_layout = cuda_ops_by_layout,
	.line_ops = &cuda_line_ops,
	.probe = cuda_device_probe,
	.n_devices = cuda_device_count,
	.get_uuid = cuda_device_get_uuid,
	.open = cuda_device_open,
	.close = cuda_device_close,
	.get_info = cuda_device_get_info,
	.alloc = cuda_device_alloc,
	.free = cuda_device_free,
	.discard = cuda_device_discard,
	.can_access = cuda_device_can_access,
	.queue_open = cuda_queue_open,
	.queue_close = cuda_queue_close,
	.event_open = cuda_event_open,
	.event_close = cuda_event_close,
	.queue_record = cuda_queue_record,
	.event_wait = cuda_event_wait,
	.queue_wait_event = cuda_queue_wait_event,
	.copy = copy,
	.pack = pack,
	.unpack = unpack,
};
