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
struct cursor {
	const unsigned char *at;
	size_t nbytes;
};

/* The next n things of nbytes each; NULL if there are not so many. */
static const void *take(struct cursor *cursor, uint64_t n, size_t nbytes)
{
	const unsigned char *at = cursor->at;

	if (n > cursor->nbytes / nbytes)
		return NULL;
	cursor->at += n * nbytes;
	cursor->nbytes -= n * nbytes;
	return at;
}

static bool take_struct(struct cursor *cursor, void *to, size_t nbytes)
{
	const void *from = take(cursor, 1, nbytes);

	if (from)
		memcpy(to, from, nbytes);
	return from;
}

/* A copy, aligned as elements are; NULL after a message. */
static void *copy(const void *bytes, size_t nbytes)
{
	void *to = aligned_alloc(_Alignof(code_t), (nbytes / sizeof(code_t) + 1) * sizeof(code_t));

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
static int visit_header(struct checkpoint_state *state, struct cursor *cursor)
{
	struct saved_header header;

	if (!take_struct(cursor, &header, sizeof header) || !is_valid_name(header.output_name))
		return -EBADMSG;
	state->header = header;
	state->description_nbytes = cursor->nbytes;
	state->description = copy(cursor->at, cursor->nbytes);
	return state->description ? 0 : -ENOMEM;
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
static int splice(struct checkpoint_state *state, const struct checkpoint_run *run)
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

static int visit_run(struct checkpoint_state *state, struct cursor *cursor)
{
	struct checkpoint_run run = { 0 };
	const void *blocks;
	int r;

	if (!take_struct(cursor, &run.run, sizeof run.run) ||
	    run.run.item_nbytes > 2 * LAYOUT_MOST_RECORD_NBYTES || run.run.first > state->n_runs ||
	    run.run.n_replaced > state->n_runs - run.run.first)
		return -EBADMSG;
	blocks = take(cursor, run.run.n_blocks, sizeof *run.blocks);
	if (!blocks || cursor->nbytes)
		return -EBADMSG;
	run.blocks = copy(blocks, run.run.n_blocks * sizeof *run.blocks);
	if (!run.blocks)
		return -ENOMEM;
	r = is_valid_run(&run) ? splice(state, &run) : -EBADMSG;
	if (r < 0)
		free(run.blocks);
	return r;
}

uint64_t output_parts_end(uint64_t begin, const struct output_part *parts, size_t n)
{
	return n ? parts[n - 1].offset + parts[n - 1].nbytes : begin;
}

static uint64_t range_end(const struct checkpoint_range *range)
{
	return output_parts_end(range->begin, range->parts, range->n_parts);
}

bool checkpoint_state_has_points(const struct checkpoint_state *state)
{
	for (size_t i = 0; i < state->n_ranges; i++)
		if (state->ranges[i].has_point)
			return true;
	return false;
}

uint64_t checkpoint_state_nbytes(const struct checkpoint_state *state)
{
	uint64_t nbytes = 0;

	for (size_t i = 0; i < state->n_ranges; i++)
		nbytes += range_end(&state->ranges[i]) - state->ranges[i].begin;
	return nbytes;
}

uint64_t checkpoint_state_end(const struct checkpoint_state *state)
{
	uint64_t end = 0;

	for (size_t i = 0; i < state->n_ranges; i++)
		if (state->ranges[i].n_parts)
			end = range_end(&state->ranges[i]);
	return end;
}

static void forget_point(struct checkpoint_range *range)
{
	free((void *)range->point.key);
	free((void *)range->point.first);
	free((void *)range->point.last);
	range->point = (struct merge_point){ 0 };
}

static void free_ranges(struct checkpoint_state *state)
{
	for (size_t i = 0; i < state->n_ranges; i++) {
		struct checkpoint_range *range = &state->ranges[i];

		free(range->key);
		forget_point(range);
		free(range->parts);
	}
	free(state->ranges);
	state->ranges = NULL;
	state->n_ranges = 0;
}

static int make_ranges(struct checkpoint_state *state, size_t n)
{
	free_ranges(state);
	state->ranges = calloc(n, sizeof *state->ranges);
	if (!state->ranges)
		return fail(-ENOMEM, "no memory for %zu ranges of a checkpoint", n);
	state->n_ranges = n;
	return 0;
}

/* begins: n; keys: n of nbytes each. */
static int fill_ranges(struct checkpoint_state *state, const uint64_t *begins, const char *keys)
{
	for (size_t i = 0; i < state->n_ranges; i++) {
		struct checkpoint_range *range = &state->ranges[i];

		if (begins[i] < (i ? begins[i - 1] : 0) || begins[i] > (i ? INT64_MAX : 0))
			return -EBADMSG;
		range->begin = begins[i];
		if (i)
			range->key = copy(keys + i * state->key_nbytes, state->key_nbytes);
		if (i && !range->key)
			return -ENOMEM;
	}
	return 0;
}

/* As long as nothing is written in them, others may take their place. */
static int visit_ranges(struct checkpoint_state *state, struct cursor *cursor)
{
	struct saved_ranges saved;
	const void *begins, *keys;
	int r;

	if (checkpoint_state_has_points(state) || !take_struct(cursor, &saved, sizeof saved) ||
	    saved.n_ranges == 0 || saved.n_ranges > UINT32_MAX ||
	    saved.key_nbytes < sizeof(code_t) || saved.key_nbytes > cursor->nbytes)
		return -EBADMSG;
	begins = take(cursor, saved.n_ranges, sizeof(uint64_t));
	keys = take(cursor, saved.n_ranges, saved.key_nbytes);
	if (!begins || !keys || cursor->nbytes)
		return -EBADMSG;
	r = make_ranges(state, saved.n_ranges);
	state->key_nbytes = saved.key_nbytes;
	return r < 0 ? r : fill_ranges(state, begins, keys);
}

/* Of range i: parts that go on where its last ones ended, up to the next range. */
static int add_parts(struct checkpoint_state *state, size_t i, struct cursor *cursor, uint64_t n)
{
	struct checkpoint_range *range = &state->ranges[i];
	const uint64_t most = i + 1 < state->n_ranges ? range[1].begin : INT64_MAX;
	uint64_t end = range_end(range);
	const void *from = take(cursor, n, sizeof *range->parts);
	struct output_part *parts;

	if (!from)
		return -EBADMSG;
	parts = realloc(range->parts, (range->n_parts + n + 1) * sizeof *parts);
	if (!parts)
		return fail(-ENOMEM, "no memory for the output's parts of a checkpoint");
	range->parts = parts;
	parts += range->n_parts;
	memcpy(parts, from, n * sizeof *parts);
	for (uint64_t j = 0; j < n; j++) {
		if (parts[j].offset != end || parts[j].nbytes == 0 || parts[j].nbytes > most - end)
			return -EBADMSG;
		end += parts[j].nbytes;
	}
	range->n_parts += n;
	return 0;
}

/* What follows the parts. */
static int take_point(struct checkpoint_range *range, const struct saved_point *saved,
		      struct cursor *cursor)
{
	const void *key = take(cursor, saved->key_nbytes, 1);
	const void *first = take(cursor, saved->edge_nbytes, 1);
	const void *last = take(cursor, saved->edge_nbytes, 1);

	if (!key || !first || !last || cursor->nbytes)
		return -EBADMSG;
	forget_point(range);
	range->point = (struct merge_point){ .key = copy(key, saved->key_nbytes),
					     .first = copy(first, saved->edge_nbytes),
					     .last = copy(last, saved->edge_nbytes),
					     .result = saved->result };
	range->has_point = true;
	range->n_at_point = range->n_parts;
	return range->point.key && range->point.first && range->point.last ? 0 : -ENOMEM;
}

static int visit_point(struct checkpoint_state *state, struct cursor *cursor)
{
	const bool has_points = checkpoint_state_has_points(state);
	struct saved_point saved;
	int r;

	if (!take_struct(cursor, &saved, sizeof saved) || saved.range >= state->n_ranges ||
	    saved.key_nbytes != state->key_nbytes ||
	    (has_points && saved.edge_nbytes != state->edge_nbytes))
		return -EBADMSG;
	state->edge_nbytes = saved.edge_nbytes;
	r = add_parts(state, saved.range, cursor, saved.n_parts);
	return r < 0 ? r : take_point(&state->ranges[saved.range], &saved, cursor);
}

/* How many of the parts are of the range that the first of them is in, which is *ret_range. */
static uint64_t count_in_range(const struct checkpoint_state *state, const struct cursor *cursor,
			       uint64_t n, size_t *ret_range)
{
	const struct output_part *parts = (const void *)cursor->at;
	uint64_t i = 1, end = UINT64_MAX;

	*ret_range = begins_find(state->ranges, sizeof *state->ranges,
				 offsetof(struct checkpoint_range, begin), state->n_ranges,
				 parts->offset);
	if (*ret_range + 1 < state->n_ranges)
		end = state->ranges[*ret_range + 1].begin;
	while (i < n && parts[i].offset < end)
		i++;
	return i;
}

/* What was only in memory was written without points, in no ranges that matter. */
static int visit_done(struct checkpoint_state *state, struct cursor *cursor)
{
	uint64_t n;
	int r = 0;

	if (!take_struct(cursor, &state->done, sizeof state->done) ||
	    cursor->nbytes / sizeof(struct output_part) < state->done.n_parts)
		return -EBADMSG;
	if (state->n_ranges == 0)
		r = make_ranges(state, 1);
	state->is_done = r == 0;
	for (uint64_t left = state->done.n_parts; left && r == 0; left -= n) {
		size_t range;

		n = count_in_range(state, cursor, left, &range);
		r = add_parts(state, range, cursor, n);
	}
	return r;
}

void checkpoint_state_forget_done(struct checkpoint_state *state)
{
	for (size_t i = 0; state->is_done && i < state->n_ranges; i++)
		state->ranges[i].n_parts = state->ranges[i].n_at_point;
	state->is_done = false;
}

int checkpoint_state_visit(void *context, const struct manifest_record *record)
{
	struct checkpoint_state *state = context;
	struct cursor cursor = { record->payload, record->nbytes };

	if ((record->type == RECORD_HEADER) != !state->description)
		return -EBADMSG;
	checkpoint_state_forget_done(state);
	switch (record->type) {
	case RECORD_HEADER:
		return visit_header(state, &cursor);
	case RECORD_OUTPUT:
		return take_struct(&cursor, &state->output, sizeof state->output) ? 0 : -EBADMSG;
	case RECORD_RUN:
		return visit_run(state, &cursor);
	case RECORD_RANGES:
		return visit_ranges(state, &cursor);
	case RECORD_POINT:
		return visit_point(state, &cursor);
	case RECORD_DONE:
		return visit_done(state, &cursor);
	case RECORD_DAMAGED:
		state->is_damaged = true;
		return take_struct(&cursor, &state->damage, sizeof state->damage) ? 0 : -EBADMSG;
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
	free(state->description);
	free_ranges(state);
	*state = (struct checkpoint_state){ 0 };
}

void *payload_join(const struct payload_part *parts, size_t n, size_t *ret_nbytes)
{
	size_t nbytes = 0;
	char *payload;

	for (size_t i = 0; i < n; i++)
		nbytes += parts[i].nbytes;
	payload = malloc(nbytes + 1);
	if (!payload) {
		fail(-ENOMEM, "no memory for %zu bytes of a checkpoint", nbytes);
		return NULL;
	}
	nbytes = 0;
	for (size_t i = 0; i < n; i++) {
		if (parts[i].nbytes)
			memcpy(payload + nbytes, parts[i].bytes, parts[i].nbytes);
		nbytes += parts[i].nbytes;
	}
	*ret_nbytes = nbytes;
	return payload;
}

int checkpoint_append(struct manifest *manifest, enum checkpoint_record type,
		      const struct payload_part *parts, size_t n)
{
	size_t nbytes;
	void *payload = payload_join(parts, n, &nbytes);
	int r;

	if (!payload)
		return -ENOMEM;
	r = manifest_append(manifest, &(struct manifest_record){ type, payload, nbytes });
	free(payload);
	return r;
}
