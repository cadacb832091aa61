/*
 * merge_progress - how far each range of the output is written (see checkpoint.h)
 *
 * A point waits until all of its range before it is written; windows are written in any order.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/interval_search.h"
#include "src/base/diagnostics.h"
#include "src/checkpoint/checkpoint_internal.h"

/*
 * Between two points a part of the output this long is written, or one of so many parts if it is
 * shorter. What lies behind the last one is lost with the process.
 */
static const uint64_t max_interval_nbytes = UINT64_C(256) << 20;
enum { MIN_INTERVALS = 32 };

/* A point that waits for what lies before it to be written. */
struct pending_restore_point {
	struct pending_restore_point *next;
	uint64_t end; /* of the output, in bytes, before it */
	struct merge_result result;
	unsigned char bytes[]; /* the key, then the first edge and the last */
};

/* --- Ranges --- */

static void free_progress(struct partition_progress *progress)
{
	while (progress->pending) {
		struct pending_restore_point *pending = progress->pending;

		progress->pending = pending->next;
		free(pending);
	}
	written_extents_free(&progress->written);
	free(progress->key);
}

void checkpoint_free_progress(struct checkpoint *checkpoint)
{
	for (size_t i = 0; i < checkpoint->n_partitions; i++)
		free_progress(&checkpoint->progress[i]);
	free(checkpoint->progress);
	checkpoint->progress = NULL;
	checkpoint->n_partitions = 0;
}

/* Of n ranges, in the place of those that there are. */
static int alloc_progress(struct checkpoint *checkpoint, size_t n)
{
	checkpoint_free_progress(checkpoint);
	checkpoint->progress = calloc(n, sizeof *checkpoint->progress);
	if (!checkpoint->progress)
		return fail(-ENOMEM, "no memory for %zu ranges of a checkpoint", n);
	checkpoint->n_partitions = n;
	return 0;
}

static int init_progress(const struct checkpoint *checkpoint, struct partition_progress *progress,
			 uint64_t begin, const void *key)
{
	const size_t key_nbytes = layout_key_nbytes(checkpoint->layout);

	*progress = (struct partition_progress){ .key = key ? malloc(key_nbytes) : NULL,
						 .written = { .begin = begin } };
	progress->last_pending = &progress->pending;
	if (key && !progress->key)
		return fail(-ENOMEM, "no memory for a key of %zu bytes", key_nbytes);
	if (key)
		memcpy(progress->key, key, key_nbytes);
	return 0;
}

static int restore_partition(const struct checkpoint *checkpoint,
			     const struct checkpoint_partition *partition,
			     struct partition_progress *progress)
{
	const int r = init_progress(checkpoint, progress, partition->begin, partition->key);

	progress->n_queued = progress->n_durable = partition->n_extents;
	return r < 0 ? r :
		       written_extents_add(&progress->written, partition->extents,
					   partition->n_extents);
}

/* As long as nothing is written there is one, of all. */
int checkpoint_restore_progress(struct checkpoint *checkpoint)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const bool has_restore_points = checkpoint_state_has_progress(state);
	int r = alloc_progress(checkpoint, has_restore_points ? state->n_partitions : 1);

	if (r == 0 && !has_restore_points)
		return init_progress(checkpoint, &checkpoint->progress[0], 0, NULL);
	for (size_t i = 0; i < checkpoint->n_partitions && r == 0; i++)
		r = restore_partition(checkpoint, &state->partitions[i], &checkpoint->progress[i]);
	return r;
}

/* The record: where each begins, and then in front of which key. NULL after a message. */
static struct sync_request *create_partitions_request(const struct checkpoint *checkpoint)
{
	const size_t n = checkpoint->n_partitions,
		     key_nbytes = layout_key_nbytes(checkpoint->layout);
	const struct saved_partitions saved = { n, key_nbytes };
	uint64_t *offsets = calloc(n, sizeof *offsets);
	char *keys = calloc(n, key_nbytes);
	struct sync_request *request = NULL;

	for (size_t i = 0; offsets && keys && i < n; i++) {
		const struct partition_progress *progress = &checkpoint->progress[i];

		offsets[i] = progress->written.begin;
		if (progress->key)
			memcpy(keys + i * key_nbytes, progress->key, key_nbytes);
	}
	if (offsets && keys)
		request = checkpoint_create_request(
			RECORD_PARTITIONS,
			(struct payload_slice[]){ { &saved, sizeof saved },
						  { offsets, n * sizeof *offsets },
						  { keys, n * key_nbytes } },
			3);
	else
		fail(-ENOMEM, "no memory for %zu ranges of a checkpoint", n);
	free(offsets);
	free(keys);
	return request;
}

