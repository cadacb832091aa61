/*
 * rank_table - what is told of each of several ranks
 *
 * One table (rank_table.c) says which figures there are, what they are called, and how they are
 * made; text, JSON and page have them all from it.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "src/sort/rank_stats.h"

/* Of the whole what is only of several ranks, and a line for each of them. */
void rank_table_print(const struct rank_stats *rank_stats, FILE *stream);

/* The members of the object of --stats-json that are about that, each with a comma behind it. */
void rank_table_write_json(const struct rank_stats *rank_stats, FILE *stream);

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
