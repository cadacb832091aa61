/*
 * multiseq_selection - a place in several sorted sequences (see multiseq_selection.h)
 */
#include "src/run/multiseq_selection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/record/digest.h"

int selection_open(uint32_t n, struct selection *ret_selection)
{
	uint64_t *positions = calloc(n, 3 * sizeof *positions);

	*ret_selection = (struct selection){ 0 };
	if (!positions)
		return fail(-ENOMEM, "no memory for a merge of %u runs", n);
	*ret_selection =
		(struct selection){ n, positions, positions + n, positions + 2 * (size_t)n, 0 };
	return 0;
}

void selection_close(struct selection *selection)
{
	free(selection->lo);
}

bool selection_draw(struct selection *selection, uint32_t *ret_sequence, uint64_t *ret_position)
{
	const uint64_t *lo = selection->lo, *hi = selection->hi;
	uint64_t n_candidates = 0, position;
	uint32_t i;

	for (i = 0; i < selection->n; i++)
		n_candidates += hi[i] - lo[i];
	if (n_candidates == 0)
		return false;
	selection->random_state += DIGEST_SEED;
	position = digest_mix64(selection->random_state) % n_candidates;
	for (i = 0; position >= hi[i] - lo[i]; i++)
		position -= hi[i] - lo[i];
	*ret_sequence = i;
	*ret_position = lo[i] + position;
	return true;
}

void selection_set_upper(struct selection *selection)
{
	memcpy(selection->hi, selection->n_before, selection->n * sizeof *selection->hi);
}

void selection_set_lower(struct selection *selection)
{
	memcpy(selection->lo, selection->n_before, selection->n * sizeof *selection->lo);
}
