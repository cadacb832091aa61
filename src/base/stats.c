/*
 * stats.c - bytes and times of each stage and phase (see stats.h)
 *
 * One lock protects all counters. `active`, the time in which at least one span of a stage ran, is
 * computed without a list of spans: each stage remembers until when it was active, and a span that
 * ends adds the time from there, or from its own begin if that is later, to its end.
 *
 *	  A |-----|            active   |-----|
 *	  B    |-----|         adds           |--|
 *	  C              |--|  adds                 |--|
 *
 * Spans arrive in the order in which they end. A span that began before a gap and ends after a
 * later span loses its share of the gap, so `active` is never too large.
 */
#include "src/base/stats.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/system_limits.h"
#include "src/base/thread.h"

struct phase_counters {
	uint64_t begin_ns, end_ns; /* 0: not begun, not ended */
	struct stats_volumes volumes;
	uint64_t total_nbytes;
	uint64_t skipped_nbytes; /* that the measuring stage did not have to move */
	bool is_complete;        /* nothing is left to move */
	struct stage_totals stages[N_STAGES];
	uint64_t active_until_ns[N_STAGES];
};

struct stats {
	/* Set at creation. */
	uint64_t begin_ns;

	pthread_mutex_t lock;
	/* Protected by the lock. */
	struct timeline timeline;
	enum phase phase; /* the current one, if phases[phase].begin_ns != 0 */
	struct phase_counters phases[N_PHASES];
	struct device_totals devices[STATS_MAX_DEVICES];
	uint64_t devices_active_until_ns[STATS_MAX_DEVICES];
	stats_volume_source *volume_source; /* may be NULL */
	void *volumes_context;
	struct stats_volumes volumes; /* at the end of the last phase */
	uint64_t end_ns;              /* set by stats_finish(); 0 before */
	struct stats_usage usage;     /* valid if end_ns is */
};

static const struct {
	const char *name;
	enum track_role work_role; /* of the threads that do the work, unless a device does it */
	enum track_role wait_role; /* role of the threads that wait for it */
} stage_kinds[N_STAGES] = {
	[STAGE_READ] = { "read", TRACK_READERS, TRACK_READERS },
	[STAGE_UPLOAD] = { "upload", TRACK_CPU_QUEUES, TRACK_CPU_QUEUES },
	[STAGE_ENCODE] = { "encode", TRACK_CPU_QUEUES, TRACK_CPU_QUEUES },
	[STAGE_SORT] = { "sort", TRACK_CPU_QUEUES, TRACK_CPU_QUEUES },
	[STAGE_FETCH] = { "fetch", TRACK_FETCHERS, TRACK_FETCHERS },
	[STAGE_UNPACK] = { "unpack", TRACK_CPU_QUEUES, TRACK_CPU_QUEUES },
	[STAGE_CUT] = { "cut", TRACK_CPU_QUEUES, TRACK_FETCHERS },
	[STAGE_MERGE] = { "merge", TRACK_CPU_QUEUES, TRACK_CPU_QUEUES },
	[STAGE_DECODE] = { "decode", TRACK_CPU_QUEUES, TRACK_CPU_QUEUES },
	[STAGE_PACK] = { "pack", TRACK_CPU_QUEUES, TRACK_CPU_QUEUES },
	[STAGE_DOWNLOAD] = { "download", TRACK_CPU_QUEUES, TRACK_CPU_QUEUES },
	[STAGE_SPILL] = { "spill", TRACK_WRITERS, TRACK_WRITERS },
	[STAGE_WRITE] = { "write", TRACK_WRITERS, TRACK_WRITERS },
	[STAGE_VERIFY] = { "verify", TRACK_CHECKERS, TRACK_CHECKERS },
};

static const struct {
	const char *name, *key;
	enum stage measured_stage; /* whose bytes are the progress of the phase */
} phase_kinds[N_PHASES] = {
	[PHASE_RUN_GENERATION] = { "run generation", "run_generation", STAGE_READ },
	[PHASE_MERGE_PASSES] = { "merge passes", "merge_passes", STAGE_SPILL },
	[PHASE_FINAL_MERGE] = { "final merge", "final_merge", STAGE_WRITE },
	[PHASE_VERIFY] = { "verify", "verify", STAGE_VERIFY },
};

int stats_open(struct trace *trace, struct time_series *series, struct stats **ret_stats)
{
	struct stats *stats = calloc(1, sizeof *stats);

	if (!stats)
		return fail(-ENOMEM, "no memory for statistics");
	stats->timeline = (struct timeline){ .trace = trace, .time_series = series };
	stats->begin_ns = clock_now_ns();
	pthread_mutex_init(&stats->lock, NULL);
	*ret_stats = stats;
	return 0;
}

