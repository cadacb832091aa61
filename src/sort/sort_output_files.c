/*
 * sort_output_files - records go to their place in one file, or in one of several (see
 * sort_output.h)
 *
 * What is written of the whole is known by its place there; a file begins at such a place, and has
 * a header of its own. A file of several is begun when its first record comes: then it is known how
 * many it will have, if that is known at all before.
 */
#include <errno.h>
#include <inttypes.h>

#include "src/base/int_math.h"
#include "src/base/diagnostics.h"
#include "src/sort/integrity.h"
#include "src/sort/sort_output_internal.h"
#include "src/sort/setup.h"

/* Does each range of the merge make a part, of a length that shows when it is merged? */
static bool parts_are_partitions(const struct sort_output *out)
{
	return sort_output_is_split(out) && out->may_drop && out->job->limit == UINT64_MAX;
}

/* Where that is shows when runs are cut. What holds no key twice can end anywhere. */
static bool parts_end_at_keys(const struct sort_output *out)
{
	return sort_output_is_split(out) && out->spec->split_by_keys && !out->spec->unique;
}

/* What ranks merge each is a range of all of it, which they have cut together before. */
static bool merge_cuts_parts(const struct sort_output *out)
{
	return parts_are_partitions(out) || (parts_end_at_keys(out) && !out->spec->comm);
}

static uint64_t equal_part_begin(const struct sort_output *out, uint64_t n_records, uint32_t i)
{
	return (uint64_t)((uint128_t)n_records * i / out->n_files);
}

/* Equal parts; if some are dropped, as if all were different: then there may be fewer. */
static void place_equal_parts(struct sort_output *out, uint64_t n_records)
{
	for (uint32_t i = 0; i < out->n_files; i++) {
		struct output_file *file = &out->files[i];

		file->begin = equal_part_begin(out, n_records, i);
		file->end = equal_part_begin(out, n_records, i + 1);
	}
	out->has_exact_sizes = !out->may_drop;
}

void sort_output_place_part_files(struct sort_output *out, const uint64_t *part_bounds)
{
	for (uint32_t i = 0; i < out->n_files; i++) {
		out->files[i].begin = part_bounds[i];
		out->files[i].end = part_bounds[i + 1];
	}
	out->has_exact_sizes = true;
}

/* They end where no key is divided: as the merge has cut its runs. */
static int place_parts_at_cuts(void *context, const uint64_t *part_bounds)
{
	sort_output_place_part_files(context, part_bounds);
	return 0;
}

/* The last file that begins at or before the place: those of nothing are before it. */
static uint32_t find_file(const struct sort_output *out, uint64_t position)
{
	return (uint32_t)find_interval(out->files, sizeof *out->files,
				       offsetof(struct output_file, begin), out->n_files, position);
}

/* --- a file of several --- */

static uint64_t trailers_nbytes(const struct sort_output *out)
{
	return output_framing_nbytes(out->job->input, 0);
}

static uint64_t part_file_nbytes(const struct sort_output *out, uint32_t i, uint64_t n_records)
{
	return out->spec->header_nbytes + n_records * out->job->layout->output_nbytes +
	       (i + 1 == out->n_files ? trailers_nbytes(out) : 0);
}

void sort_output_set_part_sizes(struct sort_output *out, uint64_t n_records)
{
	for (uint32_t i = 0; i < out->n_files; i++)
		output_update_expected_size(
			out->outputs[i],
			part_file_nbytes(out, i,
					 equal_part_begin(out, n_records, i + 1) -
						 equal_part_begin(out, n_records, i)));
}

uint64_t sort_output_count_local(const struct sort_output *out, const struct output_file *file)
{
	uint64_t begin = file->begin, end = file->end;

	if (out->spec->comm) {
		begin = out->begin > begin ? out->begin : begin;
		end = out->end < end ? out->end : end;
	}
	return end > begin ? end - begin : 0;
}

/* All of its records are there. */
static bool has_all_records(const struct sort_output *out, const struct output_file *file)
{
	return atomic_load(&file->n_records) == sort_output_count_local(out, file) ||
	       parts_are_partitions(out);
}

