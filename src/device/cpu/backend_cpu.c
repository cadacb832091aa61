/*
 * backend_cpu - sort and merge with CPU threads in plain memory; the reference back end
 *
 * Queues run on a pool of threads (queue_pool.h). An operation is one function of this folder, run
 * as one task: chunks and windows are small and many, so different ones run in parallel. The device
 * is unified: its memory is the host's.
 *
 * Memory comes from mmap (page_alloc.h), so that releasing it returns it to the system and the
 * process stays within its limit. The pages of merged slices are returned early, so that the kernel
 * can reuse them for the page cache of the output. Otherwise the kernel would take other free
 * pages, which a virtual machine may have to get from its host first.
 */
#include "src/device/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/device/cpu/queue_pool.h"
#include "src/device/cpu/cpu_merge.h"
#include "src/device/cpu/cpu_ops.h"
#include "src/device/cpu/page_alloc.h"
#include "src/device/cpu/cpu_sort.h"

enum {
	CHUNK_NBYTES = 32 << 20,
	/*
	 * The page cache gives a write large pages for the parts that it covers: 2 MiB on ext4.
	 * Windows of this size let the kernel reuse the pages of merged slices.
	 */
	WINDOW_NBYTES = 8 << 20,
	/* Half as many chunks save a merge level, and windows take longer pieces of each. */
	IN_MEMORY_FACTOR = 2,
};

struct cpu_device {
	struct device handle;
	struct queue_pool *pool;
	struct stats *stats; /* may be NULL */
	unsigned n_threads;
	const struct cancellation *cancellation;
	struct page_alloc page_alloc;
};

static struct cpu_device *cpu_device(struct device *device)
{
	return (struct cpu_device *)device;
}

static int cpu_probe(const char **ret_reason)
{
	(void)ret_reason;
	return 0;
}

static int cpu_open(const struct backend_config *config, struct device **ret_device)
{
	struct cpu_device *device = calloc(1, sizeof *device);
	int r;

	if (!device)
		return -ENOMEM;
	device->n_threads = config->n_threads;
	device->stats = config->stats;
	device->cancellation = config->cancellation;
	page_alloc_init(&device->page_alloc);
	r = queue_pool_open(config->n_threads, config->cancellation, device, &device->pool);
	if (r < 0) {
		page_alloc_destroy(&device->page_alloc);
		free(device);
		return r;
	}
	*ret_device = &device->handle;
	return 0;
}

static void cpu_close(struct device *handle)
{
	struct cpu_device *device = cpu_device(handle);

	if (!device)
		return;
	queue_pool_close(device->pool);
	page_alloc_destroy(&device->page_alloc);
	free(device);
}

static void cpu_get_info(const struct device *handle, struct device_info *ret_info)
{
	const unsigned n_threads = ((const struct cpu_device *)handle)->n_threads;

	*ret_info = (struct device_info){
		.unified = true,
		.n_queues = n_threads,
		.chunk_nbytes = CHUNK_NBYTES,
		.window_nbytes = WINDOW_NBYTES,
		.in_memory_factor = IN_MEMORY_FACTOR,
	};
	snprintf(ret_info->name, sizeof ret_info->name, "CPU, %u thread%s", n_threads,
		 n_threads == 1 ? "" : "s");
}

static int cpu_alloc(struct device *device, enum memory_kind kind, size_t nbytes, void **ret_memory)
{
	(void)kind;
	*ret_memory = page_alloc_map(&cpu_device(device)->page_alloc, nbytes);
	return *ret_memory ? 0 : -ENOMEM;
}

static void cpu_free(struct device *device, enum memory_kind kind, void *memory, size_t nbytes)
{
	(void)device, (void)kind;
	page_alloc_unmap(memory, nbytes);
}

/* Discard the pages that lie entirely in the part. */
static void cpu_discard(struct device *device, void *memory, size_t nbytes)
{
	const uintptr_t page_nbytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uintptr_t begin = ((uintptr_t)memory + page_nbytes - 1) / page_nbytes * page_nbytes;
	const uintptr_t end = ((uintptr_t)memory + nbytes) / page_nbytes * page_nbytes;

	(void)device;
	if (begin < end)
		madvise((void *)begin, end - begin, MADV_DONTNEED);
}

static int cpu_queue_open(struct device *device, enum queue_priority priority,
			  struct device_queue **ret_queue)
{
	return pool_queue_open(cpu_device(device)->pool, priority, ret_queue);
}

static int cpu_event_open(struct device *device, struct device_event **ret_event)
{
	return pool_event_open(cpu_device(device)->pool, ret_event);
}

struct copy_op {
	void *to;
	const void *from;
	size_t n; /* bytes */
};

static void cpu_copy(const struct copy_op *op)
{
	memcpy(op->to, op->from, op->n);
}

