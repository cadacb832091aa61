/*
 * sort_output_files.c - write records, header and trailers to the files of the output
 *
 * A window of the merge is written by its position in the sorted sequence. A file begins at such a
 * position and has a header of its own. It is begun when its first record is written: by then the
 * number of its records is known, if it is known before the end at all.
 */
#include "src/sort/sort_output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/thread.h"
#include "src/comm/comm.h"

/* --- header and trailers --- */

uint64_t sort_output_framing_nbytes(const struct input *input, uint64_t header_nbytes)
{
	uint64_t nbytes = header_nbytes;

	for (size_t i = 0; i < input_n_files(input); i++)
		nbytes += input_trailer(input, i).nbytes;
	return nbytes;
}

int sort_output_make_header(const struct sort_spec *spec, const struct layout *layout,
			    const struct input *input, struct output_header *ret_header)
{
	const struct output_header_params params = {
		.keys = spec->keys,
		.n_keys = spec->n_keys,
		.count = spec->count,
		.count_is_be = layout->projection.count_is_big_endian,
		.keys_only = spec->keys_only,
		.index = spec->argsort,
	};

	if (spec->omit_header) {
		*ret_header = (struct output_header){ 0 };
		return 0;
	}
	return input_make_header(input, &params, ret_header);
}

bool sort_output_needs_count(const struct sort_spec *spec, const struct output_header *header,
			     bool is_ordered)
{
	return output_header_has_count(header) && spec->unique && is_ordered;
}

/* Make the final header: all inputs have been read, or can be. */
static int complete_header(struct sort_output *out)
{
	const struct input *first = out->merge_inputs ? out->merge_inputs->inputs[0] :
							out->job->input;
	struct output_header header;
	const int r = sort_output_make_header(out->spec, out->job->layout, first, &header);

	if (r < 0)
		return r;
	output_header_free(out->header);
	*out->header = header;
	return 0;
}

/* Return whether the header can wait for the final number of records. */
static bool writes_header_last(const struct sort_output *out, const struct output *output)
{
	return output_header_has_count(out->header) && !output_is_ordered(output);
}

static int write_header(struct sort_output *out, uint32_t i, uint64_t n)
{
	output_header_set_count(out->header, n);
	return out->header->nbytes ?
		       file_set_write(&out->set, i, 0, out->header->bytes, out->header->nbytes) :
		       0;
}

/* The trailers of all inputs, in their order. A merge has opened each input by itself. */
struct trailer_iterator {
	const struct sort_output *out;
	size_t input, file;
};

static const struct input *current_input(const struct trailer_iterator *trailers)
{
	const struct input_runs *merge_inputs = trailers->out->merge_inputs;
	const size_t n = merge_inputs ? merge_inputs->n : 1;

	if (trailers->input >= n)
		return NULL;
	return merge_inputs ? merge_inputs->inputs[trailers->input] : trailers->out->job->input;
}

static bool next_trailer(struct trailer_iterator *trailers, struct input_trailer *ret_trailer)
{
	const struct input *input;

	while ((input = current_input(trailers)) && trailers->file == input_n_files(input)) {
		trailers->input++;
		trailers->file = 0;
	}
	if (input)
		*ret_trailer = input_trailer(input, trailers->file++);
	return input;
}

/* Write the header of a file of n records, if it had to wait, and the trailers. */
static int finish_framing(struct sort_output *out, uint32_t i, uint64_t n)
{
	struct output *output = out->set.outputs[i];
	uint64_t offset = out->header->nbytes + n * out->job->layout->output_nbytes;
	struct trailer_iterator trailers = { .out = out };
	struct input_trailer trailer;
	int r = writes_header_last(out, output) ? write_header(out, i, n) : 0;

	while (i + 1 == out->set.n && r == 0 && next_trailer(&trailers, &trailer)) {
		if (trailer.nbytes)
			r = output_write_at(output, offset, trailer.data, trailer.nbytes);
		offset += trailer.nbytes;
	}
	return r;
}

