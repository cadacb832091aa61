/*
 * backend_cuda - sorting and merging on a GPU
 *
 * The table of backend.h: an operation is a launch_* of kernels/kernels.h in a lane's stream.
 * The device and its memory are in cuda_device.c; lanes, marks, and how results come to the host,
 * in cuda_queue.c. Nothing else in the job knows CUDA.
 */
#include "src/device/backend.h"

#include "kernels/kernels.h"
#include "src/device/cuda/cuda_queue.h"
#include "src/device/cuda/cuda_records.h"

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

static int copy(struct lane *lane, void *to, const void *from, size_t nbytes)
{
	struct operation operation = { 0 };
	int r = cuda_operation_begin(lane, copy_stage(to, from), nbytes, 0, &operation);

	if (r < 0)
		return cuda_operation_fail(&operation, r);
	return cuda_operation_queue(&operation,
				    cudaMemcpyAsync(to, from, nbytes, cudaMemcpyDefault,
						    operation.lane->stream),
				    "copy");
}

static struct kernel_key key_split(code_t key)
{
	return (struct kernel_key){ .lo = (uint64_t)key, .hi = (uint64_t)(key >> 64) };
}

static void deliver_digest(const struct delivery *delivery)
{
	digest_add(delivery->to[0], *(const struct digest *)delivery->from);
}

static int encode(struct lane *lane, const struct encode_op *op)
{
	struct encode_task task = {
		.records = op->records, .elements = op->elements, .n = op->n, .map = op->layout->map
	};
	struct operation operation = { 0 };
	int r = cuda_operation_begin(lane, STAGE_ENCODE, op->n * op->layout->record_nbytes,
				     op->ret_digest ? sizeof(struct digest) : 0, &operation);

	if (r == 0)
		r = cuda_lane_scratch(operation.lane, kernel_record_scratch_nbytes(op->n),
				      &task.scratch);
	if (r < 0)
		return cuda_operation_fail(&operation, r);
	if (op->ret_digest) {
		task.digest = operation.result;
		operation.delivery->to[0] = op->ret_digest;
		operation.delivery->deliver = deliver_digest;
	}
	return cuda_operation_queue(&operation, launch_encode(&task, operation.lane->stream),
				    "encode");
}

static void deliver_decoded(const struct delivery *delivery)
{
	const struct decode_findings *found = delivery->from;
	struct decode_result *ret = delivery->to[0];

	*ret = (struct decode_result){
		.digest = found->digest,
		.n_disorders = found->n_disorders,
		.first = cuda_widen(found->first),
		.last = cuda_widen(found->last),
	};
}

static int decode(struct lane *lane, const struct decode_op *op)
{
	struct decode_task task = { .elements = op->elements,
				    .records = op->records,
				    .n = op->n,
				    .map = op->layout->map,
				    .strict = op->strict };
	struct operation operation = { 0 };
	int r = cuda_operation_begin(lane, STAGE_DECODE, op->n * op->layout->record_nbytes,
				     sizeof(struct decode_findings), &operation);

	if (r == 0)
		r = cuda_lane_scratch(operation.lane, kernel_record_scratch_nbytes(op->n),
				      &task.scratch);
	if (r < 0)
		return cuda_operation_fail(&operation, r);
	task.findings = operation.result;
	operation.delivery->to[0] = op->ret;
	operation.delivery->deliver = deliver_decoded;
	return cuda_operation_queue(&operation, launch_decode(&task, operation.lane->stream),
				    "decode");
}

static int queue_sort(struct lane *lane, const struct sort_op *op)
{
	const uint32_t element_nbytes = op->layout->element_nbytes;
	struct operation operation = { 0 };
	int r = cuda_operation_begin(lane, STAGE_SORT, op->n * element_nbytes, 0, &operation);

	if (r < 0)
		return cuda_operation_fail(&operation, r);
	return cuda_operation_queue(&operation,
				    launch_sort(op->items, op->n, element_nbytes, op->scratch,
						operation.lane->stream),
				    "sort");
}

