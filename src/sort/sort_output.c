/*
 * sort_output.c - open, prefault and commit the files of the output (see sort_output.h)
 */
#include "src/sort/sort_output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/input/format_detect.h"
#include "src/base/int_math.h"
#include "src/base/diagnostics.h"
#include "src/plan/job.h"
#include "src/comm/comm.h"

/* Return the number of records written for an input of known size; with -u at most. */
static uint64_t n_output_records(const struct sort_spec *spec, const struct job *job)
{
	uint64_t n = input_total_nbytes(job->input) / job->layout->record_nbytes;

	if (spec->n_shards)
		n = equal_share_begin(n, spec->shard, spec->n_shards) -
		    equal_share_begin(n, spec->shard - 1, spec->n_shards);
	return n < job->limit ? n : job->limit;
}

/*
 * With -u or compression the size is not known before the end. Preallocating for all records could
 * fail needlessly.
 */
uint64_t sort_output_expected_nbytes(const struct sort_spec *spec, const struct job *job)
{
	if (spec->unique || spec->zstd_level ||
	    input_total_nbytes(job->input) == INPUT_SIZE_UNKNOWN)
		return OUTPUT_SIZE_UNKNOWN;
	return sort_output_framing_nbytes(job->input, spec->header_nbytes) +
	       n_output_records(spec, job) * job->layout->output_nbytes;
}

/* The output can be longer than the input: --argsort, overlapping keys. */
int sort_output_check_size(const struct sort_spec *spec, const struct job *job)
{
	const size_t item_nbytes = job->layout->output_nbytes;
	uint64_t n, nbytes;

	if (spec->unique || input_total_nbytes(job->input) == INPUT_SIZE_UNKNOWN)
		return 0;
	n = n_output_records(spec, job);
	if (!__builtin_mul_overflow(n, item_nbytes, &nbytes) &&
	    !__builtin_add_overflow(
		    nbytes, sort_output_framing_nbytes(job->input, spec->header_nbytes), &nbytes) &&
	    nbytes <= INT64_MAX)
		return 0;
	return fail(-EFBIG,
		    "the output is too large: %" PRIu64
		    " records of %zu bytes; at most 2^63 - 1 bytes are possible",
		    n, item_nbytes);
}

/* --- opening --- */

static const char *part_extension(const struct sort_spec *spec, const struct output_header *header)
{
	const bool is_npy = output_header_has_count(header);

	return spec->zstd_level ? is_npy ? ".npy.zst" : ".zst" : is_npy ? ".npy" : "";
}

/* Create the directory of part files and everything in it. Ranks share all but the manifest. */
static int open_part_files(struct sort_output *out)
{
	const struct sort_spec *spec = out->spec;
	const uint64_t nbytes = sort_output_expected_nbytes(spec, out->job);
	int r = part_files_open(out->job->io, spec->output_path, out->n_files,
				part_extension(spec, out->header), &out->owner, &out->part_files);

	if (r == 0)
		r = part_files_open_outputs(out->part_files, spec->comm, out->outputs);
	return r == 0 && nbytes != OUTPUT_SIZE_UNKNOWN ?
		       output_check_space(out->outputs[0], nbytes) :
		       r;
}

static int open_single_file(struct sort_output *out)
{
	const struct sort_spec *spec = out->spec;
	const uint64_t nbytes = sort_output_expected_nbytes(spec, out->job);
	int r;

	if (spec->comm)
		return output_open_shared(out->job->io, spec->output_path, nbytes, true,
					  &out->owner, &out->outputs[0]);
	r = output_open_endpoint(out->job->io, spec->output_path, spec->output_endpoint, nbytes,
				 &out->outputs[0]);
	return r < 0 ? r : output_refuse_terminal(out->outputs[0]);
}

/* An output may replace an input only if the sort reads all of it and commits atomically. */
static int check_replaced_input(const struct sort_output *out, const struct output *output,
				struct file_id identity)
{
	const uint64_t nbytes = input_start_offset(out->job->input, identity);
	const int r = output_refuse_input(output);

