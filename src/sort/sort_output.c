/*
 * sort_output - what comes of a sort (see sort_output.h)
 */
#include "src/sort/sort_output_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/file/path_identity.h"
#include "io/input/format_detect.h"
#include "src/base/system_limits.h"
#include "src/base/diagnostics.h"
#include "src/plan/cache_policy.h"
#include "src/comm/comm.h"
#include "src/sort/integrity.h"
#include "src/sort/setup.h"

/* Of an input of known size, the records that are written; with -u at most. */
static uint64_t n_output_records(const struct sort_spec *spec, const struct job *job)
{
	uint64_t n = input_total_nbytes(job->input) / job->layout->record_nbytes;

	if (spec->n_shards)
		n = spec_shard_end(spec, spec->shard, n) - spec_shard_end(spec, spec->shard - 1, n);
	return n < job->limit ? n : job->limit;
}

/*
 * With -u the size is not known before the end; reserving for all records would be asking for too
 * much. Nor is it if the output is compressed.
 */
uint64_t sort_output_expected_nbytes(const struct sort_spec *spec, const struct job *job)
{
	if (spec->unique || spec->zstd_level ||
	    input_total_nbytes(job->input) == INPUT_SIZE_UNKNOWN)
		return OUTPUT_SIZE_UNKNOWN;
	return output_framing_nbytes(job->input, spec->header_nbytes) +
	       n_output_records(spec, job) * job->layout->output_nbytes;
}

/* What is written for a record can be longer than it is: --argsort, keys that overlap. */
int sort_output_check_size(const struct sort_spec *spec, const struct job *job)
{
	const size_t item_nbytes = job->layout->output_nbytes;
	uint64_t n, nbytes;

	if (spec->unique || input_total_nbytes(job->input) == INPUT_SIZE_UNKNOWN)
		return 0;
	n = n_output_records(spec, job);
	if (!__builtin_mul_overflow(n, item_nbytes, &nbytes) &&
	    !__builtin_add_overflow(nbytes, output_framing_nbytes(job->input, spec->header_nbytes),
				    &nbytes) &&
	    nbytes <= INT64_MAX)
		return 0;
	return fail(-EFBIG,
		    "%" PRIu64 " records of %zu bytes in the output are too many: it can have at "
		    "most 2^63 - 1 bytes, as any file",
		    n, item_nbytes);
}

/* --- opening --- */

const char *sort_output_part_extension(const struct sort_spec *spec,
				       const struct output_header *header)
{
	const bool is_npy = output_header_has_count(header);

	return spec->zstd_level ? is_npy ? ".npy.zst" : ".zst" : is_npy ? ".npy" : "";
}

static int open_part_files(struct sort_output *out, const struct output_header *header)
{
	const struct sort_spec *spec = out->spec;
	const uint64_t nbytes = sort_output_expected_nbytes(spec, out->job);
	int r = part_files_open(out->job->io, spec->output_path, spec->n_part_files,
				sort_output_part_extension(spec, header), &out->owner,
				&out->part_files);

	for (uint32_t i = 0; i <= out->n_files && r == 0; i++)
		r = output_open_part(part_files_directory(out->part_files),
				     part_files_path(out->part_files, i), false, &out->outputs[i]);
	return r == 0 && nbytes != OUTPUT_SIZE_UNKNOWN ?
		       output_check_space(out->outputs[0], nbytes) :
		       r;
}

/*
 * A sort that resumes from its checkpoint writes all of the output again. A pipe must not be opened
 * to find that out: its reader would take that for the end.
 */
static int check_rewritable(const struct sort_spec *spec)
{
	const char *path = spec->output_path;
	struct stat status;

	if (spec->output_endpoint.kind == ENDPOINT_PATH && path_to_descriptor(path) < 0 &&
	    (stat(path, &status) < 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)))
		return 0;
	return fail(-EINVAL, "%s: is no regular file, which could be written anew", path);
}

