/*
 * sort_under_faults - whole sorts in which the n-th call of each kind fails, for every n
 *
 * usage: sort_under_faults [--all] [--seed=N] [MODE[,MODE]... [POINT [N]]]
 *        sort_under_faults --rehearse
 *
 * After SQLite's habit: for each way to run gsort (scene.h) and each fault point (points.h) the
 * calls that pass it are counted in a run without a fault. Then it is run again with the first of
 * them failing, with the second, and so on; once and from then on; for each errno that the system
 * may give there. By default n is the first, the last and one at random; --all goes
 * through all n. With modes, a point and an n, only these.
 * --rehearse runs each mode without a fault, and sees whether every point is passed by one of them.
 *
 * The last lines say how many faults were injected and what became of them.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fault/scene.h"

/* A call that signals interrupt is interrupted so often in a row. */
enum { STORM = 9 };

struct kind {
	enum point point;
	enum effect effect;
	int error;
	unsigned n_times;
	enum demand demand;
	enum place { AT_FIRST, AT_LAST, AT_RANDOM } place; /* of the byte in question */
};

#define KIND(p, e, errno_, n, d)                                                                   \
	{                                                                                          \
		.point = p, .effect = e, .error = errno_, .n_times = n, .demand = d                \
	}

#define ONCE_AND_FOR_GOOD(point, error)                                                            \
	KIND(point, EFFECT_FAIL, error, 1, DEMAND_EITHER),                                         \
		KIND(point, EFFECT_FAIL, error, FOR_GOOD, DEMAND_EITHER)

#define INTERRUPTED(point) KIND(point, EFFECT_FAIL, EINTR, STORM, DEMAND_SUCCESS)

#define TRANSFER(point, error)                                                                     \
	ONCE_AND_FOR_GOOD(point, error), INTERRUPTED(point),                                       \
		KIND(point, EFFECT_FAIL, EAGAIN, 1, DEMAND_SUCCESS),                               \
		KIND(point, EFFECT_SHORT, 0, 1, DEMAND_SUCCESS),                                   \
		KIND(point, EFFECT_SHORT, 0, FOR_GOOD, DEMAND_SUCCESS),                            \
		KIND(point, EFFECT_END, 0, 1, DEMAND_EITHER),                                      \
		KIND(point, EFFECT_END, 0, FOR_GOOD, DEMAND_EITHER)

/* A byte of what is stored for a while. */
#define SPOILED(p, e, demand_, place_)                                                             \
	{                                                                                          \
		.point = p, .effect = e, .n_times = 1, .demand = demand_, .place = place_          \
	}

#define SPOILED_ANYWHERE(point, effect, demand)                                                    \
	SPOILED(point, effect, demand, AT_FIRST), SPOILED(point, effect, demand, AT_LAST),         \
		SPOILED(point, effect, demand, AT_RANDOM)

