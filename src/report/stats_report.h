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
 * The JSON of --stats-json (schema in docs/cli.md). Whoever owns the stream finds out whether it
 * could be written.
 */
void stats_report_write_json(const struct stats_report *report, FILE *stream);

/* A figure of the table; NULL: there are no more. */
struct rank_column {
	const char *key;     /* of JSON */
	const char *heading; /* for people; NULL: only in JSON */
	bool is_nbytes;
	uint64_t (*value)(const struct rank_summary *entry);
};
const struct rank_column *rank_table_column(unsigned i);

/* The figure as a person reads it. */
void rank_table_format(const struct rank_column *column, const struct rank_summary *entry,
		       char text[static 32]);
