/*
 * state - what the records of a checkpoint's manifest say (see state.h)
 *
 * The checksums of the manifest say that a record is what was written. It is checked here all the
 * same that it makes sense: what is read with it is then within its bounds, whoever wrote it.
 */
#include "src/checkpoint/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/codec/codec.h"
#include "src/base/messages.h"

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

	/* Of several ranks none keeps the output. */
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

static bool is_valid_block(const struct run_block *block, uint64_t item_nbytes)
{
	const uint64_t nbytes = block->n_items * item_nbytes;

	return block->n_items > 0 && block->file == 0 && block->codec < N_CODECS &&
	       block->offset <= INT64_MAX - UINT32_MAX &&
	       (block->codec == CODEC_RAW ? block->stored_nbytes == nbytes :
					    block->stored_nbytes && block->stored_nbytes < nbytes);
}

static bool is_valid_run(const struct checkpoint_run *run)
{
	uint64_t n_items = 0;

	for (uint64_t i = 0; i < run->run.n_blocks; i++) {
		const struct run_block *block = &run->blocks[i];

		if (!is_valid_block(block, run->run.item_nbytes) || block->first_item != n_items ||
		    (i && block->first_key < block[-1].first_key))
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

uint64_t output_parts_nbytes(const struct output_part *parts, size_t n)
{
	return n ? parts[n - 1].offset + parts[n - 1].nbytes : 0;
}

/* Parts that go on where the last ones ended. */
static int add_parts(struct checkpoint_state *state, struct cursor *cursor, uint64_t n)
{
	uint64_t end = output_parts_nbytes(state->parts, state->n_parts);
	const void *from = take(cursor, n, sizeof *state->parts);
	struct output_part *parts;

	if (!from)
		return -EBADMSG;
	parts = realloc(state->parts, (state->n_parts + n + 1) * sizeof *parts);
	if (!parts)
		return fail(-ENOMEM, "no memory for the output's parts of a checkpoint");
	state->parts = parts;
	parts += state->n_parts;
	memcpy(parts, from, n * sizeof *parts);
	for (uint64_t i = 0; i < n; i++) {
		if (parts[i].offset != end || parts[i].nbytes == 0 ||
		    parts[i].nbytes > INT64_MAX - end)
			return -EBADMSG;
		end += parts[i].nbytes;
	}
	state->n_parts += n;
	return 0;
}

static int visit_point(struct checkpoint_state *state, struct cursor *cursor)
{
	struct saved_point saved;
	const void *key, *edge;
	int r;

	if (!take_struct(cursor, &saved, sizeof saved))
		return -EBADMSG;
	r = add_parts(state, cursor, saved.n_parts);
	if (r < 0)
		return r;
	key = take(cursor, saved.key_nbytes, 1);
	edge = take(cursor, saved.edge_nbytes, 1);
	if (!key || !edge || saved.key_nbytes < sizeof(code_t) || cursor->nbytes)
		return -EBADMSG;
	free((void *)state->point.key);
	free((void *)state->point.last);
	state->point = (struct merge_point){ .key = copy(key, saved.key_nbytes),
					     .last = copy(edge, saved.edge_nbytes),
					     .result = saved.result };
	state->key_nbytes = saved.key_nbytes;
	state->edge_nbytes = saved.edge_nbytes;
	state->has_point = true;
	return state->point.key && state->point.last ? 0 : -ENOMEM;
}

static int visit_done(struct checkpoint_state *state, struct cursor *cursor)
{
	if (!take_struct(cursor, &state->done, sizeof state->done))
		return -EBADMSG;
	state->is_done = true;
	return add_parts(state, cursor, state->done.n_parts);
}

void checkpoint_state_forget_done(struct checkpoint_state *state)
{
	if (state->is_done)
		state->n_parts -= state->done.n_parts;
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
	free((void *)state->point.key);
	free((void *)state->point.last);
	free(state->parts);
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
