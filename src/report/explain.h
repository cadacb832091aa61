/*
 * explain - what --explain says: the plan, and how long it will take
 */
#pragma once

#include <stdio.h>

#include "src/sort/sort.h"

void explain_print(const struct explanation *explanation, FILE *stream);

/* Its parts: what is planned, and the table of what moves over each link. */
void plan_print(const struct plan *plan, FILE *stream);
void estimate_print(const struct plan *plan, const struct loads *loads,
		    const struct link_rates *rates, FILE *stream);
