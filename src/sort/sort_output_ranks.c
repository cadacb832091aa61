/*
 * sort_output_ranks - files that several ranks write to (see sort_output.h)
 *
 * The first rank begins each of them, under a hidden name, and gives it its own in the end. The
 * others join those in which they have something to write. Of what is around the records, and of
 * the part manifest, they know nothing: when all have written, the first rank is told how much, and
 * what is known of the parts, as if it had done all of it alone.
 *
 * A rank compresses one file after the other: one is done when the next has begun, but the last,
 * whose last frame may have content of ranks behind this one. When all have merged, that comes, and
 * who has frames of which file is told to all (src/exchange/collective_zst.h). Nobody has records of an
 * empty file, and what is in front of the records is the first rank's, who then makes these frames.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/comm/comm.h"
#include "src/sort/sort_output_internal.h"
#include "src/sort/setup.h"

/* --- opened --- */

static int begin_one(struct result *result, uint32_t i, const char *path, uint64_t nbytes)
{
	const int r = output_open_shared(result->job->io, path, nbytes, i == 0, &result->owner,
					 &result->outputs[i]);

	if (r < 0)
		return r;
	memcpy(result->names[i].name, output_shared_name(result->outputs[i]),
	       sizeof result->names[i].name);
	result->names[i].reserves = output_reserves(result->outputs[i]);
	return 0;
}

/* And the list, which is the first rank's alone. */
static int begin_parts(struct result *result)
{
	const uint64_t nbytes = result_expected_nbytes(result->spec, result->job);
	const struct output_space_to_come nothing = { 0 }; /* ranks give nothing back */
	int r = part_files_open(result->job->io, result->spec->output_path, result->n_files,
				&result->part_files);

	for (uint32_t i = 0; i < result->n_files && r == 0; i++)
		r = begin_one(result, i, part_files_path(result->part_files, i),
			      OUTPUT_SIZE_UNKNOWN);
	if (r == 0)
		r = output_open(result->job->io,
				part_files_path(result->part_files, result->n_files),
				OUTPUT_SIZE_UNKNOWN, &result->outputs[result->n_files]);
	return r == 0 && nbytes != OUTPUT_SIZE_UNKNOWN ?
		       output_check_room(result->outputs[0], nbytes, &nothing) :
		       r;
}

static int join_one(struct result *result, uint32_t i, const char *path)
{
	struct shared_name *name = &result->names[i];

	name->name[sizeof name->name - 1] = '\0';
	return output_join(result->job->io, path, name->name, &result->outputs[i]);
}

/*
 * Which parts are this rank's is known when all is sorted; whether it sees them had better be known
 * before.
 */
static int look_at_parts(struct result *result)
{
	char *path;
	int r = part_files_make_path(result->spec->output_path, result->n_files, 0, &path);

	if (r < 0)
		return r;
	r = join_one(result, 0, path);
	if (r == 0) {
		r = output_leave(result->outputs[0]);
		result->outputs[0] = NULL;
	}
	free(path);
	return r;
}

int result_open_shared(struct result *result, uint64_t nbytes)
{
	const struct sort_spec *spec = result->spec;
	const bool has_parts = result_has_parts(result);
	int r = 0, told;

	result->is_joined = ranks_rank(spec->ranks) != 0;
	result->shared_nbytes = nbytes; /* later the job has the own part of the limit */
	result->names = calloc(result->n_files, sizeof *result->names);
	if (!result->names)
		r = fail(-ENOMEM, "no memory for the names of %u files", result->n_files);
	else if (!result->is_joined)
		r = has_parts ? begin_parts(result) :
				begin_one(result, 0, spec->output_path, nbytes);
	if (r < 0)
		return r;
	told = ranks_broadcast(spec->ranks, result->names, result->n_files * sizeof *result->names,
			       0);
	if (told < 0)
		return told;
	if (result->is_joined)
		r = has_parts ? look_at_parts(result) : join_one(result, 0, spec->output_path);
	/* Should the first fail at what comes next it removes the file, which all have by then. */
	return r < 0 ? r : ranks_barrier(spec->ranks);
}

static int join_part(struct result *result, uint32_t i)
{
	int r = 0;

	if (!result->paths)
		result->paths = calloc(result->n_files, sizeof *result->paths);
	if (!result->paths)
		return fail(-ENOMEM, "no memory for the names of %u files", result->n_files);
	if (!result->paths[i])
		r = part_files_make_path(result->spec->output_path, result->n_files, i,
					 &result->paths[i]);
	return r < 0 ? r : join_one(result, i, result->paths[i]);
}

/*
 * All saw the directory in the beginning. If a file is gone now, most likely a rank has failed and
 * removed it: that one's reason is to be said, and not what this one misses.
 */
static int join_part_or_end(struct result *result, uint32_t i)
{
	struct messages *before = messages_enter(NULL);
	int r = join_part(result, i);

	messages_enter(before);
	if (r == 0)
		return 0;
	r = r == -ENOENT ? ranks_await_failure(result->spec->ranks) : 0;
	return r < 0 ? r : join_part(result, i);
}

