/*
 * framing - which bytes of a file are records (see framing.h)
 */
#include "io/input/framing.h"

#include <errno.h>
#include <inttypes.h>

#include "src/base/diagnostics.h"

int framing_fail_short(const struct framing *framing, const char *name, uint64_t header_nbytes,
		       uint64_t nbytes)
{
	if (!framing->skip_nbytes)
		return fail(-EINVAL,
			    "%s: ends within its header, after %" PRIu64 " of its %" PRIu64
			    " bytes: it is cut off",
			    name, nbytes, header_nbytes);
	return fail(-EINVAL,
		    "%s: %" PRIu64 " bytes are less than the %" PRIu64
		    " in front of the records (--skip-bytes)",
		    name, nbytes, header_nbytes);
}

int framing_measure(const struct framing *framing, const char *name, uint64_t header_nbytes,
		    uint64_t nbytes, uint64_t *ret_records_nbytes)
{
	uint64_t excess_nbytes;

	if (nbytes < header_nbytes)
		return framing_fail_short(framing, name, header_nbytes, nbytes);
	nbytes -= header_nbytes;
	excess_nbytes = nbytes % framing->record_nbytes;
	if (excess_nbytes && framing->partial == PARTIAL_ERROR && framing->is_untyped)
		return fail(-EINVAL,
			    "%s: %" PRIu64 " bytes%s are not a multiple of the record size %" PRIu64
			    ": %" PRIu64 " left over (default type u64; use -t or -R)",
			    name, nbytes, header_nbytes ? " behind the header" : "",
			    framing->record_nbytes, excess_nbytes);
	if (excess_nbytes && framing->partial == PARTIAL_ERROR)
		return fail(-EINVAL,
			    "%s: %" PRIu64 " bytes%s are not a whole number of records of %" PRIu64
			    " bytes: %" PRIu64 " left over",
			    name, nbytes, header_nbytes ? " behind the header" : "",
			    framing->record_nbytes, excess_nbytes);
	*ret_records_nbytes = nbytes - excess_nbytes;
	return 0;
}
