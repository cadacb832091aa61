/*
 * format_numbers - what reports have in common (see format_numbers.h)
 */
#include "src/report/format_numbers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/base/size.h"

void format_rate(uint64_t nbytes, double s, char text[static 40])
{
	char size[32];

	if (nbytes && s > 0) {
		size_format((uint64_t)((double)nbytes / s), size);
		snprintf(text, 40, "%s/s", size);
	} else {
		snprintf(text, 40, "-");
	}
}

void format_count(uint64_t n, char text[static 32])
{
	char digits[32];
	const size_t n_digits = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, n);

	for (size_t i = 0; i < n_digits; i++) {
		*text++ = digits[i];
		if ((n_digits - i) % 3 == 1 && i + 1 < n_digits)
			*text++ = ',';
	}
	*text = '\0';
}

void format_time(double s, char text[static 32])
{
	const uint64_t seconds = (uint64_t)(s + 0.5);

	if (seconds >= 3600)
		snprintf(text, 32, "%" PRIu64 ":%02u:%02u h", seconds / 3600,
			 (unsigned)(seconds / 60 % 60), (unsigned)(seconds % 60));
	else if (seconds >= 60)
		snprintf(text, 32, "%u:%02u min", (unsigned)(seconds / 60),
			 (unsigned)(seconds % 60));
	else
		snprintf(text, 32, "%.*f s", s < 1 ? 3 : s < 10 ? 2 : 1, s);
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
