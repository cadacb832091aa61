/*
 * backend_cpu - sorting and merging on CPU threads, in plain memory; the reference
 *
 * A lane is a queue on a pool of threads (queue_pool.h), an operation is one function of this folder
 * run as one task: chunks and windows are many and small, so the parallelism is between them. The
 * device is unified: its memory is the host's.
 *
 * Memory comes from mmap (page_alloc.h), so that it goes back to the system when it is released and the
 * process stays within its limit. Parts can go back early: what a merge has passed becomes the page
 * cache of what it writes, which need not find as many pages that nobody has used for long (on a
 * virtual machine these may have to come from its host first).
 */
#include "src/device/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/diagnostics.h"
#include "src/device/cpu/split.h"
#include "src/device/cpu/queue_pool.h"
#include "src/device/cpu/merge.h"
#include "src/device/cpu/pack.h"
#include "src/device/cpu/page_alloc.h"
#include "src/device/cpu/record_sort.h"
#include "src/device/cpu/indirect.h"
#include "src/device/cpu/sort.h"
#include "src/device/cpu/unique.h"

enum {
	CHUNK_NBYTES = 32 << 20,
	/*
	 * A write gets large pages of the page cache for what it covers of them: of 2 MiB on ext4.
	 * And these are what the kernel has just been given back of the runs, not memory that
	 * nobody has touched for long.
	 */
	WINDOW_NBYTES = 8 << 20,
	/* Half as many runs have a level less to be merged, and windows of them longer pieces. */
	FITTING_TIMES = 2,
};

struct cpu_device {
	struct device handle;
	struct lane_pool *pool;
	struct stats *stats; /* may be NULL */
	unsigned n_threads;
	struct pages pages;
};

static struct cpu_device *cpu_device(struct device *device)
{
	return (struct cpu_device *)device;
}

