/*
 * plan_make.c - divide memory and threads among the parts of a sort
 *
 * The plan is made in this order: chunks; blocks of spilled runs and the fan-in; windows and
 * partitions of merges (plan_merge.c); the bytes that are spilled and merged (plan_passes.c). Each
 * part gets at least its minimum, even if that exceeds its share of the memory. So the sum of all
 * parts says at the end whether the memory is sufficient.
 */
#include "src/plan/plan_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "io/spill/run_file.h"
#include "src/base/diagnostics.h"
#include "src/base/size.h"

enum {
	MAX_SPILL_WRITERS = 8,
	/* One writer of spilled runs for each of this much memory: a writer occupies a window. */
	SPILL_WRITER_NBYTES = 128 << 20,
	MAX_RANK_FETCHERS = 8,
	CODEC_MEMORY_DIVISOR = 16, /* of the memory, at most */
	PLANNING_ROUNDS = 3,
};

static uint64_t plan_data_nbytes(const struct plan *plan)
{
	const uint64_t reserved_nbytes = plan->codec_nbytes + plan->index_nbytes +
					 u64_min(plan->mapped_nbytes, plan->memory_nbytes);

	return plan->memory_nbytes - u64_min(reserved_nbytes, plan->memory_nbytes);
}

static bool plan_stores_runs(const struct plan *plan)
{
	return plan->temp_nbytes || plan->input_nbytes == PLAN_SIZE_UNKNOWN;
}

/*
 * Return the index memory per block. An input of -m has only the first key of each block, but pipes
 * are spilled first. A merge to a run needs the index of its inputs and of its output. A checkpoint
 * holds another one until its record is written. A rank has the index of its own runs, and of its
 * partition of the runs of all.
 */
static uint64_t plan_index_entry_nbytes(const struct plan_request *request, bool merges_to_runs)
{
	const bool reads_input_files = request->n_input_runs &&
				       request->input_nbytes != PLAN_SIZE_UNKNOWN;
	const uint64_t n_extra_entries =
		merges_to_runs + request->keeps_checkpoint_index + plan_is_distributed(request);

	return (reads_input_files ? sizeof(encoded_key_t) : sizeof(struct run_block)) +
	       n_extra_entries * sizeof(struct run_block);
}

/* --- Chunks --- */

enum {
	CHUNK_ALIGN_NBYTES = 8 << 10,
	MAX_CHUNK_ALIGN_RECORDS = 512,
	MIN_CHUNK_NBYTES = 64 << 10,
	SLOT_NBYTES = 4 << 20, /* all slots stay in the last-level cache until they are uploaded */
	MAX_SHORT_CHUNKS = 64,
	MIN_OVERLAP_CHUNKS = 32, /* so that reading, sorting and spilling overlap */
	MIN_DEVICE_CHUNKS = 4,   /* of each device */
	/* Windows have twice the size, so that the page cache gives their writes large pages. */
	BUCKET_NBYTES = 8 << 20,
	BUCKET_TOLERANCE = 2, /* the maximum size of a bucket, relative to the mean */
	MIN_DISTRIBUTED_NBYTES = 1 << 30,
};

/* Sums of chunk numbers fit in 32 bits. */
static const uint64_t MAX_PLAN_CHUNKS = UINT64_C(1) << 31;

/*
 * Return the size of a record in a chunk: it is read as a record, and stays as an element or an
 * item.
 */
static uint64_t chunk_record_nbytes(const struct layout *layout)
{
	return u64_max(layout->resident_nbytes,
		       layout_has_elements(layout) ? 0 : layout->record_nbytes);
}

static uint64_t plan_input_in_chunks_nbytes(const struct plan_request *request)
{
	if (request->input_nbytes == PLAN_SIZE_UNKNOWN)
		return PLAN_SIZE_UNKNOWN;
	return u64_min(saturating_mul(request->input_nbytes / request->layout->record_nbytes,
				      chunk_record_nbytes(request->layout)),
		       PLAN_MAX_DATA_NBYTES);
}

static uint64_t plan_input_records(const struct plan_request *request)
{
	return request->input_nbytes == PLAN_SIZE_UNKNOWN ?
		       UINT64_MAX :
		       request->input_nbytes / request->layout->record_nbytes;
}

/*
 * Return the number of records that chunks and slots hold a multiple of: about a page, if records
 * are narrow.
 */
static uint64_t align_records(const struct layout *layout)
{
	return u64_max(u64_min(CHUNK_ALIGN_NBYTES / chunk_record_nbytes(layout),
			       MAX_CHUNK_ALIGN_RECORDS),
		       1);
}

/*
 * Plan two slots for each reader, one of which is being copied. A chunk is a whole number of slots.
 */
static void plan_slots(const struct plan_request *request, struct plan *plan)
{
	const uint64_t align = align_records(request->layout);
	uint64_t slot_records;

	plan->n_slots = 2 * plan->n_readers;
	plan->slot_nbytes = u64_min(SLOT_NBYTES, plan_data_nbytes(plan) / (8 * plan->n_slots));
	slot_records = u64_max(plan->slot_nbytes / plan->record_nbytes / align, 1) * align;
	slot_records = u64_min(slot_records, plan->chunk_records);
	plan->chunk_records -= plan->chunk_records % slot_records;
	plan->slot_nbytes = slot_records * plan->record_nbytes;
	plan->host_spill_nbytes = plan_data_nbytes(plan) / 2;
}