	if (r < 0)
		return r;
	if (out->spec->n_shards)
		return fail(-EINVAL,
			    "%s: output of a shard would replace an input; use another output",
			    output_name(output));
	if (nbytes == 0)
		return 0;
	return fail(-EINVAL,
		    "%s: is also standard input, open at byte %" PRIu64
		    "; earlier bytes would be lost; use another output",
		    output_name(output), nbytes);
}

/*
 * An input must not be in the directory that is replaced, because it would be removed while other
 * programs may read it.
 */
static int check_replaced_part_files(const struct sort_output *out)
{
	const struct input *input = out->job->input;
	struct file_id identity;

	for (size_t i = 0; part_files_old_file_id(out->part_files, i, &identity); i++)
		if (input_has_file(input, identity) || input_has_manifest_file(input, identity))
			return fail(-EINVAL,
				    "%s: is a directory that contains an input; use another output",
				    out->spec->output_path);
	return 0;
}

static int check_output_is_no_input(struct sort_output *out)
{
	if (out->part_files)
		return check_replaced_part_files(out);
	for (uint32_t i = 0; i < out->n_files; i++) {
		const struct output *output = out->outputs[i];
		const struct input *input = out->job->input;
		struct file_id identity;
		int r;

		if (!output || !output_target_file_id(output, &identity))
			continue;
		if (input_has_manifest_file(input, identity))
			return fail(-EINVAL,
				    "%s: is a part file or part manifest of an input; use another "
				    "output",
				    output_name(output));
		if (!input_has_file(input, identity))
			continue;
		out->replaces_input = true;
		r = check_replaced_input(out, output, identity);
		if (r < 0)
			return r;
	}
	return 0;
}

void sort_output_cancel(struct sort_output *out)
{
	for (uint32_t i = 0; i < out->n_files; i++)
		if (out->outputs[i])
			output_cancel(out->outputs[i]);
}

/* Called on cancellation: unblock waiting reads and writes. */
static void cancel_waiting_io(void *context)
{
	struct sort_output *out = context;

	input_cancel(out->job->input);
	sort_output_cancel(out);
}

int sort_output_open(const struct sort_spec *spec, const struct job *job,
		     struct output_header *header, struct checkpoint *checkpoint,
		     struct sort_output *out)
{
	const uint32_t n = spec->n_part_files ? spec->n_part_files : 1;
	int r;

	*out = (struct sort_output){
		.spec = spec, .job = job, .header = header, .checkpoint = checkpoint, .n_files = n
	};
	if (checkpoint)
		checkpoint_get_orphan_owner(checkpoint, &out->owner);
	pthread_mutex_init(&out->lock, NULL);
	out->outputs = calloc(n + UINT64_C(1), sizeof *out->outputs);
	out->files = calloc(n, sizeof *out->files);
	if (!out->outputs || !out->files)
		return fail(-ENOMEM, "no memory for %u outputs", n);
	for (uint32_t i = 0; i < n; i++)
		out->files[i].end = UINT64_MAX;
	r = spec->comm ? collective_files_open(spec->comm, out->outputs, n, &out->collective) : 0;
	if (r < 0)
		return r;
	out->joined = spec->comm && comm_rank(spec->comm) != 0;
	r = out->joined               ? 0 :
	    sort_output_is_split(out) ? open_part_files(out) :
					open_single_file(out);
	if (r == 0 && spec->comm)
		r = collective_files_share(&out->collective, job->io, spec->output_path,
					   part_extension(spec, header),
					   sort_output_is_split(out) ? &out->part_files : NULL);
	if (r < 0)
		return r;
	cancellation_set_wakeup(spec->cancellation, cancel_waiting_io, out);
	return check_output_is_no_input(out);
}

const char *sort_output_name(const struct sort_output *out)
{
	return sort_output_is_split(out) ? out->spec->output_path : output_name(out->outputs[0]);
}

bool sort_output_is_ordered(const struct sort_output *out)
{
	return out->spec->zstd_level ||
	       (!sort_output_is_split(out) && output_is_ordered(out->outputs[0]));
}

uint64_t sort_output_file_memory_nbytes(const struct layout *layout)
{
	return sizeof(struct output_file) + sizeof(struct part_stats) + output_memory_nbytes() +
	       2 * layout_edge_nbytes(layout);
}

/* --- where it goes --- */

