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
	uint64_t *places = calloc(n, 3 * sizeof *places);

	*ret_selection = (struct selection){ 0 };
	if (!places)
		return fail(-ENOMEM, "no memory for a merge of %u runs", n);
	*ret_selection = (struct selection){ n, places, places + n, places + 2 * (size_t)n, 0 };
	return 0;
}

void selection_close(struct selection *selection)
{
	free(selection->lo);
}

bool selection_draw(struct selection *selection, uint32_t *ret_sequence, uint64_t *ret_place)
{
	const uint64_t *lo = selection->lo, *hi = selection->hi;
	uint64_t n_left = 0, place;
	uint32_t i;

	for (i = 0; i < selection->n; i++)
		n_left += hi[i] - lo[i];
	if (n_left == 0)
		return false;
	selection->lot += DIGEST_SEED;
	place = digest_mix64(selection->lot) % n_left;
	for (i = 0; place >= hi[i] - lo[i]; i++)
		place -= hi[i] - lo[i];
	*ret_sequence = i;
	*ret_place = lo[i] + place;
	return true;
}

void selection_go_before(struct selection *selection)
{
	memcpy(selection->hi, selection->before, selection->n * sizeof *selection->hi);
}

void selection_go_to(struct selection *selection)
{
	memcpy(selection->lo, selection->before, selection->n * sizeof *selection->lo);
}