/* Return the scratch that each queue needs to sort a chunk. */
static uint64_t sort_scratch_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const struct layout *layout = request->layout;
	const uint64_t nbytes =
		device_sort_scratch_nbytes(request->device, layout, plan->chunk_records);

	if (!layout_has_elements(layout))
		return nbytes;
	if (plan->n_buckets)
		return u64_max(nbytes, device_distribute_scratch_nbytes(request->device, layout,
									plan->chunk_records));
	/* Records that cannot expand in place go through it (chunk_pool.c). */
	return u64_max(nbytes,
		       plan->copies_to_device ? plan->chunk_records * plan->record_nbytes : 0);
}

/* Return whether chunks are sorted, or distributed, into another buffer. */
static bool needs_sort_output(const struct plan_request *request, const struct plan *plan)
{
	return plan->n_buckets || !layout_has_elements(request->layout);
}

/*
 * Return whether the minimum number of queues leaves half of the room to chunks (plan_spilling()).
 * If elements are many times as wide as records, the scratch is many times as large as a chunk.
 */
static bool queues_fit(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t output_nbytes = plan->chunk_records * chunk_record_nbytes(request->layout);
	const uint64_t nbytes = sort_scratch_nbytes(request, plan) +
				(needs_sort_output(request, plan) ? output_nbytes : 0);

	return PLAN_MIN_QUEUES * nbytes <= plan->device_nbytes / 8 * 3;
}

/*
 * Choose what the device prefers, but at most the input divided by the number of queues (all of
 * them should work), and a fraction of the memory (overlap needs several chunks). Rounded up: else
 * wide records would make twice as many chunks, each of which needs room for a record in every
 * window of a merge.
 */
static void plan_chunk_size(const struct plan_request *request, uint64_t preferred_nbytes,
			    struct plan *plan)
{
	const uint64_t record_nbytes = chunk_record_nbytes(request->layout);
	const uint64_t input_nbytes = plan_input_in_chunks_nbytes(request);
	const uint64_t align = align_records(request->layout);
	const uint64_t n_queues = plan->n_devices * plan->n_queues;
	uint64_t nbytes = u64_min(preferred_nbytes, plan->device_nbytes / MIN_OVERLAP_CHUNKS);

	if (input_nbytes != PLAN_SIZE_UNKNOWN)
		nbytes = u64_min(nbytes,
				 u64_max(divide_up(input_nbytes, 4 * n_queues), MIN_CHUNK_NBYTES));
	plan->chunk_records = round_up(u64_max(divide_up(nbytes, record_nbytes), 1), align);
	while (!queues_fit(request, plan) && plan->chunk_records > align)
		plan->chunk_records = round_up(plan->chunk_records / 2, align);
	if (plan->copies_to_device)
		plan_slots(request, plan);
	plan->chunk_nbytes = plan->chunk_records * record_nbytes;
	plan->sort_scratch_nbytes = sort_scratch_nbytes(request, plan);
	plan->sort_output_nbytes = needs_sort_output(request, plan) ? plan->chunk_nbytes : 0;
}

static uint64_t plan_queues_nbytes(const struct plan *plan)
{
	return plan->n_queues * (plan->sort_scratch_nbytes + plan->sort_output_nbytes);
}

static bool plan_resident(const struct plan_request *request, struct plan *plan)
{
	const uint64_t input_nbytes = plan_input_in_chunks_nbytes(request);
	const uint64_t n_device_chunks =
		divide_up(divide_up(input_nbytes, plan->chunk_nbytes), plan->n_devices);
	const uint64_t n_chunks = n_device_chunks * plan->n_devices;
	struct window_plan windows;
	uint64_t required_nbytes;

	if (input_nbytes / plan->n_devices > plan->device_nbytes || n_chunks > MAX_PLAN_CHUNKS)
		return false;
	required_nbytes = n_device_chunks * plan->chunk_nbytes + plan_queues_nbytes(plan);
	plan_windows(plan, request, UINT64_MAX, plan_input_records(request), (uint32_t)n_chunks, 0,
		     &windows);
	plan->merge_nbytes = plan_windows_nbytes(plan, &windows, false);
	if (required_nbytes + plan->merge_nbytes > plan->device_nbytes)
		return false;
	plan->fits_in_memory = true;
	plan->n_chunks = u64_max(n_chunks, plan->n_devices);
	plan->chunks_per_run = plan->n_chunks;
	return true;
}

static void plan_spilling(struct plan *plan)
{
	uint64_t pool_nbytes, n_device_chunks;

	plan->merge_nbytes = plan->device_nbytes / 4;
	pool_nbytes = plan->device_nbytes - plan->merge_nbytes;
	pool_nbytes -= u64_min(plan_queues_nbytes(plan), pool_nbytes / 2);
	n_device_chunks = u64_min(u64_max(pool_nbytes / plan->chunk_nbytes, MIN_DEVICE_CHUNKS),
				  MAX_PLAN_CHUNKS / plan->n_devices);
	plan->n_chunks = n_device_chunks * plan->n_devices;
	plan->chunks_per_run = plan->n_chunks / 2;
}

