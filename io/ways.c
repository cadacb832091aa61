/*
 * ways - through the page cache or past it, whichever is found to be faster (see ways.h)
 */
#include "io/ways.h"

/* Writes that each way is tried with at first, and the least number between two trials. */
enum { FIRST_TRIALS = 2, LEAST_BETWEEN_TRIALS = 32 };

/* Of so much, what is older counts half: how fast memory is changes within a second. */
static const double memory_nbytes = 64 << 20;

void ways_init(struct ways *ways)
{
	*ways = (struct ways){ 0 };
	pthread_mutex_init(&ways->lock, NULL);
}

void ways_destroy(struct ways *ways)
{
	pthread_mutex_destroy(&ways->lock);
}

/* Under the lock. Infinite as long as nothing was noted. */
static double ns_per_byte(const struct ways *ways, enum way way)
{
	return ways->of[way].nbytes > 0 ? ways->of[way].ns / ways->of[way].nbytes : __builtin_inf();
}

/* Under the lock. */
static enum way choose(struct ways *ways)
{
	const double cached = ns_per_byte(ways, WAY_THROUGH_CACHE);
	const double direct = ns_per_byte(ways, WAY_PAST_CACHE);
	const enum way faster = direct < cached ? WAY_PAST_CACHE : WAY_THROUGH_CACHE;
	const double ratio = direct < cached ? cached / direct : direct / cached;

	if (ways->of[WAY_THROUGH_CACHE].n_begun < FIRST_TRIALS)
		return WAY_THROUGH_CACHE;
	if (ways->of[WAY_PAST_CACHE].n_begun < FIRST_TRIALS)
		return WAY_PAST_CACHE;
	/* Also while the ratio is not a number: nothing was noted of either. */
	if (!(++ways->n_since_trial > LEAST_BETWEEN_TRIALS * ratio))
		return faster;
	ways->n_since_trial = 0;
	return faster == WAY_PAST_CACHE ? WAY_THROUGH_CACHE : WAY_PAST_CACHE;
}

enum way ways_choose(struct ways *ways)
{
	enum way way;

	pthread_mutex_lock(&ways->lock);
	way = choose(ways);
	ways->of[way].n_begun++;
	pthread_mutex_unlock(&ways->lock);
	return way;
}

void ways_note(struct ways *ways, enum way way, uint64_t nbytes, uint64_t ns)
{
	pthread_mutex_lock(&ways->lock);
	if (ways->of[way].nbytes > memory_nbytes) {
		ways->of[way].nbytes /= 2;
		ways->of[way].ns /= 2;
	}
	ways->of[way].nbytes += (double)nbytes;
	ways->of[way].ns += (double)ns;
	pthread_mutex_unlock(&ways->lock);
}
