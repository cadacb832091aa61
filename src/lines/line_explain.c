/*
 * line_explain.c - what a sort of lines would do (see line_sort.h)
 */
#include "src/lines/line_sort.h"

#include <stdio.h>

#include "src/base/int_math.h"
#include "src/comm/comm.h"
#include "src/lines/line_sort_internal.h"
#include "src/sort/setup.h"

/*
 * Find from the first lines how much text fits in memory. *ret_n_lines: about how many lines this
 * process reads.
 */
static int measure_chunk(struct line_sort *sort, uint64_t *ret_n_lines)
{
	struct plan *plan = &sort->job.plan;
	unsigned char *text = line_block_text(sort->block), *end;
	uint64_t n_sorted, n_lines = 0;
	size_t n;
	int r = line_input_read(sort->input, text, LINE_SAMPLE_NBYTES, &n);

	*ret_n_lines = 1;
	plan->chunk_nbytes = sort->memory_nbytes / 2;
	end = line_sort_last_end(sort, text, text + n);
	if (r < 0 || end == text)
		return r;
	for (const unsigned char *line = text; line < end; n_lines++) {
		const struct line_view view = line_sort_view(sort, line);

		sort->longest_nbytes = u64_max(sort->longest_nbytes, view.nbytes + 1);
		line += view.nbytes + 1;
	}
	/* The sort of these lines shows whether keys are stored. */
	r = line_block_sort(sort->block, &(struct line_range){ text, end }, 1, end, &n_sorted,
			    NULL);
	plan->chunk_nbytes =
		u64_min(line_block_text_nbytes(sort->block, (struct line_range){ text, end }),
			sort->memory_nbytes / 4 * 3);
	*ret_n_lines = plan->input_nbytes / (uint64_t)(end - text) * n_lines + n_lines;
	return r;
}

/*
 * Return the temporary space of the text that this process reads, in runs. Threads write parts of
 * 2048 lines or more, each of which ends with a page that is partly used.
 */
static uint64_t runs_nbytes(const struct line_sort *sort, uint64_t n_lines)
{
	enum { MIN_PART_LINES = 2048, UNUSED_NBYTES = SPILL_ALIGN_NBYTES / 4 * 3 };

	return line_runs_stored_nbytes(sort->job.plan.input_nbytes) +
	       n_lines / MIN_PART_LINES * UNUSED_NBYTES;
}

/* Return the space that passes over stored_nbytes take before they free the runs they have read. */
static uint64_t unfreed_nbytes(const struct line_sort *sort, uint64_t stored_nbytes)
{
	const uint64_t nbytes = 2 * spill_backlog_nbytes(stored_nbytes) + sort->memory_nbytes;

	/* A checkpoint frees runs only when the merged run is durable. */
	return sort->spec->checkpoint_path ? stored_nbytes : u64_min(nbytes, stored_nbytes);
}

/* A rank stores all runs, as many as fit in memory, and merges as many segments of each rank. */
static void plan_rank_runs(const struct line_sort *sort, uint64_t n_lines, struct plan *plan)
{
	const uint64_t nbytes = runs_nbytes(sort, n_lines);
	uint64_t stored_nbytes = line_runs_rank_nbytes(sort, nbytes);
	unsigned n_passes;

	plan->n_ranks = plan->n_expected_partitions = comm_size(sort->spec->comm);
	plan->n_spilled_runs = divide_up(plan->input_nbytes, plan->chunk_nbytes);
	n_passes = line_merge_count_passes(plan->n_spilled_runs * plan->n_ranks, plan->fan_in);
	plan->n_passes = 1 + line_output_needs_single_run(sort) + n_passes;
	/* Other ranks may still read the runs from which a pass makes longer ones. */
	if (n_passes > 0)
		stored_nbytes += nbytes;
	if (n_passes > 1)
		stored_nbytes += unfreed_nbytes(sort, nbytes);
	plan->max_temp_nbytes = stored_nbytes - u64_min(stored_nbytes, plan->host_spill_nbytes);
}

/* Plan runs and passes for an input of known size. */
static int plan_runs(struct line_sort *sort)
{
	struct plan *plan = &sort->job.plan;
	uint64_t n_lines;
	const int r = measure_chunk(sort, &n_lines);

	if (r < 0)
		return r;
	plan->fan_in = (uint32_t)u64_min(line_merge_max_runs(sort), UINT32_MAX);
	if (sort->spec->comm) {
		plan_rank_runs(sort, n_lines, plan);
		return 0;
	}
	plan->fits_in_memory = plan->input_nbytes <= plan->chunk_nbytes;
	if (!plan->fits_in_memory) {
		plan->n_spilled_runs = divide_up(plan->input_nbytes, plan->chunk_nbytes);
		plan->max_temp_nbytes = runs_nbytes(sort, n_lines);
	}
	plan->n_passes = 1 + line_merge_count_passes(plan->n_spilled_runs, plan->fan_in);
	if (plan->n_passes > 1)
		plan->max_temp_nbytes += unfreed_nbytes(sort, plan->max_temp_nbytes);
	return 0;
}

static int make_plan(struct line_sort *sort, struct explanation *explanation)
{
	const bool is_known = sort->job.plan.input_nbytes != PLAN_SIZE_UNKNOWN;
	const struct sort_spec *spec = sort->spec;
	struct plan *plan = &sort->job.plan;
	const struct backend *gpu;
	int r = line_sort_choose_gpu(sort, &gpu);

	if (r == 0 && gpu) /* otherwise the CPU sorts */
		snprintf(plan->device, sizeof plan->device,
			 "GPU, if its memory suffices; this plan is for the CPU, %u thread%s",
			 sort->n_threads, sort->n_threads == 1 ? "" : "s");
	plan->n_ranks = plan->n_expected_partitions = 1;
	plan->max_temp_nbytes = 0;
	if (r == 0 && is_known)
		r = plan_runs(sort);
	if (r < 0)
		return r;
	setup_estimate_memory(&sort->job, spec, &explanation->memory);
	/* Of all ranks on this host, and the input of all ranks. */
	plan->max_temp_nbytes *= u64_max(sort->job.n_jobs_on_host, 1);
	plan->input_nbytes = sort->input->total_nbytes;
	plan->expected_nbytes = is_known ? plan->input_nbytes : 0;
	plan->n_chunks = u64_max(plan->n_spilled_runs, 1);
	explanation->plan = *plan;
	explanation->temp_space = (struct disk_space){ .is_needed_known = is_known,
						       .needed_nbytes = plan->max_temp_nbytes };
	explanation->output_space =
		(struct disk_space){ .is_needed_known = is_known && !spec->count &&
							!spec->zstd_level,
				     .needed_nbytes = plan->input_nbytes };
	explanation->output_may_be_smaller = sort->keys->unique || spec->n_shards ||
					     spec->limit != UINT64_MAX;
	return sort_find_space(spec, sort->job.io, 0, explanation);
}

int line_sort_explain(const struct line_sort_params *params, struct explanation *ret_explanation)
{
	const struct sort_spec *spec = &params->spec;
	struct line_sort sort;
	int r = spec->comm ? line_ranks_open_local(params, &sort) :
			     line_sort_open(params, NULL, &sort);

	*ret_explanation =
		(struct explanation){ .content.n_files = spec->n_inputs, .summary.type = "lines" };
	if (r == 0)
		r = make_plan(&sort, ret_explanation);
	line_sort_close(&sort);
	return r;
}
