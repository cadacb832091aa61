/*
 * stats - what each stage did, and which one held the others up (see stats.h)
 *
 * One lock guards all counters. `covered`, the time in which at least one span of a stage ran, is
 * kept without a list of spans: each stage remembers until when it is covered, and a span that ends
 * adds what lies between there, or its own beginning if that is later, and its end.
 *
 *	  A |-----|            covered  |-----|
 *	  B    |-----|         adds           |--|
 *	  C              |--|  adds                 |--|
 *
 * Spans come in the order in which they end. Only a span that began before a gap and ends after a
 * later span has its share of the gap left out, so `covered` is never too large.
 */
#include "src/stats.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "config.h"
#include "src/size.h"
#include "src/status.h"

struct counter {
	uint64_t n_spans, nbytes;
	uint64_t busy_ns, waited_ns, covered_ns;
	uint64_t covered_until_ns;
};

struct phase_counters {
	uint64_t begin_ns, end_ns; /* 0: has not begun, has not ended */
	uint64_t total_nbytes;
	struct counter stages[N_STAGES];
};

struct stats {
	/* Set at creation. */
	struct trace *trace;
	uint64_t begin_ns;

	pthread_mutex_t lock;
	/* Under the lock. */
	enum phase phase; /* the current one, if phases[phase].begin_ns != 0 */
	struct phase_counters phases[N_PHASES];
	uint64_t end_ns; /* set by stats_finish(); 0 before */
};

/* Names are JSON's, and what a person reads, unless there is a longer one. */
static const char *const stage_names[N_STAGES] = {
	[STAGE_READ] = "read",   [STAGE_UPLOAD] = "upload", [STAGE_ENCODE] = "encode",
	[STAGE_SORT] = "sort",   [STAGE_FETCH] = "fetch",   [STAGE_CUT] = "cut",
	[STAGE_MERGE] = "merge", [STAGE_DECODE] = "decode", [STAGE_DOWNLOAD] = "download",
	[STAGE_SPILL] = "spill", [STAGE_WRITE] = "write",   [STAGE_VERIFY] = "verify",
};

static const struct {
	const char *name, *long_name;
	enum stage measure; /* whose bytes tell how far the phase is */
} phase_kinds[N_PHASES] = {
	[PHASE_RUNS] = { "runs", "forming runs", STAGE_READ },
	[PHASE_PASSES] = { "passes", "merging runs", STAGE_SPILL },
	[PHASE_MERGE] = { "merge", "merging into the output", STAGE_WRITE },
	[PHASE_CHECK] = { "check", "checking", STAGE_VERIFY },
};

/* What the two reports share, computed once. */
struct summary {
	const struct stats_facts *facts;
	double elapsed_s, user_s, system_s;
	uint64_t input_nbytes, peak_rss_nbytes;
};

int stats_open(struct trace *trace, struct stats **ret_stats)
{
	struct stats *stats = calloc(1, sizeof *stats);

	if (!stats)
		return fail(-ENOMEM, "statistics: %m");
	stats->trace = trace;
	stats->begin_ns = trace_now_ns();
	pthread_mutex_init(&stats->lock, NULL);
	*ret_stats = stats;
	return 0;
}

void stats_close(struct stats *stats)
{
	if (!stats)
		return;
	pthread_mutex_destroy(&stats->lock);
	free(stats);
}

void stats_begin_phase(struct stats *stats, enum phase phase, uint64_t total_nbytes)
{
	const uint64_t now_ns = trace_now_ns();

	if (!stats)
		return;
	pthread_mutex_lock(&stats->lock);
	stats->phases[stats->phase].end_ns = now_ns;
	stats->phase = phase;
	stats->phases[phase] =
		(struct phase_counters){ .begin_ns = now_ns, .total_nbytes = total_nbytes };
	pthread_mutex_unlock(&stats->lock);
}

static void add_covered(struct counter *counter, uint64_t begin_ns, uint64_t end_ns)
{
	const uint64_t from_ns = begin_ns > counter->covered_until_ns ? begin_ns :
									counter->covered_until_ns;

	if (end_ns <= from_ns)
		return;
	counter->covered_ns += end_ns - from_ns;
	counter->covered_until_ns = end_ns;
}

static void add_event(struct stats *stats, const struct span *span, const char *category,
		      uint64_t end_ns, uint64_t nbytes)
{
	const struct trace_event event = {
		.name = stage_names[span->stage],
		.category = category,
		.begin_ns = span->begin_ns,
		.end_ns = end_ns,
		.track = span->track,
		.item = span->item,
		.nbytes = nbytes,
	};

	trace_add(stats->trace, &event);
}