/* Read back nbytes at `offset`, and compare. */
static int verify_bytes(struct output *output, uint64_t offset, const void *bytes, uint64_t nbytes,
			bool *ret_is_same)
{
	const unsigned char *expected = bytes;
	unsigned char actual[4096];
	uint64_t done = 0;

	for (*ret_is_same = true; done < nbytes && *ret_is_same; done += sizeof actual) {
		const uint64_t remaining = nbytes - done;
		const size_t n = remaining < sizeof actual ? (size_t)remaining : sizeof actual;
		const int r = output_read_at(output, offset + done, actual, n);

		if (r < 0)
			return r;
		*ret_is_same = memcmp(actual, expected + done, n) == 0;
	}
	return 0;
}

static int verify_file_framing(const struct sort_output *out, uint32_t i, bool *ret_is_same)
{
	struct output *output = out->set.outputs[i];
	const uint64_t n = out->files[i].end - out->files[i].begin;
	uint64_t offset = out->header->nbytes + n * out->job->layout->output_nbytes;
	struct trailer_iterator trailers = { .out = out };
	struct input_trailer trailer;
	int r;

	output_header_set_count(out->header, n);
	r = verify_bytes(output, 0, out->header->bytes, out->header->nbytes, ret_is_same);
	while (i + 1 == out->set.n && r == 0 && *ret_is_same && next_trailer(&trailers, &trailer)) {
		r = verify_bytes(output, offset, trailer.data, trailer.nbytes, ret_is_same);
		offset += trailer.nbytes;
	}
	return r;
}

int sort_output_fail_verify(const char *name)
{
	return fail(-EIO, "%s: data read back differs from the data written; not committed", name);
}

int sort_output_fail_read_back(int r, const char *name)
{
	return r == -ESPIPE ? fail(r, "--verify: %s: cannot be read back", name) : r;
}

int sort_output_verify_framing(const struct sort_output *out)
{
	bool is_same = true;
	int r = 0;

	for (uint32_t i = 0; i < out->set.n && r == 0 && is_same; i++)
		r = verify_file_framing(out, i, &is_same);
	if (r < 0)
		return sort_output_fail_read_back(r, sort_output_name(out));
	return is_same ? 0 : sort_output_fail_verify(sort_output_name(out));
}

/* --- statistics of part files --- */

/*
 * Windows of a part file are written in any order by several threads. The digest is that of the
 * records as they are in the file, so that a reader can check it (gsort-check).
 */

/* Set the offsets of the keys in the output: after a count, or keys only, one after the other. */
static void locate_output_keys(const struct sort_spec *spec, struct part_stats_table *table)
{
	const uint64_t keys_begin = spec->count ? sizeof(uint64_t) : 0;
	uint64_t offset = keys_begin;

	for (uint32_t i = 0; i < table->n_keys; i++) {
		struct key *key = &table->keys[i];

		*key = spec->keys[i];
		key->offset = spec->keys_only ? offset : keys_begin + key->offset;
		offset += key->nbytes;
	}
}

static int part_stats_open(const struct sort_output *out, struct part_stats_table *ret_table)
{
	const struct projection *projection = &out->job->layout->projection;
	const struct sort_spec *spec = out->spec;

	*ret_table = (struct part_stats_table){
		.needs_digest = projection->has_count || projection->has_position,
		.n_keys = spec->argsort ? 0 : spec->n_keys,
	};
	pthread_mutex_init(&ret_table->lock, NULL);
	ret_table->keys = calloc(ret_table->n_keys + UINT64_C(1), sizeof *ret_table->keys);
	ret_table->stats = calloc(out->set.n, sizeof *ret_table->stats);
	if (!ret_table->keys || !ret_table->stats)
		return fail(-ENOMEM, "no memory for %u part files", out->set.n);
	locate_output_keys(spec, ret_table);
	return 0;
}

void part_stats_close(struct part_stats_table *table)
{
	if (table->keys || table->stats)
		pthread_mutex_destroy(&table->lock);
	free(table->keys);
	free(table->stats);
	*table = (struct part_stats_table){ 0 };
}

static struct digest digest_records(const unsigned char *records, uint64_t n, uint64_t nbytes)
{
	struct digest digest = { .n_records = n };

	for (uint64_t i = 0; i < n; i++)
		digest.sum += digest_record(records + i * nbytes, nbytes);
	return digest;
}