static void cpu_encode_keys(const struct encode_op *op)
{
	key_batch_encode(op->layout, op->records, op->n, op->elements, op->ret_digest);
}

static void cpu_decode_keys(const struct decode_op *op)
{
	key_batch_decode(op->layout, op->elements, op->n, op->strict, op->records, op->ret);
}

static void sort_until_cancelled(struct sort_elements_op op, const struct cpu_device *device)
{
	op.cancellation = device->cancellation;
	cpu_sort(&op);
}

/* Copy the slices, which belong to one bucket, to op->out and sort them there. */
static void sort_slices(const struct merge_elements_op *op, const struct cpu_device *device)
{
	char *out = op->out;
	uint64_t n = 0;

	for (uint32_t i = 0; i < op->k; i++) {
		memcpy(out + n * op->element_nbytes, op->slices[i].elements,
		       op->slices[i].n * op->element_nbytes);
		n += op->slices[i].n;
	}
	sort_until_cancelled((struct sort_elements_op){ .elements = out,
							.n = n,
							.scratch = op->scratch,
							.element_nbytes = op->element_nbytes },
			     device);
}

/*
 * For each operation: the task that calls it and reports its time and bytes, and the function that
 * queues the task. The call may use `op` and `device`.
 */
#define OPERATION(verb, type, the_stage, the_nbytes)                                               \
	OPERATION_BY(cpu_##verb(op), verb, type, the_stage, the_nbytes)
#define OPERATION_BY(call, verb, type, the_stage, the_nbytes)                                      \
	static void run_##verb(void *context, const void *arguments)                               \
	{                                                                                          \
		struct cpu_device *device = context;                                               \
		const struct type *op = arguments;                                                 \
		struct span span = stats_begin(the_stage, 0);                                      \
                                                                                                   \
		call;                                                                              \
		stats_end(device->stats, span, the_nbytes);                                        \
	}                                                                                          \
	static int enqueue_##verb(struct device_queue *queue, const struct type *op)               \
	{                                                                                          \
		return pool_queue_submit(queue, run_##verb, op, sizeof *op);                       \
	}

OPERATION(copy, copy_op, STAGE_FETCH, 0) /* from memory to memory */
OPERATION(encode_keys, encode_op, STAGE_ENCODE, op->n * op->layout->record_nbytes)
OPERATION(decode_keys, decode_op, STAGE_DECODE, op->n * op->layout->record_nbytes)
OPERATION(encode_indirect, encode_op, STAGE_ENCODE, op->n * op->layout->record_nbytes)
OPERATION(decode_indirect, decode_op, STAGE_DECODE, op->n * op->layout->record_nbytes)
OPERATION_BY(sort_until_cancelled(*op, device), sort, sort_elements_op, STAGE_SORT,
	     op->n * op->element_nbytes)
OPERATION(cut_elements, cut_op, STAGE_CUT, 0)
OPERATION(cut_items, cut_op, STAGE_CUT, 0)
OPERATION(distribute, distribute_op, STAGE_SORT, op->n * op->layout->element_nbytes)
OPERATION(merge, merge_elements_op, STAGE_MERGE, slices_n(op->slices, op->k) * op->element_nbytes)
OPERATION_BY(sort_slices(op, device), sort_slices, merge_elements_op, STAGE_MERGE,
	     slices_n(op->slices, op->k) * op->element_nbytes)
OPERATION(unique, unique_elements_op, STAGE_MERGE, op->n * op->element_nbytes)
OPERATION(sample_elements, sample_op, STAGE_CUT, 0)
OPERATION(sample_items, sample_op, STAGE_CUT, 0)
OPERATION(pack, pack_op, STAGE_PACK, op->n * op->element_nbytes)
OPERATION(unpack, unpack_op, STAGE_UNPACK,
	  packed_blocks_n(op->blocks, op->n_blocks) * op->element_nbytes)
OPERATION_BY(cpu_sort_records(op, device->cancellation), sort_records, sort_op, STAGE_SORT,
	     op->n * op->layout->record_nbytes)
OPERATION(merge_records, merge_op, STAGE_MERGE,
	  slices_n(op->slices, op->k) * op->layout->item_nbytes)

static int copy(struct device_queue *queue, void *to, const void *from, size_t nbytes)
{
	return enqueue_copy(queue, &(struct copy_op){ .to = to, .from = from, .n = nbytes });
}

/* --- Elements, and items of records --- */

static int unique_elements(struct device_queue *queue, const struct unique_op *op)
{
	*op->ret = (struct sort_op_result){ .n = op->n };
	return enqueue_unique(queue, &(struct unique_elements_op){
					     .elements = op->items,
					     .n = op->n,
					     .element_nbytes = op->layout->element_nbytes,
					     .layout = op->layout,
					     .ret_n = &op->ret->n,
					     .ret_dropped = &op->ret->dropped,
				     });
}

static int sort_elements(struct device_queue *queue, const struct sort_op *op)
{
	int r = enqueue_sort(
		queue, &(struct sort_elements_op){ .elements = op->items,
						   .n = op->n,
						   .scratch = op->scratch,
						   .element_nbytes = op->layout->element_nbytes });

	return r < 0 ? r :
		       device_queue_finish_elements(queue, op->layout, op->items, op->n, op->unique,
						    op->ret);
}

static int merge_elements(struct device_queue *queue, const struct merge_op *op)
{
	const struct merge_elements_op elements = { .slices = op->slices,
						    .k = op->k,
						    .element_nbytes = op->layout->element_nbytes,
						    .out = op->out,
						    .scratch = op->scratch };
	int r = op->is_unsorted ? enqueue_sort_slices(queue, &elements) :
				  enqueue_merge(queue, &elements);

	return r < 0 ? r :
		       device_queue_finish_elements(queue, op->layout, op->out,
						    slices_n(op->slices, op->k), op->unique,
						    op->ret);
}

static size_t elements_sort_scratch_nbytes(const struct layout *layout, uint64_t n)
{
	return cpu_sort_scratch_nbytes(n, layout->element_nbytes);
}

static size_t elements_merge_scratch_nbytes(const struct layout *layout, uint32_t k, uint64_t n)
{
	return cpu_merge_scratch_nbytes(k, n, layout->element_nbytes);
}

/* Drop duplicates: merge the items, as one slice, into the buffer and copy the result back. */
static void cpu_unique_records(const struct unique_op *op)
{
	const struct slice slice = { op->items, op->n };

	cpu_merge_records(&(struct merge_op){ .layout = op->layout,
					      .slices = &slice,
					      .k = 1,
					      .out = op->buffer,
					      .unique = true,
					      .limit = UINT64_MAX,
					      .scratch = op->scratch,
					      .ret = op->ret });
	memcpy(op->items, op->buffer, op->ret->n * op->layout->item_nbytes);
}

OPERATION(unique_records, unique_op, STAGE_MERGE, op->n * op->layout->item_nbytes)

static size_t records_sort_scratch_nbytes(const struct layout *layout, uint64_t n)
{
	return cpu_records_scratch_nbytes(layout, 0, n);
}

/* --- The table --- */

/* The operations that all layouts whose elements hold the whole key share. */
#define ELEMENT_OPS                                                                                \
	.sort_scratch_nbytes = elements_sort_scratch_nbytes, .sort = sort_elements,                \
	.merge_scratch_nbytes = elements_merge_scratch_nbytes, .merge = merge_elements,            \
	.unique = unique_elements, .cut = enqueue_cut_elements, .sample = enqueue_sample_elements

static const struct backend_layout_ops cpu_key_only_ops = {
	ELEMENT_OPS,
	.distribute = enqueue_distribute,
	.distribute_scratch_nbytes = cpu_distribute_scratch_nbytes,
	.encode = enqueue_encode_keys,
	.decode = enqueue_decode_keys,
};

static const struct backend_layout_ops cpu_indirect_ops = {
	ELEMENT_OPS,
	.encode = enqueue_encode_indirect,
	.decode = enqueue_decode_indirect,
};

static const struct backend_layout_ops cpu_record_ops = {
	.sort_scratch_nbytes = records_sort_scratch_nbytes,
	.sort = enqueue_sort_records,
	.merge_scratch_nbytes = cpu_records_scratch_nbytes,
	.merge = enqueue_merge_records,
	.unique = enqueue_unique_records,
	.cut = enqueue_cut_items,
	.sample = enqueue_sample_items,
};

static const struct backend_layout_ops *const cpu_ops_by_layout[N_LAYOUT_KINDS] = {
	[LAYOUT_KEY_ONLY] = &cpu_key_only_ops,
	[LAYOUT_INDIRECT] = &cpu_indirect_ops,
	[LAYOUT_RECORDS] = &cpu_record_ops,
};

const struct backend backend_cpu = {
	.name = "cpu",
	.ops_by_layout = cpu_ops_by_layout,
	.probe = cpu_probe,
	.open = cpu_open,
	.close = cpu_close,
	.get_info = cpu_get_info,
	.alloc = cpu_alloc,
	.free = cpu_free,
	.discard = cpu_discard,
	.queue_open = cpu_queue_open,
	.queue_close = pool_queue_close,
	.event_open = cpu_event_open,
	.event_close = pool_event_close,
	.queue_record = pool_queue_record,
	.event_wait = pool_event_wait,
	.queue_wait_event = pool_queue_wait_event,
	.copy = copy,
	.pack = enqueue_pack,
	.unpack = enqueue_unpack,
};
