/*
 * checkpoint - what of a sort is finished is kept (see checkpoint.h)
 *
 * Two halves: what is there when the sort begins (open, restore), and what comes to it while it
 * goes on. The first is done by one thread before the others start. The second only hands over
 * (saver.h): nobody who sorts or merges waits for a disk here.
 */
#include "src/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "io/run_file.h"
#include "src/checkpoint_description.h"
#include "src/checkpoint_files.h"
#include "src/checkpoint_state.h"
#include "src/forecast.h"
#include "src/saver.h"
#include "src/size.h"
#include "src/status.h"
#include "src/written_parts.h"

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

struct checkpoint {
	/* Set by open. */
	const struct io_engine *io;
	const struct options *options;
	const struct layout *layout;
	const struct input *input;
	struct checkpoint_files files;
	struct checkpoint_state state; /* as it was found */
	bool is_new, is_complete;
	struct merge_point skip;

	/* Set by restore and start_merge. */
	struct spill *spill;
	struct saver *saver;
	struct run *const *merged; /* n_merged: the runs of the final merge */
	size_t n_merged;
	atomic_bool is_worth; /* something is there that need not be done again */

	pthread_mutex_t lock;
	/* Under the lock. */
	struct written_parts written;
	size_t n_queued; /* of the parts: with the points that were handed over ... */
	size_t n_saved;  /* ... and that are durable */
	struct pending_point *pending, **last_pending;
};

static int fail_damaged(const struct checkpoint *checkpoint, const char *what)
{
	return fail(-EBADMSG,
		    "%s: the checkpoint is damaged: %s; remove the directory to start again",
		    checkpoint->files.path, what);
}

/* --- What is there --- */

/* A new checkpoint: its first record, and its name. */
static int begin(struct checkpoint *checkpoint, const struct description *description)
{
	struct checkpoint_state *state = &checkpoint->state;
	struct checkpoint_files *files = &checkpoint->files;
	struct payload_part parts[] = { { &state->header, sizeof state->header },
					{ description->text, description->nbytes } };
	uint64_t runs_nbytes;
	int r = file_size(&files->runs, &runs_nbytes);

	if (r == 0 && runs_nbytes)
		r = -EEXIST;
	if (r < 0)
		return fail(r, "%s/runs: %m, but is not a checkpoint's", files->path);
	checkpoint->is_new = true;
	file_unique_name(state->header.output_name);
	state->header.made_directory = files->made_directory;
	r = checkpoint_append(&files->manifest, RECORD_HEADER, parts, 2);
	if (r == 0)
		r = manifest_sync(&files->manifest);
	return r < 0 ? r : checkpoint_files_sync_names(files);
}

static int read_file(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
	const struct checkpoint *checkpoint = context;
	struct file file;
	int r = file_open(checkpoint->io, AT_FDCWD, checkpoint->options->output_path, O_RDONLY, 0,
			  &file);

	if (r == 0) {
		r = file_read_at(&file, checkpoint->state.done.offset + offset, buffer, nbytes);
		file_close(&file);
	}
	if (r == -ENODATA)
		return -EBADMSG;
	return r < 0 ? fail(r, "%s: read: %m", checkpoint->options->output_path) : 0;
}

/* Has the output got its name before the process was killed? */
static int find_complete(struct checkpoint *checkpoint)
{
	struct checkpoint_state *state = &checkpoint->state;
	const char *path = checkpoint->options->output_path;
	struct stat status;
	size_t bad;
	int r;

	if (!state->is_done)
		return 0;
	if (stat(path, &status) < 0 || status.st_dev != state->output.device ||
	    status.st_ino != state->output.inode) {
		checkpoint_state_forget_done(state);
		return 0;
	}
	r = written_parts_check(state->parts, state->n_parts, read_file, checkpoint, &bad);
	if (r == -EBADMSG)
		return fail_damaged(checkpoint,
				    "the output has its name, but is not what was written");
	checkpoint->is_complete = r == 0;
	return r;
}

