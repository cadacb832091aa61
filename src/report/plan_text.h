/*
 * plan_text - a plan as a list of names and what is planned, for a person
 *
 *	chunks		23 buffers of 7.8 MiB, 2 sorted at a time
 *	windows		5 in flight, of 8 MiB or more
 */
#pragma once

#include "src/plan/plan.h"

/* One row; both texts are gone when it returns. */
typedef void plan_text_callback(void *context, const char *name, const char *value);

/* Call row(context, ...) for each, in the order in which they are to be read. */
void plan_text_for_each(const struct plan *plan, plan_text_callback *callback, void *context);