static int open_single_file(struct sort_output *out)
{
	const struct sort_spec *spec = out->spec;
	const uint64_t nbytes = sort_output_expected_nbytes(spec, out->job);
	int r = spec->checkpoint_path ? check_rewritable(spec) : 0;

	if (r == 0)
		r = output_open_endpoint(out->job->io, spec->output_path, spec->output_endpoint,
					 nbytes, &out->outputs[0]);
	if (r == 0 && spec->zstd_level)
		r = output_compress(out->outputs[0], spec->zstd_level, setup_n_compressors(spec));
	return r;
}

/* An input's place is only taken by all that is in it, and when that is complete. */
static int check_replaced_input(const struct sort_output *out, const struct output *output,
				struct file_id identity)
{
	const uint64_t nbytes = input_start_offset(out->job->input, identity);

	if (!output_is_atomic(output))
		return fail(-EINVAL,
			    "%s: is an input and the output at the same time; name a file with -o",
			    output_name(output));
	if (out->spec->n_shards)
		return fail(-EINVAL,
			    "%s: is an input, and only one shard of it would be left; let the "
			    "output go to another file",
			    output_name(output));
	if (nbytes == 0)
		return 0;
	return fail(-EINVAL,
		    "%s: standard input stands at byte %" PRIu64
		    " of it, and what is before that would be lost; let the output go to another "
		    "file",
		    output_name(output), nbytes);
}

