/*
 * line_sort.c - sort lines of text that need not fit in memory (see line_sort.h)
 */
#include "src/lines/line_sort.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/codec/decoder.h"
#include "io/codec/zst.h"
#include "io/file/mapping.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/comm/comm.h"
#include "src/lines/line_sort_internal.h"
#include "src/sort/distributed_sort.h"
#include "src/sort/open_devices.h"
#include "src/sort/setup.h"

enum {
	MIN_BUFFER_NBYTES = 64 << 10,
	BUFFERS_SHARE = 8, /* buffers of threads take at most an eighth of the memory */
	FREE_BUFFERS_NBYTES = 12 << 20, /* or this much, not counted in it */
	/* Mappings of the output; they are used if that is a small part of the memory. */
	MAX_MAPPINGS_NBYTES = MMAP_WRITER_MAX_SEGMENTS * MMAP_SEGMENT_NBYTES,
	MAPPINGS_SHARE = 8,
	MAX_BLOCK_NBYTES = 256 << 10,
	MIN_SPILL_MEMORY_NBYTES = 16 << 20, /* with less memory all runs go to temporary space */
	BLOCKS_PER_MEMORY = 1024,           /* number of blocks of runs that the memory holds */
	MAX_LENGTH_NBYTES = 1 << 30,        /* of a long line that is measured for a message */
	MAX_LINE_DIVISOR = 20,              /* a line of this part of the memory is accepted */
};

unsigned char *line_sort_last_end(const struct line_sort *sort, unsigned char *begin,
				  const unsigned char *end)
{
	unsigned char *found =
		end > begin ? memrchr(begin, sort->keys->delimiter, (size_t)(end - begin)) : NULL;

	return found ? found + 1 : begin;
}

/* --- Chunks --- */

void line_sort_stop_waiting(void *context)
{
	struct line_sort *sort = context;

	line_input_cancel(sort->input);
	file_set_cancel(&sort->set);
}

int line_sort_reduce_block(struct line_sort *sort, struct line_view last, bool is_output)
{
	int r;

	if (sort->spec->count)
		return line_block_count_equal(sort->block, !is_output);
	r = sort->keys->unique ? line_block_drop_equal(sort->block, last) : 0;
	digest_add(&sort->totals.dropped, line_block_dropped_digest(sort->block));
	line_block_truncate(sort->block, sort->n_lines_left);
	return r;
}

/* Store the sorted block as a new run. */
static int spill_block(struct line_sort *sort)
{
	struct line_run_writer writer;
	uint64_t nbytes;
	int r = line_sort_measure_block(sort, &nbytes);

	if (r == 0)
		r = line_run_open(sort, &writer);
	if (r < 0)
		return r;
	if (sort->ranks && nbytes > 0) {
		line_ranks_begin_samples(sort, sort->runs.n, nbytes);
		writer.sampled = sort;
	}
	r = line_run_write_block(sort, &writer, &nbytes);
	if (r < 0) {
		run_file_close(writer.file);
		return r;
	}
	r = line_run_finish(sort, &writer, sort->runs.n, 0);
	return r == 0 && sort->runs.n == 1 ? job_recheck_temp_space(&sort->job) : r;
}

int line_sort_fail_long_line(const void *context, const char *path, const char *line, size_t nbytes,
			     size_t key_nbytes)
{
	const struct line_sort *sort = context;

	return fail(-E2BIG,
		    "%s%s%s has %zu bytes, too many for the memory; use -S %" PRIu64 "M or more",
		    path ? path : "", path ? ": " : "", line, nbytes,
		    line_sort_find_memory(sort, nbytes + 1 + key_nbytes) >> 20);
}