/* Plan chunks and windows. factor: times the sizes that the device prefers with little memory. */
static void plan_sizes(const struct plan_request *request, const struct device_info *info,
		       uint64_t factor, struct plan *plan)
{
	plan->window_nbytes = u64_min(factor * info->window_nbytes,
				      plan_data_nbytes(plan) / (4 * plan->n_windows));
	plan_chunk_size(request, factor * info->chunk_nbytes, plan);
	plan->fits_in_memory = false;
}

/*
 * Return whether there are so many chunks that each has a short slice in a window, which makes
 * merging slow. (Ranks use the memory for something else: final_merge_nbytes.)
 */
static bool prefers_longer_chunks(const struct plan_request *request,
				  const struct device_info *info)
{
	const uint64_t n_chunks = plan_input_in_chunks_nbytes(request) / info->chunk_nbytes;

	return info->in_memory_factor > 1 && n_chunks > MAX_SHORT_CHUNKS &&
	       !plan_is_distributed(request);
}

/*
 * Return whether the sort may distribute the elements of chunks among buckets, which takes one pass
 * over memory, and sort the buckets in its windows. With little data, sorting chunks and merging
 * them takes no longer.
 */
static bool can_distribute(const struct plan_request *request)
{
	return device_distribute_scratch_nbytes(request->device, request->layout, 1) &&
	       request->can_sample_input && !request->unique && !request->limit &&
	       !request->part_files_are_partitions && !request->keeps_checkpoint_index &&
	       !plan_is_distributed(request) &&
	       plan_input_in_chunks_nbytes(request) >= MIN_DISTRIBUTED_NBYTES;
}

/*
 * Buckets need more memory, so they are used only if everything still fits with them; and so are
 * longer chunks and windows.
 */
static bool plan_without_spilling(const struct plan_request *request,
				  const struct device_info *info, struct plan *plan)
{
	if (can_distribute(request)) {
		plan->n_buckets = (uint32_t)u64_min(
			plan_input_in_chunks_nbytes(request) / BUCKET_NBYTES, BACKEND_MAX_BUCKETS);
		plan->max_bucket_records =
			BUCKET_TOLERANCE * divide_up(plan_input_records(request), plan->n_buckets);
		plan_sizes(request, info, 1, plan);
		if (plan_resident(request, plan))
			return true;
		plan->n_buckets = 0;
		plan->max_bucket_records = 0;
	}
	if (prefers_longer_chunks(request, info)) {
		plan_sizes(request, info, info->in_memory_factor, plan);
		if (plan_resident(request, plan))
			return true;
	}
	plan_sizes(request, info, 1, plan);
	return plan_resident(request, plan);
}

static void plan_chunks(const struct plan_request *request, const struct device_info *info,
			struct plan *plan)
{
	plan->n_buckets = 0;
	plan->max_bucket_records = 0;
	if (request->n_input_runs) {
		plan_sizes(request, info, 1, plan);
		plan->merge_nbytes = plan->device_nbytes;
	} else if (!plan_without_spilling(request, info, plan)) {
		plan_spilling(plan);
	}
}

/* --- Blocks of stored runs --- */

enum {
	MAX_BLOCK_NBYTES = 1 << 20,
	MIN_PARTITION_BLOCKS = 100, /* of a run, at least, in the partition of a rank */
	SMALL_REMAINDER_DIVISOR = 8,
	LARGE_BLOCK_NBYTES = 64 << 10, /* long enough to be a message */
	UNKNOWN_INPUT_MEMORY_FACTOR = 32,
	DEFAULT_FAN_IN = 32, /* for which an index of the default size must have room */
	BLOCK_GROWTH = 4,    /* while runs are generated, if the index has no room */
	MIN_FAN_IN = 2,
	MAX_FAN_IN = 1 << 20,
};

/* Return the number of spilled runs of an input that takes input_nbytes in chunks. */
static uint64_t expected_spilled_runs(const struct plan *plan, uint64_t input_nbytes)
{
	return plan_spilled_runs(plan, divide_up(input_nbytes, plan->chunk_nbytes));
}

static uint64_t plan_expected_input_nbytes(const struct plan_request *request,
					   const struct plan *plan)
{
	return request->input_nbytes == PLAN_SIZE_UNKNOWN ?
		       plan->memory_nbytes * UNKNOWN_INPUT_MEMORY_FACTOR :
		       plan_input_in_chunks_nbytes(request);
}

static uint64_t plan_stored_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t input_nbytes = plan_expected_input_nbytes(request, plan);
	const uint64_t max_nbytes =
		request->limit ? saturating_mul(request->limit, plan->resident_nbytes) : UINT64_MAX;
	const uint64_t run_nbytes = u64_min(plan->chunks_per_run * plan->chunk_nbytes, max_nbytes);
	uint64_t nbytes;

	if (request->n_input_runs)
		return input_nbytes;
	nbytes = saturating_mul(expected_spilled_runs(plan, input_nbytes), run_nbytes);
	return request->needs_count_pass || plan_is_distributed(request) ?
		       u64_max(nbytes, u64_min(input_nbytes, max_nbytes)) :
		       nbytes;
}

