/*
 * line_explain.c - what a sort of lines would do (see line_sort.h)
 */
#include "src/lines/line_sort.h"

#include <inttypes.h>
#include <stdarg.h>

#include "config.h"
#include "io/output/output_probe.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/size.h"
#include "src/comm/comm.h"
#include "src/lines/line_sort_internal.h"
#include "src/report/explain.h"
#include "src/report/format.h"

static bool is_known(uint64_t number)
{
	return number != UINT64_MAX;
}

/* --- The plan --- */

/* Find how much text fits in memory, from the first lines. */
static int measure_chunk(struct line_sort *sort, struct line_plan *plan)
{
	enum { SAMPLE_NBYTES = 256 << 10 };
	unsigned char *text = line_block_text(sort->block), *end;
	uint64_t n_sorted;
	size_t n;
	int r = line_input_read(sort->input, text, SAMPLE_NBYTES, &n);

	end = line_sort_last_end(sort, text, text + n);
	if (r < 0 || end == text) {
		plan->chunk_nbytes = sort->memory_nbytes / 2;
		return r;
	}
	for (const unsigned char *line = text; line < end;) {
		const struct line_view view = line_sort_view(sort, line);

		if (view.nbytes + 1 > sort->longest_nbytes)
			sort->longest_nbytes = view.nbytes + 1;
		line += view.nbytes + 1;
	}
	/* The sort of these lines shows whether keys are stored. */
	r = line_block_sort(sort->block, &(struct line_range){ text, end }, 1, end, &n_sorted);
	plan->chunk_nbytes = line_block_text_nbytes(sort->block, (struct line_range){ text, end });
	return r;
}

/* A rank stores all runs, as many as fit in memory, and merges as many segments of each rank. */
static void plan_rank_runs(const struct line_sort *sort, struct line_plan *plan)
{
	const struct comm *comm = sort->spec->comm;
	uint64_t stored_nbytes = line_runs_rank_nbytes(sort);
	unsigned first_rank, n_passes;

	plan->n_ranks = comm_size(comm);
	plan->n_runs_spilled = divide_up(sort->job.plan.input_nbytes, plan->chunk_nbytes);
	n_passes = line_merge_count_passes(plan->n_runs_spilled * plan->n_ranks, plan->fan_in);
	plan->n_passes = 1 + line_output_needs_single_run(sort) + n_passes;
	/* Other ranks may still read the runs from which a pass makes longer ones. */
	if (n_passes > 0)
		stored_nbytes += line_runs_stored_nbytes(sort->job.plan.input_nbytes);
	if (stored_nbytes > sort->job.plan.host_spill_nbytes)
		plan->temp_space.needed_nbytes = comm_host_size(comm, &first_rank) *
						 (stored_nbytes - sort->job.plan.host_spill_nbytes);
}

/* Return the space of stored_nbytes in runs, and of what passes store before they free runs. */
static uint64_t pass_temp_nbytes(const struct line_sort *sort, uint64_t stored_nbytes)
{
	const uint64_t unfreed_nbytes =
		2 * spill_backlog_nbytes(stored_nbytes) + sort->memory_nbytes;

	/* A checkpoint frees runs only when the merged run is durable. */
	return stored_nbytes + (sort->spec->checkpoint_path ?
					stored_nbytes :
					u64_min(unfreed_nbytes, stored_nbytes));
}

