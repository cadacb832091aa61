/*
 * test_cluster_cuts - plan and cut a petabyte on a thousand ranks, without any data
 *
 * The planner, the search for splitters and the forecast are the real ones. The runs are synthetic:
 * a block has only a first key, computed on demand. Where the size does not matter it is scaled
 * down: the imbalance of a search depends on the size of blocks and not on their number, so runs
 * have few blocks there; and the first windows stand for all of the 53 million blocks of a
 * partition.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "io/spill/run_file.h"
#include "src/cost/estimate.h"
#include "src/merge/cuts.h"
#include "src/merge/window.h"
#include "src/record/digest.h"
#include "src/run/run.h"
#include "tests/support/unit_test.h"

#define GIB (UINT64_C(1) << 30)
#define TB UINT64_C(1000000000000)
#define PB (1000 * TB)

/* --- plans --- */

/* A sort by many ranks, each with its own disk, network, CPUs and memory. */
struct planned_cluster {
	uint32_t n_ranks, n_threads;
	uint64_t memory_nbytes, input_nbytes; /* memory of each rank; input of all */
	uint64_t record_nbytes;
	const char *type;      /* of the key, which is at the beginning */
	uint32_t n_partitions; /* per rank; 0: as planned */
};

struct cluster_plan {
	struct layout layout;
	struct plan_request request;
	struct plan plan;
	struct cluster_estimate loads;
	struct estimate estimate;
	struct device *device;
};

static void open_plan(const struct planned_cluster *cluster, const struct rank_rates *rates,
		      struct cluster_plan *planned)
{
	const struct backend_config config = { .n_threads = cluster->n_threads };
	struct layout_params records = { .record_nbytes = cluster->record_nbytes, .n_keys = 1 };
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
		.n_partitions = cluster->n_partitions,
		.memory_nbytes = cluster->memory_nbytes,
		.stores_encoded_keys = planned->layout.stores_elements,
		.limit = 0,
	};
	plan_make(&planned->request, &planned->plan);
	cluster_estimate_make(&planned->plan, &planned->request, rates, &planned->estimate,
			      &planned->loads);
}

static void close_plan(struct cluster_plan *planned)
{
	device_close(planned->device);
	layout_free(&planned->layout);
}

static struct rank_rates cluster_rates(uint64_t disk, uint64_t network)
{
	struct rank_rates rates = { .per_s = { [RANK_DISK] = disk, [RANK_NETWORK] = network } };

	rank_rates_set_defaults(&rates);
	return rates;
}

static const struct planned_cluster petabytes[] = {
	{ 1000, 32, 102 * GIB, PB, 100, "b10", 0 },
	{ 1000, 8, 102 * GIB, PB, 100, "b10", 0 },
	{ 1000, 32, 102 * GIB, PB, 8, "u64", 0 },
	{ 1000, 16, 205 * GIB, PB, 8, "u64", 0 },
};
enum { N_PETABYTES = sizeof petabytes / sizeof petabytes[0] };

TEST(petabyte_stays_within_the_estimate)
{
	const struct rank_rates rates = cluster_rates(0, 0);

	for (size_t i = 0; i < N_PETABYTES; i++) {
		struct cluster_plan planned;
		const struct cluster_estimate *loads = &planned.loads;

		open_plan(&petabytes[i], &rates, &planned);
		assert_true(planned.plan.is_sufficient);
		assert_true(planned.plan.total_nbytes <=
			    petabytes[i].memory_nbytes + PLAN_OVERHEAD_NBYTES);
		assert_int_equal(planned.plan.n_passes, 1);
		assert_int_equal(loads->n_merged_runs,
				 (planned.plan.n_spilled_runs + 1) * petabytes[i].n_ranks);
		/*
		 * Disk traffic is 4.05 times the input, network traffic 1.02 times what has to
		 * move.
		 */
		assert_true(loads->disk_nbytes / 100 <= loads->read_nbytes / 100 * 405 / 100);
		assert_true(loads->received_nbytes / 100 <= loads->items_nbytes / 100 * 102 / 100);
		/* A block of each run is less than one percent of a partition. */
		assert_true(loads->max_imbalance_nbytes <= loads->written_nbytes / 100);
		close_plan(&planned);
	}
}