static uint64_t plan_expected_stored_runs(const struct plan_request *request,
					  const struct plan *plan)
{
	const uint64_t n_local_runs =
		request->n_input_runs ?
			request->n_input_runs :
			expected_spilled_runs(plan, plan_expected_input_nbytes(request, plan));

	/* A rank spills the chunks that are resident in the end as one more run. */
	return plan_is_distributed(request) ? saturating_mul(n_local_runs + 1, request->n_ranks) :
					      n_local_runs;
}

/*
 * Return the memory that a merge needs for each byte of its k blocks. With n windows in flight,
 * each with room to read and to write its quota and an overhang of k blocks, and a quota of twice
 * the overhang: n * 2 * (2 + 1) * k * block <= merge memory.
 *
 * A window may be as short as its overhang, and a quarter longer if resident runs take part. If
 * records need much scratch, that is more: n * (1 + 1 + 1/4) * k * block * (size in a window / size
 * of a record) <= merge memory.
 *
 * If the input is many times as large as the memory, the index of so many blocks would fill it.
 * Then blocks are longer and fewer runs are merged at once: at least 32 as long as the index has
 * room, then 2. If it has no room even then, the memory is insufficient.
 */
static uint64_t merge_nbytes_per_block(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t min_factor =
		divide_up(9 * plan_window_record_nbytes(request, plan), 4 * plan->resident_nbytes);

	return plan_max_windows(plan) * u64_max(min_factor, 6);
}

/*
 * Return the maximum block size. Where the partitions of two ranks meet, both ranks read the same
 * block of each run, and partitions differ by up to these blocks. Limit that to a percent of a
 * partition.
 */
static uint64_t max_block_nbytes(const struct plan_request *request, uint64_t nbytes,
				 uint64_t n_runs)
{
	return plan_is_distributed(request) ?
		       u64_min(nbytes / (MIN_PARTITION_BLOCKS * n_runs), MAX_BLOCK_NBYTES) :
		       MAX_BLOCK_NBYTES;
}

/* Return the size of the blocks of a run that is asked for blocks of nbytes. */
static uint64_t stored_block_nbytes(const struct plan *plan, uint64_t nbytes)
{
	return run_file_block_n_items(nbytes, (uint32_t)plan->resident_nbytes) *
	       plan->resident_nbytes;
}

static void plan_blocks_for_index(const struct plan_request *request, struct plan *plan,
				  uint64_t entry_nbytes)
{
	const uint64_t nbytes_per_block = merge_nbytes_per_block(request, plan);
	/* The fan-in is never less than MIN_FAN_IN, so windows need room for as many blocks. */
	const uint64_t n_runs = u64_max(plan_expected_stored_runs(request, plan), MIN_FAN_IN);
	const uint64_t nbytes = plan_stored_nbytes(request, plan);
	const uint64_t default_min_nbytes = round_up(
		divide_up(nbytes, plan->memory_nbytes / PLAN_DEFAULT_INDEX_DIVISOR / entry_nbytes),
		SPILL_ALIGN_NBYTES);
	const uint64_t required_min_nbytes = round_up(
		divide_up(nbytes, plan_max_index_nbytes(plan) / entry_nbytes), SPILL_ALIGN_NBYTES);
	const uint64_t merge_nbytes = plan->final_merge_nbytes;
	uint64_t block_nbytes = merge_nbytes / nbytes_per_block / n_runs;

	block_nbytes =
		u64_max(block_nbytes, u64_min(default_min_nbytes,
					      merge_nbytes / (nbytes_per_block * DEFAULT_FAN_IN)));
	block_nbytes =
		u64_max(block_nbytes, u64_min(required_min_nbytes,
					      merge_nbytes / (nbytes_per_block * MIN_FAN_IN)));
	block_nbytes = u64_min(block_nbytes, max_block_nbytes(request, nbytes, n_runs));
	block_nbytes = u64_max(block_nbytes, PLAN_MIN_BLOCK_NBYTES);
	plan->block_nbytes =
		u64_max(stored_block_nbytes(plan, block_nbytes), request->min_block_nbytes);
	plan->fan_in = (uint32_t)u64_min(
		u64_max(merge_nbytes / (nbytes_per_block * plan->block_nbytes), MIN_FAN_IN),
		request->batch_size ? request->batch_size : MAX_FAN_IN);
}

static bool is_single_merge(const struct plan_request *request, const struct plan *plan)
{
	return plan_expected_stored_runs(request, plan) <= plan->fan_in;
}

/*
 * Return whether blocks are long enough to be messages, or longer ones would take a large part of
 * the input.
 */
static bool has_large_blocks(const struct plan_request *request, const struct plan *plan)
{
	return plan->block_nbytes >= LARGE_BLOCK_NBYTES ||
	       plan->n_chunks * plan->chunk_nbytes >
		       plan_expected_input_nbytes(request, plan) / SMALL_REMAINDER_DIVISOR;
}

/*
 * Decide where a rank stores its last chunks: in memory, or on disk, which leaves all of the memory
 * to the merge. The latter pays if it saves a pass, or if blocks would be too short for messages.
 */