static int cut_elements(struct lane *lane, const struct cut_op *op)
{
	const size_t nbytes = op->k * sizeof *op->ret_cuts;
	struct operation operation = { 0 };
	int r = cuda_operation_begin(lane, STAGE_CUT, 0, nbytes, &operation);

	if (r < 0)
		return cuda_operation_fail(&operation, r);
	operation.delivery->to[0] = op->ret_cuts;
	operation.delivery->n = nbytes;
	operation.delivery->deliver = cuda_deliver_bytes;
	return cuda_operation_queue(&operation,
				    launch_cut(cuda_slices(op->slices), op->k,
					       op->layout->element_nbytes,
					       key_split(layout_key_beginning(op->layout, op->key)),
					       op->slice, operation.result, operation.lane->stream),
				    "cut");
}

static int queue_merge(struct lane *lane, const struct merge_op *op)
{
	const uint32_t element_nbytes = op->layout->element_nbytes;
	const uint64_t n = slices_n(op->slices, op->k);
	struct operation operation = { 0 };
	int r = cuda_operation_begin(lane, STAGE_MERGE, n * element_nbytes, 0, &operation);

	if (r < 0)
		return cuda_operation_fail(&operation, r);
	return cuda_operation_queue(&operation,
				    launch_merge(cuda_slices(op->slices), op->k, element_nbytes,
						 op->out, op->scratch, operation.lane->stream),
				    "merge");
}

static void deliver_unique(const struct delivery *delivery)
{
	const struct unique_findings *found = delivery->from;

	*(struct arranged *)delivery->to[0] =
		(struct arranged){ .n = found->n, .dropped = found->dropped };
}

static int unique_elements(struct lane *lane, const struct unique_op *op)
{
	struct unique_task task = { .elements = op->items, .n = op->n, .map = op->layout->map };
	struct operation operation = { 0 };
	int r = cuda_operation_begin(lane, STAGE_MERGE, op->n * op->layout->element_nbytes,
				     sizeof(struct unique_findings), &operation);

	if (r == 0)
		r = cuda_lane_scratch(operation.lane, kernel_record_scratch_nbytes(op->n),
				      &task.scratch);
	if (r < 0)
		return cuda_operation_fail(&operation, r);
	task.findings = operation.result;
	operation.delivery->to[0] = op->ret;
	operation.delivery->deliver = deliver_unique;
	return cuda_operation_queue(&operation, launch_unique(&task, operation.lane->stream),
				    "unique");
}

/* Elements were sorted or merged: without their duplicates, if that is wanted. */
static int finish_elements(struct lane *lane, const struct layout *layout, void *items, uint64_t n,
			   bool is_unique, struct arranged *ret)
{
	*ret = (struct arranged){ .n = n };
	return is_unique ? unique_elements(lane, &(struct unique_op){ .layout = layout,
								      .items = items,
								      .n = n,
								      .ret = ret }) :
			   0;
}

static int sort_elements(struct lane *lane, const struct sort_op *op)
{
	int r = queue_sort(lane, op);

	return r < 0 ? r : finish_elements(lane, op->layout, op->items, op->n, op->unique, op->ret);
}

static int merge_elements(struct lane *lane, const struct merge_op *op)
{
	int r = queue_merge(lane, op);

	return r < 0 ? r :
		       finish_elements(lane, op->layout, op->out, slices_n(op->slices, op->k),
				       op->unique, op->ret);
}

