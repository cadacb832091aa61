/*
 * plan_requests - any bytes as a request for a plan (see plan_requests.h)
 */
#include "tests/support/plan_requests.h"

/* What the made-up back end says of its device. */
static struct device_info requested_info;

void describe_requested(const struct device *device, struct device_info *ret_info)
{
	(void)device;
	*ret_info = requested_info;
}

static uint64_t choose_bits(struct choices *choices, unsigned n_bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < n_bytes; i++) {
		value = value << 8 | (choices->n ? *choices->bytes : 0);
		if (choices->n) {
			choices->bytes++;
			choices->n--;
		}
	}
	return value;
}

/* From least to most. */
static uint64_t choose_within(struct choices *choices, uint64_t least, uint64_t most)
{
	return least + choose_bits(choices, 4) % (most - least + 1);
}

/* Any size: so many bits, or a power of two and a little more or less. */
static uint64_t choose_size(struct choices *choices)
{
	const unsigned n_bits = (unsigned)choose_within(choices, 0, 64);
	const uint64_t more = choose_bits(choices, 1);

	if (more % 4 == 0)
		return (n_bits < 64 ? UINT64_C(1) << n_bits : 0) + more / 4 - 32;
	return n_bits ? choose_bits(choices, 8) >> (64 - n_bits) : 0;
}

static void choose_layout(struct choices *choices, struct layout *ret_layout)
{
	static const uint32_t element_sizes[] = { 4, 8, 16 };
	const enum layout_kind kind = choose_within(choices, LAYOUT_CODES, LAYOUT_REFERENCES);
	struct layout layout = {
		.kind = kind,
		.record_nbytes = choose_within(choices, 1, LAYOUT_MOST_RECORD_NBYTES),
		.element_nbytes = element_sizes[choose_within(choices, 0, 2)],
	};

	if (choose_bits(choices, 1) % 2)
		layout.record_nbytes = 1 + layout.record_nbytes % 16;
	if (kind == LAYOUT_CODES && layout.record_nbytes > layout.element_nbytes)
		layout.record_nbytes = layout.element_nbytes;
	layout.stores_elements = kind != LAYOUT_RECORDS;
	layout.resident_nbytes = layout.element_nbytes;
	if (kind == LAYOUT_RECORDS) {
		layout.resident_nbytes = layout.record_nbytes + 8 * choose_within(choices, 0, 1);
		layout.item_keys.key_nbytes =
			(uint32_t)choose_within(choices, 1, layout.record_nbytes);
		layout.intake.is_identity = choose_bits(choices, 1) % 2;
	}
	layout.item_nbytes = layout.output_nbytes = layout.resident_nbytes;
	*ret_layout = layout;
}

static void choose_device(struct choices *choices, uint32_t n_threads)
{
	const bool unified = choose_bits(choices, 1) % 4 != 0;

	requested_info = (struct device_info){
		.name = "made up",
		.unified = unified,
		.n_lanes = unified ? n_threads : 4,
		.chunk_nbytes = UINT64_C(32) << (20 + (unified ? 0 : 3)),
		.window_nbytes = UINT64_C(8) << (20 + (unified ? 0 : 3)),
		.memory_nbytes = choose_size(choices),
	};
}

struct plan_request choose_request(struct choices *choices, const struct device *device,
				   struct layout *layout)
{
	struct plan_request request = { .layout = layout, .device = device };
	static const enum compression_mode modes[] = { COMPRESS_NONE, COMPRESS_AUTO, COMPRESS_DELTA,
						       COMPRESS_ZSTD };