static bool exchanges_in_memory(uint64_t memory_nbytes, enum compression_mode mode)
{
	const struct planned_cluster cluster = { 2, 2, memory_nbytes, GIB, 8, "u64", 0 };
	const struct rank_rates rates = cluster_rates(0, 0);
	struct cluster_plan planned;

	open_plan(&cluster, &rates, &planned);
	planned.request.compression.mode = mode;
	cluster_estimate_make(&planned.plan, &planned.request, &rates, &planned.estimate,
			      &planned.loads);
	close_plan(&planned);
	return planned.loads.in_memory_exchange;
}

TEST(ranks_exchange_in_memory_what_fits_and_is_not_compressed)
{
	assert_true(exchanges_in_memory(4 * GIB, COMPRESS_AUTO));
	assert_false(exchanges_in_memory(4 * GIB, COMPRESS_ZSTD));
	assert_false(exchanges_in_memory(GIB / 8, COMPRESS_AUTO));
}

/* The network is at least twice as fast as the disk; each rank has the same amount. */
static double estimate_seconds(uint32_t n_ranks, uint64_t each_nbytes)
{
	const struct rank_rates rates = cluster_rates(1 * TB / 1000, 2 * TB / 1000);
	const struct planned_cluster cluster = { n_ranks, 16,    51 * GIB, n_ranks * each_nbytes,
						 100,     "b10", 0 };
	struct cluster_plan planned;
	double s;

	open_plan(&cluster, &rates, &planned);
	s = estimate_s(&planned.estimate);
	close_plan(&planned);
	return s;
}

TEST(weak_scaling_is_nearly_flat)
{
	static const uint64_t sizes[] = { 20 * GIB, 200 * GIB, 1000 * GIB };

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		const double alone_s = estimate_seconds(1, sizes[i]);

		print_message("%3.0f GiB each: 8 ranks %.3f, 64 ranks %.3f\n",
			      (double)(sizes[i] / GIB), alone_s / estimate_seconds(8, sizes[i]),
			      alone_s / estimate_seconds(64, sizes[i]));
		assert_true(alone_s / estimate_seconds(8, sizes[i]) >= 0.85);
		assert_true(alone_s / estimate_seconds(64, sizes[i]) >= 0.75);
	}
}

/* --- runs that are not there --- */

struct made_run {
	struct run run;
	uint64_t number, block_n_items;
};

/* A random key in the block's share of all keys. */
static encoded_key_t made_first_key(const struct run *run, uint64_t i)
{
	const struct made_run *made = (const struct made_run *)run;
	const uint64_t step = UINT64_MAX / run->n_blocks;

	return i * step + digest_mix64(i + digest_mix64(made->number)) % step;
}

static uint64_t made_block_start(const struct run *run, uint64_t i)
{
	return i * ((const struct made_run *)run)->block_n_items;
}

/* As if the items of a block were spread evenly up to the first key of the next block. */
static int made_cut_block(struct run *run, uint64_t i, const struct run_bound *at,
			  uint64_t *ret_cut)
{
	const struct made_run *made = (const struct made_run *)run;
	const encoded_key_t key = layout_get_key_prefix(at->layout, at->key);
	const encoded_key_t first = made_first_key(run, i);
	const encoded_key_t next = i + 1 < run->n_blocks ? made_first_key(run, i + 1) : UINT64_MAX;
	uint64_t n = made->block_n_items;

	if (key <= first)
		n = 0;
	else if (key < next)
		n = (uint64_t)((key - first) * n / (next - first));
	*ret_cut = made_block_start(run, i) + n;
	return 0;
}

