/*
 * stats_report.h - statistics of a sort as text (--stats) and as JSON (--stats-json)
 *
 * The summary of the whole sort is in sort_summary.h; the numbers of phases and stages in stats.h.
 */
#pragma once

#include <stdio.h>

#include "src/sort/rank_stats.h"

/* What is reported; stats NULL: nothing. */
struct stats_report {
	struct stats *stats;
	const struct sort_summary *summary;
	const struct rank_stats
		*rank_stats; /* of a distributed sort; replaces stats and summary; else NULL */
};

/* Get the summary and the totals of the whole sort. */
const struct sort_summary *stats_report_summary(const struct stats_report *report);
void stats_report_totals(const struct stats_report *report, struct stats_totals *ret_totals);

/* Print the report of --stats. */
void stats_report_print(const struct stats_report *report, FILE *stream);

/*
 * Write the JSON of --stats-json (schema: docs/manual/statistics.md). Returns 0, or -ENOMEM after a
 * message; the owner of the stream checks whether it could be written.
 */
int stats_report_write_json(const struct stats_report *report, FILE *stream);

/*
 * Return the next column of the table of ranks (NULL: the first), or NULL after the last. Columns
 * that are 0 for all ranks are left out.
 */
const struct stat_field *rank_column_next(const struct rank_stats *rank_stats,
					  const struct stat_field *column);

/* Format the number of a rank in that column. */
struct number_text rank_column_format(const struct stat_field *column,
				      const struct rank_summary *entry);

/* Format what sorted: "CPU, 2 threads", or "4 ranks, each on CPU, 1 thread". */
enum { DEVICE_NBYTES = 320 };
void stats_report_format_device(const struct stats_report *report, char text[static DEVICE_NBYTES]);