/* A checkpoint that is there: is it of this sort, and not at its end? */
static int take_up(struct checkpoint *checkpoint, const struct description *now)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const struct description saved = { state->description, state->description_nbytes };
	const char *path = checkpoint->files.path;
	int r = description_compare(path, &saved, now, true);

	if (r == 0)
		r = find_complete(checkpoint);
	/* The complete output may have taken the place of an input. */
	if (r == 0 && !checkpoint->is_complete)
		r = description_compare(path, &saved, now, false);
	return r;
}

/* Does what the records say agree with the sort? */
static int check_state(const struct checkpoint *checkpoint)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const struct layout *layout = checkpoint->layout;
	const uint64_t n_records = input_total_nbytes(checkpoint->input) / layout->record_nbytes;
	uint64_t n_in_runs = 0;

	for (size_t i = 0; i < state->n_runs; i++) {
		const struct saved_run *run = &state->runs[i].run;

		if (run->item_nbytes != layout->item_nbytes)
			return fail_damaged(checkpoint, "its runs have items of another size");
		if (run->origin.n_records > n_records - n_in_runs)
			return fail_damaged(checkpoint, "its runs hold more than there is");
		n_in_runs += run->origin.n_records;
	}
	if (!state->has_point)
		return 0;
	if (state->key_nbytes != merge_key_nbytes(layout) ||
	    state->edge_nbytes != merge_edge_nbytes(layout) ||
	    state->point.result.n_items * layout->output_nbytes !=
		    output_parts_nbytes(state->parts, state->n_parts) ||
	    (checkpoint->options->unique && n_in_runs != n_records))
		return fail_damaged(checkpoint, "its output does not fit the sort");
	return 0;
}

static int open_state(struct checkpoint *checkpoint, const struct description *now)
{
	struct checkpoint_state *state = &checkpoint->state;
	int r = manifest_read(&checkpoint->files.manifest, checkpoint_state_visit, state);

	if (r == 0)
		r = state->description ? take_up(checkpoint, now) : begin(checkpoint, now);
	return r < 0 || checkpoint->is_complete ? r : check_state(checkpoint);
}

static int open_files(struct checkpoint *checkpoint)
{
	struct description now;
	int r = description_make(checkpoint->options, &now);

	if (r < 0)
		return r;
	r = checkpoint_files_open(&checkpoint->files);
	if (r == 0)
		r = open_state(checkpoint, &now);
	free(now.text);
	return r;
}

static int check_input(const struct options *options, const struct input *input)
{
	if (input_total_nbytes(input) == INPUT_SIZE_UNKNOWN)
		return fail(-ESPIPE,
			    "--checkpoint=%s: an input is a pipe, or its size is not known for "
			    "another reason: it cannot be read again from any place",
			    options->checkpoint_path);
	return 0;
}

static struct checkpoint *checkpoint_make(void)
{
	struct checkpoint *checkpoint = calloc(1, sizeof *checkpoint);

	if (!checkpoint) {
		fail(-ENOMEM, "--checkpoint: %m");
		return NULL;
	}
	pthread_mutex_init(&checkpoint->lock, NULL);
	checkpoint->last_pending = &checkpoint->pending;
	return checkpoint;
}

int checkpoint_open(const struct io_engine *io, const struct options *options,
		    const struct layout *layout, const struct input *input,
		    struct checkpoint **ret_checkpoint)
{
	int r = check_input(options, input);
	struct checkpoint *checkpoint = r == 0 ? checkpoint_make() : NULL;

	if (!checkpoint)
		return r < 0 ? r : -ENOMEM;
	checkpoint->io = io;
	checkpoint->options = options;
	checkpoint->layout = layout;
	checkpoint->input = input;
	checkpoint_files_init(&checkpoint->files, io, options->checkpoint_path);
	r = open_files(checkpoint);
	if (r < 0) {
		checkpoint_stop(checkpoint, NULL);
		checkpoint_close(checkpoint);
		return r;
	}
	*ret_checkpoint = checkpoint;
	return 0;
}

bool checkpoint_is_complete(const struct checkpoint *checkpoint)
{
	return checkpoint->is_complete;
}

/* An output, from where its records begin. */
struct records_of {
	struct output *output;
	uint64_t offset;
};

static int read_output(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
	const struct records_of *records = context;

	return output_read_at(records->output, records->offset + offset, buffer, nbytes);
}