/* Check that the lines of a chunk, the last n bytes that were read, can be merged. */
static int check_chunk_lines(const struct line_sort *sort, const unsigned char *text, size_t n)
{
	const size_t nbytes = line_block_longest(sort->block);
	struct line_view line = line_sort_view(sort, text);
	char label[LINE_LABEL_NBYTES];
	const char *path;

	if (nbytes <= sort->memory_nbytes / MERGE_SHARE)
		return 0;
	while (line.nbytes + 1 < nbytes)
		line = line_sort_view(sort, line.bytes + line.nbytes + 1);
	path = line_input_locate(sort->input, line.bytes, n - (size_t)(line.bytes - text), label);
	return line_sort_fail_long_line(sort, path, label, line.nbytes, 0);
}

int line_sort_fail_unfinished_line(struct line_sort *sort, size_t nbytes)
{
	unsigned char *text = line_block_text(sort->block), *end = NULL;
	char line[LINE_LABEL_NBYTES];
	const char *path = line_input_position(sort->input, line);
	size_t length = nbytes, n_read = LINE_SAMPLE_NBYTES;

	while (!end && n_read == LINE_SAMPLE_NBYTES && length < MAX_LENGTH_NBYTES) {
		const int r = line_input_read(sort->input, text, LINE_SAMPLE_NBYTES, &n_read);

		if (r < 0)
			return r;
		end = memchr(text, sort->keys->delimiter, n_read);
		length += end ? (size_t)(end - text) : n_read;
	}
	if (length >= MAX_LENGTH_NBYTES)
		return line_input_fail_long_line(sort->input, length);
	return line_sort_fail_long_line(sort, path, line, length, 0);
}

int line_sort_read_chunk(struct line_sort *sort, size_t min_nbytes, size_t *n,
			 unsigned char **ret_end, bool *ret_at_end)
{
	unsigned char *text = line_block_text(sort->block);
	const size_t max_nbytes = sort->memory_nbytes / 4 * 3;
	const size_t max_line_nbytes = sort->memory_nbytes / MERGE_SHARE;
	size_t target = u64_min(min_nbytes, max_nbytes);
	size_t n_read = 0;
	unsigned char *sample_end;

	*ret_at_end = false;
	for (;;) {
		int r = 0;

		if (target > *n) {
			r = line_input_read(sort->input, text + *n, target - *n, &n_read);
			if (r < 0)
				return r;
			line_block_reserve(sort->block, sort->input->n_header);
			*ret_at_end = n_read < target - *n;
			*n += n_read;
		}
		*ret_end = line_sort_last_end(sort, text, text + *n);
		if (*ret_at_end)
			return 0;
		if (*ret_end == text) { /* a long line: read on */
			if (*n > max_line_nbytes)
				return line_sort_fail_unfinished_line(sort, *n);
			target += target / 2;
			continue;
		}
		sample_end = line_sort_last_end(sort, text,
						text + u64_min(LINE_SAMPLE_NBYTES,
							       (uint64_t)(*ret_end - text)));
		n_read = line_block_text_nbytes(
			sort->block,
			(struct line_range){ text, sample_end > text ? sample_end : *ret_end });
		if (n_read > max_nbytes)
			n_read = max_nbytes;
		if (n_read <= target)
			return 0;
		target = n_read;
	}
}

/*
 * Sort chunk after chunk. A single one is left in the block, unless there are other ranks; others
 * become runs.
 */
