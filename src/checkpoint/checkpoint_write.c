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
struct replaced_runs {
	struct checkpoint *checkpoint;
	size_t n_runs;
	struct run *runs[];
};

static void remove_replaced_runs(void *context, bool durable)
{
	struct replaced_runs *replaced = context;

	for (size_t i = 0; i < replaced->n_runs; i++)
		(durable ? run_remove : run_close)(replaced->runs[i]);
	if (durable)
		atomic_store(&replaced->checkpoint->is_worth_keeping, true);
	free(replaced);
}

/* Takes the stored ones of the n runs out of the store. NULL after a message. */
static struct replaced_runs *collect_replaced_runs(struct checkpoint *checkpoint,
						   struct run_list *store, size_t first, size_t n)
{
	const size_t n_stored = n - runs_n_resident(store->runs + first, n);
	struct replaced_runs *replaced =
		malloc(sizeof *replaced + n_stored * sizeof *replaced->runs);

	if (!replaced) {
		fail(-ENOMEM, "no memory for a list of %zu runs", n_stored);
		return NULL;
	}
	*replaced = (struct replaced_runs){ .checkpoint = checkpoint };
	for (size_t i = first; i < first + n; i++)
		if (!run_is_resident(store->runs[i])) {
			replaced->runs[replaced->n_runs++] = store->runs[i];
			store->runs[i] = NULL;
		}
	return replaced;
}

struct sync_request *checkpoint_create_request(enum checkpoint_record type,
					       const struct payload_slice *slices, size_t n)
{
	struct sync_request *request = calloc(1, sizeof *request);

	if (!request) {
		fail(-ENOMEM, "no memory for a record of a checkpoint");
		return NULL;
	}
	request->type = type;
	request->payload = payload_join(slices, n, &request->nbytes);
	if (request->payload)
		return request;
	free(request);
	return NULL;
}

void checkpoint_free_request(struct sync_request *request)
{
	if (request)
		free(request->payload);
	free(request);
}

static int request_run_record(struct checkpoint *checkpoint, struct run_list *store, size_t first,
			      size_t n, const struct run *run)
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
	const struct payload_slice slices[] = { { &saved, sizeof saved },
						{ run_file_blocks(file),
						  saved.n_blocks * sizeof(struct run_block) } };
	struct sync_request *request = checkpoint_create_request(RECORD_RUN, slices, 2);

	if (!request)
		return -ENOMEM;
	request->needs_runs = true;
	request->context = collect_replaced_runs(checkpoint, store, first, n);
	if (!request->context) {
		checkpoint_free_request(request);
		return -ENOMEM;
	}
	request->on_complete = remove_replaced_runs;
	return sync_thread_add(checkpoint->sync_thread, request);
}

/* What passes have made of runs that are not kept goes with the next pass; what is kept stays. */
static void remove_merged_runs(struct run_list *store, size_t first, size_t n)
{
	for (size_t i = first; i < first + n; i++)
		if (!run_is_resident(store->runs[i]) && run_level(store->runs[i]) > 0) {
			run_remove(store->runs[i]);
			store->runs[i] = NULL;
		}
}

int checkpoint_run_stored(void *context, struct run_list *store, size_t first, size_t n,
			  const struct run *run)
{
	struct checkpoint *checkpoint = context;

	if (!checkpoint->runs_are_frozen)
		return request_run_record(checkpoint, store, first, n, run);
	remove_merged_runs(store, first, n);
	return 0;
}

/* --- The end --- */

static int close_sync_thread(struct checkpoint *checkpoint, bool drain)
{
	const int r = sync_thread_close(checkpoint->sync_thread, drain);

	checkpoint->sync_thread = NULL;
	return r;
}

/* Is what this process has begun of no use to another one? */
static bool is_useless(const struct checkpoint *checkpoint)
{
	return checkpoint->is_new && !atomic_load(&checkpoint->is_worth_keeping);
}

static int read_output(void *output, uint64_t offset, void *buffer, size_t nbytes)
{
	return output_read_at(output, offset, buffer, nbytes);
}

/* The output is settled: what is to be known of it, if it gets its name. */
static int fill_done_record(const struct checkpoint *checkpoint, struct output *output,
			    const struct stat *status, struct saved_done *ret_done)
{
	const uint64_t offset = checkpoint->spec->header_nbytes;
	const uint64_t nbytes = (uint64_t)status->st_size;

	*ret_done = (struct saved_done){ .offset = offset,
					 .output_nbytes = nbytes,
					 .modified_seconds = status->st_mtim.tv_sec,
					 .modified_nanos = status->st_mtim.tv_nsec,
					 .n_extents = checkpoint_n_pending_extents(checkpoint) };
	return written_extents_framing_checksum(offset, offset + checkpoint_written_end(checkpoint),
						nbytes, read_output, output,
						&ret_done->framing_checksum);
}

int checkpoint_close_sync_thread(struct checkpoint *checkpoint)
{
	return close_sync_thread(checkpoint, false);
}

static int append_done_record(struct checkpoint *checkpoint, const struct saved_done *done)
{
	const size_t n = checkpoint->n_partitions + 1;
	struct payload_slice *slices = calloc(n, sizeof *slices);
	int r;

	if (!slices)
		return fail(-ENOMEM, "no memory for a record of a checkpoint");
	slices[0] = (struct payload_slice){ done, sizeof *done };
	checkpoint_list_pending_extents(checkpoint, slices + 1);
	r = checkpoint_append_record(&checkpoint->dir.manifest, RECORD_DONE, slices, n);
	free(slices);
	return r;
}

int checkpoint_finish(struct checkpoint *checkpoint, struct output *output)
{
	struct saved_done done;
	struct stat status;
	/* A sync that failed may have been about the output, and the next one would not say so. */
	int r = close_sync_thread(checkpoint, false);

	if (r == 0)
		r = output_finalize(output, &status);
	if (r == 0)
		r = fill_done_record(checkpoint, output, &status, &done);
	if (r < 0)
		return r;
	if (is_useless(checkpoint))
		output_discard_on_close(output);
	return append_done_record(checkpoint, &done);
}

static void report_kept_state(const struct checkpoint_dir *dir)
{
	const char *path = dir->parent_path ? dir->parent_path : dir->path; /* of all ranks */

	if (checkpoint_dir_is_intact(dir))
		notice("%s keeps what is finished: the same command goes on from there", path);
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
	close_sync_thread(checkpoint, true);
	if (checkpoint->spill && spill_get_damage(checkpoint->spill, &damage.offset)) {
		/* Who starts again need not sort the rest to find that out. */
		checkpoint_append_record(&checkpoint->dir.manifest, RECORD_DAMAGED,
					 &(struct payload_slice){ &damage, sizeof damage }, 1);
		return;
	}
	if (atomic_load(&checkpoint->is_worth_keeping))
		report_kept_state(&checkpoint->dir);
	if (!is_useless(checkpoint))
		return;
	if (output)
		output_discard_on_close(output);
	checkpoint_dir_remove(&checkpoint->dir);
}

void checkpoint_remove(struct checkpoint *checkpoint)
{
	checkpoint_dir_remove(&checkpoint->dir);
}

void checkpoint_close(struct checkpoint *checkpoint)
{
	if (!checkpoint)
		return;
	close_sync_thread(checkpoint, false);
	checkpoint_free_progress(checkpoint);
	free(checkpoint->restore_partitions);
	checkpoint_state_free(&checkpoint->state);
	checkpoint_dir_close(&checkpoint->dir);
	pthread_mutex_destroy(&checkpoint->lock);
	free(checkpoint);
}