static const struct run_ops made_kind = {
	.block_start = made_block_start,
	.first_key = made_first_key,
	.count_in_block = made_cut_block,
};

static void make_run(uint64_t number, uint64_t n_blocks, uint64_t block_n_items,
		     struct made_run *ret_run)
{
	*ret_run = (struct made_run){
		.run = { .ops = &made_kind,
			 .n_items = n_blocks * block_n_items,
			 .n_blocks = n_blocks },
		.number = number,
		.block_n_items = block_n_items,
	};
}

/* --- ranks that are threads: what cuts.c asks of them --- */

struct collective_round {
	pthread_mutex_t lock;
	pthread_cond_t all_joined;
	unsigned n_ranks, n_joined;
	uint64_t n_collectives;
	uint64_t *words[2]; /* of every other collective */
	unsigned n_rounds;  /* rounds with candidates */
};

struct comm {
	struct collective_round *collective;
	unsigned rank;
};

unsigned __wrap_comm_rank(const struct comm *comm);
int __wrap_comm_allreduce_sum(struct comm *comm, uint64_t *values, size_t count);
int __wrap_comm_allreduce_min(struct comm *comm, uint64_t *rows, size_t count, size_t width);

unsigned __wrap_comm_rank(const struct comm *comm)
{
	return comm->rank;
}

static void combine(uint64_t *all, const uint64_t *rows, size_t count, size_t width)
{
	for (size_t i = 0; i < count; i++, all += width, rows += width)
		if (width == 1)
			*all += *rows;
		else if (rows[0] < all[0])
			memcpy(all, rows, width * sizeof *all);
}

/* The last thread wakes the others. width 1: sums, otherwise minimum rows. */
static int join_collective(struct collective_round *collective, uint64_t *rows, size_t count,
			   size_t width)
{
	uint64_t *all;
	uint64_t number;

	pthread_mutex_lock(&collective->lock);
	number = collective->n_collectives;
	all = collective->words[number % 2];
	if (collective->n_joined == 0)
		memcpy(all, rows, count * width * sizeof *rows);
	else
		combine(all, rows, count, width);
	if (++collective->n_joined == collective->n_ranks) {
		collective->n_joined = 0;
		collective->n_collectives++;
		collective->n_rounds += width > 1;
		pthread_cond_broadcast(&collective->all_joined);
	}
	while (number == collective->n_collectives)
		pthread_cond_wait(&collective->all_joined, &collective->lock);
	pthread_mutex_unlock(&collective->lock);
	memcpy(rows, all, count * width * sizeof *rows);
	return 0;
}

int __wrap_comm_allreduce_sum(struct comm *comm, uint64_t *values, size_t count)
{
	return join_collective(comm->collective, values, count, 1);
}

int __wrap_comm_allreduce_min(struct comm *comm, uint64_t *rows, size_t count, size_t width)
{
	return join_collective(comm->collective, rows, count, width);
}

/* Nothing is in device memory, so no device is needed. */
int __wrap_merge_queues_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
			     struct merge_queues *ret_queues);

int __wrap_merge_queues_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
			     struct merge_queues *ret_queues)
{
	(void)job;
	(void)runs;
	(void)n_runs;
	*ret_queues = (struct merge_queues){ 0 };
	return 0;
}

/* --- splitters --- */

enum {
	N_RANKS = 1000,
	N_PARTITIONS_TESTED =
		250, /* partitions per rank, so that there is a search for each boundary */
	RUNS_PER_RANK = 1,
	BLOCKS_PER_RUN = 40,
	ITEMS_PER_BLOCK = 1000,
	STACK_NBYTES = 256 << 10,
	MAX_COLLECTIVE_WORDS = 6 * 4 * N_PARTITIONS_TESTED,
};

static struct layout layout;