static int cpu_probe(const char **ret_why)
{
	(void)ret_why;
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
	pages_init(&device->pages);
	r = lane_pool_open(config->n_threads, device, &device->pool);
	if (r < 0) {
		pages_destroy(&device->pages);
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
	lane_pool_close(device->pool);
	pages_destroy(&device->pages);
	free(device);
}

static void cpu_describe(const struct device *handle, struct device_info *ret_info)
{
	const unsigned n_threads = ((const struct cpu_device *)handle)->n_threads;

	*ret_info = (struct device_info){
		.unified = true,
		.n_lanes = n_threads,
		.chunk_nbytes = CHUNK_NBYTES,
		.window_nbytes = WINDOW_NBYTES,
		.fitting_times = FITTING_TIMES,
	};
	snprintf(ret_info->name, sizeof ret_info->name, "CPU, %u thread%s", n_threads,
		 n_threads == 1 ? "" : "s");
}

static int cpu_alloc(struct device *device, enum memory kind, size_t nbytes, void **ret_memory)
{
	(void)kind;
	*ret_memory = pages_map(&cpu_device(device)->pages, nbytes);
	return *ret_memory ? 0 : -ENOMEM;
}

static void cpu_release(struct device *device, enum memory kind, void *memory, size_t nbytes)
{
	(void)device, (void)kind;
	pages_unmap(memory, nbytes);
}

/* Whole pages only: what lies on the edges of the part stays. */
static void cpu_discard(struct device *device, void *memory, size_t nbytes)
{
	const uintptr_t page_nbytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uintptr_t begin = ((uintptr_t)memory + page_nbytes - 1) / page_nbytes * page_nbytes;
	const uintptr_t end = ((uintptr_t)memory + nbytes) / page_nbytes * page_nbytes;

	(void)device;
	if (begin < end)
		madvise((void *)begin, end - begin, MADV_DONTNEED);
}

static int cpu_lane_open(struct device *device, enum lane_urgency urgency, struct lane **ret_lane)
{
	return lane_pool_lane_open(cpu_device(device)->pool, urgency, ret_lane);
}

static int cpu_mark_open(struct device *device, struct mark **ret_mark)
{
	return lane_pool_mark_open(cpu_device(device)->pool, ret_mark);
}

static int cpu_mark_wait(struct mark *mark)
{
	lane_pool_wait(mark);
	return 0;
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

static void cpu_encode_codes(const struct encode_op *op)
{
	codes_encode(op->layout, op->records, op->n, op->elements, op->ret_digest);
}

static void cpu_decode_codes(const struct decode_op *op)
{
	codes_decode(op->layout, op->elements, op->n, op->strict, op->records, op->ret);
}

/*
 * Each operation: the task that runs it and reports its time and the bytes it went over, and the
 * function that queues it.
 */
#define OPERATION(verb, type, the_stage, the_nbytes)                                               \
	static void run_##verb(void *context, const void *arguments)                               \
	{                                                                                          \
		struct cpu_device *device = context;                                               \
		const struct type *op = arguments;                                                 \
		struct span span = stats_begin(the_stage, 0);                                      \
                                                                                                   \
		cpu_##verb(op);                                                                    \
		stats_end(device->stats, span, the_nbytes);                                        \
	}                                                                                          \
	static int queue_##verb(struct lane *lane, const struct type *op)                          \
	{                                                                                          \
		return lane_pool_queue(lane, run_##verb, op, sizeof *op);                          \
	}

OPERATION(copy, copy_op, STAGE_FETCH, 0) /* from memory to memory: fetched already, if at all */
OPERATION(encode_codes, encode_op, STAGE_ENCODE, op->n * op->layout->record_nbytes)
OPERATION(decode_codes, decode_op, STAGE_DECODE, op->n * op->layout->record_nbytes)
OPERATION(encode_references, encode_op, STAGE_ENCODE, op->n * op->layout->record_nbytes)
OPERATION(decode_references, decode_op, STAGE_DECODE, op->n * op->layout->record_nbytes)
OPERATION(sort, sort_elements_op, STAGE_SORT, op->n * op->element_nbytes)
OPERATION(cut_elements, cut_op, STAGE_CUT, 0)
OPERATION(cut_items, cut_op, STAGE_CUT, 0)
OPERATION(merge, merge_elements_op, STAGE_MERGE, slices_n(op->slices, op->k) * op->element_nbytes)
OPERATION(unique, unique_elements_op, STAGE_MERGE, op->n * op->element_nbytes)
OPERATION(sample_elements, sample_op, STAGE_CUT, 0)
OPERATION(sample_items, sample_op, STAGE_CUT, 0)
OPERATION(pack, pack_op, STAGE_PACK, op->n * op->element_nbytes)
OPERATION(unpack, unpack_op, STAGE_UNPACK,
	  packed_blocks_n(op->blocks, op->n_blocks) * op->element_nbytes)
OPERATION(sort_records, sort_op, STAGE_SORT, op->n * op->layout->record_nbytes)
OPERATION(merge_records, merge_op, STAGE_MERGE,
	  slices_n(op->slices, op->k) * op->layout->item_nbytes)

static int copy(struct lane *lane, void *to, const void *from, size_t nbytes)
{
	return queue_copy(lane, &(struct copy_op){ .to = to, .from = from, .n = nbytes });
}

/* --- Elements, and items of records --- */

static int unique_elements(struct lane *lane, const struct unique_op *op)
{
	*op->ret = (struct arranged){ .n = op->n };
	return queue_unique(lane, &(struct unique_elements_op){
					  .elements = op->items,
					  .n = op->n,
					  .element_nbytes = op->layout->element_nbytes,
					  .layout = op->layout,
					  .ret_n = &op->ret->n,
					  .ret_dropped = &op->ret->dropped,
				  });
}

/* Elements were sorted or merged: without their duplicates, if that is wanted. */
static int finish_elements(struct lane *lane, const struct layout *layout, void *items, uint64_t n,
			   bool unique, struct arranged *ret)
{
	*ret = (struct arranged){ .n = n };
	return unique ? unique_elements(lane, &(struct unique_op){ .layout = layout,
								   .items = items,
								   .n = n,
								   .ret = ret }) :
			0;
}

static int sort_elements(struct lane *lane, const struct sort_op *op)
{
	int r = queue_sort(lane, &(struct sort_elements_op){ .elements = op->items,
							     .n = op->n,
							     .scratch = op->scratch,
							     .element_nbytes =
								     op->layout->element_nbytes });

	return r < 0 ? r : finish_elements(lane, op->layout, op->items, op->n, op->unique, op->ret);
}

static int merge_elements(struct lane *lane, const struct merge_op *op)
{
	int r = queue_merge(lane, &(struct merge_elements_op){ .slices = op->slices,
							       .k = op->k,
							       .element_nbytes =
								       op->layout->element_nbytes,
							       .out = op->out,
							       .scratch = op->scratch });

	return r < 0 ? r :
		       finish_elements(lane, op->layout, op->out, slices_n(op->slices, op->k),
				       op->unique, op->ret);
}

static size_t elements_sort_scratch_nbytes(const struct layout *layout, uint64_t n)
{
	return cpu_sort_scratch_nbytes(n, layout->element_nbytes);
}

static size_t elements_merge_scratch_nbytes(const struct layout *layout, uint32_t k, uint64_t n)
{
	return cpu_merge_scratch_nbytes(k, n, layout->element_nbytes);
}

/* A merge of one slice, by way of other memory; one task, which may have the slice on its stack. */
static void cpu_unique_records(const struct unique_op *op)
{
	const struct slice slice = { op->items, op->n };

	cpu_merge_records(&(struct merge_op){ .layout = op->layout,
					      .slices = &slice,
					      .k = 1,
					      .out = op->other,
					      .unique = true,
					      .limit = UINT64_MAX,
					      .scratch = op->scratch,
					      .ret = op->ret });
	memcpy(op->items, op->other, op->ret->n * op->layout->item_nbytes);
}

OPERATION(unique_records, unique_op, STAGE_MERGE, op->n * op->layout->item_nbytes)

static size_t records_sort_scratch_nbytes(const struct layout *layout, uint64_t n)
{
	return cpu_records_scratch_nbytes(layout, 0, n);
}

/* --- The table --- */

/* What is the same wherever elements hold all of the key. */
#define OF_ELEMENTS                                                                                \
	.sort_scratch_nbytes = elements_sort_scratch_nbytes, .sort = sort_elements,                \
	.merge_scratch_nbytes = elements_merge_scratch_nbytes, .merge = merge_elements,            \
	.unique = unique_elements, .cut = queue_cut_elements, .sample = queue_sample_elements

static const struct backend_kind kind_codes = {
	OF_ELEMENTS,
	.encode = queue_encode_codes,
	.decode = queue_decode_codes,
};

static const struct backend_kind kind_references = {
	OF_ELEMENTS,
	.encode = queue_encode_references,
	.decode = queue_decode_references,
};

static const struct backend_kind kind_records = {
	.sort_scratch_nbytes = records_sort_scratch_nbytes,
	.sort = queue_sort_records,
	.merge_scratch_nbytes = cpu_records_scratch_nbytes,
	.merge = queue_merge_records,
	.unique = queue_unique_records,
	.cut = queue_cut_items,
	.sample = queue_sample_items,
};

static const struct backend_kind *const kinds[N_LAYOUT_KINDS] = {
	[LAYOUT_CODES] = &kind_codes,
	[LAYOUT_REFERENCES] = &kind_references,
	[LAYOUT_RECORDS] = &kind_records,
};

const struct backend backend_cpu = {
	.name = "cpu",
	.kinds = kinds,
	.probe = cpu_probe,
	.open = cpu_open,
	.close = cpu_close,
	.describe = cpu_describe,
	.alloc = cpu_alloc,
	.release = cpu_release,
	.discard = cpu_discard,
	.lane_open = cpu_lane_open,
	.lane_close = lane_pool_lane_close,
	.mark_open = cpu_mark_open,
	.mark_close = lane_pool_mark_close,
	.mark = lane_pool_mark,
	.mark_wait = cpu_mark_wait,
	.follow = lane_pool_follow,
	.copy = copy,
	.pack = queue_pack,
	.unpack = queue_unpack,
};
