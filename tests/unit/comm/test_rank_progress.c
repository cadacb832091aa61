/*
 * test_rank_progress - how far several ranks are together, whoever answers when, or not at all
 *
 * A rank has read 10 bytes of 100 for each rank up to its own, and so on: of each sum it is known
 * who is in it.
 */
#include "src/comm/rank_progress.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/phase_progress.h"
#include "tests/support/fake_ranks.h"

#include <cmocka.h>

enum { DONE = 10, READ = 100, WRITTEN = 60 };

static const uint64_t minute_ns = UINT64_C(60) * 1000000000, moment_ns = 200000000;

/* What a rank needs to have news, and what of these it has. */
struct teller {
	struct ranks *ranks;
	struct stats *stats;
	struct news *news;
	uint64_t unit;
};

static int tell(struct ranks *ranks, struct teller *ret_teller)
{
	*ret_teller = (struct teller){ .ranks = ranks, .unit = ranks_rank(ranks) + 1 };
	return stats_open(NULL, &ret_teller->stats);
}

static int open_news(struct teller *teller)
{
	return news_open(teller->ranks, teller->stats, 0, &teller->news);
}

static void read_some(struct teller *teller)
{
	stats_begin_phase(teller->stats, PHASE_RUNS, READ * teller->unit);
	stats_end(teller->stats, stats_begin(STAGE_READ, 0), DONE * teller->unit);
}

static void write_all(struct teller *teller)
{
	stats_begin_phase(teller->stats, PHASE_MERGE, WRITTEN * teller->unit);
	stats_end(teller->stats, stats_begin(STAGE_WRITE, 0), WRITTEN * teller->unit);
}

static int end_telling(struct teller *teller, int r)
{
	if (r == 0)
		r = news_finish(teller->news);
	news_close(teller->news);
	stats_close(teller->stats);
	return r;
}

/* Of all ranks together. */
static uint64_t units(const struct ranks *ranks)
{
	const uint64_t n = ranks_size(ranks);

	return n * (n + 1) / 2;
}

/* Ask until all have answered what is looked for: who does not ends the test. */
static void ask_until(struct teller *teller, uint64_t done_nbytes, struct stats_progress *ret_at)
{
	do
		news_get(teller->news, ret_at);
	while (ret_at->whole_done_nbytes != done_nbytes);
}

static bool is_at(const struct stats_progress *at, enum phase phase, uint64_t done, uint64_t total)
{
	return at->started && at->phase == phase && at->done_nbytes == done &&
	       at->total_nbytes == total;
}

/* --- all answer --- */

/* While the first still reads, others have gone on. */
static int look_together(struct teller *teller)
{
	const uint64_t all = units(teller->ranks);
	struct stats_progress at;
	int r;

	ask_until(teller, DONE * all, &at);
	if (!is_at(&at, PHASE_RUNS, DONE * all, READ * all) || at.whole_total_nbytes != READ * all)
		return -EILSEQ;
	r = ranks_barrier(teller->ranks);
	if (r < 0)
		return r;
	ask_until(teller, DONE * all + WRITTEN * (all - 1), &at);
	/* Of the reading the others say now what it has come to. */
	return is_at(&at, PHASE_RUNS, DONE * all, READ + DONE * (all - 1)) ? 0 : -EILSEQ;
}

static int go_on(struct teller *teller)
{
	const int r = ranks_barrier(teller->ranks);

	if (r == 0)
		write_all(teller);
	return r;
}

static int tell_all(struct ranks *ranks, void *argument)
{
	const uint64_t all = units(ranks);
	struct teller teller;
	struct stats_progress at;
	int r = tell(ranks, &teller);

	(void)argument;
	read_some(&teller);
	if (r == 0)
		r = open_news(&teller);
	if (r == 0)
		r = ranks_rank(ranks) == 0 ? look_together(&teller) : go_on(&teller);
	if (r == 0 && ranks_rank(ranks) == 0)
		write_all(&teller);
	if (r == 0)
		r = news_finish(teller.news);
	if (r == 0)
		news_get(teller.news, &at);
	if (r == 0 && ranks_rank(ranks) == 0 &&
	    (!is_at(&at, PHASE_MERGE, WRITTEN * all, WRITTEN * all) ||
	     at.whole_done_nbytes != at.whole_total_nbytes))
		r = -EILSEQ;
	news_close(teller.news);
	stats_close(teller.stats);
	return r;
}

static void run_fine(struct ranks_double *ranks)
{
	ranks_double_run(ranks);
	ranks_double_assert_fine(ranks);
	ranks_double_forget(ranks);
}

static void progress_is_that_of_all_ranks(void **state)
{
	(void)state;
	for (unsigned size = 1; size <= RANKS_DOUBLE_MOST; size++) {
		struct ranks_double ranks = { .size = size,
					      .settings = { .stall_ns = minute_ns },
					      .seed = size % 3,
					      .body = tell_all };

		run_fine(&ranks);
	}
}

/* --- some do not --- */

/* The last rank has not begun to listen, and the first asks more than once. */
static int tell_without_one(struct ranks *ranks, void *argument)
{
	const unsigned last = ranks_size(ranks) - 1, rank = ranks_rank(ranks);
	const uint64_t others = units(ranks) - (last + 1);
	struct stats_progress at = { 0 };
	struct teller teller;
	int r = tell(ranks, &teller);

	(void)argument;
	read_some(&teller);
	if (r == 0 && rank != last)
		r = open_news(&teller);
	if (r == 0 && rank == 0) {
		ask_until(&teller, DONE * others, &at);
		news_get(teller.news, &at);
		r = is_at(&at, PHASE_RUNS, DONE * others, READ * others) ? 0 : -EILSEQ;
	}
	if (r == 0)
		r = ranks_barrier(ranks);
	if (r == 0 && rank == last)
		r = open_news(&teller);
	if (r == 0 && rank == 0)
		ask_until(&teller, DONE * units(ranks), &at);
	return end_telling(&teller, r);
}

