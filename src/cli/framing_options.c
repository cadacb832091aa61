/*
 * framing_options - the options that say which bytes of a file are records (see framing_options.h)
 */
#include "src/cli/framing_options.h"

#include <errno.h>
#include <string.h>

#include "src/base/status.h"

const struct option_choice framing_options_partials[] = {
	{ "error", PARTIAL_ERROR }, { "keep", PARTIAL_KEEP }, { "drop", PARTIAL_DROP }, { 0 }
};

const struct option_choice framing_options_formats[] = { { "auto", FORMAT_AUTO },
							 { "raw", FORMAT_RAW },
							 { 0 } };

int framing_options_take_skip_bytes(const struct option_spec *spec, const char *argument,
				    void *target)
{
	const int r = option_take_nbytes(spec, argument, target);
	uint64_t nbytes;

	if (r < 0)
		return r;
	memcpy(&nbytes, (const char *)target + spec->offset, sizeof nbytes);
	if (nbytes > FRAMING_OPTIONS_MOST_SKIP_NBYTES)
		return fail(-EINVAL, "--skip-bytes: '%s' bytes are too many: at most %d", argument,
			    FRAMING_OPTIONS_MOST_SKIP_NBYTES);
	return 0;
}