static int finish_file_writes(struct sort_output *out, uint32_t i)
{
	struct stat status;

	out->files[i].is_finished = true;
	return out->is_collective_zst ? sort_output_end_zst(out, i, true) :
					output_finalize(out->outputs[i], &status);
}

/* What compresses the files before can go, and be used for this one. Under the lock. */
static int finish_earlier_files(struct sort_output *out, uint32_t n)
{
	int r = 0;

	for (uint32_t i = 0; i < n && r == 0; i++) {
		const struct output_file *file = &out->files[i];

		if (!file->is_finished && atomic_load(&file->is_begun) &&
		    has_all_records(out, file))
			r = finish_file_writes(out, i);
	}
	return r;
}

static int begin_compressed(struct sort_output *out, uint32_t i)
{
	const int r = finish_earlier_files(out, i);

	if (r < 0)
		return r;
	return out->is_collective_zst ? sort_output_begin_zst(out, i) :
					output_compress(out->outputs[i], out->spec->zstd_level,
							setup_n_compressors(out->spec));
}

/* Whether there is room for all parts was looked at before; runs have some of it by now. */
static int set_part_size(struct output *output, uint64_t nbytes)
{
	const int r = output_check_limit(output, nbytes);

	if (r == 0)
		output_update_expected_size(output, nbytes);
	return r;
}

/* It has its place, and nothing in it, but what other ranks have written. Under the lock. */
static int begin_file_locked(struct sort_output *out, uint32_t i)
{
	const struct output_file *file = &out->files[i];
	const uint64_t n_expected = out->has_exact_sizes && file->end != UINT64_MAX ?
					    file->end - file->begin :
					    UINT64_MAX;
	struct output *output = out->outputs[i];
	int r = 0;

	if (sort_output_is_split(out) && out->spec->zstd_level)
		r = begin_compressed(out, i);
	else if (sort_output_is_split(out) && n_expected != UINT64_MAX && out->spec->comm)
		r = sort_output_set_shared_size(out, i, part_file_nbytes(out, i, n_expected));
	else if (sort_output_is_split(out) && n_expected != UINT64_MAX)
		r = set_part_size(output, part_file_nbytes(out, i, n_expected));
	return r < 0 || out->joined ? r : output_framing_begin(out->framing, output, n_expected);
}

int sort_output_begin_file(struct sort_output *out, uint32_t i)
{
	struct output_file *file = &out->files[i];
	int r = 0;

	if (atomic_load(&file->is_begun))
		return 0;
	pthread_mutex_lock(&out->lock);
	/* What has failed is not tried again by the next writer. */
	if (!atomic_load(&file->is_begun) && file->begin_error == 0) {
		file->begin_error = begin_file_locked(out, i);
		atomic_store(&file->is_begun, file->begin_error == 0);
	}
	r = file->begin_error;
	pthread_mutex_unlock(&out->lock);
	return r;
}

/* --- what is written --- */

/* But what another rank writes. */
static int write_local_bytes(struct sort_output *out, uint32_t i, uint64_t offset, const void *data,
			     size_t nbytes)
{
	size_t n_foreign;
	int r = sort_output_keep_foreign(out, i, offset, data, nbytes, &n_foreign);

	return r < 0 || n_foreign == nbytes ?
		       r :
		       output_write_at(out->outputs[i], offset + n_foreign,
				       (const char *)data + n_foreign, nbytes - n_foreign);
}

/* Of a file, n records from its own number `position` on. */
static int write_file_records(struct sort_output *out, uint32_t i, uint64_t position,
			      const void *records, uint64_t n, const struct digest *digest)
{
	const uint64_t item_nbytes = out->job->layout->output_nbytes;
	int r = sort_output_begin_file(out, i);

	if (r == 0)
		r = write_local_bytes(out, i, out->spec->header_nbytes + position * item_nbytes,
				      records, n * item_nbytes);
	if (r == 0 && sort_output_is_split(out))
		part_stats_add(&out->part_stats, i, position, records, n, digest);
	if (r == 0)
		atomic_fetch_add(&out->files[i].n_records, n);
	return r;
}

