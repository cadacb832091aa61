/*
 * test_rank_progress - progress of all ranks, in whatever order they answer, or not at all
 *
 * Rank r has read (r + 1) * 10 of 100 bytes, so a sum shows which ranks it contains.
 */
#include "src/comm/rank_progress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/stats.h"
#include "tests/support/fake_ranks.h"
#include "tests/support/unit_test.h"

enum { DONE = 10, READ = 100, WRITTEN = 60 };

static const uint64_t minute_ns = UINT64_C(60) * 1000000000, moment_ns = 200000000;

/* A rank with its statistics. */
struct progress_reporter {
	struct comm *comm;
	struct stats *stats;
	struct rank_progress *progress;
	uint64_t unit;
};

static int report_progress(struct comm *comm, struct progress_reporter *ret_reporter)
{
	*ret_reporter = (struct progress_reporter){ .comm = comm, .unit = comm_rank(comm) + 1 };
	return stats_open(NULL, NULL, &ret_reporter->stats);
}

static int open_rank_progress(struct progress_reporter *reporter)
{
	return rank_progress_open(reporter->comm, reporter->stats, 0, &reporter->progress);
}

static void read_some(struct progress_reporter *reporter)
{
	stats_begin_phase(reporter->stats, PHASE_RUN_GENERATION, READ * reporter->unit);
	stats_end(reporter->stats, stats_begin(STAGE_READ, 0), DONE * reporter->unit);
}

static void write_all(struct progress_reporter *reporter)
{
	stats_begin_phase(reporter->stats, PHASE_FINAL_MERGE, WRITTEN * reporter->unit);
	stats_end(reporter->stats, stats_begin(STAGE_WRITE, 0), WRITTEN * reporter->unit);
}

static int stop_reporting(struct progress_reporter *reporter, int r)
{
	if (r == 0)
		r = rank_progress_finish(reporter->progress);
	rank_progress_close(reporter->progress);
	stats_close(reporter->stats);
	return r;
}

/* The number of units of all ranks together. */
static uint64_t units(const struct comm *comm)
{
	const uint64_t n = comm_size(comm);

	return n * (n + 1) / 2;
}

/* Query until all ranks have answered with this state; a rank that never does ends the test. */
static void query_until(struct progress_reporter *reporter, uint64_t done_nbytes,
			struct stats_progress *ret_at)
{
	do
		rank_progress_get(reporter->progress, ret_at);
	while (ret_at->overall_done_nbytes != done_nbytes);
}

static bool is_at(const struct stats_progress *at, enum phase phase, uint64_t done, uint64_t total)
{
	return at->started && at->phase == phase && at->done_nbytes == done &&
	       at->total_nbytes == total;
}

/* --- all answer --- */

/* Rank 0 still reads, while others are in the next phase. */
static int query_together(struct progress_reporter *reporter)
{
	const uint64_t all = units(reporter->comm);
	struct stats_progress at;
	int r;

	query_until(reporter, DONE * all, &at);
	if (!is_at(&at, PHASE_RUN_GENERATION, DONE * all, READ * all) ||
	    at.overall_total_nbytes != READ * all)
		return -EILSEQ;
	r = comm_barrier(reporter->comm);
	if (r < 0)
		return r;
	query_until(reporter, DONE * all + WRITTEN * (all - 1), &at);
	/* the others now report how much they have read */
	return is_at(&at, PHASE_RUN_GENERATION, DONE * all, READ + DONE * (all - 1)) ? 0 : -EILSEQ;
}

static int continue_reporting(struct progress_reporter *reporter)
{
	const int r = comm_barrier(reporter->comm);

	if (r == 0)
		write_all(reporter);
	return r;
}

static int report_all(struct comm *comm, void *argument)
{
	const uint64_t all = units(comm);
	struct progress_reporter reporter;
	struct stats_progress at;
	int r = report_progress(comm, &reporter);

	(void)argument;
	read_some(&reporter);
	if (r == 0)
		r = open_rank_progress(&reporter);
	if (r == 0)
		r = comm_rank(comm) == 0 ? query_together(&reporter) :
					   continue_reporting(&reporter);
	if (r == 0 && comm_rank(comm) == 0)
		write_all(&reporter);
	if (r == 0)
		r = rank_progress_finish(reporter.progress);
	if (r == 0)
		rank_progress_get(reporter.progress, &at);
	if (r == 0 && comm_rank(comm) == 0 &&
	    (!is_at(&at, PHASE_FINAL_MERGE, WRITTEN * all, WRITTEN * all) ||
	     at.overall_done_nbytes != at.overall_total_nbytes))
		r = -EILSEQ;
	rank_progress_close(reporter.progress);
	stats_close(reporter.stats);
	return r;
}

static void run_fine(struct fake_ranks *ranks)
{
	fake_ranks_succeed(ranks);
}

TEST(progress_is_that_of_all_ranks)
{
	for (unsigned size = 1; size <= FAKE_RANKS_MAX; size++) {
		struct fake_ranks ranks = { .size = size,
					    .params = { .timeout_ns = minute_ns },
					    .seed = size % 3,
					    .body = report_all };

		run_fine(&ranks);
	}
}

/* --- some do not --- */

