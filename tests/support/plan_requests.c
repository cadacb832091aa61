/*
 * plan_requests.c - plan requests from arbitrary bytes (see plan_requests.h)
 */
#include "tests/support/plan_requests.h"

/* The device of the fake back end. */
static struct device_info requested_info;

void get_requested_info(const struct device *device, struct device_info *ret_info)
{
	(void)device;
	*ret_info = requested_info;
}

static uint64_t consume_bits(struct fuzz_data *data, unsigned n_bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < n_bytes; i++) {
		value = value << 8 | (data->n ? *data->bytes : 0);
		if (data->n) {
			data->bytes++;
			data->n--;
		}
	}
	return value;
}

/* Consume a number in [min, max]. */
static uint64_t consume_in_range(struct fuzz_data *data, uint64_t min, uint64_t max)
{
	return min + consume_bits(data, 4) % (max - min + 1);
}

/* Consume a size of any number of bits, or one near a power of two. */
static uint64_t consume_size(struct fuzz_data *data)
{
	const unsigned n_bits = (unsigned)consume_in_range(data, 0, 64);
	const uint64_t delta = consume_bits(data, 1);

	if (delta % 4 == 0)
		return (n_bits < 64 ? UINT64_C(1) << n_bits : 0) + delta / 4 - 32;
	return n_bits ? consume_bits(data, 8) >> (64 - n_bits) : 0;
}

static void consume_layout(struct fuzz_data *data, struct layout *ret_layout)
{
	static const uint32_t element_sizes[] = { 4, 8, 16 };
	const enum layout_kind kind = consume_in_range(data, LAYOUT_KEY_ONLY, LAYOUT_INDIRECT);
	struct layout layout = {
		.kind = kind,
		.record_nbytes = consume_in_range(data, 1, LAYOUT_MAX_RECORD_NBYTES),
		.element_nbytes = element_sizes[consume_in_range(data, 0, 2)],
	};

	if (consume_bits(data, 1) % 2)
		layout.record_nbytes = 1 + layout.record_nbytes % 16;
	if (kind == LAYOUT_KEY_ONLY && layout.record_nbytes > layout.element_nbytes)
		layout.record_nbytes = layout.element_nbytes;
	layout.stores_elements = kind != LAYOUT_RECORDS;
	layout.resident_nbytes = layout.element_nbytes;
	if (kind == LAYOUT_RECORDS) {
		layout.resident_nbytes = layout.record_nbytes + 8 * consume_in_range(data, 0, 1);
		layout.item_keys.key_nbytes =
			(uint32_t)consume_in_range(data, 1, layout.record_nbytes);
		layout.projection.is_identity = consume_bits(data, 1) % 2;
	}
	layout.item_nbytes = layout.output_nbytes = layout.resident_nbytes;
	*ret_layout = layout;
}

static void consume_device(struct fuzz_data *data, uint32_t n_threads)
{
	const bool unified = consume_bits(data, 1) % 4 != 0;

	requested_info = (struct device_info){
		.name = "made up",
		.unified = unified,
		.n_queues = unified ? n_threads : 4,
		.chunk_nbytes = UINT64_C(32) << (20 + (unified ? 0 : 3)),
		.window_nbytes = UINT64_C(8) << (20 + (unified ? 0 : 3)),
		.memory_nbytes = consume_size(data),
	};
}

struct plan_request fuzz_data_take_request(struct fuzz_data *data, const struct device *device,
					   struct layout *layout)
{
	struct plan_request request = { .layout = layout, .device = device };
	static const enum compression_mode modes[] = { COMPRESS_NONE, COMPRESS_AUTO, COMPRESS_DELTA,
						       COMPRESS_ZSTD };