static void plan_last_run(const struct plan_request *request, struct plan *plan)
{
	const uint64_t entry_nbytes = plan_index_entry_nbytes(request, request->needs_count_pass);

	/* What a checkpoint keeps must be on disk. */
	plan->keep_last_run_in_memory = !plan->copies_to_device && !request->keeps_checkpoint_index;
	plan->final_merge_nbytes = plan->merge_nbytes;
	if (plan_is_distributed(request) && plan->fits_in_memory && !plan->copies_to_device)
		plan->final_merge_nbytes =
			u64_max(plan->merge_nbytes,
				plan->device_nbytes - u64_min(plan->n_chunks * plan->chunk_nbytes +
								      plan_queues_nbytes(plan),
							      plan->device_nbytes));
	plan_blocks_for_index(request, plan, entry_nbytes);
	if (!plan_is_distributed(request) || plan->fits_in_memory || plan->copies_to_device ||
	    request->n_input_runs ||
	    (is_single_merge(request, plan) && has_large_blocks(request, plan)))
		return;
	plan->keep_last_run_in_memory = false;
	plan->final_merge_nbytes = plan->device_nbytes;
	plan_blocks_for_index(request, plan, entry_nbytes);
}

/*
 * Partitions need shorter blocks, so they must not cost a pass. They must not shorten the blocks of
 * an input of unknown size either, which may have no end: the index of more blocks is full sooner.
 */
static void plan_blocks(const struct plan_request *request, struct plan *plan)
{
	const bool has_known_size = request->input_nbytes != PLAN_SIZE_UNKNOWN;

	plan->n_partitions =
		plan_partition_limit(request, plan, has_known_size ? request->input_nbytes : 0);
	plan_last_run(request, plan);
	if (is_single_merge(request, plan))
		return;
	plan->n_partitions = 1;
	plan_last_run(request, plan);
	if (!is_single_merge(request, plan))
		plan_blocks_for_index(request, plan, plan_index_entry_nbytes(request, true));
}

/* --- What a plan needs --- */

enum {
	STREAM_CODEC_DIVISOR = 2,     /* of the memory, at most */
	RUN_OVERHEAD_NBYTES = 1 << 10 /* of a run without its blocks, generously */
};

/* Return the number of blocks of all resident runs; the first key of each is in memory. */
static uint64_t n_resident_blocks(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t n_chunks =
		u64_min(plan->n_chunks,
			divide_up(plan_expected_input_nbytes(request, plan), plan->chunk_nbytes));
	struct window_plan windows;

	if (n_chunks == 0)
		return 0;
	if (plan->n_buckets) /* 32 bits for each bucket of each chunk */
		return divide_up(n_chunks * (plan->n_buckets + UINT64_C(1)),
				 sizeof(encoded_key_t) / sizeof(uint32_t));
	plan_windows(plan, request, plan->merge_nbytes, n_chunks * plan->chunk_records,
		     (uint32_t)n_chunks, plan->fits_in_memory ? 0 : plan->fan_in, &windows);
	return n_chunks * divide_up(plan->chunk_records, windows.resident_stride);
}

/* Return the size of the index of all blocks of all runs. */
static uint64_t plan_index_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t n_blocks = divide_up(plan_stored_nbytes(request, plan), plan->block_nbytes);
	const bool has_stored_runs = plan_stores_runs(plan) || request->n_input_runs;

	return n_resident_blocks(request, plan) * sizeof(encoded_key_t) +
	       (has_stored_runs ?
			saturating_mul(n_blocks,
				       plan_index_entry_nbytes(request, plan->n_passes > 1)) :
			0);
}

static uint64_t plan_thread_codec_nbytes(const struct plan_request *request,
					 const struct plan *plan)
{
	return run_file_thread_nbytes(&request->compression, request->stores_encoded_keys,
				      plan->block_nbytes);
}

/* Return the codec memory of the threads that store and fetch blocks. */
static uint64_t plan_block_codecs_nbytes(const struct plan_request *request,
					 const struct plan *plan)
{
	return (plan->n_writers + plan->n_fetchers) * plan_thread_codec_nbytes(request, plan);
}

static uint64_t plan_stream_codecs_nbytes(const struct plan_request *request,
					  const struct plan *plan)
{
	return u64_min(request->stream_codec_nbytes, plan->memory_nbytes / STREAM_CODEC_DIVISOR);
}

/*
 * Return the memory of a merge with these numbers of runs: its windows, and its cost per run and
 * window.
 */
static uint64_t merge_total_nbytes(const struct plan_request *request, const struct plan *plan,
				   uint64_t nbytes, uint32_t n_resident, uint32_t n_stored)
{
	const struct layout *layout = request->layout;
	const bool has_items = !layout_has_elements(layout);
	const uint64_t n_edges = has_items ? 2 : 0;
	const uint64_t key_nbytes = has_items ? layout->item_keys.key_nbytes : 0;
	struct window_plan windows;

	plan_windows(plan, request, nbytes, plan_input_records(request), n_resident, n_stored,
		     &windows);
	return plan_windows_nbytes(plan, &windows, n_stored > 0) +
	       windows.n_windows * n_edges * layout->item_nbytes +
	       ((uint64_t)n_resident + n_stored) * key_nbytes;
}

/*
 * Return the memory of the final merge and of the chunks that it, or other ranks, merge. A merge of
 * resident runs only needs its windows, for which plan_resident() has made room.
 */
