/*
 * restore_runs - the stored runs that a checkpoint holds (see checkpoint.h)
 */
#include "src/checkpoint/checkpoint_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "io/codec/checksum.h"
#include "io/spill/run_file.h"
#include "src/base/diagnostics.h"
#include "src/merge/forecast.h"

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
	uint64_t n_listed = 0;

	if (!blocks) {
		fail(-ENOMEM, "no memory for a list of %" PRIu64 " blocks", n);
		return NULL;
	}
	for (size_t i = 0; i < state->n_runs; i++)
		for (uint64_t j = 0; j < state->runs[i].run.n_blocks; j++)
			blocks[n_listed++] = &state->runs[i].blocks[j];
	qsort(blocks, n, sizeof *blocks, compare_offsets);
	*ret_n = n;
	return blocks;
}

static const struct run_block *find_block_at_offset(const struct checkpoint_state *state,
						    uint64_t offset)
{
	for (size_t i = 0; i < state->n_runs; i++)
		for (uint64_t j = 0; j < state->runs[i].run.n_blocks; j++)
			if (state->runs[i].blocks[j].offset == offset)
				return &state->runs[i].blocks[j];
	return NULL;
}

int checkpoint_recheck_damage(const struct checkpoint *checkpoint)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const struct run_block *block = find_block_at_offset(state, state->damage.offset);
	void *stored;
	int r;

	if (!block)
		return 0;
	stored = malloc(block->stored_nbytes);
	if (!stored)
		return fail(-ENOMEM, "no memory for a block of a checkpoint");
	r = file_read_at(&checkpoint->dir.runs, block->offset, stored, block->stored_nbytes);
	if (r == 0 && checksum64(stored, block->stored_nbytes) != block->checksum)
		r = -ENODATA;
	if (r == -ENODATA)
		r = checkpoint_fail_damaged(checkpoint,
					    "a block of its runs is not what was written");
	else if (r < 0)
		fail(r, "%s/%s: %m", checkpoint->dir.path, checkpoint_file_names[CHECKPOINT_RUNS]);
	free(stored);
	return r;
}

/* What the part takes in whole pages, but those before *counted. */
static uint64_t count_new_pages(uint64_t *counted, uint64_t begin, uint64_t end)
{
	const uint64_t previous = *counted;

	begin = begin / SPILL_ALIGN_NBYTES * SPILL_ALIGN_NBYTES;
	*counted = (end + SPILL_ALIGN_NBYTES - 1) / SPILL_ALIGN_NBYTES * SPILL_ALIGN_NBYTES;
	return *counted - (begin > previous ? begin : previous);
}

/*
 * Give back what is in no block: of runs that were not complete, or whose removal was interrupted.
 * *ret_end: of the last block; *ret_used_nbytes: of all.
 */
static int punch_unused_space(const struct checkpoint *checkpoint, uint64_t *ret_end,
			      uint64_t *ret_used_nbytes)
{
	const struct file *runs = &checkpoint->dir.runs;
	uint64_t n, end = CHECKPOINT_RUNS_BEGIN, counted = end, used_nbytes = 0, size;
	const struct run_block **blocks = sort_blocks(&checkpoint->state, &n);
	int r;

	if (!blocks)
		return -ENOMEM;
	r = file_size(runs, &size);
	if (r < 0)
		fail(r, "%s/%s: %m", checkpoint->dir.path, checkpoint_file_names[CHECKPOINT_RUNS]);
	for (uint64_t i = 0; i < n && r == 0; i++) {
		if (blocks[i]->offset < end ||
		    blocks[i]->offset + blocks[i]->stored_nbytes > size) {
			r = checkpoint_fail_damaged(checkpoint,
						    "a block lies on another, or behind the end");
			break;
		}
		if (blocks[i]->offset - end >= SPILL_ALIGN_NBYTES)
			file_punch_hole(runs, end, blocks[i]->offset - end);
		end = blocks[i]->offset + blocks[i]->stored_nbytes;
		used_nbytes += count_new_pages(&counted, blocks[i]->offset, end);
	}
	free(blocks);
	if (r == 0 && (r = file_truncate(runs, end)) < 0)
		fail(r, "%s/%s: cannot be cut: %m", checkpoint->dir.path,
		     checkpoint_file_names[CHECKPOINT_RUNS]);
	*ret_end = end;
	*ret_used_nbytes = used_nbytes;
	return r;
}