/* Plan runs and passes for an input of known size. */
static int plan_runs(struct line_sort *sort, struct line_plan *plan)
{
	const int r = measure_chunk(sort, plan);

	if (r < 0)
		return r;
	if (plan->chunk_nbytes > sort->memory_nbytes / 4 * 3)
		plan->chunk_nbytes = sort->memory_nbytes / 4 * 3;
	plan->fan_in = line_merge_max_runs(sort);
	plan->temp_space.is_needed_known = true;
	if (sort->spec->comm) {
		plan_rank_runs(sort, plan);
		return 0;
	}
	plan->n_runs_spilled = 0;
	if (plan->input_nbytes > plan->chunk_nbytes)
		plan->n_runs_spilled = divide_up(plan->input_nbytes, plan->chunk_nbytes);
	plan->n_passes = 1 + line_merge_count_passes(plan->n_runs_spilled, plan->fan_in);
	if (plan->n_runs_spilled)
		plan->temp_space.needed_nbytes = line_runs_stored_nbytes(plan->input_nbytes);
	if (plan->n_passes > 1)
		plan->temp_space.needed_nbytes =
			pass_temp_nbytes(sort, plan->temp_space.needed_nbytes);
	return 0;
}

/* Name the device that sorts. If the memory of a GPU does not suffice, the CPU sorts. */
static int describe_device(const struct line_sort *sort, struct line_plan *plan)
{
	const struct backend *gpu;
	const int r = line_sort_choose_gpu(sort, &gpu);

	if (r == 0)
		snprintf(plan->device, sizeof plan->device, "%s%s",
			 gpu ? "GPU, if its memory suffices; this plan is for the " : "",
			 sort->job.plan.device);
	return r;
}

int line_plan_make(const struct line_sort_params *params, struct line_plan *ret_plan)
{
	const struct sort_spec *spec = &params->spec;
	struct line_plan *plan = ret_plan;
	struct line_sort sort;
	int r = spec->comm ? line_ranks_open_local(params, &sort) :
			     line_sort_open(params, NULL, &sort);

	*plan = (struct line_plan){ .input_nbytes = UINT64_MAX,
				    .memory_nbytes = spec->memory_nbytes,
				    .chunk_nbytes = UINT64_MAX,
				    .n_runs_spilled = UINT64_MAX,
				    .fan_in = UINT64_MAX,
				    .n_passes = UINT64_MAX,
				    .n_inputs = spec->n_inputs,
				    .n_ranks = 1 };
	if (r == 0) {
		plan->input_nbytes = line_input_total_nbytes(sort.input);
		plan->block_nbytes = (uint32_t)sort.job.plan.block_nbytes;
		plan->output_space =
			(struct disk_space){ .is_needed_known = is_known(plan->input_nbytes) &&
								!spec->count && !spec->zstd_level,
					     .needed_nbytes = plan->input_nbytes };
		plan->may_write_less = params->keys->unique || spec->n_shards ||
				       spec->limit != UINT64_MAX;
		r = describe_device(&sort, plan);
	}
	if (r == 0 && is_known(plan->input_nbytes))
		r = plan_runs(&sort, plan);
	if (r == 0)
		r = sort_find_temp_space(&params->spec, spec->io, 0, &plan->temp_space);
	if (r == 0 && spec->output_path && spec->output_endpoint.kind == ENDPOINT_PATH) {
		r = spec->n_part_files ? 0 : output_try(spec->io, spec->output_path);
		plan->output_space.is_available_known = output_find_free_space(
			spec->output_path, &plan->output_space.available_nbytes);
	}
	line_sort_close(&sort);
	return r;
}

/* --- Text --- */

