/*
 * phase_progress - how far each phase of a sort is, with one process or several (see phase_progress.h)
 */
#include "src/base/phase_progress.h"

void standing_add(struct standing *sum, const struct standing *other)
{
	if (other->phase < sum->phase)
		sum->phase = other->phase;
	for (enum phase i = 0; i < N_PHASES; i++) {
		struct phase_standing *phase = &sum->phases[i];
		const struct phase_standing *of = &other->phases[i];

		phase->done_nbytes += of->done_nbytes;
		phase->total_nbytes += of->total_nbytes;
		/* Who has done nothing of an unknown amount may have nothing to do. */
		phase->is_unknown |= of->is_unknown && of->done_nbytes > 0;
		if (phase->elapsed_ns < of->elapsed_ns)
			phase->elapsed_ns = of->elapsed_ns;
	}
}

static void add_phase(const struct phase_standing *phase, struct stats_progress *progress)
{
	const uint64_t done = phase->done_nbytes, total = phase->total_nbytes;

	progress->whole_done_nbytes += done < total ? done : total;
	progress->whole_total_nbytes += total;
}

void standing_progress(const struct standing *standing, struct stats_progress *ret_progress)
{
	const struct phase_standing *current;

	*ret_progress = (struct stats_progress){ 0 };
	if (standing->phase >= N_PHASES)
		return;
	current = &standing->phases[standing->phase];
	*ret_progress = (struct stats_progress){
		.started = true,
		.phase = (enum phase)standing->phase,
		.done_nbytes = current->done_nbytes,
		.total_nbytes = current->is_unknown ? 0 : current->total_nbytes,
		.elapsed_ns = current->elapsed_ns,
	};
	for (enum phase i = 0; i < N_PHASES; i++)
		add_phase(&standing->phases[i], ret_progress);
	if (current->is_unknown)
		ret_progress->whole_total_nbytes = 0;
	/* One follows the other, and several who do that wait for each other there. */
	for (enum phase i = 0; i <= ret_progress->phase; i++)
		ret_progress->whole_elapsed_ns += standing->phases[i].elapsed_ns;
}
