/*
 * check - is a file sorted? (see check.h)
 */
#include "src/cli/check.h"

#include <inttypes.h>

#include "src/base/messages.h"

int check_run(const struct options *options, const struct sort_spec *spec,
	      const struct sort_observer *observer, struct stats *stats,
	      struct sort_facts *ret_facts)
{
	const bool is_quiet = options->mode == MODE_CHECK_QUIET;
	uint64_t disorder;
	const int r = sort_check(spec, is_quiet ? "gsort -C" : "gsort -c", observer, stats,
				 ret_facts, &disorder);

	if (r < 0 || !disorder)
		return r;
	if (!is_quiet)
		tell("%s: record %" PRIu64 ": disorder", options->inputs[0], disorder);
	return 1;
}