/* Add n records from position `position` of the file on. digest: theirs; NULL: not known. */
static void add_part_stats(struct sort_output *out, uint32_t i, uint64_t position,
			   const void *records, uint64_t n, const struct digest *digest)
{
	struct part_stats_table *table = &out->part_stats;
	const uint64_t nbytes = out->job->layout->output_nbytes;
	const unsigned char *first = records, *last = first + (n - 1) * nbytes;
	const struct digest records_digest =
		digest && !table->needs_digest ? *digest : digest_records(records, n, nbytes);
	struct part_stats *stats = &table->stats[i];

	SCOPED_LOCK(&table->lock);
	digest_add(&stats->digest, records_digest);
	if (stats->first_end == 0 || position < stats->first_end) {
		stats->first_end = position + 1;
		part_manifest_format_keys(table->keys, table->n_keys, first, stats->first);
	}
	if (position + n > stats->last_end) {
		stats->last_end = position + n;
		part_manifest_format_keys(table->keys, table->n_keys, last, stats->last);
	}
}

/* Statistics of a part file as they are sent to other ranks. */
struct indexed_part_stats {
	uint32_t part_index;
	struct part_stats stats;
};

static void merge_part_stats(struct part_stats *sum, const struct part_stats *stats)
{
	digest_add(&sum->digest, stats->digest);
	if (sum->first_end == 0 || stats->first_end < sum->first_end) {
		sum->first_end = stats->first_end;
		memcpy(sum->first, stats->first, sizeof sum->first);
	}
	if (stats->last_end > sum->last_end) {
		sum->last_end = stats->last_end;
		memcpy(sum->last, stats->last, sizeof sum->last);
	}
}

/* Return the number of part files to which this rank has written. */
static size_t collect_part_stats(const struct sort_output *out,
				 struct indexed_part_stats *ret_stats)
{
	const struct part_stats *stats = out->part_stats.stats;
	size_t n = 0;

	for (uint32_t i = 0; i < out->set.n; i++)
		if (stats[i].first_end > 0)
			ret_stats[n++] = (struct indexed_part_stats){ i, stats[i] };
	return n;
}

static int merge_gathered_stats(struct sort_output *out, const struct indexed_part_stats *gathered,
				size_t n)
{
	struct part_stats *stats = out->part_stats.stats;

	memset(stats, 0, out->set.n * sizeof *stats);
	for (size_t i = 0; i < n; i++) {
		if (gathered[i].part_index >= out->set.n || gathered[i].stats.first_end == 0)
			return fail(-EPROTO, "internal error: invalid part file of another rank");
		merge_part_stats(&stats[gathered[i].part_index], &gathered[i].stats);
	}
	return 0;
}

int part_stats_gather(struct sort_output *out)
{
	struct comm *comm = out->spec->comm;
	const unsigned n_ranks = comm_size(comm);
	struct indexed_part_stats *own_stats = calloc(out->set.n, sizeof *own_stats);
	size_t *sizes = calloc(n_ranks, sizeof *sizes), nbytes = 0;
	void *gathered = NULL;
	int r = own_stats && sizes ? 0 :
				     fail(-ENOMEM, "no memory for part files of %u ranks", n_ranks);

	if (r == 0)
		r = comm_allgatherv(comm, own_stats,
				    collect_part_stats(out, own_stats) * sizeof *own_stats,
				    &gathered, sizes);
	for (unsigned i = 0; i < n_ranks && r == 0; i++)
		nbytes += sizes[i];
	if (r == 0)
		r = merge_gathered_stats(out, gathered, nbytes / sizeof *own_stats);
	free(gathered);
	free(sizes);
	free(own_stats);
	return r;
}

static void describe_part_file(const struct sort_output *out, uint32_t i,
			       struct manifest_part *ret_part)
{
	const struct part_stats *stats = &out->part_stats.stats[i];

	*ret_part = (struct manifest_part){ .n_records = stats->digest.n_records,
					    .checksum = stats->digest.sum };
	if (stats->digest.n_records && out->part_stats.n_keys) {
		ret_part->first_key = strdup(stats->first);
		ret_part->last_key = strdup(stats->last);
	}
}