static const struct kind kinds[] = {
	ONCE_AND_FOR_GOOD(POINT_OPEN, EMFILE),
	INTERRUPTED(POINT_OPEN),
	ONCE_AND_FOR_GOOD(POINT_CLOSE, EIO),
	ONCE_AND_FOR_GOOD(POINT_EXAMINE, EIO),
	TRANSFER(POINT_READ, EIO),
	TRANSFER(POINT_READ_BACK, EIO),
	TRANSFER(POINT_READ_TEMPORARY, EIO),
	TRANSFER(POINT_READ_MANIFEST, EIO),
	TRANSFER(POINT_WRITE, ENOSPC),
	TRANSFER(POINT_WRITE_TEMPORARY, ENOSPC),
	TRANSFER(POINT_WRITE_MANIFEST, ENOSPC),
	KIND(POINT_WRITE, EFFECT_FAIL, EIO, 1, DEMAND_FAILURE),
	KIND(POINT_WRITE, EFFECT_LOSE, 0, 1, DEMAND_FAILURE),
	KIND(POINT_WRITE, EFFECT_ALTER, 0, 1, DEMAND_FAILURE),
	KIND(POINT_WRITE_TEMPORARY, EFFECT_FAIL, EIO, 1, DEMAND_EITHER),
	SPOILED_ANYWHERE(POINT_READ_TEMPORARY, EFFECT_DAMAGE, DEMAND_FAILURE),
	SPOILED_ANYWHERE(POINT_READ_TEMPORARY, EFFECT_CUT, DEMAND_FAILURE),
	/* The first record of a piece has been checked with the piece before. */
	SPOILED(POINT_READ_BACK, EFFECT_DAMAGE, DEMAND_FAILURE, AT_LAST),
	SPOILED_ANYWHERE(POINT_READ_BACK, EFFECT_CUT, DEMAND_FAILURE),
	/* A manifest's end may be that of a process that was killed. */
	SPOILED_ANYWHERE(POINT_READ_MANIFEST, EFFECT_DAMAGE, DEMAND_EITHER),
	SPOILED_ANYWHERE(POINT_READ_MANIFEST, EFFECT_CUT, DEMAND_EITHER),
	/* Nobody reads it when the sort comes to its end. */
	KIND(POINT_WRITE_MANIFEST, EFFECT_LOSE, 0, 1, DEMAND_SUCCESS),
	KIND(POINT_WRITE_MANIFEST, EFFECT_ALTER, 0, 1, DEMAND_SUCCESS),
	KIND(POINT_WRITE_TEMPORARY, EFFECT_LOSE, 0, 1, DEMAND_FAILURE),
	KIND(POINT_WRITE_TEMPORARY, EFFECT_ALTER, 0, 1, DEMAND_FAILURE),
	KIND(POINT_WRITE_TEMPORARY, EFFECT_ALTER, 0, FOR_GOOD, DEMAND_FAILURE),
	INTERRUPTED(POINT_SUBMIT),
	KIND(POINT_SUBMIT, EFFECT_FAIL, EAGAIN, 1, DEMAND_SUCCESS),
	KIND(POINT_SUBMIT, EFFECT_FAIL, EBUSY, FOR_GOOD, DEMAND_SUCCESS),
	KIND(POINT_SUBMIT, EFFECT_FAIL, ENOMEM, FOR_GOOD, DEMAND_SUCCESS),
	TRANSFER(POINT_COMPLETE, EIO),
	KIND(POINT_COMPLETE, EFFECT_FAIL, ECANCELED, 1, DEMAND_SUCCESS),
	KIND(POINT_COMPLETE, EFFECT_FAIL, ECANCELED, FOR_GOOD, DEMAND_SUCCESS),
	ONCE_AND_FOR_GOOD(POINT_PREALLOCATE, ENOSPC),
	INTERRUPTED(POINT_PREALLOCATE),
	KIND(POINT_PREALLOCATE, EFFECT_FAIL, EOPNOTSUPP, FOR_GOOD, DEMAND_SUCCESS),
	KIND(POINT_PUNCH, EFFECT_FAIL, EOPNOTSUPP, FOR_GOOD, DEMAND_SUCCESS),
	KIND(POINT_PUNCH, EFFECT_FAIL, EIO, 1, DEMAND_SUCCESS),
	INTERRUPTED(POINT_PUNCH),
	ONCE_AND_FOR_GOOD(POINT_TRUNCATE, EIO),
	ONCE_AND_FOR_GOOD(POINT_SYNC, EIO),
	INTERRUPTED(POINT_SYNC),
	ONCE_AND_FOR_GOOD(POINT_LINK, EIO),
	ONCE_AND_FOR_GOOD(POINT_RENAME, EACCES),
	ONCE_AND_FOR_GOOD(POINT_PERMISSIONS, EIO),
	/* The output is complete then. */
	KIND(POINT_REMOVE, EFFECT_FAIL, EROFS, 1, DEMAND_SUCCESS),
	KIND(POINT_REMOVE, EFFECT_FAIL, EROFS, FOR_GOOD, DEMAND_SUCCESS),
	ONCE_AND_FOR_GOOD(POINT_STREAM, ENOSPC),
	ONCE_AND_FOR_GOOD(POINT_EVENT, EMFILE),
	ONCE_AND_FOR_GOOD(POINT_ALLOCATION, ENOMEM),
	ONCE_AND_FOR_GOOD(POINT_THREAD, EAGAIN),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_OPEN, ENOMEM),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_OPEN, ENODEV),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_ALLOCATION, ENOMEM),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_LANE, EIO),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_COPY, EIO),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_SORT, EIO),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_CUT, EIO),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_MERGE, EIO),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_WAIT, EIO),
};

