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
	struct cuda_operation operation = { .stage = copy_stage(to, from), .nbytes = nbytes };
	int r = cuda_operation_begin(&operation, queue);

	if (r < 0)
		return r;
	r = cuda_status(cudaMemcpyAsync(to, from, nbytes, cudaMemcpyDefault, operation.stream),
			"copy");
	return cuda_operation_end(&operation, r);
}

static struct kernel_key kernel_key_from(encoded_key_t key)
{
	return (struct kernel_key){ .lo = (uint64_t)key, .hi = (uint64_t)(key >> 64) };
}

static void deliver_digest(const struct result_delivery *delivery)
{
	digest_add(delivery->to[0], *(const struct digest *)delivery->from);
}

static int encode(struct device_queue *queue, const struct encode_op *op)
{
	struct encode_task task = { .records = op->records,
				    .elements = op->elements,
				    .n = op->n,
				    .encoding = op->layout->encoding };
	struct cuda_operation operation = {
		.stage = STAGE_ENCODE,
		.nbytes = op->n * op->layout->record_nbytes,
		.scratch_nbytes = kernel_record_scratch_nbytes(op->n),
	};
	int r;

	if (op->ret_digest) {
		operation.result_nbytes = sizeof *op->ret_digest;
		operation.delivery = (struct result_delivery){ .deliver = deliver_digest,
							       .to = { op->ret_digest } };
	}
	r = cuda_operation_begin(&operation, queue);
	if (r < 0)
		return r;
	task.digest = operation.result;
	task.scratch = operation.scratch;
	r = cuda_status(launch_encode(&task, operation.stream), "encode");
	return cuda_operation_end(&operation, r);
}

static void deliver_decode_result(const struct result_delivery *delivery)
{
	const struct kernel_decode_result *result = delivery->from;
	struct decode_result *ret = delivery->to[0];

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
	struct cuda_operation operation = {
		.stage = STAGE_DECODE,
		.nbytes = op->n * op->layout->record_nbytes,
		.result_nbytes = sizeof(struct kernel_decode_result),
		.scratch_nbytes = kernel_record_scratch_nbytes(op->n),
		.delivery = { .deliver = deliver_decode_result, .to = { op->ret } },
	};
	int r = cuda_operation_begin(&operation, queue);

	if (r < 0)
		return r;
	task.result = operation.result;
	task.scratch = operation.scratch;
	r = cuda_status(launch_decode(&task, operation.stream), "decode");
	return cuda_operation_end(&operation, r);
}

static int cuda_enqueue_sort(struct device_queue *queue, const struct sort_op *op)
{
	const uint32_t element_nbytes = op->layout->element_nbytes;
	struct cuda_operation operation = { .stage = STAGE_SORT, .nbytes = op->n * element_nbytes };
	int r = cuda_operation_begin(&operation, queue);

	if (r < 0)
		return r;
	r = cuda_status(launch_sort(op->items, op->n, element_nbytes, op->scratch,
				    operation.stream),
			"sort");
	return cuda_operation_end(&operation, r);
}

static int cut_elements(struct device_queue *queue, const struct cut_op *op)
{
	const size_t nbytes = op->k * sizeof *op->ret_cuts;
	const encoded_key_t key = layout_get_key_prefix(op->layout, op->key);
	struct cuda_operation operation = {
		.stage = STAGE_CUT,
		.result_nbytes = nbytes,
		.delivery = { .deliver = cuda_deliver_bytes, .to = { op->ret_cuts }, .n = nbytes },
	};
	int r = cuda_operation_begin(&operation, queue);

	if (r < 0)
		return r;
	r = cuda_status(launch_cut(cuda_slices(op->slices), op->k, op->layout->element_nbytes,
				   kernel_key_from(key), op->slice, operation.result,
				   operation.stream),
			"cut");
	return cuda_operation_end(&operation, r);
}

static int cuda_enqueue_merge(struct device_queue *queue, const struct merge_op *op)
{
	const uint32_t element_nbytes = op->layout->element_nbytes;
	const uint64_t n = slices_n(op->slices, op->k);
	struct cuda_operation operation = { .stage = STAGE_MERGE, .nbytes = n * element_nbytes };
	int r = cuda_operation_begin(&operation, queue);

	if (r < 0)
		return r;
	r = cuda_status(launch_merge(cuda_slices(op->slices), op->k, element_nbytes, op->out,
				     op->scratch, operation.stream),
			"merge");
	return cuda_operation_end(&operation, r);
}

