/*
 * format.c - numbers for people, the bottleneck of a phase, progress, and JSON (see format.h)
 */
#include "src/report/format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/base/diagnostics.h"

struct number_text format_rate(uint64_t nbytes, double s)
{
	struct number_text rate = { "-" };

	if (nbytes && s > 0) {
		rate = size_format((uint64_t)((double)nbytes / s));
		strcat(rate.text, "/s");
	}
	return rate;
}

struct number_text format_count(uint64_t n)
{
	struct number_text count;
	char digits[32], *text = count.text;
	const size_t n_digits = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, n);

	for (size_t i = 0; i < n_digits; i++) {
		*text++ = digits[i];
		if ((n_digits - i) % 3 == 1 && i + 1 < n_digits)
			*text++ = ',';
	}
	*text = '\0';
	return count;
}

struct number_text format_time(double s)
{
	const uint64_t seconds = (uint64_t)(s + 0.5);
	struct number_text time;

	if (seconds >= 3600)
		snprintf(time.text, sizeof time, "%" PRIu64 ":%02u:%02u h", seconds / 3600,
			 (unsigned)(seconds / 60 % 60), (unsigned)(seconds % 60));
	else if (seconds >= 60)
		snprintf(time.text, sizeof time, "%u:%02u min", (unsigned)(seconds / 60),
			 (unsigned)(seconds % 60));
	else
		snprintf(time.text, sizeof time, "%.*f s", s < 1 ? 3 : s < 10 ? 2 : 1, s);
	return time;
}

bool stage_is_idle(const struct stage_totals *totals)
{
	return totals->n_spans == 0 && totals->blocked_ns == 0;
}

enum stage phase_longest_stage(const struct phase_totals *phase)
{
	enum stage longest = N_STAGES;
	uint64_t max_ns = 0;

	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (phase->stages[stage].active_ns > max_ns) {
			max_ns = phase->stages[stage].active_ns;
			longest = stage;
		}
	return longest;
}

enum stage phase_bottleneck(const struct phase_totals *phase)
{
	const enum stage longest = phase_longest_stage(phase);

	return longest < N_STAGES && phase->stages[longest].active_ns < phase->elapsed_ns / 2 ?
		       N_STAGES :
		       longest;
}

double spill_ratio_percent(const struct compression_totals *spilled)
{
	return spilled->items_nbytes ?
		       100.0 * (double)spilled->stored_nbytes / (double)spilled->items_nbytes :
		       100;
}

/* --- JSON --- */

/* Complete an insertion. Without success the container becomes NULL. */
static void check_insertion(json_t **container, int r)
{
	if (r == 0)
		return;
	json_decref(*container);
	*container = NULL;
}

void json_put(json_t **object, const char *name, json_t *value)
{
	check_insertion(object, json_object_set_new(*object, name, value));
}

void json_append(json_t **array, json_t *value)
{
	check_insertion(array, json_array_append_new(*array, value));
}

json_t *json_make(const struct json_member *members)
{
	json_t *object = json_object();

	for (const struct json_member *member = members; member->name; member++)
		json_put(&object, member->name, member->value);
	return object;
}

json_t *json_number(uint64_t number)
{
	return json_integer((json_int_t)number);
}

int json_write(json_t *object, unsigned n_digits, FILE *stream)
{
	if (!object)
		return fail(-ENOMEM, "no memory for a report in JSON");
	if (json_dumpf(object, stream, JSON_INDENT(2) | JSON_REAL_PRECISION(n_digits)) == 0)
		fputc('\n', stream);
	json_decref(object);
	return 0;
}