int result_join_parts(struct result *result)
{
	int r = 0;

	for (uint32_t i = 0; i < result->n_files && r == 0; i++) {
		const struct result_file *file = &result->files[i];

		if (file->begin >= result->end || file->end <= result->begin ||
		    file->begin == file->end)
			continue;
		r = join_part_or_end(result, i);
	}
	if (r == 0)
		result_choose_way(result, result->use);
	return r;
}

/* --- written --- */

/* Of another machine's page cache it is not known what a mapping does to it. */
int result_share_file(struct result *result, uint32_t i, uint64_t nbytes)
{
	const struct result_file *file = &result->files[i];

	int r;

	if (nbytes == OUTPUT_SIZE_UNKNOWN)
		return 0;
	r = output_check_limit(result->outputs[i], nbytes);
	if (r < 0 || !result->names[i].reserves)
		return r;
	if (result_has_parts(result) && result_count_own(result, file) == file->end - file->begin)
		output_expect_late(result->outputs[i], nbytes);
	else if (result_is_on_one_machine(result->spec->ranks))
		output_share(result->outputs[i], nbytes);
	return 0;
}

/* Of a file that has n records in the end, and n_own of this rank. */
static void note_others(struct result *result, uint32_t i, uint64_t n, uint64_t n_own)
{
	const uint64_t item_nbytes = result->job->layout->output_nbytes;
	const uint64_t foreign_nbytes = atomic_load(&result->files[i].foreign_nbytes);

	if (n > n_own)
		output_note_others(result->outputs[i], (n - n_own) * item_nbytes - foreign_nbytes,
				   result->spec->header_nbytes + n * item_nbytes);
}

/* --- compressed --- */

int result_open_frames(struct result *result)
{
	int r = 0;

	result->file_stripe_nbytes = result->stripe_nbytes;
	result->stripe_nbytes = ZST_WRITER_FRAME_NBYTES;
	result->is_framed = true;
	for (uint32_t i = 0; i < result->n_files && r == 0; i++)
		r = frames_open(result->spec->ranks, result->job->spill, &result->files[i].frames);
	return r;
}

void result_close_frames(struct result *result)
{
	for (uint32_t i = 0; result->files && i < result->n_files; i++) {
		frames_close(result->files[i].frames);
		zst_index_free(&result->files[i].index);
	}
}

int result_begin_frames(struct result *result, uint32_t i)
{
	const struct zst_sink sink = frames_sink(result->files[i].frames);

	return output_compress_share(result->outputs[i], result->spec->zstd_level,
				     setup_n_compressors(result->spec),
				     result_find_begin(result, i), &sink);
}

int result_end_frames(struct result *result, uint32_t i, bool may_be_none)
{
	struct result_file *file = &result->files[i];
	const int r = output_end_share(result->outputs[i], may_be_none, &file->index);

	file->is_settled = r == 0;
	return r;
}

int result_take_edge(struct result *result, uint32_t i, uint64_t offset, const void *data,
		     size_t nbytes)
{
	struct result_file *file = &result->files[i];

	if (!result->frames_are_made)
		return frames_keep_content(file->frames, offset, data, nbytes);
	file->stored_nbytes += nbytes;
	return output_write_at(result->outputs[i], offset, data, nbytes);
}

/* Of what all ranks have of it. */
static uint64_t content_nbytes(const struct result *result, uint32_t i, uint64_t n_all)
{
	const uint64_t n = result_has_parts(result) ? part_notes_n_records(&result->notes, i) :
						      n_all;

	return result->spec->header_nbytes + n * result->job->layout->output_nbytes;
}

/* Edges of content have been passed. Of nothing at all the first rank makes a frame. */
static int end_own(struct result *result, uint32_t i, bool is_empty)
{
	int r;

	if (!result->outputs[i] || result->files[i].is_settled)
		return 0;
	r = result_begin_file(result, i);
	if (r == 0)
		r = frames_give_content(result->files[i].frames, result_find_end(result, i),
					result->outputs[i]);
	return r < 0 ? r : result_end_frames(result, i, result->is_joined || !is_empty);
}

/* From then on the index is that of all. */
static int meet_one(struct result *result, uint32_t i, uint64_t nbytes)
{
	struct result_file *file = &result->files[i];
	struct zst_index all = { 0 };
	const int r = frames_meet(file->frames, &file->index, nbytes, &all);

	zst_index_free(&file->index);
	file->index = all;
	return r;
}

static int meet(struct result *result, uint64_t n_all)
{
	int r = 0;

	for (uint32_t i = 0; i < result->n_files && r == 0; i++)
		r = end_own(result, i, content_nbytes(result, i, n_all) == 0);
	for (uint32_t i = 0; i < result->n_files && r == 0; i++)
		r = meet_one(result, i, content_nbytes(result, i, n_all));
	result->frames_are_made = true;
	return r;
}