static uint64_t final_merge_total_nbytes(const struct plan_request *request,
					 const struct plan *plan)
{
	const uint64_t chunks_nbytes = plan->n_chunks * plan->chunk_nbytes;
	const uint32_t n_stored =
		(uint32_t)u64_min(plan->fan_in, plan_expected_stored_runs(request, plan));

	if (plan_is_distributed(request) && !plan->copies_to_device)
		return (plan->keep_last_run_in_memory ? chunks_nbytes : 0) +
		       merge_total_nbytes(request, plan, plan->final_merge_nbytes, 0, n_stored);
	return plan->fits_in_memory ?
		       0 :
		       chunks_nbytes + merge_total_nbytes(request, plan, plan->merge_nbytes,
							  (uint32_t)plan->n_chunks, plan->fan_in);
}

/* Return the memory of chunks and windows, during run generation or the final merge. */
static uint64_t chunks_total_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t chunks_nbytes = plan->n_chunks * plan->chunk_nbytes;
	uint64_t generation_nbytes;

	if (request->n_input_runs)
		return merge_total_nbytes(request, plan, plan->merge_nbytes, 0,
					  (uint32_t)u64_min(request->n_input_runs, plan->fan_in));
	/* plan_resident() made room for all; otherwise chunks are merged during run generation. */
	generation_nbytes = chunks_nbytes + plan_queues_nbytes(plan);
	if (plan->fits_in_memory)
		generation_nbytes += plan->merge_nbytes;
	else
		generation_nbytes += merge_total_nbytes(request, plan, plan->merge_nbytes,
							(uint32_t)plan->chunks_per_run, 0);
	return u64_max(generation_nbytes, final_merge_total_nbytes(request, plan));
}

/*
 * Return the memory of a run without its blocks. An input of -m keeps a record to compare with the
 * next, and a buffer if records are projected.
 */
static uint64_t run_overhead_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const struct layout *layout = request->layout;
	const uint64_t n_runs = plan_expected_stored_runs(request, plan);
	uint64_t nbytes = RUN_OVERHEAD_NBYTES;

	if (request->n_input_runs)
		nbytes += layout->record_nbytes;
	if (request->n_input_runs && layout_has_projection(layout))
		nbytes += PLAN_INPUT_BATCH_NBYTES;
	return saturating_mul(n_runs, nbytes);
}

/* Return the memory of codecs, chunks and windows; for a device with its own memory, of slots. */
static uint64_t working_set_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t codecs_nbytes =
		plan_stores_runs(plan) ? plan_block_codecs_nbytes(request, plan) : 0;

	/* Host memory is small then, and limited by the plan. */
	if (plan->copies_to_device)
		return u64_min(codecs_nbytes + plan->n_slots * plan->slot_nbytes +
				       plan->host_spill_nbytes,
			       plan->memory_nbytes);
	return codecs_nbytes + chunks_total_nbytes(request, plan);
}

/* Return all host memory that is needed at the same time. */
static uint64_t plan_total_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t streams_nbytes =
		u64_min(request->stream_codec_nbytes, PLAN_MAX_MEMORY_NBYTES);
	const uint64_t run_state_nbytes =
		u64_min(run_overhead_nbytes(request, plan) +
				u64_min(plan_index_nbytes(request, plan), PLAN_MAX_DATA_NBYTES),
			PLAN_MAX_DATA_NBYTES);

	return streams_nbytes + run_state_nbytes +
	       u64_min(plan->mapped_nbytes, PLAN_MAX_DATA_NBYTES) +
	       working_set_nbytes(request, plan);
}

/* --- The plan --- */

/* Plan everything that depends on how much memory there is for data. */
static void plan_data_memory(const struct plan_request *request, const struct device_info *info,
			     struct plan *plan)
{
	plan->device_nbytes =
		info->unified ? plan_data_nbytes(plan) :
				u64_min(u64_max(request->device_nbytes, PLAN_MIN_MEMORY_NBYTES),
					PLAN_MAX_MEMORY_NBYTES);
	plan_chunks(request, info, plan);
	/* Packing spilled data pays if the data goes over a link. */
	plan->packs_on_device =
		plan->copies_to_device && (!plan->fits_in_memory || request->n_ranks > 1) &&
		request->stores_encoded_keys && compression_allows_delta(&request->compression);
	plan_blocks(request, plan);
	plan_merge_passes(request, plan);
}

/*
 * Return the number of threads that fetch blocks. Those of ranks wait for messages and use no CPU
 * meanwhile, so there are more of them than readers, if there is memory for codecs.
 */
static uint32_t choose_n_fetchers(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t codec_nbytes = u64_max(plan_thread_codec_nbytes(request, plan), 1);
	const uint64_t n = plan->memory_nbytes / CODEC_MEMORY_DIVISOR / codec_nbytes;

	if (!plan_is_distributed(request) || request->n_input_runs || n <= plan->n_writers)
		return plan->n_readers;
	return (uint32_t)u64_max(u64_min(n - plan->n_writers, MAX_RANK_FETCHERS), plan->n_readers);
}

