/*
 * sort_output_files - records go to their place in one file, or in one of several (see sort_output.h)
 *
 * What is written of the whole is known by its place there; a file begins at such a place, and has
 * a header of its own. A file of several is begun when its first record comes: then it is known how
 * many it will have, if that is known at all before.
 */
#include <errno.h>
#include <inttypes.h>

#include "src/base/interval_search.h"
#include "src/base/diagnostics.h"
#include "src/sort/integrity.h"
#include "src/sort/sort_output_internal.h"
#include "src/sort/setup.h"

/* Does each range of the merge make a part, of a length that shows when it is merged? */
static bool are_ranges(const struct result *result)
{
	return result_has_parts(result) && result->drops && result->job->limit == UINT64_MAX;
}

/* Where that is shows when runs are cut. What holds no key twice can end anywhere. */
static bool end_at_keys(const struct result *result)
{
	return result_has_parts(result) && result->spec->parts_at_keys && !result->spec->unique;
}

/* What ranks merge each is a range of all of it, which they have cut together before. */
static bool are_cut_by_merge(const struct result *result)
{
	return are_ranges(result) || (end_at_keys(result) && !result->spec->ranks);
}

static uint64_t find_begin(const struct result *result, uint64_t n_records, uint32_t i)
{
	return (uint64_t)((uint128_t)n_records * i / result->n_files);
}

/* Equal parts; if some are dropped, as if all were different: then there may be fewer. */
static void place_files(struct result *result, uint64_t n_records)
{
	for (uint32_t i = 0; i < result->n_files; i++) {
		struct result_file *file = &result->files[i];

		file->begin = find_begin(result, n_records, i);
		file->end = find_begin(result, n_records, i + 1);
	}
	result->is_exact = !result->drops;
}

void result_place_parts(struct result *result, const uint64_t *begins)
{
	for (uint32_t i = 0; i < result->n_files; i++) {
		result->files[i].begin = begins[i];
		result->files[i].end = begins[i + 1];
	}
	result->is_exact = true;
}

/* They end where no key is divided: as the merge has cut its runs. */
static int place_parts(void *context, const uint64_t *begins)
{
	result_place_parts(context, begins);
	return 0;
}

/* The last file that begins at or before the place: those of nothing are before it. */
static uint32_t find_file(const struct result *result, uint64_t position)
{
	return (uint32_t)begins_find(result->files, sizeof *result->files,
				     offsetof(struct result_file, begin), result->n_files,
				     position);
}

/* --- a file of several --- */

static uint64_t tails_nbytes(const struct result *result)
{
	return around_nbytes(result->job->input, 0);
}

static uint64_t part_nbytes(const struct result *result, uint32_t i, uint64_t n_records)
{
	return result->spec->header_nbytes + n_records * result->job->layout->output_nbytes +
	       (i + 1 == result->n_files ? tails_nbytes(result) : 0);
}

void result_expect_parts(struct result *result, uint64_t n_records)
{
	for (uint32_t i = 0; i < result->n_files; i++)
		output_expect_late(result->outputs[i],
				   part_nbytes(result, i,
					       find_begin(result, n_records, i + 1) -
						       find_begin(result, n_records, i)));
}

uint64_t result_count_own(const struct result *result, const struct result_file *file)
{
	uint64_t begin = file->begin, end = file->end;

	if (result->spec->ranks) {
		begin = result->begin > begin ? result->begin : begin;
		end = result->end < end ? result->end : end;
	}
	return end > begin ? end - begin : 0;
}

/* All of its records are there. */
static bool is_full(const struct result *result, const struct result_file *file)
{
	return atomic_load(&file->n_records) == result_count_own(result, file) ||
	       are_ranges(result);
}

static int settle(struct result *result, uint32_t i)
{
	struct stat status;

	result->files[i].is_settled = true;
	return result->is_framed ? result_end_frames(result, i, true) :
				   output_settle(result->outputs[i], &status);
}

/* What compresses the files before can go, and be used for this one. Under the lock. */
static int settle_before(struct result *result, uint32_t n)
{
	int r = 0;

	for (uint32_t i = 0; i < n && r == 0; i++) {
		const struct result_file *file = &result->files[i];

		if (!file->is_settled && atomic_load(&file->is_begun) && is_full(result, file))
			r = settle(result, i);
	}
	return r;
}

