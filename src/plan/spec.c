/*
 * spec - what follows from what a sort is asked for (see spec.h)
 */
#include "src/plan/spec.h"

#include <assert.h>
#include <errno.h>

int spec_layout(const struct sort_spec *spec, struct layout *ret_layout)
{
	const struct layout_request request = {
		.record_nbytes = spec->record_nbytes,
		.keys = spec->keys,
		.n_keys = spec->n_keys,
		.compares = spec->unique || spec->merges || spec->checks,
		.keeps_records = spec->limit != SORT_SPEC_UNLIMITED,
		.count = spec->count,
		.keys_only = spec->keys_only,
		.index = spec->index,
	};
	const int r = layout_make(&request, ret_layout);

	assert(r == 0 || r == -ENOMEM); /* the rest is the spec's to see to */
	return r;
}

struct framing spec_framing(const struct sort_spec *spec)
{
	return (struct framing){
		.record_nbytes = spec->record_nbytes,
		.skip_nbytes = spec->skip_nbytes,
		.partial = spec->partial,
		.format = spec->format,
		.is_untyped = spec->is_untyped,
	};
}