/* More files share a queue: each file that bypasses the cache has a descriptor and an I/O queue. */
enum { MAX_DIRECT_FILES = 32 };

/* Each prefaulted file has mappings. */
enum { MAX_PREFAULT_FILES = 32 };

static void set_file_io_mode(struct output *output, enum cache_policy policy)
{
	switch (policy) {
	case CACHE_BYPASS:
		output_bypass_cache(output);
		break;
	case CACHE_ADAPTIVE:
		output_use_adaptive_io(output);
		break;
	case CACHE_USE:
		break;
	}
}

/* Return whether several partitions will write to files whose beginnings are known. */
static bool can_prefault(const struct sort_output *out)
{
	const struct sort_spec *spec = out->spec;

	return out->n_files <= MAX_PREFAULT_FILES && !spec->split_by_keys && !spec->comm &&
	       !spec->merge_inputs && spec->n_partitions != 1;
}

static uint32_t default_n_partitions(const struct sort_spec *spec)
{
	return spec->n_partitions ?
		       spec->n_partitions :
		       plan_round_to_files(PLAN_DEFAULT_MAX_PARTITIONS, spec->n_part_files);
}

void sort_output_start_prefault(struct sort_output *out)
{
	const struct sort_spec *spec = out->spec;
	const uint64_t nbytes = sort_output_expected_nbytes(spec, out->job);
	unsigned n_threads;

	if (nbytes == OUTPUT_SIZE_UNKNOWN || !can_prefault(out))
		return;
	n_threads = output_n_prefault_threads(out->outputs[0], nbytes, spec_n_threads(spec));
	if (n_threads == 0)
		return;
	if (sort_output_is_split(out))
		sort_output_set_part_sizes(out, n_output_records(spec, out->job));
	output_start_prefault(out->outputs, out->n_files, default_n_partitions(spec), n_threads);
}

void sort_output_stop_prefault(struct sort_output *out)
{
	for (uint32_t i = 0; i < out->n_files; i++)
		output_stop_prefault(out->outputs[i]);
}

/* Each rank writes nearly the same amount. */
enum cache_policy sort_output_cache_policy(const struct sort_output *out)
{
	const uint64_t nbytes = sort_output_expected_nbytes(out->spec, out->job);
	const unsigned n = out->spec->comm ? comm_size(out->spec->comm) : 1;

	return nbytes == OUTPUT_SIZE_UNKNOWN ? CACHE_USE :
					       cache_policy_choose(out->job, nbytes / n);
}

static void set_io_mode(struct sort_output *out, enum cache_policy policy)
{
	for (uint32_t i = 0; i < out->n_files; i++)
		if (!out->outputs[i])
			continue;
		else if (out->n_files <= MAX_DIRECT_FILES)
			set_file_io_mode(out->outputs[i], policy);
		else if (policy == CACHE_BYPASS)
			output_use_writeback(out->outputs[i]);
}

void sort_output_choose_io_mode(struct sort_output *out, enum cache_policy policy)
{
	out->cache_policy = policy;
	if (!out->job->plan.fits_in_memory)
		sort_output_stop_prefault(out); /* spilled runs need the memory more */
	set_io_mode(out, policy);
}

/* The size of piped data is known only now. */
void sort_output_rechoose_io_mode(struct sort_output *out, uint64_t nbytes)
{
	const struct sort_spec *spec = out->spec;

	if (input_total_nbytes(out->job->input) == INPUT_SIZE_UNKNOWN && !spec->merge_inputs &&
	    !spec->zstd_level)
		set_io_mode(out, cache_policy_choose(out->job, nbytes));
}

/* --- the end --- */

/* Warn if gsort would take the output for a format other than raw records. */
static void warn_ambiguous_format(const struct sort_output *out, const struct output *output)
{
	struct format_rules rules = framing_rules(input_framing(out->job->input));
	unsigned char first[FORMAT_HEAD_NBYTES];
	const struct format_view view = {
		.head = first,
		.head_nbytes = output_first_bytes(output, first, sizeof first),
		.nbytes = FORMAT_SIZE_UNKNOWN,
	};
	const struct format *format;

	rules.mode = FORMAT_AUTO;
	if (input_fields(out->job->input)) /* an .npy file is recognised correctly */
		return;
	if (format_detect(&view, &rules, &format) == 0 && format)
		warn("%s: looks like %s; read it with --format=raw", output_name(output),
		     format_name(format));
}

