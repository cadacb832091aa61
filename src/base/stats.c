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
#include "src/base/stats.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "src/base/diagnostics.h"
#include "src/base/phase_progress.h"
#include "src/base/timeline.h"

struct phase_counters {
	uint64_t begin_ns, end_ns; /* 0: has not begun, has not ended */
	struct stats_volumes volumes;
	uint64_t total_nbytes;
	uint64_t passed_nbytes; /* that the measuring stage had no need to move */
	bool is_complete;       /* there is nothing more to move */
	struct stage_totals stages[N_STAGES];
	uint64_t covered_until_ns[N_STAGES];
};

struct stats {
	/* Set at creation. */
	uint64_t begin_ns;

	pthread_mutex_t lock;
	/* Under the lock. */
	struct timeline *timeline; /* NULL: nobody looks on */
	enum phase phase;          /* the current one, if phases[phase].begin_ns != 0 */
	struct phase_counters phases[N_PHASES];
	struct device_totals devices[STATS_MOST_DEVICES];
	uint64_t devices_covered_until_ns[STATS_MOST_DEVICES];
	stats_volumes_asker *ask_volumes; /* NULL: nobody knows any */
	void *volumes_context;
	struct stats_volumes volumes; /* of all phases that are over */
	uint64_t end_ns;              /* set by stats_finish(); 0 before */
	struct stats_usage usage;     /* valid then */
};

static const struct {
	const char *name;
	enum track_role works,
		waits; /* whose work it is, unless a device's, and who waits for it */
} stage_kinds[N_STAGES] = {
	[STAGE_READ] = { "read", TRACK_READERS, TRACK_READERS },
	[STAGE_UPLOAD] = { "upload", TRACK_LANES, TRACK_LANES },
	[STAGE_ENCODE] = { "encode", TRACK_LANES, TRACK_LANES },
	[STAGE_SORT] = { "sort", TRACK_LANES, TRACK_LANES },
	[STAGE_FETCH] = { "fetch", TRACK_FETCHERS, TRACK_FETCHERS },
	[STAGE_UNPACK] = { "unpack", TRACK_LANES, TRACK_LANES },
	[STAGE_CUT] = { "cut", TRACK_LANES, TRACK_FETCHERS },
	[STAGE_MERGE] = { "merge", TRACK_LANES, TRACK_LANES },
	[STAGE_DECODE] = { "decode", TRACK_LANES, TRACK_LANES },
	[STAGE_PACK] = { "pack", TRACK_LANES, TRACK_LANES },
	[STAGE_DOWNLOAD] = { "download", TRACK_LANES, TRACK_LANES },
	[STAGE_SPILL] = { "spill", TRACK_WRITERS, TRACK_WRITERS },
	[STAGE_WRITE] = { "write", TRACK_WRITERS, TRACK_WRITERS },
	[STAGE_VERIFY] = { "verify", TRACK_CHECKERS, TRACK_CHECKERS },
};

static const struct {
	const char *name, *key;
	enum stage measure; /* whose bytes tell how far the phase is */
} phase_kinds[N_PHASES] = {
	[PHASE_RUNS] = { "run generation", "run_generation", STAGE_READ },
	[PHASE_PASSES] = { "merge passes", "merge_passes", STAGE_SPILL },
	[PHASE_MERGE] = { "final merge", "final_merge", STAGE_WRITE },
	[PHASE_CHECK] = { "verify", "verify", STAGE_VERIFY },
};

int stats_open_watched(struct trace *trace, struct history *history, struct stats **ret_stats)
{
	const struct timeline_onlookers onlookers = { trace, history };
	struct stats *stats = calloc(1, sizeof *stats);

	if (!stats)
		return fail(-ENOMEM, "no memory for statistics");
	if ((trace || history) && timeline_open(&onlookers, &stats->timeline) < 0) {
		free(stats);
		return -ENOMEM;
	}
	stats->begin_ns = clock_now_ns();
	pthread_mutex_init(&stats->lock, NULL);
	*ret_stats = stats;
	return 0;
}

int stats_open(struct trace *trace, struct stats **ret_stats)
{
	return stats_open_watched(trace, NULL, ret_stats);
}