int part_stats_make_manifest(const struct sort_output *out, struct part_manifest *ret_manifest)
{
	const struct part_stats_table *table = &out->part_stats;
	const struct sort_spec *spec = out->spec;

	*ret_manifest = (struct part_manifest){
		.content = output_header_has_count(out->header) ? PART_CONTENT_NPY :
								  PART_CONTENT_RECORDS,
		.is_zstd = spec->zstd_level > 0,
		.record_nbytes = out->job->layout->output_nbytes,
		.header_nbytes = spec->header_nbytes,
		.keys = malloc((table->n_keys + UINT64_C(1)) * sizeof *ret_manifest->keys),
		.n_keys = table->n_keys,
		.unique = spec->unique,
		.split_by_keys = spec->split_by_keys || spec->unique,
		.parts = calloc(out->set.n, sizeof *ret_manifest->parts),
	};
	if (!ret_manifest->keys || !ret_manifest->parts)
		return fail(-ENOMEM, "no memory for a part manifest");
	memcpy(ret_manifest->keys, table->keys, table->n_keys * sizeof *ret_manifest->keys);
	ret_manifest->n_parts = out->set.n;
	for (uint32_t i = 0; i < out->set.n; i++) {
		describe_part_file(out, i, &ret_manifest->parts[i]);
		ret_manifest->n_records += ret_manifest->parts[i].n_records;
	}
	return part_manifest_splits_key(ret_manifest) ?
		       fail(-EIO,
			    "internal error: two part files have the same key; the output was "
			    "not written") :
		       0;
}

/* --- placing the files --- */

/* Return whether each partition of the merge becomes a file, of a length known after the merge. */
static bool files_are_partitions(const struct sort_output *out)
{
	return sort_output_is_split(out) && out->may_drop && out->job->limit == UINT64_MAX;
}

/*
 * Return whether files end where the key changes, at positions that are known when the runs are
 * cut. With -u no key is there twice, so files may end anywhere.
 */
static bool files_end_at_keys(const struct sort_output *out)
{
	return sort_output_is_split(out) && out->spec->split_by_keys && !out->spec->unique;
}

/* Return whether the merge cuts its runs at the files. Ranks have cut theirs before. */
static bool merge_cuts_files(const struct sort_output *out)
{
	return files_are_partitions(out) || (files_end_at_keys(out) && !out->spec->comm);
}

/* Place files of equal length. If the merge drops records, the last files are shorter. */
static void place_equal_files(struct sort_output *out, uint64_t n_records)
{
	for (uint32_t i = 0; i < out->set.n; i++) {
		struct output_file *file = &out->files[i];

		file->begin = equal_share_begin(n_records, i, out->set.n);
		file->end = equal_share_begin(n_records, i + 1, out->set.n);
	}
	out->has_exact_sizes = !out->may_drop;
}

void sort_output_place_part_files(struct sort_output *out, const uint64_t *part_bounds)
{
	for (uint32_t i = 0; i < out->set.n; i++) {
		out->files[i].begin = part_bounds[i];
		out->files[i].end = part_bounds[i + 1];
	}
	out->has_exact_sizes = true;
}

/* sink.set_part_bounds: the merge has cut its runs between keys. */
static void place_files_at_cuts(void *context, const uint64_t *part_bounds)
{
	sort_output_place_part_files(context, part_bounds);
}

uint32_t sort_output_find_file(const struct sort_output *out, uint64_t position)
{
	return (uint32_t)find_interval(out->files, sizeof *out->files,
				       offsetof(struct output_file, begin), out->set.n, position);
}

/* --- beginning a file --- */

static uint64_t file_nbytes(const struct sort_output *out, uint32_t i, uint64_t n_records)
{
	const bool is_last = i + 1 == out->set.n;

	return out->spec->header_nbytes + n_records * out->job->layout->output_nbytes +
	       (is_last ? sort_output_framing_nbytes(out->job->input, 0) : 0);
}

void sort_output_set_part_sizes(struct sort_output *out, uint64_t n_records)
{
	for (uint32_t i = 0; i < out->set.n; i++)
		output_update_expected_size(
			out->set.outputs[i],
			file_nbytes(out, i,
				    equal_share_begin(n_records, i + 1, out->set.n) -
					    equal_share_begin(n_records, i, out->set.n)));
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

static bool has_all_records(const struct sort_output *out, const struct output_file *file)
{
	return atomic_load(&file->n_records) == sort_output_count_local(out, file) ||
	       files_are_partitions(out);
}

static int finish_file_writes(struct sort_output *out, uint32_t i)
{
	struct stat status;

	out->files[i].is_finished = true;
	return out->set.is_compressed ? file_set_end_frames(&out->set, i, true) :
					output_finalize(out->set.outputs[i], &status);
}

/* Finish complete files before file n, to free the memory of their compressors. With the lock. */
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
	return out->set.is_compressed ? 0 : /* by the first write */
					output_compress(out->set.outputs[i], out->spec->zstd_level,
							spec_n_compressors(out->spec));
}

