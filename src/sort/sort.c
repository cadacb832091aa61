/*
 * sort.c - a sort or merge from start to end
 *
 *	open inputs, output and devices		setup.c, sort_output.c
 *	create runs				generate, restore or open them; merge some of them
 *						if they are too many
 *	final merge				into the output
 *	check					the evidence in struct integrity; --verify
 *	commit					give the output its name
 *
 * With several ranks each does this for its part (distributed_sort.c).
 */
#include "src/sort/sort.h"

#include "src/base/diagnostics.h"
#include "src/comm/comm.h"
#include "src/sort/distributed_sort.h"
#include "src/sort/sort_internal.h"

static int report_devices(const struct sort *sort)
{
	const struct sort_observer *observer = sort->resolved.observer;
	const char *name = sort->job.device_info.name;

	if (sort->spec->comm)
		return device_assignment_report(sort->spec->comm, name, observer->on_device,
						observer->context);
	if (observer->on_device)
		observer->on_device(observer->context, name);
	return 0;
}

/* Open the output first, because its reader may wait for it. */
static int open_output_and_setup(struct sort *sort)
{
	struct setup setup = { .spec = sort->spec,
			       .checkpoint = sort->checkpoint,
			       .output = &sort->output };
	enum cache_policy policy;
	int r = sort_output_open(sort->spec, &sort->job, &sort->resolved.header, sort->checkpoint,
				 &sort->output);

	if (r == 0)
		r = setup_probe_inputs(&sort->resolved, &sort->job, true);
	if (r < 0)
		return r;
	setup.ordered_output = sort_output_is_ordered(&sort->output);
	setup.needs_count_first =
		sort_output_needs_count(sort->spec, &sort->resolved.header, setup.ordered_output);
	r = setup_open(&setup, &sort->job);
	if (r == 0)
		job_set_volume_source(&sort->job);
	if (r == 0)
		r = report_devices(sort);
	if (r < 0)
		return r;
	policy = sort_output_cache_policy(&sort->output);
	if (sort->spec->comm)
		r = distributed_agree_plan(&sort->job, &policy);
	if (r == 0)
		sort_output_choose_io_mode(&sort->output, policy);
	return r;
}

/* An earlier process may have begun or completed the same sort. */
static int resume_and_sort(struct sort *sort)
{
	const struct sort_spec *spec = sort->spec;
	int r = spec->comm ? distributed_begin(sort) : 0;

	if (r == 0 && spec->checkpoint_path)
		r = (spec->comm ? distributed_open_checkpoint : checkpoint_open)(
			sort->job.io, spec, sort->job.layout, sort->job.input,
			input_total_nbytes(sort->job.input), &sort->checkpoint);
	if (r == 0 && sort->checkpoint && checkpoint_is_complete(sort->checkpoint)) {
		notice("resuming: %s is complete", spec->output_path);
		checkpoint_remove(sort->checkpoint);
		return 0;
	}
	if (r == 0)
		r = open_output_and_setup(sort);
	if (r == 0)
		r = sort_create_runs(sort);
	if (r == 0 && spec_exchanges_runs(spec))
		r = distributed_exchange(sort);
	if (r == 0)
		r = sort_reduce_runs(sort);
	if (r == 0)
		r = sort_run_final_merge(sort);
	if (r == 0)
		r = sort_check_output(sort);
	if (r == 0)
		r = sort_commit_output(sort);
	if (r < 0)
		checkpoint_stop(sort->checkpoint);
	return r;
}

static void close_sort(struct sort *sort, int r)
{
	const bool is_complete = sort->output.set.is_committed || sort->distributed.is_complete;

	sort_output_abort(&sort->output); /* first: removes temp files */
	if (r < 0 && sort->spec->comm) {  /* other ranks must no longer access memory of this one */
		peer_memory_revoke(sort->distributed.peer_memory);
		comm_fail(sort->spec->comm, r);
	}
	stats_set_volume_source(sort->job.stats, NULL, NULL); /* before they are freed */
	spill_begin_close(sort->job.spill);
	run_list_free(&sort->runs);
	distributed_close(sort);
	run_list_free(&sort->parent_runs);
	input_runs_close(sort->inputs);
	setup_close(&sort->job);
	/*
	 * Last: as long as the checkpoint exists, another start learns that the sort is complete.
	 */
	if (is_complete && sort->checkpoint)
		checkpoint_remove(sort->checkpoint);
	checkpoint_close(sort->checkpoint);
	setup_close_inputs(&sort->resolved, &sort->job);
}

int sort_run(const struct sort_spec *spec, const struct sort_observer *observer,
	     struct stats *stats, struct sort_summary *ret_summary)
{
	struct sort sort = { .spec = &sort.resolved.spec, .job.stats = stats };
	int r = spec->comm ? distributed_open_inputs(&sort, spec, observer) :
			     setup_open_inputs(spec, observer, &sort.resolved, &sort.job);

	if (r == 0)
		r = resume_and_sort(&sort);
	if (r == 0) {
		if (observer->on_committed)
			observer->on_committed(observer->context);
		input_seek_end(sort.job.input);
		sort_collect_summary(&sort);
		*ret_summary = sort.summary;
	}
	close_sort(&sort, r);
	return r;
}
