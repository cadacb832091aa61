/*
 * sort_under_faults.c - whole sorts in which the n-th call of each kind fails, for every n
 *
 * usage: sort_under_faults [--all|--interval=N] [--seed=N] [MODE[,MODE]... [POINT [N]]]
 *        sort_under_faults --rehearse
 *        sort_under_faults --dies MODE [N]
 *
 * The method is SQLite's. For each way to run gsort (sort_scenarios.h) and each fault point
 * (fault_points.h), a run without a fault counts the calls that pass the point. Then gsort is run
 * again with the first call failing, with the second, and so on; once and from then on; with each
 * errno that the system may return there. By default n is the first call, the last (unless all from
 * then on fail), a random one (slow modes: only this), and the first of each call site that no
 * earlier mode has tried. --all tries each n. With modes, a point and an n, only these are tried.
 *
 * --interval=N, or GSORT_FAULT_INTERVAL=N in the environment, injects every N-th fault; the seed
 * decides which is the first. Without --seed the seed is GSORT_SEED, or the time.
 *
 * --rehearse runs each mode without a fault, and checks that some mode passes each point.
 *
 * --dies breaks the GPU's context at the N-th launch of a kernel, or at a random one. It needs a
 * GPU, and no other sort can use the GPU in this process afterwards.
 *
 * --help prints the usage with the names of modes and points. The last lines of the output are the
 * numbers of faults by outcome.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fault/fault_kinds.h"
#include "tests/fault/test_dir.h"

enum { MAX_TRIED_SITES = 4096 }; /* more are tried again */

static struct {
	/* From the arguments. */
	bool all, rehearse, dies;
	uint64_t seed;
	unsigned sampling_interval;
	const char *scenarios, *point;
	unsigned n;

	uint64_t n_scheduled; /* faults so far, plus the seed */
	unsigned n_outcomes[N_OUTCOMES];
	bool passed[N_POINTS];
	struct call_site sites[MAX_CALL_SITES]; /* of the mode, in a run without a fault */
	size_t n_sites;
	struct {
		const void *address;
		const struct fault_kind *kind;
	} tried_sites[MAX_TRIED_SITES];
	size_t n_tried_sites;
} session;

static uint64_t next_random(void)
{
	session.seed = session.seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return session.seed >> 33;
}

/* Return whether a cold page cache changes the calls: large ones use io/file/io_queue.h. */
static bool is_transfer(enum fault_point point)
{
	return point == POINT_READ || point == POINT_READ_TEMP || point == POINT_WRITE ||
	       point == POINT_WRITE_TEMP;
}

/* Return whether the scenario can detect the fault. */
static bool is_applicable(const struct sort_scenario *scenario, const struct fault_kind *kind)
{
	if (scenario->loses_one_device)
		return fault_kind_is_device_loss(kind);
	/* These scenarios are for faults that only the resumed sort can detect. */
	if (scenario->is_interrupted)
		return kind->effect >= EFFECT_LOSE_WRITE;
	/* The scenario is slow, and only its transfers differ from those of others. */
	if (scenario->has_cold_cache && !is_transfer(kind->point) && !session.all)
		return false;
	if (kind->point == POINT_WRITE &&
	    (kind->effect == EFFECT_LOSE_WRITE || kind->effect == EFFECT_ALTER_WRITE))
		return scenario->verifies;
	return !(kind->point == POINT_READ && kind->effect == EFFECT_EOF && scenario->from_pipe);
}

static size_t choose_byte_position(const struct fault_kind *kind)
{
	switch (kind->byte_position) {
	case BYTE_FIRST:
		return 0;
	case BYTE_LAST:
		return POSITION_LAST;
	case BYTE_RANDOM:
		return next_random();
	}
	return 0;
}

/* Return whether the call is made while the device is opened: for most kinds, the first one. */
static bool opens_device(enum fault_point point, unsigned nth)
{
	return point == POINT_DEVICE_OPEN ||
	       (nth == 1 && (point == POINT_DEVICE_KERNEL_IMAGE || point == POINT_DEVICE_SELECT ||
			     point == POINT_DEVICE_ALLOCATION || point == POINT_DEVICE_QUEUE ||
			     point == POINT_DEVICE_EVENT || point == POINT_DEVICE_WAIT));
}

