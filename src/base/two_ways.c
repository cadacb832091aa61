/*
 * two_ways - one of two ways, whichever is found to be faster (see two_ways.h)
 */
#include "src/base/two_ways.h"

/* How often each way is tried at first, and what is done at least between two trials. */
enum { FIRST_TRIALS = 2, LEAST_BETWEEN_TRIALS = 32 };

/* Of so much, what is older counts half: how fast memory is changes within a second. */
static const double memory_nbytes = 64 << 20;

void two_ways_init(struct two_ways *ways)
{
	*ways = (struct two_ways){ 0 };
	pthread_mutex_init(&ways->lock, NULL);
}

void two_ways_destroy(struct two_ways *ways)
{
	pthread_mutex_destroy(&ways->lock);
}

/* Under the lock. Infinite as long as nothing was noted. */
static double ns_per_byte(const struct two_ways *ways, enum way way)
{
	return ways->of[way].nbytes > 0 ? ways->of[way].ns / ways->of[way].nbytes : __builtin_inf();
}

/* Under the lock. */
static enum way choose(struct two_ways *ways)
{
	const double usual = ns_per_byte(ways, WAY_USUAL);
	const double other = ns_per_byte(ways, WAY_OTHER);
	const enum way faster = other < usual ? WAY_OTHER : WAY_USUAL;
	const double ratio = other < usual ? usual / other : other / usual;

	if (ways->of[WAY_USUAL].n_begun < FIRST_TRIALS)
		return WAY_USUAL;
	if (ways->of[WAY_OTHER].n_begun < FIRST_TRIALS)
		return WAY_OTHER;
	/* Also while the ratio is not a number: nothing was noted of either. */
	if (!(++ways->n_since_trial > LEAST_BETWEEN_TRIALS * ratio))
		return faster;
	ways->n_since_trial = 0;
	return faster == WAY_OTHER ? WAY_USUAL : WAY_OTHER;
}

enum way two_ways_choose(struct two_ways *ways)
{
	enum way way;

	pthread_mutex_lock(&ways->lock);
	way = choose(ways);
	ways->of[way].n_begun++;
	pthread_mutex_unlock(&ways->lock);
	return way;
}

void two_ways_note(struct two_ways *ways, enum way way, uint64_t nbytes, uint64_t ns)
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