static int check_output(const struct checkpoint *checkpoint, struct output *output)
{
	const struct checkpoint_state *state = &checkpoint->state;
	struct records_of records = { output, checkpoint->options->skip_nbytes };
	size_t bad;
	int r = written_parts_check(state->parts, state->n_parts, read_output, &records, &bad);

	if (r != -EBADMSG)
		return r;
	return fail(r,
		    "%s: %" PRIu64 " bytes at %" PRIu64
		    " of the output under construction, %s, are "
		    "not what was written; remove the directory to start again",
		    checkpoint->files.path, state->parts[bad].nbytes, state->parts[bad].offset,
		    state->header.output_name);
}

/* Remember which file the output is, to know it again when it has its name. */
static int note_output(struct checkpoint *checkpoint, const struct output *output)
{
	struct checkpoint_state *state = &checkpoint->state;
	struct file_identity identity;
	struct payload_part part = { &state->output, sizeof state->output };

	if (!output_new_identity(output, &identity))
		return fail(-EIO, "%s: cannot tell which file it is", output_name(output));
	if (identity.device == state->output.device && identity.inode == state->output.inode)
		return 0;
	state->output = (struct saved_output){ identity.device, identity.inode };
	return checkpoint_append(&checkpoint->files.manifest, RECORD_OUTPUT, &part, 1);
}

int checkpoint_open_output(struct checkpoint *checkpoint, uint64_t expected_nbytes,
			   struct output **ret_output)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const struct output_kept kept = {
		.name = state->header.output_name,
		.offset = checkpoint->options->skip_nbytes,
		.nbytes = output_parts_nbytes(state->parts, state->n_parts),
	};
	int r = output_open_kept(checkpoint->io, checkpoint->options->output_path, expected_nbytes,
				 &kept, ret_output);

	if (r == 0)
		r = check_output(checkpoint, *ret_output);
	return r < 0 ? r : note_output(checkpoint, *ret_output);
}