/* A merge of one slice, by way of other memory. */
static int unique_records(struct lane *lane, const struct unique_op *op)
{
	const struct slice slice = { op->items, op->n };
	int r = cuda_merge_records(lane, &(struct merge_op){ .layout = op->layout,
							     .slices = &slice,
							     .k = 1,
							     .out = op->other,
							     .unique = true,
							     .limit = UINT64_MAX,
							     .scratch = op->scratch,
							     .ret = op->ret });

	return r < 0 ? r : copy(lane, op->items, op->other, op->n * op->layout->item_nbytes);
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

static int sample_elements(struct lane *lane, const struct sample_op *op)
{
	const uint64_t n_keys = op->n / op->stride + (op->n % op->stride != 0);
	struct operation operation = { 0 };
	int r = cuda_operation_begin(lane, STAGE_CUT, 0, n_keys * sizeof(struct kernel_key),
				     &operation);

	if (r < 0)
		return cuda_operation_fail(&operation, r);
	operation.delivery->to[0] = op->ret_keys;
	operation.delivery->n = n_keys;
	operation.delivery->deliver = cuda_deliver_keys;
	return cuda_operation_queue(&operation,
				    launch_sample(op->items, op->n, op->stride,
						  op->layout->element_nbytes, operation.result,
						  operation.lane->stream),
				    "sample");
}

static int pack(struct lane *lane, const struct pack_op *op)
{
	struct delta_pack_task task = { .codes = op->elements,
					.n = op->n,
					.code_nbytes = op->element_nbytes,
					.block_n = op->block_n,
					.packed = op->packed };
	const size_t nbytes = (op->n + op->block_n - 1) / op->block_n * sizeof(uint32_t);
	struct operation operation = { 0 };
	int r = cuda_operation_begin(lane, STAGE_PACK, op->n * op->element_nbytes, nbytes,
				     &operation);

	if (r == 0)
		r = cuda_lane_scratch(operation.lane,
				      kernel_delta_pack_scratch_nbytes(op->n, op->block_n),
				      &task.scratch);
	if (r < 0)
		return cuda_operation_fail(&operation, r);
	task.packed_nbytes = operation.result;
	operation.delivery->to[0] = op->ret_nbytes;
	operation.delivery->n = nbytes;
	operation.delivery->deliver = nbytes ? cuda_deliver_bytes : NULL;
	return cuda_operation_queue(&operation, launch_delta_pack(&task, operation.lane->stream),
				    "pack");
}

_Static_assert(sizeof(struct packed_block) == sizeof(struct kernel_packed_block) &&
		       offsetof(struct packed_block, n) == offsetof(struct kernel_packed_block, n),
	       "blocks are handed to the kernels as they are");

static int unpack(struct lane *lane, const struct unpack_op *op)
{
	struct delta_unpack_task task = {
		.blocks = (const struct kernel_packed_block *)op->blocks,
		.n_blocks = op->n_blocks,
		.code_nbytes = op->element_nbytes,
	};
	const uint64_t n = packed_blocks_n(op->blocks, op->n_blocks);
	struct operation operation = { 0 };
	int r = cuda_operation_begin(lane, STAGE_UNPACK, n * op->element_nbytes,
				     sizeof *task.damaged, &operation);

	if (r == 0)
		r = cuda_lane_scratch(operation.lane, kernel_delta_unpack_nbytes(op->n_blocks),
				      &task.tables);
	if (r < 0)
		return cuda_operation_fail(&operation, r);
	task.damaged = operation.result;
	operation.delivery->to[0] = op->ret_damaged;
	operation.delivery->n = sizeof *task.damaged;
	operation.delivery->deliver = cuda_deliver_bytes;
	return cuda_operation_queue(&operation, launch_delta_unpack(&task, operation.lane->stream),
				    "unpack");
}

static const struct backend_kind kind_codes = {
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

static const struct backend_kind kind_records = {
	.sort_scratch_nbytes = records_sort_scratch_nbytes,
	.sort = cuda_sort_records,
	.merge_scratch_nbytes = cuda_records_scratch_nbytes,
	.merge = cuda_merge_records,
	.unique = unique_records,
	.cut = cuda_cut_items,
	.sample = cuda_sample_items,
};

/* No references: they are to memory of the host. */
static const struct backend_kind *const kinds[N_LAYOUT_KINDS] = {
	[LAYOUT_CODES] = &kind_codes,
	[LAYOUT_RECORDS] = &kind_records,
};

const struct backend backend_cuda = {
	.name = "cuda",
	.kinds = kinds,
	.probe = cuda_device_probe,
	.n_devices = cuda_device_n,
	.identify = cuda_device_identify,
	.open = cuda_device_open,
	.close = cuda_device_close,
	.describe = cuda_device_describe,
	.alloc = cuda_device_alloc,
	.release = cuda_device_release,
	.discard = cuda_device_discard,
	.reaches = cuda_device_reaches,
	.lane_open = cuda_lane_open,
	.lane_close = cuda_lane_close,
	.mark_open = cuda_mark_open,
	.mark_close = cuda_mark_close,
	.mark = cuda_lane_mark,
	.mark_wait = cuda_mark_wait,
	.follow = cuda_lane_follow,
	.copy = copy,
	.pack = pack,
	.unpack = unpack,
};
