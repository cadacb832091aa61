/*
 * manifest_records - what the records of a checkpoint's manifest say (see manifest_records.h)
 *
 * The checksums of the manifest say that a record is what was written. It is checked here all the
 * same that it makes sense: what is read with it is then within its bounds, whoever wrote it.
 */
#include "src/checkpoint/manifest_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/spill/run_file.h"
#include "src/base/interval_search.h"
#include "src/base/diagnostics.h"

/* What is left of a payload. */
struct payload_reader {
	const unsigned char *next;
	size_t remaining_nbytes;
};

/* The next n things of nbytes each; NULL if there are not so many. */
static const void *payload_read_array(struct payload_reader *reader, uint64_t n, size_t nbytes)
{
	const unsigned char *array = reader->next;

	if (n > reader->remaining_nbytes / nbytes)
		return NULL;
	reader->next += n * nbytes;
	reader->remaining_nbytes -= n * nbytes;
	return array;
}

static bool payload_read_struct(struct payload_reader *reader, void *to, size_t nbytes)
{
	const void *from = payload_read_array(reader, 1, nbytes);

	if (from)
		memcpy(to, from, nbytes);
	return from;
}

/* A copy, aligned as elements are; NULL after a message. */
static void *copy_aligned(const void *bytes, size_t nbytes)
{
	void *to = aligned_alloc(_Alignof(encoded_key_t),
				 (nbytes / sizeof(encoded_key_t) + 1) * sizeof(encoded_key_t));

	if (!to)
		fail(-ENOMEM, "no memory for %zu bytes of a checkpoint", nbytes);
	else
		memcpy(to, bytes, nbytes);
	return to;
}

static bool is_valid_name(const char name[static FILE_UNIQUE_NAME_SIZE])
{
	const char *end = memchr(name, '\0', FILE_UNIQUE_NAME_SIZE);

	/* Older ones have none where the output is not kept. */
	return end == name || (end == &name[FILE_UNIQUE_NAME_SIZE - 1] &&
			       strncmp(name, ".gsort-", 7) == 0 && !strchr(name, '/'));
}

/* What is no name is not called one, in messages, say. */
static int visit_header(struct checkpoint_state *state, struct payload_reader *reader)
{
	struct saved_header header;

	if (!payload_read_struct(reader, &header, sizeof header) ||
	    !is_valid_name(header.output_name))
		return -EBADMSG;
	state->header = header;
	state->fingerprint_nbytes = reader->remaining_nbytes;
	state->fingerprint = copy_aligned(reader->next, reader->remaining_nbytes);
	return state->fingerprint ? 0 : -ENOMEM;
}

static bool is_valid_run(const struct checkpoint_run *run)
{
	uint64_t n_items = 0;

	for (uint64_t i = 0; i < run->run.n_blocks; i++) {
		const struct run_block *block = &run->blocks[i];

		if (!run_block_is_valid(block, run->run.item_nbytes) || block->file != 0 ||
		    block->first_item != n_items || (i && block->first_key < block[-1].first_key))
			return false;
		n_items += block->n_items;
	}
	return n_items == run->run.n_items;
}

/* Put the run in the place of those that it replaces. */
static int splice_run(struct checkpoint_state *state, const struct checkpoint_run *run)
{
	const size_t first = run->run.first, n = run->run.n_replaced;
	struct checkpoint_run *runs =
		realloc(state->runs, (state->n_runs + 1) * sizeof *state->runs);

	if (!runs)
		return fail(-ENOMEM, "no memory for the runs of a checkpoint");
	state->runs = runs;
	for (size_t i = first; i < first + n; i++)
		free(runs[i].blocks);
	memmove(runs + first + 1, runs + first + n, (state->n_runs - first - n) * sizeof *runs);
	runs[first] = *run;
	state->n_runs += 1 - n;
	return 0;
}