	request.n_threads = (uint32_t)consume_in_range(data, 1, 1024);
	if (consume_bits(data, 1) % 2)
		request.n_threads = 1 + request.n_threads % 8;
	consume_device(data, request.n_threads);
	consume_layout(data, layout);
	request.device_nbytes = requested_info.memory_nbytes;
	request.memory_nbytes = consume_size(data);
	request.input_nbytes = consume_size(data);
	if (request.input_nbytes != PLAN_SIZE_UNKNOWN)
		request.input_nbytes -= request.input_nbytes % layout->record_nbytes;
	if (layout->kind == LAYOUT_INDIRECT && !requested_info.unified)
		layout->kind = LAYOUT_KEY_ONLY;
	if (layout->kind == LAYOUT_INDIRECT && request.input_nbytes == PLAN_SIZE_UNKNOWN)
		request.input_nbytes = 0;
	if (layout->kind != LAYOUT_INDIRECT && consume_bits(data, 1) % 2)
		request.n_input_runs = (uint32_t)(consume_size(data) % (UINT32_MAX - 1) + 1);
	if (layout->kind == LAYOUT_KEY_ONLY && layout->record_nbytes > layout->element_nbytes)
		layout->record_nbytes = layout->element_nbytes;
	if (consume_bits(data, 1) % 2)
		request.batch_size = (uint32_t)consume_in_range(data, 2, UINT32_MAX);
	request.stream_codec_nbytes = consume_size(data);
	request.compression = (struct compression_params){
		.mode = modes[consume_in_range(data, 0, 3)],
		.zstd_level = (int)consume_in_range(data, 1, 22),
	};
	request.stores_encoded_keys = layout->kind == LAYOUT_KEY_ONLY;
	request.sequential_output = consume_bits(data, 1) % 2;
	request.keeps_checkpoint_index = consume_bits(data, 1) % 2;
	request.unique = consume_bits(data, 1) % 2;
	request.needs_count_pass = request.unique && request.sequential_output &&
				   consume_bits(data, 1) % 2;
	request.limit = consume_bits(data, 1) % 2 ? consume_size(data) : 0;
	request.assumes_unbounded = consume_bits(data, 1) % 2;
	if (request.input_nbytes == PLAN_SIZE_UNKNOWN)
		request.assumed_nbytes = consume_size(data);
	else
		request.assumes_unbounded = false;
	request.needs_count_pass = request.unique && request.sequential_output &&
				   consume_bits(data, 1) % 2;
	return request;
}

static wide_uint windows_nbytes_wide(const struct plan *plan, const struct window_plan *windows,
				     bool has_stored)
{
	const wide_uint window_nbytes =
		(wide_uint)windows->capacity_records *
			((has_stored ? 2u : 1u) * plan->resident_nbytes + plan->gathered_nbytes) +
		windows->scratch_nbytes;

	return windows->n_windows * window_nbytes;
}

/* Check the windows of a merge of n runs. NULL, or the violated invariant. */
static const char *find_window_defect(const struct plan *plan, const struct plan_request *request,
				      uint32_t n_resident, uint32_t n_stored)
{
	struct window_plan windows;

	plan_windows(plan, request, plan->merge_nbytes, UINT64_MAX, n_resident, n_stored, &windows);
	if (windows.n_windows < 3 || windows.quota_records == 0 || windows.resident_stride == 0)
		return "windows hold nothing";
	if (windows.capacity_records <
	    (wide_uint)windows.quota_records +
		    (wide_uint)n_stored * (plan->block_nbytes / plan->resident_nbytes) +
		    (wide_uint)n_resident * windows.resident_stride)
		return "windows have no room for what is taken";
	if (windows_nbytes_wide(plan, &windows, n_stored > 0) !=
	    plan_windows_nbytes(plan, &windows, n_stored > 0))
		return "the size of windows wraps around";
	if (plan->is_sufficient && !plan->copies_to_device &&
	    windows_nbytes_wide(plan, &windows, n_stored > 0) >
		    (wide_uint)plan->memory_nbytes + PLAN_OVERHEAD_NBYTES)
		return "windows take more than the memory, which is said to be enough";
	return NULL;
}

static const char *find_chunk_defect(const struct plan *plan)
{
	const wide_uint chunks_nbytes = (wide_uint)plan->n_chunks * plan->chunk_nbytes;
	const wide_uint queues_nbytes =
		(wide_uint)plan->n_queues * (plan->sort_scratch_nbytes + plan->sort_output_nbytes);

	if (plan->n_chunks == 0 || plan->chunks_per_run == 0 ||
	    plan->chunks_per_run > plan->n_chunks)
		return "no chunks, or none to spill";
	if (plan->chunk_records == 0 ||
	    plan->chunk_nbytes / plan->chunk_records < plan->resident_nbytes)
		return "chunks have no room for their records";
	if (plan->n_chunks > UINT32_MAX)
		return "more chunks than can be merged";
	if (plan->copies_to_device && plan->slot_nbytes == 0)
		return "slots hold nothing";
	if (!plan->copies_to_device && plan->is_sufficient &&
	    chunks_nbytes + queues_nbytes > (wide_uint)plan->memory_nbytes + PLAN_OVERHEAD_NBYTES)
		return "chunks take more than the memory, which is said to be enough";
	if (plan->fits_in_memory && plan->input_nbytes &&
	    chunks_nbytes + queues_nbytes + plan->merge_nbytes > plan->device_nbytes)
		return "what is said to fit does not";
	return NULL;
}