void stats_close(struct stats *stats)
{
	if (!stats)
		return;
	pthread_mutex_destroy(&stats->lock);
	timeline_close(stats->timeline);
	free(stats);
}

/* Under the lock: what the phase's measuring stage has moved. */
static uint64_t done_nbytes(const struct stats *stats, enum phase phase)
{
	return stats->phases[phase].stages[phase_kinds[phase].measure].nbytes;
}

/* Under the lock: and what it had no need to move. */
static uint64_t settled_nbytes(const struct stats *stats, enum phase phase)
{
	return done_nbytes(stats, phase) + stats->phases[phase].passed_nbytes;
}

/* Under the lock, as what follows: what has gone to the output. */
static uint64_t written_nbytes(const struct stats *stats)
{
	return stats->phases[PHASE_MERGE].stages[STAGE_WRITE].nbytes;
}

/* The current phase ends, if one has begun, and perhaps another begins. */
static void show_phase(const struct stats *stats, uint64_t now_ns)
{
	const struct phase_counters *phase = &stats->phases[stats->phase];

	if (!stats->timeline)
		return;
	timeline_look_now(stats->timeline, now_ns, written_nbytes(stats));
	if (phase->begin_ns)
		timeline_add_phase(stats->timeline, stats->phase, phase->begin_ns, now_ns,
				   done_nbytes(stats, stats->phase));
}

/* Somebody looks on. */
static void show_span(const struct stats *stats, const struct span *span, bool is_work,
		      uint64_t end_ns, uint64_t nbytes)
{
	const enum track_role role = is_work ? stage_kinds[span->stage].works :
					       stage_kinds[span->stage].waits;
	const struct timeline_piece piece = {
		.name = stage_kinds[span->stage].name,
		.category = is_work ? "work" : "wait",
		.stage = is_work ? span->stage : N_STAGES,
		.begin_ns = span->begin_ns,
		.end_ns = end_ns,
		.role = span->lane ? TRACK_DEVICES : role,
		.device = span->device,
		.owner = span->lane ? span->lane : (uint64_t)pthread_self(),
		.item = span->item,
		.nbytes = nbytes,
	};

	timeline_add(stats->timeline, &piece);
	timeline_look(stats->timeline, end_ns, written_nbytes(stats));
}

/* Under the lock: what has come and gone since the last phase ended is the current one's. */
static void end_volumes(struct stats *stats)
{
	struct phase_counters *phase = &stats->phases[stats->phase];
	const struct stats_volumes before = stats->volumes;
	struct stats_volumes now = before;

	if (!stats->ask_volumes || !phase->begin_ns)
		return;
	stats->ask_volumes(stats->volumes_context, &now);
	phase->volumes = (struct stats_volumes){
		now.temporary_written_nbytes - before.temporary_written_nbytes,
		now.temporary_read_nbytes - before.temporary_read_nbytes,
		now.sent_nbytes - before.sent_nbytes,
		now.received_nbytes - before.received_nbytes,
		now.wire_sent_nbytes - before.wire_sent_nbytes,
		now.wire_received_nbytes - before.wire_received_nbytes,
	};
	stats->volumes = now;
}

void stats_watch_volumes(struct stats *stats, stats_volumes_asker *ask, void *context)
{
	if (!stats)
		return;
	pthread_mutex_lock(&stats->lock);
	stats->ask_volumes = ask;
	stats->volumes_context = context;
	pthread_mutex_unlock(&stats->lock);
}

void stats_begin_phase(struct stats *stats, enum phase phase, uint64_t total_nbytes)
{
	const uint64_t now_ns = clock_now_ns();

	if (!stats)
		return;
	pthread_mutex_lock(&stats->lock);
	if (phase != stats->phase)
		show_phase(stats, now_ns);
	end_volumes(stats);
	stats->phases[stats->phase].end_ns = now_ns;
	stats->phase = phase;
	stats->phases[phase] =
		(struct phase_counters){ .begin_ns = now_ns, .total_nbytes = total_nbytes };
	pthread_mutex_unlock(&stats->lock);
}