void stats_close(struct stats *stats)
{
	if (!stats)
		return;
	pthread_mutex_destroy(&stats->lock);
	timeline_destroy(&stats->timeline);
	free(stats);
}

static bool has_timeline(const struct stats *stats)
{
	return stats->timeline.trace || stats->timeline.time_series;
}

/*
 * Return what the phase's measuring stage has moved. Call with the lock held, like all that follow.
 */
static uint64_t done_nbytes(const struct stats *stats, enum phase phase)
{
	return stats->phases[phase].stages[phase_kinds[phase].measured_stage].nbytes;
}

/* Return what was written to the output. */
static uint64_t written_nbytes(const struct stats *stats)
{
	return stats->phases[PHASE_FINAL_MERGE].stages[STAGE_WRITE].nbytes;
}

/* Return the volumes so far, or those at the end of the last phase if there is no source. */
static struct stats_volumes get_volumes(const struct stats *stats)
{
	struct stats_volumes volumes = { 0 };

	if (!stats->volume_source)
		return stats->volumes;
	stats->volume_source(stats->volumes_context, &volumes);
	return volumes;
}

static void sample_gauges(struct stats *stats, uint64_t now_ns)
{
	timeline_sample(&stats->timeline, now_ns,
			(struct time_series_gauges){
				.temporary_nbytes = get_volumes(stats).temporary_used_nbytes,
				.written_nbytes = written_nbytes(stats) });
}

/* Record the end of the current phase, if one has begun. */
static void emit_phase(struct stats *stats, uint64_t now_ns)
{
	const struct phase_counters *phase = &stats->phases[stats->phase];

	if (!has_timeline(stats))
		return;
	sample_gauges(stats, now_ns);
	if (phase->begin_ns)
		timeline_add_phase(&stats->timeline, stats->phase, phase_name(stats->phase),
				   phase->begin_ns, now_ns, done_nbytes(stats, stats->phase));
}

static void emit_span(struct stats *stats, const struct span *span, bool is_work, uint64_t end_ns,
		      uint64_t nbytes)
{
	const enum track_role role = is_work ? stage_kinds[span->stage].work_role :
					       stage_kinds[span->stage].wait_role;
	const struct trace_event event = {
		.name = stage_kinds[span->stage].name,
		.category = is_work ? "work" : "wait",
		.stage = is_work ? span->stage : N_STAGES,
		.begin_ns = span->begin_ns,
		.end_ns = end_ns,
		.role = span->queue ? TRACK_DEVICE_QUEUES : role,
		.device = span->device,
		.owner = span->queue ? span->queue : (uint64_t)pthread_self(),
		.item = span->item,
		.nbytes = nbytes,
	};

	timeline_add(&stats->timeline, &event);
	if (timeline_needs_sample(&stats->timeline, end_ns))
		sample_gauges(stats, end_ns);
}

/* Assign the volumes since the end of the last phase to the current one. */
static void close_phase_volumes(struct stats *stats)
{
	struct phase_counters *phase = &stats->phases[stats->phase];
	const struct stats_volumes previous = stats->volumes, now = get_volumes(stats);

	if (!phase->begin_ns)
		return;
	phase->volumes = (struct stats_volumes){
		.temporary_written_nbytes =
			now.temporary_written_nbytes - previous.temporary_written_nbytes,
		.temporary_read_nbytes = now.temporary_read_nbytes - previous.temporary_read_nbytes,
		.sent_nbytes = now.sent_nbytes - previous.sent_nbytes,
		.received_nbytes = now.received_nbytes - previous.received_nbytes,
	};
	stats->volumes = now;
}

void stats_set_volume_source(struct stats *stats, stats_volume_source *source, void *context)
{
	if (!stats)
		return;
	SCOPED_LOCK(&stats->lock);
	stats->volume_source = source;
	stats->volumes_context = context;
}

void stats_begin_phase(struct stats *stats, enum phase phase, uint64_t total_nbytes)
{
	const uint64_t now_ns = clock_now_ns();

	if (!stats)
		return;
	SCOPED_LOCK(&stats->lock);
	if (phase != stats->phase)
		emit_phase(stats, now_ns);
	close_phase_volumes(stats);
	stats->phases[stats->phase].end_ns = now_ns;
	stats->phase = phase;
	stats->phases[phase] =
		(struct phase_counters){ .begin_ns = now_ns, .total_nbytes = total_nbytes };
}

void stats_complete_phase(struct stats *stats)
{
	if (!stats)
		return;
	SCOPED_LOCK(&stats->lock);
	stats->phases[stats->phase].is_complete = true;
}

void stats_set_phase_total(struct stats *stats, enum phase phase, uint64_t total_nbytes)
{
	if (!stats)
		return;
	SCOPED_LOCK(&stats->lock);
	if (!stats->phases[phase].begin_ns)
		stats->phases[phase].total_nbytes = total_nbytes;
}