/* Check the merges of a plan: of inputs, of chunks, and of all runs. */
static const char *find_merge_defect(const struct plan *plan, const struct plan_request *request)
{
	uint32_t n_stored = plan->fan_in;
	const char *defect;

	if (request->n_input_runs) {
		n_stored = n_stored < request->n_input_runs ? n_stored : request->n_input_runs;
		return find_window_defect(plan, request, 0, n_stored);
	}
	defect = find_chunk_defect(plan);
	if (!defect)
		defect = find_window_defect(plan, request, (uint32_t)plan->chunks_per_run, 0);
	if (defect || plan->fits_in_memory)
		return defect;
	return find_window_defect(plan, request, (uint32_t)plan->n_chunks, n_stored);
}

/* With a limit a merged run may be shorter than the inputs, and then takes part in all merges. */
static uint64_t max_passes(const struct plan_request *request)
{
	return request->limit && request->n_input_runs > 64 ? request->n_input_runs : 64;
}

/* Check the plan for the request. NULL, or the violated invariant. */
static const char *find_plan_defect(const struct plan_request *request)
{
	struct plan plan;

	plan_make(request, &plan);
	if (plan.memory_nbytes < PLAN_MIN_MEMORY_NBYTES ||
	    (plan.memory_nbytes > request->memory_nbytes &&
	     plan.memory_nbytes > PLAN_MIN_MEMORY_NBYTES))
		return "more memory than is allowed";
	if (!plan.copies_to_device && plan.device_nbytes > plan.memory_nbytes)
		return "data takes more than the memory";
	if (plan.device_nbytes == 0 && plan.mapped_nbytes == 0)
		return "nothing is left for data";
	if (plan.gathered_nbytes !=
	    (request->layout->kind == LAYOUT_INDIRECT ? plan.record_nbytes : 0))
		return "only records that stay in the mapped input are gathered";
	if (plan.is_sufficient != (plan.total_nbytes <= plan.memory_nbytes + PLAN_OVERHEAD_NBYTES))
		return "is_enough does not say what it says";
	if (plan.total_nbytes < plan.index_nbytes ||
	    plan.total_nbytes < (request->stream_codec_nbytes < plan.memory_nbytes ?
					 request->stream_codec_nbytes :
					 plan.memory_nbytes))
		return "the total leaves something out, or wraps around";
	if (plan.n_readers == 0 || plan.n_writers == 0 || plan.n_queues == 0 || plan.n_windows < 3)
		return "somebody is missing";
	if (plan.fan_in < 2 || (request->batch_size && plan.fan_in > request->batch_size))
		return "a merge of too few or too many runs";
	if (plan.block_nbytes < plan.resident_nbytes)
		return "blocks have no room for a record";
	if (plan.n_passes == 0 || plan.n_passes > max_passes(request) + request->needs_count_pass)
		return "the number of passes";
	if (plan.temp_nbytes > plan.max_temp_nbytes)
		return "more is stored than there is space for";
	return find_merge_defect(&plan, request);
}

const char *find_doubled_memory_defect(const struct plan_request *request)
{
	struct plan_request doubled = *request;
	struct plan plan;

	plan_make(request, &plan);
	if (!plan.is_sufficient || request->memory_nbytes < PLAN_MIN_MEMORY_NBYTES)
		return NULL;
	doubled.memory_nbytes *= 2;
	if (doubled.memory_nbytes < request->memory_nbytes)
		return NULL;
	plan_make(&doubled, &plan);
	return plan.is_sufficient ? NULL :
				    "what has enough memory has too little with twice as much";
}

void print_request(const struct plan_request *request)
{
	printf("layout %d of %zu bytes, %zu resident; input %#zx in %u runs, memory %#zx, device "
	       "%#zx%s, streams %#zx, %u threads, batch %u, compression %d\n",
	       (int)request->layout->kind, (size_t)request->layout->record_nbytes,
	       (size_t)request->layout->resident_nbytes, (size_t)request->input_nbytes,
	       request->n_input_runs, (size_t)request->memory_nbytes,
	       (size_t)request->device_nbytes, requested_info.unified ? " (unified)" : "",
	       (size_t)request->stream_codec_nbytes, request->n_threads, request->batch_size,
	       (int)request->compression.mode);
}

const char *find_fuzzed_plan_defect(const unsigned char *bytes, size_t n)
{
	struct fuzz_data data = { bytes, n };
	struct backend backend = backend_cpu;
	const struct device device = { .backend = &backend };
	struct layout layout;
	const struct plan_request request = fuzz_data_take_request(&data, &device, &layout);
	const char *defect;

	backend.get_info = get_requested_info;
	defect = find_plan_defect(&request);
	if (!defect)
		defect = find_doubled_memory_defect(&request);
	if (defect)
		print_request(&request);
	return defect;
}