static int write_window(void *context, const struct merged_window *merged)
{
	struct sort_output *out = context;
	const uint64_t item_nbytes = out->job->layout->output_nbytes;
	const char *records = merged->items;
	uint64_t position = out->begin + merged->position, remaining = merged->n_items;
	uint32_t i = parts_are_partitions(out) ? merged->partition : find_file(out, position);
	int r = 0;

	for (; remaining && r == 0; i++) {
		const struct output_file *file = &out->files[i];
		const uint64_t capacity = file->end - position;
		const uint64_t n = remaining < capacity ? remaining : capacity;

		if (n == 0)
			continue;
		r = write_file_records(out, i, position - file->begin, records, n,
				       n == merged->n_items ? &merged->digest : NULL);
		position += n;
		records += n * item_nbytes;
		remaining -= n;
	}
	return r;
}

static void set_n_partitions(void *context, uint32_t n_partitions)
{
	struct sort_output *out = context;

	out->n_partitions = n_partitions;
	for (uint32_t i = 0; i < out->n_files; i++)
		if (out->outputs[i])
			output_set_n_writers(out->outputs[i], n_partitions / out->n_files);
}

void sort_output_cancel(struct sort_output *out)
{
	for (uint32_t i = 0; i < out->n_files; i++)
		if (out->outputs[i])
			output_cancel(out->outputs[i]);
}

static void cancel_sink(void *context)
{
	sort_output_cancel(context);
}

/* Where in its file a record goes, in bytes. */
static uint64_t locate_record(void *context, uint64_t position)
{
	const struct sort_output *out = context;
	const uint64_t global_position = out->begin + position;
	const struct output_file *file = &out->files[find_file(out, global_position)];

	return out->spec->header_nbytes +
	       (global_position - file->begin) * out->job->layout->output_nbytes;
}

/* In all of them what is written lies alike. NULL: this rank writes to none. */
static const struct output *any_output(const struct sort_output *out)
{
	uint32_t i = 0;

	while (i + 1 < out->n_files && !out->outputs[i])
		i++;
	return out->outputs[i];
}

struct sink sort_output_sink(struct sort_output *out)
{
	const struct output *sample = any_output(out);
	struct sink sink = {
		.context = out,
		.takes_records = true,
		.stage = STAGE_WRITE,
		.item_nbytes = out->job->layout->output_nbytes,
		.write = write_window,
		.set_n_partitions = set_n_partitions,
		.n_part_files = merge_cuts_parts(out) ? out->n_files : 0,
		.set_part_bounds = place_parts_at_cuts,
		.cancel = cancel_sink,
	};

	if (sample)
		sink.align_nbytes = output_direct_alignment(sample, &sink.base_offset);
	if (sort_output_is_split(out)) {
		sink.map_position = locate_record;
		sink.align_nbytes = out->spec->unique ? 0 : sink.align_nbytes;
	}
	sink.base_offset += out->spec->header_nbytes + out->begin * sink.item_nbytes;
	return sink;
}

/* Of what has come through a pipe the length is known only now. */
static void update_expected_size(struct sort_output *out)
{
	const struct sort_spec *spec = out->spec;

	if (out->n_expected == UINT64_MAX || spec->zstd_level || spec->comm || spec->merge_inputs ||
	    sort_output_expected_nbytes(spec, out->job) != OUTPUT_SIZE_UNKNOWN)
		return;
	output_update_expected_size(out->outputs[0],
				    spec->header_nbytes +
					    out->n_expected * out->job->layout->output_nbytes);
}

static bool is_compressed_by_ranks(const struct sort_output *out)
{
	return out->spec->comm && out->spec->zstd_level;
}

