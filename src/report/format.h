/*
 * format.h - numbers for people, the bottleneck of a phase, progress, and JSON
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "io/spill/compression_policy.h"
#include "src/base/size.h"
#include "src/base/stats.h"

static inline double ns_to_seconds(uint64_t ns)
{
	return (double)ns * 1e-9;
}

/* Return the ending of a noun: "1 window", "2 windows". */
static inline const char *plural_ending(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* Format a rate: "1.5 GiB/s", or "-" if nothing was moved. */
struct number_text format_rate(uint64_t nbytes, double s);

/* Format a count: "134,217,728". */
struct number_text format_count(uint64_t n);

/* Format a time: "0.125 s", "2.3 s", "1:05 min", "3:10:00 h". */
struct number_text format_time(double s);

/* Return whether the stage neither worked nor waited. */
bool stage_is_idle(const struct stage_totals *totals);

/* Return the stage that was active longest, or N_STAGES if none was. */
enum stage phase_longest_stage(const struct phase_totals *phase);

/*
 * Return the stage that was active longest if it was so for at least half of the phase; else
 * N_STAGES: there was no bottleneck.
 */
enum stage phase_bottleneck(const struct phase_totals *phase);

/* Return the stored size in percent of the original size. */
double spill_ratio_percent(const struct compression_totals *spilled);

/*
 * --- JSON ---
 *
 * Values are those of libjansson. NULL is a value for which there was no memory; a value that would
 * contain it is NULL as well, and json_write() reports that.
 */

struct json_member {
	const char *name;
	json_t *value;
};

/* Make an object, which owns the values. The name of the last member is NULL. */
json_t *json_make(const struct json_member *members);
/* Make an object of members: { "name", value }, ... */
#define JSON_OBJECT(...) json_make((const struct json_member[]){ __VA_ARGS__, { NULL, NULL } })

/* Add a member to an object, or a value to an array; both become NULL on failure. */
void json_put(json_t **object, const char *name, json_t *value);
void json_append(json_t **array, json_t *value);

json_t *json_number(uint64_t number);

/*
 * Write the object, indented, and free it. Real numbers have at most n_digits significant digits;
 * with up to 15, 0.1 stays 0.1. Returns 0, or -ENOMEM after a message. The owner of the stream
 * checks for write errors.
 */
int json_write(json_t *object, unsigned n_digits, FILE *stream);