	request.n_threads = (uint32_t)choose_within(choices, 1, 1024);
	if (choose_bits(choices, 1) % 2)
		request.n_threads = 1 + request.n_threads % 8;
	choose_device(choices, request.n_threads);
	choose_layout(choices, layout);
	request.device_nbytes = requested_info.memory_nbytes;
	request.memory_nbytes = choose_size(choices);
	request.input_nbytes = choose_size(choices);
	if (request.input_nbytes != PLAN_SIZE_UNKNOWN)
		request.input_nbytes -= request.input_nbytes % layout->record_nbytes;
	if (layout->kind == LAYOUT_REFERENCES && !requested_info.unified)
		layout->kind = LAYOUT_CODES;
	if (layout->kind == LAYOUT_REFERENCES && request.input_nbytes == PLAN_SIZE_UNKNOWN)
		request.input_nbytes = 0;
	if (layout->kind != LAYOUT_REFERENCES && choose_bits(choices, 1) % 2)
		request.n_input_runs = (uint32_t)(choose_size(choices) % (UINT32_MAX - 1) + 1);
	if (layout->kind == LAYOUT_CODES && layout->record_nbytes > layout->element_nbytes)
		layout->record_nbytes = layout->element_nbytes;
	if (choose_bits(choices, 1) % 2)
		request.batch_size = (uint32_t)choose_within(choices, 2, UINT32_MAX);
	request.streams_nbytes = choose_size(choices);
	request.compression = (struct compression_choice){
		.mode = modes[choose_within(choices, 0, 3)],
		.zstd_level = (int)choose_within(choices, 1, 22),
	};
	request.stores_codes = layout->kind == LAYOUT_CODES;
	request.ordered_output = choose_bits(choices, 1) % 2;
	request.keeps_index = choose_bits(choices, 1) % 2;
	request.unique = choose_bits(choices, 1) % 2;
	request.counts_first = request.unique && request.ordered_output &&
			       choose_bits(choices, 1) % 2;
	request.limit = choose_bits(choices, 1) % 2 ? choose_size(choices) : 0;
	request.assumes_endless = choose_bits(choices, 1) % 2;
	if (request.input_nbytes == PLAN_SIZE_UNKNOWN)
		request.assumed_nbytes = choose_size(choices);
	else
		request.assumes_endless = false;
	request.counts_first = request.unique && request.ordered_output &&
			       choose_bits(choices, 1) % 2;
	return request;
}

static wide windows_wide_nbytes(const struct plan *plan, const struct window_plan *windows,
				bool has_stored)
{
	const wide each =
		(wide)windows->capacity_records *
			((has_stored ? 2u : 1u) * plan->resident_nbytes + plan->gathered_nbytes) +
		windows->scratch_nbytes;

	return windows->n_windows * each;
}

/* NULL, or what does not hold of the windows of a merge of so many runs. */
static const char *find_broken_window(const struct plan *plan, const struct plan_request *request,
				      uint32_t n_resident, uint32_t n_stored)
{
	struct window_plan windows;

	plan_windows(plan, request, plan->merge_nbytes, UINT64_MAX, n_resident, n_stored, &windows);
	if (windows.n_windows < 3 || windows.quota_records == 0 || windows.resident_stride == 0)
		return "windows hold nothing";
	if (windows.capacity_records <
	    (wide)windows.quota_records +
		    (wide)n_stored * (plan->block_nbytes / plan->resident_nbytes) +
		    (wide)n_resident * windows.resident_stride)
		return "windows have no room for what is taken";
	if (windows_wide_nbytes(plan, &windows, n_stored > 0) !=
	    plan_windows_nbytes(plan, &windows, n_stored > 0))
		return "the size of windows wraps around";
	if (plan->is_enough && !plan->copies &&
	    windows_wide_nbytes(plan, &windows, n_stored > 0) >
		    (wide)plan->memory_nbytes + PLAN_BESIDE_NBYTES)
		return "windows take more than the memory, which is said to be enough";
	return NULL;
}

static const char *find_broken_chunk(const struct plan *plan)
{
	const wide chunks_nbytes = (wide)plan->n_chunks * plan->chunk_nbytes;
	const wide lanes_nbytes =
		(wide)plan->n_lanes * (plan->sort_scratch_nbytes + plan->spare_nbytes);

	if (plan->n_chunks == 0 || plan->spill_chunks == 0 || plan->spill_chunks > plan->n_chunks)
		return "no chunks, or none to spill";
	if (plan->chunk_records == 0 ||
	    plan->chunk_nbytes / plan->chunk_records < plan->resident_nbytes)
		return "chunks have no room for their records";
	if (plan->n_chunks > UINT32_MAX)
		return "more chunks than can be merged";
	if (plan->copies && plan->slot_nbytes == 0)
		return "slots hold nothing";
	if (!plan->copies && plan->is_enough &&
	    chunks_nbytes + lanes_nbytes > (wide)plan->memory_nbytes + PLAN_BESIDE_NBYTES)
		return "chunks take more than the memory, which is said to be enough";
	if (plan->fits && plan->input_nbytes &&
	    chunks_nbytes + lanes_nbytes + plan->merge_nbytes > plan->device_nbytes)
		return "what is said to fit does not";
	return NULL;
}