static int begin_compressed(struct result *result, uint32_t i)
{
	const int r = settle_before(result, i);

	if (r < 0)
		return r;
	return result->is_framed ? result_begin_frames(result, i) :
				   output_compress(result->outputs[i], result->spec->zstd_level,
						   setup_n_compressors(result->spec));
}

/* Whether there is room for all parts was looked at before; runs have some of it by now. */
static int expect_part(struct output *output, uint64_t nbytes)
{
	const int r = output_check_limit(output, nbytes);

	if (r == 0)
		output_expect_late(output, nbytes);
	return r;
}

/* It has its place, and nothing in it, but what other ranks have written. Under the lock. */
static int begin_file(struct result *result, uint32_t i)
{
	const struct result_file *file = &result->files[i];
	const uint64_t n_due =
		result->is_exact && file->end != UINT64_MAX ? file->end - file->begin : UINT64_MAX;
	struct output *output = result->outputs[i];
	int r = 0;

	if (result_has_parts(result) && result->spec->zstd_level)
		r = begin_compressed(result, i);
	else if (result_has_parts(result) && n_due != UINT64_MAX && result->spec->ranks)
		r = result_share_file(result, i, part_nbytes(result, i, n_due));
	else if (result_has_parts(result) && n_due != UINT64_MAX)
		r = expect_part(output, part_nbytes(result, i, n_due));
	return r < 0 || result->is_joined ? r : around_begin(result->around, output, n_due);
}

int result_begin_file(struct result *result, uint32_t i)
{
	struct result_file *file = &result->files[i];
	int r = 0;

	if (atomic_load(&file->is_begun))
		return 0;
	pthread_mutex_lock(&result->lock);
	/* What has failed is not tried again by the next writer. */
	if (!atomic_load(&file->is_begun) && file->r == 0) {
		file->r = begin_file(result, i);
		atomic_store(&file->is_begun, file->r == 0);
	}
	r = file->r;
	pthread_mutex_unlock(&result->lock);
	return r;
}

/* --- what is written --- */

/* But what another rank writes. */
static int write_bytes(struct result *result, uint32_t i, uint64_t offset, const void *data,
		       size_t nbytes)
{
	size_t kept;
	int r = result_keep_edge(result, i, offset, data, nbytes, &kept);

	return r < 0 || kept == nbytes ? r :
					 output_write_at(result->outputs[i], offset + kept,
							 (const char *)data + kept, nbytes - kept);
}

/* Of a file, n records from its own number `position` on. */
static int write_piece(struct result *result, uint32_t i, uint64_t position, const void *records,
		       uint64_t n, const struct digest *digest)
{
	const uint64_t item_nbytes = result->job->layout->output_nbytes;
	const uint64_t offset = position * item_nbytes;
	int r = result_begin_file(result, i);

	if (r == 0)
		r = write_bytes(result, i, result->spec->header_nbytes + offset, records,
				n * item_nbytes);
	if (r == 0 && result->checkpoint)
		r = checkpoint_note_written(result->checkpoint, offset, records, n * item_nbytes);
	if (r == 0 && result_has_parts(result))
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
	uint64_t position = result->begin + merged->position, left = merged->n_items;
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

static int note_ranges(void *context, const struct merge_range *ranges, uint32_t n)
{
	struct result *result = context;

	return checkpoint_note_ranges(result->checkpoint, ranges, n);
}

static int note_point(void *context, uint32_t range, const struct merge_point *point)
{
	struct result *result = context;

	return checkpoint_note_point(result->checkpoint, range, point);
}

static void divide(void *context, uint32_t n_ranges)
{
	struct result *result = context;

	result->n_ranges = n_ranges;
	for (uint32_t i = 0; i < result->n_files; i++)
		if (result->outputs[i])
			output_divide(result->outputs[i], n_ranges / result->n_files);
}

void result_cancel(struct result *result)
{
	for (uint32_t i = 0; i < result->n_files; i++)
		if (result->outputs[i])
			output_cancel(result->outputs[i]);
}

static void cancel(void *context)
{
	result_cancel(context);
}

/* Where in its file a record goes, in bytes. */
static uint64_t place_record(void *context, uint64_t position)
{
	const struct result *result = context;
	const uint64_t of_all = result->begin + position;
	const struct result_file *file = &result->files[find_file(result, of_all)];

	return result->spec->header_nbytes +
	       (of_all - file->begin) * result->job->layout->output_nbytes;
}

/* In all of them what is written lies alike. NULL: this rank writes to none. */
static const struct output *some_output(const struct result *result)
{
	uint32_t i = 0;

	while (i + 1 < result->n_files && !result->outputs[i])
		i++;
	return result->outputs[i];
}

struct sink result_sink(struct result *result)
{
	const struct output *some = some_output(result);
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
		.note_ranges = note_ranges,
	};

	if (some)
		sink.align_nbytes = output_alignment(some, &sink.base);
	if (result_has_parts(result)) {
		sink.place = place_record;
		sink.align_nbytes = result->spec->unique ? 0 : sink.align_nbytes;
	}
	sink.base += result->spec->header_nbytes + result->begin * sink.item_nbytes;
	return sink;
}

