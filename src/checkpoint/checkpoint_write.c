/*
 * checkpoint_write - what comes to a checkpoint while the sort goes on (see checkpoint.h)
 *
 * Everything is handed over to the saver: nobody who sorts or merges waits for a disk here.
 */
#include "src/checkpoint/checkpoint_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/spill/run_file.h"
#include "src/base/diagnostics.h"

/* Runs that another one replaces. */
struct replaced {
	struct checkpoint *checkpoint;
	size_t n;
	struct run *runs[];
};

static void remove_replaced(void *context, bool durable)
{
	struct replaced *replaced = context;

	for (size_t i = 0; i < replaced->n; i++)
		(durable ? run_remove : run_close)(replaced->runs[i]);
	if (durable)
		atomic_store(&replaced->checkpoint->is_worth, true);
	free(replaced);
}

/* Takes the stored ones of the n runs out of the store. NULL after a message. */
static struct replaced *take_replaced(struct checkpoint *checkpoint, struct run_store *store,
				      size_t first, size_t n)
{
	const size_t n_stored = n - runs_n_resident(store->runs + first, n);
	struct replaced *replaced = malloc(sizeof *replaced + n_stored * sizeof *replaced->runs);

	if (!replaced) {
		fail(-ENOMEM, "no memory for a list of %zu runs", n_stored);
		return NULL;
	}
	*replaced = (struct replaced){ .checkpoint = checkpoint };
	for (size_t i = first; i < first + n; i++)
		if (!run_is_resident(store->runs[i])) {
			replaced->runs[replaced->n++] = store->runs[i];
			store->runs[i] = NULL;
		}
	return replaced;
}

struct save *checkpoint_make_save(enum checkpoint_record type, const struct payload_part *parts,
				  size_t n)
{
	struct save *save = calloc(1, sizeof *save);

	if (!save) {
		fail(-ENOMEM, "no memory for a record of a checkpoint");
		return NULL;
	}
	save->type = type;
	save->payload = payload_join(parts, n, &save->nbytes);
	if (save->payload)
		return save;
	free(save);
	return NULL;
}

void checkpoint_free_save(struct save *save)
{
	if (save)
		free(save->payload);
	free(save);
}

static int save_run(struct checkpoint *checkpoint, struct run_store *store, size_t first, size_t n,
		    const struct run *run)
{
	const struct run_file *file = run_stored_file(run);
	const struct saved_run saved = {
		.first = first,
		.n_replaced = n - runs_n_resident(store->runs + first, n),
		.origin = run_origin(run),
		.n_items = run_n_items(run),
		.item_nbytes = run_file_item_nbytes(file),
		.n_blocks = run_n_blocks(run),
	};
	const struct payload_part parts[] = { { &saved, sizeof saved },
					      { run_file_blocks(file),
						saved.n_blocks * sizeof(struct run_block) } };
	struct save *save = checkpoint_make_save(RECORD_RUN, parts, 2);

	if (!save)
		return -ENOMEM;
	save->needs_runs = true;
	save->context = take_replaced(checkpoint, store, first, n);
	if (!save->context) {
		checkpoint_free_save(save);
		return -ENOMEM;
	}
	save->finish = remove_replaced;
	return saver_add(checkpoint->saver, save);
}

/* What passes have made of runs that are not kept goes with the next pass; what is kept stays. */
static void remove_passed(struct run_store *store, size_t first, size_t n)
{
	for (size_t i = first; i < first + n; i++)
		if (!run_is_resident(store->runs[i]) && run_level(store->runs[i]) > 0) {
			run_remove(store->runs[i]);
			store->runs[i] = NULL;
		}
}

int checkpoint_run_stored(void *context, struct run_store *store, size_t first, size_t n,
			  const struct run *run)
{
	struct checkpoint *checkpoint = context;

	if (!checkpoint->has_left_runs)
		return save_run(checkpoint, store, first, n, run);
	remove_passed(store, first, n);
	return 0;
}

/* --- The end --- */

static int end_saving(struct checkpoint *checkpoint, bool drain)
{
	const int r = saver_close(checkpoint->saver, drain);

	checkpoint->saver = NULL;
	return r;
}