void stats_end_at(struct stats *stats, struct span span, uint64_t end_ns, uint64_t nbytes)
{
	struct counter *counter;

	bool counts;

	if (!stats)
		return;
	pthread_mutex_lock(&stats->lock);
	counts = stats->end_ns == 0;
	if (counts) {
		counter = &stats->phases[stats->phase].stages[span.stage];
		counter->n_spans++;
		counter->nbytes += nbytes;
		counter->busy_ns += end_ns - span.begin_ns;
		add_covered(counter, span.begin_ns, end_ns);
	}
	pthread_mutex_unlock(&stats->lock);
	if (counts)
		add_event(stats, &span, "work", end_ns, nbytes);
}

void stats_end(struct stats *stats, struct span span, uint64_t nbytes)
{
	stats_end_at(stats, span, trace_now_ns(), nbytes);
}

void stats_waited(struct stats *stats, struct span span)
{
	const uint64_t end_ns = trace_now_ns();

	if (!stats)
		return;
	pthread_mutex_lock(&stats->lock);
	stats->phases[stats->phase].stages[span.stage].waited_ns += end_ns - span.begin_ns;
	pthread_mutex_unlock(&stats->lock);
	add_event(stats, &span, "wait", end_ns, 0);
}

void stats_finish(struct stats *stats)
{
	if (!stats)
		return;
	pthread_mutex_lock(&stats->lock);
	stats->end_ns = trace_now_ns();
	stats->phases[stats->phase].end_ns = stats->end_ns;
	pthread_mutex_unlock(&stats->lock);
}

const char *stage_name(enum stage stage)
{
	return stage_names[stage];
}

const char *phase_name(enum phase phase)
{
	return phase_kinds[phase].long_name;
}

void stats_get_progress(struct stats *stats, struct stats_progress *ret_progress)
{
	const struct phase_counters *phase;

	*ret_progress = (struct stats_progress){ 0 };
	if (!stats)
		return;
	pthread_mutex_lock(&stats->lock);
	phase = &stats->phases[stats->phase];
	if (phase->begin_ns)
		*ret_progress = (struct stats_progress){
			.started = true,
			.phase = stats->phase,
			.done_nbytes = phase->stages[phase_kinds[stats->phase].measure].nbytes,
			.total_nbytes = phase->total_nbytes,
			.elapsed_ns = trace_now_ns() - phase->begin_ns,
		};
	pthread_mutex_unlock(&stats->lock);
}

static double seconds(uint64_t ns)
{
	return (double)ns * 1e-9;
}

static struct summary summarise(const struct stats *stats, const struct stats_facts *facts)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (struct summary){
		.facts = facts,
		.elapsed_s =
			seconds((stats->end_ns ? stats->end_ns : trace_now_ns()) - stats->begin_ns),
		.user_s = (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec * 1e-6,
		.system_s = (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec * 1e-6,
		.input_nbytes = facts->n_records_in * facts->record_nbytes,
		.peak_rss_nbytes = (uint64_t)usage.ru_maxrss << 10,
	};
}

static uint64_t phase_elapsed_ns(const struct phase_counters *phase)
{
	return (phase->end_ns ? phase->end_ns : trace_now_ns()) - phase->begin_ns;
}

/* The stage that ran for most of the phase; N_STAGES if none ran. */
static enum stage find_bottleneck(const struct phase_counters *phase)
{
	enum stage found = N_STAGES;
	uint64_t most_ns = 0;

	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (phase->stages[stage].covered_ns > most_ns) {
			most_ns = phase->stages[stage].covered_ns;
			found = stage;
		}
	return found;
}

static bool is_idle(const struct counter *counter)
{
	return counter->n_spans == 0 && counter->waited_ns == 0;
}

/* "1.5 GiB/s", or "-" where nothing was moved. */
static void format_rate(uint64_t nbytes, double s, char text[static 40])
{
	char size[32];

	if (nbytes && s > 0) {
		size_format((uint64_t)((double)nbytes / s), size);
		snprintf(text, 40, "%s/s", size);
	} else {
		snprintf(text, 40, "-");
	}
}

/* ", at 97 % of 5.9 GiB/s": how near it came to what it can do alone. */
static void print_ceiling(const struct counter *counter, double ceiling, FILE *stream)
{
	const double rate = (double)counter->nbytes / seconds(counter->covered_ns);
	char text[32];

	if (ceiling <= 0 || counter->nbytes == 0)
		return;
	size_format((uint64_t)ceiling, text);
	fprintf(stream, ", at %.0f %% of the %s/s that it can do", 100 * rate / ceiling, text);
}

static void print_stage(const struct counter *counter, const char *name, uint64_t phase_ns,
			FILE *stream)
{
	char size[32], rate[40];

	size_format(counter->nbytes, size);
	format_rate(counter->nbytes, seconds(counter->covered_ns), rate);
	fprintf(stream, "  %-10s %12s %9.3f s %9.3f s %6.0f %% %14s", name, size,
		seconds(counter->busy_ns), seconds(counter->waited_ns),
		100 * seconds(counter->covered_ns) / seconds(phase_ns ? phase_ns : 1), rate);
}

static void print_phase(const struct phase_counters *phase, const struct stats_facts *facts,
			const char *name, FILE *stream)
{
	const uint64_t elapsed_ns = phase_elapsed_ns(phase);
	const enum stage bottleneck = find_bottleneck(phase);

	fprintf(stream, "%s: %.3f s\n", name, seconds(elapsed_ns));
	if (bottleneck == N_STAGES)
		return;
	fprintf(stream, "  %-10s %12s %11s %11s %8s %14s\n", "stage", "bytes", "busy", "waited",
		"running", "rate");
	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		const struct counter *counter = &phase->stages[stage];

		if (is_idle(counter))
			continue;
		print_stage(counter, stage_names[stage], elapsed_ns, stream);
		if (stage == bottleneck) {
			fputs("  <- held the others up", stream);
			print_ceiling(counter, facts->ceilings[stage], stream);
		}
		fputc('\n', stream);
	}
}