struct splitter_thread {
	struct comm comm;
	struct made_run runs[RUNS_PER_RANK];
	uint64_t cuts[(N_PARTITIONS_TESTED + 1) * RUNS_PER_RANK];
	pthread_t thread;
	int r;
};

static void *run_splitter_thread(void *argument)
{
	static const struct splitter_params params = { .n_partitions = N_PARTITIONS_TESTED,
						       .max_items = UINT64_MAX };
	const struct job job = { .layout = &layout, .limit = UINT64_MAX };
	struct splitter_thread *thread = argument;
	struct run *runs[RUNS_PER_RANK];

	for (size_t i = 0; i < RUNS_PER_RANK; i++)
		runs[i] = &thread->runs[i].run;
	thread->r = cuts_make(&thread->comm, &job, runs, RUNS_PER_RANK, &params, thread->cuts);
	return NULL;
}

static void run_splitter_threads(struct collective_round *collective, struct splitter_thread *all)
{
	pthread_attr_t attributes;

	assert_int_equal(pthread_attr_init(&attributes), 0);
	assert_int_equal(pthread_attr_setstacksize(&attributes, STACK_NBYTES), 0);
	for (unsigned i = 0; i < N_RANKS; i++) {
		all[i].comm = (struct comm){ collective, i };
		for (uint64_t j = 0; j < RUNS_PER_RANK; j++)
			make_run((uint64_t)i * RUNS_PER_RANK + j, BLOCKS_PER_RUN, ITEMS_PER_BLOCK,
				 &all[i].runs[j]);
		assert_int_equal(pthread_create(&all[i].thread, &attributes, run_splitter_thread,
						&all[i]),
				 0);
	}
	for (unsigned i = 0; i < N_RANKS; i++) {
		assert_int_equal(pthread_join(all[i].thread, NULL), 0);
		assert_int_equal(all[i].r, 0);
	}
	pthread_attr_destroy(&attributes);
}

static uint64_t count_items_below(const struct splitter_thread *all, unsigned range)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < N_RANKS; i++)
		for (unsigned j = 0; j < RUNS_PER_RANK; j++)
			n += all[i].cuts[range * RUNS_PER_RANK + j];
	return n;
}

TEST(thousand_ranks_find_even_partitions)
{
	static uint64_t words[2][MAX_COLLECTIVE_WORDS];
	const uint64_t n_runs = N_RANKS * RUNS_PER_RANK, n_blocks = n_runs * BLOCKS_PER_RUN;
	struct collective_round collective = { .lock = PTHREAD_MUTEX_INITIALIZER,
					       .all_joined = PTHREAD_COND_INITIALIZER,
					       .n_ranks = N_RANKS,
					       .words = { words[0], words[1] } };
	struct splitter_thread *all = calloc(N_RANKS, sizeof *all);
	uint64_t before = 0;
	struct key key;

	assert_non_null(all);
	assert_int_equal(key_parse_type("u64", &key), 0);
	assert_int_equal(layout_make_key_only(&key, &layout), 0);
	run_splitter_threads(&collective, all);
	for (unsigned i = 1; i <= N_PARTITIONS_TESTED; i++) {
		const uint64_t n = count_items_below(all, i);
		const uint64_t wanted = n_blocks * ITEMS_PER_BLOCK / N_PARTITIONS_TESTED * i;
		const uint64_t most = n_runs * ITEMS_PER_BLOCK; /* a block of each run */

		assert_true(n >= before);
		assert_in_range(n, wanted > most ? wanted - most : 0, wanted + most);
		before = n;
	}
	assert_int_equal(before, n_blocks * ITEMS_PER_BLOCK);
	/* as in estimate.c, with four candidates each */
	print_message("%u rounds\n", collective.n_rounds);
	assert_true(collective.n_rounds <= 1 + 1.3 * 16 / 1.58);
	free(all);
}

/* --- windows --- */

struct observed_windows {
	uint64_t n_reads, n_blocks, max_records;
};

