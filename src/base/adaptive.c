/*
 * adaptive - one of several ways, whichever is found to be faster (see adaptive.h)
 */
#include "src/base/adaptive.h"

#include <stdbool.h>

/* How often each way is tried at first, and what is done at least between two trials. */
enum { N_INITIAL_TRIALS = 2, MIN_BETWEEN_TRIALS = 32 };

/* Of so much, what is older counts half: how fast memory is changes within a second. */
static const double decay_nbytes = 64 << 20;

void adaptive_init(struct adaptive *adaptive)
{
	*adaptive = (struct adaptive){ 0 };
	pthread_mutex_init(&adaptive->lock, NULL);
}

void adaptive_destroy(struct adaptive *adaptive)
{
	pthread_mutex_destroy(&adaptive->lock);
}

/* Under the lock. Infinite as long as nothing was noted. */
static double ns_per_byte(const struct adaptive *adaptive, enum adaptive_method method)
{
	return adaptive->methods[method].nbytes > 0 ?
		       adaptive->methods[method].ns / adaptive->methods[method].nbytes :
		       __builtin_inf();
}

/* Under the lock. The usual one as long as nothing was noted of any. */
static enum adaptive_method find_fastest(const struct adaptive *adaptive, unsigned available)
{
	enum adaptive_method fastest = N_METHODS;

	for (enum adaptive_method method = 0; method < N_METHODS; method++)
		if (available & 1U << method &&
		    (fastest == N_METHODS ||
		     ns_per_byte(adaptive, method) < ns_per_byte(adaptive, fastest)))
			fastest = method;
	return fastest;
}

/* Under the lock: has the way not been tried for long, for what it costs? */
static bool needs_retrial(struct adaptive *adaptive, enum adaptive_method method,
			  enum adaptive_method fastest)
{
	const double ratio = ns_per_byte(adaptive, method) / ns_per_byte(adaptive, fastest);

	/* Not while the ratio is not a number: nothing was noted of either. */
	return ++adaptive->methods[method].n_since_trial > MIN_BETWEEN_TRIALS * ratio;
}

/* Under the lock */
static enum adaptive_method choose_method(struct adaptive *adaptive, unsigned available)
{
	const enum adaptive_method fastest = find_fastest(adaptive, available);

	for (enum adaptive_method method = 0; method < N_METHODS; method++)
		if (available & 1U << method &&
		    adaptive->methods[method].n_started < N_INITIAL_TRIALS)
			return method;
	for (enum adaptive_method method = 0; method < N_METHODS; method++)
		if (available & 1U << method && method != fastest &&
		    needs_retrial(adaptive, method, fastest))
			return method;
	return fastest;
}

enum adaptive_method adaptive_choose(struct adaptive *adaptive, unsigned available)
{
	enum adaptive_method method;

	pthread_mutex_lock(&adaptive->lock);
	method = choose_method(adaptive, available);
	adaptive->methods[method].n_started++;
	adaptive->methods[method].n_since_trial = 0;
	pthread_mutex_unlock(&adaptive->lock);
	return method;
}

void adaptive_record(struct adaptive *adaptive, enum adaptive_method method, uint64_t nbytes,
		     uint64_t ns)
{
	pthread_mutex_lock(&adaptive->lock);
	if (adaptive->methods[method].nbytes > decay_nbytes) {
		adaptive->methods[method].nbytes /= 2;
		adaptive->methods[method].ns /= 2;
	}
	adaptive->methods[method].nbytes += (double)nbytes;
	adaptive->methods[method].ns += (double)ns;
	pthread_mutex_unlock(&adaptive->lock);
}