static void who_does_not_answer_is_not_waited_for(void **state)
{
	struct ranks_double ranks = { .size = 3,
				      .settings = { .stall_ns = minute_ns },
				      .body = tell_without_one };

	(void)state;
	run_fine(&ranks);
}

/* --- something fails --- */

static int ask_a_little(struct ranks *ranks, void *argument)
{
	struct stats_progress at;
	struct teller teller;
	int r = tell(ranks, &teller);

	(void)argument;
	read_some(&teller);
	if (r == 0)
		r = open_news(&teller);
	for (unsigned i = 0; i < 3 && r == 0 && ranks_rank(ranks) == 0; i++)
		news_get(teller.news, &at);
	return end_telling(&teller, r);
}

static struct ranks_double faulty(enum ranks_fault fault, unsigned rank, unsigned message)
{
	return (struct ranks_double){ .size = 3,
				      .settings = { .stall_ns = moment_ns },
				      .fault = fault,
				      .fault_rank = rank,
				      .fault_message = message,
				      .body = ask_a_little };
}

/* All have ended when it is joined; and with a fault somebody says it. */
static void assert_all_end(struct ranks_double *ranks)
{
	unsigned n_named = 0;

	ranks_double_join(ranks);
	for (unsigned i = 0; i < ranks->size; i++)
		n_named += ranks->ends[i].text[0] != '\0';
	assert_true(n_named > 0 || ranks->fault_message >= ranks->ends[ranks->fault_rank].n_sent);
	ranks_double_forget(ranks);
}

/* Those of the introduction are before those of the news: all are tried, at once as they wait. */
static void fault_in_any_message_of_news_ends_all(void **state)
{
	static const enum ranks_fault faults[] = { RANKS_CUT, RANKS_DAMAGED, RANKS_LOST };
	enum { N_FAULTS = sizeof faults / sizeof faults[0], MOST_MESSAGES = 8 };
	struct ranks_double ranks[N_FAULTS][MOST_MESSAGES];

	(void)state;
	for (unsigned rank = 0; rank < 2; rank++) {
		for (unsigned i = 0; i < N_FAULTS * MOST_MESSAGES; i++) {
			const unsigned fault = i / MOST_MESSAGES, message = i % MOST_MESSAGES;

			ranks[fault][message] = faulty(faults[fault], rank, message);
			ranks_double_start(&ranks[fault][message]);
		}
		for (unsigned i = 0; i < N_FAULTS * MOST_MESSAGES; i++)
			assert_all_end(&ranks[i / MOST_MESSAGES][i % MOST_MESSAGES]);
	}
}

/* One that fails for a reason of its own closes what it has, in whatever state that is. */
static int fail_alone(struct ranks *ranks, void *argument)
{
	struct stats_progress at;
	struct teller teller;
	int r = tell(ranks, &teller);

	if (r == 0)
		r = open_news(&teller);
	if (r == 0 && ranks_rank(ranks) == 0)
		news_get(teller.news, &at);
	if (r == 0 && ranks_rank(ranks) == *(const unsigned *)argument)
		r = -EDOM;
	return end_telling(&teller, r);
}

static void rank_that_fails_by_itself_ends_all(void **state)
{
	(void)state;
	for (unsigned failing = 0; failing < 2; failing++) {
		struct ranks_double ranks = { .size = 3,
					      .settings = { .stall_ns = minute_ns },
					      .body = fail_alone,
					      .argument = &failing };

		ranks_double_run(&ranks);
		assert_int_equal(ranks.ends[failing].r, -EDOM);
		for (unsigned i = 0; i < ranks.size; i++)
			assert_int_not_equal(ranks.ends[i].status, 0);
		ranks_double_forget(&ranks);
	}
}

/* --- sums --- */

static void who_has_nothing_to_do_leaves_the_whole_known(void **state)
{
	struct standing sum = standing_none, idle = standing_none, busy = standing_none;
	struct stats_progress at;

	(void)state;
	standing_progress(&sum, &at);
	assert_false(at.started);
	idle.phase = busy.phase = PHASE_MERGE;
	idle.phases[PHASE_MERGE].is_unknown = 1;
	busy.phases[PHASE_MERGE] =
		(struct phase_standing){ .done_nbytes = 3, .total_nbytes = 7, .elapsed_ns = 2 };
	standing_add(&sum, &idle);
	standing_add(&sum, &busy);
	standing_progress(&sum, &at);
	assert_true(is_at(&at, PHASE_MERGE, 3, 7));
	assert_int_equal(at.whole_total_nbytes, 7);
	/* But of who does something the amount must be known. */
	idle.phases[PHASE_MERGE].done_nbytes = 1;
	standing_add(&sum, &idle);
	standing_progress(&sum, &at);
	assert_true(is_at(&at, PHASE_MERGE, 4, 0));
	assert_int_equal(at.whole_total_nbytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(progress_is_that_of_all_ranks),
		cmocka_unit_test(who_does_not_answer_is_not_waited_for),
		cmocka_unit_test(fault_in_any_message_of_news_ends_all),
		cmocka_unit_test(rank_that_fails_by_itself_ends_all),
		cmocka_unit_test(who_has_nothing_to_do_leaves_the_whole_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
