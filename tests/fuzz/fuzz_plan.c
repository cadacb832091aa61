/*
 * fuzz_plan - any bytes as a request for a plan: sizes, limits, threads, records, device
 *
 * For libFuzzer (docs/testing.md). No request may divide by zero, hang or wrap around, and of every
 * plan must hold what tests/support/plan_requests.h says. test_plan_limits does the same with bytes
 * from a generator.
 */
#include <stdlib.h>

#include "tests/support/plan_requests.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t nbytes);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t nbytes)
{
	const char *defect = find_fuzzed_plan_defect(data, nbytes);

	if (defect) {
		fprintf(stderr, "%s\n", defect);
		abort();
	}
	return 0;
}