static double percent_stored(const struct compression_totals *spilled)
{
	return spilled->items_nbytes ?
		       100.0 * (double)spilled->stored_nbytes / (double)spilled->items_nbytes :
		       100;
}

static void print_spilled(const struct compression_totals *spilled, FILE *stream)
{
	char items[32], stored[32];

	size_format(spilled->items_nbytes, items);
	size_format(spilled->stored_nbytes, stored);
	fprintf(stream, "\nspilled: %s, stored as %s (%.1f %%) with %s", items, stored,
		percent_stored(spilled), spilled->codec);
}

/* What only a sort has. */
static void print_sort(const struct stats_facts *facts, FILE *stream)
{
	char buffer[32], chunk[32], temp[32];

	size_format(facts->buffer_nbytes, buffer);
	size_format(facts->chunk_nbytes, chunk);
	size_format(facts->peak_temp_nbytes, temp);
	fprintf(stream,
		"; %s\nruns: %" PRIu64 ", of them spilled: %" PRIu64
		"; chunks: %s; passes: %" PRIu64 "; windows: %" PRIu64
		"; memory for data: %s; temporary space: %s",
		facts->backend, facts->n_runs, facts->n_runs_spilled, chunk, facts->n_passes,
		facts->n_windows, buffer, temp);
	if (facts->spilled.items_nbytes)
		print_spilled(&facts->spilled, stream);
}

static void print_facts(const struct summary *summary, FILE *stream)
{
	const struct stats_facts *facts = summary->facts;
	const bool is_sort = facts->backend[0];
	char input[32], rate[40];

	size_format(summary->input_nbytes, input);
	format_rate(summary->input_nbytes, summary->elapsed_s, rate);
	fprintf(stream, "%" PRIu64 " records of %s (%s) read", facts->n_records_in, facts->type,
		input);
	if (is_sort)
		fprintf(stream, ", %" PRIu64 " written", facts->n_records_out);
	fprintf(stream, ", %s", rate);
	if (is_sort)
		print_sort(facts, stream);
	fputc('\n', stream);
}

static void print_summary(const struct summary *summary, FILE *stream)
{
	char rss[32];

	if (summary->facts->record_nbytes)
		print_facts(summary, stream);
	size_format(summary->peak_rss_nbytes, rss);
	fprintf(stream, "%.3f s, %.3f s user, %.3f s system, %s resident at most\n",
		summary->elapsed_s, summary->user_s, summary->system_s, rss);
}

void stats_print(struct stats *stats, const struct stats_facts *facts, FILE *stream)
{
	struct summary summary;

	if (!stats)
		return;
	summary = summarise(stats, facts);
	print_summary(&summary, stream);
	for (enum phase phase = 0; phase < N_PHASES; phase++)
		if (stats->phases[phase].begin_ns)
			print_phase(&stats->phases[phase], facts, phase_name(phase), stream);
}

static void write_stage(const struct counter *counter, const char *name, double ceiling,
			bool is_first, FILE *stream)
{
	fprintf(stream,
		"%s\n        {\"name\": \"%s\", \"spans\": %" PRIu64 ", \"bytes\": %" PRIu64
		", \"busy_s\": %.6f, \"waited_s\": %.6f, \"covered_s\": %.6f",
		is_first ? "" : ",", name, counter->n_spans, counter->nbytes,
		seconds(counter->busy_ns), seconds(counter->waited_ns),
		seconds(counter->covered_ns));
	if (ceiling > 0)
		fprintf(stream, ", \"ceiling_bytes_per_s\": %.0f", ceiling);
	fputc('}', stream);
}

