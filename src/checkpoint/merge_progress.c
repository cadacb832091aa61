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
static const uint64_t most_interval_nbytes = UINT64_C(256) << 20;
enum { INTERVALS_AT_LEAST = 32 };

/* A point that waits for what lies before it to be written. */
struct pending_point {
	struct pending_point *next;
	uint64_t end; /* of the output, in bytes, before it */
	struct merge_result result;
	unsigned char bytes[]; /* the key, then the first edge and the last */
};

/* --- Ranges --- */

static void free_progress(struct range_progress *progress)
{
	while (progress->pending) {
		struct pending_point *point = progress->pending;

		progress->pending = point->next;
		free(point);
	}
	written_parts_free(&progress->written);
	free(progress->key);
}

void checkpoint_free_progress(struct checkpoint *checkpoint)
{
	for (size_t i = 0; i < checkpoint->n_ranges; i++)
		free_progress(&checkpoint->progress[i]);
	free(checkpoint->progress);
	checkpoint->progress = NULL;
	checkpoint->n_ranges = 0;
}

/* Of n ranges, in the place of those that there are. */
static int make_progress(struct checkpoint *checkpoint, size_t n)
{
	checkpoint_free_progress(checkpoint);
	checkpoint->progress = calloc(n, sizeof *checkpoint->progress);
	if (!checkpoint->progress)
		return fail(-ENOMEM, "no memory for %zu ranges of a checkpoint", n);
	checkpoint->n_ranges = n;
	return 0;
}

static int begin_progress(const struct checkpoint *checkpoint, struct range_progress *progress,
			  uint64_t begin, const void *key)
{
	const size_t key_nbytes = layout_key_nbytes(checkpoint->layout);

	*progress = (struct range_progress){ .key = key ? malloc(key_nbytes) : NULL,
					     .written = { .begin = begin } };
	progress->last_pending = &progress->pending;
	if (key && !progress->key)
		return fail(-ENOMEM, "no memory for a key of %zu bytes", key_nbytes);
	if (key)
		memcpy(progress->key, key, key_nbytes);
	return 0;
}

static int restore_range(const struct checkpoint *checkpoint, const struct checkpoint_range *range,
			 struct range_progress *progress)
{
	const int r = begin_progress(checkpoint, progress, range->begin, range->key);

	progress->n_queued = progress->n_saved = range->n_parts;
	return r < 0 ? r : written_parts_add(&progress->written, range->parts, range->n_parts);
}

/* As long as nothing is written there is one, of all. */
int checkpoint_restore_progress(struct checkpoint *checkpoint)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const bool has_points = checkpoint_state_has_points(state);
	int r = make_progress(checkpoint, has_points ? state->n_ranges : 1);

	if (r == 0 && !has_points)
		return begin_progress(checkpoint, &checkpoint->progress[0], 0, NULL);
	for (size_t i = 0; i < checkpoint->n_ranges && r == 0; i++)
		r = restore_range(checkpoint, &state->ranges[i], &checkpoint->progress[i]);
	return r;
}

/* The record: where each begins, and then in front of which key. NULL after a message. */
static struct save *describe_ranges(const struct checkpoint *checkpoint)
{
	const size_t n = checkpoint->n_ranges, key_nbytes = layout_key_nbytes(checkpoint->layout);
	const struct saved_ranges saved = { n, key_nbytes };
	uint64_t *begins = calloc(n, sizeof *begins);
	char *keys = calloc(n, key_nbytes);
	struct save *save = NULL;

	for (size_t i = 0; begins && keys && i < n; i++) {
		const struct range_progress *progress = &checkpoint->progress[i];

		begins[i] = progress->written.begin;
		if (progress->key)
			memcpy(keys + i * key_nbytes, progress->key, key_nbytes);
	}
	if (begins && keys)
		save = checkpoint_make_save(RECORD_RANGES,
					    (struct payload_part[]){ { &saved, sizeof saved },
								     { begins, n * sizeof *begins },
								     { keys, n * key_nbytes } },
					    3);
	else
		fail(-ENOMEM, "no memory for %zu ranges of a checkpoint", n);
	free(begins);
	free(keys);
	return save;
}