static int sort_chunks(struct line_sort *sort)
{
	unsigned char *text = line_block_text(sort->block), *end;
	bool is_at_end = false, is_single;
	size_t n = 0;

	while (!is_at_end || n > 0) {
		struct span span;
		struct digest digest;
		uint64_t n_sorted;
		int r = cancellation_check(sort->spec->cancellation);

		if (r == 0 && !is_at_end)
			r = line_sort_read_chunk(sort, LINE_SAMPLE_NBYTES, &n, &end, &is_at_end);
		if (is_at_end)
			end = text + n;
		span = stats_begin(STAGE_SORT, sort->runs.n);
		if (r == 0)
			r = line_block_sort(sort->block, &(struct line_range){ text, end }, 1,
					    text + n, &n_sorted, &digest);
		stats_end(sort->job.stats, span, r == 0 ? n_sorted : 0);
		if (r < 0 || (n == 0 && (sort->runs.n > 0 || sort->ranks)))
			return r;
		if (n_sorted > sort->summary.chunk_nbytes)
			sort->summary.chunk_nbytes = n_sorted;
		digest_add(&sort->totals.read, digest);
		sort->text_nbytes += n_sorted;
		if (line_block_longest(sort->block) > sort->longest_nbytes)
			sort->longest_nbytes = line_block_longest(sort->block);
		is_single = is_at_end && n_sorted == n && sort->runs.n == 0 && !sort->ranks;
		r = line_sort_reduce_block(sort, (struct line_view){ 0 }, is_single);
		if (r < 0 || is_single)
			return r;
		r = check_chunk_lines(sort, text, n);
		if (r == 0)
			r = spill_block(sort);
		if (r < 0)
			return r;
		n -= n_sorted;
		memmove(text, text + n_sorted, n);
	}
	return 0;
}

static int sort_device_chunk(struct line_sort *sort, bool *ret_at_end)
{
	const struct sort_lines_result *result = device_text_result(sort->text);
	uint64_t nbytes;
	int r = cancellation_check(sort->spec->cancellation);

	if (r == 0)
		r = device_text_sort(sort->text, sort->input,
				     sort->spec->count ? UINT64_MAX : sort->n_lines_left,
				     ret_at_end);
	if (r < 0)
		return r;
	line_block_reserve(sort->block, sort->input->n_header);
	nbytes = device_text_nbytes(sort->text);
	if (nbytes > sort->summary.chunk_nbytes)
		sort->summary.chunk_nbytes = nbytes;
	sort->text_nbytes += nbytes;
	digest_add(&sort->totals.read, result->digest);
	digest_add(&sort->totals.dropped, result->dropped);
	if (result->longest_nbytes > sort->longest_nbytes)
		sort->longest_nbytes = result->longest_nbytes;
	return 0;
}

/*
 * Sort chunk after chunk on the device. A single one is left there; others become runs, which are
 * merged on the host. To be counted, or with several ranks, a single one becomes a run, too.
 */
static int sort_device_chunks(struct line_sort *sort)
{
	bool is_at_end = false;

	while (!is_at_end) {
		int r = sort_device_chunk(sort, &is_at_end);
		const bool is_empty = device_text_nbytes(sort->text) == 0;
		const bool is_single = is_at_end && sort->runs.n == 0;

		if (r < 0 || (is_single && !sort->ranks && (!sort->spec->count || is_empty)))
			return r;
		output_stop_prefault(sort->output);
		if (!is_empty)
			r = line_runs_check_longest(sort);
		if (r == 0 && !is_empty)
			r = spill_block(sort);
		if (r < 0)
			return r;
	}
	device_text_close(sort->text);
	sort->text = NULL;
	sort->maps_output = sort->plans_mappings;
	return 0;
}

/* --- A whole sort --- */

int line_sort_check_scratch(const struct line_sort *sort)
{
	return sort->scratch[0].has_failed || sort->scratch[1].has_failed ?
		       fail(-ENOMEM, "no memory for the key of a line") :
		       0;
}

/* Check that every line that was read, by any rank, has been written, or dropped by an option. */
static int check_totals(const struct line_sort *sort)
{
	const struct sort_spec *spec = sort->spec;
	struct record_totals totals = sort->totals;
	uint64_t *sums = (uint64_t *)&totals;
	int r = 0;

	_Static_assert(sizeof totals == 6 * sizeof *sums, "numbers and sums of hashes");
	if (spec->comm)
		r = comm_allreduce_sum(spec->comm, sums, 6);
	if (r < 0)
		return r;
	if (spec->limit == UINT64_MAX && !spec->n_shards && !sort->set.is_joined &&
	    !record_totals_are_balanced(totals))
		r = fail(-EIO, "internal error: the output does not hold the lines of the input");
	return spec->comm ? distributed_broadcast_status(spec->comm, r) : r;
}