int sort_output_begin(struct sort_output *out, const struct output_framing *framing,
		      uint64_t n_records)
{
	int r = output_framing_prepare(framing);

	out->framing = framing;
	if (r < 0)
		return r;
	if (n_records > out->job->limit && !out->spec->comm) /* there it is of a part */
		n_records = out->job->limit;
	out->may_drop = out->spec->unique && !out->job->plan_request.needs_count_pass;
	/* Of what an earlier process has written, the runs may know nothing any more. */
	out->n_expected = out->may_drop || out->checkpoint ? UINT64_MAX : n_records;
	if (sort_output_is_split(out)) {
		if ((!parts_are_partitions(out) && !parts_end_at_keys(out)) || n_records == 0)
			place_equal_parts(out, n_records);
		r = part_stats_open(out->spec, out->job->layout, &out->part_stats);
		if (r == 0 && is_compressed_by_ranks(out))
			r = sort_output_open_zst(out);
		return r == 0 && out->joined ? sort_output_open_shared_parts(out) : r;
	}
	update_expected_size(out);
	if (is_compressed_by_ranks(out))
		r = sort_output_open_zst(out);
	if (r == 0 && out->is_collective_zst)
		r = sort_output_begin_zst(out, 0);
	else if (r == 0 && out->spec->comm)
		r = sort_output_set_shared_size(out, 0, out->shared_nbytes);
	if (r == 0 && !out->joined)
		r = output_framing_begin(framing, out->outputs[0], n_records);
	atomic_store(&out->files[0].is_begun, r == 0);
	return r;
}

static int fail_record_count(const char *name, uint64_t n, uint64_t n_expected)
{
	return fail(-EIO,
		    "internal error: %s has %" PRIu64 " of %" PRIu64
		    " records; the output was not written",
		    name, n, n_expected);
}

/*
 * All n records that it has are written, those of the whole from `begin` on. It is settled
 * at once: what others do to it while it is checked, or waits for the disk, is found. But of what
 * other ranks write a file system may learn as late as when they close it.
 */
static int end_file(struct sort_output *out, uint32_t i, uint64_t begin, uint64_t n)
{
	struct output_file *file = &out->files[i];
	struct stat status;
	int r;

	if (out->has_exact_sizes && n != file->end - file->begin)
		return fail_record_count(output_name(out->outputs[i]), n, file->end - file->begin);
	r = sort_output_begin_file(out, i);
	if (r == 0 && !out->is_collective_zst) /* in which all of it is */
		r = output_framing_finish(out->framing, out->outputs[i], n, i + 1 == out->n_files);
	if (r == 0 && output_is_atomic(out->outputs[i]) && !out->spec->comm)
		r = output_finalize(out->outputs[i], &status);
	file->begin = begin;
	file->end = begin + n;
	return r;
}

/* From now on files are where they have come to be. */
int sort_output_end(struct sort_output *out, uint64_t n_records)
{
	uint64_t begin = 0;
	int r = 0;

	if (out->n_expected != UINT64_MAX && n_records != out->n_expected)
		return fail_record_count(sort_output_name(out), n_records, out->n_expected);
	if (out->joined && !sort_output_is_split(out))
		out->files[0].end = n_records;
	if (out->joined)
		return 0;
	if (!sort_output_is_split(out))
		return end_file(out, 0, 0, n_records);
	for (uint32_t i = 0; i < out->n_files && r == 0; i++) {
		r = end_file(out, i, begin, atomic_load(&out->files[i].n_records));
		begin = out->files[i].end;
	}
	return r;
}

/* --- what is read back --- */

int sort_output_read_at(void *context, uint64_t position, void *buffer, size_t nbytes)
{
	struct sort_output *out = context;
	const uint64_t item_nbytes = out->job->layout->output_nbytes;
	char *to = buffer;

	position += out->begin * item_nbytes;
	for (uint32_t i = find_file(out, position / item_nbytes); nbytes > 0; i++) {
		const struct output_file *file = &out->files[i];
		const uint64_t remaining = file->end * item_nbytes - position;
		const size_t n = remaining < nbytes ? (size_t)remaining : nbytes;
		const uint64_t offset = position - file->begin * item_nbytes;
		const int r = n ? output_read_at(out->outputs[i], out->spec->header_nbytes + offset,
						 to, n) :
				  0;

		if (r < 0)
			return r;
		position += n;
		to += n;
		nbytes -= n;
	}
	return 0;
}

int sort_output_verify_framing(const struct sort_output *out)
{
	bool matches = true;
	int r = 0;

	for (uint32_t i = 0; i < out->n_files && r == 0 && matches; i++)
		r = output_framing_verify(out->framing, out->outputs[i],
					  out->files[i].end - out->files[i].begin,
					  i + 1 == out->n_files, &matches);
	if (r < 0)
		return integrity_fail_read_back(r, sort_output_name(out));
	return matches ? 0 : integrity_fail_verify(sort_output_name(out));
}