int checkpoint_record_partitions(struct checkpoint *checkpoint,
				 const struct partition_desc *partitions, uint32_t n)
{
	struct sync_request *request;
	int r = alloc_progress(checkpoint, n);

	for (uint32_t i = 0; i < n && r == 0; i++)
		r = init_progress(checkpoint, &checkpoint->progress[i],
				  partitions[i].position * checkpoint->layout->output_nbytes,
				  partitions[i].key);
	if (r < 0)
		return r;
	request = create_partitions_request(checkpoint);
	return request ? sync_thread_add(checkpoint->sync_thread, request) : -ENOMEM;
}

/* The last range that begins there or before it: those of nothing are before it. */
static struct partition_progress *find_partition(const struct checkpoint *checkpoint,
						 uint64_t offset)
{
	return &checkpoint
			->progress[find_interval(checkpoint->progress, sizeof *checkpoint->progress,
						 offsetof(struct partition_progress, written.begin),
						 checkpoint->n_partitions, offset)];
}

/* --- Points, and what is written --- */

void checkpoint_start_merge(struct checkpoint *checkpoint, const struct run_list *store,
			    struct sink *sink)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const uint64_t n_records =
		input_total_nbytes(checkpoint->input) / checkpoint->layout->record_nbytes;
	const uint64_t max_interval = max_interval_nbytes / sink->item_nbytes;

	checkpoint->merged_runs = store->runs;
	checkpoint->n_merged_runs = store->n;
	sink->resume_partitions = checkpoint->restore_partitions;
	sink->n_resume_partitions = (uint32_t)state->n_partitions;
	sink->restore_point_interval = n_records / MIN_INTERVALS;
	if (sink->restore_point_interval > max_interval)
		sink->restore_point_interval = max_interval;
	/* What is only in memory must be sorted again anyway. */
	if (run_list_n_stored(store) == 0)
		sink->save_restore_point = NULL;
}

int checkpoint_record_restore_point(struct checkpoint *checkpoint, uint32_t partition,
				    const struct restore_point *restore_point)
{
	const size_t key_nbytes = layout_key_nbytes(checkpoint->layout);
	const size_t edge_nbytes = layout_edge_nbytes(checkpoint->layout);
	struct partition_progress *progress = &checkpoint->progress[partition];
	struct pending_restore_point *pending =
		malloc(sizeof *pending + key_nbytes + 2 * edge_nbytes);

	if (!pending)
		return fail(-ENOMEM, "no memory for a point of a checkpoint");
	pending->next = NULL;
	pending->end = progress->written.begin +
		       restore_point->result.n_items * checkpoint->layout->output_nbytes;
	pending->result = restore_point->result;
	memcpy(pending->bytes, restore_point->key, key_nbytes);
	memcpy(pending->bytes + key_nbytes, restore_point->first, edge_nbytes);
	memcpy(pending->bytes + key_nbytes + edge_nbytes, restore_point->last, edge_nbytes);
	pthread_mutex_lock(&checkpoint->lock);
	*progress->last_pending = pending;
	progress->last_pending = &pending->next;
	pthread_mutex_unlock(&checkpoint->lock);
	return 0;
}

/* What is known when a point is durable. */
struct restore_point_request {
	struct checkpoint *checkpoint;
	struct partition_progress *progress;
	size_t n_extents; /* before it */
	struct pending_restore_point *restore_point;
};

/* By the saver's thread. */
static void finish_restore_point(void *context, bool durable)
{
	struct restore_point_request *point_request = context;
	struct checkpoint *checkpoint = point_request->checkpoint;

	if (durable) {
		pthread_mutex_lock(&checkpoint->lock);
		point_request->progress->n_durable = point_request->n_extents;
		pthread_mutex_unlock(&checkpoint->lock);
		checkpoint_discard_between(checkpoint->layout, point_request->progress->key,
					   point_request->restore_point->bytes,
					   checkpoint->merged_runs, checkpoint->n_merged_runs);
	}
	free(point_request->restore_point);
	free(point_request);
}