static struct {
	/* From the arguments. */
	bool all, rehearse;
	uint64_t seed;
	const char *modes, *point;
	unsigned n;

	unsigned n_outcomes[N_OUTCOMES];
	bool passed[N_POINTS];
} run;

static uint64_t next_random(void)
{
	run.seed = run.seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return run.seed >> 33;
}

static const char *describe_effect(const struct kind *kind)
{
	static const char *const names[] = {
		[EFFECT_SHORT] = "half of it",     [EFFECT_END] = "nothing moved",
		[EFFECT_LOSE] = "lost in silence", [EFFECT_ALTER] = "altered in silence",
		[EFFECT_DAMAGE] = "damaged",       [EFFECT_CUT] = "cut",
	};

	return kind->effect == EFFECT_FAIL ? strerrorname_np(kind->error) : names[kind->effect];
}

/* What the message of a refusal must contain. */
static const char *reason(const struct kind *kind)
{
	if (kind->point == POINT_READ_TEMPORARY && kind->effect >= EFFECT_DAMAGE)
		return ": block "; /* of how many, and where */
	if (kind->effect != EFFECT_FAIL)
		return NULL;
	if (kind->point == POINT_DEVICE_OPEN)
		return "GPU";
	return kind->error == ENOMEM ? "memory" :
	       kind->error == ENOSPC ? "space" :
				       strerror(kind->error);
}

static bool is_of_rings(enum point point)
{
	return point == POINT_SUBMIT || point == POINT_COMPLETE;
}

/* Is there a way to notice, or to tell what is right? */
static bool makes_sense(const struct mode *mode, const struct kind *kind)
{
	/* What is only noticed, or not, when it is gone on with. */
	if (mode->is_broken_off)
		return kind->effect >= EFFECT_LOSE;
	/* It takes long, and has nothing else that is its own. */
	if (mode->is_cold && !is_of_rings(kind->point))
		return run.all;
	if (kind->point == POINT_WRITE &&
	    (kind->effect == EFFECT_LOSE || kind->effect == EFFECT_ALTER))
		return mode->verifies;
	return !(kind->point == POINT_READ && kind->effect == EFFECT_END && mode->from_pipe);
}

static size_t position(const struct kind *kind)
{
	switch (kind->place) {
	case AT_FIRST:
		return 0;
	case AT_LAST:
		return POSITION_LAST;
	case AT_RANDOM:
		return next_random();
	}
	return 0;
}

static void try_fault(const struct mode *mode, const struct kind *kind, unsigned nth, unsigned n)
{
	const struct fault fault = { .point = kind->point,
				     .nth = nth,
				     .n_times = kind->n_times,
				     .effect = kind->effect,
				     .error = kind->error,
				     .position = position(kind) };
	char text[128];
	const struct trial trial = { .mode = mode,
				     .fault = &fault,
				     .demand = mode->is_broken_off ? DEMAND_EITHER : kind->demand,
				     .reason = mode->is_broken_off ? NULL : reason(kind),
				     .text = text };

	snprintf(text, sizeof text, "%s %u of %u, %s, byte %zd, %u times", point_names[kind->point],
		 nth, n, describe_effect(kind), (ssize_t)fault.position, kind->n_times);
	run.n_outcomes[scene_run(&trial)]++;
}

static void try_kind(const struct mode *mode, const struct kind *kind, unsigned n)
{
	const unsigned chosen[] = { 1, n, 2 + (unsigned)(next_random() % (n + 1)) };

	if (!makes_sense(mode, kind))
		return;
	if (run.n) {
		try_fault(mode, kind, run.n, n);
		return;
	}
	if (run.all) {
		for (unsigned nth = 1; nth <= n; nth++)
			try_fault(mode, kind, nth, n);
		return;
	}
	for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++)
		if (chosen[i] <= n && (i == 0 || chosen[i] > 1) && (i < 2 || chosen[i] < n))
			try_fault(mode, kind, chosen[i], n);
}