/* Of what has come through a pipe the length is known only now. */
static void expect_late(struct result *result)
{
	const struct sort_spec *spec = result->spec;

	if (result->n_due == UINT64_MAX || spec->zstd_level || spec->ranks || spec->merges ||
	    result_expected_nbytes(spec, result->job) != OUTPUT_SIZE_UNKNOWN)
		return;
	output_expect_late(result->outputs[0],
			   spec->header_nbytes +
				   result->n_due * result->job->layout->output_nbytes);
}

static bool compresses_together(const struct result *result)
{
	return result->spec->ranks && result->spec->zstd_level;
}

int result_begin(struct result *result, const struct around *around, uint64_t n_records)
{
	int r = around_prepare(around);

	result->around = around;
	if (r < 0)
		return r;
	if (n_records > result->job->limit && !result->spec->ranks) /* there it is of a part */
		n_records = result->job->limit;
	result->drops = result->spec->unique && !result->job->request.counts_first;
	/* Of what an earlier process has written, the runs may know nothing any more. */
	result->n_due = result->drops || result->checkpoint ? UINT64_MAX : n_records;
	if (result_has_parts(result)) {
		if ((!are_ranges(result) && !end_at_keys(result)) || n_records == 0)
			place_files(result, n_records);
		r = part_notes_open(result->spec, result->job->layout, &result->notes);
		if (r == 0 && compresses_together(result))
			r = result_open_frames(result);
		return r == 0 && result->is_joined ? result_join_parts(result) : r;
	}
	expect_late(result);
	if (compresses_together(result))
		r = result_open_frames(result);
	if (r == 0 && result->is_framed)
		r = result_begin_frames(result, 0);
	else if (r == 0 && result->spec->ranks)
		r = result_share_file(result, 0, result->shared_nbytes);
	if (r == 0 && !result->is_joined)
		r = around_begin(around, result->outputs[0], n_records);
	atomic_store(&result->files[0].is_begun, r == 0);
	return r;
}

static int fail_number(const char *name, uint64_t n, uint64_t n_due)
{
	return fail(-EIO,
		    "internal error: %s has %" PRIu64 " of %" PRIu64
		    " records; the output was not written",
		    name, n, n_due);
}

/*
 * All n records that it has are written, those of the whole from `begin` on. It is settled
 * at once: what others do to it while it is checked, or waits for the disk, is found. But of what
 * other ranks write a file system may learn as late as when they close it.
 */
static int end_file(struct result *result, uint32_t i, uint64_t begin, uint64_t n)
{
	struct result_file *file = &result->files[i];
	struct stat status;
	int r;

	if (result->is_exact && n != file->end - file->begin)
		return fail_number(output_name(result->outputs[i]), n, file->end - file->begin);
	r = result_begin_file(result, i);
	if (r == 0 && !result->is_framed) /* in which all of it is */
		r = around_finish(result->around, result->outputs[i], n, i + 1 == result->n_files);
	if (r == 0 && output_is_atomic(result->outputs[i]) && !result->spec->ranks)
		r = output_settle(result->outputs[i], &status);
	file->begin = begin;
	file->end = begin + n;
	return r;
}

/* From now on files are where they have come to be. */
int result_end(struct result *result, uint64_t n_records)
{
	uint64_t begin = 0;
	int r = 0;

	if (result->n_due != UINT64_MAX && n_records != result->n_due)
		return fail_number(result_name(result), n_records, result->n_due);
	if (result->is_joined && !result_has_parts(result))
		result->files[0].end = n_records;
	if (result->is_joined)
		return 0;
	if (!result_has_parts(result))
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

	position += result->begin * item_nbytes;
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
