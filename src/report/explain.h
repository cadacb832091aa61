/*
 * explain - what --explain says: the plan, and how long it will take
 *
 * For a person, and for a script that decides by it whether and where to sort.
 */
#pragma once

#include <stdio.h>

#include "src/sort/sort.h"

void explain_print(const struct explanation *explanation, FILE *stream);

/*
 * As one object of JSON (docs/formats.md). 0, or -ENOMEM after a message. Whoever owns the stream
 * finds out whether it could be written.
 */
int explain_write_json(const struct explanation *explanation, FILE *stream);

/* In the place of the table of what moves: one rank's share, all together, times, limits. */
void explain_print_ranks(const struct cluster_estimate *loads, const struct rank_rates *rates,
			 FILE *stream);

/* Parts of the text: what is planned, and the table of what moves over each link. */
void plan_print(const struct plan *plan, FILE *stream);
void estimate_print(const struct plan *plan, const struct stage_volumes *loads,
		    const struct stage_rates *rates, FILE *stream);