/* The files of a directory that is replaced are not read: they would go while others use them. */
static int check_replaced_part_files(const struct sort_output *out)
{
	const struct input *input = out->job->input;
	struct file_id identity;

	for (size_t i = 0; part_files_old_file_id(out->part_files, i, &identity); i++)
		if (input_has_file(input, identity) || input_has_manifest_file(input, identity))
			return fail(-EINVAL,
				    "%s: is a directory with an input in it; let the output have "
				    "another name",
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
				    "%s: is a part file of an input, or its part manifest; "
				    "let the output go to another file",
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

/* Whoever waits to read or to write need not wait any longer. */
static void cancel_waiting_io(void *context)
{
	struct sort_output *out = context;

	input_cancel(out->job->input);
	sort_output_cancel(out);
}

int sort_output_open(const struct sort_spec *spec, const struct job *job,
		     const struct output_header *header, struct checkpoint *checkpoint,
		     struct sort_output *out)
{
	const uint32_t n = spec->n_part_files ? spec->n_part_files : 1;
	int r;

	*out = (struct sort_output){
		.spec = spec, .job = job, .checkpoint = checkpoint, .n_files = n
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
	if (spec->comm)
		r = sort_output_open_shared(out, header, sort_output_expected_nbytes(spec, job));
	else
		r = sort_output_is_split(out) ? open_part_files(out, header) :
						open_single_file(out);
	if (r < 0)
		return r;
	cancellation_set_wakeup(spec->cancellation, cancel_waiting_io, out);
	return check_output_is_no_input(out);
}

struct output *sort_output_single_file(const struct sort_output *out)
{
	return out->outputs && !sort_output_is_split(out) ? out->outputs[0] : NULL;
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

/* So many files at most have each a descriptor and a queue of its own to go past the cache by. */
enum { MAX_DIRECT_FILES = 32 };

/* And these are made ready, of which each has some mappings open. */
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

/* With less it is over before it can pay. */
static const uint64_t min_prefault_nbytes = UINT64_C(512) << 20;

/* Of the processors, a part: others are about to read. */
enum { PREFAULT_THREADS_DIVISOR = 4 };

/* Will runs be merged into it from several places at once, and is it known where files begin? */
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

/* Free memory: neither the input nor anything else should leave the page cache for it. */
void sort_output_start_prefault(struct sort_output *out)
{
	const struct sort_spec *spec = out->spec;
	const uint64_t nbytes = sort_output_expected_nbytes(spec, out->job);
	const unsigned n_threads = setup_n_threads(spec) / PREFAULT_THREADS_DIVISOR;

	if (nbytes == OUTPUT_SIZE_UNKNOWN || nbytes < min_prefault_nbytes || n_threads == 0 ||
	    !can_prefault(out) || nbytes / 4 * 5 > memory_free_nbytes("") ||
	    !output_has_ample_space(out->outputs[0], nbytes))
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

/* Of ranks each writes nearly as much. */
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
		sort_output_stop_prefault(out); /* what is stored needs the memory more */
	set_io_mode(out, policy);
}

/* How much has come through a pipe is known only now. */
void sort_output_rechoose_io_mode(struct sort_output *out, uint64_t nbytes)
{
	const struct sort_spec *spec = out->spec;

	if (input_total_nbytes(out->job->input) == INPUT_SIZE_UNKNOWN && !spec->merge_inputs &&
	    !spec->zstd_level)
		set_io_mode(out, cache_policy_choose(out->job, nbytes));
}

/* --- the end --- */

/* Would gsort, which read the input as records, take the output for something else? */
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
	if (input_fields(out->job->input)) /* it is what it seems to be */
		return;
	if (format_detect(&view, &rules, &format) == 0 && format)
		warn("%s: begins as what is %s does, and would be taken for that: read it with "
		     "--format=raw",
		     output_name(output), format_name(format));
}

void sort_output_add_io_stats(struct sort_output *out)
{
	for (uint32_t i = 0; i < out->n_files; i++)
		if (out->outputs[i]) {
			const struct file_writer_stats stats = output_get_io_stats(out->outputs[i]);

			out->io_stats.cached_nbytes += stats.cached_nbytes;
			out->io_stats.direct_nbytes += stats.direct_nbytes;
			out->io_stats.mmap_nbytes += stats.mmap_nbytes;
		}
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
	/* The next process must not take the sorted records for its input. */
	if (r == 0 && out->checkpoint && out->replaces_input)
		r = checkpoint_record_done(out->checkpoint, output);
	if (r < 0)
		return r;
	out->outputs[0] = NULL;
	return output_commit(output, durability);
}

static enum part_file_content part_content(const struct sort_output *out)
{
	return output_header_has_count(out->framing->header) ? PART_CONTENT_NPY :
							       PART_CONTENT_RECORDS;
}

static int verify_manifest(struct output *manifest, const char *text)
{
	const size_t nbytes = strlen(text);
	char *readback = malloc(nbytes);
	int r = readback ? output_read_at(manifest, 0, readback, nbytes) :
			   fail(-ENOMEM, "no memory for a part manifest");

	if (r == 0 && memcmp(readback, text, nbytes) != 0)
		r = integrity_fail_verify(output_name(manifest));
	free(readback);
	return r;
}

/* All part files are complete, and have their size, which goes into the manifest. */
static int write_manifest(struct sort_output *out, const struct part_file_info *files)
{
	struct output *manifest = out->outputs[out->n_files];
	char *text;
	int r = part_stats_format_manifest(&out->part_stats, part_content(out), files, &text);

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
	struct part_file_info *files = calloc(out->n_files, sizeof *files);
	int r = files ? 0 : fail(-ENOMEM, "no memory for %u part files", out->n_files);

	for (uint32_t i = 0; i < out->n_files && r == 0; i++) {
		struct stat status;

		r = output_finalize(out->outputs[i], &status);
		if (r == 0)
			r = output_complete(out->outputs[i], durability);
		if (r == 0)
			files[i] = (struct part_file_info){ part_files_name(out->part_files, i),
							    (uint64_t)status.st_size };
	}
	if (r == 0)
		r = write_manifest(out, files);
	if (r == 0)
		r = output_complete(out->outputs[out->n_files], durability);
	free(files);
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
	sort_output_close_zst(out);
	free(out->outputs);
	free(out->files);
	free(out->names);
	free(out->rank_begin);
	part_stats_close(&out->part_stats);
	part_files_close(out->part_files, out->is_committed);
	pthread_mutex_destroy(&out->lock);
	out->rank_begin = NULL;
	out->outputs = NULL;
	out->files = NULL;
	out->names = NULL;
	out->part_files = NULL;
	out->spec = NULL;
}
