/*
 * sort_output - what comes of a sort (see sort_output.h)
 */
#include "src/sort/sort_output_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/input/format_detect.h"
#include "src/base/system_limits.h"
#include "src/base/diagnostics.h"
#include "src/plan/cache_policy.h"
#include "src/comm/comm.h"
#include "src/sort/integrity.h"
#include "src/sort/setup.h"

/* Of an input of known size, the records that are written; with -u at most. */
static uint64_t n_records_out(const struct sort_spec *spec, const struct job *job)
{
	uint64_t n = input_total_nbytes(job->input) / job->layout->record_nbytes;

	if (spec->n_parts)
		n = sort_spec_part_end(spec, spec->part, n) -
		    sort_spec_part_end(spec, spec->part - 1, n);
	return n < job->limit ? n : job->limit;
}

/*
 * With -u the size is not known before the end; reserving for all records would be asking for too
 * much. Nor is it if the output is compressed.
 */
uint64_t result_expected_nbytes(const struct sort_spec *spec, const struct job *job)
{
	if (spec->unique || spec->zstd_level ||
	    input_total_nbytes(job->input) == INPUT_SIZE_UNKNOWN)
		return OUTPUT_SIZE_UNKNOWN;
	return around_nbytes(job->input, spec->header_nbytes) +
	       n_records_out(spec, job) * job->layout->output_nbytes;
}

/* What is written for a record can be longer than it is: --argsort, keys that overlap. */
int result_check_size(const struct sort_spec *spec, const struct job *job)
{
	const size_t nbytes_each = job->layout->output_nbytes;
	uint64_t n, nbytes;

	if (spec->unique || input_total_nbytes(job->input) == INPUT_SIZE_UNKNOWN)
		return 0;
	n = n_records_out(spec, job);
	if (!__builtin_mul_overflow(n, nbytes_each, &nbytes) &&
	    !__builtin_add_overflow(nbytes, around_nbytes(job->input, spec->header_nbytes),
				    &nbytes) &&
	    nbytes <= INT64_MAX)
		return 0;
	return fail(-EFBIG,
		    "%" PRIu64 " records of %zu bytes in the output are too many: it can have at "
		    "most 2^63 - 1 bytes, as any file",
		    n, nbytes_each);
}

/* --- opening --- */

static int open_parts(struct result *result)
{
	const struct sort_spec *spec = result->spec;
	const uint64_t nbytes = result_expected_nbytes(spec, result->job);
	struct output_space_to_come to_come = { 0 };
	int r = part_files_open(result->job->io, spec->output_path, spec->n_part_files,
				&result->part_files);

	for (uint32_t i = 0; i <= result->n_files && r == 0; i++)
		r = output_open(result->job->io, part_files_path(result->part_files, i),
				OUTPUT_SIZE_UNKNOWN, &result->outputs[i]);
	if (result->checkpoint)
		checkpoint_space_to_come(result->checkpoint, &to_come);
	return r == 0 && nbytes != OUTPUT_SIZE_UNKNOWN ?
		       output_check_room(result->outputs[0], nbytes, &to_come) :
		       r;
}

static int open_file(struct result *result)
{
	const struct sort_spec *spec = result->spec;
	const uint64_t nbytes = result_expected_nbytes(spec, result->job);
	int r;

	if (result->checkpoint)
		r = checkpoint_open_output(result->checkpoint, nbytes, &result->outputs[0]);
	else
		r = output_open_given(result->job->io, spec->output_path, spec->given_output,
				      nbytes, &result->outputs[0]);
	if (r == 0 && spec->checkpoint_path && !output_is_atomic(result->outputs[0]))
		r = fail(-EINVAL, "%s: is no regular file, which could be written anew",
			 output_name(result->outputs[0]));
	if (r == 0 && spec->zstd_level)
		r = output_compress(result->outputs[0], spec->zstd_level,
				    setup_n_compressors(spec));
	return r;
}

/* An input's place is only taken by all that is in it, and when that is complete. */
static int check_input(const struct result *result, const struct output *output,
		       struct file_identity identity)
{
	const uint64_t nbytes = input_nbytes_before(result->job->input, identity);