/* Compute the memory that the planned sort needs in addition to its data. */
static void plan_overhead(const struct plan_request *request, struct plan *plan)
{
	const uint64_t reserved_nbytes = plan->index_nbytes;
	uint64_t index_nbytes;

	plan->n_fetchers = choose_n_fetchers(request, plan);
	plan->codec_nbytes = plan_stream_codecs_nbytes(request, plan);
	if (plan_stores_runs(plan))
		plan->codec_nbytes += u64_min(plan_block_codecs_nbytes(request, plan),
					      plan->memory_nbytes / CODEC_MEMORY_DIVISOR);
	/*
	 * Take what exceeds the default size of the index from PLAN_OVERHEAD_NBYTES, if possible.
	 */
	index_nbytes = plan_index_nbytes(request, plan);
	plan->index_nbytes =
		u64_min(index_nbytes, plan->memory_nbytes / PLAN_DEFAULT_INDEX_DIVISOR);
	index_nbytes -= u64_min(index_nbytes, PLAN_OVERHEAD_NBYTES / 2);
	plan->index_nbytes =
		u64_max(plan->index_nbytes,
			u64_min(index_nbytes, plan->memory_nbytes / PLAN_INDEX_DIVISOR));
	/* Blocks are whole pages, so a little less memory can make them much shorter. */
	plan->index_nbytes = u64_max(plan->index_nbytes, reserved_nbytes);
	plan->max_stored_blocks =
		plan_max_index_nbytes(plan) / plan_index_entry_nbytes(request, true);
}

/*
 * The overhead depends on the blocks and on whether anything is stored, and these depend on how
 * much memory is left for data. So both are computed in turn, until little changes.
 */
static void plan_iterate(const struct plan_request *request, const struct device_info *info,
			 struct plan *plan)
{
	plan->n_windows = plan->n_queues + plan->n_writers + 1;
	plan->codec_nbytes = plan_stream_codecs_nbytes(request, plan);
	plan->index_nbytes = 0;
	for (int i = 0; i < PLANNING_ROUNDS; i++) {
		plan_data_memory(request, info, plan);
		plan_overhead(request, plan);
	}
	plan_data_memory(request, info, plan);
	plan->required_index_nbytes = plan_index_nbytes(request, plan);
	plan->total_nbytes = plan_total_nbytes(request, plan);
	plan->is_sufficient = plan->total_nbytes <= plan->memory_nbytes + PLAN_OVERHEAD_NBYTES;
}

/*
 * Plan more than one thread for spilling if there are many CPUs: copying a window to the page cache
 * takes a thread as long as merging it. With a device that has its own memory, half of the CPU
 * threads may spill, otherwise a quarter. Those of a rank are its share of the CPUs.
 */
static void plan_spill_writers(const struct plan_request *request, const struct device_info *info,
			       struct plan *plan)
{
	const uint64_t n_threads = request->n_threads / (info->unified ? 4 : 2);
	const uint64_t n_in_memory =
		u64_min(plan->memory_nbytes, plan->device_nbytes) / SPILL_WRITER_NBYTES;
	struct plan wider = *plan;

	wider.n_writers = (uint32_t)u64_min(u64_min(n_threads, MAX_SPILL_WRITERS), n_in_memory);
	if (wider.n_writers <= plan->n_writers || !plan_stores_runs(plan) ||
	    request->sequential_output)
		return;
	plan_iterate(request, info, &wider);
	if (wider.is_sufficient && wider.n_passes <= plan->n_passes)
		*plan = wider;
}

/* Reduce the reservation if the minimum memory of a plan exceeds the memory. */
static uint64_t clamp_exchange_nbytes(const struct plan_request *request, uint64_t memory_nbytes)
{
	const uint64_t total_nbytes = request->memory_nbytes + request->exchange_nbytes;

	return u64_min(request->exchange_nbytes,
		       total_nbytes - u64_min(memory_nbytes, total_nbytes));
}

/* Make a plan with memory_nbytes of memory. */
static void plan_with_memory(const struct plan_request *request, uint64_t memory_nbytes,
			     struct plan *plan)
{
	struct plan_request single_partition = *request;
	struct device_info info;

	device_get_info(request->device, &info);
	*plan = (struct plan){
		.exchange_nbytes = clamp_exchange_nbytes(request, memory_nbytes),
		.memory_nbytes = memory_nbytes,
		.input_nbytes = request->input_nbytes,
		.record_nbytes = (uint32_t)request->layout->record_nbytes,
		.element_nbytes = request->layout->element_nbytes,
		.resident_nbytes = request->layout->resident_nbytes,
		.copies_to_device = !info.unified,
		.sorts_on_cpu = info.unified,
		.n_queues = info.n_queues,
		.n_ranks = (uint32_t)u64_max(request->n_ranks, 1),
		.n_devices = info.unified ? 1 : (uint32_t)u64_max(request->n_devices, 1),
		.n_writers = (uint32_t)u64_min(request->n_threads, PLAN_MAX_FILE_WRITERS),
	};
	plan->n_readers = (uint32_t)u64_min(request->n_threads,
					    UINT64_C(1) * PLAN_MAX_READERS * plan->n_devices);
	if (info.unified)
		plan->n_queues =
			(uint32_t)u64_min(info.n_queues, plan_max_threads(plan->memory_nbytes));
	if (layout_is_indirect(request->layout)) {
		plan->mapped_nbytes = request->input_nbytes;
		plan->gathered_nbytes = plan->record_nbytes;
	}
	if (request->sequential_output)
		plan->n_writers = 1;
	snprintf(plan->device, sizeof plan->device, "%s",
		 request->device_name ? request->device_name : info.name);
	plan_iterate(request, &info, plan);
	/* Give up partitions first, which need shorter blocks, then queues and windows. */
	if (!plan->is_sufficient && plan->n_partitions > 1) {
		single_partition.n_partitions = 1;
		request = &single_partition;
		plan_iterate(request, &info, plan);
	}
	while (!plan->is_sufficient && info.unified && plan->n_queues > PLAN_MIN_QUEUES) {
		plan->n_queues = (uint32_t)u64_max(plan->n_queues / 2, PLAN_MIN_QUEUES);
		plan->n_readers = (uint32_t)u64_min(plan->n_readers, plan->n_queues);
		plan_iterate(request, &info, plan);
	}
	plan_spill_writers(request, &info, plan);
}