void stats_complete_phase(struct stats *stats)
{
	if (!stats)
		return;
	pthread_mutex_lock(&stats->lock);
	stats->phases[stats->phase].is_complete = true;
	pthread_mutex_unlock(&stats->lock);
}

void stats_expect(struct stats *stats, enum phase phase, uint64_t total_nbytes)
{
	if (!stats)
		return;
	pthread_mutex_lock(&stats->lock);
	if (!stats->phases[phase].begin_ns)
		stats->phases[phase].total_nbytes = total_nbytes;
	pthread_mutex_unlock(&stats->lock);
}

static void add_covered(const struct span *span, uint64_t end_ns, uint64_t *until_ns,
			uint64_t *covered_ns)
{
	const uint64_t from_ns = span->begin_ns > *until_ns ? span->begin_ns : *until_ns;

	if (end_ns <= from_ns)
		return;
	*covered_ns += end_ns - from_ns;
	*until_ns = end_ns;
}

/* Under the lock. */
static void add_span(struct phase_counters *phase, const struct span *span, uint64_t end_ns,
		     uint64_t nbytes)
{
	struct stage_totals *stage = &phase->stages[span->stage];

	stage->n_spans++;
	stage->nbytes += nbytes;
	stage->busy_ns += end_ns - span->begin_ns;
	add_covered(span, end_ns, &phase->covered_until_ns[span->stage], &stage->covered_ns);
}

static bool is_one_of_several(uint32_t device)
{
	return device > 0 && device <= STATS_MOST_DEVICES;
}

/* Under the lock: whatever phase it is. */
static void add_device_span(struct stats *stats, const struct span *span, uint64_t end_ns)
{
	struct device_totals *device;

	if (!is_one_of_several(span->device))
		return;
	device = &stats->devices[span->device - 1];
	device->busy_ns += end_ns - span->begin_ns;
	add_covered(span, end_ns, &stats->devices_covered_until_ns[span->device - 1],
		    &device->covered_ns);
}

void stats_add_device(struct stats *stats, uint32_t device, const struct device_totals *done)
{
	struct device_totals *sum;

	if (!stats || !is_one_of_several(device))
		return;
	pthread_mutex_lock(&stats->lock);
	sum = &stats->devices[device - 1];
	sum->n_chunks += done->n_chunks;
	sum->sorted_nbytes += done->sorted_nbytes;
	sum->n_ranges += done->n_ranges;
	sum->merged_nbytes += done->merged_nbytes;
	sum->peer_nbytes += done->peer_nbytes;
	sum->away_nbytes += done->away_nbytes;
	pthread_mutex_unlock(&stats->lock);
}

void stats_end_at(struct stats *stats, struct span span, uint64_t end_ns, uint64_t nbytes)
{
	if (!stats)
		return;
	pthread_mutex_lock(&stats->lock);
	if (stats->end_ns == 0) {
		add_span(&stats->phases[stats->phase], &span, end_ns, nbytes);
		add_device_span(stats, &span, end_ns);
		if (stats->timeline)
			show_span(stats, &span, true, end_ns, nbytes);
	}
	pthread_mutex_unlock(&stats->lock);
}

void stats_end(struct stats *stats, struct span span, uint64_t nbytes)
{
	stats_end_at(stats, span, clock_now_ns(), nbytes);
}

void stats_pass(struct stats *stats, enum stage stage, uint64_t nbytes)
{
	if (!stats)
		return;
	pthread_mutex_lock(&stats->lock);
	if (stats->end_ns == 0 && phase_kinds[stats->phase].measure == stage)
		stats->phases[stats->phase].passed_nbytes += nbytes;
	pthread_mutex_unlock(&stats->lock);
}

void stats_waited(struct stats *stats, struct span span)
{
	const uint64_t end_ns = clock_now_ns();

	if (!stats)
		return;
	pthread_mutex_lock(&stats->lock);
	stats->phases[stats->phase].stages[span.stage].waited_ns += end_ns - span.begin_ns;
	if (stats->timeline && stats->end_ns == 0)
		show_span(stats, &span, false, end_ns, 0);
	pthread_mutex_unlock(&stats->lock);
}

