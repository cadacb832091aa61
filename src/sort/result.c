/*
 * result - what comes of a sort (see result.h)
 */
#include "src/sort/result.h"

#include <errno.h>
#include <inttypes.h>

#include "io/input/format.h"
#include "src/base/messages.h"
#include "src/plan/page_cache.h"
#include "src/sort/around.h"
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

/* What is written for a record can be longer than it is: --index, keys that overlap. */
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

static int open_file(struct result *result)
{
	const uint64_t nbytes = result_expected_nbytes(result->spec, result->job);

	if (result->checkpoint)
		return checkpoint_open_output(result->checkpoint, nbytes, &result->output);
	return output_open_given(result->job->io, result->spec->output_path,
				 result->spec->given_output, nbytes, &result->output);
}

/* An input's place is only taken by all that is in it, and when that is complete. */
static int check_input(const struct result *result, struct file_identity identity)
{
	const uint64_t nbytes = input_nbytes_before(result->job->input, identity);

	if (!output_is_atomic(result->output))
		return fail_hint(-EINVAL, HINT_NAME_OUTPUT, 0,
				 "%s: is an input and the output at the same time",
				 output_name(result->output));
	if (nbytes == 0)
		return 0;
	return fail(-EINVAL,
		    "%s: standard input stands at byte %" PRIu64
		    " of it, and what is before that would be lost; let the output go to another "
		    "file",
		    output_name(result->output), nbytes);
}

/* Whoever waits to read or to write need not wait any longer. */
static void end_early(void *context)
{
	struct result *result = context;

	input_cancel(result->job->input);
	output_cancel(result->output);
}

int result_open(const struct sort_spec *spec, const struct job *job, struct checkpoint *checkpoint,
		struct result *result)
{
	struct file_identity identity;
	int r;

	*result = (struct result){ .spec = spec, .job = job, .checkpoint = checkpoint };
	r = open_file(result);
	if (r == 0 && spec->zstd_level)
		r = output_compress(result->output, spec->zstd_level, setup_n_compressors(spec));
	if (r < 0)
		return r;
	cancellation_watch(spec->cancellation, end_early, result);
	result->is_input = output_identity(result->output, &identity) &&
			   input_has_file(job->input, identity);
	return result->is_input ? check_input(result, identity) : 0;
}

static void choose_way(struct result *result, uint64_t nbytes)
{
	switch (page_cache_use(result->job, nbytes)) {
	case PAGE_CACHE_IS_TOO_SMALL:
		output_pass_by_cache(result->output);
		break;
	case PAGE_CACHE_MAY_HOLD:
		output_try_both_ways(result->output);
		break;
	case PAGE_CACHE_HOLDS:
		break;
	}
}

void result_choose_way(struct result *result)
{
	const uint64_t nbytes = result_expected_nbytes(result->spec, result->job);

	if (nbytes != OUTPUT_SIZE_UNKNOWN)
		choose_way(result, nbytes);
}

/* How much has come through a pipe is known only now. */
void result_choose_way_late(struct result *result, uint64_t nbytes)
{
	const struct sort_spec *spec = result->spec;

	if (input_total_nbytes(result->job->input) == INPUT_SIZE_UNKNOWN && !spec->merges &&
	    !spec->zstd_level)
		choose_way(result, nbytes);
}

uint64_t result_begin(const struct result *result)
{
	return result->spec->header_nbytes;
}

static int write_window(void *context, const struct merged *merged)
{
	struct result *result = context;
	const uint64_t item_nbytes = result->job->layout->output_nbytes;
	const uint64_t offset = merged->position * item_nbytes;
	const uint64_t nbytes = merged->n_items * item_nbytes;
	int r = output_write_at(result->output, result_begin(result) + offset, merged->items,
				nbytes);

	if (r == 0 && result->checkpoint)
		r = checkpoint_note_written(result->checkpoint, offset, merged->items, nbytes);
	return r;
}

static int note_point(void *context, const struct merge_point *point)
{
	struct result *result = context;

	return checkpoint_note_point(result->checkpoint, point);
}

static void divide(void *context, uint32_t n_ranges)
{
	struct result *result = context;

	result->n_ranges = n_ranges;
	output_divide(result->output, n_ranges);
}

static void cancel(void *context)
{
	struct result *result = context;

	output_cancel(result->output);
}

struct sink result_sink(struct result *result)
{
	struct sink sink = {
		.context = result,
		.takes_records = true,
		.stage = STAGE_WRITE,
		.item_nbytes = result->job->layout->output_nbytes,
		.write = write_window,
		.divide = divide,
		.cancel = cancel,
		.point = result->checkpoint ? note_point : NULL,
	};

	sink.align_nbytes = output_alignment(result->output, &sink.base);
	sink.base += result_begin(result);
	return sink;
}

/* Would gsort, which read the input as records, take the output for something else? */
static void warn_of_format(const struct result *result)
{
	struct format_rules rules = framing_rules(input_framing(result->job->input));
	unsigned char first[FORMAT_HEAD_NBYTES];
	const struct format_view view = {
		.head = first,
		.n_head = output_first_bytes(result->output, first, sizeof first),
		.nbytes = FORMAT_SIZE_UNKNOWN,
	};
	const struct format *format;

	rules.choice = FORMAT_AUTO;
	if (input_fields(result->job->input)) /* it is what it seems to be */
		return;
	if (format_recognise(&view, &rules, &format) == 0 && format)
		warn_hint(HINT_READ_AS_RECORDS, 0,
			  "%s: begins as what is %s does, and would be taken for that",
			  output_name(result->output), format_name(format));
}

int result_commit(struct result *result)
{
	const enum output_durability durability = result->spec->fsync ? OUTPUT_SYNC_ALL :
						  result->is_input    ? OUTPUT_SYNC_DATA :
									OUTPUT_UNSYNCED;
	int r;

	cancellation_leave(result->spec->cancellation);
	r = cancellation_check(result->spec->cancellation);
	if (r < 0)
		return r;
	result->ways = output_ways(result->output);
	warn_of_format(result);
	if (result->checkpoint)
		r = checkpoint_finish(result->checkpoint, result->output);
	if (r == 0)
		r = output_complete(result->output, durability);
	if (r == 0)
		r = input_check_state(result->job->input);
	if (r < 0)
		return r;
	r = output_commit(result->output, durability);
	result->output = NULL;
	result->is_committed = r == 0;
	return r;
}

void result_abort(struct result *result)
{
	if (result->spec)
		cancellation_leave(result->spec->cancellation);
	output_abort(result->output);
	result->output = NULL;
}