/* Write the block that holds all lines. */
static int write_single_block(struct line_sort *sort)
{
	uint64_t nbytes = 0;
	int r = line_sort_measure_block(sort, &nbytes);

	stats_begin_phase(sort->job.stats, PHASE_FINAL_MERGE, nbytes);
	sort->summary.n_passes = sort->summary.n_windows = 1;
	if (r == 0)
		r = line_output_begin(sort, &(struct line_extent){ .nbytes = nbytes },
				      line_sort_n_lines(sort));
	return r < 0 ? r : line_output_write_block(sort, &nbytes);
}

int line_sort_choose_gpu(const struct line_sort *sort, const struct backend **ret_backend)
{
	const struct sort_spec *spec = sort->spec;
	int r;

	*ret_backend = NULL;
	/* Lines that a device has sorted are stored to be counted. */
	if (spec->backend == BACKEND_CPU ||
	    (spec->backend == BACKEND_AUTO && (spec->count || spec->comm)))
		return 0;
	r = backend_choose(spec->backend, sort->input->total_nbytes, sort->n_threads, ret_backend);
	if (r == 0 && !(*ret_backend)->line_ops)
		*ret_backend = NULL;
	return r;
}

/* Collective, also of ranks that use the CPU: the ranks of a host divide its devices. */
static int assign_device(const struct line_sort *sort, struct device_text_params *text)
{
	const struct backend *backend = text->backend;
	struct device_assignment assignment;
	int r = backend ? 0 : backend_choose(BACKEND_CPU, 0, 1, &backend);

	if (r == 0)
		r = device_assignment_find(sort->spec->comm, backend, &assignment);
	if (r < 0)
		return r;
	text->device_number = assignment.index % backend_n_devices(backend);
	text->n_other_sharers =
		(assignment.n_sharing - text->device_number - 1) / backend_n_devices(backend);
	return 0;
}

static int open_device(struct line_sort *sort)
{
	const struct sort_spec *spec = sort->spec;
	struct device_text_params text = { .keys = sort->keys,
					   .threads = sort->threads,
					   .n_threads = sort->n_threads,
					   .device_memory_nbytes = spec->device_memory_nbytes,
					   .host_memory_nbytes = sort->memory_nbytes,
					   .keeps_equal = spec->count,
					   .input_nbytes = sort->job.plan.input_nbytes,
					   .has_share = sort->ranks != NULL,
					   .stats = sort->job.stats,
					   .cancellation = spec->cancellation,
					   .fail_long_line = line_sort_fail_long_line,
					   .context = sort };
	struct device_info info;
	int r = line_sort_choose_gpu(sort, &text.backend);

	if (r == 0 && sort->ranks)
		r = assign_device(sort, &text);
	if (r < 0 || !text.backend)
		return r;
	/* While the text is on the device, the memory for text on the host is not used. */
	if (sort->n_threads > 1 && sort->memory_nbytes > 2 * MAX_MAPPINGS_NBYTES && !sort->ranks)
		sort->maps_output = true;
	line_output_start_prefault(sort);
	r = device_text_open(&text, &sort->text);
	if (r == -ENOMEM && spec->backend == BACKEND_AUTO) {
		output_stop_prefault(sort->output);
		output_set_n_writers(sort->output, 1);
		sort->maps_output = sort->plans_mappings;
		return 0;
	}
	if (r == -ENOMEM)
		return fail(r, "--backend=cuda: the GPU has too little free memory");
	if (r < 0)
		return r;
	device_text_get_info(sort->text, &info);
	memcpy(sort->job.plan.device, info.name, sizeof info.name);
	return 0;
}