static enum expected_outcome get_expected_outcome(const struct sort_scenario *scenario,
						  const struct fault_kind *kind, unsigned nth)
{
	if (scenario->is_interrupted)
		return EXPECT_EITHER;
	return scenario->has_device_fallback && opens_device(kind->point, nth) ?
		       EXPECT_SUCCESS :
		       kind->expected_outcome;
}

static void try_fault(const struct sort_scenario *scenario, const struct fault_kind *kind,
		      unsigned nth, unsigned n)
{
	const struct fault fault = { .point = kind->point,
				     .nth = nth,
				     .n_times = kind->n_times,
				     .effect = kind->effect,
				     .error = kind->error,
				     .is_single_device = scenario->loses_one_device,
				     .position = choose_byte_position(kind) };
	const bool is_selected = session.n_scheduled++ % session.sampling_interval == 0;
	char text[128];
	const struct fault_run fault_run = {
		.scenario = scenario,
		.fault = &fault,
		.expected_outcome = get_expected_outcome(scenario, kind, nth),
		.expected_message = scenario->is_interrupted ? NULL :
							       fault_kind_expected_message(kind),
		.description = text
	};

	if (!is_selected)
		return;
	snprintf(text, sizeof text, "%s %u of %u, %s, byte %zd, %u times",
		 fault_point_names[kind->point], nth, n, fault_kind_name(kind),
		 (ssize_t)fault.position, kind->n_times);
	session.n_outcomes[test_dir_run(&fault_run)]++;
}

static unsigned random_index(unsigned n)
{
	return 1 + (unsigned)(next_random() % n);
}

/*
 * Try the first call, the last, and a random one in between. From the last call on is the same as
 * only the last, unless the fault causes more calls.
 */
static void try_some(const struct sort_scenario *scenario, const struct fault_kind *kind,
		     unsigned n)
{
	try_fault(scenario, kind, 1, n);
	if (n > 1 && kind->n_times != FAULT_FOREVER)
		try_fault(scenario, kind, n, n);
	if (n > 2)
		try_fault(scenario, kind, 1 + random_index(n - 2), n);
}

/* Return whether no mode has tried the call site with this kind, and remember both. */
static bool is_new_site(const void *address, const struct fault_kind *kind)
{
	for (size_t i = 0; i < session.n_tried_sites; i++)
		if (session.tried_sites[i].address == address &&
		    session.tried_sites[i].kind == kind)
			return false;
	if (session.n_tried_sites < MAX_TRIED_SITES) {
		session.tried_sites[session.n_tried_sites].address = address;
		session.tried_sites[session.n_tried_sites++].kind = kind;
	}
	return true;
}

/* Try the first call of each call site that is new. */
static void try_sites(const struct sort_scenario *scenario, const struct fault_kind *kind,
		      unsigned n)
{
	if (kind->effect != EFFECT_FAIL || kind->n_times != 1)
		return;
	for (size_t i = 0; i < session.n_sites; i++)
		if (session.sites[i].point == kind->point && session.sites[i].nth > 1 &&
		    is_new_site(session.sites[i].address, kind))
			try_fault(scenario, kind, session.sites[i].nth, n);
}

static void try_kind(const struct sort_scenario *scenario, const struct fault_kind *kind,
		     unsigned n)
{
	if (n == 0 || !fault_kind_is_possible(kind) || !is_applicable(scenario, kind))
		return;
	if (session.n) {
		try_fault(scenario, kind, session.n, n);
	} else if (session.all) {
		for (unsigned nth = 1; nth <= n; nth++)
			try_fault(scenario, kind, nth, n);
	} else if (scenario->has_device_fallback && kind->point != POINT_DEVICE_OPEN) {
		try_fault(scenario, kind, 1, n);
	} else if (scenario->is_slow) {
		try_fault(scenario, kind, random_index(n), n);
	} else {
		try_some(scenario, kind, n);
		try_sites(scenario, kind, n);
	}
}

