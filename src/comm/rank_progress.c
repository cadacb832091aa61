/*
 * rank_progress - how far several ranks are together, while they are at it (see rank_progress.h)
 */
#include "src/comm/rank_progress.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "src/base/clock.h"
#include "src/base/diagnostics.h"
#include "src/base/phase_progress.h"
#include "src/base/thread.h"
#include "src/comm/tags.h"

/* So long answers are waited for. */
static const uint64_t patience_ns = 100000000;

enum { QUESTION_HOW_FAR, QUESTION_LAST };

/* Another rank, as the first one knows it. */
struct source {
	struct ranks_transfer asking, hearing, ending;
	uint64_t question;
	bool is_asked; /* and has not answered */
	struct standing answer, last;
};

struct news {
	struct ranks *ranks;
	pthread_mutex_t lock;
	struct stats *stats;
	bool is_finished;

	/* The first rank's. */
	struct source *sources; /* by rank; that of the own one is not used */
	uint64_t interval_ns, asked_ns;

	/* The others'. */
	pthread_t thread; /* that answers */
	struct ranks_transfer transfer;
	uint64_t question;
	struct standing own;
};

static bool is_first(const struct news *news)
{
	return ranks_rank(news->ranks) == 0;
}

/* --- others: answers --- */

static int answer(struct news *news)
{
	int r = ranks_receive_patiently(news->ranks, 0, RANKS_TAG_NEWS, &news->question,
					sizeof news->question, &news->transfer);

	if (r == 0)
		r = ranks_wait(news->ranks, &news->transfer);
	if (r < 0)
		return r;
	stats_get_standing(news->stats, &news->own);
	r = ranks_send(news->ranks, 0, RANKS_TAG_NEWS, &news->own, sizeof news->own,
		       &news->transfer);
	return r < 0 ? r : ranks_wait(news->ranks, &news->transfer);
}

/* Until the last question, or a failure, of which others speak. */
static void *run(void *argument)
{
	struct news *news = argument;
	int r;

	do
		r = answer(news);
	while (r == 0 && news->question != QUESTION_LAST);
	return NULL;
}

/* --- the first: questions --- */

static int ask(struct news *news, unsigned rank, uint64_t question)
{
	struct source *source = &news->sources[rank];

	source->question = question;
	return ranks_send(news->ranks, rank, RANKS_TAG_NEWS, &source->question,
			  sizeof source->question, &source->asking);
}

/* Nobody is asked who has not answered yet, or is to be asked already. */
static void ask_all(struct news *news)
{
	const uint64_t now_ns = clock_now_ns();

	if (now_ns - news->asked_ns < news->interval_ns)
		return;
	news->asked_ns = now_ns;
	for (unsigned i = 1; i < ranks_size(news->ranks); i++) {
		struct source *source = &news->sources[i];

		if (source->is_asked || ask(news, i, QUESTION_HOW_FAR) < 0 ||
		    ranks_receive_patiently(news->ranks, i, RANKS_TAG_NEWS, &source->answer,
					    sizeof source->answer, &source->hearing) < 0)
			continue;
		source->is_asked = true;
	}
}

static void hear(struct news *news, unsigned rank, uint64_t until_ns)
{
	struct source *source = &news->sources[rank];
	bool has_come = false;

	if (!source->is_asked ||
	    ranks_wait_until(news->ranks, &source->hearing, until_ns, &has_come) < 0 || !has_come)
		return;
	source->is_asked = false;
	source->last = source->answer;
}

static void add_up(const struct news *news, struct standing *ret_sum)
{
	struct standing own;

	*ret_sum = standing_none;
	stats_get_standing(news->stats, &own);
	standing_add(ret_sum, &own);
	for (unsigned i = 1; i < ranks_size(news->ranks); i++)
		standing_add(ret_sum, &news->sources[i].last);
}

/* Under the lock. */
static void ask_and_add_up(struct news *news, struct standing *ret_sum)
{
	const uint64_t until_ns = clock_now_ns() + patience_ns;

	if (!news->is_finished)
		ask_all(news);
	for (unsigned i = 1; i < ranks_size(news->ranks); i++)
		hear(news, i, until_ns);
	add_up(news, ret_sum);
}

void news_get(struct news *news, struct stats_progress *ret_progress)
{
	struct standing standing;

	pthread_mutex_lock(&news->lock);
	if (is_first(news))
		ask_and_add_up(news, &standing);
	else
		stats_get_standing(news->stats, &standing);
	pthread_mutex_unlock(&news->lock);
	standing_progress(&standing, ret_progress);
}

/* --- the end --- */

/* Who is to answer the last question is missed. An answer before that has come before it. */
static int hear_last(struct news *news, unsigned rank)
{
	struct source *source = &news->sources[rank];
	int r = ranks_receive(news->ranks, rank, RANKS_TAG_NEWS, &source->last, sizeof source->last,
			      &source->ending);

	if (r == 0)
		r = ranks_wait(news->ranks, &source->ending);
	if (r == 0 && source->is_asked)
		r = ranks_wait(news->ranks, &source->hearing);
	source->is_asked = false;
	return r;
}

static int finish_asking(struct news *news)
{
	const unsigned n = ranks_size(news->ranks);
	int r = 0;

	pthread_mutex_lock(&news->lock);
	for (unsigned i = 1; i < n && r == 0; i++) {
		if (news->sources[i].is_asked) /* ask() takes what that question is in */
			r = ranks_wait(news->ranks, &news->sources[i].asking);
		if (r == 0)
			r = ask(news, i, QUESTION_LAST);
	}
	for (unsigned i = 1; i < n && r == 0; i++)
		r = hear_last(news, i);
	news->is_finished = r == 0;
	pthread_mutex_unlock(&news->lock);
	return r;
}

int news_finish(struct news *news)
{
	int r = is_first(news) ? finish_asking(news) : 0;

	/* Then the last question has been answered, or this fails: the thread ends soon. */
	if (r == 0)
		r = ranks_barrier(news->ranks);
	if (r < 0 || is_first(news))
		return r;
	pthread_join(news->thread, NULL);
	news->is_finished = true;
	return 0;
}

static void free_news(struct news *news)
{
	pthread_mutex_destroy(&news->lock);
	free(news->sources);
	free(news);
}

void news_close(struct news *news)
{
	if (!news)
		return;
	if (!news->is_finished) {
		ranks_give_up(news->ranks, -ECANCELED); /* unless they have failed already */
		if (!is_first(news))
			pthread_join(news->thread, NULL);
	}
	free_news(news);
}

static int start(struct news *news)
{
	int r;

	if (!is_first(news)) {
		r = thread_start(run, news, 0, &news->thread);
		return r < 0 ? fail(r, "cannot start a thread that tells the first rank: %m") : 0;
	}
	news->sources = calloc(ranks_size(news->ranks), sizeof *news->sources);
	if (!news->sources)
		return fail(-ENOMEM, "no memory for what %u ranks tell", ranks_size(news->ranks));
	for (unsigned i = 0; i < ranks_size(news->ranks); i++)
		news->sources[i].last = standing_none;
	return 0;
}

int news_open(struct ranks *ranks, struct stats *stats, uint64_t interval_ns,
	      struct news **ret_news)
{
	struct news *news = calloc(1, sizeof *news);
	int r;

	if (!news)
		return fail(-ENOMEM, "no memory for what ranks tell each other");
	news->ranks = ranks;
	news->stats = stats;
	news->interval_ns = interval_ns;
	pthread_mutex_init(&news->lock, NULL);
	r = start(news);
	if (r < 0) {
		free_news(news);
		return r;
	}
	*ret_news = news;
	return 0;
}