/* Direct I/O is used only if files do not fit in memory: otherwise it is not known to be faster. */
static int choose_io_mode(struct line_sort *sort)
{
	enum cache_policy policy = line_output_cache_policy(sort);
	int r = sort->ranks ? line_runs_open_spill(sort) : 0;

	if (r == 0 && sort->ranks)
		r = distributed_agree_plan(&sort->job, &policy);
	if (r == 0)
		file_set_choose_io_mode(&sort->set, policy);
	return r;
}

/* Check the space for output and runs, resume from a checkpoint, and open the device. */
static int prepare_runs(struct line_sort *sort, uint64_t known_nbytes)
{
	int r = line_output_check_space(sort);

	if (r == 0 && sort->checkpoint)
		r = line_runs_open_spill(sort);
	if (r == 0 && sort->checkpoint)
		r = line_checkpoint_restore(sort);
	if (r == 0)
		r = open_device(sort);
	if (r == 0)
		r = choose_io_mode(sort);
	if (r < 0)
		return r;
	/* A device can have more memory; the space is checked when a run is spilled. */
	return !sort->text && known_nbytes > sort->memory_nbytes ? line_runs_open_spill(sort) : 0;
}

static int generate_runs(struct line_sort *sort, uint64_t known_nbytes)
{
	int r;

	stats_begin_phase(sort->job.stats, PHASE_RUN_GENERATION, known_nbytes);
	stats_set_phase_total(sort->job.stats, PHASE_FINAL_MERGE, known_nbytes);
	r = sort->text ? sort_device_chunks(sort) : sort_chunks(sort);
	stats_complete_phase(sort->job.stats);
	sort->summary.n_runs_spilled = sort->runs.n;
	sort->summary.n_runs = sort->runs.n ? sort->runs.n : 1;
	return r;
}

static int sort_to_output(struct line_sort *sort)
{
	const uint64_t nbytes = sort->job.plan.input_nbytes;
	const uint64_t known_nbytes = nbytes == PLAN_SIZE_UNKNOWN ? 0 : nbytes;
	int r = prepare_runs(sort, known_nbytes);

	if (r == 0)
		r = generate_runs(sort, known_nbytes);
	if (r == 0 && sort->ranks)
		r = line_ranks_exchange_runs(sort);
	/* Without runs, all lines are in the block in memory. */
	if (r == 0)
		r = sort->runs.n > 0 || sort->ranks ? line_merge_all(sort) :
						      write_single_block(sort);
	if (r == 0)
		r = line_output_finish(sort);
	if (r == 0)
		r = line_sort_check_scratch(sort);
	if (r == 0 && !sort->ranks)
		r = line_input_check_state(sort->input);
	if (r < 0)
		return r;
	stats_complete_phase(sort->job.stats);
	return check_totals(sort);
}

/* Take the memory for the compression of the output; use fewer threads for it if it is small. */
static void plan_compressors(struct line_sort *sort, size_t memory)
{
	const int level = sort->spec->zstd_level;
	const uint64_t n_outputs = 1 + (sort->spec->n_part_files > 1);

	sort->n_compressors = sort->n_threads;
	if (!level)
		return;
	while (sort->n_compressors > 1 &&
	       n_outputs * zst_writer_memory_nbytes(level, sort->n_compressors) > memory / 4)
		sort->n_compressors--;
	sort->memory_nbytes -= u64_min(
		n_outputs * zst_writer_memory_nbytes(level, sort->n_compressors), memory / 2);
}

