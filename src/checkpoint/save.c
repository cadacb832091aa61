/*
 * save - what comes to a checkpoint while the sort goes on (see checkpoint.h)
 *
 * Everything is handed over to the saver: nobody who sorts or merges waits for a disk here.
 *
 * A point waits until all of the output before it is written; windows are written in any order.
 */
#include "src/checkpoint/inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/store/run_file.h"
#include "src/base/messages.h"

/*
 * Between two points a part of the output this long is written, or one of so many parts if it is
 * shorter. What lies behind the last one is lost with the process.
 */
static const uint64_t most_interval_nbytes = UINT64_C(256) << 20;
enum { INTERVALS_AT_LEAST = 32 };

/* A point that waits for what lies before it to be written. */
struct pending_point {
	struct pending_point *next;
	uint64_t end; /* of the output, in bytes, before it */
	struct merge_result result;
	unsigned char bytes[]; /* the key, then the edge */
};

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

/* A record to be saved, of n parts. NULL after a message. */
static struct save *save_make(enum checkpoint_record type, const struct payload_part *parts,
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

/* One that was not handed over; NULL is fine. */
static void save_free(struct save *save)
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
	struct save *save = save_make(RECORD_RUN, parts, 2);

	if (!save)
		return -ENOMEM;
	save->needs_runs = true;
	save->context = take_replaced(checkpoint, store, first, n);
	if (!save->context) {
		save_free(save);
		return -ENOMEM;
	}
	save->finish = remove_replaced;
	return saver_add(checkpoint->saver, save);
}

int checkpoint_run_stored(void *context, struct run_store *store, size_t first, size_t n,
			  const struct run *run)
{
	struct checkpoint *checkpoint = context;

	return checkpoint->has_left_runs ? 0 : save_run(checkpoint, store, first, n, run);
}

void checkpoint_start_merge(struct checkpoint *checkpoint, const struct run_store *store,
			    struct sink *sink)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const uint64_t n_records =
		input_total_nbytes(checkpoint->input) / checkpoint->layout->record_nbytes;
	const uint64_t most = most_interval_nbytes / sink->item_nbytes;

	checkpoint->merged = store->runs;
	checkpoint->n_merged = store->n;
	sink->start = state->has_point ? &state->point : NULL;
	sink->point_interval = n_records / INTERVALS_AT_LEAST;
	if (sink->point_interval > most)
		sink->point_interval = most;
	/* What is only in memory must be sorted again anyway. */
	if (run_store_n_stored(store) == 0)
		sink->point = NULL;
}

int checkpoint_note_point(struct checkpoint *checkpoint, const struct merge_point *point)
{
	const size_t key_nbytes = layout_key_nbytes(checkpoint->layout);
	const size_t edge_nbytes = layout_edge_nbytes(checkpoint->layout);
	struct pending_point *pending = malloc(sizeof *pending + key_nbytes + edge_nbytes);

	if (!pending)
		return fail(-ENOMEM, "no memory for a point of a checkpoint");
	pending->next = NULL;
	pending->end = point->result.n_items * checkpoint->layout->output_nbytes;
	pending->result = point->result;
	memcpy(pending->bytes, point->key, key_nbytes);
	memcpy(pending->bytes + key_nbytes, point->last, edge_nbytes);
	pthread_mutex_lock(&checkpoint->lock);
	*checkpoint->last_pending = pending;
	checkpoint->last_pending = &pending->next;
	pthread_mutex_unlock(&checkpoint->lock);
	return 0;
}

/* What is known when a point is durable. */
struct passed {
	struct checkpoint *checkpoint;
	size_t n_parts; /* before it */
	struct pending_point *point;
};

static void pass_point(void *context, bool durable)
{
	struct passed *passed = context;
	struct checkpoint *checkpoint = passed->checkpoint;

	if (durable) {
		pthread_mutex_lock(&checkpoint->lock);
		checkpoint->n_saved = passed->n_parts;
		pthread_mutex_unlock(&checkpoint->lock);
		checkpoint_discard_before(checkpoint->layout, passed->point->bytes,
					  checkpoint->merged, checkpoint->n_merged);
	}
	free(passed->point);
	free(passed);
}