/* How often each point is passed when all goes well. */
static bool rehearse(const struct mode *mode, unsigned n_passed[static N_POINTS])
{
	const struct trial trial = { .mode = mode,
				     .demand = mode->is_broken_off ? DEMAND_FAILURE :
								     DEMAND_SUCCESS,
				     .text = "no fault" };

	if (scene_run(&trial) == OUTCOME_BROKEN)
		return false;
	for (int point = 0; point < N_POINTS; point++) {
		n_passed[point] = scene_n_passed(point);
		run.passed[point] |= n_passed[point] > 0;
	}
	return true;
}

static void try_mode(const struct mode *mode)
{
	unsigned n_passed[N_POINTS], before[N_OUTCOMES];
	struct timespec begin, end;

	if (!rehearse(mode, n_passed)) {
		run.n_outcomes[OUTCOME_BROKEN]++;
		return;
	}
	if (run.rehearse)
		return;
	memcpy(before, run.n_outcomes, sizeof before);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!run.point || strcmp(run.point, point_names[kinds[i].point]) == 0)
			try_kind(mode, &kinds[i], n_passed[kinds[i].point]);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%-20s %6u got over %6u refused %6u broken %6ld s\n", mode->name,
	       run.n_outcomes[OUTCOME_DONE] - before[OUTCOME_DONE],
	       run.n_outcomes[OUTCOME_REFUSED] - before[OUTCOME_REFUSED],
	       run.n_outcomes[OUTCOME_BROKEN] - before[OUTCOME_BROKEN],
	       (long)(end.tv_sec - begin.tv_sec));
	fflush(stdout);
}

/*
 * A point that no mode passes tests nothing. But files are cut only after something went wrong, and
 * space is given back in the background, when there is time and enough of it.
 */
static void check_points(void)
{
	for (int point = 0; point < N_POINTS; point++) {
		if (run.passed[point] || point == POINT_TRUNCATE || point == POINT_PUNCH)
			continue;
		if (is_of_rings(point)) {
			printf("skipped: %s: there are no rings here\n", point_names[point]);
			continue;
		}
		printf("BROKEN: no mode passes the point %s\n", point_names[point]);
		run.n_outcomes[OUTCOME_BROKEN]++;
	}
}

/* Is the word in a list with commas? */
static bool is_among(const char *word, const char *list)
{
	const size_t n = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += n)
		if ((at == list || at[-1] == ',') && (at[n] == ',' || at[n] == '\0'))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	int i = 1;

	for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
		if (strcmp(argv[i], "--all") == 0)
			run.all = true;
		else if (strcmp(argv[i], "--rehearse") == 0)
			run.rehearse = true;
		else if (strncmp(argv[i], "--seed=", 7) == 0)
			run.seed = strtoull(argv[i] + 7, NULL, 10);
	}
	run.seed = run.seed ? run.seed : (uint64_t)time(NULL);
	run.modes = i < argc ? argv[i] : NULL;
	run.point = i + 1 < argc ? argv[i + 1] : NULL;
	run.n = i + 2 < argc ? (unsigned)strtoul(argv[i + 2], NULL, 10) : 0;
	printf("--seed=%llu\n", (unsigned long long)run.seed);
	fflush(stdout); /* or gsort's main() would do it, to where standard output leads then */

	scene_open();
	for (size_t m = 0; m < n_modes; m++)
		if (!run.modes || is_among(modes[m].name, run.modes))
			try_mode(&modes[m]);
	scene_close();
	if (run.rehearse)
		check_points();
	printf("%u faults: %u got over, %u refused, %u broken; %u were not met\n",
	       run.n_outcomes[OUTCOME_DONE] + run.n_outcomes[OUTCOME_REFUSED] +
		       run.n_outcomes[OUTCOME_BROKEN],
	       run.n_outcomes[OUTCOME_DONE], run.n_outcomes[OUTCOME_REFUSED],
	       run.n_outcomes[OUTCOME_BROKEN], run.n_outcomes[OUTCOME_UNMET]);
	printf("%u interrupted sorts were gone on with\n", scene_n_resumed());
	return run.n_outcomes[OUTCOME_BROKEN] ? 1 : 0;
}