/* Divide the memory between the block and the buffers of the threads; use fewer if it is small. */
static void plan_buffers(struct line_sort *sort)
{
	const struct sort_spec *spec = sort->spec;
	/* Elements hold positions of LINE_POSITION_BITS. */
	const size_t memory = u64_min(spec->memory_nbytes, UINT64_C(1) << LINE_POSITION_BITS);
	size_t thread_nbytes;

	sort->job.plan.memory_nbytes = spec->memory_nbytes;
	sort->job.plan.block_nbytes =
		u64_clamp(memory / BLOCKS_PER_MEMORY, LINE_MIN_BLOCK_NBYTES, MAX_BLOCK_NBYTES);
	if (sort->checkpoint)
		sort->job.plan.block_nbytes =
			u64_max(sort->job.plan.block_nbytes,
				checkpoint_block_nbytes(sort->checkpoint->checkpoint));
	sort->buffer_nbytes = u64_clamp(memory / BUFFERS_SHARE / 2 / spec->n_threads,
					MIN_BUFFER_NBYTES, LINE_MAX_BUFFER_NBYTES);
	thread_nbytes = sort->buffer_nbytes + run_file_thread_nbytes(&spec->compression, false,
								     sort->job.plan.block_nbytes);
	sort->n_threads = (uint32_t)u64_clamp(
		(memory / BUFFERS_SHARE + FREE_BUFFERS_NBYTES) / thread_nbytes, 1, spec->n_threads);
	sort->memory_nbytes = memory - memory / BUFFERS_SHARE;
	if (sort->n_threads * thread_nbytes < memory / BUFFERS_SHARE)
		sort->memory_nbytes = memory - sort->n_threads * thread_nbytes;
	sort->maps_output = sort->n_threads > 1 && !spec->comm &&
			    memory > MAPPINGS_SHARE * MAX_MAPPINGS_NBYTES;
	if (sort->maps_output)
		sort->memory_nbytes -= MAX_MAPPINGS_NBYTES;
	sort->plans_mappings = sort->maps_output;
	plan_compressors(sort, memory);
}

/*
 * Ranks store all runs, in memory as far as possible, because the other ranks read them there. A
 * checkpoint stores them on disk.
 */
static void plan_spill_memory(struct line_sort *sort)
{
	const size_t memory = sort->memory_nbytes;

	if (!sort->spec->comm || sort->spec->checkpoint_path || memory < MIN_SPILL_MEMORY_NBYTES)
		return;
	sort->job.plan.host_spill_nbytes = u64_min(
		line_runs_rank_nbytes(sort, line_runs_stored_nbytes(sort->job.plan.input_nbytes)),
		memory / 5 * 2);
	sort->memory_nbytes -= sort->job.plan.host_spill_nbytes;
}

/* The input may be compressed, with a window of at most this size (input_limit_windows()). */
static void plan_window(struct line_sort *sort)
{
	const uint64_t nbytes = sort->spec->memory_nbytes / DECODER_UNPLANNED_WINDOW_DIVISOR;

	if (sort->input->unsized_path && nbytes > ZSTD_DEFAULT_WINDOW_NBYTES)
		sort->memory_nbytes -= nbytes;
}

uint64_t line_sort_find_memory(const struct line_sort *sort, size_t line_nbytes)
{
	enum { STEP_NBYTES = 1 << 20 };
	struct line_sort_params params = *sort->params;
	struct line_sort plan = { .params = &params,
				  .spec = &params.spec,
				  .checkpoint = sort->checkpoint,
				  .keys = sort->keys,
				  .input = sort->input,
				  .job.plan.input_nbytes = sort->job.plan.input_nbytes };
	uint64_t nbytes = round_up(line_nbytes * MAX_LINE_DIVISOR, STEP_NBYTES);

	/* With more memory, more may be taken for threads or mappings: all of it must suffice. */
	for (; nbytes > LINE_MIN_MEMORY_NBYTES; nbytes -= STEP_NBYTES) {
		params.spec.memory_nbytes = nbytes - STEP_NBYTES;
		plan_buffers(&plan);
		plan_window(&plan);
		plan_spill_memory(&plan);
		if (line_nbytes > plan.memory_nbytes / MERGE_SHARE)
			break;
	}
	return u64_max(nbytes, LINE_MIN_MEMORY_NBYTES);
}

