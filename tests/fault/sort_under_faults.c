/*
 * sort_under_faults - whole sorts in which the n-th call of each kind fails, for every n
 *
 * usage: sort_under_faults [--all|--interval=N] [--seed=N] [MODE[,MODE]... [POINT [N]]]
 *        sort_under_faults --rehearse
 *        sort_under_faults --dies MODE [N]
 *
 * After SQLite's habit: for each way to run gsort (test_dir.h) and each fault point
 * (fault_points.h) the calls that pass it are counted in a run without a fault. Then it is run
 * again with the first of them failing, with the second, and so on; once and from then on; for
 * each errno that the system may give there. By default n is the first, the last and one at random
 * (or only that), and the first of each place in the code; --all goes through all n. With modes, a
 * point and an n, only these. --interval=N, or GSORT_FAULT_INTERVAL=N in the environment, injects
 * every N-th of them: the seed says which is the first. Without --seed it is GSORT_SEED in the
 * environment, or the time.
 * --rehearse runs each mode without a fault, and sees whether every point is passed by one of
 * them.
 *
 * --dies breaks the GPU's context at the N-th launch of a kernel, or at one at random, which only
 * can be where there is a GPU, and only once: no other sort could use it in this process.
 *
 * --help says this, with the names of modes and points.
 *
 * The last lines say how many faults were injected and what became of them.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fault/fault_kinds.h"
#include "tests/fault/test_dir.h"

static struct {
	/* From the arguments. */
	bool all, rehearse, dies;
	uint64_t seed;
	unsigned share;
	const char *modes, *point;
	unsigned n;

	uint64_t n_due; /* faults, the seed before them */
	unsigned n_outcomes[N_OUTCOMES];
	bool passed[N_POINTS];
	struct site sites[MOST_SITES]; /* of the mode, in a run without a fault */
	size_t n_sites;
} run;

static uint64_t next_random(void)
{
	run.seed = run.seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return run.seed >> 33;
}

/* With a cold page cache large transfers go through a queue (io/file/io_queue.h). */
static bool is_transfer(enum point point)
{
	return point == POINT_READ || point == POINT_READ_TEMPORARY || point == POINT_WRITE ||
	       point == POINT_WRITE_TEMPORARY;
}