int checkpoint_note_ranges(struct checkpoint *checkpoint, const struct merge_range *ranges,
			   uint32_t n)
{
	struct save *save;
	int r = make_progress(checkpoint, n);

	for (uint32_t i = 0; i < n && r == 0; i++)
		r = begin_progress(checkpoint, &checkpoint->progress[i],
				   ranges[i].position * checkpoint->layout->output_nbytes,
				   ranges[i].key);
	if (r < 0)
		return r;
	save = describe_ranges(checkpoint);
	return save ? saver_add(checkpoint->saver, save) : -ENOMEM;
}

/* The last range that begins there or before it: those of nothing are before it. */
static struct range_progress *find_range(const struct checkpoint *checkpoint, uint64_t offset)
{
	return &checkpoint->progress[begins_find(checkpoint->progress, sizeof *checkpoint->progress,
						 offsetof(struct range_progress, written.begin),
						 checkpoint->n_ranges, offset)];
}

/* --- Points, and what is written --- */

void checkpoint_start_merge(struct checkpoint *checkpoint, const struct run_store *store,
			    struct sink *sink)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const uint64_t n_records =
		input_total_nbytes(checkpoint->input) / checkpoint->layout->record_nbytes;
	const uint64_t most = most_interval_nbytes / sink->item_nbytes;

	checkpoint->merged = store->runs;
	checkpoint->n_merged = store->n;
	sink->ranges = checkpoint->taken_up;
	sink->n_ranges = (uint32_t)state->n_ranges;
	sink->point_interval = n_records / INTERVALS_AT_LEAST;
	if (sink->point_interval > most)
		sink->point_interval = most;
	/* What is only in memory must be sorted again anyway. */
	if (run_store_n_stored(store) == 0)
		sink->point = NULL;
}

int checkpoint_note_point(struct checkpoint *checkpoint, uint32_t range,
			  const struct merge_point *point)
{
	const size_t key_nbytes = layout_key_nbytes(checkpoint->layout);
	const size_t edge_nbytes = layout_edge_nbytes(checkpoint->layout);
	struct range_progress *progress = &checkpoint->progress[range];
	struct pending_point *pending = malloc(sizeof *pending + key_nbytes + 2 * edge_nbytes);

	if (!pending)
		return fail(-ENOMEM, "no memory for a point of a checkpoint");
	pending->next = NULL;
	pending->end =
		progress->written.begin + point->result.n_items * checkpoint->layout->output_nbytes;
	pending->result = point->result;
	memcpy(pending->bytes, point->key, key_nbytes);
	memcpy(pending->bytes + key_nbytes, point->first, edge_nbytes);
	memcpy(pending->bytes + key_nbytes + edge_nbytes, point->last, edge_nbytes);
	pthread_mutex_lock(&checkpoint->lock);
	*progress->last_pending = pending;
	progress->last_pending = &pending->next;
	pthread_mutex_unlock(&checkpoint->lock);
	return 0;
}

/* What is known when a point is durable. */
struct passed {
	struct checkpoint *checkpoint;
	struct range_progress *progress;
	size_t n_parts; /* before it */
	struct pending_point *point;
};

/* By the saver's thread. */
static void pass_point(void *context, bool durable)
{
	struct passed *passed = context;
	struct checkpoint *checkpoint = passed->checkpoint;

	if (durable) {
		pthread_mutex_lock(&checkpoint->lock);
		passed->progress->n_saved = passed->n_parts;
		pthread_mutex_unlock(&checkpoint->lock);
		checkpoint_discard_between(checkpoint->layout, passed->progress->key,
					   passed->point->bytes, checkpoint->merged,
					   checkpoint->n_merged);
	}
	free(passed->point);
	free(passed);
}