/* The last rank does not listen yet, and rank 0 queries more than once. */
static int report_without_one(struct comm *comm, void *argument)
{
	const unsigned last = comm_size(comm) - 1, rank = comm_rank(comm);
	const uint64_t others = units(comm) - (last + 1);
	struct stats_progress at = { 0 };
	struct progress_reporter reporter;
	int r = report_progress(comm, &reporter);

	(void)argument;
	read_some(&reporter);
	if (r == 0 && rank != last)
		r = open_rank_progress(&reporter);
	if (r == 0 && rank == 0) {
		query_until(&reporter, DONE * others, &at);
		rank_progress_get(reporter.progress, &at);
		r = is_at(&at, PHASE_RUN_GENERATION, DONE * others, READ * others) ? 0 : -EILSEQ;
	}
	if (r == 0)
		r = comm_barrier(comm);
	if (r == 0 && rank == last)
		r = open_rank_progress(&reporter);
	if (r == 0 && rank == 0)
		query_until(&reporter, DONE * units(comm), &at);
	return stop_reporting(&reporter, r);
}

TEST(unresponsive_rank_is_not_waited_for)
{
	struct fake_ranks ranks = { .size = 3,
				    .params = { .timeout_ns = minute_ns },
				    .body = report_without_one };

	run_fine(&ranks);
}

/* --- something fails --- */

static int query_few_times(struct comm *comm, void *argument)
{
	struct stats_progress at;
	struct progress_reporter reporter;
	int r = report_progress(comm, &reporter);

	(void)argument;
	read_some(&reporter);
	if (r == 0)
		r = open_rank_progress(&reporter);
	for (unsigned i = 0; i < 3 && r == 0 && comm_rank(comm) == 0; i++)
		rank_progress_get(reporter.progress, &at);
	return stop_reporting(&reporter, r);
}

static struct fake_ranks faulty(enum fake_rank_fault fault, unsigned rank, unsigned message)
{
	return (struct fake_ranks){ .size = 3,
				    .params = { .timeout_ns = moment_ns },
				    .fault = fault,
				    .fault_rank = rank,
				    .fault_message = message,
				    .body = query_few_times };
}

/* All ranks have ended; after a fault one of them reports it. */
static void assert_all_end(struct fake_ranks *ranks)
{
	unsigned n_named = 0;

	fake_ranks_join(ranks);
	for (unsigned i = 0; i < ranks->size; i++)
		n_named += ranks->exits[i].error_text[0] != '\0';
	assert_true(n_named > 0 || ranks->fault_message >= ranks->exits[ranks->fault_rank].n_sent);
	fake_ranks_free(ranks);
}

/* The messages of comm_open() precede those of the progress; all are tried, in parallel. */
TEST(fault_in_any_progress_message_fails)
{
	static const enum fake_rank_fault faults[] = { FAKE_FAULT_EXIT, FAKE_FAULT_ERROR,
						       FAKE_FAULT_SILENT };
	enum { N_FAULTS = sizeof faults / sizeof faults[0], MAX_MESSAGES = 8 };
	struct fake_ranks ranks[N_FAULTS][MAX_MESSAGES];

	for (unsigned rank = 0; rank < 2; rank++) {
		for (unsigned i = 0; i < N_FAULTS * MAX_MESSAGES; i++) {
			const unsigned fault = i / MAX_MESSAGES, message = i % MAX_MESSAGES;

			ranks[fault][message] = faulty(faults[fault], rank, message);
			fake_ranks_start(&ranks[fault][message]);
		}
		for (unsigned i = 0; i < N_FAULTS * MAX_MESSAGES; i++)
			assert_all_end(&ranks[i / MAX_MESSAGES][i % MAX_MESSAGES]);
	}
}

/* A rank that fails for a reason of its own closes everything in whatever state it is. */
static int fail_on_one_rank(struct comm *comm, void *argument)
{
	struct stats_progress at;
	struct progress_reporter reporter;
	int r = report_progress(comm, &reporter);

	if (r == 0)
		r = open_rank_progress(&reporter);
	if (r == 0 && comm_rank(comm) == 0)
		rank_progress_get(reporter.progress, &at);
	if (r == 0)
		r = comm_rank(comm) == *(const unsigned *)argument ? -EDOM : comm_barrier(comm);
	return stop_reporting(&reporter, r);
}

TEST(rank_that_fails_by_itself_ends_all)
{
	for (unsigned failing = 0; failing < 2; failing++) {
		struct fake_ranks ranks = { .size = 3,
					    .params = { .timeout_ns = minute_ns },
					    .body = fail_on_one_rank,
					    .argument = &failing };

		fake_ranks_run(&ranks);
		assert_int_equal(ranks.exits[failing].result, -EDOM);
		for (unsigned i = 0; i < ranks.size; i++)
			assert_int_not_equal(ranks.exits[i].status, 0);
		fake_ranks_free(&ranks);
	}
}

/* --- sums --- */

TEST(idle_rank_keeps_the_total_known)
{
	struct progress_counters sum = progress_counters_none, idle = progress_counters_none,
				 busy = progress_counters_none;
	struct stats_progress at;

	progress_counters_summarize(&sum, &at);
	assert_false(at.started);
	idle.phase = busy.phase = PHASE_FINAL_MERGE;
	idle.phases[PHASE_FINAL_MERGE].total_is_unknown = 1;
	busy.phases[PHASE_FINAL_MERGE] =
		(struct phase_progress){ .done_nbytes = 3, .total_nbytes = 7, .elapsed_ns = 2 };
	progress_counters_add(&sum, &idle);
	progress_counters_add(&sum, &busy);
	progress_counters_summarize(&sum, &at);
	assert_true(is_at(&at, PHASE_FINAL_MERGE, 3, 7));
	assert_int_equal(at.overall_total_nbytes, 7);
	/* The amount is known of every rank that has begun the phase. */
	idle.phases[PHASE_FINAL_MERGE].done_nbytes = 1;
	progress_counters_add(&sum, &idle);
	progress_counters_summarize(&sum, &at);
	assert_true(is_at(&at, PHASE_FINAL_MERGE, 4, 0));
	assert_int_equal(at.overall_total_nbytes, 0);
}