/* Under the lock: hand the first pending point over; all before it is written. */
static int save_point(struct checkpoint *checkpoint)
{
	struct pending_point *point = checkpoint->pending;
	const struct written_parts *written = &checkpoint->written;
	const size_t n_parts = written_parts_before(written, point->end);
	const struct saved_point saved = {
		.result = point->result,
		.key_nbytes = layout_key_nbytes(checkpoint->layout),
		.edge_nbytes = layout_edge_nbytes(checkpoint->layout),
		.n_parts = n_parts - checkpoint->n_queued,
	};
	const struct payload_part parts[] = {
		{ &saved, sizeof saved },
		{ written->parts + checkpoint->n_queued, saved.n_parts * sizeof *written->parts },
		{ point->bytes, saved.key_nbytes + saved.edge_nbytes },
	};
	struct passed *passed = malloc(sizeof *passed);
	struct save *save = save_make(RECORD_POINT, parts, 3);

	if (!passed || !save) {
		free(passed);
		save_free(save);
		return fail(-ENOMEM, "no memory for a point of a checkpoint");
	}
	*passed = (struct passed){ checkpoint, n_parts, point };
	save->needs_output = true;
	save->finish = pass_point;
	save->context = passed;
	checkpoint->n_queued = n_parts;
	checkpoint->pending = point->next;
	if (!checkpoint->pending)
		checkpoint->last_pending = &checkpoint->pending;
	return saver_add(checkpoint->saver, save);
}

/* Under the lock. */
static int save_points(struct checkpoint *checkpoint)
{
	int r = 0;

	while (r == 0 && checkpoint->pending &&
	       checkpoint->pending->end <= written_parts_end(&checkpoint->written))
		r = save_point(checkpoint);
	return r;
}

int checkpoint_note_written(struct checkpoint *checkpoint, uint64_t offset, const void *data,
			    size_t nbytes)
{
	const size_t n = written_parts_count(nbytes);
	struct output_part *parts;
	int r;

	parts = malloc(n * sizeof *parts);
	if (!parts)
		return fail(-ENOMEM, "no memory for %zu parts of the output", n);
	written_parts_describe(offset, data, nbytes, parts);
	pthread_mutex_lock(&checkpoint->lock);
	r = written_parts_add(&checkpoint->written, parts, n);
	if (r == 0)
		r = save_points(checkpoint);
	pthread_mutex_unlock(&checkpoint->lock);
	free(parts);
	return r;
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
	const struct written_parts *written = &checkpoint->written;
	const uint64_t offset = checkpoint->spec->header_nbytes;
	const uint64_t nbytes = (uint64_t)status->st_size;

	*ret_done = (struct saved_done){ .offset = offset,
					 .output_nbytes = nbytes,
					 .modified_seconds = status->st_mtim.tv_sec,
					 .modified_nanos = status->st_mtim.tv_nsec,
					 .n_parts = written->n_contiguous - checkpoint->n_saved };
	return written_parts_sum_around(offset, offset + written_parts_end(written), nbytes,
					read_output, output, &ret_done->around);
}

int checkpoint_end_saving(struct checkpoint *checkpoint)
{
	return end_saving(checkpoint, false);
}

int checkpoint_finish(struct checkpoint *checkpoint, struct output *output)
{
	const struct written_parts *written = &checkpoint->written;
	struct saved_done done;
	struct payload_part parts[] = { { &done, sizeof done }, { 0 } };
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
	parts[1] = (struct payload_part){ written->parts + checkpoint->n_saved,
					  done.n_parts * sizeof *written->parts };
	return checkpoint_append(&checkpoint->files.manifest, RECORD_DONE, parts, 2);
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
	while (checkpoint->pending) {
		struct pending_point *point = checkpoint->pending;

		checkpoint->pending = point->next;
		free(point);
	}
	written_parts_free(&checkpoint->written);
	checkpoint_state_free(&checkpoint->state);
	checkpoint_files_close(&checkpoint->files);
	pthread_mutex_destroy(&checkpoint->lock);
	free(checkpoint);
}
