/*
 * checkpoint_state.c - the stored runs of an earlier process (see checkpoint_state.h)
 *
 * The checksums of the manifest show that a record is what was written. Its contents are validated
 * as well, so that no record, whoever wrote it, causes an access out of bounds.
 */
#include "src/checkpoint/checkpoint_state.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "io/codec/checksum.h"
#include "io/spill/run_file.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/thread_pool.h"

/* --- Records --- */

/* Returns NULL after a message. */
static void *copy_bytes(const void *bytes, size_t nbytes)
{
	void *to = malloc(nbytes + 1);

	if (!to)
		fail(-ENOMEM, "no memory for %zu bytes of a checkpoint", nbytes);
	else
		memcpy(to, bytes, nbytes);
	return to;
}

/* Check the index of a whole run. All blocks must be in the only file of the runs, number 0. */
static int check_index(struct run_index *index, uint64_t n_items)
{
	int r = run_index_check(index);

	if (index->n_items != n_items || (index->n_blocks && index->blocks[0].first_item))
		r = -EBADMSG;
	for (uint64_t i = 0; i < index->n_blocks && r == 0; i++)
		if (index->blocks[i].file)
			r = -EBADMSG;
	return r;
}

/* Replace n runs by the run, whose blocks then belong to the state. */
static int splice_run(struct checkpoint_state *state, size_t first, size_t n,
		      const struct checkpoint_run *run)
{
	struct checkpoint_run *runs =
		realloc(state->runs, (state->n_runs + 1) * sizeof *state->runs);

	if (!runs)
		return fail(-ENOMEM, "no memory for the runs of a checkpoint");
	state->runs = runs;
	for (size_t i = first; i < first + n; i++)
		free(runs[i].index.blocks);
	memmove(runs + first + 1, runs + first + n, (state->n_runs - first - n) * sizeof *runs);
	runs[first] = *run;
	state->n_runs += 1 - n;
	return 0;
}

static int visit_run(struct checkpoint_state *state, const struct manifest_record *record)
{
	const struct saved_run *saved = record->payload;
	const size_t blocks_nbytes = record->nbytes - sizeof *saved;
	struct checkpoint_run run;
	int r;

	if (record->nbytes < sizeof *saved || blocks_nbytes % sizeof *saved->blocks ||
	    saved->n_blocks != blocks_nbytes / sizeof *saved->blocks ||
	    saved->item_nbytes > 2 * LAYOUT_MAX_RECORD_NBYTES || saved->first > state->n_runs ||
	    saved->n_replaced > state->n_runs - saved->first)
		return -EBADMSG;
	run.origin = saved->origin;
	run.index = (struct run_index){
		.blocks = copy_bytes(saved->blocks, blocks_nbytes),
		.n_blocks = saved->n_blocks,
		.item_nbytes = (uint32_t)saved->item_nbytes,
	};
	if (!run.index.blocks)
		return -ENOMEM;
	r = check_index(&run.index, saved->n_items);
	if (r == 0)
		r = splice_run(state, saved->first, saved->n_replaced, &run);
	if (r < 0)
		free(run.index.blocks);
	return r;
}

static bool copy_payload(const struct manifest_record *record, void *to, size_t nbytes)
{
	if (record->nbytes != nbytes)
		return false;
	memcpy(to, record->payload, nbytes);
	return true;
}

int checkpoint_state_visit(void *context, const struct manifest_record *record)
{
	struct checkpoint_state *state = context;

	if ((record->type == RECORD_HEADER) != !state->fingerprint)
		return -EBADMSG;
	state->is_done = false; /* the output was not published, and the sort went on */
	switch (record->type) {
	case RECORD_HEADER:
		state->fingerprint_nbytes = record->nbytes;
		state->fingerprint = copy_bytes(record->payload, record->nbytes);
		return state->fingerprint ? 0 : -ENOMEM;
	case RECORD_RUN:
		return visit_run(state, record);
	case RECORD_DONE:
		state->is_done = copy_payload(record, &state->done, sizeof state->done);
		return state->is_done ? 0 : -EBADMSG;
	case RECORD_DAMAGED:
		state->is_damaged = copy_payload(record, &state->damage, sizeof state->damage);
		return state->is_damaged ? 0 : -EBADMSG;
	default:
		return -EBADMSG;
	}
}