static int visit_run(struct checkpoint_state *state, struct payload_reader *reader)
{
	struct checkpoint_run run = { 0 };
	const void *blocks;
	int r;

	if (!payload_read_struct(reader, &run.run, sizeof run.run) ||
	    run.run.item_nbytes > 2 * LAYOUT_MAX_RECORD_NBYTES || run.run.first > state->n_runs ||
	    run.run.n_replaced > state->n_runs - run.run.first)
		return -EBADMSG;
	blocks = payload_read_array(reader, run.run.n_blocks, sizeof *run.blocks);
	if (!blocks || reader->remaining_nbytes)
		return -EBADMSG;
	run.blocks = copy_aligned(blocks, run.run.n_blocks * sizeof *run.blocks);
	if (!run.blocks)
		return -ENOMEM;
	r = is_valid_run(&run) ? splice_run(state, &run) : -EBADMSG;
	if (r < 0)
		free(run.blocks);
	return r;
}

uint64_t output_extents_end(uint64_t begin, const struct output_extent *extents, size_t n)
{
	return n ? extents[n - 1].offset + extents[n - 1].nbytes : begin;
}

static uint64_t partition_end(const struct checkpoint_partition *partition)
{
	return output_extents_end(partition->begin, partition->extents, partition->n_extents);
}

bool checkpoint_state_has_progress(const struct checkpoint_state *state)
{
	for (size_t i = 0; i < state->n_partitions; i++)
		if (state->partitions[i].has_restore_point)
			return true;
	return false;
}

uint64_t checkpoint_state_written_nbytes(const struct checkpoint_state *state)
{
	uint64_t nbytes = 0;

	for (size_t i = 0; i < state->n_partitions; i++)
		nbytes += partition_end(&state->partitions[i]) - state->partitions[i].begin;
	return nbytes;
}

uint64_t checkpoint_state_written_end(const struct checkpoint_state *state)
{
	uint64_t end = 0;

	for (size_t i = 0; i < state->n_partitions; i++)
		if (state->partitions[i].n_extents)
			end = partition_end(&state->partitions[i]);
	return end;
}

static void free_restore_point(struct checkpoint_partition *partition)
{
	free((void *)partition->restore_point.key);
	free((void *)partition->restore_point.first);
	free((void *)partition->restore_point.last);
	partition->restore_point = (struct restore_point){ 0 };
}

static void free_partitions(struct checkpoint_state *state)
{
	for (size_t i = 0; i < state->n_partitions; i++) {
		struct checkpoint_partition *partition = &state->partitions[i];

		free(partition->key);
		free_restore_point(partition);
		free(partition->extents);
	}
	free(state->partitions);
	state->partitions = NULL;
	state->n_partitions = 0;
}

static int alloc_partitions(struct checkpoint_state *state, size_t n)
{
	free_partitions(state);
	state->partitions = calloc(n, sizeof *state->partitions);
	if (!state->partitions)
		return fail(-ENOMEM, "no memory for %zu ranges of a checkpoint", n);
	state->n_partitions = n;
	return 0;
}

/* begins: n; keys: n of nbytes each. */
static int fill_partitions(struct checkpoint_state *state, const uint64_t *offsets,
			   const char *keys)
{
	for (size_t i = 0; i < state->n_partitions; i++) {
		struct checkpoint_partition *partition = &state->partitions[i];

		if (offsets[i] < (i ? offsets[i - 1] : 0) || offsets[i] > (i ? INT64_MAX : 0))
			return -EBADMSG;
		partition->begin = offsets[i];
		if (i)
			partition->key =
				copy_aligned(keys + i * state->key_nbytes, state->key_nbytes);
		if (i && !partition->key)
			return -ENOMEM;
	}
	return 0;
}