struct stored_file {
	struct result *result;
	uint32_t i;
};

static int write_stored(void *context, unsigned owner, uint64_t offset, const void *data,
			size_t nbytes)
{
	const struct stored_file *file = context;

	return owner == ranks_rank(file->result->spec->ranks) ?
		       result_take_edge(file->result, file->i, offset, data, nbytes) :
		       result_keep_for(file->result, file->i, owner, offset, data, nbytes);
}

static int write_one(struct result *result, uint32_t i, uint64_t *ret_nbytes)
{
	struct stored_file file = { result, i };
	const struct frames_sink sink = { .stripe_nbytes = result->file_stripe_nbytes,
					  .context = &file,
					  .write = write_stored };

	return frames_write(result->files[i].frames, &result->files[i].index, &sink, ret_nbytes);
}

/* Has somebody written every byte? The first rank, whose files they are, counts those of all. */
static int check_stored(struct result *result, const uint64_t *due_nbytes, uint64_t *nbytes)
{
	int r;

	for (uint32_t i = 0; i < result->n_files; i++)
		nbytes[i] = result->files[i].stored_nbytes;
	r = ranks_sum(result->spec->ranks, nbytes, result->n_files);
	for (uint32_t i = 0; i < result->n_files && r == 0; i++) {
		if (nbytes[i] != due_nbytes[i])
			r = fail(-EIO,
				 "internal error: %" PRIu64 " of %" PRIu64
				 " compressed bytes were written; the output was not",
				 nbytes[i], due_nbytes[i]);
		else if (!result->is_joined)
			output_note_others(result->outputs[i],
					   due_nbytes[i] - result->files[i].stored_nbytes,
					   due_nbytes[i]);
	}
	return r;
}

static int write_all(struct result *result)
{
	uint64_t *due_nbytes = calloc(2 * (size_t)result->n_files, sizeof *due_nbytes);
	int r = due_nbytes ? 0 : fail(-ENOMEM, "no memory for %u outputs", result->n_files);

	for (uint32_t i = 0; i < result->n_files && r == 0; i++)
		r = write_one(result, i, &due_nbytes[i]);
	if (r == 0)
		r = result_pass_edges(result);
	if (r == 0)
		r = check_stored(result, due_nbytes, due_nbytes + result->n_files);
	free(due_nbytes);
	return r;
}

/* What is read back begins in a frame of another rank, maybe on another machine. */
static int show_one(struct result *result, uint32_t i)
{
	const struct zst_index all = result->files[i].index;
	int r = 0;

	if (!result->outputs[i])
		return 0;
	if (!result_is_on_one_machine(result->spec->ranks))
		r = output_sync(result->outputs[i]);
	if (r < 0)
		return r;
	result->files[i].index = (struct zst_index){ 0 };
	return output_read_compressed(result->outputs[i], all);
}

int result_meet_frames(struct result *result, uint64_t n_all)
{
	int r = meet(result, n_all);

	if (r == 0)
		r = write_all(result);
	for (uint32_t i = 0; i < result->n_files && r == 0 && result->spec->verify; i++)
		r = show_one(result, i);
	return r;
}

/* --- together --- */

int result_meet(struct result *result, uint64_t n_all)
{
	const bool has_parts = result_has_parts(result);
	int r = result_pass_edges(result);

	if (r == 0 && has_parts)
		r = part_notes_meet(&result->notes, result->spec->ranks);
	if (r == 0 && result->is_framed)
		r = result_meet_frames(result, n_all);

	for (uint32_t i = 0; i < result->n_files && r == 0 && !result->is_joined; i++) {
		struct result_file *file = &result->files[i];
		const uint64_t n = has_parts ? part_notes_n_records(&result->notes, i) : n_all;

		if (!result->is_framed)
			note_others(result, i, n, atomic_load(&file->n_records));
		atomic_store(&file->n_records, n);
	}
	return r;
}

/* --- the end --- */

/* Closed, as file systems of several machines want it. */
static int leave_file(struct result *result, uint32_t i)
{
	struct output *output = result->outputs[i];
	const int r = result->spec->fsync || result->is_input ? output_sync(output) : 0;

	if (r < 0)
		return r;
	result->outputs[i] = NULL;
	return output_leave(output);
}

int result_leave(struct result *result)
{
	int r = input_check_state(result->job->input); /* who has left a file removes it no more */

	cancellation_leave(result->spec->cancellation);
	result_add_ways(result);
	for (uint32_t i = 0; i < result->n_files && r == 0; i++)
		r = result->outputs[i] ? leave_file(result, i) : 0;
	result->is_committed = r == 0;
	return r;
}

/* Who has joined a file removes it when it fails; so all are joined for that. */
void result_join_to_abort(struct result *result)
{
	struct messages *before = messages_enter(NULL);

	for (uint32_t i = 0; i < result->n_files; i++)
		if (!result->outputs[i] && result->names[i].name[0])
			join_part(result, i);
	messages_enter(before);
}
