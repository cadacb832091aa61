/*
 * adaptive_group - one of several ways for many threads at once (see adaptive_group.h)
 */
#include "src/base/adaptive_group.h"

#include <stdbool.h>

/*
 * How long all go one way, and how often the fastest is gone before others are tried again. At the
 * beginning of a turn some are still on another way, and slow those down that go this one.
 */
enum { WARMUP_NBYTES = 64 << 20, TURN_NBYTES = 192 << 20, MIN_BETWEEN_TRIALS = 32 };

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

static enum adaptive_method find_fastest(const struct adaptive_group *group)
{
	enum adaptive_method fastest = METHOD_DEFAULT;

	for (enum adaptive_method method = 0; method < N_METHODS; method++)
		if (is_available(group, method) && group->rates[method] > group->rates[fastest])
			fastest = method;
	return fastest;
}

/* Under the lock: what it moves, as far as is known; beside one that is presumed, no more. */
static double predict_rate(const struct adaptive_group *group, enum adaptive_method method,
			   enum adaptive_method fastest)
{
	return group->rates[method] > 0 ? group->rates[method] : group->rates[fastest];
}

/* Under the lock: whose turn is it? */
static enum adaptive_method choose_next_method(struct adaptive_group *group)
{
	const unsigned candidates = group->available & group->default_methods ?
					    group->default_methods :
					    group->available;
	const enum adaptive_method fastest = find_fastest(group);

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

/* Under the lock */
static void start_turn(struct adaptive_group *group, uint64_t now_ns)
{
	group->method = choose_next_method(group);
	group->n_since_trial[group->method] = 0;
	group->turn_start_ns = now_ns;
	group->nbytes = 0;
	group->is_timed = false;
}

/* Under the lock: so much has gone the way of all. */
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
