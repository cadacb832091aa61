/*
 * progress_line - how far a sort is, as a line (see progress_line.h)
 */
#include "src/report/progress_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/base/size.h"

static void format_duration(uint64_t s, char text[static 32])
{
	if (s >= 3600)
		snprintf(text, 32, "%" PRIu64 ":%02u:%02u", s / 3600, (unsigned)(s / 60 % 60),
			 (unsigned)(s % 60));
	else
		snprintf(text, 32, "%u:%02u", (unsigned)(s / 60), (unsigned)(s % 60));
}

static unsigned percent(uint64_t done_nbytes, uint64_t total_nbytes)
{
	return done_nbytes >= total_nbytes ?
		       100 :
		       (unsigned)(100 * (double)done_nbytes / (double)total_nbytes);
}

/* Bytes per second. */
static double rate_of(uint64_t nbytes, uint64_t elapsed_ns)
{
	return elapsed_ns ? (double)nbytes * 1e9 / (double)elapsed_ns : 0;
}

/* Of a phase: "run generation: 25 %, 512 MiB/s, 0:06 left". */
static void format_phase(const struct progress_state *at, double rate, char *text, size_t room)
{
	char done[32], rate_text[32], left[32];

	size_format((uint64_t)rate, rate_text);
	if (at->total_nbytes == 0) {
		size_format(at->done_nbytes, done);
		snprintf(text, room, "%s: %s, %s/s", at->phase, done, rate_text);
	} else if (at->done_nbytes >= at->total_nbytes || at->done_nbytes == 0) {
		snprintf(text, room, "%s: %d %%, %s/s", at->phase, at->done_nbytes ? 100 : 0,
			 rate_text);
	} else {
		format_duration(
			(uint64_t)((double)(at->total_nbytes - at->done_nbytes) / rate + 0.5),
			left);
		snprintf(text, room, "%s: %u %%, %s/s, %s left", at->phase,
			 percent(at->done_nbytes, at->total_nbytes), rate_text, left);
	}
}

/*
 * Seconds that are left of the whole: the rest of this phase at its own rate, and the phases that
 * are to come at that of all so far.
 */
static double whole_left_s(const struct progress_state *at, double rate)
{
	const double whole_rate = rate_of(at->whole_done_nbytes, at->whole_elapsed_ns);
	const uint64_t left = at->whole_total_nbytes - at->whole_done_nbytes;
	uint64_t of_phase =
		at->total_nbytes > at->done_nbytes ? at->total_nbytes - at->done_nbytes : 0;

	of_phase = of_phase < left ? of_phase : left;
	return (rate > 0 ? (double)of_phase / rate : 0) + (double)(left - of_phase) / whole_rate;
}

void progress_line(const struct progress_state *at, char line[static PROGRESS_LINE_NBYTES])
{
	const double rate = rate_of(at->done_nbytes, at->elapsed_ns);
	char left[32];
	size_t n;

	line[0] = '\0';
	if (!at->phase || !*at->phase)
		return;
	format_phase(at, rate, line, PROGRESS_LINE_NBYTES);
	if (at->whole_total_nbytes == 0 || at->whole_total_nbytes == at->total_nbytes)
		return;
	n = strlen(line);
	n += (size_t)snprintf(line + n, PROGRESS_LINE_NBYTES - n, "; total %u %%",
			      percent(at->whole_done_nbytes, at->whole_total_nbytes));
	if (at->whole_done_nbytes == 0 || at->whole_done_nbytes >= at->whole_total_nbytes)
		return;
	format_duration((uint64_t)(whole_left_s(at, rate) + 0.5), left);
	snprintf(line + n, PROGRESS_LINE_NBYTES - n, ", %s left", left);
}