/* The record of a range's point, up to which so many parts are written. NULL after a message. */
static struct sync_request *create_restore_point_request(const struct checkpoint *checkpoint,
							 const struct partition_progress *progress,
							 size_t n_extents)
{
	const struct written_extents *written = &progress->written;
	const struct pending_restore_point *pending = progress->pending;
	const struct saved_restore_point saved = {
		.result = pending->result,
		.partition = (uint64_t)(progress - checkpoint->progress),
		.key_nbytes = layout_key_nbytes(checkpoint->layout),
		.edge_nbytes = layout_edge_nbytes(checkpoint->layout),
		.n_extents = n_extents - progress->n_queued,
	};
	const struct payload_slice slices[] = {
		{ &saved, sizeof saved },
		{ written->extents + progress->n_queued,
		  saved.n_extents * sizeof *written->extents },
		{ pending->bytes, saved.key_nbytes + 2 * saved.edge_nbytes },
	};

	return checkpoint_create_request(RECORD_RESTORE_POINT, slices, 3);
}

/* Under the lock: hand the first pending point over; all before it is written. */
static int queue_restore_point(struct checkpoint *checkpoint, struct partition_progress *progress)
{
	struct pending_restore_point *pending = progress->pending;
	const size_t n_extents = written_extents_before(&progress->written, pending->end);
	struct restore_point_request *point_request = malloc(sizeof *point_request);
	struct sync_request *request =
		create_restore_point_request(checkpoint, progress, n_extents);

	if (!point_request || !request) {
		free(point_request);
		checkpoint_free_request(request);
		return fail(-ENOMEM, "no memory for a point of a checkpoint");
	}
	*point_request = (struct restore_point_request){ checkpoint, progress, n_extents, pending };
	request->needs_output = true;
	request->on_complete = finish_restore_point;
	request->context = point_request;
	progress->n_queued = n_extents;
	progress->pending = pending->next;
	if (!progress->pending)
		progress->last_pending = &progress->pending;
	return sync_thread_add(checkpoint->sync_thread, request);
}

/* Under the lock. */
static int queue_restore_points(struct checkpoint *checkpoint, struct partition_progress *progress)
{
	int r = 0;

	while (r == 0 && progress->pending &&
	       progress->pending->end <= written_extents_end(&progress->written))
		r = queue_restore_point(checkpoint, progress);
	return r;
}

int checkpoint_record_written(struct checkpoint *checkpoint, uint64_t offset, const void *data,
			      size_t nbytes)
{
	struct partition_progress *progress = find_partition(checkpoint, offset);
	const size_t n = written_extents_count(nbytes);
	struct output_extent *extents;
	int r;

	extents = malloc(n * sizeof *extents);
	if (!extents)
		return fail(-ENOMEM, "no memory for %zu parts of the output", n);
	written_extents_describe(offset, data, nbytes, extents);
	pthread_mutex_lock(&checkpoint->lock);
	r = written_extents_add(&progress->written, extents, n);
	if (r == 0)
		r = queue_restore_points(checkpoint, progress);
	pthread_mutex_unlock(&checkpoint->lock);
	free(extents);
	return r;
}

/* --- The end --- */

uint64_t checkpoint_written_end(const struct checkpoint *checkpoint)
{
	uint64_t end = 0;

	for (size_t i = 0; i < checkpoint->n_partitions; i++)
		if (checkpoint->progress[i].written.n_contiguous)
			end = written_extents_end(&checkpoint->progress[i].written);
	return end;
}

uint64_t checkpoint_n_pending_extents(const struct checkpoint *checkpoint)
{
	uint64_t n = 0;

	for (size_t i = 0; i < checkpoint->n_partitions; i++)
		n += checkpoint->progress[i].written.n_contiguous -
		     checkpoint->progress[i].n_durable;
	return n;
}

void checkpoint_list_pending_extents(const struct checkpoint *checkpoint,
				     struct payload_slice *ret_slices)
{
	for (size_t i = 0; i < checkpoint->n_partitions; i++) {
		const struct partition_progress *progress = &checkpoint->progress[i];
		const struct written_extents *written = &progress->written;

		ret_slices[i] =
			(struct payload_slice){ written->extents + progress->n_durable,
						(written->n_contiguous - progress->n_durable) *
							sizeof *written->extents };
	}
}