/*
 * Set the size of a file, unless it was known when the file was opened. The space was checked
 * before the sort; by now the runs use some of it.
 */
static int set_file_size(struct sort_output *out, uint32_t i, uint64_t nbytes)
{
	struct output *output = out->set.outputs[i];
	int r;

	if (out->spec->comm)
		return sort_output_set_shared_size(out, i, nbytes);
	if (!sort_output_is_split(out) &&
	    (out->spec->merge_inputs ||
	     sort_output_expected_nbytes(out->spec, out->job) != OUTPUT_SIZE_UNKNOWN))
		return 0;
	r = output_check_limit(output, nbytes);
	if (r == 0)
		output_update_expected_size(output, nbytes);
	return r;
}

/* Requires the lock. Nothing is in the file but what other ranks have written. */
static int begin_file_locked(struct sort_output *out, uint32_t i)
{
	const struct output_file *file = &out->files[i];
	const uint64_t n_expected = out->has_exact_sizes && file->end != UINT64_MAX ?
					    file->end - file->begin :
					    UINT64_MAX;
	int r = 0;

	if (out->spec->zstd_level)
		r = begin_compressed(out, i);
	else if (n_expected != UINT64_MAX)
		r = set_file_size(out, i, file_nbytes(out, i, n_expected));
	if (r < 0 || out->set.is_joined || writes_header_last(out, out->set.outputs[i]))
		return r;
	return write_header(out, i, n_expected);
}

int sort_output_begin_file(struct sort_output *out, uint32_t i)
{
	struct output_file *file = &out->files[i];

	if (atomic_load(&file->is_begun))
		return 0;
	SCOPED_LOCK(&out->lock);
	/* After a failure the next writer does not try again. */
	if (!atomic_load(&file->is_begun) && file->begin_error == 0) {
		file->begin_error = begin_file_locked(out, i);
		atomic_store(&file->is_begun, file->begin_error == 0);
	}
	return file->begin_error;
}

/* --- writing records --- */

