/*
 * result - what comes of a sort (see result.h)
 */
#include "src/sort/result.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/input/format.h"
#include "src/base/messages.h"
#include "src/plan/page_cache.h"
#include "src/sort/account.h"
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

/* --- opening --- */

static int open_parts(struct result *result)
{
	const struct sort_spec *spec = result->spec;
	const uint64_t nbytes = result_expected_nbytes(spec, result->job);
	int r = part_files_open(result->job->io, spec->output_path, spec->n_part_files,
				&result->part_files);

	for (uint32_t i = 0; i <= result->n_files && r == 0; i++)
		r = output_open(result->job->io, part_files_path(result->part_files, i),
				OUTPUT_SIZE_UNKNOWN, &result->outputs[i]);
	return r == 0 && nbytes != OUTPUT_SIZE_UNKNOWN ?
		       output_check_room(result->outputs[0], nbytes) :
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
	if (result->part_files)
		return fail(-EINVAL, "%s: is an input, whose place no part of the output takes",
			    output_name(output));
	if (input_has_listed_file(result->job->input, identity))
		return fail(-EINVAL,
			    "%s: is a part of an input, which would not be the same any more; let "
			    "the output go to another file",
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
		struct file_identity identity;
		int r;

		if (!output_identity(output, &identity) ||
		    !input_has_file(result->job->input, identity))
			continue;
		result->is_input = true;
		r = check_input(result, output, identity);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool are_parts(const struct result *result)
{
	return result->spec->n_part_files > 0;
}

/* Whoever waits to read or to write need not wait any longer. */
static void end_early(void *context)
{
	struct result *result = context;

	input_cancel(result->job->input);
	for (uint32_t i = 0; i < result->n_files; i++)
		output_cancel(result->outputs[i]);
}

int result_open(const struct sort_spec *spec, const struct job *job, struct checkpoint *checkpoint,
		struct result *result)
{
	const uint32_t n = spec->n_part_files ? spec->n_part_files : 1;
	int r;

	*result =
		(struct result){ .spec = spec, .job = job, .checkpoint = checkpoint, .n_files = n };
	pthread_mutex_init(&result->lock, NULL);
	result->outputs = calloc(n + UINT64_C(1), sizeof *result->outputs);
	result->files = calloc(n, sizeof *result->files);
	if (!result->outputs || !result->files)
		return fail(-ENOMEM, "no memory for %u outputs", n);
	for (uint32_t i = 0; i < n; i++)
		result->files[i].end = UINT64_MAX;
	r = are_parts(result) ? open_parts(result) : open_file(result);
	if (r < 0)
		return r;
	cancellation_watch(spec->cancellation, end_early, result);
	return check_inputs(result);
}

struct output *result_output(const struct result *result)
{
	return result->outputs && !are_parts(result) ? result->outputs[0] : NULL;
}

const char *result_name(const struct result *result)
{
	return are_parts(result) ? result->spec->output_path : output_name(result->outputs[0]);
}

bool result_is_ordered(const struct result *result)
{
	return result->spec->zstd_level || output_is_ordered(result->outputs[0]);
}

uint64_t result_file_nbytes(const struct layout *layout)
{
	return sizeof(struct result_file) + sizeof(struct part_note) + output_memory_nbytes() +
	       2 * layout_edge_nbytes(layout);
}

/* --- where it goes --- */

/* Each of many files has no queue of its own to go past the cache by. */
static void choose_way_of_parts(struct result *result, enum page_cache_use use)
{
	for (uint32_t i = 0; i < result->n_files && use == PAGE_CACHE_IS_TOO_SMALL; i++)
		output_write_behind(result->outputs[i]);
}

static void choose_way(struct result *result, uint64_t nbytes)
{
	const enum page_cache_use use = page_cache_use(result->job, nbytes);

	if (are_parts(result)) {
		choose_way_of_parts(result, use);
		return;
	}
	switch (use) {
	case PAGE_CACHE_IS_TOO_SMALL:
		output_pass_by_cache(result->outputs[0]);
		break;
	case PAGE_CACHE_MAY_HOLD:
		output_try_both_ways(result->outputs[0]);
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

/* Does each range of the merge make a part, of a length that shows when it is merged? */
static bool are_ranges(const struct result *result)
{
	return are_parts(result) && result->spec->unique && result->job->limit == UINT64_MAX;
}

static bool are_cut_by_merge(const struct result *result)
{
	return are_ranges(result) ||
	       (are_parts(result) && result->spec->parts_at_keys && !result->spec->unique);
}

/* Equal parts; with -u, as if all records were different, of which there may be fewer. */
static void place_files(struct result *result, uint64_t n_records)
{
	const uint32_t n_files = result->n_files;

	for (uint32_t i = 0; i < n_files; i++) {
		struct result_file *file = &result->files[i];

		file->begin = (uint64_t)((uint128_t)n_records * i / n_files);
		file->end = (uint64_t)((uint128_t)n_records * (i + 1) / n_files);
	}
	result->is_exact = !result->spec->unique;
}

/* They end where no key is divided: as the merge has cut its runs. */
static int place_parts(void *context, const uint64_t *begins)
{
	struct result *result = context;

	for (uint32_t i = 0; i < result->n_files; i++) {
		result->files[i].begin = begins[i];
		result->files[i].end = begins[i + 1];
	}
	result->is_exact = true;
	return 0;
}

/* The last file that begins at or before the place: those of nothing are before it. */
static uint32_t find_file(const struct result *result, uint64_t position)
{
	uint32_t lo = 0, hi = result->n_files;

	while (hi - lo > 1) {
		const uint32_t middle = lo + (hi - lo) / 2;

		if (result->files[middle].begin <= position)
			lo = middle;
		else
			hi = middle;
	}
	return lo;
}

/* --- a file of several --- */

static uint64_t tails_nbytes(const struct result *result)
{
	return around_nbytes(result->job->input, 0);
}

/* All of its records are there. */
static bool is_full(const struct result *result, const struct result_file *file)
{
	return atomic_load(&file->n_records) == file->end - file->begin || are_ranges(result);
}

/* What compresses the files before can go, and be used for this one. Under the lock. */
static int settle_before(struct result *result, uint32_t n)
{
	int r = 0;

	for (uint32_t i = 0; i < n && r == 0; i++) {
		struct result_file *file = &result->files[i];
		struct stat status;

		if (file->is_settled || !atomic_load(&file->is_begun) || !is_full(result, file))
			continue;
		r = output_settle(result->outputs[i], &status);
		file->is_settled = true;
	}
	return r;
}

static int begin_compressed(struct result *result, uint32_t i)
{
	int r = settle_before(result, i);

	return r < 0 ? r :
		       output_compress(result->outputs[i], result->spec->zstd_level,
				       setup_n_compressors(result->spec));
}

/* It has its place, and nothing in it. Under the lock. */
static int begin_file(struct result *result, uint32_t i)
{
	const struct result_file *file = &result->files[i];
	const uint64_t n_due =
		result->is_exact && file->end != UINT64_MAX ? file->end - file->begin : UINT64_MAX;
	struct output *output = result->outputs[i];
	int r = 0;

	if (are_parts(result) && result->spec->zstd_level)
		r = begin_compressed(result, i);
	else if (are_parts(result) && n_due != UINT64_MAX)
		r = output_expect(output,
				  result->spec->header_nbytes +
					  n_due * result->job->layout->output_nbytes +
					  (i + 1 == result->n_files ? tails_nbytes(result) : 0));
	return r < 0 ? r : around_begin(result->around, output, n_due);
}

static int begin_file_once(struct result *result, uint32_t i)
{
	struct result_file *file = &result->files[i];
	int r = 0;

	if (atomic_load(&file->is_begun))
		return 0;
	pthread_mutex_lock(&result->lock);
	if (!atomic_load(&file->is_begun)) {
		r = begin_file(result, i);
		atomic_store(&file->is_begun, r == 0);
	}
	pthread_mutex_unlock(&result->lock);
	return r;
}

/* --- what is written --- */

/* Of a file, n records from its own number `position` on. */
static int write_piece(struct result *result, uint32_t i, uint64_t position, const void *records,
		       uint64_t n, const struct digest *digest)
{
	const uint64_t item_nbytes = result->job->layout->output_nbytes;
	const uint64_t offset = position * item_nbytes;
	int r = begin_file_once(result, i);

	if (r == 0)
		r = output_write_at(result->outputs[i], result->spec->header_nbytes + offset,
				    records, n * item_nbytes);
	if (r == 0 && result->checkpoint)
		r = checkpoint_note_written(result->checkpoint, offset, records, n * item_nbytes);
	if (r == 0 && are_parts(result))
		part_notes_add(&result->notes, i, position, records, n, digest);
	if (r == 0)
		atomic_fetch_add(&result->files[i].n_records, n);
	return r;
}

static int write_window(void *context, const struct merged *merged)
{
	struct result *result = context;
	const uint64_t item_nbytes = result->job->layout->output_nbytes;
	const char *records = merged->items;
	uint64_t position = merged->position, left = merged->n_items;
	uint32_t i = are_ranges(result) ? merged->range : find_file(result, position);
	int r = 0;

	for (; left && r == 0; i++) {
		const struct result_file *file = &result->files[i];
		const uint64_t room = file->end - position;
		const uint64_t n = left < room ? left : room;

		if (n == 0)
			continue;
		r = write_piece(result, i, position - file->begin, records, n,
				n == merged->n_items ? &merged->digest : NULL);
		position += n;
		records += n * item_nbytes;
		left -= n;
	}
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
	for (uint32_t i = 0; i < result->n_files; i++)
		output_divide(result->outputs[i], n_ranges / result->n_files);
}

static void cancel(void *context)
{
	struct result *result = context;

	for (uint32_t i = 0; i < result->n_files; i++)
		output_cancel(result->outputs[i]);
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
		.n_parts = are_cut_by_merge(result) ? result->n_files : 0,
		.place_parts = place_parts,
		.cancel = cancel,
		.point = result->checkpoint ? note_point : NULL,
	};

	if (are_parts(result))
		return sink;
	sink.align_nbytes = output_alignment(result->outputs[0], &sink.base);
	sink.base += result->spec->header_nbytes;
	return sink;
}

int result_begin(struct result *result, const struct around *around, uint64_t n_records)
{
	int r = around_prepare(around);

	result->around = around;
	if (r < 0)
		return r;
	if (n_records > result->job->limit)
		n_records = result->job->limit;
	if (are_parts(result)) {
		if (!are_cut_by_merge(result) || n_records == 0)
			place_files(result, n_records);
		return part_notes_open(result->spec, result->job->layout, &result->notes);
	}
	r = around_begin(around, result->outputs[0], n_records);
	atomic_store(&result->files[0].is_begun, r == 0);
	return r;
}

/* All n records that it has are written, those of the whole from `begin` on. */
static int end_file(struct result *result, uint32_t i, uint64_t begin, uint64_t n)
{
	struct result_file *file = &result->files[i];
	int r;

	if (result->is_exact && n != file->end - file->begin)
		return fail(-EIO,
			    "internal error: %s has %" PRIu64 " of %" PRIu64
			    " records; the output was not written",
			    output_name(result->outputs[i]), n, file->end - file->begin);
	r = begin_file_once(result, i);
	if (r == 0)
		r = around_finish(result->around, result->outputs[i], n, i + 1 == result->n_files);
	file->begin = begin;
	file->end = begin + n;
	return r;
}

/* From now on files are where they have come to be. */
int result_end(struct result *result, uint64_t n_records)
{
	uint64_t begin = 0;
	int r = 0;

	if (!are_parts(result))
		return end_file(result, 0, 0, n_records);
	for (uint32_t i = 0; i < result->n_files && r == 0; i++) {
		r = end_file(result, i, begin, atomic_load(&result->files[i].n_records));
		begin = result->files[i].end;
	}
	return r;
}

/* --- what is read back --- */

int result_read_at(void *context, uint64_t position, void *buffer, size_t nbytes)
{
	struct result *result = context;
	const uint64_t item_nbytes = result->job->layout->output_nbytes;
	char *to = buffer;

	for (uint32_t i = find_file(result, position / item_nbytes); nbytes > 0; i++) {
		const struct result_file *file = &result->files[i];
		const uint64_t left = file->end * item_nbytes - position;
		const size_t n = left < nbytes ? (size_t)left : nbytes;
		const uint64_t offset = position - file->begin * item_nbytes;
		const int r = n ? output_read_at(result->outputs[i],
						 result->spec->header_nbytes + offset, to, n) :
				  0;

		if (r < 0)
			return r;
		position += n;
		to += n;
		nbytes -= n;
	}
	return 0;
}

int result_verify_around(const struct result *result)
{
	bool is_same = true;
	int r = 0;

	for (uint32_t i = 0; i < result->n_files && r == 0 && is_same; i++)
		r = around_verify(result->around, result->outputs[i],
				  result->files[i].end - result->files[i].begin,
				  i + 1 == result->n_files, &is_same);
	return r < 0 || is_same ? r : account_fail_verify(result_name(result));
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

static void add_ways(struct file_writer_ways *sum, struct file_writer_ways ways)
{
	sum->cached_nbytes += ways.cached_nbytes;
	sum->direct_nbytes += ways.direct_nbytes;
	sum->mapped_nbytes += ways.mapped_nbytes;
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
			fail(-ENOMEM, "no memory for a list of parts");

	if (r == 0 && memcmp(found, text, nbytes) != 0)
		r = account_fail_verify(output_name(list));
	free(found);
	return r;
}

/* All parts are complete, and have their size: tell it in the list. */
static int write_list(struct result *result, const struct part_place *places)
{
	struct output *list = result->outputs[result->n_files];
	char *text;
	int r = part_notes_list(&result->notes, content_of(result), places, &text);

	if (r < 0)
		return r;
	r = output_write_at(list, 0, text, strlen(text));
	if (r == 0 && result->spec->verify)
		r = verify_list(list, text);
	free(text);
	return r;
}

static int complete_parts(struct result *result, enum output_durability durability)
{
	struct part_place *places = calloc(result->n_files, sizeof *places);
	int r = places ? 0 : fail(-ENOMEM, "no memory for %u parts", result->n_files);

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
		r = write_list(result, places);
	if (r == 0)
		r = output_complete(result->outputs[result->n_files], durability);
	free(places);
	return r;
}

static int commit_parts(struct result *result)
{
	const bool is_durable = result->spec->fsync;
	int r = complete_parts(result, is_durable ? OUTPUT_SYNC_DATA : OUTPUT_UNSYNCED);

	if (r == 0)
		r = input_check_state(result->job->input);
	return r < 0 ? r : part_files_commit(result->part_files, result->outputs, is_durable);
}

int result_commit(struct result *result)
{
	int r;

	cancellation_leave(result->spec->cancellation);
	r = cancellation_check(result->spec->cancellation);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < result->n_files; i++)
		add_ways(&result->ways, output_ways(result->outputs[i]));
	r = are_parts(result) ? commit_parts(result) : commit_file(result);
	result->is_committed = r == 0;
	return r;
}

void result_abort(struct result *result)
{
	if (!result->spec)
		return;
	cancellation_leave(result->spec->cancellation);
	for (uint32_t i = 0; result->outputs && i <= result->n_files; i++)
		output_abort(result->outputs[i]);
	free(result->outputs);
	free(result->files);
	part_notes_close(&result->notes);
	part_files_close(result->part_files);
	pthread_mutex_destroy(&result->lock);
	result->outputs = NULL;
	result->files = NULL;
	result->part_files = NULL;
	result->spec = NULL;
}