/* The record of a range's point, up to which so many parts are written. NULL after a message. */
static struct save *describe_point(const struct checkpoint *checkpoint,
				   const struct range_progress *progress, size_t n_parts)
{
	const struct written_parts *written = &progress->written;
	const struct pending_point *point = progress->pending;
	const struct saved_point saved = {
		.result = point->result,
		.range = (uint64_t)(progress - checkpoint->progress),
		.key_nbytes = layout_key_nbytes(checkpoint->layout),
		.edge_nbytes = layout_edge_nbytes(checkpoint->layout),
		.n_parts = n_parts - progress->n_queued,
	};
	const struct payload_part parts[] = {
		{ &saved, sizeof saved },
		{ written->parts + progress->n_queued, saved.n_parts * sizeof *written->parts },
		{ point->bytes, saved.key_nbytes + 2 * saved.edge_nbytes },
	};

	return checkpoint_make_save(RECORD_POINT, parts, 3);
}

/* Under the lock: hand the first pending point over; all before it is written. */
static int save_point(struct checkpoint *checkpoint, struct range_progress *progress)
{
	struct pending_point *point = progress->pending;
	const size_t n_parts = written_parts_before(&progress->written, point->end);
	struct passed *passed = malloc(sizeof *passed);
	struct save *save = describe_point(checkpoint, progress, n_parts);

	if (!passed || !save) {
		free(passed);
		checkpoint_free_save(save);
		return fail(-ENOMEM, "no memory for a point of a checkpoint");
	}
	*passed = (struct passed){ checkpoint, progress, n_parts, point };
	save->needs_output = true;
	save->finish = pass_point;
	save->context = passed;
	progress->n_queued = n_parts;
	progress->pending = point->next;
	if (!progress->pending)
		progress->last_pending = &progress->pending;
	return saver_add(checkpoint->saver, save);
}

/* Under the lock. */
static int save_points(struct checkpoint *checkpoint, struct range_progress *progress)
{
	int r = 0;

	while (r == 0 && progress->pending &&
	       progress->pending->end <= written_parts_end(&progress->written))
		r = save_point(checkpoint, progress);
	return r;
}

int checkpoint_note_written(struct checkpoint *checkpoint, uint64_t offset, const void *data,
			    size_t nbytes)
{
	struct range_progress *progress = find_range(checkpoint, offset);
	const size_t n = written_parts_count(nbytes);
	struct output_part *parts;
	int r;

	parts = malloc(n * sizeof *parts);
	if (!parts)
		return fail(-ENOMEM, "no memory for %zu parts of the output", n);
	written_parts_describe(offset, data, nbytes, parts);
	pthread_mutex_lock(&checkpoint->lock);
	r = written_parts_add(&progress->written, parts, n);
	if (r == 0)
		r = save_points(checkpoint, progress);
	pthread_mutex_unlock(&checkpoint->lock);
	free(parts);
	return r;
}

/* --- The end --- */

uint64_t checkpoint_written_end(const struct checkpoint *checkpoint)
{
	uint64_t end = 0;

	for (size_t i = 0; i < checkpoint->n_ranges; i++)
		if (checkpoint->progress[i].written.n_contiguous)
			end = written_parts_end(&checkpoint->progress[i].written);
	return end;
}

uint64_t checkpoint_n_unsaved(const struct checkpoint *checkpoint)
{
	uint64_t n = 0;

	for (size_t i = 0; i < checkpoint->n_ranges; i++)
		n += checkpoint->progress[i].written.n_contiguous - checkpoint->progress[i].n_saved;
	return n;
}

void checkpoint_list_unsaved(const struct checkpoint *checkpoint, struct payload_part *ret_parts)
{
	for (size_t i = 0; i < checkpoint->n_ranges; i++) {
		const struct range_progress *progress = &checkpoint->progress[i];
		const struct written_parts *written = &progress->written;

		ret_parts[i] = (struct payload_part){ written->parts + progress->n_saved,
						      (written->n_contiguous - progress->n_saved) *
							      sizeof *written->parts };
	}
}