/* Is there a way to notice, or to tell what is right? */
static bool makes_sense(const struct mode *mode, const struct kind *kind)
{
	if (mode->loses_one)
		return kind_is_loss(kind);
	/* What is only noticed, or not, when it is gone on with. */
	if (mode->is_broken_off)
		return kind->effect >= EFFECT_LOSE;
	/* It takes long, and has nothing else that is its own. */
	if (mode->is_cold && !is_transfer(kind->point) && !run.all)
		return false;
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

/* Is the call made while the device is opened? Of most kinds it is the first. */
static bool opens_device(enum point point, unsigned nth)
{
	return point == POINT_DEVICE_OPEN ||
	       (nth == 1 && (point == POINT_DEVICE_CODE || point == POINT_DEVICE_USE ||
			     point == POINT_DEVICE_ALLOCATION || point == POINT_DEVICE_LANE ||
			     point == POINT_DEVICE_EVENT || point == POINT_DEVICE_WAIT));
}

static enum demand demand(const struct mode *mode, const struct kind *kind, unsigned nth)
{
	if (mode->is_broken_off)
		return DEMAND_EITHER;
	/* Of parts: where there are no locks, nobody waits for others. A checkpoint needs one. */
	if (mode->has_parts && kind->point == POINT_LOCK)
		return mode->has_checkpoint ? DEMAND_EITHER : DEMAND_SUCCESS;
	return mode->has_choice && opens_device(kind->point, nth) ? DEMAND_SUCCESS : kind->demand;
}

static void try_fault(const struct mode *mode, const struct kind *kind, unsigned nth, unsigned n)
{
	const struct fault fault = { .point = kind->point,
				     .nth = nth,
				     .n_times = kind->n_times,
				     .effect = kind->effect,
				     .error = kind->error,
				     .is_of_one = mode->loses_one,
				     .position = position(kind) };
	const bool is_due = run.n_due++ % run.share == 0;
	char text[128];
	const struct trial trial = { .mode = mode,
				     .fault = &fault,
				     .demand = demand(mode, kind, nth),
				     .reason = mode->is_broken_off ? NULL : kind_reason(kind),
				     .text = text };

	if (!is_due)
		return;
	snprintf(text, sizeof text, "%s %u of %u, %s, byte %zd, %u times", point_names[kind->point],
		 nth, n, kind_name(kind), (ssize_t)fault.position, kind->n_times);
	run.n_outcomes[scene_run(&trial)]++;
}

static unsigned any_of(unsigned n)
{
	return 1 + (unsigned)(next_random() % n);
}

/* The first, the last, and one in between. */
static void try_some(const struct mode *mode, const struct kind *kind, unsigned n)
{
	try_fault(mode, kind, 1, n);
	if (n > 1)
		try_fault(mode, kind, n, n);
	if (n > 2)
		try_fault(mode, kind, 1 + any_of(n - 2), n);
}

/* Three of a thousand calls leave most of those who make them untried. */
static void try_sites(const struct mode *mode, const struct kind *kind, unsigned n)
{
	if (kind->effect != EFFECT_FAIL || kind->n_times != 1)
		return;
	for (size_t i = 0; i < run.n_sites; i++)
		if (run.sites[i].point == kind->point && run.sites[i].nth > 1)
			try_fault(mode, kind, run.sites[i].nth, n);
}

static void try_kind(const struct mode *mode, const struct kind *kind, unsigned n)
{
	if (n == 0 || !kind_can_be(kind) || !makes_sense(mode, kind))
		return;
	if (run.n) {
		try_fault(mode, kind, run.n, n);
	} else if (run.all) {
		for (unsigned nth = 1; nth <= n; nth++)
			try_fault(mode, kind, nth, n);
	} else if (mode->has_choice && kind->point != POINT_DEVICE_OPEN) {
		try_fault(mode, kind, 1, n);
	} else if (mode->is_slow) {
		try_fault(mode, kind, any_of(n), n);
	} else {
		try_some(mode, kind, n);
		try_sites(mode, kind, n);
	}
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
	run.n_sites = scene_sites(run.sites);
	return true;
}

static void try_death(const struct mode *mode, unsigned n)
{
	static const struct kind death =
		KIND(POINT_DEVICE_LAUNCH, EFFECT_DIE, 0, 1, DEMAND_FAILURE);

	try_fault(mode, &death, run.n ? run.n : any_of(n), n);
}

static void try_kinds(const struct mode *mode, const unsigned n_passed[static N_POINTS])
{
	for (size_t i = 0; i < n_kinds; i++)
		if (!run.point || strcmp(run.point, point_names[kinds[i].point]) == 0)
			try_kind(mode, &kinds[i], n_passed[kinds[i].point]);
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
	if (run.dies)
		try_death(mode, n_passed[POINT_DEVICE_LAUNCH]);
	else
		try_kinds(mode, n_passed);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%-20s %6u got over %6u refused %6u broken %6ld s\n", mode->name,
	       run.n_outcomes[OUTCOME_DONE] - before[OUTCOME_DONE],
	       run.n_outcomes[OUTCOME_REFUSED] - before[OUTCOME_REFUSED],
	       run.n_outcomes[OUTCOME_BROKEN] - before[OUTCOME_BROKEN],
	       (long)(end.tv_sec - begin.tv_sec));
	fflush(stdout);
}

static void try_mode_on(const struct mode *mode, unsigned n_devices)
{
	if (mode->n_devices <= n_devices) {
		try_mode(mode);
		return;
	}
	printf("skipped: %s: there are no %u devices\n", mode->name, mode->n_devices);
	run.passed[POINT_DEVICE_PEER] = true; /* none can be, then */
}

/*
 * A point that no mode passes tests nothing. But files are cut only after something went wrong,
 * and space is given back in the background, when there is time and enough of it.
 */
