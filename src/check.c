/*
 * check - is a file sorted? (see check.h)
 */
#include "src/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "io/input.h"
#include "src/engine.h"
#include "src/status.h"
#include "src/verify.h"

int check_run(const struct options *options, struct stats *stats)
{
	struct layout layout;
	struct verify_options verify_options = {
		.layout = &layout,
		.strict = options->unique,
		.stop_at_disorder = true,
		.n_threads = engine_n_threads(options),
		.stats = stats,
	};
	struct verify_result found;
	struct input *input;
	int r = options_layout(options, &layout);

	if (r < 0)
		return r;
	if (layout.kind == LAYOUT_RECORDS || options->skip_nbytes || options->partial)
		return fail(-ENOTSUP, "-R, --record-size: records cannot be checked yet");
	r = input_open(&io_engine_plain, options->inputs, options->n_inputs, layout.record_nbytes,
		       &input);
	if (r < 0) {
		layout_free(&layout);
		return r;
	}
	r = verify_input(input, &verify_options, &found);
	input_close(input);
	layout_free(&layout);
	if (r < 0 || !found.first_disorder)
		return r;
	if (options->mode == MODE_CHECK)
		fprintf(stderr, "gsort: %s: record %" PRIu64 ": disorder\n", options->inputs[0],
			found.first_disorder);
	return 1;
}