static void write_phase(const struct phase_counters *phase, const struct stats_facts *facts,
			const char *name, bool is_first, FILE *stream)
{
	const enum stage bottleneck = find_bottleneck(phase);
	bool is_first_stage = true;

	fprintf(stream, "%s\n    {\"name\": \"%s\", \"elapsed_s\": %.6f, ", is_first ? "" : ",",
		name, seconds(phase_elapsed_ns(phase)));
	if (bottleneck == N_STAGES)
		fprintf(stream, "\"bottleneck\": null, \"stages\": [");
	else
		fprintf(stream, "\"bottleneck\": \"%s\", \"stages\": [", stage_names[bottleneck]);
	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		if (is_idle(&phase->stages[stage]))
			continue;
		write_stage(&phase->stages[stage], stage_names[stage], facts->ceilings[stage],
			    is_first_stage, stream);
		is_first_stage = false;
	}
	fprintf(stream, "]}");
}

static void write_facts(const struct stats_facts *facts, FILE *stream)
{
	fprintf(stream,
		"  \"type\": \"%s\",\n  \"record_bytes\": %" PRIu64 ",\n  \"records_in\": %" PRIu64
		",\n",
		facts->type, facts->record_nbytes, facts->n_records_in);
	if (!facts->backend[0])
		return;
	fprintf(stream,
		"  \"backend\": \"%s\",\n  \"records_out\": %" PRIu64 ",\n"
		"  \"buffer_bytes\": %" PRIu64 ",\n  \"peak_temporary_bytes\": %" PRIu64
		",\n  \"chunk_bytes\": %" PRIu64 ",\n"
		"  \"runs\": %" PRIu64 ",\n  \"runs_spilled\": %" PRIu64 ",\n  \"passes\": %" PRIu64
		",\n  \"windows\": %" PRIu64 ",\n",
		facts->backend, facts->n_records_out, facts->buffer_nbytes, facts->peak_temp_nbytes,
		facts->chunk_nbytes, facts->n_runs, facts->n_runs_spilled, facts->n_passes,
		facts->n_windows);
	if (facts->spilled.codec)
		fprintf(stream,
			"  \"spilled_bytes\": %" PRIu64 ",\n  \"stored_bytes\": %" PRIu64
			",\n  \"stored_percent\": %.2f,\n  \"codec\": \"%s\",\n",
			facts->spilled.items_nbytes, facts->spilled.stored_nbytes,
			percent_stored(&facts->spilled), facts->spilled.codec);
}

static void write_summary(const struct summary *summary, FILE *stream)
{
	fprintf(stream,
		"  \"version\": \"%s\",\n"
		"  \"elapsed_s\": %.6f,\n  \"user_s\": %.6f,\n  \"system_s\": %.6f,\n"
		"  \"peak_rss_bytes\": %" PRIu64 ",\n",
		GSORT_VERSION, summary->elapsed_s, summary->user_s, summary->system_s,
		summary->peak_rss_nbytes);
	if (summary->facts->record_nbytes)
		write_facts(summary->facts, stream);
}

static void write_phases(const struct stats *stats, const struct stats_facts *facts, FILE *stream)
{
	bool is_first = true;

	fprintf(stream, "  \"phases\": [");
	for (enum phase phase = 0; phase < N_PHASES; phase++) {
		if (!stats->phases[phase].begin_ns)
			continue;
		write_phase(&stats->phases[phase], facts, phase_kinds[phase].name, is_first,
			    stream);
		is_first = false;
	}
	fprintf(stream, "]\n");
}

int stats_write_json(struct stats *stats, const struct stats_facts *facts, const char *path)
{
	struct summary summary;
	bool failed;
	FILE *stream;

	if (!stats)
		return 0;
	stream = fopen(path, "we");
	if (!stream)
		return fail(-errno, "%s: cannot write statistics here: %m", path);
	summary = summarise(stats, facts);
	fprintf(stream, "{\n");
	write_summary(&summary, stream);
	write_phases(stats, facts, stream);
	fprintf(stream, "}\n");
	failed = ferror(stream);
	/* What was written is less than a buffer of stdio: errors show here. */
	if (fclose(stream) != 0)
		return fail(-errno, "%s: write of the statistics: %m", path);
	return failed ? fail(-EIO, "%s: write of the statistics: %m", path) : 0;
}
