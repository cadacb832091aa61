/*
 * line_checkpoint.c - resume a sort of lines from its stored runs (see line_sort_internal.h)
 *
 * A checkpoint counts the input in bytes. The bytes of lines are those that line_input_read()
 * returns: without headers, and with a delimiter at the end of each input. A run was made of whole
 * lines, which follow those of the run before it. So a resumed sort skips the bytes of all runs. Of
 * several ranks, each has a checkpoint of its share.
 */
#include "src/lines/line_sort.h"
#include "src/lines/line_sort_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/size.h"
#include "src/checkpoint/checkpoint_state.h"
#include "src/sort/distributed_sort.h"

const struct layout line_text_layout = { .record_nbytes = 1,
					 .item_nbytes = 1,
					 .resident_nbytes = 1,
					 .encoding = { .record_nbytes = 1, .element_nbytes = 4 } };

int line_checkpoint_open(const struct line_sort_params *params,
			 struct line_checkpoint *ret_checkpoint)
{
	const struct sort_spec *spec = &params->spec;
	const struct framing framing = { .record_nbytes = 1,
					 .format = spec->format == FORMAT_RAW ? FORMAT_RAW :
										FORMAT_COMPRESSED };
	struct line_checkpoint *checkpoint = ret_checkpoint;
	uint64_t nbytes;
	int r;

	checkpoint->order = line_keys_format(params->keys);
	if (!checkpoint->order)
		return fail(-errno, "--checkpoint: no memory to describe the sort: %m");
	checkpoint->spec = params->spec;
	checkpoint->spec.lines = checkpoint->order;
	r = input_open_endpoints(spec->io, spec->inputs, spec->input_endpoints, spec->n_inputs,
				 &framing, &checkpoint->input);
	if (r < 0)
		return r;
	nbytes = input_total_nbytes(checkpoint->input);
	if (nbytes != INPUT_SIZE_UNKNOWN) /* the last line of each input may get a delimiter */
		nbytes += spec->n_inputs;
	return (spec->comm ? distributed_open_checkpoint :
			     checkpoint_open)(spec->io, &checkpoint->spec, &line_text_layout,
					      checkpoint->input, nbytes, &checkpoint->checkpoint);
}

void line_checkpoint_close(struct line_checkpoint *checkpoint, bool is_committed)
{
	if (is_committed && checkpoint->checkpoint)
		checkpoint_remove(checkpoint->checkpoint);
	checkpoint_close(checkpoint->checkpoint);
	input_close(checkpoint->input);
	free(checkpoint->order);
}

void line_checkpoint_attach(struct line_checkpoint *checkpoint, struct line_sort *sort)
{
	sort->checkpoint = checkpoint;
	sort->job.input = checkpoint->input;
	sort->job.checkpoint_hooks = checkpoint_get_hooks(checkpoint->checkpoint);
	sort->job.plan.block_nbytes = u64_max(sort->job.plan.block_nbytes,
					      checkpoint_block_nbytes(checkpoint->checkpoint));
}

/* --- The input of stored runs --- */

enum { CHECK_NBYTES = 8 << 20 }; /* of text, read at a time */

/* Hash the next nbytes of text. Returns 1 if they are whole lines, or 0 if they are not. */
static int hash_text(struct line_sort *sort, uint64_t nbytes, struct digest *ret_digest)
{
	unsigned char *text = line_block_text(sort->block);
	const size_t max_nbytes = sort->memory_nbytes / 2;
	size_t n = 0, n_read = 0;
	int r = 0;

	*ret_digest = (struct digest){ 0 };
	for (; nbytes > 0 && r == 0; nbytes -= n_read) {
		const size_t wanted = u64_min(u64_min(nbytes, CHECK_NBYTES), max_nbytes - n);
		const struct span span = stats_begin(STAGE_VERIFY, 0);
		unsigned char *end;

		r = line_input_read(sort->input, text + n, wanted, &n_read);
		if (r < 0 || n_read == 0)
			return r;
		n += n_read;
		end = line_sort_last_end(sort, text, text + n);
		r = line_block_add_digest(sort->block, (struct line_range){ text, end },
					  ret_digest);
		stats_end(sort->job.stats, span, n_read);
		n -= (size_t)(end - text);
		memmove(text, end, n);
	}
	return r < 0 ? r : n == 0;
}

/* Compare the text with the digest of a run (struct input_check). */
static int check_run(void *context, uint64_t position, const struct run_origin *origin,
		     struct input_change *ret_change)
{
	struct line_sort *sort = context;
	struct digest digest;
	int r;

	/* A line that does not fit in memory could not be sorted, either. */
	sort->longest_nbytes = origin->max_record_nbytes;
	r = line_runs_check_longest(sort);
	if (r == 0)
		r = line_input_skip_to(sort->input, position);
	if (r < 0)
		return r;
	ret_change->unit = "byte";
	ret_change->path = line_input_offset(sort->input, &ret_change->position);
	r = hash_text(sort, origin->nbytes, &digest);
	if (r < 0)
		return r;
	return r == 1 && digest_equal(digest, origin->totals.read) ? 0 : -EBADMSG;
}

int line_checkpoint_restore(struct line_sort *sort)
{
	enum { BLOCKS_PER_LIMIT = 64 };
	const struct input_check check = { check_run, sort };
	struct checkpoint *checkpoint = sort->checkpoint->checkpoint;
	const uint64_t block_nbytes = checkpoint_block_nbytes(checkpoint);
	int r;

	/* The blocks of stored runs must fit in memory. More memory stores longer blocks. */
	if (block_nbytes > sort->memory_nbytes / LINE_MIN_RESUME_BLOCKS)
		return fail(-E2BIG,
			    "%s of memory is too little to resume this checkpoint with blocks of "
			    "%s; use -S of at least %" PRIu64 "M",
			    size_format_down(sort->spec->memory_nbytes).text,
			    size_format(block_nbytes).text,
			    (block_nbytes * BLOCKS_PER_LIMIT >> 20) + 1);
	r = checkpoint_restore(checkpoint, &sort->job, &check, &sort->runs, &sort->origin);
	if (r < 0)
		return r;
	sort->totals = sort->origin.totals;
	sort->text_nbytes = sort->origin.nbytes;
	sort->longest_nbytes = sort->origin.max_record_nbytes;
	r = line_runs_check_longest(sort);
	if (r == 0 && sort->text_nbytes > 0)
		r = line_input_skip_to(sort->input, sort->job.first_record + sort->text_nbytes);
	return r == 0 && sort->ranks ? line_ranks_resume(sort) : r;
}
