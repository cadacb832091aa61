/*
 * stats_report - what a person (--stats) and a program (--stats-json) are told at the end
 *
 * Of the whole what sort.c and check.c know (sort_summary.h), of each phase and stage what stats.h
 * has counted.
 */
#pragma once

#include <stdio.h>

#include "src/sort/rank_stats.h"

/* What is told of; stats NULL: nothing. */
struct report {
	struct stats *stats;
	const struct sort_facts *facts;
	const struct census *census; /* of several ranks: in the place of the two; NULL: of one */
};

/* What is told of the whole. */
const struct sort_facts *report_facts(const struct report *report);
void report_totals(const struct report *report, struct stats_totals *ret_totals);

/* The table of --stats. */
void report_print(const struct report *report, FILE *stream);

/*
 * The JSON of --stats-json (schema in docs/cli.md). Whoever owns the stream finds out whether it
 * could be written.
 */
void report_write_json(const struct report *report, FILE *stream);
