/*
 * adaptive_group - one of several ways for many threads at once (see adaptive_group.h)
 */
#include "src/base/adaptive_group.h"

#include <stdbool.h>

/*
 * How long all go one way, and how often the fastest is gone before others are tried again. At the
 * beginning of a turn some are still on another way, and slow those down that go this one.
 */
enum { LEAD_NBYTES = 64 << 20, TURN_NBYTES = 192 << 20, LEAST_BETWEEN_TRIALS = 32 };

void ways_together_init(struct ways_together *ways)
{
	*ways = (struct ways_together){ 0 };
	pthread_mutex_init(&ways->lock, NULL);
}

void ways_together_destroy(struct ways_together *ways)
{
	pthread_mutex_destroy(&ways->lock);
}

static bool is_possible(const struct ways_together *ways, enum way way)
{
	return ways->possible >> way & 1;
}

static enum way find_fastest(const struct ways_together *ways)
{
	enum way fastest = WAY_USUAL;

	for (enum way way = 0; way < N_WAYS; way++)
		if (is_possible(ways, way) && ways->rates[way] > ways->rates[fastest])
			fastest = way;
	return fastest;
}

/* Under the lock: what it moves, as far as is known; beside one that is presumed, no more. */
static double expect_rate(const struct ways_together *ways, enum way way, enum way fastest)
{
	return ways->rates[way] > 0 ? ways->rates[way] : ways->rates[fastest];
}

/* Under the lock: whose turn is it? */
static enum way find_next(struct ways_together *ways)
{
	const unsigned due = ways->possible & ways->presumed ? ways->presumed : ways->possible;
	const enum way fastest = find_fastest(ways);

	for (enum way way = N_WAYS; way-- > 0;)
		if (is_possible(ways, way) && due >> way & 1 && ways->rates[way] == 0)
			return way;
	for (enum way way = 0; way < N_WAYS; way++)
		if (is_possible(ways, way) && way != fastest &&
		    ++ways->n_since[way] * expect_rate(ways, way, fastest) >
			    LEAST_BETWEEN_TRIALS * ways->rates[fastest])
			return way;
	return fastest;
}

/* Under the lock */
static void start_turn(struct ways_together *ways, uint64_t now_ns)
{
	ways->way = find_next(ways);
	ways->n_since[ways->way] = 0;
	ways->began_ns = now_ns;
	ways->nbytes = 0;
	ways->is_timed = false;
}

/* Under the lock: so much has gone the way of all. */
static void count(struct ways_together *ways, uint64_t nbytes, uint64_t now_ns)
{
	ways->nbytes += nbytes;
	if (!ways->is_timed && ways->nbytes >= LEAD_NBYTES) {
		ways->is_timed = true;
		ways->began_ns = now_ns;
		ways->nbytes = 0;
	} else if (ways->nbytes >= TURN_NBYTES) {
		if (now_ns > ways->began_ns)
			ways->rates[ways->way] =
				(double)ways->nbytes / (double)(now_ns - ways->began_ns);
		start_turn(ways, now_ns);
	}
}

void ways_together_presume(struct ways_together *ways, unsigned presumed)
{
	pthread_mutex_lock(&ways->lock);
	ways->presumed = presumed;
	pthread_mutex_unlock(&ways->lock);
}

enum way ways_together_choose(struct ways_together *ways, unsigned possible, uint64_t now_ns)
{
	enum way way;

	pthread_mutex_lock(&ways->lock);
	ways->possible = possible;
	if (!ways->began_ns || !is_possible(ways, ways->way))
		start_turn(ways, now_ns);
	way = ways->way;
	pthread_mutex_unlock(&ways->lock);
	return way;
}

void ways_together_note(struct ways_together *ways, enum way way, uint64_t nbytes, uint64_t now_ns)
{
	pthread_mutex_lock(&ways->lock);
	if (way == ways->way)
		count(ways, nbytes, now_ns);
	pthread_mutex_unlock(&ways->lock);
}