/* The memory that is enough for inputs of known size. */
static size_t enough_memory(const struct line_sort *sort)
{
	const uint64_t total_nbytes = sort->input->total_nbytes;
	/* A line of one byte needs an element; its key has some more. */
	const uint64_t per_byte = line_keys_are_plain(sort->keys) ? 40 : 100;
	const uint64_t min_nbytes =
		sort->spec->checkpoint_path ?
			u64_max(LINE_MIN_MEMORY_NBYTES,
				LINE_MIN_RESUME_BLOCKS * sort->job.plan.block_nbytes) :
			LINE_MIN_MEMORY_NBYTES;

	if (total_nbytes >= sort->memory_nbytes / per_byte)
		return sort->memory_nbytes;
	return u64_min(u64_max(total_nbytes * per_byte, min_nbytes), sort->memory_nbytes);
}

/* Warn if the memory for lines, with runs on a tmpfs, is more than the process may use. */
static void warn_memory(struct line_sort *sort)
{
	const struct sort_spec *spec = sort->spec;
	const uint64_t nbytes = sort->job.plan.input_nbytes;
	const bool may_spill = !spec->check_only && nbytes != PLAN_SIZE_UNKNOWN &&
			       nbytes > sort->memory_nbytes / 2;

	sort->job.plan.total_nbytes = sort->memory_nbytes + sort->job.plan.host_spill_nbytes;
	if (may_spill)
		sort->job.plan.max_temp_nbytes = line_runs_stored_nbytes(nbytes);
	setup_warn_memory(&sort->job, spec);
}

int line_sort_open(const struct line_sort_params *params, struct line_checkpoint *checkpoint,
		   struct line_sort *ret_sort)
{
	const struct sort_spec *spec = &params->spec;
	struct line_sort *sort = ret_sort;
	struct line_input_params input = { .calls = spec->io,
					   .paths = spec->inputs,
					   .endpoints = spec->input_endpoints,
					   .n_paths = spec->n_inputs,
					   .delimiter = params->keys->delimiter,
					   .n_header_lines = params->n_header_lines,
					   .reads_part_files = params->reads_part_files,
					   .is_raw = spec->format == FORMAT_RAW,
					   .memory_nbytes = spec->memory_nbytes };
	unsigned first_rank;
	int r;

	*sort = (struct line_sort){ .params = params,
				    .spec = spec,
				    .job = { .io = spec->io,
					     .cancellation = spec->cancellation,
					     .comm = spec->comm,
					     .layout = &line_text_layout,
					     .unique = params->keys->unique,
					     .limit = spec->limit,
					     .stats = params->stats },
				    .keys = params->keys,
				    .n_lines_left = spec->limit };
	if (checkpoint)
		line_checkpoint_attach(checkpoint, sort);
	if (spec->comm)
		sort->job.n_jobs_on_host = comm_host_size(spec->comm, &first_rank);
	plan_buffers(sort);
	snprintf(sort->job.plan.device, sizeof sort->job.plan.device, "CPU, %u thread%s",
		 sort->n_threads, sort->n_threads == 1 ? "" : "s");
	if (thread_pool_open(sort->n_threads, &sort->threads) < 0)
		return fail(-ENOMEM, "no memory for a sort of lines");
	thread_pool_set_cancellation(sort->threads, spec->cancellation);
	/* Rank 0 writes it. */
	input.keeps_header = !spec->check_only && (!spec->comm || comm_rank(spec->comm) == 0);
	input.threads = sort->threads;
	input.stats = params->stats;
	r = line_input_open(&input, &sort->input);
	if (r == 0)
		r = line_input_check_order(sort->input, sort->keys);
	if (r < 0)
		return r;
	/* This process reads all lines or, as a rank, about this share. */
	sort->job.plan.input_nbytes = sort->input->total_nbytes;
	if (spec->comm && sort->input->total_nbytes != UINT64_MAX)
		sort->job.plan.input_nbytes =
			divide_up(sort->input->total_nbytes, comm_size(spec->comm));
	plan_window(sort);
	plan_spill_memory(sort);
	sort->memory_nbytes = enough_memory(sort);
	warn_memory(sort);
	return line_block_open(&(struct line_block_params){ .keys = params->keys,
							    .threads = sort->threads,
							    .n_threads = sort->n_threads,
							    .memory_nbytes = sort->memory_nbytes,
							    .counts = spec->count,
							    .cancellation = spec->cancellation },
			       &sort->block);
}