static void deliver_unique(const struct result_delivery *delivery)
{
	const struct kernel_unique_result *result = delivery->from;

	*(struct sort_op_result *)delivery->to[0] =
		(struct sort_op_result){ .n = result->n, .dropped = result->dropped };
}

static int unique_elements(struct device_queue *queue, const struct unique_op *op)
{
	struct unique_task task = { .elements = op->items,
				    .n = op->n,
				    .encoding = op->layout->encoding };
	struct cuda_operation operation = {
		.stage = STAGE_MERGE,
		.nbytes = op->n * op->layout->element_nbytes,
		.result_nbytes = sizeof(struct kernel_unique_result),
		.scratch_nbytes = kernel_record_scratch_nbytes(op->n),
		.delivery = { .deliver = deliver_unique, .to = { op->ret } },
	};
	int r = cuda_operation_begin(&operation, queue);

	if (r < 0)
		return r;
	task.result = operation.result;
	task.scratch = operation.scratch;
	r = cuda_status(launch_unique(&task, operation.stream), "unique");
	return cuda_operation_end(&operation, r);
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
	struct cuda_operation operation = {
		.stage = STAGE_CUT,
		.result_nbytes = n_keys * sizeof(struct kernel_key),
		.delivery = { .deliver = cuda_deliver_keys, .to = { op->ret_keys }, .n = n_keys },
	};
	int r = cuda_operation_begin(&operation, queue);

	if (r < 0)
		return r;
	r = cuda_status(launch_sample(op->items, op->n, op->stride, op->layout->element_nbytes,
				      operation.result, operation.stream),
			"sample");
	return cuda_operation_end(&operation, r);
}

static int pack(struct device_queue *queue, const struct pack_op *op)
{
	const size_t nbytes = (op->n + op->block_n - 1) / op->block_n * sizeof *op->ret_nbytes;
	struct delta_pack_task task = { .elements = op->elements,
					.n = op->n,
					.element_nbytes = op->element_nbytes,
					.block_n = op->block_n,
					.packed = op->packed };
	struct cuda_operation operation = {
		.stage = STAGE_PACK,
		.nbytes = op->n * op->element_nbytes,
		.result_nbytes = nbytes,
		.scratch_nbytes = kernel_delta_pack_scratch_nbytes(op->n, op->block_n),
		.delivery = { .deliver = nbytes ? cuda_deliver_bytes : NULL,
			      .to = { op->ret_nbytes },
			      .n = nbytes },
	};
	int r = cuda_operation_begin(&operation, queue);

	if (r < 0)
		return r;
	task.packed_nbytes = operation.result;
	task.scratch = operation.scratch;
	r = cuda_status(launch_delta_pack(&task, operation.stream), "pack");
	return cuda_operation_end(&operation, r);
}

_Static_assert(sizeof(struct packed_block) == sizeof(struct kernel_packed_block) &&
		       offsetof(struct packed_block, n) == offsetof(struct kernel_packed_block, n),
	       "blocks are handed to the kernels as they are");

static int unpack(struct device_queue *queue, const struct unpack_op *op)
{
	const uint64_t n = packed_blocks_n(op->blocks, op->n_blocks);
	struct delta_unpack_task task = {
		.blocks = (const struct kernel_packed_block *)op->blocks,
		.n_blocks = op->n_blocks,
		.element_nbytes = op->element_nbytes,
	};
	struct cuda_operation operation = {
		.stage = STAGE_UNPACK,
		.nbytes = n * op->element_nbytes,
		.result_nbytes = sizeof *task.damaged,
		.scratch_nbytes = kernel_delta_unpack_nbytes(op->n_blocks),
		.delivery = { .deliver = cuda_deliver_bytes,
			      .to = { op->ret_damaged },
			      .n = sizeof *task.damaged },
	};
	int r = cuda_operation_begin(&operation, queue);

	if (r < 0)
		return r;
	task.damaged = operation.result;
	task.tables = operation.scratch;
	r = cuda_status(launch_delta_unpack(&task, operation.stream), "unpack");
	return cuda_operation_end(&operation, r);
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
