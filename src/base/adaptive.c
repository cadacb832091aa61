/*
 * adaptive - one of several ways, whichever is found to be faster (see adaptive.h)
 */
#include "src/base/adaptive.h"

#include <stdbool.h>

/* How often each way is tried at first, and what is done at least between two trials. */
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

/* Under the lock. The usual one as long as nothing was noted of any. */
static enum way find_fastest(const struct ways *ways, unsigned possible)
{
	enum way fastest = N_WAYS;

	for (enum way way = 0; way < N_WAYS; way++)
		if (possible & 1U << way &&
		    (fastest == N_WAYS || ns_per_byte(ways, way) < ns_per_byte(ways, fastest)))
			fastest = way;
	return fastest;
}

/* Under the lock: has the way not been tried for long, for what it costs? */
static bool is_due(struct ways *ways, enum way way, enum way fastest)
{
	const double ratio = ns_per_byte(ways, way) / ns_per_byte(ways, fastest);

	/* Not while the ratio is not a number: nothing was noted of either. */
	return ++ways->of[way].n_since > LEAST_BETWEEN_TRIALS * ratio;
}

/* Under the lock */
static enum way choose(struct ways *ways, unsigned possible)
{
	const enum way fastest = find_fastest(ways, possible);

	for (enum way way = 0; way < N_WAYS; way++)
		if (possible & 1U << way && ways->of[way].n_begun < FIRST_TRIALS)
			return way;
	for (enum way way = 0; way < N_WAYS; way++)
		if (possible & 1U << way && way != fastest && is_due(ways, way, fastest))
			return way;
	return fastest;
}

enum way ways_choose(struct ways *ways, unsigned possible)
{
	enum way way;

	pthread_mutex_lock(&ways->lock);
	way = choose(ways, possible);
	ways->of[way].n_begun++;
	ways->of[way].n_since = 0;
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
