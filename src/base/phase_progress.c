/*
 * phase_progress - how far each phase of a sort is, with one process or several (see
 * phase_progress.h)
 */
#include "src/base/phase_progress.h"

void progress_counters_add(struct progress_counters *sum, const struct progress_counters *addend)
{
	if (addend->phase < sum->phase)
		sum->phase = addend->phase;
	for (enum phase i = 0; i < N_PHASES; i++) {
		struct phase_progress *phase = &sum->phases[i];
		const struct phase_progress *phase_addend = &addend->phases[i];

		phase->done_nbytes += phase_addend->done_nbytes;
		phase->total_nbytes += phase_addend->total_nbytes;
		/* Who has done nothing of an unknown amount may have nothing to do. */
		phase->total_is_unknown |= phase_addend->total_is_unknown &&
					   phase_addend->done_nbytes > 0;
		if (phase->elapsed_ns < phase_addend->elapsed_ns)
			phase->elapsed_ns = phase_addend->elapsed_ns;
	}
}

static void add_phase_progress(const struct phase_progress *phase, struct stats_progress *progress)
{
	const uint64_t done = phase->done_nbytes, total = phase->total_nbytes;

	progress->overall_done_nbytes += done < total ? done : total;
	progress->overall_total_nbytes += total;
}

void progress_counters_summarize(const struct progress_counters *counters,
				 struct stats_progress *ret_progress)
{
	const struct phase_progress *current;

	*ret_progress = (struct stats_progress){ 0 };
	if (counters->phase >= N_PHASES)
		return;
	current = &counters->phases[counters->phase];
	*ret_progress = (struct stats_progress){
		.started = true,
		.phase = (enum phase)counters->phase,
		.done_nbytes = current->done_nbytes,
		.total_nbytes = current->total_is_unknown ? 0 : current->total_nbytes,
		.elapsed_ns = current->elapsed_ns,
	};
	for (enum phase i = 0; i < N_PHASES; i++)
		add_phase_progress(&counters->phases[i], ret_progress);
	if (current->total_is_unknown)
		ret_progress->overall_total_nbytes = 0;
	/* One follows the other, and several who do that wait for each other there. */
	for (enum phase i = 0; i <= ret_progress->phase; i++)
		ret_progress->overall_elapsed_ns += counters->phases[i].elapsed_ns;
}
