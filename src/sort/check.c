/*
 * check - are the inputs in order? (see sort.h)
 */
#include "io/input/input.h"
#include "src/check/verify.h"
#include "src/sort/setup.h"
#include "src/sort/sort.h"

static void stop_reading(void *input)
{
	input_cancel(input);
}

static int check(const struct looked_at *looked_at, struct stats *stats,
		 struct verify_result *ret_found)
{
	const uint64_t nbytes = input_total_nbytes(looked_at->input);
	const struct verify_options options = {
		.layout = &looked_at->layout,
		.strict = looked_at->spec.unique,
		.stop_at_disorder = true,
		.n_threads = setup_n_threads(&looked_at->spec),
		.stats = stats,
		.cancellation = looked_at->spec.cancellation,
	};
	int r;

	stats_begin_phase(stats, PHASE_CHECK, nbytes == INPUT_SIZE_UNKNOWN ? 0 : nbytes);
	cancellation_watch(looked_at->spec.cancellation, stop_reading, looked_at->input);
	r = verify_input(looked_at->input, &options, ret_found);
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

int sort_check(const struct sort_spec *spec, const char *checker,
	       const struct sort_observer *observer, struct stats *stats,
	       struct sort_facts *ret_facts, uint64_t *ret_disorder)
{
	struct verify_result found;
	struct looked_at looked_at;
	int r = spec_look_at(spec, checker, &looked_at);

	if (r == 0 && observer->opened)
		r = observer->opened(observer->context, &looked_at.spec, &looked_at.layout,
				     looked_at.input);
	if (r == 0)
		r = check(&looked_at, stats, &found);
	if (r == 0)
		r = input_check_state(looked_at.input);
	if (r == 0) {
		note_facts(&looked_at, &found, ret_facts);
		*ret_disorder = found.first_disorder;
	}
	spec_look_away(&looked_at);
	return r;
}
