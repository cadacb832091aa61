/*
 * sort_output_ranks.c - output files that several ranks write (see sort_output.h)
 *
 * The ranks other than rank 0 join the files in which they have records (file_set.h). Only
 * rank 0 writes headers, trailers and the manifest: when all ranks have merged, it learns the sizes
 * and statistics of the others and continues as if it had written everything.
 *
 * Each stripe of a file is written by one rank (file_set.h). Rank 0 writes the page that
 * contains a header and the first records. It makes the frames of an empty file, and of a header
 * before records.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/comm/comm.h"
#include "src/sort/sort_output.h"

/* --- opened --- */

int sort_output_open_shared_parts(struct sort_output *out)
{
	int r = 0;

	for (uint32_t i = 0; i < out->set.n && r == 0; i++) {
		const struct output_file *file = &out->files[i];

		if (file->begin >= out->end || file->end <= out->begin || file->begin == file->end)
			continue;
		r = file_set_join_part(&out->set, i);
	}
	if (r == 0)
		sort_output_choose_io_mode(out, out->cache_policy);
	return r;
}

/* --- stripes --- */

/* Return the size of a file of n records. */
static uint64_t file_nbytes(const struct sort_output *out, uint64_t n)
{
	return out->spec->header_nbytes + n * out->job->layout->output_nbytes;
}

static struct file_position locate_rank(const void *context, unsigned rank)
{
	const struct sort_output *out = context;
	const uint64_t begin = out->rank_begin[rank];
	const uint32_t file = sort_output_find_file(out, begin);

	return (struct file_position){ file, file_nbytes(out, begin - out->files[file].begin) };
}

int sort_output_place_ranks(struct sort_output *out)
{
	return file_set_place_ranks(&out->set, out->spec->header_nbytes, locate_rank, out);
}

/* --- written --- */

/* The effect of a mapping on the page cache of another host is unknown. */
int sort_output_set_shared_size(struct sort_output *out, uint32_t i, uint64_t nbytes)
{
	const struct output_file *file = &out->files[i];
	const int r = output_check_limit(out->set.outputs[i], nbytes);

	if (r < 0 || !out->set.names[i].preallocates)
		return r;
	if (sort_output_is_split(out) &&
	    sort_output_count_local(out, file) == file->end - file->begin)
		output_update_expected_size(out->set.outputs[i], nbytes);
	else if (file_set_have_one_host(&out->set))
		output_enable_shared_mmap(out->set.outputs[i], nbytes);
	return 0;
}

/* --- compressed --- */

/* Return the number of records that all ranks have written to the file. */
static uint64_t n_file_records(const struct sort_output *out, uint32_t i, uint64_t n_total)
{
	return sort_output_is_split(out) ? out->part_stats.stats[i].digest.n_records : n_total;
}

/* The part to be read back may begin in a frame that another host has written. */
static int prepare_zst_readback(struct sort_output *out, uint32_t i)
{
	struct zst_index *index = &out->set.files[i].index;
	const struct zst_index global_index = *index;
	int r = 0;

	if (!out->set.outputs[i])
		return 0;
	if (!file_set_have_one_host(&out->set))
		r = output_sync(out->set.outputs[i]);
	if (r < 0)
		return r;
	*index = (struct zst_index){ 0 };
	return output_set_zst_index(out->set.outputs[i], global_index);
}

static int write_frames(struct sort_output *out, uint64_t n_total)
{
	uint64_t *nbytes = calloc(out->set.n, sizeof *nbytes);
	int r = nbytes ? 0 : fail(-ENOMEM, "no memory for %u outputs", out->set.n);

	for (uint32_t i = 0; i < out->set.n && r == 0; i++) {
		nbytes[i] = file_nbytes(out, n_file_records(out, i, n_total));
		if (!out->set.is_joined)
			r = sort_output_begin_file(out, i);
	}
	if (r == 0)
		r = file_set_write_frames(&out->set, nbytes);
	free(nbytes);
	for (uint32_t i = 0; i < out->set.n && r == 0 && out->spec->verify; i++)
		r = prepare_zst_readback(out, i);
	return r;
}

/* --- together --- */

/* The rank that verifies these records may be on another host. */
static int sync_foreign_stripes(struct sort_output *out)
{
	int r = 0;

	if (!out->spec->verify || file_set_have_one_host(&out->set))
		return 0;
	for (uint32_t i = 0; i < out->set.n && r == 0; i++)
		if (out->set.files[i].foreign_nbytes > 0)
			r = output_sync(out->set.outputs[i]);
	return r;
}

int sort_output_sync_ranks(struct sort_output *out, uint64_t n_total)
{
	int r = file_set_exchange(&out->set);

	if (r == 0)
		r = sync_foreign_stripes(out);
	if (r == 0 && sort_output_is_split(out))
		r = part_stats_gather(out);
	if (r == 0 && out->set.is_compressed)
		r = write_frames(out, n_total);

	for (uint32_t i = 0; i < out->set.n && r == 0 && !out->set.is_joined; i++) {
		struct output_file *file = &out->files[i];
		const uint64_t n = n_file_records(out, i, n_total);

		file_set_record_remote_writes(&out->set, i,
					      file_nbytes(out, atomic_load(&file->n_records)),
					      file_nbytes(out, n));
		atomic_store(&file->n_records, n);
	}
	return r;
}

/* --- the end --- */

int sort_output_close_joined(struct sort_output *out)
{
	int r = 0;

	if (out->set.is_joined) {
		/* No rank can remove the files once they are closed. */
		r = input_check_state(out->job->input);
		cancellation_clear_wakeup(out->spec->cancellation);
		file_set_add_io_stats(&out->set, &out->io_stats);
	}
	return r < 0 ? r : file_set_close_joined(&out->set);
}