/* Run without a fault and get how often each point is passed. Returns false if the run failed. */
static bool run_without_fault(const struct sort_scenario *scenario,
			      unsigned n_passed[static N_POINTS])
{
	const struct fault_run fault_run = { .scenario = scenario,
					     .expected_outcome = scenario->is_interrupted ?
									 EXPECT_FAILURE :
									 EXPECT_SUCCESS,
					     .description = "no fault" };

	if (test_dir_run(&fault_run) == OUTCOME_WRONG)
		return false;
	for (int point = 0; point < N_POINTS; point++) {
		n_passed[point] = test_dir_n_passed(point);
		session.passed[point] |= n_passed[point] > 0;
	}
	session.n_sites = test_dir_get_sites(session.sites);
	return true;
}

static void try_device_trap(const struct sort_scenario *scenario, unsigned n)
{
	static const struct fault_kind device_trap =
		FAULT_KIND(POINT_DEVICE_LAUNCH, EFFECT_TRAP_DEVICE, 0, 1, EXPECT_FAILURE);

	try_fault(scenario, &device_trap, session.n ? session.n : random_index(n), n);
}

static void try_kinds(const struct sort_scenario *scenario,
		      const unsigned n_passed[static N_POINTS])
{
	for (size_t i = 0; i < n_fault_kinds; i++)
		if (!session.point ||
		    strcmp(session.point, fault_point_names[fault_kinds[i].point]) == 0)
			try_kind(scenario, &fault_kinds[i], n_passed[fault_kinds[i].point]);
}

static void try_scenario(const struct sort_scenario *scenario)
{
	unsigned n_passed[N_POINTS], before[N_OUTCOMES];
	struct timespec begin, end;

	if (!run_without_fault(scenario, n_passed)) {
		session.n_outcomes[OUTCOME_WRONG]++;
		return;
	}
	if (session.rehearse)
		return;
	memcpy(before, session.n_outcomes, sizeof before);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (session.dies)
		try_device_trap(scenario, n_passed[POINT_DEVICE_LAUNCH]);
	else
		try_kinds(scenario, n_passed);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%-20s %6u tolerated %6u refused %6u wrong %6ld s\n", scenario->name,
	       session.n_outcomes[OUTCOME_SUCCEEDED] - before[OUTCOME_SUCCEEDED],
	       session.n_outcomes[OUTCOME_REFUSED] - before[OUTCOME_REFUSED],
	       session.n_outcomes[OUTCOME_WRONG] - before[OUTCOME_WRONG],
	       (long)(end.tv_sec - begin.tv_sec));
	fflush(stdout);
}

static void try_scenario_on_devices(const struct sort_scenario *scenario, unsigned n_devices)
{
	if (scenario->n_devices <= n_devices) {
		try_scenario(scenario);
		return;
	}
	printf("skipped: %s: there are no %u devices\n", scenario->name, scenario->n_devices);
	session.passed[POINT_DEVICE_PEER] = true; /* peer access needs two devices */
}

/*
 * Check that some mode passes each point. Two points need not be passed: files are truncated only
 * after an error, and space is released in the background, if there is enough time and space.
 */
static void check_points(void)
{
	for (size_t i = 0; i < n_fault_kinds; i++) {
		const enum fault_point point = fault_kinds[i].point;

		if (session.passed[point] || point == POINT_TRUNCATE || point == POINT_PUNCH)
			continue;
		session.passed[point] = true; /* one line is enough */
		printf("WRONG: no mode passes the point %s\n", fault_point_names[point]);
		session.n_outcomes[OUTCOME_WRONG]++;
	}
}