static void check_points(void)
{
	for (size_t i = 0; i < n_kinds; i++) {
		const enum point point = kinds[i].point;

		if (run.passed[point] || point == POINT_TRUNCATE || point == POINT_PUNCH)
			continue;
		run.passed[point] = true; /* one line is enough */
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

static void print_usage(FILE *stream)
{
	const char *name = program_invocation_short_name;

	fprintf(stream,
		"usage: %s [--all|--interval=N] [--seed=N] [MODE[,MODE]... [POINT [N]]]\n"
		"       %s --rehearse\n"
		"       %s --dies MODE [N]\n",
		name, name, name);
}

static int say_usage(void)
{
	print_usage(stdout);
	for (size_t i = 0; i < n_modes; i++)
		printf("%s%s", i ? " " : "MODE: ", modes[i].name);
	for (size_t i = 0; i < N_POINTS; i++)
		printf("%s%s", i ? " " : "\nPOINT: ", point_names[i]);
	putchar('\n');
	return 0;
}

static int refuse(const char *what, const char *word)
{
	fprintf(stderr, "%s: no such %s: %s; --help has them\n", program_invocation_short_name,
		what, word);
	print_usage(stderr);
	return 2;
}

static bool is_mode(const char *word, size_t n)
{
	for (size_t i = 0; i < n_modes; i++)
		if (strlen(modes[i].name) == n && memcmp(modes[i].name, word, n) == 0)
			return true;
	return false;
}

static bool is_point(const char *word)
{
	for (size_t i = 0; i < N_POINTS; i++)
		if (strcmp(point_names[i], word) == 0)
			return true;
	return false;
}

/* 0, or 2 after a message: nobody would notice that what is not there is not tried. */
static int check_words(void)
{
	for (const char *word = run.modes; word && *word;) {
		const size_t n = strcspn(word, ",");

		if (!is_mode(word, n))
			return refuse("mode", word);
		word += n + (word[n] == ',');
	}
	return run.point && !is_point(run.point) ? refuse("point", run.point) : 0;
}

/* Options; returns the index of the first mode, or -1 after a message. */
static int take_options(int argc, char **argv)
{
	const char *share = getenv("GSORT_FAULT_INTERVAL"), *seed = getenv("GSORT_SEED");
	int i = 1;

	for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
		if (strcmp(argv[i], "--all") == 0)
			run.all = true;
		else if (strcmp(argv[i], "--rehearse") == 0)
			run.rehearse = true;
		else if (strcmp(argv[i], "--dies") == 0)
			run.dies = true;
		else if (strncmp(argv[i], "--interval=", 8) == 0)
			share = argv[i] + 8;
		else if (strncmp(argv[i], "--seed=", 7) == 0)
			run.seed = strtoull(argv[i] + 7, NULL, 10);
		else {
			refuse("option", argv[i]);
			return -1;
		}
	}
	if (run.seed == 0 && seed)
		run.seed = strtoull(seed, NULL, 10);
	run.seed = run.seed ? run.seed : (uint64_t)time(NULL);
	run.share = share && !run.all ? (unsigned)strtoul(share, NULL, 10) : 1;
	run.share = run.share ? run.share : 1;
	run.n_due = run.seed;
	return i;
}

int main(int argc, char **argv)
{
	const char *why_not = "";
	unsigned n_devices;
	int i;

	if (argc > 1 && strcmp(argv[1], "--help") == 0)
		return say_usage();
	i = take_options(argc, argv);
	if (i < 0)
		return 2;
	run.modes = i < argc ? argv[i] : NULL;
	i += !run.dies;
	run.point = !run.dies && i < argc ? argv[i] : NULL;
	run.n = i + 1 < argc ? (unsigned)strtoul(argv[i + 1], NULL, 10) : 0;
	if (run.n || run.dies)
		run.share = 1;
	if (check_words() != 0)
		return 2;
	printf("--seed=%llu\n", (unsigned long long)run.seed);
	n_devices = points_n_devices(&why_not);
	if (n_devices == 0) {
		printf("skipped: no device: %s\n", why_not);
		return 77;
	}
	fflush(stdout); /* or gsort's main() would do it, to where standard output leads then */

	scene_open();
	for (size_t m = 0; m < n_modes; m++)
		if (!run.modes || is_among(modes[m].name, run.modes))
			try_mode_on(&modes[m], n_devices);
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
