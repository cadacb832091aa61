/*
 * test_global_splitters - a petabyte on a thousand ranks, without a byte of it
 *
 * The planner, the search for splitters and the forecast are the real ones; the runs are made up:
 * of a block there is its first key, computed when it is asked for, and nothing else. What cannot
 * be run at that size is scaled down where that does not matter: a search is as uneven as blocks
 * are long, however many there are, so runs have few blocks there; and of the 53 million blocks of
 * a range the first windows stand for all.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "io/spill/run_file.h"
#include "src/exchange/global_splitters.h"
#include "src/cost/cluster_estimate.h"
#include "src/merge/forecast.h"
#include "src/merge/run_devices.h"
#include "src/record/digest.h"
#include "src/run/run_ops.h"

#include <cmocka.h> /* last: it makes a macro of fail */

#define GIB (UINT64_C(1) << 30)
#define TB UINT64_C(1000000000000)
#define PB (1000 * TB)

/* --- plans --- */

/* A sort by so many ranks, each with a disk, a network, processors and memory of its own. */
struct cluster {
	uint32_t n_ranks, n_threads;
	uint64_t memory_nbytes, input_nbytes; /* of each; of all */
	uint64_t record_nbytes;
	const char *type;  /* of the key, at the beginning */
	uint32_t n_ranges; /* of each rank; 0: as planned */
};

struct planned {
	struct layout layout;
	struct plan_request request;
	struct plan plan;
	struct rank_loads loads;
	struct device *device;
};

static void open_plan(const struct cluster *cluster, const struct rank_rates *rates,
		      struct planned *planned)
{
	const struct backend_config config = { .n_threads = cluster->n_threads };
	struct layout_request records = { .record_nbytes = cluster->record_nbytes, .n_keys = 1 };
	const uint64_t n = cluster->input_nbytes / cluster->record_nbytes / cluster->n_ranks + 1;
	struct key key;

	assert_int_equal(key_parse_type(cluster->type, &key), 0);
	records.keys = &key;
	assert_int_equal(layout_make(&records, &planned->layout), 0);
	assert_int_equal(device_open(&backend_cpu, &config, &planned->device), 0);
	planned->request = (struct plan_request){
		.layout = &planned->layout,
		.device = planned->device,
		.input_nbytes = n * cluster->record_nbytes,
		.n_ranks = cluster->n_ranks,
		.n_threads = cluster->n_threads,
		.n_ranges = cluster->n_ranges,
		.memory_nbytes = cluster->memory_nbytes,
		.stores_codes = planned->layout.stores_elements,
		.limit = 0,
	};
	plan_make(&planned->request, &planned->plan);
	rank_loads_find(&planned->plan, &planned->request, rates, &planned->loads);
}

static void close_plan(struct planned *planned)
{
	device_close(planned->device);
	layout_free(&planned->layout);
}

static struct rank_rates rates_of(uint64_t disk, uint64_t network)
{
	struct rank_rates rates = { .per_s = { [RANK_DISK] = disk, [RANK_NETWORK] = network } };

	rank_rates_assume(&rates);
	return rates;
}

static const struct cluster petabytes[] = {
	{ 1000, 32, 102 * GIB, PB, 100, "b10", 0 },
	{ 1000, 8, 102 * GIB, PB, 100, "b10", 0 },
	{ 1000, 32, 102 * GIB, PB, 8, "u64", 0 },
	{ 1000, 16, 205 * GIB, PB, 8, "u64", 0 },
};
enum { N_PETABYTES = sizeof petabytes / sizeof petabytes[0] };

static void petabyte_keeps_within_the_volumes_promised(void **state)
{
	const struct rank_rates rates = rates_of(0, 0);

	(void)state;
	for (size_t i = 0; i < N_PETABYTES; i++) {
		struct planned planned;
		const struct rank_loads *loads = &planned.loads;

		open_plan(&petabytes[i], &rates, &planned);
		assert_true(planned.plan.is_enough);
		assert_true(planned.plan.total_nbytes <=
			    petabytes[i].memory_nbytes + PLAN_BESIDE_NBYTES);
		assert_int_equal(planned.plan.n_passes, 1);
		assert_int_equal(loads->n_merged,
				 (planned.plan.n_spilled_runs + 1) * petabytes[i].n_ranks);
		/* Disk 4.05 times the input, network 1.02 times what has to change ranks. */
		assert_true(loads->disk_nbytes / 100 <= loads->read_nbytes / 100 * 405 / 100);
		assert_true(loads->received_nbytes / 100 <= loads->items_nbytes / 100 * 102 / 100);
		/* A block of each run is not even a percent of a range. */
		assert_true(loads->uneven_nbytes <= loads->written_nbytes / 100);
		close_plan(&planned);
	}
}