/* Return whether the word is in a list separated by commas. */
static bool is_in_list(const char *word, const char *list)
{
	const size_t n = strlen(word);

	for (const char *position = list; (position = strstr(position, word)); position += n)
		if ((position == list || position[-1] == ',') &&
		    (position[n] == ',' || position[n] == '\0'))
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

static int print_help(void)
{
	print_usage(stdout);
	for (size_t i = 0; i < n_sort_scenarios; i++)
		printf("%s%s", i ? " " : "MODE: ", sort_scenarios[i].name);
	for (size_t i = 0; i < N_POINTS; i++)
		printf("%s%s", i ? " " : "\nPOINT: ", fault_point_names[i]);
	putchar('\n');
	return 0;
}

static int fail_usage(const char *what, const char *word)
{
	fprintf(stderr, "%s: no such %s: %s; see --help\n", program_invocation_short_name, what,
		word);
	print_usage(stderr);
	return 2;
}

static bool is_scenario(const char *word, size_t n)
{
	for (size_t i = 0; i < n_sort_scenarios; i++)
		if (strlen(sort_scenarios[i].name) == n &&
		    memcmp(sort_scenarios[i].name, word, n) == 0)
			return true;
	return false;
}

static bool is_point(const char *word)
{
	for (size_t i = 0; i < N_POINTS; i++)
		if (strcmp(fault_point_names[i], word) == 0)
			return true;
	return false;
}

/* Refuse unknown modes and points, which would not be tried. Returns 0, or 2 after a message. */
static int check_arguments(void)
{
	for (const char *word = session.scenarios; word && *word;) {
		const size_t n = strcspn(word, ",");

		if (!is_scenario(word, n))
			return fail_usage("mode", word);
		word += n + (word[n] == ',');
	}
	return session.point && !is_point(session.point) ? fail_usage("point", session.point) : 0;
}

/* Parse the options. Returns the index of the first mode, or -1 after a message. */
static int parse_options(int argc, char **argv)
{
	const char *interval = getenv("GSORT_FAULT_INTERVAL"), *seed = getenv("GSORT_SEED");
	int i = 1;

	for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
		if (strcmp(argv[i], "--all") == 0)
			session.all = true;
		else if (strcmp(argv[i], "--rehearse") == 0)
			session.rehearse = true;
		else if (strcmp(argv[i], "--dies") == 0)
			session.dies = true;
		else if (strncmp(argv[i], "--interval=", 11) == 0)
			interval = argv[i] + 11;
		else if (strncmp(argv[i], "--seed=", 7) == 0)
			session.seed = strtoull(argv[i] + 7, NULL, 10);
		else {
			fail_usage("option", argv[i]);
			return -1;
		}
	}
	if (session.seed == 0 && seed)
		session.seed = strtoull(seed, NULL, 10);
	session.seed = session.seed ? session.seed : (uint64_t)time(NULL);
	session.sampling_interval =
		interval && !session.all ? (unsigned)strtoul(interval, NULL, 10) : 1;
	session.sampling_interval = session.sampling_interval ? session.sampling_interval : 1;
	session.n_scheduled = session.seed;
	return i;
}

int main(int argc, char **argv)
{
	const char *reason = "";
	unsigned n_devices;
	int i;

	if (argc > 1 && strcmp(argv[1], "--help") == 0)
		return print_help();
	i = parse_options(argc, argv);
	if (i < 0)
		return 2;
	session.scenarios = i < argc ? argv[i] : NULL;
	i += !session.dies;
	session.point = !session.dies && i < argc ? argv[i] : NULL;
	session.n = i + 1 < argc ? (unsigned)strtoul(argv[i + 1], NULL, 10) : 0;
	if (session.n || session.dies)
		session.sampling_interval = 1;
	if (check_arguments() != 0)
		return 2;
	printf("--seed=%llu\n", (unsigned long long)session.seed);
	n_devices = fault_points_n_devices(&reason);
	if (n_devices == 0) {
		printf("skipped: no device: %s\n", reason);
		return 77;
	}
	fflush(stdout); /* before gsort's main() does so, with a redirected standard output */

	test_dir_open();
	for (size_t m = 0; m < n_sort_scenarios; m++)
		if (!session.scenarios || is_in_list(sort_scenarios[m].name, session.scenarios))
			try_scenario_on_devices(&sort_scenarios[m], n_devices);
	test_dir_close();
	if (session.rehearse)
		check_points();
	printf("%u faults: %u tolerated, %u refused, %u wrong; %u not reached\n",
	       session.n_outcomes[OUTCOME_SUCCEEDED] + session.n_outcomes[OUTCOME_REFUSED] +
		       session.n_outcomes[OUTCOME_WRONG],
	       session.n_outcomes[OUTCOME_SUCCEEDED], session.n_outcomes[OUTCOME_REFUSED],
	       session.n_outcomes[OUTCOME_WRONG], session.n_outcomes[OUTCOME_NOT_REACHED]);
	printf("%u interrupted sorts were resumed\n", test_dir_n_resumed());
	return session.n_outcomes[OUTCOME_WRONG] ? 1 : 0;
}