void line_sort_close(struct line_sort *sort)
{
	spill_begin_close(sort->job.spill);
	run_list_free(&sort->runs);
	line_ranks_close(sort);
	free(sort->rank_shares);
	file_set_close(&sort->set);
	free(sort->pending.bytes);
	setup_close(&sort->job);
	device_text_close(sort->text);
	line_block_close(sort->block);
	line_input_close(sort->input);
	thread_pool_close(sort->threads);
	line_key_buffer_free(&sort->scratch[0]);
	line_key_buffer_free(&sort->scratch[1]);
}

static void fill_summary(struct line_sort *sort)
{
	struct sort_summary *summary = &sort->summary;

	memcpy(summary->backend, sort->job.plan.device, sizeof summary->backend);
	summary->input_nbytes = sort->text_nbytes;
	summary->is_merge = sort->spec->merge_inputs;
	snprintf(summary->type, sizeof summary->type, "lines");
	summary->n_records_in = sort->totals.read.n_records;
	summary->n_records_out = sort->totals.written.n_records;
	summary->buffer_nbytes = sort->spec->memory_nbytes;
	summary->n_partitions = 1;
	if (sort->job.spill) {
		summary->peak_temp_nbytes = spill_peak_nbytes(sort->job.spill);
		summary->spilled = compression_totals(sort->job.compression);
	}
}

/* Sort to the output, and give it its name. */
static int run_sort(struct line_sort *sort)
{
	struct cancellation *cancellation = sort->spec->cancellation;
	int r = line_output_open(sort);

	if (r < 0)
		return line_output_close(sort, r);
	cancellation_set_wakeup(cancellation, line_sort_stop_waiting, sort);
	r = sort_to_output(sort);
	if (r == -ECANCELED) /* an input does not report it */
		r = cancellation_check(cancellation);
	cancellation_clear_wakeup(cancellation);
	return line_output_close(sort, r);
}

/* An earlier process may have begun or completed the same sort. */
static int resume_and_run(const struct line_sort_params *params, struct line_checkpoint *checkpoint,
			  struct line_sort *sort)
{
	const struct sort_spec *spec = &params->spec;
	int r;

	if (spec->comm) {
		r = line_ranks_open(params, checkpoint, sort);
	} else if (spec->checkpoint_path) {
		r = line_checkpoint_open(params, checkpoint);
		if (r == 0 && checkpoint_is_complete(checkpoint->checkpoint)) {
			notice("resuming: %s is complete", spec->output_path);
			return 0;
		}
		if (r == 0)
			r = line_sort_open(params, checkpoint, sort);
	} else {
		r = line_sort_open(params, NULL, sort);
	}
	if (r == 0)
		r = run_sort(sort);
	if (r < 0)
		checkpoint_stop(checkpoint->checkpoint);
	return r;
}

int line_sort_run(const struct line_sort_params *params, struct sort_summary *ret_summary)
{
	const struct sort_spec *spec = &params->spec;
	struct line_checkpoint checkpoint = { 0 };
	struct line_sort sort = { .params = params, .spec = spec };
	const int r = resume_and_run(params, &checkpoint, &sort);

	if (r == 0) {
		fill_summary(&sort);
		*ret_summary = sort.summary;
		stats_finish(params->stats);
	}
	if (r < 0 && spec->comm)
		line_ranks_abandon(&sort, r);
	stats_set_volume_source(params->stats, NULL, NULL);
	line_sort_close(&sort);
	line_checkpoint_close(&checkpoint, r == 0);
	return r;
}