/* As long as nothing is written in them, others may take their place. */
static int visit_partitions(struct checkpoint_state *state, struct payload_reader *reader)
{
	struct saved_partitions saved;
	const void *offsets, *keys;
	int r;

	if (checkpoint_state_has_progress(state) ||
	    !payload_read_struct(reader, &saved, sizeof saved) || saved.n_partitions == 0 ||
	    saved.n_partitions > UINT32_MAX || saved.key_nbytes < sizeof(encoded_key_t) ||
	    saved.key_nbytes > reader->remaining_nbytes)
		return -EBADMSG;
	offsets = payload_read_array(reader, saved.n_partitions, sizeof(uint64_t));
	keys = payload_read_array(reader, saved.n_partitions, saved.key_nbytes);
	if (!offsets || !keys || reader->remaining_nbytes)
		return -EBADMSG;
	r = alloc_partitions(state, saved.n_partitions);
	state->key_nbytes = saved.key_nbytes;
	return r < 0 ? r : fill_partitions(state, offsets, keys);
}

/* Of range i: parts that go on where its last ones ended, up to the next range. */
static int append_extents(struct checkpoint_state *state, size_t i, struct payload_reader *reader,
			  uint64_t n)
{
	struct checkpoint_partition *partition = &state->partitions[i];
	const uint64_t max_end = i + 1 < state->n_partitions ? partition[1].begin : INT64_MAX;
	uint64_t end = partition_end(partition);
	const void *from = payload_read_array(reader, n, sizeof *partition->extents);
	struct output_extent *extents;

	if (!from)
		return -EBADMSG;
	extents = realloc(partition->extents, (partition->n_extents + n + 1) * sizeof *extents);
	if (!extents)
		return fail(-ENOMEM, "no memory for the output's parts of a checkpoint");
	partition->extents = extents;
	extents += partition->n_extents;
	memcpy(extents, from, n * sizeof *extents);
	for (uint64_t j = 0; j < n; j++) {
		if (extents[j].offset != end || extents[j].nbytes == 0 ||
		    extents[j].nbytes > max_end - end)
			return -EBADMSG;
		end += extents[j].nbytes;
	}
	partition->n_extents += n;
	return 0;
}

/* What follows the parts. */
static int payload_read_restore_point(struct checkpoint_partition *partition,
				      const struct saved_restore_point *saved,
				      struct payload_reader *reader)
{
	const void *key = payload_read_array(reader, saved->key_nbytes, 1);
	const void *first = payload_read_array(reader, saved->edge_nbytes, 1);
	const void *last = payload_read_array(reader, saved->edge_nbytes, 1);

	if (!key || !first || !last || reader->remaining_nbytes)
		return -EBADMSG;
	free_restore_point(partition);
	partition->restore_point =
		(struct restore_point){ .key = copy_aligned(key, saved->key_nbytes),
					.first = copy_aligned(first, saved->edge_nbytes),
					.last = copy_aligned(last, saved->edge_nbytes),
					.result = saved->result };
	partition->has_restore_point = true;
	partition->n_extents_at_point = partition->n_extents;
	return partition->restore_point.key && partition->restore_point.first &&
			       partition->restore_point.last ?
		       0 :
		       -ENOMEM;
}

static int visit_restore_point(struct checkpoint_state *state, struct payload_reader *reader)
{
	const bool has_restore_points = checkpoint_state_has_progress(state);
	struct saved_restore_point saved;
	int r;

	if (!payload_read_struct(reader, &saved, sizeof saved) ||
	    saved.partition >= state->n_partitions || saved.key_nbytes != state->key_nbytes ||
	    (has_restore_points && saved.edge_nbytes != state->edge_nbytes))
		return -EBADMSG;
	state->edge_nbytes = saved.edge_nbytes;
	r = append_extents(state, saved.partition, reader, saved.n_extents);
	return r < 0 ? r :
		       payload_read_restore_point(&state->partitions[saved.partition], &saved,
						  reader);
}

/* How many of the parts are of the range that the first of them is in, which is *ret_partition. */
static uint64_t count_in_partition(const struct checkpoint_state *state,
				   const struct payload_reader *reader, uint64_t n,
				   size_t *ret_partition)
{
	const struct output_extent *extents = (const void *)reader->next;
	uint64_t i = 1, end = UINT64_MAX;

	*ret_partition = find_interval(state->partitions, sizeof *state->partitions,
				       offsetof(struct checkpoint_partition, begin),
				       state->n_partitions, extents->offset);
	if (*ret_partition + 1 < state->n_partitions)
		end = state->partitions[*ret_partition + 1].begin;
	while (i < n && extents[i].offset < end)
		i++;
	return i;
}