/* With a network of at least twice the disk; each rank has as much, however many there are. */
static double seconds_of(uint32_t n_ranks, uint64_t each_nbytes)
{
	const struct rank_rates rates = rates_of(1 * TB / 1000, 2 * TB / 1000);
	const struct cluster cluster = {
		n_ranks, 16, 51 * GIB, n_ranks * each_nbytes, 100, "b10", 0
	};
	struct planned planned;
	enum rank_link slowest;
	double s = 0;

	open_plan(&cluster, &rates, &planned);
	for (enum rank_phase phase = 0; phase < N_RANK_PHASES; phase++)
		s += rank_phase_s(&planned.loads, &rates, phase, &slowest);
	close_plan(&planned);
	return s;
}

static void more_ranks_with_as_much_each_take_hardly_longer(void **state)
{
	static const uint64_t sizes[] = { 20 * GIB, 200 * GIB, 1000 * GIB };

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		const double alone_s = seconds_of(1, sizes[i]);

		print_message("%3.0f GiB each: 8 ranks %.3f, 64 ranks %.3f\n",
			      (double)(sizes[i] / GIB), alone_s / seconds_of(8, sizes[i]),
			      alone_s / seconds_of(64, sizes[i]));
		assert_true(alone_s / seconds_of(8, sizes[i]) >= 0.85);
		assert_true(alone_s / seconds_of(64, sizes[i]) >= 0.75);
	}
}

/* --- runs that are not there --- */

struct made_run {
	struct run run;
	uint64_t number, block_n_items;
};

/* Somewhere in the block's share of all keys. */
static code_t made_first_key(const struct run *run, uint64_t i)
{
	const struct made_run *made = (const struct made_run *)run;
	const uint64_t step = UINT64_MAX / run->n_blocks;

	return i * step + digest_mix64(i + digest_mix64(made->number)) % step;
}

static uint64_t made_block_start(const struct run *run, uint64_t i)
{
	return i * ((const struct made_run *)run)->block_n_items;
}

/* As if the items of a block were spread evenly up to the next block's first. */
static int made_cut_block(struct run *run, uint64_t i, const struct run_cut_at *at,
			  uint64_t *ret_cut)
{
	const struct made_run *made = (const struct made_run *)run;
	const code_t key = layout_key_beginning(at->layout, at->key);
	const code_t first = made_first_key(run, i);
	const code_t next = i + 1 < run->n_blocks ? made_first_key(run, i + 1) : UINT64_MAX;
	uint64_t n = made->block_n_items;

	if (key <= first)
		n = 0;
	else if (key < next)
		n = (uint64_t)((key - first) * n / (next - first));
	*ret_cut = made_block_start(run, i) + n;
	return 0;
}

static const struct run_kind made_kind = {
	.block_start = made_block_start,
	.first_key = made_first_key,
	.cut_block = made_cut_block,
};

static void make_run(uint64_t number, uint64_t n_blocks, uint64_t block_n_items,
		     struct made_run *ret_run)
{
	*ret_run = (struct made_run){
		.run = { .kind = &made_kind,
			 .n_items = n_blocks * block_n_items,
			 .n_blocks = n_blocks },
		.number = number,
		.block_n_items = block_n_items,
	};
}

/* --- ranks that are threads: what global_splitters.c asks of them --- */

struct meeting {
	pthread_mutex_t lock;
	pthread_cond_t all_there;
	unsigned n_ranks, n_there;
	uint64_t n_meetings;
	uint64_t *words[2]; /* of every other meeting */
	unsigned n_rounds;  /* in which places were drawn */
};

struct ranks {
	struct meeting *meeting;
	unsigned rank;
};

unsigned __wrap_ranks_rank(const struct ranks *ranks);
unsigned __wrap_ranks_size(const struct ranks *ranks);
int __wrap_ranks_sum(struct ranks *ranks, uint64_t *values, size_t count);
int __wrap_ranks_least(struct ranks *ranks, uint64_t *rows, size_t count, size_t width);

unsigned __wrap_ranks_rank(const struct ranks *ranks)
{
	return ranks->rank;
}

unsigned __wrap_ranks_size(const struct ranks *ranks)
{
	return ranks->meeting->n_ranks;
}

static void combine(uint64_t *all, const uint64_t *rows, size_t count, size_t width)
{
	for (size_t i = 0; i < count; i++, all += width, rows += width)
		if (width == 1)
			*all += *rows;
		else if (rows[0] < all[0])
			memcpy(all, rows, width * sizeof *all);
}

