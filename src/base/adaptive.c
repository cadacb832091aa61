/*
 * adaptive.c - choose the fastest of several methods to do the same thing (see adaptive.h)
 */
#include "src/base/adaptive.h"
#include "src/base/thread.h"

/* Trials of each operation's methods at first; choices between two trials of an equal method. */
enum { N_INITIAL_TRIALS = 2, MIN_BETWEEN_TRIALS = 32 };

/* At the beginning of a turn some threads still use the method of the turn before. */
enum { WARMUP_NBYTES = 64 << 20, TURN_NBYTES = 192 << 20 };

/* Older operations count half: the speed of memory changes within a second. */
static const double decay_nbytes = 64 << 20;

void adaptive_init(struct adaptive *adaptive, enum adaptive_scope scope)
{
	*adaptive = (struct adaptive){ .scope = scope };
	pthread_mutex_init(&adaptive->lock, NULL);
}

void adaptive_destroy(struct adaptive *adaptive)
{
	pthread_mutex_destroy(&adaptive->lock);
}

void adaptive_presume(struct adaptive *adaptive, unsigned methods)
{
	SCOPED_LOCK(&adaptive->lock);
	adaptive->presumed_methods = methods;
}

/* Infinite if the method was not timed yet. */
static double ns_per_byte(const struct adaptive *adaptive, enum adaptive_method method)
{
	return adaptive->methods[method].nbytes > 0 ?
		       adaptive->methods[method].ns / adaptive->methods[method].nbytes :
		       __builtin_inf();
}

/* The first one if none was timed yet. */
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

/* Single operations begin with the default, turns with the last method. N_METHODS: none. */
static enum adaptive_method find_untried(const struct adaptive *adaptive, unsigned available)
{
	const bool in_turns = adaptive->scope == ADAPTIVE_TURNS;

	if (available & adaptive->presumed_methods)
		available &= adaptive->presumed_methods;
	for (unsigned i = 0; i < N_METHODS; i++) {
		const enum adaptive_method method = in_turns ? N_METHODS - 1 - i : i;
		const struct adaptive_state *state = &adaptive->methods[method];

		if (available & 1U << method &&
		    (in_turns ? state->nbytes == 0 : state->n_started < N_INITIAL_TRIALS))
			return method;
	}
	return N_METHODS;
}

/* Return whether the method has not been tried for long, compared with its cost. */
static bool needs_retrial(struct adaptive *adaptive, enum adaptive_method method,
			  enum adaptive_method fastest)
{
	const bool is_presumed_slow = adaptive->presumed_methods &&
				      adaptive->methods[method].nbytes == 0;
	/* Not a number if neither was timed; then the comparison is false. */
	const double ratio = is_presumed_slow ?
				     1 :
				     ns_per_byte(adaptive, method) / ns_per_byte(adaptive, fastest);

	return ++adaptive->methods[method].n_since_trial > MIN_BETWEEN_TRIALS * ratio;
}

static enum adaptive_method choose_method(struct adaptive *adaptive, unsigned available)
{
	const enum adaptive_method fastest = find_fastest(adaptive, available);
	const enum adaptive_method untried = find_untried(adaptive, available);

	if (untried < N_METHODS)
		return untried;
	for (enum adaptive_method method = 0; method < N_METHODS; method++)
		if (available & 1U << method && method != fastest &&
		    needs_retrial(adaptive, method, fastest))
			return method;
	return fastest;
}

enum adaptive_method adaptive_choose(struct adaptive *adaptive, unsigned available)
{
	enum adaptive_method method;

	SCOPED_LOCK(&adaptive->lock);
	if (adaptive->has_turn && available & 1U << adaptive->method)
		return adaptive->method;
	method = choose_method(adaptive, available);
	adaptive->methods[method].n_started++;
	adaptive->methods[method].n_since_trial = 0;
	adaptive->method = method;
	adaptive->has_turn = adaptive->scope == ADAPTIVE_TURNS;
	adaptive->is_timed = false;
	adaptive->turn_nbytes = 0;
	return method;
}

static void record_operation(struct adaptive_state *state, double nbytes, double ns)
{
	if (state->nbytes > decay_nbytes) {
		state->nbytes /= 2;
		state->ns /= 2;
	}
	state->nbytes += nbytes;
	state->ns += ns;
}

static void record_in_turn(struct adaptive *adaptive, uint64_t nbytes, uint64_t now_ns)
{
	struct adaptive_state *state = &adaptive->methods[adaptive->method];

	adaptive->turn_nbytes += nbytes;
	if (!adaptive->is_timed && adaptive->turn_nbytes >= WARMUP_NBYTES) {
		adaptive->is_timed = true;
		adaptive->turn_begin_ns = now_ns;
		adaptive->turn_nbytes = 0;
	} else if (adaptive->turn_nbytes >= TURN_NBYTES) {
		if (now_ns > adaptive->turn_begin_ns) {
			state->nbytes = (double)adaptive->turn_nbytes;
			state->ns = (double)(now_ns - adaptive->turn_begin_ns);
		}
		adaptive->has_turn = false;
	}
}

/* In turns, an operation that was begun in an earlier turn does not count. */
void adaptive_record(struct adaptive *adaptive, enum adaptive_method method, uint64_t nbytes,
		     uint64_t begin_ns, uint64_t end_ns)
{
	SCOPED_LOCK(&adaptive->lock);
	if (adaptive->scope == ADAPTIVE_SINGLE)
		record_operation(&adaptive->methods[method], (double)nbytes,
				 (double)(end_ns - begin_ns));
	else if (adaptive->has_turn && method == adaptive->method)
		record_in_turn(adaptive, nbytes, end_ns);
}