void stats_watch_temporary(struct stats *stats, uint64_t (*nbytes)(void *context), void *context)
{
	if (!stats)
		return;
	pthread_mutex_lock(&stats->lock);
	if (stats->timeline)
		timeline_watch(stats->timeline, &(struct timeline_gauges){ nbytes, context });
	pthread_mutex_unlock(&stats->lock);
}

void stats_add_range(struct stats *stats, uint64_t number, uint64_t begin_ns, uint64_t nbytes)
{
	const struct timeline_piece piece = {
		.name = "partition",
		.category = "work",
		.stage = N_STAGES,
		.begin_ns = begin_ns,
		.end_ns = clock_now_ns(),
		.role = TRACK_RANGES,
		.owner = (uint64_t)pthread_self(),
		.item = number,
		.nbytes = nbytes,
	};

	if (!stats)
		return;
	pthread_mutex_lock(&stats->lock);
	if (stats->timeline && stats->end_ns == 0)
		timeline_add(stats->timeline, &piece);
	pthread_mutex_unlock(&stats->lock);
}

static uint64_t ns_of(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

static struct stats_usage usage_now(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (struct stats_usage){
		.user_ns = ns_of(usage.ru_utime),
		.system_ns = ns_of(usage.ru_stime),
		.peak_rss_nbytes = (uint64_t)usage.ru_maxrss << 10,
	};
}

void stats_finish(struct stats *stats)
{
	if (!stats)
		return;
	pthread_mutex_lock(&stats->lock);
	if (!stats->end_ns) {
		stats->end_ns = clock_now_ns();
		stats->usage = usage_now();
		show_phase(stats, stats->end_ns);
		end_volumes(stats);
		stats->phases[stats->phase].end_ns = stats->end_ns;
	}
	pthread_mutex_unlock(&stats->lock);
}

const char *stage_name(enum stage stage)
{
	return stage_kinds[stage].name;
}

enum track_role stage_role(enum stage stage)
{
	return stage_kinds[stage].works;
}

const char *phase_name(enum phase phase)
{
	return phase_kinds[phase].name;
}

const char *phase_key(enum phase phase)
{
	return phase_kinds[phase].key;
}

/* Under the lock, of a phase that has begun or may be to come. */
static struct phase_standing standing_of(const struct stats *stats, enum phase i, uint64_t now_ns)
{
	const struct phase_counters *phase = &stats->phases[i];
	const bool has_begun = phase->begin_ns;
	const bool is_over = has_begun && (i != stats->phase || phase->is_complete);
	const uint64_t done = settled_nbytes(stats, i);

	/* A phase that is over has moved all that it had to, whatever it was expected to. */
	return (struct phase_standing){
		.done_nbytes = done,
		.total_nbytes = is_over ? done : phase->total_nbytes,
		.is_unknown = has_begun && !is_over && !phase->total_nbytes,
		.elapsed_ns =
			has_begun ? (phase->end_ns ? phase->end_ns : now_ns) - phase->begin_ns : 0,
	};
}

void stats_get_standing(struct stats *stats, struct standing *ret_standing)
{
	uint64_t now_ns;

	*ret_standing = (struct standing){ .phase = N_PHASES };
	if (!stats)
		return;
	pthread_mutex_lock(&stats->lock);
	now_ns = clock_now_ns();
	if (stats->phases[stats->phase].begin_ns)
		ret_standing->phase = stats->phase;
	for (enum phase i = 0; i < N_PHASES; i++)
		ret_standing->phases[i] = standing_of(stats, i, now_ns);
	pthread_mutex_unlock(&stats->lock);
}

void stats_get_progress(struct stats *stats, struct stats_progress *ret_progress)
{
	struct standing standing;

	stats_get_standing(stats, &standing);
	standing_progress(&standing, ret_progress);
}

void stats_get_totals(struct stats *stats, struct stats_totals *ret_totals)
{
	struct stats_totals totals = { 0 };
	uint64_t now_ns;

	pthread_mutex_lock(&stats->lock);
	now_ns = stats->end_ns ? stats->end_ns : clock_now_ns();
	totals.elapsed_ns = now_ns - stats->begin_ns;
	totals.usage = stats->end_ns ? stats->usage : usage_now();
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