/* The merges that a plan can come to: of inputs, of chunks, or of everything. */
static const char *find_broken_merge(const struct plan *plan, const struct plan_request *request)
{
	uint32_t n_stored = plan->fan_in;
	const char *broken;

	if (request->n_input_runs) {
		n_stored = n_stored < request->n_input_runs ? n_stored : request->n_input_runs;
		return find_broken_window(plan, request, 0, n_stored);
	}
	broken = find_broken_chunk(plan);
	if (!broken)
		broken = find_broken_window(plan, request, (uint32_t)plan->spill_chunks, 0);
	if (broken || plan->fits)
		return broken;
	return find_broken_window(plan, request, (uint32_t)plan->n_chunks, n_stored);
}

/* What a limit leaves of inputs may be shorter than they are: then it goes into all merges. */
static uint64_t most_passes(const struct plan_request *request)
{
	return request->limit && request->n_input_runs > 64 ? request->n_input_runs : 64;
}

/* NULL, or what does not hold of the plan that is made on the request. */
static const char *find_broken_plan(const struct plan_request *request)
{
	struct plan plan;

	plan_make(request, &plan);
	if (plan.memory_nbytes < PLAN_LEAST_MEMORY_NBYTES ||
	    (plan.memory_nbytes > request->memory_nbytes &&
	     plan.memory_nbytes > PLAN_LEAST_MEMORY_NBYTES))
		return "more memory than is allowed";
	if (!plan.copies && plan.device_nbytes > plan.memory_nbytes)
		return "data takes more than the memory";
	if (plan.device_nbytes == 0 && plan.mapped_nbytes == 0)
		return "nothing is left for data";
	if (plan.is_enough != (plan.total_nbytes <= plan.memory_nbytes + PLAN_BESIDE_NBYTES))
		return "is_enough does not say what it says";
	if (plan.total_nbytes < plan.index_nbytes ||
	    plan.total_nbytes < (request->streams_nbytes < plan.memory_nbytes ?
					 request->streams_nbytes :
					 plan.memory_nbytes))
		return "the total leaves something out, or wraps around";
	if (plan.n_readers == 0 || plan.n_writers == 0 || plan.n_lanes == 0 || plan.n_windows < 3)
		return "somebody is missing";
	if (plan.fan_in < 2 || (request->batch_size && plan.fan_in > request->batch_size))
		return "a merge of too few or too many runs";
	if (plan.block_nbytes < plan.resident_nbytes)
		return "blocks have no room for a record";
	if (plan.n_passes == 0 || plan.n_passes > most_passes(request) + request->counts_first)
		return "the number of passes";
	if (plan.temporary_nbytes > plan.most_temporary_nbytes)
		return "more is stored than there is space for";
	return find_broken_merge(&plan, request);
}

const char *find_broken_twice(const struct plan_request *request)
{
	struct plan_request more = *request;
	struct plan plan;

	plan_make(request, &plan);
	if (!plan.is_enough || request->memory_nbytes < PLAN_LEAST_MEMORY_NBYTES)
		return NULL;
	more.memory_nbytes *= 2;
	if (more.memory_nbytes < request->memory_nbytes)
		return NULL;
	plan_make(&more, &plan);
	return plan.is_enough ? NULL : "what has enough memory has too little with twice as much";
}

void print_request(const struct plan_request *request)
{
	printf("layout %d of %zu bytes, %zu resident; input %#zx in %u runs, memory %#zx, device "
	       "%#zx%s, streams %#zx, %u threads, batch %u, compression %d\n",
	       (int)request->layout->kind, (size_t)request->layout->record_nbytes,
	       (size_t)request->layout->resident_nbytes, (size_t)request->input_nbytes,
	       request->n_input_runs, (size_t)request->memory_nbytes,
	       (size_t)request->device_nbytes, requested_info.unified ? " (unified)" : "",
	       (size_t)request->streams_nbytes, request->n_threads, request->batch_size,
	       (int)request->compression.mode);
}

const char *try_plan(const unsigned char *bytes, size_t n)
{
	struct choices choices = { bytes, n };
	struct backend backend = backend_cpu;
	const struct device device = { .backend = &backend };
	struct layout layout;
	const struct plan_request request = choose_request(&choices, &device, &layout);
	const char *broken;

	backend.describe = describe_requested;
	broken = find_broken_plan(&request);
	if (!broken)
		broken = find_broken_twice(&request);
	if (broken)
		print_request(&request);
	return broken;
}