	if (!output_is_atomic(output))
		return fail_hint(-EINVAL, HINT_NAME_OUTPUT, 0,
				 "%s: is an input and the output at the same time",
				 output_name(output));
	if (result_has_parts(result))
		return fail(-EINVAL, "%s: is an input; no part file can replace it",
			    output_name(output));
	if (result->spec->n_parts)
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

static int check_inputs(struct result *result)
{
	for (uint32_t i = 0; i < result->n_files; i++) {
		const struct output *output = result->outputs[i];
		const struct input *input = result->job->input;
		struct file_identity identity;
		int r;

		if (!output || !output_identity(output, &identity))
			continue;
		if (input_has_listed_file(input, identity))
			return fail(-EINVAL,
				    "%s: is a part file of an input, or its part manifest; "
				    "let the output go to another file",
				    output_name(output));
		if (!input_has_file(input, identity))
			continue;
		result->is_input = true;
		r = check_input(result, output, identity);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Whoever waits to read or to write need not wait any longer. */
static void end_early(void *context)
{
	struct result *result = context;

	input_cancel(result->job->input);
	result_cancel(result);
}

int result_open(const struct sort_spec *spec, const struct job *job, struct checkpoint *checkpoint,
		struct result *result)
{
	const uint32_t n = spec->n_part_files ? spec->n_part_files : 1;
	int r;

	*result = (struct result){ .spec = spec, .job = job, .n_files = n };
	if (checkpoint && sort_spec_keeps_output(spec))
		result->checkpoint = checkpoint;
	if (checkpoint)
		checkpoint_get_owner(checkpoint, &result->owner);
	pthread_mutex_init(&result->lock, NULL);
	result->outputs = calloc(n + UINT64_C(1), sizeof *result->outputs);
	result->files = calloc(n, sizeof *result->files);
	if (!result->outputs || !result->files)
		return fail(-ENOMEM, "no memory for %u outputs", n);
	for (uint32_t i = 0; i < n; i++)
		result->files[i].end = UINT64_MAX;
	if (spec->ranks)
		r = result_open_shared(result, result_expected_nbytes(spec, job));
	else
		r = result_has_parts(result) ? open_parts(result) : open_file(result);
	if (r < 0)
		return r;
	cancellation_watch(spec->cancellation, end_early, result);
	return check_inputs(result);
}

struct output *result_output(const struct result *result)
{
	return result->outputs && !result_has_parts(result) ? result->outputs[0] : NULL;
}

const char *result_name(const struct result *result)
{
	return result_has_parts(result) ? result->spec->output_path :
					  output_name(result->outputs[0]);
}

bool result_is_ordered(const struct result *result)
{
	return result->spec->zstd_level ||
	       (!result_has_parts(result) && output_is_ordered(result->outputs[0]));
}

uint64_t result_file_nbytes(const struct layout *layout)
{
	return sizeof(struct result_file) + sizeof(struct part_note) + output_memory_nbytes() +
	       2 * layout_edge_nbytes(layout);
}

/* --- where it goes --- */

/* So many files at most have each a descriptor and a queue of its own to go past the cache by. */
enum { MOST_DIRECT_FILES = 32 };

/* And these are made ready, of which each has some mappings open. */
enum { MOST_READY_FILES = 32 };

static void choose_way_of(struct output *output, enum page_cache_use use)
{
	switch (use) {
	case PAGE_CACHE_IS_TOO_SMALL:
		output_pass_by_cache(output);
		break;
	case PAGE_CACHE_MAY_HOLD:
		output_try_both_ways(output);
		break;
	case PAGE_CACHE_HOLDS:
		break;
	}
}

/* With less it is over before it can pay. */
static const uint64_t least_ready_nbytes = UINT64_C(512) << 20;

/* Of the processors, a part: others are about to read. */
enum { READYING_THREADS_PART = 4 };

/* Will runs be merged into it from several places at once, and is it known where files begin? */
static bool can_be_made_ready(const struct result *result)
{
	const struct sort_spec *spec = result->spec;

	return result->n_files <= MOST_READY_FILES && !spec->parts_at_keys && !spec->ranks &&
	       !spec->merges && !spec->checkpoint_path && spec->n_ranges != 1;
}

static uint32_t n_usual_ranges(const struct sort_spec *spec)
{
	return spec->n_ranges ? spec->n_ranges :
				plan_meet_files(PLAN_USUAL_RANGES, spec->n_part_files);
}

/* Free memory: neither the input nor anything else should leave the page cache for it. */
void result_make_ready(struct result *result)
{
	const struct sort_spec *spec = result->spec;
	const uint64_t nbytes = result_expected_nbytes(spec, result->job);
	const unsigned n_threads = setup_n_threads(spec) / READYING_THREADS_PART;

	if (nbytes == OUTPUT_SIZE_UNKNOWN || nbytes < least_ready_nbytes || n_threads == 0 ||
	    !can_be_made_ready(result) || nbytes / 4 * 5 > memory_free_nbytes("") ||
	    !output_has_ample_room(result->outputs[0], nbytes))
		return;
	if (result_has_parts(result))
		result_expect_parts(result, n_records_out(spec, result->job));
	output_make_ready(result->outputs, result->n_files, n_usual_ranges(spec), n_threads);
}

void result_stop_readying(struct result *result)
{
	for (uint32_t i = 0; i < result->n_files; i++)
		output_stop_readying(result->outputs[i]);
}

/* Of ranks each writes nearly as much. */
enum page_cache_use result_use(const struct result *result)
{
	const uint64_t nbytes = result_expected_nbytes(result->spec, result->job);
	const unsigned n = result->spec->ranks ? ranks_size(result->spec->ranks) : 1;

	return nbytes == OUTPUT_SIZE_UNKNOWN ? PAGE_CACHE_HOLDS :
					       page_cache_use(result->job, nbytes / n);
}

static void choose_way(struct result *result, enum page_cache_use use)
{
	for (uint32_t i = 0; i < result->n_files; i++)
		if (!result->outputs[i])
			continue;
		else if (result->n_files <= MOST_DIRECT_FILES)
			choose_way_of(result->outputs[i], use);
		else if (use == PAGE_CACHE_IS_TOO_SMALL)
			output_write_behind(result->outputs[i]);
}

void result_choose_way(struct result *result, enum page_cache_use use)
{
	result->use = use;
	if (!result->job->plan.fits)
		result_stop_readying(result); /* what is stored needs the memory more */
	choose_way(result, use);
}

/* How much has come through a pipe is known only now. */
void result_choose_way_late(struct result *result, uint64_t nbytes)
{
	const struct sort_spec *spec = result->spec;

	if (input_total_nbytes(result->job->input) == INPUT_SIZE_UNKNOWN && !spec->merges &&
	    !spec->zstd_level)
		choose_way(result, page_cache_use(result->job, nbytes));
}

/* --- the end --- */

/* Would gsort, which read the input as records, take the output for something else? */
static void warn_of_format(const struct result *result, const struct output *output)
{
	struct format_rules rules = framing_rules(input_framing(result->job->input));
	unsigned char first[FORMAT_HEAD_NBYTES];
	const struct format_view view = {
		.head = first,
		.n_head = output_first_bytes(output, first, sizeof first),
		.nbytes = FORMAT_SIZE_UNKNOWN,
	};
	const struct format *format;

	rules.choice = FORMAT_AUTO;
	if (input_fields(result->job->input)) /* it is what it seems to be */
		return;
	if (format_recognise(&view, &rules, &format) == 0 && format)
		warn_hint(HINT_READ_AS_RECORDS, 0,
			  "%s: begins as what is %s does, and would be taken for that",
			  output_name(output), format_name(format));
}

void result_add_ways(struct result *result)
{
	for (uint32_t i = 0; i < result->n_files; i++)
		if (result->outputs[i]) {
			const struct file_writer_ways ways = output_ways(result->outputs[i]);

			result->ways.cached_nbytes += ways.cached_nbytes;
			result->ways.direct_nbytes += ways.direct_nbytes;
			result->ways.mapped_nbytes += ways.mapped_nbytes;
		}
}

static int commit_file(struct result *result)
{
	const enum output_durability durability = result->spec->fsync ? OUTPUT_SYNC_ALL :
						  result->is_input    ? OUTPUT_SYNC_DATA :
									OUTPUT_UNSYNCED;
	struct output *output = result->outputs[0];
	int r = 0;

	warn_of_format(result, output);
	if (result->checkpoint)
		r = checkpoint_finish(result->checkpoint, output);
	if (r == 0)
		r = output_complete(output, durability);
	if (r == 0)
		r = input_check_state(result->job->input);
	if (r < 0)
		return r;
	result->outputs[0] = NULL;
	return output_commit(output, durability);
}

static enum parts_content content_of(const struct result *result)
{
	return header_counts(result->around->header) ? PARTS_NPY : PARTS_RECORDS;
}

static int verify_list(struct output *list, const char *text)
{
	const size_t nbytes = strlen(text);
	char *found = malloc(nbytes);
	int r = found ? output_read_at(list, 0, found, nbytes) :
			fail(-ENOMEM, "no memory for a part manifest");

	if (r == 0 && memcmp(found, text, nbytes) != 0)
		r = account_fail_verify(output_name(list));
	free(found);
	return r;
}

/* All parts are complete, and have their size: tell it in the list. *ret_text: to be freed. */
static int write_list(struct result *result, const struct part_place *places, char **ret_text)
{
	struct output *list = result->outputs[result->n_files];
	int r = part_notes_list(&result->notes, content_of(result), places, ret_text);

	if (r < 0)
		return r;
	r = output_write_at(list, 0, *ret_text, strlen(*ret_text));
	return r == 0 && result->spec->verify ? verify_list(list, *ret_text) : r;
}

static int complete_parts(struct result *result, enum output_durability durability, char **ret_text)
{
	struct part_place *places = calloc(result->n_files, sizeof *places);
	int r = places ? 0 : fail(-ENOMEM, "no memory for %u part files", result->n_files);

	for (uint32_t i = 0; i < result->n_files && r == 0; i++) {
		struct stat status;

		r = output_settle(result->outputs[i], &status);
		if (r == 0)
			r = output_complete(result->outputs[i], durability);
		if (r == 0)
			places[i] = (struct part_place){ part_files_name(result->part_files, i),
							 (uint64_t)status.st_size };
	}
	if (r == 0)
		r = write_list(result, places, ret_text);
	if (r == 0)
		r = output_complete(result->outputs[result->n_files], durability);
	free(places);
	return r;
}

static int commit_parts(struct result *result)
{
	const bool is_durable = result->spec->fsync;
	char *list = NULL;
	int r = complete_parts(result, is_durable ? OUTPUT_SYNC_DATA : OUTPUT_UNSYNCED, &list);

	if (r == 0)
		r = input_check_state(result->job->input);
	if (r == 0)
		r = part_files_commit(result->part_files, result->outputs, list, is_durable);
	free(list);
	return r;
}

int result_commit(struct result *result)
{
	int r;

	cancellation_leave(result->spec->cancellation);
	r = cancellation_check(result->spec->cancellation);
	if (r < 0)
		return r;
	result_add_ways(result);
	r = result_has_parts(result) ? commit_parts(result) : commit_file(result);
	result->is_committed = r == 0;
	return r;
}

void result_abort(struct result *result)
{
	if (!result->spec)
		return;
	cancellation_leave(result->spec->cancellation);
	if (result->is_joined && result_has_parts(result) && result->names && !result->is_committed)
		result_join_to_abort(result);
	for (uint32_t i = 0; result->outputs && i <= result->n_files; i++)
		output_abort(result->outputs[i]);
	result_close_frames(result);
	free(result->outputs);
	free(result->files);
	for (uint32_t i = 0; result->paths && i < result->n_files; i++)
		free(result->paths[i]);
	free(result->paths);
	free(result->names);
	free(result->begins);
	part_notes_close(&result->notes);
	part_files_close(result->part_files);
	pthread_mutex_destroy(&result->lock);
	result->begins = NULL;
	result->outputs = NULL;
	result->files = NULL;
	result->names = NULL;
	result->paths = NULL;
	result->part_files = NULL;
	result->spec = NULL;
}
