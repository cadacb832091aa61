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
struct stats_report {
	struct stats *stats;
	const struct sort_summary *summary;
	const struct rank_stats
		*rank_stats; /* of several ranks: in the place of the two; NULL: of one */
};

/* What is told of the whole. */
const struct sort_summary *stats_report_summary(const struct stats_report *report);
void stats_report_totals(const struct stats_report *report, struct stats_totals *ret_totals);

/* The table of --stats. */
void stats_report_print(const struct stats_report *report, FILE *stream);

/*
 * Write the JSON of --stats-json (schema: docs/manual/statistics.md). Returns 0, or -ENOMEM after a
 * message; the owner of the stream checks whether it could be written.
 */
int stats_report_write_json(const struct stats_report *report, FILE *stream);

/* Return the next column of the table of ranks (NULL: the first), or NULL after the last. */
const struct stat_field *rank_column_next(const struct stat_field *column);

/* Format the number of a rank in that column. */
void rank_column_format(const struct stat_field *column, const struct rank_summary *entry,
			char text[static 32]);