/* Write n records at `position` of a file. */
static int write_file_records(struct sort_output *out, uint32_t i, uint64_t position,
			      const void *records, uint64_t n, const struct digest *digest)
{
	const uint64_t item_nbytes = out->job->layout->output_nbytes;
	int r = sort_output_begin_file(out, i);

	if (r == 0)
		r = file_set_write(&out->set, i, out->spec->header_nbytes + position * item_nbytes,
				   records, n * item_nbytes);
	if (r == 0 && sort_output_is_split(out))
		add_part_stats(out, i, position, records, n, digest);
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
	uint32_t i = files_are_partitions(out) ? merged->partition :
						 sort_output_find_file(out, position);
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

static void set_n_partitions(void *context, uint32_t n_partitions, uint32_t n_writers)
{
	struct sort_output *out = context;
	/* Up to PLAN_MAX_FILE_WRITERS writers of one partition are as fast without mappings. */
	const uint32_t n = n_partitions == 1 && n_writers <= PLAN_MAX_FILE_WRITERS ?
				   1 :
				   n_partitions * n_writers;

	out->n_partitions = n_partitions;
	for (uint32_t i = 0; i < out->set.n; i++)
		if (out->set.outputs[i])
			output_set_n_writers(out->set.outputs[i], n / out->set.n);
}

static void cancel_sink(void *context)
{
	const struct sort_output *out = context;

	file_set_cancel(&out->set);
}

/* Return the offset of a record in its file. */
static uint64_t locate_record(void *context, uint64_t position)
{
	const struct sort_output *out = context;
	const uint64_t global_position = out->begin + position;
	const struct output_file *file = &out->files[sort_output_find_file(out, global_position)];

	return out->spec->header_nbytes +
	       (global_position - file->begin) * out->job->layout->output_nbytes;
}

/* Return any open file, because all have the same alignment; NULL: this rank writes to none. */
static const struct output *any_output(const struct sort_output *out)
{
	uint32_t i = 0;

	while (i + 1 < out->set.n && !out->set.outputs[i])
		i++;
	return out->set.outputs[i];
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
		.n_part_files = merge_cuts_files(out) ? out->set.n : 0,
		.set_part_bounds = place_files_at_cuts,
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

/* --- beginning and end --- */

int sort_output_begin(struct sort_output *out, const struct input_runs *merge_inputs,
		      uint64_t n_records)
{
	const struct sort_spec *spec = out->spec;
	int r;

	out->merge_inputs = merge_inputs;
	r = complete_header(out);
	if (r < 0)
		return r;
	if (n_records > out->job->limit && !spec->comm) /* of ranks: the limit of the partition */
		n_records = out->job->limit;
	out->may_drop = spec->unique && !out->job->plan_request.needs_count_pass;
	out->n_expected = out->may_drop ? UINT64_MAX : n_records;
	if ((!files_are_partitions(out) && !files_end_at_keys(out)) || n_records == 0)
		place_equal_files(out, n_records);
	if (sort_output_is_split(out))
		r = part_stats_open(out, &out->part_stats);
	if (r == 0 && out->rank_begin)
		r = sort_output_place_ranks(out);
	if (r == 0 && spec->comm && spec->zstd_level)
		r = file_set_compress(&out->set, spec_n_compressors(spec), out->job->spill);
	return r == 0 && out->set.is_joined && sort_output_is_split(out) ?
		       sort_output_open_shared_parts(out) :
		       r;
}

static int fail_record_count(const char *name, uint64_t n, uint64_t n_expected)
{
	return fail(-EIO,
		    "internal error: %s has %" PRIu64 " of %" PRIu64
		    " records; the output was not written",
		    name, n, n_expected);
}

/*
 * End file i, whose first record is record `begin` of the output. It is finalised at once, so that
 * changes by other processes are detected from now on, also while it is verified or synced. But a
 * file system may report the writes of other ranks as late as when they close the file.
 */
static int end_file(struct sort_output *out, uint32_t i, uint64_t begin)
{
	struct output_file *file = &out->files[i];
	const uint64_t n = atomic_load(&file->n_records);
	struct stat status;
	int r;

	if (out->has_exact_sizes && n != file->end - file->begin)
		return fail_record_count(output_name(out->set.outputs[i]), n,
					 file->end - file->begin);
	r = sort_output_begin_file(out, i);
	if (r == 0 && !out->set.is_compressed) /* else it is in the frames */
		r = finish_framing(out, i, n);
	if (r == 0 && output_is_atomic(out->set.outputs[i]) && !out->spec->comm)
		r = output_finalize(out->set.outputs[i], &status);
	file->begin = begin;
	file->end = begin + n;
	return r;
}

int sort_output_end(struct sort_output *out, uint64_t n_records)
{
	uint64_t begin = 0;
	int r = 0;

	if (out->n_expected != UINT64_MAX && n_records != out->n_expected)
		return fail_record_count(sort_output_name(out), n_records, out->n_expected);
	for (uint32_t i = 0; i < out->set.n && r == 0 && !out->set.is_joined; i++) {
		r = end_file(out, i, begin);
		begin = out->files[i].end;
	}
	return r;
}

/* --- reading back --- */

int sort_output_read_at(void *context, uint64_t position, void *buffer, size_t nbytes)
{
	struct sort_output *out = context;
	const uint64_t item_nbytes = out->job->layout->output_nbytes;
	char *to = buffer;

	position += out->begin * item_nbytes;
	for (uint32_t i = sort_output_find_file(out, position / item_nbytes); nbytes > 0; i++) {
		const struct output_file *file = &out->files[i];
		const uint64_t remaining = file->end * item_nbytes - position;
		const size_t n = remaining < nbytes ? (size_t)remaining : nbytes;
		const uint64_t offset = position - file->begin * item_nbytes;
		const int r = n ? output_read_at(out->set.outputs[i],
						 out->spec->header_nbytes + offset, to, n) :
				  0;

		if (r < 0)
			return r;
		position += n;
		to += n;
		nbytes -= n;
	}
	return 0;
}