/* Is what this process has begun of no use to another one? */
static bool is_in_vain(const struct checkpoint *checkpoint)
{
	return checkpoint->is_new && !atomic_load(&checkpoint->is_worth);
}

static int read_output(void *output, uint64_t offset, void *buffer, size_t nbytes)
{
	return output_read_at(output, offset, buffer, nbytes);
}

/* The output is settled: what is to be known of it, if it gets its name. */
static int describe_done(const struct checkpoint *checkpoint, struct output *output,
			 const struct stat *status, struct saved_done *ret_done)
{
	const uint64_t offset = checkpoint->spec->header_nbytes;
	const uint64_t nbytes = (uint64_t)status->st_size;

	*ret_done = (struct saved_done){ .offset = offset,
					 .output_nbytes = nbytes,
					 .modified_seconds = status->st_mtim.tv_sec,
					 .modified_nanos = status->st_mtim.tv_nsec,
					 .n_parts = checkpoint_n_unsaved(checkpoint) };
	return written_parts_sum_around(offset, offset + checkpoint_written_end(checkpoint), nbytes,
					read_output, output, &ret_done->around);
}

int checkpoint_end_saving(struct checkpoint *checkpoint)
{
	return end_saving(checkpoint, false);
}

static int append_done(struct checkpoint *checkpoint, const struct saved_done *done)
{
	const size_t n = checkpoint->n_ranges + 1;
	struct payload_part *parts = calloc(n, sizeof *parts);
	int r;

	if (!parts)
		return fail(-ENOMEM, "no memory for a record of a checkpoint");
	parts[0] = (struct payload_part){ done, sizeof *done };
	checkpoint_list_unsaved(checkpoint, parts + 1);
	r = checkpoint_append(&checkpoint->files.manifest, RECORD_DONE, parts, n);
	free(parts);
	return r;
}

int checkpoint_finish(struct checkpoint *checkpoint, struct output *output)
{
	struct saved_done done;
	struct stat status;
	/* A sync that failed may have been about the output, and the next one would not say so. */
	int r = end_saving(checkpoint, false);

	if (r == 0)
		r = output_settle(output, &status);
	if (r == 0)
		r = describe_done(checkpoint, output, &status, &done);
	if (r < 0)
		return r;
	if (is_in_vain(checkpoint))
		output_forget(output);
	return append_done(checkpoint, &done);
}

static void say_what_is_kept(const struct checkpoint_files *files)
{
	const char *path = files->group ? files->group : files->path; /* of all ranks */

	if (checkpoint_files_are_there(files))
		tell("%s keeps what is finished: the same command goes on from there", path);
	else
		warn("%s has been moved away, or removed, and what is finished with it: the same "
		     "command goes on only if it is put back",
		     path);
}

void checkpoint_stop(struct checkpoint *checkpoint, struct output *output)
{
	struct saved_damage damage;

	if (!checkpoint)
		return;
	end_saving(checkpoint, true);
	if (checkpoint->spill && spill_damage(checkpoint->spill, &damage.offset)) {
		/* Who starts again need not sort the rest to find that out. */
		checkpoint_append(&checkpoint->files.manifest, RECORD_DAMAGED,
				  &(struct payload_part){ &damage, sizeof damage }, 1);
		return;
	}
	if (atomic_load(&checkpoint->is_worth))
		say_what_is_kept(&checkpoint->files);
	if (!is_in_vain(checkpoint))
		return;
	if (output)
		output_forget(output);
	checkpoint_files_remove(&checkpoint->files);
}

void checkpoint_remove(struct checkpoint *checkpoint)
{
	checkpoint_files_remove(&checkpoint->files);
}

void checkpoint_close(struct checkpoint *checkpoint)
{
	if (!checkpoint)
		return;
	end_saving(checkpoint, false);
	checkpoint_free_progress(checkpoint);
	free(checkpoint->taken_up);
	checkpoint_state_free(&checkpoint->state);
	checkpoint_files_close(&checkpoint->files);
	pthread_mutex_destroy(&checkpoint->lock);
	free(checkpoint);
}
