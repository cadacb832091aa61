/*
 * sort_check - are the inputs in order? (see sort.h)
 *
 * Of several ranks each checks as many neighbouring records, the first of them against the one
 * before, which it reads as well: so nothing is exchanged but what was found.
 */
#include "io/input/input.h"
#include "src/check/verify.h"
#include "src/comm/comm.h"
#include "src/sort/setup.h"
#include "src/sort/distributed_sort.h"
#include "src/sort/sort.h"

static void stop_reading(void *input)
{
	input_cancel(input);
}

/* What of the input is the own part of several ranks, in records. */
static struct verify_part part_of(const struct looked_at *looked_at)
{
	const struct ranks *ranks = looked_at->spec.ranks;
	const uint64_t n = input_total_nbytes(looked_at->input) / looked_at->layout.record_nbytes;
	const unsigned rank = ranks_rank(ranks);

	return (struct verify_part){ share_part_begin(ranks, rank, n),
				     share_part_begin(ranks, rank + 1, n) };
}

/* 0: unknown. */
static uint64_t count_nbytes(const struct looked_at *looked_at)
{
	const uint64_t nbytes = input_total_nbytes(looked_at->input);
	struct verify_part part;

	if (!looked_at->spec.ranks)
		return nbytes == INPUT_SIZE_UNKNOWN ? 0 : nbytes;
	part = part_of(looked_at);
	return (part.end - part.begin) * looked_at->layout.record_nbytes;
}

static int check_input(const struct looked_at *looked_at, const struct verify_options *options,
		       struct verify_result *ret_found)
{
	return looked_at->spec.ranks ?
		       verify_input_part(looked_at->input, part_of(looked_at), options, ret_found) :
		       verify_input(looked_at->input, options, ret_found);
}

static int check(const struct looked_at *looked_at, struct stats *stats,
		 struct verify_result *ret_found)
{
	const struct verify_options options = {
		.layout = &looked_at->layout,
		.strict = looked_at->spec.unique,
		.stop_at_disorder = true,
		.n_threads = setup_n_threads(&looked_at->spec),
		.stats = stats,
		.cancellation = looked_at->spec.cancellation,
	};
	int r;

	stats_begin_phase(stats, PHASE_CHECK, count_nbytes(looked_at));
	cancellation_watch(looked_at->spec.cancellation, stop_reading, looked_at->input);
	r = check_input(looked_at, &options, ret_found);
	cancellation_leave(looked_at->spec.cancellation);
	return r;
}

static void note_facts(const struct looked_at *looked_at, const struct verify_result *found,
		       struct sort_facts *ret_facts)
{
	const struct sort_spec *spec = &looked_at->spec;

	keys_format(spec->keys, spec->n_keys, spec->record_nbytes, ret_facts->type);
	ret_facts->record_nbytes = spec->record_nbytes;
	ret_facts->n_records_in = found->digest.n_records;
}

/* What all have found. */
static int join(struct ranks *ranks, struct input *input, struct verify_result *found)
{
	uint64_t first = found->first_disorder ? found->first_disorder : UINT64_MAX;
	int r = share_check_lists(ranks, input);

	if (r == 0)
		r = ranks_least(ranks, &first, 1, 1);
	found->first_disorder = first == UINT64_MAX ? 0 : first;
	return r;
}

static int look_at(const struct sort_spec *spec, const char *checker, struct looked_at *ret)
{
	int r = spec_open_inputs(spec, checker, ret);

	if (r == 0 && spec->ranks)
		r = share_check_possible(spec, ret->input);
	return r < 0 ? r : spec_learn(spec, ret);
}

/* What is wrong with inputs for all ranks is said once. */
static int look_together(const struct sort_spec *spec, const char *checker, struct looked_at *ret)
{
	const bool is_first = ranks_rank(spec->ranks) == 0;
	int r = is_first ? look_at(spec, checker, ret) : 0;

	r = share_agree_with_first(spec->ranks, r);
	if (r == 0 && !is_first)
		r = look_at(spec, checker, ret);
	return r < 0 ? r : share_meet(&ret->spec);
}

int sort_check(const struct sort_spec *spec, const char *checker,
	       const struct sort_observer *observer, struct stats *stats,
	       struct sort_facts *ret_facts, uint64_t *ret_disorder)
{
	struct verify_result found;
	struct looked_at looked_at = { 0 };
	int r = spec->ranks ? look_together(spec, checker, &looked_at) :
			      look_at(spec, checker, &looked_at);

	if (r == 0 && observer->opened)
		r = observer->opened(observer->context, &looked_at.spec, &looked_at.layout,
				     looked_at.input);
	if (r == 0)
		r = check(&looked_at, stats, &found);
	if (r == 0)
		r = input_check_state(looked_at.input);
	if (r == 0 && spec->ranks)
		r = join(spec->ranks, looked_at.input, &found);
	if (r == 0) {
		note_facts(&looked_at, &found, ret_facts);
		*ret_disorder = found.first_disorder;
	}
	spec_look_away(&looked_at);
	return r;
}
