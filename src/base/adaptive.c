/*
 * adaptive.c - choose the fastest of several equivalent methods by measuring them (see adaptive.h)
 */
#include "src/base/adaptive.h"

#include <stdbool.h>

/* Initial trials of each method, and the minimum number of other choices between two trials. */
enum { N_INITIAL_TRIALS = 2, MIN_BETWEEN_TRIALS = 32 };

/* Older measurements count half after so many bytes: memory speed changes within a second. */
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

/* Infinite if nothing was recorded. Call with the lock held. */
static double ns_per_byte(const struct adaptive *adaptive, enum adaptive_method method)
{
	return adaptive->methods[method].nbytes > 0 ?
		       adaptive->methods[method].ns / adaptive->methods[method].nbytes :
		       __builtin_inf();
}

/* The default if nothing was recorded for any. Call with the lock held. */
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

/* Has the method not been tried for long enough, given its cost? Call with the lock held. */
static bool needs_retrial(struct adaptive *adaptive, enum adaptive_method method,
			  enum adaptive_method fastest)
{
	const double ratio = ns_per_byte(adaptive, method) / ns_per_byte(adaptive, fastest);

	/* False if the ratio is NaN: nothing was recorded for either. */
	return ++adaptive->methods[method].n_since_trial > MIN_BETWEEN_TRIALS * ratio;
}

/* Call with the lock held. */
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

/* --- groups --- */

/*
 * Length of a turn, and the minimum number of turns between two trials of a method. During warm-up
 * some threads still use the previous method and disturb the measurement.
 */
enum { WARMUP_NBYTES = 64 << 20, TURN_NBYTES = 192 << 20 };

void adaptive_group_init(struct adaptive_group *group)
{
	*group = (struct adaptive_group){ 0 };
	pthread_mutex_init(&group->lock, NULL);
}

void adaptive_group_destroy(struct adaptive_group *group)
{
	pthread_mutex_destroy(&group->lock);
}

static bool is_available(const struct adaptive_group *group, enum adaptive_method method)
{
	return group->available >> method & 1;
}

static enum adaptive_method find_fastest_in_group(const struct adaptive_group *group)
{
	enum adaptive_method fastest = METHOD_DEFAULT;

	for (enum adaptive_method method = 0; method < N_METHODS; method++)
		if (is_available(group, method) && group->rates[method] > group->rates[fastest])
			fastest = method;
	return fastest;
}

/*
 * The measured rate; for a method that was presumed, that of the fastest. Call with the lock held.
 */
static double predict_rate(const struct adaptive_group *group, enum adaptive_method method,
			   enum adaptive_method fastest)
{
	return group->rates[method] > 0 ? group->rates[method] : group->rates[fastest];
}

/* Call with the lock held. */
static enum adaptive_method choose_next_method(struct adaptive_group *group)
{
	const unsigned candidates = group->available & group->default_methods ?
					    group->default_methods :
					    group->available;
	const enum adaptive_method fastest = find_fastest_in_group(group);

	for (enum adaptive_method method = N_METHODS; method-- > 0;)
		if (is_available(group, method) && candidates >> method & 1 &&
		    group->rates[method] == 0)
			return method;
	for (enum adaptive_method method = 0; method < N_METHODS; method++)
		if (is_available(group, method) && method != fastest &&
		    ++group->n_since_trial[method] * predict_rate(group, method, fastest) >
			    MIN_BETWEEN_TRIALS * group->rates[fastest])
			return method;
	return fastest;
}

/* Call with the lock held. */
static void start_turn(struct adaptive_group *group, uint64_t now_ns)
{
	group->method = choose_next_method(group);
	group->n_since_trial[group->method] = 0;
	group->turn_start_ns = now_ns;
	group->nbytes = 0;
	group->is_timed = false;
}

/* Count bytes of the current method. Call with the lock held. */
static void count_bytes(struct adaptive_group *group, uint64_t nbytes, uint64_t now_ns)
{
	group->nbytes += nbytes;
	if (!group->is_timed && group->nbytes >= WARMUP_NBYTES) {
		group->is_timed = true;
		group->turn_start_ns = now_ns;
		group->nbytes = 0;
	} else if (group->nbytes >= TURN_NBYTES) {
		if (now_ns > group->turn_start_ns)
			group->rates[group->method] =
				(double)group->nbytes / (double)(now_ns - group->turn_start_ns);
		start_turn(group, now_ns);
	}
}

void adaptive_group_set_default(struct adaptive_group *group, unsigned default_methods)
{
	pthread_mutex_lock(&group->lock);
	group->default_methods = default_methods;
	pthread_mutex_unlock(&group->lock);
}

enum adaptive_method adaptive_group_choose(struct adaptive_group *group, unsigned available,
					   uint64_t now_ns)
{
	enum adaptive_method method;

	pthread_mutex_lock(&group->lock);
	group->available = available;
	if (!group->turn_start_ns || !is_available(group, group->method))
		start_turn(group, now_ns);
	method = group->method;
	pthread_mutex_unlock(&group->lock);
	return method;
}

void adaptive_group_record(struct adaptive_group *group, enum adaptive_method method,
			   uint64_t nbytes, uint64_t now_ns)
{
	pthread_mutex_lock(&group->lock);
	if (method == group->method)
		count_bytes(group, nbytes, now_ns);
	pthread_mutex_unlock(&group->lock);
}