static void add_active_time(const struct span *span, uint64_t end_ns, uint64_t *active_until_ns,
			    uint64_t *active_ns)
{
	const uint64_t from_ns = span->begin_ns > *active_until_ns ? span->begin_ns :
								     *active_until_ns;

	if (end_ns <= from_ns)
		return;
	*active_ns += end_ns - from_ns;
	*active_until_ns = end_ns;
}

static bool is_valid_device_number(uint32_t device)
{
	return device > 0 && device <= STATS_MAX_DEVICES;
}

void stats_add_device(struct stats *stats, uint32_t device, const struct device_totals *totals)
{
	struct device_totals *sum;

	if (!stats || !is_valid_device_number(device))
		return;
	SCOPED_LOCK(&stats->lock);
	sum = &stats->devices[device - 1];
	sum->n_chunks += totals->n_chunks;
	sum->sorted_nbytes += totals->sorted_nbytes;
	sum->n_partitions += totals->n_partitions;
	sum->merged_nbytes += totals->merged_nbytes;
	sum->peer_read_nbytes += totals->peer_read_nbytes;
	sum->staged_read_nbytes += totals->staged_read_nbytes;
}

void stats_end_at(struct stats *stats, struct span span, uint64_t end_ns, uint64_t nbytes)
{
	struct phase_counters *phase;
	struct stage_totals *stage;

	if (!stats)
		return;
	SCOPED_LOCK(&stats->lock);
	if (stats->end_ns)
		return;
	phase = &stats->phases[stats->phase];
	stage = &phase->stages[span.stage];
	stage->n_spans++;
	stage->nbytes += nbytes;
	stage->busy_ns += end_ns - span.begin_ns;
	add_active_time(&span, end_ns, &phase->active_until_ns[span.stage], &stage->active_ns);
	if (is_valid_device_number(span.device)) { /* independent of the phase */
		struct device_totals *device = &stats->devices[span.device - 1];

		device->busy_ns += end_ns - span.begin_ns;
		add_active_time(&span, end_ns, &stats->devices_active_until_ns[span.device - 1],
				&device->active_ns);
	}
	if (has_timeline(stats))
		emit_span(stats, &span, true, end_ns, nbytes);
}

void stats_end(struct stats *stats, struct span span, uint64_t nbytes)
{
	stats_end_at(stats, span, clock_now_ns(), nbytes);
}

void stats_skip(struct stats *stats, enum stage stage, uint64_t nbytes)
{
	if (!stats)
		return;
	SCOPED_LOCK(&stats->lock);
	if (stats->end_ns == 0 && phase_kinds[stats->phase].measured_stage == stage)
		stats->phases[stats->phase].skipped_nbytes += nbytes;
}

void stats_end_wait(struct stats *stats, struct span span)
{
	const uint64_t end_ns = clock_now_ns();

	if (!stats)
		return;
	SCOPED_LOCK(&stats->lock);
	stats->phases[stats->phase].stages[span.stage].blocked_ns += end_ns - span.begin_ns;
	if (has_timeline(stats) && stats->end_ns == 0)
		emit_span(stats, &span, false, end_ns, 0);
}

void stats_add_partition(struct stats *stats, uint64_t number, uint64_t begin_ns, uint64_t nbytes)
{
	const struct trace_event event = {
		.name = "partition",
		.category = "work",
		.stage = N_STAGES,
		.begin_ns = begin_ns,
		.end_ns = clock_now_ns(),
		.role = TRACK_PARTITIONS,
		.owner = (uint64_t)pthread_self(),
		.item = number,
		.nbytes = nbytes,
	};

	if (!stats)
		return;
	SCOPED_LOCK(&stats->lock);
	if (has_timeline(stats) && stats->end_ns == 0)
		timeline_add(&stats->timeline, &event);
}