/* The last one to come wakes the others. width 1: sums; else the least rows. */
static int meet(struct meeting *meeting, uint64_t *rows, size_t count, size_t width)
{
	uint64_t *all;
	uint64_t number;

	pthread_mutex_lock(&meeting->lock);
	number = meeting->n_meetings;
	all = meeting->words[number % 2];
	if (meeting->n_there == 0)
		memcpy(all, rows, count * width * sizeof *rows);
	else
		combine(all, rows, count, width);
	if (++meeting->n_there == meeting->n_ranks) {
		meeting->n_there = 0;
		meeting->n_meetings++;
		meeting->n_rounds += width > 1;
		pthread_cond_broadcast(&meeting->all_there);
	}
	while (number == meeting->n_meetings)
		pthread_cond_wait(&meeting->all_there, &meeting->lock);
	pthread_mutex_unlock(&meeting->lock);
	memcpy(rows, all, count * width * sizeof *rows);
	return 0;
}

int __wrap_ranks_sum(struct ranks *ranks, uint64_t *values, size_t count)
{
	return meet(ranks->meeting, values, count, 1);
}

int __wrap_ranks_least(struct ranks *ranks, uint64_t *rows, size_t count, size_t width)
{
	return meet(ranks->meeting, rows, count, width);
}

/* Nothing is in memory of a device, so there need be none. */
int __wrap_homes_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
		      struct homes *ret_homes);

int __wrap_homes_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
		      struct homes *ret_homes)
{
	(void)job;
	(void)runs;
	(void)n_runs;
	*ret_homes = (struct homes){ 0 };
	return 0;
}

/* --- splitters --- */

enum {
	N_RANKS = 1000,
	N_RANGES = 250, /* of which ranks would have one each; a search for each border */
	RUNS_OF_EACH = 1,
	BLOCKS_OF_RUN = 40,
	ITEMS_OF_BLOCK = 1000,
	STACK_NBYTES = 256 << 10,
	MOST_WORDS = 6 * 4 * N_RANGES,
};

static struct layout layout;

struct cutting {
	struct ranks ranks;
	struct made_run runs[RUNS_OF_EACH];
	uint64_t cuts[(N_RANGES + 1) * RUNS_OF_EACH];
	pthread_t thread;
	int r;
};

static void *cut(void *argument)
{
	static const struct range_wish wish = { .n = N_RANGES, .n_most = UINT64_MAX };
	const struct job job = { .layout = &layout, .limit = UINT64_MAX };
	struct cutting *cutting = argument;
	struct run *runs[RUNS_OF_EACH];

	for (size_t i = 0; i < RUNS_OF_EACH; i++)
		runs[i] = &cutting->runs[i].run;
	cutting->r = range_cut(&cutting->ranks, &job, runs, RUNS_OF_EACH, &wish, cutting->cuts);
	return NULL;
}

static void cut_all(struct meeting *meeting, struct cutting *all)
{
	pthread_attr_t attributes;

	assert_int_equal(pthread_attr_init(&attributes), 0);
	assert_int_equal(pthread_attr_setstacksize(&attributes, STACK_NBYTES), 0);
	for (unsigned i = 0; i < N_RANKS; i++) {
		all[i].ranks = (struct ranks){ meeting, i };
		for (uint64_t j = 0; j < RUNS_OF_EACH; j++)
			make_run((uint64_t)i * RUNS_OF_EACH + j, BLOCKS_OF_RUN, ITEMS_OF_BLOCK,
				 &all[i].runs[j]);
		assert_int_equal(pthread_create(&all[i].thread, &attributes, cut, &all[i]), 0);
	}
	for (unsigned i = 0; i < N_RANKS; i++) {
		assert_int_equal(pthread_join(all[i].thread, NULL), 0);
		assert_int_equal(all[i].r, 0);
	}
	pthread_attr_destroy(&attributes);
}

static uint64_t items_before(const struct cutting *all, unsigned range)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < N_RANKS; i++)
		for (unsigned j = 0; j < RUNS_OF_EACH; j++)
			n += all[i].cuts[range * RUNS_OF_EACH + j];
	return n;
}

static void thousand_ranks_find_even_ranges(void **state)
{
	static uint64_t words[2][MOST_WORDS];
	const uint64_t n_runs = N_RANKS * RUNS_OF_EACH, n_blocks = n_runs * BLOCKS_OF_RUN;
	struct meeting meeting = { .lock = PTHREAD_MUTEX_INITIALIZER,
				   .all_there = PTHREAD_COND_INITIALIZER,
				   .n_ranks = N_RANKS,
				   .words = { words[0], words[1] } };
	struct cutting *all = calloc(N_RANKS, sizeof *all);
	uint64_t before = 0;
	struct key key;

	(void)state;
	assert_non_null(all);
	assert_int_equal(key_parse_type("u64", &key), 0);
	assert_int_equal(layout_make_plain(&key, &layout), 0);
	cut_all(&meeting, all);
	for (unsigned i = 1; i <= N_RANGES; i++) {
		const uint64_t n = items_before(all, i);
		const uint64_t wanted = n_blocks * ITEMS_OF_BLOCK / N_RANGES * i;
		const uint64_t most = n_runs * ITEMS_OF_BLOCK; /* a block of each run */

		assert_true(n >= before);
		assert_in_range(n, wanted > most ? wanted - most : 0, wanted + most);
		before = n;
	}
	assert_int_equal(before, n_blocks * ITEMS_OF_BLOCK);
	/* What cluster_estimate.c takes them for, of four draws for each. */
	print_message("%u rounds\n", meeting.n_rounds);
	assert_true(meeting.n_rounds <= 1 + 1.3 * 16 / 1.58);
	free(all);
}

