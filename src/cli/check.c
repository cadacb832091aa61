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

static int check(const struct options *options, const struct layout *layout, struct input *input,
		 struct stats *stats, struct verify_result *ret_found)
{
	const struct sort_spec spec = options_spec(options);
	const uint64_t nbytes = input_total_nbytes(input);
	const struct verify_options verify_options = {
		.layout = layout,
		.strict = options->unique,
		.stop_at_disorder = true,
		.n_threads = setup_n_threads(&spec),
		.stats = stats,
	};
	int r = options->debug ? debug_print(&options->record, layout, input) : 0;

	stats_begin_phase(stats, PHASE_CHECK, nbytes == INPUT_SIZE_UNKNOWN ? 0 : nbytes);
	return r < 0 ? r : verify_input(input, &verify_options, ret_found);
}

int check_run(const struct options *options, struct stats *stats, struct sort_facts *ret_facts)
{
	const struct sort_spec spec = options_spec(options);
	struct framing framing = spec_framing(&spec);
	struct verify_result found;
	struct input *input = NULL;
	struct layout layout;
	int r = spec_layout(&spec, &layout);

	if (r < 0)
		return r;
	framing.checker = options->mode == MODE_CHECK ? "gsort -c" : "gsort -C";
	r = input_open_framed(&syscalls_plain, options->inputs, options->n_inputs, &framing,
			      &input);
	if (r == 0)
		r = check(options, &layout, input, stats, &found);
	input_close(input);
	layout_free(&layout);
	if (r < 0)
		return r;
	ret_facts->record_nbytes = options->record.record_nbytes;
	ret_facts->n_records_in = found.digest.n_records;
	if (!found.first_disorder)
		return 0;
	if (options->mode == MODE_CHECK)
		tell("%s: record %" PRIu64 ": disorder", options->inputs[0], found.first_disorder);
	return 1;
}