/* What was only in memory was written without points, in no ranges that matter. */
static int visit_done(struct checkpoint_state *state, struct payload_reader *reader)
{
	uint64_t n;
	int r = 0;

	if (!payload_read_struct(reader, &state->done, sizeof state->done) ||
	    reader->remaining_nbytes / sizeof(struct output_extent) < state->done.n_extents)
		return -EBADMSG;
	if (state->n_partitions == 0)
		r = alloc_partitions(state, 1);
	state->is_done = r == 0;
	for (uint64_t remaining = state->done.n_extents; remaining && r == 0; remaining -= n) {
		size_t partition;

		n = count_in_partition(state, reader, remaining, &partition);
		r = append_extents(state, partition, reader, n);
	}
	return r;
}

void checkpoint_state_clear_done(struct checkpoint_state *state)
{
	for (size_t i = 0; state->is_done && i < state->n_partitions; i++)
		state->partitions[i].n_extents = state->partitions[i].n_extents_at_point;
	state->is_done = false;
}

int checkpoint_state_visit(void *context, const struct manifest_record *record)
{
	struct checkpoint_state *state = context;
	struct payload_reader reader = { record->payload, record->nbytes };

	if ((record->type == RECORD_HEADER) != !state->fingerprint)
		return -EBADMSG;
	checkpoint_state_clear_done(state);
	switch (record->type) {
	case RECORD_HEADER:
		return visit_header(state, &reader);
	case RECORD_OUTPUT:
		return payload_read_struct(&reader, &state->output, sizeof state->output) ?
			       0 :
			       -EBADMSG;
	case RECORD_RUN:
		return visit_run(state, &reader);
	case RECORD_PARTITIONS:
		return visit_partitions(state, &reader);
	case RECORD_RESTORE_POINT:
		return visit_restore_point(state, &reader);
	case RECORD_DONE:
		return visit_done(state, &reader);
	case RECORD_DAMAGED:
		state->is_damaged = true;
		return payload_read_struct(&reader, &state->damage, sizeof state->damage) ?
			       0 :
			       -EBADMSG;
	default:
		return -EBADMSG;
	}
}

void checkpoint_state_free_runs(struct checkpoint_state *state)
{
	for (size_t i = 0; i < state->n_runs; i++)
		free(state->runs[i].blocks);
	free(state->runs);
	state->runs = NULL;
	state->n_runs = 0;
}

void checkpoint_state_free(struct checkpoint_state *state)
{
	checkpoint_state_free_runs(state);
	free(state->fingerprint);
	free_partitions(state);
	*state = (struct checkpoint_state){ 0 };
}

void *payload_join(const struct payload_slice *slices, size_t n, size_t *ret_nbytes)
{
	size_t nbytes = 0;
	char *payload;

	for (size_t i = 0; i < n; i++)
		nbytes += slices[i].nbytes;
	payload = malloc(nbytes + 1);
	if (!payload) {
		fail(-ENOMEM, "no memory for %zu bytes of a checkpoint", nbytes);
		return NULL;
	}
	nbytes = 0;
	for (size_t i = 0; i < n; i++) {
		if (slices[i].nbytes)
			memcpy(payload + nbytes, slices[i].bytes, slices[i].nbytes);
		nbytes += slices[i].nbytes;
	}
	*ret_nbytes = nbytes;
	return payload;
}

int checkpoint_append_record(struct manifest *manifest, enum checkpoint_record type,
			     const struct payload_slice *slices, size_t n)
{
	size_t nbytes;
	void *payload = payload_join(slices, n, &nbytes);
	int r;

	if (!payload)
		return -ENOMEM;
	r = manifest_append(manifest, &(struct manifest_record){ type, payload, nbytes });
	free(payload);
	return r;
}