void checkpoint_state_free_runs(struct checkpoint_state *state)
{
	for (size_t i = 0; i < state->n_runs; i++)
		free(state->runs[i].index.blocks);
	free(state->runs);
	state->runs = NULL;
	state->n_runs = 0;
}

void checkpoint_state_free(struct checkpoint_state *state)
{
	checkpoint_state_free_runs(state);
	free(state->fingerprint);
	*state = (struct checkpoint_state){ 0 };
}

/* --- The runs --- */

static int compare_offsets(const void *a, const void *b)
{
	const struct run_block *x = *(const struct run_block *const *)a;
	const struct run_block *y = *(const struct run_block *const *)b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Return all blocks in order of their offsets; the caller frees them. NULL after a message. */
static const struct run_block **sort_blocks(const struct checkpoint_state *state, uint64_t *ret_n)
{
	const struct run_block **blocks;
	uint64_t n = 0, n_listed = 0;

	for (size_t i = 0; i < state->n_runs; i++)
		n += state->runs[i].index.n_blocks;
	blocks = malloc((n + 1) * sizeof *blocks);
	if (!blocks) {
		fail(-ENOMEM, "no memory for a list of %" PRIu64 " blocks", n);
		return NULL;
	}
	for (size_t i = 0; i < state->n_runs; i++)
		for (uint64_t j = 0; j < state->runs[i].index.n_blocks; j++)
			blocks[n_listed++] = &state->runs[i].index.blocks[j];
	qsort(blocks, n, sizeof *blocks, compare_offsets);
	*ret_n = n;
	return blocks;
}

static const struct run_block *find_block_at_offset(const struct checkpoint_state *state,
						    uint64_t offset)
{
	for (size_t i = 0; i < state->n_runs; i++)
		for (uint64_t j = 0; j < state->runs[i].index.n_blocks; j++)
			if (state->runs[i].index.blocks[j].offset == offset)
				return &state->runs[i].index.blocks[j];
	return NULL;
}

static int fail_runs_file(int r, const struct checkpoint_dir *dir, const char *problem)
{
	return fail(r, "%s/%s: %s%m", dir->path, checkpoint_file_names[CHECKPOINT_RUNS], problem);
}

int checkpoint_state_recheck_damage(const struct checkpoint_state *state,
				    const struct checkpoint_dir *dir)
{
	const struct run_block *block = find_block_at_offset(state, state->damage.offset);
	void *stored;
	int r;

	if (!block)
		return 0;
	stored = malloc(block->stored_nbytes);
	if (!stored)
		return fail(-ENOMEM, "no memory for a block of a checkpoint");
	r = file_read_at(&dir->runs, block->offset, stored, block->stored_nbytes);
	if (r == -ENODATA ||
	    (r == 0 && checksum64(stored, block->stored_nbytes) != block->checksum))
		r = -EBADMSG;
	else if (r < 0)
		fail_runs_file(r, dir, "");
	free(stored);
	return r;
}

/* Return the size of the pages of [begin, end), except those before *counted, and advance it. */
static uint64_t new_pages_nbytes(uint64_t *counted, uint64_t begin, uint64_t end)
{
	const uint64_t previous = *counted;

	begin = begin / SPILL_ALIGN_NBYTES * SPILL_ALIGN_NBYTES;
	*counted = round_up(end, SPILL_ALIGN_NBYTES);
	return *counted - u64_max(begin, previous);
}

int checkpoint_state_punch_unused(const struct checkpoint_state *state,
				  const struct checkpoint_dir *dir, uint64_t *ret_end,
				  uint64_t *ret_used_nbytes)
{
	uint64_t n, end = CHECKPOINT_RUNS_BEGIN, counted = end, used_nbytes = 0, size;
	const struct run_block **blocks = sort_blocks(state, &n);
	int r;

	if (!blocks)
		return -ENOMEM;
	r = file_size(&dir->runs, &size);
	if (r < 0)
		fail_runs_file(r, dir, "");
	for (uint64_t i = 0; i < n && r == 0; i++) {
		if (blocks[i]->offset < end ||
		    blocks[i]->offset + blocks[i]->stored_nbytes > size) {
			r = -EBADMSG;
			break;
		}
		if (blocks[i]->offset - end >= SPILL_ALIGN_NBYTES)
			file_punch_hole(&dir->runs, end, blocks[i]->offset - end);
		end = blocks[i]->offset + blocks[i]->stored_nbytes;
		used_nbytes += new_pages_nbytes(&counted, blocks[i]->offset, end);
	}
	free(blocks);
	if (r == 0 && (r = file_truncate(&dir->runs, end)) < 0)
		fail_runs_file(r, dir, "cannot truncate: ");
	*ret_end = end;
	*ret_used_nbytes = used_nbytes;
	return r;
}

uint32_t checkpoint_state_max_block_items(const struct checkpoint_state *state)
{
	uint32_t max_items = 0;

	for (size_t i = 0; i < state->n_runs; i++) {
		const uint32_t n = run_index_max_block_items(&state->runs[i].index);

		if (n > max_items)
			max_items = n;
	}
	return max_items;
}

int checkpoint_state_restore_runs(const struct checkpoint_state *state, const struct job *job,
				  struct run_list *list)
{
	int r = 0;

	for (size_t i = 0; i < state->n_runs && r == 0; i++) {
		struct checkpoint_run *saved = &state->runs[i];
		struct run_file *file;
		struct run *run;

		r = run_file_open_finished(job->spill, job->compression, &saved->index, &file);
		if (r == 0)
			r = run_open_spilled(file, SPILLED_ITEMS, &run);
		if (r < 0)
			return r;
		run->origin = saved->origin;
		r = run_list_add(list, run);
	}
	return r;
}

/* --- The input of the runs --- */

/* Memory and threads for checking the input, in addition to the plan. */
enum { CHECK_BATCH_NBYTES = 256 << 10, MAX_CHECK_THREADS = 8 };

/* A check reads this part of the input from disk, or as much as takes no noticeable time. */
enum { BUDGET_DIVISOR = 32 };
static const uint64_t min_budget_nbytes = UINT64_C(64) << 20;

/* The check of the input records of a run, by several threads. */
struct run_verification {
	const struct job *job;
	uint64_t first_record, n_records;
	uint64_t batch_records;

	pthread_mutex_t lock;
	struct digest digest; /* of the batches so far; guarded by the lock */
};

/* Return the digest of n records. items: memory for their items, if they are projected. */
static struct digest digest_records(const struct layout *layout, const unsigned char *records,
				    unsigned char *items, uint64_t n, uint64_t position)
{
	struct digest digest = { 0 };

	if (!layout_is_key_only(layout)) {
		layout_project_records(layout, records, n, position, items, &digest);
		return digest;
	}
	for (uint64_t i = 0; i < n; i++)
		digest.sum +=
			digest_record(records + i * layout->record_nbytes, layout->record_nbytes);
	digest.n_records = n;
	return digest;
}

/* Return the size of a batch's records in the buffer, padded, because items follow them. */
static size_t batch_nbytes(const struct run_verification *verification)
{
	return round_up(verification->batch_records * verification->job->layout->record_nbytes,
			_Alignof(max_align_t));
}

static int verify_batch(void *context, uint64_t batch, void *buffer)
{
	struct run_verification *verification = context;
	const struct job *job = verification->job;
	const uint64_t record_nbytes = job->layout->record_nbytes;
	const uint64_t offset = batch * verification->batch_records,
		       first = verification->first_record + offset;
	const uint64_t n = u64_min(verification->n_records - offset, verification->batch_records);
	const struct span span = stats_begin(STAGE_VERIFY, batch);
	unsigned char *items = (unsigned char *)buffer + batch_nbytes(verification);
	struct digest digest;
	int r = input_read_at(job->input, first * record_nbytes, buffer, n * record_nbytes);

	if (r < 0)
		return r;
	digest = digest_records(job->layout, buffer, items, n, first);
	pthread_mutex_lock(&verification->lock);
	digest_add(&verification->digest, digest);
	pthread_mutex_unlock(&verification->lock);
	stats_end(job->stats, span, n * record_nbytes);
	return 0;
}

/* Compare the records that a run was made of, of fixed size, with its digest. */
static int verify_run_input(const struct job *job, uint64_t position,
			    const struct run_origin *origin, struct input_change *ret_change)
{
	const uint64_t record_nbytes = job->layout->record_nbytes;
	const uint64_t batch_records = CHECK_BATCH_NBYTES / record_nbytes;
	const unsigned n_threads = job->plan_request.n_threads;
	const struct digest expected = origin->totals.read;
	struct run_verification verification = { .job = job,
						 .first_record = position / record_nbytes,
						 .n_records = expected.n_records,
						 .batch_records = batch_records ? batch_records : 1,
						 .lock = PTHREAD_MUTEX_INITIALIZER };
	int r = threads_run_blocks(n_threads < MAX_CHECK_THREADS ? n_threads : MAX_CHECK_THREADS,
				   divide_up(verification.n_records, verification.batch_records),
				   batch_nbytes(&verification) +
					   verification.batch_records * job->layout->item_nbytes,
				   verify_batch, &verification);

	pthread_mutex_destroy(&verification.lock);
	if (r < 0)
		return r;
	if (digest_equal(verification.digest, expected))
		return 0;
	ret_change->unit = "record";
	input_path_at(job->input, position, &ret_change->path, &ret_change->position);
	return -EBADMSG;
}

struct run_origin checkpoint_state_origin(const struct checkpoint_state *state)
{
	struct run_origin origin = { 0 };

	for (size_t i = 0; i < state->n_runs; i++)
		run_origin_add(&origin, &state->runs[i].origin);
	return origin;
}

/* Choose the runs whose input is read again. */
static void choose_checked_runs(const struct checkpoint_state *state, const struct job *job,
				uint64_t end, bool *ret_are_checked)
{
	const uint64_t total_nbytes = input_total_nbytes(job->input);
	uint64_t remaining_nbytes =
		u64_max(checkpoint_state_origin(state).nbytes / BUDGET_DIVISOR, min_budget_nbytes);

	for (size_t i = state->n_runs; i-- > 0;) {
		const uint64_t nbytes = state->runs[i].origin.nbytes;
		uint64_t begin;

		end -= nbytes;
		ret_are_checked[i] = nbytes <= remaining_nbytes;
		/* A delimiter that is added to the last line of an input is not in the file. */
		begin = u64_min(end, total_nbytes);
		if (input_is_cached(job->input, begin, u64_min(nbytes, total_nbytes - begin)))
			ret_are_checked[i] = true;
		else if (ret_are_checked[i])
			remaining_nbytes -= nbytes;
	}
}

int checkpoint_state_check_input(const struct checkpoint_state *state, const struct job *job,
				 const struct input_check *check, struct input_change *ret_change)
{
	uint64_t position = job->first_record * job->layout->record_nbytes;
	bool *are_checked = calloc(state->n_runs + 1, sizeof *are_checked);
	int r = are_checked ? 0 : fail(-ENOMEM, "no memory for a list of runs");

	if (r == 0)
		choose_checked_runs(state, job, position + checkpoint_state_origin(state).nbytes,
				    are_checked);
	for (size_t i = 0; i < state->n_runs && r == 0; i++) {
		const struct run_origin *origin = &state->runs[i].origin;

		if (are_checked[i])
			r = check ? check->check_run(check->context, position, origin, ret_change) :
				    verify_run_input(job, position, origin, ret_change);
		position += origin->nbytes;
	}
	free(are_checked);
	return r;
}
