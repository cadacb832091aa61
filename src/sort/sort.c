/*
 * sort - the whole sort on one page
 *
 *	open inputs, output, back end	what there is, and what to do with it (setup.c)
 *	make runs			sorted: resident, spilled, or the inputs; and fewer (prepare_runs.c)
 *	write				merge them into the output (final_merge.c, sort_output.c)
 *	check				what was read is what was written, in order (integrity.c)
 *	commit				only now the output has its name
 *
 * Of several ranks each does that of its share (distributed_sort.c).
 */
#include "src/sort/sort.h"

#include "src/base/diagnostics.h"
#include "src/sort/sort_internal.h"
#include "src/sort/setup.h"
#include "src/sort/distributed_sort.h"

static int tell_devices(const struct sort *sort)
{
	const struct sort_observer *observer = sort->settled.observer;
	const char *name = sort->job.info.name;

	if (sort->spec->ranks)
		return device_share_tell(sort->spec->ranks, name, observer->device,
					 observer->context);
	if (observer->device)
		observer->device(observer->context, name);
	return 0;
}

/* The output first: whoever feeds us may wait for it. */
static int open_rest(struct sort *sort)
{
	struct setup setup = { .spec = sort->spec,
			       .checkpoint = sort->checkpoint,
			       .result = &sort->result };
	int r = result_open(sort->spec, &sort->job, sort->checkpoint, &sort->result);

	if (r == 0)
		r = setup_look_ahead(&sort->settled, &sort->job, true);
	if (r < 0)
		return r;
	setup.ordered_output = result_is_ordered(&sort->result);
	setup.counts_first =
		around_counts_first(sort->spec, &sort->settled.header, setup.ordered_output);
	r = setup_open(&setup, &sort->job);
	if (r == 0)
		facts_watch(sort);
	if (r == 0 && !sort->spec->ranks)
		result_choose_way(&sort->result, result_use(&sort->result));
	if (r == 0)
		r = tell_devices(sort);
	return r == 0 && sort->spec->ranks ? share_agree(sort) : r;
}

/* An earlier process may have begun the same sort, or done it. */
static int take_up_and_sort(struct sort *sort)
{
	const struct sort_spec *spec = sort->spec;
	int r = spec->ranks ? share_begin(sort) : 0;

	if (r == 0 && spec->checkpoint_path)
		r = spec->ranks ? share_open_checkpoint(sort) :
				  checkpoint_open(sort->job.io, spec, sort->job.layout,
						  sort->job.input, &sort->checkpoint);
	if (r == 0 && sort->checkpoint && checkpoint_is_complete(sort->checkpoint)) {
		tell("resuming: %s is complete", spec->output_path);
		checkpoint_remove(sort->checkpoint);
		return 0;
	}
	if (r == 0)
		r = open_rest(sort);
	if (r == 0)
		r = runs_make(sort);
	if (r == 0 && sort_spec_exchanges(spec))
		r = share_exchange(sort);
	if (r == 0)
		r = runs_reduce(sort);
	if (r == 0)
		r = writing_merge(sort);
	if (r == 0)
		r = writing_check(sort);
	if (r == 0)
		r = writing_commit(sort);
	if (r < 0)
		checkpoint_stop(sort->checkpoint,
				sort_spec_keeps_output(spec) ? result_output(&sort->result) : NULL);
	return r;
}

static void close_all(struct sort *sort, int r)
{
	const bool is_complete = sort->result.is_committed || sort->share.is_complete;

	result_abort(&sort->result); /* first: what others would find */
	if (r < 0 && sort->spec->ranks)
		share_give_up(sort, r);
	facts_look_away(sort);
	run_store_free(&sort->store);
	share_close(sort);
	run_store_free(&sort->whole);
	input_runs_close(sort->inputs);
	setup_close(&sort->job);
	/* Last of all: as long as it is there, who starts again is told that all is done. */
	if (is_complete && sort->checkpoint)
		checkpoint_remove(sort->checkpoint);
	checkpoint_close(sort->checkpoint);
	setup_close_inputs(&sort->settled, &sort->job);
}

int sort_run(const struct sort_spec *spec, const struct sort_observer *observer,
	     struct stats *stats, struct sort_facts *ret_facts)
{
	struct sort sort = { .spec = &sort.settled.spec, .job.stats = stats };
	int r = spec->ranks ? share_open_inputs(&sort, spec, observer) :
			      setup_open_inputs(spec, observer, &sort.settled, &sort.job);

	if (r == 0)
		r = take_up_and_sort(&sort);
	if (r == 0) {
		if (observer->committed)
			observer->committed(observer->context);
		input_pass(sort.job.input);
		facts_note(&sort);
		*ret_facts = sort.facts;
	}
	close_all(&sort, r);
	return r;
}