void sort_output_add_io_stats(struct sort_output *out)
{
	for (uint32_t i = 0; i < out->n_files; i++)
		if (out->outputs[i])
			output_add_io_stats(out->outputs[i], &out->io_stats);
}

static int commit_file(struct sort_output *out)
{
	const enum output_durability durability = out->spec->fsync    ? OUTPUT_SYNC_ALL :
						  out->replaces_input ? OUTPUT_SYNC_DATA :
									OUTPUT_UNSYNCED;
	struct output *output = out->outputs[0];
	int r;

	warn_ambiguous_format(out, output);
	r = output_complete(output, durability);
	if (r == 0)
		r = input_check_state(out->job->input);
	/* Another start must not take the sorted records for its input. */
	if (r == 0 && out->checkpoint && out->replaces_input)
		r = checkpoint_record_done(out->checkpoint, output);
	if (r < 0)
		return r;
	out->outputs[0] = NULL;
	return output_commit(output, durability);
}

static int verify_manifest(struct output *manifest, const char *text)
{
	const size_t nbytes = strlen(text);
	char *readback = malloc(nbytes);
	int r = readback ? output_read_at(manifest, 0, readback, nbytes) :
			   fail(-ENOMEM, "no memory for a part manifest");

	if (r == 0 && memcmp(readback, text, nbytes) != 0)
		r = sort_output_fail_verify(output_name(manifest));
	free(readback);
	return r;
}

/* Requires that all part files are complete. */
static int write_manifest(struct sort_output *out, const uint64_t *sizes)
{
	struct output *manifest = out->outputs[out->n_files];
	char *text;
	int r = part_stats_format_manifest(out, sizes, &text);

	if (r < 0)
		return r;
	r = output_write_at(manifest, 0, text, strlen(text));
	if (r == 0 && out->spec->verify)
		r = verify_manifest(manifest, text);
	free(text);
	return r;
}

static int complete_part_files(struct sort_output *out, enum output_durability durability)
{
	uint64_t *sizes = calloc(out->n_files, sizeof *sizes);
	int r = sizes ? 0 : fail(-ENOMEM, "no memory for %u part files", out->n_files);

	for (uint32_t i = 0; i < out->n_files && r == 0; i++) {
		struct stat status;

		r = output_finalize(out->outputs[i], &status);
		if (r == 0)
			r = output_complete(out->outputs[i], durability);
		if (r == 0)
			sizes[i] = (uint64_t)status.st_size;
	}
	if (r == 0)
		r = write_manifest(out, sizes);
	if (r == 0)
		r = output_complete(out->outputs[out->n_files], durability);
	free(sizes);
	return r;
}

static int commit_part_files(struct sort_output *out)
{
	const bool is_durable = out->spec->fsync;
	int r = complete_part_files(out, is_durable ? OUTPUT_SYNC_DATA : OUTPUT_UNSYNCED);

	if (r == 0)
		r = input_check_state(out->job->input);
	return r == 0 ? part_files_commit(out->part_files, out->outputs, is_durable) : r;
}

int sort_output_commit(struct sort_output *out)
{
	int r;

	cancellation_clear_wakeup(out->spec->cancellation);
	r = cancellation_check(out->spec->cancellation);
	if (r < 0)
		return r;
	sort_output_add_io_stats(out);
	r = sort_output_is_split(out) ? commit_part_files(out) : commit_file(out);
	out->is_committed = r == 0;
	return r;
}

void sort_output_abort(struct sort_output *out)
{
	if (!out->spec)
		return;
	cancellation_clear_wakeup(out->spec->cancellation);
	for (uint32_t i = 0; out->outputs && i <= out->n_files; i++)
		output_abort(out->outputs[i]);
	free(out->outputs);
	free(out->files);
	free(out->rank_begin);
	part_stats_close(&out->part_stats);
	part_files_close(out->part_files, out->is_committed);
	pthread_mutex_destroy(&out->lock);
	out->rank_begin = NULL;
	out->outputs = NULL;
	out->files = NULL;
	out->part_files = NULL;
	out->spec = NULL;
}