/* --- windows --- */

struct windows_seen {
	uint64_t n_reads, n_blocks, most_records;
};

/* Some windows of the range of a rank, of which each run has a part. */
static void see_windows(struct made_run *runs, struct run **pointers, uint32_t n_runs,
			const struct window_plan *windows, struct windows_seen *ret_seen)
{
	const struct item_loader loader = { .layout = &layout };
	uint64_t *n_taken = calloc(n_runs, sizeof *n_taken), *n_all = calloc(n_runs, sizeof *n_all);
	uint64_t n_cut_before = 0;
	struct forecast *forecast;

	assert_int_equal(forecast_open(pointers, n_runs, &loader, &forecast), 0);
	for (int w = 0; w < 5; w++) {
		struct splitter splitter;
		uint64_t n_cut = 0, n_records = 0;

		assert_int_equal(
			forecast_take(forecast, windows->quota_records, n_taken, &splitter), 1);
		for (uint32_t i = 0; i < n_runs; i++) {
			const struct run_cut_at at = { &layout, splitter.key, i < splitter.run };
			uint64_t cut_at;

			n_all[i] += n_taken[i];
			ret_seen->n_reads += n_taken[i] > 0;
			ret_seen->n_blocks += n_taken[i];
			n_records += n_all[i] * runs[i].block_n_items;
			assert_int_equal(run_cut(&runs[i].run, &at, &cut_at), 0);
			/* Nothing of a block that was not taken, and less than one is carried. */
			assert_in_range(cut_at + runs[i].block_n_items,
					n_all[i] * runs[i].block_n_items,
					(n_all[i] + 1) * runs[i].block_n_items);
			n_cut += cut_at;
		}
		if (n_records - n_cut_before > ret_seen->most_records)
			ret_seen->most_records = n_records - n_cut_before;
		n_cut_before = n_cut;
	}
	forecast_close(forecast);
	free(n_taken);
	free(n_all);
}

static void windows_of_a_thousand_ranks_have_the_room_planned(void **state)
{
	const struct cluster cluster = { 1000, 32, 102 * GIB, PB, 8, "u64", .n_ranges = 1 };
	const struct rank_rates rates = rates_of(0, 0);
	struct windows_seen seen = { 0 };
	struct window_plan windows;
	struct planned planned;
	struct made_run *runs;
	struct run **pointers;
	uint64_t block, per_run, mean;
	uint32_t n_runs;
	struct key key;

	(void)state;
	assert_int_equal(key_parse_type("u64", &key), 0);
	assert_int_equal(layout_make_plain(&key, &layout), 0);
	open_plan(&cluster, &rates, &planned);
	n_runs = (uint32_t)planned.loads.n_merged;
	block = run_file_block_n_items(planned.plan.block_nbytes, 8);
	per_run = planned.loads.n_output_records / n_runs / block;
	runs = calloc(n_runs, sizeof *runs);
	pointers = calloc(n_runs, sizeof(struct run *));
	for (uint32_t i = 0; i < n_runs; i++) {
		make_run(i, per_run, block, &runs[i]);
		pointers[i] = &runs[i].run;
	}
	plan_windows(&planned.plan, &planned.request, planned.plan.last_merge_nbytes,
		     planned.loads.n_output_records, 0, n_runs, &windows);
	see_windows(runs, pointers, n_runs, &windows, &seen);
	assert_true(seen.most_records <= windows.capacity_records);
	mean = seen.n_blocks * block * 8 / seen.n_reads;
	print_message("%u runs, blocks of %ju items: %ju bytes a read, planned %ju\n", n_runs,
		      (uintmax_t)block, (uintmax_t)mean, (uintmax_t)planned.loads.message_nbytes);
	assert_in_range(mean, planned.loads.message_nbytes / 10 * 7,
			planned.loads.message_nbytes / 10 * 15);
	free(runs);
	free(pointers);
	close_plan(&planned);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(petabyte_keeps_within_the_volumes_promised),
		cmocka_unit_test(more_ranks_with_as_much_each_take_hardly_longer),
		cmocka_unit_test(thousand_ranks_find_even_ranges),
		cmocka_unit_test(windows_of_a_thousand_ranks_have_the_room_planned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