/* Return whether the memory is too small for the data that exists before any plan is made. */
static bool exceeds_memory(const struct plan_request *request, const struct plan *plan,
			   uint64_t memory_nbytes)
{
	const uint64_t streams_nbytes =
		u64_min(request->stream_codec_nbytes, PLAN_MAX_MEMORY_NBYTES);

	return u64_max(streams_nbytes, plan->mapped_nbytes) > memory_nbytes + PLAN_OVERHEAD_NBYTES;
}

/*
 * Replace an insufficient plan by a sufficient one for less memory, if there is one. Needs do not
 * grow evenly with the memory: longer blocks may need larger codecs, and windows have room for a
 * record of each chunk, of which there may be more. Halves and three quarters of these are tried.
 * So a memory limit that is sufficient stays sufficient when it is doubled.
 */
static void use_smaller_plan(const struct plan_request *request, struct plan *plan)
{
	uint64_t base_nbytes = plan->memory_nbytes;
	struct plan smaller;

	for (bool halve = false; base_nbytes / 2 >= PLAN_MIN_MEMORY_NBYTES; halve = !halve) {
		const uint64_t nbytes = halve ? base_nbytes / 2 : base_nbytes - base_nbytes / 4;

		if (halve)
			base_nbytes = nbytes;
		if (exceeds_memory(request, plan, nbytes))
			return;
		plan_with_memory(request, nbytes, &smaller);
		if (smaller.is_sufficient) {
			*plan = smaller;
			return;
		}
	}
}

void plan_make(const struct plan_request *request, struct plan *ret_plan)
{
	plan_with_memory(request,
			 u64_min(u64_max(request->memory_nbytes, PLAN_MIN_MEMORY_NBYTES),
				 PLAN_MAX_MEMORY_NBYTES),
			 ret_plan);
	if (!ret_plan->is_sufficient)
		use_smaller_plan(request, ret_plan);
	if (request->input_nbytes == PLAN_SIZE_UNKNOWN && !request->n_partitions)
		ret_plan->n_partitions = plan_partition_limit(request, ret_plan, UINT64_MAX);
	ret_plan->n_expected_partitions = plan_expected_partitions(request, ret_plan);
}

bool plan_lengthen_blocks(const struct plan_request *request, struct plan *plan)
{
	struct plan longer = *plan;

	longer.fan_in = (uint32_t)u64_max(plan->fan_in / BLOCK_GROWTH, MIN_FAN_IN);
	longer.block_nbytes = u64_min(plan->block_nbytes * plan->fan_in / longer.fan_in,
				      u64_max(plan->block_nbytes, MAX_BLOCK_NBYTES));
	longer.block_nbytes = stored_block_nbytes(plan, longer.block_nbytes);
	/* Inputs of -m are stored as they come, and keep their blocks. */
	if (request->n_input_runs || longer.block_nbytes <= plan->block_nbytes ||
	    plan_total_nbytes(request, &longer) > plan->memory_nbytes + PLAN_OVERHEAD_NBYTES)
		return false;
	/* Other threads read other members meanwhile. */
	plan->fan_in = longer.fan_in;
	plan->block_nbytes = longer.block_nbytes;
	return true;
}

/* Return how much an input of unknown size may take in runs, so that their index has room. */
static uint64_t max_unknown_nbytes(const struct plan_request *request, const struct plan *plan)
{
	struct plan longest = *plan;

	while (plan_lengthen_blocks(request, &longest))
		;
	return longest.max_stored_blocks * longest.block_nbytes;
}

int plan_check_unknown_input(const struct plan_request *request, const struct plan *plan,
			     uint64_t nbytes)
{
	enum { GROWTH = 4 }; /* the end of the input may be far away */
	struct plan_request larger = *request;
	const uint64_t max_nbytes = max_unknown_nbytes(request, plan);
	struct plan sufficient;

	if (nbytes <= max_nbytes)
		return 0;
	larger.memory_nbytes = round_up(u64_max(request->memory_nbytes, 1), UINT64_C(1) << 20);
	do {
		larger.memory_nbytes *= 2;
		plan_make(&larger, &sufficient);
	} while (max_unknown_nbytes(&larger, &sufficient) / GROWTH < nbytes &&
		 larger.memory_nbytes < PLAN_MAX_MEMORY_NBYTES);
	return fail(-E2BIG,
		    "-S: %s of memory suffices for %s of an input of unknown size; use -S %" PRIu64
		    "M for %s, or a plain file",
		    size_format_down(plan->memory_nbytes).text, size_format_down(max_nbytes).text,
		    larger.memory_nbytes >> 20,
		    size_format_down(max_unknown_nbytes(&larger, &sufficient)).text);
}