/* Some windows of a rank's partition, with a part of each run. */
static void observe_windows(struct made_run *runs, struct run **pointers, uint32_t n_runs,
			    const struct window_plan *windows, struct observed_windows *ret_seen)
{
	const struct item_loader loader = { .layout = &layout };
	uint64_t *n_taken = calloc(n_runs, sizeof *n_taken), *n_all = calloc(n_runs, sizeof *n_all);
	uint64_t n_cut_before = 0;
	struct forecast *forecast;

	assert_int_equal(forecast_open(pointers, n_runs, &loader, &forecast), 0);
	for (int w = 0; w < 5; w++) {
		struct splitter splitter;
		uint64_t n_cut = 0, n_records = 0;

		assert_int_equal(forecast_next_window(forecast, windows->quota_records, n_taken,
						      &splitter),
				 1);
		for (uint32_t i = 0; i < n_runs; i++) {
			const struct run_bound at = { &layout, splitter.key, i < splitter.run };
			uint64_t cut_at;

			n_all[i] += n_taken[i];
			ret_seen->n_reads += n_taken[i] > 0;
			ret_seen->n_blocks += n_taken[i];
			n_records += n_all[i] * runs[i].block_n_items;
			assert_int_equal(run_count_before(&runs[i].run, &at, &cut_at), 0);
			/*
			 * a block that was not read adds nothing, and less than a block is carried
			 * over
			 */
			assert_in_range(cut_at + runs[i].block_n_items,
					n_all[i] * runs[i].block_n_items,
					(n_all[i] + 1) * runs[i].block_n_items);
			n_cut += cut_at;
		}
		if (n_records - n_cut_before > ret_seen->max_records)
			ret_seen->max_records = n_records - n_cut_before;
		n_cut_before = n_cut;
	}
	forecast_close(forecast);
	free(n_taken);
	free(n_all);
}

TEST(windows_of_a_thousand_ranks_have_the_room_planned)
{
	const struct planned_cluster cluster = { 1000, 32,    102 * GIB,        PB,
						 8,    "u64", .n_partitions = 1 };
	const struct rank_rates rates = cluster_rates(0, 0);
	struct observed_windows seen = { 0 };
	struct window_plan windows;
	struct cluster_plan planned;
	struct made_run *runs;
	struct run **pointers;
	uint64_t block, per_run, mean;
	uint32_t n_runs;
	struct key key;

	assert_int_equal(key_parse_type("u64", &key), 0);
	assert_int_equal(layout_make_key_only(&key, &layout), 0);
	open_plan(&cluster, &rates, &planned);
	n_runs = (uint32_t)planned.loads.n_merged_runs;
	block = run_file_block_n_items(planned.plan.block_nbytes, 8);
	per_run = planned.loads.n_output_records / n_runs / block;
	runs = calloc(n_runs, sizeof *runs);
	pointers = calloc(n_runs, sizeof(struct run *));
	for (uint32_t i = 0; i < n_runs; i++) {
		make_run(i, per_run, block, &runs[i]);
		pointers[i] = &runs[i].run;
	}
	plan_windows(&planned.plan, &planned.request, planned.plan.final_merge_nbytes,
		     planned.loads.n_output_records, 0, n_runs, &windows);
	observe_windows(runs, pointers, n_runs, &windows, &seen);
	assert_true(seen.max_records <= windows.capacity_records);
	mean = seen.n_blocks * block * 8 / seen.n_reads;
	print_message("%u runs, blocks of %ju items: %ju bytes a read, planned %ju\n", n_runs,
		      (uintmax_t)block, (uintmax_t)mean, (uintmax_t)planned.loads.message_nbytes);
	assert_in_range(mean, planned.loads.message_nbytes / 10 * 7,
			planned.loads.message_nbytes / 10 * 15);
	free(runs);
	free(pointers);
	close_plan(&planned);
}