static void print_row(FILE *stream, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void print_row(FILE *stream, const char *name, const char *format, ...)
{
	va_list arguments;

	fprintf(stream, "%-17s ", name);
	va_start(arguments, format);
	vfprintf(stream, format, arguments);
	va_end(arguments);
	fputc('\n', stream);
}

/* Print a size that may be short of what is free. */
static void print_space(FILE *stream, const char *name, const char *at_most,
			const struct disk_space *space)
{
	const struct number_text needed = size_format(space->needed_nbytes);

	if (space->is_available_known && space->available_nbytes < space->needed_nbytes)
		print_row(stream, name, "%s%s; only %s are available", at_most, needed.text,
			  size_format_down(space->available_nbytes).text);
	else
		print_row(stream, name, "%s%s", at_most, needed.text);
}

static void print_merge(const struct line_plan *plan, FILE *stream)
{
	print_row(stream, "merge", "fan-in %" PRIu64 ", blocks of %s", plan->fan_in,
		  size_format(plan->block_nbytes).text);
	print_row(stream, "merge passes", "%" PRIu64, plan->n_passes);
}

void line_plan_print(const struct line_plan *plan, FILE *stream)
{
	print_row(stream, "device", "%s", plan->device);
	print_row(stream, "input", "%s",
		  is_known(plan->input_nbytes) ? size_format(plan->input_nbytes).text :
						 "unknown size");
	if (plan->n_ranks > 1)
		print_row(stream, "ranks", "%u; runs, merge and memory are those of each rank",
			  plan->n_ranks);
	print_row(stream, "memory", "%s limit (-S)", size_format(plan->memory_nbytes).text);
	if (!is_known(plan->input_nbytes)) {
		print_row(stream, "runs", "spilled when memory is full");
		return;
	}
	print_row(stream, "chunks", "about %s of text", size_format(plan->chunk_nbytes).text);
	if (plan->n_runs_spilled == 0)
		print_row(stream, "runs", "all lines stay in memory; nothing is spilled");
	else if (plan->temp_space.needed_nbytes == 0)
		print_row(stream, "runs", "%" PRIu64 " are stored in memory", plan->n_runs_spilled);
	else
		print_row(stream, "runs", "%" PRIu64 " are spilled", plan->n_runs_spilled);
	if (plan->n_runs_spilled > 0)
		print_merge(plan, stream);
	print_space(stream, "temporary space", "", &plan->temp_space);
	if (plan->output_space.is_needed_known)
		print_space(stream, "output", plan->may_write_less ? "at most " : "",
			    &plan->output_space);
}

/* --- JSON --- */

static json_t *number_or_null(uint64_t number)
{
	return is_known(number) ? json_number(number) : json_null();
}

static json_t *plan_to_json(const struct line_plan *plan)
{
	const bool is_sized = is_known(plan->input_nbytes);
	const uint64_t n_chunks = plan->n_runs_spilled > 0 ? plan->n_runs_spilled : 1;
	const struct json_member members[] = {
		{ "chunks", number_or_null(is_sized ? n_chunks : UINT64_MAX) },
		{ "chunk_bytes", number_or_null(plan->chunk_nbytes) },
		{ "fits_in_memory",
		  is_sized ? json_boolean(plan->n_runs_spilled == 0) : json_null() },
		{ "runs_spilled", number_or_null(plan->n_runs_spilled) },
		{ "block_bytes", json_number(plan->block_nbytes) },
		{ "fan_in", number_or_null(plan->fan_in) },
		{ "passes", number_or_null(plan->n_passes) },
		{ "partitions", json_number(plan->n_ranks) },
		{ NULL, NULL },
	};

	return json_make(members);
}

int line_plan_write_json(const struct line_plan *plan, FILE *stream)
{
	const struct disk_space *output = &plan->output_space;
	/* The needed space is an upper limit, so less may suffice. */
	const bool is_estimate = plan->may_write_less &&
				 output->needed_nbytes > output->available_nbytes;
	const struct json_member input[] = {
		{ "files", json_number(plan->n_inputs) },
		{ "bytes", number_or_null(plan->input_nbytes) },
		{ NULL, NULL },
	};
	const struct json_member memory[] = {
		{ "limit_bytes", json_number(plan->memory_nbytes) },
		{ NULL, NULL },
	};
	const struct json_member members[] = {
		{ "version", json_string(GSORT_VERSION) },
		{ "backend", json_string(plan->device) },
		{ "type", json_string("lines") },
		{ "input", json_make(input) },
		{ "memory", json_make(memory) },
		{ "temporary", space_to_json(&plan->temp_space, false) },
		{ "output", space_to_json(output, is_estimate) },
		{ "plan", plan_to_json(plan) },
		{ NULL, NULL },
	};

	return json_write(json_make(members), 15, stream);
}