static uint64_t timeval_to_ns(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

static struct stats_usage get_usage(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (struct stats_usage){
		.user_ns = timeval_to_ns(usage.ru_utime),
		.system_ns = timeval_to_ns(usage.ru_stime),
		.peak_rss_nbytes = memory_peak_resident_nbytes(),
	};
}

void stats_finish(struct stats *stats)
{
	if (!stats)
		return;
	SCOPED_LOCK(&stats->lock);
	if (!stats->end_ns) {
		stats->end_ns = clock_now_ns();
		stats->usage = get_usage();
		emit_phase(stats, stats->end_ns);
		close_phase_volumes(stats);
		stats->phases[stats->phase].end_ns = stats->end_ns;
	}
}

const char *stage_name(enum stage stage)
{
	return stage_kinds[stage].name;
}

enum track_role stage_role(enum stage stage)
{
	return stage_kinds[stage].work_role;
}

const char *phase_name(enum phase phase)
{
	return phase_kinds[phase].name;
}

const char *phase_key(enum phase phase)
{
	return phase_kinds[phase].key;
}

/* Return the progress of a phase, which may be announced only. */
static struct phase_progress get_phase_progress(const struct stats *stats, enum phase i,
						uint64_t now_ns)
{
	const struct phase_counters *phase = &stats->phases[i];
	const bool has_begun = phase->begin_ns;
	const bool is_over = has_begun && (i != stats->phase || phase->is_complete);
	const uint64_t done = done_nbytes(stats, i) + stats->phases[i].skipped_nbytes;

	/* A finished phase has moved all of its bytes, even if more were expected. */
	return (struct phase_progress){
		.done_nbytes = done,
		.total_nbytes = is_over ? done : phase->total_nbytes,
		.total_is_unknown = has_begun && !is_over && !phase->total_nbytes,
		.elapsed_ns =
			has_begun ? (phase->end_ns ? phase->end_ns : now_ns) - phase->begin_ns : 0,
	};
}

void stats_get_progress_counters(struct stats *stats, struct progress_counters *ret_counters)
{
	uint64_t now_ns;

	*ret_counters = (struct progress_counters){ .phase = N_PHASES };
	if (!stats)
		return;
	SCOPED_LOCK(&stats->lock);
	now_ns = clock_now_ns();
	if (stats->phases[stats->phase].begin_ns)
		ret_counters->phase = stats->phase;
	for (enum phase i = 0; i < N_PHASES; i++)
		ret_counters->phases[i] = get_phase_progress(stats, i, now_ns);
}

void progress_counters_add(struct progress_counters *sum, const struct progress_counters *addend)
{
	if (addend->phase < sum->phase)
		sum->phase = addend->phase;
	for (enum phase i = 0; i < N_PHASES; i++) {
		struct phase_progress *phase = &sum->phases[i];
		const struct phase_progress *phase_addend = &addend->phases[i];

		phase->done_nbytes += phase_addend->done_nbytes;
		phase->total_nbytes += phase_addend->total_nbytes;
		/* A rank that did nothing of an unknown amount may have nothing to do. */
		phase->total_is_unknown |= phase_addend->total_is_unknown &&
					   phase_addend->done_nbytes > 0;
		if (phase->elapsed_ns < phase_addend->elapsed_ns)
			phase->elapsed_ns = phase_addend->elapsed_ns;
	}
}

void progress_counters_summarize(const struct progress_counters *counters,
				 struct stats_progress *ret_progress)
{
	const struct phase_progress *current;

	*ret_progress = (struct stats_progress){ 0 };
	if (counters->phase >= N_PHASES)
		return;
	current = &counters->phases[counters->phase];
	*ret_progress = (struct stats_progress){
		.started = true,
		.phase = (enum phase)counters->phase,
		.done_nbytes = current->done_nbytes,
		.total_nbytes = current->total_is_unknown ? 0 : current->total_nbytes,
		.elapsed_ns = current->elapsed_ns,
	};
	for (enum phase i = 0; i < N_PHASES; i++) {
		const struct phase_progress *phase = &counters->phases[i];

		ret_progress->overall_done_nbytes +=
			u64_min(phase->done_nbytes, phase->total_nbytes);
		ret_progress->overall_total_nbytes += phase->total_nbytes;
	}
	if (current->total_is_unknown)
		ret_progress->overall_total_nbytes = 0;
	/* Phases follow each other, and ranks wait for each other between phases. */
	for (enum phase i = 0; i <= ret_progress->phase; i++)
		ret_progress->overall_elapsed_ns += counters->phases[i].elapsed_ns;
}

void stats_get_progress(struct stats *stats, struct stats_progress *ret_progress)
{
	struct progress_counters counters;

	stats_get_progress_counters(stats, &counters);
	progress_counters_summarize(&counters, ret_progress);
}

void stats_get_totals(struct stats *stats, struct stats_totals *ret_totals)
{
	struct stats_totals totals = { 0 };
	uint64_t now_ns;

	pthread_mutex_lock(&stats->lock);
	now_ns = stats->end_ns ? stats->end_ns : clock_now_ns();
	totals.elapsed_ns = now_ns - stats->begin_ns;
	totals.usage = stats->end_ns ? stats->usage : get_usage();
	for (enum phase i = 0; i < N_PHASES; i++) {
		const struct phase_counters *phase = &stats->phases[i];
		struct phase_totals *sum = &totals.phases[i];

		if (!phase->begin_ns)
			continue;
		sum->has_begun = true;
		sum->elapsed_ns = (phase->end_ns ? phase->end_ns : now_ns) - phase->begin_ns;
		sum->volumes = phase->volumes;
		memcpy(sum->stages, phase->stages, sizeof sum->stages);
	}
	memcpy(totals.devices, stats->devices, sizeof totals.devices);
	pthread_mutex_unlock(&stats->lock);
	*ret_totals = totals;
}