static int compare_offsets(const void *a, const void *b)
{
	const struct run_block *x = *(const struct run_block *const *)a;
	const struct run_block *y = *(const struct run_block *const *)b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

static uint64_t count_blocks(const struct checkpoint_state *state)
{
	uint64_t n = 0;

	for (size_t i = 0; i < state->n_runs; i++)
		n += state->runs[i].run.n_blocks;
	return n;
}

/* All blocks in the order of their places; for free(), NULL after a message. */
static const struct run_block **sort_blocks(const struct checkpoint_state *state, uint64_t *ret_n)
{
	const uint64_t n = count_blocks(state);
	const struct run_block **blocks = malloc((n + 1) * sizeof *blocks);
	uint64_t at = 0;

	if (!blocks) {
		fail(-ENOMEM, "no memory for a list of %" PRIu64 " blocks", n);
		return NULL;
	}
	for (size_t i = 0; i < state->n_runs; i++)
		for (uint64_t j = 0; j < state->runs[i].run.n_blocks; j++)
			blocks[at++] = &state->runs[i].blocks[j];
	qsort(blocks, n, sizeof *blocks, compare_offsets);
	*ret_n = n;
	return blocks;
}

/*
 * Give back what is in no block: of runs that were not complete, or whose removal was interrupted.
 * *ret_end: of the last block; *ret_used_nbytes: of all.
 */
static int sweep_runs(const struct checkpoint *checkpoint, uint64_t *ret_end,
		      uint64_t *ret_used_nbytes)
{
	const struct file *runs = &checkpoint->files.runs;
	uint64_t n, end = 0, used_nbytes = 0, size;
	const struct run_block **blocks = sort_blocks(&checkpoint->state, &n);
	int r = blocks ? file_size(runs, &size) : -ENOMEM;

	for (uint64_t i = 0; i < n && r == 0; i++) {
		if (blocks[i]->offset < end ||
		    blocks[i]->offset + blocks[i]->stored_nbytes > size) {
			r = fail_damaged(checkpoint, "a block lies on another, or behind the end");
			break;
		}
		if (blocks[i]->offset - end >= SPILL_ALIGN_NBYTES)
			file_punch(runs, end, blocks[i]->offset - end);
		end = blocks[i]->offset + blocks[i]->stored_nbytes;
		used_nbytes += blocks[i]->stored_nbytes;
	}
	free(blocks);
	if (r == 0 && (r = file_truncate(runs, end)) < 0)
		fail(r, "%s/runs: cannot be cut: %m", checkpoint->files.path);
	*ret_end = end;
	*ret_used_nbytes = used_nbytes;
	return r;
}

int checkpoint_open_spill(struct checkpoint *checkpoint, struct spill **ret_spill)
{
	uint64_t end, used_nbytes;
	int r = sweep_runs(checkpoint, &end, &used_nbytes);

	if (r == 0)
		r = spill_open_kept(&checkpoint->files.runs, &checkpoint->files.path, end,
				    used_nbytes, checkpoint->options->temp_limit_nbytes,
				    &checkpoint->spill);
	if (r < 0)
		return r;
	checkpoint->files.runs.fd = -1; /* it is the spill's now */
	*ret_spill = checkpoint->spill;
	return 0;
}

/* The longest block of the run, in items. */
static uint32_t block_n_items(const struct checkpoint_run *run)
{
	uint32_t most = 1;

	for (uint64_t i = 0; i < run->run.n_blocks; i++)
		if (run->blocks[i].n_items > most)
			most = run->blocks[i].n_items;
	return most;
}

uint64_t checkpoint_block_nbytes(const struct checkpoint *checkpoint)
{
	const struct checkpoint_state *state = &checkpoint->state;
	uint64_t most = 0;

	for (size_t i = 0; i < state->n_runs; i++)
		if (block_n_items(&state->runs[i]) > most)
			most = block_n_items(&state->runs[i]);
	return most * checkpoint->layout->resident_nbytes;
}

static int restore_run(const struct engine *engine, const struct checkpoint_run *saved,
		       struct run **ret_run)
{
	struct run_file *file;
	int r = run_file_open(engine->spill, engine->compression, (uint32_t)saved->run.item_nbytes,
			      block_n_items(saved), &file);

	if (r < 0)
		return r;
	r = run_file_restore(file, saved->blocks, saved->run.n_blocks);
	if (r < 0) {
		run_file_close(file);
		return r;
	}
	r = run_open_spilled(file, SPILLED_ITEMS, ret_run);
	if (r == 0)
		run_set_origin(*ret_run, saved->run.origin);
	return r;
}

/* What the final merge has passed is not needed any more. */
static void discard_before(struct run *const *runs, size_t n, const struct layout *layout,
			   const void *key)
{
	struct splitter splitter;

	splitter_make(layout, key, &splitter);
	for (size_t i = 0; i < n; i++)
		run_discard_before(runs[i], run_seek(runs[i], splitter.key));
}

static void say_what_is_there(const struct checkpoint *checkpoint, uint64_t n_records)
{
	const struct checkpoint_state *state = &checkpoint->state;
	char in_runs[32], input[32], written[32];

	if (checkpoint->is_new)
		return;
	size_format(n_records * checkpoint->layout->record_nbytes, in_runs);
	size_format(input_total_nbytes(checkpoint->input), input);
	size_format(output_parts_nbytes(state->parts, state->n_parts), written);
	tell("resuming: %zu runs hold %s of %s, and %s of the output are written", state->n_runs,
	     in_runs, input, written);
}

static int restore_parts(struct checkpoint *checkpoint)
{
	const struct checkpoint_state *state = &checkpoint->state;
	int r = written_parts_add(&checkpoint->written, state->parts, state->n_parts);

	checkpoint->n_queued = checkpoint->n_saved = state->n_parts;
	return r;
}

int checkpoint_restore(struct checkpoint *checkpoint, const struct engine *engine,
		       struct output *output, struct run_store *store, struct digest *ret_read,
		       struct digest *ret_dropped, uint64_t *ret_n_records)
{
	const struct checkpoint_state *state = &checkpoint->state;
	int r = restore_parts(checkpoint);

	*ret_n_records = 0;
	for (size_t i = 0; i < state->n_runs && r == 0; i++) {
		const struct run_origin *origin = &state->runs[i].run.origin;
		struct run *run;

		r = restore_run(engine, &state->runs[i], &run);
		if (r == 0)
			r = run_store_add(store, run);
		digest_add(ret_read, origin->read);
		digest_add(ret_dropped, origin->dropped);
		*ret_n_records += origin->n_records;
	}
	if (r < 0)
		return r;
	if (state->has_point)
		discard_before(store->runs, store->n, checkpoint->layout, state->point.key);
	checkpoint->skip.key = state->point.key;
	atomic_store(&checkpoint->is_worth, state->n_runs > 0);
	say_what_is_there(checkpoint, *ret_n_records);
	return saver_open(&checkpoint->files.manifest, checkpoint->spill, output,
			  &checkpoint->saver);
}

const struct merge_point *checkpoint_skip(const struct checkpoint *checkpoint)
{
	return checkpoint->skip.key ? &checkpoint->skip : NULL;
}

/* --- What comes to it --- */

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

static size_t count_stored(const struct run_store *store, size_t first, size_t n)
{
	size_t n_stored = 0;

	for (size_t i = first; i < first + n; i++)
		n_stored += !run_is_resident(store->runs[i]);
	return n_stored;
}

/* Takes the stored ones of the n runs out of the store. NULL after a message. */
static struct replaced *take_replaced(struct checkpoint *checkpoint, struct run_store *store,
				      size_t first, size_t n)
{
	const size_t n_stored = count_stored(store, first, n);
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

int checkpoint_add_run(struct checkpoint *checkpoint, struct run_store *store, size_t first,
		       size_t n, const struct run *run)
{
	const struct run_file *file = run_spilled_file(run);
	const struct saved_run saved = {
		.first = first,
		.n_replaced = count_stored(store, first, n),
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
		free(save->payload);
		free(save);
		return -ENOMEM;
	}
	save->finish = remove_replaced;
	return saver_add(checkpoint->saver, save);
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
	if (run_store_n_stored(store) == 0)
		sink->point = NULL; /* what is only in memory must be sorted again anyway */
}

int checkpoint_note_point(struct checkpoint *checkpoint, const struct merge_point *point)
{
	const size_t key_nbytes = merge_key_nbytes(checkpoint->layout);
	const size_t edge_nbytes = merge_edge_nbytes(checkpoint->layout);
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
		discard_before(checkpoint->merged, checkpoint->n_merged, checkpoint->layout,
			       passed->point->bytes);
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
		.key_nbytes = merge_key_nbytes(checkpoint->layout),
		.edge_nbytes = merge_edge_nbytes(checkpoint->layout),
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
		if (save)
			free(save->payload);
		free(save);
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
	struct output_part *parts = malloc(n * sizeof *parts);
	int r;

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

static void end_saving(struct checkpoint *checkpoint, bool drain)
{
	saver_close(checkpoint->saver, drain);
	checkpoint->saver = NULL;
}

int checkpoint_finish(struct checkpoint *checkpoint)
{
	const struct written_parts *written = &checkpoint->written;
	struct saved_done done = { .offset = checkpoint->options->skip_nbytes };
	struct payload_part parts[] = { { &done, sizeof done }, { 0 } };

	end_saving(checkpoint, false);
	done.n_parts = written->n_contiguous - checkpoint->n_saved;
	parts[1] = (struct payload_part){ written->parts + checkpoint->n_saved,
					  done.n_parts * sizeof *written->parts };
	return checkpoint_append(&checkpoint->files.manifest, RECORD_DONE, parts, 2);
}

void checkpoint_stop(struct checkpoint *checkpoint, struct output *output)
{
	if (!checkpoint)
		return;
	end_saving(checkpoint, true);
	if (atomic_load(&checkpoint->is_worth))
		tell("%s keeps what is finished", checkpoint->files.path);
	if (!checkpoint->is_new || atomic_load(&checkpoint->is_worth))
		return;
	if (output)
		output_forget(output);
	checkpoint_files_remove(&checkpoint->files, checkpoint->files.made_directory);
}

void checkpoint_remove(struct checkpoint *checkpoint)
{
	checkpoint_files_remove(&checkpoint->files, checkpoint->state.header.made_directory);
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
