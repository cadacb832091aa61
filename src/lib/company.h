/*
 * company - a sort that several processes do together
 *
 * Not for programs that use the library: who has ranks (src/ranks/ranks.h) is a program of ours.
 */
#pragma once

#include "include/gsort.h"

struct ranks;
struct sort_spec;

/*
 * Before it begins: it is done by all ranks, each with the same options. What such a sort cannot do
 * is refused: 0, or -EINVAL after a message.
 */
int company_join(struct gsort *sort, struct ranks *ranks);

/* What is not said is shared by the ranks of one machine: memory, and processors. */
void company_share_machine(struct ranks *ranks, struct sort_spec *spec);
