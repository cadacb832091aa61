/*
 * sort_output.c - open, prefault and commit the files of the output (see sort_output.h)
 */
#include "src/sort/sort_output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

	for (size_t i = 0; part_files_old_file_id(out->set.part_files, i, &identity); i++)
		if (input_has_file(input, identity) || input_has_manifest_file(input, identity))
			return fail(-EINVAL,
				    "%s: is a directory that contains an input; use another output",
				    out->spec->output_path);
	return 0;
}

static int check_output_is_no_input(struct sort_output *out)
{
	if (out->set.part_files)
		return check_replaced_part_files(out);
	for (uint32_t i = 0; i < out->set.n; i++) {
		const struct output *output = out->set.outputs[i];
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
		out->set.replaces_input = true;
		r = check_replaced_input(out, output, identity);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Called on cancellation: unblock waiting reads and writes. */
static void cancel_waiting_io(void *context)
{
	struct sort_output *out = context;

	input_cancel(out->job->input);
	file_set_cancel(&out->set);
}

int sort_output_open(const struct sort_spec *spec, const struct job *job,
		     struct output_header *header, struct checkpoint *checkpoint,
		     struct sort_output *out)
{
	int r;

	*out = (struct sort_output){
		.spec = spec, .job = job, .header = header, .checkpoint = checkpoint
	};
	pthread_mutex_init(&out->lock, NULL);
	r = file_set_open(spec, job->io, part_extension(spec, header),
			  sort_output_expected_nbytes(spec, job), checkpoint, &out->set);
	if (r < 0)
		return r;
	out->files = calloc(out->set.n, sizeof *out->files);
	if (!out->files)
		return fail(-ENOMEM, "no memory for %u outputs", out->set.n);
	for (uint32_t i = 0; i < out->set.n; i++)
		out->files[i].end = UINT64_MAX;
	if (!spec->comm && !sort_output_is_split(out))
		r = output_refuse_terminal(out->set.outputs[0]);
	if (r < 0)
		return r;
	cancellation_set_wakeup(spec->cancellation, cancel_waiting_io, out);
	return check_output_is_no_input(out);
}

const char *sort_output_name(const struct sort_output *out)
{
	return sort_output_is_split(out) ? out->spec->output_path :
					   output_name(out->set.outputs[0]);
}

bool sort_output_is_ordered(const struct sort_output *out)
{
	return out->spec->zstd_level ||
	       (!sort_output_is_split(out) && output_is_ordered(out->set.outputs[0]));
}

uint64_t sort_output_file_memory_nbytes(const struct layout *layout)
{
	return sizeof(struct output_file) + sizeof(struct part_stats) + output_memory_nbytes() +
	       2 * layout_edge_nbytes(layout);
}

/* --- where it goes --- */

/* Each prefaulted file has mappings. */
enum { MAX_PREFAULT_FILES = 32 };

/* Return whether several partitions will write to files whose beginnings are known. */
static bool can_prefault(const struct sort_output *out)
{
	const struct sort_spec *spec = out->spec;

	return out->set.n <= MAX_PREFAULT_FILES && !spec->split_by_keys && !spec->comm &&
	       !spec->merge_inputs && spec->n_partitions != 1;
}

void sort_output_start_prefault(struct sort_output *out)
{
	const struct sort_spec *spec = out->spec;
	const uint64_t nbytes = sort_output_expected_nbytes(spec, out->job);
	const uint32_t n_partitions =
		spec->n_partitions ?
			spec->n_partitions :
			plan_round_to_files(PLAN_DEFAULT_MAX_PARTITIONS, spec->n_part_files);
	unsigned n_threads;

	if (nbytes == OUTPUT_SIZE_UNKNOWN || !can_prefault(out))
		return;
	n_threads = output_n_prefault_threads(out->set.outputs[0], nbytes, spec_n_threads(spec));
	if (n_threads == 0)
		return;
	if (sort_output_is_split(out))
		sort_output_set_part_sizes(out, n_output_records(spec, out->job));
	output_start_prefault(out->set.outputs, out->set.n, n_partitions, n_threads);
}

void sort_output_stop_prefault(struct sort_output *out)
{
	for (uint32_t i = 0; i < out->set.n; i++)
		output_stop_prefault(out->set.outputs[i]);
}

/* Each rank writes nearly the same amount. */
enum cache_policy sort_output_cache_policy(const struct sort_output *out)
{
	const uint64_t nbytes = sort_output_expected_nbytes(out->spec, out->job);
	const unsigned n = out->spec->comm ? comm_size(out->spec->comm) : 1;

	return nbytes == OUTPUT_SIZE_UNKNOWN ? CACHE_USE :
					       cache_policy_choose(out->job, nbytes / n);
}

void sort_output_choose_io_mode(struct sort_output *out, enum cache_policy policy)
{
	out->cache_policy = policy;
	if (!out->job->plan.fits_in_memory)
		sort_output_stop_prefault(out); /* spilled runs need the memory more */
	file_set_choose_io_mode(&out->set, policy);
}

/* The size of piped data is known only now. */
void sort_output_rechoose_io_mode(struct sort_output *out, uint64_t nbytes)
{
	const struct sort_spec *spec = out->spec;

	if (input_total_nbytes(out->job->input) == INPUT_SIZE_UNKNOWN && !spec->merge_inputs &&
	    !spec->zstd_level)
		file_set_choose_io_mode(&out->set, cache_policy_choose(out->job, nbytes));
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
		     format->name);
}

static int compare_with_file(struct output *output, const char *text)
{
	const size_t nbytes = strlen(text);
	char *readback = malloc(nbytes);
	int r = readback ? output_read_at(output, 0, readback, nbytes) :
			   fail(-ENOMEM, "no memory for a part manifest");

	if (r == 0 && memcmp(readback, text, nbytes) != 0)
		r = sort_output_fail_verify(output_name(output));
	free(readback);
	return r;
}

static int verify_manifest(const struct sort_output *out, const struct part_manifest *manifest)
{
	char *text;
	int r = part_manifest_format(manifest, &text);

	if (r < 0)
		return r;
	r = compare_with_file(out->set.outputs[out->set.n], text);
	free(text);
	return r;
}

static int complete_part_files(struct sort_output *out)
{
	struct part_manifest manifest;
	int r = part_stats_make_manifest(out, &manifest);

	if (r == 0)
		r = file_set_complete(&out->set, &manifest);
	if (r == 0 && out->spec->verify)
		r = verify_manifest(out, &manifest);
	part_manifest_free(&manifest);
	return r;
}

static int complete_file(struct sort_output *out)
{
	warn_ambiguous_format(out, out->set.outputs[0]);
	return file_set_complete(&out->set, NULL);
}

int sort_output_commit(struct sort_output *out)
{
	int r;

	cancellation_clear_wakeup(out->spec->cancellation);
	r = cancellation_check(out->spec->cancellation);
	if (r < 0)
		return r;
	file_set_add_io_stats(&out->set, &out->io_stats);
	r = sort_output_is_split(out) ? complete_part_files(out) : complete_file(out);
	if (r == 0)
		r = input_check_state(out->job->input);
	return r < 0 ? r : file_set_commit(&out->set, out->checkpoint);
}

void sort_output_abort(struct sort_output *out)
{
	if (!out->spec)
		return;
	cancellation_clear_wakeup(out->spec->cancellation);
	file_set_abort(&out->set);
	free(out->files);
	free(out->rank_begin);
	part_stats_close(&out->part_stats);
	pthread_mutex_destroy(&out->lock);
	out->rank_begin = NULL;
	out->files = NULL;
	out->spec = NULL;
}
