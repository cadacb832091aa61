/*
 * explain - what a sort would do, without doing it (see sort.h)
 *
 * Everything is opened as for the sort, but what it would write to; then the plan says what moves,
 * and a short measurement how fast.
 */
#include <errno.h>
#include <inttypes.h>

#include "src/base/messages.h"
#include "src/sort/inside.h"
#include "src/sort/setup.h"

/* An assumption is for what nobody knows. */
static int check_assumption(const struct job *job, uint64_t assumed_nbytes)
{
	const uint64_t nbytes = input_total_nbytes(job->input);

	if (assumed_nbytes && nbytes != INPUT_SIZE_UNKNOWN)
		return fail_hint(-EINVAL, HINT_ABOUT_ASSUMED_SIZE, 0,
				 "the size of the input is known, %" PRIu64
				 " bytes: nothing need be assumed",
				 nbytes);
	return 0;
}

static struct loads loads_of(const struct sort_spec *spec, const struct job *job)
{
	struct loads loads;

	estimate_loads(&job->plan, job->layout, &loads);
	if (spec->verify)
		loads.nbytes[PHASE_CHECK][STAGE_VERIFY] = loads.nbytes[PHASE_MERGE][STAGE_WRITE];
	return loads;
}

static struct link_rates rates_of(const struct sort_spec *spec, const struct job *job)
{
	struct link_request request = {
		.nbytes = rates_trial_nbytes(&job->plan),
		.budget_ns = LINKS_EXPLAIN_NS,
	};
	struct link_rates rates;

	for (enum stage stage = 0; stage < N_STAGES; stage++)
		request.wanted[stage] = true;
	rates_measure(job, spec, &request, &rates);
	return rates;
}

static int make_plan(struct settled *settled, uint64_t assumed_nbytes, struct job *job)
{
	const struct setup setup = {
		.spec = &settled->spec,
		.explains = true,
		.assumed_nbytes = assumed_nbytes,
	};
	int r = check_assumption(job, assumed_nbytes);

	if (r == 0)
		r = setup_look_ahead(settled, job, false);
	return r < 0 ? r : setup_open(&setup, job);
}

int sort_explain(const struct sort_spec *spec, uint64_t assumed_nbytes,
		 const struct sort_observer *observer, struct stats *stats,
		 struct explanation *ret_explanation)
{
	struct job job = { .stats = stats };
	struct settled settled;
	int r = setup_open_inputs(spec, observer, &settled, &job);

	if (r == 0)
		r = make_plan(&settled, assumed_nbytes, &job);
	if (r == 0) {
		*ret_explanation = (struct explanation){
			.plan = job.plan,
			.loads = loads_of(&settled.spec, &job),
			.rates = rates_of(&settled.spec, &job),
			.facts = { .record_nbytes = settled.spec.record_nbytes,
				   .n_passes = job.plan.n_passes },
		};
		keys_format(settled.spec.keys, settled.spec.n_keys, settled.spec.record_nbytes,
			    ret_explanation->facts.type);
		facts_note_plan(&job.plan, &ret_explanation->facts);
	}
	setup_close(&job);
	setup_close_inputs(&settled, &job);
	return r;
}
