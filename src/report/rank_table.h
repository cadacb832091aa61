/*
 * rank_table - what is told of each of several ranks
 *
 * One table (rank_table.c) says which figures there are, what they are called, and how they are made;
 * text, JSON and page have them all from it.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "src/sort/rank_stats.h"

/* Of the whole what is only of several ranks, and a line for each of them. */
void by_rank_print(const struct census *census, FILE *stream);

/* The members of the object of --stats-json that are about that, each with a comma behind it. */
void by_rank_write_json(const struct census *census, FILE *stream);

/* A figure of the table; NULL: there are no more. */
struct by_rank_figure {
	const char *key;     /* of JSON */
	const char *heading; /* for people; NULL: only in JSON */
	bool is_nbytes;
	uint64_t (*of)(const struct census_entry *entry);
};
const struct by_rank_figure *by_rank_figure(unsigned i);

/* The figure as a person reads it. */
void by_rank_format(const struct by_rank_figure *figure, const struct census_entry *entry,
		    char text[static 32]);
