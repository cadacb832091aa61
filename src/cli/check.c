/*
 * check - is a file sorted? (see check.h)
 */
#include "src/cli/check.h"

#include <inttypes.h>
#include <stdio.h>

#include "io/input/input.h"
#include "src/base/messages.h"
#include "src/check/verify.h"
#include "src/cli/debug.h"
#include "src/sort/setup.h"

static int check(const struct options *options, const struct looked_at *looked_at,
		 struct stats *stats, struct verify_result *ret_found)
{
	const uint64_t nbytes = input_total_nbytes(looked_at->input);
	const struct verify_options verify_options = {
		.layout = &looked_at->layout,
		.strict = options->unique,
		.stop_at_disorder = true,
		.n_threads = setup_n_threads(&looked_at->spec),
		.stats = stats,
	};
	int r = options->debug ?
			debug_print(&looked_at->spec, &looked_at->layout, looked_at->input) :
			0;

	stats_begin_phase(stats, PHASE_CHECK, nbytes == INPUT_SIZE_UNKNOWN ? 0 : nbytes);
	return r < 0 ? r : verify_input(looked_at->input, &verify_options, ret_found);
}

static void note_facts(const struct looked_at *looked_at, const struct verify_result *found,
		       struct sort_facts *ret_facts)
{
	const struct sort_spec *spec = &looked_at->spec;

	keys_format(spec->keys, spec->n_keys, spec->record_nbytes, ret_facts->type);
	ret_facts->record_nbytes = spec->record_nbytes;
	ret_facts->n_records_in = found->digest.n_records;
}

int check_run(const struct options *options, struct stats *stats, struct sort_facts *ret_facts)
{
	const struct sort_spec spec = options_spec(options);
	struct verify_result found;
	struct looked_at looked_at;
	int r = spec_look_at(&spec, options->mode == MODE_CHECK ? "gsort -c" : "gsort -C",
			     &looked_at);

	if (r == 0)
		r = check(options, &looked_at, stats, &found);
	if (r == 0)
		note_facts(&looked_at, &found, ret_facts);
	spec_look_away(&looked_at);
	if (r < 0 || !found.first_disorder)
		return r;
	if (options->mode == MODE_CHECK)
		tell("%s: record %" PRIu64 ": disorder", options->inputs[0], found.first_disorder);
	return 1;
}