/* Has the limit been lowered since? */
static int check_temp_limit(const struct checkpoint *checkpoint, uint64_t used_nbytes)
{
	const uint64_t limit_nbytes = checkpoint->spec->temp_limit_nbytes;

	if (used_nbytes <= limit_nbytes)
		return 0;
	return fail_hint(-ENOSPC, HINT_HIGHER_TEMP_LIMIT, 0,
			 "%s: the runs of the checkpoint take %" PRIu64
			 " bytes, more than the limit of %" PRIu64,
			 checkpoint->dir.path, used_nbytes, limit_nbytes);
}

int checkpoint_open_spill(struct checkpoint *checkpoint, struct spill **ret_spill)
{
	uint64_t end, used_nbytes;
	int r = punch_unused_space(checkpoint, &end, &used_nbytes);

	if (r == 0)
		r = check_temp_limit(checkpoint, used_nbytes);
	if (r == 0)
		r = spill_open_persistent(&checkpoint->dir.runs, &checkpoint->dir.path, end,
					  used_nbytes, checkpoint->spec->temp_limit_nbytes,
					  &checkpoint->spill);
	if (r < 0)
		return r;
	checkpoint->dir.runs.fd = -1; /* it is the spill's now */
	checkpoint->advice = checkpoint_format_advice(checkpoint);
	spill_set_advice(checkpoint->spill, checkpoint->advice.text);
	*ret_spill = checkpoint->spill;
	return 0;
}

/* The longest block of the run, in items. */
static uint32_t block_n_items(const struct checkpoint_run *run)
{
	uint32_t max_items = 1;

	for (uint64_t i = 0; i < run->run.n_blocks; i++)
		if (run->blocks[i].n_items > max_items)
			max_items = run->blocks[i].n_items;
	return max_items;
}

uint64_t checkpoint_block_nbytes(const struct checkpoint *checkpoint)
{
	const struct checkpoint_state *state = &checkpoint->state;
	uint64_t max_items = 0;

	for (size_t i = 0; i < state->n_runs; i++)
		if (block_n_items(&state->runs[i]) > max_items)
			max_items = block_n_items(&state->runs[i]);
	return max_items * checkpoint->layout->resident_nbytes;
}

static int restore_run(const struct job *job, const struct checkpoint_run *saved,
		       struct run **ret_run)
{
	struct run_file *file;
	int r = run_file_open(job->spill, job->compression, (uint32_t)saved->run.item_nbytes,
			      block_n_items(saved), &file);

	if (r < 0)
		return r;
	r = run_file_restore(file, saved->blocks, saved->run.n_blocks);
	if (r < 0) {
		run_file_close(file);
		return r;
	}
	r = run_open_stored(file, STORED_ITEMS, ret_run);
	if (r == 0)
		run_set_origin(*ret_run, saved->run.origin);
	return r;
}

int checkpoint_restore_runs(const struct checkpoint *checkpoint, const struct job *job,
			    struct run_list *store)
{
	const struct checkpoint_state *state = &checkpoint->state;

	for (size_t i = 0; i < state->n_runs; i++) {
		struct run *run;
		int r = restore_run(job, &state->runs[i], &run);

		if (r == 0)
			r = run_list_add(store, run);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < state->n_partitions; i++)
		if (state->partitions[i].has_restore_point)
			checkpoint_discard_between(checkpoint->layout, state->partitions[i].key,
						   state->partitions[i].restore_point.key,
						   store->runs, store->n);
	return 0;
}

/*
 * Of keys longer than what is known of blocks, those that begin like the first of a range are read
 * again to find it (run_count_before()).
 */
static uint64_t find_first_block(const struct run *run, const struct layout *layout,
				 const void *from)
{
	return from ? run_n_blocks_before(run, 0, run_n_blocks(run),
					  layout_get_key_prefix(layout, from),
					  layout_key_nbytes(layout) > sizeof(encoded_key_t)) :
		      0;
}

void checkpoint_discard_between(const struct layout *layout, const void *from, const void *to,
				struct run *const *runs, size_t n)
{
	const encoded_key_t end = layout_get_key_prefix(layout, to);

	for (size_t i = 0; i < n; i++)
		if (!run_is_resident(runs[i]))
			run_discard_between(runs[i], find_first_block(runs[i], layout, from),
					    run_seek(runs[i], end));
}
